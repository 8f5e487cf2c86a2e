/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ports.c - which ports a PE opens, and in which planes they are. Where peers shall not reach a home rail, PEs open
 * different halves of their ports. Called by bench_run.c and bench_braid.c; next: emu_sim.h.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/** Which of its ports a PE opens. */
enum bench_half { BENCH_ALL, BENCH_NEAR, BENCH_FAR };

/**
 * The target opens all its ports. Most PEs open the first half, so the target's home is there; those that shall not reach
 * it open the second half. Of atomics these are the last ones that take part, of streams it is the sender.
 */
static enum bench_half bench_half(const struct bench_run *run, int pe)
{
    const struct bench_spec *s = run->spec;
    int last = s->all ? run->n_pes - 1 : run->peers;

    if (!s->unreachable)
        return BENCH_ALL;
    if (s->pattern == BENCH_ATOMIC) {
        if (pe == 0)
            return BENCH_ALL;
        return pe <= last && pe > last - s->unreachable ? BENCH_FAR : BENCH_NEAR;
    }
    if (pe == 0)
        return BENCH_FAR;
    return bench_incoming_count(run, pe) ? BENCH_ALL : BENCH_NEAR;
}

/** Cuts "a,b,c,d" down to [from, to), in place. */
static void bench_list_cut(char *list, int from, int to)
{
    char *start = list, *end;

    for (; from > 0 && start; from--, to--) {
        start = strchr(start, ',');
        start = start ? start + 1 : NULL;
    }
    if (!start) {
        list[0] = '\0';
        return;
    }
    end = start - 1;
    for (; to > 0 && end; to--)
        end = strchr(end + 1, ',');
    if (end)
        *end = '\0';
    memmove(list, start, strlen(start) + 1);
}

static int bench_list_count(const char *list)
{
    int n = list[0] != '\0';

    for (; *list; list++)
        n += *list == ',';
    return n;
}

/** Whose ports a PE opens: a stock transport takes the first port it finds near its GPU, and so does its neighbour's. */
static int bench_ports_owner(const struct bench_run *run, int pe)
{
    return run->spec->stock && run->shared ? pe - pe % run->per_node % 2 : pe;
}

int bench_ports(const struct bench_run *run, int pe, char *ports, char *planes, size_t len)
{
    int owner = bench_ports_owner(run, pe), n, half;
    int rc = run->emu->pe_ports(run->sim, owner, ports, len);

    if (rc == 0)
        rc = run->emu->pe_planes(run->sim, owner, planes, len);
    if (rc)
        return rc;
    n = bench_list_count(ports);
    n = run->spec->stock ? 1 : run->spec->ports && run->spec->ports < n ? run->spec->ports : n;
    half = n / 2;
    switch (bench_half(run, pe)) {
    case BENCH_ALL:
        bench_list_cut(ports, 0, n);
        bench_list_cut(planes, 0, n);
        break;
    case BENCH_NEAR:
        bench_list_cut(ports, 0, half);
        bench_list_cut(planes, 0, half);
        break;
    case BENCH_FAR:
        bench_list_cut(ports, half, n);
        bench_list_cut(planes, half, n);
        break;
    }
    return ports[0] ? 0 : -ENODEV;
}

/** Whether halves can keep peers from a home rail. */
static int bench_ports_check(const struct bench_run *run, const char *planes, char *why, size_t why_len)
{
    const struct bench_spec *s = run->spec;
    int others = run->n_pes - run->peers - 1;

    if (bench_list_count(planes) < 2 || run->rails < 2) {
        snprintf(why, why_len,
                 "bench: peers that do not reach the home rail: seen ports that all reach each other or only "
                 "one, expected topo=rail in the fabric and two ports at least");
        return -EINVAL;
    }
    if (s->pattern == BENCH_ATOMIC && 2 * s->unreachable < (s->all ? run->n_pes : run->peers))
        return 0;
    if (s->pattern != BENCH_ATOMIC && !s->all && s->unreachable == run->peers && others >= 2)
        return 0;
    snprintf(why, why_len, "bench: %d peers that do not reach the home rail: expected %s", s->unreachable,
             s->pattern == BENCH_ATOMIC ? "fewer than half of those that do atomics"
                                        : "as many as there are peers, a single sender, and two more PEs");
    return -EINVAL;
}

int bench_ports_count(struct bench_run *run, char *why, size_t why_len)
{
    char ports[1024], planes[256];
    int n, rc = run->emu->pe_ports(run->sim, 0, ports, sizeof(ports));

    if (rc == 0)
        rc = run->emu->pe_planes(run->sim, 0, planes, sizeof(planes));
    if (rc)
        return rc;
    n = bench_list_count(ports);
    if (run->spec->ports < 0 || run->spec->ports > n) {
        snprintf(why, why_len, "bench: %d ports: expected at most the %d of a GPU in this fabric", run->spec->ports, n);
        return -EINVAL;
    }
    run->rails = run->spec->stock ? 1 : run->spec->ports ? run->spec->ports : n;
    if (!run->spec->unreachable)
        return 0;
    rc = bench_ports_check(run, planes, why, why_len);
    if (run->spec->pattern != BENCH_ATOMIC)
        run->rails -= run->rails / 2; /* the sender's */
    return rc;
}
