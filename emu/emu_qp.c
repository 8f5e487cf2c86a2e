/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_qp.c - the life of a queue pair: create, change state, flush, destroy. Moves no data. Called by emu_abi.c and,
 * on errors, by emu_req.c and emu_resp.c; next: emu_post.c for requests.
 */
#include "emu_ahead.h"
#include "emu_ex.h"
#include "emu_lag.h"
#include "emu_ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t emu_qp_new_number(struct emu_dev *d)
{
    uint32_t qpn;

    do
        qpn = ((uint32_t)emu_rng_next(&d->fabric->rng) & 0xffffff & ~d->fabric->qpn_mask) | d->fabric->qpn_tag;
    while (qpn < 2 || emu_map_get(&d->qps, qpn)); /* 0 and 1 are the management QPs */
    return qpn;
}

static bool emu_qp_init_ok(const struct ibv_qp_init_attr *init)
{
    const struct ibv_qp_cap *c = &init->cap;

    return (init->qp_type == IBV_QPT_RC || init->qp_type == IBV_QPT_UD) && init->send_cq && init->recv_cq &&
           c->max_send_wr <= EMU_MAX_WR && c->max_recv_wr <= EMU_MAX_WR && c->max_send_sge <= EMU_MAX_SGE &&
           c->max_recv_sge <= EMU_MAX_SGE && c->max_inline_data <= EMU_MAX_INLINE;
}

static bool emu_qp_same_device(const struct emu_pd *pd, const struct ibv_qp_init_attr *init)
{
    return init->send_cq->context == pd->ibv.context && init->recv_cq->context == pd->ibv.context &&
           (!init->srq || init->srq->context == pd->ibv.context);
}

static void emu_qp_free(struct emu_qp *qp)
{
    if (!qp)
        return;
    free(qp->sq);
    free(qp->rq);
    free(qp->shared);
    free(qp->reply);
    emu_ex_free(qp->staged);
    free(qp);
}

static struct emu_qp *emu_qp_alloc(const struct ibv_qp_cap *cap, const struct emu_srq *srq)
{
    struct emu_qp *qp = aligned_alloc(_Alignof(struct emu_qp), sizeof(*qp));

    if (!qp)
        return NULL;
    memset(qp, 0, sizeof(*qp));
    qp->cap = *cap;
    qp->sq_stride = (uint32_t)(sizeof(struct emu_wqe) + cap->max_send_sge * sizeof(struct ibv_sge) +
                               (cap->max_inline_data + 7u) / 8 * 8);
    if (cap->max_recv_wr)
        qp->rq = calloc(cap->max_recv_wr, emu_rqe_size(cap->max_recv_sge));
    if (srq)
        qp->shared = calloc(1, emu_rqe_size(srq->max_sge));
    if ((!qp->rq && cap->max_recv_wr) || (srq && !qp->shared)) {
        emu_qp_free(qp);
        return NULL;
    }
    return qp;
}

struct emu_qp *emu_qp_new(struct emu_pd *pd, struct ibv_qp_init_attr *init)
{
    struct emu_ctx *ctx = emu_ctx_of(pd->ibv.context);
    struct ibv_qp_cap cap = init->cap;
    struct emu_qp *qp;

    errno = EINVAL;
    if (!emu_qp_init_ok(init) || !emu_qp_same_device(pd, init))
        return NULL;
    if (init->srq) /* it has no queue of its own */
        cap.max_recv_wr = cap.max_recv_sge = 0;
    errno = ENOMEM;
    qp = emu_qp_alloc(&cap, (const struct emu_srq *)init->srq);
    if (!qp)
        return NULL;
    qp->ctx = ctx;
    qp->port = &ctx->dev->port;
    qp->sig_all = init->sq_sig_all != 0;
    qp->ibv.context = pd->ibv.context;
    qp->ibv.qp_context = init->qp_context;
    qp->ibv.pd = &pd->ibv;
    qp->ibv.send_cq = init->send_cq;
    qp->ibv.recv_cq = init->recv_cq;
    qp->ibv.srq = init->srq;
    qp->ibv.qp_type = init->qp_type;
    qp->ibv.state = IBV_QPS_RESET;
    qp->ibv.qp_num = qp->ibv.handle = emu_qp_new_number(ctx->dev);
    if (emu_map_put(&ctx->dev->qps, qp->ibv.qp_num, qp)) {
        emu_qp_free(qp);
        return NULL;
    }
    ((struct emu_cq *)init->send_cq)->refs++;
    ((struct emu_cq *)init->recv_cq)->refs++;
    if (init->srq)
        ((struct emu_srq *)init->srq)->refs++;
    pd->refs++;
    return qp;
}

/** Forgets all work, without completions, and voids the timers of the life that ends. */
static void emu_qp_clear(struct emu_qp *qp)
{
    emu_link_forget(qp);
    emu_cq_forget_qp((struct emu_cq *)qp->ibv.send_cq, qp);
    emu_cq_forget_qp((struct emu_cq *)qp->ibv.recv_cq, qp);
    qp->gen++;
    qp->ack_timer = qp->rnr_waiting = false;
    qp->sq_freed = qp->sq_una = qp->sq_nxt = qp->sq_numbered = qp->sq_tail = 0;
    qp->nxt_pkt = qp->rd_out = 0;
    emu_recv_clear(qp);
    qp->reply_count = 0;
    emu_store_forget(qp);
    emu_ahead_forget(qp);
    qp->msg_open = qp->nak_sent = qp->heard = qp->refused = false;
    qp->peer = NULL;
    memset(qp->atomic, 0, sizeof(qp->atomic));
}

int emu_qp_destroy(struct emu_qp *qp)
{
    emu_qp_clear(qp);
    emu_event_forget(qp->ctx, qp);
    emu_map_del(&qp->ctx->dev->qps, qp->ibv.qp_num);
    ((struct emu_cq *)qp->ibv.send_cq)->refs--;
    ((struct emu_cq *)qp->ibv.recv_cq)->refs--;
    if (qp->ibv.srq)
        ((struct emu_srq *)qp->ibv.srq)->refs--;
    ((struct emu_pd *)qp->ibv.pd)->refs--;
    emu_qp_free(qp);
    return 0;
}

void emu_qp_to_error(struct emu_qp *qp)
{
    if (qp->ibv.state == IBV_QPS_ERR)
        return;
    qp->ibv.state = IBV_QPS_ERR;
    qp->gen++;
    qp->ack_timer = qp->rnr_waiting = false;
    emu_link_forget(qp);
    qp->reply_count = 0;
    emu_ahead_forget(qp);
    emu_store_finish(qp);
    while (qp->sq_una < qp->sq_tail)
        emu_req_complete(qp, IBV_WC_WR_FLUSH_ERR);
    emu_recv_flush(qp);
}

static void emu_qp_copy_attr(struct ibv_qp_attr *to, const struct ibv_qp_attr *a, int mask)
{
    if (mask & IBV_QP_ACCESS_FLAGS)
        to->qp_access_flags = a->qp_access_flags;
    if (mask & IBV_QP_PKEY_INDEX)
        to->pkey_index = a->pkey_index;
    if (mask & IBV_QP_PORT)
        to->port_num = a->port_num;
    if (mask & IBV_QP_AV)
        to->ah_attr = a->ah_attr;
    if (mask & IBV_QP_PATH_MTU)
        to->path_mtu = a->path_mtu;
    if (mask & IBV_QP_TIMEOUT)
        to->timeout = a->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        to->retry_cnt = a->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        to->rnr_retry = a->rnr_retry;
    if (mask & IBV_QP_RQ_PSN)
        to->rq_psn = a->rq_psn & EMU_PSN_MASK;
    if (mask & IBV_QP_SQ_PSN)
        to->sq_psn = a->sq_psn & EMU_PSN_MASK;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        to->max_rd_atomic = a->max_rd_atomic;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        to->max_dest_rd_atomic = a->max_dest_rd_atomic;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        to->min_rnr_timer = a->min_rnr_timer;
    if (mask & IBV_QP_QKEY)
        to->qkey = a->qkey;
    if (mask & IBV_QP_DEST_QPN)
        to->dest_qp_num = a->dest_qp_num;
    if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
        to->en_sqd_async_notify = a->en_sqd_async_notify;
}

static void emu_qp_enter(struct emu_qp *qp, enum ibv_qp_state from)
{
    switch (qp->ibv.state) {
    case IBV_QPS_RTR:
        qp->epsn = qp->attr.rq_psn;
        if (!emu_ud_is(qp)) /* datagrams come from anybody */
            qp->peer = emu_fabric_find_gid(qp->ctx->dev->fabric, &qp->attr.ah_attr.grh.dgid);
        emu_lag_start(qp);
        break;
    case IBV_QPS_RTS:
        if (from == IBV_QPS_RTR)
            emu_req_start(qp);
        if (from != IBV_QPS_RTS)
            emu_lag_start(qp);
        emu_link_kick(qp);
        break;
    case IBV_QPS_SQD:
        emu_req_drained(qp);
        break;
    default:
        break;
    }
}

int emu_qp_modify(struct emu_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    enum ibv_qp_state from = qp->ibv.state, to = mask & IBV_QP_STATE ? a->qp_state : from;
    int rc = emu_attr_check(qp, to, a, mask);

    if (rc)
        return rc;
    if (to == IBV_QPS_ERR) {
        emu_qp_to_error(qp);
        return 0;
    }
    if (to == IBV_QPS_RESET) {
        emu_qp_clear(qp);
        memset(&qp->attr, 0, sizeof(qp->attr));
        qp->ibv.state = IBV_QPS_RESET;
        return 0;
    }
    emu_qp_copy_attr(&qp->attr, a, mask);
    qp->ibv.state = to;
    emu_qp_enter(qp, from);
    return 0;
}
