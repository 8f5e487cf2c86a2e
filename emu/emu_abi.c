/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_abi.c - the verbs calls on an open context, each a few lines into the model, in libibverbs' own error conventions
 * (positive errno, NULL and errno, -1). Called by programs; next: emu_qp.c, emu_post.c, emu_cq.c, emu_mr.c.
 */
#include "emu_abi.h"
#include "emu_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

EMU_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct emu_fabric *f = emu_fabric_of(context);
    struct emu_pd *pd;

    if (emu_enter(f, EMU_COST_OBJECT, "ibv_alloc_pd"))
        return NULL;
    pd = calloc(1, sizeof(*pd));
    if (pd) {
        pd->ibv.context = context;
        pd->next = emu_ctx_of(context)->pds;
        emu_ctx_of(context)->pds = pd;
        emu_ctx_of(context)->refs++;
    }
    emu_leave(f, 0);
    return (struct ibv_pd *)pd;
}

EMU_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    struct emu_fabric *f = emu_fabric_of(ibv->context);
    struct emu_pd *pd = (struct emu_pd *)ibv;

    if (emu_enter(f, EMU_COST_OBJECT, "ibv_dealloc_pd"))
        return ENOTSUP;
    if (pd->refs)
        return emu_leave(f, EBUSY);
    emu_pd_free(pd);
    return emu_leave(f, 0);
}

int emu_abi_run(struct emu_fabric *f, int (*fn)(void *arg), void *arg)
{
    return f->clock->run ? f->clock->run(f, fn, arg) : fn(arg);
}

static int emu_abi_do_dereg(void *mr)
{
    return emu_mr_dereg(mr);
}

static int emu_abi_do_reach(void *arg)
{
    struct emu_mr *mr = arg;
    unsigned char first[8];
    struct emu_payload to = {.len = mr->ibv.length < sizeof(first) ? (uint32_t)mr->ibv.length : sizeof(first),
                             .bytes = first};

    emu_gpu_warm(mr->gpu);
    mr->mem->load(mr, 0, &to, 0, to.len);
    return emu_gpu_dead(mr->gpu) ? EFAULT : 0;
}

/** GPU memory that the engine thread cannot read is found now, and what its first copy needs is made now. NULL and errno. */
static struct emu_mr *emu_abi_reach(struct emu_fabric *f, struct emu_mr *mr)
{
    int rc = mr && mr->gpu ? emu_abi_run(f, emu_abi_do_reach, mr) : 0;

    if (rc == 0)
        return mr;
    emu_abi_run(f, emu_abi_do_dereg, mr);
    errno = rc;
    return NULL;
}

static struct ibv_mr *emu_abi_reg(struct ibv_pd *pd, void *addr, size_t len, uint64_t local, uint64_t remote,
                                  int access)
{
    struct emu_fabric *f = emu_fabric_of(pd->context);
    struct emu_mr *mr;

    if (emu_enter(f, EMU_COST_REG_MR, "ibv_reg_mr"))
        return NULL;
    mr = emu_abi_reach(f, emu_mr_reg((struct emu_pd *)pd, addr, len, local, remote, access));
    emu_leave(f, 0);
    return mr ? &mr->ibv : NULL;
}

/* Plain registrations are named to peers by a shifted address, so that no peer address is a valid local pointer. */
#undef ibv_reg_mr
EMU_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    struct emu_owner *self = emu_self();
    uint64_t va = (uintptr_t)addr;

    return emu_abi_reg(pd, addr, length, va, va + (self ? self->shift : 0), access);
}

EMU_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                           unsigned int access)
{
    /* The header turns ibv_reg_mr() with optional rights into this call with iova = addr: still a plain registration. */
    if (iova == (uintptr_t)addr) {
        struct emu_owner *self = emu_self();

        return emu_abi_reg(pd, addr, length, iova, iova + (self ? self->shift : 0), (int)access);
    }
    return emu_abi_reg(pd, addr, length, iova, iova, (int)access);
}

#undef ibv_reg_mr_iova
EMU_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

/**
 * A buffer of a GPU's memory. What the descriptor stands for cannot be asked of the kernel without the driver, so the IOVA says
 * where it is: programs give the address that they use themselves.
 */
EMU_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                            int access)
{
    struct emu_fabric *f = emu_fabric_of(pd->context);
    struct emu_mr *mr = NULL;

    (void)offset;
    if (fcntl(fd, F_GETFD) < 0) { /* programs probe with -1 and read EBADF as "there is such a call" */
        errno = EBADF;
        return NULL;
    }
    if (emu_enter(f, EMU_COST_REG_MR, "ibv_reg_dmabuf_mr"))
        return NULL;
    errno = EOPNOTSUPP;
    if (f->clock->real && length && emu_gpu_find((void *)(uintptr_t)iova, length))
        mr = emu_abi_reach(f, emu_mr_reg((struct emu_pd *)pd, (void *)(uintptr_t)iova, length, iova, iova, access));
    emu_leave(f, 0);
    return mr ? &mr->ibv : NULL;
}

EMU_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct emu_fabric *f = emu_fabric_of(mr->context);

    if (emu_enter(f, EMU_COST_REG_MR, "ibv_dereg_mr"))
        return ENOTSUP;
    return emu_leave(f, emu_abi_run(f, emu_abi_do_dereg, mr));
}

static struct emu_channel *emu_abi_channel(struct ibv_context *context)
{
    struct emu_channel *ch = calloc(1, sizeof(*ch));

    if (!ch)
        return NULL;
    ch->ibv.context = context;
    ch->ibv.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    ch->tail = &ch->head;
    if (ch->ibv.fd < 0) {
        free(ch);
        return NULL;
    }
    ch->next = emu_ctx_of(context)->channels;
    emu_ctx_of(context)->channels = ch;
    emu_ctx_of(context)->refs++;
    return ch;
}

EMU_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct emu_fabric *f = emu_fabric_of(context);
    struct emu_channel *ch;

    if (emu_enter(f, EMU_COST_OBJECT, "ibv_create_comp_channel"))
        return NULL;
    ch = emu_abi_channel(context);
    emu_leave(f, 0);
    return ch ? &ch->ibv : NULL;
}

EMU_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct emu_fabric *f = emu_fabric_of(channel->context);

    if (emu_enter(f, EMU_COST_OBJECT, "ibv_destroy_comp_channel"))
        return ENOTSUP;
    if (channel->refcnt)
        return emu_leave(f, EBUSY);
    emu_channel_free((struct emu_channel *)channel);
    return emu_leave(f, 0);
}

EMU_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                        struct ibv_comp_channel *channel, int comp_vector)
{
    struct emu_fabric *f = emu_fabric_of(context);
    struct emu_cq *cq;

    if (emu_enter(f, EMU_COST_OBJECT, "ibv_create_cq"))
        return NULL;
    if (comp_vector < 0 || comp_vector >= context->num_comp_vectors) {
        emu_leave(f, 0);
        errno = EINVAL;
        return NULL;
    }
    cq = emu_cq_new(emu_ctx_of(context), cqe, cq_context, channel);
    emu_leave(f, 0);
    return cq ? &cq->ibv : NULL;
}

void emu_abi_wait_acks(struct emu_fabric *f, const uint32_t *given, const uint32_t *acked)
{
    while (*given != *acked) {
        f->clock->unlock(f);
        if (f->clock->sleep(f, UINT64_MAX)) {
            f->clock->lock(f);
            return;
        }
        f->clock->lock(f);
    }
}

EMU_EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
    struct emu_fabric *f = emu_fabric_of(cq->context);

    if (emu_enter(f, EMU_COST_OBJECT, "ibv_destroy_cq"))
        return ENOTSUP;
    if (((struct emu_cq *)cq)->refs)
        return emu_leave(f, EBUSY);
    emu_abi_wait_acks(f, &((struct emu_cq *)cq)->events_given, &cq->comp_events_completed);
    emu_abi_wait_acks(f, &((struct emu_cq *)cq)->async_given, &cq->async_events_completed);
    return emu_leave(f, emu_cq_destroy((struct emu_cq *)cq));
}

EMU_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct emu_fabric *f = emu_fabric_of(pd->context);
    struct emu_qp *qp;

    if (emu_enter(f, EMU_COST_CREATE_QP, "ibv_create_qp"))
        return NULL;
    qp = emu_qp_new((struct emu_pd *)pd, init);
    if (qp)
        init->cap = qp->cap;
    emu_leave(f, 0);
    return qp ? &qp->ibv : NULL;
}

struct emu_abi_modify {
    struct emu_qp *qp;
    const struct ibv_qp_attr *attr;
    int mask;
};

static int emu_abi_do_modify(void *arg)
{
    const struct emu_abi_modify *m = arg;

    return emu_qp_modify(m->qp, m->attr, m->mask);
}

EMU_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct emu_fabric *f = emu_fabric_of(qp->context);
    struct emu_abi_modify m = {(struct emu_qp *)qp, attr, mask};

    if (emu_enter(f, EMU_COST_MODIFY_QP, "ibv_modify_qp"))
        return ENOTSUP;
    return emu_leave(f, emu_abi_run(f, emu_abi_do_modify, &m));
}

EMU_EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct emu_fabric *f = emu_fabric_of(ibv->context);
    struct emu_qp *qp = (struct emu_qp *)ibv;

    (void)mask; /* "a hint": all attributes are given (ibv_query_qp(3)) */
    if (emu_enter(f, EMU_COST_QUERY, "ibv_query_qp"))
        return ENOTSUP;
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = ibv->state;
    attr->cap = qp->cap;
    attr->sq_psn = ibv->state >= IBV_QPS_RTS ? qp->psn_next : qp->attr.sq_psn;
    attr->rq_psn = ibv->state >= IBV_QPS_RTR ? qp->epsn : qp->attr.rq_psn;
    attr->sq_draining = ibv->state == IBV_QPS_SQD && qp->sq_una != qp->sq_numbered;
    *init = (struct ibv_qp_init_attr){.qp_context = ibv->qp_context,
                                      .send_cq = ibv->send_cq,
                                      .recv_cq = ibv->recv_cq,
                                      .srq = ibv->srq,
                                      .cap = qp->cap,
                                      .qp_type = ibv->qp_type,
                                      .sq_sig_all = qp->sig_all};
    return emu_leave(f, 0);
}

static int emu_abi_do_destroy_qp(void *qp)
{
    return emu_qp_destroy(qp);
}

EMU_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct emu_fabric *f = emu_fabric_of(qp->context);

    if (emu_enter(f, EMU_COST_MODIFY_QP, "ibv_destroy_qp"))
        return ENOTSUP;
    emu_abi_wait_acks(f, &((struct emu_qp *)qp)->async_given, &qp->events_completed);
    return emu_leave(f, emu_abi_run(f, emu_abi_do_destroy_qp, qp));
}

/* ---- data path ------------------------------------------------------------------------------------------------------- */

int emu_abi_post_list(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct emu_fabric *f = emu_fabric_of(qp->context);
    int rc, taken;

    if (!emu_self())
        return ENOTSUP;
    /* Time first: the doorbell is rung when the whole list has been written. */
    for (struct ibv_send_wr *w = wr ? wr->next : NULL; w; w = w->next)
        f->clock->charge(f, emu_cost_ns(EMU_COST_POST_NEXT));
    if (emu_enter(f, EMU_COST_POST_SEND, "ibv_post_send"))
        return ENOTSUP;
    rc = emu_post_send((struct emu_qp *)qp, wr, bad, &taken);
    return emu_leave(f, rc);
}

static int emu_abi_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct emu_fabric *f = emu_fabric_of(qp->context);

    if (emu_enter(f, EMU_COST_POST_RECV, "ibv_post_recv"))
        return ENOTSUP;
    return emu_leave(f, emu_recv_post((struct emu_qp *)qp, wr, bad));
}

static int emu_abi_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct emu_fabric *f = emu_fabric_of(srq->context);

    if (emu_enter(f, EMU_COST_POST_RECV, "ibv_post_srq_recv"))
        return ENOTSUP;
    return emu_leave(f, emu_srq_post((struct emu_srq *)srq, wr, bad));
}

/**
 * A poll that finds nothing, repeated with nothing in between, can only find nothing again until something happens:
 * then the caller sleeps instead of spinning through virtual time. A queue's first empty poll counts as something: a program
 * with several makes one whole empty pass over all of them, after which it may have something better to do than to poll,
 * to wait until a deadline above all.
 */
static int emu_abi_idle(struct emu_fabric *f, struct emu_cq *cq)
{
    struct emu_owner *self = emu_self();

    if (self->grace)
        self->grace--;
    else if (cq->polled_empty && cq->seen == self->changes && f->clock->sleep(f, UINT64_MAX))
        return -1;
    if (!cq->polled_empty)
        self->changes++;
    cq->polled_empty = true;
    cq->seen = self->changes;
    return 0;
}

static int emu_abi_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
    struct emu_fabric *f = emu_fabric_of(ibv->context);
    struct emu_cq *cq = (struct emu_cq *)ibv;
    struct emu_owner *self = emu_self();
    int got;

    if (!self || n < 0)
        return -1;
    if (f->clock->real) {
        /* The engine thread works: whoever polls shall not keep the lock from it. */
        if (__atomic_load_n(&f->gpu_mrs, __ATOMIC_RELAXED) && !__atomic_load_n(&cq->count, __ATOMIC_RELAXED))
            return 0;
        f->clock->lock(f);
        got = emu_cq_take(cq, n, wc);
        f->clock->unlock(f);
        return got;
    }
    self->last_call = "ibv_poll_cq";
    f->clock->charge(f, emu_cost_ns(EMU_COST_POLL_EMPTY));
    if (f->clock->canceled(f))
        return -1;
    f->clock->lock(f);
    got = emu_cq_take(cq, n, wc);
    f->clock->unlock(f);
    if (got == 0)
        return n && cq->count == 0 ? emu_abi_idle(f, cq) : 0;
    cq->polled_empty = false;
    self->changes++;
    f->clock->charge(f, emu_cost_ns(EMU_COST_POLL_HIT) - emu_cost_ns(EMU_COST_POLL_EMPTY) +
                            (uint64_t)got * emu_cost_ns(EMU_COST_POLL_CQE));
    return got;
}

static int emu_abi_req_notify(struct ibv_cq *ibv, int solicited_only)
{
    struct emu_fabric *f = emu_fabric_of(ibv->context);
    struct emu_cq *cq = (struct emu_cq *)ibv;

    if (emu_enter(f, EMU_COST_ARM, "ibv_req_notify_cq"))
        return ENOTSUP;
    /* "Any" outlives a later "solicited only" (ibv_req_notify_cq(3)). */
    if (solicited_only)
        cq->armed_solicited = true;
    else
        cq->armed = true;
    return emu_leave(f, 0);
}

void emu_abi_fill_ops(struct ibv_context_ops *ops)
{
    ops->poll_cq = emu_abi_poll_cq;
    ops->req_notify_cq = emu_abi_req_notify;
    ops->post_send = emu_abi_post_list;
    ops->post_recv = emu_abi_post_recv;
    ops->post_srq_recv = emu_abi_post_srq_recv;
}

EMU_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct emu_fabric *f = emu_fabric_of(channel->context);
    struct emu_cq *found;

    for (;;) {
        if (emu_enter(f, EMU_COST_EVENT, "ibv_get_cq_event"))
            return -1;
        found = emu_channel_take((struct emu_channel *)channel);
        emu_leave(f, 0);
        if (found)
            break;
        errno = EAGAIN;
        if (fcntl(channel->fd, F_GETFL) & O_NONBLOCK)
            return -1;
        errno = EINTR;
        if (f->clock->sleep(f, UINT64_MAX))
            return -1;
    }
    *cq = &found->ibv;
    *cq_context = found->ibv.cq_context;
    return 0;
}

EMU_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    struct emu_fabric *f = emu_fabric_of(cq->context);

    if (emu_enter(f, EMU_COST_ARM, "ibv_ack_cq_events"))
        return;
    cq->comp_events_completed += nevents;
    emu_leave(f, 0);
}

/* ---- words ------------------------------------------------------------------------------------------------------------ */

EMU_EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static const char *const text[] = {
        "success",
        "local length error",
        "local QP operation error",
        "local EE context operation error",
        "local protection error",
        "work request flushed",
        "memory window bind error",
        "bad response error",
        "local access error",
        "remote invalid request error",
        "remote access error",
        "remote operation error",
        "transport retry counter exceeded",
        "RNR retry counter exceeded",
    };

    return (unsigned)status < sizeof(text) / sizeof(text[0]) ? text[status] : "unknown";
}

EMU_EXPORT const char *ibv_port_state_str(enum ibv_port_state state)
{
    static const char *const text[] = {"no state change (NOP)", "down", "init", "armed", "active", "active defer"};

    return (unsigned)state < sizeof(text) / sizeof(text[0]) ? text[state] : "unknown";
}

EMU_EXPORT const char *ibv_event_type_str(enum ibv_event_type event)
{
    switch (event) {
    case IBV_EVENT_CQ_ERR:
        return "CQ error";
    case IBV_EVENT_QP_FATAL:
        return "local work queue catastrophic error";
    case IBV_EVENT_QP_REQ_ERR:
        return "invalid request local work queue error";
    case IBV_EVENT_QP_ACCESS_ERR:
        return "local access violation work queue error";
    case IBV_EVENT_COMM_EST:
        return "communication established";
    case IBV_EVENT_SQ_DRAINED:
        return "send queue drained";
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return "SRQ limit reached";
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return "last WQE reached";
    case IBV_EVENT_PORT_ACTIVE:
        return "port active";
    case IBV_EVENT_PORT_ERR:
        return "port error";
    default:
        return "unknown";
    }
}
