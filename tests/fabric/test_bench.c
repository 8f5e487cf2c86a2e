/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bench.c - the traffic generators themselves: what they measure is only worth something if they keep their
 * window, tell wrong bytes from right ones, and pay for what they do. Mostly on a transport that does what it is
 * told.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench_int.h"
#include "fabric.h"

/* ---- a transport that is finished when progress says so ---------------------------------------------------------- */

enum { DEPTH = 256, SIZE = 64 };

/** Requests in order; done: where the oldest is counted. */
struct slow {
    struct bench_pe *pe;
    struct braid_done *queue[DEPTH];
    bool is_put[DEPTH];
    unsigned head, count, puts, signals; /* outstanding */
    unsigned most_puts, most_signals;
    unsigned refuses, asked; /* every so many-th put is refused; 0: none is */
    uint64_t total_puts, total_signals;
};

static void slow_push(struct slow *s, struct braid_done *done, bool is_put)
{
    assert_true(s->count < DEPTH);
    s->queue[(s->head + s->count) % DEPTH] = done;
    s->is_put[(s->head + s->count++) % DEPTH] = is_put;
    s->puts += is_put;
    s->signals += !is_put;
    s->most_puts = s->puts > s->most_puts ? s->puts : s->most_puts;
    s->most_signals = s->signals > s->most_signals ? s->signals : s->most_signals;
}

static int slow_put(void *self, int pe, uint64_t dst, const void *src, size_t len, struct braid_done *done)
{
    struct slow *s = self;

    assert_int_equal(pe, 1);
    assert_int_equal(len, SIZE);
    assert_int_equal(dst, (const unsigned char *)src - s->pe->mem); /* the remote memory is at address 0 */
    if (s->refuses && s->count && ++s->asked % s->refuses == 0)
        return -EAGAIN;
    if (s->pe->run->spec->pattern == BENCH_PUT)
        assert_int_equal(dst, s->total_puts * SIZE);
    else
        assert_int_equal(bench_differences(src, len, s->pe->run->spec->seed, s->total_puts), 0);
    s->total_puts++;
    slow_push(s, done, true);
    return 0;
}

static int slow_signal(void *self, int pe, uint64_t word, uint64_t value, struct braid_done *done)
{
    struct slow *s = self;

    assert_int_equal(pe, 1);
    assert_int_equal(word, bench_tail_offset(s->pe));
    assert_int_equal(value, 1);
    assert_int_equal(++s->total_signals, s->total_puts);
    slow_push(s, done, false);
    return 0;
}

static int slow_progress(void *self)
{
    struct slow *s = self;

    if (s->count == 0)
        return 0;
    s->queue[s->head]->ok++;
    s->puts -= s->is_put[s->head];
    s->signals -= !s->is_put[s->head];
    s->head = (s->head + 1) % DEPTH;
    s->count--;
    return 1;
}

static int slow_quiet(void *self, int pe)
{
    assert_int_equal(pe, 1);
    while (slow_progress(self))
        ;
    return 0;
}

static const struct bench_transport slow_transport = {slow_put, slow_signal, slow_progress, slow_quiet};

static uint64_t still(void)
{
    return 0;
}

static int nobody_else(void)
{
    return 0;
}

static int never(uint64_t deadline)
{
    fail_msg("the generator sleeps until %llu with nothing outstanding", (unsigned long long)deadline);
    return -EDEADLK;
}

static const struct emu_sim_api slow_emu = {.now = still, .barrier = nobody_else, .wait = never};

/** Runs a generator's PE on that transport; mem and p->run stay for the caller to look at. */
static void run_slow(struct bench_pe *p, struct bench_run *run, const struct bench_spec *spec, struct slow *s, int pe)
{
    static uint64_t remote[2];

    *run = (struct bench_run){.emu = &slow_emu, .spec = spec};
    run->slots = spec->pattern == BENCH_PUT ? spec->count : spec->window;
    p->run = run;
    p->pe = pe, p->n_pes = 2;
    p->remote = remote;
    p->transport = &slow_transport;
    p->transport_self = s;
    s->pe = p;
    assert_int_equal(spec->pattern == BENCH_PUT ? bench_put_pe(p) : bench_signal_pe(p), 0);
}

/** A PE with memory for the spec; the tail word behind the data. */
static struct bench_pe pe_for(const struct bench_spec *spec)
{
    struct bench_pe p = {.data_len = (spec->pattern == BENCH_PUT ? spec->count : spec->window) * spec->size};

    p.mem_len = p.data_len + 64;
    p.mem = calloc(1, p.mem_len);
    assert_non_null(p.mem);
    return p;
}

static struct bench_spec spec_of(enum bench_pattern pattern, uint64_t count, unsigned window)
{
    return (struct bench_spec){.pattern = pattern, .seed = 3, .size = SIZE, .count = count, .window = window};
}

/** A generator with this window, 50 puts; the most that were ever outstanding. */
static unsigned most_outstanding(enum bench_pattern pattern, unsigned window, unsigned refuses)
{
    struct bench_spec spec = spec_of(pattern, 50, window);
    struct bench_pe p = pe_for(&spec);
    struct slow s = {.refuses = refuses};
    struct bench_run run;

    run_slow(&p, &run, &spec, &s, 0);
    assert_int_equal(s.total_puts, 50);
    assert_int_equal(s.total_signals, pattern == BENCH_SIGNAL ? 50 : 0);
    assert_int_equal(s.count, 0);
    free(p.mem);
    return pattern == BENCH_PUT ? s.most_puts : s.most_signals;
}

static void the_window_is_kept_and_used(void **state)
{
    static const unsigned windows[] = {1, 2, 16, 50, 60};

    (void)state;
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        unsigned expected = windows[i] < 50 ? windows[i] : 50;

        for (int pattern = BENCH_PUT; pattern <= BENCH_SIGNAL; pattern++) {
            assert_int_equal(most_outstanding((enum bench_pattern)pattern, windows[i], 0), expected);
            assert_true(most_outstanding((enum bench_pattern)pattern, windows[i], 7) <= expected);
        }
    }
}

/* ---- what counts as wrong ---------------------------------------------------------------------------------------- */

static void each_put_has_bytes_of_its_own(void **state)
{
    unsigned char bytes[256];

    (void)state;
    for (size_t len = 1; len <= sizeof(bytes); len++) {
        bench_fill(bytes, len, 1, 5);
        assert_int_equal(bench_differences(bytes, len, 1, 5), 0);
        bytes[len - 1] ^= 1;
        assert_int_equal(bench_differences(bytes, len, 1, 5), 1);
    }
    bench_fill(bytes, sizeof(bytes), 1, 5);
    assert_true(bench_differences(bytes, sizeof(bytes), 1, 6) > 200);         /* another put */
    assert_true(bench_differences(bytes, sizeof(bytes), 2, 5) > 200);         /* another run */
    assert_true(bench_differences(bytes + 8, sizeof(bytes) - 8, 1, 5) > 200); /* another place */
}

/** What PE 1 counts as wrong with these signals and one byte changed in this put (-1: none). */
static uint64_t errors_seen(uint64_t signals, int changed)
{
    struct bench_spec spec = spec_of(BENCH_SIGNAL, 8, 8);
    struct bench_pe p = pe_for(&spec);
    struct bench_run run;
    struct slow s = {0};

    for (uint64_t k = 0; k < spec.count; k++)
        bench_fill(p.mem + k * SIZE, SIZE, spec.seed, k);
    if (changed >= 0)
        p.mem[changed * SIZE + 17] ^= 0x40;
    memcpy(p.mem + p.data_len, &signals, sizeof(signals));
    run_slow(&p, &run, &spec, &s, 1);
    free(p.mem);
    return run.errors;
}

static void wrong_bytes_and_signals_are_counted(void **state)
{
    (void)state;
    assert_int_equal(errors_seen(8, -1), 0);
    assert_int_equal(errors_seen(8, 0), 1);
    assert_int_equal(errors_seen(8, 7), 1);
    assert_true(errors_seen(9, -1) > 0); /* one signal too many */
}

/* ---- what it costs ----------------------------------------------------------------------------------------------- */

static uint64_t puts_paid, signals_paid, passes_paid, completions_paid, rest_paid;

/** Sorts what the program is charged by the rows of the table; the real charge follows. */
static void charge_and_note(uint64_t ns)
{
    const struct emu_sim_api *emu = fabric_emu();
    uint64_t put = emu->cost("braid_put") + emu->cost("braid_piece"); /* two rails */
    uint64_t pass = emu->cost("braid_progress"), completion = emu->cost("braid_completion");

    if (ns == put)
        puts_paid++;
    else if (ns == emu->cost("braid_signal"))
        signals_paid++;
    else if (ns >= pass && (ns - pass) % completion == 0) {
        passes_paid++;
        completions_paid += (ns - pass) / completion;
    } else
        rest_paid++;
    emu->charge(ns);
}

static void every_call_is_paid_for(void **state)
{
    struct emu_sim_api counting = *fabric_emu();
    struct bench_spec spec = {
        .pattern = BENCH_SIGNAL, .fabric = "nodes=2,ports=2", .seed = 1, .size = 65536, .count = 40, .window = 4};
    struct bench_result result;
    char why[BENCH_WHY];

    (void)state;
    counting.charge = charge_and_note;
    if (bench_run(&counting, &spec, &result, why, sizeof(why)))
        fail_msg("%s", why);
    assert_int_equal(result.errors, 0);
    assert_true(puts_paid >= 40);
    assert_true(signals_paid >= 40);
    assert_true(passes_paid > 0);
    assert_true(completions_paid >= 40); /* each signal has one at least */
    assert_int_equal(rest_paid, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_window_is_kept_and_used),
        cmocka_unit_test(each_put_has_bytes_of_its_own),
        cmocka_unit_test(wrong_bytes_and_signals_are_counted),
        cmocka_unit_test(every_call_is_paid_for),
    };

    return cmocka_run_group_tests_name("bench", tests, NULL, NULL);
}
