/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_charge.c - what libbraid's own code costs the CPU of its PE. Virtual time passes only in calls of the emulator, so
 * the work that libbraid counts itself (struct braid_channel_stats) is paid here, from the emulator's table: what a call is
 * sure to do before it, a blocking call's passes as they are made, the rest when it returns. Called by bench_braid.c; next: emu_sim.h.
 */
#include "bench_int.h"

#include <string.h>

/** A row of the cost table and the counter that it is paid for. */
struct bench_row {
    const char *name;
    size_t counter; /* in struct braid_channel_stats */
    size_t less;    /* another, whose part of the first has a row of its own; 0: none */
};

#define BENCH_COUNTER(field) offsetof(struct braid_channel_stats, field)

static const struct bench_row bench_rows[BENCH_WORK] = {
    [BENCH_WORK_PUT] = {"braid_put", BENCH_COUNTER(puts), 0},
    [BENCH_WORK_GET] = {"braid_get", BENCH_COUNTER(gets), 0},
    [BENCH_WORK_WORD] = {"braid_word", BENCH_COUNTER(words), 0},
    [BENCH_WORK_DEFERRED] = {"braid_deferred", BENCH_COUNTER(deferred), 0},
    [BENCH_WORK_PIECE] = {"braid_piece", BENCH_COUNTER(pieces), BENCH_COUNTER(whole)},
    [BENCH_WORK_WHOLE] = {"braid_whole", BENCH_COUNTER(whole), 0},
    [BENCH_WORK_BURST] = {"braid_burst", BENCH_COUNTER(bursts), 0},
    [BENCH_WORK_DRIVE] = {"braid_drive", BENCH_COUNTER(drives), 0},
    [BENCH_WORK_TURN] = {"braid_turn", BENCH_COUNTER(turns), 0},
    [BENCH_WORK_PLAN] = {"braid_plan", BENCH_COUNTER(plans), 0},
    [BENCH_WORK_LIST] = {"braid_list", BENCH_COUNTER(lists), 0},
    [BENCH_WORK_FLUSH] = {"braid_flush", BENCH_COUNTER(flushes), 0},
    [BENCH_WORK_MESSAGE] = {"braid_message", BENCH_COUNTER(messages), 0},
    [BENCH_WORK_EXECUTED] = {"braid_executed", BENCH_COUNTER(executed), 0},
    [BENCH_WORK_RETIRED] = {"braid_retired", BENCH_COUNTER(retired), 0},
    [BENCH_WORK_PASS] = {"braid_pass", BENCH_COUNTER(passes), 0},
    [BENCH_WORK_POLL] = {"braid_poll", BENCH_COUNTER(polls), 0},
};

const char *bench_work_name(enum bench_work w)
{
    return bench_rows[w].name;
}

static uint64_t bench_charge_counter(const struct braid_channel_stats *s, enum bench_work w)
{
    uint64_t v, less = 0;

    memcpy(&v, (const char *)s + bench_rows[w].counter, sizeof(v));
    if (bench_rows[w].less)
        memcpy(&less, (const char *)s + bench_rows[w].less, sizeof(less));
    return v - less;
}

void bench_charge_open(struct bench_charge *c, const struct emu_sim_api *emu, const struct braid_channel *ch)
{
    *c = (struct bench_charge){.emu = emu, .ch = ch};
    for (int w = 0; w < BENCH_WORK; w++)
        c->cost[w] = emu->cost(bench_rows[w].name);
    c->last.size = BRAID_CHANNEL_COUNTS;
    braid_channel_stats_at(ch, &c->last);
}

void bench_charge_ahead(struct bench_charge *c, uint64_t ns)
{
    /* What earlier calls paid ahead and did not need is used first. */
    uint64_t due = ns > c->ahead ? ns - c->ahead : 0;

    c->ahead += due;
    if (due)
        c->emu->charge(due);
}

void bench_charge_pass(struct bench_charge *c, uint64_t ns)
{
    if (!c->ch)
        return; /* still connecting */
    c->ahead += ns;
    c->emu->charge(ns);
}

void bench_charge_now(struct bench_charge *c)
{
    struct braid_channel_stats now = {.size = BRAID_CHANNEL_COUNTS};
    uint64_t due = 0;

    if (braid_channel_stats_at(c->ch, &now))
        return;
    for (int w = 0; w < BENCH_WORK; w++) {
        uint64_t n = bench_charge_counter(&now, w) - bench_charge_counter(&c->last, w);

        c->work[w] += n;
        due += n * c->cost[w];
    }
    c->last = now;
    c->work_ns += due;
    if (due <= c->ahead) {
        c->ahead -= due;
        return;
    }
    due -= c->ahead;
    c->ahead = 0;
    c->emu->charge(due);
}

void bench_charge_refused(struct bench_charge *c, uint64_t ns)
{
    /* It has been paid ahead; the work was for nothing. */
    c->ahead -= ns < c->ahead ? ns : c->ahead;
    c->work_ns += ns;
}
