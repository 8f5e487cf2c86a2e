/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_put.c - a stream of puts from PE 0 to PE 1, window puts outstanding, each to a place of its own; PE 1 compares every
 * byte when all is done. Called by bench_run.c; next: the transport.
 */
#include "bench_int.h"

static int bench_put_send(struct bench_pe *p)
{
    const struct bench_spec *s = p->run->spec;
    struct braid_done done = {0};
    int rc = 0;

    for (uint64_t k = 0; k < s->count; k++)
        bench_fill(p->mem + k * s->size, s->size, s->seed, k);
    p->run->start_ns = p->run->emu->now();
    for (uint64_t k = 0; rc == 0 && k < s->count; k++) {
        while (rc == 0 && k - done.ok - done.failed >= s->window)
            rc = bench_pe_step(p);
        if (rc == 0)
            rc = bench_pe_put(p, 1, k * s->size, s->size, &done);
    }
    if (rc == 0)
        rc = p->transport->quiet(p->transport_self, 1);
    p->run->end_ns = p->run->emu->now();
    return rc ? rc : done.error;
}

int bench_put_pe(struct bench_pe *p)
{
    const struct bench_spec *s = p->run->spec;
    int rc = 0;

    if (p->pe == 0)
        rc = bench_put_send(p);
    if (rc)
        return rc;
    rc = p->run->emu->barrier();
    for (uint64_t k = 0; rc == 0 && p->pe == 1 && k < s->count; k++)
        p->run->errors += bench_differences(p->mem + k * s->size, s->size, s->seed, k);
    return rc;
}
