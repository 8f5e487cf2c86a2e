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
    struct bench_regions regions;
    struct bench_charge charge;
    uint64_t cost_put, cost_word, cost_pass; /* paid ahead */
};

static uint64_t bench_braid_now(void *arg)
{
    const struct bench_braid *t = arg;

    return t->pe->run->emu->now();
}

static int bench_braid_wait(void *arg, uint64_t deadline_ns)
{
    struct bench_braid *t = arg;
    uint64_t began;
    int rc;

    bench_charge_pass(&t->charge, t->cost_pass);
    began = t->pe->run->emu->now();
    rc = t->pe->run->emu->wait(deadline_ns);
    t->pe->slept_ns += t->pe->run->emu->now() - began;
    return rc;
}

const char *bench_braid_wish(const struct bench_run *run, const char *name)
{
    const struct bench_spec *s = run->spec;

    if (strcmp(name, "order") == 0)
        return s->order;
    if (strcmp(name, "tail") == 0)
        return s->tail;
    if (strcmp(name, "fault") == 0)
        return s->fault;
    return NULL;
}

/** What each PE of a run wants for itself. */
struct bench_braid_own {
    char ports[BENCH_BRAID_SETTING - 16], planes[BENCH_BRAID_SETTING - 16], seed[32], live[32];
};

/** Leaves the i-th of "a,b,c", in place; an empty list stays so. */
static void bench_braid_only(char *list, int i)
{
    char *at = list;
    size_t len;

    for (; i > 0 && strchr(at, ','); i--)
        at = strchr(at, ',') + 1;
    len = strcspn(at, ",");
    memmove(list, at, len);
    list[len] = '\0';
}

static const char *bench_braid_value(const struct bench_pe *p, const char *name, struct bench_braid_own *own)
{
    if (strcmp(name, "seed") == 0)
        return own->seed;
    if (p->run->spec->live)
        return bench_live_wish(p, name, own->live, sizeof(own->live));
    if (strcmp(name, "ports") == 0)
        return own->ports;
    if (strcmp(name, "planes") == 0)
        return own->planes;
    return bench_braid_wish(p->run, name);
}

/** Whether the caller sets an option itself. */
static bool bench_braid_is_set(const struct bench_spec *s, const char *name)
{
    size_t len = strlen(name);

    for (int i = 0; s->setting[i]; i++) {
        if (strncmp(s->setting[i], name, len) == 0 && s->setting[i][len] == '=')
            return true;
    }
    return false;
}

int bench_braid_settings(const struct bench_pe *p, int rail, struct bench_braid_settings *out)
{
    struct bench_braid_own own;
    struct braid_option_row row;
    int n = 0, rc = p->run->spec->live ? 0 : bench_ports(p->run, p->pe, own.ports, own.planes, sizeof(own.ports));

    if (rail >= 0) {
        bench_braid_only(own.ports, rail);
        bench_braid_only(own.planes, rail);
    }
    snprintf(own.seed, sizeof(own.seed), "%llu", (unsigned long long)(p->run->spec->seed + 1 + (uint64_t)p->pe));
    for (size_t i = 0; rc == 0 && braid_option_at(i, &row) == 0; i++) {
        const char *value = bench_braid_value(p, row.name, &own);

        if (strcmp(row.name, "log") == 0 && p->run->spec->unreachable && !getenv("BRAID_LOG"))
            value = "error"; /* that ports do not reach each other is meant to be so */
        else if (strcmp(row.name, "log") == 0)
            continue;
        if (bench_braid_is_set(p->run->spec, row.name) || (p->run->spec->live && !value))
            continue;
        if (n == BENCH_BRAID_SETTINGS)
            return -ENOSPC;
        snprintf(out->text[n], sizeof(out->text[n]), "%s=%s", row.name, value ? value : row.default_value);
        out->list[n] = out->text[n];
        n++;
    }
    for (int i = 0; rc == 0 && p->run->spec->setting[i]; i++) {
        if (n == BENCH_BRAID_SETTINGS)
            return -ENOSPC;
        out->list[n++] = p->run->spec->setting[i];
    }
    out->list[n] = NULL;
    return rc;
}

static int bench_braid_connect(struct bench_braid *t)
{
    struct bench_pe *p = t->pe;
    struct braid_peers peers = {sizeof(peers), p->rank, p->n_pes, bench_job_alltoall, p};
    int rc = braid_connect(t->b, &peers);

    return rc ? rc : bench_regions_open(&t->regions, p, t->b);
}

static void bench_braid_costs(struct bench_braid *t)
{
    const uint64_t *cost = t->charge.cost;

    bench_charge_open(&t->charge, t->pe->run->emu, t->ch);
    t->cost_put = cost[BENCH_WORK_PUT] + cost[BENCH_WORK_WHOLE] + cost[BENCH_WORK_LIST];
    t->cost_word = cost[BENCH_WORK_WORD];
    t->cost_pass = cost[BENCH_WORK_PASS] + cost[BENCH_WORK_POLL] * (uint64_t)braid_rail_count(t->b);
}

static void bench_braid_close(void *self)
{
    struct bench_braid *t = self;

    if (!t)
        return;
    if (t->ch && t->pe->run->spec->live)
        bench_live_rails(t->pe, t->b);
    bench_regions_close(&t->regions);
    braid_close(t->b);
    free(t);
}

static int bench_braid_open(struct bench_pe *p, void **self)
{
    struct braid_options o = BRAID_OPTIONS_INIT;
    struct bench_braid *t = calloc(1, sizeof(*t));
    struct bench_braid_settings *settings = calloc(1, sizeof(*settings));
    int rc = t && settings ? bench_braid_settings(p, -1, settings) : -ENOMEM;

    if (rc == 0) {
        t->pe = p;
        o.settings = settings->list;
        o.now = bench_braid_now;
        o.wait = bench_braid_wait;
        o.clock_arg = t;
        rc = braid_open(&o, &t->b);
    }
    if (rc == 0 && p->run->spec->live)
        rc = bench_live_opened(p, t->b);
    free(settings);
    if (rc == 0)
        rc = bench_braid_connect(t);
    if (rc) {
        bench_braid_close(t);
        return rc;
    }
    t->ch = braid_channel_at(t->b, 0);
    bench_braid_costs(t);
    *self = t;
    return 0;
}

/* ---- calls: each pays for itself, and its time on the CPU is noted ----------------------------------------------- */

/** A call begins, and pays first: what it posts must not leave before its work is done. Now, less what was slept. */
static uint64_t bench_braid_begin(struct bench_braid *t, uint64_t ahead)
{
    uint64_t began = t->pe->run->emu->now() - t->pe->slept_ns;

    bench_charge_ahead(&t->charge, ahead);
    return began;
}

/** Leaves the counters where the figures are made. */
static void bench_braid_note(struct bench_braid *t)
{
    for (int w = 0; w < BENCH_WORK; w++)
        t->pe->work[w] = t->charge.work[w];
    t->pe->work_ns = t->charge.work_ns;
}

static void bench_braid_end(struct bench_braid *t, uint64_t began, uint64_t ahead, int rc)
{
    if (rc == -EAGAIN)
        bench_charge_refused(&t->charge, ahead);
    bench_charge_now(&t->charge);
    t->pe->busy_ns += t->pe->run->emu->now() - t->pe->slept_ns - began;
    bench_braid_note(t);
}

static int bench_braid_put(void *self, int pe, uint64_t dst, const void *src, size_t len, struct braid_done *done)
{
    struct bench_braid *t = self;
    uint64_t began = bench_braid_begin(t, t->cost_put);
    int rc =
        braid_put(t->ch, pe, bench_regions_far(&t->regions, pe, dst), bench_regions_near(&t->regions, src), len, done);

    bench_braid_end(t, began, t->cost_put, rc);
    return rc;
}

static int bench_braid_get(void *self, int pe, void *dst, uint64_t src, size_t len, struct braid_done *done)
{
    struct bench_braid *t = self;
    uint64_t began = bench_braid_begin(t, t->cost_put);
    int rc =
        braid_get(t->ch, pe, bench_regions_near(&t->regions, dst), bench_regions_far(&t->regions, pe, src), len, done);

    bench_braid_end(t, began, t->cost_put, rc);
    return rc;
}

static int bench_braid_signal(void *self, int pe, uint64_t word, enum bench_signal_how how, uint64_t value,
                              struct braid_done *done)
{
    struct bench_braid *t = self;
    struct braid_remote dst = bench_regions_far(&t->regions, pe, word);
    uint64_t began = bench_braid_begin(t, t->cost_word);
    int rc = how == BENCH_SIGNAL_ADD ? braid_signal_add(t->ch, pe, dst, value, done)
                                     : braid_signal_set(t->ch, pe, dst, value, done);

    bench_braid_end(t, began, t->cost_word, rc);
    return rc;
}

static int bench_braid_put_signal(void *self, int pe, const struct bench_put_signal *ps, struct braid_done *done)
{
    struct bench_braid *t = self;
    struct braid_part part = {bench_regions_far(&t->regions, pe, ps->dst), bench_regions_near(&t->regions, ps->src),
                              ps->len};
    uint64_t cost = t->cost_put + t->cost_word, began = bench_braid_begin(t, cost);
    int rc = braid_put_signal(t->ch, pe, &part, 1, bench_regions_far(&t->regions, pe, ps->word),
                              ps->how == BENCH_SIGNAL_ADD ? BRAID_SIGNAL_ADD : BRAID_SIGNAL_SET, ps->value, done);

    bench_braid_end(t, began, cost, rc);
    return rc;
}

static int bench_braid_atomic(void *self, int pe, uint64_t word, const struct bench_atomic *a, uint64_t *old,
                              struct braid_done *done)
{
    static const enum braid_atomic_op ops[BENCH_OP_COUNT] = {
        [BENCH_OP_ADD] = BRAID_ATOMIC_ADD,
        [BENCH_OP_FETCH_ADD] = BRAID_ATOMIC_FETCH_ADD,
        [BENCH_OP_COMPARE_SWAP] = BRAID_ATOMIC_COMPARE_SWAP,
        [BENCH_OP_SET] = BRAID_ATOMIC_SET,
        [BENCH_OP_SWAP] = BRAID_ATOMIC_SWAP,
        [BENCH_OP_AND] = BRAID_ATOMIC_AND,
        [BENCH_OP_OR] = BRAID_ATOMIC_OR,
        [BENCH_OP_XOR] = BRAID_ATOMIC_XOR,
        [BENCH_OP_FETCH] = BRAID_ATOMIC_FETCH,
    };
    struct bench_braid *t = self;
    struct braid_remote dst = bench_regions_far(&t->regions, pe, word);
    struct braid_atomic atomic = {ops[a->op], a->bytes, a->operand, a->compare};
    uint64_t began = bench_braid_begin(t, t->cost_word);
    int rc = braid_atomic(t->ch, pe, dst, &atomic, old, done);

    bench_braid_end(t, began, t->cost_word, rc);
    return rc;
}

/** libbraid's plugin has a fence op in strict mode only. */
static bool bench_braid_has_fence(void *self)
{
    const char *order = ((struct bench_braid *)self)->pe->run->spec->order;

    return order && strcmp(order, "strict") == 0;
}

static int bench_braid_fence(void *self)
{
    struct bench_braid *t = self;

    return braid_fence(t->ch, BRAID_ALL_PES);
}

static uint64_t bench_braid_deferred(void *self)
{
    struct braid_channel_stats now = {.size = sizeof(now)};

    return braid_channel_stats_at(((struct bench_braid *)self)->ch, &now) ? 0 : now.waiting_words;
}

static void bench_braid_look(void *self)
{
    struct bench_braid *t = self;

    bench_live_rails(t->pe, t->b);
}

static int bench_braid_progress(void *self)
{
    struct bench_braid *t = self;
    uint64_t began = bench_braid_begin(t, t->cost_pass);
    int n = braid_progress(t->ch);

    bench_braid_end(t, began, t->cost_pass, 0);
    return n;
}

static int bench_braid_progress_soon(void *self)
{
    struct bench_braid *t = self;
    uint64_t began = bench_braid_begin(t, 0);
    int n = braid_progress_soon(t->ch);

    bench_braid_end(t, began, 0, 0);
    return n;
}

static int bench_braid_quiet(void *self, int pe)
{
    struct bench_braid *t = self;
    uint64_t began = bench_braid_begin(t, 0);
    int rc = braid_quiet(t->ch, pe);

    bench_braid_end(t, began, 0, 0);
    return rc;
}

const struct bench_transport bench_braid = {
    .open = bench_braid_open,
    .close = bench_braid_close,
    .put = bench_braid_put,
    .get = bench_braid_get,
    .signal = bench_braid_signal,
    .put_signal = bench_braid_put_signal,
    .atomic = bench_braid_atomic,
    .has_fence = bench_braid_has_fence,
    .fence = bench_braid_fence,
    .look = bench_braid_look,
    .deferred = bench_braid_deferred,
    .progress = bench_braid_progress,
    .progress_soon = bench_braid_progress_soon,
    .quiet = bench_braid_quiet,
};
