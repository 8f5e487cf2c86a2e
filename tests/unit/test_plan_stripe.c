/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_stripe.c - how transfers are cut: properties over random inputs, and the cases one can name. Links plan alone. */
#include "stripe_rig.h"

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

/* No small pieces, unless there is no other way. */
static void check_sizes(const struct plan_stripe_in *in, const struct plan_stripe *out, uint64_t covered)
{
    if (in->piece_max && in->piece_max < 2 * (in->piece_min + 2 * PLAN_CUT_ALIGN))
        return;
    for (unsigned i = 0; i < out->count; i++)
        assert_true(out->piece[i].len >= in->piece_min || out->piece[i].len == in->len);
    assert_true(covered == in->len || out->count == 0 || in->len - covered >= in->piece_min);
}

static void check_pieces(const struct plan_stripe_in *in, const struct plan_stripe *out)
{
    uint64_t at = 0;
    unsigned used = 0;
    assert_in_range(out->count, 0, in->lanes);
    for (unsigned i = 0; i < out->count; i++) {
        const struct plan_piece *piece = &out->piece[i];
        assert_true(piece->lane < in->lanes && plan_lane_room(&in->lane[piece->lane]));
        assert_false(used >> piece->lane & 1);
        used |= 1u << piece->lane;
        assert_true(piece->offset == at && piece->len > 0 && piece->len <= in->len - at);
        assert_true(!in->piece_max || piece->len <= in->piece_max);
        at += piece->len;
        assert_true(at == in->len || (in->remote_addr + at) % PLAN_CUT_ALIGN == 0);
    }
    check_sizes(in, out, at);
}

/* Nothing handed out: only where a lane that is waited for has bytes on its way, or none has room. */
static void check_progress(const struct plan_stripe_in *in, const struct plan_stripe *out)
{
    bool room = false, waiting = false;
    for (unsigned k = 0; k < in->lanes; k++) {
        room |= plan_lane_room(&in->lane[k]);
        waiting |= in->lane[k].live && in->lane[k].backlog && !plan_lane_room(&in->lane[k]);
    }
    assert_true(out->count || !room || waiting);
}

static void pieces_cover_the_front_of_a_transfer_once(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    unsigned none = 0, some = 0, all = 0;
    for (int round = 0; round < 300000; round++) {
        struct plan_lane lane[PLAN_MAX_LANES];
        struct plan_stripe_in in;
        struct plan_stripe out;
        unsigned live = random_transfer(&random, &in, lane);
        int rc = stripe(&in, &out);
        assert_int_equal(rc, live ? 0 : -ENOTCONN);
        if (rc)
            continue;
        check_pieces(&in, &out);
        check_progress(&in, &out);
        uint64_t covered = out.count ? out.piece[out.count - 1].offset + out.piece[out.count - 1].len : 0;
        none += covered == 0;
        some += covered && covered < in.len;
        all += covered == in.len;
    }
    assert_true(none > 1000 && some > 1000 && all > 1000);
}

/* The quick way gives pieces as good as the other's, and none only where another lane under way will come back for it; it answers
 * by itself while much is queued on busy lanes. */
static void the_quick_way_agrees(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    unsigned pieces = 0, same = 0, none = 0, unknown = 0;
    for (int round = 0; round < 300000; round++) {
        struct plan_lane lane[PLAN_MAX_LANES];
        struct plan_stripe_in in;
        struct plan_stripe out = {0}, quick = {.count = 1};
        struct plan_pick pick;
        unsigned live = random_transfer(&random, &in, lane);
        in.slack_ns = plan_stripe_slack(lane, in.lanes, in.piece_min);
        plan_pick_begin(&pick, lane, in.lanes, in.now_ns);
        if (!plan_pull(&in, &pick, &quick.piece[0])) {
            unknown++;
            continue;
        }
        assert_true(live > 0 && stripe(&in, &out) == 0);
        quick.count = quick.piece[0].len > 0;
        check_pieces(&in, &quick);
        check_progress(&in, &quick);
        if (!quick.count) {
            none++;
            continue;
        }
        pieces++;
        assert_true(out.count > 0);
        uint64_t one = quick.piece[0].len, other = 0;
        for (unsigned i = 0; i < out.count; i++)
            other = out.piece[i].lane == quick.piece[0].lane ? out.piece[i].len : other;
        same += one <= other + 256 && other <= one + 256;
    }
    print_message("# %u pieces, %u of them the same; %u none, %u unknown\n", pieces, same, none, unknown);
    assert_true(pieces > 1000 && none > 100 && unknown > 1000);
    assert_true(same > pieces * 0.9);
}

/* Kept up to date while pieces are posted, a look at the lanes is what a fresh one would be. */
static void a_look_is_kept_up_to_date(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 20000; round++) {
        struct plan_lane lane[PLAN_MAX_LANES];
        struct plan_stripe_in in;
        struct plan_pick kept, fresh;
        random_transfer(&random, &in, lane);
        plan_pick_begin(&kept, lane, in.lanes, in.now_ns);
        for (int n = 0; n < 20 && kept.room; n++) {
            unsigned k = plan_pick_lane(&kept, lane, in.len);
            uint64_t was_ns = kept.late_ns;
            plan_lane_posted(&lane[k], in.now_ns, 1 + random_below(&random, 300000));
            plan_pick_posted(&kept, lane, k);
            plan_pick_begin(&fresh, lane, in.lanes, in.now_ns);
            assert_true(kept.room == fresh.room && kept.weights == fresh.weights && kept.load == fresh.load);
            for (unsigned j = 0; j < in.lanes; j++)
                assert_true(!lane[j].live || kept.at_ns[j] == fresh.at_ns[j]);
            /* A lane that was overdue is not any more: what it held up may be taken for later than it is, never sooner. */
            assert_true(kept.late_ns == max_u64(was_ns, fresh.late_ns));
        }
    }
}

/* What the quick way answers by itself: it must, since asking plan_stripe() each time costs more than all else. */
static void busy_lanes_are_served_the_quick_way(void **state)
{
    (void)state;
    struct plan_lane lane[4];
    for (unsigned k = 0; k < 4; k++) {
        lane[k] = lane_of(MIB_NS, 131072);
        lane[k].end_ns = NOW + 100000 - k * 100;
    }
    struct plan_stripe_in in = {.len = 4 * 98304 + 65536, .lanes = 4, .home = 4, .piece_min = 4096};
    struct plan_piece piece;
    struct plan_pick pick;
    in.step_ns = 150;
    in.now_ns = NOW;
    in.lane = lane;
    in.slack_ns = plan_stripe_slack(lane, 4, in.piece_min);
    plan_pick_begin(&pick, lane, 4, NOW);
    assert_true(plan_pull(&in, &pick, &piece) && piece.lane == 3 && piece.len == 65536); /* much, by what they carry */
    in.home = 0;
    in.home_lead_ns = 400; /* the home lane's lead matters near the end alone */
    assert_true(plan_pull(&in, &pick, &piece) && piece.lane == 3 && piece.len == 65536);
    in.len = 4 * 32768;
    assert_false(plan_pull(&in, &pick, &piece));
    in.home_lead_ns = 0;
    assert_true(plan_pull(&in, &pick, &piece) && piece.lane == 3);
    assert_in_range(piece.len, 32768, 32768 + 8192); /* its share, and what it ends sooner */
    for (unsigned k = 0; k < 4; k++)
        lane[k] = lane_of(MIB_NS, 0); /* idle: each post makes the next one later */
    plan_pick_begin(&pick, lane, 4, NOW);
    assert_false(plan_pull(&in, &pick, &piece));
    in.slack_ns = 0;
    in.len = 1 << 30;
    assert_false(plan_pull(&in, &pick, &piece));
}

/* Called again and again, with what was posted ending in between, a transfer comes to its end. */
static void every_transfer_ends(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int round = 0; round < 5000; round++) {
        struct plan_lane lane[PLAN_MAX_LANES];
        struct plan_stripe_in in;
        struct plan_stripe out;
        if (!random_transfer(&random, &in, lane))
            continue;
        for (unsigned k = 0; k < in.lanes; k++)
            lane[k].window = max_u64(lane[k].window, 1);
        lane[in.lanes - 1].live = true;
        in.len = 1 + in.len % (4u << 20); /* in pieces of 256 bytes at worst */
        uint64_t end = in.remote_addr + in.len;
        for (unsigned turns = 0; in.remote_addr != end; turns++) {
            assert_true(turns < 60000);
            in.len = end - in.remote_addr;
            assert_int_equal(stripe(&in, &out), 0);
            for (unsigned i = 0; i < out.count; i++) {
                plan_lane_posted(&lane[out.piece[i].lane], in.now_ns, out.piece[i].len);
                in.remote_addr += out.piece[i].len;
            }
            in.now_ns += 1000;
            /* One of the lanes has stopped for good; the transfer goes on over the others. */
            unsigned k = (unsigned)random_below(&random, in.lanes);
            if (k != 0 || in.lanes == 1)
                plan_lane_acked(&lane[k], in.now_ns, in.now_ns, random_below(&random, 300000));
        }
    }
}

/* When a lane would end all that it has, with what was given to it, from now. */
static double end_of(const struct plan_stripe_in *in, const struct plan_stripe *out, unsigned k)
{
    const struct plan_lane *lane = &in->lane[k];
    uint64_t ready = lane->end_ns > in->now_ns + lane->rtt_ns ? lane->end_ns - in->now_ns : lane->rtt_ns, len = 0;
    for (unsigned i = 0; i < out->count; i++)
        len += out->piece[i].lane == k ? out->piece[i].len : 0;
    return (double)ready + (double)len * lane->mib_ns / (1 << 20);
}

/* The smallest piece on the best of the lanes that got nothing would end after all others, had they shared with it. */
static void check_left_out(const struct plan_stripe_in *in, const struct plan_stripe *out, unsigned used, double slack)
{
    double weights = 0, volume = 0, best = 1e18, ready = 0, weight = 0;
    for (unsigned k = 0; k < in->lanes; k++) {
        double mine = (double)(1 << 20) / in->lane[k].mib_ns;
        double least = end_of(in, out, k) + (double)(in->piece_min + 2 * PLAN_CUT_ALIGN) / mine;
        if (used >> k & 1) {
            weights += mine;
            volume += end_of(in, out, k) * mine;
        } else if (least < best) {
            best = least;
            ready = end_of(in, out, k);
            weight = mine;
        }
    }
    assert_true(best + slack >= (volume + ready * weight) / (weights + weight));
}

/*
 * The finish: all lanes have room and the whole is handed out at once. Then lanes that got something end within a
 * cut of each other, and no further lane would have helped.
 */
static void lanes_end_together(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    unsigned shared = 0;
    for (int round = 0; round < 100000; round++) {
        struct plan_lane lane[PLAN_MAX_LANES];
        struct plan_stripe out;
        struct plan_stripe_in in = {.remote_addr = unit_random(&random) >> 8,
                                    .len = 50000 + random_below(&random, 4000000),
                                    .lanes = 2 + (unsigned)random_below(&random, PLAN_MAX_LANES - 1),
                                    .home = PLAN_MAX_LANES,
                                    .piece_min = 4096,
                                    .now_ns = NOW,
                                    .lane = lane};
        uint64_t slowest = 0;
        for (unsigned k = 0; k < in.lanes; k++) {
            lane[k] = lane_of(10000 + random_below(&random, 200000), random_below(&random, 3) * 100000);
            lane[k].window = lane[k].quantum = PLAN_NO_LIMIT;
            slowest = lane[k].mib_ns > slowest ? lane[k].mib_ns : slowest;
        }
        assert_int_equal(stripe(&in, &out), 0);
        const struct plan_piece *tail = &out.piece[out.count - 1];
        assert_true(tail->offset + tail->len == in.len);
        /* A cut, and for each lane what the fastest carries in the nanosecond that levels are rounded by. */
        double slack = (256 + 110.0 * out.count) * (double)slowest / (1 << 20) + 2, first = 1e18, last = 0;
        unsigned used = 0;
        for (unsigned i = 0; i < out.count; i++) {
            double end = end_of(&in, &out, out.piece[i].lane);
            first = end < first ? end : first;
            last = end > last ? end : last;
            used |= 1u << out.piece[i].lane;
        }
        assert_true(last - first <= slack);
        check_left_out(&in, &out, used, slack);
        shared += out.count > 1;
    }
    assert_true(shared > 50000);
}

static void equal_and_empty_gives_halves(void **state)
{
    (void)state;
    for (unsigned lanes = 2; lanes <= PLAN_MAX_LANES; lanes++) {
        struct plan_lane lane[PLAN_MAX_LANES];
        struct plan_stripe out;
        struct plan_stripe_in in = {.remote_addr = 0x1040,
                                    .len = 1 << 20,
                                    .lanes = lanes,
                                    .home = lanes,
                                    .piece_min = 4096,
                                    .now_ns = NOW,
                                    .lane = lane};
        for (unsigned k = 0; k < lanes; k++) {
            lane[k] = lane_of(MIB_NS, 0);
            lane[k].window = lane[k].quantum = PLAN_NO_LIMIT;
        }
        lane[lanes / 2].live = lanes == 2;
        unsigned live = lanes == 2 ? 2 : lanes - 1;
        assert_int_equal(stripe(&in, &out), 0);
        assert_int_equal(out.count, live);
        for (unsigned i = 0; i < out.count; i++)
            assert_in_range(out.piece[i].len, in.len / live - 256, in.len / live + 150 * live);
    }
}

static void rates_give_shares(void **state)
{
    (void)state;
    struct plan_lane lane[3] = {lane_of(MIB_NS / 2, 0), lane_of(MIB_NS, 0), lane_of(MIB_NS * 2, 0)};
    struct plan_stripe_in in = {.len = 7 << 20, .lanes = 3, .home = 3, .piece_min = 4096, .now_ns = NOW, .lane = lane};
    struct plan_stripe out;
    for (unsigned k = 0; k < 3; k++)
        lane[k].window = lane[k].quantum = PLAN_NO_LIMIT;
    assert_int_equal(stripe(&in, &out), 0);
    assert_int_equal(out.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t fair = (UINT64_C(4) << 20) >> out.piece[i].lane;
        assert_in_range(out.piece[i].len, fair - 600, fair + 600);
    }
}

/* One 1 MiB put with the tail on, as the issue counts it: 18.9 us on one lane and 23.9 us on home. */
static void the_home_lane_ends_later_by_its_lead(void **state)
{
    (void)state;
    struct plan_lane lane[2] = {lane_of(MIB_NS, 0), lane_of(MIB_NS, 0)};
    struct plan_stripe_in in = {
        .len = 1 << 20, .lanes = 2, .home = 1, .home_lead_ns = 5000, .piece_min = 4096, .now_ns = NOW, .lane = lane};
    struct plan_stripe out;
    lane[0].window = lane[0].quantum = lane[1].window = lane[1].quantum = PLAN_NO_LIMIT;
    assert_int_equal(stripe(&in, &out), 0);
    assert_int_equal(out.count, 2);
    assert_in_range((uint64_t)end_of(&in, &out, 0) - RTT, 18850, 18950);
    assert_in_range((uint64_t)end_of(&in, &out, 1) - RTT, 23850, 23950);
    in.len = 100000; /* shorter than the lead: all on home */
    assert_int_equal(stripe(&in, &out), 0);
    assert_true(out.count == 1 && out.piece[0].lane == 1 && out.piece[0].len == in.len);
}

/* Much behind it: quanta, to the lane that ends first before the others; short ops whole. */
static void a_full_queue_is_pulled(void **state)
{
    (void)state;
    struct plan_lane lane[3] = {lane_of(MIB_NS, 200000), lane_of(MIB_NS, 100000), lane_of(MIB_NS, 262144)};
    struct plan_stripe_in in = {
        .len = 1 << 20, .behind = 15 << 20, .lanes = 3, .home = 3, .piece_min = 16384, .now_ns = NOW, .lane = lane};
    struct plan_stripe out;
    assert_int_equal(stripe(&in, &out), 0);
    assert_int_equal(out.count, 2);
    assert_true(out.piece[0].lane == 1 && out.piece[0].len == 65536);
    assert_true(out.piece[1].lane == 0 && out.piece[1].len == 65536);
    in.len = 65536 + 32767; /* a rest of less than half a quantum goes with its piece */
    assert_int_equal(stripe(&in, &out), 0);
    assert_true(out.count == 1 && out.piece[0].len == in.len);
    in.len = 65536 + 32768; /* else pieces are alike, and end where packets do */
    assert_int_equal(stripe(&in, &out), 0);
    assert_true(out.count == 2 && out.piece[0].len == 49152 && out.piece[1].len == 49152);
    in.len = 149440;
    assert_int_equal(stripe(&in, &out), 0);
    assert_true(out.count == 2 && out.piece[0].len == 77824 && out.piece[1].len == 149440 - 77824);
    lane[0].backlog = lane[1].backlog = 262144;
    out.count = 9;
    assert_int_equal(stripe(&in, &out), 0);
    assert_int_equal(out.count, 0);
}

/* A share for a lane that has no room yet is kept for it, but not once the lane is long overdue. */
static void a_busy_lane_keeps_its_share_while_it_moves(void **state)
{
    (void)state;
    struct plan_lane lane[2] = {lane_of(MIB_NS, 200000), lane_of(MIB_NS, 262144)};
    struct plan_stripe_in in = {.len = 200000, .lanes = 2, .home = 2, .piece_min = 8192, .now_ns = NOW, .lane = lane};
    struct plan_stripe out;
    lane[0].quantum = 131072;
    assert_int_equal(stripe(&in, &out), 0);
    assert_int_equal(out.count, 1);
    assert_in_range(out.piece[0].len, 131072 - 512, 131072);
    plan_lane_acked(&lane[0], NOW + 10000, NOW + 10000, 200000);
    in.now_ns = NOW + 60000; /* lane 1 should have ended at 15,900 */
    lane[0].quantum = PLAN_NO_LIMIT;
    assert_int_equal(stripe(&in, &out), 0);
    assert_true(out.count == 1 && out.piece[0].lane == 0 && out.piece[0].len == in.len);
}

/* The lane for a whole transfer, by a fresh look; -1 where none has room. */
static int whole(const struct plan_lane *lane, unsigned lanes, uint64_t len)
{
    struct plan_pick pick;
    plan_pick_begin(&pick, lane, lanes, NOW);
    return pick.room ? (int)plan_pick_lane(&pick, lane, len) : -1;
}

static void medium_takes_the_lane_that_ends_first(void **state)
{
    (void)state;
    struct plan_lane lane[3] = {lane_of(MIB_NS, 20000), lane_of(MIB_NS, 10000), lane_of(MIB_NS, 15000)};
    assert_int_equal(whole(lane, 3, 8192), 1);
    lane[1].window = 10000;
    assert_int_equal(whole(lane, 3, 8192), 2);
    lane[2].window = 15000;
    assert_int_equal(whole(lane, 3, 8192), 0);
    lane[0].window = 0;
    assert_int_equal(whole(lane, 3, 8192), -1);
    lane[0].live = lane[1].live = lane[2].live = false;
    assert_int_equal(whole(lane, 3, 8192), -1);
    assert_int_equal(whole(lane, 0, 8192), -1);
    /* A fast lane with a queue before a slow one without, as long as that is sooner. */
    lane[0] = lane_of(10000, 60000);
    lane[1] = lane_of(100000, 0);
    assert_int_equal(whole(lane, 2, 8192), 0);
    lane[0] = lane_of(10000, 80000);
    assert_int_equal(whole(lane, 2, 8192), 1);
    /* Ties: the lower backlog, then the lower number. Both are past their ends by nothing. */
    lane[0] = lane[1] = lane[2] = lane_of(MIB_NS, 0);
    assert_int_equal(whole(lane, 3, 8192), 0);
    lane[0].backlog = 2;
    lane[1].backlog = 1;
    lane[0].end_ns = lane[1].end_ns = lane[2].end_ns = NOW + RTT;
    lane[2].live = false;
    assert_int_equal(whole(lane, 3, 8192), 1);
}

static void small_pieces_are_not_made(void **state)
{
    (void)state;
    struct plan_lane lane[4] = {lane_of(MIB_NS, 0), lane_of(MIB_NS, 0), lane_of(MIB_NS, 0), lane_of(MIB_NS, 0)};
    struct plan_stripe_in in = {.len = 16700, .lanes = 4, .home = 4, .piece_min = 8000, .now_ns = NOW, .lane = lane};
    struct plan_stripe out;
    assert_int_equal(stripe(&in, &out), 0);
    assert_int_equal(out.count, 2);
    in.piece_min = 16384;
    assert_int_equal(stripe(&in, &out), 0);
    assert_int_equal(out.count, 1);
    in.piece_min = UINT64_MAX;
    assert_int_equal(stripe(&in, &out), 0);
    assert_true(out.count == 1 && out.piece[0].len == in.len);
}

/* Each piece is posted a little after the one before, so the first lane gets a little more. */
static void later_posts_get_less(void **state)
{
    (void)state;
    struct plan_lane lane[2] = {lane_of(MIB_NS, 0), lane_of(MIB_NS, 0)};
    struct plan_stripe_in in = {
        .len = 1 << 18, .lanes = 2, .home = 2, .piece_min = 8192, .now_ns = NOW, .lane = lane, .step_ns = 200};
    struct plan_stripe out;
    lane[0].window = lane[0].quantum = lane[1].window = lane[1].quantum = PLAN_NO_LIMIT;
    assert_int_equal(stripe(&in, &out), 0);
    assert_int_equal(out.count, 2);
    double end = end_of(&in, &out, 0), other = end_of(&in, &out, 1) + 200;
    assert_true(end - other < 15 && other - end < 15);
}

static void no_message_is_longer_than_a_port_takes(void **state)
{
    (void)state;
    struct plan_lane lane = lane_of(MIB_NS, 0);
    lane.window = lane.quantum = PLAN_NO_LIMIT;
    struct plan_stripe_in in = {.len = UINT64_C(5) << 30,
                                .piece_max = UINT64_C(1) << 30,
                                .piece_min = 16384,
                                .lanes = 1,
                                .now_ns = NOW,
                                .lane = &lane};
    struct plan_stripe out;
    assert_int_equal(stripe(&in, &out), 0);
    assert_true(out.count == 1 && out.piece[0].len == in.piece_max);
    in.len = in.piece_max + 100; /* no crumb of 100 bytes */
    assert_int_equal(stripe(&in, &out), 0);
    assert_true(out.count == 1 && in.len - out.piece[0].len >= 16384 && out.piece[0].len % PLAN_CUT_ALIGN == 0);
}

static void nonsense_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct plan_lane lane[PLAN_MAX_LANES + 1] = {lane_of(MIB_NS, 0)};
    struct plan_stripe out, before;
    memset(&out, 0x5a, sizeof(out));
    memcpy(&before, &out, sizeof(out));
    struct plan_stripe_in in = {.len = 0, .lanes = 1, .lane = lane};
    assert_int_equal(stripe(&in, &out), -EINVAL);
    in = (struct plan_stripe_in){.len = 1000, .lanes = 0, .lane = lane};
    assert_int_equal(stripe(&in, &out), -EINVAL);
    in.lanes = PLAN_MAX_LANES + 1;
    assert_int_equal(stripe(&in, &out), -EINVAL);
    in.lanes = 1;
    in.piece_max = 4095;
    assert_int_equal(stripe(&in, &out), -EINVAL);
    in.piece_max = 0;
    lane[0].live = false;
    assert_int_equal(stripe(&in, &out), -ENOTCONN);
    assert_memory_equal(&out, &before, sizeof(out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_end_where_they_say),
        cmocka_unit_test(pieces_cover_the_front_of_a_transfer_once),
        cmocka_unit_test(the_quick_way_agrees),
        cmocka_unit_test(a_look_is_kept_up_to_date),
        cmocka_unit_test(busy_lanes_are_served_the_quick_way),
        cmocka_unit_test(every_transfer_ends),
        cmocka_unit_test(lanes_end_together),
        cmocka_unit_test(equal_and_empty_gives_halves),
        cmocka_unit_test(rates_give_shares),
        cmocka_unit_test(the_home_lane_ends_later_by_its_lead),
        cmocka_unit_test(a_full_queue_is_pulled),
        cmocka_unit_test(a_busy_lane_keeps_its_share_while_it_moves),
        cmocka_unit_test(medium_takes_the_lane_that_ends_first),
        cmocka_unit_test(small_pieces_are_not_made),
        cmocka_unit_test(later_posts_get_less),
        cmocka_unit_test(no_message_is_longer_than_a_port_takes),
        cmocka_unit_test(nonsense_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests_name("plan_stripe", tests, NULL, NULL);
}
