/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_call.c - calls into a plugin from C, by the convention of each interface version. Called by host_proxy.c, host_mem.c
 * and host_open.c; next: the plugin.
 */
#include "host_call.h"

#include <stdlib.h>

static int host_c_connect(const struct nvs_version *v, host_fn fn, void *t, int *ids, int n_ids, int *qp, int n_qp)
{
    return v->ops_v4 ? ((nvs_connect_v4_fn)fn)(t, ids, n_ids, qp, n_qp) : ((nvs_connect_v3_fn)fn)(t, ids, n_ids);
}

static int host_c_get_handle(const struct nvs_version *v, host_fn fn, void *t, struct nvs_handle *out, void *buf,
                             size_t len, bool local_only)
{
    struct nvs_handle in = {{0}}; /* 3a: a CUDA handle of the chunk, which stock ignores */

    if (v->handle_in)
        return ((nvs_get_handle_3a_fn)fn)(out, local_only ? NULL : &in, buf, len, t, local_only);
    return ((nvs_get_handle_fn)fn)(out, buf, len, t, local_only);
}

static int host_c_progress(const struct nvs_version *v, host_fn fn, void *t)
{
    return v->progress_350 ? ((nvs_progress_350_fn)fn)(t, 1) : ((nvs_progress_fn)fn)(t);
}

/* NOLINTNEXTLINE(readability-function-size): as many arguments as the interface has */
static int host_c_rma(const struct nvs_version *v, host_fn fn, void *t, int pe, const struct nvs_rma_verb *verb,
                      struct nvs_rma_mem *remote, struct nvs_rma_mem *local, const struct nvs_rma_bytes *bytes, int qp)
{
    (void)v;
    return ((nvs_rma_fn)fn)(t, pe, *verb, remote, local, *bytes, qp);
}

/** The shorter verb of the versions before 6. */
static struct nvs_amo_verb host_c_verb(const struct nvs_amo_verb_v6 *verb)
{
    return (struct nvs_amo_verb){verb->desc, verb->is_fetch, verb->is_val, verb->is_cmp};
}

static int host_c_amo(const struct nvs_version *v, host_fn fn, void *t, int pe, const struct nvs_amo_verb_v6 *verb,
                      struct nvs_amo_mem *mem, const struct nvs_amo_bytes *bytes, int qp)
{
    if (v->float_amo)
        return ((nvs_amo_v6_fn)fn)(t, pe, NULL, *verb, mem, *bytes, qp);
    return ((nvs_amo_fn)fn)(t, pe, NULL, host_c_verb(verb), mem, *bytes, qp);
}

static int host_c_fence(const struct nvs_version *v, host_fn fn, void *t, int pe, int qp)
{
    return v->ops_v4 ? ((nvs_fence_v4_fn)fn)(t, pe, qp, 0) : ((nvs_fence_v3_fn)fn)(t, pe, qp);
}

static int host_c_quiet(const struct nvs_version *v, host_fn fn, void *t, int pe, int qp)
{
    (void)v;
    return ((nvs_quiet_fn)fn)(t, pe, qp);
}

/* NOLINTNEXTLINE(readability-function-size): as many arguments as the interface has */
static int host_c_put_signal(const struct nvs_version *v, host_fn fn, void *t, int pe, const struct nvs_rma_verb *verb,
                             const struct host_pieces *p, const struct nvs_amo_verb_v6 *signal_verb,
                             struct nvs_amo_mem *signal, const struct nvs_amo_bytes *signal_bytes, int qp)
{
    /* An empty std::vector has no memory at all. */
    struct nvs_vector none = {NULL, NULL, NULL};
    struct nvs_vector remote = {p->remote, p->remote + p->n, p->remote + p->n};
    struct nvs_vector local = {p->local, p->local + p->n, p->local + p->n};
    struct nvs_vector bytes = {p->bytes, p->bytes + p->n, p->bytes + p->n};

    if (p->n == 0)
        remote = local = bytes = none;
    if (v->float_amo)
        return ((nvs_put_signal_v6_fn)fn)(t, pe, *verb, &remote, &local, &bytes, *signal_verb, signal, *signal_bytes,
                                          qp);
    return ((nvs_put_signal_fn)fn)(t, pe, *verb, &remote, &local, &bytes, host_c_verb(signal_verb), signal,
                                   *signal_bytes, qp);
}

/** An empty map as C++ makes it: one bucket, inside, and a load factor of 1. */
static void *host_c_map_new(void)
{
    struct nvs_map *map = calloc(1, sizeof(*map));

    if (!map)
        return NULL;
    map->buckets = &map->inline_bucket;
    map->bucket_count = 1;
    map->rehash_policy[0] = 0x3f800000;
    return map;
}

static void host_c_map_free(void *map)
{
    free(map);
}

const struct host_caller host_caller_c = {
    "C",          host_c_connect, host_c_get_handle, host_c_progress, host_c_rma, host_c_amo,
    host_c_fence, host_c_quiet,   host_c_put_signal, host_c_map_new,  NULL,       host_c_map_free,
};
