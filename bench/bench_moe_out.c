/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_moe_out.c - kernels that send: they stage tokens where rings have room, and ask for a put, a fence and an add for each
 * chunk. A token of a dispatch waits until all rings that it goes to have room, and those behind it wait with it; in a combine
 * each node's tokens go on their own. Called by bench_moe.c; next: bench_moe_ask.c.
 */
#include "bench_moe.h"

#include <string.h>

uint64_t bench_moe_tag(const struct bench_run *run, int from, int to, int c, uint32_t first)
{
    uint64_t stream = bench_stream_seed(bench_stream_seed(run->spec->seed, from, c), to, 0);

    /* 0 and all ones mean other things to the emulator. */
    return (stream ^ (uint64_t)(first + 1) * 0x9e3779b97f4a7c15u) >> 1 | 1;
}

bool bench_moe_worked(struct bench_moe_pe *p, struct bench_moe_work *w, double bytes, double gbs)
{
    uint64_t from = w->until_ns > p->moe->began_ns ? w->until_ns : p->moe->began_ns;

    if (gbs <= 0)
        return true;
    if (!w->begun) {
        w->until_ns = (w->waited ? p->now_ns : from) + (uint64_t)(bytes / gbs);
        w->begun = true;
        w->waited = false;
    }
    if (p->now_ns < w->until_ns) {
        p->copying = true;
        p->next_ns = w->until_ns < p->next_ns ? w->until_ns : p->next_ns;
        return false;
    }
    w->begun = false;
    return true;
}

static bool bench_moe_room(const struct bench_moe_pe *p, const struct bench_moe_out *o)
{
    return o->staged - o->freed < p->moe->ring;
}

/** A dispatch: in the order of tokens, each to all its nodes. */
static bool bench_moe_stage_together(struct bench_moe_pe *p, struct bench_moe_channel *ch)
{
    const struct bench_moe *m = p->moe;
    const struct bench_moe_token *t = m->token + (size_t)p->pe->pe * m->tokens;
    double gbs = p->pe->run->spec->moe.copy_gbs;
    uint32_t before = ch->next;

    for (; ch->next < ch->end; ch->next++) {
        uint64_t nodes = t[ch->next].nodes;

        for (uint64_t left = nodes; left; left &= left - 1) {
            if (!bench_moe_room(p, &ch->out[__builtin_ctzll(left)])) {
                p->blocked = ch->sending.waited = true;
                return ch->next != before;
            }
        }
        if (!bench_moe_worked(p, &ch->sending, (double)(m->token_bytes * (size_t)__builtin_popcountll(nodes)), gbs))
            break;
        for (uint64_t left = nodes; left; left &= left - 1)
            ch->out[__builtin_ctzll(left)].staged++;
    }
    return ch->next != before;
}

/** Bytes that the next token for a node is gathered from. */
static double bench_moe_gathers(const struct bench_moe_pe *p, const struct bench_moe_out *o, int d)
{
    const struct bench_run *run = p->pe->run;
    uint32_t cursor = o->cursor;

    if (run->spec->moe.forward_gbs <= 0)
        return 0;
    return (double)(bench_moe_copies(p->moe, bench_moe_next(run, bench_job_pe(run, p->pe->pe, d), p->pe->rank, &cursor),
                                     p->pe->rank) *
                    p->moe->token_bytes);
}

/** A combine: a token for each node in turn, those without room left out. */
static bool bench_moe_stage_apart(struct bench_moe_pe *p, struct bench_moe_channel *ch)
{
    const struct bench_run *run = p->pe->run;
    bool moved = false;

    for (int idle = 0; idle < p->moe->nodes;) {
        int d = (int)(ch->stage_turn % (unsigned)p->moe->nodes);
        struct bench_moe_out *o = &ch->out[d];

        if (o->staged == o->total || (!bench_moe_room(p, o) && !ch->sending.begun)) {
            p->blocked |= o->staged < o->total;
            ch->stage_turn++;
            idle++;
            continue;
        }
        if (!bench_moe_worked(p, &ch->sending, bench_moe_gathers(p, o, d), run->spec->moe.forward_gbs))
            return moved;
        if (run->spec->moe.forward_gbs > 0)
            bench_moe_next(run, bench_job_pe(run, p->pe->pe, d), p->pe->rank, &o->cursor);
        o->staged++;
        ch->stage_turn++;
        idle = 0;
        moved = true;
    }
    ch->sending.waited |= p->blocked;
    return moved;
}

/** The bytes of a chunk, where it is put from; those for the own node are where they are read. */
static void bench_moe_write(struct bench_moe_pe *p, size_t at, size_t len, uint64_t tag)
{
    if (p->moe->pattern)
        p->pe->run->emu->pattern_fill(p->pe->mem + at, len, tag);
    else
        bench_fill(p->pe->mem + at, len, tag, 0);
}

static void bench_moe_chunk(struct bench_moe_pe *p, struct bench_moe_channel *ch, int d)
{
    const struct bench_moe *m = p->moe;
    struct bench_moe_out *o = &ch->out[d];
    int self = p->pe->rank;
    uint32_t first = o->issued, n = o->staged - first < m->chunk ? o->staged - first : m->chunk;
    size_t from = d == self ? bench_moe_slot_in(m, ch->index, self, first) : bench_moe_slot_out(m, ch->index, d, first);

    bench_moe_write(p, from, n * m->token_bytes,
                    bench_moe_tag(p->pe->run, p->pe->pe, bench_job_pe(p->pe->run, p->pe->pe, d), ch->index, first));
    if (d != self)
        bench_moe_post(p, &(struct bench_moe_ask){.kind = BENCH_MOE_PUT,
                                                  .rank = d,
                                                  .to = bench_moe_slot_in(m, ch->index, self, first),
                                                  .from = from,
                                                  .len = n * m->token_bytes});
    bench_moe_signal(p, d, bench_moe_tail_at(m, ch->index, self), n);
    o->issued += n;
    p->to_issue -= n;
}

/** Asks for what is a chunk, or the rest, for each node in turn. */
static bool bench_moe_issue(struct bench_moe_pe *p, struct bench_moe_channel *ch)
{
    unsigned nodes = (unsigned)p->moe->nodes;
    bool moved = false;

    for (unsigned idle = 0; idle < nodes; ch->turn++) {
        int d = (int)(ch->turn % nodes);
        const struct bench_moe_out *o = &ch->out[d];

        idle++;
        if (o->staged - o->issued < p->moe->chunk && (o->staged != o->total || o->issued == o->total))
            continue;
        bench_moe_chunk(p, ch, d);
        moved = true;
        idle = 0;
    }
    return moved;
}

bool bench_moe_send(struct bench_moe_pe *p, struct bench_moe_channel *ch)
{
    bool moved, sent = true;

    if (ch->sent)
        return false;
    for (int d = 0; d < p->moe->nodes; d++)
        ch->out[d].freed = (uint32_t)bench_moe_word(p->pe, bench_moe_head_at(p->moe, ch->index, d));
    moved = p->moe->combine ? bench_moe_stage_apart(p, ch) : bench_moe_stage_together(p, ch);
    moved |= bench_moe_issue(p, ch);
    for (int d = 0; d < p->moe->nodes; d++)
        sent &= ch->out[d].issued == ch->out[d].total;
    ch->sent = sent;
    return moved;
}

void bench_moe_metas(struct bench_moe_pe *p)
{
    const struct bench_moe *m = p->moe;
    struct bench_pe *pe = p->pe;

    for (int c = 0; c < (int)m->channels; c++) {
        for (int d = 0; d < m->nodes; d++) {
            int *meta = (int *)(void *)(pe->mem + bench_moe_meta_from(m, c, d));

            /* Each int says by itself that it is there: a number is sent as what is negative. */
            for (int i = 0; i < BENCH_MOE_META_INTS; i++)
                meta[i] = -1;
            meta[BENCH_MOE_META_INTS - 1] = -(int)bench_moe_count(pe->run, pe->pe, c, d) - 1;
            if (d == pe->rank)
                memcpy(pe->mem + bench_moe_meta_at(m, c, d), meta, BENCH_MOE_META_BYTES);
            else
                bench_moe_post(p, &(struct bench_moe_ask){.kind = BENCH_MOE_PUT,
                                                          .rank = d,
                                                          .to = bench_moe_meta_at(m, c, pe->rank),
                                                          .from = bench_moe_meta_from(m, c, d),
                                                          .len = BENCH_MOE_META_BYTES});
        }
        bench_moe_fence(p);
    }
}
