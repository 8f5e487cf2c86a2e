/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - what the unit tests share: cmocka with the headers that it wants first, reproducible random numbers, and a log
 * that can be looked at.
 */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The next number of a splitmix64 sequence. */
static inline uint64_t unit_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** The seed of this run: UNIT_SEED or 1; printed, so that a failure can be repeated. */
static inline uint64_t unit_seed(void)
{
    const char *text = getenv("UNIT_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 1;
    print_message("# seed %llu (UNIT_SEED)\n", (unsigned long long)seed);
    return seed;
}

#endif
