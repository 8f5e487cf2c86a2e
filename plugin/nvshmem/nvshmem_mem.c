/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_mem.c - handles: a chunk of the symmetric heap or a buffer of the user's is registered on every rail, and the keys
 * of all of them fill the 512 bytes that the host sends to the peers. Only here are the host's maps looked at, since only here
 * does it promise not to change them. Called by the host's threads; next: braid_mem_reg()
 */
#include "nvshmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct braid_key) == NVS_HANDLE_BYTES, "a handle is a key");

/* Peers name the bytes by the host's own address for them. A user's buffer that has been mapped into the heap has an address of
 * its own, by which alone some drivers can pin it; the map is a host's of 3.3 and later, and NULL where there is none. */
static int nvs_mem_reg(struct nvs_plugin *p, void *buf, size_t len, struct braid_mem **out)
{
    const struct nvs_map_node *node = nvs_map_find(*(const struct nvs_map **)nvs_at(p, p->at->alias_va_map), buf);
    struct braid_mem_options options = {
        .size = sizeof(options), .remote_addr = (uintptr_t)buf, .alias = node ? (void *)(uintptr_t)node->value : NULL};

    return braid_mem_reg(p->braid, buf, len, &options, out);
}

static int nvs_mem_add(struct nvs_plugin *p, void *buf, size_t len, struct nvs_handle *out)
{
    struct nvs_region region = {.start = (uintptr_t)buf, .end = (uintptr_t)buf + len};
    int rc = nvs_mem_reg(p, buf, len, &region.mem);

    if (rc)
        return rc;
    region.key = malloc(sizeof(*region.key));
    rc = region.key ? braid_mem_key(region.mem, region.key) : -ENOMEM;
    if (!rc)
        rc = nvs_regions_add(&p->regions, &region);
    if (rc) {
        braid_mem_dereg(region.mem);
        free(region.key);
        return rc;
    }
    memcpy(out->bytes, region.key->bytes, sizeof(out->bytes));
    return 0;
}

int nvs_get_handle(struct nvs_handle *out, void *buf, size_t len, void *transport, bool local_only)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);
    int rc = -ENOTCONN;

    if (p->channel[NVS_PROXY_CHANNEL]) {
        pthread_mutex_lock(&p->mem_lock);
        rc = nvs_mem_add(p, buf, len, out);
        pthread_mutex_unlock(&p->mem_lock);
    }
    if (rc)
        nvs_log(&p->log, BRAID_LOG_ERROR, "cannot register %zu bytes of %s memory at %p: %s", len,
                local_only ? "local" : "symmetric", buf,
                rc == -ENOTCONN ? "the endpoints are not connected" : strerror(-rc));
    return nvs_status(rc);
}

/*
 * The host of 3.0 to 3.2 passes (out, in, buf, len, transport, local_only), that of 3.3 and 3.4, under the same number,
 * (out, buf, len, transport, local_only). So a4 is a block, or a bool, of which the x86-64 psABI (3.2.3) says that bits 1 to 7
 * are zero; and no block has such an address, see nvs_block_new().
 */
int nvs_get_handle_v3(struct nvs_handle *out, uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4, uintptr_t a5)
{
    if (nvs_block_like(a4))
        return nvs_get_handle(out, (void *)a2, a3, (void *)a4, a5 & 1);
    return nvs_get_handle(out, (void *)a1, a2, (void *)a3, a4 & 1);
}

/* Out of the table first, so that nobody finds it any more. Ops that the host has left without a quiet may still use it, and what a
 * fetch has found may still be on its way there. Where that fails, the registration ends with the context. */
static int nvs_mem_end(struct nvs_plugin *p, const void *key_bytes)
{
    struct nvs_region region;
    int rc = nvs_regions_remove(&p->regions, key_bytes, &region);

    if (rc)
        return rc;
    rc = nvs_fetch_wait(p);
    if (!rc)
        rc = braid_mem_dereg_wait(p->channel[NVS_HOST_CHANNEL], region.mem);
    free(region.key); /* ops use the kept copy, see nvshmem_keys.c */
    return rc;
}

int nvs_release_handle(struct nvs_handle *handle, void *transport)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);
    int rc;

    pthread_mutex_lock(&p->mem_lock);
    rc = nvs_mem_end(p, handle->bytes);
    pthread_mutex_unlock(&p->mem_lock);
    if (rc)
        nvs_log(&p->log, BRAID_LOG_ERROR, "cannot end the registration of a handle: %s",
                rc == -ENOENT ? "it is none that this PE has given" : strerror(-rc));
    return nvs_status(rc);
}
