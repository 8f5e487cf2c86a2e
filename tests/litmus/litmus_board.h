/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_board.h - many simulations at once: a board of cells in memory shared by worker processes. A cell is one test, mode
 * and number of ports, with a range of seeds. Included by the drivers; next: litmus_board.c, litmus_report.c.
 */
#ifndef LITMUS_BOARD_H
#define LITMUS_BOARD_H

#include <stdatomic.h>
#include <sys/types.h>

#include "litmus.h"

enum { LITMUS_PORT_COUNTS = 5, LITMUS_CELLS = 1024, LITMUS_WORKERS = 64, LITMUS_BLOCK = 25, LITMUS_CELL_TEXT = 480 };

/** Numbers of ports that are tried. */
extern const int litmus_port_counts[LITMUS_PORT_COUNTS];

/** A rule that is switched off, and a test that must notice. */
struct litmus_rule {
    const char *rule;  /**< as the option fault names it, or a name for what else is done */
    const char *fault; /**< value of the option fault; NULL: none */
    const char *test;
    int least_ports;    /**< with fewer it makes no difference */
    unsigned placement; /**< as in struct litmus_case */
    bool judge_strict, tail_off;
};

/** The i-th row of the table of rules, or NULL. */
const struct litmus_rule *litmus_rule_at(unsigned i);

struct litmus_cell {
    struct litmus_case c;           /**< seed: the first; ports: 0 where they change with the seed */
    const struct litmus_rule *rule; /**< NULL: an ordinary cell */
    uint64_t count;                 /**< seeds */
    bool first_only;                /**< the first violation is enough */
    _Atomic uint64_t done, bad, failed, conclusions, bytes;
    atomic_flag told; /* text is taken */
    uint64_t told_seed;
    int told_ports;
    char text[LITMUS_CELL_TEXT]; /**< about the first bad or failed seed */
};

/** What a worker is at. */
struct litmus_slot {
    pid_t pid;
    _Atomic uint64_t seed, since; /* since: s of the monotonic clock; 0: idle */
    _Atomic unsigned cell;
};

struct litmus_board {
    unsigned n_cells;
    int jobs, shard, shards;
    uint64_t units;
    _Atomic uint64_t next, simulations;
    struct litmus_slot slot[LITMUS_WORKERS];
    struct litmus_cell cell[LITMUS_CELLS];
};

/* litmus_board.c */
/** A board without cells, shared with processes that are forked. NULL without memory. */
struct litmus_board *litmus_board_new(int jobs, int shard, int shards);
/** Adds a cell; NULL where the board is full. */
struct litmus_cell *litmus_board_add(struct litmus_board *b, const struct litmus_case *c, uint64_t count);
/** Runs all of it in `jobs` processes. A worker that dies or hangs is a failed seed of its cell. 0 or a negative errno. */
int litmus_board_run(struct litmus_board *b, const struct emu_sim_api *emu);
/** One cell here and now, without other processes. */
void litmus_board_here(struct litmus_board *b, struct litmus_cell *cell, const struct emu_sim_api *emu);

/* litmus_report.c */
/** No violation where none is allowed, some where a rule is off, and every run has ended. */
bool litmus_cell_good(const struct litmus_cell *cell);
/** The tables, for people. */
void litmus_report_tables(const struct litmus_board *b);
/** The same as TAP. */
void litmus_report_tap(const struct litmus_board *b);
/** Whether all is well. */
bool litmus_report_good(const struct litmus_board *b);

#endif
