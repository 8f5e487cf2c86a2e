/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_io.c - PATH 4: builds a work request and posts it; polls completions into plain records. Nothing else.
 * Called by src/rail/rail_lane.c and rail_poll.c; next: the NIC, or the emulator, through the device's ops table.
 */
#include "verbs_priv.h"

#include <errno.h>

static enum ibv_wr_opcode verbs_opcode(enum verbs_op op)
{
    static const enum ibv_wr_opcode codes[] = {
        [VERBS_OP_WRITE] = IBV_WR_RDMA_WRITE,
        [VERBS_OP_READ] = IBV_WR_RDMA_READ,
        [VERBS_OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
        [VERBS_OP_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
        [VERBS_OP_SEND] = IBV_WR_SEND,
    };
    return codes[op];
}

int verbs_post_send(struct verbs_qp *qp, const struct verbs_send *send)
{
    struct ibv_sge sge = {.addr = send->local_addr, .length = send->len, .lkey = send->lkey};
    struct ibv_send_wr wr = {
        .wr_id = send->id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = verbs_opcode(send->op),
        .send_flags = IBV_SEND_SIGNALED,
    };
    struct ibv_send_wr *bad = NULL;
    if (send->op == VERBS_OP_FETCH_ADD || send->op == VERBS_OP_COMPARE_SWAP) {
        wr.wr.atomic.remote_addr = send->remote_addr;
        wr.wr.atomic.rkey = send->rkey;
        wr.wr.atomic.compare_add = send->operand;
        wr.wr.atomic.swap = send->swap;
    } else if (send->op != VERBS_OP_SEND) {
        wr.wr.rdma.remote_addr = send->remote_addr;
        wr.wr.rdma.rkey = send->rkey;
    }
    return verbs_result(ibv_post_send(qp->ibv, &wr, &bad));
}

int verbs_post_recv(struct verbs_qp *qp, const struct verbs_recv *recv)
{
    struct ibv_sge sge = {.addr = recv->local_addr, .length = recv->len, .lkey = recv->lkey};
    struct ibv_recv_wr wr = {.wr_id = recv->id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad = NULL;
    return verbs_result(ibv_post_recv(qp->ibv, &wr, &bad));
}

static int verbs_status_error(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return 0;
    case IBV_WC_WR_FLUSH_ERR:
        return -ECANCELED;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return -ETIMEDOUT;
    case IBV_WC_REM_ACCESS_ERR:
        return -EACCES;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
        return -EFAULT;
    case IBV_WC_LOC_LEN_ERR:
        return -EMSGSIZE;
    default:
        return -EIO;
    }
}

int verbs_poll(struct verbs_cq *cq, struct verbs_completion *out, unsigned max)
{
    struct ibv_wc wc[VERBS_POLL_MAX];
    int n = ibv_poll_cq(cq->ibv, (int)min_u32(max, VERBS_POLL_MAX), wc);
    if (n < 0)
        return -EIO; /* by its manual poll gives no reason: the CQ is broken, or the device gone */
    for (int i = 0; i < n; i++) {
        int error = verbs_status_error(wc[i].status);
        out[i] = (struct verbs_completion){
            .id = wc[i].wr_id,
            .error = error,
            .status = error ? cq->dev->v->wc_status_str(wc[i].status) : NULL,
            .vendor_error = wc[i].vendor_err,
            .len = error ? 0 : wc[i].byte_len, /* only wr_id, status, qp_num and vendor_err are valid on error */
            .qpn = wc[i].qp_num,
        };
    }
    return n;
}
