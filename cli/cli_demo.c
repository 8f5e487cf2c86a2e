/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_demo.c - `braid demo`: two nodes with two 200 Gb/s ports each, in virtual time. One sender puts chunks into a ring
 * of the other node and signals each; the receiver compares every byte the moment it sees the signal. Three ways: one
 * port; both ports, blocking before each signal (drain); both ports, braid. Next: bench/.
 */
#include "cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

struct cli_demo_row {
    const char *title;
    int ports;
    const char *order;
};

static const struct cli_demo_row cli_demo_rows[] = {
    {"one port (stock)", 1, "release"},
    {"two ports, drain", 2, "drain"},
    {"two ports, braid", 2, "release"},
};

enum { CLI_DEMO_ROWS = sizeof(cli_demo_rows) / sizeof(cli_demo_rows[0]) };

static void cli_demo_help(FILE *to)
{
    fprintf(to, "usage: braid demo [--seed N] [--size BYTES] [--count N] [--window N]\n\n"
                "Moves chunks between two emulated nodes with two 200 Gb/s ports each, a signal behind\n"
                "each chunk, in three ways, and checks every byte as the receiver sees its signal.\n\n"
                "  --seed N       decides every random choice of the run (default 1)\n"
                "  --size BYTES   of a chunk (default 458752: 32 tokens of a DeepEP dispatch)\n"
                "  --count N      chunks (default 400)\n"
                "  --window N     chunks outstanding (default 16)\n\n"
                "Label of all figures: emulated (virtual time). Not measured on hardware.\n\n"
                "example: braid demo --size 65536 --window 32\n");
}

static int cli_demo_arguments(int argc, char **argv, struct bench_spec *s)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},  {"size", required_argument, NULL, 'b'},
        {"count", required_argument, NULL, 'n'}, {"window", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    uint64_t v;
    int c;

    optind = 1;
    opterr = 0;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'h') {
            cli_demo_help(stdout);
            return CLI_GOOD;
        }
        if (c == 's' && cli_number("demo", "--seed", optarg, 0, UINT64_MAX, &v) == 0)
            s->seed = v;
        else if (c == 'b' && cli_size("demo", "--size", optarg, 1, 1 << 24, &v) == 0)
            s->size = (size_t)v;
        else if (c == 'n' && cli_number("demo", "--count", optarg, 1, 1000000, &v) == 0)
            s->count = v;
        else if (c == 'w' && cli_number("demo", "--window", optarg, 1, 64, &v) == 0)
            s->window = (unsigned)v;
        else {
            if (c == '?')
                fprintf(
                    stderr,
                    "braid demo: seen \"%s\", expected --seed, --size, --count or --window with a number (see braid demo --help)\n",
                    argv[optind - 1]);
            return CLI_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "braid demo: seen \"%s\", expected options only (see braid demo --help)\n", argv[optind]);
        return CLI_USAGE;
    }
    return -1;
}

/** The sender's ports; a port's bar is full at the bytes it would carry if it did all the work alone. */
static void cli_demo_print(const struct cli_demo_row *row, const struct bench_result *r, double wire, int colour)
{
    printf("  %-18s %6.2f GB/s  %5.1f %% of the wire   %s\n", row->title, r->gbs, 100 * r->gbs / wire,
           r->errors ? "WRONG BYTES SEEN" : "all data right");
    if (r->errors)
        printf("    %llu wrong bytes\n", (unsigned long long)r->errors);
    cli_bars(stdout, r, "h0", r->payload_bytes, colour);
}

static int cli_demo_run(const struct emu_sim_api *emu, struct bench_spec *s)
{
    static struct bench_result result[CLI_DEMO_ROWS];
    int tty = isatty(STDOUT_FILENO), wrong = 0;
    char why[BENCH_WHY];
    double wire = 0;

    for (int i = 0; i < CLI_DEMO_ROWS; i++) {
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\r  running %s ...\033[K", cli_demo_rows[i].title);
        s->ports = cli_demo_rows[i].ports;
        s->order = cli_demo_rows[i].order;
        if (bench_run(emu, s, &result[i], why, sizeof(why))) {
            fprintf(stderr, "\nbraid demo: %s: %s\n", cli_demo_rows[i].title, why);
            return CLI_WRONG;
        }
        wrong |= result[i].errors != 0;
        wire = result[i].ceiling_gbs > wire ? result[i].ceiling_gbs : wire;
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    printf("%llu chunks of %zu bytes, a signal behind each, %u outstanding; wire %.2f GB/s\n\n",
           (unsigned long long)s->count, s->size, s->window, wire);
    for (int i = 0; i < CLI_DEMO_ROWS; i++)
        cli_demo_print(&cli_demo_rows[i], &result[i], wire, tty);
    printf("\n  braid / one port: %.2fx    braid / drain: %.2fx\n", result[2].gbs / result[0].gbs,
           result[2].gbs / result[1].gbs);
    printf("\nemulated (virtual time), seed %llu, cost table %08x\nfabric %s\n", (unsigned long long)s->seed,
           result[2].cost_hash, result[2].fabric);
    return wrong ? CLI_WRONG : CLI_GOOD;
}

int cli_demo(int argc, char **argv)
{
    struct bench_spec s = {.pattern = BENCH_SIGNAL,
                           .fabric = "nodes=2,gpus=1,ports=2,rate=200G,latency=2.5us",
                           .seed = 1,
                           .size = 458752,
                           .count = 400,
                           .window = 16};
    const struct emu_sim_api *emu;
    char why[BENCH_WHY];
    int rc = cli_demo_arguments(argc, argv, &s);

    if (rc >= 0)
        return rc;
    if (bench_emu_load(NULL, &emu, why, sizeof(why))) {
        fprintf(stderr, "braid demo: %s\n", why);
        return CLI_WRONG;
    }
    return cli_demo_run(emu, &s);
}
