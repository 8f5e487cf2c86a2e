/* SPDX-License-Identifier: Apache-2.0 */
/* rail_priv.h - what the files of src/rail share: request ids and the layout of a queue's memory. */
#ifndef RAIL_PRIV_H
#define RAIL_PRIV_H

#include "rail.h"

/* A request's id: bit 63 says receive; then the lane's place; then the record's number, or the receive buffer's. */
#define RAIL_ID_RECV  (UINT64_C(1) << 63)
#define RAIL_ID_PLACE 32

/* A queue's memory: one scratch line for the old values of atomics, then for each lane its receive and send buffers. */
#define RAIL_SCRATCH_BYTES   64u
#define RAIL_LANE_MAIL_BYTES ((RAIL_MAIL_DEPTH + RAIL_MAIL_SLOTS) * RAIL_MAIL_BYTES)

/** The i-th receive buffer of a lane. */
static inline uint8_t *rail_mail_recv_buffer(const struct rail_lane *lane, uint32_t i)
{
    return lane->queue->memory + RAIL_SCRATCH_BYTES + (size_t)lane->place * RAIL_LANE_MAIL_BYTES + i * RAIL_MAIL_BYTES;
}

/** The i-th send buffer of a lane. */
static inline uint8_t *rail_mail_send_buffer(const struct rail_lane *lane, uint32_t i)
{
    return rail_mail_recv_buffer(lane, RAIL_MAIL_DEPTH + i);
}

/** Posts the i-th receive buffer. 0 or a negative errno. */
int rail_lane_post_mail_recv(struct rail_lane *lane, uint32_t i);

/** Frees a lane, half-built or NULL; its queue forgets it. */
void rail_lane_free(struct rail_lane *lane);

#endif
