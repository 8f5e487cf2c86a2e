/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bench.h - what the files of `braid bench` share: the command line as read, and its runs.
 */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <jansson.h>
#include <stdbool.h>

#include "bench.h"
#include "cli.h"

enum {
    CLI_BENCH_LIST = 16,
    CLI_BENCH_RUNS = CLI_BENCH_LIST * CLI_BENCH_LIST,
    CLI_BENCH_FABRIC = 65536,
    CLI_BENCH_PATIENCE_S = 300
};

/** One run: what differs from the others. */
struct cli_bench_run {
    char engine[1024 + 16];     /* as bench_engine() takes it */
    struct bench_engine parsed; /* and what it made of that */
    const char *order;          /* NULL: libbraid's default */
    int ports;
    uint64_t size, count;
    enum bench_phase phase; /* moe */
    unsigned chunk;         /* moe; 0: DeepEP's */
    struct bench_result result;
};

/** A whole command. */
struct cli_bench {
    struct bench_spec spec; /* what all runs have in common */
    int argc;
    char **argv;
    const char *engine; /* of runs that do not say their own */
    struct bench_engine parsed;
    const char *op_name; /* of an atomic */
    char fabric[CLI_BENCH_FABRIC];
    char unkind[CLI_BENCH_FABRIC]; /* the same with what --fault adds */
    int json, sweep, compare;
    const char *svg; /* file for the curves */
    uint64_t size[CLI_BENCH_LIST];
    int n_sizes;
    int ports[CLI_BENCH_LIST];
    int n_ports;
    uint64_t count;                       /* 0: bench_default_count() */
    enum bench_phase phase[BENCH_PHASES]; /* moe */
    int n_phases, tune;
    struct cli_bench_run *run;
    int n_runs;
    struct bench_live live; /* with --fabric live; its ports are owned */
    const char *label;      /* of figures; NULL: virtual time */
    int64_t nap_us;         /* -1: not said */
    uint64_t patience_s;    /* 0: not said */
};

/** Reads the command line. -1: go on; else the exit status (help, or wrong use, which has been said). */
int cli_bench_arguments(int argc, char **argv, struct cli_bench *c);
void cli_bench_help(FILE *to);

/** What a pattern, order and so on is called. */
const char *cli_bench_pattern(const struct cli_bench *c);
const char *cli_bench_order(const struct cli_bench_run *r);
/** "on" or "off": --tail, or --set tail=, or the engine's default. */
const char *cli_bench_tail(const struct cli_bench *c, const struct cli_bench_run *r);
/** An engine in few words: of a plugin the file's name, behind its folder's. */
const char *cli_bench_engine_text(const struct cli_bench_run *r);
/** What kind of engine that is, and what its figures are: "model of published behaviour" and so on. Static string. */
const char *cli_bench_engine_label(const struct cli_bench_run *r);
/** Whether the order modes of libbraid mean something to a run's engine. */
bool cli_bench_orders_apply(const struct cli_bench_run *r);
/** Whether some run's engine is not libbraid itself. */
int cli_bench_has_engines(const struct cli_bench *c);

/** Prints all runs as a table. */
void cli_bench_text(const struct cli_bench *c, int colour);
/** Prints them as JSON, schema braid.bench/1 (docs/bench-json.md). 0, or -1 without memory. */
int cli_bench_json(const struct cli_bench *c);
/** Draws the sweep: an SVG file, and text on standard output unless JSON goes there. 0, or -1 where gnuplot failed. */
int cli_bench_plot(const struct cli_bench *c);

/** Sets a key; a value that could not be made (no memory) is noted. */
void cli_bench_put_key(json_t *to, const char *key, json_t *value, int *bad);

/* ---- cli_bench_live.c ------------------------------------------------------------------------------------------------ */

/** Whether the runs are to be between processes. */
bool cli_bench_is_live(const struct cli_bench *c);
/** Where figures come from: "emulated (virtual time)" and so on. Static string. */
const char *cli_bench_label(const struct cli_bench *c);
/** Joins the job. -1: go on; else the exit status, after a message. */
int cli_bench_live_open(struct cli_bench *c, const struct emu_sim_api **out);
/** Whether this process prints results: always in virtual time, else PE 0. */
bool cli_bench_live_speaks(const struct cli_bench *c);
/** This process cannot go on: ends the job. Nothing in virtual time. */
void cli_bench_live_failed(const struct cli_bench *c, const char *why);
/** Leaves the job, if any. */
void cli_bench_live_close(struct cli_bench *c);

/* ---- cli_bench_moe.c ------------------------------------------------------------------------------------------------- */

/* Letters of its options. */
enum {
    CLI_MOE_PHASE = 512,
    CLI_MOE_TOKENS,
    CLI_MOE_CHANNELS,
    CLI_MOE_CHUNK,
    CLI_MOE_RING,
    CLI_MOE_SKEW,
    CLI_MOE_GPU,
    CLI_TUNE
};

/** Takes an option: 0; 1 where it is none of moe's; -1 where its value is wrong, which has been said. */
int cli_moe_take(struct cli_bench *c, int letter, const char *text);
/** The runs: phases x engines x chunks. 0, or -1 where options do not go together, which has been said. */
int cli_moe_plan(struct cli_bench *c);
/** A run has ended: what its size and count are, in the words of streams: bytes of a token, tokens a rank. */
void cli_moe_name(struct cli_bench_run *r);
/** Prints all runs as a table. */
void cli_moe_text(const struct cli_bench *c);
/** What a run has more of. NULL without memory. */
json_t *cli_moe_json(const struct cli_bench *c, const struct bench_moe_result *r, int *bad);

#endif
