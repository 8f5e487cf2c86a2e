/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_req.c - the requester half of an RC queue pair (IBA 9.7): numbers requests, cuts them into packets, and takes the
 * answers; repeats from the right PSN after a NAK or a timeout; completes in order.
 *
 * Send queue positions: una is the oldest request not completed, nxt the one to send from next, numbered the first
 * without PSNs. After a loss nxt goes back; PSNs stay. Called by emu_link.c; next: emu_link.c (out), emu_cq.c (done).
 */
#include "emu_ahead.h"
#include "emu_lag.h"
#include "emu_ud.h"

#include <string.h>

/* IBA 9.7.5.2.8: the RNR NAK timer codes, in microseconds. */
static const uint32_t emu_rnr_us[32] = {
    655360, 10,   20,   30,   40,    60,    80,    120,   160,   240,   320,   480,    640,    960,    1280,   1920,
    2560,   3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

static bool emu_req_is_read(const struct emu_wqe *w)
{
    return w->opcode == IBV_WR_RDMA_READ;
}

static bool emu_req_is_atomic(const struct emu_wqe *w)
{
    return w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

/** Whether the request is answered with data, so that it counts against max_rd_atomic. */
static bool emu_req_has_answer(const struct emu_wqe *w)
{
    return emu_req_is_read(w) || emu_req_is_atomic(w);
}

static bool emu_req_is_write(const struct emu_wqe *w)
{
    return w->opcode == IBV_WR_RDMA_WRITE || w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool emu_req_has_imm(const struct emu_wqe *w)
{
    return w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM || w->opcode == IBV_WR_SEND_WITH_IMM;
}

/* ---- timer ------------------------------------------------------------------------------------------------------- */

static uint64_t emu_req_timeout_ns(const struct emu_qp *qp)
{
    return 4096ull << qp->attr.timeout; /* IBA 9.7.6.1.3: 4.096 us * 2^timeout; 0: none */
}

static uint64_t emu_req_now(const struct emu_qp *qp)
{
    return qp->ctx->dev->fabric->clock->now(qp->ctx->dev->fabric);
}

static void emu_req_go_back(struct emu_qp *qp, uint32_t psn);
static void emu_req_timeout(struct emu_qp *qp);
static void emu_req_rnr_over(void *obj, uint64_t arg);

/** Timers name their QP by number and generation: it may be gone when they fire. */
static struct emu_qp *emu_req_timer_qp(struct emu_dev *d, uint64_t arg)
{
    struct emu_qp *qp = emu_map_get(&d->qps, (uint32_t)arg & EMU_PSN_MASK);

    return qp && qp->gen == (uint32_t)(arg >> 32) ? qp : NULL;
}

static void emu_req_at(struct emu_qp *qp, uint64_t t, emu_event_fn fn)
{
    struct emu_dev *d = qp->ctx->dev;

    d->fabric->clock->at(d->fabric, t, fn, d, ((uint64_t)qp->gen << 32) | qp->ibv.qp_num);
}

static void emu_req_ack_timer(void *obj, uint64_t arg)
{
    struct emu_qp *qp = emu_req_timer_qp(obj, arg);

    if (!qp)
        return;
    qp->ack_timer = false;
    if (qp->sq_una == qp->sq_numbered || qp->rnr_waiting) /* rnr_over() starts it again */
        return;
    if (emu_req_now(qp) >= qp->ack_deadline) {
        emu_req_timeout(qp);
        return;
    }
    qp->ack_timer = true;
    emu_req_at(qp, qp->ack_deadline, emu_req_ack_timer);
}

bool emu_req_timer_void(emu_event_fn fn, void *obj, uint64_t arg)
{
    const struct emu_qp *qp;

    if (fn != emu_req_ack_timer && fn != emu_req_rnr_over)
        return false;
    qp = emu_req_timer_qp(obj, arg);
    return !qp || (fn == emu_req_ack_timer && (qp->sq_una == qp->sq_numbered || qp->rnr_waiting));
}

/** The oldest outstanding packet is young again. */
static void emu_req_restart_timer(struct emu_qp *qp)
{
    if (qp->attr.timeout == 0)
        return;
    qp->ack_deadline = emu_req_now(qp) + emu_req_timeout_ns(qp);
    if (!qp->ack_timer) {
        qp->ack_timer = true;
        emu_req_at(qp, qp->ack_deadline, emu_req_ack_timer);
    }
}

static void emu_req_timeout(struct emu_qp *qp)
{
    if (qp->retry_left == 0) {
        emu_req_complete(qp, IBV_WC_RETRY_EXC_ERR);
        return;
    }
    qp->retry_left--;
    emu_req_restart_timer(qp);
    emu_req_go_back(qp, qp->una_psn);
}

static void emu_req_rnr_over(void *obj, uint64_t arg)
{
    struct emu_qp *qp = emu_req_timer_qp(obj, arg);

    if (!qp || !qp->rnr_waiting)
        return;
    qp->rnr_waiting = false;
    emu_req_restart_timer(qp);
    emu_link_kick(qp);
}

/* ---- out ---------------------------------------------------------------------------------------------------------- */

void emu_req_start(struct emu_qp *qp)
{
    qp->psn_next = qp->una_psn = qp->attr.sq_psn;
    qp->retry_left = qp->attr.retry_cnt;
    qp->rnr_left = qp->attr.rnr_retry;
}

/** PSNs a request takes: its packets, or for a READ those of the response (IBA 9.7.2). */
static uint32_t emu_req_psns(const struct emu_qp *qp, const struct emu_wqe *w)
{
    if (emu_req_is_atomic(w) || w->len == 0)
        return 1;
    return (w->len + emu_qp_mtu(qp) - 1) / emu_qp_mtu(qp);
}

/** Half of PSN space at most is on its way, or old and new could not be told apart (IBA 9.7.2). */
static bool emu_req_in_window(const struct emu_qp *qp, const struct emu_wqe *w)
{
    uint32_t out = (qp->psn_next - qp->una_psn) & EMU_PSN_MASK;

    return out + emu_req_psns(qp, w) < 1u << 23;
}

bool emu_req_wants(const struct emu_qp *qp)
{
    const struct emu_wqe *w;

    if (emu_ud_is(qp))
        return emu_ud_wants(qp);
    if ((qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_SQD) || qp->rnr_waiting || qp->sq_nxt == qp->sq_tail)
        return false;
    w = emu_wqe_at(qp, qp->sq_nxt);
    if (w->status != IBV_WC_SUCCESS)
        return false; /* a local error that waits for its turn to complete: nothing behind it starts */
    if (qp->nxt_pkt > 0)
        return true;
    if (!w->started && (qp->ibv.state == IBV_QPS_SQD || !emu_req_in_window(qp, w)))
        return false;
    if ((w->flags & IBV_SEND_FENCE) && qp->rd_out > 0)
        return false;
    return !emu_req_has_answer(w) || qp->rd_out < qp->attr.max_rd_atomic;
}

/** What the device finds out when it starts a request: lengths and local keys. */
static enum ibv_wc_status emu_req_local_check(struct emu_qp *qp, const struct emu_wqe *w)
{
    int need = emu_req_has_answer(w) ? IBV_ACCESS_LOCAL_WRITE : 0;

    if (w->len > EMU_MAX_MSG || (emu_req_is_atomic(w) && w->len != 8))
        return IBV_WC_LOC_LEN_ERR;
    if (!(w->flags & IBV_SEND_INLINE) && !emu_mr_local_ok((struct emu_pd *)qp->ibv.pd, w->sge, w->n_sge, need))
        return IBV_WC_LOC_PROT_ERR;
    return IBV_WC_SUCCESS;
}

/** The request at nxt fails here. It completes when its turn comes; nothing behind it is sent. */
static void emu_req_local_error(struct emu_qp *qp, struct emu_wqe *w, enum ibv_wc_status status)
{
    w->status = status;
    if (qp->sq_una == qp->sq_nxt)
        emu_req_complete(qp, status);
}

/** Gives the request its PSNs, or its local error. */
static bool emu_req_begin(struct emu_qp *qp, struct emu_wqe *w)
{
    enum ibv_wc_status status;

    if (w->started)
        return true;
    status = emu_req_local_check(qp, w);
    if (status != IBV_WC_SUCCESS) {
        emu_req_local_error(qp, w, status);
        return false;
    }
    w->started = true;
    w->first_psn = qp->psn_next;
    w->n_psn = emu_req_psns(qp, w);
    qp->psn_next = (qp->psn_next + w->n_psn) & EMU_PSN_MASK;
    qp->sq_numbered = qp->sq_nxt + 1;
    return true;
}

static struct emu_pkt *emu_req_packet(struct emu_qp *qp, enum emu_op op, uint32_t psn, uint32_t len)
{
    struct emu_port *dst =
        qp->peer ? emu_lag_toward(qp, qp->peer) : qp->port; /* nobody has that address: emu_req_next() */
    struct emu_pkt *p;

    __builtin_prefetch(&qp->port->last_arrival[dst->index], 1); /* one of very many, and soon needed */
    p = emu_pkt_alloc(qp->ctx->dev->fabric, len);
    if (!p)
        return NULL;
    p->src = qp->port;
    p->dst = dst;
    p->dst_qpn = qp->peer ? qp->attr.dest_qp_num : 0;
    p->op = op;
    p->psn = psn;
    p->wire_bytes = EMU_FRAME_OVERHEAD + len;
    if (psn == qp->una_psn)
        emu_req_restart_timer(qp);
    return p;
}

/** The next packet of a WRITE or SEND. */
static struct emu_pkt *emu_req_data_packet(struct emu_qp *qp, struct emu_wqe *w)
{
    uint32_t i = qp->nxt_pkt, off = i * emu_qp_mtu(qp), left = w->len - off;
    struct emu_pkt *p =
        emu_req_packet(qp, emu_req_is_write(w) ? EMU_OP_WRITE : EMU_OP_SEND, (w->first_psn + i) & EMU_PSN_MASK,
                       left < emu_qp_mtu(qp) ? left : emu_qp_mtu(qp));

    if (!p)
        return NULL;
    if (i == 0) {
        p->flags |= EMU_PKT_FIRST;
        p->va = w->va;
        p->rkey = w->rkey;
        p->dma_len = w->len;
        p->wire_bytes += emu_req_is_write(w) ? 16 : 0; /* RETH */
    }
    if (i + 1 == w->n_psn) {
        p->flags |= EMU_PKT_LAST | EMU_PKT_ACK_REQ | (w->flags & IBV_SEND_SOLICITED ? EMU_PKT_SOLICITED : 0u);
        if (emu_req_has_imm(w)) {
            p->flags |= EMU_PKT_IMM;
            p->imm = w->imm;
            p->wire_bytes += 4;
        }
    } else if (i % EMU_ACK_EVERY == EMU_ACK_EVERY - 1) {
        p->flags |= EMU_PKT_ACK_REQ;
    }
    if (p->payload.len && (w->flags & IBV_SEND_INLINE))
        memcpy(p->payload.bytes, emu_wqe_inline(qp, w) + off, p->payload.len);
    else if (p->payload.len && !emu_ahead_gather(qp, w, off, &p->payload)) {
        emu_pkt_free(qp->ctx->dev->fabric, p);
        emu_req_local_error(qp, w, IBV_WC_LOC_PROT_ERR); /* deregistered half-way */
        return NULL;
    }
    if (++qp->nxt_pkt == w->n_psn) {
        qp->nxt_pkt = 0;
        qp->sq_nxt++;
    }
    return p;
}

/** A READ request (for what has not come yet) or an atomic. */
static struct emu_pkt *emu_req_ask_packet(struct emu_qp *qp, struct emu_wqe *w)
{
    enum emu_op op = emu_req_is_read(w)                         ? EMU_OP_READ_REQUEST
                     : w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? EMU_OP_FETCH_ADD
                                                                : EMU_OP_CMP_SWAP;
    struct emu_pkt *p = emu_req_packet(qp, op, (w->first_psn + w->got) & EMU_PSN_MASK, 0);

    if (!p)
        return NULL;
    p->flags = EMU_PKT_FIRST | EMU_PKT_LAST;
    p->va = w->va + (uint64_t)w->got * emu_qp_mtu(qp);
    p->rkey = w->rkey;
    p->dma_len = w->len - w->got * emu_qp_mtu(qp);
    p->compare_add = w->compare_add;
    p->swap = w->swap;
    p->wire_bytes += op == EMU_OP_READ_REQUEST ? 16 : 28; /* RETH, AtomicETH */
    qp->rd_out++;
    qp->sq_nxt++;
    return p;
}

struct emu_pkt *emu_req_next(struct emu_qp *qp)
{
    struct emu_wqe *w;

    if (!emu_req_wants(qp))
        return NULL;
    if (emu_ud_is(qp))
        return emu_ud_next(qp);
    w = emu_wqe_at(qp, qp->sq_nxt);
    if (!emu_req_begin(qp, w))
        return NULL;
    return emu_req_has_answer(w) ? emu_req_ask_packet(qp, w) : emu_req_data_packet(qp, w);
}

/** Sends again from psn on. */
static void emu_req_go_back(struct emu_qp *qp, uint32_t psn)
{
    uint64_t i = qp->sq_una;

    qp->rd_out = 0;
    for (; i < qp->sq_numbered; i++) {
        struct emu_wqe *w = emu_wqe_at(qp, i);
        int32_t into = emu_psn_diff(psn, w->first_psn);

        if (into >= 0 && (uint32_t)into < w->n_psn) {
            qp->nxt_pkt = emu_req_has_answer(w) ? 0 : (uint32_t)into;
            break;
        }
        qp->rd_out += emu_req_has_answer(w);
    }
    if (i == qp->sq_numbered)
        qp->nxt_pkt = 0;
    qp->sq_nxt = i;
    emu_link_kick(qp);
}

/* ---- in ----------------------------------------------------------------------------------------------------------- */

static enum ibv_wc_opcode emu_req_wc_opcode(const struct emu_wqe *w)
{
    switch (w->opcode) {
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return IBV_WC_SEND;
    default:
        return IBV_WC_RDMA_WRITE;
    }
}

void emu_req_complete(struct emu_qp *qp, enum ibv_wc_status status)
{
    struct emu_wqe *w = emu_wqe_at(qp, qp->sq_una);
    struct emu_cqe e = {.qp = qp, .sq_free = qp->sq_una + 1};
    bool lost;

    if (emu_req_has_answer(w) && qp->sq_una < qp->sq_nxt && qp->rd_out > 0)
        qp->rd_out--;
    e.wc.wr_id = w->wr_id;
    e.wc.status = status;
    e.wc.opcode = emu_req_wc_opcode(w);
    e.wc.byte_len = w->len;
    e.wc.qp_num = qp->ibv.qp_num;
    qp->sq_una++;
    if (qp->sq_nxt < qp->sq_una) {
        qp->sq_nxt = qp->sq_una;
        qp->nxt_pkt = 0;
    }
    if (status == IBV_WC_SUCCESS && !qp->sig_all && !(w->flags & IBV_SEND_SIGNALED))
        return;
    lost = emu_cq_add((struct emu_cq *)qp->ibv.send_cq, &e, false) != 0;
    if (lost || (status != IBV_WC_SUCCESS && qp->ibv.state != IBV_QPS_SQE))
        emu_qp_to_error(qp);
}

/** Something new was acknowledged: the retry budgets start afresh (IBA 9.9.2.1.1). */
static void emu_req_progress(struct emu_qp *qp)
{
    qp->retry_left = qp->attr.retry_cnt;
    qp->rnr_left = qp->attr.rnr_retry;
    emu_req_restart_timer(qp);
}

/**
 * Everything below psn is acknowledged. A READ or atomic whose answer has not come cannot be: its response was lost, so
 * it is asked for again and false returned.
 */
static bool emu_req_acked(struct emu_qp *qp, uint32_t psn)
{
    while (qp->sq_una < qp->sq_numbered && emu_psn_diff(psn, qp->una_psn) > 0) {
        struct emu_wqe *w = emu_wqe_at(qp, qp->sq_una);
        uint32_t end = (w->first_psn + w->n_psn) & EMU_PSN_MASK;

        if (emu_req_has_answer(w)) {
            if (!w->resync)
                emu_req_go_back(qp, qp->una_psn);
            w->resync = true;
            return false;
        }
        emu_req_progress(qp);
        if (emu_psn_diff(psn, end) < 0) {
            qp->una_psn = psn;
            break;
        }
        qp->una_psn = end;
        emu_req_complete(qp, IBV_WC_SUCCESS);
    }
    return true;
}

void emu_req_drained(struct emu_qp *qp)
{
    if (qp->ibv.state != IBV_QPS_SQD || qp->sq_una != qp->sq_numbered || !qp->attr.en_sqd_async_notify)
        return;
    qp->attr.en_sqd_async_notify = 0; /* once */
    emu_event_raise_qp(qp, IBV_EVENT_SQ_DRAINED);
}

/** After completions: a local error whose turn has come. */
static void emu_req_settle(struct emu_qp *qp)
{
    struct emu_wqe *w;

    if (qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_SQD)
        return;
    if (qp->sq_una == qp->sq_nxt && qp->sq_nxt < qp->sq_tail) {
        w = emu_wqe_at(qp, qp->sq_nxt);
        if (w->status != IBV_WC_SUCCESS) {
            emu_req_complete(qp, w->status);
            return;
        }
    }
    emu_req_drained(qp);
    emu_link_kick(qp);
}

static void emu_req_answer(struct emu_qp *qp, const struct emu_pkt *p)
{
    struct emu_wqe *w;

    if (!emu_req_acked(qp, p->psn) || qp->sq_una == qp->sq_numbered)
        return;
    w = emu_wqe_at(qp, qp->sq_una);
    if (!emu_req_has_answer(w) || p->psn != qp->una_psn || emu_req_is_read(w) != (p->op == EMU_OP_READ_RESPONSE))
        return;
    if (!emu_mr_scatter(qp, w->sge, w->n_sge, (uint64_t)w->got * emu_qp_mtu(qp), &p->payload)) {
        emu_req_complete(qp, IBV_WC_LOC_PROT_ERR); /* deregistered half-way */
        return;
    }
    qp->ctx->dev->fabric->clock->wake(qp->ctx->owner);
    w->got++;
    w->resync = false;
    qp->una_psn = (qp->una_psn + 1) & EMU_PSN_MASK;
    emu_req_progress(qp);
    if (w->got == w->n_psn)
        emu_req_complete(qp, IBV_WC_SUCCESS);
}

static void emu_req_rnr(struct emu_qp *qp, const struct emu_pkt *p)
{
    if (qp->rnr_waiting)
        return;
    if (qp->rnr_left == 0) {
        emu_req_complete(qp, IBV_WC_RNR_RETRY_EXC_ERR);
        return;
    }
    if (qp->rnr_left != 7) /* 7 means for ever (ibv_modify_qp(3)) */
        qp->rnr_left--;
    qp->rnr_waiting = true;
    emu_req_go_back(qp, p->psn);
    emu_req_at(qp, emu_req_now(qp) + emu_rnr_us[p->rnr_timer] * 1000ull, emu_req_rnr_over);
}

static void emu_req_nak(struct emu_qp *qp, const struct emu_pkt *p)
{
    static const enum ibv_wc_status status[] = {
        [EMU_NAK_INVALID] = IBV_WC_REM_INV_REQ_ERR,
        [EMU_NAK_ACCESS] = IBV_WC_REM_ACCESS_ERR,
        [EMU_NAK_OPERATION] = IBV_WC_REM_OP_ERR,
    };

    if (!emu_req_acked(qp, p->psn) || qp->sq_una == qp->sq_numbered)
        return;
    if (p->nak == EMU_NAK_RNR) {
        emu_req_rnr(qp, p);
    } else if (p->nak == EMU_NAK_SEQUENCE) {
        if (qp->retry_left == 0) {
            emu_req_complete(qp, IBV_WC_RETRY_EXC_ERR);
            return;
        }
        qp->retry_left--;
        emu_req_restart_timer(qp);
        emu_req_go_back(qp, p->psn);
    } else {
        emu_req_complete(qp, status[p->nak]);
    }
}

void emu_req_receive(struct emu_qp *qp, const struct emu_pkt *p)
{
    if (qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_SQD)
        return;
    /* Old news, or numbers never sent: a ghost of an earlier connection. */
    if (emu_psn_diff(p->psn, qp->una_psn) < 0 || emu_psn_diff(p->psn, qp->psn_next) >= 0)
        return;
    if (p->op == EMU_OP_ACK)
        emu_req_acked(qp, (p->psn + 1) & EMU_PSN_MASK);
    else if (p->op == EMU_OP_NAK)
        emu_req_nak(qp, p);
    else
        emu_req_answer(qp, p);
    emu_req_settle(qp);
}
