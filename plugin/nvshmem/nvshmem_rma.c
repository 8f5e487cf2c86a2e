/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_rma.c - put, get, P and G as the host asks for them: own bytes found in the table of regions, peers' named as the
 * host names them, transfers cut where they are longer than one op. The data path: it may not allocate, lock or call the
 * kernel. Called by the host's threads and its proxy; next: braid_put(), braid_get(), braid_p()
 */
#include "nvshmem.h"

#include <errno.h>
#include <string.h>

int nvs_op_failed(struct nvs_plugin *p, const char *op, int pe, int rc)
{
    nvs_log(&p->log, BRAID_LOG_ERROR, "%s to PE %d failed: %s; NVSHMEM ends the process on that", op, pe,
            strerror(-rc));
    return nvs_status(rc);
}

int nvs_local(struct nvs_plugin *p, unsigned channel, const void *addr, size_t len, struct braid_local *out)
{
    struct nvs_region region;

    if (!nvs_regions_find(&p->regions, channel, addr, len, &region)) {
        nvs_log(&p->log, BRAID_LOG_ERROR,
                "%zu bytes at %p lie in no registered region: expected symmetric memory or a registered buffer", len,
                addr);
        return -ERANGE;
    }
    *out = (struct braid_local){.addr = (void *)(uintptr_t)addr, .mem = region.mem};
    return 0;
}

/* One op's worth, accepted. */
static int nvs_piece(struct nvs_plugin *p, unsigned channel, int pe, int desc, struct braid_remote remote,
                     struct braid_local local, size_t len)
{
    struct braid_channel *ch = p->channel[channel];
    int rc;

    do
        rc = desc == NVS_PUT ? braid_put(ch, pe, remote, local, len, &p->done[channel])
                             : braid_get(ch, pe, local, remote, len, &p->done[channel]);
    while (nvs_again(p, channel, &rc));
    if (!rc)
        nvs_asked(p, channel);
    return rc;
}

static int nvs_piece_wait(struct nvs_plugin *p, unsigned channel, int pe, int desc, struct braid_remote remote,
                          struct braid_local local, size_t len)
{
    struct braid_channel *ch = p->channel[channel];

    return desc == NVS_PUT ? braid_put_wait(ch, pe, remote, local, len) : braid_get_wait(ch, pe, local, remote, len);
}

static int nvs_transfer(struct nvs_plugin *p, unsigned channel, int pe, int desc, bool wait,
                        const struct nvs_rma_mem *remote_mem, const struct nvs_rma_mem *local_mem, size_t len)
{
    struct braid_remote remote = {0};
    struct braid_local local = {0};
    int rc = len ? nvs_local(p, channel, local_mem->ptr, len, &local) : 0;

    if (!rc && len)
        rc = nvs_remote(p, channel, pe, remote_mem, &remote);

    while (!rc && len) {
        size_t now = len < NVS_MAX_OP_LEN ? len : NVS_MAX_OP_LEN;

        nvs_before_op(p, channel, pe);
        rc = wait ? nvs_piece_wait(p, channel, pe, desc, remote, local, now)
                  : nvs_piece(p, channel, pe, desc, remote, local, now);
        remote.addr += now;
        local.addr = (char *)local.addr + now;
        len -= now;
    }
    return rc;
}

int nvs_put(struct nvs_plugin *p, unsigned channel, int pe, const struct nvs_rma_mem *remote,
            const struct nvs_rma_mem *local, size_t len)
{
    return nvs_transfer(p, channel, pe, NVS_PUT, false, remote, local, len);
}

/* The value lies on the caller's stack. */
static int nvs_p(struct nvs_plugin *p, unsigned channel, int pe, const struct nvs_rma_mem *remote_mem, const void *from,
                 size_t bytes)
{
    struct braid_remote remote;
    uint64_t value = 0;
    int rc;

    if (bytes > sizeof(value))
        return -EINVAL;
    memcpy(&value, from, bytes);
    rc = nvs_remote(p, channel, pe, remote_mem, &remote);
    if (rc)
        return rc;
    nvs_before_op(p, channel, pe);
    do
        rc = braid_p(p->channel[channel], pe, remote, value, (unsigned)bytes, &p->done[channel]);
    while (nvs_again(p, channel, &rc));
    if (!rc)
        nvs_asked(p, channel);
    return rc;
}

int nvs_rma(void *transport, int pe, struct nvs_rma_verb verb, struct nvs_rma_mem *remote, struct nvs_rma_mem *local,
            struct nvs_rma_bytes bytes, int qp)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);
    unsigned channel = nvs_channel_of(qp);
    size_t len = nvs_len(&bytes);
    int rc;

    switch (verb.desc) {
    case NVS_PUT:
        rc = nvs_transfer(p, channel, pe, NVS_PUT, !verb.is_nbi, remote, local, len);
        return rc ? nvs_op_failed(p, "a put", pe, rc) : 0;
    case NVS_GET:
    case NVS_G:
        rc = nvs_transfer(p, channel, pe, NVS_GET, !verb.is_nbi, remote, local, len);
        return rc ? nvs_op_failed(p, "a get", pe, rc) : 0;
    case NVS_P:
        rc = nvs_p(p, channel, pe, remote, local->ptr, len);
        return rc ? nvs_op_failed(p, "a P", pe, rc) : 0;
    default:
        nvs_log(&p->log, BRAID_LOG_ERROR, "rma op %d: expected put (1), P (2), get (4) or G (5)", verb.desc);
        return NVS_INVALID_VALUE;
    }
}
