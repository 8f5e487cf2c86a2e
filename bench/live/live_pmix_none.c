/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_pmix_none.c - the answers of a program that was built without libpmix: there is no job. Called by live_job.c.
 */
#include "live_pmix.h"

#include <errno.h>
#include <stdio.h>

int live_pmix_open(struct live_pmix **out, char *why, size_t why_len)
{
    (void)out;
    snprintf(
        why, why_len,
        "this braid was built without PMIx, by which processes find each other; install libpmix-dev (pmix-devel) and build again");
    return -ENOTSUP;
}

void live_pmix_close(struct live_pmix *p)
{
    (void)p;
}

int live_pmix_rank(const struct live_pmix *p)
{
    (void)p;
    return 0;
}

int live_pmix_size(const struct live_pmix *p)
{
    (void)p;
    return 0;
}

int live_pmix_share(struct live_pmix *p, const void *bytes, size_t len)
{
    (void)p;
    (void)bytes;
    (void)len;
    return -ENOTSUP;
}

int live_pmix_fetch(struct live_pmix *p, int rank, void *out, size_t len)
{
    (void)p;
    (void)rank;
    (void)out;
    (void)len;
    return -ENOTSUP;
}

int live_pmix_fence(struct live_pmix *p)
{
    (void)p;
    return -ENOTSUP;
}

int live_pmix_fenced(const struct live_pmix *p)
{
    (void)p;
    return -ENOTSUP;
}

const char *live_pmix_lost(const struct live_pmix *p)
{
    (void)p;
    return NULL;
}

void live_pmix_abort(struct live_pmix *p, const char *why)
{
    (void)p;
    (void)why;
}
