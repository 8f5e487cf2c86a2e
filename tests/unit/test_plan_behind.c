/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_behind.c - one plan for many transfers: what lanes get of those behind the first is what they would get of one
 * long transfer. Links plan alone.
 */
#include "stripe_rig.h"

struct chain {
    uint64_t got[PLAN_MAX_LANES], covered; /* bytes on each lane, and together */
    unsigned transfers, pieces;
};

/* Hands out transfers of `each` bytes, of which the first is in->len long, as the engine does: until the plan has no more. */
static struct chain chain_of(struct plan_stripe_in in, uint64_t each)
{
    struct chain c = {0};
    struct plan_stripe plan;
    struct plan_pick pick;
    plan_pick_begin(&pick, in.lane, in.lanes, in.now_ns);
    assert_int_equal(plan_stripe(&in, &pick, &plan), 0);
    do {
        uint64_t at = 0;
        for (unsigned i = 0; i < plan.count; i++) {
            const struct plan_piece *p = &plan.piece[i];
            assert_true(p->offset == at && p->len > 0 && p->len <= in.len - at);
            at += p->len;
            assert_true(at == in.len || (in.remote_addr + at) % PLAN_CUT_ALIGN == 0);
            c.got[p->lane] += p->len;
            c.pieces++;
        }
        pick.posts += plan.count; /* the lanes themselves stay as they were */
        c.covered += at;
        c.transfers++;
        if (at < in.len) /* the rest of it is for later */
            break;
        in.len = min_u64(each, in.behind);
        in.behind -= in.len;
        in.remote_addr += 1 << 20;
    } while (in.len && plan_stripe_behind(&in, &pick, &plan));
    return c;
}

/* Of a full queue lanes get pieces, not shares: about a quantum, and those of one transfer are alike. By so much they differ. */
static uint64_t alike(const struct plan_stripe_in *in)
{
    struct plan_pick pick;
    uint64_t slack_ns = plan_stripe_slack(in->lane, in->lanes, in->piece_min), quantum = in->piece_min + 256;
    plan_pick_begin(&pick, in->lane, in->lanes, in->now_ns);
    if (!pick.weights)
        return 0;
    uint64_t level_ns = (((in->len + in->behind) << 12) + pick.load) / pick.weights;
    if (level_ns < pick.late_ns + slack_ns + (in->home < in->lanes ? in->home_lead_ns : 0))
        return 0;
    for (unsigned k = 0; k < in->lanes; k++)
        quantum = max_u64(quantum, in->lane[k].quantum);
    return quantum / 2 + 4096;
}

static void many_transfers_are_shared_as_one_is(void **state)
{
    (void)state;
    uint64_t random = unit_seed(), chained = 0, shares = 0;
    for (int round = 0; round < 4000; round++) {
        struct plan_lane lane[PLAN_MAX_LANES];
        struct plan_stripe_in in, whole;
        if (!random_transfer(&random, &in, lane))
            continue;
        in.piece_max = 0;
        whole = in;
        whole.len += whole.behind;
        whole.behind = 0;
        struct chain one = chain_of(whole, 0), many = chain_of(in, in.len);
        chained += many.transfers > 1;
        assert_true(many.covered <= in.len + in.behind && many.pieces <= PLAN_MAX_LANES + many.transfers);
        /* Each end of a transfer may leave a crumb to the next lane, and moves cuts to other lines. */
        uint64_t slack = (in.piece_min + 4 * PLAN_CUT_ALIGN) * (many.transfers + 1) + alike(&in);
        shares += many.transfers > 1 && alike(&in) == 0;
        for (unsigned k = 0; k < in.lanes; k++)
            assert_true(many.got[k] <= one.got[k] + slack);
        assert_true(many.covered + slack * in.lanes >= one.covered || many.transfers < 2);
    }
    print_message("# %lu plans served more than one transfer, %lu of them by shares\n", chained, shares);
    assert_true(chained > 100 && shares > 100);
}

static void a_plan_serves_only_what_it_was_made_for(void **state)
{
    (void)state;
    struct plan_lane lane[2] = {lane_of(MIB_NS, 0), lane_of(MIB_NS, 0)};
    struct plan_stripe_in in = {
        .len = 32768, .behind = 32768, .lanes = 2, .home = 0, .piece_min = 4096, .now_ns = NOW, .lane = lane};
    struct plan_stripe plan, other;
    struct plan_pick pick;
    plan_pick_begin(&pick, lane, 2, NOW);
    assert_int_equal(plan_stripe(&in, &pick, &plan), 0);
    assert_true(plan.count == 1 && plan.piece[0].len == 32768); /* the other lane's half is behind */
    in.behind = 0;
    other = plan;
    assert_false(plan_stripe_behind(&in, &pick, &other)); /* its piece was not posted */
    pick.posts = 2;
    other = plan;
    assert_false(plan_stripe_behind(&in, &pick, &other)); /* and something else was */
    assert_false(plan_stripe_behind(&in, &pick, &other)); /* for good */
    assert_int_equal(other.count, 0);
    pick.posts = 1;
    in.home_lead_ns = RTT;
    other = plan;
    assert_false(plan_stripe_behind(&in, &pick, &other));
    in.home_lead_ns = 0;
    assert_true(plan_stripe_behind(&in, &pick, &plan));
    assert_true(plan.count == 1 && plan.piece[0].len == 32768 && plan.piece[0].lane != plan.rest[0].lane);
    pick.posts = 2;
    assert_false(plan_stripe_behind(&in, &pick, &plan));
    struct plan_stripe none = {.next = 0, .rests = 0};
    assert_false(plan_stripe_behind(&in, &pick, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_transfers_are_shared_as_one_is),
        cmocka_unit_test(a_plan_serves_only_what_it_was_made_for),
    };
    return cmocka_run_group_tests_name("plan_behind", tests, NULL, NULL);
}
