/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_moe_ask.c - what device code asks NVSHMEM's proxy thread for, and the proxy: it takes requests in their order, a batch
 * between two looks at its completions, and waits where the transport takes no more. Called by bench_moe.c; next: the transport.
 */
#include "bench_moe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BENCH_MOE_BATCH = 32,    /* NVSHMEM's */
    BENCH_MOE_FENCES = 32,   /* all lanes of a warp call the fence, and each posts a request where there is one */
    BENCH_MOE_ROOM = 256,    /* a power of two */
    BENCH_MOE_LOOK_NS = 1000 /* kernels go on while the proxy works; they are looked after so often */
};

void bench_moe_post(struct bench_moe_pe *p, const struct bench_moe_ask *a)
{
    size_t room = p->room ? 2 * p->room : BENCH_MOE_ROOM;
    struct bench_moe_ask *to;

    if (p->asked - p->taken == p->room) {
        to = calloc(room, sizeof(*to));
        if (!to) {
            p->rc = -ENOMEM;
            return;
        }
        for (size_t i = p->taken; i < p->asked; i++)
            to[i & (room - 1)] = p->ask[i & (p->room - 1)];
        free(p->ask);
        p->ask = to;
        p->room = room;
    }
    p->ask[p->asked & (p->room - 1)] = *a;
    p->ask[p->asked++ & (p->room - 1)].at_ns = p->now_ns + p->pe->run->spec->moe.see_ns;
}

void bench_moe_fence(struct bench_moe_pe *p)
{
    for (int i = 0; p->fences && i < BENCH_MOE_FENCES; i++)
        bench_moe_post(p, &(struct bench_moe_ask){.kind = BENCH_MOE_FENCE});
}

void bench_moe_signal(struct bench_moe_pe *p, int rank, size_t word, uint64_t value)
{
    if (rank != p->pe->rank)
        bench_moe_fence(p);
    bench_moe_post(p, &(struct bench_moe_ask){.kind = BENCH_MOE_ADD, .rank = rank, .to = word, .value = value});
}

static int bench_moe_hand_over(struct bench_moe_pe *p, const struct bench_moe_ask *a)
{
    struct bench_pe *pe = p->pe;
    const struct bench_transport *t = pe->transport;
    struct bench_atomic add = {.op = BENCH_OP_ADD, .bytes = 8, .operand = a->value};

    if (a->kind == BENCH_MOE_FENCE)
        return t->fence(pe->transport_self);
    if (a->kind == BENCH_MOE_PUT)
        return t->put(pe->transport_self, a->rank, pe->remote[a->rank] + a->to, pe->mem + a->from, a->len, NULL);
    return t->atomic(pe->transport_self, a->rank, pe->remote[a->rank] + a->to, &add, NULL, NULL);
}

/* Behind a request that was taken, as braid's plugin does (nvs_asked()): 0 or more, or a negative errno. */
static int bench_moe_keep_up(struct bench_moe_pe *p)
{
    const struct bench_transport *t = p->pe->transport;

    return t->progress_soon ? t->progress_soon(p->pe->transport_self) : 0;
}

int bench_moe_take(struct bench_moe_pe *p)
{
    const struct emu_sim_api *emu = p->pe->run->emu;
    int n = 0, rc;

    for (; n < BENCH_MOE_BATCH && p->taken < p->asked; n++) {
        const struct bench_moe_ask a =
            p->ask[p->taken & (p->room - 1)]; /* more may be asked for while it is handed over */

        if (a.at_ns > emu->now()) {
            p->next_ns = a.at_ns < p->next_ns ? a.at_ns : p->next_ns;
            break;
        }
        if (!p->paid && !p->pe->transport->has_proxy)
            emu->charge(BENCH_PROXY_NS);
        p->paid = true;
        rc = bench_moe_hand_over(p, &a);
        if (rc == -EAGAIN)
            break;
        if (rc >= 0)
            rc = bench_moe_keep_up(p);
        if (rc < 0)
            return rc;
        p->paid = false;
        p->taken++;
        if (emu->now() - p->now_ns >= BENCH_MOE_LOOK_NS)
            bench_moe_kernels(p);
    }
    return p->rc ? p->rc : n;
}
