/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_stretch.h - how much wider than a round trip's worth a lane's window should be: found out by trying.
 * Plain numbers in and out; no clock. Part of struct plan_rate. next: plan_pace()
 *
 * A window made from the smallest round trip is too small where pieces take longer than that: where the other side copies
 * them, or the thread that looks for completions comes late. Then the window, not the wire, sets the rate, the estimate
 * follows it down, and the next window is smaller still. From outside, a slow wire looks the same. What tells them apart:
 * with twice the window a slow wire is as slow as before, and the other is faster. Nothing needs to be tried where a look finds
 * that all of a full window has been acknowledged: then the lane has stood still until the look.
 */
#ifndef PLAN_STRETCH_H
#define PLAN_STRETCH_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_STRETCH_MAX 4u /* windows of up to 16 times */

struct plan_stretch {
    uint8_t shift;   /**< what plan_pace() is to use: the window is 2^shift times as wide */
    int8_t step;     /**< being tried: 1 wider, -1 narrower, 0 nothing */
    bool narrower;   /**< what is to be tried next, where both make sense */
    uint8_t count;   /**< measurements of this round */
    uint8_t dry;     /**< looks of this round that found the lane dry */
    uint8_t rest;    /**< rounds to wait until something is tried again */
    uint32_t mib_ns; /**< in the round before what is being tried: ns a MiB */
    uint64_t ns;     /**< of the measurements of this round */
    uint64_t bytes;
    uint64_t skip; /**< bytes whose acknowledgements still show the window before */
};

/**
 * A measurement during which pacing held the lane throughout: `bytes` were acknowledged within ns; `backlog` are still on
 * their way. Sixteen are a round, or more where those are not twice the backlog. A lane slower than line_mib_ns (ns a
 * MiB) tries twice the window for a round and keeps it if that is faster by a quarter; now and then a wide one tries half,
 * and keeps that if it is not slower by more than a sixteenth. After a refusal it rests for sixteen rounds. True where
 * shift changed.
 */
bool plan_stretch_take(struct plan_stretch *s, uint64_t ns, uint64_t bytes, uint64_t backlog, uint32_t line_mib_ns);

/**
 * A look found that all of a full window had been acknowledged. The second time within a round the window becomes twice as
 * wide, whatever that gains, and nothing is tried for sixteen rounds. True where shift changed.
 */
bool plan_stretch_dry(struct plan_stretch *s);

/** Time has passed in which nothing was measured, so long that what was known is worth nothing: as at the start. True where
 *  shift changed. */
bool plan_stretch_forget(struct plan_stretch *s);

#endif
