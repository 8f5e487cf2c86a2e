/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real_meet.c - processes of several machines meet through files in a folder that these share. May not know what they exchange. Called by
 * real.c; next: the file system.
 */
#include "real.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int real_meet_rank(void)
{
    const char *rank = getenv("BRAID_TEST_RANK");

    return getenv("BRAID_TEST_MEET") && rank ? (int)strtol(rank, NULL, 10) : -1;
}

static void real_meet_path(char *out, size_t len, int run, int round, int me)
{
    snprintf(out, len, "%s/%d.%d.%d", getenv("BRAID_TEST_MEET"), run, round, me);
}

/** In one go: nobody reads half a file. */
static int real_meet_put(const char *path, const void *bytes, size_t len)
{
    char part[600];
    FILE *f;
    int rc;

    snprintf(part, sizeof(part), "%s.part", path);
    f = fopen(part, "wbe");
    if (!f)
        return -errno;
    rc = fwrite(bytes, 1, len, f) == len ? 0 : -EIO;
    rc |= fclose(f) ? -EIO : 0;
    return rc ? -EIO : rename(part, path) ? -errno : 0;
}

/** len bytes at an offset of a file that comes some time. */
static int real_meet_get(const char *path, size_t at, void *bytes, size_t len)
{
    uint64_t end = real_now() + REAL_LIMIT_S * 900000000ull;
    FILE *f;
    int rc;

    while (!(f = fopen(path, "rbe"))) {
        if (real_now() > end)
            return -ETIMEDOUT;
        usleep(2000);
    }
    rc = fseek(f, (long)at, SEEK_SET) || fread(bytes, 1, len, f) != len ? -EIO : 0;
    fclose(f);
    return rc;
}

int real_meet_alltoall(int run, int me, int n, const void *send, void *recv, size_t bytes_each)
{
    static int round;
    char path[512];
    int rc;

    real_meet_path(path, sizeof(path), run, round, me);
    rc = real_meet_put(path, send, bytes_each * (size_t)n);
    for (int from = 0; rc == 0 && from < n; from++) {
        real_meet_path(path, sizeof(path), run, round, from);
        rc = real_meet_get(path, bytes_each * (size_t)me, (char *)recv + bytes_each * (size_t)from, bytes_each);
    }
    round++;
    return rc;
}
