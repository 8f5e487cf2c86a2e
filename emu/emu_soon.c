/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_soon.c - fetches what the next events will look at. In a large simulation nothing is in the cache when its turn comes: a
 * thousand ports and their queue pairs come between. But the next nanoseconds' events are known, so each is seen three times
 * before it happens, and each time a pointer further is known: the packet or port; what it goes to; the queue pair's rings.
 * It may only look, never change. Called by emu_sim.c; next: nothing.
 */
#include "emu_soon.h"

#include "emu_sim_int.h"

enum { EMU_SOON_LINE = 64, EMU_SOON_QP_BYTES = 448, EMU_SOON_PKT_BYTES = 192 };

static void emu_soon_bytes(const void *from, size_t len)
{
    for (size_t at = 0; at < len; at += EMU_SOON_LINE)
        __builtin_prefetch((const char *)from + at);
}

static void emu_soon_qp(const struct emu_qp *qp)
{
    if (!qp)
        return;
    __builtin_prefetch(qp);
    emu_soon_bytes(&qp->port, EMU_SOON_QP_BYTES);
}

static void emu_soon_wqe(const struct emu_qp *qp)
{
    if (qp && qp->sq_room)
        emu_soon_bytes(emu_wqe_at(qp, qp->sq_nxt), 2 * EMU_SOON_LINE);
}

static void emu_soon_pe(const struct emu_pe *pe)
{
    if (pe->sim->task->soon && pe->task)
        pe->sim->task->soon(pe->task);
}

/** First: what the event is about. */
static void emu_soon_first(const struct emu_wheel_event *e)
{
    if (e->fn == emu_switch_arrive)
        emu_soon_bytes(e->obj, EMU_SOON_PKT_BYTES);
    else if (e->fn == emu_link_sent || e->fn == emu_switch_served)
        emu_soon_bytes(e->obj, sizeof(struct emu_port));
    else if (e->fn == emu_sim_turn)
        emu_soon_bytes(e->obj, sizeof(struct emu_pe));
}

/** Then: what that leads to. */
static void emu_soon_second(const struct emu_wheel_event *e)
{
    if (e->fn == emu_switch_arrive) {
        const struct emu_pkt *p = e->obj;

        emu_soon_bytes(p->dst, sizeof(*p->dst));
        emu_map_soon(&p->dst->dev->qps, p->dst_qpn);
    } else if (e->fn == emu_link_sent) {
        emu_soon_qp(((const struct emu_port *)e->obj)->ready_head);
    } else if (e->fn == emu_switch_served) {
        emu_soon_bytes(((const struct emu_port *)e->obj)->rx.head, EMU_SOON_PKT_BYTES);
    } else if (e->fn == emu_sim_turn) {
        emu_soon_pe(e->obj);
    }
}

/** And then. */
static void emu_soon_third(const struct emu_wheel_event *e)
{
    const struct emu_pkt *p = NULL;

    if (e->fn == emu_switch_arrive)
        p = e->obj;
    else if (e->fn == emu_switch_served)
        p = ((const struct emu_port *)e->obj)->rx.head;
    else if (e->fn == emu_link_sent)
        emu_soon_wqe(((const struct emu_port *)e->obj)->ready_head);
    if (p)
        emu_soon_qp(emu_map_get(&p->dst->dev->qps, p->dst_qpn));
}

void emu_soon_fetch(const struct emu_wheel *w, uint64_t t)
{
    t = emu_wheel_after(w, t);
    emu_wheel_each(w, t, emu_soon_third);
    t = emu_wheel_after(w, t);
    emu_wheel_each(w, t, emu_soon_second);
    t = emu_wheel_after(w, t);
    emu_wheel_each(w, t, emu_soon_first);
}
