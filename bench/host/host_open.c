/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_open.c - start and end of a transport as NVSHMEM does it: load, init, fields, can_reach_peer, connect_endpoints; and at the
 * end release, finalize, unload. Called by bench/ and tests; next: host_load.c, host_call.c.
 */
#include "host_int.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_GRANULARITY = 21 };

const char *host_why(const struct host *h)
{
    return h->why;
}

host_fn host_op(const struct host *h, size_t offset)
{
    host_fn fn;

    memcpy(&fn, (const char *)h->t + h->v->at.ops + offset, sizeof(fn));
    return fn;
}

bool host_has_fence(const struct host *h)
{
    return host_op(h, offsetof(struct nvs_ops_v3, fence)) != NULL;
}

int host_said(struct host *h, const char *op, int status)
{
    if (status == NVS_SUCCESS)
        return 0;
    return host_failed(h, -EIO, "%s returned %d; a host ends there", op, status);
}

/* ---- the bootstrap ----------------------------------------------------------------------------------------------- */

static int host_boot_alltoall(const void *send, void *recv, int bytes, struct nvs_boot *boot)
{
    struct host *h = boot->comm_state;

    return h->w.alltoall(h->w.arg, send, recv, (size_t)bytes) ? NVS_INTERNAL : NVS_SUCCESS;
}

static int host_boot_allgather(const void *send, void *recv, int bytes, struct nvs_boot *boot)
{
    size_t n = (size_t)boot->pg_size, each = (size_t)bytes;
    char *all = malloc(n * each + 1);
    int rc;

    if (!all)
        return NVS_OUT_OF_MEMORY;
    for (size_t i = 0; i < n; i++)
        memcpy(all + i * each, send, each);
    rc = host_boot_alltoall(all, recv, bytes, boot);
    free(all);
    return rc;
}

static int host_boot_barrier(struct nvs_boot *boot)
{
    struct host *h = boot->comm_state;

    return h->w.barrier(h->w.arg) ? NVS_INTERNAL : NVS_SUCCESS;
}

static void host_boot_exit(int status)
{
    fprintf(stderr, "minihost: the plugin asked for an exit with status %d\n", status);
    exit(status ? status : 1);
}

static int host_boot_finalize(struct nvs_boot *boot)
{
    (void)boot;
    return NVS_SUCCESS;
}

static int host_boot_show_info(struct nvs_boot *boot, int style)
{
    (void)boot;
    (void)style;
    return NVS_SUCCESS;
}

static void host_boot_fill(struct host *h)
{
    h->boot = (struct nvs_boot){.version = 1,
                                .pg_rank = h->w.my_pe,
                                .pg_size = h->w.n_pes,
                                .mype_node = h->w.mype_node,
                                .npes_node = h->w.npes_node,
                                .allgather = host_boot_allgather,
                                .alltoall = host_boot_alltoall,
                                .barrier = host_boot_barrier,
                                .global_exit = host_boot_exit,
                                .finalize = host_boot_finalize,
                                .show_info = host_boot_show_info,
                                .comm_state = h};
}

/* ---- init, and what follows -------------------------------------------------------------------------------------- */

static int host_init(struct host *h)
{
    nvs_init_fn init = NULL;
    int number = NVS_API_VERSION(h->v->major), status;

    /* ISO C has no cast from object to function pointer; POSIX promises that the bytes are good. */
    memcpy(&init, &(void *){dlsym(h->lib, NVS_INIT_NAME)}, sizeof(init));
    if (!init)
        return host_failed(h, -ELIBBAD, "%s: no " NVS_INIT_NAME " in it: not a transport of NVSHMEM's", h->o.path);
    host_cuda_fill(h->cuda, h->v);
    host_clock_set(&h->w);
    status = init(&h->t, h->cuda, number);
    if (status || !h->t)
        return host_failed(h, -ELIBBAD, "%s: " NVS_INIT_NAME " returned %d for version %d: a host goes on without it",
                           h->o.path, status, number);
    if (host_int(h, NVS_AT_API_VERSION) / 100 > number / 100)
        return host_failed(h, -ELIBBAD, "%s: says version %d to a host of version %d", h->o.path,
                           host_int(h, NVS_AT_API_VERSION), number);
    return 0;
}

static void host_set(struct host *h, size_t at, const void *value, size_t len)
{
    memcpy((char *)h->t + at, value, len);
}

/** What a host writes into the block behind init. */
static int host_fields(struct host *h)
{
    const struct nvs_layout *at = &h->v->at;
    struct nvs_boot *boot = &h->boot;
    size_t granularity = h->o.log2_granularity ? h->o.log2_granularity : HOST_GRANULARITY;
    int zero = 0;

    h->cap = calloc((size_t)h->w.n_pes, sizeof(*h->cap));
    if (!h->cap)
        return -ENOMEM;
    host_boot_fill(h);
    host_set(h, at->boot, &boot, sizeof(boot));
    host_set(h, NVS_AT_CAP, &h->cap, sizeof(h->cap));
    host_set(h, at->heap_base, &h->o.heap, sizeof(h->o.heap));
    host_set(h, at->log2_granularity, &granularity, sizeof(granularity));
    host_set(h, at->index, &zero, sizeof(zero));
    host_set(h, at->my_pe, &h->w.my_pe, sizeof(int));
    host_set(h, at->n_pes, &h->w.n_pes, sizeof(int));
    memcpy(&h->max_op, (char *)h->t + at->max_op_len, sizeof(h->max_op));
    if (!h->max_op)
        h->max_op = SIZE_MAX;
    host_set(h, at->max_op_len, &h->max_op, sizeof(h->max_op));
    if (!at->alias_va_map)
        return 0;
    h->alias_map = h->call->map_new();
    h->egm_map = h->call->map_new();
    if (!h->alias_map || !h->egm_map)
        return -ENOMEM;
    host_set(h, at->alias_va_map, &h->alias_map, sizeof(h->alias_map));
    host_set(h, at->egm_map, &h->egm_map, sizeof(h->egm_map));
    return 0;
}

static int host_reach(struct host *h)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, can_reach_peer));
    int rc = 0;

    for (int pe = 0; rc == 0 && pe < h->w.n_pes; pe++) {
        struct nvs_pe_info info = {.pe = pe, .host_hash = (uint64_t)(pe / h->w.npes_node) + 1};

        rc = host_said(h, "can_reach_peer", ((nvs_can_reach_fn)fn)(&h->cap[pe], &info, h->t));
        if (rc == 0 && !(h->cap[pe] & NVS_CAP_CPU_WRITE))
            rc = host_failed(h, -EIO, "can_reach_peer says %#x of PE %d: no way to write to it", (unsigned)h->cap[pe],
                             pe);
    }
    return rc;
}

/** Devices: all that the plugin has, best first, as many as a PE's share; -1 where it looks after them itself. */
static int host_connect(struct host *h)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, connect_endpoints));
    int n = host_int(h, h->v->at.n_devices), share = n / h->w.npes_node, ids[64];
    int rc;

    share = n <= 1 || share < 1 ? 1 : share > 64 ? 64 : share;
    for (int i = 0; i < share; i++)
        ids[i] = n <= 1 ? n - 1 : i;
    rc = host_said(h, "connect_endpoints", h->call->connect(h->v, fn, h->t, ids, share, NULL, 0));
    if (rc == 0)
        rc = h->w.barrier(h->w.arg);
    h->connected = rc == 0;
    return rc;
}

/** Where everybody's heap begins. */
static int host_heaps(struct host *h)
{
    size_t n = (size_t)h->w.n_pes;
    uint64_t *mine = calloc(n, sizeof(*mine));
    int rc = mine ? 0 : -ENOMEM;

    h->base = calloc(n, sizeof(*h->base));
    h->ring = calloc(HOST_ROOM, sizeof(*h->ring));
    if (!h->base || !h->ring)
        rc = -ENOMEM;
    for (size_t i = 0; rc == 0 && i < n; i++)
        mine[i] = (uintptr_t)h->o.heap;
    if (rc == 0)
        rc = h->w.alltoall(h->w.arg, mine, h->base, sizeof(*mine));
    free(mine);
    return rc;
}

int host_open(const struct host_options *o, const struct host_world *w, struct host **out, char *why, size_t why_len)
{
    struct host *h = calloc(1, sizeof(*h));
    int rc;

    if (!h)
        return -ENOMEM;
    h->o = *o;
    h->w = *w;
    h->v = o->version;
    h->call = o->caller ? o->caller : &host_caller_c;
    rc = h->v ? 0 : host_version(o->path, NULL, &h->v, h->why, sizeof(h->why));
    if (rc == 0)
        rc = host_load(h);
    if (rc == 0 && !host_is_braid(o->path))
        rc = host_got_redirect(h->lib);
    if (rc == 0)
        rc = host_init(h);
    if (rc == 0)
        rc = host_fields(h);
    if (rc == 0)
        rc = host_reach(h);
    if (rc == 0)
        rc = host_heaps(h);
    if (rc == 0)
        rc = host_connect(h);
    if (rc) {
        snprintf(why, why_len, "%s", h->why[0] ? h->why : strerror(-rc));
        host_close(h);
        return rc;
    }
    *out = h;
    return 0;
}

/** A block is the plugin's, and nobody frees it: neither it nor a host of NVSHMEM's. What is left so is kept in sight here. */
static void host_leave(void *block)
{
    static void *volatile left[4096]; /* or it would be optimized away, as nobody reads it */
    static unsigned n;

    left[__atomic_fetch_add(&n, 1, __ATOMIC_RELAXED) % (sizeof(left) / sizeof(left[0]))] = block;
}

int host_close(struct host *h)
{
    int rc = 0, one = 0;
    bool initialized;

    if (!h)
        return 0;
    if (h->connected)
        rc = host_mem_close(h);
    initialized = h->t && ((const char *)h->t)[h->v->at.initialized];
    if (initialized)
        one = host_said(h, "finalize", ((nvs_finalize_fn)host_op(h, offsetof(struct nvs_ops_v3, finalize)))(h->t));
    if (h->lib)
        dlclose(h->lib);
    if (h->alias_map)
        h->call->map_free(h->alias_map);
    if (h->egm_map)
        h->call->map_free(h->egm_map);
    free(h->cap);
    free(h->base);
    free(h->ring);
    host_leave(h->t);
    free(h);
    return rc ? rc : one;
}
