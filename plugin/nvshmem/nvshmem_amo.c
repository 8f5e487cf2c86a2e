/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_amo.c - atomics and signals. What devices have is one request on the way to the target's home rail, everything else is
 * executed by the target's proxy; so that all of NVSHMEM's work, those included on which other transports end the process.
 * What the host passes lies on its stack and is copied before the call returns. The data path. Called by the proxy; next:
 * braid_atomic() and braid_signal_set(), for results nvshmem_fetch.c
 */
#include "nvshmem.h"

#include <errno.h>
#include <string.h>

/* What an atomic is to braid. */
struct nvs_amo_row {
    bool known;
    bool fetch;
    bool one;    /* the operand is 1 */
    bool signal; /* a write, not an atomic: as in every transport that has no atomic write */
    enum braid_atomic_op op;
};

static const struct nvs_amo_row nvs_amo_rows[] = {
    [NVS_AMO_INC] = {.known = true, .one = true, .op = BRAID_ATOMIC_ADD},
    [NVS_AMO_SET] = {.known = true, .op = BRAID_ATOMIC_SET},
    [NVS_AMO_ADD] = {.known = true, .op = BRAID_ATOMIC_ADD},
    [NVS_AMO_AND] = {.known = true, .op = BRAID_ATOMIC_AND},
    [NVS_AMO_OR] = {.known = true, .op = BRAID_ATOMIC_OR},
    [NVS_AMO_XOR] = {.known = true, .op = BRAID_ATOMIC_XOR},
    [NVS_AMO_SIGNAL] = {.known = true, .signal = true},
    [NVS_AMO_SIGNAL_SET] = {.known = true, .signal = true},
    [NVS_AMO_SIGNAL_ADD] = {.known = true, .op = BRAID_ATOMIC_ADD},
    [NVS_AMO_FETCH] = {.known = true, .fetch = true, .op = BRAID_ATOMIC_FETCH},
    [NVS_AMO_FETCH_INC] = {.known = true, .fetch = true, .one = true, .op = BRAID_ATOMIC_FETCH_ADD},
    [NVS_AMO_FETCH_ADD] = {.known = true, .fetch = true, .op = BRAID_ATOMIC_FETCH_ADD},
    [NVS_AMO_FETCH_AND] = {.known = true, .fetch = true, .op = BRAID_ATOMIC_FETCH_AND},
    [NVS_AMO_FETCH_OR] = {.known = true, .fetch = true, .op = BRAID_ATOMIC_FETCH_OR},
    [NVS_AMO_FETCH_XOR] = {.known = true, .fetch = true, .op = BRAID_ATOMIC_FETCH_XOR},
    [NVS_AMO_SWAP] = {.known = true, .fetch = true, .op = BRAID_ATOMIC_SWAP},
    [NVS_AMO_COMPARE_SWAP] = {.known = true, .fetch = true, .op = BRAID_ATOMIC_COMPARE_SWAP},
};

/* One atomic of one host call. */
struct nvs_amo_call {
    struct nvs_plugin *p;
    unsigned channel;
    int pe;
    struct braid_remote remote;
    struct braid_atomic atomic;
};

static int nvs_amo_signal(const struct nvs_amo_call *c)
{
    struct braid_channel *ch = c->p->channel[c->channel];
    struct braid_done *done = &c->p->done[c->channel];
    int rc;

    do
        rc = c->atomic.bytes == 8 ? braid_signal_set(ch, c->pe, c->remote, c->atomic.operand, done)
                                  : braid_p(ch, c->pe, c->remote, c->atomic.operand, c->atomic.bytes, done);
    while (nvs_again(c->p, c->channel, &rc));
    return rc;
}

static int nvs_amo_send(const struct nvs_amo_call *c, uint64_t *old, struct braid_done *done)
{
    int rc;

    do
        rc = braid_atomic(c->p->channel[c->channel], c->pe, c->remote, &c->atomic, old, done);
    while (nvs_again(c->p, c->channel, &rc));
    return rc;
}

/* The result goes to the GPU when it comes, on the proxy's channel. A thread of the host's waits for it. */
static int nvs_amo_fetch(const struct nvs_amo_call *c, const struct nvs_amo_mem *mem)
{
    struct nvs_plugin *p = c->p;
    struct braid_remote slot;
    struct nvs_fetch *fetch;
    uint64_t old;
    int rc;

    if (c->channel == NVS_HOST_CHANNEL) {
        rc = braid_atomic_wait(p->channel[c->channel], c->pe, c->remote, &c->atomic, &old);
        return rc ? rc : nvs_fetch_deliver(p, c->channel, mem, old);
    }
    rc = nvs_fetch_slot_at(p, c->channel, mem->retptr, &slot);
    if (!rc)
        rc = nvs_fetch_take(p, &fetch);
    if (rc)
        return rc;
    fetch->flag = mem->retflag;
    fetch->slot = slot;
    rc = nvs_amo_send(c, &fetch->old, &fetch->done);
    if (rc)
        nvs_fetch_drop(fetch);
    return rc;
}

static uint64_t nvs_float_sum(uint64_t a, uint64_t b, unsigned bytes)
{
    uint64_t sum = 0;

    if (bytes == 8) {
        double x, y;

        memcpy(&x, &a, sizeof(x));
        memcpy(&y, &b, sizeof(y));
        x += y;
        memcpy(&sum, &x, sizeof(x));
    } else {
        float x, y;

        memcpy(&x, &a, sizeof(x));
        memcpy(&y, &b, sizeof(y));
        x += y;
        memcpy(&sum, &x, sizeof(x));
    }
    return sum;
}

/*
 * No device and no target's executor adds floats: the word is read, added to here, and swapped in if it is still what was
 * read. The caller waits, so that a signal behind the add stays behind it; the whole progress runs meanwhile.
 */
static int nvs_amo_float(const struct nvs_amo_call *c, const struct nvs_amo_mem *mem, bool fetch)
{
    struct braid_channel *ch = c->p->channel[c->channel];
    struct braid_atomic read = {.op = BRAID_ATOMIC_FETCH, .bytes = c->atomic.bytes};
    struct braid_atomic swap = {.op = BRAID_ATOMIC_COMPARE_SWAP, .bytes = c->atomic.bytes};
    uint64_t seen = 0;
    int rc = braid_atomic_wait(ch, c->pe, c->remote, &read, &seen);

    if (rc)
        return rc;
    do {
        swap.compare = seen;
        swap.operand = nvs_float_sum(seen, c->atomic.operand, c->atomic.bytes);
        rc = braid_atomic_wait(ch, c->pe, c->remote, &swap, &seen);
    } while (!rc && seen != swap.compare);
    return rc || !fetch ? rc : nvs_fetch_deliver(c->p, c->channel, mem, seen);
}

int nvs_amo_issue(struct nvs_plugin *p, unsigned channel, int pe, int desc, bool is_float,
                  const struct nvs_amo_mem *mem, unsigned bytes)
{
    struct nvs_amo_row row = {0};
    struct nvs_amo_call c = {.p = p, .channel = channel, .pe = pe};
    int rc;

    if (desc >= 0 && (size_t)desc < sizeof(nvs_amo_rows) / sizeof(nvs_amo_rows[0]))
        row = nvs_amo_rows[desc];
    if (!row.known || (bytes != 4 && bytes != 8)) {
        nvs_log(&p->log, BRAID_LOG_ERROR, "atomic %d on %u bytes%s: expected one of NVSHMEM's, on 4 or 8", desc, bytes,
                is_float ? " of a float" : "");
        return -ENOTSUP;
    }
    rc = nvs_remote(p, channel, pe, &mem->remote, &c.remote);
    if (rc)
        return rc;
    c.atomic =
        (struct braid_atomic){.op = row.op, .bytes = bytes, .operand = row.one ? 1 : mem->val, .compare = mem->cmp};
    nvs_before_op(p, channel, pe);
    if (is_float && (row.op == BRAID_ATOMIC_FETCH_ADD || row.op == BRAID_ATOMIC_ADD) && !row.signal && !row.one)
        return nvs_amo_float(&c, mem, row.fetch);
    if (row.signal)
        return nvs_amo_signal(&c);
    return row.fetch ? nvs_amo_fetch(&c, mem) : nvs_amo_send(&c, NULL, &p->done[channel]);
}

static int nvs_amo_call(void *transport, int pe, int desc, bool is_float, const struct nvs_amo_mem *mem, int bytes,
                        int qp)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);
    int rc = nvs_amo_issue(p, nvs_channel_of(qp), pe, desc, is_float, mem, (unsigned)bytes);

    if (!rc)
        nvs_asked(p, nvs_channel_of(qp));
    return rc ? nvs_op_failed(p, "an atomic", pe, rc) : 0;
}

int nvs_amo(void *transport, int pe, void *unused, struct nvs_amo_verb verb, struct nvs_amo_mem *mem,
            struct nvs_amo_bytes bytes, int qp)
{
    (void)unused;
    return nvs_amo_call(transport, pe, verb.desc, false, mem, bytes.elembytes, qp);
}

int nvs_amo_v6(void *transport, int pe, void *unused, struct nvs_amo_verb_v6 verb, struct nvs_amo_mem *mem,
               struct nvs_amo_bytes bytes, int qp)
{
    (void)unused;
    return nvs_amo_call(transport, pe, verb.desc, verb.is_float != 0, mem, bytes.elembytes, qp);
}
