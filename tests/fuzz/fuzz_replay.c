/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_replay.c - main() for a fuzz target in builds without libFuzzer: the seed files, then seeded mutations of them.
 * So every compiler and sanitizer runs the targets in `make test`. Prints TAP.
 *
 *   replay_NAME [--seed N] [--runs N] FILE...
 */
#include "fuzz.h"

#include <string.h>

enum { REPLAY_MAX = 4096 };

static uint64_t replay_state;

/* splitmix64: the same numbers on every machine. */
static uint64_t replay_random(void)
{
    uint64_t z = (replay_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Runs the target on a copy of exactly size bytes, so that ASan sees a read past the end. */
static void replay_one(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (copy == NULL)
        abort();
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* Changes, cuts, doubles or adds a few bytes; returns the new size. */
static size_t replay_mutate(uint8_t *data, size_t size)
{
    for (unsigned n = 1 + (unsigned)(replay_random() % 4); n > 0; n--) {
        size_t at = size > 0 ? replay_random() % size : 0;
        switch (replay_random() % 5) {
        case 0:
            size = at;
            break;
        case 1:
            if (size > 0)
                data[at] ^= (uint8_t)(1u << (replay_random() % 8));
            break;
        case 2:
            if (size > 0)
                data[at] = (uint8_t)replay_random();
            break;
        case 3:
            if (size < REPLAY_MAX) {
                memmove(data + at + 1, data + at, size - at);
                data[at] = (uint8_t)replay_random();
                size++;
            }
            break;
        default:
            if (size > 0 && size + size - at <= REPLAY_MAX) {
                memcpy(data + size, data + at, size - at);
                size += size - at;
            }
            break;
        }
    }
    return size;
}

/* Reads a file of at most REPLAY_MAX bytes; its size, or -1. */
static long replay_read(const char *path, uint8_t *data)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return -1;
    size_t size = fread(data, 1, REPLAY_MAX, f);
    int bad = ferror(f);
    fclose(f);
    return bad ? -1 : (long)size;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    unsigned long runs = 2000;
    int count = 0;
    static uint8_t data[2 * REPLAY_MAX], base[REPLAY_MAX];
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[++i], NULL, 0);
            continue;
        }
        if (i + 1 < argc && strcmp(argv[i], "--runs") == 0) {
            runs = strtoul(argv[++i], NULL, 0);
            continue;
        }
        long size = replay_read(argv[i], base);
        printf("# %s, seed %llu, %lu mutations\n", argv[i], (unsigned long long)seed, runs);
        fflush(stdout);
        replay_state = seed;
        if (size >= 0)
            replay_one(base, (size_t)size);
        for (unsigned long run = 0; size >= 0 && run < runs; run++) {
            memcpy(data, base, (size_t)size);
            replay_one(data, replay_mutate(data, (size_t)size));
        }
        const char *slash = strrchr(argv[i], '/');
        printf("%s %d - %s\n", size >= 0 ? "ok" : "not ok", ++count, slash ? slash + 1 : argv[i]);
    }
    printf("1..%d\n", count);
    return count == 0;
}
