/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_traffic.c - puts, gets and signals, as one PE: lap by lap it sends what its windows allow, watches what comes in,
 * and makes progress. Called by bench_run.c; next: bench_out.c and bench_in.c.
 */
#include "bench_int.h"

/** All that counts is acknowledged: proves that it has arrived and stops the clock of this lap. */
static int bench_lap_prove(struct bench_pe *p, uint64_t began)
{
    bool everyone = p->run->spec->except == 0;
    int rc = 0;

    if (everyone && p->n_out > 1)
        rc = p->transport->quiet(p->transport_self, BRAID_ALL_PES);
    for (int i = 0; rc == 0 && (!everyone || p->n_out == 1) && i < p->n_out; i++) {
        if (p->out[i].counted)
            rc = p->transport->quiet(p->transport_self, p->out[i].pe);
    }
    p->end_ns = p->run->emu->now();
    p->wall_ns += p->end_ns - began;
    return rc;
}

static int bench_lap_run(struct bench_pe *p)
{
    uint64_t began = p->run->emu->now();
    bool proved = p->n_out == 0;
    int rc = 0;

    p->moved_ns = began;
    while (rc == 0) {
        bool moved = false;
        int n;

        rc = bench_out_issue(p, &moved);
        n = rc ? rc : p->transport->progress(p->transport_self);
        if (n < 0)
            return n;
        moved |= n > 0;
        rc = bench_out_collect(p);
        moved |= bench_in_look(p);
        if (rc == 0 && !proved && bench_out_complete(p, true)) {
            rc = bench_lap_prove(p, began);
            proved = true;
            moved = true; /* others may have moved meanwhile */
        }
        if (rc == 0 && proved && !p->lap_sent && bench_out_complete(p, false)) {
            rc = p->transport->quiet(p->transport_self, BRAID_ALL_PES);
            p->lap_sent = true;
            moved = true;
        }
        if (rc == 0 && !moved && p->lap_sent && bench_in_complete(p))
            break;
        if (moved)
            p->moved_ns = p->run->emu->now();
        else if (rc == 0)
            rc = bench_pe_wait(p);
    }
    return rc;
}

int bench_lap(struct bench_pe *p, uint64_t lap)
{
    int rc;

    bench_out_begin(p, lap);
    bench_in_begin(p, lap);
    rc = bench_pe_meet(p); /* nobody compares a lap that its sender has not begun */
    if (rc == 0)
        rc = bench_lap_run(p);
    if (rc == 0)
        rc = bench_pe_meet(p);
    if (rc == 0)
        bench_in_compare_rest(p);
    return rc;
}

int bench_traffic_pe(struct bench_pe *p)
{
    const struct bench_run *run = p->run;
    uint64_t laps = (run->spec->count + run->lap - 1) / run->lap;
    int rc = bench_pe_wait_start(p);

    for (uint64_t lap = 0; rc == 0 && lap < laps; lap++)
        rc = bench_lap(p, lap);
    return rc;
}
