/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_order.c - the engine over a fake device: when a signal leaves, what holds it, what it holds; full queues; quiet.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs.
 */
#include "order_rig.h"

static void a_signal_waits_for_the_other_lane(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(fake_pending(rig.qp[0]), 1);
    assert_int_equal(fake_pending(rig.qp[1]), 1);
    assert_int_equal(signal_add(), 0); /* accepted, but not posted */
    assert_int_equal(signals_posted(), 0);
    end(0, 1); /* the own lane's piece does not release it */
    assert_int_equal(signals_posted(), 0);
    end(1, 1); /* nor the other's: acknowledged is not visible */
    assert_int_equal(signals_posted(), 0);
    assert_int_equal(flushes_posted(1), 1);
    fake_end(rig.qp[1], 0);
    assert_int_equal(signals_posted(), 0); /* not before progress has seen it */
    assert_true(braid_progress(rig.ch) > 0);
    assert_int_equal(signals_posted(), 1);
    assert_true(rig.done.ok == 1);
    fake_end(rig.qp[0], 0);
    assert_int_equal(braid_progress(rig.ch), 1);
    assert_true(rig.done.ok == 2 && rig.done.failed == 0);
}

static void a_signal_with_nothing_before_it_goes_at_once(void **state)
{
    (void)state;
    assert_int_equal(signal_add(), 0);
    assert_int_equal(signals_posted(), 1);
    assert_int_equal(put(100), 0); /* a word op of the same lane: behind it by itself */
    assert_int_equal(fake_pending(rig.qp[0]), 2);
}

static void word_ops_keep_their_order_in_the_queue(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(put(100), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(fake_pending(rig.qp[0]), 1);
    end(1, 2); /* the piece and its flush */
    assert_int_equal(fake_pending(rig.qp[0]), 4);
    assert_int_equal(fake_send(rig.qp[0], 1)->op, VERBS_OP_FETCH_ADD);
    assert_int_equal(fake_send(rig.qp[0], 2)->op, VERBS_OP_WRITE);
    assert_int_equal(fake_send(rig.qp[0], 2)->len, 100);
    assert_int_equal(fake_send(rig.qp[0], 3)->op, VERBS_OP_FETCH_ADD);
}

static void bulk_behind_a_signal_neither_waits_nor_delays_it(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(posted(1, VERBS_OP_WRITE), 2);
    end(1, 2); /* the first piece and the flush right behind it */
    assert_int_equal(posted(1, VERBS_OP_WRITE), 1);
    assert_int_equal(signals_posted(), 1);
}

static void gets_take_no_part(void **state)
{
    (void)state;
    assert_int_equal(braid_get(rig.ch, 0, here(0), there(0), 1 << 20, &rig.done), 0);
    assert_int_equal(fake_pending(rig.qp[1]), 1);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(signals_posted(), 1);
}

static void the_fault_lets_a_signal_overtake(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(signals_posted(), 1);
}

static void drain_blocks_the_caller(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0); /* came back: so what it had to wait for has ended */
    assert_int_equal(rig.waits, 2);
    assert_int_equal(fake_pending(rig.qp[1]), 0);
    assert_int_equal(signals_posted(), 1);
}

static void drain_gives_up_with_the_wait(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    rig.wait_error = -ECANCELED;
    assert_int_equal(signal_add(), -ECANCELED);
    assert_int_equal(signals_posted(), 0);
}

static void a_full_fifo_is_try_again_and_leaves_nothing(void **state)
{
    (void)state;
    unsigned n = 0;
    assert_int_equal(put(1 << 20), 0);
    while (signal_add() == 0)
        n++;
    assert_int_equal(n, 8);
    assert_int_equal(signal_add(), -EAGAIN);
    assert_int_equal(put(8), -EAGAIN);
    assert_int_equal(signals_posted(), 0);
    end(1, 2);
    assert_int_equal(signals_posted(), 8);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(signals_posted(), 9);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.ok == 10 && rig.done.failed == 0);
}

static int make_shallow(void **state)
{
    (void)state;
    return make_with("bulk_depth=32");
}

/* What the lanes have no slots for waits in software; what does not fit there either leaves nothing. */
static void a_full_lane_leaves_nothing_half_posted(void **state)
{
    (void)state;
    unsigned accepted = 0;
    /* Medium puts alternate; ending only lane 0's leaves lane 1 full. */
    while (put(4096) == 0)
        accepted++;
    unsigned full = posted(1, VERBS_OP_WRITE);
    assert_true(full > 30);
    assert_int_equal(posted(0, VERBS_OP_WRITE) + full + 32, accepted);
    assert_int_equal(stats().waiting_puts, 32);
    assert_int_equal(put(1 << 20), -EAGAIN);
    assert_int_equal(posted(0, VERBS_OP_WRITE) + posted(1, VERBS_OP_WRITE), accepted - 32);
    while (fake_pending(rig.qp[0]) > 0)
        fake_end(rig.qp[0], 0);
    settle();
    assert_int_equal(posted(0, VERBS_OP_WRITE), 32); /* those that waited take the lane with room */
    assert_int_equal(posted(1, VERBS_OP_WRITE), full);
    assert_int_equal(stats().waiting_puts, 0);
    assert_int_equal(put(4096), 0);
    assert_int_equal(posted(0, VERBS_OP_WRITE), 33);
    assert_int_equal(put(1 << 20), 0); /* one piece where there is room; the rest of it waits for the other lane */
    assert_int_equal(posted(0, VERBS_OP_WRITE), 34);
    assert_int_equal(posted(1, VERBS_OP_WRITE), full);
    assert_int_equal(braid_quiet(rig.ch, BRAID_ALL_PES), 0);
    assert_true(rig.done.ok == accepted + 2 && rig.done.failed == 0);
}

static void bulk_cannot_starve_a_signal(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    while (put(32768) == 0)
        ;
    end(1, 2);                             /* the piece and its flush, which bulk behind them did not delay */
    assert_int_equal(signals_posted(), 1); /* lane 0 is full of bulk, but for the reserve */
}

/* The head of the FIFO may go but finds no slot; what comes after it must not slip past when one comes free. */
static void a_full_home_lane_keeps_the_order(void **state)
{
    (void)state;
    while (stats().waiting_words == 0)
        assert_int_equal(put(8), 0);
    unsigned full = fake_pending(rig.qp[0]);
    end(0, 1);
    assert_int_equal(stats().waiting_words, 0);
    assert_int_equal(put(4096), 0); /* takes lane 1, which has room */
    assert_int_equal(signal_add(), 0);
    end(1, 2);
    assert_int_equal(fake_pending(rig.qp[0]), full);
    assert_int_equal(put(16), 0); /* behind the signal */
    for (unsigned i = 0; i < 2; i++) {
        fake_end(rig.qp[0], 0);
        assert_true(braid_progress(rig.ch) > 0);
        assert_int_equal(fake_pending(rig.qp[0]), full);
    }
    assert_int_equal(fake_send(rig.qp[0], full - 2)->op, VERBS_OP_FETCH_ADD);
    assert_int_equal(fake_send(rig.qp[0], full - 1)->len, 16);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.failed == 0);
}

static void quiet_gives_up_with_the_wait(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    rig.wait_error = -EINTR;
    assert_int_equal(braid_quiet(rig.ch, 0), -EINTR);
    rig.wait_error = 0;
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
}

static void a_region_in_use_cannot_be_ended(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(braid_mem_dereg(rig.mem), -EBUSY);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_int_equal(braid_mem_dereg(rig.mem), 0);
    assert_int_equal(braid_mem_dereg(NULL), 0);
}

static void a_region_can_be_ended_when_its_ops_have(void **state)
{
    (void)state;
    struct braid_mem *other;
    assert_int_equal(braid_mem_reg(rig.b, memory, 4096, NULL, &other), 0);
    struct braid_local from = {memory, other};
    assert_int_equal(braid_put(rig.ch, 0, there(1 << 20), from, 4096, NULL), 0);
    assert_int_equal(braid_mem_dereg(other), -EBUSY);
    rig.wait_error = -ECANCELED;
    assert_int_equal(braid_mem_dereg_wait(rig.ch, other), -ECANCELED);
    rig.wait_error = 0;
    assert_int_equal(braid_mem_dereg_wait(NULL, other), -EINVAL);
    assert_int_equal(braid_mem_dereg_wait(rig.ch, other), 0);
    assert_int_equal(braid_mem_dereg_wait(rig.ch, NULL), 0);
}

static void an_echo_comes_back_on_each_lane(void **state)
{
    (void)state;
    uint64_t rtt = UINT64_MAX;
    for (int lane = 0; lane < 2; lane++)
        assert_int_equal(braid_echo(rig.ch, 0, lane, &rtt), 0);
    assert_true(rtt < UINT64_C(5000000000));
    assert_int_equal(braid_echo(rig.ch, 0, 2, &rtt), -EINVAL);
    assert_non_null(strstr(rig.log, "an echo over lane 2 to PE 0"));
    assert_int_equal(braid_echo(rig.ch, 0, -1, &rtt), -EINVAL);
}

/* The clock of this test: a second later each time it is looked at. */
static uint64_t hasty_now(void *arg)
{
    (void)arg;
    static uint64_t now;
    return now += 1000000000;
}

static int wait_for_nothing(void *arg, uint64_t deadline_ns)
{
    (void)arg;
    (void)deadline_ns;
    return 0;
}

static void an_echo_that_does_not_come_says_so(void **state)
{
    (void)state;
    uint64_t rtt = 77;
    struct braid *b = NULL;
    const char *settings[] = {"ports=fake2", NULL};
    struct braid_options options = BRAID_OPTIONS_INIT;
    struct braid_peers peers = {.size = sizeof(peers), .my_pe = 0, .n_pes = 1, .alltoall = to_self};
    options.settings = settings;
    options.now = hasty_now;
    options.wait = wait_for_nothing;
    options.log = keep_line;
    assert_int_equal(braid_open(&options, &b), 0);
    fake_auto(true);
    assert_int_equal(braid_connect(b, &peers), 0);
    fake_auto(false);
    assert_int_equal(braid_echo(braid_channel_at(b, 0), 0, 0, &rtt), -ETIMEDOUT);
    assert_non_null(strstr(rig.log, "no echo from PE 0 over lane 0 within 5 s"));
    assert_true(rtt == 77);
    braid_close(b);
}

static void statistics_count_payload(void **state)
{
    (void)state;
    struct braid_rail_stats rail[2];
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(put(100), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(braid_rail_stats_at(rig.b, i, &rail[i]), 0);
    assert_true(rail[0].put_bytes + rail[1].put_bytes == (1 << 20) + 100);
    assert_true(rail[0].word_ops == 2 && rail[1].word_ops == 0);
    assert_string_equal(rail[1].port, "fake1:1");
    assert_int_equal(braid_rail_stats_at(rig.b, 2, &rail[0]), -EINVAL);
    assert_int_equal(braid_rail_stats_at(rig.b, -1, &rail[0]), -EINVAL);
}

static int make_paced(void **state)
{
    (void)state;
    return make_with("pace=auto");
}

/* On paced lanes a large put goes piece by piece; none shares a cache line with another. */
static void pieces_meet_where_cache_lines_do(void **state)
{
    (void)state;
    uint64_t start = (uintptr_t)memory + 4096 + 72, at = start, pieces = 0;
    assert_int_equal(put_at(4096 + 72, 16 << 20), 0);
    while (pending(0) + pending(1) > 0) {
        for (unsigned lane = 0; lane < 2; lane++) {
            if (pending(lane) == 0)
                continue;
            const struct verbs_send *send = fake_send(rig.qp[lane], 0);
            assert_true(send->remote_addr == start || send->remote_addr % 128 == 0);
            at += send->len;
            pieces++;
            end(lane, 1);
        }
        settle();
    }
    assert_true(at == start + (16 << 20) && rig.done.ok == 1 && pieces > 16);
}

/* Drain takes an acknowledgement for visible where word ops wait, but a quiet promises more. */
static void quiet_flushes_in_drain_mode_too(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    uint64_t before = stats().flushes;
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_int_equal(stats().flushes, before + 2);
}

/* Nobody waits, and the table of ranges fills up: one lane is flushed, with the next call the other, and neither again before
 * both have answered. */
static void a_filling_table_is_flushed_lane_by_lane(void **state)
{
    (void)state;
    for (unsigned puts = 0;; puts++) {
        assert_true(puts < 256);
        assert_int_equal(put(4096), 0);
        if (flushes_posted(0) + flushes_posted(1) > 0) {
            assert_true(puts > 100);
            break;
        }
        for (unsigned lane = 0; puts % 2 && lane < 2; lane++) { /* two at a time, so that both lanes are used */
            while (pending(lane) > 0)
                fake_end(rig.qp[lane], 0);
        }
        settle();
    }
    assert_int_equal(stats().flushes, 1);
    unsigned first = flushes_posted(1);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(put(4096), 0);
        assert_true(flushes_posted(0) == 1 && flushes_posted(1) == 1);
    }
    end(first, pending(first));
    assert_int_equal(put(4096), 0);
    assert_int_equal(stats().flushes, 2);
    end(!first, pending(!first));
    settle();
    assert_int_equal(stats().flushes, 2); /* room enough for now */
    assert_int_equal(rig.waits, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_signal_waits_for_the_other_lane, make),
        WITH(a_signal_with_nothing_before_it_goes_at_once, make),
        WITH(word_ops_keep_their_order_in_the_queue, make),
        WITH(bulk_behind_a_signal_neither_waits_nor_delays_it, make),
        WITH(gets_take_no_part, make),
        WITH(the_fault_lets_a_signal_overtake, make_fault),
        WITH(drain_blocks_the_caller, make_drain),
        WITH(drain_gives_up_with_the_wait, make_drain),
        WITH(a_full_fifo_is_try_again_and_leaves_nothing, make),
        WITH(a_filling_table_is_flushed_lane_by_lane, make),
        WITH(a_full_lane_leaves_nothing_half_posted, make_shallow),
        WITH(bulk_cannot_starve_a_signal, make),
        WITH(a_full_home_lane_keeps_the_order, make),
        WITH(quiet_gives_up_with_the_wait, make),
        WITH(a_region_in_use_cannot_be_ended, make),
        WITH(a_region_can_be_ended_when_its_ops_have, make),
        WITH(an_echo_comes_back_on_each_lane, make),
        WITH(an_echo_that_does_not_come_says_so, make),
        WITH(statistics_count_payload, make),
        WITH(pieces_meet_where_cache_lines_do, make_paced),
        WITH(quiet_flushes_in_drain_mode_too, make_drain),
    };
    return cmocka_run_group_tests_name("api_order", tests, NULL, NULL);
}
