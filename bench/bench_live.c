/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_live.c - what is different where a run is one between processes: each has only its own PE, ports are those that libbraid
 * chooses on this host, waits have an end, and PE 0 asks the others what they have come to. Called by bench_run.c and the
 * generators; next: live.h.
 */
#include "bench_moe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What a PE tells of itself: plain data, as all processes run the same program. */
struct bench_live_card {
    uint64_t wall_ns, start_ns, end_ns, busy_ns, work[BENCH_WORK], work_ns, errors, compared;
    uint64_t phase_ns, notify_ns, stale; /* moe */
    struct bench_times latency, signal;
    struct bench_rail rail[BRAID_MAX_RAILS];
    int n_rails;
};

static struct live *bench_live_job(const struct bench_run *run)
{
    return run->spec->live->job;
}

/* ---- ports --------------------------------------------------------------------------------------------------------------- */

const char *bench_live_wish(const struct bench_pe *p, const char *name, char *room, size_t len)
{
    const struct bench_spec *s = p->run->spec;
    const char *wish = bench_braid_wish(p->run, name);
    struct braid_option_row row;

    if (strcmp(name, "gpu") == 0)
        return getenv("BRAID_GPU") ? NULL : s->live->gpu;
    if (strcmp(name, "rails") == 0 && s->ports) {
        snprintf(room, len, "%d", s->ports);
        return room;
    }
    /* These are printed with the result, so they are what is printed. */
    if (wish || (strcmp(name, "order") != 0 && strcmp(name, "tail") != 0 && strcmp(name, "fault") != 0))
        return wish;
    for (size_t i = 0; braid_option_at(i, &row) == 0; i++) {
        if (strcmp(row.name, name) == 0)
            return row.default_value;
    }
    return NULL;
}

int bench_live_opened(struct bench_pe *p, const struct braid *b)
{
    struct bench_run *run = p->run;
    int n = braid_rail_count(b);

    if (run->spec->ports <= n) {
        run->rails = n;
        return 0;
    }
    snprintf(run->why, sizeof(run->why),
             "PE %d on %s: seen %d ports for its GPU (%s), expected %d (--ports); braid plan says which there are",
             p->pe, live_host(bench_live_job(run), p->pe), n, run->spec->live->gpu, run->spec->ports);
    return -ENODEV;
}

/** What the host says of a port, or what the port itself says, which may know no such rate. */
static uint64_t bench_live_rate(const struct bench_live *live, const struct braid_rail_stats *s)
{
    for (int i = 0; i < live->n_ports; i++) {
        if (strcmp(live->port[i].port, s->port) == 0 && live->port[i].rate_bits)
            return live->port[i].rate_bits;
    }
    return s->rate_bits;
}

void bench_live_rails(struct bench_pe *p, const struct braid *b)
{
    struct braid_rail_stats s;

    for (p->n_rails = 0; p->n_rails < BRAID_MAX_RAILS && braid_rail_stats_at(b, p->n_rails, &s) == 0; p->n_rails++) {
        struct bench_rail *r = &p->rail[p->n_rails];

        memcpy(r->port, s.port, sizeof(r->port));
        r->rate_bits = bench_live_rate(p->run->spec->live, &s);
        r->tx = s.put_bytes;
        r->rx = s.get_bytes;
    }
}

double bench_live_payload(uint64_t rate_bits)
{
    return (double)rate_bits / 8 * 4096 / 4178; /* of a full RoCE v2 frame */
}

double bench_live_ceiling(const struct bench_run *run, int pe, char *how, size_t how_len)
{
    const struct bench_pe *p = run->pe[pe];
    uint64_t bits = 0;

    for (int i = 0; i < p->n_rails; i++)
        bits += p->rail[i].rate_bits;
    snprintf(how, how_len,
             "%d port%s of PE %d on %s: %.4g Gb/s together, as the host says, less headers (4096 of 4178 bytes)",
             p->n_rails, p->n_rails == 1 ? "" : "s", pe, live_host(bench_live_job(run), pe), (double)bits / 1e9);
    return bench_live_payload(bits) / 1e9;
}

/* ---- waiting ------------------------------------------------------------------------------------------------------------- */

int bench_live_wait(struct bench_pe *p, uint64_t moved_ns)
{
    struct bench_run *run = p->run;

    if (run->emu->now() - moved_ns < live_patience(bench_live_job(run)))
        return live_nap(bench_live_job(run), moved_ns);
    snprintf(run->why, sizeof(run->why),
             "PE %d: nothing has moved for %llu s: a peer has ended or hangs (--patience waits longer)", p->pe,
             (unsigned long long)(live_patience(bench_live_job(run)) / 1000000000u));
    return -ETIMEDOUT;
}

static int bench_live_turn(void *arg)
{
    struct bench_pe *p = arg;

    return p->transport->progress(p->transport_self);
}

int bench_live_meet(struct bench_pe *p)
{
    struct live *job = bench_live_job(p->run);

    if (!p->all_asked)
        return live_meet(job, bench_live_turn, p);
    p->all_asked = false; /* it is this meeting, and need not be over: what this PE was to see has come meanwhile */
    return p->all_rc ? p->all_rc : live_meet_end(job, bench_live_turn, p);
}

bool bench_live_all_sent(struct bench_pe *p)
{
    struct live *job = bench_live_job(p->run);

    if (!p->all_asked) {
        p->all_asked = true;
        p->all_rc = live_meet_begin(job);
    }
    return p->all_rc || live_meet_over(job);
}

int bench_live_alltoall(struct bench_pe *p, const void *send, void *recv, size_t bytes_each)
{
    struct live *job = bench_live_job(p->run);
    size_t all = (size_t)p->n_pes * bytes_each;
    char *theirs = malloc(all ? all : 1);
    int rc = theirs ? live_share(job, send, all) : -ENOMEM;

    for (int i = 0; rc == 0 && i < p->n_pes; i++) {
        rc = live_fetch(job, bench_job_pe(p->run, p->pe, i), theirs, all);
        if (rc == 0)
            memcpy((char *)recv + (size_t)i * bytes_each, theirs + (size_t)p->rank * bytes_each, bytes_each);
    }
    free(theirs);
    return rc;
}

/* ---- results ------------------------------------------------------------------------------------------------------------- */

static void bench_live_card(struct bench_run *run, struct bench_live_card *c)
{
    struct bench_pe *p = run->pe[live_pe(bench_live_job(run))];

    *c = (struct bench_live_card){.wall_ns = p->wall_ns,
                                  .start_ns = p->start_ns,
                                  .end_ns = p->end_ns,
                                  .busy_ns = p->busy_ns,
                                  .work_ns = p->work_ns,
                                  .errors = run->errors,
                                  .compared = run->compared,
                                  .latency = bench_samples_times(&p->latency),
                                  .signal = bench_samples_times(&p->signal),
                                  .n_rails = p->n_rails};
    memcpy(c->work, p->work, sizeof(c->work));
    memcpy(c->rail, p->rail, sizeof(c->rail));
    if (!run->moe)
        return;
    c->phase_ns = run->moe->over_ns - run->moe->began_ns;
    c->notify_ns = run->moe->notify_ns;
    c->stale = run->moe->stale;
}

/** Of a phase: the longest counts. Clocks of hosts differ, so each PE's is its own. */
static void bench_live_take_moe(struct bench_moe *m, const struct bench_live_card *c, bool own)
{
    if (c->phase_ns > m->over_ns - m->began_ns)
        m->over_ns = m->began_ns + c->phase_ns;
    if (c->notify_ns > m->notify_ns)
        m->notify_ns = c->notify_ns;
    m->stale += own ? 0 : c->stale;
}

static void bench_live_take(struct bench_run *run, int pe, const struct bench_live_card *c)
{
    bool own = pe == live_pe(bench_live_job(run));
    struct bench_pe *p = run->pe[pe];

    p->wall_ns = c->wall_ns;
    p->start_ns = c->start_ns;
    p->end_ns = c->end_ns;
    p->busy_ns = c->busy_ns;
    p->work_ns = c->work_ns;
    p->latency_told = c->latency;
    p->signal_told = c->signal;
    p->n_rails = c->n_rails < 0 ? 0 : c->n_rails < BRAID_MAX_RAILS ? c->n_rails : BRAID_MAX_RAILS;
    memcpy(p->work, c->work, sizeof(p->work));
    memcpy(p->rail, c->rail, sizeof(p->rail));
    run->errors += own ? 0 : c->errors;
    run->compared += own ? 0 : c->compared;
    if (run->moe)
        bench_live_take_moe(run->moe, c, own);
}

/** Of a phase: where the busiest PE's time went. */
struct bench_live_where {
    double ns[BENCH_WHERE];
    struct bench_timeline line;
};

static int bench_live_gather_where(struct bench_run *run)
{
    struct live *job = bench_live_job(run);
    struct bench_moe *m = run->moe;
    bool mine = live_pe(job) == m->busiest;
    struct bench_live_where *w = calloc(1, sizeof(*w));
    int rc = w ? 0 : -ENOMEM;

    if (rc == 0) {
        memcpy(w->ns, m->where_ns, sizeof(w->ns));
        w->line = m->line;
        rc = live_share(job, w, mine ? sizeof(*w) : 1); /* the others have nothing to tell */
    }
    if (rc == 0 && live_pe(job) == 0)
        rc = live_fetch(job, m->busiest, w, sizeof(*w));
    if (rc == 0 && live_pe(job) == 0) {
        memcpy(m->where_ns, w->ns, sizeof(m->where_ns));
        m->line = w->line;
    }
    free(w);
    return rc;
}

int bench_live_gather(struct bench_run *run)
{
    struct live *job = bench_live_job(run);
    struct bench_live_card c;
    int rc;

    bench_live_card(run, &c);
    rc = live_share(job, &c, sizeof(c));
    for (int pe = 0; rc == 0 && live_pe(job) == 0 && pe < run->n_pes; pe++) {
        rc = live_fetch(job, pe, &c, sizeof(c));
        if (rc == 0)
            bench_live_take(run, pe, &c);
    }
    if (rc == 0 && run->moe)
        rc = bench_live_gather_where(run);
    if (rc)
        snprintf(run->why, sizeof(run->why), "PE %d: %s", live_pe(job), live_why(job));
    return rc;
}

/** The row of a host's port; a new one where there is none yet, NULL where there is no room. */
static struct bench_port *bench_live_row(struct bench_result *out, const char *host, const char *port)
{
    struct bench_port *row;

    for (int i = 0; i < out->n_ports; i++) {
        if (strcmp(out->port[i].host, host) == 0 && strcmp(out->port[i].port, port) == 0)
            return &out->port[i];
    }
    if (out->n_ports == BENCH_PORTS)
        return NULL;
    row = &out->port[out->n_ports++];
    *row = (struct bench_port){0};
    memcpy(row->host, host, sizeof(row->host));
    snprintf(row->port, sizeof(row->port), "%s", port);
    return row;
}

void bench_live_figures(const struct bench_run *run, struct bench_result *out)
{
    struct live *job = bench_live_job(run);

    out->rails_only = true;
    out->latency = run->pe[out->sender]->latency_told;
    out->signal = run->pe[out->sender]->signal_told;
    for (int pe = 0; pe < run->n_pes; pe++) {
        const struct bench_pe *p = run->pe[pe];
        char host[16];

        snprintf(host, sizeof(host), "h%d", live_host_of(job, pe));
        for (int i = 0; i < p->n_rails; i++) {
            struct bench_port *row = bench_live_row(out, host, p->rail[i].port);

            if (!row)
                continue;
            row->tx += p->rail[i].tx;
            row->rx += p->rail[i].rx;
        }
    }
}
