/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_proxy.c - device code's requests, and the proxy thread's loop that takes them: a batch, then progress. What 3.5.0
 * does wrong (device fences never reach the plugin) is done wrong here too. Called by bench/ and tests; next: host_rma.c.
 */
#include "host_int.h"

#include <errno.h>
#include <string.h>

/* ---- device code ------------------------------------------------------------------------------------------------- */

static int host_post(struct host *h, const struct host_request *r)
{
    if (h->tail - h->head == HOST_ROOM)
        return -EAGAIN;
    if (r->pe < 0 || r->pe >= h->w.n_pes)
        return host_failed(h, -EINVAL, "PE %d of %d", r->pe, h->w.n_pes);
    h->ring[h->tail++ % HOST_ROOM] = *r;
    return 0;
}

int host_put(struct host *h, int pe, size_t offset, const void *src, size_t len)
{
    return host_put_qp(h, pe, offset, src, len, NVS_QP_DEFAULT);
}

int host_put_qp(struct host *h, int pe, size_t offset, const void *src, size_t len, int qp)
{
    return host_post(
        h, &(struct host_request){
               .kind = HOST_PUT, .pe = pe, .qp = qp, .offset = offset, .len = len, .local = (void *)(uintptr_t)src});
}

int host_get(struct host *h, int pe, void *dst, size_t offset, size_t len)
{
    return host_post(h,
                     &(struct host_request){
                         .kind = HOST_GET, .pe = pe, .qp = NVS_QP_DEFAULT, .offset = offset, .len = len, .local = dst});
}

int host_p(struct host *h, int pe, size_t offset, uint64_t value, int bytes)
{
    return host_post(
        h, &(struct host_request){
               .kind = HOST_P, .pe = pe, .qp = NVS_QP_DEFAULT, .offset = offset, .len = (size_t)bytes, .value = value});
}

int host_amo(struct host *h, int pe, size_t offset, const struct host_amo *amo, size_t slot)
{
    return host_post(
        h, &(struct host_request){
               .kind = HOST_AMO, .pe = pe, .qp = NVS_QP_DEFAULT, .offset = offset, .amo = *amo, .slot = slot});
}

int host_put_signal(struct host *h, int pe, size_t offset, const void *src, size_t len, size_t signal, int op,
                    uint64_t value)
{
    struct host_amo amo = {.op = op, .bytes = 8, .value = value};
    int rc;

    if (h->v->ops_v4)
        return host_post(h, &(struct host_request){.kind = HOST_PUT_SIGNAL,
                                                   .pe = pe,
                                                   .qp = NVS_QP_DEFAULT,
                                                   .offset = offset,
                                                   .len = len,
                                                   .local = (void *)(uintptr_t)src,
                                                   .amo = amo,
                                                   .signal = signal});
    if (HOST_ROOM - (h->tail - h->head) < 3)
        return -EAGAIN;
    rc = len ? host_put(h, pe, offset, src, len) : 0;
    /* Whether or not fences are needed: device code of those releases does not ask here. */
    if (rc == 0)
        rc = host_post(h, &(struct host_request){.kind = HOST_FENCE, .qp = NVS_QP_DEFAULT});
    return rc ? rc : host_amo(h, pe, signal, &amo, 0);
}

int host_fence(struct host *h)
{
    return host_has_fence(h) ? host_post(h, &(struct host_request){.kind = HOST_FENCE, .qp = NVS_QP_DEFAULT}) : 0;
}

int host_cst(struct host *h)
{
    return host_post(h, &(struct host_request){.kind = HOST_CST});
}

size_t host_waiting(const struct host *h)
{
    return (size_t)(h->tail - h->head);
}

/* ---- the proxy --------------------------------------------------------------------------------------------------- */

/** What device quiet gives as the selector. */
static int host_quiet_selector(const struct host *h)
{
    return h->v->ops_v4 && !h->v->progress_350 ? NVS_QP_ANY : NVS_QP_DEFAULT;
}

static int host_flush(struct host *h)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, enforce_cst));

    if (h->v->ops_v4)
        fn = host_op(h, offsetof(struct nvs_ops_v4, enforce_cst));
    h->gets = false;
    return h->o.cst && fn ? host_said(h, "enforce_cst", ((nvs_enforce_cst_fn)fn)(h->t)) : 0;
}

static int host_take_quiet(struct host *h)
{
    int rc = host_rma_quiet_all(h, host_quiet_selector(h));

    return rc == 0 && h->gets ? host_flush(h) : rc;
}

static int host_take(struct host *h, const struct host_request *r)
{
    switch (r->kind) {
    case HOST_PUT:
        return host_rma(h, NVS_PUT, r->pe, r->offset, r->local, r->len, true, r->qp);
    case HOST_GET:
        h->gets = true;
        return host_rma(h, NVS_GET, r->pe, r->offset, r->local, r->len, true, r->qp);
    case HOST_P:
        return host_rma_p(h, r->pe, r->offset, r->value, (int)r->len, r->qp);
    case HOST_AMO:
        h->gets |= r->amo.op >= NVS_AMO_FETCH;
        return host_rma_amo(h, r);
    case HOST_PUT_SIGNAL:
        return host_rma_put_signal(h, r);
    case HOST_FENCE:
        return h->v->progress_350 ? 0 : host_rma_fence(h, false, r->qp);
    case HOST_QUIET:
        return host_take_quiet(h);
    default:
        return host_flush(h);
    }
}

int host_step(struct host *h)
{
    host_fn progress = host_op(h, offsetof(struct nvs_ops_v3, progress));
    int n = 0, rc = 0;

    while (rc == 0 && n < HOST_BATCH && h->head < h->tail) {
        /* Copied: an op may wait, and the PE's device code may post meanwhile. */
        struct host_request r = h->ring[h->head % HOST_ROOM];

        if (h->o.proxy_ns)
            h->w.charge(h->w.arg, h->o.proxy_ns);
        rc = host_take(h, &r);
        h->head++;
        n++;
    }
    /* The proxy looks at its ring in every turn, so polls of the next turn are no sign of idleness: in virtual time the second of
     * them would sleep, without a deadline, although there are requests, or a caller who waits for no event. */
    h->w.charge(h->w.arg, 0);
    if (rc == 0 && progress)
        rc = host_said(h, "progress", h->call->progress(h->v, progress, h->t));
    return rc ? rc : n;
}

int host_quiet(struct host *h)
{
    uint64_t mine;
    int rc;

    while ((rc = host_post(h, &(struct host_request){.kind = HOST_QUIET})) == -EAGAIN) {
        rc = host_step(h);
        if (rc < 0)
            return rc;
    }
    mine = h->tail;
    while (rc >= 0 && h->head < mine)
        rc = host_step(h);
    return rc < 0 ? rc : 0;
}

int host_quiet_qp(struct host *h, int pe, int qp)
{
    int rc = 0;

    while (rc >= 0 && h->head < h->tail)
        rc = host_step(h);
    return rc < 0 ? rc : host_rma_quiet(h, pe, qp);
}

static uint64_t host_swapped(uint64_t v, int bytes)
{
    return bytes == 8 ? __builtin_bswap64(v) : bytes == 4 ? __builtin_bswap32((uint32_t)v) : v;
}

int host_fetched(struct host *h, size_t slot, int bytes, uint64_t *value)
{
    struct nvs_fetch_slot *s = (struct nvs_fetch_slot *)(void *)((char *)h->o.heap + slot);
    bool on_quiet = ((const char *)h->t)[h->v->at.atomics_complete_on_quiet];
    uint64_t data;
    int rc;

    if (on_quiet) {
        rc = host_quiet(h);
        if (rc)
            return rc;
    } else if (__atomic_load_n(&s->flag, __ATOMIC_ACQUIRE) == 0) {
        return 0;
    }
    data = s->data;
    if (on_quiet && bytes < host_int(h, h->v->at.atomic_host_endian_min_size))
        data = host_swapped(data, bytes);
    *value = bytes == 4 ? (uint32_t)data : data;
    return 1;
}
