/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bench_args.c - the command line of `braid bench`: text to a struct cli_bench, every word checked. Called by
 * cli_bench.c; next: bench.h.
 */
#include "cli_bench.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum cli_bench_letter {
    CLI_FABRIC = 256,
    CLI_ENGINE,
    CLI_ORDER,
    CLI_TAIL,
    CLI_PORTS,
    CLI_SIZE,
    CLI_WINDOW,
    CLI_COUNT,
    CLI_PEERS,
    CLI_ALL,
    CLI_SIGNAL_EVERY,
    CLI_SIGNAL,
    CLI_WATCH_LAST,
    CLI_REWRITE,
    CLI_ONE_WORD,
    CLI_ONE_CALL,
    CLI_OP,
    CLI_STOCK,
    CLI_UNREACHABLE,
    CLI_EXCEPT,
    CLI_SEED,
    CLI_FAULT,
    CLI_COMPARE,
    CLI_SET,
    CLI_JSON,
    CLI_SWEEP,
    CLI_SVG,
    CLI_NAP,
    CLI_PATIENCE,
    CLI_HELP = 'h'
};

static const struct option cli_bench_options[] = {{"fabric", required_argument, NULL, CLI_FABRIC},
                                                  {"engine", required_argument, NULL, CLI_ENGINE},
                                                  {"order", required_argument, NULL, CLI_ORDER},
                                                  {"tail", required_argument, NULL, CLI_TAIL},
                                                  {"ports", required_argument, NULL, CLI_PORTS},
                                                  {"size", required_argument, NULL, CLI_SIZE},
                                                  {"window", required_argument, NULL, CLI_WINDOW},
                                                  {"count", required_argument, NULL, CLI_COUNT},
                                                  {"peers", required_argument, NULL, CLI_PEERS},
                                                  {"all", no_argument, NULL, CLI_ALL},
                                                  {"signal-every", required_argument, NULL, CLI_SIGNAL_EVERY},
                                                  {"signal", required_argument, NULL, CLI_SIGNAL},
                                                  {"watch-last", no_argument, NULL, CLI_WATCH_LAST},
                                                  {"rewrite", no_argument, NULL, CLI_REWRITE},
                                                  {"one-word", no_argument, NULL, CLI_ONE_WORD},
                                                  {"one-call", no_argument, NULL, CLI_ONE_CALL},
                                                  {"op", required_argument, NULL, CLI_OP},
                                                  {"stock", no_argument, NULL, CLI_STOCK},
                                                  {"unreachable", required_argument, NULL, CLI_UNREACHABLE},
                                                  {"except", required_argument, NULL, CLI_EXCEPT},
                                                  {"seed", required_argument, NULL, CLI_SEED},
                                                  {"fault", required_argument, NULL, CLI_FAULT},
                                                  {"compare", required_argument, NULL, CLI_COMPARE},
                                                  {"set", required_argument, NULL, CLI_SET},
                                                  {"moe-phase", required_argument, NULL, CLI_MOE_PHASE},
                                                  {"moe-tokens", required_argument, NULL, CLI_MOE_TOKENS},
                                                  {"moe-channels", required_argument, NULL, CLI_MOE_CHANNELS},
                                                  {"moe-chunk", required_argument, NULL, CLI_MOE_CHUNK},
                                                  {"moe-ring", required_argument, NULL, CLI_MOE_RING},
                                                  {"moe-skew", required_argument, NULL, CLI_MOE_SKEW},
                                                  {"moe-gpu", required_argument, NULL, CLI_MOE_GPU},
                                                  {"tune", no_argument, NULL, CLI_TUNE},
                                                  {"json", no_argument, NULL, CLI_JSON},
                                                  {"sweep", no_argument, NULL, CLI_SWEEP},
                                                  {"svg", required_argument, NULL, CLI_SVG},
                                                  {"nap", required_argument, NULL, CLI_NAP},
                                                  {"patience", required_argument, NULL, CLI_PATIENCE},
                                                  {"help", no_argument, NULL, CLI_HELP},
                                                  {NULL, 0, NULL, 0}};

/** "braid bench: OPTION: seen "TEXT", expected EXPECTED". Returns -1. */
static int cli_bench_wrong(const char *option, const char *text, const char *expected)
{
    fprintf(stderr, "braid bench: %s: seen \"%s\", expected %s\n", option, text, expected);
    return -1;
}

/** Which of the words text is; -1 where it is none, which has been said. */
static int cli_bench_word(const char *option, const char *text, const char *const *words)
{
    char expected[256] = "";

    for (int i = 0; words[i]; i++) {
        size_t n = strlen(expected);

        if (strcmp(words[i], text) == 0)
            return i;
        snprintf(expected + n, sizeof(expected) - n, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    }
    return cli_bench_wrong(option, text, expected);
}

static const char *const cli_bench_orders[] = {"release", "strict", "drain", NULL};
static const char *const cli_bench_on_off[] = {"on", "off", NULL};
static const char *const cli_bench_patterns[] = {"put",    "signal", "get",
                                                 "atomic", "moe",    NULL}; /* as enum bench_pattern */
static const char *const cli_bench_signals[] = {"add", "set", NULL};
static const char *const cli_bench_ops[] = {"add", "fetch-add", "cswap", "set",   "swap",
                                            "and", "or",        "xor",   "fetch", NULL};
static const char *const cli_bench_faults[] = {"defer", "flush", "own-flush", "keys",  "overlap",
                                               "home",  "dedup", "tail",      "order", NULL};

static int cli_bench_engine(const char *text, struct bench_engine *out)
{
    char why[BENCH_WHY];

    if (bench_engine(text, out, why, sizeof(why)) == 0)
        return 0;
    fprintf(stderr, "braid %s\n", why);
    return -1;
}

/** Text up to a character, in a buffer; what follows it, or NULL at the end. */
static const char *cli_bench_cut(const char *text, char at, char *out, size_t len)
{
    const char *end = strchrnul(text, at);

    snprintf(out, len, "%.*s", (int)(end - text), text);
    return *end ? end + 1 : NULL;
}

static int cli_bench_sizes(struct cli_bench *c, const char *text)
{
    char word[64];

    for (c->n_sizes = 0; text; c->n_sizes++) {
        if (c->n_sizes == CLI_BENCH_LIST)
            return cli_bench_wrong("--size", text, "at most 16 sizes");
        text = cli_bench_cut(text, ',', word, sizeof(word));
        if (cli_size("bench", "--size", word, 1, 1 << 30, &c->size[c->n_sizes]))
            return -1;
    }
    return 0;
}

static int cli_bench_ports(struct cli_bench *c, const char *text)
{
    char word[64];
    uint64_t v;

    for (c->n_ports = 0; text; c->n_ports++) {
        if (c->n_ports == CLI_BENCH_LIST)
            return cli_bench_wrong("--ports", text, "at most 16 numbers");
        text = cli_bench_cut(text, ',', word, sizeof(word));
        if (cli_number("bench", "--ports", word, 1, 16, &v))
            return -1;
        c->ports[c->n_ports] = (int)v;
    }
    return 0;
}

/** "braid,release,2;braid,drain,2": the runs, to be filled up later. */
static int cli_bench_compare(struct cli_bench *c, const char *text)
{
    char run[1200], engine[1024 + 16], order[32], ports[32];

    c->compare = 1;
    for (c->n_runs = 0; text; c->n_runs++) {
        struct cli_bench_run *r = &c->run[c->n_runs];
        const char *rest;
        uint64_t v;
        int k;

        if (c->n_runs == CLI_BENCH_LIST)
            return cli_bench_wrong("--compare", text, "at most 16 runs");
        text = cli_bench_cut(text, ';', run, sizeof(run));
        rest = cli_bench_cut(run, ',', engine, sizeof(engine));
        rest = rest ? cli_bench_cut(rest, ',', order, sizeof(order)) : NULL;
        if (!rest)
            return cli_bench_wrong("--compare", run, "ENGINE,ORDER,PORTS for each run, a ; between them");
        cli_bench_cut(rest, '\0', ports, sizeof(ports));
        k = cli_bench_engine(engine, &r->parsed) ? -1 : cli_bench_word("--compare", order, cli_bench_orders);
        if (k < 0 || cli_number("bench", "--compare", ports, 1, 16, &v))
            return -1;
        snprintf(r->engine, sizeof(r->engine), "%s", engine);
        r->order = cli_bench_orders[k];
        r->ports = (int)v;
    }
    return 0;
}

static int cli_bench_set(struct cli_bench *c, const char *text)
{
    int n = 0;

    while (n < BENCH_SETTINGS && c->spec.setting[n])
        n++;
    if (!strchr(text, '='))
        return cli_bench_wrong("--set", text, "NAME=VALUE, an option of libbraid (see braid options)");
    if (n == BENCH_SETTINGS)
        return cli_bench_wrong("--set", text, "fewer settings");
    c->spec.setting[n] = text;
    return 0;
}

/** Options that are a word out of a list. 1: not one of those. */
static int cli_bench_take_word(struct cli_bench *c, int letter, const char *text)
{
    struct bench_spec *s = &c->spec;
    int k = 0;

    if (letter == CLI_ENGINE && (k = cli_bench_engine(text, &c->parsed)) >= 0)
        c->engine = text;
    else if (letter == CLI_ORDER && (k = cli_bench_word("--order", text, cli_bench_orders)) >= 0)
        s->order = cli_bench_orders[k];
    else if (letter == CLI_TAIL && (k = cli_bench_word("--tail", text, cli_bench_on_off)) >= 0)
        s->tail = cli_bench_on_off[k];
    else if (letter == CLI_SIGNAL && (k = cli_bench_word("--signal", text, cli_bench_signals)) >= 0)
        s->signal_how = (enum bench_signal_how)k;
    else if (letter == CLI_OP && (k = cli_bench_word("--op", text, cli_bench_ops)) >= 0)
        s->op = (enum bench_op)k, c->op_name = cli_bench_ops[k];
    else if (letter == CLI_FAULT && (k = cli_bench_word("--fault", text, cli_bench_faults)) >= 0)
        s->fault = cli_bench_faults[k];
    else if (k >= 0)
        return 1;
    return k < 0 ? -1 : 0;
}

/** Options that are a number. 1: not one of those. */
static int cli_bench_take_number(struct cli_bench *c, int letter, const char *text)
{
    static const struct cli_bench_number {
        int letter;
        const char *name;
        uint64_t low, high;
    } numbers[] = {{CLI_WINDOW, "--window", 1, 65536},
                   {CLI_COUNT, "--count", 1, 100000000},
                   {CLI_PEERS, "--peers", 1, 1023},
                   {CLI_SIGNAL_EVERY, "--signal-every", 1, 65536},
                   {CLI_UNREACHABLE, "--unreachable", 0, 1023},
                   {CLI_EXCEPT, "--except", 1, 1023},
                   {CLI_NAP, "--nap", 0, 100000},
                   {CLI_PATIENCE, "--patience", 1, 86400},
                   {CLI_SEED, "--seed", 0, INT64_MAX}};
    struct bench_spec *s = &c->spec;
    uint64_t v;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].letter != letter)
            continue;
        if (cli_number("bench", numbers[i].name, text, numbers[i].low, numbers[i].high, &v))
            return -1;
        if (letter == CLI_WINDOW)
            s->window = (unsigned)v;
        else if (letter == CLI_COUNT)
            c->count = v;
        else if (letter == CLI_PEERS)
            s->peers = (int)v;
        else if (letter == CLI_SIGNAL_EVERY)
            s->signal_every = (unsigned)v;
        else if (letter == CLI_UNREACHABLE)
            s->unreachable = (int)v;
        else if (letter == CLI_EXCEPT)
            s->except = (int)v;
        else if (letter == CLI_NAP)
            c->nap_us = (int64_t)v;
        else if (letter == CLI_PATIENCE)
            c->patience_s = v;
        else
            s->seed = v;
        return 0;
    }
    return 1;
}

/** All others. */
static int cli_bench_take(struct cli_bench *c, int letter, const char *text)
{
    switch (letter) {
    case CLI_FABRIC:
        if (strlen(text) >= sizeof(c->fabric))
            return cli_bench_wrong("--fabric", "a long text", "at most 64 KiB");
        snprintf(c->fabric, sizeof(c->fabric), "%s", text);
        return 0;
    case CLI_PORTS:
        return cli_bench_ports(c, text);
    case CLI_SIZE:
        return cli_bench_sizes(c, text);
    case CLI_COMPARE:
        return cli_bench_compare(c, text);
    case CLI_SET:
        return cli_bench_set(c, text);
    case CLI_SVG:
        c->svg = text;
        return 0;
    case CLI_ALL:
        c->spec.all = true;
        return 0;
    case CLI_WATCH_LAST:
        c->spec.watch_last = true;
        return 0;
    case CLI_STOCK:
        c->spec.stock = true;
        return 0;
    case CLI_REWRITE:
        c->spec.rewrite = true;
        return 0;
    case CLI_ONE_WORD:
        c->spec.one_word = true;
        return 0;
    case CLI_ONE_CALL:
        c->spec.one_call = true;
        return 0;
    case CLI_JSON:
        c->json = 1;
        return 0;
    default:
        c->sweep = 1;
        return 0;
    }
}

/** Reads all options. -1 to go on, else the exit status. */
static int cli_bench_read(int argc, char **argv, struct cli_bench *c)
{
    int letter, rc;

    optind = 1;
    opterr = 0;
    while ((letter = getopt_long(argc, argv, "h", cli_bench_options, NULL)) != -1) {
        if (letter == CLI_HELP) {
            cli_bench_help(stdout);
            return CLI_GOOD;
        }
        if (letter == '?') {
            fprintf(stderr, "braid bench: seen \"%s\", expected an option, with its value (see braid bench --help)\n",
                    argv[optind - 1]);
            return CLI_USAGE;
        }
        rc = cli_bench_take_word(c, letter, optarg);
        if (rc > 0)
            rc = cli_bench_take_number(c, letter, optarg);
        if (rc > 0)
            rc = cli_moe_take(c, letter, optarg);
        if (rc > 0)
            rc = cli_bench_take(c, letter, optarg);
        if (rc)
            return CLI_USAGE;
    }
    if (optind < argc) {
        fprintf(stderr, "braid bench: seen \"%s\" behind the pattern, expected options only (see braid bench --help)\n",
                argv[optind]);
        return CLI_USAGE;
    }
    return -1;
}

/** What was not said has a default that depends on the pattern. */
static void cli_bench_fill(struct cli_bench *c)
{
    struct bench_spec *s = &c->spec;
    static const uint64_t sweep[] = {8, 256, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20};

    if (!s->window)
        s->window = s->pattern == BENCH_SIGNAL ? 4 : 16;
    if (s->signal_every > s->window && s->pattern == BENCH_SIGNAL)
        s->window = s->signal_every;
    if (!c->n_sizes && c->sweep && s->pattern != BENCH_ATOMIC) {
        memcpy(c->size, sweep, sizeof(sweep));
        c->n_sizes = sizeof(sweep) / sizeof(sweep[0]);
    } else if (!c->n_sizes) {
        c->size[0] = s->pattern == BENCH_ATOMIC ? 8 : s->fault ? 65536 : s->pattern == BENCH_SIGNAL ? 458752 : 1 << 20;
        c->n_sizes = 1;
    }
    if (!c->n_ports)
        c->n_ports = 1; /* 0: all of the PE's */
}

/** The runs: sizes x ports, or those of --compare. */
static int cli_bench_plan(struct cli_bench *c)
{
    if (c->compare && (c->sweep || c->n_ports > 1 || c->n_sizes > 1))
        return cli_bench_wrong("--compare", "it beside --sweep or a list", "one of them");
    if (!c->sweep && (c->n_ports > 1 || c->n_sizes > 1))
        return cli_bench_wrong(c->n_ports > 1 ? "--ports" : "--size", "a list", "one value, or --sweep");
    if (c->svg && !c->sweep)
        return cli_bench_wrong("--svg", c->svg, "--sweep beside it");
    for (int i = 0; c->compare && i < c->n_runs; i++)
        c->run[i].size = c->size[0];
    if (c->compare)
        return 0;
    for (int p = 0; p < c->n_ports; p++) {
        for (int i = 0; i < c->n_sizes; i++) {
            struct cli_bench_run *r = &c->run[c->n_runs++];

            snprintf(r->engine, sizeof(r->engine), "%s", c->engine);
            r->parsed = c->parsed;
            r->order = c->spec.order;
            r->ports = c->ports[p];
            r->size = c->size[i];
        }
    }
    return 0;
}

int cli_bench_arguments(int argc, char **argv, struct cli_bench *c)
{
    int status, k;

    c->argc = argc;
    c->argv = argv;
    c->spec.seed = 1;
    c->nap_us = -1;
    c->engine = "braid";
    c->op_name = cli_bench_ops[0];
    c->run = calloc(CLI_BENCH_RUNS, sizeof(*c->run));
    if (!c->run)
        return CLI_WRONG;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_bench_help(argc < 2 ? stderr : stdout);
        return argc < 2 ? CLI_USAGE : CLI_GOOD;
    }
    k = cli_bench_word("pattern", argv[1], cli_bench_patterns);
    if (k < 0)
        return CLI_USAGE;
    c->spec.pattern = (enum bench_pattern)k;
    status = cli_bench_read(argc - 1, argv + 1, c);
    if (status >= 0)
        return status;
    if (!cli_bench_is_live(c) && (c->nap_us >= 0 || c->patience_s))
        return cli_bench_wrong(c->patience_s ? "--patience" : "--nap", "virtual time", "--fabric live beside it")
                   ? CLI_USAGE
                   : CLI_GOOD;
    c->patience_s = c->patience_s ? c->patience_s : CLI_BENCH_PATIENCE_S;
    if (k != BENCH_MOE)
        cli_bench_fill(c);
    if (k == BENCH_MOE ? cli_moe_plan(c) : cli_bench_plan(c))
        return CLI_USAGE;
    c->spec.fabric = c->fabric;
    return -1;
}
