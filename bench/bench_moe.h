/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_moe.h - what the files of `bench moe` share. The pattern is that of DeepEP's normal kernels: a job for each GPU index;
 * in it each pair of nodes has, for each DeepEP channel, a ring of slots. A sender stages tokens, puts a chunk of them into the
 * peer's ring and adds to its tail; the peer reads what the tail announces, and gives credit by adds to the sender's head.
 *
 * Kernels are played by the PE's program whenever its proxy comes by (bench_moe_out.c, bench_moe_in.c); what they ask for goes
 * through a queue of requests (bench_moe_ask.c), as device code asks NVSHMEM's proxy thread.
 */
#ifndef BENCH_MOE_H
#define BENCH_MOE_H

#include "bench_int.h"

enum {
    BENCH_MOE_TOP = 8,        /* experts of a token */
    BENCH_MOE_GROUPS = 4,     /* nodes that these are on, at most */
    BENCH_MOE_EXPERTS = 256,  /* or one a rank, where there are more ranks */
    BENCH_MOE_LOCAL = 8,      /* ranks of a node: traffic is that of full nodes, however many of their GPUs take part */
    BENCH_MOE_META_INTS = 18, /* DeepEP's: of each of 8 local ranks, and of the node, where its tokens begin and end */
    BENCH_MOE_META_BYTES = 72,
    BENCH_MOE_META_ROOM = 128,
    BENCH_MOE_NODES = 64,
    BENCH_MOE_ROUNDS = 8 /* of a barrier: 2^8 nodes would fit */
};

/** Where a token's experts are. */
struct bench_moe_token {
    uint64_t nodes;               /* one bit each */
    uint16_t rank[BENCH_MOE_TOP]; /* of each expert, node x ranks of a node + rank in it */
};

/** What a run of all PEs shares. */
struct bench_moe {
    unsigned tokens, channels, chunk, ring;
    int nodes, local; /* ranks of a node, BENCH_MOE_LOCAL at least */
    size_t token_bytes;
    bool combine;
    bool pattern;                        /* payload is not bytes */
    size_t words_len;                    /* of what is not payload, which lies behind it */
    size_t data_len, data_at;            /* payload, and where it begins */
    struct bench_moe_token *token;       /* of PE p: from p x tokens on; owned */
    uint32_t *count;                     /* of PE p, channel c, to node d: [(p x channels + c) x nodes + d]; owned */
    int busiest;                         /* the PE whose wires have most to do */
    bool busiest_in;                     /* that is, to receive */
    uint64_t began_ns;                   /* the phase, for all */
    uint64_t over_ns;                    /* the last PE's kernels */
    uint64_t notify_ns;                  /* the longest */
    uint64_t stale;                      /* slots */
    uint64_t logical, remote, forwarded; /* the busiest PE's bytes; the last: over NVLink */
    double where_ns[BENCH_WHERE];
    struct bench_timeline line;
};

/** What a PE sends to one node on one DeepEP channel, in tokens. */
struct bench_moe_out {
    uint32_t total, staged, issued;
    uint32_t freed;  /* that the peer has given credit for, as last seen */
    uint32_t cursor; /* combine: the next of the peer's tokens that may be the one to be staged */
};

/** What it receives from one node. */
struct bench_moe_in {
    uint32_t total; /* known, when `known` says so */
    uint32_t tail;  /* announced, as last seen; these have been compared */
    uint32_t read, credited;
    uint32_t wrong;  /* bytes of the chunk that tail is inside of */
    uint32_t cursor; /* dispatch: the next of the sender's tokens that may be the one to be read */
    bool known;
};

/** Kernels that copy one token after the other. */
struct bench_moe_work {
    uint64_t until_ns; /* when they have done, or had, what they began */
    bool begun;
    bool waited; /* for something to do, or for room, since */
};

/** One DeepEP channel of a PE. */
struct bench_moe_channel {
    int index;
    uint32_t next, end; /* of the own tokens: to be staged (dispatch), or reduced (combine); behind the last */
    struct bench_moe_work sending, reading;
    struct bench_moe_out *out;            /* of each node; owned */
    struct bench_moe_in *in;              /* of each node; owned */
    unsigned turn, stage_turn, read_turn; /* nodes, in turns */
    uint64_t seen[BENCH_MOE_NODES];       /* tails, as last looked at */
    /* Sets of nodes, a bit each: */
    uint64_t unknown; /* whose meta is not here */
    uint64_t open;    /* that have more to announce */
    uint64_t unread;  /* of which something is here and not read */
    uint64_t fresh;   /* of which something was read since credit was looked at */
    uint64_t undone;  /* of which not all was read */
    bool looked;      /* at each node once */
    bool sent, took;  /* all of it */
};

enum bench_moe_kind { BENCH_MOE_PUT, BENCH_MOE_FENCE, BENCH_MOE_ADD };

/** A request of device code. */
struct bench_moe_ask {
    enum bench_moe_kind kind;
    int rank;
    uint64_t to; /* offset in the peer's memory */
    size_t from; /* in the own, put */
    size_t len;
    uint64_t value; /* add */
    uint64_t at_ns; /* when the proxy can see it */
};

/** Where time went, on the busiest PE. */
struct bench_moe_where {
    bool on;
    int port[BRAID_MAX_RAILS], n;                          /* its ports, as numbers of the cluster's */
    double rate[BRAID_MAX_RAILS];                          /* payload bytes a ns */
    uint64_t began[BRAID_MAX_RAILS], now[BRAID_MAX_RAILS]; /* bytes before, and when last looked at */
    uint64_t bytes, at_ns, slept_ns;                       /* up to here */
    double carry_ns;                                       /* of wires, counted before their time was up */
    double ns[BENCH_WHERE];
    uint64_t sample_ns; /* between two samples; doubled when there are too many */
};

/** A PE of the run. */
struct bench_moe_pe {
    struct bench_pe *pe;
    struct bench_moe *moe;
    struct bench_moe_channel *channel; /* owned */
    struct bench_moe_ask *ask;         /* a ring; owned */
    size_t asked, taken, room;         /* room: a power of two, or 0 */
    bool paid;                         /* the proxy has, for the request that is next */
    bool fences;                       /* they are requests */
    bool running;                      /* its kernels are */
    uint64_t now_ns, next_ns;          /* now; when kernels will be done with something */
    uint32_t to_issue;                 /* chunks' tokens that kernels have not asked for yet */
    bool blocked, copying;             /* seen in this pass: for lack of credit; kernels are busy */
    uint64_t over_ns;                  /* when its kernels had ended; 0: not yet */
    uint64_t moved_ns;                 /* when something moved last */
    uint64_t generation;               /* barriers */
    struct bench_moe_where where;
    int rc; /* of a request that failed */
};

/* ---- bench_moe_route.c: which token goes where -------------------------------------------------------------------- */

/** Tokens of PE pe on channel c for node d. */
uint32_t bench_moe_count(const struct bench_run *run, int pe, int c, int d);
/** Copies of a token on a node: ranks there that have one of its experts. */
unsigned bench_moe_copies(const struct bench_moe *m, const struct bench_moe_token *t, int node);
/** The first token of a PE from *cursor on that goes to a node; *cursor is behind it then. */
const struct bench_moe_token *bench_moe_next(const struct bench_run *run, int pe, int node, uint32_t *cursor);

/* ---- bench_moe_shape.c: arithmetic ---------------------------------------------------------------------------------- */

/** The first token of a channel; of the one behind the last: their end. */
unsigned bench_moe_first(const struct bench_moe *m, unsigned c);
/** Offsets in a PE's memory: the tail that node d adds to, the head that it adds to, what it puts on c. */
size_t bench_moe_tail_at(const struct bench_moe *m, int c, int d);
size_t bench_moe_head_at(const struct bench_moe *m, int c, int d);
size_t bench_moe_meta_at(const struct bench_moe *m, int c, int d);
/** Where the meta for node d is written before it is put. */
size_t bench_moe_meta_from(const struct bench_moe *m, int c, int d);
/** The word of a barrier's round; the counts that node d puts, and where those for it are put from. */
size_t bench_moe_sync_at(const struct bench_moe *m, int round);
size_t bench_moe_counts_at(const struct bench_moe *m, int d);
size_t bench_moe_counts_from(const struct bench_moe *m);
size_t bench_moe_counts_len(const struct bench_moe *m);
/** Slots of token number n of the stream between this PE and node d on channel c: received from there, or to be sent there. */
size_t bench_moe_slot_in(const struct bench_moe *m, int c, int d, uint32_t n);
size_t bench_moe_slot_out(const struct bench_moe *m, int c, int d, uint32_t n);

/* ---- bench_moe.c ---------------------------------------------------------------------------------------------------- */

/** All that kernels can do now. Returns whether that was anything. */
bool bench_moe_kernels(struct bench_moe_pe *p);
/** Kernels, a batch of requests, progress; sleeps where nothing moved. */
int bench_moe_turn(struct bench_moe_pe *p);
/** Whether a rule is switched off and nothing has moved for so long that a signal must have been lost. */
bool bench_moe_lost(const struct bench_moe_pe *p);

/* ---- bench_moe_out.c, bench_moe_in.c: kernels ----------------------------------------------------------------------- */

/** Kernels that send: what they can do now. Returns whether that was anything. */
bool bench_moe_send(struct bench_moe_pe *p, struct bench_moe_channel *ch);
/** Kernels that read. */
bool bench_moe_read(struct bench_moe_pe *p, struct bench_moe_channel *ch);
/** The meta of each channel for each node, as a dispatch begins. */
void bench_moe_metas(struct bench_moe_pe *p);
/** What the bytes of a chunk are named by: its sender, its receiver, its channel, its first token. */
uint64_t bench_moe_tag(const struct bench_run *run, int from, int to, int c, uint32_t first);
/** A word of the PE's memory as a kernel polls it. */
uint64_t bench_moe_word(const struct bench_pe *p, size_t at);
/** Whether kernels are through with copying one token at this rate (0: at once); begins it where it is not begun. */
bool bench_moe_worked(struct bench_moe_pe *p, struct bench_moe_work *w, double bytes, double gbs);

/* ---- bench_moe_ask.c: requests -------------------------------------------------------------------------------------- */

/** Device code asks for something. A failure is in p->rc. */
void bench_moe_post(struct bench_moe_pe *p, const struct bench_moe_ask *a);
/** All lanes of a warp call the fence; nothing where it is no request. */
void bench_moe_fence(struct bench_moe_pe *p);
/** Fence, where bytes went before, and add. */
void bench_moe_signal(struct bench_moe_pe *p, int rank, size_t word, uint64_t value);
/** The proxy takes a batch. How many requests, or a negative errno. */
int bench_moe_take(struct bench_moe_pe *p);

/* ---- bench_moe_sync.c ----------------------------------------------------------------------------------------------- */

/** The notify phase: barrier, counts to all, barrier. */
int bench_moe_notify(struct bench_moe_pe *p);

/* ---- bench_moe_where.c ---------------------------------------------------------------------------------------------- */

void bench_moe_where_open(struct bench_moe_pe *p);
/** Time has passed: awake, or asleep between calls. */
void bench_moe_where_note(struct bench_moe_pe *p, bool awake);

#endif
