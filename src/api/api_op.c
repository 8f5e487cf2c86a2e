/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_op.c - an op's life: taken from the pool when accepted, ended with its last piece. May not post.
 * Called by the files that accept ops and by api_progress.c when pieces end.
 */
#include "api.h"

/* One writer each. The last user's end must come before the region's: release here, acquire in braid_mem_dereg(). */
void api_mem_use(struct braid_mem *mem, unsigned channel, int by)
{
    uint32_t users = __atomic_load_n(&mem->users[channel], __ATOMIC_RELAXED) + (uint32_t)by;
    __atomic_store_n(&mem->users[channel], users, __ATOMIC_RELEASE);
}

struct api_op *api_op_take(struct api_peer *peer, struct braid_mem *mem, struct braid_done *done, uint32_t pieces)
{
    struct braid_channel *ch = peer->channel;
    struct api_op *op = pool_get(&ch->op_pool);
    if (!op)
        return NULL;
    op->done = done;
    op->mem = mem;
    op->peer = peer;
    op->parent = NULL;
    op->old = NULL;
    op->pieces = pieces;
    op->error = 0;
    ch->op_free--;
    peer->ops++;
    ch->ops++;
    if (mem)
        api_mem_use(mem, ch->index, 1);
    return op;
}

/* The caller may be another thread than the one that waits: what the op wrote comes before its count. */
void api_op_count(struct braid_done *done, int error)
{
    if (error) {
        if (!done->error)
            __atomic_store_n(&done->error, error, __ATOMIC_RELAXED);
        __atomic_store_n(&done->failed, done->failed + 1, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&done->ok, done->ok + 1, __ATOMIC_RELEASE);
    }
}

void api_op_piece_end(struct api_op *op, int error)
{
    while (op) {
        struct api_peer *peer = op->peer;
        struct braid_channel *ch = peer->channel;
        struct api_op *parent = op->parent;
        if (error && !op->error)
            op->error = error;
        if (--op->pieces > 0)
            return;
        error = op->error;
        if (op->mem)
            api_mem_use(op->mem, ch->index, -1);
        if (error && !peer->error)
            peer->error = error;
        if (op->done)
            api_op_count(op->done, error);
        peer->ops--;
        ch->ops--;
        ch->op_free++;
        pool_put(&ch->op_pool, op);
        op = parent; /* it ends a piece of the op that it is a part of */
    }
}
