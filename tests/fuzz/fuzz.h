/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h - what a fuzz target is: one function over bytes, as libFuzzer calls it. It must not crash, leak, hang or
 * break one of the properties that it checks with fuzz_must(). fuzz_replay.c runs the same function without clang.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The target. Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Stops the process, so that the fuzzer keeps the input, where a property does not hold. */
static inline void fuzz_must(int holds, const char *property)
{
    if (!holds) {
        fprintf(stderr, "fuzz: does not hold: %s\n", property);
        abort();
    }
}

/** Whether two objects hold the same bytes, padding included: for outputs that must not have been touched. */
static inline int fuzz_same(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

/** Bytes of the input, taken one by one; zeros past the end. */
struct fuzz_bytes {
    const uint8_t *data;
    size_t left;
};

/** The next n (at most 8) bytes as a number, lowest first. */
static inline uint64_t fuzz_take(struct fuzz_bytes *bytes, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n && bytes->left > 0; i++, bytes->left--)
        value |= (uint64_t)*bytes->data++ << (8 * i);
    return value;
}

#endif
