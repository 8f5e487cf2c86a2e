/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_world.c - the world that emu_sim.h describes, as a job of processes: time is the machine's, a meeting is one of processes, and
 * run() is this process's PE alone. Generators are the same in both. Called by bench/; next: live_job.c.
 */
#include "live_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls of the table that a PE makes name no world: a process is in one. */
static struct live *live_this;

static int live_world_open(const struct emu_sim_options *options, struct emu_sim **out, char *why, size_t why_len)
{
    (void)options;
    (void)why;
    (void)why_len;
    *out = NULL; /* the job is there already, and outlives the run */
    return 0;
}

static void live_world_close(struct emu_sim *sim)
{
    (void)sim;
}

static int live_world_pes(const struct emu_sim *sim)
{
    (void)sim;
    return live_this->n;
}

static int live_world_list(const struct emu_sim *sim, int pe, char *out, size_t len)
{
    (void)sim;
    (void)pe;
    if (len)
        out[0] = '\0';
    return 0;
}

static const char *live_world_fabric(const struct emu_sim *sim)
{
    (void)sim;
    return live_this->fabric;
}

static int live_world_run(struct emu_sim *sim, emu_sim_main_fn fn, void *arg, char *why, size_t why_len)
{
    int rc = fn(arg, live_this->pe);

    (void)sim;
    if (rc && live_this->why[0])
        snprintf(why, why_len, "PE %d: %s", live_this->pe, live_this->why);
    return rc;
}

static int live_world_port(const struct emu_sim *sim, int i, struct emu_sim_port *out)
{
    (void)sim;
    (void)i;
    (void)out;
    return -ENOENT;
}

static uint64_t live_world_zero(const struct emu_sim *sim)
{
    (void)sim;
    return 0;
}

static int live_world_pe(void)
{
    return live_this->pe;
}

static void live_world_charge(uint64_t ns)
{
    (void)ns;
}

static int live_world_wait(uint64_t deadline_ns)
{
    uint64_t now = live_now();

    return now < deadline_ns ? live_nap(live_this, now)
                             : 0; /* inside libbraid; when something moved last is not known */
}

static int live_world_barrier(void)
{
    return live_meet(live_this, NULL, NULL);
}

static int live_world_alltoall(const void *send, void *recv, size_t bytes_each)
{
    struct live *l = live_this;
    size_t all = (size_t)l->n * bytes_each;
    char *theirs = malloc(all ? all : 1);
    int rc = theirs ? live_share(l, send, all) : -ENOMEM;

    for (int i = 0; rc == 0 && i < l->n; i++) {
        rc = live_fetch(l, i, theirs, all);
        if (rc == 0)
            memcpy((char *)recv + (size_t)i * bytes_each, theirs + (size_t)l->pe * bytes_each, bytes_each);
    }
    free(theirs);
    return rc;
}

static uint64_t live_world_shift(int pe)
{
    (void)pe;
    return 0;
}

static int live_world_ctl(const char *command, char *why, size_t why_len)
{
    snprintf(why, why_len, "seen \"%s\", expected no change of real ports", command);
    return -ENOTSUP;
}

static uint64_t live_world_cost(const char *name)
{
    (void)name;
    return 0;
}

static uint32_t live_world_cost_hash(void)
{
    return 0;
}

/* Until libbraid has opened them nothing is known of ports: all PEs are alike. */
static double live_world_ceiling(const struct emu_sim *sim, int pe, int ports)
{
    (void)sim;
    (void)pe;
    return ports > 0 ? (double)ports : 1;
}

static void live_world_nothing(struct emu_sim *sim)
{
    (void)sim;
}

static const struct emu_sim_api live_world = {
    .version = EMU_SIM_VERSION,
    .size = sizeof(live_world),
    .open = live_world_open,
    .close = live_world_close,
    .pe_count = live_world_pes,
    .pe_ports = live_world_list,
    .fabric = live_world_fabric,
    .run = live_world_run,
    .port = live_world_port,
    .end_time = live_world_zero,
    .trace_hash = live_world_zero,
    .pe = live_world_pe,
    .now = live_now,
    .charge = live_world_charge,
    .wait = live_world_wait,
    .barrier = live_world_barrier,
    .alltoall = live_world_alltoall,
    .shift = live_world_shift,
    .ctl = live_world_ctl,
    .cost = live_world_cost,
    .cost_hash = live_world_cost_hash,
    .pe_planes = live_world_list,
    .pe_ceiling = live_world_ceiling,
    .ceiling_text = NULL,
    .plain_addresses = live_world_nothing,
};

/** "live=emulated,nodes=2,gpus=8", and what else the emulated fabric was told. */
static void live_world_text(struct live *l)
{
    const char *spec = l->emulated ? getenv("BRAID_EMU") : NULL;
    int n = snprintf(l->fabric, sizeof(l->fabric), "live=%s,nodes=%d,gpus=%d", l->emulated ? "emulated" : "devices",
                     l->hosts, l->locals);

    while (spec && strchr(spec, '=')) {
        int len = (int)strcspn(spec, ",");

        if (len && strncmp(spec, "nodes=", 6) != 0 && strncmp(spec, "gpus=", 5) != 0 &&
            (size_t)(n + len + 2) < sizeof(l->fabric))
            n += snprintf(l->fabric + n, sizeof(l->fabric) - (size_t)n, ",%.*s", len, spec);
        spec += len + (spec[len] == ',');
    }
}

const struct emu_sim_api *live_api(struct live *l)
{
    live_this = l;
    live_world_text(l);
    return &live_world;
}
