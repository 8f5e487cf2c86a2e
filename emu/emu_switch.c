/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_switch.c - where packets meet: the switch of a plane and the receiving side of its ports. A port takes packets at its
 * own rate; what comes faster waits in the buffer that all ports of the plane share. Cut-through: a packet into an idle
 * port waits for nothing.
 *
 * No room: the packet stays on the wire and its source port is paused, with everything behind it (priority flow control on
 * one class), until there is; or it is dropped (loss=tail). What was on its way already is held in order, as a switch's
 * headroom does it. Called by emu_link.c; next: emu_pause.c (who waits), the queue pair's receive function.
 */
#include "emu_ud.h"

#include <stdlib.h>

static struct emu_switch *emu_switch_of(const struct emu_port *p)
{
    return &p->dev->fabric->plane[p->plane];
}

static uint64_t emu_switch_now(const struct emu_port *p)
{
    return p->dev->fabric->clock->now(p->dev->fabric);
}

static void emu_switch_trace(struct emu_fabric *f, const struct emu_pkt *p)
{
    uint64_t words[3] = {f->clock->now(f), ((uint64_t)p->dst->index << 32) | p->dst_qpn,
                         ((uint64_t)p->op << 32) | p->psn};

    for (int i = 0; i < 3; i++)
        f->trace = (f->trace ^ words[i]) * 1099511628211u;
}

static void emu_switch_deliver(struct emu_pkt *p)
{
    struct emu_port *dst = p->dst;
    struct emu_fabric *f = dst->dev->fabric;
    struct emu_qp *qp = emu_map_get(&dst->dev->qps, p->dst_qpn);

    dst->wire_rx += p->wire_bytes;
    dst->rx_payload += emu_pkt_payload(p);
    emu_switch_trace(f, p);
    /* A packet for a QP that is gone, or from somebody it is not connected to, finds nobody (IBA 9.6). */
    if (qp && p->op == EMU_OP_DATAGRAM) {
        if (emu_ud_is(qp))
            emu_ud_receive(qp, p);
    } else if (qp && qp->peer && qp->peer->dev == p->src->dev) {
        if (p->op == EMU_OP_READ_RESPONSE || p->op == EMU_OP_ATOMIC_RESPONSE || p->op == EMU_OP_ACK ||
            p->op == EMU_OP_NAK)
            emu_req_receive(qp, p);
        else
            emu_resp_receive(qp, p);
    }
    emu_pkt_free(f, p);
}

static void emu_switch_lose(struct emu_pkt *p)
{
    p->src->lost++;
    emu_pkt_free(p->src->dev->fabric, p);
}

/* ---- lists of packets ---------------------------------------------------------------------------------------------- */

static void emu_switch_append(struct emu_pkt_list *l, struct emu_pkt *p)
{
    p->next = NULL;
    if (l->head)
        l->last->next = p;
    else
        l->head = p;
    l->last = p;
}

static struct emu_pkt *emu_switch_take(struct emu_pkt_list *l)
{
    struct emu_pkt *p = l->head;

    l->head = p->next;
    return p;
}

/* ---- waiting for a port --------------------------------------------------------------------------------------------- */

/**
 * The port begins to take a packet now, or has just taken it if it was idle: when it is in memory. The slot may hold it
 * up, and with it what waits behind.
 */
static uint64_t emu_switch_begin(struct emu_port *dst, const struct emu_pkt *p)
{
    uint64_t now = emu_switch_now(dst), time = emu_link_time(dst, p->wire_bytes), done = dst->rx_free + time;
    const struct emu_spec *spec = &dst->dev->fabric->spec;

    done = done > now ? done : now;
    if (dst->dev->fabric->wire) /* a packet that comes late was on its way in time: the rate does not suffer */
        done = dst->dev->fabric->wire->receive(dst, p->arrival, time);
    if (spec->pcie_bits || spec->gpu_bits) {
        uint64_t through =
            emu_bus_through(dst, emu_map_get(&dst->dev->qps, p->dst_qpn), EMU_IN, done - time, emu_pkt_payload(p));

        done = through > done ? through : done;
    }
    dst->rx_free = done;
    return done;
}

static void emu_switch_serve_until(struct emu_port *dst, uint64_t done)
{
    struct emu_fabric *f = dst->dev->fabric;

    f->clock->at(f, done, emu_switch_served, dst, ++dst->rx_gen);
}

/** Begins to take the first packet that waits. */
static void emu_switch_serve(struct emu_port *dst)
{
    if (dst->rx.head && !dst->stalled)
        emu_switch_serve_until(dst, emu_switch_begin(dst, dst->rx.head));
}

static void emu_switch_queue(struct emu_pkt *p)
{
    struct emu_port *dst = p->dst;
    struct emu_switch *sw = emu_switch_of(dst);

    sw->used += p->wire_bytes;
    sw->peak = sw->used > sw->peak ? sw->used : sw->peak;
    dst->rx_bytes += p->wire_bytes;
    dst->rx_peak = dst->rx_bytes > dst->rx_peak ? dst->rx_bytes : dst->rx_peak;
    emu_switch_append(&dst->rx, p);
}

static struct emu_pkt *emu_switch_dequeue(struct emu_port *dst)
{
    struct emu_pkt *p = emu_switch_take(&dst->rx);

    emu_switch_of(dst)->used -= p->wire_bytes;
    dst->rx_bytes -= p->wire_bytes;
    return p;
}

/** A packet into an idle port: often it is through at once. */
static void emu_switch_pass(struct emu_pkt *p)
{
    struct emu_port *dst = p->dst;
    uint64_t done = emu_switch_begin(dst, p);

    if (done <= emu_switch_now(dst)) {
        emu_switch_deliver(p);
        return;
    }
    emu_switch_queue(p);
    emu_switch_serve_until(dst, done);
}

/** Lets a packet in: to its port, into the buffer, or, where that is what happens, out of the world. False: no room. */
static bool emu_switch_enter(struct emu_pkt *p)
{
    struct emu_port *dst = p->dst;
    const struct emu_spec *spec = &dst->dev->fabric->spec;

    if (!dst->up) {
        emu_switch_lose(p);
    } else if (!dst->rx.head && !dst->stalled) {
        emu_switch_pass(p);
    } else if (emu_switch_of(dst)->used + p->wire_bytes <= spec->buffer_bytes) {
        emu_switch_queue(p);
    } else if (spec->loss_tail) {
        dst->dropped++;
        emu_switch_lose(p);
    } else {
        return false;
    }
    return true;
}

/* ---- pauses --------------------------------------------------------------------------------------------------------- */

static void emu_switch_resume(struct emu_port *src)
{
    src->paused_ns += emu_switch_now(src) - src->paused_at;
    emu_link_resume(src);
}

/** Whether a port takes a packet now, or loses it, without a place in the buffer. */
static bool emu_switch_takes(const struct emu_port *dst)
{
    return !dst->up || (!dst->rx.head && !dst->stalled);
}

/** Notes that a port may take a packet that waits for it. */
static void emu_switch_open(struct emu_port *dst)
{
    struct emu_switch *sw = emu_switch_of(dst);

    if (dst->in_open || !dst->wanted.head || !emu_switch_takes(dst))
        return;
    dst->in_open = true;
    dst->open_next = sw->open;
    sw->open = dst;
}

/** The next paused port, of those numbered below end, whose first packet emu_switch_enter() takes; or NULL. */
static struct emu_port *emu_switch_next(struct emu_switch *sw, uint64_t buffer, uint64_t end)
{
    struct emu_port **at = &sw->open, *found = NULL, *fits;

    while (*at) {
        struct emu_port *dst = *at, *src = dst->wanted.head;

        if (!src || !emu_switch_takes(dst)) {
            *at = dst->open_next;
            dst->in_open = false;
            continue;
        }
        if (src->paused.number < end) {
            found = src;
            end = src->paused.number;
        }
        at = &dst->open_next;
    }
    fits = emu_pause_next(&sw->pause, sw->used < buffer ? buffer - sw->used : 0, end);
    return fits ? fits : found;
}

/** One packet of each paused port, if there is room for it; who got none stays in front. True if any entered. */
static bool emu_switch_round(struct emu_switch *sw, uint64_t buffer)
{
    uint64_t end = sw->pause.number;
    struct emu_port *src;
    bool entered = false;

    while ((src = emu_switch_next(sw, buffer, end))) {
        struct emu_pkt *p = src->held.head, *rest = p->next;

        emu_pause_remove(&sw->pause, src);
        if (!emu_switch_enter(p))
            abort(); /* it has been asked for */
        entered = true;
        src->held.head = rest;
        if (rest) {
            emu_pause_add(&sw->pause, src);
            emu_switch_open(rest->dst);
        } else {
            emu_switch_resume(src);
        }
    }
    return entered;
}

/** Something has changed at a port: what could not enter may do so now. */
static void emu_switch_admit(struct emu_port *dst)
{
    struct emu_switch *sw = emu_switch_of(dst);

    emu_switch_open(dst);
    while (sw->pause.count && emu_switch_round(sw, dst->dev->fabric->spec.buffer_bytes))
        ;
}

/* ---- what happens ---------------------------------------------------------------------------------------------------- */

void emu_switch_served(void *obj, uint64_t gen)
{
    struct emu_port *dst = obj;
    struct emu_pkt *p;

    if (gen != dst->rx_gen)
        return; /* stalled or down since */
    p = emu_switch_dequeue(dst);
    emu_switch_serve(dst);
    emu_switch_deliver(p);
    emu_switch_admit(dst);
}

void emu_switch_arrive(void *obj, uint64_t arg)
{
    struct emu_pkt *p = obj;
    struct emu_port *src = p->src;

    (void)arg;
    if (!src->held.head && emu_switch_enter(p))
        return;
    emu_switch_append(&src->held, p);
    if (src->held.head != p)
        return;
    src->pauses++;
    src->paused_at = emu_switch_now(src);
    emu_pause_add(&emu_switch_of(src)->pause, src);
}

void emu_switch_changed(struct emu_port *dst)
{
    dst->rx_gen++; /* what it was taking it has not taken */
    while (!dst->up && dst->rx.head)
        emu_switch_lose(emu_switch_dequeue(dst));
    dst->rx_free = emu_switch_now(dst);
    emu_switch_serve(dst);
    emu_switch_admit(dst);
}
