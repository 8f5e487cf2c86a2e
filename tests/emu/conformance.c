/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance.c - runs the list of checks on two ports and reports in TAP.
 *
 * May not know any check or fabric. Called by the main programs. next: conformance_object.c, the list's first part.
 */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const struct conformance_check *const parts[] = {
    conformance_object_checks, conformance_state_checks, conformance_data_checks,  conformance_queue_checks,
    conformance_event_checks,  conformance_srq_checks,   conformance_psn_checks,   conformance_atomic_checks,
    conformance_access_checks, conformance_retry_checks, conformance_mixed_checks, conformance_ud_checks,
};

enum { PARTS = sizeof parts / sizeof parts[0] };

struct score {
    int number, passed, failed, deviations, skipped;
};

static bool chosen(const struct conformance_env *env, const char *name)
{
    for (const char *only = env->only; only && *only;) {
        size_t n = strcspn(only, ",");
        if (n && !strncmp(name, only, n))
            return true;
        only += n + (only[n] == ',');
    }
    return !env->only;
}

void conformance_list(void)
{
    for (int i = 0; i < PARTS; i++)
        for (const struct conformance_check *k = parts[i]; k->name; k++)
            puts(k->name);
}

static int count(const struct conformance_env *env)
{
    int n = 0;
    for (int i = 0; i < PARTS; i++)
        for (const struct conformance_check *k = parts[i]; k->name; k++)
            n += chosen(env, k->name);
    return n;
}

static struct ibv_context *open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = NULL;
    for (int i = 0; list && list[i] && !ctx; i++)
        if (!strcmp(ibv_get_device_name(list[i]), name))
            ctx = ibv_open_device(list[i]);
    if (list)
        ibv_free_device_list(list);
    return ctx;
}

static int refuse(const struct conformance_env *env, int side, const char *what)
{
    fprintf(stderr, "conformance: %s:%d %s: %s\n", env->device[side], env->port[side], what, strerror(errno));
    return -1;
}

static int open_side(struct conformance *run, int side)
{
    const struct conformance_env *env = run->env;
    run->ctx[side] = open_device(env->device[side]);
    if (!run->ctx[side])
        return refuse(env, side, "cannot be opened: expected the name of an RDMA device (see ibv_devices)");
    if (ibv_query_device(run->ctx[side], &run->device[side]))
        return refuse(env, side, "ibv_query_device");
    if (ibv_query_port(run->ctx[side], (uint8_t)env->port[side], &run->port[side]))
        return refuse(env, side, "ibv_query_port");
    if (run->port[side].state != IBV_PORT_ACTIVE) {
        errno = ENETDOWN;
        return refuse(env, side, "is not active");
    }
    if (ibv_query_gid(run->ctx[side], (uint8_t)env->port[side], env->gid_index, &run->gid[side]))
        return refuse(env, side, "has no GID of that index");
    /* Waits have deadlines, so no read of an event may block. */
    int fd = run->ctx[side]->async_fd;
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        return refuse(env, side, "asynchronous event descriptor");
    return 0;
}

/* soft-RoCE reports RXE_VENDOR_ID, which is no IEEE number. */
static const char *find_fabric(const struct conformance *run)
{
    if (run->env->fabric)
        return run->env->fabric;
    return run->device[A].vendor_id == 0xffffff ? "rxe" : "none";
}

static int open_run(struct conformance *run)
{
    if (open_side(run, A) || open_side(run, B))
        return -1;
    run->path_mtu =
        run->port[A].active_mtu < run->port[B].active_mtu ? run->port[A].active_mtu : run->port[B].active_mtu;
    run->mtu = 128u << run->path_mtu;
    run->fabric = find_fabric(run);
    return 0;
}

static void close_run(struct conformance *run)
{
    for (int side = 0; side < 2; side++)
        if (run->ctx[side])
            ibv_close_device(run->ctx[side]);
}

static void print_problems(const struct check *c)
{
    for (const char *line = c->said; *line;) {
        size_t n = strcspn(line, "\n");
        printf("# %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void report(struct score *score, const struct conformance_check *k, const struct check *c,
                   const struct conformance_known *known)
{
    score->number++;
    printf("%s %d - %s", c->problems ? "not ok" : "ok", score->number, k->name);
    if (c->skip[0]) {
        printf(" # SKIP %s\n", c->skip);
        score->skipped++;
    } else if (known) {
        printf(" # TODO deviation: %s\n", known->reason);
        score->deviations += c->problems != 0;
        score->failed += c->problems == 0;
    } else {
        printf("\n");
        score->passed += c->problems == 0;
        score->failed += c->problems != 0;
    }
    print_problems(c);
    if (known && !c->problems && !c->skip[0])
        printf("# passes, though conformance_known.c lists it for %s: remove it there\n", known->fabric);
    fflush(stdout);
}

/* FNV-1a: a check's data depends on its name and the seed, not on which others ran before it. */
static uint64_t seed_of(uint64_t seed, const char *name)
{
    uint64_t h = 0xcbf29ce484222325ull ^ seed;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
    return h;
}

static void run_check(struct conformance *run, const struct conformance_check *k, struct score *score)
{
    const struct conformance_known *known = conformance_known_find(run->fabric, k->name);
    struct check c = {
        .run = run, .random = seed_of(run->env->seed, k->name), .patience_ms = known ? KNOWN_MS : 1000 * PATIENCE_S};
    if (known && known->skip) {
        check_skip(&c, "deviation: %s", known->reason);
    } else {
        check_events_drop(&c);
        k->fn(&c, k->arg);
        check_release_all(&c);
    }
    if (c.skip[0])
        c.problems = 0;
    report(score, k, &c, known);
}

int conformance_run(const struct conformance_env *env)
{
    struct conformance run = {.env = env};
    struct score score = {0};
    if (!count(env)) {
        fprintf(stderr, "conformance: no check's name begins with '%s' (see --list)\n", env->only);
        return 2;
    }
    if (open_run(&run)) {
        close_run(&run);
        return 2;
    }
    printf("1..%d\n# A %s:%d, B %s:%d, GID index %d, path MTU %u, known deviations of: %s, seed %llu\n", count(env),
           env->device[A], env->port[A], env->device[B], env->port[B], env->gid_index, run.mtu, run.fabric,
           (unsigned long long)env->seed);
    for (int i = 0; i < PARTS; i++)
        for (const struct conformance_check *k = parts[i]; k->name; k++)
            if (chosen(env, k->name))
                run_check(&run, k, &score);
    close_run(&run);
    printf("# %d passed, %d failed, %d known deviations, %d skipped\n", score.passed, score.failed, score.deviations,
           score.skipped);
    return score.failed ? 1 : 0;
}
