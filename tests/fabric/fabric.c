/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.c - see fabric.h. Called by the tests beside it; next: braid.h and the emulator.
 */
#include "fabric.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench.h"

const struct emu_sim_api *fabric_emu(void)
{
    static const struct emu_sim_api *emu;
    char why[BENCH_WHY];

    if (!emu && bench_emu_load(NULL, &emu, why, sizeof(why)))
        fail_msg("%s", why);
    return emu;
}

uint64_t fabric_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

bool fabric_check(struct fabric_pe *p, bool ok, const char *what)
{
    if (ok)
        return true;
    if (p->run->failures++ == 0)
        snprintf(p->run->failure, sizeof(p->run->failure), "PE %d at %llu ns: %s (last log: %.300s)", p->pe,
                 (unsigned long long)p->run->emu->now(), what, p->last_log);
    return false;
}

bool fabric_equal(struct fabric_pe *p, long long seen, long long expected, const char *what)
{
    char text[160];

    snprintf(text, sizeof(text), "%s: seen %lld, expected %lld", what, seen, expected);
    return fabric_check(p, seen == expected, text);
}

static uint64_t fabric_now(void *arg)
{
    struct fabric_pe *p = arg;

    return p->run->emu->now();
}

static int fabric_wait(void *arg, uint64_t deadline)
{
    struct fabric_pe *p = arg;

    return p->run->emu->wait(deadline);
}

static void fabric_log(void *arg, enum braid_log_level level, const char *line)
{
    struct fabric_pe *p = arg;

    if (level <= BRAID_LOG_WARN) {
        size_t used = strlen(p->warnings);

        p->log_lines++;
        snprintf(p->warnings + used, sizeof(p->warnings) - used, "%s\n", line);
    }
    snprintf(p->last_log, sizeof(p->last_log), "%s", line);
}

static int fabric_alltoall(void *arg, const void *send, void *recv, size_t bytes_each)
{
    struct fabric_pe *p = arg;
    int rc = p->run->emu->alltoall(send, recv, bytes_each);

    if (rc == 0 && p->run->tamper)
        p->run->tamper(p, recv, bytes_each);
    return rc;
}

int fabric_open(struct fabric_pe *p, const char *ports)
{
    char own[512], list[700], seed[64];
    const char *settings[FABRIC_SETTINGS + 3] = {list, seed};
    struct braid_options o = BRAID_OPTIONS_INIT;

    if (!ports) {
        int rc = p->run->emu->pe_ports(p->run->sim, p->pe, own, sizeof(own));

        if (rc)
            return rc;
        ports = own;
    }
    snprintf(list, sizeof(list), "ports=%s", ports);
    snprintf(seed, sizeof(seed), "seed=%llu", (unsigned long long)(p->run->seed * 100 + (uint64_t)p->pe + 1));
    for (int i = 0; i < FABRIC_SETTINGS && p->run->settings[i]; i++)
        settings[i + 2] = p->run->settings[i];
    o.settings = settings;
    o.now = fabric_now;
    o.wait = fabric_wait;
    o.clock_arg = p;
    o.log = fabric_log;
    o.log_arg = p;
    return braid_open(&o, &p->b);
}

int fabric_connect_only(struct fabric_pe *p)
{
    struct braid_peers peers = {sizeof(peers), p->pe, p->n_pes, fabric_alltoall, p};

    return braid_connect(p->b, &peers);
}

int fabric_connect(struct fabric_pe *p)
{
    struct braid_mem_options mo = {.size = sizeof(mo), .remote_addr = (uintptr_t)p->bytes + p->run->emu->shift(p->pe)};
    struct {
        uint64_t addr;
        struct braid_key key;
    } mine[FABRIC_PES], theirs[FABRIC_PES];
    int rc = fabric_connect_only(p);

    if (rc == 0)
        rc = braid_mem_reg(p->b, p->bytes, FABRIC_MEM + FABRIC_WORDS * 8, &mo, &p->mem);
    if (rc)
        return rc;
    p->ch = braid_channel_at(p->b, 0);
    for (int i = 0; i < p->n_pes; i++) {
        mine[i].addr = mo.remote_addr;
        rc = rc ? rc : braid_mem_key(p->mem, &mine[i].key);
    }
    if (rc == 0)
        rc = p->run->emu->alltoall(mine, theirs, sizeof(mine[0]));
    for (int i = 0; rc == 0 && i < p->n_pes; i++) {
        p->remote[i] = theirs[i].addr;
        p->key[i] = theirs[i].key;
        rc = braid_key_check(p->b, i, &p->key[i]);
    }
    return rc ? rc : p->run->emu->barrier();
}

static int fabric_main(void *arg, int pe)
{
    struct fabric *f = arg;
    struct fabric_pe *p = calloc(1, sizeof(*p));
    int rc;

    if (!p)
        return -ENOMEM;
    p->run = f;
    p->pe = pe;
    p->n_pes = f->emu->pe_count(f->sim);
    /* Whole pages: cuts follow addresses, and a run must not depend on where malloc put things. */
    p->bytes = aligned_alloc(4096, (FABRIC_MEM + FABRIC_WORDS * 8 + 4095) / 4096 * 4096);
    rc = p->bytes ? 0 : -ENOMEM;
    if (rc == 0) {
        memset(p->bytes, 0, FABRIC_MEM + FABRIC_WORDS * 8);
        p->words = (uint64_t *)(void *)(p->bytes + FABRIC_MEM);
    }
    if (rc == 0 && !f->no_context)
        rc = fabric_open(p, f->ports[pe]);
    if (rc == 0 && !f->no_context)
        rc = fabric_connect(p);
    if (rc)
        fabric_equal(p, rc, 0, "open and connect");
    else
        rc = f->fn(p);
    if (p->mem)
        braid_mem_dereg(p->mem);
    braid_close(p->b);
    free(p->bytes);
    free(p);
    return rc;
}

int fabric_run(struct fabric *f)
{
    struct emu_sim_options o = {sizeof(o), f->spec, f->seed, f->vehicle, 0};
    int rc;

    f->emu = fabric_emu();
    f->failures = 0;
    f->why[0] = '\0';
    rc = f->emu->open(&o, &f->sim, f->why, sizeof(f->why));
    if (rc)
        return rc;
    if (f->plain_addresses)
        f->emu->plain_addresses(f->sim);
    rc = f->emu->run(f->sim, fabric_main, f, f->why, sizeof(f->why));
    f->end_ns = f->emu->end_time(f->sim);
    f->trace = f->emu->trace_hash(f->sim);
    f->emu->close(f->sim);
    f->sim = NULL;
    return rc;
}

void fabric_run_ok(struct fabric *f)
{
    int rc = fabric_run(f);

    if (rc || f->failures)
        fail_msg("%s, seed %llu: run %d (%s), %d checks failed, first: %s", f->spec, (unsigned long long)f->seed, rc,
                 f->why, f->failures, f->failure);
}

int fabric_step(struct fabric_pe *p)
{
    int n = braid_progress(p->ch);

    return n < 0 ? n : n ? 0 : p->run->emu->wait(UINT64_MAX);
}

int fabric_barrier(struct fabric_pe *p)
{
    return p->run->emu->barrier();
}

struct braid_remote fabric_remote(struct fabric_pe *p, int pe, size_t offset)
{
    return (struct braid_remote){p->remote[pe] + offset, &p->key[pe]};
}

struct braid_local fabric_local(struct fabric_pe *p, size_t offset)
{
    return (struct braid_local){p->bytes + offset, p->mem};
}

int fabric_put(struct fabric_pe *p, int pe, size_t to, size_t from, size_t len, struct braid_done *done)
{
    int rc;

    while ((rc = braid_put(p->ch, pe, fabric_remote(p, pe, to), fabric_local(p, from), len, done)) == -EAGAIN) {
        rc = fabric_step(p);
        if (rc)
            break;
    }
    return rc;
}

int fabric_get(struct fabric_pe *p, int pe, size_t to, size_t from, size_t len, struct braid_done *done)
{
    int rc;

    while ((rc = braid_get(p->ch, pe, fabric_local(p, to), fabric_remote(p, pe, from), len, done)) == -EAGAIN) {
        rc = fabric_step(p);
        if (rc)
            break;
    }
    return rc;
}

int fabric_add(struct fabric_pe *p, int pe, int word, uint64_t value, struct braid_done *done)
{
    struct braid_remote to = fabric_remote(p, pe, FABRIC_MEM + (size_t)word * 8);
    int rc;

    while ((rc = braid_signal_add(p->ch, pe, to, value, done)) == -EAGAIN) {
        rc = fabric_step(p);
        if (rc)
            break;
    }
    return rc;
}
