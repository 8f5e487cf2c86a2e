/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_pmix.h - what a job of processes needs of its launcher: who it is, and blobs that all can read. live_pmix.c answers by
 * PMIx; live_pmix_none.c is built in its place where there is no libpmix.
 */
#ifndef LIVE_PMIX_H
#define LIVE_PMIX_H

#include <stddef.h>

/** A process's seat at its launcher. One thread. */
struct live_pmix;

/** Meets the launcher. 0; -ENOTSUP where the program was built without PMIx, -ENOTCONN where nobody answers, with a reason. */
int live_pmix_open(struct live_pmix **out, char *why, size_t why_len);
/** Leaves the launcher in peace. NULL is allowed. */
void live_pmix_close(struct live_pmix *p);
/** The own number among the processes of the job, and how many there are. */
int live_pmix_rank(const struct live_pmix *p);
int live_pmix_size(const struct live_pmix *p);
/** Makes bytes known to all once a fence has ended; each time they are other ones. 0 or a negative errno. */
int live_pmix_share(struct live_pmix *p, const void *bytes, size_t len);
/** What a process has shared before the last fence. 0; -EPROTO where that is not of this length; or a negative errno. */
int live_pmix_fetch(struct live_pmix *p, int rank, void *out, size_t len);
/** Begins a meeting of all processes. 0 or a negative errno. */
int live_pmix_fence(struct live_pmix *p);
/** Whether the meeting is over: 1; 0: not yet; or a negative errno. */
int live_pmix_fenced(const struct live_pmix *p);
/** Whether the launcher has told that the job is no longer whole: what it said, or NULL. Static string. */
const char *live_pmix_lost(const struct live_pmix *p);
/** Asks the launcher to end the whole job. */
void live_pmix_abort(struct live_pmix *p, const char *why);

#endif
