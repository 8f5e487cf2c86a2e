/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_progress.c - PATH 5, the way back up: completions move counts, counts release deferred word ops, pieces end ops.
 * May not block. Called by the user and by every blocking loop; next: api_order.c, then api_put.c (api_op_piece_end)
 */
#include "api.h"

#include <errno.h>
#include <string.h>

/* Once in so many polls that found nothing the devices are asked for events: that is a system call. */
#define API_EVENT_POLLS 4096u

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
    if (peer->dead >> lane->index & 1)
        return;
    peer->dead |= (uint16_t)(1u << lane->index);
    ch->recheck = true;
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
    if (record->klass == RAIL_CLASS_WORD)
        api_stat_add(&stats->word_ops, 1);
    if (record->kind == RAIL_KIND_WRITE)
        api_stat_add(&stats->put_bytes, record->len);
    else if (record->kind == RAIL_KIND_READ)
        api_stat_add(&stats->get_bytes, record->len);
}

static void api_request_done(struct braid_channel *ch, const struct rail_event *event)
{
    struct rail_lane *lane = event->lane;
    struct api_peer *peer = lane->owner;
    const struct rail_record *record = &event->record;
    unsigned rail = peer->local_rail[lane->index];
    if (event->error) {
        api_stat_add(&ch->stats[rail].errors, 1);
        api_lane_dead(lane, event->error, event->status, event->vendor_error);
    } else {
        api_count_done(ch, rail, record);
        /* An acknowledged write counts as visible here; where a fabric does not promise that, a flush behind the write
         * will move this count instead of the acknowledgement. A failed one never moves it, nor does anything on its
         * lane from then on: what waits for it must fail. */
        if (record->kind == RAIL_KIND_WRITE && !(peer->dead >> lane->index & 1))
            peer->counts.visible[lane->index]++;
        ch->recheck = true;
    }
    if (record->kind != RAIL_KIND_MAIL)
        api_op_piece_end((struct api_op *)(uintptr_t)record->cookie, event->error);
}

static void api_mail_arrived(struct braid_channel *ch, const struct rail_event *event)
{
    struct api_peer *peer = event->lane->owner;
    if (event->mail.type == RAIL_MAIL_REJECT)
        log_write(&ch->braid->log, LOG_LEVEL_ERROR, "lane %u to PE %d: it refused our mailbox version %u, it speaks %u",
                  event->lane->index, peer->pe, RAIL_MAIL_VERSION, event->mail.spoken);
    else if (event->error)
        log_write(&ch->braid->log, LOG_LEVEL_ERROR,
                  "lane %u to PE %d: a message of mailbox version %u, expected %u: refused", event->lane->index,
                  peer->pe, event->mail.version, RAIL_MAIL_VERSION);
    else if (event->mail.type == RAIL_MAIL_ECHO_REPLY)
        peer->echo_reply = event->mail.nonce;
}

/* How much moved: a completion that gave no event counts too, since others may be waiting behind it. */
static unsigned api_poll_queue(struct braid_channel *ch, unsigned rail)
{
    struct rail_queue *queue = &ch->queue[rail];
    uint64_t before = queue->taken;
    unsigned n = rail_poll(queue, ch->events);
    for (unsigned i = 0; i < n; i++) {
        const struct rail_event *event = &ch->events[i];
        if (event->lane->index == API_NO_LANE)
            continue;
        switch (event->kind) {
        case RAIL_EVENT_DONE:
            api_request_done(ch, event);
            break;
        case RAIL_EVENT_MAIL:
            api_mail_arrived(ch, event);
            break;
        case RAIL_EVENT_BROKEN:
            api_lane_dead(event->lane, event->error, event->status, 0);
            break;
        }
    }
    return max_u32(n, (uint32_t)(queue->taken - before));
}

int braid_progress(struct braid_channel *ch)
{
    unsigned moved = 0;
    if (!ch)
        return -EINVAL;
    for (unsigned i = 0; i < ch->braid->rail_count; i++)
        moved += api_poll_queue(ch, i);
    if (ch->recheck) {
        ch->recheck = false;
        moved += api_order_drive_all(ch);
    }
    if (moved == 0 && ch->index == 0 && ++ch->idle_polls % API_EVENT_POLLS == 0)
        api_read_events(ch->braid);
    return (int)moved;
}

int api_turn(struct braid_channel *ch, uint64_t deadline_ns)
{
    if (braid_progress(ch) > 0)
        return 0;
    return clock_wait(&ch->braid->clock, deadline_ns);
}
