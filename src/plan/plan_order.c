/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_order.c - when an op that must follow others may be posted: after what it follows is visible at the target.
 * May not post or wait; it answers. docs/ordering.md argues why the answer is right.
 * Called by src/api/api_order.c and api_bulk.c, at issue and again whenever a count has moved.
 */
#include "plan.h"

const uint64_t *plan_order_visible(const struct plan_order_in *in)
{
    return in->drain || (in->faults & PLAN_FAULT_FLUSH) ? in->counts->acked : in->counts->flushed;
}

bool plan_order_handed(const struct plan_order_in *in, uint64_t before, uint64_t handed)
{
    return before <= handed || (in->faults & PLAN_FAULT_DEFER);
}

bool plan_order_blocks(const struct plan_order_in *in)
{
    return in->drain && !(in->faults & PLAN_FAULT_DEFER);
}

bool plan_order_strict_key(const struct plan_order_in *in)
{
    return !(in->faults & PLAN_FAULT_KEYS);
}

/* Whether an op of this kind must know that earlier writes on its own lane are visible. */
static bool plan_order_own(const struct plan_order_in *in, enum plan_word word)
{
    switch (word) {
    case PLAN_WORD_WRITE: /* stays behind by its strict key, unless the QP places out of order */
        return (in->unordered || in->mixed) && !(in->faults & PLAN_FAULT_OWN_FLUSH);
    case PLAN_WORD_ATOMIC: /* stays behind by itself, in one kind of memory */
        return in->mixed && !(in->faults & PLAN_FAULT_OWN_FLUSH);
    case PLAN_WORD_MESSAGE: /* the target's CPU acts on it, through another QP */
    case PLAN_WORD_GATE:    /* goes on any lane, with the relaxed key */
        break;
    }
    return true;
}

/* Whether it must know that messages before it have been answered. Those of one peer are carried out in order, so they need
 * not wait for each other; but behind one that failed none may announce it. */
static bool plan_order_answers(const struct plan_order_in *in, enum plan_word word)
{
    return word != PLAN_WORD_MESSAGE || in->message_lost;
}

void plan_order_mark(const struct plan_order_in *in, enum plan_word word, struct plan_wait *out)
{
    bool own = plan_order_own(in, word);
    bool others = word == PLAN_WORD_GATE || !(in->faults & PLAN_FAULT_DEFER);
    for (unsigned k = 0; k < in->lanes; k++)
        out->count[k] = (k == in->lane ? own : others) ? in->counts->posted[k] : 0;
    out->count[PLAN_MESSAGE] = others && plan_order_answers(in, word) ? in->counts->posted[PLAN_MESSAGE] : 0;
}

void plan_order_raise(const struct plan_order_in *in, enum plan_word word, const uint64_t *last, struct plan_wait *wait)
{
    bool own = plan_order_own(in, word), others = !(in->faults & PLAN_FAULT_DEFER);
    for (unsigned k = 0; k < in->lanes; k++) {
        if (k == in->lane ? own : others)
            wait->count[k] = max_u64(wait->count[k], last[k]);
    }
    if (others && plan_order_answers(in, word))
        wait->count[PLAN_MESSAGE] = max_u64(wait->count[PLAN_MESSAGE], last[PLAN_MESSAGE]);
}

enum plan_order plan_order(const struct plan_order_in *in, const struct plan_wait *wait)
{
    const uint64_t *visible = plan_order_visible(in);
    bool gate = in->lane >= in->lanes, waiting = false, lost = false;
    if (!gate && (in->dead >> in->lane & 1))
        return PLAN_ORDER_NEVER;
    for (unsigned k = 0; k < in->lanes; k++) {
        if (visible[k] >= wait->count[k])
            continue;
        /* A dead lane's count will not move again: waiting for it would be waiting for ever. */
        if (in->dead >> k & 1)
            lost = true;
        else
            waiting = true;
    }
    if (visible[PLAN_MESSAGE] < wait->count[PLAN_MESSAGE]) {
        if (in->message_lost)
            lost = true;
        else
            waiting = true;
    }
    /* Bulk behind a gate has no gate of its own: the gate fails only when all else it stood behind is visible. */
    if (lost && !(gate && waiting))
        return PLAN_ORDER_NEVER;
    return waiting ? PLAN_ORDER_WAIT : PLAN_ORDER_NOW;
}

uint32_t plan_order_flush(const struct plan_order_in *in, const struct plan_wait *wait)
{
    uint32_t lanes = 0;
    if (in->drain || (in->faults & PLAN_FAULT_FLUSH))
        return 0;
    for (unsigned k = 0; k < in->lanes; k++)
        lanes |= (uint32_t)(in->counts->flushed[k] < wait->count[k] && !(in->dead >> k & 1)) << k;
    return lanes;
}
