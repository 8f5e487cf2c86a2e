/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_pattern.h - memory that holds no bytes but says of each where it came from: (tag, position), in runs. For
 * simulations whose payload would not fit memory. Position p of tag t has a byte that is computed (emu_pattern_bytes), so
 * such memory and ordinary memory can be copied into each other. Used by emu_sim.c (a program's side), emu_mr.c,
 * emu_post.c.
 */
#ifndef EMU_PATTERN_H
#define EMU_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tags with a meaning of their own. */
#define EMU_PATTERN_ZERO 0          /* nothing was written: bytes are 0 */
#define EMU_PATTERN_RAW  UINT64_MAX /* up to 8 bytes kept as they are, in pos, the first lowest */

/** len bytes of a tag, from position pos on. */
struct emu_run {
    uint64_t tag, pos;
    uint32_t len;
};

struct emu_pattern;
struct emu_payload;

/** Reserves len bytes of address space; reading or writing them by CPU faults. NULL and errno. */
void *emu_pattern_map(size_t len);
/** Gives it back, which must be the address that map() gave; what is still registered ends with its regions. */
void emu_pattern_unmap(void *addr);
/** The bytes become positions 0 to len-1 of the tag; tag 0: zeros. 0, -EINVAL (no such memory, or the tag of raw bytes),
 *  -ENOMEM. */
int emu_pattern_fill(void *addr, size_t len, uint64_t tag);
/** How many of the bytes are not what fill(tag) has put at the same place of another buffer. All, where there is no such
 *  memory. */
uint64_t emu_pattern_diff(const void *addr, size_t len, uint64_t tag);
/** How many runs describe the memory now: what it costs. 0 where there is no such memory. */
size_t emu_pattern_runs(const void *addr);

/** The memory that holds all of these bytes, and the place of the first in it; NULL: none does. */
struct emu_pattern *emu_pattern_find(const void *addr, size_t len, uint64_t *place);
/** A region is registered on it, or goes. */
void emu_pattern_hold(struct emu_pattern *m);
void emu_pattern_release(struct emu_pattern *m);
/** Copies out real bytes. */
void emu_pattern_read(struct emu_pattern *m, uint64_t place, void *to, size_t len);
/** Copies in real bytes. */
void emu_pattern_write(struct emu_pattern *m, uint64_t place, const void *from, size_t len);
/** The bytes that a run stands for, skipping some. */
void emu_pattern_bytes(const struct emu_run *r, uint64_t skip, void *to, size_t len);
/** Puts part of a run. */
void emu_pattern_put(struct emu_pattern *m, uint64_t place, const struct emu_run *r, uint64_t skip, uint64_t len);
/** The run that begins at the place, at most `most` bytes of it. */
struct emu_run emu_pattern_get(struct emu_pattern *m, uint64_t place, uint32_t most);

#endif
