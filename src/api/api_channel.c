/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_channel.c - makes a channel: a queue on each rail, the peers' lanes on them, FIFOs and the pool of ops. After
 * this nothing on the data path allocates. Called by api_peer.c; next: src/rail/rail_conn.c
 */
#include "api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Most ops of a channel; more lanes than that many slots are shared out by -EAGAIN. */
#define API_MAX_OPS 65536u

/* The public names of channels and peers are numbers; this is where they are checked. */
struct api_peer *api_peer(struct braid_channel *ch, int pe)
{
    if (pe >= 0 && pe < ch->braid->n_pes)
        return &ch->peers[pe];
    api_log_limited(ch, API_LOG_PE, "there is no PE %d: expected 0 to %d", pe, ch->braid->n_pes - 1);
    return NULL;
}

struct braid_channel *braid_channel_at(struct braid *b, int i)
{
    if (!b || b->state != API_CONNECTED || i < 0 || (unsigned)i >= b->channel_count)
        return NULL;
    return b->channel[i];
}

int braid_lane_count(const struct braid_channel *ch, int pe)
{
    if (!ch || pe < 0 || pe >= ch->braid->n_pes)
        return -EINVAL;
    return (int)ch->peers[pe].lane_count;
}

/* Of a speed in plan's unit. */
static uint64_t api_channel_bits(uint32_t mib_ns)
{
    return mib_ns ? (UINT64_C(8) << 20) * 1000000000u / mib_ns : 0;
}

int braid_lane_stats_at(const struct braid_channel *ch, int pe, int lane, struct braid_lane_stats *out)
{
    if (!ch || !out || out->size != sizeof(*out) || pe < 0 || pe >= ch->braid->n_pes)
        return -EINVAL;
    struct braid_channel *own = (struct braid_channel *)(uintptr_t)ch; /* entered, not changed */
    const struct api_peer *peer = &ch->peers[pe];
    int rc = -EINVAL;
    api_enter(own);
    if (lane >= 0 && (unsigned)lane < peer->lane_count) {
        *out = (struct braid_lane_stats){.size = sizeof(*out),
                                         .rail = peer->local_rail[lane],
                                         .remote_rail = peer->remote_rail[lane],
                                         .wire = peer->lane[lane]->way.wire,
                                         .source_port = peer->lane[lane]->way.sport,
                                         .line_bits = api_channel_bits(peer->put.rate[lane].line_mib_ns),
                                         .put_bits = api_channel_bits(peer->put.rate[lane].mib_ns)};
        rc = 0;
    }
    api_leave(own);
    return rc;
}

static int api_channel_queues(struct braid_channel *ch, const struct api_pairs *pairs)
{
    struct braid *b = ch->braid;
    uint32_t per_rail[BRAID_MAX_RAILS] = {0};
    for (int pe = 0; pe < b->n_pes; pe++) {
        for (unsigned k = 0; k < pairs[pe].count; k++)
            per_rail[pairs[pe].pair[k].local]++;
    }
    int rc = 0;
    for (unsigned i = 0; i < b->rail_count && !rc; i++)
        rc = rail_queue_open(b->rail[i], per_rail[i], &ch->queue[i]);
    return rc;
}

static int api_channel_memory(struct braid_channel *ch, const struct api_pairs *pairs)
{
    struct braid *b = ch->braid;
    uint32_t places = round_up_pow2(b->options.word_depth);
    uint64_t ops = (uint64_t)b->n_pes * (places + 2 * (uint64_t)b->options.bulk_depth);
    for (int pe = 0; pe < b->n_pes; pe++)
        ops += (uint64_t)pairs[pe].count * b->options.sq_depth;
    ops = min_u64(ops, API_MAX_OPS);
    ch->fifo_mask = places - 1;
    ch->trip_ns = UINT64_MAX;
    ch->peers = calloc((size_t)b->n_pes, sizeof(*ch->peers));
    ch->fifo = calloc((size_t)b->n_pes * places, sizeof(*ch->fifo));
    if (!ch->peers || !ch->fifo)
        return -ENOMEM;
    for (int pe = 0; pe < b->n_pes; pe++) {
        ch->peers[pe].channel = ch;
        ch->peers[pe].pe = pe;
        ch->peers[pe].fifo = ch->fifo + (size_t)pe * places;
        ch->peers[pe].put.link = &ch->peers[pe].put.head;
        ch->peers[pe].get.link = &ch->peers[pe].get.head;
    }
    ch->op_free = ops;
    return pool_init(&ch->op_pool, ops, sizeof(struct api_op));
}

static int api_channel_lanes(struct braid_channel *ch, const struct api_pairs *pairs)
{
    struct braid *b = ch->braid;
    for (int pe = 0; pe < b->n_pes; pe++) {
        struct api_peer *peer = &ch->peers[pe];
        for (unsigned k = 0; k < pairs[pe].count; k++) {
            struct plan_lag_pair pair = pairs[pe].pair[k];
            int rc = rail_lane_open(&ch->queue[pair.local], (uint32_t)random_next(&ch->random), &peer->lane[k]);
            if (rc)
                return rc;
            peer->lane[k]->owner = peer;
            if (pairs[pe].spread)
                peer->lane[k]->way = api_lag_way(b, &pair, pe, k);
            peer->lane[k]->index = k;
            peer->pair[k] = (uint8_t)k;
            peer->local_rail[k] = pair.local;
            peer->remote_rail[k] = pair.remote;
            peer->lane_count++;
        }
    }
    return 0;
}

int api_channel_make(struct braid *b, unsigned index, const struct api_pairs *pairs, struct braid_channel **out)
{
    struct braid_channel *ch = calloc(1, sizeof(*ch));
    if (ch) {
        ch->braid = b;
        ch->index = index;
        /* With a seed given, PEs still need start PSNs and nonces of their own. */
        random_init(&ch->random, (random_next(&b->random) ^ (uint64_t)b->my_pe << 32) | 1);
    }
    int rc = ch ? api_channel_memory(ch, pairs) : -ENOMEM;
    if (rc)
        log_write(&b->log, LOG_LEVEL_ERROR, "no memory for channel %u with %d peers: lower word_depth or bulk_depth",
                  index, b->n_pes);
    if (!rc)
        rc = api_exec_make(ch);
    if (!rc)
        rc = api_channel_queues(ch, pairs);
    if (!rc)
        rc = api_channel_lanes(ch, pairs);
    if (rc) {
        api_channel_free(ch);
        return rc;
    }
    *out = ch;
    return 0;
}

void api_channel_free(struct braid_channel *ch)
{
    if (!ch)
        return;
    for (unsigned i = 0; i < BRAID_MAX_RAILS; i++)
        rail_queue_close(&ch->queue[i]);
    api_exec_free(ch->exec);
    pool_fini(&ch->op_pool);
    free(ch->fifo);
    free(ch->peers);
    free(ch);
}

/* Of the lanes that are left: what must hold for all of them. */
static void api_peer_limits(struct api_peer *peer)
{
    peer->max_msg = UINT32_MAX;
    peer->rails_needed = peer->home_rail + 1;
    for (unsigned k = 0; k < peer->lane_count; k++) {
        peer->max_msg = min_u32(peer->max_msg, peer->lane[k]->queue->rail->max_msg);
        peer->rails_needed = max_u32(peer->rails_needed, peer->remote_rail[k] + 1u);
    }
}

void api_peer_settle(struct api_peer *peer, uint16_t up)
{
    unsigned kept = 0;
    for (unsigned k = 0; k < peer->lane_count; k++) {
        if (!(up >> peer->pair[k] & 1)) {
            rail_lane_stop(peer->lane[k]);
            peer->lane[k]->index = API_NO_LANE;
            continue;
        }
        peer->lane[kept] = peer->lane[k];
        peer->lane[kept]->index = kept;
        peer->local_rail[kept] = peer->local_rail[k];
        peer->remote_rail[kept] = peer->remote_rail[k];
        peer->rtt_ns[kept] = peer->rtt_ns[k];
        peer->pair[kept] = peer->pair[k];
        kept++;
    }
    peer->lane_count = kept;
    peer->home = 0;
    while (peer->home < kept && peer->remote_rail[peer->home] != peer->home_rail)
        peer->home++;
    peer->word = peer->home < kept ? peer->home : 0;
    api_peer_limits(peer);
}
