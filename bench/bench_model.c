/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_model.c - engine model:nic-rr, a model of published behaviour of a host transport that drives several NICs: whole ops go
 * round robin over the NICs, a fence is a blocking quiet of all of them, a signal stands behind such a fence, and an atomic's NIC
 * goes with its address. No code of that transport is in it, and no figure of it is measured here. Built of one libbraid
 * context a port, each with one lane a peer. Called by bench_run.c; next: braid.h.
 *
 * Time: as bench_host.c, the verbs calls and 150 ns a request of the proxy.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_MODEL_OPS = 8192 };

/** One op under way. */
struct bench_model_op {
    struct braid_done done, *user;
};

/** One NIC. */
struct bench_nic {
    struct braid *b;
    struct braid_channel *ch;
    struct bench_regions regions;
};

struct bench_model {
    struct bench_pe *pe;
    struct bench_nic nic[BRAID_MAX_RAILS];
    int n;
    uint64_t turn;
    struct bench_model_op *op; /* BENCH_MODEL_OPS of them; owned */
    unsigned *free, n_free;    /* owned */
    struct braid_done inner;   /* ops that nobody waits for alone */
};

static uint64_t bench_model_now(void *arg)
{
    return ((const struct emu_sim_api *)arg)->now();
}

static int bench_model_wait(void *arg, uint64_t deadline_ns)
{
    return ((const struct emu_sim_api *)arg)->wait(deadline_ns);
}

static void bench_model_close(void *self)
{
    struct bench_model *t = self;

    if (!t)
        return;
    for (int i = 0; i < t->n; i++) {
        bench_regions_close(&t->nic[i].regions);
        braid_close(t->nic[i].b);
    }
    free(t->op);
    free(t->free);
    free(t);
}

static int bench_nic_open(struct bench_nic *nic, struct bench_pe *p, int i)
{
    struct braid_peers peers = {sizeof(peers), p->rank, p->n_pes, bench_job_alltoall, p};
    struct braid_options o = BRAID_OPTIONS_INIT;
    struct bench_braid_settings *settings = calloc(1, sizeof(*settings));
    int rc = settings ? bench_braid_settings(p, i, settings) : -ENOMEM;

    if (rc == 0) {
        o.settings = settings->list;
        o.now = bench_model_now;
        o.wait = bench_model_wait;
        o.clock_arg = (void *)(uintptr_t)p->run->emu;
        rc = braid_open(&o, &nic->b);
    }
    free(settings);
    if (rc == 0)
        rc = braid_connect(nic->b, &peers);
    nic->ch = rc ? NULL : braid_channel_at(nic->b, 0);
    return rc ? rc : bench_regions_open(&nic->regions, p, nic->b);
}

static int bench_model_open(struct bench_pe *p, void **self)
{
    struct bench_model *t = calloc(1, sizeof(*t));
    int rc = 0;

    if (!t)
        return -ENOMEM;
    t->pe = p;
    t->op = calloc(BENCH_MODEL_OPS, sizeof(*t->op));
    t->free = calloc(BENCH_MODEL_OPS, sizeof(*t->free));
    if (!t->op || !t->free)
        rc = -ENOMEM;
    for (unsigned i = 0; rc == 0 && i < BENCH_MODEL_OPS; i++)
        t->free[t->n_free++] = i;
    while (rc == 0 && t->n < p->run->rails && t->n < BRAID_MAX_RAILS) {
        t->n++; /* what is half open is closed, too */
        rc = bench_nic_open(&t->nic[t->n - 1], p, t->n - 1);
    }
    if (rc) {
        bench_model_close(t);
        return rc;
    }
    *self = t;
    return 0;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static int bench_model_progress(void *self)
{
    struct bench_model *t = self;
    uint64_t began = t->pe->run->emu->now();
    int moved = 0;

    for (int i = 0; i < t->n; i++) {
        int n = braid_progress(t->nic[i].ch);

        if (n < 0)
            return n;
        moved += n;
    }
    for (unsigned i = 0; t->n_free < BENCH_MODEL_OPS && i < BENCH_MODEL_OPS; i++) {
        struct bench_model_op *op = &t->op[i];

        if (!op->user || !(op->done.ok + op->done.failed))
            continue;
        op->user->ok += op->done.ok;
        op->user->failed += op->done.failed;
        op->user->error = op->done.error;
        op->user = NULL;
        t->free[t->n_free++] = i;
        moved++;
    }
    t->pe->busy_ns += t->pe->run->emu->now() - began;
    return moved;
}

/** A fence, and a quiet: until everything has been acknowledged on every NIC. */
static int bench_model_drain(struct bench_model *t)
{
    int n = 0;

    t->pe->run->emu->charge(BENCH_PROXY_NS);
    while (n >= 0 && t->n_free < BENCH_MODEL_OPS) {
        n = bench_model_progress(t);
        if (n == 0) {
            uint64_t began = t->pe->run->emu->now();

            n = t->pe->run->emu->wait(UINT64_MAX);
            t->pe->slept_ns += t->pe->run->emu->now() - began;
        }
    }
    return n < 0 ? n : 0;
}

static bool bench_model_has_fence(void *self)
{
    (void)self;
    return true;
}

static int bench_model_fence(void *self)
{
    return bench_model_drain(self);
}

static int bench_model_quiet(void *self, int pe)
{
    (void)pe;
    return bench_model_drain(self);
}

/** A record for an op; NULL: none is free. */
static struct bench_model_op *bench_model_take(struct bench_model *t)
{
    struct bench_model_op *op = t->n_free ? &t->op[t->free[t->n_free - 1]] : NULL;

    if (op)
        memset(&op->done, 0, sizeof(op->done));
    return op;
}

/** What a call said of the op that was taken. */
static int bench_model_called(struct bench_model *t, struct bench_model_op *op, struct braid_done *user, int rc)
{
    if (rc)
        return rc;
    t->pe->run->emu->charge(BENCH_PROXY_NS);
    op->user = user ? user : &t->inner;
    t->n_free--;
    return 0;
}

static int bench_model_put(void *self, int pe, uint64_t dst, const void *src, size_t len, struct braid_done *done)
{
    struct bench_model *t = self;
    struct bench_nic *nic = &t->nic[t->turn % (uint64_t)t->n];
    struct bench_model_op *op = bench_model_take(t);
    int rc = !op ? -EAGAIN
                 : braid_put(nic->ch, pe, bench_regions_far(&nic->regions, pe, dst),
                             bench_regions_near(&nic->regions, src), len, &op->done);

    t->turn += rc == 0;
    return bench_model_called(t, op, done, rc);
}

static int bench_model_get(void *self, int pe, void *dst, uint64_t src, size_t len, struct braid_done *done)
{
    struct bench_model *t = self;
    struct bench_nic *nic = &t->nic[t->turn % (uint64_t)t->n];
    struct bench_model_op *op = bench_model_take(t);
    int rc = !op ? -EAGAIN
                 : braid_get(nic->ch, pe, bench_regions_near(&nic->regions, dst),
                             bench_regions_far(&nic->regions, pe, src), len, &op->done);

    t->turn += rc == 0;
    return bench_model_called(t, op, done, rc);
}

/** The NIC that all atomics on a word use. */
static struct bench_nic *bench_model_home(struct bench_model *t, int pe, uint64_t word)
{
    return &t->nic[((word - t->pe->remote[pe]) / 8 + (uint64_t)pe) % (uint64_t)t->n];
}

static int bench_model_signal(void *self, int pe, uint64_t word, enum bench_signal_how how, uint64_t value,
                              struct braid_done *done)
{
    struct bench_model *t = self;
    struct bench_nic *nic = bench_model_home(t, pe, word);
    struct braid_remote dst = bench_regions_far(&nic->regions, pe, word);
    struct bench_model_op *op;
    int rc = bench_model_drain(t);

    if (rc)
        return rc;
    op = bench_model_take(t);
    rc = how == BENCH_SIGNAL_ADD ? braid_signal_add(nic->ch, pe, dst, value, &op->done)
                                 : braid_signal_set(nic->ch, pe, dst, value, &op->done);
    return bench_model_called(t, op, done, rc);
}

static int bench_model_put_signal(void *self, int pe, const struct bench_put_signal *ps, struct braid_done *done)
{
    struct bench_model *t = self;
    int rc = bench_model_put(self, pe, ps->dst, ps->src, ps->len, &t->inner);

    return rc ? rc : bench_model_signal(self, pe, ps->word, ps->how, ps->value, done);
}

static int bench_model_atomic(void *self, int pe, uint64_t word, const struct bench_atomic *a, uint64_t *old,
                              struct braid_done *done)
{
    struct bench_model *t = self;
    struct bench_nic *nic = bench_model_home(t, pe, word);
    struct braid_atomic atomic = {a->op == BENCH_OP_FETCH_ADD ? BRAID_ATOMIC_FETCH_ADD : BRAID_ATOMIC_ADD, a->bytes,
                                  a->operand, a->compare};
    struct bench_model_op *op = bench_model_take(t);

    if (a->op != BENCH_OP_ADD && a->op != BENCH_OP_FETCH_ADD)
        return -ENOTSUP;
    if (!op)
        return -EAGAIN;
    return bench_model_called(
        t, op, done, braid_atomic(nic->ch, pe, bench_regions_far(&nic->regions, pe, word), &atomic, old, &op->done));
}

const struct bench_transport bench_model = {
    .has_proxy = true,
    .open = bench_model_open,
    .close = bench_model_close,
    .put = bench_model_put,
    .get = bench_model_get,
    .signal = bench_model_signal,
    .put_signal = bench_model_put_signal,
    .atomic = bench_model_atomic,
    .has_fence = bench_model_has_fence,
    .fence = bench_model_fence,
    .progress = bench_model_progress,
    .quiet = bench_model_quiet,
};
