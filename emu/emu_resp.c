/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_resp.c - the responder half of an RC queue pair (IBA 9.7.4, 9.7.5): takes requests in PSN order, checks them, moves
 * the bytes, and answers. Duplicates are answered again but not executed again; a READ is, an atomic never is.
 * Called by emu_switch.c; next: emu_recv.c (receives), emu_store.c, emu_mr.c (memory), emu_reply.c (answers).
 */
#include "emu.h"

static void emu_resp_landed(struct emu_qp *qp)
{
    qp->ctx->dev->fabric->clock->wake(qp->ctx->owner);
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
        emu_reply_ack(qp, p->psn);
}

/** Checks a WRITE's first packet for the whole message: rights, key, range (IBA 9.7.4.1.5; none if it is empty). */
static bool emu_resp_open_write(struct emu_qp *qp, const struct emu_pkt *p)
{
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)) {
        emu_reply_refuse(qp, EMU_NAK_INVALID);
        return false;
    }
    if (p->dma_len && !emu_mr_remote(qp, p->rkey, p->va, p->dma_len, IBV_ACCESS_REMOTE_WRITE)) {
        emu_reply_refuse(qp, EMU_NAK_ACCESS);
        return false;
    }
    qp->msg_va = p->va;
    qp->msg_rkey = p->rkey;
    qp->msg_left = p->dma_len;
    qp->msg_got = p->dma_len;
    return true;
}

/** Bytes of a WRITE have come: they are in memory now, or on their way into it. */
static void emu_resp_store(struct emu_qp *qp, struct emu_mr *mr, uint64_t off, struct emu_pkt *p)
{
    if (qp->ctx->dev->fabric->spec.unkind) {
        emu_store_write(qp, mr, off, p, 0, p->payload.len);
        return;
    }
    mr->mem->store(mr, qp, off, &p->payload, 0, p->payload.len);
    emu_resp_landed(qp);
}

static void emu_resp_write(struct emu_qp *qp, struct emu_pkt *p)
{
    uint32_t n = p->payload.len;
    struct emu_mr *mr;

    if (!emu_resp_in_turn(qp, p)) {
        emu_reply_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    if ((p->flags & EMU_PKT_FIRST) && !emu_resp_open_write(qp, p))
        return;
    if (n > qp->msg_left || ((p->flags & EMU_PKT_LAST) && n != qp->msg_left)) {
        emu_reply_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    if ((p->flags & EMU_PKT_IMM) && !emu_recv_ready(qp)) {
        emu_reply_refuse(qp, EMU_NAK_RNR);
        return;
    }
    if (n) {
        mr = emu_mr_remote(qp, qp->msg_rkey, qp->msg_va, n, IBV_ACCESS_REMOTE_WRITE);
        if (!mr) { /* deregistered half-way */
            emu_reply_refuse(qp, EMU_NAK_ACCESS);
            return;
        }
        emu_resp_store(qp, mr, qp->msg_va - mr->remote_base, p);
        qp->msg_va += n;
        qp->msg_left -= n;
    } else {
        emu_resp_landed(qp);
    }
    if (p->flags & EMU_PKT_IMM)
        emu_recv_complete(qp, IBV_WC_SUCCESS, p);
    emu_resp_advance(qp, p);
}

/** A receive that cannot take the message: an error at both ends. */
static void emu_resp_fail_receive(struct emu_qp *qp, enum ibv_wc_status status, enum emu_nak nak,
                                  const struct emu_pkt *p)
{
    emu_recv_complete(qp, status, p);
    emu_reply_nak(qp, nak, EMU_NO_EVENT); /* the completion tells */
}

/** Bytes of a SEND have come, for the receive r from byte off on. */
static void emu_resp_scatter(struct emu_qp *qp, const struct emu_rqe *r, uint64_t off, struct emu_pkt *p)
{
    uint64_t place, room;
    uint32_t at = 0;

    if (qp->ctx->dev->fabric->spec.unkind == 0) {
        emu_mr_scatter(qp, r->sge, r->n_sge, off, &p->payload);
        emu_resp_landed(qp);
        return;
    }
    while (at < p->payload.len) {
        struct emu_mr *mr = emu_mr_at(qp, r->sge, r->n_sge, off + at, &place, &room);
        uint32_t n = room < p->payload.len - at ? (uint32_t)room : p->payload.len - at;

        emu_store_send(qp, mr, place, p, at, n);
        at += n;
    }
}

static void emu_resp_send(struct emu_qp *qp, struct emu_pkt *p)
{
    const struct emu_rqe *r;

    if (!emu_resp_in_turn(qp, p)) {
        emu_reply_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    if (!emu_recv_ready(qp)) {
        emu_reply_refuse(qp, EMU_NAK_RNR);
        return;
    }
    r = emu_recv_current(qp);
    if (p->flags & EMU_PKT_FIRST)
        qp->msg_got = 0;
    if (qp->msg_got + (uint64_t)p->payload.len > emu_sge_len(r->sge, r->n_sge)) {
        emu_resp_fail_receive(qp, IBV_WC_LOC_LEN_ERR, EMU_NAK_INVALID, p);
        return;
    }
    if (!emu_mr_local_ok(emu_recv_pd(qp), r->sge, r->n_sge, IBV_ACCESS_LOCAL_WRITE)) {
        emu_resp_fail_receive(qp, IBV_WC_LOC_PROT_ERR, EMU_NAK_OPERATION, p);
        return;
    }
    emu_resp_scatter(qp, r, qp->msg_got, p);
    qp->msg_got += p->payload.len;
    if (p->flags & EMU_PKT_LAST)
        emu_recv_complete(qp, IBV_WC_SUCCESS, p);
    emu_resp_advance(qp, p);
}

/* ---- READ and atomics --------------------------------------------------------------------------------------------------- */

static void emu_resp_read(struct emu_qp *qp, const struct emu_pkt *p)
{
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) ||
        emu_reply_answers_due(qp) >= qp->attr.max_dest_rd_atomic) {
        emu_reply_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    if (p->dma_len && !emu_mr_remote(qp, p->rkey, p->va, p->dma_len, IBV_ACCESS_REMOTE_READ)) {
        emu_reply_refuse(qp, EMU_NAK_ACCESS);
        return;
    }
    qp->epsn = (qp->epsn + (p->dma_len ? (p->dma_len + emu_qp_mtu(qp) - 1) / emu_qp_mtu(qp) : 1)) & EMU_PSN_MASK;
    emu_reply_push(qp, emu_reply_to_read(qp, p));
}

static void emu_resp_atomic(struct emu_qp *qp, struct emu_pkt *p)
{
    struct emu_mr *mr;

    /* Not naturally aligned: invalid request (IBA 9.4.5). */
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) || (p->va & 7) ||
        emu_reply_answers_due(qp) >= qp->attr.max_dest_rd_atomic) {
        emu_reply_refuse(qp, EMU_NAK_INVALID);
        return;
    }
    mr = emu_mr_remote(qp, p->rkey, p->va, 8, IBV_ACCESS_REMOTE_ATOMIC);
    if (!mr) {
        emu_reply_refuse(qp, EMU_NAK_ACCESS);
        return;
    }
    qp->epsn = (qp->epsn + 1) & EMU_PSN_MASK;
    emu_reply_push(qp, (struct emu_reply){.kind = EMU_REPLY_ATOMIC, .psn = p->psn, .waits = true});
    emu_store_atomic(qp, mr, p);
}

/* ---- in and out ------------------------------------------------------------------------------------------------------------ */

/** A request seen before: its answer was lost. Writes are not written again, atomics not executed again. */
static void emu_resp_duplicate(struct emu_qp *qp, const struct emu_pkt *p)
{
    struct emu_reply r;

    switch (p->op) {
    case EMU_OP_READ_REQUEST:
        r = emu_reply_to_read(qp, p);
        r.again = true;
        if (!p->dma_len || emu_mr_remote(qp, p->rkey, p->va, p->dma_len, IBV_ACCESS_REMOTE_READ))
            emu_reply_push(qp, r);
        break;
    case EMU_OP_FETCH_ADD:
    case EMU_OP_CMP_SWAP:
        for (uint32_t i = 1; i <= EMU_MAX_RD_ATOMIC; i++) { /* newest first: PSNs come round again */
            const struct emu_atomic_done *d = &qp->atomic[(qp->atomic_next - i) % EMU_MAX_RD_ATOMIC];

            if (d->valid && d->psn == p->psn) {
                emu_reply_push(
                    qp, (struct emu_reply){.kind = EMU_REPLY_ATOMIC, .again = true, .psn = p->psn, .old = d->old});
                break;
            }
        }
        break;
    default:
        if (p->flags & EMU_PKT_ACK_REQ)
            emu_reply_ack(qp, (qp->epsn - 1) & EMU_PSN_MASK);
        break;
    }
}

void emu_resp_receive(struct emu_qp *qp, struct emu_pkt *p)
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
            emu_reply_refuse(qp, EMU_NAK_SEQUENCE);
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
        emu_reply_refuse(qp, EMU_NAK_INVALID);
    else if (p->op == EMU_OP_READ_REQUEST)
        emu_resp_read(qp, p);
    else
        emu_resp_atomic(qp, p);
}
