/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_op.c - an op's life: taken from the pool when accepted, ended with its last piece. May not post.
 * Called by the files that accept ops and by api_progress.c when pieces end.
 */
#include "api.h"

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

/* What is counted per channel and peer is counted once for all of them. */
void api_op_pieces_end(struct api_peer *peer, const struct rail_record *ring, uint32_t mask, uint32_t from, uint32_t to)
{
    struct braid_channel *ch = peer->channel;
    unsigned index = ch->index;
    uint64_t ended = 0;
    for (; from != to; from++) {
        struct api_op *op = (struct api_op *)(uintptr_t)ring[from & mask].cookie;
        if (op->error || op->parent || op->pieces != 1) {
            api_op_piece_end(op, 0);
            continue;
        }
        api_mem_use(op->mem, index, -1);
        if (op->done)
            api_op_count(op->done, 0);
        pool_put(&ch->op_pool, op);
        ended++;
    }
    peer->ops -= ended;
    ch->ops -= ended;
    ch->op_free += ended;
}
