/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_get.c - a get: bulk in the other direction, outside every order.
 * May not wait. Called by the user; next: api_bulk.c
 */
#include "api.h"

#include <errno.h>

int api_get(struct braid_channel *ch, int pe, const struct braid_local *dst, const struct braid_remote *src, size_t len,
            struct braid_done *done)
{
    struct api_transfer t;
    int rc = api_check_transfer(ch, pe, src, dst, len, &t);
    if (rc)
        return rc;
    if (len == 0) {
        if (done)
            api_op_count(done, 0);
        return 0;
    }
    struct api_peer *peer = t.peer;
    enum plan_class klass = plan_stripe_class(len, ch->braid->options.stripe_min);
    struct plan_put plan = {.klass = klass == PLAN_CLASS_LARGE ? klass : PLAN_CLASS_MEDIUM};
    rc = api_put_possible(&t, &plan);
    if (rc)
        return rc;
    if (!api_bulk_room(peer, &peer->get, 1))
        return -EAGAIN;
    struct api_op *op = api_op_take(peer, t.mem, done, 1);
    if (!op)
        return -EAGAIN;
    op->lane = PLAN_MAX_LANES;
    op->cut = klass == PLAN_CLASS_LARGE;
    op->gate = op->strict = op->lead = false;
    ch->count.gets++;
    api_bulk_accept(&peer->get, op, &t);
    if (!peer->get.held)
        api_drive(peer, false);
    return 0;
}

int braid_get(struct braid_channel *ch, int pe, struct braid_local dst, struct braid_remote src, size_t len,
              struct braid_done *done)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_get(ch, pe, &dst, &src, len, done);
    api_leave(ch);
    return rc;
}
