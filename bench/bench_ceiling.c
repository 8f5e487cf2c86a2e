/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ceiling.c - the most payload that a sender's rails can carry, which fractions are parts of. Ports that are slowed
 * while the run goes on count with what is left of them, for as long as it was so. Called by bench_run.c; next: emu_sim.h.
 */
#include "bench_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_RAILS = 32, BENCH_CHANGES = 64 };

/** A rail turns slower or faster, by the change of one of its ends. */
struct bench_change {
    double at_ns, factor;
    int rail, end; /* end 0: the sender's port, 1: its only peer's */
};

struct bench_rates {
    double rate[BENCH_RAILS];      /* payload bytes a second */
    double factor[BENCH_RAILS][2]; /* what is left, at both ends */
    char name[BENCH_RAILS][2][80]; /* "h0/mlx5_0:1" */
    struct bench_change change[BENCH_CHANGES];
    int rails, changes;
};

/** The names of a PE's first ports, with its host. */
static void bench_ceiling_names(const struct bench_run *run, int pe, int end, struct bench_rates *r)
{
    char list[1024], *save = NULL, *word;
    int n = 0;

    if (run->emu->pe_ports(run->sim, pe, list, sizeof(list)))
        return;
    for (word = strtok_r(list, ",", &save); word && n < run->rails && n < BENCH_RAILS;
         word = strtok_r(NULL, ",", &save))
        snprintf(r->name[n++][end], sizeof(r->name[0][0]), "h%d/%.64s", pe / run->per_node, word);
    if (end == 0)
        r->rails = n;
}

static void bench_ceiling_rates(const struct bench_run *run, struct bench_rates *r)
{
    struct emu_sim_port port;
    char name[96];

    for (int i = 0; run->emu->port(run->sim, i, &port) == 0; i++) {
        snprintf(name, sizeof(name), "%s/%s", port.host, port.port);
        for (int k = 0; k < r->rails; k++) {
            if (strcmp(r->name[k][0], name) == 0)
                r->rate[k] = port.payload_rate;
        }
    }
}

/** Reads "5000ns:slow:h0/mlx5_0:1:0.5"; the port is left as text. */
static bool bench_ceiling_change(const char *text, struct bench_change *c, char *port, size_t len)
{
    static const char slow[] = "ns:slow:";
    char *end;
    size_t n;

    c->at_ns = strtod(text, &end);
    if (strncmp(end, slow, sizeof(slow) - 1) != 0)
        return false;
    text = end + sizeof(slow) - 1;
    n = strcspn(text, ":");
    n += text[n] == ':' ? 1 + strcspn(text + n + 1, ":") : 0;
    if (n >= len || text[n] != ':')
        return false;
    memcpy(port, text, n);
    port[n] = '\0';
    c->factor = strtod(text + n + 1, &end);
    return true;
}

/** The changes that the fabric's text holds, in the order of their times. */
static void bench_ceiling_changes(const struct bench_run *run, struct bench_rates *r)
{
    const char *at = run->emu->fabric(run->sim);

    for (; (at = strstr(at, "at=")); at++) {
        struct bench_change c = {0};
        char port[80];

        if (!bench_ceiling_change(at + 3, &c, port, sizeof(port)))
            continue;
        for (int i = 0; i < 2 * r->rails && r->changes < BENCH_CHANGES; i++) {
            int k = r->changes;

            if (strcmp(r->name[i / 2][i % 2], port) != 0)
                continue;
            c.rail = i / 2;
            c.end = i % 2;
            for (; k > 0 && r->change[k - 1].at_ns > c.at_ns; k--)
                r->change[k] = r->change[k - 1];
            r->change[k] = c;
            r->changes++;
        }
    }
}

static double bench_ceiling_now(const struct bench_rates *r, double most)
{
    double sum = 0;

    for (int i = 0; i < r->rails; i++)
        sum += r->rate[i] * (r->factor[i][0] < r->factor[i][1] ? r->factor[i][0] : r->factor[i][1]);
    return sum < most ? sum : most;
}

/** The mean over [from, to). */
static double bench_ceiling_mean(struct bench_rates *r, double from, double to, double most)
{
    double bytes = 0, at = from;

    for (int i = 0; i < BENCH_RAILS; i++)
        r->factor[i][0] = r->factor[i][1] = 1;
    for (int i = 0; i < r->changes; i++) {
        const struct bench_change *c = &r->change[i];
        double until = c->at_ns < from ? from : c->at_ns < to ? c->at_ns : to;

        bytes += bench_ceiling_now(r, most) * (until - at);
        at = until;
        r->factor[c->rail][c->end] = c->factor;
    }
    return (bytes + bench_ceiling_now(r, most) * (to - at)) / (to - from);
}

double bench_ceiling(const struct bench_run *run, int pe, uint64_t from_ns, uint64_t to_ns, char *how, size_t how_len)
{
    struct bench_rates *r;
    double most;

    if (run->spec->live)
        return bench_live_ceiling(run, pe, how, how_len);
    most = run->emu->pe_ceiling(run->sim, pe, run->rails);
    r = calloc(1, sizeof(*r));
    if (run->emu->ceiling_text(run->sim, pe, run->rails, how, how_len))
        snprintf(how, how_len, "payload rate of %d ports", run->rails);
    if (r) {
        bench_ceiling_names(run, pe, 0, r);
        if (run->peers == 1)
            bench_ceiling_names(run, bench_peer(run, pe, 0), 1, r);
        bench_ceiling_rates(run, r);
        bench_ceiling_changes(run, r);
    }
    if (r && r->changes && to_ns > from_ns) {
        size_t n = strlen(how);

        most = bench_ceiling_mean(r, (double)from_ns, (double)to_ns, most);
        snprintf(how + n, how_len - n, "; less what slowed ports lost of the run's time: %.2f GB/s", most / 1e9);
    }
    free(r);
    return most / 1e9;
}
