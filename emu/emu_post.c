/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_post.c - work requests as they are posted: what ibv_post_send(3) can see at once is refused at once; the rest (keys, bounds)
 * shows in the completion. Called by emu_abi.c; next: emu_req.c sends.
 */
#include "emu_pattern.h"
#include "emu_ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EMU_POST_ROOM = 4 }; /* a send queue's first ring */

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
    struct emu_pattern *pattern = emu_pattern_find(from, sge->length, &place);

    if (pattern)
        emu_pattern_read(pattern, place, to, sge->length);
    else
        memcpy(to, from, sge->length);
}

/** Room for one more request: most send queues never hold more than a few, and a simulation may have very many of them. */
static bool emu_post_room(struct emu_qp *qp)
{
    uint32_t room = qp->sq_room ? 2 * qp->sq_room : EMU_POST_ROOM;
    struct emu_qp grown = {.sq_room = room, .sq_stride = qp->sq_stride};

    if (qp->sq_tail - qp->sq_una < qp->sq_room)
        return true;
    grown.sq = calloc(room, qp->sq_stride);
    if (!grown.sq)
        return false;
    for (uint64_t i = qp->sq_una; i < qp->sq_tail; i++)
        memcpy(emu_wqe_at(&grown, i), emu_wqe_at(qp, i), qp->sq_stride);
    free(qp->sq);
    qp->sq = grown.sq;
    qp->sq_room = room;
    return true;
}

static void emu_post_fill(struct emu_qp *qp, const struct ibv_send_wr *wr)
{
    struct emu_wqe *w = emu_wqe_at(qp, qp->sq_tail);
    unsigned char *slot = emu_wqe_inline(qp, w);
    uint64_t len = emu_sge_len(wr->sg_list, wr->num_sge);
    uint32_t at = 0;

    *w = (struct emu_wqe){.wr_id = wr->wr_id,
                          .opcode = wr->opcode,
                          .flags = wr->send_flags,
                          .imm = wr->imm_data,
                          .n_sge = (uint8_t)wr->num_sge,
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
        if (rc == 0 && !emu_post_room(qp))
            rc = ENOMEM;
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
