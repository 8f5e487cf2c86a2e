/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_poll.c - the way back: completions become events, each record once and in order.
 * May not act on errors beyond its own books. Called by src/api/api_progress.c, which acts on the events.
 */
#include "rail_priv.h"

#include <errno.h>
#include <string.h>

static const char rail_status_given_up[] = "its completion queue was given up";

static bool rail_broken(struct rail_lane *lane, int error, const char *status, struct rail_event *out)
{
    *out = (struct rail_event){.kind = RAIL_EVENT_BROKEN, .error = error, .status = status, .lane = lane};
    return true;
}

/* RC completes in posting order (IBA spec vol. 1, 10.8), each signalled request and each that fails. Anything else would
 * count data as arrived that has not, or wait for ever: the queue is given up. */
static void rail_distrust(struct rail_queue *queue, const struct verbs_completion *c)
{
    log_write(queue->rail->log, LOG_LEVEL_ERROR,
              "port %s QP 0x%x: completion 0x%llx fits no request: a provider bug; all lanes of its queue are given up",
              queue->rail->name, c->qpn, (unsigned long long)c->id);
    queue->broken = -EPROTO;
    queue->next = queue->count;
}

/* Takes the oldest record off a lane's books, as an event. False where nobody needs an event: a message was sent. */
static bool rail_retire(struct rail_lane *lane, int error, struct rail_event *out)
{
    uint32_t slot = lane->tail & lane->mask;
    const struct rail_record *record = &lane->ring[slot];
    lane->tail++;
    lane->backlog -= record->len;
    out->kind = RAIL_EVENT_DONE;
    out->error = error;
    out->lane = lane;
    out->record = record;
    switch (out->record->kind) {
    case RAIL_KIND_WRITE:
        return true;
    case RAIL_KIND_MAIL:
        lane->mail_busy--;
        return error != 0;
    case RAIL_KIND_READ:
        lane->reads--;
        lane->backlog += out->record->len; /* it was none of these bytes */
        lane->get_bytes -= out->record->len;
        return true;
    default:
        lane->reads--;
        out->value = lane->cells[slot];
        return true;
    }
}

/* The next record that a bad completion has ended. */
static bool rail_fail(struct rail_queue *queue, struct rail_lane *lane, struct rail_event *out)
{
    const struct verbs_completion *c = &queue->completion[queue->next - 1];
    int error = c->error;
    if (lane->tail == queue->ending_to)
        queue->failing = NULL;
    else if (error != -ECANCELED)
        error = 0; /* it was not just flushed, so it was the first to fail */
    out->status = verbs_status_name(queue->cq, c->status);
    out->vendor_error = c->vendor_error;
    return rail_retire(lane, error, out);
}

/* A marker has come out behind everything that was posted: rail_lane.c (rail_mark). */
static void rail_take_marker(struct rail_queue *queue, struct rail_lane *lane, const struct verbs_completion *c)
{
    uint32_t number = (uint32_t)c->id;
    if (lane->state != RAIL_LANE_DEAD) {
        rail_distrust(queue, c);
    } else if (number - lane->tail < lane->posted - lane->tail) {
        *(c->error ? &queue->failing : &queue->ending) = lane;
        queue->ending_to = number;
    }
}

/* Whether a completion can be what its id says: its record is out, and no signalled one before it. */
static inline bool rail_fits(const struct rail_lane *lane, const struct verbs_completion *c)
{
    uint32_t number = (uint32_t)c->id, before = number - lane->tail;
    const struct rail_record *record = &lane->ring[number & lane->mask];
    return before < lane->posted - lane->tail && before <= record->run && (!record->unsignalled || c->error);
}

/* A completion of a request that failed or that does not fit. */
static void rail_take_bad(struct rail_queue *queue, struct rail_lane *lane, const struct verbs_completion *c)
{
    uint32_t number = (uint32_t)c->id;
    if (c->error && rail_fits(lane, c)) {
        queue->failing = lane;
        queue->ending_to = number;
    } else if (!c->error || lane->state != RAIL_LANE_DEAD || number - lane->tail < lane->posted - lane->tail) {
        rail_distrust(queue, c);
    } /* else its record has been handed back without it: rail_lane.c (rail_mark) */
}

/* A message arrived, or a receive was flushed. True where out holds an event. */
static bool rail_take_recv(struct rail_queue *queue, struct rail_lane *lane, const struct verbs_completion *c,
                           struct rail_event *out)
{
    uint32_t buffer = (uint32_t)c->id;
    if (buffer >= RAIL_MAIL_DEPTH) {
        rail_distrust(queue, c);
        return false;
    }
    if (c->error == -ECANCELED)
        return false; /* the lane is being stopped; its requests tell */
    if (c->error)
        return rail_broken(lane, c->error, verbs_status_name(queue->cq, c->status), out);
    int error = rail_mail_receive(&lane->mail, rail_mail_recv_buffer(lane, buffer), c->len, &queue->mail);
    if (error == -EPROTO)
        return rail_broken(lane, error, "malformed mailbox message", out);
    int rc = lane->state == RAIL_LANE_UP ? rail_lane_post_mail_recv(lane, buffer) : 0;
    if (rc)
        return rail_broken(lane, rc, "receive not taken", out);
    rail_lane_pump_mail(lane);
    *out = (struct rail_event){.kind = RAIL_EVENT_MAIL, .error = error, .lane = lane, .mail = &queue->mail};
    return true;
}

/* Looks at one completion that is not a request's good end. True where out holds an event. */
static bool rail_take_other(struct rail_queue *queue, const struct verbs_completion *c, struct rail_event *out)
{
    uint32_t place = (uint32_t)((c->id & ~(RAIL_ID_RECV | RAIL_ID_MARKER)) >> RAIL_ID_PLACE);
    if (place >= queue->lane_count)
        rail_distrust(queue, c);
    else if (c->id & RAIL_ID_RECV)
        return rail_take_recv(queue, queue->lanes[place], c, out);
    else if (c->id & RAIL_ID_MARKER)
        rail_take_marker(queue, queue->lanes[place], c);
    else
        rail_take_bad(queue, queue->lanes[place], c);
    return false;
}

/* Whether and how a request has ended will never be known: its lane stops, and each record comes back with the error. */
static bool rail_give_up(struct rail_queue *queue, struct rail_event *out)
{
    for (; queue->given_up < queue->lane_count; queue->given_up++) {
        struct rail_lane *lane = queue->lanes[queue->given_up];
        if (lane->state != RAIL_LANE_DEAD) {
            rail_lane_stop(lane);
            return rail_broken(lane, queue->broken, rail_status_given_up, out);
        }
        if (lane->tail != lane->head) {
            out->status = rail_status_given_up;
            out->vendor_error = 0;
            return rail_retire(lane, queue->broken, out);
        }
        lane->posted = lane->head;
    }
    queue->refused = 0;
    return false;
}

/* Hands back what was never posted, once all that was posted before it on its lane has ended. */
static bool rail_hand_back(struct rail_queue *queue, struct rail_event *out)
{
    for (uint32_t i = 0; i < queue->lane_count; i++) {
        struct rail_lane *lane = queue->lanes[i];
        if (lane->state != RAIL_LANE_DEAD || lane->posted != lane->tail || lane->tail == lane->head)
            continue;
        queue->refused--;
        lane->posted++;
        out->status = "not posted";
        out->vendor_error = 0;
        return rail_retire(lane, lane->refusal, out);
    }
    return false;
}

unsigned rail_poll(struct rail_queue *queue)
{
    if (queue->next != queue->count || queue->ending || queue->failing || queue->broken)
        return queue->count - queue->next;
    int n = verbs_poll(queue->cq, queue->completion, VERBS_POLL_MAX);
    queue->next = 0;
    queue->count = n > 0 ? (uint32_t)n : 0;
    queue->taken += queue->count;
    if (n < 0) {
        log_write(queue->rail->log, LOG_LEVEL_ERROR,
                  "port %s: its completions cannot be polled: %s; all lanes of the queue are given up",
                  queue->rail->name, strerror(-n));
        queue->broken = n;
    }
    return queue->count;
}

/* What of rail_next() is not the good end of a request. True where out holds an event; `again` where there may be one. */
static bool rail_next_other(struct rail_queue *queue, struct rail_event *out, bool *again)
{
    *again = true;
    if (queue->failing)
        return rail_fail(queue, queue->failing, out);
    if (queue->next != queue->count)
        return rail_take_other(queue, &queue->completion[queue->next++], out);
    *again = false;
    if (queue->broken)
        return rail_give_up(queue, out);
    return queue->refused > 0 && rail_hand_back(queue, out);
}

/* The lane of which the next records have ended well, up to queue->ending_to; NULL where what comes next is something
 * else. */
static inline struct rail_lane *rail_next_good(struct rail_queue *queue)
{
    if (queue->ending || queue->next == queue->count || queue->failing)
        return queue->ending;
    const struct verbs_completion *c = &queue->completion[queue->next];
    uint32_t place = (uint32_t)(c->id >> RAIL_ID_PLACE);
    if (place >= queue->lane_count || c->error)
        return NULL;
    struct rail_lane *lane = queue->lanes[place];
    if (!rail_fits(lane, c))
        return NULL;
    queue->next++;
    queue->ending = lane;
    queue->ending_to = (uint32_t)c->id;
    return lane;
}

struct rail_lane *rail_ended(struct rail_queue *queue, uint32_t *end)
{
    struct rail_lane *lane = rail_next_good(queue);
    if (lane)
        *end = queue->ending_to + 1;
    return lane;
}

bool rail_next(struct rail_queue *queue, struct rail_event *out)
{
    for (;;) {
        struct rail_lane *lane = rail_next_good(queue);
        if (!lane) {
            bool again, event = rail_next_other(queue, out, &again);
            if (event || !again)
                return event;
            continue;
        }
        if (lane->tail == queue->ending_to)
            queue->ending = NULL;
        if (rail_retire(lane, 0, out))
            return true;
        rail_lane_pump_mail(lane);
    }
}
