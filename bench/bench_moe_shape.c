/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_moe_shape.c - sizes, defaults and where everything lies. Arithmetic only. Called by bench_run.c and the other files of
 * bench_moe; next: bench_moe_route.c.
 *
 * Memory of a PE: [words of barriers][tails][heads][metas that came][metas to go][counts][payload: rings that come, rings to go].
 */
#include "bench_moe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Payload of all PEs that is kept as bytes; more of it is kept as patterns, and so is that of many nodes. */
#define BENCH_MOE_BYTES_MAX ((uint64_t)1 << 30)
enum { BENCH_MOE_BYTES_NODES = 4 };

const char *bench_phase_name(enum bench_phase phase)
{
    static const char *const names[BENCH_PHASES] = {
        [BENCH_DISPATCH_BF16] = "dispatch-bf16", [BENCH_DISPATCH_FP8] = "dispatch-fp8", [BENCH_COMBINE] = "combine"};

    return names[phase];
}

const char *bench_where_name(enum bench_where w)
{
    static const char *const names[BENCH_WHERE] = {
        [BENCH_WHERE_WIRE] = "wire",   [BENCH_WHERE_ORDER] = "order", [BENCH_WHERE_CREDIT] = "credit",
        [BENCH_WHERE_PROXY] = "proxy", [BENCH_WHERE_GPU] = "gpu",     [BENCH_WHERE_END] = "end"};

    return names[w];
}

unsigned bench_moe_first(const struct bench_moe *m, unsigned c)
{
    unsigned each = (m->tokens + m->channels - 1) / m->channels, first = c * each;

    return first < m->tokens ? first : m->tokens;
}

/* ---- places ---------------------------------------------------------------------------------------------------------- */

static size_t bench_moe_pairs(const struct bench_moe *m)
{
    return (size_t)m->channels * (size_t)m->nodes;
}

static size_t bench_moe_pair(const struct bench_moe *m, int c, int d)
{
    return (size_t)c * (size_t)m->nodes + (size_t)d;
}

size_t bench_moe_sync_at(const struct bench_moe *m, int round)
{
    (void)m;
    return (size_t)round * 8;
}

size_t bench_moe_tail_at(const struct bench_moe *m, int c, int d)
{
    return bench_moe_sync_at(m, BENCH_MOE_ROUNDS) + bench_moe_pair(m, c, d) * 8;
}

size_t bench_moe_head_at(const struct bench_moe *m, int c, int d)
{
    return bench_moe_tail_at(m, 0, 0) + (bench_moe_pairs(m) + bench_moe_pair(m, c, d)) * 8;
}

size_t bench_moe_meta_at(const struct bench_moe *m, int c, int d)
{
    size_t first = bench_round_up(bench_moe_head_at(m, 0, 0) + bench_moe_pairs(m) * 8, BENCH_MOE_META_ROOM);

    return first + bench_moe_pair(m, c, d) * BENCH_MOE_META_ROOM;
}

size_t bench_moe_meta_from(const struct bench_moe *m, int c, int d)
{
    return bench_moe_meta_at(m, c, d) + bench_moe_pairs(m) * BENCH_MOE_META_ROOM;
}

size_t bench_moe_counts_len(const struct bench_moe *m)
{
    /* Ints: of each local rank, of each expert of the node, and of the node. */
    size_t ranks = (size_t)(m->nodes * m->local), of_node = (size_t)m->local;

    if (ranks < BENCH_MOE_EXPERTS)
        of_node *= BENCH_MOE_EXPERTS / ranks;
    return ((size_t)m->local + of_node + 1) * 4;
}

size_t bench_moe_counts_at(const struct bench_moe *m, int d)
{
    return bench_moe_meta_from(m, 0, 0) + bench_moe_pairs(m) * BENCH_MOE_META_ROOM +
           (size_t)d * bench_round_up(bench_moe_counts_len(m), 128);
}

size_t bench_moe_counts_from(const struct bench_moe *m)
{
    return bench_moe_counts_at(m, m->nodes);
}

static size_t bench_moe_slot(const struct bench_moe *m, size_t ring, uint32_t n)
{
    return m->data_at + (ring * m->ring + n % m->ring) * m->token_bytes;
}

size_t bench_moe_slot_in(const struct bench_moe *m, int c, int d, uint32_t n)
{
    return bench_moe_slot(m, bench_moe_pair(m, c, d), n);
}

size_t bench_moe_slot_out(const struct bench_moe *m, int c, int d, uint32_t n)
{
    return bench_moe_slot(m, bench_moe_pairs(m) + bench_moe_pair(m, c, d), n);
}

/* ---- defaults -------------------------------------------------------------------------------------------------------- */

/** DeepEP's own, by the number of ranks, which are eight a node. */
static unsigned bench_moe_default_chunk(const struct bench_moe *m)
{
    if (m->combine)
        return m->nodes <= 2 ? 28 : 20;
    return m->nodes <= 2 ? 20 : m->nodes <= 4 ? 32 : 28;
}

static size_t bench_moe_token_bytes(enum bench_phase phase)
{
    /* Hidden 7168, and scales, source and top-k beside it, in whole sixteens. */
    return phase == BENCH_DISPATCH_FP8 ? 7472 : phase == BENCH_COMBINE ? 14384 : 14416;
}

static int bench_moe_check_spec(const struct bench_run *run, char *why, size_t why_len)
{
    const struct bench_moe *m = run->moe;

    if (m->nodes < 2 || m->nodes > BENCH_MOE_NODES || run->n_pes % run->per_node)
        snprintf(why, why_len, "bench: moe on %d nodes: expected 2 to %d", m->nodes, BENCH_MOE_NODES);
    else if (m->channels > BENCH_MOE_CHANNELS_MAX || m->tokens > BENCH_MOE_TOKENS_MAX)
        snprintf(why, why_len, "bench: %u channels, %u tokens: expected at most %d and %d", m->channels, m->tokens,
                 BENCH_MOE_CHANNELS_MAX, BENCH_MOE_TOKENS_MAX);
    else if (m->chunk > BENCH_MOE_CHUNK_MAX || m->ring > BENCH_MOE_RING_MAX || m->chunk > m->ring / 2)
        snprintf(
            why, why_len,
            "bench: chunks of %u tokens in rings of %u: expected at most %d and %d, and a ring of two chunks at least, "
            "since credit comes back a chunk at a time",
            m->chunk, m->ring, BENCH_MOE_CHUNK_MAX, BENCH_MOE_RING_MAX);
    else
        return 0;
    return -EINVAL;
}

int bench_moe_shape(struct bench_run *run, char *why, size_t why_len)
{
    const struct bench_moe_spec *s = &run->spec->moe;
    struct bench_moe *m = run->moe = calloc(1, sizeof(*m));
    int rc;

    if (!m)
        return -ENOMEM;
    m->nodes = run->n_pes / run->per_node;
    m->local = run->per_node > BENCH_MOE_LOCAL ? run->per_node : BENCH_MOE_LOCAL;
    m->combine = s->phase == BENCH_COMBINE;
    m->token_bytes = bench_moe_token_bytes(s->phase);
    m->tokens = s->tokens ? s->tokens : 4096;
    m->channels = s->channels ? s->channels : 10;
    m->chunk = s->chunk ? s->chunk : bench_moe_default_chunk(m);
    m->ring = (unsigned)bench_round_up(s->ring ? s->ring : 128, m->chunk);
    rc = bench_moe_check_spec(run, why, why_len);
    if (rc)
        return rc;
    m->words_len = bench_round_up(bench_moe_counts_from(m) + bench_moe_counts_len(m), 4096);
    m->data_len = 2 * bench_moe_pairs(m) * m->ring * m->token_bytes;
    m->pattern = !run->spec->live &&
                 (m->nodes > BENCH_MOE_BYTES_NODES || m->data_len * (uint64_t)run->n_pes > BENCH_MOE_BYTES_MAX);
    run->senders = run->n_pes;
    run->peers = m->nodes;
    return 0;
}

size_t bench_moe_mem_len(const struct bench_moe *m)
{
    return bench_round_up(m->words_len + (m->pattern ? 0 : m->data_len), 4096);
}

void bench_moe_place(struct bench_pe *p)
{
    struct bench_moe *m = p->run->moe;

    p->data_len = m->pattern ? bench_round_up(m->data_len, p->transport->align ? p->transport->align : 4096) : 0;
    m->data_at = m->pattern ? p->mem_len : m->words_len;
}

void bench_moe_free(struct bench_moe *m)
{
    if (!m)
        return;
    free(m->token);
    free(m->count);
    free(m);
}
