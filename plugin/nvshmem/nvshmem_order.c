/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_order.c - fence, quiet, progress, and what a GPU needs to see what NICs have written. In release order there is no
 * fence at all, since every signal is behind what came before it (docs/ordering.md); the host is told so by a NULL in its
 * table. Called by the host's threads and its proxy; next: braid_fence(), braid_quiet(), braid_progress()
 */
#include "nvshmem.h"

#include <errno.h>

/* The peers that the host means. */
static int nvs_pe_of(int pe)
{
    return pe == NVS_PE_ALL ? BRAID_ALL_PES : pe;
}

int nvs_fence_v3(void *transport, int pe, int is_proxy)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);
    int rc = braid_fence(p->channel[nvs_channel_of(is_proxy)], nvs_pe_of(pe));

    return rc ? nvs_op_failed(p, "a fence", pe, rc) : 0;
}

int nvs_fence_v4(void *transport, int pe, int qp, int is_multi)
{
    (void)is_multi; /* there is one proxy channel */
    return nvs_fence_v3(transport, pe, qp);
}

int nvs_quiet(void *transport, int pe, int qp)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);
    unsigned channel = nvs_channel_of(qp);
    int rc = braid_quiet(p->channel[channel], nvs_pe_of(pe));

    if (!rc && qp == NVS_QP_ANY)
        rc = braid_quiet(p->channel[NVS_HOST_CHANNEL], nvs_pe_of(pe));
    /* What fetches have found is on its way to the GPU still. */
    if (!rc && channel == NVS_PROXY_CHANNEL && __atomic_load_n(&p->fetches.active, __ATOMIC_RELAXED)) {
        rc = nvs_fetch_wait(p);
        if (!rc)
            rc = braid_quiet(p->channel[channel], p->my_pe);
    }
    return rc ? nvs_op_failed(p, "quiet", pe, rc) : 0;
}

/* Ops that nobody waits for fail without a call to say so: the next turn of the proxy does, before somebody waits for ever. */
static int nvs_progress_failed(struct nvs_plugin *p)
{
    uint64_t failed = 0;
    int error = 0;

    for (unsigned i = 0; i < NVS_CHANNELS; i++) {
        uint64_t n = __atomic_load_n(&p->done[i].failed, __ATOMIC_ACQUIRE);

        failed += n;
        if (n && !error)
            error = __atomic_load_n(&p->done[i].error, __ATOMIC_RELAXED);
    }
    if (failed == p->failed_seen)
        return 0;
    p->failed_seen = failed;
    return error;
}

int nvs_progress(void *transport)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);
    int rc = braid_progress(p->channel[NVS_PROXY_CHANNEL]);

    if (rc >= 0) /* not waiting for a thread of the host's that is inside */
        rc = braid_progress_try(p->channel[NVS_HOST_CHANNEL]);
    if (rc >= 0)
        rc = nvs_fetch_drive(p);
    if (rc >= 0)
        rc = nvs_progress_failed(p);
    if (rc >= 0)
        return 0;
    nvs_log(&p->log, BRAID_LOG_ERROR, "an op failed that nobody was waiting for; NVSHMEM ends the process on that");
    return nvs_status(rc);
}

int nvs_enforce_cst(void *transport)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);
    int rc = braid_flush_local(p->channel[NVS_PROXY_CHANNEL]);

    return rc ? nvs_op_failed(p, "making received data visible", p->my_pe, rc) : 0;
}
