/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_reply.c - what a responder still has to say, in PSN order (IBA 9.7.5): READ data, atomics' old values,
 * acknowledgements and refusals that stand behind them or, with unkind=, behind bytes that are not visible yet.
 * Called by emu_resp.c (takes requests), emu_store.c (atomics) and emu_link.c (sends); next: emu_mr.c, emu_link.c.
 */
#include "emu_ahead.h"
#include "emu_gpu.h"
#include "emu_lag.h"
#include "emu_unkind.h"

#include <stdlib.h>
#include <string.h>

enum { EMU_REPLY_ROOM = 2 }; /* a queue pair's first ring */

/** After a refusal that is final: the event, if there is one, and the end of the queue pair (IBA 9.9.3). */
static void emu_reply_end(struct emu_qp *qp, int event)
{
    if (event != EMU_NO_EVENT)
        emu_event_raise_qp(qp, (enum ibv_event_type)event);
    emu_qp_to_error(qp);
}

/** An answer says that all before it is in memory. Where a GPU has failed nobody can say so: the queue pair ends. */
static bool emu_reply_may_leave(struct emu_qp *qp)
{
    if (emu_gpu_settle())
        return true;
    if (qp->ibv.state != IBV_QPS_ERR)
        emu_reply_end(qp, IBV_EVENT_QP_FATAL);
    return false;
}

static void emu_reply_send_ctl(struct emu_qp *qp, enum emu_op op, uint32_t psn, enum emu_nak nak)
{
    struct emu_fabric *f = qp->ctx->dev->fabric;
    bool hold = f->unsaid || emu_gpu_unsettled();
    struct emu_pkt *p;

    if (!hold && !emu_reply_may_leave(qp))
        return;
    p = emu_pkt_alloc(f, 0);
    if (!p)
        return; /* as if lost: the requester asks again */
    p->src = qp->port;
    p->dst = emu_lag_toward(qp, qp->peer);
    p->dst_qpn = qp->attr.dest_qp_num;
    p->op = op;
    p->psn = psn;
    p->nak = nak;
    p->rnr_timer = qp->attr.min_rnr_timer;
    p->wire_bytes = EMU_FRAME_OVERHEAD + 4; /* AETH */
    if (!hold) {
        emu_link_send_ctl(qp->port, p);
        return;
    }
    p->next = NULL;
    *(f->unsaid ? f->unsaid_tail : &f->unsaid) = p;
    f->unsaid_tail = &p->next;
}

void emu_reply_say(struct emu_fabric *f)
{
    while (f->unsaid) { /* sending may leave more to be said */
        struct emu_pkt *p = f->unsaid, *next;
        bool there = emu_gpu_settle();

        f->unsaid = NULL;
        for (; p; p = next) {
            next = p->next;
            if (there)
                emu_link_send_ctl(p->src, p);
            else
                emu_pkt_free(f, p); /* asked again, the queue pair ends */
        }
    }
}

static struct emu_reply *emu_reply_at(const struct emu_qp *qp, uint32_t i)
{
    return &qp->reply[(qp->reply_head + i) & (qp->reply_room - 1u)];
}

static void emu_reply_pop(struct emu_qp *qp)
{
    qp->reply_head = --qp->reply_count ? qp->reply_head + 1 : 0;
}

/** Adds an answer at the end. Without memory it is as if lost: the requester asks again. */
static void emu_reply_append(struct emu_qp *qp, const struct emu_reply *r)
{
    uint32_t room = qp->reply_room ? 2 * qp->reply_room : EMU_REPLY_ROOM;

    if (qp->reply_count == qp->reply_room) {
        struct emu_reply *grown = malloc(room * sizeof(*grown));

        if (!grown)
            return;
        for (uint32_t i = 0; i < qp->reply_count; i++)
            grown[i] = *emu_reply_at(qp, i);
        free(qp->reply);
        qp->reply = grown;
        qp->reply_room = room;
        qp->reply_head = 0;
    }
    qp->reply_count++;
    *emu_reply_at(qp, qp->reply_count - 1) = *r;
}

/* ---- answers that have to wait (unkind= only) ----------------------------------------------------------------------- */

static uint64_t emu_reply_now(const struct emu_qp *qp)
{
    return qp->ctx->dev->fabric->clock->now(qp->ctx->dev->fabric);
}

static bool emu_reply_carries_data(const struct emu_reply *r)
{
    return r->kind == EMU_REPLY_READ || r->kind == EMU_REPLY_ATOMIC;
}

/** Whether the oldest answer may leave. */
static bool emu_reply_ready(const struct emu_qp *qp)
{
    const struct emu_reply *r = emu_reply_at(qp, 0);

    if (r->waits || qp->ctx->dev->fabric->spec.unkind == 0)
        return !r->waits;
    return r->due <= emu_reply_now(qp) &&
           (!emu_reply_carries_data(r) || r->sent || qp->store.next_answer <= emu_reply_now(qp));
}

/** Sends what may leave now: acknowledgements at once, data when the port is free. */
static void emu_reply_release(struct emu_qp *qp)
{
    while (qp->reply_count && emu_reply_at(qp, 0)->kind == EMU_REPLY_ACK && emu_reply_ready(qp)) {
        uint32_t psn = emu_reply_at(qp, 0)->psn;

        emu_reply_pop(qp);
        emu_reply_send_ctl(qp, EMU_OP_ACK, psn, EMU_NAK_SEQUENCE);
    }
    if (qp->reply_count && emu_reply_ready(qp))
        emu_link_kick(qp);
}

static struct emu_qp *emu_reply_timer_qp(struct emu_dev *d, uint64_t arg)
{
    struct emu_qp *qp = emu_map_get(&d->qps, (uint32_t)arg & EMU_PSN_MASK);

    return qp && qp->gen == (uint32_t)(arg >> 32) ? qp : NULL;
}

static void emu_reply_timer(void *obj, uint64_t arg)
{
    struct emu_qp *qp = emu_reply_timer_qp(obj, arg);

    if (qp)
        emu_reply_release(qp);
}

bool emu_reply_timer_void(emu_event_fn fn, void *obj, uint64_t arg)
{
    const struct emu_qp *qp = fn == emu_reply_timer ? emu_reply_timer_qp(obj, arg) : NULL;

    return fn == emu_reply_timer && (!qp || qp->reply_count == 0);
}

/** Looks at the answers again at time t. */
static void emu_reply_look_at(struct emu_qp *qp, uint64_t t)
{
    struct emu_dev *d = qp->ctx->dev;

    if (t > emu_reply_now(qp))
        d->fabric->clock->at(d->fabric, t, emu_reply_timer, d, ((uint64_t)qp->gen << 32) | qp->ibv.qp_num);
    else
        emu_reply_release(qp);
}

void emu_reply_executed(struct emu_qp *qp, uint32_t psn, uint64_t old, uint64_t t)
{
    for (uint32_t i = 0; i < qp->reply_count; i++) {
        struct emu_reply *r = emu_reply_at(qp, i);

        if (r->kind != EMU_REPLY_ATOMIC || !r->waits || r->psn != psn)
            continue;
        qp->atomic[qp->atomic_next++ % EMU_MAX_RD_ATOMIC] = (struct emu_atomic_done){true, psn, old};
        r->old = old;
        r->waits = false;
        r->due = t;
        emu_reply_look_at(qp, t > qp->store.next_answer ? t : qp->store.next_answer);
        return;
    }
}

/** unkind=rdstall: an answer has left; the next one has to wait. */
static void emu_reply_answered(struct emu_qp *qp)
{
    struct emu_fabric *f = qp->ctx->dev->fabric;

    if (!(f->spec.unkind & EMU_UNKIND_RDSTALL))
        return;
    qp->store.next_answer = emu_reply_now(qp) + emu_unkind_pause(&f->store.rng);
    if (qp->reply_count)
        emu_reply_look_at(qp, qp->store.next_answer);
}

/* ---- acknowledgements and refusals ------------------------------------------------------------------------------------- */

void emu_reply_ack(struct emu_qp *qp, uint32_t psn)
{
    uint64_t due = emu_store_ack_time(qp);
    struct emu_reply *last;

    if (qp->reply_count == 0 && due == 0) {
        emu_reply_send_ctl(qp, EMU_OP_ACK, psn, EMU_NAK_SEQUENCE);
        return;
    }
    last = qp->reply_count ? emu_reply_at(qp, qp->reply_count - 1) : NULL;
    if (last && last->kind == EMU_REPLY_ACK && (last->due >= due || qp->reply_count >= EMU_REPLIES / 2)) {
        last->psn = psn;
        last->due = last->due > due ? last->due : due;
    } else if (qp->reply_count < EMU_REPLIES) {
        emu_reply_append(qp, &(struct emu_reply){.kind = EMU_REPLY_ACK, .psn = psn, .due = due});
    }
    if (due)
        emu_reply_look_at(qp, due);
}

void emu_reply_nak(struct emu_qp *qp, enum emu_nak nak, int event)
{
    bool final = nak != EMU_NAK_RNR && nak != EMU_NAK_SEQUENCE;
    uint64_t due = emu_store_ack_time(qp); /* it acknowledges all before it */

    qp->nak_sent = true;
    if ((qp->reply_count || due) && qp->reply_count < EMU_REPLIES) {
        qp->refused = final;
        emu_reply_append(
            qp, &(struct emu_reply){.kind = EMU_REPLY_NAK, .psn = qp->epsn, .nak = nak, .event = event, .due = due});
        if (due)
            emu_reply_look_at(qp, due);
        return;
    }
    emu_reply_send_ctl(qp, EMU_OP_NAK, qp->epsn, nak);
    if (final)
        emu_reply_end(qp, event);
}

void emu_reply_refuse(struct emu_qp *qp, enum emu_nak nak)
{
    emu_reply_nak(qp, nak,
                  nak == EMU_NAK_ACCESS    ? (int)IBV_EVENT_QP_ACCESS_ERR
                  : nak == EMU_NAK_INVALID ? (int)IBV_EVENT_QP_REQ_ERR
                                           : EMU_NO_EVENT);
}

uint32_t emu_reply_answers_due(const struct emu_qp *qp)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < qp->reply_count; i++) {
        const struct emu_reply *r = emu_reply_at(qp, i);

        n += emu_reply_carries_data(r) && !r->again;
    }
    return n;
}

void emu_reply_push(struct emu_qp *qp, struct emu_reply r)
{
    if (r.again && qp->reply_count >= EMU_REPLIES / 2)
        return; /* repeated duplicates are asked again; half of the places stay for what is new */
    emu_reply_append(qp, &r);
    if (qp->ctx->dev->fabric->spec.unkind)
        emu_reply_look_at(qp, r.due > qp->store.next_answer ? r.due : qp->store.next_answer);
    else
        emu_link_kick(qp);
}

struct emu_reply emu_reply_to_read(struct emu_qp *qp, const struct emu_pkt *p)
{
    return (struct emu_reply){.kind = EMU_REPLY_READ,
                              .psn = p->psn,
                              .va = p->va,
                              .rkey = p->rkey,
                              .len = p->dma_len,
                              .due = emu_store_read_time(qp),
                              .after = qp->store.made};
}

/* ---- out ------------------------------------------------------------------------------------------------------- */

static struct emu_pkt *emu_reply_packet(struct emu_qp *qp, enum emu_op op, uint32_t psn, uint32_t len)
{
    struct emu_pkt *p = emu_pkt_alloc(qp->ctx->dev->fabric, len);

    if (!p)
        return NULL;
    p->src = qp->port;
    p->dst = emu_lag_toward(qp, qp->peer);
    p->dst_qpn = qp->attr.dest_qp_num;
    p->op = op;
    p->psn = psn & EMU_PSN_MASK;
    p->wire_bytes = EMU_FRAME_OVERHEAD + 4 + len; /* AETH */
    return p;
}

/** The memory of a READ is not there any more. */
static void emu_reply_gone(struct emu_qp *qp, const struct emu_reply *r)
{
    emu_reply_send_ctl(qp, EMU_OP_NAK, (r->psn + r->packets) & EMU_PSN_MASK, EMU_NAK_ACCESS);
    emu_reply_end(qp, IBV_EVENT_QP_ACCESS_ERR);
}

static struct emu_pkt *emu_reply_read_packet(struct emu_qp *qp, struct emu_reply *r)
{
    uint32_t left = r->len - r->sent, n = left < emu_qp_mtu(qp) ? left : emu_qp_mtu(qp);
    struct emu_mr *mr = n ? emu_mr_remote(qp, r->rkey, r->va + r->sent, n, IBV_ACCESS_REMOTE_READ) : NULL;
    struct emu_pkt *p;

    if (n && !mr) { /* deregistered half-way */
        emu_reply_gone(qp, r);
        return NULL;
    }
    p = emu_reply_packet(qp, EMU_OP_READ_RESPONSE, r->psn + r->packets, n);
    if (!p)
        return NULL;
    if (n) {
        emu_store_read(qp, r->after, mr, r->va + r->sent - mr->remote_base, n);
        if (!emu_ahead_read(qp, mr, r, &p->payload)) {
            emu_pkt_free(qp->ctx->dev->fabric, p);
            emu_reply_gone(qp, r);
            return NULL;
        }
    }
    r->sent += n;
    r->packets++;
    if (r->sent == r->len) {
        emu_reply_pop(qp);
        emu_reply_answered(qp);
    }
    return p;
}

static struct emu_pkt *emu_reply_atomic_packet(struct emu_qp *qp, const struct emu_reply *r)
{
    struct emu_pkt *p = emu_reply_packet(qp, EMU_OP_ATOMIC_RESPONSE, r->psn, sizeof(r->old));

    if (p)
        memcpy(p->payload.bytes, &r->old, sizeof(r->old));
    return p;
}

static struct emu_pkt *emu_reply_nak_packet(struct emu_qp *qp, const struct emu_reply *r)
{
    struct emu_pkt *p = emu_reply_packet(qp, EMU_OP_NAK, r->psn, 0);

    if (p) {
        p->nak = r->nak;
        p->rnr_timer = qp->attr.min_rnr_timer;
    }
    return p;
}

struct emu_pkt *emu_reply_next(struct emu_qp *qp)
{
    struct emu_reply r;
    struct emu_pkt *p;

    if (qp->reply_count == 0 || !emu_reply_ready(qp) || !emu_reply_may_leave(qp))
        return NULL;
    r = *emu_reply_at(qp, 0);
    if (r.kind == EMU_REPLY_READ)
        return emu_reply_read_packet(qp, emu_reply_at(qp, 0));
    if (r.kind == EMU_REPLY_ACK)
        p = emu_reply_packet(qp, EMU_OP_ACK, r.psn, 0);
    else if (r.kind == EMU_REPLY_NAK)
        p = emu_reply_nak_packet(qp, &r);
    else
        p = emu_reply_atomic_packet(qp, &r);
    if (!p)
        return NULL;
    emu_reply_pop(qp);
    if (r.kind == EMU_REPLY_ATOMIC)
        emu_reply_answered(qp);
    if (r.kind == EMU_REPLY_NAK && qp->refused)
        emu_reply_end(qp, r.event);
    return p;
}
