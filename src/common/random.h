/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - numbers for PSNs and identities: from the system where no seed is given, else reproducible. */
#ifndef RANDOM_H
#define RANDOM_H

#include "common.h"

/** Embedded in its owner. One thread at a time. Not for secrets. */
struct random {
    uint64_t state;
};

/** Starts from seed, or from the system's entropy where it is 0. Returns the seed used. */
uint64_t random_init(struct random *random, uint64_t seed);

/** The next 64 bits (splitmix64). */
uint64_t random_next(struct random *random);

#endif
