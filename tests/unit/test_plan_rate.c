/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_rate.c - estimates of a lane's speed and round trip, windows and pieces made from them, and predicted ends.
 * Links plan alone.
 */
#include "unit.h"

#include "plan.h"

enum { PIECE = 65536, RTT = 5200 };

static struct plan_rate rate_of(uint64_t bits)
{
    struct plan_rate rate;
    plan_rate_init(&rate, bits, 4096, 5000);
    plan_rate_rtt(&rate, RTT);
    return rate;
}

static void nothing_measured_is_the_line_rate(void **state)
{
    (void)state;
    struct plan_rate rate = rate_of(200000000000);
    assert_int_equal(rate.mib_ns, 42783); /* 24.51 GB/s */
    assert_int_equal(rate.weight, 100390);
    rate = rate_of(400000000000);
    assert_int_equal(rate.mib_ns, 21391);
    plan_rate_init(&rate, 100000000000, 1024, 0); /* smaller packets, more headers */
    assert_int_equal(rate.mib_ns, 90604);
    assert_int_equal(rate.rtt_ns, 10000);
    plan_rate_init(&rate, 0, 0, 0);
    assert_int_equal(rate.mib_ns, 8556544);
    plan_rate_init(&rate, UINT64_MAX, 4096, UINT64_MAX); /* no such port: sums must stay within bounds all the same */
    assert_true(rate.mib_ns == 100 && rate.weight == 42949673 && rate.rtt_ns == UINT32_MAX);
    plan_rate_init(&rate, 1, 1, 1);
    assert_true(rate.mib_ns == UINT32_MAX && rate.weight == 1);
}

/* Acknowledgements of pieces, one after the other at mib_ns, each found up to jitter later. The time when they ended. */
static uint64_t feed(uint64_t *random, struct plan_rate *rate, uint64_t start, uint64_t ns, uint64_t mib_ns, bool busy,
                     uint64_t jitter)
{
    uint64_t step = PIECE * mib_ns >> 20, at = start;
    for (; at < start + ns; at += step)
        plan_rate_take(rate, at + (jitter ? unit_random(random) % jitter : 0), PIECE, busy);
    return at;
}

static void it_follows_down_and_up_in_a_few_round_trips(void **state)
{
    (void)state;
    uint64_t random = unit_seed(), now = 1000000;
    for (int round = 0; round < 2000; round++) {
        struct plan_rate rate = rate_of(200000000000);
        uint64_t slow = rate.line_mib_ns + unit_random(&random) % (8 * rate.line_mib_ns);
        uint64_t piece_ns = PIECE * slow >> 20, span = 2 * RTT + piece_ns;
        now = feed(&random, &rate, now, 100000, rate.line_mib_ns, true, 0);
        assert_int_equal(rate.mib_ns, rate.line_mib_ns);
        now = feed(&random, &rate, now, 7 * span, slow, true, 0);
        if (slow > rate.line_mib_ns + rate.line_mib_ns / 8)
            assert_in_range(rate.mib_ns, slow - slow / 16, slow + 1);
        assert_int_equal(rate.weight, ((UINT64_C(1) << 32) + rate.mib_ns / 2) / rate.mib_ns);
        now = feed(&random, &rate, now, 10 * 2 * (RTT + 3000), rate.line_mib_ns, true, 0);
        assert_int_equal(rate.mib_ns, rate.line_mib_ns);
    }
}

static void late_polls_do_not_make_a_line_slow(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    struct plan_rate rate = rate_of(200000000000);
    uint64_t now = 1000000;
    for (int round = 0; round < 1000; round++) {
        now = feed(&random, &rate, now, 20000, rate.line_mib_ns, true, 500);
        assert_int_equal(rate.mib_ns, rate.line_mib_ns);
    }
    /* And of a slow one the estimate stays near the truth. */
    for (int round = 0; round < 1000; round++) {
        now = feed(&random, &rate, now, 20000, 85566, true, 500);
        if (round > 5)
            assert_in_range(rate.mib_ns, 85566 - 85566 / 12, 85566 + 85566 / 12);
    }
}

/* The application offers a piece now and then: as slow as it looks, it is not the lane. */
static void only_a_held_lane_is_slow(void **state)
{
    (void)state;
    uint64_t random = unit_seed(), now = 1000000;
    struct plan_rate rate = rate_of(200000000000);
    for (int i = 0; i < 1000; i++) {
        now += unit_random(&random) % 100000;
        plan_rate_take(&rate, now, PIECE, false);
        if (i % 3 == 0)
            plan_rate_idle(&rate);
        assert_int_equal(rate.mib_ns, rate.line_mib_ns);
    }
    /* One call that was not busy spoils its measurement, and no more. */
    plan_rate_idle(&rate);
    plan_rate_take(&rate, now, 1, true);
    plan_rate_take(&rate, now + 8000, PIECE, false);
    plan_rate_take(&rate, now + 16000, PIECE, true);
    assert_int_equal(rate.mib_ns, rate.line_mib_ns);
    assert_true(plan_rate_take(&rate, now + 32000, PIECE, true));
    assert_true(rate.mib_ns > rate.line_mib_ns);
}

static void time_before_the_first_acknowledgement_does_not_count(void **state)
{
    (void)state;
    struct plan_rate rate = rate_of(200000000000);
    uint64_t now = 1000000;
    for (int round = 0; round < 50; round++, now += 1000000) {
        plan_rate_take(&rate, now, PIECE, true);
        for (unsigned i = 1; i < 10; i++)
            plan_rate_take(&rate, now + i * 2674, PIECE, true);
        plan_rate_idle(&rate);
        assert_int_equal(rate.mib_ns, rate.line_mib_ns);
    }
}

static void a_slow_lane_recovers_when_nothing_holds_it(void **state)
{
    (void)state;
    uint64_t random = unit_seed(), now = 1000000;
    struct plan_rate rate = rate_of(200000000000);
    now = feed(&random, &rate, now, 200000, 4 * 42783, true, 0);
    assert_true(rate.mib_ns > 160000);
    struct plan_rate other = rate;
    /* Little is offered, for 5 ms. */
    for (uint64_t end = now + 5000000; now < end; now += 15000)
        plan_rate_take(&rate, now, 8192, false);
    assert_int_equal(rate.mib_ns, rate.line_mib_ns);
    /* Nothing is offered: a little idle time changes little, much of it all. */
    plan_rate_idle(&other);
    uint64_t last = other.since_ns;
    assert_false(plan_rate_take(&other, last + 8000, 8192, false));
    plan_rate_idle(&other);
    assert_true(plan_rate_take(&other, last + 8000 + 100000, 8192, false));
    assert_in_range(other.mib_ns, 130000, 160000);
    plan_rate_idle(&other);
    assert_true(plan_rate_take(&other, last + 2000000, 8192, false));
    assert_int_equal(other.mib_ns, other.line_mib_ns);
}

static void the_smallest_round_trip_counts(void **state)
{
    (void)state;
    struct plan_rate rate;
    plan_rate_init(&rate, 200000000000, 4096, 1000);
    assert_false(plan_rate_rtt(&rate, 0));
    assert_true(plan_rate_rtt(&rate, 9000)); /* the first replaces the guess */
    assert_false(plan_rate_rtt(&rate, 20000));
    assert_true(plan_rate_rtt(&rate, 5200));
    assert_false(plan_rate_rtt(&rate, 5300));
    assert_int_equal(rate.rtt_ns, 5200);
}

static void strange_clocks_do_no_harm(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    struct plan_rate rate = rate_of(200000000000);
    for (int i = 0; i < 200000; i++) {
        plan_rate_take(&rate, unit_random(&random) >> unit_random(&random) % 64,
                       unit_random(&random) >> unit_random(&random) % 64, unit_random(&random) % 2);
        if (unit_random(&random) % 16 == 0)
            plan_rate_idle(&rate);
        assert_true(rate.mib_ns >= rate.line_mib_ns && rate.weight > 0);
    }
}

static struct plan_lane lane_of(uint64_t bits)
{
    struct plan_rate rate = rate_of(bits);
    struct plan_lane lane = {.live = true};
    plan_lane_speed(&lane, &rate);
    return lane;
}

static void windows_keep_the_wire_busy(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 100000; round++) {
        uint64_t rails = 1 + unit_random(&random) % 16, bits = UINT64_C(1000000000) << unit_random(&random) % 10;
        struct plan_lane lane = lane_of(bits);
        struct plan_pace_in in = {.on = true,
                                  .piece_cost_ns = (uint32_t)(unit_random(&random) % 1000),
                                  .total_weight = rails * lane.weight,
                                  .piece_min = unit_random(&random) % 65536};
        plan_pace(&in, &lane);
        double per_ns = lane.weight / 4096.0, flight = RTT * per_ns;
        assert_true((double)lane.window >= flight - 1 + 2 * (double)lane.quantum);
        assert_true((double)lane.quantum >= flight / 2 - 1 && lane.quantum >= in.piece_min);
        /* Half of a thread's time feeds all rails, to within what sizes are rounded by. */
        assert_true((double)lane.quantum / (per_ns * (double)rails) * 1.001 >= 2.0 * in.piece_cost_ns - 1);
        assert_int_equal(lane.quantum % 4096, 0);
        in.piece_max = 4096 + unit_random(&random) % 65536;
        plan_pace(&in, &lane);
        assert_true(lane.quantum <= in.piece_max);
    }
}

/* A lane that looks slow may share its port with others: its pieces stay as large as the port's, down to an eighth of its rate. */
static void pieces_do_not_shrink_with_a_shared_port(void **state)
{
    (void)state;
    struct plan_pace_in in = {.on = true, .piece_min = 4096};
    struct plan_rate rate = rate_of(200000000000);
    struct plan_lane lane = {.live = true}, slow = {.live = true};
    plan_lane_speed(&lane, &rate);
    plan_pace(&in, &lane);
    for (unsigned slower = 2; slower <= 64; slower *= 2) {
        plan_lane_speed(&slow, &rate);
        slow.mib_ns *= slower;
        slow.weight /= slower;
        plan_pace(&in, &slow);
        assert_true(slower <= 4 ? slow.quantum == lane.quantum : slow.quantum <= lane.quantum);
        assert_true(slower < 16 || slow.quantum <= lane.quantum * 8 / slower + 4096);
    }
}

static void one_lane_is_paced_coarsely(void **state)
{
    (void)state;
    struct plan_pace_in in = {.on = true, .piece_min = 4096};
    struct plan_rate rate = rate_of(400000000);
    struct plan_lane lane = {.live = true};
    plan_lane_speed(&lane, &rate);
    plan_pace(&in, &lane);
    assert_true(lane.window < 65536);
    in.alone = true;
    plan_pace(&in, &lane);
    assert_true(lane.window == 262144 && lane.quantum == 65536);
}

/* Two or three looks that came late say nothing about a lane near its line rate; what is far off needs no more of them. */
static void few_looks_do_not_move_a_lane_at_line_rate(void **state)
{
    (void)state;
    struct plan_rate rate = rate_of(200000000000);
    uint64_t now = 1000000, late = (PIECE * (uint64_t)rate.line_mib_ns >> 20) * 12 / 10;
    plan_rate_take(&rate, now, PIECE, true);
    for (unsigned i = 1; i < PLAN_RATE_LOOKS; i++) {
        assert_false(plan_rate_take(&rate, now += late, PIECE, true));
        assert_int_equal(rate.mib_ns, rate.line_mib_ns);
    }
    assert_true(plan_rate_take(&rate, now += late, PIECE, true));
    assert_true(rate.mib_ns > rate.line_mib_ns);
    rate = rate_of(200000000000);
    plan_rate_take(&rate, now, PIECE, true);
    assert_true(plan_rate_take(&rate, now + 8 * late, PIECE, true));
    /* What hardly moves is not told. */
    rate.mib_ns = rate.told_mib_ns = 80000;
    plan_rate_idle(&rate);
    plan_rate_take(&rate, now += 16 * late, PIECE, true);
    rate.mib_ns = rate.told_mib_ns = 80000;
    bool told = false;
    for (unsigned i = 0; i < PLAN_RATE_LOOKS; i++)
        told |= plan_rate_take(&rate, now += (PIECE * UINT64_C(80400)) >> 20, PIECE, true);
    assert_true(!told && rate.mib_ns > 80000);
}

static void pacing_switched_off_holds_nothing(void **state)
{
    (void)state;
    struct plan_lane lane = lane_of(200000000000);
    struct plan_pace_in in = {.on = false, .piece_min = 4096};
    plan_pace(&in, &lane);
    assert_true(lane.window == PLAN_NO_LIMIT && lane.quantum == PLAN_NO_LIMIT);
    in.piece_max = 1 << 30;
    plan_pace(&in, &lane);
    assert_true(lane.window == PLAN_NO_LIMIT && lane.quantum == 1 << 30);
}

static void absurd_numbers_give_bounded_sizes(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 100000; round++) {
        struct plan_lane lane = {.rtt_ns = (uint32_t)unit_random(&random), .weight = (uint32_t)unit_random(&random)};
        struct plan_pace_in in = {
            true, round % 2, (uint32_t)unit_random(&random), unit_random(&random), unit_random(&random), 0};
        struct plan_threshold min;
        plan_pace(&in, &lane);
        assert_true(lane.quantum > 0 && lane.quantum <= PLAN_NO_LIMIT && lane.window <= 3 * PLAN_NO_LIMIT);
        plan_threshold((uint32_t)unit_random(&random), (uint32_t)unit_random(&random), unit_random(&random), &min);
        assert_true(min.piece_min >= 1024 && min.piece_min % 1024 == 0 && min.stripe_min == 2 * min.piece_min);
    }
}

static void cutting_starts_where_it_pays(void **state)
{
    (void)state;
    struct plan_threshold min;
    plan_threshold(200, 42783, 2 * 100390, &min);
    assert_int_equal(min.piece_min, 10240); /* 418 ns on the wire: twice its cost */
    assert_int_equal(min.stripe_min, 20480);
    plan_threshold(200, 42783, 16 * 100390, &min);
    assert_int_equal(min.piece_min, 77 * 1024); /* sixteen ports share one thread */
    plan_threshold(0, 0, 0, &min);
    assert_int_equal(min.piece_min, 1024);
}

static void ends_are_predicted(void **state)
{
    (void)state;
    struct plan_lane lane = lane_of(200000000000);
    plan_lane_posted(&lane, 1000, 1 << 20);
    assert_int_equal(lane.end_ns, 1000 + RTT + 42783);
    plan_lane_posted(&lane, 2000, 1 << 20);
    assert_int_equal(lane.end_ns, 1000 + RTT + 2 * 42783);
    /* As predicted, seen a little late: believed a little. */
    plan_lane_acked(&lane, 1000 + RTT + 42783 + 100, 1000 + RTT + 42783 + 100, 1 << 20);
    assert_int_equal(lane.end_ns, 1000 + RTT + 2 * 42783 + 25);
    /* Sooner than predicted: the lane is as it is. */
    plan_lane_posted(&lane, 3000, 1 << 20);
    plan_lane_acked(&lane, 60000, 60000, 1 << 20);
    assert_int_equal(lane.end_ns, 60000 + 42783);
    /* Much later. */
    plan_lane_posted(&lane, 61000, 1 << 20);
    plan_lane_acked(&lane, 150000, 150000, 1 << 20);
    assert_int_equal(lane.end_ns, 150000 + 42783);
    plan_lane_acked(&lane, 200000, 200000, UINT64_MAX);
    assert_true(lane.backlog == 0 && lane.end_ns == 200000);
    /* What was posted just before an acknowledgement has its own round trip to go. */
    plan_lane_posted(&lane, 300000, 4096);
    plan_lane_posted(&lane, 304000, 4096);
    plan_lane_acked(&lane, 305367, 305367, 4096);
    assert_int_equal(lane.end_ns, 304000 + RTT + 167);
}

/* Found behind a look that took long: it ended as predicted if that may be, else in the middle. */
static void what_was_found_late_is_believed_to_be_on_time(void **state)
{
    (void)state;
    struct plan_lane lane = lane_of(200000000000);
    uint64_t first = 1000 + RTT + 42783, end = first + 42783;
    plan_lane_posted(&lane, 1000, 1 << 20);
    plan_lane_posted(&lane, 2000, 1 << 20);
    plan_lane_posted(&lane, 3000, 1 << 20);
    plan_lane_acked(&lane, first - 100, first + 100, 1 << 20);
    assert_int_equal(lane.end_ns, end + 42783);
    /* It did not end before 20 us after its time: between there and 40 us after it. */
    plan_lane_acked(&lane, end + 20000, end + 40000, 1 << 20);
    assert_int_equal(lane.end_ns, end + 30000 + 42783);
}

/* One lane seems three times as far as another, and a dead one seems near: none of the live ones is left out. */
static void lanes_are_taken_to_be_equally_far(void **state)
{
    (void)state;
    static const uint32_t measured[] = {19000000, 15000000, 46000000, 10};
    struct plan_rate rate[4];
    struct plan_lane lane[4];
    unsigned got[4] = {0};
    for (unsigned k = 0; k < 4; k++) {
        lane[k] = lane_of(UINT64_C(200000000000));
        rate[k] = rate_of(UINT64_C(200000000000));
        rate[k].rtt_ns = measured[k];
        lane[k].live = k != 3;
        lane[k].window = PLAN_NO_LIMIT;
    }
    plan_pace_even(lane, rate, 4);
    for (unsigned i = 0; i < 30; i++) {
        struct plan_pick pick;
        plan_pick_begin(&pick, lane, 4, 1000);
        assert_int_equal(pick.room, 7);
        unsigned k = plan_pick_lane(&pick, lane, 8192);
        plan_lane_posted(&lane[k], 1000, 8192);
        got[k]++;
    }
    for (unsigned k = 0; k < 3; k++) {
        assert_int_equal(lane[k].rtt_ns, 15000000);
        assert_int_equal(got[k], 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_measured_is_the_line_rate),
        cmocka_unit_test(it_follows_down_and_up_in_a_few_round_trips),
        cmocka_unit_test(late_polls_do_not_make_a_line_slow),
        cmocka_unit_test(only_a_held_lane_is_slow),
        cmocka_unit_test(time_before_the_first_acknowledgement_does_not_count),
        cmocka_unit_test(a_slow_lane_recovers_when_nothing_holds_it),
        cmocka_unit_test(the_smallest_round_trip_counts),
        cmocka_unit_test(strange_clocks_do_no_harm),
        cmocka_unit_test(windows_keep_the_wire_busy),
        cmocka_unit_test(pacing_switched_off_holds_nothing),
        cmocka_unit_test(pieces_do_not_shrink_with_a_shared_port),
        cmocka_unit_test(one_lane_is_paced_coarsely),
        cmocka_unit_test(few_looks_do_not_move_a_lane_at_line_rate),
        cmocka_unit_test(absurd_numbers_give_bounded_sizes),
        cmocka_unit_test(cutting_starts_where_it_pays),
        cmocka_unit_test(ends_are_predicted),
        cmocka_unit_test(what_was_found_late_is_believed_to_be_on_time),
        cmocka_unit_test(lanes_are_taken_to_be_equally_far),
    };
    return cmocka_run_group_tests_name("plan_rate", tests, NULL, NULL);
}
