/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_atomic.c - many PEs change one word of PE 0, and what it holds at the end is checked against what they did. Called
 * by bench_run.c; next: the transport.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_ATOMIC_FETCHED 0x0123456789abcdefu /* what BENCH_OP_FETCH finds */

/** One atomic under way. */
struct bench_try {
    struct braid_done done;
    struct bench_atomic a;
    uint64_t old, called_ns;
    bool busy, again; /* again: not accepted yet */
};

/** What one PE does. */
struct bench_adder {
    struct bench_pe *p;
    uint64_t next, share, ended;
    struct bench_try *try;
};

static unsigned bench_atomic_bytes(const struct bench_run *run)
{
    return run->spec->size == 4 ? 4 : 8;
}

static uint64_t bench_atomic_mask(const struct bench_run *run)
{
    return bench_atomic_bytes(run) == 4 ? UINT32_MAX : UINT64_MAX;
}

static uint64_t *bench_atomic_word(const struct bench_pe *p)
{
    return (uint64_t *)(void *)(p->mem + bench_word_offset(p->run, 0, -1));
}

static uint64_t bench_atomic_initial(const struct bench_run *run)
{
    uint64_t mask = bench_atomic_mask(run);

    if (run->spec->op == BENCH_OP_AND)
        return mask;
    return run->spec->op == BENCH_OP_FETCH ? BENCH_ATOMIC_FETCHED & mask : 0;
}

/** This PE's number among those that take part, or -1. */
static int bench_atomic_rank(const struct bench_pe *p, int *ranks)
{
    int from = p->run->spec->all ? 0 : 1;

    *ranks = p->run->spec->all ? p->run->n_pes : p->run->peers;
    return p->pe >= from && p->pe < from + *ranks ? p->pe - from : -1;
}

/** The operand of a PE's k-th atomic: no two are the same where that matters. */
static uint64_t bench_atomic_operand(const struct bench_pe *p, uint64_t k)
{
    uint64_t mask = bench_atomic_mask(p->run), bits = mask == UINT64_MAX ? 64 : 32;
    uint64_t unique = k * (uint64_t)p->n_pes + (uint64_t)p->pe + 1;

    switch (p->run->spec->op) {
    case BENCH_OP_OR:
        return (uint64_t)1 << unique % bits;
    case BENCH_OP_AND:
        return mask & ~((uint64_t)1 << unique % (bits - 1));
    case BENCH_OP_XOR:
        return mask & (unique * 0x9e3779b97f4a7c15u);
    case BENCH_OP_SET:
    case BENCH_OP_SWAP:
        return mask & unique;
    default:
        return 1;
    }
}

/** Old values of adds: each of 0, 1, 2, ... once. */
static void bench_atomic_old(struct bench_run *run, uint64_t old)
{
    struct bench_tally *t = &run->tally;

    if (!t->seen || old >= run->spec->count || t->seen[old / 8] & 1u << old % 8)
        t->twice++;
    else
        t->seen[old / 8] |= (unsigned char)(1u << old % 8);
}

/** One has ended. Returns whether it counts; a compare and swap that lost starts again. */
static bool bench_atomic_take(struct bench_adder *w, struct bench_try *t)
{
    struct bench_run *run = w->p->run;
    struct bench_tally *sum = &run->tally;
    uint64_t mask = bench_atomic_mask(run), old = t->old & mask;

    if (run->spec->op == BENCH_OP_COMPARE_SWAP && old != (t->a.compare & mask)) {
        t->a.compare = old;
        t->a.operand = (old + 1) & mask;
        t->again = true;
        return false;
    }
    sum->add += run->spec->op == BENCH_OP_COMPARE_SWAP ? 1 : t->a.operand;
    sum->xor ^= t->a.operand;
    sum->or |= t->a.operand;
    sum->and &= t->a.operand;
    sum->old_add += old;
    sum->old_xor ^= old;
    if (run->spec->op == BENCH_OP_FETCH_ADD || run->spec->op == BENCH_OP_COMPARE_SWAP)
        bench_atomic_old(run, old);
    if (run->spec->op == BENCH_OP_FETCH && old != bench_atomic_initial(run))
        run->errors++;
    return true;
}

static int bench_atomic_collect(struct bench_adder *w)
{
    struct bench_pe *p = w->p;

    for (unsigned i = 0; i < p->run->spec->window; i++) {
        struct bench_try *t = &w->try[i];

        if (!t->busy || t->again || t->done.ok + t->done.failed == 0)
            continue;
        if (t->done.failed)
            return t->done.error;
        if (!bench_atomic_take(w, t))
            continue;
        t->busy = false;
        w->ended++;
        bench_samples_add(&p->latency, p->run->emu->now() - t->called_ns);
        bench_run_moved(p->run, 1);
    }
    return 0;
}

static int bench_atomic_call(struct bench_adder *w, struct bench_try *t)
{
    struct bench_pe *p = w->p;
    uint64_t word = p->remote[0] + bench_word_offset(p->run, 0, -1);
    bool fetches = t->a.op == BENCH_OP_FETCH_ADD || t->a.op == BENCH_OP_COMPARE_SWAP || t->a.op == BENCH_OP_SWAP ||
                   t->a.op == BENCH_OP_FETCH;
    int rc;

    memset(&t->done, 0, sizeof(t->done));
    rc = p->transport->atomic(p->transport_self, 0, word, &t->a, fetches ? &t->old : NULL, &t->done);
    t->again = rc == -EAGAIN;
    return rc;
}

/** Calls what the window allows. 0, also where no more is taken now. */
static int bench_atomic_issue(struct bench_adder *w, bool *moved)
{
    struct bench_pe *p = w->p;
    int rc = 0;

    for (unsigned i = 0; i < p->run->spec->window; i++) {
        struct bench_try *t = &w->try[i];

        if (!t->again) {
            if (t->busy || w->next == w->share)
                continue;
            *t = (struct bench_try){.busy = true, .called_ns = p->run->emu->now()};
            t->a = (struct bench_atomic){p->run->spec->op, bench_atomic_bytes(p->run), bench_atomic_operand(p, w->next),
                                         0};
            p->run->tally.last[p->pe] = t->a.operand;
            w->next++;
        }
        rc = bench_atomic_call(w, t);
        if (rc)
            return rc == -EAGAIN ? 0 : rc;
        *moved = true;
    }
    return 0;
}

static int bench_atomic_run(struct bench_adder *w)
{
    struct bench_pe *p = w->p;
    int n, rc = 0;

    while (rc == 0 && w->ended < w->share) {
        bool moved = false;

        rc = bench_atomic_issue(w, &moved);
        n = rc ? rc : p->transport->progress(p->transport_self);
        if (n < 0)
            return n;
        rc = bench_atomic_collect(w);
        if (rc == 0 && !moved && n == 0)
            rc = p->run->emu->wait(UINT64_MAX);
    }
    if (rc == 0)
        rc = p->transport->quiet(p->transport_self, 0);
    p->end_ns = p->run->emu->now();
    p->wall_ns = p->end_ns - p->start_ns;
    return rc;
}

/** PE 0 knows what its word should hold. */
static void bench_atomic_check(struct bench_pe *p)
{
    struct bench_run *run = p->run;
    const struct bench_tally *t = &run->tally;
    uint64_t mask = bench_atomic_mask(run), seen = __atomic_load_n(bench_atomic_word(p), __ATOMIC_ACQUIRE) & mask;
    uint64_t expected = bench_atomic_initial(run);
    bool right = false;

    switch (run->spec->op) {
    case BENCH_OP_SET:
        for (int i = 0; i < run->n_pes; i++)
            right |= t->last[i] == seen;
        run->errors += !right;
        return;
    case BENCH_OP_SWAP: /* each value went in once and came out once, but the last */
        run->errors += ((t->add ^ (t->old_add + seen)) & mask) != 0 || t->xor != (t->old_xor ^ seen);
        return;
    case BENCH_OP_AND:
        expected &= t->and;
        break;
    case BENCH_OP_OR:
        expected |= t->or ;
        break;
    case BENCH_OP_XOR:
        expected ^= t->xor ;
        break;
    case BENCH_OP_FETCH:
        break;
    default: /* lost updates, and those that were done twice */
        expected = t->add & mask;
        run->errors += expected > seen ? expected - seen : seen - expected;
        run->errors += t->twice;
        return;
    }
    run->errors += seen != expected;
}

static int bench_atomic_open(struct bench_adder *w)
{
    struct bench_pe *p = w->p;
    int ranks, rank = bench_atomic_rank(p, &ranks);
    uint64_t count = p->run->spec->count;

    w->try = calloc(p->run->spec->window, sizeof(*w->try));
    if (rank >= 0)
        w->share = count / (uint64_t)ranks + ((uint64_t)rank < count % (uint64_t)ranks);
    if (p->pe == 0) {
        uint64_t initial = bench_atomic_initial(p->run);

        memcpy(bench_atomic_word(p), &initial, 8);
        p->run->tally.and = UINT64_MAX;
        p->run->tally.seen = calloc((size_t)count / 8 + 1, 1);
    }
    if (!w->try || bench_samples_open(&p->latency, w->share))
        return -ENOMEM;
    return 0;
}

int bench_atomic_pe(struct bench_pe *p)
{
    struct bench_adder w = {.p = p};
    int rc = bench_atomic_open(&w);

    if (rc == 0)
        rc = bench_pe_wait_start(p);
    if (rc == 0)
        rc = bench_pe_meet(p);
    if (rc == 0 && w.share)
        rc = bench_atomic_run(&w);
    if (rc == 0)
        rc = bench_pe_meet(p); /* PE 0 executes for others what their devices cannot */
    if (rc == 0 && p->pe == 0)
        bench_atomic_check(p);
    free(w.try);
    return rc;
}
