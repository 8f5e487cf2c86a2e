/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_op.c - an op's life: taken from the pool when accepted, ended with its last piece. May not post.
 * Called by the files that accept ops and by api_progress.c when pieces end.
 */
#include "api.h"

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
        ch->op_free++;
        op->parent = NULL; /* as api_op_take() expects them */
        op->old = NULL;
        op->error = 0;
        pool_put(&ch->op_pool, op);
        op = parent; /* it ends a piece of the op that it is a part of */
    }
}
