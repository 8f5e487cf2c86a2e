/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_job.c - a job of processes: hosts, numbers of PEs, meetings with an end, blobs for all. Called by live_world.c and bench/;
 * next: live_pmix.c.
 */
#include "live_int.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Where nothing moves a process gives its CPU to others, soon for a little, later for longer: parts of the time since. */
enum { LIVE_NAP_NS = 1000000, LIVE_NAP_FIRST = 16, LIVE_NAP_PART = 4 };

uint64_t live_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int live_fail(struct live *l, int rc, const char *what)
{
    if (!l->why[0])
        snprintf(l->why, sizeof(l->why), "%s", what);
    return rc;
}

const char *live_why(const struct live *l)
{
    return l->why;
}

/* ---- meetings ---------------------------------------------------------------------------------------------------------- */

int live_nap(struct live *l, uint64_t since_ns)
{
    uint64_t nap = (live_now() - since_ns) / LIVE_NAP_PART, longest = (uint64_t)l->nap_ns;
    struct timespec t = {0};
    const char *lost = live_pmix_lost(l->pmix);

    if (lost) {
        char text[160];

        snprintf(text, sizeof(text), "a process of the job has ended before the others, says the launcher (%s)", lost);
        return live_fail(l, -ECONNABORTED, text);
    }
    nap = nap > longest / LIVE_NAP_FIRST ? nap : longest / LIVE_NAP_FIRST;
    t.tv_nsec = (long)(nap < longest ? nap : longest);
    if (t.tv_nsec)
        nanosleep(&t, NULL);
    return 0;
}

int live_meet_begin(struct live *l)
{
    int rc = live_pmix_fence(l->pmix);

    l->met_ns = live_now();
    return rc ? live_fail(l, rc, "the launcher refuses a meeting of all processes (PMIx_Fence)") : 0;
}

int live_meet_over(struct live *l)
{
    int rc = live_pmix_fenced(l->pmix);
    char text[160];

    if (rc < 0)
        return live_fail(l, rc, "a meeting of all processes has failed (PMIx_Fence)");
    if (rc || live_now() - l->met_ns < l->patience_ns)
        return rc;
    snprintf(text, sizeof(text),
             "not all of %d processes have come within %llu s: one has ended or hangs (--patience waits longer)", l->n,
             (unsigned long long)(l->patience_ns / 1000000000u));
    return live_fail(l, -ETIMEDOUT, text);
}

int live_meet_end(struct live *l, int (*turn)(void *arg), void *arg)
{
    uint64_t since = live_now();
    int rc, moved;

    while ((rc = live_meet_over(l)) == 0) {
        moved = turn ? turn(arg) : 0;
        since = moved > 0 ? live_now() : since;
        rc = moved < 0 ? moved : moved ? 0 : live_nap(l, since);
        if (rc)
            return rc;
    }
    return rc < 0 ? rc : 0;
}

int live_meet(struct live *l, int (*turn)(void *arg), void *arg)
{
    int rc = live_meet_begin(l);

    return rc ? rc : live_meet_end(l, turn, arg);
}

int live_share(struct live *l, const void *bytes, size_t len)
{
    int rc = live_pmix_share(l->pmix, bytes, len);

    return rc ? live_fail(l, rc, "the launcher does not take what this process shares (PMIx_Put)")
              : live_meet(l, NULL, NULL);
}

int live_fetch(struct live *l, int pe, void *out, size_t len)
{
    int rc = live_pmix_fetch(l->pmix, l->rank[pe], out, len);
    char text[120];

    snprintf(text, sizeof(text), "what PE %d has shared cannot be had (PMIx_Get: %s)", pe, strerror(-rc));
    return rc ? live_fail(l, rc, text) : 0;
}

/* ---- who is who -------------------------------------------------------------------------------------------------------- */

/** Numbers PEs host by host. name: of each rank's host. */
static void live_number(struct live *l, char (*name)[LIVE_HOST])
{
    int me = live_pmix_rank(l->pmix), pe = 0;

    for (int r = 0; r < l->n; r++) {
        int first = 0, count = 0;

        while (strcmp(name[first], name[r]) != 0)
            first++;
        for (int k = r; first == r && k < l->n; k++) {
            if (strcmp(name[k], name[r]) != 0)
                continue;
            l->rank[pe] = k;
            l->host_of[pe] = l->hosts;
            memcpy(l->host[pe], name[k], LIVE_HOST);
            if (k == me) {
                l->pe = pe;
                l->local = count;
            }
            pe++;
            count++;
        }
        if (first != r)
            continue;
        l->locals = l->hosts == 0 ? count : l->locals;
        l->uneven |= count != l->locals;
        l->hosts++;
    }
}

static int live_find_hosts(struct live *l)
{
    char mine[LIVE_HOST] = "", (*name)[LIVE_HOST] = calloc((size_t)l->n, sizeof(*name));
    const char *emulated = getenv("BRAID_EMU") ? getenv("BRAID_EMU_HOST") : NULL;
    int rc;

    l->rank = calloc((size_t)l->n, sizeof(*l->rank));
    l->host_of = calloc((size_t)l->n, sizeof(*l->host_of));
    l->host = calloc((size_t)l->n, sizeof(*l->host));
    if (!name || !l->rank || !l->host_of || !l->host) {
        free(name);
        return -ENOMEM;
    }
    gethostname(mine, sizeof(mine) - 1);
    if (emulated)
        snprintf(mine, sizeof(mine), "%s", emulated);
    for (int r = 0; r < l->n; r++)
        l->rank[r] = r;
    rc = live_share(l, mine, sizeof(mine));
    for (int r = 0; rc == 0 && r < l->n; r++) {
        rc = live_fetch(l, r, name[r], sizeof(name[r]));
        name[r][LIVE_HOST - 1] = '\0';
    }
    if (rc == 0)
        live_number(l, name);
    free(name);
    return rc;
}

/** The emulator says so itself, and has devices only where it is told a fabric. */
static bool live_is_emulated(void)
{
    void *verbs = getenv("BRAID_EMU") ? dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;

    return verbs && dlsym(verbs, "emu_sim_api");
}

static long live_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

int live_open(const struct live_options *o, struct live **out, char *why, size_t why_len)
{
    struct live *l = calloc(1, sizeof(*l));
    int rc = l ? live_pmix_open(&l->pmix, why, why_len) : -ENOMEM;

    if (rc) {
        free(l);
        return rc;
    }
    l->n = live_pmix_size(l->pmix);
    l->patience_ns = o->patience_ns;
    l->nap_ns = LIVE_NAP_NS;
    rc = live_find_hosts(l);
    if (rc) {
        snprintf(why, why_len, "%s", l->why[0] ? l->why : strerror(-rc));
        live_close(l);
        return rc;
    }
    l->emulated = live_is_emulated();
    l->nap_ns = o->nap_ns >= 0 ? (long)o->nap_ns : l->emulated || l->locals > live_cpus() ? LIVE_NAP_NS : 0;
    *out = l;
    return 0;
}

void live_close(struct live *l)
{
    if (!l)
        return;
    live_pmix_close(l->pmix);
    free(l->rank);
    free(l->host_of);
    free(l->host);
    free(l);
}

void live_abort(struct live *l, const char *why)
{
    live_pmix_abort(l->pmix, why);
}

int live_pe(const struct live *l)
{
    return l->pe;
}

int live_pes(const struct live *l)
{
    return l->n;
}

int live_local(const struct live *l)
{
    return l->local;
}

int live_locals(const struct live *l)
{
    return l->locals;
}

bool live_even(const struct live *l)
{
    return !l->uneven;
}

int live_hosts(const struct live *l)
{
    return l->hosts;
}

int live_host_of(const struct live *l, int pe)
{
    return l->host_of[pe];
}

const char *live_host(const struct live *l, int pe)
{
    return l->host[pe];
}

bool live_emulated(const struct live *l)
{
    return l->emulated;
}

uint64_t live_patience(const struct live *l)
{
    return l->patience_ns;
}
