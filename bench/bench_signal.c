/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_signal.c - the pattern that programs poll on: PE 0 puts a chunk into a ring of PE 1 and adds 1 to PE 1's tail word;
 * PE 1 watches the word and compares a chunk's bytes the moment the word says that it is there. A place in the ring is
 * used again when its signal is acknowledged. Called by bench_run.c; next: the transport.
 */
#include "bench_int.h"

static int bench_signal_send(struct bench_pe *p)
{
    const struct bench_spec *s = p->run->spec;
    struct braid_done puts = {0}, signals = {0};
    int rc = 0;

    p->run->start_ns = p->run->emu->now();
    for (uint64_t k = 0; rc == 0 && k < s->count; k++) {
        size_t at = k % p->run->slots * s->size;

        while (rc == 0 && k - signals.ok - signals.failed >= s->window)
            rc = bench_pe_step(p);
        if (rc)
            break;
        bench_fill(p->mem + at, s->size, s->seed, k);
        rc = bench_pe_put(p, 1, at, s->size, &puts);
        if (rc == 0)
            rc = bench_pe_signal(p, 1, &signals);
    }
    if (rc == 0)
        rc = p->transport->quiet(p->transport_self, 1);
    p->run->end_ns = p->run->emu->now();
    return rc ? rc : puts.error ? puts.error : signals.error;
}

static int bench_signal_receive(struct bench_pe *p)
{
    const struct bench_spec *s = p->run->spec;
    const uint64_t *tail = (const uint64_t *)(const void *)(p->mem + bench_tail_offset(p));
    uint64_t seen = 0;
    int rc = 0;

    while (rc == 0 && seen < s->count) {
        uint64_t now = __atomic_load_n(tail, __ATOMIC_ACQUIRE);

        if (now == seen) {
            rc = bench_pe_step(p);
            continue;
        }
        for (; seen < now && seen < s->count; seen++)
            p->run->errors += bench_differences(p->mem + seen % p->run->slots * s->size, s->size, s->seed, seen);
        if (now > s->count)
            p->run->errors++;
    }
    return rc;
}

int bench_signal_pe(struct bench_pe *p)
{
    int rc = 0;

    if (p->pe == 0)
        rc = bench_signal_send(p);
    else if (p->pe == 1)
        rc = bench_signal_receive(p);
    return rc ? rc : p->run->emu->barrier();
}
