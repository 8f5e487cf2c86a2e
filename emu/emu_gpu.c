/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_gpu.c - see emu_gpu.h. Writes that follow each other in memory are gathered in pinned memory and copied together; reads
 * wait for their bytes. One GPU at a time has writes that are not settled. All with the fabric's lock; copies in the engine
 * thread. Called by emu_mr.c (registration, bytes), emu_ahead.c, and whoever settles; next: emu_cuda.c.
 */
#include "emu_gpu.h"
#include "emu.h"
#include "emu_cuda.h"
#include "emu_meet.h"

#include <stdlib.h>
#include <string.h>

enum {
    EMU_GPU_BOUNCE = 64 * 1024,
    EMU_GPU_STAGE = 1024 * 1024,
    EMU_GPU_PLACES = 16,
    EMU_GPU_SLOW_NS = 1000000000,
    EMU_GPU_ARENA = EMU_GPU_BOUNCE + EMU_GPU_STAGE + EMU_GPU_PLACES * EMU_AHEAD_BYTES
};

struct emu_gpu {
    struct emu_gpu *next;
    void *ctx, *stream;
    bool dead, warm;
    unsigned long long scratch;             /* EMU_GPU_BOUNCE bytes of its memory; 0: none */
    unsigned char *bounce, *stage, *places; /* EMU_GPU_ARENA bytes together */
    uint32_t lent;                          /* a bit each */
    /* writes: stage[begin, end) is to be copied to memory at `to`; what is before it is on its way */
    uint64_t to;
    uint32_t begin, end;
};

static struct emu_gpu *emu_gpu_all;
static struct emu_gpu *emu_gpu_dirty; /* has writes that are not settled */
static bool emu_gpu_lost; /* a write never got there; whose it was nobody knows, so nothing is settled again */

void emu_gpu_forked(void)
{
    emu_gpu_all = emu_gpu_dirty = NULL;
    emu_gpu_lost = false;
}

bool emu_gpu_dead(const struct emu_gpu *g)
{
    return g && g->dead;
}

/** Notes a failure. At a program's end CUDA goes before we do: that is no news. */
static bool emu_gpu_ok(struct emu_gpu *g, int error, const char *what)
{
    const char *name = NULL;

    if (error == EMU_CUDA_OK)
        return true;
    if (!g->dead && error != EMU_CUDA_DEINITIALIZED) {
        emu_cuda_get()->error_name(error, &name);
        fprintf(
            stderr,
            "emu: %s of registered GPU memory failed with %s (%d); expected memory and its context to be there until "
            "deregistered: its regions end here\n",
            what, name ? name : "an unknown error", error);
    }
    g->dead = true;
    return false;
}

/* ---- which memory ---------------------------------------------------------------------------------------------------------- */

/** Whether the driver says that the byte is on a device; asks in a context of the driver's where the thread has none. */
static bool emu_gpu_is_device(const struct emu_cuda *cuda, unsigned long long at)
{
    int devices = 0, active;
    unsigned type = 0, flags;
    void *ctx;
    int error = cuda->attribute(&type, EMU_CUDA_ATTR_MEMORY_TYPE, at);

    if (error == EMU_CUDA_INVALID_CONTEXT && cuda->device_count(&devices) == EMU_CUDA_OK) {
        for (int i = 0; i < devices && error; i++) {
            if (cuda->primary_state(i, &flags, &active) || !active || cuda->primary_retain(&ctx, i) ||
                cuda->ctx_push(ctx))
                continue;
            error = cuda->attribute(&type, EMU_CUDA_ATTR_MEMORY_TYPE, at);
            cuda->ctx_pop(&ctx);
        }
    }
    return error == EMU_CUDA_OK && type == EMU_CUDA_MEMORY_DEVICE;
}

/** The context that memory belongs to; where it names none (cuMemMap), the thread's, or its device's primary one. */
static void *emu_gpu_context(const struct emu_cuda *cuda, unsigned long long at)
{
    void *ctx = NULL;
    int device = 0;

    if (cuda->attribute(&ctx, EMU_CUDA_ATTR_CONTEXT, at) == EMU_CUDA_OK && ctx)
        return ctx;
    if (cuda->ctx_get(&ctx) == EMU_CUDA_OK && ctx)
        return ctx;
    if (cuda->attribute(&device, EMU_CUDA_ATTR_ORDINAL, at) != EMU_CUDA_OK)
        device = 0;
    return cuda->primary_retain(&ctx, device) == EMU_CUDA_OK ? ctx : NULL;
}

/** Makes what the engine will need now: later, a kernel that runs could hold it up. */
static struct emu_gpu *emu_gpu_new(const struct emu_cuda *cuda, void *ctx)
{
    struct emu_gpu *g = calloc(1, sizeof(*g));
    void *arena = NULL, *was;
    int error;

    if (!g)
        return NULL;
    g->ctx = ctx;
    error = cuda->ctx_push(ctx);
    if (error == EMU_CUDA_OK) {
        error = cuda->stream_create(&g->stream, EMU_CUDA_NON_BLOCKING);
        if (error == EMU_CUDA_OK && cuda->host_alloc(&arena, EMU_GPU_ARENA, EMU_CUDA_HOST_PORTABLE) != EMU_CUDA_OK)
            arena = malloc(EMU_GPU_ARENA); /* copies are slower then */
        if (cuda->alloc(&g->scratch, EMU_GPU_BOUNCE) != EMU_CUDA_OK)
            g->scratch = 0;
        cuda->ctx_pop(&was);
    }
    if (!emu_gpu_ok(g, error, "a stream for copies") || !arena) {
        free(g);
        return NULL;
    }
    g->bounce = arena;
    g->stage = g->bounce + EMU_GPU_BOUNCE;
    g->places = g->stage + EMU_GPU_STAGE;
    g->next = emu_gpu_all;
    emu_gpu_all = g;
    return g;
}

struct emu_gpu *emu_gpu_find(const void *addr, size_t len)
{
    const struct emu_cuda *cuda = emu_cuda_get();
    unsigned long long at = (uintptr_t)addr;
    struct emu_gpu *g;
    void *ctx;

    if (!cuda || !emu_gpu_is_device(cuda, at) || !emu_gpu_is_device(cuda, at + len - 1))
        return NULL;
    ctx = emu_gpu_context(cuda, at);
    for (g = emu_gpu_all; g && (g->ctx != ctx || g->dead); g = g->next)
        ;
    return g || !ctx ? g : emu_gpu_new(cuda, ctx);
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------ */

/** Makes the context this thread's. */
static bool emu_gpu_enter(struct emu_gpu *g)
{
    static _Thread_local bool begun;
    const struct emu_cuda *cuda = emu_cuda_get();
    int mode = EMU_CUDA_CAPTURE_RELAXED;
    void *now = NULL;

    if (g->dead)
        return false;
    if (!begun && cuda->capture_mode) /* whatever the program captures in other threads is not ours */
        cuda->capture_mode(&mode);
    begun = true;
    if (cuda->ctx_get(&now) == EMU_CUDA_OK && now == g->ctx)
        return true;
    return emu_gpu_ok(g, cuda->ctx_set(g->ctx), "entering the context");
}

/** Says where CUDA has held the engine up, and with it the program's traffic. */
static void emu_gpu_slow(uint64_t began, const char *what)
{
    uint64_t ns = emu_meet_time() - began;

    if (ns > EMU_GPU_SLOW_NS)
        fprintf(
            stderr,
            "emu: %s of GPU memory took %.1f s; expected microseconds: does a call of CUDA wait for a kernel that waits "
            "for this?\n",
            what, (double)ns / 1e9);
}

static bool emu_gpu_wait(struct emu_gpu *g)
{
    return emu_gpu_ok(g, emu_cuda_get()->stream_wait(g->stream), "a copy");
}

/** Starts the copy of what is gathered. */
static bool emu_gpu_issue(struct emu_gpu *g)
{
    uint32_t begin = g->begin;

    if (g->end == begin)
        return true;
    g->begin = g->end;
    return emu_gpu_ok(g, emu_cuda_get()->to_device(g->to, g->stage + begin, g->end - begin, g->stream), "a write");
}

bool emu_gpu_settle(void)
{
    struct emu_gpu *g = emu_gpu_dirty;
    uint64_t began;

    if (!g)
        return !emu_gpu_lost;
    emu_gpu_dirty = NULL;
    began = emu_meet_time();
    if (emu_gpu_enter(g) && emu_gpu_issue(g))
        emu_gpu_wait(g);
    emu_gpu_slow(began, "a write");
    g->begin = g->end = 0;
    emu_gpu_lost |= g->dead;
    return !emu_gpu_lost;
}

static void emu_gpu_write(struct emu_gpu *g, uint64_t to, const void *from, uint32_t len)
{
    if (emu_gpu_dirty != g || g->end + len > EMU_GPU_STAGE)
        emu_gpu_settle();
    if (!emu_gpu_enter(g)) {
        emu_gpu_lost = true;
        return;
    }
    if (g->begin != g->end && to != g->to + (g->end - g->begin))
        emu_gpu_issue(g);
    if (g->begin == g->end)
        g->to = to;
    emu_gpu_dirty = g;
    memcpy(g->stage + g->end, from, len);
    g->end += len;
}

/** Reads into pinned memory, behind all writes. */
static bool emu_gpu_read(struct emu_gpu *g, void *pinned, uint64_t from, uint32_t len)
{
    uint64_t began = emu_meet_time();

    if (!emu_gpu_enter(g) || !emu_gpu_issue(g) ||
        !emu_gpu_ok(g, emu_cuda_get()->to_host(pinned, from, len, g->stream), "a read") || !emu_gpu_wait(g))
        return false;
    emu_gpu_slow(began, "a read");
    if (emu_gpu_dirty == g) { /* the writes before it have ended too */
        emu_gpu_dirty = NULL;
        g->begin = g->end = 0;
    }
    return true;
}

void emu_gpu_warm(struct emu_gpu *g)
{
    static const uint32_t sizes[] = {1, 8, 64, 4096, EMU_GPU_BOUNCE};
    const struct emu_cuda *cuda = emu_cuda_get();
    bool ok = g->scratch && !g->warm && emu_gpu_enter(g);

    for (size_t i = 0; ok && i < sizeof(sizes) / sizeof(sizes[0]); i++)
        ok = emu_gpu_ok(g, cuda->to_device(g->scratch, g->places, sizes[i], g->stream), "a first write") &&
             emu_gpu_ok(g, cuda->to_host(g->bounce, g->scratch, sizes[i], g->stream), "a first read") &&
             emu_gpu_wait(g);
    g->warm = true;
}

/* ---- behind a region --------------------------------------------------------------------------------------------------------- */

static bool emu_gpu_pinned(const struct emu_gpu *g, const unsigned char *p)
{
    return p >= g->places && p < g->places + (size_t)EMU_GPU_PLACES * EMU_AHEAD_BYTES;
}

static void emu_gpu_load(const struct emu_mr *mr, uint64_t off, struct emu_payload *to, uint32_t at, uint32_t len)
{
    struct emu_gpu *g = mr->gpu;
    uint64_t from = (uintptr_t)mr->ibv.addr + off;

    emu_payload_make_bytes(to, at);
    if (emu_gpu_pinned(g, to->bytes)) {
        emu_gpu_read(g, to->bytes + at, from, len);
        return;
    }
    for (uint32_t n; len; len -= n, at += n, from += n) {
        n = len < EMU_GPU_BOUNCE ? len : EMU_GPU_BOUNCE;
        if (!emu_gpu_read(g, g->bounce, from, n))
            memset(g->bounce, 0, n);
        memcpy(to->bytes + at, g->bounce, n);
    }
}

static void emu_gpu_store(const struct emu_mr *mr, uint64_t off, const struct emu_payload *from, uint32_t at,
                          uint32_t len)
{
    unsigned char bytes[EMU_PAYLOAD_ROOM];

    emu_payload_read(from, at, bytes, len);
    emu_gpu_write(mr->gpu, (uintptr_t)mr->ibv.addr + off, bytes, len);
}

static uint64_t emu_gpu_load8(const struct emu_mr *mr, uint64_t off)
{
    uint64_t v = 0;

    if (emu_gpu_read(mr->gpu, mr->gpu->bounce, (uintptr_t)mr->ibv.addr + off, sizeof(v)))
        memcpy(&v, mr->gpu->bounce, sizeof(v));
    return v;
}

static void emu_gpu_store8(const struct emu_mr *mr, uint64_t off, uint64_t value)
{
    emu_gpu_write(mr->gpu, (uintptr_t)mr->ibv.addr + off, &value, sizeof(value));
}

const struct emu_mem_ops emu_mem_gpu = {
    emu_gpu_load,
    emu_gpu_store,
    emu_gpu_load8,
    emu_gpu_store8,
};

/* ---- places for what is read ahead --------------------------------------------------------------------------------------------- */

bool emu_gpu_borrow(struct emu_gpu *g, struct emu_ahead *a)
{
    for (int i = 0; i < EMU_GPU_PLACES; i++) {
        if (g->lent & (1u << i))
            continue;
        g->lent |= 1u << i;
        *a = (struct emu_ahead){.gpu = g, .bytes = g->places + (size_t)i * EMU_AHEAD_BYTES};
        return true;
    }
    return false;
}

void emu_gpu_give_back(struct emu_ahead *a)
{
    if (a->gpu)
        a->gpu->lent &= ~(1u << ((size_t)(a->bytes - a->gpu->places) / EMU_AHEAD_BYTES));
    *a = (struct emu_ahead){0};
}
