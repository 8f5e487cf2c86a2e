/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_out.c - what a PE sends: for each stream a window of puts (or gets), a signal behind every so many, and what has
 * ended. A place is free again when its op is acknowledged or, in the signal pattern, its signal. Called by
 * bench_traffic.c; next: the transport.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool bench_frees_by_signal(const struct bench_run *run)
{
    return run->spec->pattern == BENCH_SIGNAL;
}

/* A word that all share announces nothing: it is only summed up. */
static int bench_word_index(const struct bench_run *run, const struct bench_stream *s)
{
    return run->spec->one_word ? -1 : s->index;
}

static int bench_stream_open(struct bench_pe *p, int i)
{
    const struct bench_spec *spec = p->run->spec;
    struct bench_stream *s = &p->out[i];

    s->pe = bench_peer(p->run, p->pe, i);
    s->index = spec->all ? i : 0;
    s->counted = spec->except == 0 || s->pe != spec->except;
    s->slot = calloc(spec->window, sizeof(*s->slot));
    s->free = calloc(spec->window, sizeof(*s->free));
    if (!s->slot || !s->free)
        return -ENOMEM;
    for (unsigned k = 0; k < spec->window; k++)
        s->free[s->n_free++] = spec->window - 1 - k;
    if (!p->run->every)
        return 0;
    s->note = calloc(spec->window, sizeof(*s->note));
    s->called_ns = calloc(spec->count / p->run->every + 1, sizeof(*s->called_ns));
    return s->note && s->called_ns ? 0 : -ENOMEM;
}

int bench_out_open(struct bench_pe *p)
{
    const struct bench_run *run = p->run;
    uint64_t puts = run->spec->count * (uint64_t)run->peers;
    int rc;

    if (p->pe >= run->senders)
        return 0;
    p->out = calloc((size_t)p->run->peers, sizeof(*p->out));
    if (!p->out)
        return -ENOMEM;
    p->n_out = run->peers;
    rc = bench_samples_open(&p->latency, puts);
    if (rc == 0 && run->every)
        rc = bench_samples_open(&p->signal, puts / run->every + (uint64_t)run->peers);
    for (int i = 0; rc == 0 && i < p->n_out; i++)
        rc = bench_stream_open(p, i);
    return rc;
}

void bench_out_close(struct bench_pe *p)
{
    for (int i = 0; i < p->n_out; i++) {
        free(p->out[i].slot);
        free(p->out[i].free);
        free(p->out[i].note);
        free(p->out[i].called_ns);
    }
    free(p->out);
}

void bench_out_begin(struct bench_pe *p, uint64_t lap)
{
    uint64_t count = p->run->spec->count, first = lap * p->run->lap;

    for (int i = 0; i < p->n_out; i++) {
        struct bench_stream *s = &p->out[i];

        s->first = s->next = first;
        s->last = count - first < p->run->lap ? count : first + p->run->lap;
        s->ended = s->groups = s->notes_ended = 0;
    }
    p->lap_sent = p->n_out == 0;
}

static bool bench_stream_complete(const struct bench_stream *s)
{
    return s->next == s->last && !s->owes_signal && s->ended == s->last - s->first && s->notes_ended == s->groups;
}

bool bench_out_complete(const struct bench_pe *p, bool counted)
{
    for (int i = 0; i < p->n_out; i++) {
        if ((!counted || p->out[i].counted) && !bench_stream_complete(&p->out[i]))
            return false;
    }
    return true;
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

static size_t bench_at(const struct bench_pe *p, const struct bench_stream *s, unsigned slot)
{
    return bench_slot_offset(p->run, p->pe, (int)(s - p->out), slot);
}

/** Fills the place that the next put comes from, or that the next get goes to. */
static void bench_stream_ready(struct bench_pe *p, struct bench_stream *s)
{
    const struct bench_spec *spec = p->run->spec;
    unsigned k = s->free[--s->n_free];
    uint64_t seed = bench_stream_seed(spec->seed, p->pe, s->index);

    s->ready = &s->slot[k];
    s->stale_put = false;
    *s->ready = (struct bench_slot){.number = s->next, .called_ns = p->run->emu->now(), .due = spec->rewrite ? 2 : 1};
    if (spec->pattern == BENCH_GET) {
        memset(p->mem + bench_at(p, s, k), 0xee, spec->size);
        return;
    }
    bench_fill(p->mem + bench_at(p, s, k), spec->size, seed, s->next);
    if (spec->rewrite)
        bench_fill(p->mem + bench_at(p, s, k + spec->window), spec->size, ~seed, s->next);
}

/** Calls the ready put or get. 0, -EAGAIN, or what ends the run. */
static int bench_stream_call(struct bench_pe *p, struct bench_stream *s)
{
    const struct bench_spec *spec = p->run->spec;
    struct bench_slot *slot = s->ready;
    unsigned k = (unsigned)(slot - s->slot);
    uint64_t remote = p->remote[s->pe] + bench_place_offset(p->run, s->index, slot->number);
    int rc = 0;

    if (spec->pattern == BENCH_GET)
        return p->transport->get(p->transport_self, s->pe, p->mem + bench_at(p, s, k), remote, spec->size, &slot->done);
    if (spec->rewrite && !s->stale_put) {
        rc = p->transport->put(p->transport_self, s->pe, remote, p->mem + bench_at(p, s, k + spec->window), spec->size,
                               &slot->done);
        s->stale_put = rc == 0;
    }
    if (rc == 0)
        rc = p->transport->put(p->transport_self, s->pe, remote, p->mem + bench_at(p, s, k), spec->size, &slot->done);
    return rc;
}

static struct bench_note *bench_stream_note(const struct bench_run *run, struct bench_stream *s)
{
    for (unsigned i = 0; i < run->spec->window; i++) {
        if (!s->note[i].busy)
            return &s->note[i];
    }
    return NULL;
}

/** Sends the signal that is owed. 0; -EAGAIN also where as many are under way as the window has places. */
static int bench_stream_signal(struct bench_pe *p, struct bench_stream *s)
{
    const struct bench_spec *spec = p->run->spec;
    int index = bench_word_index(p->run, s);
    uint64_t group = (s->next - 1) / p->run->every, word = p->remote[s->pe] + bench_word_offset(p->run, s->pe, index);
    struct bench_note *n = bench_stream_note(p->run, s);
    int rc;

    if (!n)
        return -EAGAIN;
    *n = (struct bench_note){.group = group, .accepted_ns = s->owes_accepted_ns};
    rc = p->transport->signal(p->transport_self, s->pe, word, spec->signal_how,
                              spec->signal_how == BENCH_SIGNAL_SET ? group + 1 : 1, &n->done);
    if (rc)
        return rc;
    n->busy = true;
    s->groups++;
    s->owes_signal = false;
    return 0;
}

/** The ready put and its signal as one call. 0; -EAGAIN, also where the window has no place for another signal. */
static int bench_stream_both(struct bench_pe *p, struct bench_stream *s)
{
    const struct bench_spec *spec = p->run->spec;
    struct bench_slot *slot = s->ready;
    struct bench_note *n = bench_stream_note(p->run, s);
    struct bench_put_signal ps = {p->remote[s->pe] + bench_place_offset(p->run, s->index, slot->number),
                                  p->mem + bench_at(p, s, (unsigned)(slot - s->slot)),
                                  spec->size,
                                  p->remote[s->pe] + bench_word_offset(p->run, s->pe, bench_word_index(p->run, s)),
                                  spec->signal_how,
                                  spec->signal_how == BENCH_SIGNAL_SET ? slot->number + 1 : 1};
    int rc;

    if (!n)
        return -EAGAIN;
    *n = (struct bench_note){.group = slot->number, .accepted_ns = p->run->emu->now()};
    rc = p->transport->put_signal(p->transport_self, s->pe, &ps, &n->done);
    if (rc)
        return rc;
    s->called_ns[slot->number] = slot->called_ns;
    n->busy = slot->busy = true;
    s->ready = NULL;
    s->next++;
    s->groups++;
    return 0;
}

/** One put or get, and its signal. 1 where something was accepted, 0 where nothing can be now. */
static int bench_stream_step(struct bench_pe *p, struct bench_stream *s)
{
    struct bench_slot *slot;
    int rc;

    if (!s->owes_signal) {
        if (!s->ready && (s->next == s->last || s->n_free == 0))
            return 0;
        if (!s->ready)
            bench_stream_ready(p, s);
        rc = p->run->spec->one_call ? bench_stream_both(p, s) : bench_stream_call(p, s);
        if (rc == 0 && p->run->spec->one_call)
            return 1;
        if (rc)
            return rc == -EAGAIN ? 0 : rc;
        slot = s->ready;
        slot->busy = true;
        s->ready = NULL;
        s->next++;
        if (!p->run->every || (s->next % p->run->every && s->next != p->run->spec->count))
            return 1;
        s->called_ns[slot->number / p->run->every] = slot->called_ns;
        s->owes_signal = true;
        s->owes_accepted_ns = p->run->emu->now();
    }
    rc = bench_stream_signal(p, s);
    return rc == 0 ? 1 : rc == -EAGAIN ? 0 : rc;
}

int bench_out_issue(struct bench_pe *p, bool *moved)
{
    bool more = true;

    while (more) { /* one op of each stream in turn */
        more = false;
        for (int i = 0; i < p->n_out; i++) {
            int rc = bench_stream_step(p, &p->out[i]);

            if (rc < 0)
                return rc;
            more |= rc > 0;
        }
        *moved |= more;
    }
    return 0;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void bench_slot_free(struct bench_pe *p, struct bench_stream *s, struct bench_slot *slot)
{
    slot->busy = false;
    s->free[s->n_free++] = (unsigned)(slot - s->slot);
    s->ended++;
    bench_run_moved(p->run, 1);
}

/** A get's bytes are there: compared at once. */
static void bench_slot_compare(struct bench_pe *p, const struct bench_stream *s, const struct bench_slot *slot)
{
    const struct bench_spec *spec = p->run->spec;

    p->run->compared += spec->size;
    p->run->errors += bench_differences(p->mem + bench_at(p, s, (unsigned)(slot - s->slot)), spec->size,
                                        bench_stream_seed(spec->seed, p->pe, s->index), slot->number % p->run->places);
}

static int bench_slot_ended(struct bench_pe *p, struct bench_stream *s, struct bench_slot *slot)
{
    if (slot->done.failed)
        return slot->done.error;
    if (p->run->spec->pattern == BENCH_GET)
        bench_slot_compare(p, s, slot);
    if (s->counted)
        bench_samples_add(&p->latency, p->run->emu->now() - slot->called_ns);
    bench_slot_free(p, s, slot);
    return 0;
}

/** A signal is acknowledged; in the signal pattern the places of its group are free. */
static int bench_note_ended(struct bench_pe *p, struct bench_stream *s, struct bench_note *n)
{
    n->busy = false;
    s->notes_ended++;
    if (n->done.failed)
        return n->done.error;
    for (unsigned k = 0; bench_frees_by_signal(p->run) && k < p->run->spec->window; k++) {
        struct bench_slot *slot = &s->slot[k];

        if (!slot->busy || slot->number / p->run->every != n->group)
            continue;
        if (slot->done.failed)
            return slot->done.error;
        bench_slot_free(p, s, slot);
    }
    if (s->counted)
        bench_samples_add(&p->signal, p->run->emu->now() - n->accepted_ns);
    return 0;
}

static int bench_stream_collect(struct bench_pe *p, struct bench_stream *s)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && s->note && i < p->run->spec->window; i++) {
        struct bench_note *n = &s->note[i];

        if (n->busy && n->done.ok + n->done.failed)
            rc = bench_note_ended(p, s, n);
    }
    for (unsigned i = 0; rc == 0 && !bench_frees_by_signal(p->run) && i < p->run->spec->window; i++) {
        struct bench_slot *slot = &s->slot[i];

        if (slot->busy && slot->done.ok + slot->done.failed >= slot->due)
            rc = bench_slot_ended(p, s, slot);
    }
    return rc;
}

int bench_out_collect(struct bench_pe *p)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < p->n_out; i++)
        rc = bench_stream_collect(p, &p->out[i]);
    return rc;
}
