/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_carry.c - what passes between the processes of a fabric in real time: packets, changes of ports, counters. A queue
 * pair's number says which member has it, so packets need no directory; one whose member is gone finds nobody, as on a wire.
 * Called by emu_link.c and emu_switch.c (struct emu_wire) and by emu_real.c; next: emu_ring.c, and emu_switch.c at arrival.
 */
#include "emu_real.h"
#include "emu_lag.h"

#include <errno.h>
#include <string.h>

/** A packet in a ring; its payload follows. Pointers in pkt mean nothing there. */
struct emu_record {
    uint64_t arrival;
    uint32_t src, dst; /* ports */
    struct emu_pkt pkt;
};

static struct emu_real *emu_carry_real(const struct emu_port *p)
{
    return (struct emu_real *)p->dev->fabric;
}

/* ---- out ------------------------------------------------------------------------------------------------------------------ */

static uint64_t emu_carry_send(struct emu_port *p, uint64_t start, uint64_t time)
{
    return emu_meet_reserve(&emu_carry_real(p)->meet.port[p->index].tx_free, start, time, 0);
}

static uint64_t emu_carry_receive(struct emu_port *p, uint64_t arrival, uint64_t time)
{
    return emu_meet_reserve(&emu_carry_real(p)->meet.port[p->index].rx_free, 0, time, arrival);
}

static enum emu_carried emu_carry_carry(struct emu_pkt *p, uint64_t arrival)
{
    struct emu_real *r = emu_carry_real(p->src);
    int to = (int)(p->dst_qpn & r->fabric.qpn_mask), self = r->meet.self;
    struct emu_meet_member *member = &r->meet.page->member[to];
    struct emu_record rec = {.arrival = arrival, .src = (uint32_t)p->src->index, .dst = (uint32_t)p->dst->index};
    uint64_t bit = 1ull << self;

    if (to == self)
        return EMU_CARRY_OURS;
    if (r->meet.fd < 0)
        return EMU_CARRY_NOBODY;                         /* the process ends; its rings may be another's already */
    emu_payload_make_bytes(&p->payload, p->payload.len); /* patterns are known to this process alone */
    rec.pkt = *p;
    if (!emu_ring_put(&r->meet.ring[self * EMU_MEET_MEMBERS + to], &rec, sizeof(rec), p->payload.bytes, p->payload.len))
        return emu_meet_alive(&r->meet, to) ? EMU_CARRY_FULL : EMU_CARRY_NOBODY;
    if (!(__atomic_fetch_or(&member->pending, bit, __ATOMIC_SEQ_CST) & bit))
        emu_meet_ring(&r->meet, to, false);
    return EMU_CARRY_TAKEN;
}

const struct emu_wire emu_carry_wire = {
    .send = emu_carry_send,
    .receive = emu_carry_receive,
    .carry = emu_carry_carry,
};

/* ---- in ------------------------------------------------------------------------------------------------------------------- */

static void emu_carry_arrived(void *obj, uint64_t arg)
{
    struct emu_pkt *p = obj;

    emu_carry_real(p->src)->pulled--;
    emu_switch_arrive(p, arg);
}

/** Makes a packet of a record; nothing where the record makes no sense. */
static void emu_carry_take(struct emu_real *r, const struct emu_record *rec, uint32_t len)
{
    struct emu_fabric *f = &r->fabric;
    struct emu_pkt *p, *made_before;
    unsigned char *bytes;
    uint32_t wires = (uint32_t)emu_lag_wires(&f->spec);

    if (len < sizeof(*rec) || rec->src >= wires || rec->dst >= wires || rec->pkt.payload.len != len - sizeof(*rec) ||
        rec->pkt.payload.len > EMU_PAYLOAD_ROOM)
        return;
    p = emu_pkt_alloc(f, rec->pkt.payload.len);
    if (!p)
        return; /* as if lost */
    made_before = p->made_before;
    bytes = p->payload.bytes;
    *p = rec->pkt;
    p->next = NULL;
    p->made_before = made_before;
    p->holds = 0;
    p->arrival = rec->arrival;
    p->src = emu_lag_port(f, (int)rec->src);
    p->dst = emu_lag_port(f, (int)rec->dst);
    p->payload.runs = 0;
    p->payload.bytes = bytes;
    if (bytes)
        memcpy(bytes, rec + 1, p->payload.len);
    r->pulled++;
    r->large += p->payload.len >= EMU_REAL_LARGE;
    f->clock->at(f, rec->arrival, emu_carry_arrived, p, 0);
}

/** A full switch takes nothing: packets wait in the rings, and then at the ports that send them. */
static bool emu_carry_room(const struct emu_real *r)
{
    if (r->pulled >= EMU_REAL_PULLED)
        return false;
    for (int i = 0; i < r->fabric.spec.planes && !r->fabric.spec.loss_tail; i++) {
        if (r->fabric.plane[i].used >= r->fabric.spec.buffer_bytes)
            return false;
    }
    return true;
}

void emu_carry_pull(struct emu_real *r)
{
    struct emu_meet_member *self = &r->meet.page->member[r->meet.self];
    uint64_t todo = r->left;

    if (r->meet.fd < 0)
        return;
    if (__atomic_load_n(&self->pending, __ATOMIC_SEQ_CST))
        todo |= __atomic_exchange_n(&self->pending, 0, __ATOMIC_SEQ_CST);
    while (todo && emu_carry_room(r)) {
        int from = __builtin_ctzll(todo);
        struct emu_ring *ring = &r->meet.ring[from * EMU_MEET_MEMBERS + r->meet.self];
        const struct emu_record *rec;
        uint32_t len;

        rec = emu_ring_peek(ring, &len);
        if (!rec) {
            todo &= todo - 1;
            continue;
        }
        emu_carry_take(r, rec, len);
        emu_ring_pop(ring, len);
    }
    r->left = todo;
}

/* ---- changes -------------------------------------------------------------------------------------------------------------- */

static void emu_carry_apply(struct emu_real *r, int i)
{
    const struct emu_meet_port *shared = &r->meet.port[i];
    struct emu_port *p = emu_lag_port(&r->fabric, i);
    struct emu_dev *d = p->dev;
    struct emu_change c = {.port = {d->host, (int)(d - r->fabric.devs) % r->fabric.per_host, p->wire + 1}};

    p->slow = shared->slow;
    p->loss = shared->loss;
    p->delay_ns = shared->delay_ns;
    c.kind = shared->down ? EMU_CHANGE_DOWN : EMU_CHANGE_UP;
    emu_fabric_apply(&r->fabric, &c);
    c.kind = EMU_CHANGE_STALL;
    if (shared->stalled)
        emu_fabric_apply(&r->fabric, &c);
}

void emu_carry_changes(struct emu_real *r)
{
    uint32_t all = __atomic_load_n(&r->meet.page->changed, __ATOMIC_ACQUIRE);

    if (all == r->changes_seen)
        return;
    r->changes_seen = all;
    for (int i = 0; i < emu_lag_wires(&r->fabric.spec); i++) {
        uint32_t now = __atomic_load_n(&r->meet.port[i].changed, __ATOMIC_ACQUIRE);

        if (now == r->port_seen[i])
            continue;
        r->port_seen[i] = now;
        emu_carry_apply(r, i);
    }
}

/** The first process that sees the time come changes the port for all. */
static void emu_carry_timed(void *obj, uint64_t i)
{
    struct emu_real *r = obj;
    const struct emu_change *c = &r->fabric.spec.change[i];
    uint64_t bit = 1ull << i;

    if (!(__atomic_fetch_or(&r->meet.page->done, bit, __ATOMIC_SEQ_CST) & bit))
        emu_meet_change(&r->meet, &r->fabric.spec, c);
    emu_carry_changes(r);
}

void emu_carry_schedule(struct emu_real *r)
{
    for (int i = 0; i < r->fabric.spec.n_changes; i++)
        r->fabric.clock->at(&r->fabric, r->meet.page->started + r->fabric.spec.change[i].at_ns, emu_carry_timed, r,
                            (uint64_t)i);
}

void emu_carry_count(struct emu_real *r)
{
    for (int i = 0; i < emu_lag_wires(&r->fabric.spec); i++) {
        const struct emu_port *p = emu_lag_port(&r->fabric, i);
        uint64_t now[EMU_MEET_COUNTERS] = {p->tx_payload, p->rx_payload, p->wire_tx, p->wire_rx, p->lost, p->dropped};

        for (int k = 0; k < EMU_MEET_COUNTERS; k++) {
            if (now[k] == r->counted[i][k])
                continue;
            __atomic_fetch_add(&r->meet.port[i].count[k], now[k] - r->counted[i][k], __ATOMIC_RELAXED);
            r->counted[i][k] = now[k];
        }
    }
}
