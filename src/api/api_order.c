/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_order.c - word ops: posted at once, deferred in the peer's FIFO until plan says so, or, in drain mode, waited for.
 * May not decide what must precede what: src/plan/plan_order.c does (docs/ordering.md argues it).
 * Called by api_put.c, api_signal.c, api_atomic.c and api_progress.c; next: src/rail/rail_lane.c
 */
#include "api.h"

#include <errno.h>

void api_order_start(struct api_peer *peer)
{
    const struct options *o = &peer->channel->braid->options;
    peer->order.counts = &peer->counts;
    peer->order.lanes = peer->lane_count;
    peer->order.drain = o->order == OPTIONS_ORDER_DRAIN;
    peer->order.faults = o->fault;
    peer->overlap.fresh = peer->lane_count == 1 ? PLAN_OVERLAP_BOUND : PLAN_OVERLAP_OPEN;
}

const uint64_t *api_order_visible(const struct api_peer *peer, uint64_t scratch[PLAN_COUNTS])
{
    const uint64_t *visible = plan_order_visible(&peer->order);
    if (!plan_order_lossy(&peer->order))
        return visible;
    for (unsigned k = 0; k < PLAN_MAX_LANES; k++)
        scratch[k] = peer->order.dead >> k & 1 ? UINT64_MAX : visible[k];
    /* Once one has failed no count moves, but each that has ended writes no more. */
    scratch[PLAN_MESSAGE] = peer->counts.posted[PLAN_MESSAGE] - (peer->message_head - peer->message_tail);
    return scratch;
}

bool api_order_behind(const struct api_peer *peer)
{
    struct plan_wait wait;
    if (peer->put.head || peer->fifo_head != peer->fifo_tail)
        return true;
    plan_order_mark(&peer->order, PLAN_MAX_LANES, PLAN_WORD_GATE, &wait);
    return plan_order(&peer->order, PLAN_MAX_LANES, &wait) != PLAN_ORDER_NOW;
}

/* Posts a word op whose time has come. False where there is no room for it now. */
static bool api_order_post(struct api_peer *peer, const struct api_word *word)
{
    const struct rail_request *request = &word->request;
    if (word->kind == PLAN_WORD_MESSAGE) {
        if (api_message_send(peer, word))
            return false;
        peer->last_word[PLAN_MESSAGE] = ++peer->counts.posted[PLAN_MESSAGE];
        plan_overlap_posted(&peer->overlap, word->ticket, PLAN_MESSAGE, peer->last_word[PLAN_MESSAGE], true);
    } else {
        struct rail_lane *lane = peer->lane[word->lane];
        if (!rail_lane_room(lane, request->klass, request->kind, request->len))
            return false;
        rail_lane_queue(lane, request);
        uint64_t count = ++peer->counts.posted[word->lane];
        peer->last_word[word->lane] = count;
        if (word->ticket != PLAN_OVERLAP_LOST)
            plan_overlap_whole(&peer->overlap, word->ticket, word->lane, count);
        else
            plan_overlap_posted(&peer->overlap, word->ticket, word->lane, count, true);
    }
    peer->words_sent++;
    return true;
}

void api_order_lost(struct api_peer *peer)
{
    if (peer->order.dead)
        peer->counts.posted[__builtin_ctz(peer->order.dead)]++;
}

/* It can never go: what it must follow is lost, or its lane is. */
static void api_order_fail(struct api_peer *peer, const struct api_word *word)
{
    api_order_lost(peer);
    plan_overlap_all_posted(&peer->overlap, word->ticket);
    peer->words_sent++;
    api_op_piece_end((struct api_op *)(uintptr_t)word->request.cookie, -ENOTCONN);
}

static bool api_order_handed(const struct api_peer *peer, const struct api_word *word)
{
    return plan_order_handed(&peer->order, word->puts, peer->put.handed);
}

/* All bulk before it has been handed to lanes: from the counts of now on it is known what it waits for. */
static void api_order_mark(struct api_peer *peer, struct api_word *word)
{
    plan_order_mark(&peer->order, word->lane, word->kind, &word->wait);
    api_flush_want(peer, &word->wait);
}

void api_order_mark_all(struct api_peer *peer)
{
    uint32_t mask = peer->channel->fifo_mask;
    while (peer->fifo_marked != peer->fifo_head && api_order_handed(peer, &peer->fifo[peer->fifo_marked & mask]))
        api_order_mark(peer, &peer->fifo[peer->fifo_marked++ & mask]);
}

bool api_order_place(const struct api_peer *peer)
{
    return peer->fifo_head - peer->fifo_tail <= peer->channel->fifo_mask;
}

/* There is no room for so many more: makes some. */
static __attribute__((noinline)) bool api_order_ranges_made(struct api_peer *peer, uint32_t n)
{
    uint64_t scratch[PLAN_COUNTS];
    /* What has failed since the last pass left no completion that would bring the next one here. */
    plan_overlap_trim(&peer->overlap, api_order_visible(peer, scratch));
    if (plan_overlap_room(&peer->overlap, n))
        return true;
    api_drive(peer, true); /* what is posted and not flushed gets its flush, so that room comes */
    return false;
}

bool api_order_ranges(struct api_peer *peer, uint32_t n)
{
    return plan_overlap_room(&peer->overlap, n) || api_order_ranges_made(peer, n);
}

/* Whether a word op that finds the FIFO empty may go now. */
static bool api_order_now(const struct api_peer *peer, const struct api_word *word)
{
    struct plan_wait wait;
    if (plan_order_clear(&peer->order, word->lane, word->kind))
        return true;
    plan_order_mark(&peer->order, word->lane, word->kind, &wait);
    return plan_order(&peer->order, word->lane, &wait) == PLAN_ORDER_NOW;
}

bool api_order_accept(struct api_peer *peer, struct api_word *word)
{
    struct braid_channel *ch = peer->channel;
    word->puts = peer->put.accepted;
    word->ticket = plan_overlap_add(&peer->overlap, word->request.remote_addr, word->request.len);
    peer->words_accepted++;
    ch->count.words++;
    bool marked = peer->fifo_marked == peer->fifo_head && api_order_handed(peer, word);
    if (marked && peer->fifo_tail == peer->fifo_head && api_order_now(peer, word) && api_order_post(peer, word))
        return true;
    ch->count.deferred++;
    struct api_word *place = &peer->fifo[peer->fifo_head++ & ch->fifo_mask];
    api_word_copy(place, word);
    if (marked)
        api_order_mark(peer, place);
    peer->fifo_marked += marked;
    return false;
}

/* A word op has been posted, or waits. What it and others have built leaves now. Where it waits for bulk that is left to the next pass, that
 * one sees to both. */
static void api_order_leave(struct api_peer *peer, const struct api_word *word, bool posted)
{
    if (!posted && (peer->put.held || peer->put.later) && peer->fifo_marked != peer->fifo_head)
        return;
    if (!posted || word->kind == PLAN_WORD_MESSAGE || !api_idle(peer)) {
        api_drive(peer, true);
        return;
    }
    peer->channel->count.lists++;
    rail_lane_ring(peer->lane[word->lane]);
}

int api_order_drain(struct api_peer *peer, enum plan_word kind, unsigned lane)
{
    struct plan_wait wait;
    uint64_t puts = peer->put.accepted;
    bool marked = false;
    if (!plan_order_blocks(&peer->order))
        return 0;
    api_drive(peer, true); /* what has been built leaves now */
    for (;;) {
        if (!marked && peer->put.handed >= puts && peer->fifo_tail == peer->fifo_head) {
            plan_order_mark(&peer->order, lane, kind, &wait);
            marked = true;
        }
        if (marked && plan_order(&peer->order, lane, &wait) != PLAN_ORDER_WAIT)
            return 0;
        int rc = api_turn(peer->channel, UINT64_MAX);
        if (rc)
            return rc;
    }
}

int api_order_possible(struct api_peer *peer, const struct api_word *word)
{
    struct plan_wait wait;
    if (!plan_order_lossy(&peer->order))
        return 0;
    plan_order_mark(&peer->order, word->lane, word->kind, &wait);
    if (plan_order(&peer->order, word->lane, &wait) != PLAN_ORDER_NEVER)
        return 0;
    api_log_limited(peer->channel, API_LOG_LANE,
                    "an ordered op to PE %d cannot be: what it must follow was lost with a lane", peer->pe);
    return -ENOTCONN;
}

int api_order_submit(struct api_peer *peer, struct api_word *word, struct braid_mem *mem, uint64_t *old,
                     struct braid_done *done)
{
    if (plan_order_blocks(&peer->order) || plan_order_lossy(&peer->order)) {
        int rc = api_order_drain(peer, word->kind, word->lane);
        if (!rc)
            rc = api_order_possible(peer, word);
        if (rc)
            return rc;
    }
    if (!api_order_place(peer) || !api_order_ranges(peer, 1))
        return -EAGAIN;
    struct api_op *op = api_op_take(peer, mem, done, 1);
    if (!op)
        return -EAGAIN;
    op->old = old;
    word->request.cookie = (uintptr_t)op;
    api_order_leave(peer, word, api_order_accept(peer, word));
    return 0;
}

void api_order_follow(struct api_peer *peer, struct api_word *word)
{
    int rc = api_order_drain(peer, word->kind, word->lane);
    /* Its parts have been accepted, so all of it has: a wait that was cut off shows as the op's failure. */
    if (rc)
        api_op_piece_end((struct api_op *)(uintptr_t)word->request.cookie, rc);
    else
        (void)api_order_accept(peer, word);
    api_drive(peer, true);
}

unsigned api_order_drive(struct api_peer *peer)
{
    uint32_t mask = peer->channel->fifo_mask;
    unsigned moved = 0;
    for (; peer->fifo_tail != peer->fifo_marked; moved++) {
        struct api_word *word = &peer->fifo[peer->fifo_tail & mask];
        plan_order_raise(&peer->order, word->lane, word->kind, peer->last_word, &word->wait);
        enum plan_order order = plan_order(&peer->order, word->lane, &word->wait);
        if (order == PLAN_ORDER_WAIT) {
            api_flush_want(peer, &word->wait);
            peer->order_waits = true;
            break;
        }
        if (order == PLAN_ORDER_NEVER)
            api_order_fail(peer, word);
        else if (!api_order_post(peer, word))
            break;
        peer->fifo_tail++;
    }
    return moved;
}
