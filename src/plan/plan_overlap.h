/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_overlap.h - puts to bytes that are still being written: the table of what is on its way to a peer. Part of plan.h, which
 * includes it. May not post or flush. Called by src/api for each put and word op; done by plan_overlap.c.
 */
#ifndef PLAN_OVERLAP_H
#define PLAN_OVERLAP_H

#include "common.h"
#include "plan_limits.h"

#define PLAN_OVERLAP_ENTRIES 256u       /**< ops that are kept exactly */
#define PLAN_OVERLAP_BUCKETS 512u       /**< of the hash over addresses */
#define PLAN_OVERLAP_LEVELS  51u        /**< granules of 4 KiB, 8 KiB, 16 KiB, ... */
#define PLAN_OVERLAP_RUNS    16u        /**< stretches of memory that are written upwards at the same time */
#define PLAN_OVERLAP_WORDS   64u        /**< a power of two: words of 8 bytes that do not go on from others */
#define PLAN_OVERLAP_LOST    UINT64_MAX /**< ticket of an op that is not kept exactly */

enum plan_overlap_answer {
    PLAN_OVERLAP_NONE,   /**< it may go anywhere */
    PLAN_OVERLAP_FOLLOW, /**< what it overlaps lies on one lane: whole on that lane with the strict key it is in order */
    PLAN_OVERLAP_GATE    /**< it must not start before all that went before it is flushed */
};

enum plan_overlap_how {
    PLAN_OVERLAP_OPEN,   /**< pieces will follow, nobody knows where */
    PLAN_OVERLAP_BOUND,  /**< all of it goes on one lane, before whatever is accepted later */
    PLAN_OVERLAP_POSTED, /**< no further piece will follow */
    PLAN_OVERLAP_WHOLE   /**< it went out whole on one lane: lanes says nothing */
};

/** One op whose bytes are not known to be in the target's memory yet. */
struct plan_overlap_entry {
    uint64_t first, last; /**< its first and last byte */
    uint64_t link[2];     /**< next older entry under the same hash, for each of the two granules that it may touch */
    uint64_t count;       /**< whole: it was the count-th on its lane */
    uint32_t lanes;       /**< else bit k: count[k][slot of the entry] holds, PLAN_MESSAGE included */
    struct plan_overlap_state {
        uint8_t run;  /**< it lies in run[run]; PLAN_OVERLAP_RUNS: in the hash; above: at a word's place */
        uint8_t how;  /**< enum plan_overlap_how */
        uint8_t lane; /**< BOUND, WHOLE: that one */
        uint8_t zero;
    } state;
    uint64_t fill[2]; /**< to a power of two bytes, so that an entry is found by a shift */
};

/** A range that holds entries whose addresses rise with their tickets; it may have gaps. Or, `same`: all have this one range, as one
 *  that is written again and again. */
struct plan_overlap_run {
    uint64_t first, last;
    uint32_t entries;
    bool same;
};

/** An aligned word of 8 bytes, as atomics and signals go to: all its entries have its range, and those of words_at[w] have
 *  PLAN_OVERLAP_RUNS + 1 + w for a run. */
struct plan_overlap_word {
    uint64_t addr;
    uint64_t entries; /**< 0: free */
};

/**
 * The ranges written to one peer and not yet known to be flushed. Zeroed at first; about 60 KiB. Entries are numbered
 * from 0 in the order of acceptance (tickets); entry t lies in entry[t % PLAN_OVERLAP_ENTRIES].
 */
struct plan_overlap {
    uint64_t head, tail;            /**< next ticket; oldest kept */
    uint64_t levels;                /**< bit l: entries of level l, with granules of 4 KiB << l, are hashed */
    uint32_t runs;                  /**< bit r: run[r] is in use */
    uint32_t recent;                /**< the run that grew last */
    uint32_t word;                  /**< a run that was last found to be `same` */
    uint64_t clear;                 /**< nothing lies between its end and here; below its end: unknown */
    uint64_t hash_first, hash_last; /**< all that is hashed lies between these, where levels is not 0 */
    struct plan_overlap_run run[PLAN_OVERLAP_RUNS];
    uint64_t words;                                        /**< entries of all words */
    uint64_t word_first, word_last;                        /**< where words is not 0 they lie between these */
    struct plan_overlap_word words_at[PLAN_OVERLAP_WORDS]; /**< by a hash of the address */
    uint64_t newest[PLAN_OVERLAP_LEVELS];                  /**< the last ticket of a level */
    uint64_t bucket[PLAN_OVERLAP_BUCKETS];
    struct plan_overlap_entry entry[PLAN_OVERLAP_ENTRIES];
    uint64_t count[PLAN_COUNTS]
                  [PLAN_OVERLAP_ENTRIES]; /**< the last piece of an entry on lane k was the count-th there */
    /* Ops that did not fit: one range around all of them. */
    uint64_t lost_open; /**< not posted completely */
    bool lost;          /**< the fields below hold */
    uint8_t fresh;      /**< what an op is that goes the short way: OPEN, or with one lane BOUND to that */
    uint64_t lost_first, lost_last;
    uint64_t lost_count[PLAN_COUNTS];
};

/**
 * What a put to [addr, addr + len), len >= 1, must do because of ops accepted before ticket `before` (table->head for
 * one that is not added yet). flushed[PLAN_COUNTS]: UINT64_MAX for a dead lane, whose writes will not come any more.
 * FOLLOW sets *lane, else it is untouched. What it overlaps only counts where it is not flushed; an op that is neither posted
 * completely nor bound to a lane, or lies on several lanes or on PLAN_MESSAGE, makes it GATE; so may ops that did not fit in. Never NONE where
 * there is an overlap.
 */
enum plan_overlap_answer plan_overlap_check(const struct plan_overlap *table, const uint64_t *flushed, uint64_t before,
                                            uint64_t addr, uint64_t len, unsigned *lane);

/** An op on [addr, addr + len), len >= 1, was accepted, nothing of it posted. Its ticket; PLAN_OVERLAP_LOST: no place. */
uint64_t plan_overlap_add(struct plan_overlap *table, uint64_t addr, uint64_t len);

/** plan_overlap_check() and plan_overlap_add() in one, by the short way: where the op goes on at the end of the run that grew
 *  last and lies outside of all others, true and its ticket. False: ask them. */
bool plan_overlap_append(struct plan_overlap *table, uint64_t addr, uint64_t len, uint64_t *ticket);

/** The same of an op that goes on elsewhere, or begins something: true and its ticket where it lies outside of all runs and words, and
 *  they are all that there is. */
bool plan_overlap_apart(struct plan_overlap *table, uint64_t addr, uint64_t len, uint64_t *ticket);

/** An op that has been added goes whole on this lane, before all that is added later: what overlaps it may follow there although nothing
 *  of it has been posted. Not for word ops, which may wait for others. */
static inline void plan_overlap_bind(struct plan_overlap *table, uint64_t ticket, unsigned lane)
{
    struct plan_overlap_entry *e = &table->entry[ticket % PLAN_OVERLAP_ENTRIES];
    if (ticket != PLAN_OVERLAP_LOST)
        e->state = (struct plan_overlap_state){e->state.run, PLAN_OVERLAP_BOUND, (uint8_t)lane, 0};
}

/** A piece of an op went out as the count-th write of `lane` (or of PLAN_MESSAGE); `last`: its last one. */
void plan_overlap_posted(struct plan_overlap *table, uint64_t ticket, unsigned lane, uint64_t count, bool last);

/** plan_overlap_posted() of an op that is kept exactly and went out whole. */
static inline void plan_overlap_whole(struct plan_overlap *table, uint64_t ticket, unsigned lane, uint64_t count)
{
    struct plan_overlap_entry *e = &table->entry[ticket % PLAN_OVERLAP_ENTRIES];
    e->count = count;
    e->state = (struct plan_overlap_state){e->state.run, PLAN_OVERLAP_WHOLE, (uint8_t)lane, 0};
}

/** No (further) piece of an op will be posted: it has failed, or the last one was not called so. Once an op. */
void plan_overlap_all_posted(struct plan_overlap *table, uint64_t ticket);

/** Forgets what is flushed, from the oldest on, up to the first that is not. */
void plan_overlap_trim(struct plan_overlap *table, const uint64_t *flushed);

/** Whether n more ops will be kept exactly. Callers that ask never meet PLAN_OVERLAP_LOST. */
static inline bool plan_overlap_room(const struct plan_overlap *table, uint32_t n)
{
    return table->head - table->tail + n <= PLAN_OVERLAP_ENTRIES;
}

/** More than half used: the caller should flush. */
static inline bool plan_overlap_full(const struct plan_overlap *table)
{
    return table->head - table->tail > PLAN_OVERLAP_ENTRIES / 2;
}

/** More than seven eighths used, or something did not fit: it should flush now. */
static inline bool plan_overlap_filled(const struct plan_overlap *table)
{
    return table->head - table->tail > PLAN_OVERLAP_ENTRIES / 8 * 7 || table->lost;
}

#endif
