/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - decisions: numbers in, numbers out. No verbs, no locks, no I/O, no state.
 *
 * Every function here is pure, so that each rule of the engine is tested as arithmetic. Callers fill the input
 * structs from what they know and carry the answers out.
 */
#ifndef PLAN_H
#define PLAN_H

#include "common.h"

#define PLAN_MAX_RAILS 16
#define PLAN_MAX_LANES 16
#define PLAN_WORD_MAX  256u /**< bytes: a put up to here is a word op */
#define PLAN_CUT_ALIGN 128u /**< cuts fall on multiples of this of the remote address: no cache line is written twice */

/** Decisions that a test may switch off, one by one. */
enum plan_fault {
    PLAN_FAULT_DEFER = 1u << 0 /**< word ops never wait for other lanes */
};

/* ---- pairing: which rails are joined by lanes -------------------------------------------------------------------- */

/** One lane: the local and the remote rail that it joins. */
struct plan_pair {
    uint8_t local;
    uint8_t remote;
};

/** Rails of both sides of a pair of PEs, seen from one of them. */
struct plan_pair_in {
    unsigned local_rails;  /**< 1..PLAN_MAX_RAILS */
    unsigned remote_rails; /**< 1..PLAN_MAX_RAILS */
    bool upper;            /**< this PE has the higher number of the two; false for a PE with itself */
    const uint16_t *reach; /**< per local rail: bit j set where it reaches remote rail j; NULL: all reach all */
};

/**
 * Pairs rails that reach each other so that every port of both sides is used, as evenly as reach allows: where all
 * reach all, max(n, m) lanes, lane k joining rail k % n with rail k % m. The peer, who swaps n and m, transposes reach and
 * turns `upper`, gets the same lanes in the same order. *unused says how many rails of both sides no lane uses: they
 * reach nothing, or PLAN_MAX_LANES was hit first. Returns the number of lanes, 0 where there is none, or -EINVAL.
 */
int plan_pair(const struct plan_pair_in *in, struct plan_pair out[PLAN_MAX_LANES], unsigned *unused);

/** The MTU that both ends of a lane can carry: the lower of the two, bytes. */
uint32_t plan_pair_mtu(uint32_t local_mtu, uint32_t remote_mtu);

/** The home rail of a PE with so many rails (>= 1): spread by PE number, since PEs that share ports are neighbours. */
unsigned plan_home(unsigned pe, unsigned rails);

/* ---- striping: how a put or get is cut --------------------------------------------------------------------------- */

enum plan_class {
    PLAN_CLASS_WORD,   /**< at most PLAN_WORD_MAX bytes, or an atomic: home lane, ordered */
    PLAN_CLASS_MEDIUM, /**< whole, on one lane */
    PLAN_CLASS_LARGE   /**< cut over the live lanes */
};

/** What the planner may know of a lane. */
struct plan_lane {
    bool live;          /**< may carry new pieces */
    bool room;          /**< has a free slot now */
    uint64_t backlog;   /**< bytes posted and not yet completed */
    uint64_t rate_bits; /**< bits a second; not used while pieces are equal */
};

/** A transfer to be cut. */
struct plan_stripe_in {
    uint64_t remote_addr;
    uint64_t len;
    uint64_t stripe_min; /**< smallest len that is cut */
    uint64_t piece_min;  /**< smallest piece */
    unsigned lanes;      /**< 1..PLAN_MAX_LANES */
    unsigned home;       /**< lane of word ops: gets a whole transfer that no lane would carry sooner, since the signal
                              behind it then need not wait; >= lanes: none */
    const struct plan_lane *lane;
};

/** A part of it, on one lane. */
struct plan_piece {
    unsigned lane;
    uint64_t offset;
    uint64_t len;
};

struct plan_stripe {
    unsigned count;
    struct plan_piece piece[PLAN_MAX_LANES];
};

/** The class of a put by its length. */
enum plan_class plan_stripe_class(uint64_t len, uint64_t stripe_min);

/**
 * Cuts a transfer of the medium or large class. Pieces cover [0, len) without gap or overlap, in order, each on a live
 * lane of its own; inner cuts lie on multiples of PLAN_CUT_ALIGN of the remote address; no piece but a whole transfer
 * is below piece_min; where that means fewer pieces than live lanes, lanes with room and then with the least backlog get
 * them. 0, -EINVAL for len 0 or a bad lane count, or -ENOTCONN where no lane is live.
 */
int plan_stripe(const struct plan_stripe_in *in, struct plan_stripe *out);

/* ---- order: when a word op may be posted ------------------------------------------------------------------------- */

/**
 * Writes per lane of one peer and channel, in posting order. `visible` is the number of first writes known to be in the
 * target's memory: on an ordered fabric without unkind placement an acknowledgement proves that; where it does not,
 * flushed counts take this field's place and no rule below changes.
 */
struct plan_counts {
    uint64_t posted[PLAN_MAX_LANES];
    uint64_t visible[PLAN_MAX_LANES];
};

/** What a word op carries: for every other lane the count that must be visible before it may be posted. */
struct plan_wait {
    uint64_t count[PLAN_MAX_LANES];
};

struct plan_order_in {
    const struct plan_counts *counts;
    unsigned lanes;  /**< 1..PLAN_MAX_LANES */
    unsigned home;   /**< the lane the word op travels on: its own earlier writes precede it by themselves */
    uint16_t dead;   /**< bit k: lane k has failed and what it had not completed is lost */
    unsigned faults; /**< enum plan_fault, or-ed */
};

enum plan_order {
    PLAN_ORDER_NOW,  /**< post it */
    PLAN_ORDER_WAIT, /**< something it must follow is still on its way */
    PLAN_ORDER_NEVER /**< something it must follow is lost, or its lane is: it must fail */
};

/** The counts that a word op issued now must wait for. */
void plan_order_mark(const struct plan_counts *counts, unsigned lanes, unsigned home, struct plan_wait *out);

/** Whether a word op with these waits may be posted. */
enum plan_order plan_order(const struct plan_order_in *in, const struct plan_wait *wait);

#endif
