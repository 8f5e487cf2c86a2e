/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_flush.c - what makes visible, over a fake device: where flushes are posted and how many, what proves what, gates
 * and followers, tails, and which key each kind of op uses.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs.
 */
#include "order_rig.h"

#include "rail_wire.h"

static int make_unordered(void **state)
{
    (void)state;
    return make_with("placement=unordered");
}

static int make_strict(void **state)
{
    (void)state;
    return make_with("order=strict");
}

static int make_tail(void **state)
{
    (void)state;
    return make_with("tail=on");
}

static int make_tail_fault(void **state)
{
    (void)state;
    const char *settings[] = {
        "ports=fake0,fake1", "stripe_min=16384", "piece_min=4096", "pace=off", "tail=on", "fault=tail", NULL};
    make_settings(settings, end_one);
    return 0;
}

static int make_keys_fault(void **state)
{
    (void)state;
    return make_with("fault=keys");
}

static int make_overlap_fault(void **state)
{
    (void)state;
    return make_with("fault=overlap");
}

static int make_flush_fault(void **state)
{
    (void)state;
    return make_with("fault=flush");
}

static int make_own_flush_fault(void **state)
{
    (void)state;
    const char *settings[] = {"ports=fake0,fake1", "pace=off", "placement=unordered", "fault=own-flush", NULL};
    make_settings(settings, end_one);
    return 0;
}

/* Ports that answer for themselves. */
static int make_asked(void **state)
{
    (void)state;
    return make_with(NULL);
}

static bool strict_key(unsigned lane, unsigned i)
{
    uint32_t rkey = fake_key(fake_send(rig.qp[lane], i)), bulk = rail_wire_view_rkey(rig.key.bytes, lane, false);
    assert_true(rkey == bulk || rkey == rail_wire_view_rkey(rig.key.bytes, lane, true));
    return rkey != bulk;
}

static int set(size_t at)
{
    return braid_signal_set(rig.ch, 0, there(at), 7, &rig.done);
}

static void a_flush_goes_right_behind_the_last_piece(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(flushes_posted(0) + flushes_posted(1), 0); /* nobody waits */
    assert_int_equal(signal_add(), 0);
    assert_int_equal(pending(1), 2);
    assert_true(is_flush(fake_send(rig.qp[1], 1))); /* before the piece is acknowledged */
    assert_int_equal(flushes_posted(0), 0);         /* the signal's own lane keeps it behind by itself */
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(pending(1), 3); /* what nobody waits for comes behind it */
    end(1, 2);
    assert_int_equal(signals_posted(), 1);
}

/* Two that wait for the same writes share a flush; one that waits for later ones gets another when the first has ended. */
static void one_flush_a_lane_is_in_flight_and_shared(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(flushes_posted(1), 1);
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(flushes_posted(1), 1);
    end(1, 2);
    assert_int_equal(signals_posted(), 2);
    assert_int_equal(flushes_posted(1), 1); /* the second, behind the second piece */
    end(1, 1);
    assert_int_equal(signals_posted(), 2);
    end(1, 1);
    assert_int_equal(signals_posted(), 4);
    assert_true(stats().flushes == 2);
}

static void nothing_outstanding_needs_no_flush(void **state)
{
    (void)state;
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_int_equal(signal_add(), 0);
    end(0, 1);
    assert_int_equal(put(100), 0);
    assert_true(stats().flushes == 0 && rig.waits == 0);
}

static void quiet_flushes_each_lane_once(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(put(1 << 20), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(stats().flushes == 2 && rig.done.ok == 5);
    assert_int_equal(rig.waits, 12);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(stats().flushes == 2 && rig.waits == 12); /* all is known */
    assert_int_equal(put(4096), 0);                       /* one lane */
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(stats().flushes == 3);
}

/* The answer to an atomic comes from behind all that was before it on its lane. */
static void a_completed_atomic_proves_what_is_before_it(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0); /* on lane 0 */
    assert_int_equal(signal_add(), 0);
    end(0, 2);
    assert_true(rig.done.ok == 2);
    /* Bulk to the bytes of the first: they are visible, so it neither follows nor waits. */
    assert_int_equal(put_at(64, 4096), 0);
    assert_int_equal(pending(0) + pending(1), 1);
    assert_int_equal(strict_key(pending(1) > 0, 0), false);
    assert_true(stats().gated == 0 && stats().flushes == 0);
}

static void an_acknowledged_write_proves_nothing(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0); /* on lane 0 */
    end(0, 1);
    assert_int_equal(put_at(64, 4096), 0);
    assert_int_equal(pending(0), 1); /* follows */
    assert_int_equal(strict_key(0, 0), true);
}

static void an_unordered_lane_is_flushed_before_a_word_write(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0); /* on lane 0 */
    assert_int_equal(set(0), 0);
    assert_int_equal(pending(0), 2);
    assert_true(is_flush(fake_send(rig.qp[0], 1)));
    assert_int_equal(set(8), 0); /* and the second behind the first, by a flush of its own */
    end(0, 2);
    assert_int_equal(pending(0), 2);
    assert_int_equal(fake_send(rig.qp[0], 0)->remote_addr - (uintptr_t)memory, 0);
    assert_true(is_flush(fake_send(rig.qp[0], 1)));
    end(0, 2);
    assert_int_equal(pending(0), 1);
    assert_int_equal(fake_send(rig.qp[0], 0)->remote_addr - (uintptr_t)memory, 8);
}

static void an_unordered_lane_keeps_atomics_behind(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0); /* on lane 0 */
    assert_int_equal(signal_add(), 0);
    assert_int_equal(signals_posted(), 1);
    assert_int_equal(flushes_posted(0), 0);
    assert_int_equal(set(8), 0); /* a write: not */
    assert_int_equal(flushes_posted(0), 1);
    assert_int_equal(pending(0), 3);
}

static void the_own_flush_can_be_switched_off(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0);
    assert_int_equal(set(0), 0);
    assert_int_equal(flushes_posted(0), 0);
    assert_int_equal(pending(0) + pending(1), 2);
}

static void a_flush_can_be_switched_off(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(pending(1), 1);
    end(1, 1);
    assert_int_equal(signals_posted(), 1);
}

/* The device of the target says that it places out of order, or that it does not; settings beat it. */
static void placement_is_what_the_target_says(void **state)
{
    (void)state;
    static const struct {
        enum verbs_placement says;
        const char *setting;
        bool unordered;
    } cases[] = {
        {VERBS_PLACEMENT_SILENT, "placement=auto", false},      {VERBS_PLACEMENT_ORDERED, "placement=auto", false},
        {VERBS_PLACEMENT_UNORDERED, "placement=auto", true},    {VERBS_PLACEMENT_UNORDERED, "placement=ordered", false},
        {VERBS_PLACEMENT_ORDERED, "placement=unordered", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct braid *b = NULL;
        const char *settings[] = {"ports=fake2", "log=info", cases[i].setting, NULL};
        struct braid_options options = BRAID_OPTIONS_INIT;
        struct braid_peers peers = {.size = sizeof(peers), .my_pe = 0, .n_pes = 1, .alltoall = to_self};
        options.settings = settings;
        options.log = keep_line;
        rig.log[0] = '\0';
        fake_place(cases[i].says);
        assert_int_equal(braid_open(&options, &b), 0);
        fake_auto(true);
        assert_int_equal(braid_connect(b, &peers), 0);
        fake_auto(false);
        bool said = strstr(rig.log, "placement taken as out of order for 1 of 1 PEs");
        if (said != cases[i].unordered || !strstr(rig.log, "order release; tail off"))
            fail_msg("case %zu: %s", i, rig.log);
        braid_close(b);
    }
}

static void a_word_op_uses_the_strict_key_and_bulk_the_other(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0); /* lane 0 */
    assert_int_equal(put(4096), 0); /* lane 1 */
    end(1, 1);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_int_equal(put(1 << 20), 0);
    for (unsigned k = 0; k < 2; k++)
        assert_int_equal(strict_key(k, 0), false);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_int_equal(put(100), 0);
    assert_int_equal(set(0), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(braid_p(rig.ch, 0, there(8), 1, 4, &rig.done), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(strict_key(0, i), true);
}

static void the_keys_can_be_mixed_up(void **state)
{
    (void)state;
    assert_int_equal(put(100), 0);
    assert_int_equal(set(0), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(strict_key(0, i), false);
}

static void bulk_to_bytes_of_one_lane_follows_on_it(void **state)
{
    (void)state;
    assert_int_equal(put_at(4096, 4096), 0); /* lane 0 */
    assert_int_equal(put_at(8192, 4096), 0); /* lane 1: no byte in common */
    assert_int_equal(pending(1), 1);
    assert_int_equal(put_at(8000, 32768), 0); /* large, but both lanes have bytes of it: gated */
    assert_true(stats().gated == 1);
    assert_int_equal(posted(0, VERBS_OP_WRITE) + posted(1, VERBS_OP_WRITE), 2);
    assert_int_equal(flushes_posted(0) + flushes_posted(1), 2);
    end(0, 2);
    end(1, 1);
    assert_int_equal(posted(0, VERBS_OP_WRITE) + posted(1, VERBS_OP_WRITE), 0);
    end(1, 1);
    assert_true(posted(0, VERBS_OP_WRITE) == 1 && posted(1, VERBS_OP_WRITE) == 1);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_int_equal(put_at(4096, 4096), 0);
    unsigned lane = pending(1) > 0;
    assert_int_equal(put_at(4000, 32768), 0); /* all on the one lane, with the strict key */
    assert_int_equal(pending(!lane), 0);
    assert_int_equal(posted(lane, VERBS_OP_WRITE), 2);
    assert_int_equal(strict_key(lane, 0), false);
    assert_int_equal(strict_key(lane, 1), true);
    assert_true(stats().gated == 1);
}

static void bulk_on_an_unordered_lane_cannot_follow(void **state)
{
    (void)state;
    assert_int_equal(put_at(4096, 4096), 0);
    assert_int_equal(put_at(4096, 4096), 0);
    assert_true(stats().gated == 1);
    assert_int_equal(pending(0), 2);
    assert_true(is_flush(fake_send(rig.qp[0], 1)));
    end(0, 1);
    assert_int_equal(posted(0, VERBS_OP_WRITE), 0);
    end(0, 1);
    assert_int_equal(posted(0, VERBS_OP_WRITE) + posted(1, VERBS_OP_WRITE), 1);
}

static void bulk_over_a_deferred_word_waits_for_it(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(set(0), 0); /* deferred */
    assert_int_equal(put_at(0, 512), 0);
    assert_int_equal(posted(0, VERBS_OP_WRITE) + posted(1, VERBS_OP_WRITE), 2);
    end(1, 2);
    assert_int_equal(posted(0, VERBS_OP_WRITE), 2); /* the piece and the word; the bulk waits for its flush */
    assert_int_equal(flushes_posted(0), 1);
    end(0, 3);
    assert_int_equal(posted(0, VERBS_OP_WRITE) + posted(1, VERBS_OP_WRITE), 1);
}

static void overlapping_bulk_can_be_let_loose(void **state)
{
    (void)state;
    assert_int_equal(put_at(4096, 4096), 0);
    assert_int_equal(put_at(4096, 4096), 0);
    assert_true(pending(0) == 1 && pending(1) == 1 && stats().gated == 0);
    assert_int_equal(strict_key(1, 0), false);
}

static void strict_bulk_behind_a_fence_waits_for_all_before_it(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(braid_fence(rig.ch, 0), 0);
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(put(4096), 0);
    assert_true(stats().gated == 1 && stats().waiting_puts == 2);
    assert_true(posted(0, VERBS_OP_WRITE) == 1 && posted(1, VERBS_OP_WRITE) == 1);
    end(1, 2);
    assert_int_equal(signals_posted(), 1);
    end(0, 1); /* the piece; the signal and the flush behind it are still out */
    assert_true(posted(0, VERBS_OP_WRITE) == 0 && posted(1, VERBS_OP_WRITE) == 0);
    assert_int_equal(flushes_posted(0), 1);
    end(0, 1);
    assert_true(posted(0, VERBS_OP_WRITE) == 0 && posted(1, VERBS_OP_WRITE) == 0);
    end(0, 1);
    assert_true(posted(0, VERBS_OP_WRITE) + posted(1, VERBS_OP_WRITE) == 3);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
}

static void a_fence_behind_nothing_costs_nothing(void **state)
{
    (void)state;
    assert_int_equal(braid_fence(rig.ch, BRAID_ALL_PES), 0);
    assert_int_equal(put(1 << 20), 0);
    assert_true(stats().gated == 0 && posted(1, VERBS_OP_WRITE) == 1);
    assert_int_equal(put(1 << 20), 0); /* no fence between */
    assert_true(stats().gated == 0 && posted(1, VERBS_OP_WRITE) == 2);
}

static void a_fence_in_release_posts_and_holds_nothing(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(braid_fence(rig.ch, 0), 0);
    assert_int_equal(put(1 << 20), 0);
    assert_true(posted(1, VERBS_OP_WRITE) == 2 && stats().gated == 0 && stats().flushes == 0);
}

/* What was lost before a fence is not overtaken by bulk behind it either, whichever put meets it first. */
static void strict_bulk_behind_a_loss_never_goes(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(braid_fence(rig.ch, 0), 0);
    fake_end(rig.qp[1], -ETIMEDOUT);
    settle();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(put(1 << 20), 0);
        settle();
        assert_true(posted(0, VERBS_OP_WRITE) == 1); /* of the first */
    }
    /* They fail when what else stood before the fence is visible: bulk behind them must not be earlier either. */
    assert_true(rig.done.failed == 0);
    end(0, 1);
    assert_true(rig.done.failed == 1 && rig.done.error == -ETIMEDOUT); /* the first */
    end(0, 1);
    assert_true(rig.done.failed == 4);
    assert_true(stats().pieces == 2); /* of the first */
    assert_int_equal(braid_quiet(rig.ch, 0), -ETIMEDOUT);
}

/* The loss comes between the fence and the put behind it; and younger fences meet it before older bulk has gone. */
static void a_loss_behind_any_fence_holds_all_bulk_back(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(braid_fence(rig.ch, 0), 0);
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(put(1 << 20), 0);
    fake_fail(FAKE_POLL, 1, -EIO); /* of the second port */
    assert_true(braid_progress(rig.ch) > 0);
    assert_int_equal(braid_fence(rig.ch, 0), 0);
    assert_int_equal(put(1 << 20), 0);
    settle();
    assert_true(rig.done.failed == 0);
    end(0, 2); /* the first put's piece, and its flush */
    assert_true(stats().pieces == 2);
    assert_true(rig.done.failed == 4);
}

static void a_word_lost_before_a_fence_holds_bulk_back(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0); /* on lane 0 */
    assert_int_equal(put(4096), 0); /* on lane 1 */
    assert_int_equal(set(0), 0);    /* waits for lane 1, and will not go: its lane is lost */
    assert_int_equal(braid_fence(rig.ch, 0), 0);
    end(0, 1);
    fake_arrive(rig.qp[0], "no message", 10);
    settle();
    assert_true(rig.done.failed == 1);
    assert_int_equal(put(1 << 20), 0);
    settle();
    end(1, 2); /* what else stood before the fence, and its flush */
    assert_true(stats().pieces == 2);
    assert_true(rig.done.failed == 2);
}

static void the_tail_is_a_word_behind_the_rest(void **state)
{
    (void)state;
    assert_int_equal(put_at(1 << 20, 1 << 20), 0);
    uint64_t tail_at = 0, body = 0;
    assert_true(posted(0, VERBS_OP_WRITE) == 1 && posted(1, VERBS_OP_WRITE) == 1);
    for (unsigned k = 0; k < 2; k++)
        body += fake_send(rig.qp[k], 0)->len;
    assert_in_range((1 << 20) - body, 8, 135);
    assert_int_equal(flushes_posted(1), 1);
    end(1, 1);
    assert_int_equal(posted(0, VERBS_OP_WRITE), 1);
    end(1, 1);
    assert_int_equal(posted(0, VERBS_OP_WRITE), 2);
    const struct verbs_send *tail = fake_send(rig.qp[0], pending(0) - 1);
    tail_at = tail->remote_addr - (uintptr_t)memory;
    assert_true(tail_at == (1 << 20) + body && tail->len == (1 << 20) - body && tail->remote_addr % 128 == 0);
    assert_int_equal(strict_key(0, pending(0) - 1), true);
    end(0, 1);
    assert_true(rig.done.ok == 0); /* one op: it ends with its tail */
    end(0, 1);
    assert_true(rig.done.ok == 1);
}

static void the_tail_on_one_lane_is_kept_by_its_key(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0);
    assert_int_equal(pending(0), 1);
    assert_int_equal(fake_send(rig.qp[0], 0)->len, 4096);
    assert_int_equal(strict_key(0, 0), true);
}

static void parts_of_a_put_with_signal_have_no_tail(void **state)
{
    (void)state;
    struct braid_part part = {there(4096), here(4096), 1 << 20};
    assert_int_equal(braid_put_signal(rig.ch, 0, &part, 1, there(0), BRAID_SIGNAL_ADD, 1, &rig.done), 0);
    assert_true(fake_send(rig.qp[0], 0)->len + fake_send(rig.qp[1], 0)->len == 1 << 20);
    assert_int_equal(strict_key(0, 0), false);
}

static void the_tail_can_be_switched_off(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_true(fake_send(rig.qp[0], 0)->len + fake_send(rig.qp[1], 0)->len == 1 << 20);
    assert_int_equal(stats().words, 0);
}

/* ---- own memory ------------------------------------------------------------------------------------------------------- */

static void own_memory_is_flushed_over_every_rail(void **state)
{
    (void)state;
    uint64_t before = stats().flushes;
    assert_int_equal(braid_flush_local(rig.ch), 0);
    assert_int_equal(stats().flushes, before + 2);
    assert_int_equal(rig.waits, 2); /* each came back */
    assert_int_equal(braid_flush_local(rig.ch), 0);
    assert_int_equal(stats().flushes, before + 4);
    assert_int_equal(braid_flush_local(NULL), -EINVAL);
}

static void a_flush_under_way_does_not_count_for_own_memory(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0); /* asks for a flush on the other lane */
    assert_int_equal(flushes_posted(1), 1);
    uint64_t before = stats().flushes;
    assert_int_equal(braid_flush_local(rig.ch), 0);
    assert_true(stats().flushes >= before + 2);
}

static void own_memory_cannot_be_flushed_over_a_lost_lane(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    fake_end(rig.qp[1], -EIO);
    settle();
    assert_int_equal(braid_flush_local(rig.ch), -ENOTCONN);
    assert_non_null(strstr(rig.log, "own memory"));
}

static void a_turn_moves_things_on(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    unsigned waits = rig.waits;
    assert_int_equal(braid_turn(rig.ch), 0);
    assert_int_equal(rig.waits, waits + 1); /* nothing had moved: it waited, and a request ended */
    assert_int_equal(braid_turn(rig.ch), 0);
    assert_int_equal(rig.waits, waits + 1);
    rig.wait_error = -ECANCELED;
    assert_int_equal(braid_turn(rig.ch), -ECANCELED);
    assert_int_equal(braid_turn(NULL), -EINVAL);
    fake_end(rig.qp[1], 0);
    assert_true(braid_progress_try(rig.ch) > 0);
    assert_int_equal(braid_progress_try(NULL), -EINVAL);
    rig.wait_error = 0;
    assert_int_equal(put(1 << 20), 0);
    fake_end(rig.qp[0], 0);
    rig.tries = true;
    rig.tried = -1;
    assert_true(braid_progress(rig.ch) > 0);
    assert_int_equal(rig.tried, 0); /* somebody is inside */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_flush_goes_right_behind_the_last_piece, make),
        WITH(one_flush_a_lane_is_in_flight_and_shared, make),
        WITH(nothing_outstanding_needs_no_flush, make),
        WITH(quiet_flushes_each_lane_once, make),
        WITH(a_completed_atomic_proves_what_is_before_it, make),
        WITH(an_acknowledged_write_proves_nothing, make),
        WITH(an_unordered_lane_is_flushed_before_a_word_write, make_unordered),
        WITH(an_unordered_lane_keeps_atomics_behind, make_unordered),
        WITH(the_own_flush_can_be_switched_off, make_own_flush_fault),
        WITH(a_flush_can_be_switched_off, make_flush_fault),
        WITH(placement_is_what_the_target_says, make_asked),
        WITH(a_word_op_uses_the_strict_key_and_bulk_the_other, make),
        WITH(the_keys_can_be_mixed_up, make_keys_fault),
        WITH(bulk_to_bytes_of_one_lane_follows_on_it, make),
        WITH(bulk_on_an_unordered_lane_cannot_follow, make_unordered),
        WITH(bulk_over_a_deferred_word_waits_for_it, make),
        WITH(overlapping_bulk_can_be_let_loose, make_overlap_fault),
        WITH(strict_bulk_behind_a_fence_waits_for_all_before_it, make_strict),
        WITH(a_fence_behind_nothing_costs_nothing, make_strict),
        WITH(a_fence_in_release_posts_and_holds_nothing, make),
        WITH(strict_bulk_behind_a_loss_never_goes, make_strict),
        WITH(a_loss_behind_any_fence_holds_all_bulk_back, make_strict),
        WITH(a_word_lost_before_a_fence_holds_bulk_back, make_strict),
        WITH(the_tail_is_a_word_behind_the_rest, make_tail),
        WITH(the_tail_on_one_lane_is_kept_by_its_key, make_tail),
        WITH(parts_of_a_put_with_signal_have_no_tail, make_tail),
        WITH(the_tail_can_be_switched_off, make_tail_fault),
        WITH(own_memory_is_flushed_over_every_rail, make),
        WITH(a_flush_under_way_does_not_count_for_own_memory, make),
        WITH(own_memory_cannot_be_flushed_over_a_lost_lane, make),
        WITH(a_turn_moves_things_on, make),
    };
    return cmocka_run_group_tests_name("api_flush", tests, NULL, NULL);
}
