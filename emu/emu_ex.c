/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ex.c - the ibv_wr_*() way of posting (ibv_wr_post(3)): requests are put together one call at a time, between
 * ibv_wr_start() and ibv_wr_complete(), and then posted as a list. Only one thread may be between the two on a queue pair.
 * Called by programs through struct ibv_qp_ex; next: emu_abi.c's ibv_post_send.
 */
#include "emu_ex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct emu_ex {
    struct ibv_send_wr *wr;
    struct ibv_sge *sge; /* EMU_MAX_SGE each */
    unsigned char *inlined;
    uint32_t size, count, inline_size;
    int error; /* the first, until ibv_wr_complete() tells */
};

static struct emu_qp *emu_ex_qp(struct ibv_qp_ex *ex)
{
    return (struct emu_qp *)(void *)ex;
}

void emu_ex_free(struct emu_ex *x)
{
    if (!x)
        return;
    free(x->wr);
    free(x->sge);
    free(x->inlined);
    free(x);
}

/** The request that setters fill; beyond what there is room for the last one is spoilt and the list refused. */
static struct ibv_send_wr *emu_ex_add(struct ibv_qp_ex *ex, enum ibv_wr_opcode op)
{
    struct emu_ex *x = emu_ex_qp(ex)->staged;
    struct ibv_send_wr *w;

    if (x->count == x->size)
        x->error = x->error ? x->error : ENOMEM;
    else
        x->count++;
    w = &x->wr[x->count - 1];
    *w =
        (struct ibv_send_wr){.wr_id = ex->wr_id, .opcode = op, .send_flags = ex->wr_flags & ~(unsigned)IBV_SEND_INLINE};
    w->sg_list = &x->sge[(size_t)(x->count - 1) * EMU_MAX_SGE];
    if (x->count > 1)
        w[-1].next = w;
    return w;
}

static struct ibv_send_wr *emu_ex_last(struct ibv_qp_ex *ex)
{
    struct emu_ex *x = emu_ex_qp(ex)->staged;

    return &x->wr[x->count ? x->count - 1 : 0];
}

static void emu_ex_start(struct ibv_qp_ex *ex)
{
    struct emu_ex *x = emu_ex_qp(ex)->staged;

    x->count = 0;
    x->error = 0;
}

static int emu_ex_complete(struct ibv_qp_ex *ex)
{
    struct emu_ex *x = emu_ex_qp(ex)->staged;
    struct ibv_send_wr *bad;
    int rc = x->error;

    /* All or nothing: a list that does not fit is not posted in part. */
    if (rc == 0 && x->count)
        rc = emu_abi_post_list(&ex->qp_base, x->wr, &bad);
    x->count = 0;
    x->error = 0;
    return rc;
}

/* ---- requests ------------------------------------------------------------------------------------------------------------ */

static void emu_ex_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr, __be32 imm)
{
    struct ibv_send_wr *w = emu_ex_add(ex, op);

    w->wr.rdma.remote_addr = addr;
    w->wr.rdma.rkey = rkey;
    w->imm_data = imm;
}

static void emu_ex_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    emu_ex_rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void emu_ex_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
    emu_ex_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void emu_ex_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    emu_ex_rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void emu_ex_send(struct ibv_qp_ex *ex)
{
    emu_ex_add(ex, IBV_WR_SEND);
}

static void emu_ex_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    emu_ex_add(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void emu_ex_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
    struct ibv_send_wr *w = emu_ex_add(ex, IBV_WR_ATOMIC_FETCH_AND_ADD);

    w->wr.atomic.remote_addr = addr;
    w->wr.atomic.rkey = rkey;
    w->wr.atomic.compare_add = add;
}

static void emu_ex_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
    struct ibv_send_wr *w = emu_ex_add(ex, IBV_WR_ATOMIC_CMP_AND_SWP);

    w->wr.atomic.remote_addr = addr;
    w->wr.atomic.rkey = rkey;
    w->wr.atomic.compare_add = compare;
    w->wr.atomic.swap = swap;
}

/* ---- their data ------------------------------------------------------------------------------------------------------------ */

static void emu_ex_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
    struct emu_ex *x = emu_ex_qp(ex)->staged;
    struct ibv_send_wr *w = emu_ex_last(ex);

    if (!x->count || n > EMU_MAX_SGE) {
        x->error = x->error ? x->error : EINVAL;
        return;
    }
    memcpy(w->sg_list, list, n * sizeof(*list));
    w->num_sge = (int)n;
}

static void emu_ex_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = {addr, length, lkey};

    emu_ex_sge_list(ex, 1, &sge);
}

/** Copies now: the caller may use its buffers again at once. */
static void emu_ex_inline_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
    struct emu_ex *x = emu_ex_qp(ex)->staged;
    struct ibv_send_wr *w = emu_ex_last(ex);
    unsigned char *to = x->inlined + (size_t)(x->count ? x->count - 1 : 0) * x->inline_size;
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (!x->count || list[i].length > x->inline_size - len) {
            x->error = x->error ? x->error : EINVAL;
            return;
        }
        memcpy(to + len, list[i].addr, list[i].length);
        len += list[i].length;
    }
    w->send_flags |= IBV_SEND_INLINE;
    w->sg_list[0] = (struct ibv_sge){(uintptr_t)to, (uint32_t)len, 0};
    w->num_sge = 1;
}

static void emu_ex_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf one = {addr, length};

    emu_ex_inline_list(ex, 1, &one);
}

/* ---- life ----------------------------------------------------------------------------------------------------------------- */

static struct emu_ex *emu_ex_new(const struct emu_qp *qp)
{
    struct emu_ex *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->size = qp->cap.max_send_wr + 1;
    x->inline_size = qp->cap.max_inline_data;
    x->wr = calloc(x->size, sizeof(*x->wr));
    x->sge = calloc((size_t)x->size * EMU_MAX_SGE, sizeof(*x->sge));
    x->inlined = calloc(x->size, x->inline_size + 1u);
    if (x->wr && x->sge && x->inlined)
        return x;
    emu_ex_free(x);
    return NULL;
}

static void emu_ex_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct ibv_send_wr *w = emu_ex_last(ex);

    w->wr.ud.ah = ah;
    w->wr.ud.remote_qpn = qpn;
    w->wr.ud.remote_qkey = qkey;
}

static void emu_ex_fill(struct ibv_qp_ex *ex)
{
    ex->wr_start = emu_ex_start;
    ex->wr_complete = emu_ex_complete;
    ex->wr_abort = emu_ex_start;
    ex->wr_rdma_write = emu_ex_write;
    ex->wr_rdma_write_imm = emu_ex_write_imm;
    ex->wr_rdma_read = emu_ex_read;
    ex->wr_send = emu_ex_send;
    ex->wr_send_imm = emu_ex_send_imm;
    ex->wr_atomic_fetch_add = emu_ex_fetch_add;
    ex->wr_atomic_cmp_swp = emu_ex_cmp_swp;
    ex->wr_set_ud_addr = emu_ex_ud_addr;
    ex->wr_set_sge = emu_ex_sge;
    ex->wr_set_sge_list = emu_ex_sge_list;
    ex->wr_set_inline_data = emu_ex_inline;
    ex->wr_set_inline_data_list = emu_ex_inline_list;
}

struct ibv_qp *emu_ex_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
    const uint64_t able = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                          IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                          IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    struct ibv_qp_init_attr init = {a->qp_context, a->send_cq, a->recv_cq, a->srq, a->cap, a->qp_type, a->sq_sig_all};
    bool extended = a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    struct ibv_qp *qp;

    errno = EINVAL;
    if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || a->pd->context != context)
        return NULL;
    errno = EOPNOTSUPP;
    if ((a->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) ||
        (extended && (a->send_ops_flags & ~able)))
        return NULL;
    qp = ibv_create_qp(a->pd, &init);
    if (!qp)
        return NULL;
    a->cap = init.cap;
    if (!extended)
        return qp;
    ((struct emu_qp *)qp)->staged = emu_ex_new((struct emu_qp *)qp);
    if (!((struct emu_qp *)qp)->staged) {
        ibv_destroy_qp(qp);
        errno = ENOMEM;
        return NULL;
    }
    emu_ex_fill(&((struct emu_qp *)qp)->ex);
    return qp;
}

/** NULL for a queue pair that was not made for it. */
EMU_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return ((struct emu_qp *)qp)->staged ? &((struct emu_qp *)qp)->ex : NULL;
}
