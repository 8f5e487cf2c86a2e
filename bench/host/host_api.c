/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_api.c - what NVSHMEM's host interface does with a transport: calls at once, on the application's thread, with the selector
 * for host threads; quiet and fence over all PEs. Called by tests; next: host_rma.c.
 */
#include "host_int.h"

#include <errno.h>

int host_api_put(struct host *h, int pe, size_t offset, const void *src, size_t len, bool nbi)
{
    return host_rma(h, NVS_PUT, pe, offset, (void *)(uintptr_t)src, len, nbi, NVS_QP_HOST);
}

int host_api_get(struct host *h, int pe, void *dst, size_t offset, size_t len, bool nbi)
{
    return host_rma(h, NVS_GET, pe, offset, dst, len, nbi, NVS_QP_HOST);
}

int host_api_p(struct host *h, int pe, size_t offset, uint64_t value, int bytes)
{
    return host_rma_p(h, pe, offset, value, bytes, NVS_QP_HOST);
}

int host_api_fence(struct host *h)
{
    return host_rma_fence(h, true, NVS_QP_HOST);
}

int host_api_quiet(struct host *h)
{
    return host_rma_quiet_all(h, NVS_QP_HOST);
}

int host_qp_create(struct host *h, int n, int *qp)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, connect_endpoints));
    int rc;

    if (!h->v->ops_v4)
        return host_failed(h, -ENOTSUP, "interface %s has no QPs of the user's", h->v->name);
    for (int i = 0; i < n; i++)
        qp[i] = NVS_QP_DEFAULT;
    rc = host_said(h, "connect_endpoints for QPs of the user's", h->call->connect(h->v, fn, h->t, NULL, 0, qp, n));
    return rc ? rc : h->w.barrier(h->w.arg);
}
