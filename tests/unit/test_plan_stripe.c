/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_stripe.c - how transfers are cut: properties over random inputs, and the cases one can name. Links plan alone. */
#include "unit.h"

#include "plan.h"

static const struct plan_lane idle_lane = {.live = true, .room = true};

static void classes_end_where_they_say(void **state)
{
    (void)state;
    assert_int_equal(plan_stripe_class(1, 16384), PLAN_CLASS_WORD);
    assert_int_equal(plan_stripe_class(256, 16384), PLAN_CLASS_WORD);
    assert_int_equal(plan_stripe_class(257, 16384), PLAN_CLASS_MEDIUM);
    assert_int_equal(plan_stripe_class(16383, 16384), PLAN_CLASS_MEDIUM);
    assert_int_equal(plan_stripe_class(16384, 16384), PLAN_CLASS_LARGE);
    assert_int_equal(plan_stripe_class(257, 257), PLAN_CLASS_LARGE);
}

/* Fills in a random transfer. Returns the number of live lanes. */
static unsigned random_transfer(uint64_t *random, struct plan_stripe_in *in, struct plan_lane lane[PLAN_MAX_LANES])
{
    unsigned live = 0;
    *in = (struct plan_stripe_in){
        .remote_addr = unit_random(random) >> 8,
        .len = 1 + unit_random(random) % (UINT64_C(1) << unit_random(random) % 31),
        .stripe_min = 257 + unit_random(random) % 65536,
        .piece_min = 128 + unit_random(random) % 16384,
        .lanes = 1 + (unsigned)(unit_random(random) % PLAN_MAX_LANES),
        .home = (unsigned)(unit_random(random) % PLAN_MAX_LANES),
        .lane = lane,
    };
    for (unsigned k = 0; k < in->lanes; k++) {
        lane[k] = (struct plan_lane){
            .live = unit_random(random) % 4 != 0,
            .room = unit_random(random) % 4 != 0,
            .backlog = unit_random(random) % 3 * 1000,
        };
        live += lane[k].live;
    }
    return live;
}

static void check_pieces(const struct plan_stripe_in *in, const struct plan_stripe *out)
{
    uint64_t at = 0;
    unsigned used = 0;
    assert_in_range(out->count, 1, in->lanes);
    for (unsigned i = 0; i < out->count; i++) {
        const struct plan_piece *piece = &out->piece[i];
        assert_true(piece->lane < in->lanes && in->lane[piece->lane].live);
        assert_false(used >> piece->lane & 1);
        used |= 1u << piece->lane;
        assert_true(piece->offset == at && piece->len > 0);
        if (i > 0)
            assert_int_equal((in->remote_addr + piece->offset) % PLAN_CUT_ALIGN, 0);
        if (out->count > 1)
            assert_true(piece->len >= in->piece_min);
        at += piece->len;
    }
    assert_true(at == in->len);
    if (in->len < in->stripe_min)
        assert_int_equal(out->count, 1);
    /* No lane that was left out would have carried a piece sooner. */
    for (unsigned i = 0; i < out->count; i++) {
        const struct plan_lane *taken = &in->lane[out->piece[i].lane];
        for (unsigned k = 0; k < in->lanes; k++) {
            const struct plan_lane *left = &in->lane[k];
            if (left->live && !(used >> k & 1))
                assert_false(left->room > taken->room || (left->room == taken->room && left->backlog < taken->backlog));
        }
    }
}

static void pieces_cover_a_transfer_once(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 200000; round++) {
        struct plan_lane lane[PLAN_MAX_LANES];
        struct plan_stripe_in in;
        struct plan_stripe out;
        unsigned live = random_transfer(&random, &in, lane);
        int rc = plan_stripe(&in, &out);
        assert_int_equal(rc, live ? 0 : -ENOTCONN);
        if (!rc)
            check_pieces(&in, &out);
    }
}

static void large_pieces_are_equal_over_all_live_lanes(void **state)
{
    (void)state;
    for (unsigned lanes = 2; lanes <= PLAN_MAX_LANES; lanes++) {
        struct plan_lane lane[PLAN_MAX_LANES];
        for (unsigned k = 0; k < lanes; k++)
            lane[k] = idle_lane;
        lane[lanes / 2].live = lanes == 2;
        unsigned live = lanes == 2 ? 2 : lanes - 1;
        struct plan_stripe_in in = {.remote_addr = 0x1040,
                                    .len = 1 << 20,
                                    .stripe_min = 16384,
                                    .piece_min = 4096,
                                    .lanes = lanes,
                                    .lane = lane};
        struct plan_stripe out;
        assert_int_equal(plan_stripe(&in, &out), 0);
        assert_int_equal(out.count, live);
        for (unsigned i = 0; i < out.count; i++)
            assert_in_range(out.piece[i].len, in.len / live - PLAN_CUT_ALIGN, in.len / live + PLAN_CUT_ALIGN + live);
    }
}

static void small_pieces_are_not_made(void **state)
{
    (void)state;
    struct plan_lane lane[4] = {idle_lane, idle_lane, idle_lane, idle_lane};
    struct plan_stripe_in in = {.len = 16384, .stripe_min = 16384, .piece_min = 8000, .lanes = 4, .lane = lane};
    struct plan_stripe out;
    assert_int_equal(plan_stripe(&in, &out), 0);
    assert_int_equal(out.count, 2);
    in.piece_min = 16384;
    assert_int_equal(plan_stripe(&in, &out), 0);
    assert_int_equal(out.count, 1);
    in.piece_min = UINT64_MAX;
    assert_int_equal(plan_stripe(&in, &out), 0);
    assert_int_equal(out.count, 1);
}

static unsigned lane_of_medium(unsigned home, const struct plan_lane lane[3])
{
    struct plan_stripe_in in = {
        .len = 1000, .stripe_min = 16384, .piece_min = 4096, .lanes = 3, .home = home, .lane = lane};
    struct plan_stripe out = {0};
    assert_int_equal(plan_stripe(&in, &out), 0);
    assert_int_equal(out.count, 1);
    return out.piece[0].lane;
}

static void medium_takes_the_least_loaded_lane(void **state)
{
    (void)state;
    struct plan_lane lane[3] = {idle_lane, idle_lane, idle_lane};
    lane[0].backlog = 2000;
    lane[1].backlog = 1000;
    lane[2].backlog = 1500;
    assert_int_equal(lane_of_medium(0, lane), 1);
    lane[1].room = false; /* a full lane only where all are full */
    assert_int_equal(lane_of_medium(0, lane), 2);
    lane[0].room = lane[2].room = false;
    assert_int_equal(lane_of_medium(0, lane), 1);
    lane[1].live = false;
    assert_int_equal(lane_of_medium(0, lane), 2);
}

static void medium_takes_the_home_lane_on_a_tie(void **state)
{
    (void)state;
    struct plan_lane lane[3] = {idle_lane, idle_lane, idle_lane};
    assert_int_equal(lane_of_medium(2, lane), 2);
    assert_int_equal(lane_of_medium(3, lane), 0); /* none reaches the home */
    lane[2].live = false;
    assert_int_equal(lane_of_medium(2, lane), 0);
    lane[2] = (struct plan_lane){.live = true, .room = true, .backlog = 1};
    assert_int_equal(lane_of_medium(2, lane), 0);
}

static void nonsense_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct plan_lane lane[PLAN_MAX_LANES + 1] = {idle_lane};
    struct plan_stripe out, before;
    memset(&out, 0x5a, sizeof(out));
    before = out;
    struct plan_stripe_in in = {.len = 0, .lanes = 1, .lane = lane};
    assert_int_equal(plan_stripe(&in, &out), -EINVAL);
    in = (struct plan_stripe_in){.len = 1000, .lanes = 0, .lane = lane};
    assert_int_equal(plan_stripe(&in, &out), -EINVAL);
    in.lanes = PLAN_MAX_LANES + 1;
    assert_int_equal(plan_stripe(&in, &out), -EINVAL);
    lane[0].live = false;
    in.lanes = 1;
    assert_int_equal(plan_stripe(&in, &out), -ENOTCONN);
    assert_memory_equal(&out, &before, sizeof(out));
}

static void few_pieces_go_where_little_waits(void **state)
{
    (void)state;
    struct plan_lane lane[4] = {idle_lane, idle_lane, idle_lane, idle_lane};
    struct plan_stripe_in in = {
        .len = 16384, .stripe_min = 16384, .piece_min = 8000, .lanes = 4, .home = 0, .lane = lane};
    struct plan_stripe out;
    assert_int_equal(plan_stripe(&in, &out), 0);
    assert_true(out.count == 2 && out.piece[0].lane == 0 && out.piece[1].lane == 1);
    lane[0].backlog = lane[1].backlog = 8192; /* as they now are */
    assert_int_equal(plan_stripe(&in, &out), 0);
    assert_true(out.count == 2 && out.piece[0].lane == 2 && out.piece[1].lane == 3);
    lane[3].room = false;
    assert_int_equal(plan_stripe(&in, &out), 0);
    assert_true(out.count == 2 && out.piece[0].lane == 0 && out.piece[1].lane == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_end_where_they_say),
        cmocka_unit_test(pieces_cover_a_transfer_once),
        cmocka_unit_test(few_pieces_go_where_little_waits),
        cmocka_unit_test(large_pieces_are_equal_over_all_live_lanes),
        cmocka_unit_test(small_pieces_are_not_made),
        cmocka_unit_test(medium_takes_the_least_loaded_lane),
        cmocka_unit_test(medium_takes_the_home_lane_on_a_tie),
        cmocka_unit_test(nonsense_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests_name("plan_stripe", tests, NULL, NULL);
}
