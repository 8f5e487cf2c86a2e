/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_message.c - target-executed atomics, the side that asks: sent as a message when their turn has come, ended by the
 * answer, asked again with the same id where none comes or the lane has died. The id makes it exactly once.
 * May not execute. Called by api_order.c and api_progress.c; next: src/rail/rail_mail.c, and at the target api_exec.c
 */
#include "api.h"

#include <errno.h>
#include <string.h>

static struct api_message *api_message_at(struct api_peer *peer, uint32_t id)
{
    return &peer->message[id % API_MESSAGES];
}

/* The first live lane from this one on, or lane_count. */
static unsigned api_message_lane(const struct api_peer *peer, unsigned from)
{
    for (unsigned i = 0; i < peer->lane_count; i++) {
        unsigned k = (from + i) % peer->lane_count;
        if (!(peer->order.dead >> k & 1))
            return k;
    }
    return peer->lane_count;
}

/* Read by threads of other channels: api_message_deadline(). */
static void api_message_asking(struct braid_channel *ch, int by)
{
    __atomic_store_n(&ch->asking, ch->asking + (uint32_t)by, __ATOMIC_RELAXED);
}

/* When the first answer is overdue: the clock is asked only while one is waited for. */
static void api_message_timer(struct braid_channel *ch, uint64_t now)
{
    uint64_t overdue = now + (uint64_t)ch->braid->options.reply_timeout * 1000;
    __atomic_store_n(&ch->ask_ns, ch->asking ? min_u64(ch->ask_ns, overdue) : overdue, __ATOMIC_RELAXED);
}

int api_message_send(struct api_peer *peer, const struct api_word *word)
{
    struct braid_channel *ch = peer->channel;
    const struct rail_request *r = &word->request;
    unsigned k = api_message_lane(peer, word->lane);
    if (k == peer->lane_count || peer->message_head - peer->message_tail == API_MESSAGES)
        return -EAGAIN; /* without a lane plan lets nothing go */
    struct api_message *m = api_message_at(peer, peer->message_head);
    *m = (struct api_message){
        .op = (struct api_op *)(uintptr_t)r->cookie,
        .mail = {.type = RAIL_MAIL_ATOMIC,
                 .atomic = {.addr = r->remote_addr,
                            .operand = r->operand,
                            .compare = r->swap,
                            .id = peer->message_head,
                            .rkey = r->rkey,
                            .op = word->atomic,
                            .bytes = (uint8_t)r->len}},
        .asked_ns = clock_now(&ch->braid->clock),
        .lane = (uint8_t)k,
    };
    if (rail_lane_send_mail(peer->lane[k], &m->mail)) {
        peer->message_held = ch->message_held = true;
        return -EAGAIN;
    }
    api_message_timer(ch, m->asked_ns);
    peer->message_head++;
    api_message_asking(ch, 1);
    ch->count.messages++;
    return 0;
}

/* Ends one, and moves the counts over all that have ended in a row. */
static void api_message_end(struct api_peer *peer, struct api_message *m, int error)
{
    struct api_op *op = m->op;
    struct plan_counts *c = &peer->counts;
    m->op = NULL;
    api_message_asking(peer->channel, -1);
    /* As with a lost write no count moves from here on: a word op behind it would announce what never was. */
    if (error)
        peer->order.message_lost = true;
    while (peer->message_tail != peer->message_head && !api_message_at(peer, peer->message_tail)->op) {
        peer->message_tail++;
        c->acked[PLAN_MESSAGE] += !peer->order.message_lost;
        c->flushed[PLAN_MESSAGE] += !peer->order.message_lost;
    }
    api_op_piece_end(op, error);
    api_wake(peer);
}

void api_message_answer(struct api_peer *peer, const struct rail_mail_msg *mail)
{
    const struct rail_mail_reply *reply = &mail->reply;
    struct api_message *m = api_message_at(peer, reply->id);
    /* The answer to one that was asked twice may come twice. */
    if (reply->id - peer->message_tail >= peer->message_head - peer->message_tail || !m->op)
        return;
    if (reply->status)
        api_log_limited(peer->channel, API_LOG_MESSAGE, "PE %d refused an atomic on 0x%llx: %s", peer->pe,
                        (unsigned long long)m->mail.atomic.addr, strerror(reply->status < 0 ? -reply->status : EPROTO));
    else if (m->op->old)
        *m->op->old = reply->old;
    api_message_end(peer, m, reply->status < 0 ? reply->status : reply->status ? -EPROTO : 0);
}

/* Asks for one again over the next lane, or gives it up where none is left. Whether something moved. */
static bool api_message_repeat(struct api_peer *peer, struct api_message *m, uint64_t now)
{
    unsigned k = api_message_lane(peer, m->lane + 1u);
    if (k == peer->lane_count) {
        api_message_end(peer, m, -ENOTCONN);
        return true;
    }
    m->lane = (uint8_t)k; /* without credit there: another one next time */
    if (rail_lane_send_mail(peer->lane[k], &m->mail)) {
        /* Credits that do not come back may be those of a lane whose other end is dead: that is found out by a READ. */
        return api_flush_probe(peer, k);
    }
    m->asked_ns = now;
    peer->channel->count.messages++;
    return true;
}

unsigned api_message_drive_all(struct braid_channel *ch)
{
    struct braid *b = ch->braid;
    uint64_t now = clock_now(&b->clock), patience = (uint64_t)b->options.reply_timeout * 1000;
    unsigned moved = 0;
    if (now < ch->ask_ns)
        return 0;
    uint64_t next = now + patience;
    for (int pe = 0; pe < b->n_pes; pe++) {
        struct api_peer *peer = &ch->peers[pe];
        for (uint32_t id = peer->message_tail; id != peer->message_head; id++) {
            struct api_message *m = api_message_at(peer, id);
            if (!m->op)
                continue;
            if (now - m->asked_ns >= patience || (peer->order.dead >> m->lane & 1))
                moved += api_message_repeat(peer, m, now);
            if (m->op)
                next = min_u64(next, max_u64(m->asked_ns + patience, now + patience / 8 + 1));
        }
    }
    __atomic_store_n(&ch->ask_ns, next, __ATOMIC_RELAXED);
    return moved;
}

void api_message_retry(struct braid_channel *ch)
{
    ch->message_held = false;
    for (int pe = 0; pe < ch->braid->n_pes; pe++) {
        struct api_peer *peer = &ch->peers[pe];
        if (peer->message_held)
            api_wake(peer);
        peer->message_held = false;
    }
}

uint64_t api_message_deadline(const struct braid *b)
{
    uint64_t first = UINT64_MAX;
    for (unsigned i = 0; i < b->channel_count; i++) {
        const struct braid_channel *ch = b->channel[i];
        if (__atomic_load_n(&ch->asking, __ATOMIC_RELAXED))
            first = min_u64(first, __atomic_load_n(&ch->ask_ns, __ATOMIC_RELAXED));
    }
    return first;
}
