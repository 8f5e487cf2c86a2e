/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ah.c - the life of address handles. Called by emu_calls.c and, at a context's end, emu_ctx.c; next: emu_fabric.c.
 */
#include "emu_ah.h"

#include <errno.h>
#include <stdlib.h>

struct emu_ah *emu_ah_new(struct emu_pd *pd, const struct ibv_ah_attr *attr)
{
    struct emu_ctx *ctx = emu_ctx_of(pd->ibv.context);
    struct emu_ah *ah;

    errno = EINVAL;
    if (!attr->is_global || attr->grh.sgid_index != 0 || attr->port_num != 1) /* RoCE: the address is a GID */
        return NULL;
    ah = calloc(1, sizeof(*ah));
    if (!ah)
        return NULL;
    ah->ibv.context = pd->ibv.context;
    ah->ibv.pd = &pd->ibv;
    ah->attr = *attr;
    ah->peer = emu_fabric_find_gid(ctx->dev->fabric, &attr->grh.dgid);
    ah->next = ctx->ahs;
    if (ah->next)
        ah->next->prev = ah;
    ctx->ahs = ah;
    ctx->refs++;
    pd->refs++;
    return ah;
}

void emu_ah_free(struct emu_ah *ah)
{
    struct emu_ctx *ctx = emu_ctx_of(ah->ibv.context);

    *(ah->prev ? &ah->prev->next : &ctx->ahs) = ah->next;
    if (ah->next)
        ah->next->prev = ah->prev;
    ctx->refs--;
    ((struct emu_pd *)ah->ibv.pd)->refs--;
    free(ah);
}
