/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_real.c - the same simulations with each PE a process of an emulated fabric in real time: what litmus_run.c asks of the
 * emulator, by fork(2) and the minihost's world of real processes. Seeds decide shapes, but no longer runs.
 * On real ports where they are given (tests/real/given.h): then shapes decide libbraid's options and not the fabric, and no emulator is
 * loaded.
 * Called by litmus.c; next: host_world_real.c, and the emulator by its environment.
 */
#include "host_mini.h"
#include "given.h"
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
static int litmus_real_pes, litmus_real_ports; /* on ports that are given; 0: on the emulator */

static uint64_t litmus_real_now(void)
{
    return litmus_real_world.now(litmus_real_world.arg);
}

static int litmus_real_wait(uint64_t deadline)
{
    if (litmus_real_now() < deadline) {
        if (litmus_real_ports) /* a software device of the kernel works on the CPUs that polls would burn */
            usleep(20);
        else
            sched_yield();
    }
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

/** The number behind a key of a fabric; 0: it is not there. */
static int litmus_real_number(const char *fabric, const char *key)
{
    const char *at = strstr(fabric, key);

    return at ? (int)strtol(at + strlen(key), NULL, 10) : 0;
}

/** The same for ports that are given: the shape says how many. */
static int litmus_real_open_given(const struct emu_sim_options *o, struct emu_sim **out, char *why, size_t why_len)
{
    *out = NULL;
    litmus_real_pes = litmus_real_number(o->fabric, "nodes=");
    litmus_real_ports = litmus_real_number(o->fabric, ",ports=");
    if (litmus_real_pes > 0 && litmus_real_ports > 0)
        return 0;
    snprintf(why, why_len, "no nodes and ports in %s", o->fabric);
    return -EINVAL;
}

static int litmus_real_pe_count_given(const struct emu_sim *sim)
{
    (void)sim;
    return litmus_real_pes;
}

static int litmus_real_pe_ports_given(const struct emu_sim *sim, int pe, char *out, size_t len)
{
    int n = given_ports(pe, litmus_real_ports, out, len);

    (void)sim;
    return n < 0 ? n : 0;
}

static int litmus_real_pe_planes_given(const struct emu_sim *sim, int pe, char *out, size_t len)
{
    (void)sim;
    (void)pe;
    given_planes(litmus_real_ports, out, len);
    return 0;
}

static void litmus_real_close_given(struct emu_sim *sim)
{
    (void)sim;
}

/** In the child, for good. */
static void litmus_real_child(int pe, emu_sim_main_fn fn, void *arg, const char *name)
{
    char host[16];

    if (!litmus_real_ports) {
        snprintf(host, sizeof(host), "h%d", pe);
        setenv("BRAID_EMU", litmus_real_fabric, 1);
        setenv("BRAID_EMU_NAME", name, 1);
        setenv("BRAID_EMU_HOST", host, 1);
    }
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
    int n = litmus_real_calls.pe_count(s), rc;
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

static void litmus_real_clock(struct emu_sim_api *calls)
{
    calls->run = litmus_real_run;
    calls->now = litmus_real_now;
    calls->wait = litmus_real_wait;
    calls->charge = litmus_real_charge;
    calls->shift = litmus_real_shift;
    calls->barrier = litmus_real_barrier;
    calls->alltoall = litmus_real_alltoall;
    calls->end_time = litmus_real_nothing;
    calls->trace_hash = litmus_real_nothing;
}

const struct emu_sim_api *litmus_real_api(const struct emu_sim_api *emu)
{
    litmus_real_emu = emu;
    litmus_real_calls = *emu;
    litmus_real_calls.open = litmus_real_open;
    litmus_real_clock(&litmus_real_calls);
    return &litmus_real_calls;
}

const struct emu_sim_api *litmus_real_api_given(void)
{
    litmus_real_calls = (struct emu_sim_api){
        .version = EMU_SIM_VERSION,
        .size = sizeof(litmus_real_calls),
        .open = litmus_real_open_given,
        .close = litmus_real_close_given,
        .pe_count = litmus_real_pe_count_given,
        .pe_ports = litmus_real_pe_ports_given,
        .pe_planes = litmus_real_pe_planes_given,
    };
    litmus_real_clock(&litmus_real_calls);
    return &litmus_real_calls;
}
