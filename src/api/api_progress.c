/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_progress.c - PATH 5, the way back up: completions move counts, counts release what waited, pieces end ops.
 * May not block. Called by the user and by every blocking loop; next: api_order.c, api_bulk.c, api_flush.c, then
 * api_op.c
 */
#include "api.h"

#include <errno.h>
#include <string.h>

/* Once in so many passes that found nothing the devices are asked for events: that is a system call. */
#define API_EVENT_PASSES 4096u

bool api_try_enter(struct braid_channel *ch)
{
    return !__atomic_exchange_n(&ch->owned, 1, __ATOMIC_ACQUIRE);
}

void api_enter(struct braid_channel *ch)
{
    while (!api_try_enter(ch)) {
        while (__atomic_load_n(&ch->owned, __ATOMIC_RELAXED))
            clock_pause();
    }
}

void api_leave(struct braid_channel *ch)
{
    __atomic_store_n(&ch->owned, 0, __ATOMIC_RELEASE);
}

void api_wake(struct api_peer *peer)
{
    struct braid_channel *ch = peer->channel;
    peer->order_waits = false;
    if (peer->dirty)
        return;
    peer->dirty = true;
    peer->next_dirty = ch->dirty;
    ch->dirty = peer;
}

static void api_read_events(struct braid *b)
{
    for (unsigned i = 0; i < b->rail_count; i++) {
        struct rail *rail = b->rail[i];
        struct verbs_event event;
        int rc;
        while ((rc = verbs_event_next(rail->dev, &event)) > 0) {
            enum log_level level = event.device_fatal || event.port_error ? LOG_LEVEL_WARN : LOG_LEVEL_INFO;
            if (event.port)
                log_write(&b->log, level, "rail %u: event %s on port %u of its device", i, event.name, event.port);
            else
                log_write(&b->log, level, "rail %u (port %s): event %s", i, rail->name, event.name);
        }
        if (rc < 0)
            log_write(&b->log, LOG_LEVEL_DEBUG, "port %s: no events: %s", rail->name, strerror(-rc));
    }
}

void api_lane_dead(struct rail_lane *lane, int error, const char *status, uint32_t vendor_error)
{
    struct api_peer *peer = lane->owner;
    struct braid_channel *ch = peer->channel;
    if (peer->order.dead >> lane->index & 1)
        return;
    peer->order.dead |= (uint16_t)(1u << lane->index);
    /* Acknowledged, and perhaps not visible: no flush will tell any more. */
    if (peer->counts.flushed[lane->index] < peer->counts.posted[lane->index] && !peer->unproved)
        peer->unproved = error;
    peer->put.lane[lane->index].live = peer->get.lane[lane->index].live = false;
    peer->plain_max = 0;
    __atomic_store_n(&ch->ask_ns, 0, __ATOMIC_RELAXED); /* what was asked on it is asked again */
    api_wake(peer);
    rail_lane_stop(lane);
    log_write(
        &ch->braid->log, LOG_LEVEL_ERROR,
        "lane %u to PE %d over port %s failed: %s (%s, vendor 0x%x); its ops fail, and word ops to that PE that follow "
        "them; other lanes carry on",
        lane->index, peer->pe, lane->queue->rail->name, status ? status : "no status", strerror(-error), vendor_error);
    /* Channel 0 reads them: the descriptor is the context's. */
    if (ch->index == 0)
        api_read_events(ch->braid);
}

static void api_count_done(struct braid_channel *ch, unsigned rail, const struct rail_record *record)
{
    struct api_stats *stats = &ch->stats[rail];
    if (record->klass == RAIL_CLASS_WORD && record->kind != RAIL_KIND_FLUSH && record->kind != RAIL_KIND_AHEAD)
        api_stat_add(&stats->word_ops, 1);
    if (record->kind == RAIL_KIND_WRITE)
        api_stat_add(&stats->put_bytes, record->len);
    else if (record->kind == RAIL_KIND_READ)
        api_stat_add(&stats->get_bytes, record->len);
}

/* What an ended request says about its lane. An acknowledged write is acknowledged, no more. A READ or an atomic that has
 * been answered stood behind all writes before it at the target, so those are in its memory (IBA spec vol. 1, 9.5;
 * PCIe: reads push posted writes). On a failed lane no count moves any more: what waits for it must fail. */
static void api_counts_move(struct api_peer *peer, unsigned k, enum rail_kind kind)
{
    struct plan_counts *c = &peer->counts;
    switch (kind) {
    case RAIL_KIND_WRITE:
        c->acked[k]++;
        break;
    case RAIL_KIND_FETCH_ADD:
    case RAIL_KIND_COMPARE_SWAP:
        /* It read the kind of memory that its word lies in. */
        if (!peer->order.mixed)
            c->flushed[k] = max_u64(c->flushed[k], c->acked[k]);
        c->acked[k]++;
        break;
    case RAIL_KIND_FLUSH:
        c->flushed[k] = c->acked[k];
        break;
    case RAIL_KIND_READ:
    case RAIL_KIND_AHEAD:
    case RAIL_KIND_MAIL:
        break;
    }
}

/* A request that is no write of bulk, or that failed. */
static void api_request_done(struct braid_channel *ch, const struct rail_event *event)
{
    struct rail_lane *lane = event->lane;
    struct api_peer *peer = lane->owner;
    const struct rail_record *record = event->record;
    unsigned k = lane->index;
    struct api_op *op = (struct api_op *)(uintptr_t)record->cookie;
    ch->count.retired++;
    if (event->error) {
        api_stat_add(&ch->stats[peer->local_rail[k]].errors, 1);
        api_lane_dead(lane, event->error, event->status, event->vendor_error);
    } else {
        api_count_done(ch, peer->local_rail[k], record);
        if (!(peer->order.dead >> k & 1))
            api_counts_move(peer, k, record->kind);
    }
    if (record->klass == RAIL_CLASS_BULK)
        api_bulk_acked(record->kind == RAIL_KIND_READ ? &peer->get : &peer->put, k, record->len);
    if (record->kind == RAIL_KIND_FLUSH && !op)
        api_flush_back(peer, k);
    if (record->cookie & API_EXEC_COOKIE) {
        api_exec_done(event);
    } else if (op) {
        if (!event->error && op->old && record->kind != RAIL_KIND_WRITE)
            *op->old = event->value;
        api_op_piece_end(op, event->error);
    }
    api_wake(peer);
}

/* An atomic or a word that was written has ended well; false, with nothing changed, where the next record is none or is the
 * executor's. As api_request_done(), without an event. */
static bool api_word_done(struct braid_channel *ch, struct rail_queue *queue, struct rail_lane *lane)
{
    struct api_peer *peer = lane->owner;
    unsigned k = lane->index;
    uint32_t slot = lane->tail & lane->mask;
    const struct rail_record *record = &lane->ring[slot];
    enum rail_kind kind = record->kind;
    struct api_op *op = (struct api_op *)(uintptr_t)record->cookie;
    if (record->klass != RAIL_CLASS_WORD || !op || record->cookie & API_EXEC_COOKIE ||
        (kind != RAIL_KIND_FETCH_ADD && kind != RAIL_KIND_WRITE && kind != RAIL_KIND_COMPARE_SWAP))
        return false;
    ch->count.retired++;
    api_count_done(ch, peer->local_rail[k], record);
    if (!(peer->order.dead >> k & 1))
        api_counts_move(peer, k, kind);
    if (op->old && kind != RAIL_KIND_WRITE)
        *op->old = lane->cells[slot];
    rail_retire_word(queue, lane);
    api_op_piece_end(op, 0);
    api_wake(peer);
    return true;
}

/* What most of what ends is: pieces of puts that have been acknowledged, up to record `end` or the first that is none.
 * How many. */
static unsigned api_bulk_done(struct braid_channel *ch, struct rail_queue *queue, struct rail_lane *lane, uint32_t end)
{
    struct api_peer *peer = lane->owner;
    unsigned k = lane->index;
    uint32_t to = lane->tail, count;
    uint64_t bytes = 0, ended = 0;
    if (k == API_NO_LANE)
        return 0;
    for (; to != end; to++) {
        const struct rail_record *record = &lane->ring[to & lane->mask];
        if (record->kind != RAIL_KIND_WRITE || record->klass != RAIL_CLASS_BULK)
            break;
        bytes += record->len;
        ended += api_op_end_plain(ch, (struct api_op *)(uintptr_t)record->cookie);
    }
    count = to - lane->tail;
    if (count == 0)
        return 0;
    peer->ops -= ended;
    ch->op_free += ended;
    ch->count.retired += count;
    api_stat_add(&ch->stats[peer->local_rail[k]].put_bytes, bytes);
    if (!(peer->order.dead >> k & 1))
        peer->counts.acked[k] += count;
    api_bulk_acked(&peer->put, k, bytes);
    api_wake(peer);
    rail_retire_bulk(queue, lane, to, bytes);
    return count;
}

static void api_mail_arrived(struct braid_channel *ch, const struct rail_event *event)
{
    struct api_peer *peer = event->lane->owner;
    const struct rail_mail_msg *mail = event->mail;
    api_wake(peer); /* it may have brought credits */
    if (mail->type == RAIL_MAIL_REJECT)
        log_write(&ch->braid->log, LOG_LEVEL_ERROR, "lane %u to PE %d: it refused our mailbox version %u, it speaks %u",
                  event->lane->index, peer->pe, RAIL_MAIL_VERSION, mail->spoken);
    else if (event->error)
        log_write(&ch->braid->log, LOG_LEVEL_ERROR,
                  "lane %u to PE %d: a message of mailbox version %u, expected %u: refused", event->lane->index,
                  peer->pe, mail->version, RAIL_MAIL_VERSION);
    else if (mail->type == RAIL_MAIL_ECHO_REPLY)
        peer->echo_reply = mail->nonce;
    else if (mail->type == RAIL_MAIL_ATOMIC)
        api_exec_ask(peer, event->lane->index, mail);
    else if (mail->type == RAIL_MAIL_ATOMIC_REPLY)
        api_message_answer(peer, mail);
}

/* Acts on what was taken from a queue. How many events. */
static unsigned api_take(struct braid_channel *ch, struct rail_queue *queue)
{
    unsigned events = 0;
    struct rail_event event;
    struct rail_lane *lane;
    uint32_t end;
    for (;;) {
        while ((lane = rail_ended(queue, &end))) {
            unsigned ended = api_bulk_done(ch, queue, lane, end);
            if (ended == 0 && (lane->index == API_NO_LANE || !api_word_done(ch, queue, lane)))
                break;
            events += max_u32(ended, 1);
        }
        if (!rail_next(queue, &event))
            break;
        events++;
        if (event.lane->index == API_NO_LANE)
            continue;
        switch (event.kind) {
        case RAIL_EVENT_DONE:
            api_request_done(ch, &event);
            break;
        case RAIL_EVENT_MAIL:
            api_mail_arrived(ch, &event);
            break;
        case RAIL_EVENT_BROKEN:
            api_lane_dead(event.lane, event.error, event.status, 0);
            break;
        }
    }
    return events;
}

/* How much moved: a completion that gave no event counts too, since others may be waiting behind it. */
static unsigned api_poll_all(struct braid_channel *ch)
{
    unsigned moved = 0, rails = ch->braid->rail_count;
    ch->count.polls += rails;
    for (unsigned i = 0; i < rails; i++) {
        struct rail_queue *queue = &ch->queue[i];
        unsigned taken = rail_poll(queue);
        if (taken || rail_owes(queue)) /* most have nothing, where one thread looks after many rails */
            moved += max_u32(api_take(ch, queue), taken);
    }
    return moved;
}

/* Whether what a lane has in flight keeps it busy for a while: then what is built can wait for more, to be posted as one
 * longer list by the pass that finds the next of those ended. */
static bool api_ring_later(const struct plan_lane *plan, const struct rail_lane *lane)
{
    uint64_t built = 0;
    if (plan->backlog * 2 <= plan->window)
        return false;
    for (uint32_t i = lane->posted; i != lane->head; i++)
        built += lane->ring[i & lane->mask].len;
    return (plan->backlog - min_u64(built, plan->backlog)) * 2 > plan->window;
}

static void api_ring(struct api_peer *peer, bool urgent)
{
    for (unsigned k = 0; k < peer->lane_count; k++) {
        struct rail_lane *lane = peer->lane[k];
        if (lane->posted == lane->head || (!urgent && api_ring_later(&peer->put.lane[k], lane)))
            continue;
        peer->channel->count.lists++;
        rail_lane_ring(lane);
    }
}

unsigned api_drive(struct api_peer *peer, bool urgent)
{
    unsigned moved = 0, bulk;
    peer->channel->count.drives += peer->lane_count;
    /* Words first; and again where bulk went on that they may have waited for, as gated bulk may have waited for them. */
    do {
        moved += peer->fifo_tail != peer->fifo_marked && !peer->order_waits ? api_order_drive(peer) : 0;
        bulk = peer->put.head ? api_bulk_pump(peer, &peer->put) : 0;
        moved += bulk;
    } while (bulk && peer->fifo_tail != peer->fifo_marked);
    /* Flushing early keeps the table of ranges from filling up; one lane after the other, so that many lanes do not run dry
     * meanwhile, and all at once when it is late. */
    if (plan_overlap_filled(&peer->overlap) || (peer->quieting && !peer->put.head))
        api_flush_want_all(peer);
    else if (plan_overlap_full(&peer->overlap))
        api_flush_want_one(peer);
    unsigned flushes = peer->flush_due ? api_flush_drive(peer) : 0;
    /* Behind the flushes: where a lane takes one READ at a time, gets would leave them none. */
    if (peer->get.head)
        moved += api_bulk_pump(peer, &peer->get);
    api_ring(peer, urgent || flushes > 0);
    return moved + flushes;
}

static unsigned api_drive_all(struct braid_channel *ch)
{
    unsigned moved = 0;
    uint64_t scratch[PLAN_COUNTS];
    uint64_t before_ns = ch->now_ns;
    ch->now_ns = clock_now(&ch->braid->clock);
    ch->since_ns = ch->busy ? before_ns : ch->now_ns; /* an idle pass looks, and takes no time */
    while (ch->dirty) {
        struct api_peer *peer = ch->dirty;
        ch->dirty = peer->next_dirty;
        peer->dirty = false;
        ch->count.turns++;
        /* What was found has changed its lanes, and a slot may have become free. */
        peer->put.looked = peer->get.looked = false;
        if (peer->put.acked_lanes)
            api_bulk_learn(peer, &peer->put);
        if (peer->get.acked_lanes)
            api_bulk_learn(peer, &peer->get);
        plan_overlap_trim(&peer->overlap, api_order_visible(peer, scratch));
        if (api_idle(peer))
            api_ring(peer, true);
        else
            moved += api_drive(peer, true);
    }
    return moved;
}

unsigned api_pass(struct braid_channel *ch)
{
    ch->count.passes++;
    unsigned moved = api_poll_all(ch);
    if (ch->message_held && moved)
        api_message_retry(ch);
    if (ch->asking)
        moved += api_message_drive_all(ch);
    if (ch->jobs)
        moved += api_exec_drive(ch);
    if (ch->dirty)
        moved += api_drive_all(ch);
    ch->busy = moved > 0;
    if (moved == 0 && ch->index == 0 && ++ch->idle_polls % API_EVENT_PASSES == 0)
        api_read_events(ch->braid);
    return moved;
}

int braid_progress(struct braid_channel *ch)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    unsigned moved = api_pass(ch);
    api_leave(ch);
    return (int)moved;
}

int braid_progress_try(struct braid_channel *ch)
{
    if (!ch)
        return -EINVAL;
    if (!api_try_enter(ch))
        return 0;
    unsigned moved = api_pass(ch);
    api_leave(ch);
    return (int)moved;
}

int braid_progress_soon(struct braid_channel *ch)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    uint64_t now = clock_now(&ch->braid->clock), trip_ns = ch->trip_ns == UINT64_MAX ? 0 : ch->trip_ns;
    unsigned moved = 0;
    if (plan_pass_due(max_u64(ch->now_ns, ch->soon_ns), now, trip_ns)) {
        ch->soon_ns = now;
        moved = api_pass(ch);
    }
    api_leave(ch);
    return (int)moved;
}

int braid_turn(struct braid_channel *ch)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_turn(ch, UINT64_MAX);
    api_leave(ch);
    return rc;
}

int api_turn(struct braid_channel *ch, uint64_t deadline_ns)
{
    struct braid *b = ch->braid;
    unsigned moved = api_pass(ch);
    for (unsigned i = 0; i < b->channel_count; i++) {
        struct braid_channel *other = b->channel[i];
        if (other == ch || !api_try_enter(other))
            continue;
        moved += api_pass(other);
        api_leave(other);
    }
    if (moved)
        return 0;
    deadline_ns = min_u64(deadline_ns, api_message_deadline(b));
    api_leave(ch);
    int rc = clock_wait(&b->clock, deadline_ns);
    api_enter(ch);
    return rc;
}
