/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_real.c - the same simulations with each PE a process of an emulated fabric in real time: what litmus_run.c asks of the
 * emulator, by fork(2), the machine's clock and a page in shared memory. Seeds decide shapes, but no longer runs.
 * Called by litmus.c; next: the emulator, by its environment.
 */
#include "litmus.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LITMUS_REAL_LIMIT_S = 90, LITMUS_REAL_AREA = 4 << 20 };

/** Where the processes of a simulation meet, outside the fabric. */
struct litmus_real_page {
    uint32_t arrived, round;
    unsigned char area[LITMUS_REAL_AREA];
};

static struct emu_sim_api litmus_real_calls;
static const struct emu_sim_api *litmus_real_emu;
static struct litmus_real_page *litmus_real_page;
static char litmus_real_fabric[512];
static int litmus_real_pes, litmus_real_me;

static uint64_t litmus_real_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int litmus_real_wait(uint64_t deadline)
{
    if (litmus_real_now() < deadline)
        sched_yield();
    return 0;
}

static void litmus_real_charge(uint64_t ns)
{
    (void)ns;
}

static uint64_t litmus_real_shift(int pe)
{
    (void)pe;
    return 0;
}

static int litmus_real_barrier(void)
{
    struct litmus_real_page *page = litmus_real_page;
    uint32_t round = __atomic_load_n(&page->round, __ATOMIC_SEQ_CST);

    if (__atomic_add_fetch(&page->arrived, 1, __ATOMIC_SEQ_CST) == (uint32_t)litmus_real_pes) {
        __atomic_store_n(&page->arrived, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&page->round, round + 1, __ATOMIC_SEQ_CST);
    }
    while (__atomic_load_n(&page->round, __ATOMIC_SEQ_CST) == round) /* who waits for ever is killed with all others */
        usleep(50);
    return 0;
}

static int litmus_real_alltoall(const void *send, void *recv, size_t bytes_each)
{
    size_t row = bytes_each * (size_t)litmus_real_pes;

    if (row * (size_t)litmus_real_pes > LITMUS_REAL_AREA)
        return -E2BIG;
    memcpy(litmus_real_page->area + row * (size_t)litmus_real_me, send, row);
    litmus_real_barrier();
    for (size_t from = 0; from < (size_t)litmus_real_pes; from++)
        memcpy((char *)recv + from * bytes_each,
               litmus_real_page->area + row * from + (size_t)litmus_real_me * bytes_each, bytes_each);
    return litmus_real_barrier();
}

/** A cluster in virtual time that never runs: it knows which ports a PE has. */
static int litmus_real_open(const struct emu_sim_options *o, struct emu_sim **out, char *why, size_t why_len)
{
    snprintf(litmus_real_fabric, sizeof(litmus_real_fabric), "%s", o->fabric);
    return litmus_real_emu->open(o, out, why, why_len);
}

/** In the child, for good. */
static void litmus_real_child(int pe, emu_sim_main_fn fn, void *arg, const char *name)
{
    char host[16];

    litmus_real_me = pe;
    snprintf(host, sizeof(host), "h%d", pe);
    setenv("BRAID_EMU", litmus_real_fabric, 1);
    setenv("BRAID_EMU_NAME", name, 1);
    setenv("BRAID_EMU_HOST", host, 1);
    exit(fn(arg, pe) ? 1 : 0);
}

/** Waits for all; those that do not end in time, or wait for one that died, are killed. 0 or -errno. */
static int litmus_real_end(pid_t *pid, char *why, size_t why_len)
{
    uint64_t end = litmus_real_now() + LITMUS_REAL_LIMIT_S * UINT64_C(1000000000);
    int left = litmus_real_pes, rc = 0, status;

    while (left > 0) {
        for (int i = 0; i < litmus_real_pes; i++) {
            if (pid[i] <= 0 || waitpid(pid[i], &status, WNOHANG) != pid[i])
                continue;
            pid[i] = 0;
            left--;
            if (rc == 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
                rc = -ECHILD;
                snprintf(why, why_len, "PE %d ended by %s %d", i, WIFSIGNALED(status) ? "signal" : "status",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
                end = litmus_real_now() + UINT64_C(2000000000); /* the others may still say why */
            }
        }
        for (int i = 0; i < litmus_real_pes && litmus_real_now() > end; i++) {
            if (rc == 0) {
                snprintf(why, why_len, "PE %d was not done after %d s", i, LITMUS_REAL_LIMIT_S);
                rc = -ETIME;
            }
            if (pid[i] > 0)
                kill(pid[i], SIGKILL);
        }
        usleep(500);
    }
    return rc;
}

static int litmus_real_run(struct emu_sim *s, emu_sim_main_fn fn, void *arg, char *why, size_t why_len)
{
    static unsigned runs;
    struct litmus_real_page *page;
    pid_t pid[LITMUS_PES] = {0};
    char name[40];
    int rc;

    litmus_real_pes = litmus_real_emu->pe_count(s);
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || litmus_real_pes > LITMUS_PES)
        return -ENOMEM;
    litmus_real_page = page;
    snprintf(name, sizeof(name), "litmus-%d-%u", (int)getpid(), runs++);
    fflush(NULL);
    for (int i = 0; i < litmus_real_pes; i++) {
        pid[i] = fork();
        if (pid[i] == 0)
            litmus_real_child(i, fn, arg, name);
    }
    rc = litmus_real_end(pid, why, why_len);
    munmap(page, sizeof(*page));
    return rc;
}

static uint64_t litmus_real_nothing(const struct emu_sim *s)
{
    (void)s;
    return 0;
}

const struct emu_sim_api *litmus_real_api(const struct emu_sim_api *emu)
{
    litmus_real_emu = emu;
    litmus_real_calls = *emu;
    litmus_real_calls.open = litmus_real_open;
    litmus_real_calls.run = litmus_real_run;
    litmus_real_calls.now = litmus_real_now;
    litmus_real_calls.wait = litmus_real_wait;
    litmus_real_calls.charge = litmus_real_charge;
    litmus_real_calls.shift = litmus_real_shift;
    litmus_real_calls.barrier = litmus_real_barrier;
    litmus_real_calls.alltoall = litmus_real_alltoall;
    litmus_real_calls.end_time = litmus_real_nothing;
    litmus_real_calls.trace_hash = litmus_real_nothing;
    return &litmus_real_calls;
}
