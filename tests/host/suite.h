/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.h - what a host may expect of a transport plugin, as programs that all PEs of a job run: data, order, atomics, memory, start and
 * end. The minihost makes the calls. A failed check is noted, and the program goes on, so that all PEs reach their meetings.
 */
#ifndef SUITE_H
#define SUITE_H

#include <stdbool.h>
#include <stdint.h>

#include "host_mini.h"
#include "host_call.h"

enum {
    SUITE_PES = 4,
    SUITE_SRC = 0,                           /* offset in the heap: where puts come from */
    SUITE_AREA = 2 << 20,                    /* bytes of it, and of what comes from each PE */
    SUITE_IN = SUITE_AREA,                   /* + PE x SUITE_AREA */
    SUITE_WORDS = SUITE_IN + 4 * SUITE_AREA, /* 64 words that each PE owns at every other, 64 bytes apart */
    SUITE_SLOTS = SUITE_WORDS + 4 * 64 * 64, /* results of fetches */
    SUITE_USED = 12 << 20,                   /* registered at the start */
    SUITE_HEAP = 16 << 20,
    SUITE_CHUNK = 3 << 20, /* registrations end in the middle of things */
    SUITE_TESTS = 32
};

/** What a test came to, over all PEs; shared by them. */
struct suite_result {
    uint32_t failures;
    uint32_t ended; /* PEs that have come to its end */
    char first[400];
};

struct suite_board {
    struct suite_result test[SUITE_TESTS];
    int at[16]; /* which test each PE is in */
};

/** One PE. */
struct suite {
    struct host_options o;
    struct host_world w;
    struct host *h;
    unsigned char *heap;
    int me, n;
    const char *ports; /* that the plugin is told to use */
    int test;
    struct suite_board *board;
};

/** One test. needs: a bit mask of enum suite_need. */
struct suite_test {
    const char *name;
    void (*fn)(struct suite *s);
    unsigned needs;
};

/** What a test needs beyond what every plugin does. */
enum suite_need {
    SUITE_EVERY_ATOMIC = 1, /* stock without gdrcopy ends the process on those */
    SUITE_V4 = 2,           /* only from interface version 4 on */
    SUITE_MAPS = 4,         /* a caller that can fill std::unordered_map, and a version with an alias map */
    SUITE_OWN = 8           /* what NVIDIA's does otherwise, or does not do */
};

extern const struct suite_test suite_tests[];
extern const int suite_n_tests;

/** Notes a failure unless ok. Returns ok. */
bool suite_ok(struct suite *s, bool ok, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/** Opens the host on a fresh heap; 0 or what it said. */
int suite_open(struct suite *s, char *why, size_t why_len);
/** All meet, each making progress: a target may have to do something for the others. */
void suite_meet(struct suite *s);
/** One pass of the proxy, or a little sleep. */
void suite_step(struct suite *s);
/** Until the word at an offset of the own heap is at least that. False: it took too long. */
bool suite_until(struct suite *s, size_t offset, uint64_t value);
/** Tells plugins which ports to use, by the environment. */
void suite_ports(const char *list);
/** Bytes of a pattern. */
void suite_fill(unsigned char *p, size_t len, uint64_t seed);
/** How many differ. */
size_t suite_wrong(const unsigned char *p, size_t len, uint64_t seed);
uint64_t suite_word(const struct suite *s, size_t offset);
/** Offset of the word that a PE owns at every other PE. */
size_t suite_word_of(int owner, int i);

/* suite_data.c, suite_order.c, suite_atomic.c, suite_memory.c */
void suite_put(struct suite *s);
void suite_get(struct suite *s);
void suite_p(struct suite *s);
void suite_many(struct suite *s);
void suite_api(struct suite *s);
void suite_blocking(struct suite *s);
void suite_qps(struct suite *s);
void suite_cst(struct suite *s);
void suite_signal_add(struct suite *s);
void suite_signal_set(struct suite *s);
void suite_put_signal_add(struct suite *s);
void suite_put_signal_set(struct suite *s);
void suite_put_signal_sizes(struct suite *s);
void suite_counter(struct suite *s);
void suite_atomics(struct suite *s);
void suite_fetches(struct suite *s);
void suite_contended(struct suite *s);
void suite_buffers(struct suite *s);
void suite_growth(struct suite *s);
void suite_aliases(struct suite *s);
void suite_again(struct suite *s);
void suite_refusals(struct suite *s);

#endif
