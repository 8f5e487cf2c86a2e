/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ud.c - unreliable datagrams (IBA 9.8.3): a SEND of at most one packet to whom its address handle and QPN say, with a Q_Key that
 * the receiver compares. Nothing is acknowledged or repeated: a request ends well when its packet has left, wherever that goes.
 * Called by emu_post.c, emu_req.c (out) and emu_switch.c (in); next: emu_link.c, emu_recv.c.
 */
#include "emu_ud.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <string.h>

#include "emu_ah.h"
#include "emu_lag.h"

#define EMU_UD_OWN_QKEY 0x80000000u /* in a request: the queue pair's own is meant (IBA 10, Q_Keys) */

enum { EMU_UD_DETH = 8, EMU_UD_IMM = 4 };

/* ---- out ------------------------------------------------------------------------------------------------------------------ */

int emu_ud_post_check(const struct ibv_send_wr *wr)
{
    bool send = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;

    return send && wr->wr.ud.ah && wr->wr.ud.remote_qpn <= EMU_PSN_MASK ? 0 : EINVAL;
}

void emu_ud_target(struct emu_wqe *w, const struct ibv_send_wr *wr)
{
    w->peer = ((const struct emu_ah *)wr->wr.ud.ah)->peer;
    w->dest_qpn = wr->wr.ud.remote_qpn;
    w->rkey = wr->wr.ud.remote_qkey;
}

bool emu_ud_wants(const struct emu_qp *qp)
{
    return qp->ibv.state == IBV_QPS_RTS && qp->sq_nxt != qp->sq_tail;
}

/** Its own error ends a request and stops the send queue alone: the queue pair goes on receiving (IBA 10.3.1). */
static void emu_ud_fail(struct emu_qp *qp, enum ibv_wc_status status)
{
    qp->ibv.state = IBV_QPS_SQE;
    emu_req_complete(qp, status);
    while (qp->ibv.state == IBV_QPS_SQE && qp->sq_una < qp->sq_tail)
        emu_req_complete(qp, IBV_WC_WR_FLUSH_ERR);
}

static struct emu_pkt *emu_ud_packet(struct emu_qp *qp, const struct emu_wqe *w)
{
    struct emu_pkt *p = emu_pkt_alloc(qp->ctx->dev->fabric, w->len);

    if (!p)
        return NULL;
    p->src = qp->port;
    p->dst = w->peer ? emu_lag_toward(qp, w->peer) : qp->port; /* an address nobody has: QPN 0 takes no datagrams */
    p->dst_qpn = w->peer ? w->dest_qpn : 0;
    p->src_qpn = qp->ibv.qp_num;
    p->op = EMU_OP_DATAGRAM;
    p->flags = EMU_PKT_FIRST | EMU_PKT_LAST | (w->flags & IBV_SEND_SOLICITED ? EMU_PKT_SOLICITED : 0u);
    p->psn = qp->psn_next;
    p->rkey = w->rkey & EMU_UD_OWN_QKEY ? qp->attr.qkey : w->rkey;
    p->wire_bytes = EMU_FRAME_OVERHEAD + EMU_UD_DETH + w->len;
    if (w->opcode == IBV_WR_SEND_WITH_IMM) {
        p->flags |= EMU_PKT_IMM;
        p->imm = w->imm;
        p->wire_bytes += EMU_UD_IMM;
    }
    return p;
}

struct emu_pkt *emu_ud_next(struct emu_qp *qp)
{
    while (emu_ud_wants(qp)) {
        struct emu_wqe *w = emu_wqe_at(qp, qp->sq_nxt);
        bool inlined = w->flags & IBV_SEND_INLINE;
        struct emu_pkt *p = NULL;

        /* Longer than a packet: nothing is sent, and that is no error (IBA C10-93.1.1). */
        if (w->len <= (uint32_t)qp->ctx->dev->fabric->spec.mtu) {
            p = emu_ud_packet(qp, w);
            if (!p)
                return NULL;
        }
        if (!inlined && !emu_mr_local_ok((struct emu_pd *)qp->ibv.pd, w->sge, w->n_sge, 0)) {
            if (p)
                emu_pkt_free(qp->ctx->dev->fabric, p);
            emu_ud_fail(qp, IBV_WC_LOC_PROT_ERR);
            return NULL;
        }
        if (p && p->payload.len && inlined)
            memcpy(p->payload.bytes, emu_wqe_inline(qp, w), p->payload.len);
        else if (p && p->payload.len)
            emu_mr_gather(qp, w->sge, w->n_sge, 0, &p->payload);
        qp->psn_next = (qp->psn_next + 1) & EMU_PSN_MASK;
        qp->sq_numbered = ++qp->sq_nxt;
        emu_req_complete(qp, IBV_WC_SUCCESS);
        if (p)
            return p;
    }
    return NULL;
}

/* ---- in ------------------------------------------------------------------------------------------------------------------- */

/** The header that stands before the payload: RoCE v2 over IPv4 has it in the last 20 bytes, the others are rubbish (IBA annex A17). */
static void emu_ud_grh(struct emu_qp *qp, const struct emu_pkt *p, unsigned char out[EMU_UD_GRH])
{
    struct ip ip = {.ip_v = 4, .ip_hl = 5, .ip_ttl = 64, .ip_p = IPPROTO_UDP};
    uint64_t rubbish = emu_rng_next(&qp->ctx->dev->fabric->rng);

    ip.ip_len = htons((uint16_t)(p->wire_bytes > UINT16_MAX ? UINT16_MAX : p->wire_bytes));
    memcpy(&ip.ip_src, &p->src->gid.raw[12], sizeof(ip.ip_src));
    memcpy(&ip.ip_dst, &p->dst->gid.raw[12], sizeof(ip.ip_dst));
    for (size_t i = 0; i < EMU_UD_GRH - sizeof(ip); i++)
        out[i] = (unsigned char)(rubbish >> i % 8 * 8);
    memcpy(out + EMU_UD_GRH - sizeof(ip), &ip, sizeof(ip));
}

void emu_ud_receive(struct emu_qp *qp, const struct emu_pkt *p)
{
    unsigned char grh[EMU_UD_GRH];
    struct emu_payload head = {.len = EMU_UD_GRH, .bytes = grh};
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    const struct emu_rqe *r;

    if (qp->ibv.state != IBV_QPS_RTR && qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_SQD &&
        qp->ibv.state != IBV_QPS_SQE)
        return;
    if (p->rkey != qp->attr.qkey || !emu_recv_ready(qp))
        return;
    r = emu_recv_current(qp);
    qp->msg_got = EMU_UD_GRH + p->payload.len;
    if (qp->msg_got > emu_sge_len(r->sge, r->n_sge))
        status = IBV_WC_LOC_LEN_ERR;
    else if (!emu_mr_local_ok(emu_recv_pd(qp), r->sge, r->n_sge, IBV_ACCESS_LOCAL_WRITE))
        status = IBV_WC_LOC_PROT_ERR;
    if (status == IBV_WC_SUCCESS) {
        emu_ud_grh(qp, p, grh);
        emu_mr_scatter(qp, r->sge, r->n_sge, 0, &head);
        emu_mr_scatter(qp, r->sge, r->n_sge, EMU_UD_GRH, &p->payload);
        qp->ctx->dev->fabric->clock->wake(qp->ctx->owner);
    }
    emu_recv_complete(qp, status, p);
    if (status != IBV_WC_SUCCESS)
        emu_qp_to_error(qp);
}
