/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_gpu.c - memory of the GPU: a region of it registered on every rail, and the flush line in it that peers' flushes read.
 * May not touch that memory by CPU, nor bring CUDA into the process. Called by the user, api_mem.c and api_peer.c; next: src/gpu
 */
#include "api.h"

#include "gpu.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(((struct braid_gpu *)NULL)->pci) >= GPU_PCI_SIZE, "an address fits");

#define API_GPU_HINT "load nvidia-peermem, or use a driver, kernel and rdma-core with dma-buf of GPU memory"

/* What a region is registered from. */
struct api_gpu_source {
    void *addr;
    size_t len;
    void *alias;   /**< may be NULL */
    uint64_t iova; /**< not 0 */
    int fd;        /**< of a dma-buf; -1: none */
    uint64_t offset;
};

/* A dma-buf of a source, where that is wanted and can be had. */
static void api_gpu_source_open(struct braid *b, struct api_gpu_source *s)
{
    s->fd = -1;
    if (!b->options.dmabuf || b->gpu.no_dmabuf)
        return;
    int rc = gpu_dmabuf(b->gpu.cuda, b->gpu.device, s->addr, s->len, &s->fd, &s->offset);
    if (rc) {
        b->gpu.no_dmabuf = rc == -EOPNOTSUPP;
        log_write(&b->log, LOG_LEVEL_INFO, "no dma-buf of %zu bytes at %p (%s): by peer memory instead", s->len,
                  s->addr, strerror(-rc));
    }
}

/* The MRs hold the memory from here on. */
static void api_gpu_source_close(struct api_gpu_source *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* One registration. Where the device refuses a dma-buf, and always without one, by peer memory, which takes the first
 * address that the memory has had. */
static int api_gpu_mr(struct braid *b, unsigned rail, struct api_gpu_source *s, enum verbs_access access,
                      struct verbs_mr **out)
{
    struct verbs_dev *dev = b->rail[rail]->dev;
    if (s->fd >= 0) {
        int rc = verbs_mr_reg_dmabuf(dev, s->fd, s->offset, s->len, s->iova, access, out);
        if (!rc || rc == -ENOMEM)
            return rc;
        log_write(&b->log, LOG_LEVEL_INFO, "port %s takes no dma-buf of GPU memory (%s): by peer memory instead",
                  b->rail[rail]->name, strerror(-rc));
        b->gpu.no_dmabuf |= rc == -EOPNOTSUPP;
        api_gpu_source_close(s);
    }
    return verbs_mr_reg(dev, s->alias ? s->alias : s->addr, s->len, s->iova, access, out);
}

/* One GPU a context, since a READ of one GPU's memory says nothing about writes to another's. */
static int api_gpu_claim(struct braid *b, int device)
{
    if (b->gpu.device == API_NO_GPU)
        b->gpu.device = device;
    if (b->gpu.device == device)
        return 0;
    log_write(&b->log, LOG_LEVEL_ERROR,
              "memory of GPU %d in a context that serves GPU %d: use a context of its own for each", device,
              b->gpu.device);
    return -ENOTSUP;
}

/* Peers' flushes will read it, for life. */
static int api_gpu_line_make(struct braid *b)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int rc = gpu_alloc(b->gpu.cuda, b->gpu.device, 2 * page, &b->gpu.line);
    if (rc)
        return rc;
    uintptr_t at = ((uintptr_t)b->gpu.line + page - 1) / page * page;
    struct api_gpu_source s = {.addr = (char *)b->gpu.line + (at - (uintptr_t)b->gpu.line), .len = page};
    api_gpu_source_open(b, &s);
    for (unsigned i = 0; i < b->rail_count && !rc; i++) {
        if (s.fd >= 0 && (rc = rail_gpu_line(b->rail[i], NULL, s.fd, s.offset)) != 0)
            api_gpu_source_close(&s);
        if (s.fd < 0)
            rc = rail_gpu_line(b->rail[i], s.addr, -1, 0);
    }
    api_gpu_source_close(&s);
    return rc;
}

int api_gpu_line(struct braid *b)
{
    bool needed = b->mem_kinds & RAIL_WIRE_MEMORY_GPU;
    int device = needed ? b->gpu.device : gpu_current(b->gpu.cuda);
    if (device < 0 || b->gpu.line)
        return 0;
    int rc = api_gpu_claim(b, device);
    if (!rc)
        rc = api_gpu_line_make(b);
    if (!rc)
        return 0;
    for (unsigned i = 0; i < b->rail_count; i++)
        rail_gpu_line_drop(b->rail[i]);
    api_gpu_close(b);
    log_write(&b->log, needed ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO,
              "GPU %d is in use here, but its memory cannot be registered (%s): " API_GPU_HINT, device, strerror(-rc));
    b->gpu.refused = rc;
    return needed ? rc : 0;
}

void api_gpu_close(struct braid *b)
{
    gpu_free(b->gpu.cuda, b->gpu.device, b->gpu.line);
    b->gpu.line = NULL;
}

int api_gpu_of(struct braid *b, const void *addr, size_t len)
{
    int first = gpu_of(b->gpu.cuda, addr), last = gpu_of(b->gpu.cuda, (const char *)addr + len - 1);
    if (first < 0 && last < 0)
        return 0;
    if (first != last) {
        log_write(&b->log, LOG_LEVEL_ERROR,
                  "cannot register %zu bytes at %p: they begin and end in memory of different kinds or GPUs", len,
                  addr);
        return -EINVAL;
    }
    if (b->state != API_OPEN && !b->gpu.line) {
        log_write(&b->log, LOG_LEVEL_ERROR,
                  "cannot register memory of GPU %d: %s; call braid_connect() on a thread whose CUDA context is that "
                  "GPU's, or register such memory before",
                  first,
                  b->gpu.refused ? (const char *)strerror(-b->gpu.refused)
                                 : "peers were not told of a GPU when connecting");
        return b->gpu.refused ? b->gpu.refused : -ENOTSUP;
    }
    int rc = api_gpu_claim(b, first);
    return rc ? rc : (int)RAIL_WIRE_MEMORY_GPU;
}

int api_gpu_reg(struct braid_mem *mem, void *addr, void *alias)
{
    struct braid *b = mem->braid;
    struct api_gpu_source s = {.addr = addr, .len = mem->len, .alias = alias, .iova = mem->remote_addr};
    int rc = 0;
    api_gpu_source_open(b, &s);
    for (unsigned i = 0; i < b->rail_count && !rc; i++) {
        rc = api_gpu_mr(b, i, &s, VERBS_ACCESS_REMOTE, &mem->mr[i]);
        if (!rc && b->options.relaxed)
            rc = api_gpu_mr(b, i, &s, VERBS_ACCESS_RELAXED, &mem->relaxed[i]);
        if (rc)
            log_write(&b->log, LOG_LEVEL_ERROR,
                      "cannot register %zu bytes of GPU memory at %p on port %s: %s%s: " API_GPU_HINT, s.len, addr,
                      b->rail[i]->name, strerror(-rc), rail_hint(rc));
    }
    api_gpu_source_close(&s);
    return rc;
}

int braid_gpu_at(struct braid *b, struct braid_gpu *out)
{
    struct gpu_about about;
    if (!b || !out || out->size != sizeof(*out)) /* grows at its end: then older sizes will be known here */
        return -EINVAL;
    int device = b->gpu.device >= 0 ? b->gpu.device : gpu_current(b->gpu.cuda);
    int rc = device < 0 ? -ENODEV : gpu_about(b->gpu.cuda, device, &about);
    if (rc)
        return rc;
    *out = (struct braid_gpu){
        .size = sizeof(*out),
        .near = (enum braid_near)b->gpu.near,
        .dmabuf = about.dmabuf,
        .host_flush = about.host_flush,
        .ordered = about.ordered,
    };
    memcpy(out->pci, about.pci, sizeof(about.pci));
    return 0;
}
