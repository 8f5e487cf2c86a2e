/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_in.c - what a PE receives: it watches a word of each incoming stream and compares the bytes of a put the moment
 * the word says that it is there. Puts that no signal announces are compared at the end of a lap. Called by
 * bench_traffic.c; next: bench_pattern.c.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdlib.h>

int bench_in_open(struct bench_pe *p)
{
    const struct bench_run *run = p->run;
    uint64_t seed = run->spec->seed;

    p->n_in = bench_incoming_count(run, p->pe);
    p->in = calloc((size_t)p->n_in + 1, sizeof(*p->in));
    if (!p->in)
        return -ENOMEM;
    for (int i = 0; i < p->n_in; i++) {
        p->in[i].from = run->spec->all ? bench_peer_back(run, p->pe, i) : 0;
        /* What gets read; nobody writes it. */
        for (uint64_t k = 0; run->spec->pattern == BENCH_GET && k < run->places; k++)
            bench_fill(p->mem + bench_place_offset(run, i, k), run->spec->size,
                       bench_stream_seed(seed, p->in[i].from, i), k);
    }
    return 0;
}

void bench_in_close(struct bench_pe *p)
{
    free(p->in);
}

void bench_in_begin(struct bench_pe *p, uint64_t lap)
{
    uint64_t count = p->run->spec->count, first = lap * p->run->lap;

    for (int i = 0; i < p->n_in; i++) {
        struct bench_incoming *in = &p->in[i];

        in->first = in->seen = in->watched = first;
        in->last = count - first < p->run->lap ? count : first + p->run->lap;
    }
}

static uint64_t bench_word(const struct bench_pe *p, int index)
{
    const unsigned char *at = p->mem + bench_word_offset(p->run, p->pe, index);

    return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

static void bench_in_compare(struct bench_pe *p, const struct bench_incoming *in, uint64_t number)
{
    const struct bench_spec *spec = p->run->spec;
    int i = (int)(in - p->in);

    p->run->compared += spec->size;
    p->run->errors += bench_differences(p->mem + bench_place_offset(p->run, i, number), spec->size,
                                        bench_stream_seed(spec->seed, in->from, i), number);
}

/** The sender's side of it. */
static const struct bench_stream *bench_in_stream(const struct bench_pe *p, const struct bench_incoming *in)
{
    const struct bench_pe *sender = p->run->pe[in->from];

    for (int k = 0; k < sender->n_out; k++) {
        if (sender->out[k].pe == p->pe)
            return &sender->out[k];
    }
    return NULL;
}

/** A signal is seen: its puts must all be there. The sender's latency ends here; both clocks are one. */
static void bench_in_group(struct bench_pe *p, struct bench_incoming *in, uint64_t end)
{
    const struct bench_run *run = p->run;
    struct bench_pe *sender = run->pe[in->from];
    const struct bench_stream *s = bench_in_stream(p, in);

    for (; in->seen < end; in->seen++)
        bench_in_compare(p, in, in->seen);
    if (s && s->counted && run->spec->pattern == BENCH_SIGNAL)
        bench_samples_add(&sender->latency, run->emu->now() - s->called_ns[(end - 1) / run->every]);
}

/** The number of puts of the whole run that the word announces. */
static uint64_t bench_in_announced(const struct bench_pe *p, int i)
{
    uint64_t groups = bench_word(p, i), count = p->run->spec->count;

    return groups <= count / p->run->every ? groups * p->run->every : count;
}

/** Puts whose last 8 bytes have arrived. */
static bool bench_in_watch(struct bench_pe *p, struct bench_incoming *in)
{
    const struct bench_spec *spec = p->run->spec;
    int i = (int)(in - p->in);
    uint64_t seed = bench_stream_seed(spec->seed, in->from, i);
    bool moved = false;

    for (; in->watched < in->last; in->watched++, moved = true) {
        if (!bench_last_there(p->mem + bench_place_offset(p->run, i, in->watched), spec->size, seed, in->watched))
            break;
        bench_in_compare(p, in, in->watched);
    }
    return moved;
}

bool bench_in_look(struct bench_pe *p)
{
    const struct bench_spec *spec = p->run->spec;
    bool moved = false;

    if (!p->run->every)
        return false;
    for (int i = 0; i < p->n_in; i++) {
        struct bench_incoming *in = &p->in[i];
        uint64_t announced, end;

        if (spec->watch_last)
            moved |= bench_in_watch(p, in);
        if (spec->one_word)
            continue;
        announced = bench_in_announced(p, i);
        while (in->seen < announced && in->seen < in->last) {
            end = (in->seen / p->run->every + 1) * p->run->every;
            end = end < in->last ? end : in->last;
            bench_in_group(p, in, end);
            moved = true;
        }
    }
    return moved;
}

/** The word at the end of the run, against what was sent. */
static void bench_in_check_word(struct bench_pe *p, int index, uint64_t expected)
{
    uint64_t seen = bench_word(p, index);

    p->run->errors += seen < expected ? expected - seen : seen - expected;
}

/** Between processes: whether all have proved what they sent, and what had come by then has been looked at. */
static bool bench_in_last_look(struct bench_pe *p)
{
    if (!bench_live_all_sent(p))
        return false;
    while (bench_in_look(p))
        continue;
    return true;
}

bool bench_in_complete(struct bench_pe *p)
{
    if (!p->run->every)
        return true;
    for (int i = 0; i < p->n_in; i++) {
        if (!p->run->spec->one_word && p->in[i].seen >= p->in[i].last)
            continue;
        /* What its sender proved to be here and is not seen will never come. */
        if (p->run->spec->live ? !bench_in_last_look(p) : !p->run->pe[p->in[i].from]->lap_sent)
            return false;
    }
    return true;
}

void bench_in_compare_rest(struct bench_pe *p)
{
    const struct bench_run *run = p->run;
    uint64_t groups = run->every ? (run->spec->count + run->every - 1) / run->every : 0;
    bool over = false;

    for (int i = 0; i < p->n_in && run->spec->pattern != BENCH_GET; i++) {
        struct bench_incoming *in = &p->in[i];
        /* A ring holds the last puts only. */
        uint64_t from = in->last - in->first > run->places ? in->last - run->places : in->first;

        over = in->last == run->spec->count;
        for (uint64_t k = in->seen > from ? in->seen : from; k < in->last; k++)
            bench_in_compare(p, in, k);
        if (over && run->every && !run->spec->one_word)
            bench_in_check_word(p, i, groups);
    }
    if (over && run->every && run->spec->one_word)
        bench_in_check_word(p, -1, groups * (uint64_t)p->n_in);
}
