/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_mr.c - memory regions: keys, bounds, rights, and the only code that touches the memory behind them.
 * Host memory by copy is the first kind, patterns (emu_payload.c) the second, GPU memory (emu_gpu.c) the third.
 * Called by emu_abi.c, emu_req.c, emu_resp.c, emu_store.c; next: emu_pages.c, emu_payload.c, emu_gpu.c.
 */
#include "emu.h"
#include "emu_gpu.h"
#include "emu_pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    EMU_ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_RELAXED_ORDERING
};

#if defined(__SANITIZE_THREAD__)
/**
 * A device reads and writes memory without asking the program's threads, who may know from another process that it is done:
 * ThreadSanitizer would take that for a race.
 */
__attribute__((no_sanitize("thread"))) static void emu_mem_copy(void *to, const void *from, size_t n)
{
    const volatile unsigned char *s = from;
    volatile unsigned char *d = to;

    for (size_t i = 0; i < n; i++)
        d[i] = s[i];
}
#else
static void emu_mem_copy(void *to, const void *from, size_t n)
{
    memcpy(to, from, n);
}
#endif

static void emu_mem_host_load(const struct emu_mr *mr, uint64_t off, struct emu_payload *to, uint32_t at, uint32_t len)
{
    emu_payload_make_bytes(to, at);
    emu_mem_copy(to->bytes + at, (const char *)mr->ibv.addr + off, len);
}

/** Words come whole, and behind all that came before them, to whoever looks at memory without a verbs call. */
static bool emu_mem_host_word(char *to, const unsigned char *from, uint32_t len)
{
    uint64_t w8;
    uint32_t w4;

    if (len == 8 && ((uintptr_t)to & 7) == 0) {
        memcpy(&w8, from, sizeof(w8));
        __atomic_store_n((uint64_t *)(void *)to, w8, __ATOMIC_RELEASE);
        return true;
    }
    if (len == 4 && ((uintptr_t)to & 3) == 0) {
        memcpy(&w4, from, sizeof(w4));
        __atomic_store_n((uint32_t *)(void *)to, w4, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

static void emu_mem_host_store(const struct emu_mr *mr, const void *by, uint64_t off, const struct emu_payload *from,
                               uint32_t at, uint32_t len)
{
    char *to = (char *)mr->ibv.addr + off;

    (void)by;
    emu_gpu_settle(); /* what came before it, elsewhere */
    if (from->runs)
        emu_payload_read(from, at, to, len);
    else if (!emu_mem_host_word(to, from->bytes + at, len))
        emu_mem_copy(to, from->bytes + at, len);
}

static uint64_t emu_mem_host_load8(const struct emu_mr *mr, uint64_t off)
{
    return __atomic_load_n((uint64_t *)((char *)mr->ibv.addr + off), __ATOMIC_ACQUIRE);
}

static void emu_mem_host_store8(const struct emu_mr *mr, uint64_t off, uint64_t value)
{
    emu_gpu_settle();
    __atomic_store_n((uint64_t *)((char *)mr->ibv.addr + off), value, __ATOMIC_RELEASE);
}

static const struct emu_mem_ops emu_mem_host = {
    emu_mem_host_load,
    emu_mem_host_store,
    emu_mem_host_load8,
    emu_mem_host_store8,
};

uint64_t emu_mr_shift(int owner)
{
    /* Beyond what user space can map, and different for each PE: a peer's address is nobody's pointer. */
    return (uint64_t)(owner + 1) << 48;
}

static uint32_t emu_mr_new_key(struct emu_dev *d)
{
    uint32_t key;

    do
        key = (uint32_t)emu_rng_next(&d->fabric->rng);
    while (key == 0 || emu_map_get(&d->mrs, key));
    return key;
}

/** Chooses what the region's memory is. False where it cannot be had. */
static bool emu_mr_behind(struct emu_mr *mr)
{
    struct emu_fabric *f = mr->ctx->dev->fabric;

    mr->pattern = emu_pattern_find(mr->ibv.addr, mr->ibv.length, &mr->place);
    if (mr->pattern) {
        emu_pattern_hold(mr->pattern);
        mr->mem = &emu_mem_pattern;
        return true;
    }
    if (f->clock->real)
        mr->gpu = emu_gpu_find(mr->ibv.addr, mr->ibv.length);
    if (mr->gpu) {
        mr->mem = &emu_mem_gpu;
        __atomic_store_n(&f->gpu_mrs, f->gpu_mrs + 1, __ATOMIC_RELAXED);
        return true;
    }
    mr->mem = &emu_mem_host;
    return emu_pages_ok(mr->ibv.addr, mr->ibv.length, mr->access & IBV_ACCESS_LOCAL_WRITE);
}

static void emu_mr_free(struct emu_mr *mr)
{
    if (mr->pattern)
        emu_pattern_release(mr->pattern);
    if (mr->gpu)
        __atomic_store_n(&mr->ctx->dev->fabric->gpu_mrs, mr->ctx->dev->fabric->gpu_mrs - 1, __ATOMIC_RELAXED);
    free(mr);
}

struct emu_mr *emu_mr_reg(struct emu_pd *pd, void *addr, size_t len, uint64_t local, uint64_t remote, int access)
{
    struct emu_ctx *ctx = emu_ctx_of(pd->ibv.context);
    struct emu_mr *mr;

    errno = EINVAL;
    /* Linux (ib_uverbs_reg_mr) wants address and IOVA at the same place within a page. */
    if ((((uintptr_t)addr ^ local) & 4095) != 0)
        return NULL;
    if ((access & ~EMU_ACCESS_KNOWN) || len == 0 || local + len < local || remote + len < remote ||
        (uintptr_t)addr + len < (uintptr_t)addr)
        return NULL;
    /* Remote write and atomic need local write (ibv_reg_mr(3)). */
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return NULL;
    mr = calloc(1, sizeof(*mr));
    if (!mr)
        return NULL;
    mr->ctx = ctx;
    mr->local_base = local;
    mr->remote_base = remote;
    mr->access = access;
    mr->ibv = (struct ibv_mr){.context = pd->ibv.context, .pd = &pd->ibv, .addr = addr, .length = len};
    if (!emu_mr_behind(mr)) {
        free(mr);
        errno = EFAULT;
        return NULL;
    }
    mr->ibv.lkey = mr->ibv.rkey = mr->ibv.handle = emu_mr_new_key(ctx->dev);
    if (emu_map_put(&ctx->dev->mrs, mr->ibv.lkey, mr)) {
        emu_mr_free(mr);
        errno = ENOMEM;
        return NULL;
    }
    pd->refs++;
    return mr;
}

int emu_mr_dereg(struct emu_mr *mr)
{
    emu_store_settle(mr);
    if (mr->gpu)
        emu_gpu_settle(); /* the memory may be gone after this */
    emu_map_del(&mr->ctx->dev->mrs, mr->ibv.lkey);
    ((struct emu_pd *)mr->ibv.pd)->refs--;
    emu_mr_free(mr);
    return 0;
}

static bool emu_mr_covers(uint64_t base, uint64_t size, uint64_t addr, uint64_t len)
{
    return addr >= base && addr - base <= size && len <= size - (addr - base);
}

struct emu_mr *emu_mr_remote(struct emu_qp *qp, uint32_t rkey, uint64_t va, uint64_t len, int need)
{
    struct emu_mr *mr = emu_map_get(&qp->ctx->dev->mrs, rkey);

    if (!mr || mr->ibv.pd != qp->ibv.pd || (mr->access & need) != need ||
        !emu_mr_covers(mr->remote_base, mr->ibv.length, va, len) || emu_gpu_dead(mr->gpu))
        return NULL;
    return mr;
}

static struct emu_mr *emu_mr_local(struct emu_qp *qp, const struct ibv_sge *sge)
{
    return emu_map_get(&qp->ctx->dev->mrs, sge->lkey);
}

bool emu_mr_local_ok(const struct emu_pd *pd, const struct ibv_sge *sge, int n, int need)
{
    const struct emu_map *mrs = &emu_ctx_of(pd->ibv.context)->dev->mrs;

    for (int i = 0; i < n; i++) {
        const struct emu_mr *mr = emu_map_get(mrs, sge[i].lkey);

        if (sge[i].length == 0)
            continue;
        if (!mr || mr->ibv.pd != &pd->ibv || (mr->access & need) != need ||
            !emu_mr_covers(mr->local_base, mr->ibv.length, sge[i].addr, sge[i].length) || emu_gpu_dead(mr->gpu))
            return false;
    }
    return true;
}

uint64_t emu_sge_len(const struct ibv_sge *sge, int n)
{
    uint64_t len = 0;

    for (int i = 0; i < n; i++)
        len += sge[i].length;
    return len;
}

struct emu_mr *emu_mr_at(struct emu_qp *qp, const struct ibv_sge *sge, int n, uint64_t off, uint64_t *place,
                         uint64_t *room)
{
    for (int i = 0; i < n; i++) {
        struct emu_mr *mr = emu_mr_local(qp, &sge[i]);

        if (off >= sge[i].length) {
            off -= sge[i].length;
            continue;
        }
        if (!mr || !emu_mr_covers(mr->local_base, mr->ibv.length, sge[i].addr, sge[i].length))
            return NULL;
        *place = sge[i].addr + off - mr->local_base;
        *room = sge[i].length - off;
        return mr;
    }
    return NULL;
}

/** Walks the part [off, off+len) of a list. False where a region on the way is not there any more. */
static bool emu_mr_walk(struct emu_qp *qp, const struct ibv_sge *sge, int n, uint64_t off, struct emu_payload *pay,
                        bool store)
{
    uint32_t at = 0;

    for (int i = 0; i < n && at < pay->len; i++) {
        const struct emu_mr *mr = emu_mr_local(qp, &sge[i]);
        uint64_t room;
        uint32_t len;

        if (off >= sge[i].length) {
            off -= sge[i].length;
            continue;
        }
        room = sge[i].length - off;
        len = room < pay->len - at ? (uint32_t)room : pay->len - at;
        if (!mr || !emu_mr_covers(mr->local_base, mr->ibv.length, sge[i].addr + off, len))
            return false;
        if (store)
            mr->mem->store(mr, qp, sge[i].addr + off - mr->local_base, pay, at, len);
        else
            mr->mem->load(mr, sge[i].addr + off - mr->local_base, pay, at, len);
        if (emu_gpu_dead(mr->gpu))
            return false;
        at += len;
        off = 0;
    }
    return true;
}

bool emu_mr_gather(struct emu_qp *qp, const struct ibv_sge *sge, int n, uint64_t off, struct emu_payload *to)
{
    return emu_mr_walk(qp, sge, n, off, to, false);
}

bool emu_mr_scatter(struct emu_qp *qp, const struct ibv_sge *sge, int n, uint64_t off, const struct emu_payload *from)
{
    struct emu_payload pay = *from;

    return emu_mr_walk(qp, sge, n, off, &pay, true);
}
