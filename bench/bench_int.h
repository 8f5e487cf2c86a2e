/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_int.h - what the generators share: a run, its PEs, their streams, and the transport under them.
 */
#ifndef BENCH_INT_H
#define BENCH_INT_H

#include "bench.h"
#include "live.h"

#include <braid/braid.h>

struct bench_moe;
struct bench_moe_pe;
struct bench_run;
struct bench_pe;

/** A put with signal, for the transport. */
struct bench_put_signal {
    uint64_t dst;
    const void *src;
    size_t len;
    uint64_t word;
    enum bench_signal_how how;
    uint64_t value;
};

/** One atomic, for the transport. */
struct bench_atomic {
    enum bench_op op; /* BENCH_OP_COMPARE_SWAP: one try */
    unsigned bytes;
    uint64_t operand, compare;
};

/**
 * What moves a PE's bytes: libbraid itself, an NVSHMEM plugin under the minihost, or a model. What cannot be taken now is
 * answered -EAGAIN: the caller makes progress and tries again. done may be counted late (plugins tell by quiet only), and be
 * NULL. pe is a rank of the PE's job.
 */
struct bench_transport {
    bool has_proxy; /* it pays for NVSHMEM's proxy itself */
    size_t align;   /* of the PE's memory, and of its length, which is then the same for all PEs; 0: a page */
    /** Opens and connects for this PE, makes p->mem known to all, and fills p->remote. Owned by the caller. Collective. */
    int (*open)(struct bench_pe *p, void **self);
    void (*close)(void *self); /* tolerates NULL */
    int (*put)(void *self, int pe, uint64_t dst, const void *src, size_t len, struct braid_done *done);
    int (*get)(void *self, int pe, void *dst, uint64_t src, size_t len, struct braid_done *done);
    int (*signal)(void *self, int pe, uint64_t word, enum bench_signal_how how, uint64_t value,
                  struct braid_done *done);
    /** A put and the signal behind it as one call, which ends with the signal. */
    int (*put_signal)(void *self, int pe, const struct bench_put_signal *ps, struct braid_done *done);
    int (*atomic)(void *self, int pe, uint64_t word, const struct bench_atomic *a, uint64_t *old,
                  struct braid_done *done);
    /** Whether a fence of device code is a request to the proxy, and what such a request does. NULL: no, nothing. */
    bool (*has_fence)(void *self);
    int (*fence)(void *self);
    /** Notes in the PE's rails what they have carried. NULL: it cannot tell. */
    void (*look)(void *self);
    /** Word ops that wait for others to be visible. NULL: it cannot tell. */
    uint64_t (*deferred)(void *self);
    int (*progress)(void *self);
    /** Behind an op, where more are at hand: progress if it is due, see braid_progress_soon(). NULL: a transport that knows itself. */
    int (*progress_soon)(void *self);
    int (*quiet)(void *self, int pe);
};

/** Samples of a time, ns. */
struct bench_samples {
    uint64_t *ns; /* owned */
    size_t count, room;
};

/** What the atomics of all PEs come to, whatever their order. */
struct bench_tally {
    uint64_t add, xor, or, and; /* of the operands */
    uint64_t old_add, old_xor;  /* of the old values */
    unsigned char *seen;        /* old values of adds, one bit each */
    uint64_t twice;             /* old values that were seen before, or cannot be */
    uint64_t *last;             /* of each PE: its last operand */
};

/** One put or get under way, and the place in the sender's memory that it uses. */
struct bench_slot {
    struct braid_done done;
    uint64_t due; /* ends that done has to count */
    uint64_t number, called_ns;
    bool busy;
};

/** One signal under way. */
struct bench_note {
    struct braid_done done;
    uint64_t group, accepted_ns;
    bool busy;
};

/** What one PE sends to one other. A group is the puts that one signal announces. */
struct bench_stream {
    int pe;                       /* the peer */
    int index;                    /* which of the receiver's incoming streams this is */
    bool counted;                 /* in the figures */
    uint64_t first, next, last;   /* numbers of this lap: its first put, the next to be called, the end */
    uint64_t ended;               /* puts of this lap whose place is free again */
    uint64_t groups, notes_ended; /* signals accepted and acknowledged in this lap */
    struct bench_slot *slot;
    unsigned *free, n_free; /* slots that are free */
    struct bench_note *note;
    struct bench_slot *ready; /* filled, called, not accepted yet */
    bool stale_put;           /* the ready one's other bytes are put */
    bool owes_signal;         /* its put is accepted */
    uint64_t owes_accepted_ns;
    uint64_t *called_ns; /* of each group of the run: when its last put was called */
};

/** What one PE receives from one other. */
struct bench_incoming {
    int from;
    uint64_t first, seen, last; /* puts of this lap: compared up to seen */
    uint64_t watched;           /* and by their last bytes up to here */
};

/** What a PE has paid for libbraid's work. */
struct bench_charge {
    const struct emu_sim_api *emu;
    const struct braid_channel *ch;
    uint64_t cost[BENCH_WORK];
    struct braid_channel_stats last;    /* paid up to here */
    uint64_t ahead;                     /* ns paid before the work was done */
    uint64_t work[BENCH_WORK], work_ns; /* in all */
};

/** What a rail of a live run has carried of its PE's own ops, payload bytes. */
struct bench_rail {
    char port[64];
    uint64_t rate_bits, tx, rx;
};

/** One PE of a run. Remote addresses are those by which peers name the same offset of its memory. */
struct bench_pe {
    struct bench_run *run;
    int pe;
    int rank, n_pes;    /* its number in its job, and how many are in it: peers are named by their ranks */
    unsigned char *mem; /* see bench_shape.c */
    size_t mem_len;
    unsigned char *map; /* what mem lies in */
    size_t map_len;
    size_t data_len;   /* bytes of pattern-backed memory right behind it; 0: none */
    uint64_t *remote;  /* of each rank: address of its memory's first byte */
    const void *sends; /* during an exchange of its job */
    const struct bench_transport *transport;
    void *transport_self;
    struct bench_stream *out;
    int n_out;
    struct bench_incoming *in;
    int n_in;
    bool lap_sent;     /* all it sends in this lap has been acknowledged and proved */
    uint64_t busy_ns;  /* CPU inside the transport */
    uint64_t slept_ns; /* and asleep inside its calls, where it can tell */
    uint64_t wall_ns;  /* of its laps together */
    uint64_t start_ns; /* of the first */
    uint64_t end_ns;
    uint64_t meetings; /* that it came to */
    struct bench_moe_pe *moe;
    struct bench_samples latency, signal;
    struct bench_times latency_told, signal_told; /* live: a PE elsewhere has told only these */
    struct bench_rail rail[BRAID_MAX_RAILS];      /* live */
    int n_rails;
    uint64_t moved_ns; /* live: when something moved last */
    bool all_asked;    /* live: see bench_live_all_sent() */
    int all_rc;
    uint64_t work[BENCH_WORK], work_ns;
};

/* Runs begin at a multiple of this, so that a fabric's timed changes can be aimed at them. */
#define BENCH_START_NS 10000000u

/** A run: the same for all PEs; results are written by the PE that has them. */
struct bench_run {
    const struct emu_sim_api *emu;
    struct emu_sim *sim;
    const struct bench_spec *spec;
    const struct bench_transport *transport;
    struct bench_engine engine;
    int n_pes, per_node;
    char topo[8];         /* "pix" and so on */
    bool shared;          /* GPUs share ports in pairs */
    int rails;            /* of a sender */
    int senders, peers;   /* PEs 0 to senders - 1 send, to so many each */
    unsigned every;       /* puts a signal; 0: no signals */
    size_t stride;        /* bytes of a place */
    uint64_t places;      /* for puts of one stream in its target */
    uint64_t lap;         /* puts a stream, between two meetings */
    uint64_t start_ns;    /* when all begin */
    struct bench_pe **pe; /* those that run */
    uint64_t arrived;     /* at meetings, all together */
    uint64_t done, told;  /* ops that have ended, and how many of them progress was told of */
    uint64_t errors, compared;
    struct bench_tally tally;
    struct bench_moe *moe; /* owned */
    char why[BENCH_WHY];
};

/* ---- bench_shape.c: who sends to whom, and where bytes lie ------------------------------------------------------- */

/** Works out senders, peers, places and laps. 0, or -EINVAL with a reason. */
int bench_shape(struct bench_run *run, char *why, size_t why_len);
/** The i-th peer of a PE. */
int bench_peer(const struct bench_run *run, int pe, int i);
/** The PE whose i-th peer this one is. */
int bench_peer_back(const struct bench_run *run, int pe, int i);
/** Streams that end at a PE. */
int bench_incoming_count(const struct bench_run *run, int pe);
/** Where in a PE's memory a put of its index-th incoming stream lands. */
size_t bench_place_offset(const struct bench_run *run, int index, uint64_t number);
/** Where the word of its index-th incoming stream is; index -1: the word that all share. */
size_t bench_word_offset(const struct bench_run *run, int pe, int index);
/** Where the bytes of a sender's slot are; slots from window on hold the other bytes of a rewrite. */
size_t bench_slot_offset(const struct bench_run *run, int pe, int stream, unsigned slot);
/** Bytes of a PE's memory. */
size_t bench_mem_len(const struct bench_run *run, int pe);
/** Bytes between a PE's streams, and so on, never overlap: rounds up to a multiple of to. */
static inline size_t bench_round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- bench_pattern.c --------------------------------------------------------------------------------------------- */

/** Fills a put's bytes with a pattern of its own. */
void bench_fill(unsigned char *p, size_t len, uint64_t seed, uint64_t number);
/** Bytes that differ from that pattern. */
uint64_t bench_differences(const unsigned char *p, size_t len, uint64_t seed, uint64_t number);
/** Whether the last 8 bytes are those of that pattern. */
bool bench_last_there(const unsigned char *p, size_t len, uint64_t seed, uint64_t number);
/** The seed of a stream's patterns, so that no two streams send the same. */
uint64_t bench_stream_seed(uint64_t seed, int from, int index);

/* ---- generators, as one PE: 0 or a negative errno ---------------------------------------------------------------- */

/** One lap of puts, gets and signals: between two meetings of all PEs. */
int bench_lap(struct bench_pe *p, uint64_t lap);
/** Puts, gets and signals. */
int bench_traffic_pe(struct bench_pe *p);
/** Atomics on one word. */
int bench_atomic_pe(struct bench_pe *p);

/** A phase of DeepEP's kernels. */
int bench_moe_pe(struct bench_pe *p);

/* bench_moe_shape.c, bench_moe_route.c: a phase before it runs. */

/** Fills in defaults and works out the layout of memory. 0, -ENOMEM, or -EINVAL with a reason. */
int bench_moe_shape(struct bench_run *run, char *why, size_t why_len);
/** Chooses experts for all tokens of all PEs, counts, and finds the busiest PE. 0 or -ENOMEM. */
int bench_moe_route(struct bench_run *run);
/** Bytes of a PE's memory that are bytes. */
size_t bench_moe_mem_len(const struct bench_moe *m);
/** Where payload lies, now that the length of that is known. */
void bench_moe_place(struct bench_pe *p);
/** Tolerates NULL. */
void bench_moe_free(struct bench_moe *m);
/** What the phase came to. */
void bench_moe_figures(struct bench_run *run, struct bench_result *out);

/* bench_out.c: what a PE sends. */
int bench_out_open(struct bench_pe *p);
void bench_out_close(struct bench_pe *p);
void bench_out_begin(struct bench_pe *p, uint64_t lap);
/** Calls what the windows allow. *moved is set where something was accepted. */
int bench_out_issue(struct bench_pe *p, bool *moved);
/** Looks at what has ended. */
int bench_out_collect(struct bench_pe *p);
/** Whether all (counted: those in the figures) of the lap has ended. */
bool bench_out_complete(const struct bench_pe *p, bool counted);

/* bench_in.c: what a PE receives. */
int bench_in_open(struct bench_pe *p);
void bench_in_close(struct bench_pe *p);
void bench_in_begin(struct bench_pe *p, uint64_t lap);
/** Looks at the words, and compares what they announce. Returns whether one had changed. */
bool bench_in_look(struct bench_pe *p);
/** Whether every signal of the lap has been seen, or can no longer come (those are counted as errors). */
bool bench_in_complete(struct bench_pe *p);
/** At the end of a lap: compares what nothing announced. */
void bench_in_compare_rest(struct bench_pe *p);

/* ---- bench_run.c ------------------------------------------------------------------------------------------------- */

/** Sleeps until the run begins. */
int bench_pe_wait_start(struct bench_pe *p);
/** Sleeps until something happens, or a little while. */
int bench_pe_wait(struct bench_pe *p);
/** All PEs meet; each makes progress until the last has come. */
int bench_pe_meet(struct bench_pe *p);
/** n more ops have ended. */
void bench_run_moved(struct bench_run *run, uint64_t n);
/** Room for so many. 0 or -ENOMEM. */
int bench_samples_open(struct bench_samples *s, uint64_t room);
/** Adds a sample, as long as there is room. */
void bench_samples_add(struct bench_samples *s, uint64_t ns);
/** Sorts them. */
struct bench_times bench_samples_times(struct bench_samples *s);

/* ---- bench_live.c: runs between processes ---------------------------------------------------------------------------- */

/** What this process wants of an option of libbraid; NULL: what the environment says, else its default. */
const char *bench_live_wish(const struct bench_pe *p, const char *name, char *room, size_t len);
/** Checks that the PE has the ports that it was told to use. 0, or -ENODEV, having said so in run->why. */
int bench_live_opened(struct bench_pe *p, const struct braid *b);
/** Payload bytes a second that a port of such a rate carries, headers off. */
double bench_live_payload(uint64_t rate_bits);
/** Notes what its rails have carried. */
void bench_live_rails(struct bench_pe *p, const struct braid *b);
/** Nothing has moved since then: sleeps a little. 0; -ETIMEDOUT where nothing has moved for too long; or what live_nap() says. */
int bench_live_wait(struct bench_pe *p, uint64_t moved_ns);
/** All PEs meet, each making progress. */
int bench_live_meet(struct bench_pe *p);
/** Whether all PEs have proved what they sent in this lap: asked again and again, the first time when this one has. It is the meeting
 *  at the lap's end, begun early; where that fails it is true, and bench_live_meet() says how it did. */
bool bench_live_all_sent(struct bench_pe *p);
/** Blocks of a job's PEs, see bench_job_alltoall(). */
int bench_live_alltoall(struct bench_pe *p, const void *send, void *recv, size_t bytes_each);
/** PE 0 learns what the others have come to. Collective. */
int bench_live_gather(struct bench_run *run);
/** Ports, rates and delays of a result, on PE 0. */
void bench_live_figures(const struct bench_run *run, struct bench_result *out);
/** As bench_ceiling(). */
double bench_live_ceiling(const struct bench_run *run, int pe, char *how, size_t how_len);

/* ---- bench_job.c --------------------------------------------------------------------------------------------------- */

/** The PE with that rank in the job of another. */
int bench_job_pe(const struct bench_run *run, int pe, int rank);
/** Finds the PE's rank, and how many are in its job. */
void bench_job_join(struct bench_pe *p);
/** Block i of send goes to rank i, as braid_peers wants it; arg: the PE. Collective. */
int bench_job_alltoall(void *arg, const void *send, void *recv, size_t bytes_each);
/** All PEs meet; arg: the PE. */
int bench_job_barrier(void *arg);
/** The PE's memory: mem_len zeroed bytes, and data_len bytes of patterns behind them. 0 or -ENOMEM. */
int bench_job_memory(struct bench_pe *p);
/** Tolerates what was never had. */
void bench_job_memory_free(struct bench_pe *p);

enum { BENCH_AREAS = 2 }; /* ordinary memory, and patterns */

/** A PE's memory as regions of one libbraid context, and keys of everybody's. */
struct bench_regions {
    struct braid_mem *mem[BENCH_AREAS];
    struct braid_key *key; /* of each rank, BENCH_AREAS each; owned */
    size_t first_len;
    const uint64_t *remote;     /* the PE's */
    const unsigned char *local; /* the PE's */
};

/** Registers the PE's memory and exchanges keys; fills p->remote. Collective over the job. */
int bench_regions_open(struct bench_regions *r, struct bench_pe *p, struct braid *b);
/** Tolerates what is half open. */
void bench_regions_close(struct bench_regions *r);
/** A remote address with its key, and a local one with its region. */
struct braid_remote bench_regions_far(const struct bench_regions *r, int rank, uint64_t addr);
struct braid_local bench_regions_near(const struct bench_regions *r, const void *addr);

/* ---- bench_fabric.c ---------------------------------------------------------------------------------------------- */

/* bench_pages.c */

/** Before the PEs of a large simulation make their memory: malloc's is to lie in huge pages, where the system has any. Changes
 *  malloc's settings for the rest of the process. */
void bench_pages_reserve(int n_pes);

/* bench_ports.c */

/** How many rails a sender has. 0, or -EINVAL with a reason. */
int bench_ports_count(struct bench_run *run, char *why, size_t why_len);
/** The ports that a PE opens and their planes, as lists for libbraid; len is the room of each. */
int bench_ports(const struct bench_run *run, int pe, char *ports, char *planes, size_t len);

/** Finds PEs of a node, and whether GPUs share ports. */
void bench_fabric(struct bench_run *run);
/** The most that a sender's rails can carry, GB/s, in [from_ns, to_ns), and how that was worked out. */
double bench_ceiling(const struct bench_run *run, int pe, uint64_t from_ns, uint64_t to_ns, char *how, size_t how_len);

/* ---- bench_charge.c ---------------------------------------------------------------------------------------------- */

/** Nothing is charged before this. */
void bench_charge_open(struct bench_charge *c, const struct emu_sim_api *emu, const struct braid_channel *ch);
/** Pays before work is done: what a call posts must not leave earlier. */
void bench_charge_ahead(struct bench_charge *c, uint64_t ns);
/** A blocking call has made a pass and goes to sleep: pays for the pass as it goes. */
void bench_charge_pass(struct bench_charge *c, uint64_t ns);
/** Pays for all that was done since the last time. Not inside a call of the channel: its counters are asked for. */
void bench_charge_now(struct bench_charge *c);
/** The call that was paid ahead was refused: the money is gone. */
void bench_charge_refused(struct bench_charge *c, uint64_t ns);

/* ---- transports -------------------------------------------------------------------------------------------------- */

enum { BENCH_BRAID_SETTINGS = 64, BENCH_BRAID_SETTING = 1024 };

/** Settings of a run as "name=value" strings, for braid_open(). */
struct bench_braid_settings {
    char text[BENCH_BRAID_SETTINGS][BENCH_BRAID_SETTING];
    const char *list[BENCH_BRAID_SETTINGS + 1];
};

/**
 * Every option but "log" is set, if only to its default: a run must not depend on the caller's environment (but a live one does as any
 * program that uses libbraid, where it is told nothing). rail: only
 * that one of the PE's ports; -1: all of them. 0, -ENOSPC, or what bench_ports() says.
 */
int bench_braid_settings(const struct bench_pe *p, int rail, struct bench_braid_settings *out);
/** What this run wants of an option of libbraid; NULL: nothing of its own. */
const char *bench_braid_wish(const struct bench_run *run, const char *name);
/** Which transport an engine is. */
const struct bench_transport *bench_engine_transport(const struct bench_engine *e);

extern const struct bench_transport bench_braid; /* bench_braid.c */
extern const struct bench_transport bench_host;  /* bench_host.c: a plugin under the minihost */
extern const struct bench_transport bench_model; /* bench_model.c: model:nic-rr */

/* What NVSHMEM's proxy thread costs for each request of device code: a guess, and the emulator's cost table says so. */
#define BENCH_PROXY_NS 150

#endif
