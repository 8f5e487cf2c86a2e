/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_demo.c - `braid demo`: chunks with a signal behind each on small clusters of two 200 Gb/s ports a GPU, in virtual
 * time; the receiver compares every byte the moment it sees the signal. Three ways: one port, as stock transports do;
 * both ports, blocking before each signal (drain); both ports, braid. Next: bench/.
 */
#include "cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { CLI_DEMO_CASES = 3, CLI_DEMO_WAYS = 3 };

struct cli_demo_case {
    const char *title, *fabric;
    int peers, streams;
    bool all;
};

static const struct cli_demo_case cli_demo_cases[CLI_DEMO_CASES] = {
    {"2 nodes, 2 ports a GPU", "nodes=2,gpus=1,ports=2,rate=200G,latency=2.5us", 1, 1, false},
    {"2 nodes, 2 GPUs share 4 ports", "nodes=2,gpus=2,ports=2,rate=200G,latency=2.5us,topo=pxb", 1, 4, true},
    {"4 nodes, each to 3 others", "nodes=4,gpus=1,ports=2,rate=200G,latency=2.5us", 3, 12, true},
};

static const struct cli_demo_way {
    const char *title, *order;
    bool stock;
} cli_demo_ways[CLI_DEMO_WAYS] = {
    {"one port", "release", true}, {"drain", "drain", false}, {"braid", "release", false}};

struct cli_demo {
    struct bench_spec spec;
    uint64_t count;
    struct bench_result result[CLI_DEMO_CASES][CLI_DEMO_WAYS];
};

static void cli_demo_help(FILE *to)
{
    fprintf(to, "usage: braid demo [--seed N] [--size BYTES] [--count N] [--window N]\n\n"
                "Moves chunks between emulated nodes, a signal behind each chunk, over two 200 Gb/s ports a GPU, in\n"
                "three ways, and checks every byte as the receiver sees its signal.\n\n"
                "  --seed N       decides every random choice of the runs (default 1)\n"
                "  --size BYTES   of a chunk (default 448K: 32 tokens of a DeepEP dispatch)\n"
                "  --count N      chunks in each run, shared by its streams (default 240)\n"
                "  --window N     chunks outstanding for each peer (default 4)\n\n"
                "Label of all figures: emulated (virtual time). Not measured on hardware.\n\n"
                "example: braid demo --size 64K --window 32\n");
}

/** One option. 0, or -1 where it was wrong, which has been said. */
static int cli_demo_take(struct cli_demo *d, int letter, const char *text)
{
    uint64_t v;
    int rc;

    if (letter == 's') {
        rc = cli_number("demo", "--seed", text, 0, INT64_MAX, &v);
        d->spec.seed = rc ? 0 : v;
    } else if (letter == 'b') {
        rc = cli_size("demo", "--size", text, 1, 1 << 24, &v);
        d->spec.size = rc ? 0 : (size_t)v;
    } else if (letter == 'n') {
        rc = cli_number("demo", "--count", text, 1, 1000000, &v);
        d->count = rc ? 0 : v;
    } else {
        rc = cli_number("demo", "--window", text, 1, 64, &v);
        d->spec.window = rc ? 0 : (unsigned)v;
    }
    return rc;
}

/** -1 to go on, else the exit status. */
static int cli_demo_arguments(int argc, char **argv, struct cli_demo *d)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},  {"size", required_argument, NULL, 'b'},
        {"count", required_argument, NULL, 'n'}, {"window", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    int c;

    optind = 1;
    opterr = 0;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'h') {
            cli_demo_help(stdout);
            return CLI_GOOD;
        }
        if (c == '?') {
            fprintf(stderr,
                    "braid demo: seen \"%s\", expected --seed, --size, --count or --window with a number (see braid "
                    "demo --help)\n",
                    argv[optind - 1]);
            return CLI_USAGE;
        }
        if (cli_demo_take(d, c, optarg))
            return CLI_USAGE;
    }
    if (optind < argc) {
        fprintf(stderr, "braid demo: seen \"%s\", expected options only (see braid demo --help)\n", argv[optind]);
        return CLI_USAGE;
    }
    return -1;
}

static int cli_demo_run(const struct emu_sim_api *emu, struct cli_demo *d, int i, int w)
{
    const struct cli_demo_case *what = &cli_demo_cases[i];
    const struct cli_demo_way *way = &cli_demo_ways[w];
    struct bench_spec s = d->spec;
    char why[BENCH_WHY];

    s.fabric = what->fabric;
    s.peers = what->peers;
    s.all = what->all;
    s.order = way->order;
    s.stock = way->stock;
    s.count = d->count / (uint64_t)what->streams;
    s.count = s.count ? s.count : 1;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r  %s: %s ...\033[K", what->title, way->title);
    if (bench_run(emu, &s, &d->result[i][w], why, sizeof(why)) == 0)
        return 0;
    fprintf(stderr, "%sbraid demo: %s: %s: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", what->title, way->title,
            why);
    return -1;
}

/** The ports of the first case's sender; a bar is full at the bytes it would carry if it did all the work alone. */
static void cli_demo_picture(const struct cli_demo *d, int colour)
{
    printf("\n  bytes that each port of the sender carried, %s\n", cli_demo_cases[0].title);
    for (int w = 0; w < CLI_DEMO_WAYS; w++)
        cli_bars(stdout, &d->result[0][w], "h0", cli_demo_ways[w].title, false, colour);
}

/** The table. Returns wrong bytes of all runs. */
static uint64_t cli_demo_table(const struct cli_demo *d, int colour)
{
    char size[32];
    uint64_t wrong = 0;

    printf("chunks of %s, a signal behind each, %u outstanding for each peer; GB/s a GPU\n\n",
           cli_size_text(d->spec.size, size, sizeof(size)), d->spec.window);
    printf("  %-31s %9s %9s %9s %11s\n", "", "one port", "two ports", "two ports", "what the");
    printf("  %-31s %9s %9s %9s %11s\n", "", "(stock)", "drain", "braid", "ports allow");
    for (int i = 0; i < CLI_DEMO_CASES; i++) {
        const struct bench_result *r = d->result[i];

        printf("  %-31s %9.2f %9.2f %s%9.2f%s %11.2f\n", cli_demo_cases[i].title, r[0].gbs, r[1].gbs,
               colour ? "\033[1;32m" : "", r[2].gbs, colour ? "\033[0m" : "", r[2].ceiling_gbs);
        for (int w = 0; w < CLI_DEMO_WAYS; w++)
            wrong += r[w].errors;
    }
    return wrong;
}

static int cli_demo_show(const struct cli_demo *d)
{
    int colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    uint64_t compared = 0, wrong = cli_demo_table(d, colour);

    cli_demo_picture(d, colour);
    for (int i = 0; i < CLI_DEMO_CASES * CLI_DEMO_WAYS; i++)
        compared += d->result[i / CLI_DEMO_WAYS][i % CLI_DEMO_WAYS].compared_bytes;
    printf("\n  drain blocks the caller before each signal until all ports have answered; braid does not.\n");
    if (wrong)
        printf("  WRONG BYTES SEEN: %llu of %llu\n", (unsigned long long)wrong, (unsigned long long)compared);
    else
        printf("  all data right: %.0f MB compared, each chunk as its signal was seen\n", (double)compared / 1e6);
    printf("\nemulated (virtual time), seed %llu, cost table %08x; 200 Gb/s ports, 2.5 us one way\n",
           (unsigned long long)d->spec.seed, d->result[0][0].cost_hash);
    return wrong ? CLI_WRONG : CLI_GOOD;
}

int cli_demo(int argc, char **argv)
{
    struct cli_demo *d = calloc(1, sizeof(*d));
    const struct emu_sim_api *emu;
    char why[BENCH_WHY];
    int status;

    if (!d)
        return CLI_WRONG;
    d->spec = (struct bench_spec){.pattern = BENCH_SIGNAL, .seed = 1, .size = 458752, .window = 4};
    d->count = 240;
    status = cli_demo_arguments(argc, argv, d);
    if (status < 0 && bench_emu_load(NULL, &emu, why, sizeof(why))) {
        fprintf(stderr, "braid demo: %s\n", why);
        status = CLI_WRONG;
    }
    for (int i = 0; status < 0 && i < CLI_DEMO_CASES * CLI_DEMO_WAYS; i++) {
        if (cli_demo_run(emu, d, i / CLI_DEMO_WAYS, i % CLI_DEMO_WAYS))
            status = CLI_WRONG;
    }
    if (status < 0) {
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\r\033[K");
        status = cli_demo_show(d);
    }
    free(d);
    return status;
}
