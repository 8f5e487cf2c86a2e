/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_moe_sync.c - what comes before a dispatch: barriers of a job, made of quiet and of signals in log2 rounds as NVSHMEM
 * makes them, and the counts that nodes tell each other between two of them. Called by bench_moe.c; next: bench_moe_ask.c.
 */
#include "bench_moe.h"

/** Turns until a word has come to a value. */
static int bench_moe_await(struct bench_moe_pe *p, size_t word, uint64_t value)
{
    int rc = 0;

    p->moved_ns = p->pe->run->emu->now();
    while (rc == 0 && (p->taken < p->asked || bench_moe_word(p->pe, word) < value)) {
        rc = bench_moe_turn(p);
        if (bench_moe_lost(p)) {
            p->pe->run->errors++;
            break;
        }
    }
    return rc;
}

static int bench_moe_barrier(struct bench_moe_pe *p)
{
    int n = p->moe->nodes, rc = 0;

    p->generation++;
    while (rc == 0 && p->taken < p->asked)
        rc = bench_moe_turn(p);
    if (rc == 0)
        rc = p->pe->transport->quiet(p->pe->transport_self, BRAID_ALL_PES);
    for (int round = 0; rc == 0 && 1 << round < n; round++) {
        size_t word = bench_moe_sync_at(p->moe, round);

        p->now_ns = p->pe->run->emu->now();
        bench_moe_post(p, &(struct bench_moe_ask){
                              .kind = BENCH_MOE_ADD, .rank = (p->pe->rank + (1 << round)) % n, .to = word, .value = 1});
        rc = bench_moe_await(p, word, p->generation);
    }
    return rc;
}

/** Bytes in place of counts, so that they can be compared. */
static int bench_moe_counts(struct bench_moe_pe *p)
{
    const struct bench_moe *m = p->moe;
    struct bench_pe *pe = p->pe;
    size_t from = bench_moe_counts_from(m), len = bench_moe_counts_len(m);
    int rc;

    bench_fill(pe->mem + from, len, bench_stream_seed(pe->run->spec->seed, pe->pe, 0), 0);
    for (int d = 0; d < m->nodes; d++) {
        if (d != pe->rank)
            bench_moe_post(p, &(struct bench_moe_ask){.kind = BENCH_MOE_PUT,
                                                      .rank = d,
                                                      .to = bench_moe_counts_at(m, pe->rank),
                                                      .from = from,
                                                      .len = len});
    }
    rc = bench_moe_barrier(p);
    for (int d = 0; rc == 0 && d < m->nodes; d++) {
        uint64_t seed = bench_stream_seed(pe->run->spec->seed, bench_job_pe(pe->run, pe->pe, d), 0);

        if (d == pe->rank)
            continue;
        pe->run->compared += len;
        pe->run->errors += bench_differences(pe->mem + bench_moe_counts_at(m, d), len, seed, 0);
    }
    return rc;
}

int bench_moe_notify(struct bench_moe_pe *p)
{
    const struct emu_sim_api *emu = p->pe->run->emu;
    uint64_t began = emu->now();
    int rc = bench_moe_barrier(p);

    if (rc == 0)
        rc = bench_moe_counts(p);
    if (rc == 0)
        rc = bench_moe_barrier(p);
    if (emu->now() - began > p->moe->notify_ns)
        p->moe->notify_ns = emu->now() - began;
    return rc;
}
