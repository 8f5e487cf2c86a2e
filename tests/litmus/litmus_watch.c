/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_watch.c - observers: they look at their own memory and compare it with the image at the moment they see what
 * announces it. No call of libbraid in here but in litmus_act(). Called by litmus_run.c and litmus_ops.c; next: the verdict.
 */
#include "litmus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct litmus_watch *litmus_watch_new(struct litmus_pe *p, const char *name, struct litmus_span when)
{
    struct litmus_run *r = p->run;
    struct litmus_made *made = &r->made[p->pe];
    struct litmus_watch *w = &made->watch[made->n_watches];

    if (made->n_watches == LITMUS_WATCHES || !when.len)
        return NULL;
    *w = (struct litmus_watch){.name = name, .when = when, .maker = p->pe, .first = made->n_spans};
    __atomic_fetch_add(&r->open, 1, __ATOMIC_SEQ_CST);
    /* What must hold is added before anything is issued that could let it be seen. */
    __atomic_store_n(&made->n_watches, made->n_watches + 1, __ATOMIC_RELEASE);
    return w;
}

void litmus_must(struct litmus_pe *p, struct litmus_watch *w, struct litmus_span span)
{
    struct litmus_made *made = &p->run->made[p->pe];

    if (!w)
        return; /* the caller sees that, too */
    if (made->n_spans == LITMUS_SPANS || span.pe != w->when.pe || w->first + w->n_must != made->n_spans) {
        litmus_fail(p, -EINVAL, "a conclusion that this watch cannot draw, or named behind the next watch");
        return;
    }
    made->span[made->n_spans++] = span;
    w->n_must++;
}

/** Writes down the first violation of a run. */
static void litmus_violation(struct litmus_pe *p, const char *name, uint64_t bytes, const char *what)
{
    struct litmus_verdict *v = &p->run->verdict;

    __atomic_fetch_add(&v->bytes, bytes, __ATOMIC_RELAXED);
    if (__atomic_fetch_add(&v->violations, 1, __ATOMIC_SEQ_CST) == 0)
        snprintf(v->text, sizeof(v->text), "PE %d at %" PRIu64 " ns, %s: %s", p->pe, p->run->emu->now(), name, what);
    litmus_note(p, "VIOLATION %s: %s", name, what);
}

bool litmus_compare(struct litmus_pe *p, const char *name, struct litmus_span span, uint32_t at)
{
    const unsigned char *seen = p->bytes + at, *expected = p->run->image[span.pe] + span.at;
    uint32_t first = span.len, wrong = 0;
    char text[256];

    if (memcmp(seen, expected, span.len) == 0)
        return true;
    for (uint32_t i = 0; i < span.len; i++) {
        if (seen[i] != expected[i])
            wrong++;
        if (seen[i] != expected[i] && first == span.len)
            first = i;
    }
    snprintf(text, sizeof(text), "%u of %u bytes at %u of PE %d wrong, first at %u: seen %02x, expected %02x", wrong,
             span.len, span.at, span.pe, span.at + first, seen[first], expected[first]);
    litmus_violation(p, name, wrong, text);
    return false;
}

static void litmus_conclude(struct litmus_pe *p)
{
    __atomic_fetch_add(&p->run->verdict.conclusions, 1, __ATOMIC_RELAXED);
}

/** A word that takes several values: they must come in their order, none other. True at the last one. */
static bool litmus_chain(struct litmus_pe *p, struct litmus_watch *w)
{
    uint64_t v;
    char text[128];

    memcpy(&v, p->bytes + w->when.at, sizeof(v));
    if (v == (w->at_chain ? w->chain[w->at_chain - 1] : 0))
        return false;
    litmus_conclude(p);
    for (unsigned i = w->at_chain; i < w->n_chain; i++) {
        if (v == w->chain[i]) {
            w->at_chain = i + 1;
            return w->at_chain == w->n_chain;
        }
    }
    snprintf(text, sizeof(text), "word %u holds %#" PRIx64 " behind value %u of %u", w->when.at, v, w->at_chain,
             w->n_chain);
    litmus_violation(p, w->name, sizeof(v), text);
    return true; /* one violation is enough, and the last value may never come */
}

static bool litmus_sees(struct litmus_pe *p, struct litmus_watch *w)
{
    const unsigned char *at = p->bytes + w->when.at;
    bool seen = false;

    if (w->n_chain)
        return litmus_chain(p, w);
    for (uint32_t i = 0; i < w->when.len && !seen; i++)
        seen = at[i] != 0;
    return seen;
}

/** Notes the watches of this PE that were made since it last looked. */
static void litmus_collect(struct litmus_pe *p)
{
    for (int maker = 0; maker < p->run->c->test->pes; maker++) {
        struct litmus_made *made = &p->run->made[maker];
        unsigned n = __atomic_load_n(&made->n_watches, __ATOMIC_ACQUIRE);

        for (; p->next_watch[maker] < n; p->next_watch[maker]++) {
            if (made->watch[p->next_watch[maker]].when.pe == p->pe)
                p->unseen[p->n_unseen++] = &made->watch[p->next_watch[maker]];
        }
    }
}

void litmus_look(struct litmus_pe *p)
{
    struct litmus_run *r = p->run;
    unsigned kept = 0;

    litmus_collect(p);
    for (unsigned k = 0; k < p->n_unseen; k++) {
        struct litmus_watch *w = p->unseen[k];

        if (!litmus_sees(p, w)) {
            p->unseen[kept++] = w;
            continue;
        }
        atomic_thread_fence(memory_order_acquire);
        w->seen = true;
        litmus_note(p, "sees %s at %u", w->name, w->when.at);
        for (unsigned i = 0; i < w->n_must; i++) {
            struct litmus_span must = r->made[w->maker].span[w->first + i];

            litmus_conclude(p);
            litmus_compare(p, w->name, must, must.at);
        }
        if (w->then)
            p->act[p->n_act++] = w;
        else
            __atomic_fetch_sub(&r->open, 1, __ATOMIC_SEQ_CST);
    }
    p->n_unseen = kept;
}

int litmus_act(struct litmus_pe *p)
{
    struct litmus_run *r = p->run;
    int rc = 0;

    for (unsigned k = 0; k < p->n_act && rc == 0; k++) { /* what is done may let more be seen */
        struct litmus_watch *w = p->act[k];

        __atomic_fetch_add(&r->busy, 1, __ATOMIC_SEQ_CST);
        rc = w->then(p, w);
        rc = rc ? rc : litmus_quiet(p, 0, BRAID_ALL_PES); /* nobody leaves while others may have to answer it */
        __atomic_store_n(&r->moved_ns, r->emu->now(), __ATOMIC_SEQ_CST);
        __atomic_fetch_sub(&r->busy, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_sub(&r->open, 1, __ATOMIC_SEQ_CST);
    }
    p->n_act = 0;
    return rc;
}

void litmus_give_up(struct litmus_pe *p)
{
    struct litmus_run *r = p->run;

    if (__atomic_load_n(&r->busy, __ATOMIC_SEQ_CST) > 0 ||
        r->emu->now() < __atomic_load_n(&r->moved_ns, __ATOMIC_SEQ_CST) + r->patience_ns)
        return;
    for (unsigned k = 0; k < p->n_unseen; k++) {
        litmus_violation(p, p->unseen[k]->name, p->unseen[k]->when.len, "it was never seen");
        __atomic_fetch_sub(&r->open, 1, __ATOMIC_SEQ_CST);
    }
    p->n_unseen = 0;
}

/** Old values of fetch-and-adds are tickets: all differ. */
static void litmus_tickets(struct litmus_pe *p)
{
    static const char name[] = "fetched values";
    unsigned char drawn[4096] = {0};

    for (int pe = 0; pe < p->run->c->test->pes; pe++) {
        for (unsigned k = 0; k < p->run->pe[pe]->n_ops; k++) {
            const struct litmus_op *op = &p->run->pe[pe]->op[k];

            if (!op->ticket)
                continue;
            if (op->old >= sizeof(drawn) || drawn[op->old])
                litmus_violation(p, name, sizeof(op->old), "a value was fetched twice");
            else
                drawn[op->old] = 1;
        }
    }
}

void litmus_final(struct litmus_pe *p)
{
    char text[160];

    litmus_conclude(p);
    litmus_compare(p, "memory in the end", (struct litmus_span){p->pe, 0, LITMUS_MEM}, 0);
    for (unsigned k = 0; k < p->n_ops; k++) {
        const struct litmus_op *op = &p->op[k];

        snprintf(text, sizeof(text),
                 "op %u has ended well %" PRIu64 " times and badly %" PRIu64 " times (%d), expected once well", k,
                 op->done.ok, op->done.failed, op->done.error);
        if (op->done.ok != 1 || op->done.failed)
            litmus_fail(p, -EPROTO, text);
        if (op->check_old && op->old != op->old_expected)
            litmus_violation(p, "fetched value", sizeof(op->old), "it is not what the word held");
    }
    if (p->pe == 0)
        litmus_tickets(p);
}
