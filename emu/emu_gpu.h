/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_gpu.h - GPU memory in real time, through the CUDA driver library that the program has loaded; without one there is none.
 * Copies run on a stream of the emulator's own and are made by the engine thread alone: a program's thread that waits in
 * CUDA for a kernel that waits for the device must not be waited for. What was written counts as there once
 * emu_gpu_settle() has said so; it is asked before anything tells anybody: an answer, a completion, a later write elsewhere.
 */
#ifndef EMU_GPU_H
#define EMU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_gpu;
struct emu_mem_ops;

/** Bytes of a message that were read from GPU memory ahead of their packets. All zero: none. */
struct emu_ahead {
    struct emu_gpu *gpu;
    unsigned char *bytes;
    uint64_t message; /* whose */
    uint64_t from;
    uint32_t len;
};

enum { EMU_AHEAD_BYTES = 256 * 1024, EMU_AHEAD_WINDOWS = 4 };

/**
 * The CUDA context through which [addr, addr + len) is reached, with a stream and pinned memory of our own; NULL: not GPU
 * memory. Made by the thread that registers the memory; its current context serves where the memory names none.
 */
struct emu_gpu *emu_gpu_find(const void *addr, size_t len);
/**
 * Engine: makes a copy of every kind, once, so that what CUDA sets up for the first is there before the program's kernels: one
 * that waits for these copies would hold that up for ever.
 */
void emu_gpu_warm(struct emu_gpu *g);
/** Whether it failed: nothing behind it can be reached any more. */
bool emu_gpu_dead(const struct emu_gpu *g);
/** Everything that was written is in memory. False, and from then on: a GPU failed, which is said once. */
bool emu_gpu_settle(void);
/** Whether anything is not. */
bool emu_gpu_unsettled(void);
/** Begins the copies of what was written, and leaves it to emu_gpu_settle() to wait for them. */
void emu_gpu_issue(void);
/** A place for bytes read ahead, pinned; false: none is free, or with spare, not more than half. What is loaded into it is there after emu_gpu_arrived(). */
bool emu_gpu_borrow(struct emu_gpu *g, struct emu_ahead *a, bool spare);
/** Waits for all that was loaded into places. False: the GPU is dead. */
bool emu_gpu_arrived(struct emu_gpu *g);
/** Gives it back; tolerates one that has none. */
void emu_gpu_give_back(struct emu_ahead *a);
/** Forgets everything, in a forked child: CUDA does not work there. */
void emu_gpu_forked(void);

/** Memory behind a region with a struct emu_gpu. */
extern const struct emu_mem_ops emu_mem_gpu;

#endif
