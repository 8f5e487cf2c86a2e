/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_stretch.c - windows that grow where they, and not the wire, set the rate: a model of a lane with a wire, and
 * what happens behind it, driven by the same functions as the engine's lanes.
 * Links plan alone.
 */
#include "unit.h"

#include "plan.h"

enum { ON_THE_WAY = 4096 };

/* A lane that always has more to send. Times in ns; a piece is acknowledged far_ns after its last byte has left the wire. */
struct model {
    struct plan_rate rate;
    struct plan_lane lane;
    struct plan_pace_in pace;
    uint64_t now, wire_mib_ns, wire_free, far_ns;
    uint64_t nap_ns; /* looks are so far apart; 0: whenever something is acknowledged */
    struct {
        uint64_t at, len;
    } way[ON_THE_WAY];
    unsigned head, tail;
    bool off;           /* the rule is switched off */
    uint64_t bytes;     /* acknowledged */
    unsigned acks, own; /* how many; how many of them found a window that was not stretched */
};

static struct model m;

static void repace(void)
{
    plan_lane_speed(&m.lane, &m.rate);
    if (m.off)
        m.lane.stretch = 0;
    plan_pace(&m.pace, &m.lane);
}

static void model(uint64_t line_bits, uint64_t rtt_ns, uint64_t far_ns)
{
    m = (struct model){.far_ns = far_ns, .now = 1000000};
    plan_rate_init(&m.rate, line_bits, 4096, rtt_ns);
    plan_rate_rtt(&m.rate, rtt_ns);
    m.lane.live = true;
    m.pace = (struct plan_pace_in){.on = true, .piece_cost_ns = 150, .total_weight = m.rate.weight, .piece_min = 8192};
    m.wire_mib_ns = m.rate.mib_ns;
    repace();
}

/* What has been acknowledged by the time of the next look; as api_bulk_learn(). */
static void look(void)
{
    uint64_t len = 0, next = m.way[m.tail % ON_THE_WAY].at;
    m.now = m.nap_ns ? (m.now + m.nap_ns) / m.nap_ns * m.nap_ns : max_u64(m.now, next);
    for (; m.tail != m.head && m.way[m.tail % ON_THE_WAY].at <= m.now; m.tail++) {
        len += m.way[m.tail % ON_THE_WAY].len;
        m.acks++;
        m.own += m.lane.stretch == 0;
    }
    if (len == 0)
        return;
    m.bytes += len;
    plan_lane_acked(&m.lane, m.now, m.now, len);
    uint64_t left = m.lane.backlog;
    if (left ? plan_rate_take(&m.rate, m.now, len, left) : plan_rate_dry(&m.rate, m.now))
        repace();
}

/* For so many ns. What was acknowledged, as a part of what the wire carries. */
static double runs(uint64_t ns)
{
    uint64_t until = m.now + ns, before = m.bytes, start = m.now;
    while (m.now < until) {
        while (plan_lane_room(&m.lane) && m.head - m.tail < ON_THE_WAY) {
            uint64_t len = m.lane.quantum;
            m.wire_free = max_u64(m.wire_free, m.now) + (len * m.wire_mib_ns >> 20);
            m.way[m.head % ON_THE_WAY].at = m.wire_free + m.far_ns;
            m.way[m.head++ % ON_THE_WAY].len = len;
            plan_lane_posted(&m.lane, m.now, len);
        }
        look();
    }
    return (double)(m.bytes - before) * (double)m.wire_mib_ns / 1048576 / (double)(m.now - start);
}

static const struct shape {
    uint64_t line_bits, rtt_ns, far_ns, nap_ns;
    double least, most_off; /* of the wire, with the rules and without */
} shapes[] = {
    {4000000000, 20000, 200000, 0, 0.90, 0.25},    /* the other side copies */
    {800000000, 30000, 1000000, 0, 0.90, 0.35},    /* the one who looks is late */
    {100000000000, 5000, 20000, 0, 0.80, 0.40},    /* the window at line rate is the most */
    {80000000, 40000, 40000, 5000000, 0.98, 0.55}, /* who looks naps */
    {80000000, 2000000, 2000000, 10000000, 0.98, 0.55}, {10000000000, 10000, 10000, 100000, 0.98, 0.30},
    {200000000000, 5000, 5000, 0, 0.97, 1.01}, /* as it was measured: nothing to find out */
};

static void a_window_grows_where_it_sets_the_rate(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *s = &shapes[i];
        double rate[2];
        for (unsigned off = 0; off < 2; off++) {
            model(s->line_bits, s->rtt_ns, s->far_ns);
            m.off = off;
            m.nap_ns = s->nap_ns;
            runs((s->far_ns + s->nap_ns) * 1000);
            rate[off] = runs((s->far_ns + s->nap_ns) * 2000);
        }
        print_message("# %lu Mb/s, %lu ns for %lu: %.3f of the wire, %.3f without\n", s->line_bits / 1000000, s->far_ns,
                      s->rtt_ns, rate[0], rate[1]);
        assert_true(rate[0] >= s->least && rate[1] <= s->most_off);
    }
}

/* A look that comes late now and then costs less than a window that everything waits behind. */
static void one_late_look_is_none(void **state)
{
    (void)state;
    model(200000000000, 5000, 5000);
    for (int i = 0; i < 100; i++) {
        m.nap_ns = 100000;
        look();
        m.nap_ns = 0;
        runs(1000000);
        assert_int_equal(m.rate.stretch.shift, 0);
    }
}

static void a_wide_window_has_few_pieces(void **state)
{
    (void)state;
    model(80000000, 40000, 40000);
    uint64_t before = m.lane.quantum;
    m.nap_ns = 5000000;
    runs(1000000000);
    assert_in_range(m.lane.quantum, before + 1, m.lane.window / 8 + 4096);
    m.pace.piece_max = 6000;
    repace();
    assert_int_equal(m.lane.quantum, 6000);
}

/* A port that is slow by itself gains nothing by more on the way, so that it seldom has it. */
static void a_slow_wire_keeps_its_window(void **state)
{
    (void)state;
    for (unsigned slower = 2; slower <= 16; slower *= 2) {
        model(200000000000, 5000, 5000);
        m.wire_mib_ns *= slower;
        runs(10000000);
        m.acks = m.own = 0;
        assert_true(runs(20000000) >= 0.93);
        print_message("# %u times slower: own window for %u of %u pieces\n", slower, m.own, m.acks);
        assert_true(m.own >= m.acks * 0.85);
    }
}

static void what_is_not_needed_any_more_is_given_back(void **state)
{
    (void)state;
    model(4000000000, 20000, 200000);
    runs(200000000);
    assert_in_range(m.rate.stretch.shift, 1, PLAN_STRETCH_MAX);
    m.far_ns = 20000;
    runs(400000000);
    m.acks = m.own = 0;
    assert_true(runs(200000000) >= 0.95);
    assert_true(m.own >= m.acks * 0.9);
    m.nap_ns = 100000;
    runs(200000000);
    assert_in_range(m.rate.stretch.shift, 1, PLAN_STRETCH_MAX);
    m.nap_ns = 0;
    runs(400000000);
    m.acks = m.own = 0;
    assert_true(runs(200000000) >= 0.95);
    assert_true(m.own >= m.acks * 0.9);
    /* And nothing is known after a long rest. */
    m.far_ns = 200000;
    runs(400000000);
    assert_in_range(m.rate.stretch.shift, 1, PLAN_STRETCH_MAX);
    plan_rate_idle(&m.rate);
    assert_true(plan_rate_take(&m.rate, m.now + UINT64_C(1000000000), 1, 1));
    assert_int_equal(m.rate.stretch.shift, 0);
}

static void it_stays_within_its_bounds(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    struct plan_stretch s = {0};
    unsigned tried = 0;
    for (int i = 0; i < 2000000; i++) {
        uint64_t ns = unit_random(&random) >> unit_random(&random) % 64;
        uint64_t bytes = unit_random(&random) >> unit_random(&random) % 64;
        uint64_t backlog = unit_random(&random) >> unit_random(&random) % 64;
        if (i % 1000)
            backlog %= bytes + 1; /* else all is left out for ever */
        uint8_t was = s.shift;
        uint32_t line = (uint32_t)(unit_random(&random) >> (32 + unit_random(&random) % 32));
        bool changed =
            unit_random(&random) % 64 ? plan_stretch_take(&s, ns, bytes, backlog, line) : plan_stretch_dry(&s);
        assert_true(s.shift <= PLAN_STRETCH_MAX && (s.shift != was) == changed);
        tried += changed;
    }
    print_message("# shift changed %u times\n", tried);
    assert_true(tried > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_grows_where_it_sets_the_rate),
        cmocka_unit_test(one_late_look_is_none),
        cmocka_unit_test(a_wide_window_has_few_pieces),
        cmocka_unit_test(a_slow_wire_keeps_its_window),
        cmocka_unit_test(what_is_not_needed_any_more_is_given_back),
        cmocka_unit_test(it_stays_within_its_bounds),
    };
    return cmocka_run_group_tests_name("plan_stretch", tests, NULL, NULL);
}
