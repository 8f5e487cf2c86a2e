/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ring.h - a queue of records in shared memory, from one process to one other. Whoever writes publishes a record as a
 * whole, so that a writer that is killed leaves nothing half-written behind.
 */
#ifndef EMU_RING_H
#define EMU_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMU_RING_BYTES = 256 * 1024 - 128 };

struct emu_ring {
    uint64_t head; /* bytes ever read */
    char pad1[56];
    uint64_t tail; /* bytes ever written */
    char pad2[56];
    unsigned char bytes[EMU_RING_BYTES];
};

/** Writes a record of two parts. False: no room now. */
bool emu_ring_put(struct emu_ring *r, const void *head, uint32_t head_len, const void *body, uint32_t body_len);
/** The oldest record, aligned to 8 bytes, and its length; NULL: there is none, or the ring holds nonsense. */
const void *emu_ring_peek(struct emu_ring *r, uint32_t *len);
/** Drops the record that peek gave. */
void emu_ring_pop(struct emu_ring *r, uint32_t len);
/** Drops everything. For the reader only. */
void emu_ring_clear(struct emu_ring *r);

#endif
