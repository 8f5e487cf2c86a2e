/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_copy.h - the copies between the engine thread and one GPU's memory. A copy costs about as much whatever its size, and waiting
 * for one more than making it: so writes that follow each other are gathered, those of each queue pair by themselves, and
 * reads can be begun together. Engine thread, with the fabric's lock. Called by emu_gpu.c and emu_ahead.c; next: emu_cuda.c.
 */
#ifndef EMU_COPY_H
#define EMU_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_gpu;

enum { EMU_COPY_SLAB = 64 * 1024, EMU_COPY_SLABS = 32 };

/** Bytes for one place in memory, gathered from writes that follow each other there. */
struct emu_copy_slab {
    uint64_t to;
    uint32_t len;
    const void *by; /* who may add to it; NULL: nobody */
};

/** Slabs freed to issued are being copied, those from there to opened still gather. They are copied in the order in which they were opened. */
struct emu_copy {
    unsigned char *bytes; /* pinned, EMU_COPY_SLABS of them */
    struct emu_copy_slab slab[EMU_COPY_SLABS];
    uint32_t freed, issued, opened;
};

/** What copies have cost this process. ns: of the engine thread. */
struct emu_copy_stats {
    uint64_t writes, write_bytes, write_ns, waits, wait_ns;
    uint64_t reads, read_bytes, read_waits, read_ns;
};

/**
 * Bytes for memory at `to`. by: whose they are (a queue pair): what one writes becomes visible in its order, or NULL: behind everything
 * before and before everything after.
 */
void emu_copy_write(struct emu_gpu *g, const void *by, uint64_t to, const void *from, uint32_t len);
/** Begins to read into pinned memory, behind all writes. False: the GPU is dead. */
bool emu_copy_begin_read(struct emu_gpu *g, void *pinned, uint64_t from, uint32_t len);
/** All that was begun, writes too, has ended. False: the GPU is dead. */
bool emu_copy_end_reads(struct emu_gpu *g);
/** Begins the copies of all that was gathered. */
bool emu_copy_issue(struct emu_gpu *g);
/** Whether there are writes of which nobody knows that they have ended. */
bool emu_copy_unsettled(const struct emu_gpu *g);
/** Ends them. False: the GPU is dead. */
bool emu_copy_settle(struct emu_gpu *g);

/** Of this process so far. */
const struct emu_copy_stats *emu_copy_stats(void);

#endif
