/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - splitmix64 over a seed. Called by api when a context is opened and lanes are made. */
#include "random.h"

#include <time.h>
#include <sys/random.h>

uint64_t random_init(struct random *random, uint64_t seed)
{
    if (seed == 0 && getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        struct timespec ts;
        clock_gettime(CLOCK_REALTIME, &ts);
        seed = (uint64_t)ts.tv_nsec << 32 ^ (uint64_t)ts.tv_sec ^ (uintptr_t)random;
    }
    random->state = seed;
    return seed;
}

uint64_t random_next(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
