/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_probe.c - a flush over every lane, before anything else travels: what cannot be reached is found out now and not in
 * the middle of a run; and it gives the round trips and the CPU cost that pacing starts from.
 * Called by api_peer.c between rounds 3 and 4; next: src/rail/rail_lane.c
 */
#include "api.h"

#include <errno.h>
#include <string.h>

/* Longer than a QP with the default timeout and retry count goes on trying (2.1 s); one that never gives up ends here. */
#define API_PROBE_TIMEOUT_NS UINT64_C(30000000000)

/* Progress of the probes. */
struct api_probe {
    struct braid *b;
    uint16_t *up;
    uint64_t post_ns; /* spent on posting */
    uint32_t posted, ended;
};

static void api_probe_post(struct api_probe *p, struct api_peer *peer)
{
    struct rail_request request = {.kind = RAIL_KIND_FLUSH, .klass = RAIL_CLASS_WORD, .len = 8};
    for (unsigned k = 0; k < peer->lane_count; k++) {
        peer->flush_ns[k] = clock_now(&p->b->clock);
        rail_lane_queue(peer->lane[k], &request);
        rail_lane_ring(peer->lane[k]);
        p->post_ns += clock_now(&p->b->clock) - peer->flush_ns[k];
        p->posted++;
    }
}

static void api_probe_end(struct api_probe *p, const struct rail_event *event)
{
    struct braid *b = p->b;
    struct rail_lane *lane = event->lane;
    struct api_peer *peer = lane->owner;
    unsigned k = lane->index;
    if (event->kind != RAIL_EVENT_DONE || k == API_NO_LANE)
        return;
    p->ended++;
    peer->rtt_ns[k] = (uint32_t)min_u64(clock_now(&b->clock) - peer->flush_ns[k], UINT32_MAX);
    if (!event->error)
        return;
    p->up[peer->channel->index * (unsigned)b->n_pes + (unsigned)peer->pe] &= (uint16_t) ~(1u << peer->pair[k]);
    log_write(&b->log, peer->channel->index ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN,
              "port %s does not reach rail %u of PE %d: %s; the lane is left out. Do they lie in one plane (option "
              "\"planes\")?",
              lane->queue->rail->name, peer->remote_rail[k], peer->pe,
              event->status ? event->status : strerror(-event->error));
}

static bool api_probe_poll(struct api_probe *p)
{
    bool moved = false;
    struct rail_event event;
    for (unsigned c = 0; c < p->b->channel_count; c++) {
        for (unsigned i = 0; i < p->b->rail_count; i++) {
            struct rail_queue *queue = &p->b->channel[c]->queue[i];
            moved |= rail_poll(queue) > 0;
            while (rail_next(queue, &event)) {
                api_probe_end(p, &event);
                moved = true;
            }
        }
    }
    return moved;
}

/* Those that have not come back in time: stopped, so that they end. */
static void api_probe_stop(struct api_probe *p)
{
    for (unsigned c = 0; c < p->b->channel_count; c++) {
        for (int pe = 0; pe < p->b->n_pes; pe++) {
            struct api_peer *peer = &p->b->channel[c]->peers[pe];
            for (unsigned k = 0; k < peer->lane_count; k++) {
                if (peer->lane[k]->head != peer->lane[k]->tail)
                    rail_lane_stop(peer->lane[k]);
            }
        }
    }
}

/* What a piece costs: a post as measured, and four times that for its completion and for our own code, from plan to retirement
 * (docs/costs.md: one fifth is the post). */
static uint32_t api_probe_cost(const struct api_probe *p)
{
    uint64_t post = p->posted ? p->post_ns / p->posted : 0;
    return (uint32_t)min_u64(max_u64(5 * post, 50), 5000);
}

int api_probe(struct braid *b, uint16_t *up)
{
    struct api_probe p = {.b = b, .up = up};
    bool stopped = false;
    for (unsigned c = 0; c < b->channel_count; c++) {
        for (int pe = 0; pe < b->n_pes; pe++) {
            api_probe_post(&p, &b->channel[c]->peers[pe]);
            api_probe_poll(&p); /* what waits to be looked at looks like a long way round */
        }
    }
    b->piece_cost_ns = api_probe_cost(&p);
    uint64_t deadline = clock_now(&b->clock) + API_PROBE_TIMEOUT_NS;
    while (p.ended < p.posted) {
        if (api_probe_poll(&p))
            continue;
        int rc = clock_wait(&b->clock, deadline);
        if (rc)
            return rc;
        if (!stopped && clock_now(&b->clock) >= deadline) {
            api_probe_stop(&p);
            stopped = true;
        }
    }
    return 0;
}
