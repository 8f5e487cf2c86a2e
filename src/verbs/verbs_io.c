/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_io.c - PATH 4: builds a work request and posts it; polls completions into plain records. Nothing else.
 * Called by src/rail/rail_lane.c and rail_poll.c; next: the NIC, or the emulator, through the device's ops table.
 */
#include "verbs_priv.h"

#include <errno.h>
#include <string.h>

_Static_assert((int)VERBS_OP_WRITE == (int)IBV_WR_RDMA_WRITE && (int)VERBS_OP_SEND == (int)IBV_WR_SEND, "one number");
_Static_assert((int)VERBS_OP_READ == (int)IBV_WR_RDMA_READ, "one number");
_Static_assert((int)VERBS_OP_COMPARE_SWAP == (int)IBV_WR_ATOMIC_CMP_AND_SWP, "one number");
_Static_assert((int)VERBS_OP_FETCH_ADD == (int)IBV_WR_ATOMIC_FETCH_AND_ADD, "one number");
_Static_assert((int)VERBS_SIGNALLED == (int)IBV_SEND_SIGNALED, "one number");

/* What is copied as a block lies alike: {addr, length, lkey}, {remote_addr, rkey}, {opcode, send_flags}. */
#define VERBS_APART(type, a, b) (offsetof(type, b) - offsetof(type, a))
_Static_assert(VERBS_APART(struct verbs_send, local_addr, len) == VERBS_APART(struct ibv_sge, addr, length), "alike");
_Static_assert(VERBS_APART(struct verbs_send, local_addr, lkey) == VERBS_APART(struct ibv_sge, addr, lkey), "alike");
_Static_assert(VERBS_APART(struct verbs_send, remote_addr, rkey) ==
                   VERBS_APART(struct ibv_send_wr, wr.rdma.remote_addr, wr.rdma.rkey),
               "alike");
_Static_assert(VERBS_APART(struct verbs_send, op, signal) == VERBS_APART(struct ibv_send_wr, opcode, send_flags),
               "alike");
_Static_assert(sizeof(((struct ibv_send_wr *)NULL)->opcode) == 4, "alike");

static inline void verbs_build(struct ibv_send_wr *wr, struct ibv_sge *sge, const struct verbs_send *send)
{
    wr->wr_id = send->id;
    memcpy(&wr->opcode, &send->op, 8);
    memcpy(sge, &send->local_addr, sizeof(*sge));
    if (send->op < VERBS_OP_COMPARE_SWAP) {
        memcpy(&wr->wr, &send->remote_addr, 16);
    } else {
        wr->wr.atomic.remote_addr = send->remote_addr;
        wr->wr.atomic.compare_add = send->operand;
        wr->wr.atomic.swap = send->swap;
        wr->wr.atomic.rkey = send->rkey;
    }
}

/* What a refusal means: the first that was refused is told. A provider that does not tell has refused all, as far as is
 * known here. Apart, since the hot path would carry its registers. */
static __attribute__((noinline)) int verbs_refused(const struct verbs_qp *qp, unsigned n, const struct ibv_send_wr *bad,
                                                   int rc, unsigned *taken)
{
    *taken = bad >= qp->wr && bad < qp->wr + n ? (unsigned)(bad - qp->wr) : 0;
    return verbs_result(rc);
}

int verbs_post_list(struct verbs_qp *qp, const struct verbs_send *sends, unsigned n, unsigned *taken)
{
    struct ibv_send_wr *bad = NULL, *wr = qp->wr;
    struct ibv_sge *sge = qp->sge;
    const struct verbs_send *last = sends + n - 1;
    for (verbs_build(wr, sge, sends); sends != last; verbs_build(wr, sge, sends)) {
        wr->next = wr + 1;
        wr++;
        sge++;
        sends++;
    }
    wr->next = NULL;
    int rc = ibv_post_send(qp->ibv, qp->wr, &bad);
    return rc ? verbs_refused(qp, n, bad, rc, taken) : 0;
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
        /* Only wr_id, status, qp_num and vendor_err are valid on error (ibv_poll_cq(3)). */
        out[i].id = wc[i].wr_id;
        out[i].error = 0;
        out[i].len = wc[i].byte_len;
        out[i].qpn = wc[i].qp_num;
        if (wc[i].status != IBV_WC_SUCCESS) {
            out[i].error = verbs_status_error(wc[i].status);
            out[i].len = 0;
            out[i].status = (uint32_t)wc[i].status;
            out[i].vendor_error = wc[i].vendor_err;
        }
    }
    return n;
}

const char *verbs_status_name(const struct verbs_cq *cq, uint32_t status)
{
    return cq->dev->v->wc_status_str((enum ibv_wc_status)status);
}
