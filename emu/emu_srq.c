/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_srq.c - shared receive queues: life, limit, and the receives in them. Knows no messages. Called by emu_abi.c (programs)
 * and emu_recv.c (a message needs a receive); next: emu_cq.c for the limit event.
 */
#include "emu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct emu_srq *emu_srq_new(struct emu_pd *pd, void *srq_context, struct ibv_srq_attr *attr)
{
    struct emu_ctx *ctx = emu_ctx_of(pd->ibv.context);
    struct emu_srq *srq;

    errno = EINVAL;
    if (attr->max_wr == 0 || attr->max_wr > EMU_MAX_SRQ_WR || attr->max_sge > EMU_RECV_SGE)
        return NULL;
    srq = calloc(1, sizeof(*srq));
    if (!srq)
        return NULL;
    srq->ring = calloc(attr->max_wr, emu_rqe_size(attr->max_sge));
    if (!srq->ring) {
        free(srq);
        errno = ENOMEM;
        return NULL;
    }
    srq->ctx = ctx;
    srq->size = attr->max_wr;
    srq->max_sge = attr->max_sge;
    srq->ibv.context = pd->ibv.context;
    srq->ibv.srq_context = srq_context;
    srq->ibv.pd = &pd->ibv;
    pthread_mutex_init(&srq->ibv.mutex, NULL);
    pthread_cond_init(&srq->ibv.cond, NULL);
    srq->next = ctx->srqs;
    ctx->srqs = srq;
    ctx->refs++;
    pd->refs++;
    return srq;
}

int emu_srq_destroy(struct emu_srq *srq)
{
    struct emu_srq **at = &srq->ctx->srqs;

    if (srq->refs)
        return EBUSY;
    emu_event_forget(srq->ctx, srq);
    while (*at != srq)
        at = &(*at)->next;
    *at = srq->next;
    srq->ctx->refs--;
    ((struct emu_pd *)srq->ibv.pd)->refs--;
    free(srq->ring);
    free(srq);
    return 0;
}

int emu_srq_modify(struct emu_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
    if ((mask & ~IBV_SRQ_LIMIT) || ((mask & IBV_SRQ_LIMIT) && attr->srq_limit >= srq->size))
        return EINVAL;
    if (mask & IBV_SRQ_LIMIT)
        srq->limit = attr->srq_limit;
    return 0;
}

static struct emu_rqe *emu_srq_at(const struct emu_srq *srq, uint64_t i)
{
    return (struct emu_rqe *)(void *)(srq->ring + i % srq->size * emu_rqe_size(srq->max_sge));
}

int emu_srq_post(struct emu_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    for (; wr; wr = wr->next) {
        bool full = srq->tail - srq->head + srq->taken >= srq->size;
        struct emu_rqe *r = emu_srq_at(srq, srq->tail);

        if (full || wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge) {
            *bad = wr;
            return full ? ENOMEM : EINVAL;
        }
        r->wr_id = wr->wr_id;
        r->n_sge = wr->num_sge;
        if (wr->num_sge)
            memcpy(r->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*r->sge));
        srq->tail++;
    }
    return 0;
}

bool emu_srq_take(struct emu_srq *srq, struct emu_rqe *out)
{
    struct ibv_async_event e = {.element.srq = &srq->ibv, .event_type = IBV_EVENT_SRQ_LIMIT_REACHED};

    if (srq->head == srq->tail)
        return false;
    memcpy(out, emu_srq_at(srq, srq->head++), emu_rqe_size(srq->max_sge));
    srq->taken++;
    if (srq->tail - srq->head < srq->limit) { /* once: it has to be armed again (ibv_modify_srq(3)) */
        srq->limit = 0;
        emu_event_raise(srq->ctx, &e);
    }
    return true;
}
