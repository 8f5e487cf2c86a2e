/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_rma.c - one request as calls into the plugin: cut at the ends of registrations, structs filled in as NVSHMEM's proxy
 * fills them, which is to say partly: what it leaves uninitialised is poisoned here, and what lay on its stack is overwritten
 * when the call has returned. Called by host_proxy.c and host_api.c; next: host_call.c.
 */
#include "host_int.h"

#include <errno.h>
#include <string.h>

enum { HOST_POISON = 0xa5, HOST_STALE = 0x5c, HOST_PARTS = 64 };

/** Handles for one call: a host's own are stored in vectors, which move when the heap grows, so that pointers end then. */
struct host_lent {
    struct nvs_handle near, far;
};

static void host_lend(const struct host *h, struct host_lent *to, struct nvs_rma_mem *remote, struct nvs_rma_mem *mine)
{
    if (!h->o.lend)
        return;
    to->far = *remote->handle;
    remote->handle = &to->far;
    if (mine && mine->handle) {
        to->near = *mine->handle;
        mine->handle = &to->near;
    }
}

/** The descriptions of one piece. How much of len it takes; 0: not registered. */
static size_t host_piece(const struct host *h, int pe, size_t offset, void *local, size_t len,
                         struct nvs_rma_mem *remote, struct nvs_rma_mem *mine, struct nvs_rma_bytes *bytes)
{
    struct nvs_handle *near_handle, *far_handle;
    size_t n = host_local(h, local, len, &near_handle);

    n = near_handle ? host_remote(h, pe, offset, n, &far_handle) : 0;
    if (!n)
        return 0;
    n = n < h->max_op ? n : (size_t)h->max_op;
    memset(mine, HOST_POISON, sizeof(*mine)); /* offset stays so */
    mine->ptr = local;
    mine->handle = near_handle;
    *remote = (struct nvs_rma_mem){(void *)(uintptr_t)(h->base[pe] + offset), offset, far_handle};
    *bytes = (struct nvs_rma_bytes){n, 1, 1, 1};
    return n;
}

static int host_unregistered(struct host *h, const char *what, int pe, size_t offset, const void *local, size_t len)
{
    return host_failed(h, -EFAULT, "%s of %zu bytes between %p and PE %d's offset %zu: not all of it is registered",
                       what, len, local, pe, offset);
}

int host_rma(struct host *h, int op, int pe, size_t offset, void *local, size_t len, bool nbi, int qp)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, rma));
    struct nvs_rma_verb verb = {op, nbi, 0, NULL};
    struct host_lent lent;
    int rc = 0;

    for (char *at = local; rc == 0 && len;) {
        struct nvs_rma_mem remote, mine;
        struct nvs_rma_bytes bytes;
        size_t n = host_piece(h, pe, offset, at, len, &remote, &mine, &bytes);

        if (!n)
            return host_unregistered(h, op == NVS_GET ? "a get" : "a put", pe, offset, at, len);
        host_lend(h, &lent, &remote, &mine);
        rc = host_said(h, "rma", h->call->rma(h->v, fn, h->t, pe, &verb, &remote, &mine, &bytes, qp));
        memset(&remote, HOST_STALE, sizeof(remote));
        memset(&mine, HOST_STALE, sizeof(mine));
        memset(&lent, HOST_STALE, sizeof(lent));
        offset += n;
        at += n;
        len -= n;
    }
    return rc;
}

int host_rma_p(struct host *h, int pe, size_t offset, uint64_t value, int size, int qp)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, rma));
    struct nvs_rma_mem remote = {(void *)(uintptr_t)(h->base[pe] + offset), offset, NULL}, mine;
    struct nvs_rma_bytes bytes = {1, size, 1, 1};
    struct nvs_rma_verb verb;
    struct host_lent lent;
    int rc;

    if (host_remote(h, pe, offset, (size_t)size, &remote.handle) != (size_t)size)
        return host_unregistered(h, "a P", pe, offset, &value, (size_t)size);
    memset(&verb, HOST_POISON, sizeof(verb));
    memset(&mine, HOST_POISON, sizeof(mine));
    verb.desc = NVS_P;
    verb.is_nbi = 0;
    mine.ptr = &value;
    mine.handle = NULL;
    host_lend(h, &lent, &remote, NULL);
    rc = host_said(h, "rma of a P", h->call->rma(h->v, fn, h->t, pe, &verb, &remote, &mine, &bytes, qp));
    memset(&value, HOST_STALE, sizeof(value));
    memset(&remote, HOST_STALE, sizeof(remote));
    memset(&lent, HOST_STALE, sizeof(lent));
    return rc;
}

/** What an atomic's op is given. -EFAULT where it is not registered. */
static int host_amo_fill(struct host *h, const struct host_request *r, size_t offset, struct nvs_amo_verb_v6 *verb,
                         struct nvs_amo_mem *mem, struct nvs_amo_bytes *bytes)
{
    size_t n = (size_t)r->amo.bytes;

    memset(verb, HOST_POISON, sizeof(*verb));
    memset(bytes, HOST_POISON, sizeof(*bytes));
    memset(mem, 0, sizeof(*mem));
    verb->desc = r->amo.op;
    verb->is_float = 0;
    bytes->elembytes = r->amo.bytes;
    mem->remote = (struct nvs_rma_mem){(void *)(uintptr_t)(h->base[r->pe] + offset), offset, NULL};
    mem->val = r->amo.value;
    mem->cmp = r->amo.compare;
    if (host_remote(h, r->pe, offset, n, &mem->remote.handle) != n)
        return host_unregistered(h, "an atomic", r->pe, offset, NULL, n);
    if (r->amo.op < NVS_AMO_FETCH)
        return 0;
    mem->retptr = (char *)h->o.heap + r->slot;
    mem->retflag = ++h->fetches;
    if (host_local(h, mem->retptr, sizeof(struct nvs_fetch_slot), &mem->ret_handle) < sizeof(struct nvs_fetch_slot))
        return host_unregistered(h, "a fetch's result", h->w.my_pe, r->slot, mem->retptr, 16);
    return 0;
}

int host_rma_amo(struct host *h, const struct host_request *r)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, amo));
    struct nvs_amo_verb_v6 verb;
    struct nvs_amo_mem mem;
    struct nvs_amo_bytes bytes;
    struct host_lent lent;
    int rc = host_amo_fill(h, r, r->offset, &verb, &mem, &bytes);

    if (rc == 0)
        host_lend(h, &lent, &mem.remote, NULL);
    if (rc == 0 && h->o.lend && mem.ret_handle) {
        lent.near = *mem.ret_handle;
        mem.ret_handle = &lent.near;
    }
    if (rc == 0)
        rc = host_said(h, "amo", h->call->amo(h->v, fn, h->t, r->pe, &verb, &mem, &bytes, r->qp));
    memset(&mem, HOST_STALE, sizeof(mem));
    memset(&lent, HOST_STALE, sizeof(lent));
    return rc;
}

int host_rma_put_signal(struct host *h, const struct host_request *r)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v4, put_signal));
    struct nvs_rma_mem remote[HOST_PARTS], local[HOST_PARTS];
    struct nvs_rma_bytes bytes[HOST_PARTS], left;
    struct host_pieces pieces = {remote, local, bytes, 0};
    struct nvs_rma_verb verb = {NVS_PUT, 1, 0, NULL};
    struct nvs_amo_verb_v6 signal_verb;
    struct nvs_amo_bytes signal_bytes;
    struct nvs_amo_mem signal;
    struct host_lent lent[HOST_PARTS + 1];
    size_t done = 0;
    int rc = host_amo_fill(h, r, r->signal, &signal_verb, &signal, &signal_bytes);

    while (rc == 0 && done < r->len) {
        size_t n = pieces.n == HOST_PARTS ? 0
                                          : host_piece(h, r->pe, r->offset + done, (char *)r->local + done,
                                                       r->len - done, &remote[pieces.n], &local[pieces.n], &left);

        if (!n)
            return host_unregistered(h, "a put with signal", r->pe, r->offset, r->local, r->len);
        host_lend(h, &lent[pieces.n], &remote[pieces.n], &local[pieces.n]);
        bytes[pieces.n++] = left;
        done += n;
    }
    if (rc == 0)
        rc = host_said(
            h, "put_signal",
            h->call->put_signal(h->v, fn, h->t, r->pe, &verb, &pieces, &signal_verb, &signal, &signal_bytes, r->qp));
    memset(&signal, HOST_STALE, sizeof(signal));
    memset(remote, HOST_STALE, sizeof(remote));
    memset(lent, HOST_STALE, sizeof(lent));
    return rc;
}

int host_rma_quiet(struct host *h, int pe, int qp)
{
    return host_said(h, "quiet", h->call->quiet(h->v, host_op(h, offsetof(struct nvs_ops_v3, quiet)), h->t, pe, qp));
}

int host_rma_quiet_all(struct host *h, int qp)
{
    int rc = 0;

    for (int pe = 0; rc == 0 && pe < h->w.n_pes; pe++)
        rc = host_rma_quiet(h, pe, qp);
    return rc;
}

int host_rma_fence(struct host *h, bool self, int qp)
{
    host_fn fn = host_op(h, offsetof(struct nvs_ops_v3, fence));
    int rc = 0;

    for (int pe = 0; fn && rc == 0 && pe < h->w.n_pes; pe++) {
        if (self || pe != h->w.my_pe)
            rc = host_said(h, "fence", h->call->fence(h->v, fn, h->t, pe, qp));
    }
    return rc;
}
