/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_link.c - ports and wires: who sends next, how long a packet takes, whether and when it gets to the switch. One packet
 * is on a port's transmitter at a time; acknowledgements go first, QPs with data take turns, a packet each. A port that the
 * switch has paused sends nothing.
 *
 * Knows packets and QPs' "next packet", not what is in them. Called by emu_req.c and emu_resp.c (kick); next: emu_switch.c
 * at the other end of the wire.
 */
#include "emu.h"

enum { EMU_LINK_AGAIN_NS = 20000 }; /* between two attempts to hand over a packet that finds no room */

static void emu_link_start(struct emu_port *port, uint64_t from);
static uint64_t emu_link_now(const struct emu_port *port);

static uint64_t emu_link_now(const struct emu_port *port)
{
    return port->dev->fabric->clock->now(port->dev->fabric);
}

uint64_t emu_link_time(const struct emu_port *p, uint32_t wire_bytes)
{
    double ns = (double)wire_bytes * 8e9 / ((double)p->rate_bits * p->slow);

    return (uint64_t)(ns + 0.5);
}

/** A packet goes where it is taken at its arrival: here or in another process. False: that has no room for it now. */
static bool emu_link_hand_over(struct emu_port *src, struct emu_pkt *p, uint64_t arrival)
{
    struct emu_fabric *f = src->dev->fabric;
    enum emu_carried how = f->wire ? f->wire->carry(p, arrival) : EMU_CARRY_OURS;

    if (how == EMU_CARRY_FULL)
        return false;
    if (how == EMU_CARRY_OURS) {
        p->arrival = arrival;
        f->clock->at(f, arrival, emu_switch_arrive, p, 0);
        return true;
    }
    src->lost += how == EMU_CARRY_NOBODY;
    emu_pkt_free(f, p);
    return true;
}

/** The packet's last bit has left src at time t: it travels, or is lost. */
static void emu_link_travel(struct emu_port *src, struct emu_pkt *p, uint64_t t)
{
    struct emu_fabric *f = src->dev->fabric;
    uint64_t *last = &src->last_arrival[p->dst->index];
    uint64_t arrival = t + f->spec.latency_ns + src->delay_ns + p->dst->delay_ns;

    src->wire_tx += p->wire_bytes;
    src->tx_payload += emu_pkt_payload(p);
    if (!src->up || src->plane != p->dst->plane || (src->loss > 0 && emu_rng_unit(&f->rng) < src->loss)) {
        src->lost++;
        emu_pkt_free(f, p);
        return;
    }
    if (f->spec.jitter_ns)
        arrival += emu_rng_below(&f->rng, f->spec.jitter_ns + 1);
    if (arrival < *last) /* jitter moves a path as a whole: no packet overtakes another on it */
        arrival = *last;
    *last = arrival;
    if (!emu_link_hand_over(src, p, arrival)) {
        src->stuck = p;
        src->stuck_arrival = arrival;
    }
}

void emu_link_sent(void *obj, uint64_t arg)
{
    struct emu_port *port = obj;
    struct emu_fabric *f = port->dev->fabric;
    uint64_t now = f->clock->now(f);

    (void)arg;
    if (port->stuck && !emu_link_hand_over(port, port->stuck, port->stuck_arrival)) {
        f->clock->at(f, now + EMU_LINK_AGAIN_NS, emu_link_sent, port, 0);
        return;
    }
    port->stuck = NULL;
    port->tx_busy = false;
    /* What waits has waited since then, however late we are. */
    emu_link_start(port, now - port->tx_end < EMU_LATE_NS ? port->tx_end : now);
}

static struct emu_pkt *emu_link_next_of(struct emu_qp *qp)
{
    struct emu_pkt *p;

    /* Requests and responses of one QP take turns, so that neither direction starves. */
    qp->reply_turn = !qp->reply_turn;
    p = qp->reply_turn ? emu_reply_next(qp) : emu_req_next(qp);
    if (!p)
        p = qp->reply_turn ? emu_req_next(qp) : emu_reply_next(qp);
    return p;
}

static struct emu_qp *emu_link_pop(struct emu_port *port)
{
    struct emu_qp *qp = port->ready_head;

    if (qp) {
        port->ready_head = qp->line_next;
        if (!port->ready_head)
            port->ready_tail = NULL;
        qp->line_next = NULL;
        qp->in_line = false;
    }
    return qp;
}

static void emu_link_push(struct emu_port *port, struct emu_qp *qp)
{
    qp->in_line = true;
    qp->line_next = NULL;
    if (port->ready_tail)
        port->ready_tail->line_next = qp;
    else
        port->ready_head = qp;
    port->ready_tail = qp;
}

static struct emu_pkt *emu_link_pop_ctl(struct emu_port *port)
{
    struct emu_pkt *p = port->ctl_head;

    if (p) {
        port->ctl_head = p->next;
        if (!port->ctl_head)
            port->ctl_tail = &port->ctl_head;
    }
    return p;
}

/** What leaves next, and the queue pair whose data it is. A queue pair that is asked may send a NAK instead of what it had: acknowledgements are looked at anew. */
static struct emu_pkt *emu_link_choose(struct emu_port *port, struct emu_qp **from)
{
    for (;;) {
        struct emu_pkt *p = emu_link_pop_ctl(port);
        struct emu_qp *qp;

        *from = NULL;
        if (p)
            return p;
        qp = emu_link_pop(port);
        if (!qp)
            return NULL;
        p = emu_link_next_of(qp);
        if (p) {
            emu_link_push(port, qp);
            *from = qp;
            return p;
        }
    }
}

static void emu_link_due(void *obj, uint64_t arg)
{
    struct emu_port *port = obj;

    (void)arg;
    port->start_due = false;
    emu_link_start(port, emu_link_now(port));
}

/** This thread may not move data: the engine's does, now. */
static void emu_link_later(struct emu_port *port)
{
    struct emu_fabric *f = port->dev->fabric;

    if (!port->start_due)
        f->clock->at(f, f->clock->now(f), emu_link_due, port, 0);
    port->start_due = true;
}

/** The port's transmitter is free since `from`: begins the next packet. */
static void emu_link_start(struct emu_port *port, uint64_t from)
{
    struct emu_fabric *f = port->dev->fabric;
    struct emu_pkt *p;
    struct emu_qp *qp;
    uint64_t t, through;

    if (port->tx_busy || port->held.head)
        return;
    if (f->gpu_mrs && f->clock->elsewhere && f->clock->elsewhere(f)) {
        emu_link_later(port);
        return;
    }
    port->tx_busy = true; /* before choosing: what is chosen from may want to send and come back here */
    p = emu_link_choose(port, &qp);
    if (!p) {
        port->tx_busy = false;
        return;
    }
    t = emu_link_time(port, p->wire_bytes);
    t = f->wire ? f->wire->send(port, from, t) : from + t;
    through = emu_bus_through(port, qp, EMU_OUT, from, emu_pkt_payload(p));
    t = through > t ? through : t;
    port->tx_end = t;
    f->clock->at(f, t, emu_link_sent, port, 0);
    emu_link_travel(port, p, t);
}

void emu_link_resume(struct emu_port *port)
{
    emu_link_start(port, emu_link_now(port));
}

void emu_link_kick(struct emu_qp *qp)
{
    if (!qp->in_line && (emu_req_wants(qp) || qp->reply_count))
        emu_link_push(qp->port, qp);
    emu_link_start(qp->port, emu_link_now(qp->port));
}

void emu_link_forget(struct emu_qp *qp)
{
    struct emu_port *port = qp->port;
    struct emu_qp **at, *last = NULL;

    if (!qp->in_line)
        return;
    for (at = &port->ready_head; *at != qp; at = &(*at)->line_next)
        last = *at;
    *at = qp->line_next;
    if (port->ready_tail == qp)
        port->ready_tail = last;
    qp->in_line = false;
    qp->line_next = NULL;
}

void emu_link_send_ctl(struct emu_port *port, struct emu_pkt *p)
{
    p->next = NULL;
    *port->ctl_tail = p;
    port->ctl_tail = &p->next;
    emu_link_start(port, emu_link_now(port));
}
