/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the clock of a context, and how it waits: the caller's, or the machine's. */
#ifndef CLOCK_H
#define CLOCK_H

#include "common.h"

/** Embedded in its owner. Zeroed: CLOCK_MONOTONIC, and a wait that pauses for a moment. */
struct clock {
    uint64_t (*now)(void *arg);
    int (*wait)(void *arg, uint64_t deadline_ns);
    void *arg;
};

/** Nanoseconds of this clock. */
uint64_t clock_now(const struct clock *clock);

/** Waits a moment, or until something can have changed; not past deadline_ns (UINT64_MAX: none) where the caller's
 *  wait knows how to sleep. 0, or the caller's negative errno. No lock may be held. */
int clock_wait(const struct clock *clock, uint64_t deadline_ns) ATTR_CHECK_RESULT;

/** Leaves the core to the other hyperthread for a moment: in a loop that spins. */
static inline void clock_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

#endif
