/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_cuda.c - finds the CUDA driver library, if the program has loaded it: never loads it by itself, since a program without
 * it has no GPU memory. Called by emu_gpu.c, with the fabric's lock; next: libcuda.so.1.
 */
#include "emu_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct emu_cuda emu_cuda_calls;

struct emu_cuda_name {
    const char *name;
    void *to; /* a function pointer */
    bool may_lack;
};

static const struct emu_cuda_name emu_cuda_names[] = {
    {"cuPointerGetAttribute", &emu_cuda_calls.attribute, false},
    {"cuCtxGetCurrent", &emu_cuda_calls.ctx_get, false},
    {"cuCtxSetCurrent", &emu_cuda_calls.ctx_set, false},
    {"cuCtxPushCurrent_v2", &emu_cuda_calls.ctx_push, false},
    {"cuCtxPopCurrent_v2", &emu_cuda_calls.ctx_pop, false},
    {"cuDevicePrimaryCtxGetState", &emu_cuda_calls.primary_state, false},
    {"cuDevicePrimaryCtxRetain", &emu_cuda_calls.primary_retain, false},
    {"cuDeviceGetCount", &emu_cuda_calls.device_count, false},
    {"cuStreamCreate", &emu_cuda_calls.stream_create, false},
    {"cuStreamSynchronize", &emu_cuda_calls.stream_wait, false},
    {"cuMemcpyHtoDAsync_v2", &emu_cuda_calls.to_device, false},
    {"cuMemcpyDtoHAsync_v2", &emu_cuda_calls.to_host, false},
    {"cuMemAlloc_v2", &emu_cuda_calls.alloc, false},
    {"cuMemHostAlloc", &emu_cuda_calls.host_alloc, false},
    {"cuGetErrorName", &emu_cuda_calls.error_name, false},
    {"cuThreadExchangeStreamCaptureMode", &emu_cuda_calls.capture_mode, true},
};

/** ISO C has no cast from object to function pointer; POSIX promises that the bytes are good. */
static bool emu_cuda_load(void *library)
{
    for (size_t i = 0; i < sizeof(emu_cuda_names) / sizeof(emu_cuda_names[0]); i++) {
        void *found = dlsym(library, emu_cuda_names[i].name);

        if (!found && !emu_cuda_names[i].may_lack) {
            fprintf(stderr, "emu: libcuda.so.1 has no %s; expected CUDA 11 or later: GPU memory cannot be registered\n",
                    emu_cuda_names[i].name);
            return false;
        }
        memcpy(emu_cuda_names[i].to, &found, sizeof(found));
    }
    return true;
}

const struct emu_cuda *emu_cuda_get(void)
{
    static enum { UNKNOWN, THERE, UNUSABLE } state;
    void *library;

    if (state == UNKNOWN) {
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (!library)
            return NULL; /* it may come later */
        state = emu_cuda_load(library) ? THERE : UNUSABLE;
    }
    return state == THERE ? &emu_cuda_calls : NULL;
}
