/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_pair.c - pairing of rails: properties for every pair of counts. Links plan alone. */
#include "unit.h"

#include "plan.h"

static void every_port_is_used_and_both_sides_agree(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= PLAN_MAX_RAILS; n++) {
        for (unsigned m = 1; m <= PLAN_MAX_RAILS; m++) {
            struct plan_pair here[PLAN_MAX_LANES], there[PLAN_MAX_LANES];
            unsigned unused = 99, used_local = 0, used_remote = 0;
            struct plan_pair_in mine = {.local_rails = n, .remote_rails = m};
            struct plan_pair_in theirs = {.local_rails = m, .remote_rails = n, .upper = true};
            int count = plan_pair(&mine, here, &unused);
            assert_int_equal(count, n > m ? n : m);
            assert_int_equal(unused, 0);
            assert_int_equal(plan_pair(&theirs, there, &unused), count);
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
            unsigned unused, load[PLAN_MAX_RAILS] = {0}, least = 99, most = 0;
            struct plan_pair_in in = {.local_rails = n, .remote_rails = m};
            int count = plan_pair(&in, pair, &unused);
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

/* Every rail that reaches anything has a lane, unless the lanes ran out. */
static void check_use(const struct plan_pair *pair, int count, unsigned n, unsigned m, const uint16_t *reach,
                      const uint16_t *back, unsigned unused)
{
    unsigned local = 0, remote = 0, idle = 0;
    for (int k = 0; k < count; k++) {
        local |= 1u << pair[k].local;
        remote |= 1u << pair[k].remote;
    }
    for (unsigned i = 0; i < n; i++) {
        idle += !(local >> i & 1);
        assert_true(local >> i & 1 || reach[i] == 0 || count == PLAN_MAX_LANES);
    }
    for (unsigned j = 0; j < m; j++) {
        idle += !(remote >> j & 1);
        assert_true(remote >> j & 1 || back[j] == 0 || count == PLAN_MAX_LANES);
    }
    assert_int_equal(unused, idle);
}

/* Any reach: only reachable pairs, the same ones on both sides, and a lane for each rail that reaches anything. */
static void rails_meet_only_what_they_reach(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 20000; round++) {
        unsigned n = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS), unused, unused_there;
        unsigned m = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS);
        uint16_t reach[PLAN_MAX_RAILS] = {0}, back[PLAN_MAX_RAILS] = {0};
        struct plan_pair here[PLAN_MAX_LANES], there[PLAN_MAX_LANES];
        for (unsigned i = 0; i < n; i++) {
            reach[i] = (uint16_t)(unit_random(&random) & ((1u << m) - 1));
            for (unsigned j = 0; j < m; j++)
                back[j] |= (uint16_t)((reach[i] >> j & 1) << i);
        }
        struct plan_pair_in mine = {.local_rails = n, .remote_rails = m, .reach = reach};
        struct plan_pair_in theirs = {.local_rails = m, .remote_rails = n, .upper = true, .reach = back};
        int count = plan_pair(&mine, here, &unused);
        assert_int_equal(plan_pair(&theirs, there, &unused_there), count);
        for (int k = 0; k < count; k++) {
            assert_true(reach[here[k].local] >> here[k].remote & 1);
            assert_int_equal(here[k].local, there[k].remote);
            assert_int_equal(here[k].remote, there[k].local);
        }
        assert_int_equal(unused, unused_there);
        check_use(here, count, n, m, reach, back, unused);
    }
}

static void same_lanes(const struct plan_pair_in *in, const uint8_t expected[][2], int lanes)
{
    struct plan_pair pair[PLAN_MAX_LANES];
    unsigned unused;
    assert_int_equal(plan_pair(in, pair, &unused), lanes);
    assert_int_equal(unused, 0);
    for (int k = 0; k < lanes; k++) {
        assert_int_equal(pair[k].local, expected[k][0]);
        assert_int_equal(pair[k].remote, expected[k][1]);
    }
}

/* Ports listed in another order at the peer, and planes of unlike size. */
static void reach_classes_are_paired_inside(void **state)
{
    (void)state;
    static const uint16_t crossed[] = {2, 1}, planes[] = {1, 1, 2, 2};
    same_lanes(&(struct plan_pair_in){.local_rails = 2, .remote_rails = 2, .reach = crossed},
               (const uint8_t[][2]){{0, 1}, {1, 0}}, 2);
    same_lanes(&(struct plan_pair_in){.local_rails = 4, .remote_rails = 2, .reach = planes},
               (const uint8_t[][2]){{0, 0}, {2, 1}, {1, 0}, {3, 1}}, 4);
}

/* Planes of any sizes, ports in any order: in each plane as many lanes as its larger side has ports, spread evenly. */
static void each_plane_is_paired_evenly(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 20000; round++) {
        unsigned n = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS), unused, expected = 0;
        unsigned m = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS), local[4] = {0}, remote[4] = {0};
        unsigned here[PLAN_MAX_RAILS], there[PLAN_MAX_RAILS], here_load[PLAN_MAX_RAILS] = {0};
        unsigned there_load[PLAN_MAX_RAILS] = {0};
        uint16_t reach[PLAN_MAX_RAILS] = {0};
        struct plan_pair pair[PLAN_MAX_LANES];
        for (unsigned i = 0; i < n; i++)
            local[here[i] = (unsigned)(unit_random(&random) % 4)]++;
        for (unsigned j = 0; j < m; j++)
            remote[there[j] = (unsigned)(unit_random(&random) % 4)]++;
        for (unsigned i = 0; i < n; i++) {
            for (unsigned j = 0; j < m; j++)
                reach[i] |= (uint16_t)((here[i] == there[j]) << j);
        }
        for (unsigned c = 0; c < 4; c++)
            expected += local[c] && remote[c] ? (local[c] > remote[c] ? local[c] : remote[c]) : 0;
        if (expected > PLAN_MAX_LANES)
            continue;
        struct plan_pair_in in = {.local_rails = n, .remote_rails = m, .upper = round & 1, .reach = reach};
        assert_int_equal(plan_pair(&in, pair, &unused), expected);
        for (unsigned k = 0; k < expected; k++) {
            here_load[pair[k].local]++;
            there_load[pair[k].remote]++;
        }
        for (unsigned i = 0; i < n; i++) {
            unsigned a = local[here[i]], b = remote[here[i]], lanes = a > b ? a : b;
            assert_in_range(here_load[i], b ? lanes / a : 0, b ? (lanes + a - 1) / a : 0);
        }
        for (unsigned j = 0; j < m; j++) {
            unsigned a = local[there[j]], b = remote[there[j]], lanes = a > b ? a : b;
            assert_in_range(there_load[j], a ? lanes / b : 0, a ? (lanes + b - 1) / b : 0);
        }
    }
}

/* No lane more than it takes to give every port one: each lane was the first of one of its two ports. */
static void there_is_no_needless_lane(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 20000; round++) {
        unsigned n = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS), unused, local = 0, remote = 0;
        unsigned m = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS);
        uint16_t reach[PLAN_MAX_RAILS];
        struct plan_pair pair[PLAN_MAX_LANES];
        for (unsigned i = 0; i < n; i++) {
            uint64_t bits = unit_random(&random); /* sparse: two random bits must meet */
            reach[i] = (uint16_t)(bits & bits >> 16 & ((1u << m) - 1));
        }
        struct plan_pair_in in = {.local_rails = n, .remote_rails = m, .reach = reach};
        int count = plan_pair(&in, pair, &unused);
        assert_in_range(count, 0, PLAN_MAX_LANES);
        for (int k = 0; k < count; k++) {
            assert_true(!(local >> pair[k].local & 1) || !(remote >> pair[k].remote & 1));
            local |= 1u << pair[k].local;
            remote |= 1u << pair[k].remote;
        }
    }
}

static void bad_counts_are_refused(void **state)
{
    (void)state;
    struct plan_pair pair[PLAN_MAX_LANES];
    unsigned unused;
    static const unsigned bad[][2] = {{0, 1}, {1, 0}, {17, 1}, {1, 17}};
    for (size_t i = 0; i < 4; i++) {
        struct plan_pair_in in = {.local_rails = bad[i][0], .remote_rails = bad[i][1]};
        assert_int_equal(plan_pair(&in, pair, &unused), -EINVAL);
    }
}

static void the_lower_mtu_counts(void **state)
{
    (void)state;
    assert_int_equal(plan_pair_mtu(4096, 1024), 1024);
    assert_int_equal(plan_pair_mtu(1024, 4096), 1024);
    assert_int_equal(plan_pair_mtu(2048, 2048), 2048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_port_is_used_and_both_sides_agree),
        cmocka_unit_test(ports_share_lanes_evenly),
        cmocka_unit_test(rails_meet_only_what_they_reach),
        cmocka_unit_test(reach_classes_are_paired_inside),
        cmocka_unit_test(each_plane_is_paired_evenly),
        cmocka_unit_test(there_is_no_needless_lane),
        cmocka_unit_test(bad_counts_are_refused),
        cmocka_unit_test(the_lower_mtu_counts),
    };
    return cmocka_run_group_tests_name("plan_pair", tests, NULL, NULL);
}
