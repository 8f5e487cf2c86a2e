/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_host.c - an NVSHMEM plugin under the minihost as a transport of the generators. A put is a request of device code; a
 * signal is a fence and an atomic; nothing says that a put has ended but quiet, so that is asked for when the generator has
 * nothing more that it may send. Called by bench_run.c; next: host_mini.h.
 *
 * Time: the verbs calls and 150 ns a request of the proxy. The plugin's own instructions are not charged, whosever it is.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_mini.h"

enum { BENCH_HOST_ALIGN = 2 << 20 };

/** One fetch under way. */
struct bench_fetch {
    struct braid_done *done;
    uint64_t *old;
    unsigned bytes;
};

struct bench_host {
    struct bench_pe *pe;
    struct host *h;
    struct braid_done **pending; /* what the next quiet ends; owned */
    size_t n_pending, room;
    struct bench_fetch *fetch; /* by slots behind the generator's memory; owned */
    unsigned n_fetches;
    size_t slots; /* offset of the first one */
    bool posted;  /* something, since the last progress */
};

/** Options by the environment: what this run says, and nothing else but the log. */
static int bench_host_environment(const struct bench_pe *p)
{
    struct bench_braid_settings *s = calloc(1, sizeof(*s));
    int rc = s ? bench_braid_settings(p, -1, s) : -ENOMEM;
    struct braid_option_row row;

    for (size_t i = 0; rc == 0 && braid_option_at(i, &row) == 0; i++) {
        char name[64] = "BRAID_";
        size_t len = strlen(row.name);
        const char *value = NULL;

        for (size_t k = 0; k < len && k + 7 < sizeof(name); k++)
            name[k + 6] = (char)(row.name[k] >= 'a' && row.name[k] <= 'z' ? row.name[k] - 'a' + 'A' : row.name[k]);
        for (int k = 0; s->list[k]; k++) {
            if (strncmp(s->list[k], row.name, len) == 0 && s->list[k][len] == '=')
                value = s->list[k] + len + 1;
        }
        if (!value)
            continue; /* log */
        if (strcmp(value, row.default_value) != 0)
            rc = setenv(name, value, 1) ? -errno : 0;
        else
            unsetenv(name); /* the plugin has some defaults of its own */
        if (rc == 0 && strcmp(row.name, "ports") == 0)
            rc = setenv("NVSHMEM_HCA_LIST", value, 1) ? -errno : 0;
    }
    free(s);
    return rc;
}

static void bench_host_close(void *self)
{
    struct bench_host *t = self;

    if (!t)
        return;
    host_close(t->h);
    free(t->pending);
    free(t->fetch);
    free(t);
}

/* ---- the world of a job that is part of the cluster ------------------------------------------------------------------- */

static uint64_t bench_host_now(void *arg)
{
    return ((struct bench_pe *)arg)->run->emu->now();
}

static int bench_host_wait(void *arg, uint64_t deadline_ns)
{
    struct bench_run *run = ((struct bench_pe *)arg)->run;
    struct bench_pe *p = run->pe[run->emu->pe()]; /* plugins know one clock a process */
    uint64_t began = run->emu->now();
    int rc = run->emu->wait(deadline_ns);

    p->slept_ns += run->emu->now() - began;
    return rc;
}

static void bench_host_charge(void *arg, uint64_t ns)
{
    ((struct bench_pe *)arg)->run->emu->charge(ns);
}

static int bench_host_start(struct bench_host *t)
{
    struct bench_pe *p = t->pe;
    struct bench_run *run = p->run;
    struct host_options o = {.path = run->engine.path,
                             .version = run->engine.version,
                             .own_copy = true,
                             .heap = p->mem,
                             .heap_len = p->mem_len + p->data_len,
                             .proxy_ns = BENCH_PROXY_NS};
    struct host_world w;
    char why[BENCH_WHY / 2];
    int rc = bench_host_environment(p);

    if (rc)
        return rc;
    host_world_sim(&w, run->emu, run->n_pes, run->per_node);
    if (p->n_pes != run->n_pes) {
        w.my_pe = p->rank;
        w.n_pes = p->n_pes;
        w.mype_node = 0;
        w.npes_node = 1;
        w.alltoall = bench_job_alltoall;
        w.barrier = bench_job_barrier;
        w.now = bench_host_now;
        w.wait = bench_host_wait;
        w.charge = bench_host_charge;
        w.arg = p;
    }
    rc = host_open(&o, &w, &t->h, why, sizeof(why));
    if (rc == 0) {
        rc = host_grow(t->h, p->mem_len);
        if (rc == 0 && p->data_len)
            rc = host_grow(t->h, p->data_len);
        if (rc)
            snprintf(why, sizeof(why), "%s", host_why(t->h));
    }
    if (rc && !run->why[0])
        snprintf(run->why, sizeof(run->why), "PE %d: %s", p->pe, why);
    for (int i = 0; rc == 0 && i < p->n_pes; i++)
        p->remote[i] = host_heap_of(t->h, i);
    return rc;
}

static int bench_host_open(struct bench_pe *p, void **self)
{
    struct bench_host *t = calloc(1, sizeof(*t));
    int rc;

    if (!t)
        return -ENOMEM;
    t->pe = p;
    t->slots = p->mem_len - BENCH_HOST_ALIGN;
    t->n_fetches = p->run->spec->window;
    t->fetch = calloc(t->n_fetches, sizeof(*t->fetch));
    rc = t->fetch ? bench_host_start(t) : -ENOMEM;
    if (rc) {
        bench_host_close(t);
        return rc;
    }
    *self = t;
    return 0;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/** Something failed in the host: its reason is the run's. */
static int bench_host_said(struct bench_host *t, int rc)
{
    struct bench_run *run = t->pe->run;

    if (rc < 0 && rc != -EAGAIN && !run->why[0])
        snprintf(run->why, sizeof(run->why), "PE %d: %s", t->pe->pe, host_why(t->h));
    return rc;
}

/** A request has been posted; quiet ends it. */
static int bench_host_posted(struct bench_host *t, int rc, struct braid_done *done)
{
    struct braid_done **more;

    if (rc)
        return bench_host_said(t, rc);
    t->posted = true;
    if (!done)
        return 0;
    if (t->n_pending == t->room) {
        more = realloc(t->pending, (t->room + 1024) * sizeof(struct braid_done *));
        if (!more)
            return -ENOMEM;
        t->pending = more;
        t->room += 1024;
    }
    t->pending[t->n_pending++] = done;
    return 0;
}

static int bench_host_put(void *self, int pe, uint64_t dst, const void *src, size_t len, struct braid_done *done)
{
    struct bench_host *t = self;

    return bench_host_posted(t, host_put(t->h, pe, dst - t->pe->remote[pe], src, len), done);
}

static int bench_host_get(void *self, int pe, void *dst, uint64_t src, size_t len, struct braid_done *done)
{
    struct bench_host *t = self;

    return bench_host_posted(t, host_get(t->h, pe, dst, src - t->pe->remote[pe], len), done);
}

static int bench_host_signal(void *self, int pe, uint64_t word, enum bench_signal_how how, uint64_t value,
                             struct braid_done *done)
{
    struct bench_host *t = self;
    struct host_amo amo = {
        .op = how == BENCH_SIGNAL_ADD ? NVS_AMO_SIGNAL_ADD : NVS_AMO_SIGNAL_SET, .bytes = 8, .value = value};
    int rc = host_fence(t->h);

    if (rc == 0)
        rc = host_amo(t->h, pe, word - t->pe->remote[pe], &amo, 0);
    return bench_host_posted(t, rc, done);
}

static int bench_host_put_signal(void *self, int pe, const struct bench_put_signal *ps, struct braid_done *done)
{
    struct bench_host *t = self;
    uint64_t base = t->pe->remote[pe];
    int rc = host_put_signal(t->h, pe, ps->dst - base, ps->src, ps->len, ps->word - base,
                             ps->how == BENCH_SIGNAL_ADD ? NVS_AMO_SIGNAL_ADD : NVS_AMO_SIGNAL_SET, ps->value);

    return bench_host_posted(t, rc, done);
}

static struct bench_fetch *bench_host_slot(struct bench_host *t)
{
    for (unsigned i = 0; i < t->n_fetches; i++) {
        if (!t->fetch[i].done)
            return &t->fetch[i];
    }
    return NULL;
}

static int bench_host_atomic(void *self, int pe, uint64_t word, const struct bench_atomic *a, uint64_t *old,
                             struct braid_done *done)
{
    static const int ops[BENCH_OP_COUNT] = {[BENCH_OP_ADD] = NVS_AMO_ADD,
                                            [BENCH_OP_FETCH_ADD] = NVS_AMO_FETCH_ADD,
                                            [BENCH_OP_COMPARE_SWAP] = NVS_AMO_COMPARE_SWAP,
                                            [BENCH_OP_SET] = NVS_AMO_SET,
                                            [BENCH_OP_SWAP] = NVS_AMO_SWAP,
                                            [BENCH_OP_AND] = NVS_AMO_AND,
                                            [BENCH_OP_OR] = NVS_AMO_OR,
                                            [BENCH_OP_XOR] = NVS_AMO_XOR,
                                            [BENCH_OP_FETCH] = NVS_AMO_FETCH};
    struct bench_host *t = self;
    struct host_amo amo = {.op = ops[a->op], .bytes = (int)a->bytes, .value = a->operand, .compare = a->compare};
    size_t at = word - t->pe->remote[pe], slot;
    struct bench_fetch *f;
    int rc;

    if (t->pe->run->engine.foreign && (a->op != BENCH_OP_ADD || a->bytes != 8)) {
        snprintf(t->pe->run->why, sizeof(t->pe->run->why),
                 "bench: this plugin ends the process on atomics other than 8-byte adds where there is no GPU");
        return -ENOTSUP;
    }
    if (amo.op < NVS_AMO_FETCH)
        return bench_host_posted(t, host_amo(t->h, pe, at, &amo, 0), done);
    f = bench_host_slot(t);
    if (!f)
        return -EAGAIN;
    slot = t->slots + (size_t)(f - t->fetch) * sizeof(struct nvs_fetch_slot);
    memset(t->pe->mem + slot, 0, sizeof(struct nvs_fetch_slot));
    rc = bench_host_said(t, host_amo(t->h, pe, at, &amo, slot));
    if (rc == 0)
        *f = (struct bench_fetch){done, old, a->bytes};
    return rc;
}

/** Results of fetches that have come. How many, or a negative errno. */
static int bench_host_fetched(struct bench_host *t)
{
    int n = 0;

    for (unsigned i = 0; i < t->n_fetches; i++) {
        struct bench_fetch *f = &t->fetch[i];
        uint64_t value = 0;
        int rc;

        if (!f->done)
            continue;
        rc = host_fetched(t->h, t->slots + i * sizeof(struct nvs_fetch_slot), (int)f->bytes, &value);
        if (rc < 0)
            return rc;
        if (rc == 0)
            continue;
        if (f->old)
            *f->old = value;
        f->done->ok++;
        f->done = NULL;
        n++;
    }
    return n;
}

static bool bench_host_has_fence(void *self)
{
    return host_has_fence(((struct bench_host *)self)->h);
}

static int bench_host_fence(void *self)
{
    struct bench_host *t = self;

    return bench_host_said(t, host_fence(t->h));
}

static int bench_host_quiet(void *self, int pe)
{
    struct bench_host *t = self;
    uint64_t began = t->pe->run->emu->now();
    int rc = bench_host_said(t, host_quiet(t->h));

    (void)pe; /* device code has a quiet of all only */
    for (size_t i = 0; rc == 0 && i < t->n_pending; i++)
        t->pending[i]->ok++;
    if (rc == 0)
        t->n_pending = 0;
    t->pe->busy_ns += t->pe->run->emu->now() - began;
    return rc;
}

static int bench_host_progress(void *self)
{
    struct bench_host *t = self;
    uint64_t began = t->pe->run->emu->now();
    int n = bench_host_said(t, host_step(t->h)), fetched = n < 0 ? n : bench_host_said(t, bench_host_fetched(t));
    bool idle = n == 0 && fetched == 0 && !t->posted;

    t->pe->busy_ns += t->pe->run->emu->now() - began;
    t->posted = false;
    if (fetched < 0)
        return fetched;
    if (!idle || t->n_pending == 0)
        return n + fetched;
    n = bench_host_quiet(t, BRAID_ALL_PES);
    return n ? n : 1;
}

const struct bench_transport bench_host = {
    .has_proxy = true,
    .align = BENCH_HOST_ALIGN,
    .open = bench_host_open,
    .close = bench_host_close,
    .put = bench_host_put,
    .get = bench_host_get,
    .signal = bench_host_signal,
    .put_signal = bench_host_put_signal,
    .atomic = bench_host_atomic,
    .has_fence = bench_host_has_fence,
    .fence = bench_host_fence,
    .progress = bench_host_progress,
    .quiet = bench_host_quiet,
};
