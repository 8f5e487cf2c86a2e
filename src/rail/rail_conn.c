/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_conn.c - the life of a lane's QP: made, INIT, RTR, RTS, ERR, destroyed.
 * May not know who the peer is: it is given an address. Called by src/api/api_peer.c; next: rail_lane.c
 */
#include "rail_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Slots that bulk leaves to word ops. */
static uint32_t rail_word_slots(uint32_t depth)
{
    return min_u32(depth / 4, 16);
}

struct verbs_path rail_local_path(const struct rail *rail)
{
    const struct rail_config *c = &rail->config;
    return (struct verbs_path){
        .port = rail->port,
        .pkey_index = c->pkey_index,
        .gid_index = rail->gid_index,
        /* Ethernet has no other way; InfiniBand ports of one subnet reach each other by LID alone. */
        .global = rail->address.link == VERBS_LINK_ETHERNET || rail->address.lid == 0 || c->grh,
        .sl = c->sl,
        .traffic_class = c->traffic_class,
        .timeout = c->timeout,
        .retry = c->retry,
        .rnr_retry = c->rnr_retry,
        .min_rnr_timer = c->min_rnr_timer,
        .responder_rd_atomic = rail->address.rd_atomic,
    };
}

/* Zeroed memory of whole cache lines, or NULL. */
static void *rail_lines(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, 64, bytes))
        return NULL;
    memset(memory, 0, bytes);
    return memory;
}

static int rail_lane_make(struct rail_lane *lane)
{
    const struct rail *rail = lane->queue->rail;
    struct verbs_qp_size size = {.send_wr = lane->depth, .recv_wr = RAIL_MAIL_DEPTH};
    struct verbs_path path = rail_local_path(rail);
    lane->ring = rail_lines(((size_t)lane->mask + 1) * sizeof(*lane->ring));
    lane->list = rail_lines(RAIL_LIST_MAX * sizeof(*lane->list));
    if (!lane->ring || !lane->list)
        return -ENOMEM;
    verbs_list_init(lane->list, RAIL_LIST_MAX);
    int rc = verbs_qp_create(rail->dev, lane->queue->cq, &size, &lane->qp);
    if (!rc)
        rc = verbs_qp_to_init(lane->qp, &path);
    /* Before RTR, so that the peer's first message finds a receive. */
    for (uint32_t i = 0; i < RAIL_MAIL_DEPTH && !rc; i++)
        rc = rail_lane_post_mail_recv(lane, i);
    return rc;
}

int rail_lane_open(struct rail_queue *queue, uint32_t start_psn, struct rail_lane **out)
{
    uint32_t depth = queue->rail->config.sq_depth;
    if (queue->lane_count == queue->lane_max)
        return -ENOSPC;
    struct rail_lane *lane = calloc(1, sizeof(*lane));
    if (!lane) {
        log_write(queue->rail->log, LOG_LEVEL_ERROR, "port %s: no memory for a lane", queue->rail->name);
        return -ENOMEM;
    }
    *lane = (struct rail_lane){
        .queue = queue,
        .place = queue->lane_count,
        .id = (uint64_t)queue->lane_count << RAIL_ID_PLACE,
        .start_psn = start_psn & RAIL_PSN_MASK,
        .next_psn = start_psn & RAIL_PSN_MASK,
        .depth = depth,
        .mask = queue->ring - 1,
        .list_max = RAIL_LIST_MAX,
        .lkey = verbs_mr_lkey(queue->mr),
        .limit = {[RAIL_CLASS_BULK] = depth - RAIL_MAIL_SLOTS - rail_word_slots(depth),
                  [RAIL_CLASS_WORD] = depth - RAIL_MAIL_SLOTS,
                  [RAIL_CLASS_MAIL] = depth},
    };
    lane->cells = (uint64_t *)(void *)(rail_mail_recv_buffer(lane, 0) + RAIL_LANE_MAIL_BYTES);
    queue->lanes[queue->lane_count++] = lane;
    int rc = rail_lane_make(lane);
    if (rc) {
        log_write(queue->rail->log, LOG_LEVEL_ERROR, "port %s: cannot make lane %u: %s%s", queue->rail->name,
                  lane->place, strerror(-rc), rail_hint(rc));
        rail_lane_free(lane);
        return rc;
    }
    *out = lane;
    return 0;
}

void rail_lane_free(struct rail_lane *lane)
{
    if (!lane)
        return;
    struct rail_queue *queue = lane->queue;
    /* Lanes leave in the reverse order of their coming, so that places stay dense. */
    if (queue->lane_count > 0 && queue->lanes[queue->lane_count - 1] == lane)
        queue->lane_count--;
    verbs_qp_destroy(lane->qp);
    free(lane->ring);
    free(lane->list);
    free(lane);
}

struct rail_wire_end rail_lane_end(const struct rail_lane *lane)
{
    return (struct rail_wire_end){.qpn = verbs_qp_number(lane->qp), .psn = lane->start_psn};
}

int rail_lane_connect(struct rail_lane *lane, const struct rail_wire_rail *remote, struct rail_wire_end end,
                      uint32_t mtu)
{
    struct verbs_path path = rail_local_path(lane->queue->rail);
    memcpy(path.remote_gid, remote->gid, sizeof(path.remote_gid));
    path.remote_lid = remote->lid;
    path.remote_qpn = end.qpn;
    path.remote_psn = end.psn;
    path.local_psn = lane->start_psn;
    path.mtu = mtu;
    path.flow_label = lane->way.flow_label;
    /* No more READs and atomics in flight than the other end can answer (max_rd_atomic in ibv_modify_qp(3)). */
    path.requester_rd_atomic = (uint8_t)min_u32(lane->queue->rail->limits.rd_atomic, remote->rd_atomic);
    int rc = verbs_qp_to_rtr(lane->qp, &path);
    if (!rc)
        rc = verbs_qp_to_rts(lane->qp, &path);
    if (rc)
        return rc;
    rail_lag_take(lane, &lane->way);
    lane->mtu = mtu;
    /* Each request has at most one PSN more than its bytes fill. */
    lane->bytes_max = (uint64_t)mtu * (RAIL_PSN_WINDOW - lane->depth - 1);
    lane->rd_atomic = path.requester_rd_atomic;
    lane->flush_addr = remote->flush_addr;
    lane->flush_rkey = remote->flush_rkey;
    lane->gpu_flush_addr = remote->gpu_flush_addr;
    lane->gpu_flush_rkey = remote->gpu_flush_rkey;
    lane->state = RAIL_LANE_UP;
    return 0;
}

void rail_lane_stop(struct rail_lane *lane)
{
    if (lane->state == RAIL_LANE_DEAD)
        return;
    lane->state = RAIL_LANE_DEAD;
    lane->list_max = 0;
    lane->queue->refused += lane->head - lane->posted;
    if (!lane->refusal)
        lane->refusal = -ECANCELED;
    int rc = verbs_qp_to_err(lane->qp);
    if (rc)
        log_write(lane->queue->rail->log, LOG_LEVEL_WARN, "port %s QP 0x%x: cannot be stopped: %s",
                  lane->queue->rail->name, verbs_qp_number(lane->qp), strerror(-rc));
}
