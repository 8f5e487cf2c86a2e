/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_cq.c - completion queues, their channels, and asynchronous events. What is queued here wakes the owner.
 * Called by emu_req.c, emu_resp.c, emu_qp.c (add) and emu_abi.c (take); next: the program.
 */
#include "emu.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { EMU_CQ_ROOM = 8 }; /* a queue's first ring */

/* A descriptor that poll(2) can watch: one token for each event. A lost token only costs a wake-up. */
static void emu_event_signal_fd(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof(one));

    (void)n;
}

static void emu_event_clear_fd(int fd)
{
    uint64_t one;
    ssize_t n = read(fd, &one, sizeof(one));

    (void)n;
}

static void emu_event_wake(struct emu_ctx *ctx)
{
    ctx->dev->fabric->clock->wake(ctx->owner);
}

struct emu_cq *emu_cq_new(struct emu_ctx *ctx, int cqe, void *cq_context, struct ibv_comp_channel *channel)
{
    struct emu_cq *cq;

    errno = EINVAL;
    if (cqe < 1 || cqe > EMU_MAX_CQE)
        return NULL;
    cq = calloc(1, sizeof(*cq));
    if (!cq)
        return NULL;
    cq->ctx = ctx;
    cq->size = (uint32_t)cqe;
    cq->ibv.context = &ctx->vctx.context;
    cq->ibv.channel = channel;
    cq->ibv.cq_context = cq_context;
    cq->ibv.cqe = cqe;
    if (channel)
        channel->refcnt++;
    cq->next = ctx->cqs;
    ctx->cqs = cq;
    ctx->refs++;
    return cq;
}

static void emu_channel_unlink(struct emu_channel *ch, struct emu_cq *cq)
{
    for (struct emu_cq **at = &ch->head; *at; at = &(*at)->next_event) {
        if (*at == cq) {
            *at = cq->next_event;
            if (ch->tail == &cq->next_event)
                ch->tail = at;
            return;
        }
    }
}

int emu_cq_destroy(struct emu_cq *cq)
{
    struct emu_cq **at = &cq->ctx->cqs;

    if (cq->refs)
        return EBUSY;
    if (cq->events_due)
        emu_channel_unlink((struct emu_channel *)cq->ibv.channel, cq);
    for (; cq->events_due; cq->events_due--)
        emu_event_clear_fd(cq->ibv.channel->fd);
    emu_event_forget(cq->ctx, cq);
    if (cq->ibv.channel)
        cq->ibv.channel->refcnt--;
    while (*at != cq)
        at = &(*at)->next;
    *at = cq->next;
    cq->ctx->refs--;
    free(cq->ring);
    free(cq);
    return 0;
}

/** Armed and matching: one event, then the CQ has to be armed again (ibv_req_notify_cq(3)). */
static void emu_cq_notify(struct emu_cq *cq, bool solicited)
{
    struct emu_channel *ch = (struct emu_channel *)cq->ibv.channel;

    if (!ch || !(cq->armed || (cq->armed_solicited && solicited)))
        return;
    cq->armed = cq->armed_solicited = false;
    if (cq->events_due++ == 0) {
        cq->next_event = NULL;
        *ch->tail = cq;
        ch->tail = &cq->next_event;
    }
    emu_event_signal_fd(ch->ibv.fd);
}

/** Of a failed request only wr_id, status, qp_num and vendor_err are promised (ibv_poll_cq(3)): the rest is rubbish. */
static void emu_cq_spoil(struct emu_fabric *f, struct ibv_wc *wc)
{
    uint64_t r = emu_rng_next(&f->rng);

    wc->opcode = (enum ibv_wc_opcode)(r & 0xff);
    wc->byte_len = (uint32_t)(r >> 8);
    wc->imm_data = (uint32_t)(r >> 16);
    wc->wc_flags = (unsigned)(r >> 40);
    wc->src_qp = (uint32_t)(r >> 32);
}

/** Changes under the lock only; emu_abi.c looks at it without. */
static void emu_cq_count(struct emu_cq *cq, uint32_t count)
{
    __atomic_store_n(&cq->count, count, __ATOMIC_RELAXED);
}

/** Whether a completion says that something came into memory here. */
static bool emu_cq_tells(const struct ibv_wc *wc)
{
    return wc->status == IBV_WC_SUCCESS && wc->opcode != IBV_WC_RDMA_WRITE && wc->opcode != IBV_WC_SEND;
}

/** The i-th entry that nobody has polled, or the place behind the last. */
static struct emu_cqe *emu_cq_at(const struct emu_cq *cq, uint32_t i)
{
    return &cq->ring[(cq->head + i) & (cq->room - 1u)];
}

/** Room for one more entry: few queues ever hold what they were made for, and a ring that is short stays in the cache. */
static bool emu_cq_room(struct emu_cq *cq)
{
    uint32_t room = cq->room ? 2 * cq->room : EMU_CQ_ROOM;
    struct emu_cqe *ring;

    if (cq->count < cq->room)
        return true;
    ring = cq->count < cq->size ? malloc(room * sizeof(*ring)) : NULL;
    if (!ring)
        return false;
    for (uint32_t i = 0; i < cq->count; i++)
        ring[i] = *emu_cq_at(cq, i);
    free(cq->ring);
    cq->ring = ring;
    cq->room = room;
    cq->head = 0;
    return true;
}

int emu_cq_add(struct emu_cq *cq, const struct emu_cqe *e, bool solicited)
{
    struct ibv_async_event ev = {.element.cq = &cq->ibv, .event_type = IBV_EVENT_CQ_ERR};

    bool there = !emu_cq_tells(&e->wc) || emu_gpu_settle();
    struct emu_cqe *to;

    if (cq->overrun) /* a CQ in error takes nothing any more */
        return -EOVERFLOW;
    if (cq->count == cq->size || !emu_cq_room(cq)) {
        emu_event_raise(cq->ctx, &ev);
        cq->overrun = true;
        return -EOVERFLOW;
    }
    to = emu_cq_at(cq, cq->count);
    *to = *e;
    if (!there && e->wc.status == IBV_WC_SUCCESS)
        to->wc.status = IBV_WC_LOC_PROT_ERR; /* its bytes went to a GPU that has failed */
    if (to->wc.status != IBV_WC_SUCCESS)
        emu_cq_spoil(cq->ctx->dev->fabric, &to->wc);
    emu_cq_count(cq, cq->count + 1);
    emu_cq_notify(cq, solicited || to->wc.status != IBV_WC_SUCCESS);
    emu_event_wake(cq->ctx);
    return there ? 0 : -EIO;
}

void emu_cq_forget_qp(struct emu_cq *cq, const struct emu_qp *qp)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < cq->count; i++) {
        struct emu_cqe e = *emu_cq_at(cq, i);

        if (e.qp != qp)
            *emu_cq_at(cq, kept++) = e;
        else if (e.srq)
            emu_recv_free(&e);
    }
    emu_cq_count(cq, kept);
}

int emu_cq_take(struct emu_cq *cq, int n, struct ibv_wc *out)
{
    int taken = 0;

    while (taken < n && cq->count) {
        struct emu_cqe *e = emu_cq_at(cq, 0);

        /* The slot is free before its completion can be seen, and not earlier than it is polled. */
        if (e->sq_free)
            e->qp->sq_freed = e->sq_free;
        emu_recv_free(e);
        out[taken++] = e->wc;
        cq->head = (cq->head + 1) & (cq->room - 1u);
        emu_cq_count(cq, cq->count - 1);
    }
    return taken;
}

struct emu_cq *emu_channel_take(struct emu_channel *ch)
{
    struct emu_cq *cq = ch->head;

    if (!cq)
        return NULL;
    if (--cq->events_due == 0)
        emu_channel_unlink(ch, cq);
    cq->events_given++;
    emu_event_clear_fd(ch->ibv.fd);
    return cq;
}

void emu_event_raise(struct emu_ctx *ctx, const struct ibv_async_event *e)
{
    struct emu_async *a = calloc(1, sizeof(*a));

    if (!a)
        return; /* the owner still learns by completion; there is nobody to tell */
    a->event = *e;
    *ctx->async_tail = a;
    ctx->async_tail = &a->next;
    emu_event_signal_fd(ctx->vctx.context.async_fd);
    emu_event_wake(ctx);
}

void emu_event_raise_qp(struct emu_qp *qp, enum ibv_event_type type)
{
    struct ibv_async_event e = {.element.qp = &qp->ibv, .event_type = type};

    emu_event_raise(qp->ctx, &e);
}

void emu_event_raise_port(struct emu_dev *dev, enum ibv_event_type type)
{
    struct ibv_async_event e = {.element.port_num = 1, .event_type = type};

    for (struct emu_ctx *c = dev->ctxs; c; c = c->next)
        emu_event_raise(c, &e);
}

/** The QP, CQ or SRQ that an event is about; NULL for events about a port or the device. */
static const void *emu_event_element(const struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
        return NULL;
    case IBV_EVENT_CQ_ERR:
        return e->element.cq;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return e->element.srq;
    default:
        return e->element.qp;
    }
}

/** Counts what has to be acknowledged before the object may go (ibv_ack_async_event(3)). */
static void emu_event_given(const struct ibv_async_event *e)
{
    const void *element = emu_event_element(e);

    if (!element)
        return;
    if (e->event_type == IBV_EVENT_CQ_ERR)
        ((struct emu_cq *)e->element.cq)->async_given++;
    else if (e->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
        ((struct emu_srq *)e->element.srq)->async_given++;
    else
        ((struct emu_qp *)e->element.qp)->async_given++;
}

int emu_event_take(struct emu_ctx *ctx, struct ibv_async_event *out)
{
    struct emu_async *a = ctx->async_head;

    if (!a)
        return -EAGAIN;
    ctx->async_head = a->next;
    if (!ctx->async_head)
        ctx->async_tail = &ctx->async_head;
    emu_event_clear_fd(ctx->vctx.context.async_fd);
    *out = a->event;
    emu_event_given(&a->event);
    free(a);
    return 0;
}

void emu_event_forget(struct emu_ctx *ctx, const void *element)
{
    struct emu_async **at = &ctx->async_head;

    while (*at) {
        struct emu_async *a = *at;

        if (emu_event_element(&a->event) != element) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        emu_event_clear_fd(ctx->vctx.context.async_fd);
        free(a);
    }
    ctx->async_tail = at;
}
