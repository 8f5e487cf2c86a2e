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

/* Lanes that take part, in the order in which the smallest pieces that they would be given end. */
struct plan_stripe_bids {
    unsigned count;
    unsigned lane[PLAN_MAX_LANES];
    uint64_t key_ns[PLAN_MAX_LANES];
    uint64_t want[PLAN_MAX_LANES]; /* bytes that each should get now, where it has room */
};

/* What one look at all lanes shows. */
struct plan_stripe_view {
    bool live;
    uint32_t room;    /* bit k: lane k has room */
    uint32_t rtt_ns;  /* the smallest: no lane is ready sooner */
    uint64_t weights; /* of all live lanes */
    uint64_t total;   /* bytes to come, this transfer and those behind it */
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

void plan_pick_begin(struct plan_pick *pick, const struct plan_lane *lane, unsigned lanes, uint64_t now_ns)
{
    pick->room = 0;
    pick->lanes = lanes;
    for (unsigned k = 0; k < lanes; k++) {
        if (!plan_lane_room(&lane[k]))
            continue;
        pick->room |= UINT32_C(1) << k;
        pick->at_ns[k] = now_ns + plan_stripe_ready(&lane[k], now_ns);
    }
}

int plan_stripe_lane(const struct plan_lane *lane, unsigned lanes, uint64_t now_ns, uint64_t len)
{
    struct plan_pick pick;
    plan_pick_begin(&pick, lane, lanes, now_ns);
    if (pick.room)
        return (int)plan_pick_lane(&pick, lane, len);
    for (unsigned k = 0; k < lanes; k++) {
        if (lane[k].live)
            return -EAGAIN;
    }
    return -ENOTCONN;
}

uint64_t plan_pick_much(const struct plan_lane *lane, unsigned lanes)
{
    uint64_t weights = 0, level_ns = 0;
    for (unsigned k = 0; k < lanes; k++) {
        if (!lane[k].live)
            continue;
        if (lane[k].window >= PLAN_NO_LIMIT)
            return UINT64_MAX;
        weights += min_u64(lane[k].weight, PLAN_STRIPE_WEIGHT);
        level_ns = max_u64(level_ns, plan_stripe_ns(&lane[k], lane[k].window + lane[k].quantum + lane[k].quantum / 2));
    }
    return weights ? min_u64(level_ns, PLAN_STRIPE_NS) * weights >> 12 : UINT64_MAX;
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

/* Adds a lane in order of its key, ties to the lower number. Its place. */
static void plan_stripe_bid(struct plan_stripe_bids *bids, unsigned lane, uint64_t key_ns)
{
    unsigned i = bids->count++;
    for (; i > 0 && bids->key_ns[i - 1] > key_ns; i--) {
        bids->key_ns[i] = bids->key_ns[i - 1];
        bids->lane[i] = bids->lane[i - 1];
    }
    bids->key_ns[i] = key_ns;
    bids->lane[i] = lane;
}

/* The piece of a lane while much is queued. */
static inline uint64_t plan_stripe_quantum(const struct plan_stripe_in *in, unsigned lane)
{
    return max_u64(min_u64(in->lane[lane].quantum, PLAN_NO_LIMIT), plan_stripe_least(in));
}

/*
 * Whether so much is queued that the share of every lane with room is more than a quantum and a half (see
 * plan_stripe_fill()). If the level were the end of the latest of these, no lane could hold more than what it carries from
 * its soonest end up to there.
 */
static bool plan_stripe_much(const struct plan_stripe_in *in, const struct plan_stripe_view *view)
{
    uint64_t level_ns = 0, lead_ns = in->home < in->lanes ? in->home_lead_ns : 0;
    for (uint32_t left = view->room; left; left &= left - 1) {
        unsigned k = (unsigned)__builtin_ctz(left);
        const struct plan_lane *lane = &in->lane[k];
        uint64_t quantum = plan_stripe_quantum(in, k);
        uint64_t end_ns = plan_stripe_ready(lane, in->now_ns) + plan_stripe_ns(lane, quantum + quantum / 2);
        level_ns = max_u64(level_ns, end_ns - view->rtt_ns);
    }
    level_ns = min_u64(level_ns, PLAN_STRIPE_NS) + min_u64(lead_ns, PLAN_STRIPE_NS);
    return view->total << 12 >= level_ns * min_u64(view->weights, PLAN_STRIPE_WEIGHT * PLAN_MAX_LANES);
}

/* Much is queued: every lane with room gets its quantum. */
static void plan_stripe_pull(const struct plan_stripe_in *in, uint32_t room, struct plan_stripe_bids *bids)
{
    for (; room; room &= room - 1) {
        unsigned k = (unsigned)__builtin_ctz(room);
        uint64_t want = plan_stripe_quantum(in, k), len = min_u64(want, in->len);
        plan_stripe_bid(bids, k, plan_stripe_ready(&in->lane[k], in->now_ns) + plan_stripe_ns(&in->lane[k], len));
    }
    for (unsigned i = 0; i < bids->count; i++)
        bids->want[i] = plan_stripe_quantum(in, bids->lane[i]);
}

/* When each lane is ready; for those that cannot take part, never. The level that is certainly not exceeded. */
static uint64_t plan_stripe_readies(const struct plan_stripe_in *in, const struct plan_stripe_view *view,
                                    uint64_t ready_ns[PLAN_MAX_LANES])
{
    uint64_t lead_ns = in->home < in->lanes ? min_u64(in->home_lead_ns, PLAN_STRIPE_NS) : 0, level_ns = UINT64_MAX;
    for (unsigned k = 0; k < in->lanes; k++) {
        const struct plan_lane *lane = &in->lane[k];
        ready_ns[k] = UINT64_MAX;
        /* No room and nothing on its way: nobody knows when it will have room. */
        if (!lane->live || (!(view->room >> k & 1) && !lane->backlog))
            continue;
        uint64_t ready = plan_stripe_ready(lane, in->now_ns) + (k != in->home ? lead_ns : 0);
        ready_ns[k] = min_u64(ready, PLAN_STRIPE_NS / 2);
        level_ns = min_u64(level_ns, ready_ns[k] + plan_stripe_ns(lane, view->total));
    }
    return level_ns;
}

static inline uint64_t plan_stripe_weight(const struct plan_lane *lane)
{
    return min_u64(max_u64(lane->weight, 1), PLAN_STRIPE_WEIGHT);
}

/* Lets lanes in, by the end of their smallest piece, until one would get less than that. The common level. */
static uint64_t plan_stripe_level(const struct plan_stripe_in *in, const struct plan_stripe_view *view,
                                  uint64_t ready_ns[PLAN_MAX_LANES], struct plan_stripe_bids *bids)
{
    uint64_t weights = 0, volume = view->total << 12, late_ns = 0, step_ns = min_u64(in->step_ns, PLAN_STRIPE_NS / 32);
    unsigned n = 0;
    for (; n < bids->count; n++) {
        unsigned k = bids->lane[n];
        const struct plan_lane *lane = &in->lane[k];
        uint64_t weight = plan_stripe_weight(lane);
        /* A wire that is busy does not notice that its next piece is posted a little later; an idle one does. */
        uint64_t soonest = in->now_ns + lane->rtt_ns, busy_ns = lane->end_ns > soonest ? lane->end_ns - soonest : 0;
        uint64_t late = late_ns > busy_ns ? late_ns - busy_ns : 0;
        uint64_t more = volume + (ready_ns[k] + late) * weight;
        if (n > 0 && (bids->key_ns[n] + late) * (weights + weight) > more)
            break;
        ready_ns[k] += late;
        late_ns += view->room >> k & 1 ? step_ns : 0;
        volume = more;
        weights += weight;
    }
    bids->count = n;
    return n ? volume / weights : 0;
}

/* The end of the queue: it is poured over all lanes, those included that have no room yet, so that all end together. */
static void plan_stripe_fill(const struct plan_stripe_in *in, const struct plan_stripe_view *view,
                             struct plan_stripe_bids *bids)
{
    uint64_t ready_ns[PLAN_MAX_LANES], least = plan_stripe_least(in), most_ns = plan_stripe_readies(in, view, ready_ns);
    for (unsigned k = 0; k < in->lanes; k++) {
        uint64_t key_ns = ready_ns[k] == UINT64_MAX ? UINT64_MAX : ready_ns[k] + plan_stripe_ns(&in->lane[k], least);
        /* The one that sets the limit always takes part, however little there is. */
        if (key_ns <= most_ns || ready_ns[k] + plan_stripe_ns(&in->lane[k], view->total) == most_ns)
            plan_stripe_bid(bids, k, min_u64(key_ns, PLAN_STRIPE_NS));
    }
    uint64_t level_ns = plan_stripe_level(in, view, ready_ns, bids);
    for (unsigned i = 0; i < bids->count; i++) {
        unsigned k = bids->lane[i];
        if (!(view->room >> k & 1))
            continue;
        uint64_t over_ns = level_ns > ready_ns[k] ? level_ns - ready_ns[k] : 0, quantum = plan_stripe_quantum(in, k);
        uint64_t share = over_ns * plan_stripe_weight(&in->lane[k]) >> 12;
        /* Still much for this lane: a piece now, more when it has ended, by what is known then. */
        bids->want[i] = share <= quantum + quantum / 2 ? max_u64(share, least) : quantum;
    }
}

static void plan_stripe_hand_out(const struct plan_stripe_in *in, uint32_t room, const struct plan_stripe_bids *bids,
                                 struct plan_stripe *out)
{
    uint64_t at = 0, carry = 0;
    for (unsigned i = 0; i < bids->count && at < in->len; i++) {
        if (!(room >> bids->lane[i] & 1))
            continue;
        uint64_t want = bids->want[i] + carry, len = plan_stripe_size(in, at, want);
        /* What a cut took from one piece the next one gets, else the last would get it from all. */
        carry = want > len ? min_u64(want - len, PLAN_CUT_ALIGN) : 0;
        out->piece[out->count++] = (struct plan_piece){.lane = bids->lane[i], .offset = at, .len = len};
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

static void plan_stripe_look(const struct plan_stripe_in *in, struct plan_stripe_view *view)
{
    *view = (struct plan_stripe_view){.rtt_ns = UINT32_MAX};
    for (unsigned k = 0; k < in->lanes; k++) {
        const struct plan_lane *lane = &in->lane[k];
        if (!lane->live)
            continue;
        view->live = true;
        view->weights += lane->weight;
        view->rtt_ns = min_u32(view->rtt_ns, lane->rtt_ns);
        if (lane->slot && lane->backlog < lane->window)
            view->room |= 1u << k;
    }
    if (!checked_add_u64(in->len, in->behind, &view->total) || view->total > PLAN_STRIPE_BYTES)
        view->total = PLAN_STRIPE_BYTES;
}

int plan_stripe(const struct plan_stripe_in *in, struct plan_stripe *out)
{
    struct plan_stripe_view view;
    if (in->len == 0 || in->lanes == 0 || in->lanes > PLAN_MAX_LANES ||
        (in->piece_max && in->piece_max < PLAN_STRIPE_LEAST))
        return -EINVAL;
    if (!in->cut)
        return plan_stripe_whole(in, out);
    plan_stripe_look(in, &view);
    if (!view.live)
        return -ENOTCONN;
    out->count = 0;
    if (!view.room)
        return 0;
    bool much = plan_stripe_much(in, &view);
    if (much && (view.room & (view.room - 1)) == 0) {
        unsigned k = (unsigned)__builtin_ctz(view.room);
        uint64_t len = plan_stripe_size(in, 0, plan_stripe_quantum(in, k));
        out->piece[0] = (struct plan_piece){.lane = k, .len = len};
        out->count = 1;
        return 0;
    }
    struct plan_stripe_bids bids;
    bids.count = 0;
    if (much)
        plan_stripe_pull(in, view.room, &bids);
    else
        plan_stripe_fill(in, &view, &bids);
    plan_stripe_hand_out(in, view.room, &bids, out);
    return 0;
}
