/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_word.c - PATH 1: the short way of a word op: nothing about it is wrong, what it must follow is visible, and its lane has
 * room. Then it is posted in one go.
 * May not decide or defer: what is not plain to see goes the long way. Called by api_signal.c and api_atomic.c;
 * next: src/rail/rail.h (rail_word)
 */
#include "api.h"

/* The peer, where it has one of that number and the key is its own and covers the word; else NULL. A key with the same head as a
 * good one has the same rails and is for the same kind of memory. */
static inline struct api_peer *api_word_peer(struct braid_channel *ch, int pe, const struct braid_remote *dst,
                                             unsigned bytes)
{
    struct rail_wire_view view;
    if ((unsigned)pe >= (unsigned)ch->braid->n_pes || !dst->key || dst->addr & (bytes - 1))
        return NULL;
    struct api_peer *peer = &ch->peers[pe];
    if (rail_wire_key_head(dst->key->bytes) != peer->word_head)
        return NULL;
    rail_wire_view_body(dst->key->bytes, &view);
    bool good = view.cookie == peer->cookie && (view.owner == (uint32_t)pe || view.owner == RAIL_WIRE_NO_PE) &&
                range_inside(dst->addr, bytes, view.addr, view.len);
    return good ? peer : NULL;
}

bool api_word_short(struct braid_channel *ch, int pe, const struct braid_remote *dst, const struct api_short *s,
                    uint64_t *old, struct braid_done *done)
{
    struct api_peer *peer = api_word_peer(ch, pe, dst, s->bytes);
    if (!peer || !ch->op_free)
        return false;
    bool atomic = s->kind != RAIL_KIND_WRITE;
    unsigned k = atomic ? peer->home : peer->word;
    if (k >= peer->lane_count || !api_idle(peer) ||
        !plan_order_clear(&peer->order, k, atomic ? PLAN_WORD_ATOMIC : PLAN_WORD_WRITE))
        return false;
    struct rail_lane *lane = peer->lane[k];
    struct api_op *op = ch->op_pool.free_list;
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
    uint64_t count = ++peer->counts.posted[k], ticket = plan_overlap_add(&peer->overlap, dst->addr, s->bytes);
    peer->last_word[k] = count;
    plan_overlap_whole(&peer->overlap, ticket, k, count);
    peer->words_accepted++;
    peer->words_sent++;
    ch->count.words++;
    ch->count.lists++;
    rail_lane_ring(lane);
    return true;
}
