/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_stripe.c - PATH 2: which lane gets which piece of a put or get now.
 * May not know queues or keys; a lane is a few numbers. Called by src/api as lanes get room.
 * next: the caller posts each piece with src/rail/rail_lane.c
 *
 * A lane's `ready` is the time from now until a piece without length would end on it, so a piece of len ends after
 * ready + len * mib_ns. Pouring the queue over the lanes until all end at one level is called water-filling.
 */
#include "plan.h"

#include <errno.h>

/* Limits that keep products within 64 bits; nothing real comes near. */
#define PLAN_STRIPE_BYTES  (UINT64_C(1) << 36) /* of a queue: more of it makes no difference */
#define PLAN_STRIPE_NS     (UINT64_C(1) << 32) /* of a prediction */
#define PLAN_STRIPE_WEIGHT (UINT64_C(1) << 26)
#define PLAN_STRIPE_LEAST  4096u /* smallest piece_max */

/* A lane that may get a share. */
struct plan_stripe_bid {
    unsigned lane;
    bool room;
    uint64_t weight, ready_ns;
    uint64_t busy_ns; /* the wire is busy for so long */
    uint64_t key_ns;  /* end of the smallest piece that it would be given: lanes take part in this order */
    uint64_t want;    /* bytes it should get now */
};

struct plan_stripe_bids {
    unsigned count;
    struct plan_stripe_bid bid[PLAN_MAX_LANES];
};

enum plan_class plan_stripe_class(uint64_t len, uint64_t stripe_min)
{
    if (len <= PLAN_WORD_MAX)
        return PLAN_CLASS_WORD;
    return len < stripe_min ? PLAN_CLASS_MEDIUM : PLAN_CLASS_LARGE;
}

/* An overdue lane is expected to be late once more by as much, so that one that has stopped loses its share. */
static inline uint64_t plan_stripe_ready(const struct plan_lane *lane, uint64_t now_ns)
{
    if (lane->end_ns >= now_ns + lane->rtt_ns)
        return lane->end_ns - now_ns;
    return lane->rtt_ns + (lane->backlog && now_ns > lane->end_ns ? now_ns - lane->end_ns : 0);
}

static inline uint64_t plan_stripe_ns(const struct plan_lane *lane, uint64_t len)
{
    return min_u64(len, UINT32_MAX) * lane->mib_ns >> 20;
}

int plan_stripe_lane(const struct plan_lane *lane, unsigned lanes, uint64_t now_ns, uint64_t len)
{
    unsigned best = PLAN_MAX_LANES;
    uint64_t best_ns = UINT64_MAX, bytes = min_u64(len, UINT32_MAX);
    for (unsigned k = 0; k < lanes; k++) {
        const struct plan_lane *l = &lane[k];
        if (!plan_lane_room(l))
            continue;
        uint64_t end_ns = l->end_ns, soonest_ns = now_ns + l->rtt_ns;
        if (end_ns < soonest_ns)
            end_ns = now_ns + plan_stripe_ready(l, now_ns);
        end_ns += bytes * l->mib_ns >> 20;
        if (end_ns < best_ns || best == PLAN_MAX_LANES || (end_ns == best_ns && l->backlog < lane[best].backlog)) {
            best = k;
            best_ns = end_ns;
        }
    }
    if (best != PLAN_MAX_LANES)
        return (int)best;
    for (unsigned k = 0; k < lanes; k++) {
        if (lane[k].live)
            return -EAGAIN;
    }
    return -ENOTCONN;
}

/* What a piece must have: a cut moves by less than PLAN_CUT_ALIGN and shares are rounded by as little. */
static uint64_t plan_stripe_least(const struct plan_stripe_in *in)
{
    return min_u64(in->piece_min, PLAN_STRIPE_BYTES) + 2 * PLAN_CUT_ALIGN;
}

/* How long the piece at offset `at` is where `want` bytes are meant: cut at a good place, and no crumbs left over. */
static uint64_t plan_stripe_size(const struct plan_stripe_in *in, uint64_t at, uint64_t want)
{
    uint64_t left = in->len - at, most = in->piece_max ? in->piece_max : UINT64_MAX;
    uint64_t take = min_u64(want, most), least = plan_stripe_least(in), piece_min = least - 2 * PLAN_CUT_ALIGN;
    if (left <= take)
        return left;
    take -= (in->remote_addr + at + take) % PLAN_CUT_ALIGN;
    if (left - take >= piece_min)
        return take;
    if (left <= most)
        return left;
    if (most < 2 * least)
        return take;
    take = left - piece_min;
    return take - (in->remote_addr + at + take) % PLAN_CUT_ALIGN;
}

/* Adds a lane in order of its key, ties to the lower number. */
static void plan_stripe_bid(struct plan_stripe_bids *bids, const struct plan_stripe_bid *bid)
{
    unsigned i = bids->count++;
    for (; i > 0 && bids->bid[i - 1].key_ns > bid->key_ns; i--)
        bids->bid[i] = bids->bid[i - 1];
    bids->bid[i] = *bid;
}

/* Much is queued: every lane with room (bits) gets its quantum. */
static void plan_stripe_pull(const struct plan_stripe_in *in, uint32_t room, struct plan_stripe_bids *bids)
{
    uint64_t least = plan_stripe_least(in);
    for (; room; room &= room - 1) {
        unsigned k = (unsigned)__builtin_ctz(room);
        const struct plan_lane *lane = &in->lane[k];
        struct plan_stripe_bid bid = {.lane = k, .room = true};
        bid.want = max_u64(lane->quantum, least);
        bid.key_ns = plan_stripe_ready(lane, in->now_ns) + plan_stripe_ns(lane, min_u64(bid.want, in->len));
        plan_stripe_bid(bids, &bid);
    }
}

/*
 * The end of the queue: `total` bytes over all lanes, those included that have no room yet, so that all end together.
 * Lanes are let in by the end of their smallest piece; one that would get less than that, and all after it, stay out.
 */
static void plan_stripe_fill(const struct plan_stripe_in *in, uint64_t total, struct plan_stripe_bids *bids)
{
    uint64_t least = plan_stripe_least(in), weights = 0, volume = total << 12;
    for (unsigned k = 0; k < in->lanes; k++) {
        const struct plan_lane *lane = &in->lane[k];
        struct plan_stripe_bid bid = {.lane = k, .room = plan_lane_room(lane)};
        /* No room and nothing on its way: nobody knows when it will have room. */
        if (!lane->live || (!bid.room && !lane->backlog))
            continue;
        bid.weight = min_u64(max_u64(lane->weight, 1), PLAN_STRIPE_WEIGHT);
        bid.ready_ns = plan_stripe_ready(lane, in->now_ns);
        bid.busy_ns = bid.ready_ns - lane->rtt_ns;
        if (in->home < in->lanes && k != in->home)
            bid.ready_ns += min_u64(in->home_lead_ns, PLAN_STRIPE_NS);
        bid.ready_ns = min_u64(bid.ready_ns, PLAN_STRIPE_NS / 2);
        bid.key_ns = min_u64(bid.ready_ns + plan_stripe_ns(lane, least), PLAN_STRIPE_NS);
        plan_stripe_bid(bids, &bid);
    }
    unsigned in_count = 0;
    uint64_t late_ns = 0, step_ns = min_u64(in->step_ns, PLAN_STRIPE_NS / 32);
    for (; in_count < bids->count; in_count++) {
        struct plan_stripe_bid *bid = &bids->bid[in_count];
        /* A wire that is busy does not notice that its next piece is posted a little later; an idle one does. */
        uint64_t late = late_ns > bid->busy_ns ? late_ns - bid->busy_ns : 0;
        bid->ready_ns += late;
        uint64_t more = volume + bid->ready_ns * bid->weight;
        if (in_count > 0 && (bid->key_ns + late) * (weights + bid->weight) > more)
            break;
        late_ns += bid->room ? step_ns : 0;
        volume = more;
        weights += bid->weight;
    }
    bids->count = in_count;
    uint64_t level = in_count ? volume / weights : 0;
    for (unsigned i = 0; i < in_count; i++) {
        struct plan_stripe_bid *bid = &bids->bid[i];
        uint64_t share = level > bid->ready_ns ? (level - bid->ready_ns) * bid->weight >> 12 : 0;
        /* Still much for this lane: a piece now, more when it has ended, by what is known then. */
        uint64_t quantum = max_u64(min_u64(in->lane[bid->lane].quantum, PLAN_NO_LIMIT), least);
        bid->want = share <= quantum + quantum / 2 ? max_u64(share, least) : quantum;
    }
}

static void plan_stripe_hand_out(const struct plan_stripe_in *in, const struct plan_stripe_bids *bids,
                                 struct plan_stripe *out)
{
    uint64_t at = 0, carry = 0;
    out->count = 0;
    for (unsigned i = 0; i < bids->count && at < in->len; i++) {
        const struct plan_stripe_bid *bid = &bids->bid[i];
        if (!bid->room)
            continue;
        uint64_t want = bid->want + carry, len = plan_stripe_size(in, at, want);
        /* What a cut took from one piece the next one gets, else the last would get it from all. */
        carry = want > len ? min_u64(want - len, PLAN_CUT_ALIGN) : 0;
        out->piece[out->count++] = (struct plan_piece){.lane = bid->lane, .offset = at, .len = len};
        at += len;
    }
}

/* One piece on one lane; the whole, unless no message is that long. */
static int plan_stripe_whole(const struct plan_stripe_in *in, struct plan_stripe *out)
{
    int lane = plan_stripe_lane(in->lane, in->lanes, in->now_ns, in->len);
    if (lane == -ENOTCONN)
        return lane;
    out->count = lane >= 0;
    if (lane >= 0)
        out->piece[0] = (struct plan_piece){.lane = (unsigned)lane, .len = plan_stripe_size(in, 0, in->len)};
    return 0;
}

int plan_stripe(const struct plan_stripe_in *in, struct plan_stripe *out)
{
    uint64_t hold = 0, total;
    uint32_t live = 0, room = 0;
    if (in->len == 0 || in->lanes == 0 || in->lanes > PLAN_MAX_LANES ||
        (in->piece_max && in->piece_max < PLAN_STRIPE_LEAST))
        return -EINVAL;
    if (!in->cut)
        return plan_stripe_whole(in, out);
    for (unsigned k = 0; k < in->lanes; k++) {
        const struct plan_lane *lane = &in->lane[k];
        if (!lane->live)
            continue;
        live |= 1u << k;
        hold += lane->window + lane->quantum;
        if (lane->slot && lane->backlog < lane->window)
            room |= 1u << k;
    }
    if (!live)
        return -ENOTCONN;
    out->count = 0;
    if (!room)
        return 0;
    if (!checked_add_u64(in->len, in->behind, &total) || total > PLAN_STRIPE_BYTES)
        total = PLAN_STRIPE_BYTES;
    /* With more than the lanes can hold to come, each share is a quantum at least, whatever the levels are now. */
    bool pull = total >= hold;
    if (pull && (room & (room - 1)) == 0) {
        unsigned k = (unsigned)__builtin_ctz(room);
        uint64_t want = max_u64(in->lane[k].quantum, plan_stripe_least(in));
        out->piece[0] = (struct plan_piece){.lane = k, .len = plan_stripe_size(in, 0, want)};
        out->count = 1;
        return 0;
    }
    struct plan_stripe_bids bids;
    bids.count = 0;
    if (pull)
        plan_stripe_pull(in, room, &bids);
    else
        plan_stripe_fill(in, total, &bids);
    plan_stripe_hand_out(in, &bids, out);
    return 0;
}
