/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_poll.c - the way back: completions become events, each record once and in order.
 * May not act on errors beyond its own books. Called by src/api/api_progress.c, which acts on the events.
 */
#include "rail_priv.h"

#include <errno.h>
#include <string.h>

static bool rail_broken(struct rail_lane *lane, int error, const char *status, struct rail_event *out)
{
    *out = (struct rail_event){.kind = RAIL_EVENT_BROKEN, .error = error, .status = status, .lane = lane};
    return true;
}

/* After arrivals and finished sends: then credits or buffers may have come free. */
static bool rail_pump(struct rail_lane *lane, struct rail_event *out)
{
    int rc = lane->state == RAIL_LANE_UP ? rail_lane_pump_mail(lane) : 0;
    return rc < 0 && rail_broken(lane, rc, "mailbox", out);
}

/* Every request is signalled and RC completes in posting order (IBA spec vol. 1, 10.8). Anything else would count
 * data as arrived that has not, or wait for ever: the queue is given up. */
static bool rail_distrust(struct rail_queue *queue, const struct verbs_completion *c)
{
    log_write(queue->rail->log, LOG_LEVEL_ERROR,
              "port %s QP 0x%x: completion 0x%llx fits no request: a provider bug; all lanes of its queue are given up",
              queue->rail->name, c->qpn, (unsigned long long)c->id);
    queue->broken = -EPROTO;
    return false;
}

/* Takes the oldest record off a lane's books. */
static struct rail_record rail_retire(struct rail_lane *lane)
{
    struct rail_record record = lane->ring[lane->tail & lane->mask];
    lane->tail++;
    lane->backlog -= record.len;
    lane->psns -= record.psns;
    if (record.kind == RAIL_KIND_MAIL)
        lane->mail_busy--;
    return record;
}

/* A request ended. True where out holds an event. */
static bool rail_poll_send(struct rail_lane *lane, const struct verbs_completion *c, struct rail_event *out)
{
    if (lane->head == lane->tail || (uint32_t)c->id != lane->tail)
        return rail_distrust(lane->queue, c);

    struct rail_record record = rail_retire(lane);
    if (record.kind == RAIL_KIND_MAIL && !c->error)
        return rail_pump(lane, out);
    *out = (struct rail_event){
        .kind = RAIL_EVENT_DONE,
        .error = c->error,
        .status = c->status,
        .vendor_error = c->vendor_error,
        .lane = lane,
        .record = record,
    };
    return true;
}

/* A message arrived, or a receive was flushed. True where out holds an event. */
static bool rail_poll_recv(struct rail_lane *lane, const struct verbs_completion *c, struct rail_event *out)
{
    uint32_t buffer = (uint32_t)c->id;
    struct rail_mail_msg msg = {0};
    if (buffer >= RAIL_MAIL_DEPTH)
        return rail_distrust(lane->queue, c);
    if (c->error == -ECANCELED)
        return false; /* the lane is being stopped; its requests tell */
    if (c->error)
        return rail_broken(lane, c->error, c->status, out);
    int error = rail_mail_receive(&lane->mail, rail_mail_recv_buffer(lane, buffer), c->len, &msg);
    if (error == -EPROTO)
        return rail_broken(lane, error, "malformed mailbox message", out);
    int rc = lane->state == RAIL_LANE_UP ? rail_lane_post_mail_recv(lane, buffer) : 0;
    if (rc)
        return rail_broken(lane, rc, "receive not taken", out);
    if (rail_pump(lane, out))
        return true;
    *out = (struct rail_event){.kind = RAIL_EVENT_MAIL, .error = error, .lane = lane, .mail = msg};
    return true;
}

/* Whether and how a request has ended will never be known: its lane stops, and each record comes back with the error. */
static unsigned rail_give_up(struct rail_queue *queue, struct rail_event out[RAIL_POLL_MAX])
{
    static const char status[] = "its completion queue was given up";
    unsigned count = 0;
    for (; queue->given_up < queue->lane_count; queue->given_up++) {
        struct rail_lane *lane = queue->lanes[queue->given_up];
        if (lane->state != RAIL_LANE_DEAD) {
            if (count == RAIL_POLL_MAX)
                return count;
            rail_lane_stop(lane);
            rail_broken(lane, queue->broken, status, &out[count++]);
        }
        while (lane->tail != lane->head) {
            if (count == RAIL_POLL_MAX)
                return count;
            out[count++] = (struct rail_event){.kind = RAIL_EVENT_DONE,
                                               .error = queue->broken,
                                               .status = status,
                                               .lane = lane,
                                               .record = rail_retire(lane)};
        }
    }
    return count;
}

unsigned rail_poll(struct rail_queue *queue, struct rail_event out[RAIL_POLL_MAX])
{
    struct verbs_completion completions[RAIL_POLL_MAX];
    if (queue->broken)
        return rail_give_up(queue, out);
    int n = verbs_poll(queue->cq, completions, RAIL_POLL_MAX);
    if (n < 0) {
        log_write(queue->rail->log, LOG_LEVEL_ERROR,
                  "port %s: its completions cannot be polled: %s; all lanes of the queue are given up",
                  queue->rail->name, strerror(-n));
        queue->broken = n;
        return rail_give_up(queue, out);
    }
    unsigned count = 0;
    for (int i = 0; i < n && !queue->broken; i++) {
        const struct verbs_completion *c = &completions[i];
        uint32_t place = (uint32_t)((c->id & ~RAIL_ID_RECV) >> RAIL_ID_PLACE);
        bool event;
        if (place >= queue->lane_count)
            event = rail_distrust(queue, c);
        else if (c->id & RAIL_ID_RECV)
            event = rail_poll_recv(queue->lanes[place], c, &out[count]);
        else
            event = rail_poll_send(queue->lanes[place], c, &out[count]);
        count += event;
    }
    queue->taken += (unsigned)n;
    return count;
}
