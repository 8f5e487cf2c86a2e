/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - a job of real processes, each of which is one PE: who they are, how they meet and exchange bytes (PMIx), and the
 * world of emu_sim.h as they answer it, by the machine's clock. Used by bench/ and cli/; next: live_pmix.h.
 *
 * PEs are numbered host by host, hosts in the order of their first process, so that PE p is the (p % locals)-th of host p / locals
 * where hosts have equally many. A process has one job at most. All calls from one thread.
 */
#ifndef LIVE_H
#define LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu_sim.h"

enum { LIVE_HOST = 64 };

struct live;

struct live_options {
    int64_t
        nap_ns; /**< longest sleep between two looks in vain; 0: none; -1: where processes outnumber CPUs 1 ms, else 0 */
    uint64_t patience_ns; /**< a meeting that takes longer has failed */
};

/** Joins the job. 0; or a negative errno with a reason. Collective. */
int live_open(const struct live_options *o, struct live **out, char *why, size_t why_len);
/** Leaves it. NULL is allowed. */
void live_close(struct live *l);
/** Ends it for all, as this PE cannot go on. */
void live_abort(struct live *l, const char *why);

/** The own number, and how many there are. */
int live_pe(const struct live *l);
int live_pes(const struct live *l);
/** Which of its host's PEs this one is, and how many a host has: the first one's. */
int live_local(const struct live *l);
int live_locals(const struct live *l);
/** Whether all hosts have equally many. */
bool live_even(const struct live *l);
/** Hosts, and the number of a PE's. */
int live_hosts(const struct live *l);
int live_host_of(const struct live *l, int pe);
/** The name of a PE's host: "node17"; "h0" in an emulated fabric. */
const char *live_host(const struct live *l, int pe);
/** Whether libibverbs is the emulator, in real time. Loads it. */
bool live_emulated(const struct live *l);
/** How long a wait may take, ns. */
uint64_t live_patience(const struct live *l);
/** What went wrong, where a call has failed; else empty. */
const char *live_why(const struct live *l);

/** Makes bytes known to all, and meets them. 0 or a negative errno. Collective. */
int live_share(struct live *l, const void *bytes, size_t len);
/** What a PE shared last. 0 or a negative errno. */
int live_fetch(struct live *l, int pe, void *out, size_t len);
/** All PEs meet; until the last has come this one calls turn (may be NULL), and sleeps where that returns 0. A negative result
 *  of it ends the wait. Collective. */
int live_meet(struct live *l, int (*turn)(void *arg), void *arg);
/** The same in parts: begins; whether it is over (1), not yet (0), or has failed; waits for the last. */
int live_meet_begin(struct live *l);
int live_meet_over(struct live *l);
int live_meet_end(struct live *l, int (*turn)(void *arg), void *arg);
/** Nothing has moved since then (live_api()'s now): sleeps, the longer the more of that time has gone. 0; -ECONNABORTED where the job is no longer whole. */
int live_nap(struct live *l, uint64_t since_ns);

/** The job as a world: emu_sim.h's table for bench_run(). What only virtual time has does nothing: no charges, no shifted addresses, no
 *  memory of patterns; what only libbraid knows here, ports and ceilings, is empty. */
const struct emu_sim_api *live_api(struct live *l);

#endif
