/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_bulk.c - bulk puts and gets on their way to the lanes: what the lanes do not take yet waits in a queue per peer and
 * direction, first come, first served; a lane takes a piece whenever its window is open.
 * May not decide how much or where: src/plan does. Called by api_put.c, api_get.c and api_progress.c.
 * next: src/plan/plan_stripe.c, then src/rail/rail_lane.c
 */
#include "api.h"

#include <errno.h>

bool api_bulk_room(const struct api_peer *peer, const struct api_flow *flow, uint32_t ops)
{
    const struct braid_channel *ch = peer->channel;
    return flow->waiting + ops <= ch->braid->options.bulk_depth && ch->op_free >= ops;
}

void api_bulk_accept(struct api_flow *flow, struct api_op *op, const struct api_transfer *t)
{
    op->key = t->key;
    op->local_addr = t->local_addr;
    op->remote_addr = t->remote_addr;
    op->epoch = t->peer->epoch;
    op->plain = false;
    api_bulk_append(flow, op, t->len);
}

static void api_bulk_pop(struct api_flow *flow)
{
    struct api_op *op = flow->head;
    flow->head = op->next;
    if (!flow->head)
        flow->link = &flow->head;
    flow->waiting--;
    flow->handed++;
}

/* The gated put at the head may go once all accepted before it is visible. Its bulk predecessors have been handed on. */
static enum plan_order api_bulk_gate(struct api_peer *peer, const struct api_op *op)
{
    if (peer->words_sent < op->words)
        return PLAN_ORDER_WAIT;
    if (!peer->gate_marked) {
        plan_order_mark(&peer->order, PLAN_MAX_LANES, PLAN_WORD_GATE, &peer->gate);
        peer->gate_marked = true;
        api_flush_want(peer, &peer->gate);
    }
    return plan_order(&peer->order, PLAN_MAX_LANES, &peer->gate);
}

/* The op at the head is through, well or badly. */
static void api_bulk_finish(struct api_peer *peer, struct api_flow *flow, int error)
{
    struct api_op *op = flow->head;
    api_bulk_pop(flow);
    flow->bytes -= op->left;
    if (flow == &peer->put) {
        if (error)
            api_order_lost(peer);
        plan_overlap_all_posted(&peer->overlap, op->ticket);
        peer->gate_marked = false;
        if (peer->fifo_marked != peer->fifo_head)
            api_order_mark_all(peer);
    }
    if (!error && op->pieces > 1)
        op->pieces--;
    else
        api_op_piece_end(op, error);
}

/* A piece of a get goes into its lane's list. False where it has no slot. */
static bool api_bulk_read(const struct api_peer *peer, struct api_op *op, unsigned k, uint64_t len)
{
    struct rail_lane *lane = peer->lane[k];
    struct rail_request request; /* operand and swap are no business of a bulk request: left as they are */
    if (!rail_lane_room(lane, RAIL_CLASS_BULK, RAIL_KIND_READ, (uint32_t)len))
        return false;
    request.kind = RAIL_KIND_READ;
    request.klass = RAIL_CLASS_BULK;
    request.immediate = false;
    request.epoch = op->epoch;
    request.len = (uint32_t)len;
    request.cookie = (uintptr_t)op;
    request.local_addr = op->local_addr;
    request.remote_addr = op->remote_addr;
    request.lkey = op->mem->lkey[peer->local_rail[k]];
    request.rkey = rail_wire_view_rkey(op->key->bytes, peer->remote_rail[k], op->strict);
    rail_lane_queue(lane, &request);
    return true;
}

/* The same of a put. */
static inline bool api_bulk_write(struct api_peer *peer, struct api_op *op, unsigned k, uint64_t len)
{
    struct rail_writer writer;
    uint64_t bytes;
    if (!rail_write_begin(&writer, peer->lane[k], len, &bytes))
        return false;
    struct rail_request request = {
        .epoch = op->epoch,
        .len = (uint32_t)len,
        .cookie = (uintptr_t)op,
        .local_addr = op->local_addr,
        .remote_addr = op->remote_addr,
        .lkey = op->mem->lkey[peer->local_rail[k]],
        .rkey = rail_wire_view_rkey(op->key->bytes, peer->remote_rail[k], op->strict),
    };
    rail_write(&writer, &request);
    rail_write_end(&writer);
    plan_overlap_posted(&peer->overlap, op->ticket, k, ++peer->counts.posted[k], false);
    return true;
}

/* Hands a piece of the op at the head to a lane. False where it has no slot; then none is looked for again before the next
 * pass. */
static bool api_bulk_post(struct api_peer *peer, struct api_flow *flow, struct plan_pick *pick, unsigned k,
                          uint64_t len)
{
    struct api_op *op = flow->head;
    bool posted = flow == &peer->put ? api_bulk_write(peer, op, k, len) : api_bulk_read(peer, op, k, len);
    if (!posted) {
        pick->room &= ~(UINT32_C(1) << k);
        return false;
    }
    op->plain = false;
    op->pieces++;
    op->local_addr += len;
    op->remote_addr += len;
    op->left -= len;
    flow->bytes -= len;
    plan_lane_posted(&flow->lane[k], peer->channel->now_ns, len);
    plan_pick_posted(pick, flow->lane, k);
    peer->channel->count.pieces++;
    return true;
}

/* One lane for the whole op: the one it must follow on, or for a medium one the lane that ends first. A lane index, or
 * -EAGAIN, -ENOTCONN. */
static int api_bulk_lane(const struct api_flow *flow, const struct plan_pick *pick, const struct api_op *op)
{
    bool any = op->lane == PLAN_MAX_LANES;
    if (any ? !pick->weights : !flow->lane[op->lane].live)
        return -ENOTCONN;
    if (any ? !pick->room : !(pick->room >> op->lane & 1))
        return -EAGAIN;
    return any ? (int)plan_pick_lane(pick, flow->lane, op->left) : op->lane;
}

/* Hands on a whole op, or a quantum of it where it may be cut but must stay on its lane. */
static int api_bulk_whole(struct api_peer *peer, struct api_flow *flow, struct plan_pick *pick)
{
    struct api_op *op = flow->head;
    for (;;) {
        int k = api_bulk_lane(flow, pick, op);
        if (k < 0)
            return k;
        uint64_t len = op->cut ? min_u64(op->left, min_u64(flow->lane[k].quantum, peer->max_msg)) : op->left;
        if (api_bulk_post(peer, flow, pick, (unsigned)k, len))
            return 0;
    }
}

/* The pieces of a plan, in order, up to one whose lane has no slot. How many were posted. */
static unsigned api_bulk_pieces(struct api_peer *peer, struct api_flow *flow, struct plan_pick *pick,
                                const struct plan_stripe *plan)
{
    unsigned i = 0;
    while (i < plan->count && api_bulk_post(peer, flow, pick, plan->piece[i].lane, plan->piece[i].len))
        i++;
    return i;
}

/* Hands on as much of a large op as the lanes take, each a piece: what a plan made in this pass meant for it; while much is
 * queued one by one; else as planned for all lanes and all ops together. */
static int api_bulk_cut(struct api_peer *peer, struct api_flow *flow, struct plan_pick *pick, struct plan_stripe *plan)
{
    const struct api_op *op = flow->head;
    struct plan_piece piece;
    unsigned posted = 0;
    struct plan_stripe_in in = {
        .remote_addr = op->remote_addr,
        .len = op->left,
        .behind = flow->bytes - op->left,
        .lanes = peer->lane_count,
        .home = peer->word,
        .home_lead_ns = op->lead ? flow->lane[peer->word].rtt_ns : 0,
        .piece_min = peer->channel->braid->options.piece_min,
        .piece_max = peer->max_msg,
        .now_ns = peer->channel->now_ns,
        .step_ns = peer->channel->braid->piece_cost_ns,
        .slack_ns = flow->slack_ns,
        .lane = flow->lane,
    };
    if (plan->next < plan->rests && plan_stripe_behind(&in, pick, plan) && api_bulk_pieces(peer, flow, pick, plan))
        return 0;
    while (in.len && plan_pull(&in, pick, &piece)) {
        if (piece.len == 0)
            return posted ? 0 : -EAGAIN;
        if (!api_bulk_post(peer, flow, pick, piece.lane, piece.len))
            continue;
        in.remote_addr = op->remote_addr;
        in.len = op->left;
        posted++;
    }
    if (posted)
        return 0;
    if (pick->weights && !pick->room)
        return -EAGAIN;
    for (;;) {
        peer->channel->count.plans += peer->lane_count;
        int rc = plan_stripe(&in, pick, plan);
        if (rc)
            return rc;
        if (plan->count == 0)
            return -EAGAIN;
        if (api_bulk_pieces(peer, flow, pick, plan))
            return 0;
    }
}

/* The gated op at the head: may it go? 0, -EAGAIN, or -ENOTCONN where what it must follow is lost. */
static int api_bulk_open(struct api_peer *peer, struct api_op *op)
{
    enum plan_order order = api_bulk_gate(peer, op);
    if (order == PLAN_ORDER_WAIT)
        return -EAGAIN;
    op->gate = false;
    if (order != PLAN_ORDER_NEVER)
        return 0;
    /* Strict: what comes behind it stands behind the same fence. */
    if (peer->channel->braid->options.order == OPTIONS_ORDER_STRICT) {
        if (op->next) {
            op->next->gate = true;
            op->next->plain = false;
        } else {
            peer->fenced = true;
            peer->plain_max = 0;
        }
    }
    return -ENOTCONN;
}

/* How many puts may be handed on before a word op that waits in the FIFO has to be told. */
static uint64_t api_bulk_until_word(const struct api_peer *peer)
{
    if (peer->fifo_marked == peer->fifo_head)
        return UINT64_MAX;
    return peer->fifo[peer->fifo_marked & peer->channel->fifo_mask].puts - peer->put.handed;
}

/* The number on its lane of the last put before such a word, where those from number `count` on go there; UINT64_MAX: none waits. */
static uint64_t api_bulk_word(const struct api_peer *peer, uint64_t count)
{
    uint64_t puts = api_bulk_until_word(peer);
    return puts < UINT64_MAX - count ? count + puts : UINT64_MAX;
}

/* Puts up to number `count` of lane k have been handed on: from now on it is known what words behind them wait for. */
static __attribute__((noinline)) void api_bulk_at_word(struct api_peer *peer, unsigned k, uint64_t count)
{
    peer->put.handed += count - peer->counts.posted[k];
    peer->counts.posted[k] = count;
    api_order_mark_all(peer);
}

/* Hands plain puts from the head of the queue to lane k: none over `longest`, and those that begin within `budget` bytes. How
 * many; the queue is brought up to date but for the number that waits, and words that the puts were before are marked. Apart, for the
 * sake of registers. */
static __attribute__((noinline)) uint64_t api_bulk_burst(struct api_peer *peer, unsigned k, uint64_t budget,
                                                         uint64_t longest)
{
    struct api_flow *flow = &peer->put;
    unsigned local = peer->local_rail[k], remote = peer->remote_rail[k];
    uint64_t bytes = 0, count = peer->counts.posted[k], first = count;
    struct api_op *op = flow->head;
    struct rail_writer writer;
    uint64_t end = rail_write_begin(&writer, peer->lane[k], peer->max_msg, &bytes);
    if (end == 0 || api_bulk_until_word(peer) == 0) /* the latter never is: words are marked as soon as they can be */
        return 0;
    budget = min_u64(budget, bytes);
    end += count;
    uint64_t word = api_bulk_word(peer, count), most = min_u64(end, word);
    for (;;) {
        struct rail_request request = {
            .epoch = op->epoch,
            .len = (uint32_t)op->left,
            .cookie = (uintptr_t)op,
            .local_addr = op->local_addr,
            .remote_addr = op->remote_addr,
            .lkey = op->mem->lkey[local],
            .rkey = rail_wire_view_rkey(op->key->bytes, remote, false),
        };
        rail_write(&writer, &request);
        plan_overlap_whole(&peer->overlap, op->ticket, k, ++count);
        op = op->next;
        if (count == most) {
            if (count == word) {
                api_bulk_at_word(peer, k, count);
                word = api_bulk_word(peer, count);
                most = min_u64(end, word);
            }
            if (count == end)
                break;
        }
        if (writer.bytes >= budget || !op || !op->plain || op->left > longest)
            break;
    }
    flow->head = op;
    flow->bytes -= writer.bytes;
    flow->handed += count - peer->counts.posted[k];
    peer->counts.posted[k] = count;
    plan_lane_posted(&flow->lane[k], peer->channel->now_ns, writer.bytes);
    rail_write_end(&writer);
    peer->channel->count.bursts++;
    return count - first;
}

/* The longest plain put that goes whole on lane k: what may not be cut, and while much is queued its quantum. */
static uint64_t api_bulk_longest(const struct api_peer *peer, unsigned k)
{
    const struct api_flow *flow = &peer->put;
    return flow->bytes < flow->much ? peer->cut_min - 1 : max_u64(peer->cut_min - 1, flow->lane[k].quantum);
}

/* The hot path: hands on plain puts that go whole from the head of the queue, until another comes or no lane has room. How
 * many. */
static unsigned api_bulk_plain(struct api_peer *peer, struct plan_pick *pick)
{
    struct api_flow *flow = &peer->put;
    uint64_t n = 0, more;
    for (; flow->head && flow->head->plain && pick->room; n += more) {
        unsigned k = plan_pick_lane(pick, flow->lane, flow->head->left);
        uint64_t longest = api_bulk_longest(peer, k);
        if (flow->head->left > longest)
            break;
        more = api_bulk_burst(peer, k, plan_pick_burst(pick, flow->lane, k, flow->bytes), longest);
        if (more == 0)
            break;
        plan_pick_posted(pick, flow->lane, k);
    }
    if (!flow->head)
        flow->link = &flow->head;
    flow->waiting -= (uint32_t)n;
    peer->channel->count.pieces += n;
    peer->channel->count.whole += n;
    return (unsigned)n;
}

/* Whether a plain put may go whole on some lane: as api_bulk_longest(). */
static bool api_bulk_goes_whole(const struct api_flow *flow, const struct api_op *op)
{
    return op->plain && (!op->cut || (op->left <= flow->quantum && flow->bytes >= flow->much));
}

/* What follows from the lanes' paces for all of them together. */
static void api_bulk_refresh(const struct api_peer *peer, struct api_flow *flow)
{
    flow->stale = false;
    flow->much = plan_pick_much(flow->lane, peer->lane_count);
    flow->slack_ns = plan_stripe_slack(flow->lane, peer->lane_count, peer->channel->braid->options.piece_min);
    flow->quantum = 0;
    for (unsigned k = 0; k < peer->lane_count; k++)
        flow->quantum = max_u64(flow->quantum, flow->lane[k].quantum);
}

/* The lanes as they are. What completions change (bytes on the way, paces, a lane that dies) has the pass that found them look anew
 * before it hands anything on, see api_drive_all(). Until the next one only what is posted changes them, which is told to the look. */
static void api_bulk_look(const struct api_peer *peer, struct api_flow *flow)
{
    uint64_t now_ns = peer->channel->now_ns;
    if (flow->looked && flow->pick.now_ns == now_ns)
        return;
    plan_pick_begin(&flow->pick, flow->lane, peer->lane_count, now_ns);
    flow->looked = true;
}

/* Whether every lane has so much on its way that none runs dry before the next pass. */
static bool api_bulk_later(const struct api_peer *peer, const struct api_flow *flow)
{
    for (unsigned k = 0; k < peer->lane_count; k++) {
        if (flow->lane[k].live && flow->lane[k].backlog * 2 <= flow->lane[k].window)
            return false;
    }
    return flow->pick.weights > 0;
}

unsigned api_bulk_pump(struct api_peer *peer, struct api_flow *flow)
{
    unsigned moved = 0;
    struct plan_pick *pick = &flow->pick;
    struct plan_stripe plan;
    plan.next = plan.rests = 0;
    flow->held = flow->later = false;
    if (flow->stale)
        api_bulk_refresh(peer, flow);
    api_bulk_look(peer, flow);
    /* Most passes find all lanes full; only what a gate waits for is then still to be seen to. */
    if (!pick->room && pick->weights && !flow->head->gate) {
        flow->held = true;
        return 0;
    }
    while (flow->head) {
        struct api_op *op = flow->head;
        unsigned plain = api_bulk_goes_whole(flow, op) ? api_bulk_plain(peer, pick) : 0;
        moved += plain;
        if (plain)
            continue;
        int rc = 0;
        if (op->gate && (rc = api_bulk_open(peer, op)) == -EAGAIN)
            return moved;
        if (!rc)
            rc = op->cut && op->lane == PLAN_MAX_LANES ? api_bulk_cut(peer, flow, pick, &plan)
                                                       : api_bulk_whole(peer, flow, pick);
        if (rc == -EAGAIN) {
            flow->held = true;
            return moved;
        }
        moved++;
        if (rc || op->left == 0)
            api_bulk_finish(peer, flow, rc);
    }
    flow->later = api_bulk_later(peer, flow);
    return moved;
}

static void api_bulk_pace(struct api_peer *peer, struct api_flow *flow, unsigned k)
{
    const struct braid *b = peer->channel->braid;
    struct plan_pace_in in = {
        .on = api_paced(b),
        .alone = b->ways == 1,
        .piece_cost_ns = b->piece_cost_ns,
        .total_weight = b->total_weight,
        .piece_min = b->options.piece_min,
        .piece_max = peer->max_msg,
    };
    plan_lane_speed(&flow->lane[k], &flow->rate[k]);
    plan_pace(&in, &flow->lane[k]);
    flow->stale = true;
}

/* The lane's speed is known anew, its round trip is as it was. */
static void api_bulk_speed(struct api_peer *peer, struct api_flow *flow, unsigned k)
{
    uint32_t even_ns = flow->lane[k].rtt_ns;
    api_bulk_pace(peer, flow, k);
    flow->lane[k].rtt_ns = even_ns;
}

static void api_bulk_rtt(struct api_peer *peer, struct api_flow *flow, unsigned k)
{
    struct braid_channel *ch = peer->channel;
    api_bulk_pace(peer, flow, k);
    plan_pace_even(flow->lane, flow->rate, peer->lane_count);
    if (peer->pe != ch->braid->my_pe || ch->braid->n_pes == 1)
        ch->trip_ns = min_u64(ch->trip_ns, flow->lane[k].rtt_ns);
}

void api_bulk_trip(struct api_peer *peer, unsigned k, uint64_t rtt_ns)
{
    if (plan_rate_rtt(&peer->put.rate[k], rtt_ns))
        api_bulk_rtt(peer, &peer->put, k);
    if (plan_rate_rtt(&peer->get.rate[k], rtt_ns))
        api_bulk_rtt(peer, &peer->get, k);
}

void api_bulk_start(struct api_peer *peer, unsigned k, uint64_t line_bits, uint64_t rtt_ns)
{
    struct api_flow *flows[] = {&peer->put, &peer->get};
    for (unsigned i = 0; i < 2; i++) {
        plan_rate_init(&flows[i]->rate[k], line_bits, peer->lane[k]->mtu, rtt_ns);
        plan_rate_rtt(&flows[i]->rate[k], rtt_ns);
        flows[i]->lane[k].live = true;
        api_bulk_rtt(peer, flows[i], k);
    }
}

void api_bulk_acked(struct api_flow *flow, unsigned k, uint64_t bytes)
{
    flow->acked[k] += bytes;
    flow->acked_lanes |= 1u << k;
}

void api_bulk_learn(struct api_peer *peer, struct api_flow *flow)
{
    uint64_t now = peer->channel->now_ns;
    flow->later = false;
    for (; flow->acked_lanes; flow->acked_lanes &= flow->acked_lanes - 1) {
        unsigned k = (unsigned)__builtin_ctz(flow->acked_lanes);
        struct plan_rate *rate = &flow->rate[k];
        bool full = flow->held && flow->lane[k].backlog >= flow->lane[k].window;
        plan_lane_acked(&flow->lane[k], peer->channel->since_ns, now, flow->acked[k]);
        uint64_t left = flow->lane[k].backlog;
        bool dry = full && left == 0;
        if (dry ? plan_rate_dry(rate, now) : plan_rate_take(rate, now, flow->acked[k], flow->held ? left : 0))
            api_bulk_speed(peer, flow, k);
        if (!left && !dry)
            plan_rate_idle(rate);
        flow->acked[k] = 0;
    }
}
