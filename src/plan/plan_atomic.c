/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_atomic.c - who executes an atomic: the home rail's device, or the target's progress.
 * May not know how either is asked. Called by src/api for each atomic.
 */
#include "plan.h"

enum plan_atomic plan_atomic(enum plan_atomic_op op, unsigned bytes, bool home_reached)
{
    /* Compared as unsigned: the caller may have cast a number that no name stands for. */
    if ((unsigned)op >= PLAN_ATOMIC_OPS || (bytes != 4 && bytes != 8))
        return PLAN_ATOMIC_INVALID;
    /* The first four are what devices know. */
    return bytes == 8 && home_reached && op <= PLAN_ATOMIC_OP_COMPARE_SWAP ? PLAN_ATOMIC_NATIVE : PLAN_ATOMIC_MESSAGE;
}

unsigned plan_atomic_lane(unsigned home, unsigned lanes, unsigned turn, unsigned faults)
{
    return faults & PLAN_FAULT_HOME ? turn % lanes : home;
}

bool plan_atomic_again(unsigned faults)
{
    return faults & PLAN_FAULT_DEDUP;
}
