/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_pair.c - pairing of rails and the choice of a home: properties for every pair of counts. Links plan alone. */
#include "unit.h"

#include "plan.h"

static void every_port_is_used_and_both_sides_agree(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= PLAN_MAX_RAILS; n++) {
        for (unsigned m = 1; m <= PLAN_MAX_RAILS; m++) {
            struct plan_pair here[PLAN_MAX_LANES], there[PLAN_MAX_LANES];
            unsigned left_out = 99, used_local = 0, used_remote = 0;
            struct plan_pair_in mine = {.local_rails = n, .remote_rails = m};
            struct plan_pair_in theirs = {.local_rails = m, .remote_rails = n};
            int count = plan_pair(&mine, here, &left_out);
            assert_int_equal(count, n > m ? n : m);
            assert_int_equal(left_out, 0);
            assert_int_equal(plan_pair(&theirs, there, &left_out), count);
            for (int k = 0; k < count; k++) {
                assert_int_equal(here[k].local, there[k].remote);
                assert_int_equal(here[k].remote, there[k].local);
                assert_true(here[k].local < n && here[k].remote < m);
                used_local |= 1u << here[k].local;
                used_remote |= 1u << here[k].remote;
            }
            assert_int_equal(used_local, (1u << n) - 1);
            assert_int_equal(used_remote, (1u << m) - 1);
        }
    }
}

static void ports_share_lanes_evenly(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= PLAN_MAX_RAILS; n++) {
        for (unsigned m = 1; m <= n; m++) {
            struct plan_pair pair[PLAN_MAX_LANES];
            unsigned left_out, load[PLAN_MAX_RAILS] = {0}, least = 99, most = 0;
            struct plan_pair_in in = {.local_rails = n, .remote_rails = m};
            int count = plan_pair(&in, pair, &left_out);
            for (int k = 0; k < count; k++)
                load[pair[k].remote]++;
            for (unsigned j = 0; j < m; j++) {
                least = load[j] < least ? load[j] : least;
                most = load[j] > most ? load[j] : most;
            }
            assert_true(most - least <= 1);
        }
    }
}

/* Any symmetric reach: only reachable pairs, the same ones on both sides, and the missing ones counted. */
static void unreachable_pairs_are_left_out_alike(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 20000; round++) {
        unsigned n = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS), left_out, left_out_there;
        unsigned m = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS);
        uint16_t reach[PLAN_MAX_RAILS] = {0}, back[PLAN_MAX_RAILS] = {0};
        struct plan_pair here[PLAN_MAX_LANES], there[PLAN_MAX_LANES];
        for (unsigned i = 0; i < n; i++) {
            reach[i] = (uint16_t)(unit_random(&random) & ((1u << m) - 1));
            for (unsigned j = 0; j < m; j++)
                back[j] |= (uint16_t)((reach[i] >> j & 1) << i);
        }
        struct plan_pair_in mine = {.local_rails = n, .remote_rails = m, .reach = reach};
        struct plan_pair_in theirs = {.local_rails = m, .remote_rails = n, .reach = back};
        int count = plan_pair(&mine, here, &left_out);
        assert_int_equal(count + (int)left_out, n > m ? n : m);
        assert_int_equal(plan_pair(&theirs, there, &left_out_there), count);
        for (int k = 0; k < count; k++) {
            assert_true(reach[here[k].local] >> here[k].remote & 1);
            assert_int_equal(here[k].local, there[k].remote);
            assert_int_equal(here[k].remote, there[k].local);
        }
    }
}

static void bad_counts_are_refused(void **state)
{
    (void)state;
    struct plan_pair pair[PLAN_MAX_LANES];
    unsigned left_out;
    static const unsigned bad[][2] = {{0, 1}, {1, 0}, {17, 1}, {1, 17}};
    for (size_t i = 0; i < 4; i++) {
        struct plan_pair_in in = {.local_rails = bad[i][0], .remote_rails = bad[i][1]};
        assert_int_equal(plan_pair(&in, pair, &left_out), -EINVAL);
    }
}

static void the_lower_mtu_counts(void **state)
{
    (void)state;
    assert_int_equal(plan_pair_mtu(4096, 1024), 1024);
    assert_int_equal(plan_pair_mtu(1024, 4096), 1024);
    assert_int_equal(plan_pair_mtu(2048, 2048), 2048);
}

static void homes_are_spread(void **state)
{
    (void)state;
    for (unsigned rails = 1; rails <= PLAN_MAX_RAILS; rails++) {
        unsigned load[PLAN_MAX_RAILS] = {0};
        for (unsigned pe = 0; pe < 4 * rails; pe++) {
            assert_true(plan_home(pe, rails) < rails);
            load[plan_home(pe, rails)]++;
        }
        for (unsigned i = 0; i < rails; i++)
            assert_int_equal(load[i], 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_port_is_used_and_both_sides_agree),
        cmocka_unit_test(ports_share_lanes_evenly),
        cmocka_unit_test(unreachable_pairs_are_left_out_alike),
        cmocka_unit_test(bad_counts_are_refused),
        cmocka_unit_test(the_lower_mtu_counts),
        cmocka_unit_test(homes_are_spread),
    };
    return cmocka_run_group_tests_name("plan_pair", tests, NULL, NULL);
}
