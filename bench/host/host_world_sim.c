/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_world_sim.c - a PE of a run in virtual time as a world for the minihost, and the clock that braid's plugin asks its
 * program for. Called by bench/ and tests; next: emu_sim.h.
 */
#include "host_int.h"

#include "emu_sim.h"
#include "nvshmem_clock.h"

static uint64_t host_sim_now(void *arg)
{
    return ((const struct emu_sim_api *)arg)->now();
}

static int host_sim_wait(void *arg, uint64_t deadline_ns)
{
    return ((const struct emu_sim_api *)arg)->wait(deadline_ns);
}

static void host_sim_charge(void *arg, uint64_t ns)
{
    ((const struct emu_sim_api *)arg)->charge(ns);
}

static int host_sim_alltoall(void *arg, const void *send, void *recv, size_t bytes_each)
{
    return ((const struct emu_sim_api *)arg)->alltoall(send, recv, bytes_each);
}

static int host_sim_barrier(void *arg)
{
    return ((const struct emu_sim_api *)arg)->barrier();
}

void host_world_sim(struct host_world *w, const struct emu_sim_api *emu, int n_pes, int per_node)
{
    int pe = emu->pe();

    *w = (struct host_world){.my_pe = pe,
                             .n_pes = n_pes,
                             .mype_node = pe % per_node,
                             .npes_node = per_node,
                             .alltoall = host_sim_alltoall,
                             .barrier = host_sim_barrier,
                             .now = host_sim_now,
                             .wait = host_sim_wait,
                             .charge = host_sim_charge,
                             .arg = (void *)(uintptr_t)emu,
                             .is_virtual = true};
}

/* One for all PEs of the process: the emulator knows which of them calls. */
static struct braid_plugin_clock host_clock;

void host_clock_set(const struct host_world *w)
{
    host_clock = (struct braid_plugin_clock){0};
    if (w->is_virtual)
        host_clock = (struct braid_plugin_clock){w->now, w->wait, w->arg};
}

/** Looked up by braid's plugin, see nvshmem_clock.h. */
__attribute__((visibility("default"))) const struct braid_plugin_clock *braid_plugin_clock(void)
{
    return host_clock.now ? &host_clock : NULL;
}
