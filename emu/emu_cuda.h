/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_cuda.h - the calls of the CUDA driver library that emu_gpu.c makes, found in the library that the program has loaded.
 * Declared here, so that nothing of CUDA is needed to build.
 */
#ifndef EMU_CUDA_H
#define EMU_CUDA_H

#include <stdbool.h>
#include <stddef.h>

enum { EMU_CUDA_OK = 0, EMU_CUDA_DEINITIALIZED = 4, EMU_CUDA_INVALID_CONTEXT = 201 };

/* CUpointer_attribute, CUmemorytype, CUstream_flags, CUstreamCaptureMode */
enum { EMU_CUDA_ATTR_CONTEXT = 1, EMU_CUDA_ATTR_MEMORY_TYPE = 2, EMU_CUDA_ATTR_ORDINAL = 9 };
enum { EMU_CUDA_MEMORY_DEVICE = 2 };
enum { EMU_CUDA_NON_BLOCKING = 1, EMU_CUDA_CAPTURE_RELAXED = 2, EMU_CUDA_HOST_PORTABLE = 1 };

typedef int (*emu_cuda_attribute_fn)(void *out, int attribute, unsigned long long ptr);

struct emu_cuda {
    emu_cuda_attribute_fn attribute;
    int (*ctx_get)(void **ctx);
    int (*ctx_set)(void *ctx);
    int (*ctx_push)(void *ctx);
    int (*ctx_pop)(void **ctx);
    int (*primary_state)(int device, unsigned *flags, int *active);
    int (*primary_retain)(void **ctx, int device);
    int (*device_count)(int *n);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*to_device)(unsigned long long to, const void *from, size_t len, void *stream);
    int (*to_host)(void *to, unsigned long long from, size_t len, void *stream);
    int (*alloc)(unsigned long long *out, size_t len);
    int (*host_alloc)(void **out, size_t len, unsigned flags);
    int (*error_name)(int error, const char **out);
    int (*capture_mode)(int *mode); /* may be NULL */
};

/** The calls, or NULL where the program has not loaded the library. */
const struct emu_cuda *emu_cuda_get(void);

#endif
