/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_real.h - real time, as its files see it: emu_real.c (clock, engine thread, life) and emu_carry.c (packets and changes
 * that come from other processes).
 */
#ifndef EMU_REAL_H
#define EMU_REAL_H

#include <pthread.h>

#include "emu.h"
#include "emu_copy.h"
#include "emu_heap.h"
#include "emu_meet.h"

enum {
    EMU_REAL_PULLED = 1024, /* packets of others on their way that this process holds at most */
    EMU_REAL_LARGE = 1024   /* bytes; with many of these rate counts, not latency */
};

enum emu_real_job_state { EMU_REAL_JOB_NONE, EMU_REAL_JOB_ASKED, EMU_REAL_JOB_DONE };

/** A call that one of the program's threads waits for. */
struct emu_real_job {
    enum emu_real_job_state state;
    int (*fn)(void *arg);
    void *arg;
    int rc;
};

/** What the engine has done, and what of it was told. */
struct emu_stats {
    bool on;
    uint64_t every_ns, told;
    uint64_t passes, busy_ns;
    uint64_t passes_told, busy_told, sent_told, got_told;
    struct emu_copy_stats copies_told;
};

struct emu_real {
    struct emu_fabric fabric; /* first: a fabric of real time is inside this */
    struct emu_owner owner;   /* the process */
    struct emu_heap heap;
    struct emu_meet meet;
    uint64_t now; /* the model's clock: real time, or a little behind while there is much to do */
    pthread_mutex_t lock;
    pthread_t engine;
    bool engine_runs, stop;     /* stop: under the lock */
    uint64_t called;            /* when the program last made a verbs call */
    uint64_t large, large_seen; /* large packets that came, and those that the engine knew of at its last look */
    uint32_t streak;            /* grows with looks that find some */
    bool woken;                 /* somebody may wait for what happened under the lock */
    uint64_t tick;              /* when counters were last given to others */
    uint32_t wakes;             /* a futex: grows with everything the program could wait for */
    uint32_t sleepers;
    struct emu_stats stats;
    struct emu_real_job job; /* what the engine is to call */
    uint64_t left;           /* members whose rings still hold something */
    uint32_t pulled, changes_seen;
    uint32_t *port_seen;                    /* shared changes of each port that were applied */
    uint64_t (*counted)[EMU_MEET_COUNTERS]; /* what of each port's counters others know of */
};

/** The emulator's wire between processes. */
extern const struct emu_wire emu_carry_wire;

/** Takes what other processes have sent, as events of their arrival times. With the lock. */
void emu_carry_pull(struct emu_real *r);
/** Applies changes of ports that somebody asked for. With the lock. */
void emu_carry_changes(struct emu_real *r);
/** Adds this process's counters to the shared ones. With the lock. */
void emu_carry_count(struct emu_real *r);
/** Lets the SPEC's timed changes happen, once for all processes. With the lock, or before there is an engine. */
void emu_carry_schedule(struct emu_real *r);

/** Looks whether the environment asks for figures. */
void emu_stats_begin(struct emu_real *r);
/** A pass of the engine, from when to when. */
void emu_stats_pass(struct emu_real *r, uint64_t began, uint64_t end);
/** Tells what came since it was last told, if anybody has asked. */
void emu_stats_tell(struct emu_real *r);

/** The process as a caller of verbs, if it is in a fabric of real time; joins one on the first call. */
struct emu_owner *emu_real_self(void);

#endif
