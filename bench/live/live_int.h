/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_int.h - what the files of bench/live share: the job.
 */
#ifndef LIVE_INT_H
#define LIVE_INT_H

#include "live.h"
#include "live_pmix.h"

struct live {
    struct live_pmix *pmix; /* owned */
    int n, pe, local, locals, hosts;
    bool uneven, emulated;
    int *rank, *host_of;     /* of each PE: the launcher's number, and its host's; owned */
    char (*host)[LIVE_HOST]; /* of each PE; owned */
    uint64_t patience_ns, met_ns;
    long nap_ns;
    char fabric[1024];
    char why[256];
};

/** CLOCK_MONOTONIC, ns. */
uint64_t live_now(void);
/** Notes what went wrong first. Returns rc. */
int live_fail(struct live *l, int rc, const char *what);

#endif
