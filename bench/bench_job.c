/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_job.c - the job that a PE is part of: all PEs of the cluster, or of `bench moe` those with the same GPU index, one
 * of each node, which know nothing of the others. How such PEs exchange bytes, and the memory that each makes known to its
 * job. Called by the transports; next: emu_sim.h.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Tries to find addresses for memory of two kinds side by side. */
enum { BENCH_JOB_TRIES = 16 };

int bench_job_pe(const struct bench_run *run, int pe, int rank)
{
    return run->spec->pattern == BENCH_MOE ? rank * run->per_node + pe % run->per_node : rank;
}

void bench_job_join(struct bench_pe *p)
{
    bool all = p->run->spec->pattern != BENCH_MOE;

    p->n_pes = all ? p->run->n_pes : p->run->n_pes / p->run->per_node;
    p->rank = all ? p->pe : p->pe / p->run->per_node;
}

int bench_job_alltoall(void *arg, const void *send, void *recv, size_t bytes_each)
{
    struct bench_pe *p = arg;
    const struct emu_sim_api *emu = p->run->emu;
    int rc;

    if (p->run->spec->live)
        return bench_live_alltoall(p, send, recv, bytes_each);
    if (p->n_pes == p->run->n_pes)
        return emu->alltoall(send, recv, bytes_each);
    /* All jobs make the same calls, so that the meetings of the whole cluster serve for each of them. */
    p->sends = send;
    rc = emu->barrier();
    for (int i = 0; rc == 0 && i < p->n_pes; i++) {
        const struct bench_pe *from = p->run->pe[bench_job_pe(p->run, p->pe, i)];

        memcpy((char *)recv + (size_t)i * bytes_each, (const char *)from->sends + (size_t)p->rank * bytes_each,
               bytes_each);
    }
    return rc ? rc : emu->barrier();
}

int bench_job_barrier(void *arg)
{
    return ((struct bench_pe *)arg)->run->emu->barrier();
}

/** Ordinary memory of len bytes at just this address; NULL: something is there. */
static unsigned char *bench_job_beside(unsigned char *at, size_t len)
{
    void *m = mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    if (m != MAP_FAILED && m != at) { /* a kernel that does not know the flag */
        munmap(m, len);
        m = MAP_FAILED;
    }
    return m == MAP_FAILED ? NULL : m;
}

/** Zeroed pages at a multiple of align: cuts follow addresses, and a run must not depend on where malloc put things. */
static int bench_job_plain(struct bench_pe *p)
{
    size_t align = p->transport->align ? p->transport->align : 4096, len = p->mem_len + align;
    void *m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (m == MAP_FAILED)
        return -ENOMEM;
    if (p->run->spec->live)
        memset(m, 0, len); /* pages come now, as where a device pins them, and not while the clock runs */
    p->map = m;
    p->map_len = len;
    p->mem = p->map + (align - (uintptr_t)m % align) % align;
    return 0;
}

int bench_job_memory(struct bench_pe *p)
{
    const struct emu_sim_api *emu = p->run->emu;
    void *tried[BENCH_JOB_TRIES];
    int n = 0;

    if (!p->data_len)
        return bench_job_plain(p);
    /* Plugins know one heap, so both kinds lie in one range of addresses. */
    while (!p->mem && n < BENCH_JOB_TRIES) {
        tried[n] = emu->pattern_map(p->data_len);
        if (!tried[n])
            break;
        p->mem = bench_job_beside((unsigned char *)tried[n++] - p->mem_len, p->mem_len);
    }
    for (int i = 0; i < n - (p->mem ? 1 : 0); i++)
        emu->pattern_unmap(tried[i]);
    p->map = p->mem;
    p->map_len = p->mem_len;
    return p->mem ? 0 : -ENOMEM;
}

void bench_job_memory_free(struct bench_pe *p)
{
    if (p->map && p->data_len)
        p->run->emu->pattern_unmap(p->mem + p->mem_len);
    if (p->map)
        munmap(p->map, p->map_len);
    p->map = p->mem = NULL;
}

/* ---- regions of libbraid -------------------------------------------------------------------------------------------- */

/** What a PE tells another of its memory. */
struct bench_card {
    uint64_t addr;
    struct braid_key key[BENCH_AREAS];
};

static int bench_regions_register(struct bench_regions *r, struct bench_pe *p, struct braid *b, struct bench_card *card)
{
    size_t at = 0;
    int rc = 0;

    card->addr = (uintptr_t)p->mem + p->run->emu->shift(p->pe);
    for (int i = 0; rc == 0 && i < BENCH_AREAS; i++) {
        size_t len = i ? p->data_len : p->mem_len;
        struct braid_mem_options o = {.size = sizeof(o), .remote_addr = card->addr + at};

        if (len)
            rc = braid_mem_reg(b, p->mem + at, len, &o, &r->mem[i]);
        if (rc == 0 && len)
            rc = braid_mem_key(r->mem[i], &card->key[i]);
        at += len;
    }
    return rc;
}

int bench_regions_open(struct bench_regions *r, struct bench_pe *p, struct braid *b)
{
    struct bench_card *mine = calloc((size_t)p->n_pes, sizeof(*mine));
    struct bench_card *theirs = calloc((size_t)p->n_pes, sizeof(*theirs));
    int areas = p->data_len ? BENCH_AREAS : 1, rc = mine && theirs ? 0 : -ENOMEM;

    r->first_len = p->data_len ? p->mem_len : SIZE_MAX; /* the same for all PEs where there are two */
    r->remote = p->remote;
    r->local = p->mem;
    r->key = calloc((size_t)p->n_pes * BENCH_AREAS, sizeof(*r->key));
    if (!r->key)
        rc = -ENOMEM;
    if (rc == 0)
        rc = bench_regions_register(r, p, b, &mine[0]);
    for (int i = 1; rc == 0 && i < p->n_pes; i++)
        mine[i] = mine[0];
    if (rc == 0)
        rc = bench_job_alltoall(p, mine, theirs, sizeof(*mine));
    for (int i = 0; rc == 0 && i < p->n_pes; i++) {
        p->remote[i] = theirs[i].addr;
        for (int k = 0; rc == 0 && k < areas; k++) {
            r->key[i * BENCH_AREAS + k] = theirs[i].key[k];
            rc = braid_key_check(b, i, &r->key[i * BENCH_AREAS + k]);
        }
    }
    free(mine);
    free(theirs);
    return rc;
}

void bench_regions_close(struct bench_regions *r)
{
    for (int i = 0; i < BENCH_AREAS; i++)
        braid_mem_dereg(r->mem[i]);
    free(r->key);
}

struct braid_remote bench_regions_far(const struct bench_regions *r, int rank, uint64_t addr)
{
    int area = addr - r->remote[rank] >= r->first_len;

    return (struct braid_remote){addr, &r->key[rank * BENCH_AREAS + area]};
}

struct braid_local bench_regions_near(const struct bench_regions *r, const void *addr)
{
    int area = (size_t)((const unsigned char *)addr - r->local) >= r->first_len;

    return (struct braid_local){(void *)(uintptr_t)addr, r->mem[area]};
}
