/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_gpu_int.h - a GPU's context, as emu_gpu.c (which memory, life) and emu_copy.c (copies) share it.
 */
#ifndef EMU_GPU_INT_H
#define EMU_GPU_INT_H

#include "emu_copy.h"
#include "emu_gpu.h"

enum {
    EMU_GPU_BOUNCE = 64 * 1024,
    EMU_GPU_PLACES = 32,
    EMU_GPU_ARENA = EMU_GPU_BOUNCE + EMU_COPY_SLABS * EMU_COPY_SLAB + EMU_GPU_PLACES * EMU_AHEAD_BYTES
};

struct emu_gpu {
    struct emu_gpu *next;
    void *ctx, *stream;
    bool dead, warm;
    unsigned long long scratch;     /* EMU_GPU_BOUNCE bytes of its memory; 0: none */
    unsigned char *bounce, *places; /* with copy.bytes, EMU_GPU_ARENA bytes together */
    uint32_t lent;                  /* places, a bit each */
    struct emu_copy copy;
};

/** Makes the context this thread's. False: the GPU is dead. */
bool emu_gpu_enter(struct emu_gpu *g);
/** Whether a call of CUDA's went well; else the GPU is dead from now on, which is said once. */
bool emu_gpu_ok(struct emu_gpu *g, int error, const char *what);

#endif
