/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_order.c - word ops: posted at once, deferred in the peer's FIFO until plan says so, or, in drain mode, waited
 * for.
 * May not decide what must precede what: src/plan/plan_order.c does (docs/ordering.md argues it).
 * Called by api_put.c, api_signal.c and api_progress.c; next: src/rail/rail_lane.c
 */
#include "api.h"

#include <errno.h>
#include <string.h>

static enum plan_order api_order_ask(const struct api_peer *peer, const struct plan_wait *wait)
{
    struct plan_order_in in = {
        .counts = &peer->counts,
        .lanes = peer->lane_count,
        .home = peer->home,
        .dead = peer->dead,
        .faults = peer->channel->braid->options.fault == OPTIONS_FAULT_DEFER ? PLAN_FAULT_DEFER : 0,
    };
    return plan_order(&in, wait);
}

static bool api_order_room(const struct api_peer *peer, const struct rail_request *request)
{
    return rail_lane_room(peer->lane[peer->home], request->klass, request->kind, request->len);
}

/* Posts a word op whose time has come and for which there is room; on failure its op ends badly, but counts as posted
 * all the same (as in api_post_piece()). */
static void api_order_post(struct api_peer *peer, const struct rail_request *request)
{
    struct rail_lane *lane = peer->lane[peer->home];
    if (request->kind == RAIL_KIND_WRITE)
        peer->counts.posted[peer->home]++;
    int rc = rail_lane_post(lane, request);
    if (!rc)
        return;
    api_lane_dead(lane, rc, "post refused", 0);
    api_op_piece_end((struct api_op *)(uintptr_t)request->cookie, rc);
}

static void api_order_defer(struct api_peer *peer, const struct rail_request *request, const struct plan_wait *wait)
{
    struct braid_channel *ch = peer->channel;
    struct api_word *word = &peer->fifo[peer->fifo_head++ & ch->fifo_mask];
    word->request = *request;
    word->wait = *wait;
    if (!peer->waiting) {
        peer->waiting = true;
        peer->next_waiting = ch->waiting;
        ch->waiting = peer;
    }
}

/* The method that braid replaces, kept to be compared with: the caller does nothing until all that went before has been
 * acknowledged. */
static int api_order_drain(struct api_peer *peer, const struct rail_request *request, const struct plan_wait *wait)
{
    for (;;) {
        enum plan_order order = api_order_ask(peer, wait);
        if (order == PLAN_ORDER_NEVER || (order == PLAN_ORDER_NOW && api_order_room(peer, request)))
            return 0;
        int rc = api_turn(peer->channel, UINT64_MAX);
        if (rc)
            return rc;
    }
}

int api_order_submit(struct api_peer *peer, struct rail_request *request, struct braid_mem *mem,
                     struct braid_done *done)
{
    struct braid_channel *ch = peer->channel;
    struct plan_wait wait;
    plan_order_mark(&peer->counts, peer->lane_count, peer->home, &wait);
    if (ch->braid->options.order == OPTIONS_ORDER_DRAIN) {
        int rc = api_order_drain(peer, request, &wait);
        if (rc)
            return rc;
    }
    enum plan_order order = api_order_ask(peer, &wait);
    if (order == PLAN_ORDER_NEVER) {
        api_log_limited(ch, API_LOG_LANE, "an ordered op to PE %d cannot be: what it must follow was lost with a lane",
                        peer->pe);
        return -ENOTCONN;
    }
    /* Behind earlier word ops that still wait, even where its own counts are reached: the FIFO is an order too. */
    bool defer = order == PLAN_ORDER_WAIT || peer->fifo_head != peer->fifo_tail;
    if (defer ? peer->fifo_head - peer->fifo_tail > ch->fifo_mask : !api_order_room(peer, request))
        return -EAGAIN;
    struct api_op *op = api_op_take(peer, mem, done, 1);
    if (!op)
        return -EAGAIN;
    request->cookie = (uintptr_t)op;
    if (defer)
        api_order_defer(peer, request, &wait);
    else
        api_order_post(peer, request);
    return 0;
}

unsigned api_order_drive(struct api_peer *peer)
{
    struct braid_channel *ch = peer->channel;
    unsigned moved = 0;
    for (; peer->fifo_tail != peer->fifo_head; moved++) {
        const struct api_word *word = &peer->fifo[peer->fifo_tail & ch->fifo_mask];
        enum plan_order order = api_order_ask(peer, &word->wait);
        if (order == PLAN_ORDER_WAIT || (order == PLAN_ORDER_NOW && !api_order_room(peer, &word->request)))
            break;
        peer->fifo_tail++;
        if (order == PLAN_ORDER_NOW)
            api_order_post(peer, &word->request);
        else
            api_op_piece_end((struct api_op *)(uintptr_t)word->request.cookie, -ENOTCONN);
    }
    return moved;
}

unsigned api_order_drive_all(struct braid_channel *ch)
{
    unsigned moved = 0;
    struct api_peer **link = &ch->waiting;
    while (*link) {
        struct api_peer *peer = *link;
        moved += api_order_drive(peer);
        if (peer->fifo_tail != peer->fifo_head) {
            link = &peer->next_waiting;
            continue;
        }
        peer->waiting = false;
        *link = peer->next_waiting;
    }
    return moved;
}
