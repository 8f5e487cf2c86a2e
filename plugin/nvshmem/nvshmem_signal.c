/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_signal.c - put with signal, from version 4 on: the host's vectors of pieces and one signal behind all of them. What
 * fits is one op of braid's; else puts and then the signal, which is behind them as every signal is. The data path.
 * Called by the proxy; next: braid_put_signal(), or nvshmem_rma.c and nvshmem_amo.c
 */
#include "nvshmem.h"

#include <errno.h>

/* What the host passes, whatever the version. */
struct nvs_put_signal_call {
    const struct nvs_rma_mem *remote;
    const struct nvs_rma_mem *local;
    const struct nvs_rma_bytes *bytes;
    size_t count;
    const struct nvs_amo_mem *signal;
    int desc; /* enum nvs_amo */
    unsigned signal_bytes;
};

static bool nvs_signal_set(int desc)
{
    return desc == NVS_AMO_SIGNAL || desc == NVS_AMO_SIGNAL_SET;
}

/* Whether it is one op of braid's. */
static bool nvs_signal_whole(const struct nvs_put_signal_call *c)
{
    bool known = nvs_signal_set(c->desc) || c->desc == NVS_AMO_SIGNAL_ADD || c->desc == NVS_AMO_ADD;

    for (size_t i = 0; known && i < c->count; i++)
        known = nvs_len(&c->bytes[i]) <= NVS_MAX_OP_LEN;
    return known && c->signal_bytes == 8 && c->count <= BRAID_MAX_PARTS;
}

static int nvs_put_signal_once(struct nvs_plugin *p, unsigned channel, int pe, const struct nvs_put_signal_call *c)
{
    struct braid_part parts[BRAID_MAX_PARTS];
    struct braid_remote signal;
    enum braid_signal_op op = nvs_signal_set(c->desc) ? BRAID_SIGNAL_SET : BRAID_SIGNAL_ADD;
    unsigned n = 0;
    int rc = nvs_remote(p, channel, pe, &c->signal->remote, &signal);

    for (size_t i = 0; !rc && i < c->count; i++) {
        size_t len = nvs_len(&c->bytes[i]);

        if (len == 0)
            continue;
        parts[n].len = len;
        rc = nvs_local(p, channel, c->local[i].ptr, len, &parts[n].src);
        if (!rc)
            rc = nvs_remote(p, channel, pe, &c->remote[i], &parts[n].dst);
        n++;
    }
    if (rc)
        return rc;
    nvs_before_op(p, channel, pe);
    do
        rc = braid_put_signal(p->channel[channel], pe, parts, n, signal, op, c->signal->val, &p->done[channel]);
    while (nvs_again(p, channel, &rc));
    return rc;
}

static int nvs_put_signal_parts(struct nvs_plugin *p, unsigned channel, int pe, const struct nvs_put_signal_call *c)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < c->count; i++)
        rc = nvs_put(p, channel, pe, &c->remote[i], &c->local[i], nvs_len(&c->bytes[i]));
    if (!rc)
        rc = nvs_amo_issue(p, channel, pe, c->desc, false, c->signal, c->signal_bytes);
    return rc;
}

/* NOLINTNEXTLINE(readability-function-size): as many arguments as the interface has */
static int nvs_put_signal_call(void *transport, int pe, const struct nvs_rma_verb *verb,
                               const struct nvs_vector *remote, const struct nvs_vector *local,
                               const struct nvs_vector *bytes, int desc, const struct nvs_amo_mem *signal,
                               const struct nvs_amo_bytes *signal_bytes, int qp)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);
    unsigned channel = nvs_channel_of(qp);
    struct nvs_put_signal_call c = {.remote = remote->begin,
                                    .local = local->begin,
                                    .bytes = bytes->begin,
                                    .count = nvs_vector_count(remote, sizeof(*c.remote)),
                                    .signal = signal,
                                    .desc = desc,
                                    .signal_bytes = (unsigned)signal_bytes->elembytes};
    int rc;

    if (nvs_vector_count(local, sizeof(*c.local)) != c.count || nvs_vector_count(bytes, sizeof(*c.bytes)) != c.count)
        return nvs_op_failed(p, "a put with signal whose vectors differ in length", pe, -EINVAL);
    rc = nvs_signal_whole(&c) ? nvs_put_signal_once(p, channel, pe, &c) : nvs_put_signal_parts(p, channel, pe, &c);
    if (!rc)
        nvs_asked(p, channel);
    if (!rc && !verb->is_nbi)
        rc = braid_quiet(p->channel[channel], pe);
    return rc ? nvs_op_failed(p, "a put with signal", pe, rc) : 0;
}

/* NOLINTNEXTLINE(readability-function-size): as many arguments as the interface has */
int nvs_put_signal(void *transport, int pe, struct nvs_rma_verb verb, const struct nvs_vector *remote,
                   const struct nvs_vector *local, const struct nvs_vector *bytes, struct nvs_amo_verb signal_verb,
                   struct nvs_amo_mem *signal, struct nvs_amo_bytes signal_bytes, int qp)
{
    return nvs_put_signal_call(transport, pe, &verb, remote, local, bytes, signal_verb.desc, signal, &signal_bytes, qp);
}

/* NOLINTNEXTLINE(readability-function-size): as many arguments as the interface has */
int nvs_put_signal_v6(void *transport, int pe, struct nvs_rma_verb verb, const struct nvs_vector *remote,
                      const struct nvs_vector *local, const struct nvs_vector *bytes,
                      struct nvs_amo_verb_v6 signal_verb, struct nvs_amo_mem *signal, struct nvs_amo_bytes signal_bytes,
                      int qp)
{
    return nvs_put_signal_call(transport, pe, &verb, remote, local, bytes, signal_verb.desc, signal, &signal_bytes, qp);
}
