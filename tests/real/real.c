/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.c - see real.h. Called by the tests beside it; next: fork(2), and the emulator by the environment.
 */
#include "real.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { REAL_AREA = 32 << 20 };

struct real_page {
    uint32_t arrived, round;
    uint32_t failures;
    char failure[400];
    uint64_t result[REAL_RESULTS];
    unsigned char area[REAL_AREA];
};

uint64_t real_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t *real_result(struct real *r, int i)
{
    return &r->page->result[i];
}

bool real_check(struct real *r, int me, bool ok, const char *what)
{
    if (!ok && __atomic_fetch_add(&r->page->failures, 1, __ATOMIC_SEQ_CST) == 0)
        snprintf(r->page->failure, sizeof(r->page->failure), "process %d: %s (errno %d)", me, what, errno);
    return ok;
}

/** Through files: what is exchanged is nothing of importance. */
static int real_meet_barrier(const struct real *r)
{
    char send[REAL_PROCS] = {0}, recv[REAL_PROCS];

    return real_meet_alltoall(r->number, real_meet_rank(), r->n, send, recv, 1);
}

int real_barrier(struct real *r)
{
    uint32_t round = __atomic_load_n(&r->page->round, __ATOMIC_SEQ_CST);
    uint64_t end = real_now() + REAL_LIMIT_S * 900000000ull;

    if (real_meet_rank() >= 0)
        return real_meet_barrier(r);
    if (__atomic_add_fetch(&r->page->arrived, 1, __ATOMIC_SEQ_CST) == (uint32_t)r->n) {
        __atomic_store_n(&r->page->arrived, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&r->page->round, round + 1, __ATOMIC_SEQ_CST);
    }
    while (__atomic_load_n(&r->page->round, __ATOMIC_SEQ_CST) == round) {
        if (real_now() > end)
            return -ETIMEDOUT;
        usleep(50);
    }
    return 0;
}

int real_alltoall(struct real *r, int me, const void *send, void *recv, size_t bytes_each)
{
    size_t row = bytes_each * (size_t)r->n;
    int rc;

    if (real_meet_rank() >= 0)
        return real_meet_alltoall(r->number, me, r->n, send, recv, bytes_each);
    if (row * (size_t)r->n > REAL_AREA)
        return -E2BIG;
    memcpy(r->page->area + row * (size_t)me, send, row);
    rc = real_barrier(r);
    for (size_t from = 0; from < (size_t)r->n; from++)
        memcpy((char *)recv + from * bytes_each, r->page->area + row * from + (size_t)me * bytes_each, bytes_each);
    return rc ? rc : real_barrier(r);
}

/** In the child, for good. */
static void real_child(struct real *r, int me)
{
    char host[16];
    int rc;

    snprintf(host, sizeof(host), "h%d", r->per_host ? me / r->per_host : me);
    if (r->spec) {
        setenv("BRAID_EMU", r->spec, 1);
        setenv("BRAID_EMU_NAME", r->name, 1);
        setenv("BRAID_EMU_HOST", host, 1);
    }
    rc = r->fn(r, me);
    real_check(r, me, rc == 0, "the program failed");
    exit(rc == 0 ? 0 : 1);
}

/** Whether the fabric's object is still there. */
static bool real_left(const struct real *r)
{
    DIR *d = opendir("/dev/shm");
    struct dirent *e;
    bool left = false;

    while (d && (e = readdir(d)))
        left |= strstr(e->d_name, r->name) != NULL;
    if (d)
        closedir(d);
    return left;
}

static void real_wait_all(struct real *r)
{
    uint64_t end = real_now() + REAL_LIMIT_S * 1000000000ull;
    int left = real_meet_rank() < 0 ? r->n : 1;

    while (left > 0) {
        for (int i = 0; i < r->n; i++) {
            int status;

            if (r->pid[i] == 0 || waitpid(r->pid[i], &status, WNOHANG) != r->pid[i])
                continue;
            r->pid[i] = 0;
            left--;
            real_check(r, i, i == r->dies ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0,
                       WIFSIGNALED(status) ? "died by a signal" : "ended badly");
        }
        if (real_now() > end) {
            for (int i = 0; i < r->n; i++) {
                if (r->pid[i])
                    kill(r->pid[i], SIGKILL);
                real_check(r, i, r->pid[i] == 0, "still ran after its time");
            }
            end = UINT64_MAX;
        }
        usleep(1000);
    }
}

void real_run_ok(struct real *r)
{
    static int run;
    char failure[400];
    uint32_t failures;

    r->number = run++;
    snprintf(r->name, sizeof(r->name), "test-%d-%d", (int)getpid(), r->number);
    r->page = mmap(NULL, sizeof(*r->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(r->page != MAP_FAILED);
    fflush(NULL);
    for (int i = 0; i < r->n; i++) {
        if (real_meet_rank() >= 0 && real_meet_rank() != i)
            continue;
        r->pid[i] = fork();
        if (r->pid[i] == 0)
            real_child(r, i);
        assert_true(r->pid[i] > 0);
    }
    real_wait_all(r);
    real_check(r, -1, !real_left(r), "shared memory was left behind");
    failures = r->page->failures;
    snprintf(failure, sizeof(failure), "%s", r->page->failure);
    if (!failures)
        return; /* the page stays for results, until the program ends */
    fail_msg("%u failures, the first: %s", failures, failure);
}
