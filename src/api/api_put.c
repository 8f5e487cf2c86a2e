/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_put.c - PATH 1: a put: checked, given its kind by plan, and put into its queue or, small, into the order of word ops.
 * May not wait. Called by the user; next: src/plan/plan_put.c, then api_bulk.c (bulk) or api_order.c (word ops)
 */
#include "api.h"

#include <errno.h>

/* Whether there still is something that a fence stood behind. */
static bool api_put_fenced(struct api_peer *peer)
{
    if (peer->fenced && !api_order_behind(peer))
        peer->fenced = false;
    return peer->fenced;
}

static void api_put_plan(const struct api_transfer *t, bool covered, struct plan_put *out)
{
    struct api_peer *peer = t->peer;
    const struct braid *b = peer->channel->braid;
    struct plan_put_in in = {
        .remote_addr = t->remote_addr,
        .len = t->len,
        .cut_min = plan_put_cut_min(b->options.stripe_min, peer->lane_count, api_paced(b)),
        .lanes = peer->lane_count,
        .covered = covered,
        .fenced = api_put_fenced(peer),
        .strict = b->options.order == OPTIONS_ORDER_STRICT,
        .tail = b->options.tail,
        .unordered = peer->order.unordered,
        .faults = b->options.fault,
    };
    uint64_t scratch[PLAN_COUNTS];
    if (t->len > PLAN_WORD_MAX || covered)
        in.overlap = plan_overlap_check(&peer->overlap, api_order_visible(peer, scratch), peer->overlap.head,
                                        t->remote_addr, t->len, &in.overlap_lane);
    plan_put(&in, out);
}

static void api_put_accept(const struct api_transfer *t, const struct plan_put *plan, struct api_op *op)
{
    struct api_peer *peer = t->peer;
    struct braid_channel *ch = peer->channel;
    op->lane = (uint8_t)plan->lane;
    op->cut = plan->klass == PLAN_CLASS_LARGE;
    op->gate = plan->gate;
    op->strict = plan->strict;
    op->lead = plan->tail > 0;
    op->words = peer->words_accepted;
    op->ticket = plan_overlap_add(&peer->overlap, t->remote_addr, t->len);
    if (op->lane < PLAN_MAX_LANES || peer->lane_count == 1)
        plan_overlap_bind(&peer->overlap, op->ticket, peer->lane_count == 1 ? 0 : op->lane);
    peer->fenced &= !plan->gate;
    ch->count.puts++;
    ch->count.gated += plan->gate;
    if (plan->tail) {
        struct api_transfer body = *t;
        body.len -= plan->tail;
        api_bulk_accept(&peer->put, op, &body);
    } else {
        api_bulk_accept(&peer->put, op, t);
    }
}

/* A put's last bytes as a word op, and a small put as a whole. */
static void api_put_word(const struct api_transfer *t, uint64_t skip, struct api_op *op, struct api_word *out)
{
    struct api_peer *peer = t->peer;
    const struct braid_remote dst = {t->remote_addr + skip, t->key};
    struct rail_request *r = api_word_begin(out, peer, &dst, peer->remote_rail[peer->word], (unsigned)(t->len - skip),
                                            plan_order_strict_key(&peer->order));
    out->kind = PLAN_WORD_WRITE;
    out->lane = (uint8_t)peer->word;
    r->kind = RAIL_KIND_WRITE;
    r->cookie = (uintptr_t)op;
    r->local_addr = t->local_addr + skip;
    r->lkey = t->mem->lkey[peer->local_rail[peer->word]];
}

int api_put_possible(const struct api_transfer *t, const struct plan_put *plan)
{
    const struct api_peer *peer = t->peer;
    if (peer->order.dead == (uint16_t)((1u << peer->lane_count) - 1)) {
        api_log_limited(peer->channel, API_LOG_LANE, "no lane to PE %d is left", peer->pe);
        return -ENOTCONN;
    }
    if (plan->klass != PLAN_CLASS_LARGE && t->len > peer->max_msg) {
        api_log_limited(peer->channel, API_LOG_ARGUMENT,
                        "%llu bytes at once are too many for a port to PE %d, whose largest message has %u "
                        "(max_msg_sz): use shorter transfers",
                        (unsigned long long)t->len, peer->pe, peer->max_msg);
        return -EINVAL;
    }
    return 0;
}

int api_put_part_possible(const struct api_transfer *t)
{
    struct plan_put plan = {.klass = PLAN_CLASS_LARGE};
    if (t->len > t->peer->max_msg) /* then it matters whether it will be cut */
        api_put_plan(t, true, &plan);
    return api_put_possible(t, &plan);
}

/* What the quick way may take from now on. Whatever makes that less sets it to 0. */
static void api_put_plain_max(struct api_peer *peer, const struct braid_key *key)
{
    const struct braid *b = peer->channel->braid;
    bool none = peer->order.dead || peer->fenced || b->options.tail;
    peer->plain_max = none ? 0 : peer->max_msg;
    peer->cut_min = plan_put_cut_min(b->options.stripe_min, peer->lane_count, api_paced(b));
    peer->key_head = rail_wire_key_head(key->bytes);
}

int api_put_submit(const struct api_transfer *t, struct braid_done *done)
{
    struct api_peer *peer = t->peer;
    struct plan_put plan;
    struct api_word word;
    api_put_plan(t, false, &plan);
    if (plan.klass == PLAN_CLASS_WORD) {
        api_put_word(t, 0, NULL, &word);
        return api_order_submit(peer, &word, t->mem, NULL, done);
    }
    int rc = api_put_possible(t, &plan);
    if (rc)
        return rc;
    if (!api_bulk_room(peer, &peer->put, 1) || !api_order_ranges(peer, 2) || (plan.tail && !api_order_place(peer)))
        return -EAGAIN;
    struct api_op *op = api_op_take(peer, t->mem, done, plan.tail ? 2 : 1);
    if (!op)
        return -EAGAIN;
    api_put_accept(t, &plan, op);
    api_put_plain_max(peer, t->key);
    if (plan.tail) {
        api_put_word(t, t->len - plan.tail, op, &word);
        (void)api_order_accept(peer, &word);
    }
    /* Where the lanes are full, or busy for a while, it waits for the pass that finds something ended. */
    if (!(peer->put.held || peer->put.later) || plan.tail)
        api_drive(peer, plan.tail > 0);
    return 0;
}

void api_put_part(const struct api_transfer *t, struct api_op *parent)
{
    struct plan_put plan;
    struct api_op *op = api_op_take(t->peer, t->mem, NULL, 1);
    api_put_plan(t, true, &plan);
    op->parent = parent;
    parent->pieces++;
    api_put_accept(t, &plan, op);
}

int api_put(struct braid_channel *ch, int pe, const struct braid_remote *dst, const struct braid_local *src, size_t len,
            struct braid_done *done)
{
    struct api_transfer t;
    int rc = api_check_transfer(ch, pe, dst, src, len, &t);
    if (rc)
        return rc;
    if (len > 0)
        return api_put_submit(&t, done);
    if (done)
        api_op_count(done, 0);
    return 0;
}

/* Whether the key is the peer's and covers these bytes. One with the same head as a good one has the same rails. */
static inline bool api_put_quick_key(const struct api_peer *peer, const struct braid_remote *dst, uint64_t len)
{
    struct rail_wire_view view;
    if (!dst->key || rail_wire_key_head(dst->key->bytes) != peer->key_head)
        return false;
    rail_wire_view_body(dst->key->bytes, &view);
    return view.cookie == peer->cookie && (view.owner == (uint32_t)peer->pe || view.owner == RAIL_WIRE_NO_PE) &&
           range_inside(dst->addr, len, view.addr, view.len);
}

static inline bool api_put_quick_local(const struct braid_channel *ch, const struct braid_local *src, uint64_t len)
{
    return src->mem && src->mem->braid == ch->braid &&
           range_inside_memory((uintptr_t)src->addr, len, src->mem->addr, src->mem->len);
}

/*
 * The hot path, what nearly every bulk put is: nothing about it is wrong, it goes on any lane and waits for nothing. False,
 * with nothing changed, where that is not so or not plain to see: then it goes the long way, which checks again, decides and
 * says what is wrong.
 */
static inline bool api_put_quick(struct braid_channel *ch, int pe, const struct braid_remote *dst,
                                 const struct braid_local *src, uint64_t len, struct braid_done *done)
{
    const struct braid *b = ch->braid;
    uint64_t ticket;
    if ((unsigned)pe >= (unsigned)b->n_pes)
        return false;
    struct api_peer *peer = &ch->peers[pe];
    struct api_flow *flow = &peer->put;
    if (len <= PLAN_WORD_MAX || len > peer->plain_max || flow->waiting >= b->options.bulk_depth || !ch->op_free ||
        !api_put_quick_key(peer, dst, len) || !api_put_quick_local(ch, src, len) ||
        (!plan_overlap_append(&peer->overlap, dst->addr, len, &ticket) &&
         !plan_overlap_apart(&peer->overlap, dst->addr, len, &ticket)))
        return false;
    /* The public handle is const because an op changes nothing about it; that it is in use is counted inside. */
    struct braid_mem *mem = (struct braid_mem *)(uintptr_t)src->mem;
    struct api_op *op = api_op_take(peer, mem, done, 1);
    op->key = dst->key;
    op->local_addr = mem->remote_addr + ((uintptr_t)src->addr - mem->addr);
    op->remote_addr = dst->addr;
    op->words = peer->words_accepted;
    op->ticket = ticket;
    op->epoch = peer->epoch;
    op->lane = PLAN_MAX_LANES;
    op->cut = len >= peer->cut_min;
    op->gate = op->strict = op->lead = false;
    op->plain = true;
    api_bulk_append(flow, op, len);
    ch->count.puts++;
    /* As in api_put_submit(). */
    if (!(flow->held || flow->later))
        api_drive(peer, false);
    return true;
}

/* Apart, and by value: so the quick way keeps its arguments in registers. */
static __attribute__((noinline)) int api_put_long(struct braid_channel *ch, int pe, struct braid_remote dst,
                                                  struct braid_local src, size_t len, struct braid_done *done)
{
    return api_put(ch, pe, &dst, &src, len, done);
}

int braid_put(struct braid_channel *ch, int pe, struct braid_remote dst, struct braid_local src, size_t len,
              struct braid_done *done)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_put_quick(ch, pe, &dst, &src, len, done) ? 0 : api_put_long(ch, pe, dst, src, len, done);
    api_leave(ch);
    return rc;
}
