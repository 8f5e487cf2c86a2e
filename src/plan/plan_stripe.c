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
#define PLAN_STRIPE_PACKET 4096u /* pieces of a long transfer end where a packet of the largest MTU does */
#define PLAN_STRIPE_LEAST  4096u /* smallest piece_max */

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
    uint64_t weights = 0, load = 0, late_ns = 0;
    pick->room = 0;
    pick->posts = 0;
    pick->lanes = lanes;
    pick->now_ns = now_ns;
    for (unsigned k = 0; k < lanes; k++) {
        if (!lane[k].live)
            continue;
        uint64_t ready_ns = min_u64(plan_stripe_ready(&lane[k], now_ns), PLAN_STRIPE_NS);
        uint64_t weight = lane[k].weight;
        pick->at_ns[k] = now_ns + ready_ns;
        weights += weight;
        load += weight * ready_ns;
        late_ns = max_u64(late_ns, ready_ns);
        if (lane[k].backlog < lane[k].window)
            pick->room |= UINT32_C(1) << k;
    }
    pick->weights = weights;
    pick->load = load;
    pick->late_ns = late_ns;
}

uint64_t plan_pick_much(const struct plan_lane *lane, unsigned lanes)
{
    uint64_t weights = 0, level_ns = 0;
    for (unsigned k = 0; k < lanes; k++) {
        if (!lane[k].live)
            continue;
        if (lane[k].window >= PLAN_NO_LIMIT)
            return UINT64_MAX;
        weights += lane[k].weight;
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

/* What pieces of a lane are about as long as while much is queued. */
static inline uint64_t plan_stripe_quantum(const struct plan_stripe_in *in, unsigned lane)
{
    return max_u64(min_u64(in->lane[lane].quantum, PLAN_NO_LIMIT), plan_stripe_least(in));
}

/* The piece of a transfer with `left` bytes to go while much is queued: about a quantum, in pieces alike. A small one left over costs
 * as much as a large one. */
static inline uint64_t plan_stripe_part(const struct plan_stripe_in *in, unsigned lane, uint64_t left)
{
    uint64_t quantum = plan_stripe_quantum(in, lane), pieces = (left + quantum / 2) / quantum;
    if (pieces <= 1)
        return max_u64(left, quantum);
    uint64_t part = (left / pieces + PLAN_STRIPE_PACKET - 1) / PLAN_STRIPE_PACKET * PLAN_STRIPE_PACKET;
    return max_u64(part, plan_stripe_least(in));
}

/* The longest share that is given at once: of a longer one a quantum is, and what is left must make a piece of its own, on the
 * last of many lanes too, whose share is smaller by what posting to the others takes. */
static inline uint64_t plan_stripe_once(const struct plan_stripe_in *in, unsigned lane)
{
    uint64_t quantum = plan_stripe_quantum(in, lane);
    return quantum + max_u64(quantum / 2, 2 * plan_stripe_least(in));
}

/* Bytes to come, of this transfer and those behind it. */
static inline uint64_t plan_stripe_total(const struct plan_stripe_in *in)
{
    uint64_t total;
    return checked_add_u64(in->len, in->behind, &total) ? min_u64(total, PLAN_STRIPE_BYTES) : PLAN_STRIPE_BYTES;
}

uint64_t plan_stripe_slack(const struct plan_lane *lane, unsigned lanes, uint64_t piece_min)
{
    const struct plan_stripe_in in = {.piece_min = piece_min, .lane = lane};
    uint64_t slack_ns = 1;
    for (unsigned k = 0; k < lanes; k++) {
        if (lane[k].live)
            slack_ns = max_u64(slack_ns, plan_stripe_ns(&lane[k], plan_stripe_once(&in, k)));
    }
    return slack_ns;
}

/* How much later than the others the home lane should end. */
static inline uint64_t plan_stripe_lead(const struct plan_stripe_in *in)
{
    return in->home < in->lanes ? min_u64(in->home_lead_ns, PLAN_STRIPE_NS) : 0;
}

/* When all live lanes would end if the queue were poured over them, the latest of them included: from now. Where some end later
 * than that by themselves the others end sooner. */
static inline uint64_t plan_stripe_common(const struct plan_stripe_in *in, const struct plan_pick *pick)
{
    return ((plan_stripe_total(in) << 12) + pick->load) / pick->weights;
}

/* Whether so much is queued that the share of every lane with room is more than is given at once. */
static inline bool plan_stripe_much(const struct plan_stripe_in *in, const struct plan_pick *pick, uint64_t level_ns,
                                    uint64_t slack_ns)
{
    return level_ns >= pick->late_ns + slack_ns + plan_stripe_lead(in);
}

/* What lane k should get now of a share in what is left: where it is still much, a piece now, more when it has ended, by what
 * is known then. */
static inline uint64_t plan_stripe_want(const struct plan_stripe_in *in, unsigned k, uint64_t share)
{
    return share <= plan_stripe_once(in, k) ? max_u64(share, plan_stripe_least(in)) : plan_stripe_quantum(in, k);
}

/* Whether some lane that is under way ends before this one. */
static bool plan_stripe_sooner(const struct plan_stripe_in *in, const struct plan_pick *pick, unsigned best)
{
    for (unsigned k = 0; k < in->lanes; k++) {
        if (in->lane[k].live && in->lane[k].backlog && pick->at_ns[k] < pick->at_ns[best])
            return true;
    }
    return false;
}

bool plan_pull(const struct plan_stripe_in *in, const struct plan_pick *pick, struct plan_piece *out)
{
    uint32_t room = pick->room;
    if (!room || !in->slack_ns)
        return false;
    unsigned best = (unsigned)__builtin_ctz(room);
    for (room &= room - 1; room; room &= room - 1) {
        unsigned k = (unsigned)__builtin_ctz(room);
        best = pick->at_ns[k] < pick->at_ns[best] ? k : best;
    }
    const struct plan_lane *lane = &in->lane[best];
    uint64_t level_ns = plan_stripe_common(in, pick), ready_ns = pick->at_ns[best] - pick->now_ns, want;
    out->lane = best;
    out->offset = 0;
    if (plan_stripe_much(in, pick, level_ns, in->slack_ns)) {
        want = plan_stripe_part(in, best, in->len);
    } else {
        uint64_t least_ns = plan_stripe_ns(lane, plan_stripe_least(in));
        if (plan_stripe_lead(in) || ready_ns < lane->rtt_ns + in->lanes * min_u64(in->step_ns, PLAN_STRIPE_NS / 32))
            return false;
        out->len = 0;
        if (level_ns < pick->late_ns + least_ns)
            return level_ns < ready_ns + least_ns && plan_stripe_sooner(in, pick, best);
        want = plan_stripe_want(in, best, (level_ns - ready_ns) * lane->weight >> 12);
    }
    out->len = plan_stripe_size(in, 0, want);
    return true;
}

/* A lane that can take part: when it is ready, and when its smallest piece would end. */
struct plan_stripe_bid {
    uint64_t ready_ns, end_ns;
    uint32_t weight;
    uint32_t lane;
};

/* By the end of the smallest piece, ties by the lower number. There are few, and they are nearly sorted. */
static void plan_stripe_sort(struct plan_stripe_bid *bid, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        struct plan_stripe_bid one = bid[i];
        unsigned at = i;
        for (; at > 0 &&
               (bid[at - 1].end_ns > one.end_ns || (bid[at - 1].end_ns == one.end_ns && bid[at - 1].lane > one.lane));
             at--)
            bid[at] = bid[at - 1];
        bid[at] = one;
    }
}

/* Much is queued: every lane with room gets a piece, the one that ends first before the others. */
static void plan_stripe_pull(const struct plan_stripe_in *in, const struct plan_pick *pick, struct plan_stripe *out)
{
    struct plan_stripe_bid bid[PLAN_MAX_LANES];
    uint64_t left = in->len;
    unsigned n = 0;
    for (uint32_t room = pick->room; room; room &= room - 1) {
        unsigned k = (unsigned)__builtin_ctz(room);
        bid[n++] = (struct plan_stripe_bid){.end_ns = pick->at_ns[k], .lane = k};
    }
    plan_stripe_sort(bid, n);
    for (unsigned i = 0; i < n; i++) {
        uint64_t want = plan_stripe_part(in, bid[i].lane, left);
        left -= min_u64(left, want);
        out->rest[i] = (struct plan_rest){bid[i].lane, want};
    }
    out->rests = n;
}

/* Those that can, and the common level that they reach together. */
struct plan_stripe_pool {
    unsigned count;
    struct plan_stripe_bid bid[PLAN_MAX_LANES];
    uint64_t level_ns;
};

static void plan_stripe_readies(const struct plan_stripe_in *in, const struct plan_pick *pick,
                                struct plan_stripe_pool *pool)
{
    uint64_t lead_ns = plan_stripe_lead(in), least = min_u64(plan_stripe_least(in), UINT32_MAX);
    struct plan_stripe_bid *bid = pool->bid;
    for (unsigned k = 0; k < in->lanes; k++) {
        const struct plan_lane *lane = &in->lane[k];
        /* No room and nothing on its way: nobody knows when it will have room. */
        if (!lane->live || (!(pick->room >> k & 1) && !lane->backlog))
            continue;
        uint64_t ready = pick->at_ns[k] - pick->now_ns + (k != in->home ? lead_ns : 0);
        bid->ready_ns = ready = min_u64(ready, PLAN_STRIPE_NS / 2);
        bid->end_ns = min_u64(ready + (least * lane->mib_ns >> 20), PLAN_STRIPE_NS);
        bid->weight = lane->weight;
        bid->lane = k;
        bid++;
    }
    pool->count = (unsigned)(bid - pool->bid);
}

/* Whether the posts that come before it may make a lane's wire wait. Those that are busy longer than that do not notice: of lanes in
 * the order of their ends the i-th, from 0, has i posts before it. */
static bool plan_stripe_late(const struct plan_stripe_in *in, const struct plan_pick *pick, uint64_t step_ns)
{
    unsigned below[4] = {0};
    for (uint32_t room = pick->room; room; room &= room - 1) {
        unsigned k = (unsigned)__builtin_ctz(room);
        uint64_t soonest = pick->now_ns + in->lane[k].rtt_ns;
        if (pick->at_ns[k] >= soonest + (step_ns << 4))
            continue;
        for (unsigned i = 0; i < 4; i++)
            below[i] += pick->at_ns[k] < soonest + (step_ns << (i + 1));
    }
    return below[0] > 1 || below[1] > 2 || below[2] > 4 || below[3] > 8;
}

/* Where no post is late. Lanes that end later by themselves are left out, then the one whose smallest piece ends last, until all
 * that are left get as much as that. */
static void plan_stripe_even(uint64_t total, struct plan_stripe_pool *pool)
{
    uint64_t weights = 0, volume = total << 12;
    struct plan_stripe_bid *bid = pool->bid;
    unsigned n = pool->count;
    for (unsigned i = 0; i < n; i++) {
        weights += bid[i].weight;
        volume += bid[i].ready_ns * bid[i].weight;
    }
    while (n > 1) {
        uint64_t level_ns = volume / weights;
        unsigned last = 0, before = n;
        for (unsigned i = 0; i < n;) {
            if (bid[i].end_ns > level_ns && bid[i].ready_ns >= level_ns && n > 1) {
                weights -= bid[i].weight;
                volume -= bid[i].ready_ns * bid[i].weight;
                bid[i] = bid[--n];
                continue;
            }
            last = bid[i].end_ns > bid[last].end_ns ? i : last;
            i++;
        }
        if (n != before)
            continue;
        if (bid[last].end_ns <= level_ns)
            break;
        weights -= bid[last].weight;
        volume -= bid[last].ready_ns * bid[last].weight;
        bid[last] = bid[--n];
    }
    pool->count = n;
    pool->level_ns = n ? volume / weights : 0;
}

/* Where posts make each other late: lanes are let in, by the end of their smallest piece, until one would get less than that. */
static void plan_stripe_level(const struct plan_stripe_in *in, uint32_t room, uint64_t total, uint64_t step_ns,
                              struct plan_stripe_pool *pool)
{
    uint64_t weights = 0, volume = total << 12, late_ns = 0;
    unsigned n = 0;
    plan_stripe_sort(pool->bid, pool->count);
    for (; n < pool->count; n++) {
        struct plan_stripe_bid *bid = &pool->bid[n];
        const struct plan_lane *lane = &in->lane[bid->lane];
        /* A wire that is busy does not notice that its next piece is posted a little later; an idle one does. */
        uint64_t soonest = in->now_ns + lane->rtt_ns, busy_ns = lane->end_ns > soonest ? lane->end_ns - soonest : 0;
        uint64_t late = late_ns > busy_ns ? late_ns - busy_ns : 0;
        uint64_t more = volume + (bid->ready_ns + late) * bid->weight;
        if (n > 0 && (bid->end_ns + late) * (weights + bid->weight) > more)
            break;
        bid->ready_ns += late;
        late_ns += room >> bid->lane & 1 ? step_ns : 0;
        volume = more;
        weights += bid->weight;
    }
    pool->count = n;
    pool->level_ns = n ? volume / weights : 0;
}

/* The end of the queue: it is poured over all lanes, those included that have no room yet, so that all end together. */
static void plan_stripe_fill(const struct plan_stripe_in *in, const struct plan_pick *pick, struct plan_stripe *out)
{
    struct plan_stripe_pool pool;
    uint64_t step_ns = min_u64(in->step_ns, PLAN_STRIPE_NS / 32), total = plan_stripe_total(in);
    plan_stripe_readies(in, pick, &pool);
    bool late = plan_stripe_late(in, pick, step_ns);
    if (late)
        plan_stripe_level(in, pick->room, total, step_ns, &pool);
    else
        plan_stripe_even(total, &pool);
    unsigned n = 0;
    for (unsigned i = 0; i < pool.count; i++) {
        if (pick->room >> pool.bid[i].lane & 1)
            pool.bid[n++] = pool.bid[i];
    }
    if (!late)
        plan_stripe_sort(pool.bid, n);
    for (unsigned i = 0; i < n; i++) {
        const struct plan_stripe_bid *bid = &pool.bid[i];
        uint64_t over_ns = pool.level_ns > bid->ready_ns ? pool.level_ns - bid->ready_ns : 0;
        out->rest[i] = (struct plan_rest){bid->lane, plan_stripe_want(in, bid->lane, over_ns * bid->weight >> 12)};
    }
    out->rests = n;
}

/* Cuts one transfer into what the lanes should get, from the first on that has not got all. */
static void plan_stripe_hand_out(const struct plan_stripe_in *in, struct plan_stripe *out)
{
    uint64_t at = 0;
    out->count = 0;
    while (out->next < out->rests && at < in->len) {
        struct plan_rest *rest = &out->rest[out->next];
        uint64_t want = rest->want + out->carry, len = plan_stripe_size(in, at, want);
        out->piece[out->count++] = (struct plan_piece){.lane = rest->lane, .offset = at, .len = len};
        at += len;
        if (at == in->len && want >= len + plan_stripe_least(in)) {
            rest->want = want - len;
            out->carry = 0;
            return;
        }
        out->next++;
        /* What a cut took from one piece the next one gets, else the last would get it from all. */
        out->carry = want > len ? min_u64(want - len, PLAN_CUT_ALIGN) : 0;
    }
}

bool plan_stripe_behind(const struct plan_stripe_in *in, const struct plan_pick *pick, struct plan_stripe *plan)
{
    bool spoilt = plan->next < plan->rests && (plan->posts != pick->posts || plan->lead_ns != plan_stripe_lead(in));
    if (spoilt)
        plan->rests = 0;
    plan_stripe_hand_out(in, plan);
    plan->posts = pick->posts + plan->count;
    return plan->count > 0;
}

int plan_stripe(const struct plan_stripe_in *in, const struct plan_pick *pick, struct plan_stripe *out)
{
    if (in->len == 0 || in->lanes == 0 || in->lanes > PLAN_MAX_LANES ||
        (in->piece_max && in->piece_max < PLAN_STRIPE_LEAST))
        return -EINVAL;
    if (pick->weights == 0)
        return -ENOTCONN;
    out->count = out->next = out->rests = 0;
    if (!pick->room)
        return 0;
    uint64_t slack_ns = in->slack_ns ? in->slack_ns : plan_stripe_slack(in->lane, in->lanes, in->piece_min);
    if (plan_stripe_much(in, pick, plan_stripe_common(in, pick), slack_ns))
        plan_stripe_pull(in, pick, out);
    else
        plan_stripe_fill(in, pick, out);
    out->carry = 0;
    out->lead_ns = plan_stripe_lead(in);
    plan_stripe_hand_out(in, out);
    out->posts = pick->posts + out->count;
    return 0;
}
