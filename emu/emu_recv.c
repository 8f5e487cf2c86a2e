/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_recv.c - receives of queue pairs: posted, found for a message, completed, flushed; from the queue pair's own queue or
 * from a shared one. A shared receive belongs to a queue pair from the first packet of its message on (IBA 10.2.9.1).
 * Called by emu_abi.c (post), emu_resp.c (messages), emu_qp.c (ends); next: emu_srq.c, emu_store.c, emu_cq.c.
 */
#include "emu_ud.h"

#include <errno.h>
#include <string.h>

static struct emu_srq *emu_recv_srq(const struct emu_qp *qp)
{
    return (struct emu_srq *)qp->ibv.srq;
}

int emu_recv_post(struct emu_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    for (; wr; wr = wr->next) {
        struct emu_rqe *r;
        bool full = !qp->ibv.srq && qp->rq_tail - qp->rq_freed >= qp->cap.max_recv_wr;

        if (full || qp->ibv.srq || qp->ibv.state == IBV_QPS_RESET || wr->num_sge < 0 ||
            (uint32_t)wr->num_sge > qp->cap.max_recv_sge) {
            *bad = wr;
            return full ? ENOMEM : EINVAL;
        }
        r = emu_rqe_at(qp, qp->rq_tail++);
        r->wr_id = wr->wr_id;
        r->n_sge = wr->num_sge;
        if (wr->num_sge)
            memcpy(r->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*r->sge));
        if (qp->ibv.state == IBV_QPS_ERR)
            emu_recv_complete(qp, IBV_WC_WR_FLUSH_ERR, NULL);
    }
    return 0;
}

bool emu_recv_ready(const struct emu_qp *qp)
{
    const struct emu_srq *srq = emu_recv_srq(qp);

    if (srq)
        return qp->has_shared || srq->head != srq->tail;
    return qp->rq_head != qp->rq_tail;
}

const struct emu_rqe *emu_recv_current(struct emu_qp *qp)
{
    if (!qp->ibv.srq)
        return emu_rqe_at(qp, qp->rq_head);
    if (!qp->has_shared)
        qp->has_shared = emu_srq_take(emu_recv_srq(qp), qp->shared);
    return qp->shared;
}

const struct emu_pd *emu_recv_pd(const struct emu_qp *qp)
{
    return (const struct emu_pd *)(qp->ibv.srq ? qp->ibv.srq->pd : qp->ibv.pd);
}

void emu_recv_complete(struct emu_qp *qp, enum ibv_wc_status status, const struct emu_pkt *p)
{
    const struct emu_rqe *r = emu_recv_current(qp);
    struct emu_cqe e = {.qp = qp, .srq = emu_recv_srq(qp)};

    e.wc.wr_id = r->wr_id;
    e.wc.status = status;
    e.wc.opcode = p && p->op == EMU_OP_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    e.wc.byte_len = qp->msg_got;
    e.wc.qp_num = qp->ibv.qp_num;
    if (p && p->op == EMU_OP_DATAGRAM) {
        e.wc.wc_flags = IBV_WC_GRH;
        e.wc.src_qp = p->src_qpn;
        e.wc.sl = EMU_UD_SL_IPV4;
    }
    if (p && (p->flags & EMU_PKT_IMM)) {
        e.wc.wc_flags |= IBV_WC_WITH_IMM;
        e.wc.imm_data = p->imm;
    }
    if (qp->ibv.srq)
        qp->has_shared = false;
    else
        e.rq_free = ++qp->rq_head;
    emu_store_recv(qp, &e, p && (p->flags & EMU_PKT_SOLICITED));
}

void emu_recv_flush(struct emu_qp *qp)
{
    if (!qp->ibv.srq) {
        while (qp->rq_head < qp->rq_tail)
            emu_recv_complete(qp, IBV_WC_WR_FLUSH_ERR, NULL);
        return;
    }
    if (qp->has_shared)
        emu_recv_complete(qp, IBV_WC_WR_FLUSH_ERR, NULL);
    emu_event_raise_qp(qp, IBV_EVENT_QP_LAST_WQE_REACHED); /* it takes no more: it may go (ibv_get_async_event(3)) */
}

void emu_recv_clear(struct emu_qp *qp)
{
    qp->rq_freed = qp->rq_head = qp->rq_tail = 0;
    if (qp->has_shared)
        emu_recv_srq(qp)->taken--;
    qp->has_shared = false;
}

void emu_recv_free(const struct emu_cqe *e)
{
    if (e->srq)
        e->srq->taken--;
    else if (e->rq_free)
        e->qp->rq_freed = e->rq_free;
}
