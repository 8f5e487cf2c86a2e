/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.h - runs test programs as the PEs of an emulated cluster, each with a libbraid context. A failed check is noted
 * and the program goes on, so that all PEs reach their barriers; cmocka's own asserts would jump off a coroutine's stack.
 */
#ifndef FABRIC_H
#define FABRIC_H

#include <braid/braid.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu_sim.h"

enum { FABRIC_PES = 8, FABRIC_MEM = 4 << 20, FABRIC_WORDS = 64, FABRIC_SETTINGS = 12 };

struct fabric;

/** One PE of a test. mem is registered: [0, FABRIC_MEM) bytes, then FABRIC_WORDS words. */
struct fabric_pe {
    struct fabric *run;
    int pe, n_pes;
    struct braid *b;
    struct braid_channel *ch;
    struct braid_mem *mem;
    unsigned char *bytes;
    uint64_t *words;
    uint64_t remote[FABRIC_PES];
    struct braid_key key[FABRIC_PES];
    int log_lines; /* errors and warnings */
    char last_log[512];
    char warnings[4096]; /* all of them, a line each */
};

typedef int (*fabric_fn)(struct fabric_pe *p);

/** A test on a fabric. Fill in the first part. */
struct fabric {
    const char *spec;
    uint64_t seed;
    enum emu_sim_vehicle vehicle;
    fabric_fn fn;
    const char *settings[FABRIC_SETTINGS]; /* more options for braid_open(), "name=value" */
    const char *ports[FABRIC_PES];         /* a PE's port list; NULL: its own ports */
    bool no_context;                       /* fn opens by itself */
    bool plain_addresses;                  /* peers name memory as it is named here; see emu_sim.h */
    /* the bootstrap's bytes pass through this; NULL: unchanged */
    void (*tamper)(struct fabric_pe *p, unsigned char *recv, size_t bytes_each);
    void *arg;
    /* results */
    const struct emu_sim_api *emu;
    struct emu_sim *sim;
    int failures;
    char failure[512];
    char why[2048];
    uint64_t end_ns, trace;
};

/** Runs f->fn on every PE. Returns what the run returned. */
int fabric_run(struct fabric *f);
/** Runs it and asserts (cmocka) that it returned 0 and no check failed. */
void fabric_run_ok(struct fabric *f);
/** The emulator; loads it the first time. */
const struct emu_sim_api *fabric_emu(void);

/** Opens the PE's context with the given port list (NULL: the PE's own). */
int fabric_open(struct fabric_pe *p, const char *ports);
/** Connects it. */
int fabric_connect_only(struct fabric_pe *p);
/** Connects it and exchanges keys. */
int fabric_connect(struct fabric_pe *p);

/** Notes a failure unless ok; returns ok. */
bool fabric_check(struct fabric_pe *p, bool ok, const char *what);
/** The same for two numbers that should be equal. */
bool fabric_equal(struct fabric_pe *p, long long seen, long long expected, const char *what);

/** Puts with progress while the queue is full. */
int fabric_put(struct fabric_pe *p, int pe, size_t to, size_t from, size_t len, struct braid_done *done);
/** Gets, likewise. */
int fabric_get(struct fabric_pe *p, int pe, size_t to, size_t from, size_t len, struct braid_done *done);
/** Adds to a word of the peer, likewise. */
int fabric_add(struct fabric_pe *p, int pe, int word, uint64_t value, struct braid_done *done);
/** Progress, or sleep. */
int fabric_step(struct fabric_pe *p);
/** All PEs meet. */
int fabric_barrier(struct fabric_pe *p);
/** The peer's bytes at an offset, as a remote address with its key. */
struct braid_remote fabric_remote(struct fabric_pe *p, int pe, size_t offset);
/** The PE's own bytes at an offset. */
struct braid_local fabric_local(struct fabric_pe *p, size_t offset);
/** Random bits from a state; the same everywhere. */
uint64_t fabric_random(uint64_t *state);

#endif
