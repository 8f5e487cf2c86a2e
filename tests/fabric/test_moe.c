/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_moe.c - `bench moe` in parts: routing is what DeepEP's test draws, nothing overlaps in memory, and slots that hold
 * another lap's bytes are counted. What whole runs come to is in tests/cli/test_bench.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench_moe.h"

static double ports_of_50(const struct emu_sim *sim, int pe, int ports)
{
    (void)sim;
    (void)pe;
    return 25e9 * ports;
}

static uint64_t still(void)
{
    return 1000;
}

static const struct emu_sim_api fake = {.pe_ceiling = ports_of_50, .now = still};

/** A run that is shaped and routed. */
static void open_run(struct bench_run *run, const struct bench_spec *spec, int nodes, int gpus)
{
    char why[BENCH_WHY] = "";

    *run = (struct bench_run){.emu = &fake, .spec = spec, .n_pes = nodes * gpus, .per_node = gpus, .rails = 2};
    if (bench_moe_shape(run, why, sizeof(why)))
        fail_msg("%s", why);
    assert_int_equal(bench_moe_route(run), 0);
}

static struct bench_spec spec_of(enum bench_phase phase, unsigned tokens, double skew)
{
    return (struct bench_spec){
        .pattern = BENCH_MOE, .seed = 5, .moe = {.phase = phase, .tokens = tokens, .skew = skew}};
}

/* ---- routing --------------------------------------------------------------------------------------------------------- */

/** Each token's nodes are those of its experts, at most four; counts are of them. The part that is remote. */
static double check_routes(const struct bench_run *run)
{
    const struct bench_moe *m = run->moe;
    uint64_t all = 0, remote = 0, counted = 0;

    for (int pe = 0; pe < run->n_pes; pe++) {
        for (unsigned i = 0; i < m->tokens; i++) {
            const struct bench_moe_token *t = &m->token[(size_t)pe * m->tokens + i];
            uint64_t nodes = 0;

            for (int k = 0; k < BENCH_MOE_TOP; k++)
                nodes |= (uint64_t)1 << t->rank[k] / m->local;
            assert_true(nodes == t->nodes);
            assert_in_range(__builtin_popcountll(nodes), 1, BENCH_MOE_GROUPS);
            all += (uint64_t)__builtin_popcountll(nodes);
            remote += (uint64_t)__builtin_popcountll(nodes & ~((uint64_t)1 << pe / run->per_node));
        }
        for (int c = 0; c < (int)m->channels; c++) {
            for (int d = 0; d < m->nodes; d++)
                counted += bench_moe_count(run, pe, c, d);
        }
    }
    assert_int_equal(counted, all);
    return (double)remote / (double)all;
}

static void tokens_go_to_their_experts_nodes(void **state)
{
    static const int nodes[] = {2, 4, 8, 64};

    (void)state;
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        struct bench_spec spec = spec_of(BENCH_DISPATCH_BF16, 256, 0);
        struct bench_run run;
        double remote;

        open_run(&run, &spec, nodes[i], nodes[i] == 2 ? 8 : 1);
        remote = check_routes(&run);
        assert_true(remote > 1 - 1.0 / nodes[i] - 0.01 && remote < 1 - 1.0 / nodes[i] + 0.01);
        bench_moe_free(run.moe);
    }
}

static void popular_experts_get_more(void **state)
{
    struct bench_spec even = spec_of(BENCH_DISPATCH_BF16, 512, 0), skewed = spec_of(BENCH_DISPATCH_BF16, 512, 1.5);
    uint64_t most[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct bench_run run;
        uint64_t on[64] = {0};

        open_run(&run, k ? &skewed : &even, 4, 1);
        check_routes(&run);
        most[k] = 0;
        for (size_t i = 0; i < 4u * 512; i++) {
            for (int e = 0; e < BENCH_MOE_TOP; e++)
                most[k] = ++on[run.moe->token[i].rank[e]] > most[k] ? on[run.moe->token[i].rank[e]] : most[k];
        }
        bench_moe_free(run.moe);
    }
    assert_true(most[1] > 2 * most[0]);
}

static void a_cursor_finds_what_was_counted(void **state)
{
    struct bench_spec spec = spec_of(BENCH_COMBINE, 200, 0);
    struct bench_run run;
    uint32_t cursor = 0, end;

    (void)state;
    open_run(&run, &spec, 8, 1);
    end = bench_moe_first(run.moe, 1);
    for (uint32_t n = bench_moe_count(&run, 3, 0, 5); n > 0; n--) {
        const struct bench_moe_token *t = bench_moe_next(&run, 3, 5, &cursor);

        assert_true(t->nodes >> 5 & 1);
        assert_in_range(bench_moe_copies(run.moe, t, 5), 1, BENCH_MOE_LOCAL);
        assert_true(cursor <= end);
    }
    bench_moe_next(&run, 3, 5, &cursor);
    assert_true(cursor > end);
    assert_int_equal(bench_moe_first(run.moe, run.moe->channels), run.moe->tokens);
    bench_moe_free(run.moe);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/** Marks bytes that nothing else has. */
static void take(unsigned char *used, size_t len, size_t at, size_t n)
{
    assert_true(at + n <= len);
    for (size_t i = at; i < at + n; i++)
        assert_int_equal(used[i]++, 0);
}

static void nothing_overlaps(void **state)
{
    struct bench_spec spec = spec_of(BENCH_DISPATCH_FP8, 64, 0);
    struct bench_run run;
    struct bench_moe *m;
    unsigned char *used;
    size_t len;

    (void)state;
    spec.moe.channels = 3;
    spec.moe.chunk = 3;
    spec.moe.ring = 8; /* becomes 9 */
    open_run(&run, &spec, 3, 1);
    m = run.moe;
    assert_int_equal(m->ring, 9);
    m->data_at = m->words_len;
    len = bench_moe_mem_len(m);
    used = calloc(1, len);
    assert_non_null(used);
    for (int round = 0; round < BENCH_MOE_ROUNDS; round++)
        take(used, len, bench_moe_sync_at(m, round), 8);
    for (int c = 0; c < 3; c++) {
        for (int d = 0; d < 3; d++) {
            take(used, len, bench_moe_tail_at(m, c, d), 8);
            take(used, len, bench_moe_head_at(m, c, d), 8);
            take(used, len, bench_moe_meta_at(m, c, d), BENCH_MOE_META_BYTES);
            take(used, len, bench_moe_meta_from(m, c, d), BENCH_MOE_META_BYTES);
            for (uint32_t n = 0; n < m->ring; n += m->chunk) { /* a chunk is one piece */
                take(used, len, bench_moe_slot_in(m, c, d, n), m->chunk * m->token_bytes);
                take(used, len, bench_moe_slot_out(m, c, d, n), m->chunk * m->token_bytes);
            }
            assert_true(bench_moe_slot_in(m, c, d, m->ring + 1) == bench_moe_slot_in(m, c, d, 1));
        }
    }
    for (int d = 0; d < 3; d++)
        take(used, len, bench_moe_counts_at(m, d), bench_moe_counts_len(m));
    take(used, len, bench_moe_counts_from(m), bench_moe_counts_len(m));
    free(used);
    bench_moe_free(m);
}

/* ---- slots ----------------------------------------------------------------------------------------------------------- */

/** A PE of two whose rings are filled by hand: what it reads from node 1 on one channel. */
struct reader {
    struct bench_spec spec;
    struct bench_run run;
    struct bench_pe pe;
    struct bench_moe_in in[2];
    struct bench_moe_out out[2];
    struct bench_moe_channel ch;
    struct bench_moe_pe p;
};

static void open_reader(struct reader *r)
{
    *r = (struct reader){.spec = spec_of(BENCH_DISPATCH_BF16, 64, 0)};
    r->spec.moe.channels = 1;
    r->spec.moe.chunk = 4;
    r->spec.moe.ring = 8;
    open_run(&r->run, &r->spec, 2, 1);
    r->run.moe->data_at = r->run.moe->words_len;
    r->pe = (struct bench_pe){.run = &r->run, .n_pes = 2, .mem_len = bench_moe_mem_len(r->run.moe)};
    r->pe.mem = calloc(1, r->pe.mem_len);
    assert_non_null(r->pe.mem);
    r->in[0] = (struct bench_moe_in){.known = true};
    r->in[1] = (struct bench_moe_in){.known = true, .total = 60};
    r->ch = (struct bench_moe_channel){.in = r->in, .out = r->out, .open = 3, .undone = 3};
    r->p = (struct bench_moe_pe){.pe = &r->pe, .moe = r->run.moe, .channel = &r->ch};
}

static void close_reader(struct reader *r)
{
    free(r->pe.mem);
    free(r->p.ask);
    bench_moe_free(r->run.moe);
}

/** What node 1 puts of the chunk that begins with this token. */
static void arrive(struct reader *r, uint32_t first, uint32_t tokens)
{
    bench_fill(r->pe.mem + bench_moe_slot_in(r->run.moe, 0, 1, first), tokens * r->run.moe->token_bytes,
               bench_moe_tag(&r->run, 1, 0, 0, first), 0);
}

static void announce(struct reader *r, uint64_t tail)
{
    memcpy(r->pe.mem + bench_moe_tail_at(r->run.moe, 0, 1), &tail, sizeof(tail));
    bench_moe_read(&r->p, &r->ch);
}

static void slots_of_their_lap_are_right(void **state)
{
    struct reader r;

    (void)state;
    open_reader(&r);
    for (uint32_t first = 0; first < 60; first += 4) {
        arrive(&r, first, 4);
        announce(&r, first + 4);
        assert_int_equal(r.in[1].read, first + 4);
        assert_int_equal(r.in[1].credited, first + 4);
    }
    assert_int_equal(r.run.errors, 0);
    assert_int_equal(r.run.moe->stale, 0);
    assert_int_equal(r.run.compared, 60 * 14416);
    assert_int_equal(r.p.asked, 15); /* credit, a chunk at a time */
    assert_true(r.ch.took);
    close_reader(&r);
}

static void slots_of_another_lap_are_stale(void **state)
{
    struct reader r;

    (void)state;
    open_reader(&r);
    arrive(&r, 0, 4);
    arrive(&r, 4, 4);
    announce(&r, 8);
    announce(&r, 12); /* the third chunk is not here: its place still holds the first */
    assert_int_equal(r.run.moe->stale, 4);
    assert_true(r.run.errors > 3 * 14416 && r.run.errors <= 4 * 14416);
    arrive(&r, 12, 2); /* half of the fourth */
    announce(&r, 16);
    assert_int_equal(r.run.moe->stale, 6);
    close_reader(&r);
}

static void a_tail_inside_a_chunk_is_followed(void **state)
{
    struct reader r;

    (void)state;
    open_reader(&r);
    arrive(&r, 0, 4);
    announce(&r, 3);
    announce(&r, 4);
    assert_int_equal(r.run.moe->stale, 0);
    announce(&r, 5); /* not here */
    assert_int_equal(r.run.moe->stale, 1);
    announce(&r, 8);
    assert_int_equal(r.run.moe->stale, 4);
    assert_int_equal(r.in[1].read, 8);
    close_reader(&r);
}

/** Kernels that copy are through with a token when its time is up, not before, and begin the next at once. */
static void copying_takes_its_time(void **state)
{
    struct reader r;
    struct bench_moe_work w = {0};

    (void)state;
    open_reader(&r);
    r.p.now_ns = 1000;
    r.run.moe->began_ns = 1000;
    r.p.next_ns = UINT64_MAX;
    assert_true(bench_moe_worked(&r.p, &w, 1e6, 0)); /* ideal */
    assert_false(bench_moe_worked(&r.p, &w, 500, 5));
    assert_int_equal(r.p.next_ns, 1100);
    r.p.now_ns = 1150; /* late: the next one began at 1100 */
    assert_true(bench_moe_worked(&r.p, &w, 500, 5));
    assert_false(bench_moe_worked(&r.p, &w, 500, 5));
    assert_int_equal(w.until_ns, 1200);
    r.p.now_ns = 1300;
    assert_true(bench_moe_worked(&r.p, &w, 500, 5));
    w.waited = true; /* there was nothing to copy */
    assert_false(bench_moe_worked(&r.p, &w, 500, 5));
    assert_int_equal(w.until_ns, 1400);
    close_reader(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_go_to_their_experts_nodes),  cmocka_unit_test(popular_experts_get_more),
        cmocka_unit_test(a_cursor_finds_what_was_counted),   cmocka_unit_test(nothing_overlaps),
        cmocka_unit_test(slots_of_their_lap_are_right),      cmocka_unit_test(slots_of_another_lap_are_stale),
        cmocka_unit_test(a_tail_inside_a_chunk_is_followed), cmocka_unit_test(copying_takes_its_time)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
