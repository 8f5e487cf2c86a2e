/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_stripe.c - PATH 2: how a put or get is cut into pieces over live lanes.
 * May not know queues or keys; a lane is a few numbers. Called by src/api/api_put.c and api_get.c.
 * next: the caller posts each piece with src/rail/rail_lane.c
 */
#include "plan.h"

#include <errno.h>

enum plan_class plan_stripe_class(uint64_t len, uint64_t stripe_min)
{
    if (len <= PLAN_WORD_MAX)
        return PLAN_CLASS_WORD;
    return len < stripe_min ? PLAN_CLASS_MEDIUM : PLAN_CLASS_LARGE;
}

/* Whether lane a should get a whole transfer rather than lane b: room first, since a full lane means waiting. */
static bool plan_stripe_better(const struct plan_lane *a, const struct plan_lane *b)
{
    if (a->room != b->room)
        return a->room;
    return a->backlog < b->backlog;
}

static void plan_stripe_whole(const struct plan_stripe_in *in, struct plan_stripe *out)
{
    unsigned best = in->home < in->lanes && in->lane[in->home].live ? in->home : PLAN_MAX_LANES;
    for (unsigned k = 0; k < in->lanes; k++) {
        if (in->lane[k].live && (best == PLAN_MAX_LANES || plan_stripe_better(&in->lane[k], &in->lane[best])))
            best = k;
    }
    out->piece[0] = (struct plan_piece){.lane = best, .offset = 0, .len = in->len};
    out->count = 1;
}

/* The cut nearest below `offset` that falls on a multiple of PLAN_CUT_ALIGN of the remote address. */
static uint64_t plan_stripe_cut(uint64_t remote_addr, uint64_t offset)
{
    uint64_t over = (remote_addr + offset) % PLAN_CUT_ALIGN;
    return offset > over ? offset - over : 0;
}

/* How many equal pieces the minimum allows; a cut moves by less than PLAN_CUT_ALIGN, so that is kept in hand. */
static unsigned plan_stripe_pieces(const struct plan_stripe_in *in, unsigned live)
{
    uint64_t smallest;
    if (!checked_add_u64(max_u64(in->piece_min, 1), PLAN_CUT_ALIGN, &smallest))
        return 1;
    uint64_t fit = in->len / smallest;
    return fit < 2 ? 1 : (unsigned)min_u64(fit, live);
}

/* The lanes for so many pieces, as bits: those that would carry one soonest, so that no lane is always left out. */
static uint32_t plan_stripe_pick(const struct plan_stripe_in *in, unsigned pieces)
{
    uint32_t picked = 0;
    for (unsigned n = 0; n < pieces; n++) {
        unsigned best = PLAN_MAX_LANES;
        for (unsigned k = 0; k < in->lanes; k++) {
            if (in->lane[k].live && !(picked >> k & 1) &&
                (best == PLAN_MAX_LANES || plan_stripe_better(&in->lane[k], &in->lane[best])))
                best = k;
        }
        picked |= 1u << best;
    }
    return picked;
}

static void plan_stripe_equal(const struct plan_stripe_in *in, unsigned live, unsigned pieces, struct plan_stripe *out)
{
    uint64_t share = in->len / pieces, start = 0;
    uint32_t picked = pieces < live ? plan_stripe_pick(in, pieces) : UINT32_MAX;
    unsigned made = 0;
    for (unsigned k = 0; k < in->lanes && made < pieces; k++) {
        if (!in->lane[k].live || !(picked >> k & 1))
            continue;
        uint64_t end = made + 1 == pieces ? in->len : plan_stripe_cut(in->remote_addr, share * (made + 1));
        out->piece[made++] = (struct plan_piece){.lane = k, .offset = start, .len = end - start};
        start = end;
    }
    out->count = made;
}

int plan_stripe(const struct plan_stripe_in *in, struct plan_stripe *out)
{
    unsigned live = 0;
    if (in->len == 0 || in->lanes == 0 || in->lanes > PLAN_MAX_LANES)
        return -EINVAL;
    for (unsigned k = 0; k < in->lanes; k++)
        live += in->lane[k].live;
    if (live == 0)
        return -ENOTCONN;

    unsigned pieces = in->len < in->stripe_min ? 1 : plan_stripe_pieces(in, live);
    if (pieces == 1)
        plan_stripe_whole(in, out);
    else
        plan_stripe_equal(in, live, pieces, out);
    return 0;
}
