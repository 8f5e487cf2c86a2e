/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_forms.c - the forms of ops over a fake device: puts with a signal, values, blocking forms and what ends them early,
 * two quiets at once, channels that help each other, bulk that waits in software, and what is lost meanwhile.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs.
 */
#include "order_rig.h"

static int put_signal(unsigned n, size_t len)
{
    struct braid_part parts[BRAID_MAX_PARTS];
    for (unsigned i = 0; i < n; i++) {
        size_t at = 4096 + i * len;
        parts[i] = (struct braid_part){there(at), here(at), len};
    }
    return braid_put_signal(rig.ch, 0, parts, n, there(0), BRAID_SIGNAL_ADD, 1, &rig.done);
}

static void a_put_with_signal_is_one_op(void **state)
{
    (void)state;
    assert_int_equal(put_signal(3, 32768), 0);
    assert_true(posted(0, VERBS_OP_WRITE) + posted(1, VERBS_OP_WRITE) >= 3);
    assert_int_equal(signals_posted(), 0);
    end(1, pending(1)); /* pieces, some of them without a completion of their own, and the flush */
    assert_true(rig.done.ok == 0);
    assert_int_equal(signals_posted(), 1);
    end(0, pending(0) - 1);
    assert_true(rig.done.ok == 0);
    end(0, 1);
    assert_true(rig.done.ok == 1 && rig.done.failed == 0);
    assert_true(stats().puts == 3 && stats().words == 1);
}

/* Small parts have no order among them: they spread as bulk does. */
static void small_parts_are_bulk(void **state)
{
    (void)state;
    assert_int_equal(put_signal(4, 64), 0);
    assert_true(posted(0, VERBS_OP_WRITE) == 2 && posted(1, VERBS_OP_WRITE) == 2);
    assert_true(stats().deferred == 1 && signals_posted() == 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.ok == 1);
}

static void no_parts_leave_the_signal(void **state)
{
    (void)state;
    struct braid_part nothing = {there(64), here(64), 0};
    assert_int_equal(braid_put_signal(rig.ch, 0, NULL, 0, there(0), BRAID_SIGNAL_SET, 9, &rig.done), 0);
    assert_int_equal(braid_put_signal(rig.ch, 0, &nothing, 1, there(0), BRAID_SIGNAL_SET, 9, &rig.done), 0);
    assert_int_equal(posted(0, VERBS_OP_WRITE), 2);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.ok == 2);
}

static int make_shallow(void **state)
{
    (void)state;
    return make_with("bulk_depth=32");
}

/* Where there is no room for all of it nothing is taken. The most parts fit the smallest queue. */
static void a_put_with_signal_is_accepted_whole_or_not(void **state)
{
    (void)state;
    assert_int_equal(put_signal(BRAID_MAX_PARTS, 512), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.ok == 1);
    unsigned ops = 1;
    rig.at = 8 << 20;
    while (stats().waiting_puts < 20) {
        assert_int_equal(put(4096), 0);
        ops++;
    }
    struct braid_channel_stats before = stats();
    unsigned requests = pending(0) + pending(1);
    assert_int_equal(put_signal(13, 512), -EAGAIN);
    assert_true(stats().puts == before.puts && stats().words == before.words && stats().waiting_puts == 20);
    assert_int_equal(pending(0) + pending(1), requests);
    assert_int_equal(put_signal(12, 512), 0);
    assert_int_equal(stats().waiting_puts, 32);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.ok == ops + 1 && rig.done.failed == 0);
}

static void a_lost_part_fails_the_whole_once(void **state)
{
    (void)state;
    assert_int_equal(put_signal(4, 4096), 0);
    fake_end(rig.qp[1], -EACCES);
    settle();
    assert_int_equal(signals_posted(), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), -EACCES);
    assert_true(rig.done.failed == 1 && rig.done.ok == 0 && rig.done.error == -EACCES);
}

static void a_value_is_copied(void **state)
{
    (void)state;
    fake_moves(true);
    memset(memory, 0xee, 64);
    static const unsigned sizes[] = {1, 2, 4, 8};
    assert_int_equal(put(1 << 20), 0);
    for (unsigned i = 0; i < 4; i++) /* deferred: the value must not live on the caller's stack */
        assert_int_equal(braid_p(rig.ch, 0, there(i * 8), 0x1122334455667788u, sizes[i], &rig.done), 0);
    assert_int_equal(posted(0, VERBS_OP_WRITE), 1);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    static const uint64_t expected[] = {0xeeeeeeeeeeeeee88u, 0xeeeeeeeeeeee7788u, 0xeeeeeeee55667788u,
                                        0x1122334455667788u};
    assert_memory_equal(memory, expected, 32);
}

static void blocking_forms_come_back_with_the_end(void **state)
{
    (void)state;
    uint64_t old = 0;
    struct braid_atomic add = {BRAID_ATOMIC_FETCH_ADD, 8, 3, 0}, swap = {BRAID_ATOMIC_SWAP, 8, 9, 0};
    fake_moves(true);
    memset(memory, 0, 64);
    memset(memory + 4096, 5, 1 << 20);
    assert_int_equal(braid_put_wait(rig.ch, 0, there(2 << 20), here(4096), 1 << 20), 0);
    assert_memory_equal(memory + (2 << 20), memory + 4096, 1 << 20);
    assert_int_equal(braid_get_wait(rig.ch, 0, here(8 << 20), there(2 << 20), 1 << 20), 0);
    assert_memory_equal(memory + (8 << 20), memory + 4096, 1 << 20);
    assert_int_equal(braid_atomic_wait(rig.ch, 0, there(0), &add, &old), 0);
    assert_true(old == 0);
    assert_int_equal(braid_atomic_wait(rig.ch, 0, there(0), &swap, &old), 0); /* by message to oneself */
    assert_true(old == 3);
    memcpy(&old, memory, 8);
    assert_true(old == 9);
    assert_int_equal(braid_put_wait(rig.ch, 0, there(0), here(64), 0), 0);
    assert_int_equal(braid_put_wait(rig.ch, 5, there(0), here(64), 8), -EINVAL);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
}

/* They wait for room, where the others say -EAGAIN. */
static void blocking_forms_wait_for_room(void **state)
{
    (void)state;
    while (put(4096) == 0)
        ;
    assert_int_equal(braid_put_wait(rig.ch, 0, there(32 << 20), here(4096), 4096), 0);
    assert_true(rig.waits > 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.failed == 0);
}

static void blocking_forms_say_how_the_op_failed(void **state)
{
    (void)state;
    fake_fail(FAKE_POST_SEND, 0, -ENOMEM);
    assert_int_equal(braid_put_wait(rig.ch, 0, there(64), here(4096), 4096), -ENOMEM);
    assert_int_equal(braid_quiet(rig.ch, 0), -ENOMEM);
}

static void a_done_is_waited_for(void **state)
{
    (void)state;
    assert_int_equal(braid_done_wait(rig.ch, &rig.done, 0), 0);
    assert_int_equal(put(4096), 0);
    assert_int_equal(put(4096), 0);
    assert_int_equal(braid_done_wait(rig.ch, &rig.done, 1), 0);
    assert_true(rig.done.ok == 1);
    assert_int_equal(braid_done_wait(rig.ch, &rig.done, 2), 0);
    assert_int_equal(braid_done_wait(rig.ch, &rig.done, 3), -EDEADLK); /* as the callback says where nothing is left */
    fake_fail(FAKE_POST_SEND, 0, -ENOMEM);
    assert_int_equal(put(4096), 0);
    assert_int_equal(braid_done_wait(rig.ch, &rig.done, 3), -ENOMEM);
}

/* A call that was cut off leaves its op, whose end must find a counter that is still there. */
static void a_wait_that_gives_up_leaves_the_op_its_counter(void **state)
{
    (void)state;
    rig.wait_error = -EINTR;
    for (int i = 0; i < 8; i++)
        assert_int_equal(braid_put_wait(rig.ch, 0, there(64 + 4096 * (size_t)i), here(4096), 4096), -EINTR);
    assert_int_equal(pending(0) + pending(1), 8);
    assert_int_equal(braid_put_wait(rig.ch, 0, there(64), here(4096), 4096), -EBUSY);
    assert_non_null(strstr(rig.log, "8 blocking calls on one channel are under way or were cut off"));
    assert_int_equal(pending(0) + pending(1), 8);
    rig.wait_error = 0;
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_int_equal(braid_mem_dereg(rig.mem), 0); /* all have ended */
}

/* A second caller on the same channel, while the first one waits: its quiet ends, and it puts again. */
static unsigned nested;

static int quiet_in_between(void *arg, uint64_t deadline_ns)
{
    if (nested++ == 0) {
        assert_int_equal(braid_quiet(rig.ch, 0), 0);
        assert_int_equal(put(1 << 20), 0);
        return 0;
    }
    return end_one(arg, deadline_ns);
}

static int make_nested(void **state)
{
    (void)state;
    const char *settings[] = {"ports=fake0,fake1", "stripe_min=16384", "pace=off", NULL};
    nested = 99;
    make_settings(settings, quiet_in_between);
    return 0;
}

static void one_quiet_does_not_end_another(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    nested = 0;
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.ok == 2);
    assert_true(stats().flushes == 4);
}

static int make_channels(void **state)
{
    (void)state;
    const char *settings[] = {"ports=fake0", "channels=2", "pace=off", NULL};
    make_settings(settings, end_one);
    return 0;
}

/* A blocking call on one channel moves the other on: its deferred word leaves without anybody calling there. */
static void a_blocking_call_drives_the_other_channel(void **state)
{
    (void)state;
    struct braid_channel *other = braid_channel_at(rig.b, 1);
    struct braid_done done = {0};
    assert_non_null(other);
    assert_int_equal(braid_put(other, 0, there(4096), here(4096), 4096, &done), 0);
    assert_int_equal(put(1 << 16), 0);
    assert_true(pending(0) == 1 && pending(1) == 1); /* one lane of each channel */
    fake_end(rig.qp[1], 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(done.ok == 1 && rig.done.ok == 1);
    /* No order between channels, and a quiet is one's own. */
    assert_int_equal(braid_put(other, 0, there(4096), here(4096), 4096, &done), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(done.ok == 1 && pending(1) == 1);
    assert_int_equal(braid_quiet(other, 0), 0);
}

/* A lane dies when all on it has been acknowledged, the flush still out, or not even posted: quiet must not promise. */
static void a_lane_lost_before_its_flush_is_told(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    end(1, 1);
    end(0, 1);
    assert_true(rig.done.ok == 1);   /* the put: acknowledged */
    fake_end(rig.qp[1], -ETIMEDOUT); /* the flush */
    settle();
    assert_true(rig.done.failed == 1); /* the signal */
    assert_int_equal(braid_quiet(rig.ch, 0), -ENOTCONN);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
}

static void a_lane_lost_with_only_quiet_s_flush_is_told(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    rig.wait_error = -EINTR;
    assert_int_equal(braid_quiet(rig.ch, 0), -EINTR); /* its flushes are posted */
    rig.wait_error = 0;
    end(1, 1);
    end(0, 1);
    assert_true(rig.done.ok == 1);
    fake_end(rig.qp[1], -ETIMEDOUT);
    settle();
    assert_int_equal(braid_quiet(rig.ch, 0), -ETIMEDOUT);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
}

static void a_lane_lost_without_any_request_is_told(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    end(1, 1);
    end(0, 1);
    fake_arrive(rig.qp[1], "no message", 10);
    settle();
    assert_true(rig.done.ok == 1 && fake_stopped(rig.qp[1]));
    assert_int_equal(braid_quiet(rig.ch, 0), -EPROTO);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_int_equal(signal_add(), -ENOTCONN);
}

/* Its acknowledgement is read behind what ended the lane. */
static void a_put_that_ends_on_a_lost_lane_is_told(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0); /* on lane 0 */
    fake_arrive(rig.qp[0], "no message", 10);
    fake_end(rig.qp[0], 0);
    settle();
    assert_true(rig.done.ok == 1 && fake_stopped(rig.qp[0]));
    assert_int_equal(braid_quiet(rig.ch, 0), -EPROTO);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
}

/* All was flushed: the lane's end costs nothing. */
static void a_lane_lost_after_its_flush_owes_nothing(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    fake_arrive(rig.qp[1], "no message", 10);
    settle();
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
}

static int make_paced(void **state)
{
    (void)state;
    return make_with("pace=auto");
}

/* A lane gets a window and no more; the rest waits, in order, and a word op behind it waits for all of it. */
static void paced_bulk_waits_in_software(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    for (int i = 0; i < 20; i++)
        assert_int_equal(put(1 << 20), 0);
    assert_true(stats().waiting_puts > 10);
    settle(); /* what was built for a longer list leaves */
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned i = 0; i < pending(k); i++)
            bytes += fake_send(rig.qp[k], i)->len;
    }
    assert_in_range(bytes, 1, 4 << 20);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.ok == 21);
}

/* What waits in software when the last lane dies, or the one that it must follow on, is lost like what was posted. */
static void bulk_lost_in_software_is_never_announced(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(put(1 << 20), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    rig.done = (struct braid_done){0};
    assert_int_equal(put_at(4096, 4096), 0);
    unsigned lane = posted(1, VERBS_OP_WRITE) > 0;
    while (stats().waiting_puts < 1) {
        size_t at = rig.at < 32 << 20 ? 32 << 20 : rig.at;
        assert_int_equal(put_at(at, 1 << 19), 0);
        rig.at = at + (1 << 19);
    }
    assert_int_equal(put_at(4096, 4096), 0); /* must follow on the lane of the first */
    assert_int_equal(signal_add(), 0);
    fake_end(rig.qp[lane], -ETIMEDOUT);
    settle();
    for (int i = 0; i < 200 && pending(!lane) > 0; i++) {
        assert_true(fake_send(rig.qp[!lane], 0)->op != VERBS_OP_FETCH_ADD);
        fake_end(rig.qp[!lane], 0);
        settle();
    }
    assert_true(braid_quiet(rig.ch, 0) < 0);
    assert_int_equal(signal_add(), -ENOTCONN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_put_with_signal_is_one_op, make),
        WITH(small_parts_are_bulk, make),
        WITH(no_parts_leave_the_signal, make),
        WITH(a_put_with_signal_is_accepted_whole_or_not, make_shallow),
        WITH(a_lost_part_fails_the_whole_once, make),
        WITH(a_value_is_copied, make),
        WITH(blocking_forms_come_back_with_the_end, make),
        WITH(blocking_forms_wait_for_room, make),
        WITH(blocking_forms_say_how_the_op_failed, make),
        WITH(a_done_is_waited_for, make),
        WITH(a_wait_that_gives_up_leaves_the_op_its_counter, make),
        WITH(one_quiet_does_not_end_another, make_nested),
        WITH(a_blocking_call_drives_the_other_channel, make_channels),
        WITH(a_lane_lost_before_its_flush_is_told, make),
        WITH(a_lane_lost_with_only_quiet_s_flush_is_told, make),
        WITH(a_lane_lost_without_any_request_is_told, make),
        WITH(a_put_that_ends_on_a_lost_lane_is_told, make),
        WITH(a_lane_lost_after_its_flush_owes_nothing, make),
        WITH(paced_bulk_waits_in_software, make_paced),
        WITH(bulk_lost_in_software_is_never_announced, make_paced),
    };
    return cmocka_run_group_tests_name("api_forms", tests, NULL, NULL);
}
