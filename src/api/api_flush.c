/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_flush.c - flushes: a READ behind the writes of a lane proves that they are in the target's memory, which their
 * acknowledgement does not. At most one a lane is in flight; all who wait share it.
 * May not decide who must wait: src/plan/plan_order.c does. Called by api_order.c, api_bulk.c, api_quiet.c and
 * api_progress.c; next: src/rail/rail_lane.c
 */
#include "api.h"

void api_flush_want(struct api_peer *peer, const struct plan_wait *wait)
{
    uint32_t lanes = plan_order_flush(&peer->order, wait);
    peer->flush_due |= (uint16_t)lanes;
    for (; lanes; lanes &= lanes - 1) {
        unsigned k = (unsigned)__builtin_ctz(lanes);
        peer->flush_want[k] = max_u64(peer->flush_want[k], wait->count[k]);
    }
}

void api_flush_want_all(struct api_peer *peer)
{
    uint32_t lanes = plan_order_flush_all(&peer->order);
    peer->flush_due |= (uint16_t)lanes;
    for (; lanes; lanes &= lanes - 1) {
        unsigned k = (unsigned)__builtin_ctz(lanes);
        peer->flush_want[k] = peer->counts.posted[k];
    }
}

void api_flush_want_one(struct api_peer *peer)
{
    /* The next round when all of this one are back: else a lane that answers soon would be asked again and again. */
    if (!peer->flush_round && !peer->flush_due)
        peer->flush_round = (uint16_t)plan_order_flush_all(&peer->order);
    if (!peer->flush_round)
        return;
    unsigned k = (unsigned)__builtin_ctz(peer->flush_round);
    peer->flush_round &= (uint16_t)(peer->flush_round - 1);
    peer->flush_due |= (uint16_t)(1u << k);
    peer->flush_want[k] = peer->counts.posted[k];
}

/* What a quiet asks plan: in drain mode too it waits for flushes, since only they prove anything. */
static struct plan_order_in api_flush_in(const struct api_peer *peer)
{
    struct plan_order_in in = peer->order;
    in.drain = false;
    return in;
}

/* What a peer's regions are of: those that have been named; for oneself all there are, since others write to them. */
static unsigned api_flush_memory(const struct api_peer *peer)
{
    const struct braid *b = peer->channel->braid;
    unsigned own = peer->pe == b->my_pe ? __atomic_load_n(&b->mem_kinds, __ATOMIC_RELAXED) : 0;
    return peer->memory | own;
}

bool api_flush_queue(struct api_peer *peer, unsigned k, struct rail_request *request)
{
    struct rail_lane *lane = peer->lane[k];
    unsigned memory = api_flush_memory(peer);
    bool mixed = memory == (RAIL_WIRE_MEMORY_HOST | RAIL_WIRE_MEMORY_GPU);
    if (!rail_lane_room(lane, request->klass, mixed ? RAIL_KIND_AHEAD : request->kind, request->len))
        return false;
    if (mixed) {
        /* It may be one READ more than max_rd_atomic allows: then the second is held back by the QP, which nothing else here
         * waits for long. */
        struct rail_request ahead = {
            .kind = RAIL_KIND_AHEAD, .klass = request->klass, .epoch = request->epoch, .len = 8};
        rail_lane_queue(lane, &ahead);
    }
    request->gpu = memory & RAIL_WIRE_MEMORY_GPU;
    rail_lane_queue(lane, request);
    return true;
}

/* Posts one on a lane that has none in flight. False where there is no room. */
static bool api_flush_post(struct api_peer *peer, unsigned k)
{
    struct rail_request request = {.kind = RAIL_KIND_FLUSH, .klass = RAIL_CLASS_WORD, .epoch = peer->epoch, .len = 8};
    if (!api_flush_queue(peer, k, &request))
        return false;
    peer->flush_ns[k] = clock_now(&peer->channel->braid->clock);
    peer->flush_no[k]++;
    peer->flushing |= (uint16_t)(1u << k);
    peer->channel->count.flushes++;
    return true;
}

bool api_flush_probe(struct api_peer *peer, unsigned k)
{
    if ((peer->flushing >> k & 1) || !api_flush_post(peer, k))
        return false;
    rail_lane_ring(peer->lane[k]);
    return true;
}

unsigned api_flush_drive(struct api_peer *peer)
{
    unsigned moved = 0;
    for (uint32_t due = peer->flush_due & ~(peer->flushing | peer->order.dead); due; due &= due - 1) {
        unsigned k = (unsigned)__builtin_ctz(due);
        if (peer->counts.flushed[k] >= peer->flush_want[k]) {
            peer->flush_due &= (uint16_t) ~(1u << k);
            continue;
        }
        moved += api_flush_post(peer, k);
    }
    return moved;
}

void api_flush_back(struct api_peer *peer, unsigned k)
{
    peer->flushing &= (uint16_t) ~(1u << k);
    api_bulk_trip(peer, k, clock_now(&peer->channel->braid->clock) - peer->flush_ns[k]);
}

bool api_flush_reached(const struct api_peer *peer, const struct plan_wait *goal)
{
    struct plan_order_in in = api_flush_in(peer);
    return plan_order(&in, PLAN_MAX_LANES, goal) != PLAN_ORDER_WAIT;
}

bool api_flush_clean(const struct api_peer *peer)
{
    struct plan_order_in in = api_flush_in(peer);
    struct plan_wait all;
    plan_order_mark(&in, PLAN_MAX_LANES, PLAN_WORD_GATE, &all);
    return plan_order(&in, PLAN_MAX_LANES, &all) != PLAN_ORDER_WAIT;
}
