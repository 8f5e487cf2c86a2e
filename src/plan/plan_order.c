/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_order.c - when a word op may be posted: after everything it must follow is visible at the target.
 * May not post or wait; it answers. docs/ordering.md argues why the answer is right.
 * Called by src/api/api_order.c, at issue and again whenever a count has moved.
 */
#include "plan.h"

void plan_order_mark(const struct plan_counts *counts, unsigned lanes, unsigned home, struct plan_wait *out)
{
    for (unsigned k = 0; k < lanes; k++)
        out->count[k] = k == home ? 0 : counts->posted[k];
}

enum plan_order plan_order(const struct plan_order_in *in, const struct plan_wait *wait)
{
    enum plan_order answer = PLAN_ORDER_NOW;
    if (in->dead >> in->home & 1)
        return PLAN_ORDER_NEVER;
    if (in->faults & PLAN_FAULT_DEFER)
        return PLAN_ORDER_NOW;
    for (unsigned k = 0; k < in->lanes; k++) {
        if (in->counts->visible[k] >= wait->count[k])
            continue;
        /* A dead lane's count will not move again: waiting for it would be waiting for ever. */
        if (in->dead >> k & 1)
            return PLAN_ORDER_NEVER;
        answer = PLAN_ORDER_WAIT;
    }
    return answer;
}
