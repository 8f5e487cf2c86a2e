/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bench_text.c - results of `braid bench` for people: a row a run, ratios to the first one where runs are compared, the
 * port picture where there is one run. Called by cli_bench.c.
 */
#include "cli_bench.h"

#include <string.h>

const char *cli_bench_order(const struct cli_bench_run *r)
{
    return r->order ? r->order : "release";
}

/** What all runs have in common, in a line. */
static void cli_bench_head(const struct cli_bench *c)
{
    const struct bench_spec *s = &c->spec;
    const struct bench_result *r = &c->run[0].result;

    printf("%s", cli_bench_pattern(c));
    if (s->pattern == BENCH_ATOMIC)
        printf(": %s on one word of PE 0 by %d PEs", c->op_name, s->all ? r->senders : r->peers);
    else if (s->all)
        printf(": %d PEs, each to %d peer%s; the slowest PE's figures", r->senders, r->peers, r->peers == 1 ? "" : "s");
    else
        printf(": PE 0 %s %d peer%s", s->pattern == BENCH_GET ? "from" : "to", r->peers, r->peers == 1 ? "" : "s");
    printf(", %u outstanding each", s->window);
    if (s->signal_every > 0 || s->pattern == BENCH_SIGNAL)
        printf(", a signal %s %u", s->one_call ? "in one call with every" : "after every",
               s->signal_every ? s->signal_every : 1);
    printf("%s%s", s->tail ? ", tail " : "", s->tail ? s->tail : "");
    if (s->except)
        printf(", PE %d left out", s->except);
    printf("%s%s\n", s->fault ? ", WITHOUT the rule " : "", s->fault ? s->fault : "");
}

static void cli_bench_times(const struct bench_times *t)
{
    if (t->count)
        printf("  %9.2f %9.2f", (double)t->p50 / 1e3, (double)t->p99 / 1e3);
    else
        printf("  %9s %9s", "-", "-");
}

/** What a run is compared by. */
static double cli_bench_speed(const struct cli_bench *c, const struct bench_result *r)
{
    if (c->spec.pattern == BENCH_ATOMIC)
        return r->wall_ns ? (double)r->ops / (double)r->wall_ns : 0;
    return r->gbs;
}

bool cli_bench_orders_apply(const struct cli_bench_run *r)
{
    return r->parsed.kind != BENCH_ENGINE_NIC_RR && !r->parsed.foreign;
}

static void cli_bench_row(const struct cli_bench *c, const struct cli_bench_run *run)
{
    const struct bench_result *r = &run->result;
    bool signals = r->signal.count > 0, atomic = c->spec.pattern == BENCH_ATOMIC;
    double first = cli_bench_speed(c, &c->run[0].result);
    char size[32];

    printf("  %-8s %5d  %8s %9llu", cli_bench_orders_apply(run) ? cli_bench_order(run) : "-", r->ports,
           cli_size_text(run->size, size, sizeof(size)), (unsigned long long)r->ops);
    if (atomic)
        printf("  %8.3f Mop/s", 1e3 * cli_bench_speed(c, r));
    else
        printf("  %7.2f  %6.1f %%", r->gbs, 100 * r->fraction);
    cli_bench_times(&r->latency);
    if (signals)
        cli_bench_times(&r->signal);
    printf("  %4.0f %%  %8llu", 100 * r->cpu_share, (unsigned long long)r->errors);
    if (c->n_runs > 1)
        printf("  %6.3fx", first > 0 ? cli_bench_speed(c, r) / first : 0);
    if (cli_bench_has_engines(c))
        printf("  %s", cli_bench_engine_text(run));
    putchar('\n');
}

/** What each engine is, once, and the share of the sender's bytes that each of its ports carried. */
static void cli_bench_engines(const struct cli_bench *c)
{
    for (int i = 0; i < c->n_runs; i++) {
        const struct cli_bench_run *run = &c->run[i];
        const struct bench_result *r = &run->result;
        uint64_t all = 0;
        char host[16];

        snprintf(host, sizeof(host), "h%d", r->sender / r->per_node);
        for (int k = 0; k < r->n_ports; k++)
            all += strcmp(r->port[k].host, host) == 0 ? r->port[k].tx + r->port[k].rx : 0;
        printf("%s  %d: %s, %s\n     payload by port of %s:", i ? "" : "\n", i + 1, cli_bench_engine_text(run),
               cli_bench_engine_label(run), host);
        for (int k = 0; k < r->n_ports; k++) {
            if (strcmp(r->port[k].host, host) == 0)
                printf(" %s %.1f %%", r->port[k].port,
                       all ? 100.0 * (double)(r->port[k].tx + r->port[k].rx) / (double)all : 0);
        }
        putchar('\n');
    }
}

static void cli_bench_table(const struct cli_bench *c)
{
    bool signals = c->run[0].result.signal.count > 0, atomic = c->spec.pattern == BENCH_ATOMIC;

    printf("\n  %-8s %5s  %8s %9s  %s  %9s %9s%s  %6s  %8s%s\n", "order", "ports", "size", "ops",
           atomic ? "              " : "   GB/s   of max", "p50 us", "p99 us", signals ? "  sig.50 us sig.99 us" : "",
           "CPU", "errors", c->n_runs > 1 ? "  of 1st" : "");
    for (int i = 0; i < c->n_runs; i++)
        cli_bench_row(c, &c->run[i]);
}

/** A sweep: sizes down, ports across. */
static void cli_bench_matrix(const struct cli_bench *c)
{
    char size[32];

    printf("\n  %10s", "GB/s");
    for (int p = 0; p < c->n_ports; p++)
        printf("  %3d port%c", c->run[p * c->n_sizes].result.ports,
               c->run[p * c->n_sizes].result.ports > 1 ? 's' : ' ');
    putchar('\n');
    for (int i = 0; i < c->n_sizes; i++) {
        printf("  %10s", cli_size_text(c->size[i], size, sizeof(size)));
        for (int p = 0; p < c->n_ports; p++)
            printf("  %8.2f", c->run[p * c->n_sizes + i].result.gbs);
        putchar('\n');
    }
}

void cli_bench_text(const struct cli_bench *c, int colour)
{
    const struct bench_result *r = &c->run[0].result;
    uint64_t compared = 0;
    char host[16];

    if (c->spec.pattern == BENCH_MOE) {
        cli_moe_text(c);
    } else {
        cli_bench_head(c);
        if (c->sweep && c->spec.pattern != BENCH_ATOMIC)
            cli_bench_matrix(c);
        cli_bench_table(c);
    }
    if (cli_bench_has_engines(c))
        cli_bench_engines(c);
    for (int i = 0; i < c->n_runs; i++)
        compared += c->run[i].result.compared_bytes;
    if (c->n_runs == 1 && c->spec.pattern != BENCH_ATOMIC) {
        snprintf(host, sizeof(host), "h%d", r->sender / r->per_node);
        printf("\n");
        cli_bars(stdout, r, host, c->spec.pattern == BENCH_GET ? "received" : "sent", c->spec.pattern == BENCH_GET,
                 colour);
    }
    if (c->spec.pattern != BENCH_ATOMIC)
        printf("\n  max: %s\n  %llu bytes were compared by the receiver%s\n", r->ceiling_how,
               (unsigned long long)compared, c->spec.pattern == BENCH_MOE ? "s" : "");
    printf("\n%s, seed %llu", cli_bench_label(c), (unsigned long long)c->spec.seed);
    if (!c->spec.live)
        printf(", cost table %08x", r->cost_hash);
    printf("\nfabric %s\n", r->fabric);
}
