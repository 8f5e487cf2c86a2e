/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_put.c - PATH 2: what kind of op a put is: word op, medium or large; whether it must wait or follow; whether its
 * last bytes are held back. May not know queues or keys. Called by src/api/api_put.c.
 * next: plan_stripe.c where it is bulk, plan_order.c where it is a word op
 */
#include "plan.h"

/* The tail begins on a cut and holds at least the last 8 bytes, so that any last word lies in it whole. */
#define PLAN_TAIL_MIN 8u

static uint32_t plan_put_tail(const struct plan_put_in *in)
{
    uint64_t end = in->remote_addr + in->len, cut = (end - PLAN_TAIL_MIN) & ~(uint64_t)(PLAN_CUT_ALIGN - 1);
    return (uint32_t)(end - cut);
}

uint64_t plan_put_cut_min(uint64_t stripe_min, unsigned lanes, bool paced)
{
    /* One lane without pacing: there is nothing to cut for. */
    return lanes == 1 && !paced ? UINT64_MAX : stripe_min;
}

void plan_put(const struct plan_put_in *in, struct plan_put *out)
{
    bool overlap = in->overlap != PLAN_OVERLAP_NONE && !(in->faults & PLAN_FAULT_OVERLAP);
    *out = (struct plan_put){.klass = plan_stripe_class(in->len, in->cut_min), .lane = PLAN_MAX_LANES};
    if (out->klass == PLAN_CLASS_WORD && in->covered)
        out->klass = PLAN_CLASS_MEDIUM;
    if (out->klass == PLAN_CLASS_WORD)
        return;
    out->gate = in->strict && in->fenced;
    if (overlap && in->overlap == PLAN_OVERLAP_FOLLOW && !in->unordered && !out->gate) {
        /* One QP keeps the order of its strict writes: no wait, but all of it on that lane. */
        out->lane = in->overlap_lane;
        out->strict = true;
    } else if (overlap) {
        out->gate = true;
    }
    if (!in->tail || in->covered || (in->faults & PLAN_FAULT_TAIL))
        return;
    /* On one lane a strict key keeps the last bytes last, where the QP places in order. But what stood before a fence may
     * be on another lane, deferred, or asked of the target, and a last word behind a fence is to be seen after it: only
     * word ops follow everything. */
    bool whole = out->klass == PLAN_CLASS_MEDIUM || out->lane < PLAN_MAX_LANES;
    if (!in->unordered && (in->lanes == 1 || whole) && (!in->fenced || out->gate))
        out->strict = true;
    else
        out->tail = plan_put_tail(in);
}
