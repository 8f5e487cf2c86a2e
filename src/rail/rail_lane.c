/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_lane.c - PATH 3: takes a slot, writes the record, posts the request; sends the mailbox's messages.
 * May not decide which lane or when. Called by src/api (api_put.c, api_order.c); next: src/verbs/verbs_io.c
 */
#include "rail_priv.h"

#include <errno.h>

uint32_t rail_psn_count(enum rail_kind kind, uint32_t len, uint32_t mtu)
{
    if (kind == RAIL_KIND_FETCH_ADD || len == 0)
        return 1;
    return ((len - 1) >> __builtin_ctz(mtu)) + 1; /* an MTU is a power of two; a division here would be felt */
}

bool rail_lane_room(const struct rail_lane *lane, enum rail_class klass, enum rail_kind kind, uint32_t len)
{
    if (lane->state != RAIL_LANE_UP || lane->head - lane->tail >= lane->limit[klass])
        return false;
    return lane->psns + rail_psn_count(kind, len, lane->mtu) < RAIL_PSN_WINDOW;
}

static enum verbs_op rail_verbs_op(enum rail_kind kind)
{
    static const enum verbs_op ops[] = {
        [RAIL_KIND_WRITE] = VERBS_OP_WRITE,
        [RAIL_KIND_READ] = VERBS_OP_READ,
        [RAIL_KIND_FETCH_ADD] = VERBS_OP_FETCH_ADD,
        [RAIL_KIND_MAIL] = VERBS_OP_SEND,
    };
    return ops[kind];
}

/* Posts and records. The record is written before the post, since a completion may be there as soon as it returns. */
static int rail_lane_submit(struct rail_lane *lane, const struct rail_request *r)
{
    struct rail_record *record = &lane->ring[lane->head & lane->mask];
    struct verbs_send send = {
        .id = (uint64_t)lane->place << RAIL_ID_PLACE | lane->head,
        .op = rail_verbs_op(r->kind),
        .len = r->len,
        .local_addr = r->local_addr,
        .lkey = r->lkey,
        .remote_addr = r->remote_addr,
        .rkey = r->rkey,
        .operand = r->operand,
    };
    if (r->kind == RAIL_KIND_FETCH_ADD) {
        send.local_addr = (uintptr_t)lane->queue->memory;
        send.lkey = verbs_mr_lkey(lane->queue->mr);
    }
    *record = (struct rail_record){
        .cookie = r->cookie,
        .remote_addr = r->remote_addr,
        .local_addr = send.local_addr,
        .len = r->len,
        .first_psn = lane->next_psn,
        .psns = rail_psn_count(r->kind, r->len, lane->mtu),
        .epoch = r->epoch,
        .mtu = (uint16_t)lane->mtu,
        .kind = (uint8_t)r->kind,
        .klass = (uint8_t)r->klass,
    };
    lane->next_psn = (lane->next_psn + record->psns) & RAIL_PSN_MASK;
    lane->backlog += r->len;
    lane->psns += record->psns;
    lane->head++;
    int rc = verbs_post_send(lane->qp, &send);
    if (!rc)
        return 0;
    lane->head--;
    lane->backlog -= r->len;
    lane->psns -= record->psns;
    lane->next_psn = record->first_psn;
    rail_lane_stop(lane);
    /* The caller's -EAGAIN means "room comes by itself", which is not so here. */
    return rc == -EAGAIN ? -EIO : rc;
}

int rail_lane_post(struct rail_lane *lane, const struct rail_request *request)
{
    if (lane->state != RAIL_LANE_UP)
        return -ENOTCONN;
    if (!rail_lane_room(lane, request->klass, request->kind, request->len))
        return -EAGAIN;
    return rail_lane_submit(lane, request);
}

int rail_lane_post_mail_recv(struct rail_lane *lane, uint32_t i)
{
    struct verbs_recv recv = {
        .id = RAIL_ID_RECV | (uint64_t)lane->place << RAIL_ID_PLACE | i,
        .local_addr = (uintptr_t)rail_mail_recv_buffer(lane, i),
        .len = RAIL_MAIL_BYTES,
        .lkey = verbs_mr_lkey(lane->queue->mr),
    };
    return verbs_post_recv(lane->qp, &recv);
}

int rail_lane_pump_mail(struct rail_lane *lane)
{
    struct rail_mail_msg msg;
    int sent = 0;
    if (lane->state != RAIL_LANE_UP)
        return -ENOTCONN;
    while (lane->mail_busy < RAIL_MAIL_SLOTS &&
           rail_lane_room(lane, RAIL_CLASS_MAIL, RAIL_KIND_MAIL, RAIL_MAIL_BYTES) &&
           rail_mail_next(&lane->mail, &msg)) {
        /* At most RAIL_MAIL_SLOTS are out and they end in order, so the next buffer is free. */
        uint8_t *buffer = rail_mail_send_buffer(lane, lane->mail_next);
        struct rail_request request = {
            .kind = RAIL_KIND_MAIL,
            .klass = RAIL_CLASS_MAIL,
            .len = RAIL_MAIL_BYTES,
            .local_addr = (uintptr_t)buffer,
            .lkey = verbs_mr_lkey(lane->queue->mr),
        };
        rail_mail_format(&msg, buffer);
        lane->mail_next = (lane->mail_next + 1) % RAIL_MAIL_SLOTS;
        lane->mail_busy++;
        int rc = rail_lane_submit(lane, &request);
        if (rc)
            return rc;
        sent++;
    }
    return sent;
}
