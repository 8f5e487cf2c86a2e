/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_pattern.c - the bytes that are sent: each 8-byte word depends on the seed, the put's number and the word's place,
 * so that bytes of another lap, another put or another place are found out. Called by the generators.
 */
#include "bench_int.h"

#include <string.h>

static uint64_t bench_word(uint64_t base, uint64_t i)
{
    uint64_t z = base + i * 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
    return z ^ (z >> 32);
}

static uint64_t bench_base(uint64_t seed, uint64_t number)
{
    return bench_word(bench_word(seed, 1), number + 1);
}

void bench_fill(unsigned char *p, size_t len, uint64_t seed, uint64_t number)
{
    uint64_t base = bench_base(seed, number), w;
    size_t i;

    for (i = 0; i + 8 <= len; i += 8) {
        w = bench_word(base, i);
        memcpy(p + i, &w, 8);
    }
    w = bench_word(base, i);
    memcpy(p + i, &w, len - i);
}

/** Bytes of a word that are not what they should be; the word is known to be wrong. */
static uint64_t bench_wrong_bytes(const unsigned char *p, size_t n, uint64_t w)
{
    unsigned char expected[8];
    uint64_t wrong = 0;

    memcpy(expected, &w, 8);
    for (size_t k = 0; k < n; k++)
        wrong += p[k] != expected[k];
    return wrong;
}

uint64_t bench_differences(const unsigned char *p, size_t len, uint64_t seed, uint64_t number)
{
    uint64_t base = bench_base(seed, number), wrong = 0, seen;
    size_t i;

    for (i = 0; i + 8 <= len; i += 8) { /* as numbers: nearly all are right, and there are many */
        memcpy(&seen, p + i, 8);
        if (seen != bench_word(base, i))
            wrong += bench_wrong_bytes(p + i, 8, bench_word(base, i));
    }
    return wrong + bench_wrong_bytes(p + i, len - i, bench_word(base, i));
}

bool bench_last_there(const unsigned char *p, size_t len, uint64_t seed, uint64_t number)
{
    uint64_t base = bench_base(seed, number), w[2];
    size_t at = (len - 1) / 8 * 8, skip = len - at; /* the pattern's last word, and how many of its bytes there are */
    unsigned char expected[16];

    w[0] = bench_word(base, at - 8 * (at > 0));
    w[1] = bench_word(base, at);
    memcpy(expected, w, sizeof(w));
    return memcmp(p + len - 8, expected + skip, 8) == 0;
}

uint64_t bench_stream_seed(uint64_t seed, int from, int index)
{
    return bench_word(seed, (uint64_t)from * 4096 + (uint64_t)index + 1);
}
