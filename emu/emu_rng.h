/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_rng.h - the fabric's random numbers: splitmix64, one state per fabric, so that a seed decides a run.
 * Not for secrets. Used by the emulator only.
 */
#ifndef EMU_RNG_H
#define EMU_RNG_H

#include <stdint.h>

struct emu_rng {
    uint64_t state;
};

/** The next 64 random bits. */
static inline uint64_t emu_rng_next(struct emu_rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** Uniform in [0, n); 0 where n is 0. The bias for n far below 2^64 does not matter to a simulation. */
static inline uint64_t emu_rng_below(struct emu_rng *r, uint64_t n)
{
    return n ? emu_rng_next(r) % n : 0;
}

/** Uniform in [0, 1). */
static inline double emu_rng_unit(struct emu_rng *r)
{
    return (double)(emu_rng_next(r) >> 11) * 0x1p-53;
}

#endif
