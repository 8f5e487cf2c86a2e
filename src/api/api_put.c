/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_put.c - PATH 1: a put: check everything, ask plan how to cut it, post the pieces. Also what gets share with it.
 * May not wait. Called by the user; next: src/plan/plan_stripe.c, then src/rail/rail_lane.c; word ops: api_order.c
 */
#include "api.h"

#include <errno.h>
#include <string.h>

/* One writer each. The last user's end must come before the region's: release here, acquire in braid_mem_dereg(). */
static void api_mem_use(struct braid_mem *mem, unsigned channel, int by)
{
    uint32_t users = __atomic_load_n(&mem->users[channel], __ATOMIC_RELAXED) + (uint32_t)by;
    __atomic_store_n(&mem->users[channel], users, __ATOMIC_RELEASE);
}

/** Bytes on both sides of an op and its kind, as checked. */
struct api_transfer {
    struct api_peer *peer;
    enum rail_kind kind;
    uint64_t remote_addr;
    const struct braid_key *key;
    uint64_t local_addr; /**< as the lkeys name it */
    struct braid_mem *mem;
    uint64_t len;
    struct braid_done *done;
};

struct api_op *api_op_take(struct api_peer *peer, struct braid_mem *mem, struct braid_done *done, uint32_t pieces)
{
    struct braid_channel *ch = peer->channel;
    struct api_op *op = pool_get(&ch->op_pool);
    if (!op)
        return NULL;
    *op = (struct api_op){.done = done, .mem = mem, .peer = peer, .pieces = pieces};
    peer->ops++;
    ch->ops++;
    if (mem)
        api_mem_use(mem, ch->index, 1);
    return op;
}

void api_op_piece_end(struct api_op *op, int error)
{
    struct api_peer *peer = op->peer;
    struct braid_channel *ch = peer->channel;
    if (error && !op->error)
        op->error = error;
    if (--op->pieces > 0)
        return;
    if (op->mem)
        api_mem_use(op->mem, ch->index, -1);
    if (op->error && !peer->error)
        peer->error = op->error;
    if (op->done && op->error) {
        if (!op->done->error)
            op->done->error = op->error;
        op->done->failed++;
    } else if (op->done) {
        op->done->ok++;
    }
    peer->ops--;
    ch->ops--;
    pool_put(&ch->op_pool, op);
}

static int api_local_check(struct braid_channel *ch, const struct braid_local *local, uint64_t len, uint64_t *as_lkey)
{
    const struct braid_mem *mem = local->mem;
    uint64_t addr = (uintptr_t)local->addr;
    if (!mem || mem->braid != ch->braid) {
        api_log_limited(ch, API_LOG_LOCAL, "the local region is %s: register the bytes with braid_mem_reg()",
                        mem ? "of another context" : "NULL");
        return -EINVAL;
    }
    if (!range_inside(addr, len, mem->addr, mem->len)) {
        api_log_limited(ch, API_LOG_RANGE,
                        "%llu local bytes at 0x%llx lie outside their region of %llu bytes at 0x%llx",
                        (unsigned long long)len, (unsigned long long)addr, (unsigned long long)mem->len,
                        (unsigned long long)mem->addr);
        return -ERANGE;
    }
    /* An IOVA names the bytes for the lkey too (ibv_reg_mr_iova(3)). */
    *as_lkey = mem->remote_addr + (addr - mem->addr);
    return 0;
}

static int api_transfer_check(struct braid_channel *ch, int pe, const struct braid_remote *remote,
                              const struct braid_local *local, uint64_t len, struct api_transfer *out)
{
    struct rail_wire_view view;
    struct api_peer *peer = ch ? api_peer(ch, pe) : NULL;
    if (!peer)
        return -EINVAL;
    if (len > API_MAX_LEN || !remote->key) {
        api_log_limited(ch, API_LOG_ARGUMENT, "a transfer of %llu bytes %s: expected at most 2^30 and a key",
                        (unsigned long long)len, remote->key ? "with a key" : "without a key");
        return -EINVAL;
    }
    int rc = api_key_check(peer, remote, len, &view);
    if (!rc)
        rc = api_local_check(ch, local, len, &out->local_addr);
    if (rc)
        return rc;
    for (unsigned k = 0; k < peer->lane_count; k++) {
        if (peer->remote_rail[k] >= view.rails) {
            api_log_limited(ch, API_LOG_RAIL, "the key of PE %d covers %u rails, lane %u goes to its rail %u", pe,
                            view.rails, k, peer->remote_rail[k]);
            return -EPROTO;
        }
    }
    out->peer = peer;
    out->remote_addr = remote->addr;
    out->key = remote->key;
    /* The public handle is const because an op changes nothing about it; that it is in use is counted inside. */
    out->mem = (struct braid_mem *)(uintptr_t)local->mem;
    out->len = len;
    return 0;
}

/* Posts one piece of an accepted op. What it takes from the transfer is already checked. It is counted as posted even
 * where the device refuses it: its count is then never reached, so no word op behind it can announce lost data. */
static int api_post_piece(const struct api_transfer *t, const struct plan_piece *piece, struct api_op *op)
{
    struct api_peer *peer = t->peer;
    unsigned k = piece->lane;
    struct rail_request request = {
        .kind = t->kind,
        .klass = RAIL_CLASS_BULK,
        .epoch = peer->epoch,
        .len = (uint32_t)piece->len,
        .cookie = (uintptr_t)op,
        .local_addr = t->local_addr + piece->offset,
        .remote_addr = t->remote_addr + piece->offset,
        .lkey = t->mem->lkey[peer->local_rail[k]],
        .rkey = rail_wire_view_rkey(t->key->bytes, peer->remote_rail[k], false),
    };
    if (t->kind == RAIL_KIND_WRITE)
        peer->counts.posted[k]++;
    return rail_lane_post(peer->lane[k], &request);
}

/* Whether each piece can be posted as it is: 0, -EINVAL for one that its port cannot send whole, or -EAGAIN. */
static int api_pieces_fit(const struct api_transfer *t, const struct plan_stripe *plan)
{
    for (unsigned i = 0; i < plan->count; i++) {
        const struct plan_piece *piece = &plan->piece[i];
        const struct rail_lane *lane = t->peer->lane[piece->lane];
        const struct rail *rail = lane->queue->rail;
        if (piece->len > rail->max_msg) {
            api_log_limited(
                t->peer->channel, API_LOG_ARGUMENT,
                "%llu bytes at once are too many for port %s, whose largest message has %u (max_msg_sz): use "
                "shorter transfers",
                (unsigned long long)piece->len, rail->name, rail->max_msg);
            return -EINVAL;
        }
        if (!rail_lane_room(lane, RAIL_CLASS_BULK, t->kind, (uint32_t)piece->len))
            return -EAGAIN;
    }
    return 0;
}

static int api_plan_transfer(const struct api_transfer *t, struct plan_stripe *plan)
{
    struct api_peer *peer = t->peer;
    const struct options *o = &peer->channel->braid->options;
    struct plan_lane lanes[PLAN_MAX_LANES];
    for (unsigned k = 0; k < peer->lane_count; k++) {
        const struct rail_lane *lane = peer->lane[k];
        lanes[k] = (struct plan_lane){
            .live = !(peer->dead >> k & 1),
            .room = rail_lane_room(lane, RAIL_CLASS_BULK, t->kind, (uint32_t)t->len),
            .backlog = lane->backlog,
            .rate_bits = lane->queue->rail->address.rate_bits,
        };
    }
    struct plan_stripe_in in = {
        .remote_addr = t->remote_addr,
        .len = t->len,
        .stripe_min = o->stripe_min,
        .piece_min = o->piece_min,
        .lanes = peer->lane_count,
        .home = peer->home,
        .lane = lanes,
    };
    return plan_stripe(&in, plan);
}

static int api_transfer_post(const struct api_transfer *t)
{
    struct api_peer *peer = t->peer;
    struct braid_channel *ch = peer->channel;
    struct plan_stripe plan;
    int rc = api_plan_transfer(t, &plan);
    if (rc == -ENOTCONN)
        api_log_limited(ch, API_LOG_LANE, "no lane to PE %d is left", peer->pe);
    if (!rc)
        rc = api_pieces_fit(t, &plan);
    if (rc)
        return rc;
    struct api_op *op = api_op_take(peer, t->mem, t->done, plan.count);
    if (!op)
        return -EAGAIN;
    for (unsigned i = 0; i < plan.count; i++) {
        rc = api_post_piece(t, &plan.piece[i], op);
        if (!rc)
            continue;
        /* There was room, so the lane has failed under our hands. The op is accepted and ends badly: its other pieces
         * may be on their way, so it cannot be taken back. */
        api_lane_dead(peer->lane[plan.piece[i].lane], rc, "post refused", 0);
        api_op_piece_end(op, rc);
    }
    return 0;
}

/* A put of at most 256 bytes: one request on the home lane, in order. */
static int api_put_word(const struct api_transfer *t)
{
    struct api_peer *peer = t->peer;
    if (peer->home >= peer->lane_count) {
        api_log_limited(peer->channel, API_LOG_LANE, "no lane reaches the home rail of PE %d", peer->pe);
        return -ENOTCONN;
    }
    struct rail_request request = {
        .kind = RAIL_KIND_WRITE,
        .klass = RAIL_CLASS_WORD,
        .epoch = peer->epoch,
        .len = (uint32_t)t->len,
        .local_addr = t->local_addr,
        .remote_addr = t->remote_addr,
        .lkey = t->mem->lkey[peer->local_rail[peer->home]],
        .rkey = rail_wire_view_rkey(t->key->bytes, peer->remote_rail[peer->home], true),
    };
    return api_order_submit(peer, &request, t->mem, t->done);
}

int api_transfer_submit(struct braid_channel *ch, int pe, enum rail_kind kind, const struct braid_remote *remote,
                        const struct braid_local *local, uint64_t len, struct braid_done *done)
{
    struct api_transfer t = {.kind = kind, .done = done};
    int rc = api_transfer_check(ch, pe, remote, local, len, &t);
    if (rc)
        return rc;
    if (len == 0) {
        if (done)
            done->ok++;
        return 0;
    }
    /* A get is outside every order, so it is never a word op. */
    if (kind == RAIL_KIND_WRITE && plan_stripe_class(len, ch->braid->options.stripe_min) == PLAN_CLASS_WORD)
        return api_put_word(&t);
    return api_transfer_post(&t);
}

int braid_put(struct braid_channel *ch, int pe, struct braid_remote dst, struct braid_local src, size_t len,
              struct braid_done *done)
{
    return api_transfer_submit(ch, pe, RAIL_KIND_WRITE, &dst, &src, len, done);
}
