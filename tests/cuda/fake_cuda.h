/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cuda.h - a libcuda.so.1 for machines without a GPU, as tests see it. "Device" memory cannot be touched by the CPU at its
 * address; copies on a stream happen when somebody waits for the stream, and not before: whoever says too early that bytes
 * are there is found out.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default)

enum { FAKE_CUDA_PLAIN, FAKE_CUDA_VMM /* names no context, as memory of cuMemMap() */ };

/** A context becomes the thread's current one, made if there is none. Stands for cuInit() and cuCtxCreate(). */
void fake_cuda_begin(void);
/** Zeroed device memory; NULL without memory. It lives as long as the process. */
void *fake_cuda_alloc(size_t len, int kind);
/** Where the CPU can see and write what a byte of device memory holds at this moment; NULL for other addresses. */
unsigned char *fake_cuda_see(const void *device);
/** How many threads have made copies, and whether this one has. */
int fake_cuda_copiers(void);
bool fake_cuda_copied_here(void);
/** How long waiting for copies takes before they happen; 10 us where nobody says otherwise. */
void fake_cuda_slow(unsigned us);
struct fake_cuda_counts {
    unsigned to_device, to_host, waits; /* calls so far */
};

struct fake_cuda_counts fake_cuda_counts(void);
/** From now on waiting for copies fails, and they are lost. */
void fake_cuda_break(void);

#pragma GCC visibility pop

#endif
