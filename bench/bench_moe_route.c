/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_moe_route.c - which token goes where, as DeepEP's own test draws it: random scores for all experts, the few nodes with
 * the best of them, and on those the best experts. Arithmetic only. Called by bench_moe.c; next: bench_moe_shape.c.
 */
#include "bench_moe.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_MOE_EXPERTS_MAX = 1024 };

/** What the choice for one token needs. */
struct bench_moe_draw {
    unsigned experts, on_node, on_rank, groups; /* experts in all, of a node, of a rank; nodes a token may go to */
    double weight[BENCH_MOE_EXPERTS_MAX];       /* how popular each is */
    double score[BENCH_MOE_EXPERTS_MAX], best[BENCH_MOE_NODES];
    bool skewed;
    uint64_t state;
};

static uint64_t bench_moe_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** In (0, 1]. */
static double bench_moe_unit(uint64_t *state)
{
    return (double)((bench_moe_random(state) >> 11) + 1) / 9007199254740992.0;
}

/** Popularity by rank, ranks dealt at random: a popular expert's neighbours need not be popular. */
static void bench_moe_weights(struct bench_moe_draw *d, double skew, uint64_t seed)
{
    unsigned order[BENCH_MOE_EXPERTS_MAX];
    uint64_t state = seed;

    for (unsigned i = 0; i < d->experts; i++)
        order[i] = i;
    for (unsigned i = d->experts; i > 1; i--) {
        unsigned k = (unsigned)(bench_moe_random(&state) % i), was = order[i - 1];

        order[i - 1] = order[k];
        order[k] = was;
    }
    for (unsigned i = 0; i < d->experts; i++)
        d->weight[order[i]] = pow(i + 1, -skew);
}

/** The index of the greatest, which then counts no more. */
static unsigned bench_moe_greatest(double *of, unsigned n)
{
    unsigned best = 0;

    for (unsigned i = 1; i < n; i++) {
        if (of[i] > of[best])
            best = i;
    }
    of[best] = -1;
    return best;
}

/** An expert is chosen in proportion to its weight: the first of exponential clocks. */
static void bench_moe_scores(struct bench_moe_draw *d)
{
    unsigned node = 0, within = 0;

    for (unsigned e = 0; e < d->experts; e++) {
        double u = bench_moe_unit(&d->state), s = d->skewed ? d->weight[e] / (1e-12 - log(u)) : u;

        d->score[e] = s;
        if (within == 0 || s > d->best[node])
            d->best[node] = s;
        if (++within == d->on_node) {
            node++;
            within = 0;
        }
    }
}

static void bench_moe_choose(struct bench_moe_draw *d, struct bench_moe_token *t)
{
    double score[BENCH_MOE_GROUPS * BENCH_MOE_EXPERTS_MAX / 2];
    unsigned group[BENCH_MOE_GROUPS] = {0}, n = 0, on_node = d->on_node, nodes = d->experts / on_node;

    bench_moe_scores(d);
    for (unsigned i = 0; i < d->groups; i++) {
        group[i] = bench_moe_greatest(d->best, nodes);
        memcpy(score + n, d->score + (size_t)group[i] * on_node, on_node * sizeof(*score));
        n += on_node;
    }
    t->nodes = 0;
    for (unsigned i = 0; i < BENCH_MOE_TOP; i++) {
        unsigned k = bench_moe_greatest(score, n), expert = group[k / on_node] * on_node + k % on_node;

        t->rank[i] = (uint16_t)(expert / d->on_rank);
        t->nodes |= (uint64_t)1 << expert / on_node;
    }
}

static void bench_moe_tally(struct bench_run *run, int pe)
{
    struct bench_moe *m = run->moe;
    const struct bench_moe_token *t = m->token + (size_t)pe * m->tokens;

    for (unsigned c = 0; c < m->channels; c++) {
        uint32_t *count = m->count + ((size_t)pe * m->channels + c) * (size_t)m->nodes;

        for (unsigned i = bench_moe_first(m, c); i < bench_moe_first(m, c + 1); i++) {
            for (uint64_t left = t[i].nodes; left; left &= left - 1)
                count[__builtin_ctzll(left)]++;
        }
    }
}

uint32_t bench_moe_count(const struct bench_run *run, int pe, int c, int d)
{
    const struct bench_moe *m = run->moe;

    return m->count[((size_t)pe * m->channels + (size_t)c) * (size_t)m->nodes + (size_t)d];
}

unsigned bench_moe_copies(const struct bench_moe *m, const struct bench_moe_token *t, int node)
{
    unsigned ranks = 0;

    for (int i = 0; i < BENCH_MOE_TOP; i++) {
        if (t->rank[i] / m->local == node)
            ranks |= 1u << t->rank[i] % m->local;
    }
    return (unsigned)__builtin_popcount(ranks);
}

const struct bench_moe_token *bench_moe_next(const struct bench_run *run, int pe, int node, uint32_t *cursor)
{
    const struct bench_moe_token *t = run->moe->token + (size_t)pe * run->moe->tokens;

    while (!(t[*cursor].nodes >> node & 1))
        ++*cursor;
    return &t[(*cursor)++];
}

/* ---- bytes ----------------------------------------------------------------------------------------------------------- */

/** Tokens that a PE sends to all nodes, or takes from them. */
static void bench_moe_sum(const struct bench_run *run, int pe, bool in, uint64_t *all, uint64_t *remote)
{
    int node = pe / run->per_node;

    *all = *remote = 0;
    for (int d = 0; d < run->moe->nodes; d++) {
        uint64_t n = 0;

        for (unsigned c = 0; c < run->moe->channels; c++)
            n +=
                in ? bench_moe_count(run, bench_job_pe(run, pe, d), (int)c, node) : bench_moe_count(run, pe, (int)c, d);
        *all += n;
        *remote += d == node ? 0 : n;
    }
}

/** Copies that a PE forwards to the ranks of its node, or gathers from them. */
static uint64_t bench_moe_forwarded(const struct bench_run *run, int pe)
{
    const struct bench_moe *m = run->moe;
    uint64_t n = 0;

    for (int d = 0; d < m->nodes; d++) {
        const struct bench_moe_token *t = m->token + (size_t)bench_job_pe(run, pe, d) * m->tokens;

        for (unsigned i = 0; i < m->tokens; i++)
            n += bench_moe_copies(m, &t[i], pe / run->per_node);
    }
    return n;
}

/** The PE whose wires have most to do, and its bytes. */
static void bench_moe_busiest(struct bench_run *run)
{
    struct bench_moe *m = run->moe;
    double longest = -1;

    for (int pe = 0; pe < run->n_pes; pe++) {
        double rate = run->emu->pe_ceiling(run->sim, pe, run->rails);

        for (int in = 0; in < 2; in++) {
            uint64_t all, remote;

            bench_moe_sum(run, pe, in, &all, &remote);
            if (rate <= 0 || (double)remote / rate <= longest)
                continue;
            longest = (double)remote / rate;
            m->busiest = pe;
            m->busiest_in = in != m->combine; /* a combine sends back what a dispatch brought */
            m->logical = all * m->token_bytes;
            m->remote = remote * m->token_bytes;
        }
    }
    m->forwarded = bench_moe_forwarded(run, m->busiest) * m->token_bytes;
}

int bench_moe_route(struct bench_run *run)
{
    struct bench_moe *m = run->moe;
    unsigned ranks = (unsigned)(m->nodes * m->local);
    struct bench_moe_draw *d = calloc(1, sizeof(*d));
    size_t pes = (size_t)run->n_pes;

    m->token = calloc(pes * m->tokens, sizeof(*m->token));
    m->count = calloc(pes * m->channels * (size_t)m->nodes, sizeof(*m->count));
    if (!d || !m->token || !m->count) {
        free(d);
        return -ENOMEM;
    }
    d->on_rank = ranks < BENCH_MOE_EXPERTS ? BENCH_MOE_EXPERTS / ranks : 1;
    d->on_node = d->on_rank * (unsigned)m->local;
    d->experts = d->on_node * (unsigned)m->nodes;
    d->groups = m->nodes < BENCH_MOE_GROUPS ? (unsigned)m->nodes : BENCH_MOE_GROUPS;
    d->skewed = run->spec->moe.skew > 0;
    bench_moe_weights(d, run->spec->moe.skew, run->spec->seed);
    for (size_t pe = 0; pe < pes; pe++) {
        d->state = bench_stream_seed(run->spec->seed, (int)pe, 0);
        for (unsigned i = 0; i < m->tokens; i++)
            bench_moe_choose(d, &m->token[pe * m->tokens + i]);
        bench_moe_tally(run, (int)pe);
    }
    free(d);
    bench_moe_busiest(run);
    return 0;
}
