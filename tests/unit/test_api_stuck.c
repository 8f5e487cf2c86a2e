/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_stuck.c - what once waited for ever, or said too much: lost lanes, full tables, fences, waits cut off. Over a fake
 * device. Links api.
 */
#include "order_rig.h"

static int ends_nothing(void *arg, uint64_t deadline_ns)
{
    (void)arg;
    (void)deadline_ns;
    rig.waits++;
    if (rig.waits > 2000)
        return -EDEADLK;
    rig.now += 1000000000; /* overdue answers are asked for again */
    for (unsigned i = 0; i < LANES && rig.qp[i]; i++) {
        if (fake_pending(rig.qp[i]) > 0) {
            fake_end(rig.qp[i], 0);
            return 0;
        }
    }
    return 0;
}

static int atomic4(size_t at)
{
    struct braid_atomic a = {.op = BRAID_ATOMIC_SWAP, .bytes = 4, .operand = 7};
    return braid_atomic(rig.ch, 0, there(at), &a, NULL, &rig.done);
}

/* The self lane dies between the two requests of an atomic that a peer has asked for. */
static void an_atomic_whose_self_lane_dies_ends(void **state)
{
    (void)state;
    const char *settings[] = {"ports=fake0,fake1", "seed=1", "sq_depth=64", "word_depth=8", "pace=off", NULL};
    make_settings(settings, ends_nothing);
    assert_int_equal(atomic4(0), 0);
    assert_int_equal(pending(0), 1); /* the message */
    end(0, 1);                       /* it arrives; the word is read */
    assert_int_equal(posted(0, VERBS_OP_READ), 1);
    assert_int_equal(put_at(4096, 4096), 0); /* lane 0 or 1 */
    assert_int_equal(put_at(16384, 4096), 0);
    assert_int_equal(pending(0), 2);
    fake_end(rig.qp[0], 0);       /* the READ */
    fake_end(rig.qp[0], -EACCES); /* the put: the lane dies, seen by the same poll */
    settle();
    int rc = braid_quiet(rig.ch, 0);
    assert_int_not_equal(rc, -EDEADLK);
    assert_true(rc < 0);
    assert_true(rig.done.ok + rig.done.failed == 3);
}

/* Words that fail behind a lost lane leave the table of ranges full, and nothing will come that trims it. */
static void a_table_full_of_failed_words_is_emptied(void **state)
{
    (void)state;
    const char *settings[] = {"ports=fake0,fake1", "seed=1",   "sq_depth=64",    "word_depth=512",
                              "stripe_min=16384",  "pace=off", "piece_min=4096", NULL};
    make_settings(settings, ends_nothing);
    assert_int_equal(put(4096), 0); /* on lane 0 */
    assert_int_equal(put(4096), 0); /* on lane 1: the word ops behind it wait for its flush */
    int n = 0;
    while (braid_p(rig.ch, 0, there(0), 1, 8, &rig.done) == 0)
        n++;
    while (pending(0) > 0) /* the put and the flush of lane 0 */
        end(0, 1);
    while (braid_p(rig.ch, 0, there(0), 1, 8, &rig.done) == 0)
        n++;
    assert_int_equal(n, 255);
    fake_end(rig.qp[1], -EIO);
    fake_end(rig.qp[1], -ECANCELED); /* the flush behind it, found by the same poll */
    settle();
    assert_true(rig.done.failed == 256);
    assert_true(braid_quiet(rig.ch, 0) < 0);
    assert_int_equal(put(1 << 20), 0); /* lane 0 is free */
}

/* Acknowledged, not flushed, and its lane is lost by something that is no op: quiet cannot say that all is visible. */
static void quiet_tells_of_a_lane_lost_without_an_op(void **state)
{
    (void)state;
    const char *settings[] = {"ports=fake0,fake1", "seed=1",   "sq_depth=64",    "word_depth=8",
                              "stripe_min=16384",  "pace=off", "piece_min=4096", NULL};
    make_settings(settings, ends_nothing);
    assert_int_equal(put(1 << 20), 0);
    fake_end(rig.qp[0], 0);
    fake_end(rig.qp[1], 0);
    settle();
    assert_true(rig.done.ok == 1);
    assert_int_equal(flushes_posted(1), 0);
    fake_arrive(rig.qp[1], "nonsense", 8); /* the peer's mailbox message is malformed */
    settle();
    assert_true(fake_stopped(rig.qp[1]));
    assert_true(braid_quiet(rig.ch, 0) < 0);
}

/* 1 lane, tail on: message, small put (deferred behind its answer), fence, put of 4 KiB. */
static void a_last_word_behind_a_fence_follows_on_one_lane(void **state)
{
    (void)state;
    const char *settings[] = {"ports=fake0", "seed=1", "sq_depth=64", "word_depth=8", "pace=off", "tail=on", NULL};
    make_settings(settings, ends_nothing);
    assert_int_equal(atomic4(0), 0);
    assert_int_equal(put_at(128, 100), 0); /* deferred */
    assert_int_equal(pending(0), 1);
    assert_int_equal(braid_fence(rig.ch, 0), 0);
    assert_int_equal(put_at(4096, 4096), 0);
    for (unsigned i = 0; i < pending(0); i++) {
        const struct verbs_send *s = fake_send(rig.qp[0], i);
        uint64_t at = s->remote_addr - (uintptr_t)memory;
        assert_false(s->op == VERBS_OP_WRITE && at <= 8184 && at + s->len >= 8192); /* its last word */
    }
}

/* Drain mode: the parts have gone when the wait for them is cut off. The op then fails, once, and its signal never leaves. */
static void a_put_signal_cut_off_fails_once(void **state)
{
    (void)state;
    const char *settings[] = {"ports=fake0,fake1", "seed=1",      "sq_depth=64", "word_depth=8",
                              "pace=off",          "order=drain", NULL};
    make_settings(settings, ends_nothing);
    struct braid_part part = {there(4096), here(4096), 4096};
    assert_int_equal(put_at(65536, 4096), 0);
    rig.waits = 5000; /* fails */
    struct braid_done done = {0};
    assert_int_equal(braid_put_signal(rig.ch, 0, &part, 1, there(0), BRAID_SIGNAL_ADD, 1, &done), 0);
    assert_int_equal(rig.waits, 5001);
    assert_true(done.ok + done.failed == 0); /* its part is on the wire */
    for (unsigned lane = 0; pending(0) + pending(1) > 0; lane ^= 1) {
        assert_int_equal(posted(0, VERBS_OP_FETCH_ADD) + posted(1, VERBS_OP_FETCH_ADD), 0);
        end(lane, pending(lane));
    }
    assert_true(done.ok == 0 && done.failed == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_atomic_whose_self_lane_dies_ends, drop),
        cmocka_unit_test_teardown(a_table_full_of_failed_words_is_emptied, drop),
        cmocka_unit_test_teardown(quiet_tells_of_a_lane_lost_without_an_op, drop),
        cmocka_unit_test_teardown(a_last_word_behind_a_fence_follows_on_one_lane, drop),
        cmocka_unit_test_teardown(a_put_signal_cut_off_fails_once, drop),
    };
    return cmocka_run_group_tests_name("api_stuck", tests, NULL, NULL);
}
