/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_flush.c - flushes: a READ behind the writes of a lane proves that they are in the target's memory, which their
 * acknowledgement does not. At most one a lane is in flight; all who wait share it.
 * May not decide who must wait: src/plan/plan_order.c does. Called by api_order.c, api_bulk.c, api_quiet.c and
 * api_progress.c; next: src/rail/rail_lane.c
 */
#include "api.h"

static void api_flush_note(struct api_peer *peer, unsigned k, uint64_t count)
{
    peer->flush_want[k] = max_u64(peer->flush_want[k], count);
    peer->flush_due |= (uint16_t)(1u << k);
}

void api_flush_want(struct api_peer *peer, unsigned lane, const struct plan_wait *wait)
{
    struct plan_order_in in = api_order_in(peer, lane);
    uint32_t lanes = plan_order_flush(&in, wait);
    for (; lanes; lanes &= lanes - 1) {
        unsigned k = (unsigned)__builtin_ctz(lanes);
        api_flush_note(peer, k, wait->count[k]);
    }
}

/* With the rule switched off acknowledgements are all that is waited for. */
static bool api_flush_off(const struct api_peer *peer)
{
    return peer->channel->braid->options.fault & PLAN_FAULT_FLUSH;
}

void api_flush_want_all(struct api_peer *peer)
{
    if (api_flush_off(peer))
        return;
    for (unsigned k = 0; k < peer->lane_count; k++) {
        if (peer->counts.flushed[k] < peer->counts.posted[k])
            api_flush_note(peer, k, peer->counts.posted[k]);
    }
}

/* Posts one on a lane that has none in flight. False where there is no room. */
static bool api_flush_post(struct api_peer *peer, unsigned k)
{
    struct rail_request request = {.kind = RAIL_KIND_FLUSH, .klass = RAIL_CLASS_WORD, .epoch = peer->epoch, .len = 8};
    if (!rail_lane_room(peer->lane[k], request.klass, request.kind, request.len))
        return false;
    rail_lane_queue(peer->lane[k], &request);
    peer->flush_ns[k] = clock_now(&peer->channel->braid->clock);
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
    for (uint32_t due = peer->flush_due & ~(peer->flushing | peer->dead); due; due &= due - 1) {
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
    const uint64_t *visible = api_flush_off(peer) ? peer->counts.acked : peer->counts.flushed;
    if (visible[PLAN_MESSAGE] < goal->count[PLAN_MESSAGE] && !peer->message_lost)
        return false;
    for (unsigned k = 0; k < peer->lane_count; k++) {
        if (visible[k] < goal->count[k] && !(peer->dead >> k & 1))
            return false;
    }
    return true;
}

bool api_flush_clean(const struct api_peer *peer)
{
    struct plan_order_in in = api_order_in(peer, PLAN_MAX_LANES);
    struct plan_wait all;
    plan_order_mark(&in, PLAN_WORD_GATE, &all);
    return api_flush_reached(peer, &all);
}
