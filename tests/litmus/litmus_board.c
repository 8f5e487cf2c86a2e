/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_board.c - hands blocks of seeds to worker processes, watches over them, and counts. Each simulation is told by its
 * cell and seed alone, so how many workers there are changes nothing. Called by litmus.c; next: litmus_run.c.
 */
#include "litmus_board.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LITMUS_HANG_S = 120, LITMUS_TICK_US = 100000, LITMUS_LINE_S = 20, LITMUS_DEATHS = 100, LITMUS_REPEAT = 50 };

const int litmus_port_counts[LITMUS_PORT_COUNTS] = {1, 2, 3, 4, 8};

static volatile sig_atomic_t litmus_stopped;

/** Ctrl-C: blocks under way are ended, and what was found is told. */
static void litmus_stop(int number)
{
    (void)number;
    litmus_stopped = 1;
}

static uint64_t litmus_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec + 1;
}

struct litmus_board *litmus_board_new(int jobs, int shard, int shards)
{
    struct litmus_board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (b == MAP_FAILED)
        return NULL;
    b->jobs = jobs;
    b->shard = shard;
    b->shards = shards;
    return b;
}

struct litmus_cell *litmus_board_add(struct litmus_board *b, const struct litmus_case *c, uint64_t count)
{
    struct litmus_cell *cell = &b->cell[b->n_cells];

    if (b->n_cells == LITMUS_CELLS)
        return NULL;
    b->n_cells++;
    cell->c = *c;
    cell->count = count;
    b->units += (count + LITMUS_BLOCK - 1) / LITMUS_BLOCK;
    return cell;
}

/** The number of ports of a seed: the cell's, or in turn each that is enough for the rule. */
static int litmus_cell_ports(const struct litmus_cell *cell, uint64_t seed)
{
    int at = 0;

    if (cell->c.ports)
        return cell->c.ports;
    while (litmus_port_counts[at] < cell->rule->least_ports)
        at++;
    return litmus_port_counts[at + (int)(seed % (uint64_t)(LITMUS_PORT_COUNTS - at))];
}

static void litmus_tell(struct litmus_cell *cell, uint64_t seed, const char *text)
{
    if (atomic_flag_test_and_set(&cell->told))
        return;
    cell->told_seed = seed;
    cell->told_ports = litmus_cell_ports(cell, seed);
    snprintf(cell->text, sizeof(cell->text), "%.*s", LITMUS_CELL_TEXT - 1, text);
    if (!cell->rule && cell->c.kind == LITMUS_JUDGED)
        fprintf(stderr, "litmus: %s, %s, %d ports, seed %" PRIu64 ": %s\n", cell->c.test->name,
                litmus_mode_name(cell->c.mode), cell->told_ports, seed, cell->text);
}

/** A seed that gives another run the second time could not be looked into. */
static void litmus_repeat(const struct emu_sim_api *emu, const struct litmus_case *c, struct litmus_verdict *v)
{
    static struct litmus_verdict again;

    litmus_run_one(emu, c, &again);
    if (again.trace == v->trace && again.end_ns == v->end_ns && again.conclusions == v->conclusions &&
        again.violations == v->violations && again.rc == v->rc)
        return;
    v->rc = -EPROTO;
    snprintf(v->text, sizeof(v->text), "two runs of this seed differ: ended at %" PRIu64 " and %" PRIu64 " ns",
             v->end_ns, again.end_ns);
}

static void litmus_seed(struct litmus_board *b, struct litmus_cell *cell, uint64_t seed, const struct emu_sim_api *emu)
{
    struct litmus_case c = cell->c;
    struct litmus_verdict v;

    c.seed = seed;
    c.ports = litmus_cell_ports(cell, seed);
    litmus_run_one(emu, &c, &v);
    if (seed % LITMUS_REPEAT == 0 && !c.real)
        litmus_repeat(emu, &c, &v);
    cell->done++;
    b->simulations++;
    cell->conclusions += v.conclusions;
    cell->bytes += v.bytes;
    cell->bad += v.violations != 0;
    cell->failed += v.rc != 0;
    if (v.rc || v.violations)
        litmus_tell(cell, seed, v.text);
}

static void litmus_block(struct litmus_board *b, struct litmus_slot *slot, uint64_t unit, const struct emu_sim_api *emu)
{
    unsigned i = 0;

    for (;; i++) {
        uint64_t units = (b->cell[i].count + LITMUS_BLOCK - 1) / LITMUS_BLOCK;

        if (unit < units)
            break;
        unit -= units;
    }
    for (uint64_t k = unit * LITMUS_BLOCK; k < (unit + 1) * LITMUS_BLOCK && k < b->cell[i].count; k++) {
        struct litmus_cell *cell = &b->cell[i];

        if (cell->first_only && cell->bad)
            return;
        slot->cell = i;
        slot->seed = cell->c.seed + k;
        slot->since = litmus_seconds();
        litmus_seed(b, cell, cell->c.seed + k, emu);
        slot->since = 0;
    }
}

static void litmus_worker(struct litmus_board *b, struct litmus_slot *slot, const struct emu_sim_api *emu)
{
    uint64_t unit;

    while (!litmus_stopped && (unit = atomic_fetch_add(&b->next, 1)) < b->units) {
        if (unit % (uint64_t)b->shards == (uint64_t)b->shard)
            litmus_block(b, slot, unit, emu);
    }
}

static int litmus_start(struct litmus_board *b, struct litmus_slot *slot, const struct emu_sim_api *emu)
{
    pid_t pid; /* the slot is shared: the child must not write its 0 there */

    slot->since = 0;
    pid = fork();
    if (pid == 0) {
        litmus_worker(b, slot, emu);
        _exit(0);
    }
    slot->pid = pid;
    return pid < 0 ? -errno : 0;
}

static void litmus_progress(const struct litmus_board *b, uint64_t started)
{
    uint64_t unit = b->next < b->units ? b->next : b->units, bad = 0;

    for (unsigned i = 0; i < b->n_cells; i++)
        bad += !b->cell[i].rule && (b->cell[i].c.kind == LITMUS_JUDGED ? b->cell[i].bad : 0) + b->cell[i].failed > 0;
    fprintf(stderr,
            "%s  litmus: %5.1f %%, %" PRIu64 " simulations in %" PRIu64 " s, %" PRIu64
            " cells with violations or failures%s",
            isatty(STDERR_FILENO) ? "\r" : "", 100.0 * (double)unit / (double)b->units, b->simulations,
            litmus_seconds() - started, bad, isatty(STDERR_FILENO) ? "\033[K" : "\n");
}

/** A worker that has ended badly is a failed seed; another goes on behind its block. True where it is to be replaced. */
static bool litmus_died(struct litmus_board *b, struct litmus_slot *slot, int status)
{
    struct litmus_cell *cell = &b->cell[slot->cell];
    char text[96];

    slot->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return false;
    snprintf(text, sizeof(text), "the program ended with %s %d%s", WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
             WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
    cell->done++;
    cell->failed++;
    litmus_tell(cell, slot->seed, text);
    return true;
}

int litmus_board_run(struct litmus_board *b, const struct emu_sim_api *emu)
{
    uint64_t started = litmus_seconds(), line = started;
    int running = 0, deaths = 0, rc = 0;

    fflush(stdout);
    signal(SIGINT, litmus_stop);
    signal(SIGTERM, litmus_stop);
    for (int i = 0; i < b->jobs && rc == 0; i++, running += rc == 0)
        rc = litmus_start(b, &b->slot[i], emu);
    while (running > 0) {
        uint64_t now = litmus_seconds();

        if (litmus_stopped) {
            b->next = b->units; /* the workers may not have had the signal */
            rc = -EINTR;
        }
        for (int i = 0; i < b->jobs; i++) {
            struct litmus_slot *slot = &b->slot[i];
            uint64_t since = slot->since;
            int status;

            if (slot->pid <= 0)
                continue;
            if (since && now > since + LITMUS_HANG_S)
                kill(slot->pid, SIGALRM);
            if (waitpid(slot->pid, &status, WNOHANG) != slot->pid)
                continue;
            if (!litmus_died(b, slot, status)) {
                running--;
            } else if (++deaths > LITMUS_DEATHS || litmus_start(b, slot, emu)) {
                running--;
                rc = -ECHILD; /* what is left is not run */
            }
        }
        if (now >= line + (isatty(STDERR_FILENO) ? 1 : LITMUS_LINE_S)) {
            litmus_progress(b, started);
            line = now;
        }
        usleep(LITMUS_TICK_US / 5);
    }
    if (line != started)
        litmus_progress(b, started);
    if (line != started && isatty(STDERR_FILENO))
        fprintf(stderr, "\n");
    return rc;
}

void litmus_board_here(struct litmus_board *b, struct litmus_cell *cell, const struct emu_sim_api *emu)
{
    for (uint64_t k = 0; k < cell->count && !(cell->first_only && cell->bad); k++)
        litmus_seed(b, cell, cell->c.seed + k, emu);
}
