/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_gpu.c - see emu_gpu.h: which memory is a GPU's, its context, what stands behind a region. One GPU at a time has writes that
 * are not settled. All with the fabric's lock; copies in the engine thread. Called by emu_mr.c (registration, bytes), emu_ahead.c, and
 * whoever settles; next: emu_copy.c.
 */
#include "emu_gpu.h"
#include "emu.h"
#include "emu_cuda.h"
#include "emu_gpu_int.h"

#include <stdlib.h>
#include <string.h>

static struct emu_gpu *emu_gpu_all;
static bool emu_gpu_lost; /* a write never got there; whose it was nobody knows, so nothing is settled again */

void emu_gpu_forked(void)
{
    emu_gpu_all = NULL;
    emu_gpu_lost = false;
}

bool emu_gpu_dead(const struct emu_gpu *g)
{
    return g && g->dead;
}

/* At a program's end CUDA goes before we do: that is no news. */
bool emu_gpu_ok(struct emu_gpu *g, int error, const char *what)
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
    g->copy.bytes = g->bounce + EMU_GPU_BOUNCE;
    g->places = g->copy.bytes + (size_t)EMU_COPY_SLABS * EMU_COPY_SLAB;
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

bool emu_gpu_enter(struct emu_gpu *g)
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

bool emu_gpu_settle(void)
{
    for (struct emu_gpu *g = emu_gpu_all; g; g = g->next) {
        if (emu_copy_unsettled(g))
            emu_gpu_lost |= !emu_copy_settle(g);
    }
    return !emu_gpu_lost;
}

bool emu_gpu_unsettled(void)
{
    const struct emu_gpu *g = emu_gpu_all;

    while (g && !emu_copy_unsettled(g))
        g = g->next;
    return g != NULL;
}

void emu_gpu_issue(void)
{
    for (struct emu_gpu *g = emu_gpu_all; g; g = g->next)
        emu_copy_issue(g);
}

static void emu_gpu_write(struct emu_gpu *g, const void *by, uint64_t to, const void *from, uint32_t len)
{
    for (struct emu_gpu *other = emu_gpu_all; other; other = other->next) {
        if (other != g && emu_copy_unsettled(other)) /* what came before it, elsewhere */
            emu_gpu_lost |= !emu_copy_settle(other);
    }
    emu_gpu_lost |= g->dead;
    if (!g->dead)
        emu_copy_write(g, by, to, from, len);
}

/** Reads into pinned memory, behind all writes. */
static bool emu_gpu_read(struct emu_gpu *g, void *pinned, uint64_t from, uint32_t len)
{
    return emu_copy_begin_read(g, pinned, from, len) && emu_copy_end_reads(g);
}

void emu_gpu_warm(struct emu_gpu *g)
{
    static const uint32_t sizes[] = {1, 8, 64, 4096, EMU_GPU_BOUNCE};
    const struct emu_cuda *cuda = emu_cuda_get();
    bool ok = g->scratch && !g->warm && emu_gpu_enter(g);

    for (size_t i = 0; ok && i < sizeof(sizes) / sizeof(sizes[0]); i++)
        ok = emu_gpu_ok(g, cuda->to_device(g->scratch, g->places, sizes[i], g->stream), "a first write") &&
             emu_gpu_ok(g, cuda->to_host(g->bounce, g->scratch, sizes[i], g->stream), "a first read") &&
             emu_copy_end_reads(g);
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
        emu_copy_begin_read(g, to->bytes + at, from, len); /* whoever has the place asks emu_gpu_arrived() */
        return;
    }
    for (uint32_t n; len; len -= n, at += n, from += n) {
        n = len < EMU_GPU_BOUNCE ? len : EMU_GPU_BOUNCE;
        if (!emu_gpu_read(g, g->bounce, from, n))
            memset(g->bounce, 0, n);
        memcpy(to->bytes + at, g->bounce, n);
    }
}

static void emu_gpu_store(const struct emu_mr *mr, const void *by, uint64_t off, const struct emu_payload *from,
                          uint32_t at, uint32_t len)
{
    unsigned char bytes[EMU_PAYLOAD_ROOM];

    if (from->runs)
        emu_payload_read(from, at, bytes, len);
    emu_gpu_write(mr->gpu, by, (uintptr_t)mr->ibv.addr + off, from->runs ? bytes : from->bytes + at, len);
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
    emu_gpu_write(mr->gpu, NULL, (uintptr_t)mr->ibv.addr + off, &value, sizeof(value));
}

const struct emu_mem_ops emu_mem_gpu = {
    emu_gpu_load,
    emu_gpu_store,
    emu_gpu_load8,
    emu_gpu_store8,
};

/* ---- places for what is read ahead --------------------------------------------------------------------------------------------- */

bool emu_gpu_arrived(struct emu_gpu *g)
{
    return emu_copy_end_reads(g);
}

bool emu_gpu_borrow(struct emu_gpu *g, struct emu_ahead *a, bool spare)
{
    if (spare && __builtin_popcount(g->lent) >= EMU_GPU_PLACES / 2)
        return false;
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
