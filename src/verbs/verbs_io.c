/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_io.c - PATH 4: posts lists of work requests, which are built where they are posted from; polls completions into
 * plain records. Nothing else.
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

/* A request lies as the ABI has it, with its SGE in the part that only IBV_WR_BIND_MW and IBV_WR_TSO read. */
#define VERBS_ALIKE(field, theirs)                                                                                     \
    (offsetof(struct verbs_send, field) == offsetof(struct ibv_send_wr, theirs) &&                                     \
     sizeof(((struct verbs_send *)NULL)->field) == sizeof(((struct ibv_send_wr *)NULL)->theirs))
_Static_assert(VERBS_ALIKE(id, wr_id) && VERBS_ALIKE(next, next) && VERBS_ALIKE(sge, sg_list), "alike");
_Static_assert(VERBS_ALIKE(sges, num_sge) && VERBS_ALIKE(op, opcode) && VERBS_ALIKE(signal, send_flags), "alike");
_Static_assert(VERBS_ALIKE(remote_addr, wr.rdma.remote_addr) && VERBS_ALIKE(rkey, wr.rdma.rkey), "alike");
_Static_assert(VERBS_ALIKE(remote_addr, wr.atomic.remote_addr) && VERBS_ALIKE(operand, wr.atomic.compare_add), "alike");
_Static_assert(VERBS_ALIKE(swap, wr.atomic.swap) && VERBS_ALIKE(atomic_rkey, wr.atomic.rkey), "alike");
_Static_assert(offsetof(struct verbs_send, local_addr) == offsetof(struct ibv_send_wr, bind_mw) &&
                   sizeof(struct verbs_send) == sizeof(struct ibv_send_wr),
               "the SGE lies in what is not read");
#define VERBS_APART(type, a, b) (offsetof(type, b) - offsetof(type, a))
_Static_assert(VERBS_APART(struct verbs_send, local_addr, len) == VERBS_APART(struct ibv_sge, addr, length), "alike");
_Static_assert(VERBS_APART(struct verbs_send, local_addr, lkey) == VERBS_APART(struct ibv_sge, addr, lkey), "alike");

void verbs_list_init(struct verbs_send *sends, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        sends[i].next = i + 1 < n ? &sends[i + 1] : NULL;
        sends[i].sge = &sends[i].local_addr;
        sends[i].sges = 1;
    }
}

/* What a refusal means: the first that was refused is told. A provider that does not tell has refused all, as far as is
 * known here. Apart, since the hot path would carry its registers. */
static __attribute__((noinline)) int verbs_refused(const struct ibv_send_wr *first, unsigned n,
                                                   const struct ibv_send_wr *bad, int rc, unsigned *taken)
{
    *taken = bad >= first && bad < first + n ? (unsigned)(bad - first) : 0;
    return verbs_result(rc);
}

int verbs_post_list(struct verbs_qp *qp, struct verbs_send *sends, unsigned n, unsigned *taken)
{
    struct ibv_send_wr *bad = NULL, *first = (struct ibv_send_wr *)(void *)sends;
    struct verbs_send *last = &sends[n - 1], *behind = last->next;
    last->next = NULL;
    int rc = ibv_post_send(qp->ibv, first, &bad);
    last->next = behind;
    return rc ? verbs_refused(first, n, bad, rc, taken) : 0;
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
