/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ctx.c - the end of contexts and of what was made on them: one by one as programs close them, or all at once when
 * their owner is gone. Called by emu_dev.c, emu_abi.c (one) and emu_sim.c, emu_fabric.c (all); next: emu_qp.c, emu_mr.c.
 */
#include "emu_ah.h"

#include <stdlib.h>
#include <unistd.h>

void emu_pd_free(struct emu_pd *pd)
{
    struct emu_ctx *ctx = emu_ctx_of(pd->ibv.context);
    struct emu_pd **at = &ctx->pds;

    while (*at != pd)
        at = &(*at)->next;
    *at = pd->next;
    ctx->refs--;
    free(pd);
}

static void emu_channel_dispose(struct emu_channel *ch)
{
    close(ch->ibv.fd);
    free(ch);
}

void emu_channel_free(struct emu_channel *ch)
{
    struct emu_ctx *ctx = emu_ctx_of(ch->ibv.context);
    struct emu_channel **at = &ctx->channels;

    while (*at != ch)
        at = &(*at)->next;
    *at = ch->next;
    ctx->refs--;
    emu_channel_dispose(ch);
}

/** One object of this context that is in the table, or NULL. The table changes as objects go. */
static void *emu_ctx_find(const struct emu_map *m, const struct emu_ctx *ctx, struct emu_ctx *(*owner)(void *))
{
    for (uint32_t i = 0; i < m->size; i++) {
        if (m->slot[i].key && owner(m->slot[i].value) == ctx)
            return m->slot[i].value;
    }
    return NULL;
}

static struct emu_ctx *emu_ctx_of_qp(void *qp)
{
    return ((struct emu_qp *)qp)->ctx;
}

static struct emu_ctx *emu_ctx_of_mr(void *mr)
{
    return ((struct emu_mr *)mr)->ctx;
}

void emu_ctx_teardown(struct emu_ctx *ctx)
{
    struct emu_ctx **at = &ctx->dev->ctxs;
    void *object;

    while ((object = emu_ctx_find(&ctx->dev->qps, ctx, emu_ctx_of_qp))) {
        emu_store_drop(object); /* whose memory may be gone */
        emu_qp_destroy(object);
    }
    while ((object = emu_ctx_find(&ctx->dev->mrs, ctx, emu_ctx_of_mr)))
        emu_mr_dereg(object);
    while (ctx->srqs)
        emu_srq_destroy(ctx->srqs);
    while (ctx->ahs)
        emu_ah_free(ctx->ahs);
    while (ctx->cqs)
        emu_cq_destroy(ctx->cqs);
    while (ctx->channels) {
        struct emu_channel *ch = ctx->channels;

        ctx->channels = ch->next;
        emu_channel_dispose(ch);
    }
    while (ctx->pds) {
        struct emu_pd *pd = ctx->pds;

        ctx->pds = pd->next;
        free(pd);
    }
    while (*at != ctx)
        at = &(*at)->next;
    *at = ctx->next;
    while (ctx->async_head) {
        struct emu_async *a = ctx->async_head;

        ctx->async_head = a->next;
        free(a);
    }
    if (ctx->vctx.context.async_fd >= 0)
        close(ctx->vctx.context.async_fd);
    free(ctx);
}

void emu_fabric_abandon(struct emu_fabric *f, const struct emu_owner *owner)
{
    for (int i = 0; i < f->n_devs; i++) {
        struct emu_ctx *ctx = f->devs[i].ctxs;

        while (ctx) {
            struct emu_ctx *next = ctx->next;

            if (!owner || ctx->owner == owner)
                emu_ctx_teardown(ctx);
            ctx = next;
        }
    }
}
