/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_shape.c - who sends to whom, and where the bytes of each stream lie. Arithmetic only. Called by bench_run.c and
 * the generators; next: bench_traffic.c.
 *
 * Memory of a PE: [places of each incoming stream][a word of each incoming stream, one for all][slots of each stream it
 * sends]. All receivers have the same number of incoming streams, so a sender knows a receiver's offsets.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* Words lie this far apart; places are multiples of it, since libbraid cuts on 128 bytes of the remote address. */
enum { BENCH_ALIGN = 128 };
enum { BENCH_SIZE_MAX = 1 << 30, BENCH_SENDERS = 1024, BENCH_WINDOW_MAX = 65536 };
/* Bytes of all receivers' places together, and of all memory. */
#define BENCH_PLACES_MAX ((uint64_t)1 << 30)
#define BENCH_MEM_MAX    ((uint64_t)4 << 30)

int bench_peer(const struct bench_run *run, int pe, int i)
{
    int d = run->per_node + i;

    if (d >= run->n_pes)
        d -= run->n_pes - 1; /* those of the own node, but not itself */
    return (pe + d) % run->n_pes;
}

int bench_peer_back(const struct bench_run *run, int pe, int i)
{
    return (pe - bench_peer(run, 0, i) + run->n_pes) % run->n_pes;
}

int bench_incoming_count(const struct bench_run *run, int pe)
{
    if (run->spec->all)
        return run->peers;
    for (int i = 0; i < run->peers; i++) {
        if (bench_peer(run, 0, i) == pe)
            return 1;
    }
    return 0;
}

static size_t bench_places_len(const struct bench_run *run, int pe)
{
    return (size_t)bench_incoming_count(run, pe) * run->places * run->stride;
}

size_t bench_place_offset(const struct bench_run *run, int index, uint64_t number)
{
    return ((size_t)index * run->places + number % run->places) * run->stride;
}

size_t bench_word_offset(const struct bench_run *run, int pe, int index)
{
    return bench_places_len(run, pe) + (size_t)(index + 1) * BENCH_ALIGN;
}

static size_t bench_slots_offset(const struct bench_run *run, int pe)
{
    return bench_round_up(bench_word_offset(run, pe, bench_incoming_count(run, pe)), 4096);
}

static unsigned bench_slot_count(const struct bench_run *run)
{
    return run->spec->window * (run->spec->rewrite ? 2 : 1);
}

size_t bench_slot_offset(const struct bench_run *run, int pe, int stream, unsigned slot)
{
    return bench_slots_offset(run, pe) + ((size_t)stream * bench_slot_count(run) + slot) * run->stride;
}

size_t bench_mem_len(const struct bench_run *run, int pe)
{
    int streams = pe < run->senders && run->spec->pattern != BENCH_ATOMIC ? run->peers : 0;

    return bench_round_up(bench_slot_offset(run, pe, streams, 0) + BENCH_ALIGN, 4096);
}

__attribute__((format(printf, 3, 4))) static int bench_refuse(char *why, size_t why_len, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(why, why_len, "bench: ");

    va_start(ap, fmt);
    if (n > 0 && (size_t)n < why_len)
        vsnprintf(why + n, why_len - (size_t)n, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

static int bench_check(const struct bench_spec *s, char *why, size_t why_len)
{
    if (s->count < 1 || s->window < 1 || s->window > BENCH_WINDOW_MAX)
        return bench_refuse(why, why_len, "count %llu, window %u: expected at least 1, and a window of at most %d",
                            (unsigned long long)s->count, s->window, BENCH_WINDOW_MAX);
    if (s->pattern == BENCH_ATOMIC) {
        if (s->size != 0 && s->size != 4 && s->size != 8)
            return bench_refuse(why, why_len, "an atomic of %zu bytes: expected 4 or 8", s->size);
        return 0;
    }
    if (s->size < 1 || s->size > BENCH_SIZE_MAX)
        return bench_refuse(why, why_len, "size %zu: expected 1 to %d bytes", s->size, BENCH_SIZE_MAX);
    if (s->pattern == BENCH_SIGNAL && s->signal_every > s->window)
        return bench_refuse(why, why_len,
                            "a signal after every %u puts in a window of %u: expected a window of at least as many, "
                            "since places are free again when their signal is acknowledged",
                            s->signal_every, s->window);
    if (s->one_call && (s->pattern != BENCH_SIGNAL || s->signal_every > 1 || s->rewrite))
        return bench_refuse(
            why, why_len,
            "a put and its signal in one call: expected pattern signal, a signal after every put, and no other "
            "bytes put before");
    if (s->watch_last && s->size < 8)
        return bench_refuse(why, why_len, "size %zu: expected at least 8 where the last 8 bytes are watched", s->size);
    return 0;
}

/** Senders and peers. */
static int bench_shape_peers(struct bench_run *run, char *why, size_t why_len)
{
    const struct bench_spec *s = run->spec;

    if (run->n_pes < 2)
        return bench_refuse(why, why_len, "a fabric with one PE: expected at least two (nodes=2)");
    run->peers = s->peers ? s->peers : s->pattern == BENCH_ATOMIC ? run->n_pes - 1 : 1;
    if (run->peers < 0 || run->peers >= run->n_pes)
        return bench_refuse(why, why_len, "%d peers: expected 1 to %d in a fabric of %d PEs", s->peers, run->n_pes - 1,
                            run->n_pes);
    if (s->except < 0 || s->except >= run->n_pes)
        return bench_refuse(why, why_len, "PE %d left out: expected 1 to %d", s->except, run->n_pes - 1);
    if (s->unreachable < 0 || s->unreachable > run->peers)
        return bench_refuse(why, why_len, "%d peers that do not reach the home rail: expected at most the %d peers",
                            s->unreachable, run->peers);
    run->senders = s->all ? run->n_pes : 1;
    if (s->pattern == BENCH_ATOMIC)
        run->senders = run->n_pes; /* who of them does any is bench_atomic.c's */
    run->every = s->signal_every ? s->signal_every : s->pattern == BENCH_SIGNAL;
    if (s->pattern == BENCH_GET || s->pattern == BENCH_ATOMIC)
        run->every = 0;
    return 0;
}

/** Places of a stream: puts have one each as long as that fits, and then go round after a meeting; signals a ring. */
static void bench_shape_places(struct bench_run *run)
{
    const struct bench_spec *s = run->spec;
    uint64_t streams = (uint64_t)(s->all ? run->n_pes : 1) * (uint64_t)run->peers;
    uint64_t fit = BENCH_PLACES_MAX / streams / run->stride;

    run->lap = s->count;
    if (s->pattern == BENCH_PUT) {
        fit = fit > s->window ? fit : s->window;
        run->places = s->count < fit ? s->count : fit;
        run->lap = run->places;
        return;
    }
    /* A receiver that also sends may be inside a call while others go on: it needs a longer ring. */
    run->places = (uint64_t)s->window * (s->all ? 8 : 2);
    if (run->places > fit)
        run->places = fit > 2 * (uint64_t)s->window ? fit : 2 * (uint64_t)s->window;
}

int bench_shape(struct bench_run *run, char *why, size_t why_len)
{
    uint64_t bytes = 0;
    int rc = bench_check(run->spec, why, why_len);

    if (rc == 0)
        rc = bench_shape_peers(run, why, why_len);
    if (rc)
        return rc;
    run->stride = bench_round_up(run->spec->size ? run->spec->size : 8, BENCH_ALIGN);
    if (run->spec->pattern == BENCH_ATOMIC)
        run->places = 1;
    else
        bench_shape_places(run);
    for (int i = 0; i < run->n_pes; i++)
        bytes += bench_mem_len(run, i);
    if (bytes > BENCH_MEM_MAX)
        return bench_refuse(why, why_len,
                            "%llu MiB of memory for all PEs: expected at most %llu: take a smaller size, "
                            "window or number of peers",
                            (unsigned long long)(bytes >> 20), (unsigned long long)(BENCH_MEM_MAX >> 20));
    return 0;
}

uint64_t bench_default_count(const struct bench_spec *s)
{
    uint64_t ports = s->ports > 0 ? (uint64_t)s->ports : 2, peers = s->peers > 0 ? (uint64_t)s->peers : 1;
    uint64_t count = s->size ? 50000000 * ports / peers / s->size : 20000, least = 8 * (uint64_t)s->window;

    if (s->pattern == BENCH_ATOMIC)
        return 20000;
    count = count > 20000 ? 20000 : count;
    least = least > 100 ? least : 100;
    return count > least ? count : least;
}
