/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_real.c - the same simulations with each PE a process of an emulated fabric in real time: what litmus_run.c asks of the
 * emulator, by fork(2) and the minihost's world of real processes. Seeds decide shapes, but no longer runs.
 * Called by litmus.c; next: host_world_real.c, and the emulator by its environment.
 */
#include "host_mini.h"
#include "litmus.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LITMUS_REAL_LIMIT_S = 90 };

static struct emu_sim_api litmus_real_calls;
static const struct emu_sim_api *litmus_real_emu;
static struct host_world litmus_real_world; /* where the processes of a simulation meet, outside the fabric */
static char litmus_real_fabric[512];

static uint64_t litmus_real_now(void)
{
    return litmus_real_world.now(litmus_real_world.arg);
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
    return litmus_real_world.barrier(litmus_real_world.arg);
}

static int litmus_real_alltoall(const void *send, void *recv, size_t bytes_each)
{
    return litmus_real_world.alltoall(litmus_real_world.arg, send, recv, bytes_each);
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

    snprintf(host, sizeof(host), "h%d", pe);
    setenv("BRAID_EMU", litmus_real_fabric, 1);
    setenv("BRAID_EMU_NAME", name, 1);
    setenv("BRAID_EMU_HOST", host, 1);
    exit(fn(arg, pe) ? 1 : 0);
}

/** Waits for all n; those that do not end in time, or wait for one that died, are killed. 0 or -errno. */
static int litmus_real_end(pid_t *pid, int n, char *why, size_t why_len)
{
    uint64_t end = litmus_real_now() + LITMUS_REAL_LIMIT_S * UINT64_C(1000000000);
    int left = n, rc = 0, status;

    while (left > 0) {
        for (int i = 0; i < n; i++) {
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
        for (int i = 0; i < n && litmus_real_now() > end; i++) {
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
    int n = litmus_real_emu->pe_count(s), rc;
    struct host_page *page = n <= LITMUS_PES ? host_page_new(n) : NULL;
    pid_t pid[LITMUS_PES] = {0};
    char name[40];

    if (!page)
        return -ENOMEM;
    snprintf(name, sizeof(name), "litmus-%d-%u", (int)getpid(), runs++);
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        host_world_real(&litmus_real_world, page, i, n, 1);
        pid[i] = fork();
        if (pid[i] == 0)
            litmus_real_child(i, fn, arg, name);
    }
    rc = litmus_real_end(pid, n, why, why_len);
    host_page_free(page);
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
