/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_quiet.c - fence, quiet, and the flush of one's own memory.
 * A quiet blocks in turns of the whole progress and ends, well or badly, because every op ends: acknowledged, flushed
 * from a failed lane, or failed in the FIFO. Called by the user; next: api_progress.c
 */
#include "api.h"

#include <errno.h>

/* The peers that a pe argument means: [*first, *end). 0 or -EINVAL. */
static int api_peer_range(struct braid_channel *ch, int pe, int *first, int *end)
{
    if (pe != BRAID_ALL_PES && !api_peer(ch, pe))
        return -EINVAL;
    *first = pe == BRAID_ALL_PES ? 0 : pe;
    *end = pe == BRAID_ALL_PES ? ch->braid->n_pes : pe + 1;
    return 0;
}

/* What a fence stands behind matters to bulk in strict mode, and to the last words of bulk with the tail on; word ops are
 * ordered by themselves. */
static void api_fence_peer(struct api_peer *peer)
{
    const struct options *o = &peer->channel->braid->options;
    peer->epoch++;
    if (o->order == OPTIONS_ORDER_STRICT || o->tail)
        peer->fenced |= api_order_behind(peer);
    peer->plain_max = 0;
}

int braid_fence(struct braid_channel *ch, int pe)
{
    int first = 0, end = 0;
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_peer_range(ch, pe, &first, &end);
    for (int i = first; !rc && i < end; i++)
        api_fence_peer(&ch->peers[i]);
    api_leave(ch);
    return rc;
}

/* A flush goes right behind the last piece, not after its acknowledgement: from here on whatever is posted to this peer is
 * flushed as soon as nothing waits in software. */
static void api_quiet_begin(struct api_peer *peer)
{
    peer->quieting++;
    if (peer->ops > 0 || !api_flush_clean(peer))
        api_drive(peer, true);
}

/* Waits for what has been posted when the last op ended, and no more: what the executor posts for others on the self lane
 * need never end. Each turn says anew what is wanted, since another thread's quiet may have ended meanwhile. */
static int api_quiet_wait(struct api_peer *peer)
{
    struct plan_wait goal;
    bool known = false;
    for (;;) {
        if (!known && peer->ops == 0) {
            plan_order_mark(&peer->order, PLAN_MAX_LANES, PLAN_WORD_GATE, &goal);
            known = true;
        }
        if (known && api_flush_reached(peer, &goal))
            return 0;
        if (known) {
            api_flush_want(peer, &goal);
            api_drive(peer, true);
        }
        int rc = api_turn(peer->channel, UINT64_MAX);
        if (rc)
            return rc;
    }
}

static int api_quiet(struct braid_channel *ch, int pe)
{
    int first, end, rc = api_peer_range(ch, pe, &first, &end);
    if (rc)
        return rc;
    for (int i = first; i < end; i++)
        api_quiet_begin(&ch->peers[i]);
    for (int i = first; i < end && !rc; i++)
        rc = api_quiet_wait(&ch->peers[i]);
    for (int i = first; i < end; i++)
        ch->peers[i].quieting--;
    if (rc)
        return rc;
    for (int i = first; i < end; i++) {
        struct api_peer *peer = &ch->peers[i];
        if (!rc)
            rc = peer->error ? peer->error : peer->unproved;
        peer->error = peer->unproved = 0;
    }
    return rc;
}

int braid_quiet(struct braid_channel *ch, int pe)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_quiet(ch, pe);
    api_leave(ch);
    return rc;
}

/* Whether a flush that was posted as number `no`, or a later one, is back on lane k. */
static bool api_flush_since(const struct api_peer *self, unsigned k, uint64_t no)
{
    return self->flush_no[k] > no || (self->flush_no[k] == no && !(self->flushing >> k & 1));
}

/* One in flight may have read before what this one is for was written: only those posted from here on count. */
static int api_flush_local(struct api_peer *self)
{
    uint64_t no[PLAN_MAX_LANES] = {0};
    for (unsigned k = 0; k < self->lane_count; k++)
        no[k] = self->flush_no[k] + 1;
    for (;;) {
        unsigned left = 0;
        for (unsigned k = 0; k < self->lane_count; k++) {
            if (self->flush_no[k] < no[k])
                api_flush_probe(self, k);
            left += !api_flush_since(self, k, no[k]);
        }
        if (self->order.dead) {
            api_log_limited(self->channel, API_LOG_LANE, "own memory cannot be flushed: a lane to oneself is lost");
            return -ENOTCONN;
        }
        int rc = left ? api_turn(self->channel, UINT64_MAX) : 0;
        if (rc || !left)
            return rc;
    }
}

int braid_flush_local(struct braid_channel *ch)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_flush_local(&ch->peers[ch->braid->my_pe]);
    api_leave(ch);
    return rc;
}
