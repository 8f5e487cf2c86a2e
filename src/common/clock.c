/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - time and waiting, by the caller's callbacks where given. Called by api's blocking loops. */
#include "clock.h"

#include <errno.h>
#include <time.h>

uint64_t clock_now(const struct clock *clock)
{
    if (clock->now)
        return clock->now(clock->arg);
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with this clock and a valid pointer */
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int clock_wait(const struct clock *clock, uint64_t deadline_ns)
{
    if (clock->wait)
        return clock->wait(clock->arg, deadline_ns);
    clock_pause();
    return 0;
}
