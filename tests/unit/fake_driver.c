/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver.c - see fake_driver.h. Only what src/gpu calls, with the driver's rules about contexts. One thread. */
#include "fake_driver.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, NOT_SUPPORTED = 801 };
enum { DEVICES = 2, RANGES = 64, DEPTH = 8 };

struct range {
    char *at;
    size_t len;
    int device;
    enum driver_kind kind;
};

static struct {
    bool begun, dmabuf, dmabuf_fails, no_memory;
    bool active[DEVICES];
    int stack[DEPTH]; /* devices of contexts; the last is current */
    int depth, bottom, retained;
    struct range range[RANGES];
    int ranges, dmabufs, fd;
    void *begin;
    size_t len, alive;
} driver;

static int context[DEVICES]; /* addresses that stand for contexts */

void driver_reset(void)
{
    memset(&driver, 0, sizeof(driver));
    driver.dmabuf = true;
}

void driver_begin(int device)
{
    driver.begun = true;
    if (device < 0)
        return;
    driver.active[device] = true;
    driver.stack[0] = device;
    driver.depth = driver.bottom = 1;
}

void driver_no_context(void)
{
    driver.depth = driver.bottom = 0;
}

void *driver_memory(int device, size_t len, enum driver_kind kind)
{
    int rights = kind == DRIVER_DEVICE ? PROT_NONE : PROT_READ | PROT_WRITE;
    void *at = mmap(NULL, len, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || driver.ranges == RANGES)
        return NULL;
    driver.range[driver.ranges++] = (struct range){at, len, device, kind};
    return at;
}

void driver_dmabuf(bool supported, bool fails)
{
    driver.dmabuf = supported;
    driver.dmabuf_fails = fails;
}

int driver_dmabufs(int *fd, void **begin, size_t *len)
{
    *fd = driver.fd;
    *begin = driver.begin;
    *len = driver.len;
    return driver.dmabufs;
}

size_t driver_alive(void)
{
    return driver.alive;
}

void driver_no_memory(void)
{
    driver.no_memory = true;
}

int driver_depth(void)
{
    return driver.depth - driver.bottom + driver.retained;
}

static int current(void)
{
    return driver.depth ? driver.stack[driver.depth - 1] : -1;
}

static struct range *find(uint64_t at)
{
    for (int i = 0; i < driver.ranges; i++) {
        struct range *r = &driver.range[i];
        if (r->len && at >= (uintptr_t)r->at && at < (uintptr_t)r->at + r->len)
            return r;
    }
    return NULL;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuCtxGetCurrent(void **ctx);
EXPORT int cuCtxGetDevice(int *device);
EXPORT int cuCtxPushCurrent_v2(void *ctx);
EXPORT int cuCtxPopCurrent_v2(void **ctx);
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
EXPORT int cuDevicePrimaryCtxRetain(void **ctx, int device);
EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGetAttribute(int *out, int attribute, int device);
EXPORT int cuDeviceGetPCIBusId(char *out, int len, int device);
EXPORT int cuPointerGetAttribute(void *out, int attribute, unsigned long long pointer);
EXPORT int cuMemAlloc_v2(unsigned long long *out, size_t bytes);
EXPORT int cuMemFree_v2(unsigned long long pointer);
EXPORT int cuMemGetHandleForAddressRange(void *handle, unsigned long long pointer, size_t size, int type,
                                         unsigned long long flags);

int cuCtxGetCurrent(void **ctx)
{
    *ctx = current() < 0 ? NULL : &context[current()];
    return driver.begun ? OK : NOT_INITIALIZED;
}

int cuCtxGetDevice(int *device)
{
    *device = current();
    return !driver.begun ? NOT_INITIALIZED : current() < 0 ? INVALID_CONTEXT : OK;
}

int cuCtxPushCurrent_v2(void *ctx)
{
    if (driver.depth == DEPTH)
        return OUT_OF_MEMORY;
    driver.stack[driver.depth++] = (int)((int *)ctx - context);
    return OK;
}

int cuCtxPopCurrent_v2(void **ctx)
{
    if (!driver.depth)
        return INVALID_CONTEXT;
    *ctx = &context[driver.stack[--driver.depth]];
    return OK;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = driver.active[device];
    return driver.begun ? OK : NOT_INITIALIZED;
}

int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
    *ctx = &context[device];
    driver.retained++;
    driver.active[device] = true;
    return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    driver.retained--;
    return OK;
}

int cuDeviceGetCount(int *count)
{
    *count = DEVICES;
    return driver.begun ? OK : NOT_INITIALIZED;
}

/* Numbers of CUdevice_attribute as cuda.h of CUDA 11.3 and later has them. */
int cuDeviceGetAttribute(int *out, int attribute, int device)
{
    switch (attribute) {
    case 117:
        *out = 1;
        return OK;
    case 118:
        *out = device == 0 ? 100 : 0;
        return OK;
    case 124:
        *out = driver.dmabuf;
        return OK;
    default:
        return INVALID_VALUE;
    }
}

int cuDeviceGetPCIBusId(char *out, int len, int device)
{
    int n = snprintf(out, (size_t)len, "0000:%02X:00.0", 0x3b + device);
    return n < len ? OK : INVALID_VALUE;
}

int cuPointerGetAttribute(void *out, int attribute, unsigned long long pointer)
{
    struct range *r = find(pointer);
    if (!driver.begun)
        return NOT_INITIALIZED;
    if (current() < 0)
        return INVALID_CONTEXT;
    if (!r)
        return INVALID_VALUE;
    if (attribute == 2)
        *(unsigned *)out = r->kind == DRIVER_PINNED ? 1 : 2;
    else if (attribute == 8)
        *(bool *)out = r->kind == DRIVER_MANAGED;
    else if (attribute == 9)
        *(int *)out = r->device;
    else
        return INVALID_VALUE;
    return OK;
}

int cuMemAlloc_v2(unsigned long long *out, size_t bytes)
{
    if (current() < 0)
        return INVALID_CONTEXT;
    if (driver.no_memory)
        return OUT_OF_MEMORY;
    /* Crooked, as small pieces of a real one's blocks are. */
    char *at = driver_memory(current(), bytes + 512, DRIVER_DEVICE);
    if (!at)
        return OUT_OF_MEMORY;
    driver.alive += bytes;
    *out = (uintptr_t)at + 512;
    return OK;
}

int cuMemFree_v2(unsigned long long pointer)
{
    struct range *r = find(pointer);
    if (!r || pointer != (uintptr_t)r->at + 512)
        return INVALID_VALUE;
    driver.alive -= r->len - 512;
    munmap(r->at, r->len);
    r->len = 0;
    return OK;
}

int cuMemGetHandleForAddressRange(void *handle, unsigned long long pointer, size_t size, int type,
                                  unsigned long long flags)
{
    struct range *r = find(pointer);
    if (!r || pointer % 4096 || size % 4096 || type != 1 || flags)
        return INVALID_VALUE;
    if (!driver.dmabuf || driver.dmabuf_fails)
        return driver.dmabuf ? INVALID_VALUE : NOT_SUPPORTED;
    driver.fd = memfd_create("fake-dmabuf", MFD_CLOEXEC);
    if (driver.fd < 0)
        return OUT_OF_MEMORY;
    driver.dmabufs++;
    driver.begin = r->at + (pointer - (uintptr_t)r->at);
    driver.len = size;
    memcpy(handle, &driver.fd, sizeof(driver.fd));
    return OK;
}
