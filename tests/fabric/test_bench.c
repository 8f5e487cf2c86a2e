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

/** The put that is the next one: its bytes, and the place that is its own. The remote memory is at address 0. */
static int slow_put(void *self, int pe, uint64_t dst, const void *src, size_t len, struct braid_done *done)
{
    struct slow *s = self;
    const struct bench_run *run = s->pe->run;

    assert_int_equal(pe, 1);
    assert_int_equal(len, SIZE);
    if (s->refuses && s->count && ++s->asked % s->refuses == 0)
        return -EAGAIN;
    assert_int_equal(dst, s->total_puts % run->places * run->stride);
    assert_int_equal(bench_differences(src, len, bench_stream_seed(run->spec->seed, 0, 0), s->total_puts), 0);
    s->total_puts++;
    slow_push(s, done, true);
    return 0;
}

static int slow_signal(void *self, int pe, uint64_t word, enum bench_signal_how how, uint64_t value,
                       struct braid_done *done)
{
    struct slow *s = self;

    assert_int_equal(pe, 1);
    assert_int_equal(word, bench_word_offset(s->pe->run, 1, 0));
    assert_int_equal(how, BENCH_SIGNAL_ADD);
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
    assert_true(pe == 1 || pe == BRAID_ALL_PES);
    while (slow_progress(self))
        ;
    return 0;
}

static const struct bench_transport slow_transport = {
    .put = slow_put, .signal = slow_signal, .progress = slow_progress, .quiet = slow_quiet};

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

/** Two PEs of which only one is run; the other is taken to have done its part. */
struct slow_run {
    struct bench_run run;
    struct bench_pe pe[2], *list[2];
    uint64_t remote[2];
};

static void slow_open(struct slow_run *r, const struct bench_spec *spec)
{
    char why[BENCH_WHY];

    *r = (struct slow_run){.run = {.emu = &slow_emu, .spec = spec, .n_pes = 2, .per_node = 1}};
    assert_int_equal(bench_shape(&r->run, why, sizeof(why)), 0);
    r->run.pe = r->list;
    r->run.start_ns = 0;
    for (int i = 0; i < 2; i++) {
        r->list[i] = &r->pe[i];
        r->pe[i] = (struct bench_pe){.run = &r->run, .pe = i, .n_pes = 2, .remote = r->remote, .lap_sent = true};
        r->pe[i].mem_len = bench_mem_len(&r->run, i);
        r->pe[i].mem = calloc(1, r->pe[i].mem_len);
        assert_non_null(r->pe[i].mem);
        assert_int_equal(bench_out_open(&r->pe[i]), 0);
        assert_int_equal(bench_in_open(&r->pe[i]), 0);
    }
}

/** Runs one PE; the other has been at every meeting already. */
static void slow_go(struct slow_run *r, struct slow *s, int pe)
{
    s->pe = &r->pe[pe];
    r->pe[pe].transport = &slow_transport;
    r->pe[pe].transport_self = s;
    r->run.arrived = 1000;
    assert_int_equal(bench_lap(s->pe, 0), 0);
}

static void slow_close(struct slow_run *r)
{
    for (int i = 0; i < 2; i++) {
        bench_out_close(&r->pe[i]);
        bench_in_close(&r->pe[i]);
        free(r->pe[i].latency.ns);
        free(r->pe[i].signal.ns);
        free(r->pe[i].mem);
    }
}

static struct bench_spec spec_of(enum bench_pattern pattern, uint64_t count, unsigned window)
{
    return (struct bench_spec){.pattern = pattern, .seed = 3, .size = SIZE, .count = count, .window = window};
}

/** A generator with this window, 50 puts; the most that were ever outstanding. */
static unsigned most_outstanding(enum bench_pattern pattern, unsigned window, unsigned refuses)
{
    struct bench_spec spec = spec_of(pattern, 50, window);
    struct slow s = {.refuses = refuses};
    struct slow_run r;

    slow_open(&r, &spec);
    slow_go(&r, &s, 0);
    assert_int_equal(s.total_puts, 50);
    assert_int_equal(s.total_signals, pattern == BENCH_SIGNAL ? 50 : 0);
    assert_int_equal(s.count, 0);
    slow_close(&r);
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
    struct slow_run r;
    struct slow s = {0};
    unsigned char *mem;
    uint64_t errors;

    slow_open(&r, &spec);
    mem = r.pe[1].mem;
    for (uint64_t k = 0; k < spec.count; k++)
        bench_fill(mem + bench_place_offset(&r.run, 0, k), SIZE, bench_stream_seed(spec.seed, 0, 0), k);
    if (changed >= 0)
        mem[bench_place_offset(&r.run, 0, (uint64_t)changed) + 17] ^= 0x40;
    memcpy(mem + bench_word_offset(&r.run, 1, 0), &signals, sizeof(signals));
    slow_go(&r, &s, 1);
    errors = r.run.errors;
    assert_int_equal(r.run.compared, spec.count * SIZE);
    slow_close(&r);
    return errors;
}

static void wrong_bytes_and_signals_are_counted(void **state)
{
    (void)state;
    assert_int_equal(errors_seen(8, -1), 0);
    assert_int_equal(errors_seen(8, 0), 1);
    assert_int_equal(errors_seen(8, 7), 1);
    assert_int_equal(errors_seen(9, -1), 1); /* one signal too many */
    assert_int_equal(errors_seen(7, -1), 1); /* one that its sender has proved, and is not there */
    assert_int_equal(errors_seen(7, 7), 2);
}

static void the_last_bytes_are_known(void **state)
{
    unsigned char bytes[64];

    (void)state;
    for (size_t len = 8; len <= sizeof(bytes); len++) {
        bench_fill(bytes, len, 1, 5);
        assert_true(bench_last_there(bytes, len, 1, 5));
        assert_false(bench_last_there(bytes, len, 1, 6));
        bytes[len - 8] ^= 1;
        assert_false(bench_last_there(bytes, len, 1, 5));
        bytes[len - 8] ^= 1;
        bytes[len - 1] ^= 1;
        assert_false(bench_last_there(bytes, len, 1, 5));
    }
}

/* ---- who sends to whom ------------------------------------------------------------------------------------------- */

static void peers_are_others_and_each_once(void **state)
{
    (void)state;
    for (int nodes = 1; nodes <= 4; nodes++) {
        for (int per_node = 1; per_node <= 4; per_node++) {
            struct bench_run run = {.n_pes = nodes * per_node, .per_node = per_node};

            for (int pe = 0; pe < run.n_pes; pe++) {
                uint32_t seen = 1u << pe;

                for (int i = 0; i < run.n_pes - 1; i++) {
                    int peer = bench_peer(&run, pe, i);

                    assert_int_equal(bench_peer_back(&run, peer, i), pe);
                    assert_false(seen >> peer & 1);
                    seen |= 1u << peer;
                }
                assert_int_equal(seen, (1u << run.n_pes) - 1);
                if (nodes > 1)
                    assert_int_equal(bench_peer(&run, pe, 0), (pe + per_node) % run.n_pes);
            }
        }
    }
}

static struct bench_result result;

static void run_spec(const struct bench_spec *spec)
{
    char why[BENCH_WHY];

    if (bench_run(fabric_emu(), spec, &result, why, sizeof(why)))
        fail_msg("%s", why);
    assert_int_equal(result.errors, 0);
}

/** Every PE sends to several: all bytes of all streams are compared, and one PE's are the figures. */
static void all_send_and_all_is_compared(void **state)
{
    static const enum bench_pattern patterns[] = {BENCH_PUT, BENCH_SIGNAL, BENCH_GET};

    (void)state;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        struct bench_spec spec = {.pattern = patterns[i],
                                  .fabric = "nodes=3,gpus=2,jitter=1us",
                                  .seed = 2,
                                  .size = 20000,
                                  .count = 30,
                                  .window = 4,
                                  .peers = 3,
                                  .all = true};

        run_spec(&spec);
        assert_int_equal(result.ops, 90);
        assert_int_equal(result.payload_bytes, 90 * 20000);
        assert_true(result.compared_bytes >= 6 * result.payload_bytes);
        assert_int_equal(result.latency.count, 90);
    }
}

/** More than fits in memory: places are used again behind a meeting, and nothing goes uncompared. */
static void laps_compare_all(void **state)
{
    struct bench_spec spec = {
        .pattern = BENCH_PUT, .fabric = "nodes=2", .seed = 1, .size = 96 << 20, .count = 12, .window = 2};

    (void)state;
    run_spec(&spec);
    assert_int_equal(result.compared_bytes, spec.count * spec.size);
    assert_true(result.fraction > 0.97 && result.fraction <= 1);
}

/** A port that is slow for the second half of a run counts half of what it lost. */
static void slowed_ports_lower_the_ceiling(void **state)
{
    struct bench_spec spec = {
        .pattern = BENCH_PUT, .fabric = "nodes=2", .seed = 1, .size = 1 << 20, .count = 100, .window = 8};
    double full;

    (void)state;
    run_spec(&spec);
    full = result.ceiling_gbs;
    assert_true(full > 49.0 && full < 49.1);
    spec.fabric = "nodes=2,at=1ms:slow:h0/mlx5_0:1:0.5";
    run_spec(&spec);
    assert_true(result.ceiling_gbs > 0.749 * full && result.ceiling_gbs < 0.751 * full);
    spec.fabric = "nodes=2,at=1ms:slow:h1/mlx5_1:1:0.5"; /* the receiver's end does as well */
    run_spec(&spec);
    assert_true(result.ceiling_gbs > 0.749 * full && result.ceiling_gbs < 0.751 * full);
    spec.fabric = "nodes=2,at=11ms:slow:h0/mlx5_0:1:0.5";
    run_spec(&spec);
    assert_true(result.ceiling_gbs > 0.76 * full && result.ceiling_gbs < 0.99 * full);
    assert_true(result.fraction > 0.9 && result.fraction <= 1);
}

/* ---- what it costs ----------------------------------------------------------------------------------------------- */

static uint64_t paid;

static void charge_and_note(uint64_t ns)
{
    paid += ns;
    fabric_emu()->charge(ns);
}

/** What libbraid counts is what PEs pay for, to the nanosecond but for what is paid ahead; nothing is for nothing. */
static void every_call_is_paid_for(void **state)
{
    struct emu_sim_api counting = *fabric_emu();
    struct bench_spec spec = {
        .pattern = BENCH_SIGNAL, .fabric = "nodes=2,ports=2", .seed = 1, .size = 65536, .count = 40, .window = 4};
    char why[BENCH_WHY];
    uint64_t sum = 0;

    (void)state;
    counting.charge = charge_and_note;
    if (bench_run(&counting, &spec, &result, why, sizeof(why)))
        fail_msg("%s", why);
    assert_int_equal(result.errors, 0);
    for (enum bench_work w = 0; w < BENCH_WORK; w++) {
        assert_true(counting.cost(bench_work_name(w)) > 0);
        sum += result.work[w] * counting.cost(bench_work_name(w));
    }
    assert_int_equal(result.work[BENCH_WORK_PUT], 40);
    assert_int_equal(result.work[BENCH_WORK_WORD], 40);
    assert_true(result.work[BENCH_WORK_PIECE] + result.work[BENCH_WORK_WHOLE] >= 40);
    assert_true(result.work[BENCH_WORK_RETIRED] >= 80); /* each put and each signal */
    assert_true(result.work[BENCH_WORK_PASS] > 0);
    assert_true(result.work[BENCH_WORK_POLL] >= 2 * result.work[BENCH_WORK_PASS]);
    assert_true(result.work_ns >= sum); /* and for refused calls */
    assert_true(paid >= result.work_ns);
    assert_true(paid <= result.work_ns + 2000); /* ahead, at the end, of two PEs */
    assert_true(result.cpu_share > 0 && result.cpu_share < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_window_is_kept_and_used),
        cmocka_unit_test(each_put_has_bytes_of_its_own),
        cmocka_unit_test(wrong_bytes_and_signals_are_counted),
        cmocka_unit_test(the_last_bytes_are_known),
        cmocka_unit_test(peers_are_others_and_each_once),
        cmocka_unit_test(all_send_and_all_is_compared),
        cmocka_unit_test(laps_compare_all),
        cmocka_unit_test(slowed_ports_lower_the_ceiling),
        cmocka_unit_test(every_call_is_paid_for),
    };

    return cmocka_run_group_tests_name("bench", tests, NULL, NULL);
}
