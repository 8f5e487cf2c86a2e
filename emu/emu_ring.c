/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ring.c - records from process to process: a length, then the bytes, then room up to the next multiple of 8. A length of
 * 0 says that the rest of the ring up to its end is empty. Knows nothing of packets. Called by emu_carry.c.
 */
#include "emu_ring.h"

#include <string.h>

enum { EMU_RING_HEAD = 8 };

static uint64_t emu_ring_room(uint32_t len)
{
    return (EMU_RING_HEAD + (uint64_t)len + 7) & ~7ull;
}

static void emu_ring_length(struct emu_ring *r, uint64_t at, uint32_t len)
{
    memcpy(r->bytes + at, &len, sizeof(len));
}

bool emu_ring_put(struct emu_ring *r, const void *head, uint32_t head_len, const void *body, uint32_t body_len)
{
    uint64_t tail = __atomic_load_n(&r->tail, __ATOMIC_RELAXED), at = tail % EMU_RING_BYTES;
    uint64_t used = tail - __atomic_load_n(&r->head, __ATOMIC_ACQUIRE), need = emu_ring_room(head_len + body_len);
    uint64_t skip = EMU_RING_BYTES - at < need ? EMU_RING_BYTES - at : 0;

    if (used > EMU_RING_BYTES || EMU_RING_BYTES - used < need + skip)
        return false;
    if (skip) {
        emu_ring_length(r, at, 0);
        at = 0;
    }
    emu_ring_length(r, at, head_len + body_len);
    memcpy(r->bytes + at + EMU_RING_HEAD, head, head_len);
    if (body_len)
        memcpy(r->bytes + at + EMU_RING_HEAD + head_len, body, body_len);
    __atomic_store_n(&r->tail, tail + skip + need, __ATOMIC_RELEASE);
    return true;
}

const void *emu_ring_peek(struct emu_ring *r, uint32_t *len)
{
    uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED), at = head % EMU_RING_BYTES;
    uint64_t used = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) - head;
    uint32_t n = 0;

    if (used && used <= EMU_RING_BYTES)
        memcpy(&n, r->bytes + at, sizeof(n));
    if (used && n == 0 && used > EMU_RING_BYTES - at) { /* the record is at the start of the ring */
        used -= EMU_RING_BYTES - at;
        __atomic_store_n(&r->head, head + EMU_RING_BYTES - at, __ATOMIC_RELEASE);
        at = 0;
        memcpy(&n, r->bytes, sizeof(n));
    }
    if (n == 0 || emu_ring_room(n) > used || emu_ring_room(n) > EMU_RING_BYTES - at)
        return NULL;
    *len = n;
    return r->bytes + at + EMU_RING_HEAD;
}

void emu_ring_pop(struct emu_ring *r, uint32_t len)
{
    uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);

    __atomic_store_n(&r->head, head + emu_ring_room(len), __ATOMIC_RELEASE);
}

void emu_ring_clear(struct emu_ring *r)
{
    __atomic_store_n(&r->head, __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}
