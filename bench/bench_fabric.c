/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fabric.c - what a generator has to know of the shape of the fabric it runs on. Called by bench_run.c; next: emu_sim.h.
 */
#include "bench_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The value of a key in the fabric's own text, which holds every key; NULL where it has no such key. */
static const char *bench_fabric_key(const struct bench_run *run, const char *key)
{
    size_t len = strlen(key);

    for (const char *at = run->emu->fabric(run->sim); at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, key, len) == 0 && at[len] == '=')
            return at + len + 1;
    }
    return NULL;
}

void bench_fabric(struct bench_run *run)
{
    const struct bench_live *live = run->spec->live;
    const char *gpus = bench_fabric_key(run, "gpus"), *topo = bench_fabric_key(run, "topo");
    long n = live ? live_locals(live->job) : gpus ? strtol(gpus, NULL, 10) : 1;

    run->per_node = n > 0 && n <= run->n_pes ? (int)n : 1;
    if (live)
        topo = "live";
    snprintf(run->topo, sizeof(run->topo), "%.*s", topo ? (int)strcspn(topo, ",") : 0, topo ? topo : "");
    run->shared = topo && strncmp(topo, "pxb", 3) == 0;
}
