/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_braid.c - libbraid as a transport of the generators. Opens a context in virtual time and charges what libbraid's
 * own code costs, from the emulator's table. Called by bench_run.c; next: braid.h.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_braid {
    struct bench_pe *pe;
    struct braid *b;
    struct braid_channel *ch;
    struct braid_mem *mem;
    uint64_t cost_put, cost_signal, cost_progress, cost_completion;
};

static uint64_t bench_braid_now(void *arg)
{
    const struct emu_sim_api *emu = arg;

    return emu->now();
}

static int bench_braid_wait(void *arg, uint64_t deadline_ns)
{
    const struct emu_sim_api *emu = arg;

    return emu->wait(deadline_ns);
}

static int bench_braid_alltoall(void *arg, const void *send, void *recv, size_t bytes_each)
{
    const struct emu_sim_api *emu = arg;

    return emu->alltoall(send, recv, bytes_each);
}

/** The settings of this run as "name=value" strings. The first ports of the PE's list, as many as asked for. */
static int bench_braid_settings(const struct bench_pe *p, char ports[1024], char order[64], char fault[64],
                                char seed[64])
{
    const struct bench_spec *s = p->run->spec;
    char *end;
    int rc;

    memcpy(ports, "ports=", 7);
    /* The simulator knows which ports are this PE's; here only their number is cut. */
    rc = p->run->emu->pe_ports(p->run->sim, p->pe, ports + 6, 1024 - 6);
    if (rc)
        return rc;
    end = ports;
    for (int i = 0; s->ports && i < s->ports && end; i++)
        end = strchr(end + 1, ',');
    if (s->ports && end)
        *end = '\0';
    snprintf(order, 64, "order=%s", s->order ? s->order : "release");
    snprintf(fault, 64, "fault=%s", s->fault ? s->fault : "none");
    snprintf(seed, 64, "seed=%llu", (unsigned long long)(s->seed + 1 + (uint64_t)p->pe));
    return 0;
}

static int bench_braid_connect(struct bench_braid *t)
{
    struct bench_pe *p = t->pe;
    struct braid_peers peers = {sizeof(peers), p->pe, p->n_pes, bench_braid_alltoall, (void *)(uintptr_t)p->run->emu};
    struct braid_mem_options mem = {sizeof(mem), (uintptr_t)p->mem + p->run->emu->shift(p->pe)};
    struct bench_card {
        uint64_t addr;
        struct braid_key key;
    } * mine, *theirs;
    int rc = braid_connect(t->b, &peers);

    if (rc == 0)
        rc = braid_mem_reg(t->b, p->mem, p->mem_len, &mem, &t->mem);
    if (rc)
        return rc;
    mine = calloc((size_t)p->n_pes, sizeof(*mine));
    theirs = calloc((size_t)p->n_pes, sizeof(*theirs));
    rc = mine && theirs ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < p->n_pes; i++) {
        mine[i].addr = mem.remote_addr;
        rc = braid_mem_key(t->mem, &mine[i].key);
    }
    if (rc == 0)
        rc = p->run->emu->alltoall(mine, theirs, sizeof(*mine));
    for (int i = 0; rc == 0 && i < p->n_pes; i++) {
        p->remote[i] = theirs[i].addr;
        p->key[i] = theirs[i].key;
        rc = braid_key_check(t->b, i, &p->key[i]);
    }
    free(mine);
    free(theirs);
    return rc;
}

int bench_braid_open(struct bench_pe *p, void **self)
{
    char ports[1024], order[64], fault[64], seed[64];
    const char *settings[] = {ports, order, fault, seed, NULL};
    struct braid_options o = BRAID_OPTIONS_INIT;
    struct bench_braid *t = calloc(1, sizeof(*t));
    int rc = t ? bench_braid_settings(p, ports, order, fault, seed) : -ENOMEM;

    if (rc == 0) {
        const struct emu_sim_api *emu = p->run->emu;

        t->pe = p;
        t->cost_signal = emu->cost("braid_signal");
        t->cost_progress = emu->cost("braid_progress");
        t->cost_completion = emu->cost("braid_completion");
        o.settings = settings;
        o.now = bench_braid_now;
        o.wait = bench_braid_wait;
        o.clock_arg = (void *)(uintptr_t)emu;
        rc = braid_open(&o, &t->b);
    }
    if (rc == 0)
        rc = bench_braid_connect(t);
    if (rc) {
        bench_braid_close(t);
        return rc;
    }
    t->ch = braid_channel_at(t->b, 0);
    /* As if every put were cut over all lanes: never cheaper than it is. */
    t->cost_put =
        p->run->emu->cost("braid_put") + p->run->emu->cost("braid_piece") * (uint64_t)(braid_rail_count(t->b) - 1);
    *self = t;
    return 0;
}

void bench_braid_close(void *self)
{
    struct bench_braid *t = self;

    if (!t)
        return;
    braid_mem_dereg(t->mem);
    braid_close(t->b);
    free(t);
}

static int bench_braid_put(void *self, int pe, uint64_t dst, const void *src, size_t len, struct braid_done *done)
{
    struct bench_braid *t = self;

    t->pe->run->emu->charge(t->cost_put);
    return braid_put(t->ch, pe, (struct braid_remote){dst, &t->pe->key[pe]},
                     (struct braid_local){(void *)(uintptr_t)src, t->mem}, len, done);
}

static int bench_braid_signal_add(void *self, int pe, uint64_t word, uint64_t value, struct braid_done *done)
{
    struct bench_braid *t = self;

    t->pe->run->emu->charge(t->cost_signal);
    return braid_signal_add(t->ch, pe, (struct braid_remote){word, &t->pe->key[pe]}, value, done);
}

static int bench_braid_progress(void *self)
{
    struct bench_braid *t = self;
    int n = braid_progress(t->ch);

    t->pe->run->emu->charge(t->cost_progress + (n > 0 ? (uint64_t)n * t->cost_completion : 0));
    return n;
}

static int bench_braid_quiet(void *self, int pe)
{
    struct bench_braid *t = self;

    return braid_quiet(t->ch, pe);
}

const struct bench_transport bench_braid = {bench_braid_put, bench_braid_signal_add, bench_braid_progress,
                                            bench_braid_quiet};
