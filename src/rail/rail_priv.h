/* SPDX-License-Identifier: Apache-2.0 */
/* rail_priv.h - what the files of src/rail share: request ids and the layout of a queue's memory. */
#ifndef RAIL_PRIV_H
#define RAIL_PRIV_H

#include "rail.h"

/* Apart from the hot path, whose functions would carry its registers. */
#define RAIL_APART __attribute__((noinline))

/* A request's id: bit 63 says receive, bit 62 marker; then the lane's place; then the record's number, or the receive
 * buffer's. A marker carries the number of the record that it was posted behind. */
#define RAIL_ID_RECV   (UINT64_C(1) << 63)
#define RAIL_ID_MARKER (UINT64_C(1) << 62)
#define RAIL_ID_PLACE  32

/* A queue's memory, for each lane: its receive and send buffers, then its cells. */
#define RAIL_LANE_MAIL_BYTES ((RAIL_MAIL_DEPTH + RAIL_MAIL_SLOTS) * RAIL_MAIL_BYTES)

/** The i-th receive buffer of a lane. */
static inline uint8_t *rail_mail_recv_buffer(const struct rail_lane *lane, uint32_t i)
{
    return lane->queue->memory + (size_t)lane->place * lane->queue->lane_bytes + (size_t)i * RAIL_MAIL_BYTES;
}

/** The i-th send buffer of a lane. */
static inline uint8_t *rail_mail_send_buffer(const struct rail_lane *lane, uint32_t i)
{
    return rail_mail_recv_buffer(lane, RAIL_MAIL_DEPTH + i);
}

/** Whether requests of a kind count against max_rd_atomic. */
static inline bool rail_kind_reads(enum rail_kind kind)
{
    return kind != RAIL_KIND_WRITE && kind != RAIL_KIND_MAIL;
}

/** Posts the i-th receive buffer. 0 or a negative errno. */
int rail_lane_post_mail_recv(struct rail_lane *lane, uint32_t i);

/** This end of a lane's path, as the options say. */
struct verbs_path rail_local_path(const struct rail *rail);

/** Whether QPs of the rail, a bond, can choose each of its wires: tried on one that is connected to itself. */
bool rail_lag_choice(const struct rail *rail);

/** Sends a connected lane its way. What the device refuses is logged and done without. */
void rail_lag_take(struct rail_lane *lane, const struct rail_way *way);

/** Frees a lane, half-built or NULL; its queue forgets it. */
void rail_lane_free(struct rail_lane *lane);

#endif
