/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_mem.c - what is registered: chunks of the symmetric heap, whose handles all PEs exchange, and local buffers. Main
 * thread; another may look things up meanwhile, as NVSHMEM's proxy does. Called by host_open.c and host_rma.c; next: host_call.c.
 */
#include "host_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOST_CHUNK_MAX ((size_t)1 << 31)

static int host_get_handle(struct host *h, void *buf, size_t len, bool local_only, struct nvs_handle *out)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, get_handle));
    static const struct nvs_handle zero;
    int rc;

    memset(out, 0, sizeof(*out));
    if (!fn)
        return 0; /* the host checks */
    rc = host_said(h, "get_mem_handle", h->call->get_handle(h->v, fn, h->t, out, buf, len, local_only));
    if (rc == 0 && memcmp(out, &zero, sizeof(zero)) == 0)
        return host_failed(h, -EIO, "get_mem_handle gave a handle of zeros, which a host never releases");
    return rc;
}

static int host_release(struct host *h, struct nvs_handle *handle)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, release_handle));

    return fn ? host_said(h, "release_mem_handle", ((nvs_release_handle_fn)fn)(handle, h->t)) : 0;
}

/* ---- the heap ---------------------------------------------------------------------------------------------------- */

static int host_grow_chunk(struct host *h, size_t len)
{
    struct host_chunk c = {.offset = h->registered, .len = len};
    size_t n = (size_t)h->w.n_pes;
    struct nvs_handle *mine = calloc(n, sizeof(*mine));
    int rc = 0;

    c.all = calloc(n, sizeof(*c.all));
    if (h->n_chunks == HOST_CHUNKS || !c.all || !mine)
        rc = host_failed(h, -ENOMEM, "no room for another chunk of the heap");
    if (rc == 0)
        rc = host_get_handle(h, (char *)h->o.heap + c.offset, len, false, &c.own);
    for (size_t i = 0; mine && rc == 0 && i < n; i++)
        mine[i] = c.own;
    if (rc == 0)
        rc = h->w.alltoall(h->w.arg, mine, c.all, sizeof(*mine));
    free(mine);
    if (rc) {
        free(c.all);
        return rc;
    }
    h->chunk[h->n_chunks] = c;
    __atomic_store_n(&h->n_chunks, h->n_chunks + 1, __ATOMIC_RELEASE);
    h->registered += len;
    return 0;
}

int host_grow(struct host *h, size_t len)
{
    size_t most = h->o.chunk ? h->o.chunk : HOST_CHUNK_MAX;
    int rc = 0;

    if (len > h->o.heap_len - h->registered)
        return host_failed(h, -ENOMEM, "the heap has %zu bytes left, not %zu", h->o.heap_len - h->registered, len);
    while (rc == 0 && len) {
        size_t part = len < most ? len : most;

        rc = host_grow_chunk(h, part);
        len -= part;
    }
    return rc;
}

int host_shrink(struct host *h)
{
    struct host_chunk *c = h->n_chunks ? &h->chunk[h->n_chunks - 1] : NULL;
    int rc;

    if (!c)
        return host_failed(h, -EINVAL, "nothing of the heap is registered");
    __atomic_store_n(&h->n_chunks, h->n_chunks - 1, __ATOMIC_RELEASE);
    h->registered -= c->len;
    rc = host_release(h, &c->own);
    free(c->all);
    return rc;
}

int host_alias(struct host *h, const void *heap_addr, void *other)
{
    if (!h->v->at.alias_va_map || !h->call->map_add)
        return host_failed(h, -ENOTSUP, "interface %s by %s has no alias map", h->v->name, h->call->name);
    return h->call->map_add(h->alias_map, (void *)(uintptr_t)heap_addr, other);
}

uint64_t host_heap_of(const struct host *h, int pe)
{
    return h->base[pe];
}

/* ---- local buffers ----------------------------------------------------------------------------------------------- */

static struct host_buffer *host_buffer_free(struct host *h)
{
    for (int i = 0; i < HOST_BUFFERS; i++) {
        if (!h->buffer[i].addr)
            return &h->buffer[i];
    }
    return NULL;
}

int host_register(struct host *h, void *addr, size_t len)
{
    const char *first = addr;
    size_t whole = len;
    int rc = 0;

    for (char *at = addr; rc == 0 && len;) {
        size_t part = len < HOST_CHUNK_MAX ? len : HOST_CHUNK_MAX;
        struct host_buffer *b = host_buffer_free(h);

        if (!b)
            return host_failed(h, -ENOMEM, "no room for another buffer");
        rc = host_get_handle(h, at, part, true, &b->handle);
        if (rc)
            return rc;
        b->len = part;
        b->whole = at == first ? whole : 0;
        __atomic_store_n(&b->addr, at, __ATOMIC_RELEASE);
        at += part;
        len -= part;
    }
    return rc;
}

int host_unregister(struct host *h, const void *addr)
{
    const char *first = addr;
    size_t whole = 0;
    int rc = 0;

    for (int i = 0; i < HOST_BUFFERS; i++) {
        if (h->buffer[i].addr == first)
            whole = h->buffer[i].whole;
    }
    if (!whole)
        return host_failed(h, -EINVAL, "no buffer was registered there");
    for (int i = 0; i < HOST_BUFFERS; i++) {
        struct host_buffer *b = &h->buffer[i];
        int one;

        if (!b->addr || b->addr < first || b->addr >= first + whole)
            continue;
        one = host_release(h, &b->handle);
        b->addr = NULL;
        rc = rc ? rc : one;
    }
    return rc;
}

int host_mem_close(struct host *h)
{
    int rc = 0;

    while (h->n_chunks) {
        int one = host_shrink(h);

        rc = rc ? rc : one;
    }
    for (int i = 0; i < HOST_BUFFERS; i++) {
        if (h->buffer[i].addr) {
            int one = host_release(h, &h->buffer[i].handle);

            rc = rc ? rc : one;
        }
    }
    return rc;
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

static const struct host_chunk *host_chunk_at(const struct host *h, size_t offset)
{
    int n = __atomic_load_n(&h->n_chunks, __ATOMIC_ACQUIRE);

    for (int i = 0; i < n; i++) {
        if (offset - h->chunk[i].offset < h->chunk[i].len)
            return &h->chunk[i];
    }
    return NULL;
}

size_t host_local(const struct host *h, const void *addr, size_t len, struct nvs_handle **handle)
{
    size_t offset = (size_t)((const char *)addr - (const char *)h->o.heap), left;
    const struct host_chunk *c = host_chunk_at(h, offset);

    *handle = NULL;
    if (c) {
        *handle = (struct nvs_handle *)(uintptr_t)&c->own;
        left = c->offset + c->len - offset;
        return len < left ? len : left;
    }
    for (int i = 0; i < HOST_BUFFERS; i++) {
        const struct host_buffer *b = &h->buffer[i];
        const char *at = __atomic_load_n(&b->addr, __ATOMIC_ACQUIRE);

        if (!at || (size_t)((const char *)addr - at) >= b->len)
            continue;
        *handle = (struct nvs_handle *)(uintptr_t)&b->handle;
        left = b->len - (size_t)((const char *)addr - at);
        return len < left ? len : left;
    }
    return 0;
}

size_t host_remote(const struct host *h, int pe, size_t offset, size_t len, struct nvs_handle **handle)
{
    const struct host_chunk *c = host_chunk_at(h, offset);
    size_t left;

    *handle = NULL;
    if (!c)
        return 0;
    *handle = &c->all[pe];
    left = c->offset + c->len - offset;
    return len < left ? len : left;
}
