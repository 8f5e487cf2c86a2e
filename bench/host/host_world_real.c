/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_world_real.c - processes of one machine as a world for the minihost: they meet in a page of shared memory that was
 * there before they were forked. Called by tests; next: mmap(2).
 */
#include "host_int.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HOST_PES = 16, HOST_AREA = 65536 /* bytes a PE gives to each other in one round */ };
#define HOST_PATIENCE_NS 120000000000u

struct host_page {
    uint32_t arrived, round;
    int n_pes;
    struct host_seat {
        struct host_page *page; /* the same in all: it is mapped once, before fork() */
        int pe;
    } seat[HOST_PES];
    unsigned char area[]; /* [from][to][HOST_AREA] */
};

static size_t host_page_len(int n_pes)
{
    return sizeof(struct host_page) + (size_t)n_pes * (size_t)n_pes * HOST_AREA;
}

struct host_page *host_page_new(int n_pes)
{
    struct host_page *page;

    if (n_pes < 1 || n_pes > HOST_PES)
        return NULL;
    page = mmap(NULL, host_page_len(n_pes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    page->n_pes = n_pes;
    for (int i = 0; i < n_pes; i++)
        page->seat[i] = (struct host_seat){page, i};
    return page;
}

void host_page_free(struct host_page *page)
{
    if (page)
        munmap(page, host_page_len(page->n_pes));
}

static uint64_t host_real_now(void *arg)
{
    struct timespec t;

    (void)arg;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int host_real_barrier(void *arg)
{
    struct host_page *page = ((struct host_seat *)arg)->page;
    uint32_t round = __atomic_load_n(&page->round, __ATOMIC_SEQ_CST);
    uint64_t end = host_real_now(NULL) + HOST_PATIENCE_NS;

    if (__atomic_add_fetch(&page->arrived, 1, __ATOMIC_SEQ_CST) == (uint32_t)page->n_pes) {
        __atomic_store_n(&page->arrived, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&page->round, round + 1, __ATOMIC_SEQ_CST);
    }
    while (__atomic_load_n(&page->round, __ATOMIC_SEQ_CST) == round) {
        if (host_real_now(NULL) > end)
            return -ETIMEDOUT;
        usleep(50);
    }
    return 0;
}

static int host_real_alltoall(void *arg, const void *send, void *recv, size_t bytes_each)
{
    const struct host_seat *s = arg;
    size_t n = (size_t)s->page->n_pes, me = (size_t)s->pe;
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < bytes_each; at += HOST_AREA) {
        size_t part = bytes_each - at < HOST_AREA ? bytes_each - at : HOST_AREA;

        for (size_t to = 0; to < n; to++)
            memcpy(s->page->area + (me * n + to) * HOST_AREA, (const char *)send + to * bytes_each + at, part);
        rc = host_real_barrier(arg);
        for (size_t from = 0; rc == 0 && from < n; from++)
            memcpy((char *)recv + from * bytes_each + at, s->page->area + (from * n + me) * HOST_AREA, part);
        if (rc == 0)
            rc = host_real_barrier(arg);
    }
    return rc;
}

/** Gives the CPU away: on a small machine the peers need it. */
static int host_real_wait(void *arg, uint64_t deadline_ns)
{
    (void)arg;
    (void)deadline_ns;
    usleep(1);
    return 0;
}

static void host_real_charge(void *arg, uint64_t ns)
{
    (void)arg;
    (void)ns;
}

void host_world_real(struct host_world *w, struct host_page *page, int pe, int n_pes, int per_node)
{
    *w = (struct host_world){.my_pe = pe,
                             .n_pes = n_pes,
                             .mype_node = pe % per_node,
                             .npes_node = per_node,
                             .alltoall = host_real_alltoall,
                             .barrier = host_real_barrier,
                             .now = host_real_now,
                             .wait = host_real_wait,
                             .charge = host_real_charge,
                             .arg = &page->seat[pe]};
}
