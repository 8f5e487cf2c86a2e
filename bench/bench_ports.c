/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ports.c - which ports a PE opens, and in which planes they are. Where peers shall not reach a home rail, PEs open
 * different ports. Called by bench_run.c and bench_braid.c; next: emu_sim.h.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/**
 * Keeping peers from a home rail, on n ports of which each reaches only its like (topo=rail). The target opens all but the
 * last; most PEs open the first few (near) and the last, so that they choose the target's home among the first; the
 * others (far) open the rest and the last. All meet on the last or on one of their own.
 */
enum bench_side { BENCH_ALL, BENCH_TARGET, BENCH_NEAR, BENCH_FAR };

static enum bench_side bench_side(const struct bench_run *run, int pe)
{
    const struct bench_spec *s = run->spec;
    int last = s->all ? run->n_pes - 1 : run->peers;

    if (!s->unreachable)
        return BENCH_ALL;
    if (s->pattern == BENCH_ATOMIC) { /* the last ones that take part */
        if (pe == 0)
            return BENCH_TARGET;
        return pe <= last && pe > last - s->unreachable ? BENCH_FAR : BENCH_NEAR;
    }
    if (pe == 0) /* the only sender */
        return BENCH_FAR;
    return bench_incoming_count(run, pe) ? BENCH_TARGET : BENCH_NEAR;
}

static bool bench_opens(enum bench_side side, int port, int n)
{
    int near = (n - 1) / 2, last = port == n - 1;

    switch (side) {
    case BENCH_TARGET:
        return !last;
    case BENCH_NEAR:
        return port < near || last;
    case BENCH_FAR:
        return port >= near;
    default:
        return port < n;
    }
}

static int bench_list_count(const char *list)
{
    int n = list[0] != '\0';

    for (; *list; list++)
        n += *list == ',';
    return n;
}

/** Leaves of "a,b,c,d" what this side opens of the first n, in place. */
static void bench_list_cut(char *list, enum bench_side side, int n)
{
    const char *from = list;
    char *to = list;

    for (int i = 0; *from && i < n; i++) {
        size_t len = strcspn(from, ",");

        if (bench_opens(side, i, n)) {
            if (to != list)
                *to++ = ',';
            memmove(to, from, len);
            to += len;
        }
        from += len + (from[len] == ',');
    }
    *to = '\0';
}

/** Whose ports a PE opens: a stock transport takes the first port it finds near its GPU, and so does its neighbour's. */
static int bench_ports_owner(const struct bench_run *run, int pe)
{
    return run->spec->stock && run->shared ? pe - pe % run->per_node % 2 : pe;
}

int bench_ports(const struct bench_run *run, int pe, char *ports, char *planes, size_t len)
{
    int owner = bench_ports_owner(run, pe), n;
    int rc = run->emu->pe_ports(run->sim, owner, ports, len);

    if (rc == 0)
        rc = run->emu->pe_planes(run->sim, owner, planes, len);
    if (rc)
        return rc;
    n = bench_list_count(ports);
    n = run->spec->stock ? 1 : run->spec->ports && run->spec->ports < n ? run->spec->ports : n;
    bench_list_cut(ports, bench_side(run, pe), n);
    bench_list_cut(planes, bench_side(run, pe), n);
    return ports[0] ? 0 : -ENODEV;
}

/** Whether the sides can keep peers from a home rail. */
static int bench_ports_check(const struct bench_run *run, const char *planes, char *why, size_t why_len)
{
    const struct bench_spec *s = run->spec;
    int others = run->n_pes - run->peers - 1;

    if (bench_list_count(planes) < 3 || run->rails < 3) {
        snprintf(
            why, why_len,
            "bench: peers that do not reach the home rail: seen %d ports%s, expected topo=rail in the fabric and three "
            "ports at least",
            run->rails, planes[0] ? "" : " that all reach each other");
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
    int n, rc;

    if (run->spec->live) { /* libbraid chooses them when it opens, see bench_live_opened() */
        run->rails = run->spec->ports;
        return 0;
    }
    rc = run->emu->pe_ports(run->sim, 0, ports, sizeof(ports));
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
    if (rc == 0 && run->spec->pattern != BENCH_ATOMIC) /* lanes of the sender: the last port reaches no target */
        run->rails = run->rails - 1 - (run->rails - 1) / 2;
    return rc;
}
