/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_home.c - the one rail through which atomics on a PE's memory are executed.
 * Only the owner calls it and announces the answer: peers never compute it, so that it may change. From api_peer.c.
 */
#include "plan.h"

unsigned plan_home(unsigned pe, unsigned rails)
{
    return pe % rails;
}
