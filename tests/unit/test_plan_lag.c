/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_lag.c - bonds: wires and ways, what fits, source ports under hashes, pairing of ways. Links plan alone. */
#include "unit.h"

#include "plan_lag.h"

enum { ROUNDS = 20000 };

static void wires_and_ways_follow_from_what_is_known(void **state)
{
    static const struct {
        struct plan_lag_in in;
        struct plan_lag out;
    } cases[] = {
        /* nothing is told; no bond */
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO}, {.wires = 1, .ways = 1}},
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = 1}, {.wires = 1, .ways = 1}},
        {{.lag = PLAN_LAG_AUTO, .spread = 3, .device = 1}, {.wires = 1, .ways = 3}},
        /* a bond whose QPs choose, and one whose QPs cannot */
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = 2, .choice = true}, {2, 2, 2}},
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = 2}, {.wires = 2, .ways = 8}},
        {{.lag = PLAN_LAG_AUTO, .spread = 2, .device = 4, .choice = true}, {4, 8, 4}},
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = 8}, {.wires = 8, .ways = 16}},
        /* the host alone knows; it knows that one link of two, or of four, is down */
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .host = 2}, {.wires = 2, .ways = 8}},
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = 1, .host = 2}, {.wires = 2, .ways = 8}},
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = 2, .host = 1, .choice = true},
         {.wires = 1, .ways = 1}},
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = 4, .host = 3, .choice = true}, {3, 3, 4}},
        {{.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = 2, .host = 4, .choice = true}, {2, 2, 2}},
        /* the user knows better */
        {{.lag = 1, .spread = PLAN_LAG_AUTO, .device = 2, .host = 2, .choice = true}, {.wires = 1, .ways = 1}},
        {{.lag = 2, .spread = PLAN_LAG_AUTO}, {.wires = 2, .ways = 8}},
        {{.lag = 2, .spread = 1, .device = 1}, {.wires = 2, .ways = 2}},
        {{.lag = 2, .spread = PLAN_LAG_AUTO, .device = 4, .choice = true}, {2, 2, 4}},
        /* beyond all bounds */
        {{.lag = 99, .spread = 99, .device = 99}, {.wires = 8, .ways = 16}},
        {{.lag = 0, .spread = 0}, {.wires = 1, .ways = 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plan_lag out;
        plan_lag(&cases[i].in, &out);
        if (memcmp(&out, &cases[i].out, sizeof(out)) != 0)
            fail_msg("case %zu: %u wires, %u ways, choice %u", i, out.wires, out.ways, out.choice);
    }
}

static unsigned sum_of(const struct plan_lag *lag, unsigned rails)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < rails; i++)
        sum += lag[i].ways;
    return sum;
}

/* As many lanes as there may be, a way for each rail, and no wire is given up while another rail has lanes to spare. */
static void ways_are_fitted_into_lanes(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < ROUNDS; round++) {
        unsigned rails = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS);
        struct plan_lag before[PLAN_MAX_RAILS], after[PLAN_MAX_RAILS];
        bool spare = false, short_of = false;
        for (unsigned i = 0; i < rails; i++) {
            struct plan_lag_in in = {.lag = 1 + (uint32_t)(unit_random(&random) % PLAN_LAG_WIRES),
                                     .spread = 1 + (uint32_t)(unit_random(&random) % PLAN_LAG_SPREAD)};
            plan_lag(&in, &before[i]);
            after[i] = before[i];
        }
        unsigned taken = plan_lag_fit(after, rails);
        assert_int_equal(sum_of(before, rails) - taken, sum_of(after, rails));
        assert_true(sum_of(after, rails) <= PLAN_MAX_LANES);
        assert_true(!taken || sum_of(after, rails) == PLAN_MAX_LANES);
        for (unsigned i = 0; i < rails; i++) {
            assert_true(after[i].ways >= 1 && after[i].ways <= before[i].ways);
            assert_int_equal(after[i].wires, before[i].wires);
            spare |= after[i].ways > after[i].wires;
            short_of |= after[i].ways < after[i].wires && after[i].ways < before[i].ways;
        }
        assert_false(spare && short_of);
    }
}

static void ways_use_all_wires_evenly(void **state)
{
    (void)state;
    for (uint8_t wires = 2; wires <= PLAN_LAG_WIRES; wires++) {
        for (uint8_t ways = 1; ways <= PLAN_MAX_LANES; ways++) {
            struct plan_lag lag = {.wires = wires, .ways = ways, .choice = wires};
            unsigned load[PLAN_LAG_WIRES + 1] = {0};
            for (unsigned k = 0; k < ways; k++) {
                unsigned wire = plan_lag_wire(&lag, k);
                assert_in_range(wire, 1, wires);
                load[wire]++;
            }
            for (unsigned w = 1; w <= wires; w++)
                assert_true(load[w] == ways / wires || load[w] == ways / wires + 1u);
            lag.choice = 0;
            assert_int_equal(plan_lag_wire(&lag, ways), 0);
        }
    }
}

/* The fold is that of libibverbs' ibv_flow_label_to_udp_sport() and of the kernel's. */
static void lanes_have_ports_of_their_own_and_labels_say_them(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < ROUNDS; round++) {
        unsigned from = (unsigned)unit_random(&random) % 4096, to = (unsigned)unit_random(&random) % 4096;
        uint16_t sport[PLAN_MAX_LANES];
        for (unsigned k = 0; k < PLAN_MAX_LANES; k++) {
            sport[k] = plan_lag_sport(from, to, k);
            uint32_t label = plan_lag_label(sport[k]);
            assert_true(label > 0 && label < 1u << 20);
            assert_int_equal(0xc000 | ((label ^ label >> 14) & 0x3fff), sport[k]);
            for (unsigned i = 0; i < k; i++)
                assert_int_not_equal(sport[i], sport[k]);
        }
    }
}

/* ---- hashes that devices and switches may have -------------------------------------------------------------------------- */

static unsigned hash_low_bit(uint16_t sport)
{
    return sport & 1;
}

static unsigned hash_xor(uint16_t sport)
{
    return (sport ^ sport >> 8) & 1;
}

static unsigned hash_parity(uint16_t sport)
{
    return (unsigned)__builtin_parity(sport);
}

static unsigned hash_crc(uint16_t sport)
{
    uint32_t crc = sport;
    for (int i = 0; i < 16; i++)
        crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    return crc & 1;
}

static unsigned hash_multiply(uint16_t sport)
{
    return sport * 0x9e3779b1u >> 31;
}

/* Where hashes spread lanes over two wires, both are used by all but one pair of PEs in some dozens. */
static void ports_are_spread_by_hashes(void **state)
{
    static unsigned (*const hashes[])(uint16_t) = {hash_low_bit, hash_xor, hash_parity, hash_crc, hash_multiply};
    struct plan_lag lag;
    (void)state;
    plan_lag(&(struct plan_lag_in){.lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = 2}, &lag);
    for (size_t h = 0; h < sizeof(hashes) / sizeof(hashes[0]); h++) {
        unsigned one = 0, pairs = 0;
        for (unsigned from = 0; from < 64; from++) {
            for (unsigned to = 0; to < 64; to++) {
                unsigned second = 0;
                for (unsigned k = 0; k < lag.ways; k++)
                    second += hashes[h](plan_lag_sport(from, to, k));
                one += second == 0 || second == lag.ways;
                pairs++;
            }
        }
        if (one * 30 > pairs)
            fail_msg("hash %zu: %u of %u pairs use one wire", h, one, pairs);
    }
}

/* ---- pairing ---------------------------------------------------------------------------------------------------------------- */

/* Random ways of so many rails, not more than lanes together. */
static void random_ways(uint64_t *random, unsigned rails, uint8_t ways[PLAN_MAX_RAILS])
{
    unsigned left = PLAN_MAX_LANES - rails;
    for (unsigned i = 0; i < rails; i++) {
        unsigned more = (unsigned)(unit_random(random) % (left + 1));
        ways[i] = (uint8_t)(1 + more);
        left -= more;
    }
}

/* Both sides agree on rails and ways; only what is reached is joined; where all reach all, every way of both sides is used. */
static void check_pairs(const struct plan_lag_pair_in *mine, const struct plan_lag_pair_in *theirs, bool all)
{
    struct plan_lag_pair here[PLAN_MAX_LANES], there[PLAN_MAX_LANES];
    unsigned unused, unused_there, n = 0, m = 0, local = 0, remote = 0;
    uint32_t local_ways[PLAN_MAX_RAILS] = {0}, remote_ways[PLAN_MAX_RAILS] = {0};
    int count = plan_lag_pair(mine, here, &unused);
    assert_true(count >= 0 && count <= (int)PLAN_MAX_LANES);
    assert_int_equal(plan_lag_pair(theirs, there, &unused_there), count);
    assert_int_equal(unused, unused_there);
    for (int k = 0; k < count; k++) {
        assert_int_equal(here[k].local, there[k].remote);
        assert_int_equal(here[k].remote, there[k].local);
        assert_int_equal(here[k].local_way, there[k].remote_way);
        assert_int_equal(here[k].remote_way, there[k].local_way);
        assert_true(here[k].local_way < mine->local_ways[here[k].local]);
        assert_true(here[k].remote_way < mine->remote_ways[here[k].remote]);
        assert_true(!mine->rails.reach || (mine->rails.reach[here[k].local] >> here[k].remote & 1));
        local_ways[here[k].local] |= 1u << here[k].local_way;
        remote_ways[here[k].remote] |= 1u << here[k].remote_way;
    }
    for (unsigned i = 0; i < mine->rails.local_rails; i++) {
        n += mine->local_ways[i];
        local += local_ways[i] == 0;
        assert_true(!all || local_ways[i] == (1u << mine->local_ways[i]) - 1);
    }
    for (unsigned i = 0; i < mine->rails.remote_rails; i++) {
        m += mine->remote_ways[i];
        remote += remote_ways[i] == 0;
        assert_true(!all || remote_ways[i] == (1u << mine->remote_ways[i]) - 1);
    }
    assert_int_equal(unused, local + remote);
    assert_true(!all || count == (int)max_u32(n, m));
}

static void ways_are_paired_alike_on_both_sides(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < ROUNDS; round++) {
        unsigned n = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS);
        unsigned m = 1 + (unsigned)(unit_random(&random) % PLAN_MAX_RAILS);
        bool all = unit_random(&random) & 1;
        uint16_t reach[PLAN_MAX_RAILS] = {0}, back[PLAN_MAX_RAILS] = {0};
        uint8_t local[PLAN_MAX_RAILS], remote[PLAN_MAX_RAILS];
        random_ways(&random, n, local);
        random_ways(&random, m, remote);
        for (unsigned i = 0; i < n; i++) {
            reach[i] = (uint16_t)(unit_random(&random) & ((1u << m) - 1));
            for (unsigned j = 0; j < m; j++)
                back[j] |= (uint16_t)((reach[i] >> j & 1) << i);
        }
        struct plan_lag_pair_in mine = {
            {.local_rails = n, .remote_rails = m, .reach = all ? NULL : reach}, local, remote};
        struct plan_lag_pair_in theirs = {
            {.local_rails = m, .remote_rails = n, .upper = true, .reach = all ? NULL : back}, remote, local};
        check_pairs(&mine, &theirs, all);
    }
}

static void one_way_each_is_pairing_of_rails(void **state)
{
    static const uint8_t one[PLAN_MAX_RAILS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    for (unsigned n = 1; n <= PLAN_MAX_RAILS; n++) {
        for (unsigned m = 1; m <= PLAN_MAX_RAILS; m++) {
            struct plan_pair rails[PLAN_MAX_LANES];
            struct plan_lag_pair ways[PLAN_MAX_LANES];
            struct plan_lag_pair_in in = {{.local_rails = n, .remote_rails = m}, one, one};
            unsigned unused, unused_ways;
            int count = plan_pair(&in.rails, rails, &unused);
            assert_int_equal(plan_lag_pair(&in, ways, &unused_ways), count);
            assert_int_equal(unused, unused_ways);
            for (int k = 0; k < count; k++) {
                assert_true(ways[k].local == rails[k].local && ways[k].remote == rails[k].remote);
                assert_true(ways[k].local_way == 0 && ways[k].remote_way == 0);
            }
        }
    }
}

static void counts_that_cannot_be_are_refused(void **state)
{
    uint8_t ways[PLAN_MAX_RAILS] = {9, 8, 1}, none[PLAN_MAX_RAILS] = {1, 0, 1}, one[PLAN_MAX_RAILS] = {1, 1, 1};
    struct plan_lag_pair pair[PLAN_MAX_LANES];
    unsigned unused = 77;
    (void)state;
    assert_int_equal(
        plan_lag_pair(&(struct plan_lag_pair_in){{.local_rails = 2, .remote_rails = 1}, ways, one}, pair, &unused),
        -EINVAL);
    assert_int_equal(
        plan_lag_pair(&(struct plan_lag_pair_in){{.local_rails = 1, .remote_rails = 2}, one, none}, pair, &unused),
        -EINVAL);
    assert_int_equal(
        plan_lag_pair(&(struct plan_lag_pair_in){{.local_rails = 0, .remote_rails = 1}, one, one}, pair, &unused),
        -EINVAL);
    assert_int_equal(
        plan_lag_pair(&(struct plan_lag_pair_in){{.local_rails = 17, .remote_rails = 1}, one, one}, pair, &unused),
        -EINVAL);
    assert_int_equal(unused, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wires_and_ways_follow_from_what_is_known),
        cmocka_unit_test(ways_are_fitted_into_lanes),
        cmocka_unit_test(ways_use_all_wires_evenly),
        cmocka_unit_test(lanes_have_ports_of_their_own_and_labels_say_them),
        cmocka_unit_test(ports_are_spread_by_hashes),
        cmocka_unit_test(ways_are_paired_alike_on_both_sides),
        cmocka_unit_test(one_way_each_is_pairing_of_rails),
        cmocka_unit_test(counts_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests_name("plan_lag", tests, NULL, NULL);
}
