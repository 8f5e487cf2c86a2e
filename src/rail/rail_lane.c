/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_lane.c - PATH 3: takes a slot, writes the record, builds the request; posts what is built as one list.
 * May not decide which lane or when. Called by src/api (api_put.c, api_order.c); next: src/verbs/verbs_io.c
 */
#include "rail_priv.h"

#include <errno.h>
#include <string.h>

/* Of max_rd_atomic, what gets leave: a flush and an atomic never wait for a get. */
#define RAIL_RD_ATOMIC_KEPT 2u

/* Whether a field lies in a request where it lies in a record, so that both are copied as one block. */
#define RAIL_SAME(field) (offsetof(struct rail_request, field) == offsetof(struct rail_record, field))
_Static_assert(RAIL_SAME(cookie) && RAIL_SAME(local_addr) && RAIL_SAME(len) && RAIL_SAME(lkey), "copied as a block");
_Static_assert(RAIL_SAME(remote_addr) && RAIL_SAME(rkey) && RAIL_SAME(epoch), "copied as a block");
_Static_assert(RAIL_SAME(kind) && RAIL_SAME(klass) && RAIL_SAME(immediate), "copied as a block");
#define RAIL_SAME_BYTES offsetof(struct rail_record, first_psn)
_Static_assert(sizeof(struct rail_record) == 64 && RAIL_SAME_BYTES == 44, "one cache line, a block of a round size");

/* The same of two blocks of a request as verbs has it. */
#define RAIL_SAME_SEND(from, field)                                                                                    \
    (offsetof(struct verbs_send, field) - offsetof(struct verbs_send, from) ==                                         \
     offsetof(struct rail_request, field) - offsetof(struct rail_request, from))
_Static_assert(RAIL_SAME_SEND(local_addr, len) && RAIL_SAME_SEND(local_addr, lkey), "copied as a block");
_Static_assert(RAIL_SAME_SEND(remote_addr, rkey), "copied as a block, what lies behind being of no account");

uint32_t rail_psn_count(uint32_t len, uint32_t mtu)
{
    return rail_psns(max_u32(len, 1), mtu);
}

/* Where max_rd_atomic is so small that nothing can be kept, gets still go, one at a time. */
static bool rail_read_room(const struct rail_lane *lane, enum rail_kind kind)
{
    if (kind != RAIL_KIND_READ)
        return lane->reads < lane->rd_atomic;
    return lane->reads == 0 || lane->reads + RAIL_RD_ATOMIC_KEPT < lane->rd_atomic;
}

bool rail_lane_room(const struct rail_lane *lane, enum rail_class klass, enum rail_kind kind, uint32_t len)
{
    uint32_t slots = kind == RAIL_KIND_AHEAD ? 2 : 1;
    if (lane->state != RAIL_LANE_UP || lane->head - lane->tail + slots > lane->limit[klass])
        return false;
    if (rail_kind_reads(kind) && !rail_read_room(lane, kind))
        return false;
    return lane->backlog + lane->get_bytes + len < lane->bytes_max;
}

/* A request whose local end is the slot's cell. */
static void rail_build_cell(struct rail_lane *lane, const struct rail_request *r, struct rail_record *record,
                            struct verbs_send *send)
{
    uint64_t *cell = &lane->cells[record - lane->ring];
    record->local_addr = send->local_addr = (uintptr_t)cell;
    record->lkey = send->lkey = lane->lkey;
    if (r->kind == RAIL_KIND_WRITE) {
        *cell = r->operand;
        return;
    }
    record->len = send->len = sizeof(*cell);
    if (r->kind == RAIL_KIND_FLUSH || r->kind == RAIL_KIND_AHEAD) {
        bool gpu = r->gpu && lane->gpu_flush_addr;
        record->remote_addr = send->remote_addr = gpu ? lane->gpu_flush_addr : lane->flush_addr;
        record->rkey = send->rkey = gpu ? lane->gpu_flush_rkey : lane->flush_rkey;
        return;
    }
    send->operand = r->operand; /* where others have their rkey */
    send->swap = r->swap;
    send->atomic_rkey = r->rkey;
}

/* What is special about a request that is no plain WRITE. */
static void rail_build_other(struct rail_lane *lane, const struct rail_request *r, struct rail_record *record,
                             struct verbs_send *send)
{
    static const uint8_t ops[] = {
        [RAIL_KIND_WRITE] = VERBS_OP_WRITE,         [RAIL_KIND_READ] = VERBS_OP_READ,
        [RAIL_KIND_FLUSH] = VERBS_OP_READ,          [RAIL_KIND_AHEAD] = VERBS_OP_READ,
        [RAIL_KIND_FETCH_ADD] = VERBS_OP_FETCH_ADD, [RAIL_KIND_COMPARE_SWAP] = VERBS_OP_COMPARE_SWAP,
        [RAIL_KIND_MAIL] = VERBS_OP_SEND,
    };
    send->op = ops[r->kind];
    if (r->kind != RAIL_KIND_READ && r->kind != RAIL_KIND_MAIL)
        rail_build_cell(lane, r, record, send);
    lane->reads += rail_kind_reads(r->kind);
    *(r->kind == RAIL_KIND_READ ? &lane->get_bytes : &lane->backlog) += record->len;
}

/* A list is full. On a lane that is no more the request goes on the books as refused, so that its end comes as every
 * other's. */
static void rail_list_full(struct rail_lane *lane)
{
    if (lane->state == RAIL_LANE_UP) {
        rail_lane_ring(lane);
        return;
    }
    lane->queue->refused++;
    lane->queue->given_up = min_u32(lane->queue->given_up, lane->place);
}

/* Of a list, WRITEs need no completions of their own but once in RAIL_SILENT_BYTES; rail_lane_ring() sees to the last. */
static void rail_silence(struct rail_lane *lane, struct rail_record *record, struct verbs_send *send)
{
    uint32_t silent = lane->silent + record->len;
    record->unsignalled = record->kind == RAIL_KIND_WRITE && silent < RAIL_SILENT_BYTES;
    record->run = (uint8_t)lane->run;
    send->signal = record->unsignalled ? VERBS_UNSIGNALLED : VERBS_SIGNALLED;
    lane->silent = record->unsignalled ? silent : 0;
    lane->run = record->unsignalled ? lane->run + 1 : 0;
}

/* Fills the record of the next number, and its request in the list, as if it were a plain WRITE; then what differs. */
void rail_lane_queue(struct rail_lane *lane, const struct rail_request *request)
{
    struct rail_record *record = &lane->ring[lane->head & lane->mask];
    struct verbs_send *send = &lane->list[(lane->head - lane->posted) % RAIL_LIST_MAX];
    memcpy(record, request, RAIL_SAME_BYTES);
    record->first_psn = lane->next_psn;
    record->mtu = lane->mtu;
    send->id = lane->id | lane->head;
    memcpy(&send->local_addr, &request->local_addr, 16);
    memcpy(&send->remote_addr, &request->remote_addr, 16);
    send->op = VERBS_OP_WRITE;
    if (request->kind != RAIL_KIND_WRITE || request->immediate)
        rail_build_other(lane, request, record, send);
    else
        lane->backlog += request->len;
    rail_silence(lane, record, send);
    lane->next_psn = (lane->next_psn + rail_psn_count(record->len, lane->mtu)) & RAIL_PSN_MASK;
    lane->head++;
    if (lane->head - lane->posted >= lane->list_max)
        rail_list_full(lane);
}

void rail_write_end(const struct rail_writer *w)
{
    struct rail_lane *lane = w->lane;
    lane->head = w->head;
    lane->next_psn = w->psn;
    lane->run = w->run;
    lane->silent = (uint32_t)(w->bytes - w->told);
    lane->backlog += w->bytes;
    if (lane->head - lane->posted >= lane->list_max)
        rail_lane_ring(lane);
}

/*
 * Part of a list was refused, and what was posted of it may end in unsignalled requests: if these have been executed
 * before the QP went to ERR, no completion will ever tell. A marker behind them is flushed after them (IBA spec vol. 1,
 * 10.3.1: requests posted in ERR complete as flushed, in order). Where not even that can be posted they count as refused.
 */
static void rail_mark(struct rail_lane *lane)
{
    uint32_t last = lane->posted - 1;
    const struct rail_record *record = &lane->ring[last & lane->mask];
    unsigned taken;
    if (lane->posted == lane->tail || !record->unsignalled)
        return;
    struct verbs_send marker;
    verbs_list_init(&marker, 1);
    marker.id = RAIL_ID_MARKER | lane->id | last;
    marker.op = VERBS_OP_WRITE;
    marker.signal = VERBS_SIGNALLED;
    marker.local_addr = (uintptr_t)lane->cells;
    marker.lkey = lane->lkey;
    marker.len = 0;
    marker.remote_addr = lane->flush_addr;
    marker.rkey = lane->flush_rkey;
    if (verbs_post_list(lane->qp, &marker, 1, &taken)) {
        uint32_t unknown = record->run + 1u;
        lane->posted -= unknown;
        lane->queue->refused += unknown;
    }
}

RAIL_APART static void rail_refused(struct rail_lane *lane, unsigned taken, int error)
{
    uint32_t count = lane->head - lane->posted;
    log_write(lane->queue->rail->log, LOG_LEVEL_ERROR, "port %s QP 0x%x: %u of %u requests refused: %s",
              lane->queue->rail->name, verbs_qp_number(lane->qp), count - taken, count, strerror(-error));
    lane->posted += taken;
    /* -EAGAIN would mean "room comes by itself", which is not so here. */
    lane->refusal = error == -EAGAIN ? -EIO : error;
    rail_lane_stop(lane);
    rail_mark(lane);
}

void rail_lane_ring(struct rail_lane *lane)
{
    unsigned count = lane->head - lane->posted, taken = 0;
    if (count == 0 || lane->state != RAIL_LANE_UP)
        return;
    if (lane->run > 0) { /* the last of a list tells of all */
        lane->list[count - 1].signal = VERBS_SIGNALLED;
        lane->ring[(lane->head - 1) & lane->mask].unsignalled = false;
    }
    lane->silent = lane->run = 0;
    int rc = verbs_post_list(lane->qp, lane->list, count, &taken);
    if (rc)
        rail_refused(lane, taken, rc);
    else
        lane->posted = lane->head;
}

int rail_lane_post_mail_recv(struct rail_lane *lane, uint32_t i)
{
    struct verbs_recv recv = {
        .id = RAIL_ID_RECV | lane->id | i,
        .local_addr = (uintptr_t)rail_mail_recv_buffer(lane, i),
        .len = RAIL_MAIL_BYTES,
        .lkey = lane->lkey,
    };
    return verbs_post_recv(lane->qp, &recv);
}

static bool rail_mail_room(const struct rail_lane *lane)
{
    return lane->mail_busy < RAIL_MAIL_SLOTS && rail_lane_room(lane, RAIL_CLASS_MAIL, RAIL_KIND_MAIL, RAIL_MAIL_BYTES);
}

/* At most RAIL_MAIL_SLOTS are out and they end in order, so the next buffer is free. */
static void rail_mail_queue(struct rail_lane *lane, const struct rail_mail_msg *msg)
{
    uint8_t *buffer = rail_mail_send_buffer(lane, lane->mail_next);
    struct rail_request request = {
        .kind = RAIL_KIND_MAIL,
        .klass = RAIL_CLASS_MAIL,
        .len = RAIL_MAIL_BYTES,
        .local_addr = (uintptr_t)buffer,
        .lkey = lane->lkey,
    };
    rail_mail_format(msg, buffer);
    lane->mail_next = (lane->mail_next + 1) % RAIL_MAIL_SLOTS;
    lane->mail_busy++;
    rail_lane_queue(lane, &request);
}

unsigned rail_lane_pump_mail(struct rail_lane *lane)
{
    struct rail_mail_msg msg;
    unsigned sent = 0;
    for (; rail_mail_room(lane) && rail_mail_next(&lane->mail, &msg); sent++)
        rail_mail_queue(lane, &msg);
    if (sent > 0)
        rail_lane_ring(lane);
    return sent;
}

int rail_lane_send_mail(struct rail_lane *lane, const struct rail_mail_msg *msg)
{
    struct rail_mail_msg sent = *msg;
    if (lane->state != RAIL_LANE_UP)
        return -ENOTCONN;
    rail_lane_pump_mail(
        lane); /* answers, refusals and credits first: a caller that sends all the time must not hold them up */
    if (!rail_mail_room(lane))
        return -EAGAIN;
    int rc = rail_mail_send(&lane->mail, &sent);
    if (rc)
        return rc;
    rail_mail_queue(lane, &sent);
    rail_lane_ring(lane);
    return 0;
}
