/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_look.c - what bulk takes for the state of its lanes is that of now: after a pass in which the clock stood still, and
 * after time in which only another peer moved; and looks are made when they are due. Over a fake device. Links api.
 */
#include "peer_rig.h"

enum { PUTS = 16, LONG = 1 << 20, MEDIUM = 8192 };

static int put_to(int pe, size_t at, size_t len)
{
    return braid_put(rig.ch, pe, there(at), here(at), len, &rig.done);
}

static int get_from(int pe, size_t at, size_t len)
{
    return braid_get(rig.ch, pe, here(at), there(at), len, &rig.done);
}

/* A clock may be coarse. What has been acknowledged has left its lane all the same. */
static void clock_stands(int (*transfer)(int pe, size_t at, size_t len))
{
    make_peer("pace=auto", -1);
    for (size_t i = 0; i < PUTS; i++)
        assert_int_equal(transfer(1, i * LONG, LONG), 0);
    assert_true(pending(PEER) > 0 && pending(PEER + 1) > 0);
    for (unsigned turns = 0; rig.done.ok < PUTS; turns++) {
        assert_true(turns < 10000 && pending(PEER) + pending(PEER + 1) > 0);
        for (unsigned lane = PEER; lane < PEER + 2; lane++) {
            if (pending(lane) > 0)
                end(lane, pending(lane));
        }
    }
    assert_int_equal(rig.done.failed, 0);
}

static void lanes_take_more_puts_though_the_clock_stands(void **state)
{
    (void)state;
    clock_stands(put_to);
}

static void lanes_take_more_gets_though_the_clock_stands(void **state)
{
    (void)state;
    clock_stands(get_from);
}

/* A lane that should have ended long ago is avoided, though its own peer has had nothing to look at since. */
static void time_passes_while_another_peer_moves(void **state)
{
    (void)state;
    make_peer("pace=auto", -1);
    assert_int_equal(put_to(1, 0, MEDIUM), 0);
    assert_int_equal(pending(PEER), 1);
    rig.now += 1000000000;
    assert_int_equal(put_to(0, 0, MEDIUM), 0);
    end(SELF, 1);
    for (size_t i = 1; i <= 2; i++)
        assert_int_equal(put_to(1, i * MEDIUM, MEDIUM), 0);
    assert_true(braid_progress(rig.ch) >= 0);
    assert_int_equal(pending(PEER), 1);
    assert_int_equal(pending(PEER + 1), 2);
}

/* Behind many ops in a row: not each time, and not after much longer than lanes hold. */
static void progress_is_due_when_lanes_may_run_dry(void **state)
{
    (void)state;
    make_peer("pace=auto", -1);
    assert_int_equal(braid_progress_soon(NULL), -EINVAL);
    rig.now += 1000000000;
    assert_true(braid_progress_soon(rig.ch) >= 0); /* since connecting */
    uint64_t passes = stats().passes, due_ns = 0;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(braid_progress_soon(rig.ch), 0);
    assert_int_equal(stats().passes, passes);
    assert_int_equal(put_to(1, 0, MEDIUM), 0);
    fake_end(rig.qp[PEER], 0);
    for (uint64_t from = rig.now; rig.done.ok == 0; due_ns = rig.now - from) {
        assert_true(due_ns < 100000);
        rig.now += 10;
        assert_in_range(braid_progress_soon(rig.ch), 0, 1);
    }
    print_message("# a pass is due after %lu ns\n", due_ns);
    assert_true(due_ns > 1000);
    assert_int_equal(stats().passes, passes + 1);
    /* Another pass is one too. */
    rig.now += due_ns - 20;
    assert_int_equal(put_to(1, 0, MEDIUM), 0);
    fake_end(rig.qp[PEER], 0);
    assert_true(braid_progress(rig.ch) > 0);
    rig.now += due_ns - 20;
    assert_int_equal(braid_progress_soon(rig.ch), 0);
    rig.now += 20;
    passes = stats().passes;
    assert_int_equal(braid_progress_soon(rig.ch), 0);
    assert_int_equal(stats().passes, passes + 1);
}

static int signal_to(int pe)
{
    return braid_signal_add(rig.ch, pe, there(BYTES - 8), 1, &rig.done);
}

/* Its bulk waits for a pass that finds a lane drained, and so does it. */
static void a_signal_behind_bulk_that_waits_drives_nothing(void **state)
{
    (void)state;
    make_peer("pace=auto", -1);
    for (size_t i = 0; i < PUTS; i++)
        assert_int_equal(put_to(1, i * LONG, LONG), 0);
    struct braid_channel_stats before = stats();
    assert_true(before.waiting_puts > 0);
    assert_int_equal(signal_to(1), 0);
    assert_int_equal(stats().drives, before.drives);
    assert_int_equal(stats().lists, before.lists);
    for (unsigned turns = 0; rig.done.ok < PUTS + 1; turns++) {
        assert_true(turns < 10000 && pending(PEER) + pending(PEER + 1) > 0);
        for (unsigned lane = PEER; lane < PEER + 2; lane++) {
            if (pending(lane) > 0)
                end(lane, pending(lane));
        }
        assert_true(braid_progress(rig.ch) >= 0);
    }
    assert_int_equal(rig.done.failed, 0);
}

/* A put for lanes that are all busy for a while gains nothing by being handed on now: a pass hands on many at once. */
static void a_put_on_busy_lanes_waits_for_a_pass(void **state)
{
    (void)state;
    make_peer("pace=auto", -1);
    size_t at = 0;
    while (stats().waiting_puts == 0) {
        assert_true(at < 256);
        assert_int_equal(put_to(1, at++ * MEDIUM, MEDIUM), 0);
    }
    struct braid_channel_stats before = stats();
    assert_true(before.pieces > 2);
    assert_int_equal(put_to(1, at++ * MEDIUM, MEDIUM), 0);
    assert_int_equal(signal_to(1), 0); /* nor does its signal */
    assert_int_equal(stats().drives, before.drives);
    assert_int_equal(stats().waiting_puts, 2);
    end(PEER, 1); /* the window of neither is full */
    assert_int_equal(stats().waiting_puts, 0);
    assert_int_equal(stats().pieces, before.pieces + 2);
    for (unsigned turns = 0; rig.done.ok < at + 1; turns++) {
        assert_true(turns < 10000 && pending(PEER) + pending(PEER + 1) > 0);
        for (unsigned lane = PEER; lane < PEER + 2; lane++) {
            if (pending(lane) > 0)
                end(lane, pending(lane));
        }
    }
    /* None is busy now, so nobody may wait for something that ends. */
    assert_int_equal(put_to(1, 0, MEDIUM), 0);
    assert_int_equal(pending(PEER) + pending(PEER + 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lanes_take_more_puts_though_the_clock_stands, drop),
        cmocka_unit_test_teardown(lanes_take_more_gets_though_the_clock_stands, drop),
        cmocka_unit_test_teardown(time_passes_while_another_peer_moves, drop),
        cmocka_unit_test_teardown(progress_is_due_when_lanes_may_run_dry, drop),
        cmocka_unit_test_teardown(a_signal_behind_bulk_that_waits_drives_nothing, drop),
        cmocka_unit_test_teardown(a_put_on_busy_lanes_waits_for_a_pass, drop),
    };
    return cmocka_run_group_tests_name("api_look", tests, NULL, NULL);
}
