/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_home.c - the one rail through which atomics on a PE's memory are executed.
 * Only the owner calls it and announces the answer: peers never compute it, so that it may change. From src/api, at start.
 */
#include "plan.h"

unsigned plan_home(const struct plan_home_in *in)
{
    unsigned best[PLAN_MAX_RAILS], count = 0, most = 0;
    if (in->rails < 1 || in->rails > PLAN_MAX_RAILS)
        return 0;
    for (unsigned i = 0; i < in->rails; i++) {
        if (in->reached_by[i] > most) {
            most = in->reached_by[i];
            count = 0;
        }
        if (in->reached_by[i] == most)
            best[count++] = i;
    }
    return best[in->rank % count];
}
