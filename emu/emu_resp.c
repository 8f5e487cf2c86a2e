/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_resp.c - the responder half of an RC queue pair (IBA 9.7.4, 9.7.5): takes requests in PSN order, checks them, moves
 * the bytes, and answers. Duplicates are answered again but not executed again; a READ is, an atomic never is.
 * Called by emu_link.c; next: emu_mr.c (memory), emu_link.c (answers).
 */
#include "emu.h"

#include <string.h>

static void emu_resp_send_ctl(struct emu_qp *qp, enum emu_op op, uint32_t psn, enum emu_nak nak)
{
    struct emu_pkt *p = emu_pkt_alloc(qp->ctx->dev->fabric, 0);

    if (!p)
        return; /* as if lost: the requester asks again */
    p->src = qp->port;
    p->dst = qp->peer;
    p->dst_qpn = qp->attr.dest_qp_num;
    p->op = op;
    p->psn = psn;
    p->nak = nak;
    p->rnr_timer = qp->attr.min_rnr_timer;
    p->wire_bytes = EMU_FRAME_OVERHEAD + 4; /* AETH */
    emu_link_send_ctl(qp->port, p);
}

static struct emu_reply *emu_resp_reply(struct emu_qp *qp, uint32_t i)
{
    return &qp->reply[(qp->reply_head + i) % EMU_REPLIES];
}

/** Acknowledges up to psn, but never ahead of READ data that still has to go. */
static void emu_resp_ack(struct emu_qp *qp, uint32_t psn)
{
    struct emu_reply *last;

    if (qp->reply_count == 0) {
        emu_resp_send_ctl(qp, EMU_OP_ACK, psn, EMU_NAK_SEQUENCE);
        return;
    }
    last = emu_resp_reply(qp, qp->reply_count - 1);
    if (last->kind == EMU_REPLY_ACK) {
        last->psn = psn;
    } else if (qp->reply_count < EMU_REPLIES) {
        *emu_resp_reply(qp, qp->reply_count) = (struct emu_reply){.kind = EMU_REPLY_ACK, .psn = psn};
        qp->reply_count++;
    }
}

/** After a refusal that is final: the event, if there is one, and the end of the queue pair (IBA 9.9.3). */
static void emu_resp_end(struct emu_qp *qp, int event)
{
    if (event != EMU_NO_EVENT)
        emu_event_raise_qp(qp, (enum ibv_event_type)event);
    emu_qp_to_error(qp);
}

/**
 * Refuses the expected request, behind the answers that still have to go (IBA 9.7.5: answers leave in PSN order).
 * What comes behind the refused packet is dropped without a word (IBA 9.7.5.2).
 */
static void emu_resp_answer_nak(struct emu_qp *qp, enum emu_nak nak, int event)
{
    bool final = nak != EMU_NAK_RNR && nak != EMU_NAK_SEQUENCE;

    qp->nak_sent = true;
    if (qp->reply_count && qp->reply_count < EMU_REPLIES) {
        qp->refused = final;
        *emu_resp_reply(qp, qp->reply_count) =
            (struct emu_reply){.kind = EMU_REPLY_NAK, .psn = qp->epsn, .nak = nak, .event = event};
        qp->reply_count++;
        return;
    }
    emu_resp_send_ctl(qp, EMU_OP_NAK, qp->epsn, nak);
    if (final)
        emu_resp_end(qp, event);
}

static void emu_resp_refuse(struct emu_qp *qp, enum emu_nak nak)
{
    emu_resp_answer_nak(qp, nak,
                        nak == EMU_NAK_ACCESS    ? (int)IBV_EVENT_QP_ACCESS_ERR
                        : nak == EMU_NAK_INVALID ? (int)IBV_EVENT_QP_REQ_ERR
                                                 : EMU_NO_EVENT);
}

static void emu_resp_landed(struct emu_qp *qp)
{
    qp->ctx->dev->fabric->clock->wake(qp->ctx->owner);
}

/* ---- receives ------------------------------------------------------------------------------------------------------ */

void emu_resp_complete(struct emu_qp *qp, enum ibv_wc_status status, const struct emu_pkt *p)
{
    struct emu_rqe *r = emu_rqe_at(qp, qp->rq_head);
    struct emu_cqe e = {.qp = qp, .rq_free = qp->rq_head + 1};
    bool lost;

    e.wc.wr_id = r->wr_id;
    e.wc.status = status;
    e.wc.opcode = p && p->op == EMU_OP_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    e.wc.byte_len = qp->msg_got;
    e.wc.qp_num = qp->ibv.qp_num;
    if (p && (p->flags & EMU_PKT_IMM)) {
        e.wc.wc_flags = IBV_WC_WITH_IMM;
        e.wc.imm_data = p->imm;
    }
    qp->rq_head++;
    lost = emu_cq_add((struct emu_cq *)qp->ibv.recv_cq, &e, p && (p->flags & EMU_PKT_SOLICITED)) != 0;
    if (lost)
        emu_qp_to_error(qp);
}

static bool emu_resp_has_receive(const struct emu_qp *qp)
{
    return qp->rq_head != qp->rq_tail;
}

/* ---- WRITE and SEND --------------------------------------------------------------------------------------------------- */

/** FIRST opens a message and only then; the others need one open. */
static bool emu_resp_in_turn(const struct emu_qp *qp, const struct emu_pkt *p)
{
    return qp->msg_open == !(p->flags & EMU_PKT_FIRST);
}

static void emu_resp_advance(struct emu_qp *qp, const struct emu_pkt *p)
{
    qp->epsn = (qp->epsn + 1) & EMU_PSN_MASK;
    qp->msg_open = !(p->flags & EMU_PKT_LAST);
    if (p->flags & EMU_PKT_ACK_REQ)
        emu_resp_ack(qp, p->psn);
}

/** Checks a WRITE's first packet for the whole message: rights, key, range (IBA 9.7.4.1.5; none if it is empty). */
static bool emu_resp_open_write(struct emu_qp *qp, const struct emu_pkt *p)
{
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)) {
        emu_resp_refuse(qp, EMU_NAK_INVALID);
        return false;
    }
    if (p->dma_len && !emu_mr_remote(qp, p->rkey, p->va, p->dma_len, IBV_ACCESS_REMOTE_WRITE)) {
        emu_resp_refuse(qp, EMU_NAK_ACCESS);
        return false;
    }
    qp->msg_va = p->va;
    qp->msg_rkey = p->rkey;
    qp->msg_left = p->dma_len;
    qp->msg_got = p->dma_len;
    return true;
}

static void emu_resp_write(struct emu_qp *qp, const struct emu_pkt *p)
{
    uint32_t n = p->payload.len;
    struct emu_mr *mr;

    if (!emu_resp_in_turn(qp, p)) {
        emu_resp_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    if ((p->flags & EMU_PKT_FIRST) && !emu_resp_open_write(qp, p))
        return;
    if (n > qp->msg_left || ((p->flags & EMU_PKT_LAST) && n != qp->msg_left)) {
        emu_resp_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    if ((p->flags & EMU_PKT_IMM) && !emu_resp_has_receive(qp)) {
        emu_resp_refuse(qp, EMU_NAK_RNR);
        return;
    }
    if (n) {
        mr = emu_mr_remote(qp, qp->msg_rkey, qp->msg_va, n, IBV_ACCESS_REMOTE_WRITE);
        if (!mr) { /* deregistered half-way */
            emu_resp_refuse(qp, EMU_NAK_ACCESS);
            return;
        }
        mr->mem->store(mr, qp->msg_va - mr->remote_base, &p->payload, 0, n);
        qp->msg_va += n;
        qp->msg_left -= n;
    }
    if (p->flags & EMU_PKT_IMM)
        emu_resp_complete(qp, IBV_WC_SUCCESS, p);
    emu_resp_advance(qp, p);
    emu_resp_landed(qp);
}

/** A receive that cannot take the message: an error at both ends. */
static void emu_resp_fail_receive(struct emu_qp *qp, enum ibv_wc_status status, enum emu_nak nak,
                                  const struct emu_pkt *p)
{
    emu_resp_complete(qp, status, p);
    emu_resp_answer_nak(qp, nak, EMU_NO_EVENT); /* the completion tells */
}

static void emu_resp_send(struct emu_qp *qp, const struct emu_pkt *p)
{
    struct emu_rqe *r = emu_rqe_at(qp, qp->rq_head);

    if (!emu_resp_in_turn(qp, p)) {
        emu_resp_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    if (!emu_resp_has_receive(qp)) {
        emu_resp_refuse(qp, EMU_NAK_RNR);
        return;
    }
    if (p->flags & EMU_PKT_FIRST)
        qp->msg_got = 0;
    if (qp->msg_got + (uint64_t)p->payload.len > emu_sge_len(r->sge, r->n_sge)) {
        emu_resp_fail_receive(qp, IBV_WC_LOC_LEN_ERR, EMU_NAK_INVALID, p);
        return;
    }
    if (!emu_mr_local_ok(qp, r->sge, r->n_sge, IBV_ACCESS_LOCAL_WRITE)) {
        emu_resp_fail_receive(qp, IBV_WC_LOC_PROT_ERR, EMU_NAK_OPERATION, p);
        return;
    }
    emu_mr_scatter(qp, r->sge, r->n_sge, qp->msg_got, &p->payload);
    qp->msg_got += p->payload.len;
    if (p->flags & EMU_PKT_LAST)
        emu_resp_complete(qp, IBV_WC_SUCCESS, p);
    emu_resp_advance(qp, p);
    emu_resp_landed(qp);
}

/* ---- READ and atomics --------------------------------------------------------------------------------------------------- */

/** Answers that the requester cannot have yet. A repeated one does not count: the first may have arrived after all. */
static uint32_t emu_resp_answers_due(const struct emu_qp *qp)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < qp->reply_count; i++) {
        const struct emu_reply *r = &qp->reply[(qp->reply_head + i) % EMU_REPLIES];

        n += (r->kind == EMU_REPLY_READ || r->kind == EMU_REPLY_ATOMIC) && !r->again;
    }
    return n;
}

static void emu_resp_push(struct emu_qp *qp, struct emu_reply r)
{
    if (qp->reply_count == EMU_REPLIES)
        return; /* only repeated duplicates get here; they are asked again */
    *emu_resp_reply(qp, qp->reply_count) = r;
    qp->reply_count++;
    emu_link_kick(qp);
}

static void emu_resp_read(struct emu_qp *qp, const struct emu_pkt *p)
{
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) ||
        emu_resp_answers_due(qp) >= qp->attr.max_dest_rd_atomic) {
        emu_resp_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    if (p->dma_len && !emu_mr_remote(qp, p->rkey, p->va, p->dma_len, IBV_ACCESS_REMOTE_READ)) {
        emu_resp_refuse(qp, EMU_NAK_ACCESS);
        return;
    }
    qp->epsn = (qp->epsn + (p->dma_len ? (p->dma_len + emu_qp_mtu(qp) - 1) / emu_qp_mtu(qp) : 1)) & EMU_PSN_MASK;
    emu_resp_push(
        qp, (struct emu_reply){.kind = EMU_REPLY_READ, .psn = p->psn, .va = p->va, .rkey = p->rkey, .len = p->dma_len});
}

static uint64_t emu_resp_execute(const struct emu_mr *mr, const struct emu_pkt *p)
{
    uint64_t off = p->va - mr->remote_base, old = mr->mem->load8(mr, off);

    if (p->op == EMU_OP_FETCH_ADD)
        mr->mem->store8(mr, off, old + p->compare_add);
    else if (old == p->compare_add)
        mr->mem->store8(mr, off, p->swap);
    return old;
}

static void emu_resp_atomic(struct emu_qp *qp, const struct emu_pkt *p)
{
    struct emu_mr *mr;
    uint64_t old;

    /* Not naturally aligned: invalid request (IBA 9.4.5). */
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) || (p->va & 7) ||
        emu_resp_answers_due(qp) >= qp->attr.max_dest_rd_atomic) {
        emu_resp_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    mr = emu_mr_remote(qp, p->rkey, p->va, 8, IBV_ACCESS_REMOTE_ATOMIC);
    if (!mr) {
        emu_resp_refuse(qp, EMU_NAK_ACCESS);
        return;
    }
    old = emu_resp_execute(mr, p);
    qp->atomic[qp->atomic_next++ % EMU_MAX_RD_ATOMIC] = (struct emu_atomic_done){true, p->psn, old};
    qp->epsn = (qp->epsn + 1) & EMU_PSN_MASK;
    emu_resp_push(qp, (struct emu_reply){.kind = EMU_REPLY_ATOMIC, .psn = p->psn, .old = old});
    emu_resp_landed(qp);
}

/* ---- in and out ------------------------------------------------------------------------------------------------------------ */

/** A request seen before: its answer was lost. Writes are not written again, atomics not executed again. */
static void emu_resp_duplicate(struct emu_qp *qp, const struct emu_pkt *p)
{
    switch (p->op) {
    case EMU_OP_READ_REQUEST:
        if (!p->dma_len || emu_mr_remote(qp, p->rkey, p->va, p->dma_len, IBV_ACCESS_REMOTE_READ))
            emu_resp_push(qp, (struct emu_reply){.kind = EMU_REPLY_READ,
                                                 .again = true,
                                                 .psn = p->psn,
                                                 .va = p->va,
                                                 .rkey = p->rkey,
                                                 .len = p->dma_len});
        break;
    case EMU_OP_FETCH_ADD:
    case EMU_OP_CMP_SWAP:
        for (uint32_t i = 1; i <= EMU_MAX_RD_ATOMIC; i++) { /* newest first: PSNs come round again */
            const struct emu_atomic_done *d = &qp->atomic[(qp->atomic_next - i) % EMU_MAX_RD_ATOMIC];

            if (d->valid && d->psn == p->psn) {
                emu_resp_push(
                    qp, (struct emu_reply){.kind = EMU_REPLY_ATOMIC, .again = true, .psn = p->psn, .old = d->old});
                break;
            }
        }
        break;
    default:
        if (p->flags & EMU_PKT_ACK_REQ)
            emu_resp_ack(qp, (qp->epsn - 1) & EMU_PSN_MASK);
        break;
    }
}

void emu_resp_receive(struct emu_qp *qp, const struct emu_pkt *p)
{
    int32_t ahead = emu_psn_diff(p->psn, qp->epsn);

    if (qp->ibv.state != IBV_QPS_RTR && qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_SQD)
        return;
    if (qp->refused)
        return;
    if (qp->ibv.state == IBV_QPS_RTR && !qp->heard) {
        qp->heard = true; /* the peer is there before our own side is ready (IBA 11.6.3) */
        emu_event_raise_qp(qp, IBV_EVENT_COMM_EST);
    }
    if (ahead > 0) {
        if (!qp->nak_sent) /* once for each gap (IBA 9.7.5.2) */
            emu_resp_refuse(qp, EMU_NAK_SEQUENCE);
        return;
    }
    if (ahead < 0) {
        emu_resp_duplicate(qp, p);
        return;
    }
    qp->nak_sent = false;
    if (p->op == EMU_OP_WRITE)
        emu_resp_write(qp, p);
    else if (p->op == EMU_OP_SEND)
        emu_resp_send(qp, p);
    else if (qp->msg_open)
        emu_resp_refuse(qp, EMU_NAK_INVALID);
    else if (p->op == EMU_OP_READ_REQUEST)
        emu_resp_read(qp, p);
    else
        emu_resp_atomic(qp, p);
}

static struct emu_pkt *emu_resp_packet(struct emu_qp *qp, enum emu_op op, uint32_t psn, uint32_t len)
{
    struct emu_pkt *p = emu_pkt_alloc(qp->ctx->dev->fabric, len);

    if (!p)
        return NULL;
    p->src = qp->port;
    p->dst = qp->peer;
    p->dst_qpn = qp->attr.dest_qp_num;
    p->op = op;
    p->psn = psn & EMU_PSN_MASK;
    p->wire_bytes = EMU_FRAME_OVERHEAD + 4 + len; /* AETH */
    return p;
}

static void emu_resp_pop(struct emu_qp *qp)
{
    qp->reply_head = (qp->reply_head + 1) % EMU_REPLIES;
    qp->reply_count--;
}

static struct emu_pkt *emu_resp_read_packet(struct emu_qp *qp, struct emu_reply *r)
{
    uint32_t left = r->len - r->sent, n = left < emu_qp_mtu(qp) ? left : emu_qp_mtu(qp);
    struct emu_mr *mr = n ? emu_mr_remote(qp, r->rkey, r->va + r->sent, n, IBV_ACCESS_REMOTE_READ) : NULL;
    struct emu_pkt *p;

    if (n && !mr) { /* deregistered half-way */
        emu_resp_send_ctl(qp, EMU_OP_NAK, (r->psn + r->packets) & EMU_PSN_MASK, EMU_NAK_ACCESS);
        emu_resp_end(qp, IBV_EVENT_QP_ACCESS_ERR);
        return NULL;
    }
    p = emu_resp_packet(qp, EMU_OP_READ_RESPONSE, r->psn + r->packets, n);
    if (!p)
        return NULL;
    if (n)
        mr->mem->load(mr, r->va + r->sent - mr->remote_base, &p->payload, 0, n);
    r->sent += n;
    r->packets++;
    if (r->sent == r->len)
        emu_resp_pop(qp);
    return p;
}

static struct emu_pkt *emu_resp_atomic_packet(struct emu_qp *qp, const struct emu_reply *r)
{
    struct emu_pkt *p = emu_resp_packet(qp, EMU_OP_ATOMIC_RESPONSE, r->psn, sizeof(r->old));

    if (p)
        memcpy(p->payload.bytes, &r->old, sizeof(r->old));
    return p;
}

static struct emu_pkt *emu_resp_nak_packet(struct emu_qp *qp, const struct emu_reply *r)
{
    struct emu_pkt *p = emu_resp_packet(qp, EMU_OP_NAK, r->psn, 0);

    if (p) {
        p->nak = r->nak;
        p->rnr_timer = qp->attr.min_rnr_timer;
    }
    return p;
}

struct emu_pkt *emu_resp_next(struct emu_qp *qp)
{
    struct emu_reply r = *emu_resp_reply(qp, 0);
    struct emu_pkt *p;

    if (qp->reply_count == 0)
        return NULL;
    if (r.kind == EMU_REPLY_READ)
        return emu_resp_read_packet(qp, emu_resp_reply(qp, 0));
    if (r.kind == EMU_REPLY_ACK)
        p = emu_resp_packet(qp, EMU_OP_ACK, r.psn, 0);
    else if (r.kind == EMU_REPLY_NAK)
        p = emu_resp_nak_packet(qp, &r);
    else
        p = emu_resp_atomic_packet(qp, &r);
    if (!p)
        return NULL;
    emu_resp_pop(qp);
    if (r.kind == EMU_REPLY_NAK && qp->refused)
        emu_resp_end(qp, r.event);
    return p;
}
