/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_cuda.c - the one file that knows CUDA's driver interface: a handful of functions, looked up in the libcuda.so.1 that the
 * process has loaded, with the numbers that its manual documents. Foreign errors end here.
 * May not initialise CUDA, nor leave another context current. Called by src/api; next: libcuda.so.1
 */
#include "gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPU_LIBRARY "libcuda.so.1"

/* CUresult */
enum { GPU_CUDA_SUCCESS = 0, GPU_CUDA_OUT_OF_MEMORY = 2, GPU_CUDA_INVALID_CONTEXT = 201, GPU_CUDA_NOT_SUPPORTED = 801 };
/* CUpointer_attribute, CUmemorytype, CUmemRangeHandleType */
enum { GPU_CUDA_POINTER_TYPE = 2, GPU_CUDA_POINTER_MANAGED = 8, GPU_CUDA_POINTER_ORDINAL = 9 };
enum { GPU_CUDA_MEMORY_DEVICE = 2, GPU_CUDA_HANDLE_DMABUF = 1 };
/* CUdevice_attribute; CUflushGPUDirectRDMAWritesOptions; CUGPUDirectRDMAWritesOrdering */
enum { GPU_CUDA_FLUSH_OPTIONS = 117, GPU_CUDA_WRITES_ORDERING = 118, GPU_CUDA_DMABUF_SUPPORTED = 124 };
enum { GPU_CUDA_FLUSH_BY_HOST = 1, GPU_CUDA_ORDERED_FOR_OWNER = 100 };

/* The driver's functions; device pointers are 64-bit numbers, devices ordinals. */
struct gpu_cuda {
    int (*ctx_get_current)(void **ctx);
    int (*ctx_get_device)(int *device);
    int (*ctx_push)(void *ctx);
    int (*ctx_pop)(void **ctx);
    int (*primary_state)(int device, unsigned *flags, int *active);
    int (*primary_retain)(void **ctx, int device);
    int (*primary_release)(int device);
    int (*device_count)(int *count);
    int (*device_attribute)(int *out, int attribute, int device);
    int (*device_pci)(char *out, int len, int device);
    int (*pointer_attribute)(void *out, int attribute, unsigned long long pointer);
    int (*mem_alloc)(unsigned long long *out, size_t bytes);
    int (*mem_free)(unsigned long long pointer);
    int (*mem_handle)(void *handle, unsigned long long pointer, size_t size, int type, unsigned long long flags);
};

struct gpu {
    const struct log *log;
    void *library; /* NULL: not found yet */
    bool unusable; /* found, and it lacks a function, which has been logged */
    struct gpu_cuda cuda;
};

struct gpu_symbol {
    const char *name;
    size_t offset;
    bool optional;
};

/* Names as the library exports them: "_v2" is what cuda.h's macros make of the plain ones. */
static const struct gpu_symbol gpu_symbols[] = {
    {"cuCtxGetCurrent", offsetof(struct gpu_cuda, ctx_get_current), false},
    {"cuCtxGetDevice", offsetof(struct gpu_cuda, ctx_get_device), false},
    {"cuCtxPushCurrent_v2", offsetof(struct gpu_cuda, ctx_push), false},
    {"cuCtxPopCurrent_v2", offsetof(struct gpu_cuda, ctx_pop), false},
    {"cuDevicePrimaryCtxGetState", offsetof(struct gpu_cuda, primary_state), false},
    {"cuDevicePrimaryCtxRetain", offsetof(struct gpu_cuda, primary_retain), false},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(struct gpu_cuda, primary_release), false},
    {"cuDeviceGetCount", offsetof(struct gpu_cuda, device_count), false},
    {"cuDeviceGetAttribute", offsetof(struct gpu_cuda, device_attribute), false},
    {"cuDeviceGetPCIBusId", offsetof(struct gpu_cuda, device_pci), false},
    {"cuPointerGetAttribute", offsetof(struct gpu_cuda, pointer_attribute), false},
    {"cuMemAlloc_v2", offsetof(struct gpu_cuda, mem_alloc), false},
    {"cuMemFree_v2", offsetof(struct gpu_cuda, mem_free), false},
    {"cuMemGetHandleForAddressRange", offsetof(struct gpu_cuda, mem_handle), true}, /* since CUDA 11.7 */
};

int gpu_open(const struct log *log, struct gpu **out)
{
    struct gpu *gpu = calloc(1, sizeof(*gpu));
    if (!gpu) {
        log_write(log, LOG_LEVEL_ERROR, "no memory to ask CUDA");
        return -ENOMEM;
    }
    gpu->log = log;
    *out = gpu;
    return 0;
}

void gpu_close(struct gpu *gpu)
{
    if (!gpu)
        return;
    if (gpu->library)
        dlclose(gpu->library);
    free(gpu);
}

static bool gpu_look_up(struct gpu *gpu)
{
    for (size_t i = 0; i < sizeof(gpu_symbols) / sizeof(gpu_symbols[0]); i++) {
        const struct gpu_symbol *s = &gpu_symbols[i];
        void *address = dlsym(gpu->library, s->name);
        if (!address && !s->optional) {
            log_write(gpu->log, LOG_LEVEL_WARN,
                      GPU_LIBRARY " has no %s: GPU memory cannot be used; a driver of CUDA 11 or newer is needed",
                      s->name);
            return false;
        }
        /* ISO C has no cast from an object to a function pointer; POSIX says that their bytes are the same. */
        memcpy((char *)&gpu->cuda + s->offset, &address, sizeof(address));
    }
    return true;
}

/* The driver's functions, or NULL where this process does not use CUDA. */
static const struct gpu_cuda *gpu_cuda(struct gpu *gpu)
{
    if (!gpu->library) {
        gpu->library = dlopen(GPU_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (!gpu->library)
            return NULL;
        gpu->unusable = !gpu_look_up(gpu);
    }
    return gpu->unusable ? NULL : &gpu->cuda;
}

/* A context that the calling thread is in for a few calls. */
struct gpu_visit {
    const struct gpu_cuda *cuda;
    int primary; /* device whose primary context was entered; -1: none */
};

/* Enters the primary context of a device if the process has it; never makes one. */
static bool gpu_enter_primary(const struct gpu_cuda *cuda, int device)
{
    unsigned flags;
    int active = 0;
    void *ctx;
    if (cuda->primary_state(device, &flags, &active) || !active || cuda->primary_retain(&ctx, device))
        return false;
    if (!cuda->ctx_push(ctx))
        return true;
    cuda->primary_release(device);
    return false;
}

/* So that the thread has a context, one of this device where it had none. False where there is none to be had. */
static bool gpu_enter(struct gpu *gpu, int device, struct gpu_visit *out)
{
    void *ctx = NULL;
    int current = -1;
    *out = (struct gpu_visit){.cuda = gpu_cuda(gpu), .primary = -1};
    if (!out->cuda || out->cuda->ctx_get_current(&ctx))
        return false;
    if (ctx && !out->cuda->ctx_get_device(&current) && current == device)
        return true;
    if (gpu_enter_primary(out->cuda, device))
        out->primary = device;
    /* Another device's context serves most calls too: addresses are one space. */
    return out->primary >= 0 || ctx;
}

static void gpu_leave(const struct gpu_visit *visit)
{
    void *ctx;
    if (visit->primary < 0)
        return;
    visit->cuda->ctx_pop(&ctx);
    visit->cuda->primary_release(visit->primary);
}

int gpu_current(struct gpu *gpu)
{
    const struct gpu_cuda *cuda = gpu_cuda(gpu);
    void *ctx = NULL;
    int device;
    if (!cuda || cuda->ctx_get_current(&ctx) || !ctx || cuda->ctx_get_device(&device))
        return -ENODEV;
    return device;
}

/* Asks in the context that the thread is in. A CUresult. */
static int gpu_ask(const struct gpu_cuda *cuda, const void *addr, int *device)
{
    unsigned long long pointer = (uintptr_t)addr;
    unsigned type = 0, managed = 0;
    int rc = cuda->pointer_attribute(&type, GPU_CUDA_POINTER_TYPE, pointer);
    *device = -ENODEV;
    /* Unknown memory is an error to CUDA, and the host's to us. */
    if (rc || type != GPU_CUDA_MEMORY_DEVICE)
        return rc;
    rc = cuda->pointer_attribute(&managed, GPU_CUDA_POINTER_MANAGED, pointer);
    if (!rc && !(managed & 0xff)) /* a bool where the manual says so, an int elsewhere */
        rc = cuda->pointer_attribute(device, GPU_CUDA_POINTER_ORDINAL, pointer);
    return rc;
}

int gpu_of(struct gpu *gpu, const void *addr)
{
    const struct gpu_cuda *cuda = gpu_cuda(gpu);
    int device = -ENODEV, count = 0;
    if (!cuda || gpu_ask(cuda, addr, &device) != GPU_CUDA_INVALID_CONTEXT)
        return device;
    /* A thread without a context, as a host's own threads may be. */
    if (cuda->device_count(&count))
        return -ENODEV;
    for (int i = 0; i < count; i++) {
        struct gpu_visit visit = {.cuda = cuda, .primary = i};
        if (!gpu_enter_primary(cuda, i))
            continue;
        int rc = gpu_ask(cuda, addr, &device);
        gpu_leave(&visit);
        if (!rc)
            return device;
    }
    return -ENODEV;
}

/* An attribute that an older driver may not know: 0 then. */
static int gpu_attribute(const struct gpu_cuda *cuda, int attribute, int device)
{
    int value = 0;
    return cuda->device_attribute(&value, attribute, device) ? 0 : value;
}

int gpu_about(struct gpu *gpu, int device, struct gpu_about *out)
{
    const struct gpu_cuda *cuda = gpu_cuda(gpu);
    struct gpu_about about = {0};
    if (!cuda)
        return -ENODEV;
    int rc = cuda->device_pci(about.pci, sizeof(about.pci), device);
    if (rc) {
        log_write(gpu->log, LOG_LEVEL_ERROR, "CUDA does not tell the PCI address of device %d: error %d", device, rc);
        return -EIO;
    }
    for (char *p = about.pci; *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'F' ? *p - 'A' + 'a' : *p);
    about.dmabuf = cuda->mem_handle && gpu_attribute(cuda, GPU_CUDA_DMABUF_SUPPORTED, device);
    about.host_flush = gpu_attribute(cuda, GPU_CUDA_FLUSH_OPTIONS, device) & GPU_CUDA_FLUSH_BY_HOST;
    about.ordered = gpu_attribute(cuda, GPU_CUDA_WRITES_ORDERING, device) >= GPU_CUDA_ORDERED_FOR_OWNER;
    *out = about;
    return 0;
}

int gpu_dmabuf(struct gpu *gpu, int device, const void *addr, size_t len, int *fd, uint64_t *offset)
{
    struct gpu_visit visit;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)addr, skip = at % page;
    uint64_t size = (skip + len + page - 1) / page * page;
    int got = -1;
    if (!gpu_enter(gpu, device, &visit))
        return -EOPNOTSUPP;
    int rc = GPU_CUDA_NOT_SUPPORTED;
    if (visit.cuda->mem_handle && gpu_attribute(visit.cuda, GPU_CUDA_DMABUF_SUPPORTED, device))
        rc = visit.cuda->mem_handle(&got, at - skip, size, GPU_CUDA_HANDLE_DMABUF, 0);
    gpu_leave(&visit);
    if (rc)
        return rc == GPU_CUDA_NOT_SUPPORTED ? -EOPNOTSUPP : -EIO;
    *fd = got;
    *offset = skip;
    return 0;
}

int gpu_alloc(struct gpu *gpu, int device, size_t bytes, void **out)
{
    struct gpu_visit visit;
    unsigned long long pointer = 0;
    if (!gpu_enter(gpu, device, &visit))
        return -ENODEV;
    int current = -1;
    int rc = visit.cuda->ctx_get_device(&current);
    bool there = !rc && current == device; /* else it would be another device's memory */
    if (there)
        rc = visit.cuda->mem_alloc(&pointer, bytes);
    gpu_leave(&visit);
    if (!there)
        return -ENODEV;
    if (rc)
        return rc == GPU_CUDA_OUT_OF_MEMORY ? -ENOMEM : -EIO;
    *out = (void *)(uintptr_t)pointer; /* NOLINT(performance-no-int-to-ptr): CUDA hands addresses out as numbers */
    return 0;
}

void gpu_free(struct gpu *gpu, int device, void *memory)
{
    struct gpu_visit visit;
    if (!memory || !gpu_enter(gpu, device, &visit))
        return;
    visit.cuda->mem_free((uintptr_t)memory);
    gpu_leave(&visit);
}
