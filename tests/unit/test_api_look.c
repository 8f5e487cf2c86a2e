/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_look.c - what bulk takes for the state of its lanes is that of now: after a pass in which the clock stood still, and
 * after time in which only another peer moved. Over a fake device. Links api.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lanes_take_more_puts_though_the_clock_stands, drop),
        cmocka_unit_test_teardown(lanes_take_more_gets_though_the_clock_stands, drop),
        cmocka_unit_test_teardown(time_passes_while_another_peer_moves, drop),
    };
    return cmocka_run_group_tests_name("api_look", tests, NULL, NULL);
}
