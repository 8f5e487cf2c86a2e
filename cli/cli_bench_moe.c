/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bench_moe.c - what `braid bench moe` has that the other patterns have not: its options, its runs (phases, engines, chunk
 * sizes), its table, its part of the JSON text. Called by the other cli_bench files; next: bench.h.
 */
#include "cli_bench.h"

#include <stdlib.h>
#include <string.h>

/* DeepEP's own test tries these chunks. */
enum { CLI_TUNE_FROM = 4, CLI_TUNE_TO = 32, CLI_TUNE_STEP = 4 };

static int cli_moe_wrong(const char *option, const char *text, const char *expected)
{
    fprintf(stderr, "braid bench: %s: seen \"%s\", expected %s\n", option, text, expected);
    return -1;
}

static int cli_moe_phases(struct cli_bench *c, const char *text)
{
    char list[128], *save = NULL, *word;

    snprintf(list, sizeof(list), "%s", text);
    c->n_phases = 0;
    for (word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        int k = 0;

        while (k < BENCH_PHASES && strcmp(word, bench_phase_name((enum bench_phase)k)) != 0)
            k++;
        if (k == BENCH_PHASES || c->n_phases == BENCH_PHASES)
            return cli_moe_wrong("--moe-phase", text, "dispatch-bf16, dispatch-fp8 or combine, or a list of them");
        c->phase[c->n_phases++] = (enum bench_phase)k;
    }
    return c->n_phases ? 0 : cli_moe_wrong("--moe-phase", text, "dispatch-bf16, dispatch-fp8 or combine");
}

/** A number from 0 to 10^6 and what has to stand behind it. 0 or -1. */
static int cli_moe_part(const char **at, const char *end, double *out)
{
    char *rest;

    *out = strtod(*at, &rest);
    if (rest == *at || strncmp(rest, end, strlen(end)) != 0 || !(*out >= 0 && *out <= 1e6))
        return -1;
    *at = rest + strlen(end);
    return 0;
}

/** "ideal", or "COPY:FORWARD:SEEus". */
static int cli_moe_gpu(struct bench_moe_spec *s, const char *text)
{
    double copy, forward, see;
    const char *at = text;

    if (strcmp(text, "ideal") == 0) {
        s->copy_gbs = s->forward_gbs = 0;
        s->see_ns = 0;
        return 0;
    }
    if (cli_moe_part(&at, ":", &copy) || cli_moe_part(&at, ":", &forward) || cli_moe_part(&at, "us", &see) || *at)
        return cli_moe_wrong(
            "--moe-gpu", text,
            "ideal, or COPY:FORWARD:SEEus, GB/s of the kernels of a channel, 0 for at once, and the delay "
            "between what they see and what their proxy sees");
    s->copy_gbs = copy;
    s->forward_gbs = forward;
    s->see_ns = (uint64_t)(see * 1e3);
    return 0;
}

static int cli_moe_number(struct bench_moe_spec *s, int letter, const char *text)
{
    static const struct cli_moe_row {
        int letter;
        const char *name;
        uint64_t high;
    } rows[] = {{CLI_MOE_TOKENS, "--moe-tokens", BENCH_MOE_TOKENS_MAX},
                {CLI_MOE_CHANNELS, "--moe-channels", BENCH_MOE_CHANNELS_MAX},
                {CLI_MOE_CHUNK, "--moe-chunk", BENCH_MOE_CHUNK_MAX},
                {CLI_MOE_RING, "--moe-ring", BENCH_MOE_RING_MAX}};
    unsigned *const to[] = {&s->tokens, &s->channels, &s->chunk, &s->ring};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t v;

        if (rows[i].letter != letter)
            continue;
        if (cli_number("bench", rows[i].name, text, 1, rows[i].high, &v))
            return -1;
        *to[i] = (unsigned)v;
        return 0;
    }
    return 1;
}

int cli_moe_take(struct cli_bench *c, int letter, const char *text)
{
    struct bench_moe_spec *s = &c->spec.moe;
    char *end;

    switch (letter) {
    case CLI_MOE_PHASE:
        return cli_moe_phases(c, text);
    case CLI_MOE_GPU:
        return cli_moe_gpu(s, text);
    case CLI_MOE_SKEW:
        s->skew = strtod(text, &end);
        if (end == text || *end || !(s->skew >= 0 && s->skew <= 4))
            return cli_moe_wrong("--moe-skew", text, "a number from 0 (all experts alike) to 4");
        return 0;
    case CLI_TUNE:
        c->tune = 1;
        return 0;
    default:
        return cli_moe_number(s, letter, text);
    }
}

int cli_moe_plan(struct cli_bench *c)
{
    struct cli_bench_run base[CLI_BENCH_LIST];
    int n = c->compare ? c->n_runs : 1, chunks = c->tune ? (CLI_TUNE_TO - CLI_TUNE_FROM) / CLI_TUNE_STEP + 1 : 1;

    if (c->sweep || c->n_sizes || c->n_ports > 1)
        return cli_moe_wrong(c->n_sizes ? "--size"
                             : c->sweep ? "--sweep"
                                        : "--ports",
                             "it", "moe without it: its puts are chunks of tokens (--moe-chunk, --tune)");
    if (!c->n_phases)
        cli_moe_phases(c, "dispatch-bf16,dispatch-fp8,combine");
    if (n * chunks * c->n_phases > CLI_BENCH_RUNS)
        return cli_moe_wrong("--compare", "too many runs with --tune and all phases", "fewer of them");
    memcpy(base, c->run, sizeof(base));
    if (!c->compare) {
        snprintf(base[0].engine, sizeof(base[0].engine), "%s", c->engine);
        base[0].order = c->spec.order;
        base[0].ports = c->n_ports ? c->ports[0] : 0;
    }
    c->n_runs = 0;
    for (int p = 0; p < c->n_phases; p++) {
        for (int i = 0; i < n * chunks; i++) {
            struct cli_bench_run *r = &c->run[c->n_runs++];

            *r = base[i / chunks];
            r->phase = c->phase[p];
            r->chunk = c->tune ? (unsigned)(CLI_TUNE_FROM + i % chunks * CLI_TUNE_STEP) : c->spec.moe.chunk;
        }
    }
    return 0;
}

void cli_moe_name(struct cli_bench_run *r)
{
    r->size = r->result.payload_bytes / r->result.ops;
    r->count = r->result.moe.tokens;
}

/* ---- for people -------------------------------------------------------------------------------------------------------- */

static void cli_moe_head(const struct cli_bench *c)
{
    const struct bench_moe_spec *s = &c->spec.moe;
    const struct bench_result *r = &c->run[0].result;

    printf("moe: %d nodes x %d GPU%s, %u tokens a rank, top-8 experts on at most 4 nodes, ", r->moe.nodes, r->per_node,
           r->per_node == 1 ? "" : "s", r->moe.tokens);
    if (s->skew > 0)
        printf("popular as k^-%g; ", s->skew);
    else
        printf("all alike; ");
    printf("%u channels; kernels ", r->moe.channels);
    if (s->copy_gbs > 0 || s->forward_gbs > 0 || s->see_ns)
        printf("of a channel copy at %g GB/s, forward at %g GB/s, %.2f us to the proxy", s->copy_gbs, s->forward_gbs,
               (double)s->see_ns / 1e3);
    else
        printf("ideal");
    printf("%s%s\n", c->spec.fault ? ", WITHOUT the rule " : "", c->spec.fault ? c->spec.fault : "");
}

/** The first run of the same phase. */
static const struct bench_result *cli_moe_first(const struct cli_bench *c, int i)
{
    while (i > 0 && c->run[i - 1].phase == c->run[i].phase)
        i--;
    return &c->run[i].result;
}

static void cli_moe_row(const struct cli_bench *c, int i)
{
    const struct cli_bench_run *run = &c->run[i];
    const struct bench_result *r = &run->result, *first = cli_moe_first(c, i);
    const struct bench_moe_result *m = &r->moe;

    printf("  %-13s %-8s %5d  %5u  %6.2f  %5.1f %%  %6.1f  %8.1f  %6.1f ", bench_phase_name(run->phase),
           cli_bench_orders_apply(run) ? cli_bench_order(run) : "-", r->ports, m->chunk, r->gbs, 100 * r->fraction,
           m->nvl_gbs, (double)r->wall_ns / 1e3, (double)m->notify_ns / 1e3);
    for (int w = 0; w < BENCH_WHERE; w++)
        printf(" %6.1f", r->wall_ns ? 100 * (double)m->where_ns[w] / (double)r->wall_ns : 0);
    printf("  %4.0f %%  %6llu", 100 * r->cpu_share, (unsigned long long)m->stale_reads);
    if (c->n_runs > c->n_phases)
        printf("  %6.3fx", first->gbs > 0 ? r->gbs / first->gbs : 0);
    if (cli_bench_has_engines(c))
        printf("  %s", cli_bench_engine_text(run));
    putchar('\n');
}

/** The best chunk of each engine, as DeepEP's test prints it. */
static void cli_moe_best(const struct cli_bench *c)
{
    for (int i = 0, best = 0; i < c->n_runs; i++) {
        bool last = i + 1 == c->n_runs || c->run[i + 1].chunk <= c->run[i].chunk;

        best = c->run[i].result.gbs > c->run[best].result.gbs ? i : best;
        if (!last)
            continue;
        printf("  best %s, %s: chunks of %u tokens, %.2f GB/s (RDMA), %.1f GB/s (NVL)\n",
               bench_phase_name(c->run[best].phase), cli_bench_engine_text(&c->run[best]), c->run[best].chunk,
               c->run[best].result.gbs, c->run[best].result.moe.nvl_gbs);
        best = i + 1;
    }
}

void cli_moe_text(const struct cli_bench *c)
{
    cli_moe_head(c);
    printf("\n  %-13s %-8s %5s  %5s  %6s  %7s  %6s  %8s  %6s ", "phase", "order", "ports", "chunk", "GB/s", "of max",
           "NVL", "us", "notify");
    for (int w = 0; w < BENCH_WHERE; w++)
        printf(" %6s", bench_where_name((enum bench_where)w));
    printf("  %6s  %6s%s\n", "CPU", "stale", c->n_runs > c->n_phases ? "  of 1st" : "");
    for (int i = 0; i < c->n_runs; i++)
        cli_moe_row(c, i);
    if (c->tune) {
        putchar('\n');
        cli_moe_best(c);
    }
    printf(
        "\n  GB/s: logical bytes of the busiest PE, those to its own node included, by the time until the last PE's kernels "
        "ended\n  wire to end: parts of that time, in %%: its wires busy, or idle for that reason\n");
}

/* ---- for programs ------------------------------------------------------------------------------------------------------ */

/** Rates between samples, of each port, and when these ended. */
static json_t *cli_moe_timeline(const struct bench_timeline *l, int *bad)
{
    json_t *o = json_object(), *us = json_array(), *ports = json_array();

    for (int i = 1; i < l->n; i++)
        *bad |= json_array_append_new(us, json_real((double)l->at_ns[i] / 1e3)) != 0;
    for (int k = 0; k < l->n_ports; k++) {
        json_t *port = json_object(), *gbs = json_array();

        for (int i = 1; i < l->n; i++)
            *bad |= json_array_append_new(gbs, json_real((double)(l->bytes[i][k] - l->bytes[i - 1][k]) /
                                                         (double)(l->at_ns[i] - l->at_ns[i - 1]))) != 0;
        cli_bench_put_key(port, "port", json_string(l->port[k]), bad);
        cli_bench_put_key(port, "gbs", gbs, bad);
        *bad |= json_array_append_new(ports, port) != 0;
    }
    cli_bench_put_key(o, "us", us, bad);
    cli_bench_put_key(o, "ports", ports, bad);
    return o;
}

json_t *cli_moe_json(const struct cli_bench *c, const struct bench_moe_result *r, int *bad)
{
    const struct bench_moe_spec *s = &c->spec.moe;
    json_t *o = json_object(), *where = json_object();

    cli_bench_put_key(o, "tokens", json_integer(r->tokens), bad);
    cli_bench_put_key(o, "channels", json_integer(r->channels), bad);
    cli_bench_put_key(o, "chunk", json_integer(r->chunk), bad);
    cli_bench_put_key(o, "ring", json_integer(r->ring), bad);
    cli_bench_put_key(o, "skew", json_real(s->skew), bad);
    cli_bench_put_key(o, "copy_gbs", json_real(s->copy_gbs), bad);
    cli_bench_put_key(o, "forward_gbs", json_real(s->forward_gbs), bad);
    cli_bench_put_key(o, "see_us", json_real((double)s->see_ns / 1e3), bad);
    cli_bench_put_key(o, "notify_us", json_real((double)r->notify_ns / 1e3), bad);
    for (int w = 0; w < BENCH_WHERE; w++)
        cli_bench_put_key(where, bench_where_name((enum bench_where)w), json_real((double)r->where_ns[w] / 1e3), bad);
    cli_bench_put_key(o, "where_us", where, bad);
    cli_bench_put_key(o, "timeline", cli_moe_timeline(&r->timeline, bad), bad);
    return o;
}
