/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_word.c - PATH 1: the short way of a word op: nothing about it is wrong, what it must follow is visible, and its lane has
 * room. Then it is posted in one go.
 * May not decide or defer: what is not plain to see goes the long way. Called by api_signal.c and api_atomic.c;
 * next: src/rail/rail.h (rail_word)
 */
#include "api.h"

/* Whether the key is the peer's and covers the word. One with the same head as a good one has the same rails and is for the same
 * kind of memory. */
static inline bool api_word_key(const struct api_peer *peer, const struct braid_remote *dst, unsigned bytes)
{
    struct rail_wire_view view;
    if (!dst->key || dst->addr & (bytes - 1) || rail_wire_key_head(dst->key->bytes) != peer->word_head)
        return false;
    rail_wire_view_body(dst->key->bytes, &view);
    return view.cookie == peer->cookie && (view.owner == (uint32_t)peer->pe || view.owner == RAIL_WIRE_NO_PE) &&
           range_inside(dst->addr, bytes, view.addr, view.len);
}

bool api_word_short(struct braid_channel *ch, int pe, const struct braid_remote *dst, const struct api_short *s,
                    uint64_t *old, struct braid_done *done)
{
    if ((unsigned)pe >= (unsigned)ch->braid->n_pes)
        return false;
    struct api_peer *peer = &ch->peers[pe];
    bool atomic = s->kind != RAIL_KIND_WRITE;
    unsigned k = atomic ? peer->home : peer->word;
    /* First what most often is not so. */
    if (!api_idle(peer) || !plan_order_clear(&peer->order, k, atomic ? PLAN_WORD_ATOMIC : PLAN_WORD_WRITE) ||
        k >= peer->lane_count || !ch->op_free || !api_word_key(peer, dst, s->bytes))
        return false;
    struct rail_lane *lane = peer->lane[k];
    struct api_op *op = pool_next(&ch->op_pool);
    struct rail_request request = {
        .cookie = (uintptr_t)op,
        .len = s->bytes,
        .remote_addr = dst->addr,
        .rkey = rail_wire_view_rkey(dst->key->bytes, peer->remote_rail[k], true),
        .epoch = peer->epoch,
        .kind = s->kind,
        .operand = s->operand,
        .swap = s->swap,
    };
    if (!rail_word(lane, &request))
        return false;
    op = api_op_take(peer, NULL, done, 1);
    op->old = old;
    uint64_t count = ++peer->counts.posted[k];
    uint64_t ticket = plan_overlap_add(&peer->overlap, dst->addr, s->bytes);
    peer->last_word[k] = count;
    plan_overlap_whole(&peer->overlap, ticket, k, count);
    peer->words_accepted++;
    peer->words_sent++;
    ch->count.words++;
    ch->count.lists++;
    rail_lane_ring(lane);
    return true;
}
