/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_post.c - work requests as they are posted: what ibv_post_send(3) can see at once is refused at once; the rest (keys, bounds)
 * shows in the completion. Called by emu_abi.c; next: emu_req.c sends.
 */
#include "emu_pattern.h"
#include "emu_ud.h"

#include <errno.h>
#include <string.h>

static bool emu_post_is_read(enum ibv_wr_opcode op)
{
    return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static bool emu_post_known(enum ibv_wr_opcode op)
{
    return op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_SEND ||
           op == IBV_WR_SEND_WITH_IMM || emu_post_is_read(op);
}

/** Whether what is posted now ends at once. */
static bool emu_post_flushes(const struct emu_qp *qp)
{
    return qp->ibv.state == IBV_QPS_ERR || qp->ibv.state == IBV_QPS_SQE;
}

static int emu_post_check(const struct emu_qp *qp, const struct ibv_send_wr *wr)
{
    if (qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_SQD && !emu_post_flushes(qp))
        return EINVAL;
    if (!emu_post_known(wr->opcode) || wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
        return EINVAL;
    if (emu_ud_is(qp) && emu_ud_post_check(wr))
        return EINVAL;
    if (qp->sq_tail - qp->sq_freed >= qp->cap.max_send_wr)
        return ENOMEM;
    if (wr->send_flags & IBV_SEND_INLINE) {
        if (emu_post_is_read(wr->opcode) || emu_sge_len(wr->sg_list, wr->num_sge) > qp->cap.max_inline_data)
            return EINVAL;
    }
    return 0;
}

static void emu_post_target(struct emu_wqe *w, const struct ibv_send_wr *wr)
{
    if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        w->va = wr->wr.atomic.remote_addr;
        w->rkey = wr->wr.atomic.rkey;
        w->compare_add = wr->wr.atomic.compare_add;
        w->swap = wr->wr.atomic.swap;
    } else if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
        w->va = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
    }
}

/** Inline data is read by the caller's CPU, which cannot read patterns; a program on them could not know. */
static void emu_post_copy(unsigned char *to, const struct ibv_sge *sge)
{
    const void *from = (const void *)(uintptr_t)sge->addr;
    uint64_t place;
    const struct emu_pattern *pattern = emu_pattern_find(from, sge->length, &place);

    if (pattern)
        emu_pattern_read(pattern, place, to, sge->length);
    else
        memcpy(to, from, sge->length);
}

static void emu_post_fill(struct emu_qp *qp, const struct ibv_send_wr *wr)
{
    struct emu_wqe *w = emu_wqe_at(qp, qp->sq_tail);
    unsigned char *slot = w->inline_data;
    uint64_t len = emu_sge_len(wr->sg_list, wr->num_sge);
    uint32_t at = 0;

    *w = (struct emu_wqe){.wr_id = wr->wr_id,
                          .opcode = wr->opcode,
                          .flags = wr->send_flags,
                          .imm = wr->imm_data,
                          .n_sge = wr->num_sge,
                          .inline_data = slot,
                          .status = IBV_WC_SUCCESS};
    w->len = len > EMU_MAX_MSG ? EMU_MAX_MSG + 1u : (uint32_t)len;
    if (emu_ud_is(qp))
        emu_ud_target(w, wr);
    else
        emu_post_target(w, wr);
    if (wr->num_sge)
        memcpy(w->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*w->sge));
    if (!(wr->send_flags & IBV_SEND_INLINE))
        return;
    for (int i = 0; i < wr->num_sge; i++) {
        emu_post_copy(slot + at, &wr->sg_list[i]);
        at += wr->sg_list[i].length;
    }
}

int emu_post_send(struct emu_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad, int *taken)
{
    int rc = 0;

    *taken = 0;
    for (; wr; wr = wr->next) {
        rc = emu_post_check(qp, wr);
        if (rc) {
            *bad = wr;
            break;
        }
        emu_post_fill(qp, wr);
        qp->sq_tail++;
        (*taken)++;
        if (emu_post_flushes(qp))
            emu_req_complete(qp, IBV_WC_WR_FLUSH_ERR);
    }
    if (*taken && !emu_post_flushes(qp))
        emu_link_kick(qp);
    return rc;
}
