/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_moe.c - one phase of DeepEP's normal kernels, as one PE: its kernels, its proxy, and what the transport has under way,
 * in turns. Called by bench_run.c; next: bench_moe_out.c, bench_moe_in.c, bench_moe_ask.c.
 */
#include "bench_moe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So long nothing moves only where something is lost: in virtual time, and between processes that wait for a CPU. */
#define BENCH_MOE_LOST_NS      2000000u
#define BENCH_MOE_LIVE_LOST_NS 5000000000u

static uint64_t bench_moe_patience(const struct bench_moe_pe *p)
{
    return p->pe->run->spec->live ? BENCH_MOE_LIVE_LOST_NS : BENCH_MOE_LOST_NS;
}

bool bench_moe_kernels(struct bench_moe_pe *p)
{
    bool moved = false;

    p->now_ns = p->pe->run->emu->now();
    p->blocked = p->copying = false;
    for (unsigned c = 0; p->running && c < p->moe->channels; c++) {
        moved |= bench_moe_read(p, &p->channel[c]);
        moved |= bench_moe_send(p, &p->channel[c]);
    }
    return moved;
}

/** Nothing moved. Where a rule is switched off, a signal may be lost for good: then what was to follow it never comes. */
static int bench_moe_sleep(struct bench_moe_pe *p)
{
    const struct emu_sim_api *emu = p->pe->run->emu;
    uint64_t until = p->next_ns;

    if (p->pe->run->spec->live)
        return bench_live_wait(p->pe, p->moved_ns);
    if (p->pe->run->spec->fault && p->moved_ns + bench_moe_patience(p) < until)
        until = p->moved_ns + bench_moe_patience(p);
    return emu->wait(until);
}

int bench_moe_turn(struct bench_moe_pe *p)
{
    const struct bench_transport *t = p->pe->transport;
    bool moved;
    int n;

    p->next_ns = UINT64_MAX;
    moved = bench_moe_kernels(p);
    n = bench_moe_take(p);
    if (n < 0)
        return n;
    moved |= n > 0;
    n = t->progress(p->pe->transport_self);
    if (n < 0)
        return n;
    moved |= n > 0;
    bench_moe_where_note(p, true);
    if (moved) {
        p->moved_ns = p->pe->run->emu->now();
        return 0;
    }
    n = bench_moe_sleep(p);
    bench_moe_where_note(p, false);
    return n;
}

bool bench_moe_lost(const struct bench_moe_pe *p)
{
    return p->pe->run->spec->fault && p->pe->run->emu->now() >= p->moved_ns + bench_moe_patience(p);
}

static bool bench_moe_over(const struct bench_moe_pe *p)
{
    for (unsigned c = 0; c < p->moe->channels; c++) {
        if (!p->channel[c].sent || !p->channel[c].took)
            return false;
    }
    return true;
}

/** Until the kernels have ended; then the proxy hands over what they left it. */
static int bench_moe_run_kernels(struct bench_moe_pe *p)
{
    int rc = 0;

    p->running = true;
    p->moved_ns = p->pe->run->emu->now();
    while (rc == 0 && !p->over_ns) {
        rc = bench_moe_turn(p);
        if (rc == 0 && (bench_moe_over(p) || bench_moe_lost(p)))
            p->over_ns = p->pe->run->emu->now();
    }
    p->running = false;
    if (p->over_ns > p->moe->over_ns)
        p->moe->over_ns = p->over_ns;
    while (rc == 0 && p->taken < p->asked)
        rc = bench_moe_turn(p);
    return rc;
}

/** The end, seen by all: words that are not what they should be are errors. What peers have given credit for they tell. */
static int bench_moe_check(struct bench_moe_pe *p)
{
    size_t channels = p->moe->channels, nodes = (size_t)p->moe->nodes;
    uint32_t *mine = calloc(channels * nodes, sizeof(*mine)), *theirs = calloc(channels * nodes, sizeof(*theirs));
    int rc = mine && theirs ? 0 : -ENOMEM;

    for (size_t i = 0; rc == 0 && i < channels * nodes; i++)
        mine[i] = p->channel[i % channels].in[i / channels].credited;
    if (rc == 0)
        rc = bench_job_alltoall(p->pe, mine, theirs, channels * sizeof(*mine));
    for (size_t i = 0; rc == 0 && i < channels * nodes; i++) {
        int c = (int)(i % channels), d = (int)(i / channels);

        p->pe->run->errors += bench_moe_word(p->pe, bench_moe_tail_at(p->moe, c, d)) != p->channel[c].in[d].total;
        p->pe->run->errors += bench_moe_word(p->pe, bench_moe_head_at(p->moe, c, d)) != theirs[i];
    }
    free(mine);
    free(theirs);
    return rc;
}

static int bench_moe_phase(struct bench_moe_pe *p)
{
    const struct emu_sim_api *emu = p->pe->run->emu;
    int rc = bench_moe_notify(p);

    if (rc == 0)
        rc = bench_pe_meet(p->pe);
    p->moe->began_ns = p->now_ns = emu->now(); /* the same for all; between processes nearly so */
    bench_moe_where_open(p);
    if (rc == 0 && !p->moe->combine)
        bench_moe_metas(p);
    if (rc == 0)
        rc = bench_moe_run_kernels(p);
    if (rc == 0)
        rc = p->pe->transport->quiet(p->pe->transport_self, BRAID_ALL_PES);
    if (rc == 0)
        rc = bench_pe_meet(p->pe);
    if (rc == 0)
        rc = bench_moe_check(p);
    return rc ? rc : emu->barrier(); /* nobody's memory goes before all have looked */
}

/** What this PE sends and receives, where that is known before it comes. */
static int bench_moe_open_channel(struct bench_moe_pe *p, int c)
{
    const struct bench_run *run = p->pe->run;
    const struct bench_moe *m = p->moe;
    struct bench_moe_channel *ch = &p->channel[c];
    int self = p->pe->rank;

    ch->index = c;
    ch->out = calloc((size_t)m->nodes, sizeof(*ch->out));
    ch->in = calloc((size_t)m->nodes, sizeof(*ch->in));
    if (!ch->out || !ch->in)
        return -ENOMEM;
    ch->next = bench_moe_first(m, (unsigned)c);
    ch->end = bench_moe_first(m, (unsigned)c + 1);
    ch->turn = ch->stage_turn = ch->read_turn = (unsigned)c;
    ch->open = ch->undone = ~(uint64_t)0 >> (BENCH_MOE_NODES - m->nodes);
    ch->unknown = m->combine ? 0 : ch->open;
    for (int d = 0; d < m->nodes; d++) {
        uint32_t mine = bench_moe_count(run, p->pe->pe, c, d);
        uint32_t theirs = bench_moe_count(run, bench_job_pe(run, p->pe->pe, d), c, self);

        ch->out[d].total = m->combine ? theirs : mine;
        ch->out[d].cursor = ch->in[d].cursor = ch->next;
        ch->in[d].known = m->combine;
        ch->in[d].total = m->combine ? mine : 0;
        p->to_issue += ch->out[d].total;
    }
    return 0;
}

static void bench_moe_close(struct bench_moe_pe *p)
{
    for (unsigned c = 0; p->channel && c < p->moe->channels; c++) {
        free(p->channel[c].out);
        free(p->channel[c].in);
    }
    free(p->channel);
    free(p->ask);
    free(p);
}

int bench_moe_pe(struct bench_pe *pe)
{
    struct bench_moe_pe *p = calloc(1, sizeof(*p));
    int rc;

    if (!p)
        return -ENOMEM;
    p->pe = pe;
    p->moe = pe->run->moe;
    pe->moe = p;
    p->channel = calloc(p->moe->channels, sizeof(*p->channel));
    p->fences = pe->transport->has_fence && pe->transport->has_fence(pe->transport_self);
    rc = p->channel ? 0 : -ENOMEM;
    for (int c = 0; rc == 0 && c < (int)p->moe->channels; c++)
        rc = bench_moe_open_channel(p, c);
    if (rc == 0)
        rc = bench_pe_wait_start(pe);
    if (rc == 0)
        rc = bench_moe_phase(p);
    if (p->where.on)
        memcpy(p->moe->where_ns, p->where.ns, sizeof(p->moe->where_ns));
    bench_moe_close(p);
    pe->moe = NULL;
    return rc;
}

void bench_moe_figures(struct bench_run *run, struct bench_result *out)
{
    struct bench_moe *m = run->moe;
    struct bench_moe_result *r = &out->moe;
    uint64_t seen = 0;
    size_t n;
    double ports;

    r->phase = run->spec->moe.phase;
    r->tokens = m->tokens;
    r->channels = m->channels;
    r->chunk = m->chunk;
    r->ring = m->ring;
    r->nodes = m->nodes;
    memcpy(r->topo, run->topo, sizeof(r->topo));
    r->logical_bytes = m->logical;
    r->remote_bytes = m->remote;
    r->stale_reads = m->stale;
    r->notify_ns = m->notify_ns;
    r->timeline = m->line;
    for (int w = 0; w < BENCH_WHERE; w++) {
        r->where_ns[w] = (uint64_t)m->where_ns[w];
        seen += r->where_ns[w];
    }
    out->sender = m->busiest;
    out->payload_bytes = r->logical_bytes;
    out->ops = r->logical_bytes / m->token_bytes;
    out->wall_ns = m->over_ns - m->began_ns;
    if (out->wall_ns > seen) /* the busiest PE need not be the last */
        r->where_ns[BENCH_WHERE_END] += out->wall_ns - seen;
    out->gbs = out->wall_ns ? (double)out->payload_bytes / (double)out->wall_ns : 0;
    r->nvl_gbs = out->wall_ns ? (double)m->forwarded / (double)out->wall_ns : 0;
    ports = bench_ceiling(run, m->busiest, m->began_ns, m->over_ns, out->ceiling_how, sizeof(out->ceiling_how));
    out->ceiling_gbs = r->remote_bytes ? ports * (double)r->logical_bytes / (double)r->remote_bytes : 0;
    out->fraction = out->ceiling_gbs > 0 ? out->gbs / out->ceiling_gbs : 0;
    n = strlen(out->ceiling_how);
    snprintf(out->ceiling_how + n, sizeof(out->ceiling_how) - n,
             "; %.4f of the bytes of PE %d, the busiest, are remote",
             (double)r->remote_bytes / (double)r->logical_bytes, m->busiest);
}
