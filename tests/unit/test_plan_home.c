/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_home.c - which rail executes a PE's atomics, and which atomics a device executes. Links plan alone. */
#include "unit.h"

#include "plan.h"

static void homes_are_spread(void **state)
{
    (void)state;
    for (unsigned rails = 1; rails <= PLAN_MAX_RAILS; rails++) {
        unsigned load[PLAN_MAX_RAILS] = {0}, reached[PLAN_MAX_RAILS];
        for (unsigned i = 0; i < rails; i++)
            reached[i] = 7;
        for (unsigned rank = 0; rank < 4 * rails; rank++) {
            unsigned home = plan_home(&(struct plan_home_in){.rails = rails, .reached_by = reached, .rank = rank});
            assert_true(home < rails);
            load[home]++;
        }
        for (unsigned i = 0; i < rails; i++)
            assert_int_equal(load[i], 4);
    }
}

/* Any reach: the home is one of the best, and PEs of following ranks take all of the best in turn. */
static void homes_are_where_most_peers_come(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 20000; round++) {
        unsigned rails = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS), most = 0, best = 0, used = 0;
        unsigned reached[PLAN_MAX_RAILS], first = (unsigned)(unit_random(&random) % 100000);
        for (unsigned i = 0; i < rails; i++) {
            reached[i] = (unsigned)(unit_random(&random) % 4);
            best = reached[i] > most ? 1 : best + (reached[i] == most);
            most = reached[i] > most ? reached[i] : most;
        }
        for (unsigned n = 0; n < best; n++) {
            unsigned home = plan_home(&(struct plan_home_in){rails, reached, first + n});
            assert_true(home < rails && reached[home] == most);
            assert_false(used >> home & 1);
            used |= 1u << home;
        }
    }
}

static void no_rail_is_no_crash(void **state)
{
    (void)state;
    assert_int_equal(plan_home(&(struct plan_home_in){.rails = 0}), 0);
    assert_int_equal(plan_home(&(struct plan_home_in){.rails = PLAN_MAX_RAILS + 1}), 0);
}

static void devices_know_four_operations_on_eight_bytes(void **state)
{
    (void)state;
    static const bool native[PLAN_ATOMIC_OPS] = {
        [PLAN_ATOMIC_OP_ADD] = true,
        [PLAN_ATOMIC_OP_FETCH] = true,
        [PLAN_ATOMIC_OP_FETCH_ADD] = true,
        [PLAN_ATOMIC_OP_COMPARE_SWAP] = true,
    };
    for (unsigned op = 0; op < PLAN_ATOMIC_OPS; op++) {
        assert_int_equal(plan_atomic(op, 8, true), native[op] ? PLAN_ATOMIC_NATIVE : PLAN_ATOMIC_MESSAGE);
        assert_int_equal(plan_atomic(op, 8, false), PLAN_ATOMIC_MESSAGE);
        assert_int_equal(plan_atomic(op, 4, true), PLAN_ATOMIC_MESSAGE);
        assert_int_equal(plan_atomic(op, 4, false), PLAN_ATOMIC_MESSAGE);
    }
}

static void other_sizes_and_operations_are_invalid(void **state)
{
    (void)state;
    for (unsigned bytes = 0; bytes < 20; bytes++) {
        for (unsigned op = 0; op < PLAN_ATOMIC_OPS + 3; op++) {
            bool valid = (bytes == 4 || bytes == 8) && op < PLAN_ATOMIC_OPS;
            assert_int_equal(plan_atomic(op, bytes, true) == PLAN_ATOMIC_INVALID, !valid);
        }
    }
    assert_int_equal(plan_atomic((enum plan_atomic_op) - 1, 8, true), PLAN_ATOMIC_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(homes_are_spread),
        cmocka_unit_test(homes_are_where_most_peers_come),
        cmocka_unit_test(no_rail_is_no_crash),
        cmocka_unit_test(devices_know_four_operations_on_eight_bytes),
        cmocka_unit_test(other_sizes_and_operations_are_invalid),
    };
    return cmocka_run_group_tests_name("plan_home", tests, NULL, NULL);
}
