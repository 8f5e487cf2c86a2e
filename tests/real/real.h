/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.h - runs a program in several processes of an emulated fabric in real time, and gives them a bootstrap in shared
 * memory. A failed check is noted there and the program goes on or returns. Whoever does not end in time is killed.
 *
 * With BRAID_TEST_MEET=DIR and BRAID_TEST_RANK=N only process N of each run is started, and meets the others, which are on other machines,
 * through files in DIR, an empty folder that all of them share.
 */
#ifndef REAL_H
#define REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { REAL_PROCS = 8, REAL_RESULTS = 16, REAL_LIMIT_S = 100 };

struct real_page;

/** A run of n processes; process i is on host i / per_host (0: one a host). Fill in the first part. */
struct real {
    const char *spec; /* NULL: no emulated fabric; ports are given (given.h) */
    int n, per_host;
    int (*fn)(struct real *r, int me); /* in each process; 0, or anything else for failure */
    void *arg;
    int dies; /* process that is expected to die by a signal; -1: none */
    /* results */
    struct real_page *page;
    pid_t pid[REAL_PROCS];
    char name[40];
    int number; /* of the run */
};

/** Runs it and asserts (cmocka) that all ended well and that nothing is left in shared memory. */
void real_run_ok(struct real *r);
/** Notes a failure, the first one's text is shown. Returns ok. */
bool real_check(struct real *r, int me, bool ok, const char *what);
/** Blocks until all n processes have come. 0, or -ETIMEDOUT. */
int real_barrier(struct real *r);
/** Block i of send goes to process i. */
int real_alltoall(struct real *r, int me, const void *send, void *recv, size_t bytes_each);
/** The same through files, real_meet.c; run: which of the program's runs, from 0. */
int real_meet_alltoall(int run, int me, int n, const void *send, void *recv, size_t bytes_each);
/** The process that this machine has of each run, or -1: all of them. */
int real_meet_rank(void);
/** Words that all processes and the caller of real_run_ok() see; zero at first. Access them with __atomic builtins. */
uint64_t *real_result(struct real *r, int i);
/** CLOCK_MONOTONIC, ns. */
uint64_t real_now(void);

#endif
