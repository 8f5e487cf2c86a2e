/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus.h - litmus tests of order over libbraid's public API, in virtual or real time. Included by all files of this folder.
 *
 * One *simulation* is one test, one order mode, one number of ports and one seed: a small cluster whose shape the seed
 * decides, in which some PEs write and others look at their own memory each time something lands in it. A test says
 * with a *watch* what may be concluded from what: "as soon as one of these bytes is seen, all of those are there".
 *
 * What ought to be in a PE's memory in the end is kept beside it in an *image*, into which each op is written when it is
 * issued. A violation is a byte that differs from the image at the moment of a conclusion, or at the end: bytes compared,
 * never flags.
 */
#ifndef LITMUS_H
#define LITMUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <braid/braid.h>

#include "emu_sim.h"

enum {
    LITMUS_PES = 8,
    LITMUS_MEM = 192 << 10,
    LITMUS_CHANNELS = 2,
    LITMUS_OPS = 640,     /* of one PE in one simulation */
    LITMUS_WATCHES = 128, /* that one PE makes in one simulation */
    LITMUS_SPANS = 1024,  /* that its watches name */
    LITMUS_PARTS = 32,
    LITMUS_CHAIN = 8,
    LITMUS_SETTINGS = 24,
    LITMUS_TEXT = 2048
};

enum litmus_mode { LITMUS_RELEASE, LITMUS_STRICT, LITMUS_DRAIN, LITMUS_MODES };

/** What a run is for. Only judged runs decide about right and wrong; the others are counts of what is known to be open. */
enum litmus_kind {
    LITMUS_JUDGED, /**< all unkind switches that this mode has an answer to */
    LITMUS_ACKVIS, /**< drain with acknowledgements before visibility */
    LITMUS_SILENT, /**< placement=auto on devices that place out of order and do not say so */
    LITMUS_KINDS
};

struct litmus_pe;
struct litmus_run;
struct litmus_watch;

/** Bytes of a PE's memory. */
struct litmus_span {
    int pe;
    uint32_t at, len;
};

/** What a test needs of the shape. */
enum litmus_need {
    LITMUS_NEED_TAIL = 1,        /**< the option tail is on */
    LITMUS_NEED_CHANNELS = 2,    /**< two channels */
    LITMUS_NEED_ALL = 4,         /**< every PE writes */
    LITMUS_NEED_UNREACHABLE = 8, /**< mostly some PEs cannot reach others' home rail, with ports enough */
    LITMUS_NEED_SLOW = 16        /**< targets are slow in progress, replies are asked for again soon */
};

struct litmus_test {
    const char *name;
    int pes;       /**< PEs of a simulation */
    unsigned need; /**< of enum litmus_need */
    /** One round of a writer, on fresh addresses. 0, -ENOSPC where the memory is used up, or a failure. */
    int (*round)(struct litmus_pe *p);
};

/** Which simulation. */
struct litmus_case {
    const struct litmus_test *test;
    enum litmus_mode mode;
    enum litmus_kind kind;
    int ports;
    uint64_t seed;
    const char *fault;  /**< a rule to switch off; NULL: none */
    bool judge_strict;  /**< judged as strict is, whatever the mode */
    unsigned placement; /**< out of order: 1 not, 2 and the device says so, 3 and it does not; 0: the seed decides */
    bool tail_off;      /**< the tail is off, whatever the test needs */
    bool verbose;
    bool real; /**< between processes, by the machine's clock */
};

/** What came out. */
struct litmus_verdict {
    int rc;              /**< what the run returned; not 0: it could not be judged, or hung */
    uint64_t violations; /**< conclusions that did not hold */
    uint64_t bytes;      /**< wrong bytes in them */
    uint64_t conclusions;
    char text[LITMUS_TEXT]; /**< the first violation or failure */
    uint64_t end_ns, trace;
};

/** The shape of a simulation: what the seed has decided. */
struct litmus_shape {
    char fabric[512];
    char setting[LITMUS_SETTINGS][48];
    int n_settings;
    int rails[LITMUS_PES]; /**< ports that a PE opens */
    int rounds;
    bool all_write, tail, scribble, know_planes;
    unsigned gap_ns;    /**< longest pause between two ops of a writer */
    unsigned absent_ns; /**< longest time in which an observer makes no progress */
    uint32_t len_max;   /**< longest put */
};

/** As soon as one byte of `when` is not 0, the spans of `must` equal the image. */
struct litmus_watch {
    const char *name;
    struct litmus_span when;
    int maker;
    unsigned first, n_must; /* in its spans */
    /** Done once by the observer, behind the look. May issue ops and wait for them. */
    int (*then)(struct litmus_pe *p, struct litmus_watch *w);
    struct litmus_span data, word; /* for then */
    uint64_t chain[LITMUS_CHAIN];  /* n_chain > 0: the 8 bytes of when hold these values, one after the other */
    unsigned n_chain, at_chain;
    bool seen;
};

/** One op of a writer, until it has ended. */
struct litmus_op {
    struct braid_done done;
    struct litmus_span src;
    uint64_t old, old_expected;
    bool check_old, scribbled;
    bool ticket; /* of a fetch-and-add of 1: no two of a word may have the same old value */
};

struct litmus_pe {
    struct litmus_run *run;
    int pe;
    struct braid *b;
    struct braid_channel *ch[LITMUS_CHANNELS];
    struct braid_mem *mem;
    unsigned char *bytes;
    uint64_t remote[LITMUS_PES];
    struct braid_key key[LITMUS_PES];
    uint64_t random;
    struct litmus_op op[LITMUS_OPS];
    unsigned n_ops, first_alive, first_open;
    struct litmus_watch *unseen[LITMUS_PES * LITMUS_WATCHES]; /* watches of this PE */
    struct litmus_watch *act[LITMUS_PES * LITMUS_WATCHES];    /* seen, `then` is still to be done */
    unsigned n_unseen, n_act, next_watch[LITMUS_PES];
    struct litmus_span announced; /* the word that was last announced with */
    char last_log[256];
};

/** Watches that one PE has made. Others read what stands below n_watches. */
struct litmus_made {
    struct litmus_watch watch[LITMUS_WATCHES];
    struct litmus_span span[LITMUS_SPANS];
    unsigned n_watches, n_spans;
};

/** What PEs share. In real time they are processes: counters are changed by __atomic builtins. */
struct litmus_run {
    const struct emu_sim_api *emu;
    const struct litmus_case *c;
    struct litmus_shape shape;
    struct litmus_verdict verdict;
    struct emu_sim *sim;
    struct litmus_pe *pe[LITMUS_PES];
    unsigned char *image[LITMUS_PES];
    uint32_t used[LITMUS_PES];
    struct litmus_made made[LITMUS_PES];
    uint32_t shared[4]; /* words of PE 0 that several PEs change: 1 and where; 0: none yet */
    uint64_t patience_ns;
    size_t bytes;      /* of all this */
    int open;          /* PEs that still issue, and watches not done */
    int busy;          /* PEs that issue, as writers or because of what they saw */
    uint64_t moved_ns; /* when the last of that ended */
    int failed;
};

/* litmus_tests.c */
/** The i-th test, or NULL. */
const struct litmus_test *litmus_test_at(unsigned i);
/** By name, or NULL. */
const struct litmus_test *litmus_test_named(const char *name);
/** "release", ... */
const char *litmus_mode_name(enum litmus_mode mode);
const char *litmus_kind_name(enum litmus_kind kind);

/* litmus_shape.c */
/** Decides the shape of a simulation from its seed. */
void litmus_shape_draw(const struct litmus_case *c, struct litmus_shape *out);
/** Random bits from a state; the same everywhere. */
uint64_t litmus_random(uint64_t *state);

/* litmus_run.c */
/** Runs one simulation. Always gives a verdict. */
void litmus_run_one(const struct emu_sim_api *emu, const struct litmus_case *c, struct litmus_verdict *out);
/** Notes a failure that is none of order: a call that failed, an op that ended twice. Returns rc. */
int litmus_fail(struct litmus_pe *p, int rc, const char *what);
/** Prints a line with time and PE, in verbose runs. */
__attribute__((format(printf, 2, 3))) void litmus_note(const struct litmus_pe *p, const char *fmt, ...);

/* litmus_real.c */
/** The same calls for PEs that are processes in real time. One simulation at a time. */
const struct emu_sim_api *litmus_real_api(const struct emu_sim_api *emu);
/** Those of them that a simulation makes, on real ports that are given (tests/real/given.h), without an emulator. */
const struct emu_sim_api *litmus_real_api_given(void);

/* litmus_watch.c */
/** A new watch of when.pe; must spans are added with litmus_must(). NULL: -ENOSPC. */
struct litmus_watch *litmus_watch_new(struct litmus_pe *p, const char *name, struct litmus_span when);
void litmus_must(struct litmus_pe *p, struct litmus_watch *w, struct litmus_span span);
/** Looks at all watches of this PE. Touches memory only, so it may be called from libbraid's wait. */
void litmus_look(struct litmus_pe *p);
/** Compares bytes of this PE with the image, or with `expected` where given, and notes what differs. */
bool litmus_compare(struct litmus_pe *p, const char *name, struct litmus_span span, uint32_t at);
/** Does what seen watches ask for. */
int litmus_act(struct litmus_pe *p);
/** Gives up watches of this PE whose time is long over: nobody issues any more, so what they wait for does not come. */
void litmus_give_up(struct litmus_pe *p);
/** The end: memory is what the image says, each op has ended once and well. */
void litmus_final(struct litmus_pe *p);

/* litmus_ops.c: ops that wait while a queue is full, and write the image */
/** Fresh zero bytes of a PE. len 0 in the result: none left. */
struct litmus_span litmus_fresh(struct litmus_pe *p, int pe, uint32_t len, uint32_t align);
/** A part of a span. */
struct litmus_span litmus_part(struct litmus_span s, uint32_t at, uint32_t len);
/** 0 <= result < n. */
uint32_t litmus_below(struct litmus_pe *p, uint32_t n);
/** A length of a bulk put, of any size class. */
uint32_t litmus_bulk_len(struct litmus_pe *p);
/** PEs other than this one, in turn from the next. */
int litmus_other(const struct litmus_pe *p, int k);
/** A random one of them. */
int litmus_any_other(struct litmus_pe *p);
int litmus_put(struct litmus_pe *p, int ch, struct litmus_span dst);
int litmus_p(struct litmus_pe *p, int ch, struct litmus_span dst);
int litmus_add(struct litmus_pe *p, int ch, struct litmus_span word, uint64_t value);
int litmus_set(struct litmus_pe *p, int ch, struct litmus_span word, uint64_t value);
int litmus_put_signal(struct litmus_pe *p, int ch, const struct litmus_span *parts, unsigned n,
                      struct litmus_span word);
/** A random atomic that is not an 8-byte native one, on a word of 4 or 8 bytes; never makes it 0. */
int litmus_atomic_odd(struct litmus_pe *p, int ch, struct litmus_span word);
/** Adds to a word of 4 bytes, which the target executes. */
int litmus_add_small(struct litmus_pe *p, int ch, struct litmus_span word, uint32_t value);
/** Changes the upper half of a word of 8 bytes, which the target executes. Mixes with small adds in any order. */
int litmus_xor_high(struct litmus_pe *p, int ch, struct litmus_span word, uint32_t value);
/** Fetch-and-add 1 of 8 bytes. All fetched values of one simulation must differ: one word only, and nothing else adds to it. */
int litmus_fetch_add(struct litmus_pe *p, int ch, struct litmus_span word);
/** Gets span of another PE and compares it with the image. Waits. */
int litmus_get_compare(struct litmus_pe *p, int ch, const char *name, struct litmus_span span);
int litmus_fence(struct litmus_pe *p, int ch, int pe);
int litmus_quiet(struct litmus_pe *p, int ch, int pe);
/** Lets time pass between two ops: nothing, progress, or a pause. */
int litmus_gap(struct litmus_pe *p);
/** Progress of all channels, or sleep until something happens, at most about a round trip. */
int litmus_step(struct litmus_pe *p);
/** What an observer does between two looks: a step, or where the shape says so, nothing for a while. */
int litmus_idle(struct litmus_pe *p);

#endif
