/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_order.c - when an op that must follow others may be posted: after what it follows is visible at the target.
 * May not post or wait; it answers. docs/ordering.md argues why the answer is right.
 * Called by src/api/api_order.c and api_bulk.c, at issue and again whenever a count has moved.
 */
#include "plan.h"

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

void plan_order_mark(const struct plan_order_in *in, unsigned lane, enum plan_word word, struct plan_wait *out)
{
    bool own = plan_order_own(in, word);
    bool others = word == PLAN_WORD_GATE || !(in->faults & PLAN_FAULT_DEFER);
    for (unsigned k = 0; k < in->lanes; k++)
        out->count[k] = others ? in->counts->posted[k] : 0;
    if (lane < in->lanes)
        out->count[lane] = own ? in->counts->posted[lane] : 0;
    out->count[PLAN_MESSAGE] = others && plan_order_answers(in, word) ? in->counts->posted[PLAN_MESSAGE] : 0;
}

void plan_order_raise(const struct plan_order_in *in, unsigned lane, enum plan_word word, const uint64_t *last,
                      struct plan_wait *wait)
{
    bool own = plan_order_own(in, word), others = !(in->faults & PLAN_FAULT_DEFER);
    for (unsigned k = 0; k < in->lanes; k++) {
        if (k == lane ? own : others)
            wait->count[k] = max_u64(wait->count[k], last[k]);
    }
    if (others && plan_order_answers(in, word))
        wait->count[PLAN_MESSAGE] = max_u64(wait->count[PLAN_MESSAGE], last[PLAN_MESSAGE]);
}

enum plan_order plan_order(const struct plan_order_in *in, unsigned lane, const struct plan_wait *wait)
{
    const uint64_t *visible = plan_order_visible(in);
    bool gate = lane >= in->lanes, waiting = false, lost = false;
    if (!plan_order_lossy(in)) { /* nothing is lost, which is nearly always so */
        waiting = visible[PLAN_MESSAGE] < wait->count[PLAN_MESSAGE];
        for (unsigned k = 0; k < in->lanes; k++)
            waiting |= visible[k] < wait->count[k];
        return waiting ? PLAN_ORDER_WAIT : PLAN_ORDER_NOW;
    }
    if (!gate && (in->dead >> lane & 1))
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

uint32_t plan_order_flush_all(const struct plan_order_in *in)
{
    const struct plan_counts *c = in->counts;
    uint32_t lanes = 0;
    if (in->faults & PLAN_FAULT_FLUSH)
        return 0;
    for (unsigned k = 0; k < in->lanes; k++)
        lanes |= (uint32_t)(c->flushed[k] < c->posted[k]) << k;
    return lanes & ~(uint32_t)in->dead;
}

uint32_t plan_order_flush(const struct plan_order_in *in, const struct plan_wait *wait)
{
    uint32_t lanes = 0;
    if (in->drain || (in->faults & PLAN_FAULT_FLUSH))
        return 0;
    for (unsigned k = 0; k < in->lanes; k++)
        lanes |= (uint32_t)(in->counts->flushed[k] < wait->count[k]) << k;
    return lanes & ~(uint32_t)in->dead;
}
