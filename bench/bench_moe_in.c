/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_moe_in.c - kernels that read: a slot is compared the moment its tail says that it is there, read when they come to it,
 * and given back by the chunk. In a dispatch each node's tokens are forwarded as they come; in a combine a token is reduced
 * when all its nodes' parts are there, in the order of tokens. Called by bench_moe.c; next: bench_moe_ask.c.
 */
#include "bench_moe.h"

#include <string.h>

uint64_t bench_moe_word(const struct bench_pe *p, size_t at)
{
    return __atomic_load_n((const uint64_t *)(const void *)(p->mem + at), __ATOMIC_ACQUIRE);
}

static uint64_t bench_moe_differs(const struct bench_moe_pe *p, size_t at, size_t len, uint64_t tag)
{
    if (p->moe->pattern)
        return p->pe->run->emu->pattern_diff(p->pe->mem + at, len, tag);
    return bench_differences(p->pe->mem + at, len, tag, 0);
}

/** Compares what a tail announces, chunk by chunk: a tail that is early may end inside of one. */
static void bench_moe_announced(struct bench_moe_pe *p, const struct bench_moe_channel *ch, int d, uint32_t tail)
{
    struct bench_moe *m = p->moe;
    struct bench_run *run = p->pe->run;
    struct bench_moe_in *in = &ch->in[d];

    while (in->tail < tail) {
        uint32_t first = in->tail / m->chunk * m->chunk, end = first + m->chunk < tail ? first + m->chunk : tail;
        uint64_t tag = bench_moe_tag(run, bench_job_pe(run, p->pe->pe, d), p->pe->pe, ch->index, first);
        uint64_t wrong =
            bench_moe_differs(p, bench_moe_slot_in(m, ch->index, d, first), (end - first) * m->token_bytes, tag);
        uint64_t more = wrong > in->wrong ? wrong - in->wrong : 0;

        run->errors += more;
        m->stale += (more + m->token_bytes - 1) / m->token_bytes;
        run->compared += (end - in->tail) * m->token_bytes;
        in->wrong = end == first + m->chunk ? 0 : (uint32_t)wrong;
        in->tail = end;
    }
}

/** The meta of a node, where all its ints are there. */
static void bench_moe_look_meta(struct bench_moe_pe *p, const struct bench_moe_channel *ch, int d)
{
    const int *meta = (const int *)(const void *)(p->pe->mem + bench_moe_meta_at(p->moe, ch->index, d));
    int n = 0;

    for (int i = 0; i < BENCH_MOE_META_INTS; i++) {
        n = __atomic_load_n(&meta[i], __ATOMIC_ACQUIRE);
        if (n >= 0)
            return;
    }
    ch->in[d].known = true;
    ch->in[d].total = (uint32_t)(-n - 1);
}

/** Whether no tail has moved since it was looked at. Other processes move theirs at any time: there each is read on its own. */
static bool bench_moe_still(const struct bench_moe_pe *p, const struct bench_moe_channel *ch)
{
    const unsigned char *tails = p->pe->mem + bench_moe_tail_at(p->moe, ch->index, 0);

    return ch->looked && !ch->unknown && !p->pe->run->spec->live &&
           memcmp(tails, ch->seen, (size_t)p->moe->nodes * sizeof(ch->seen[0])) == 0;
}

/** Looks at the nodes that have more to announce: most have not at most times, where there are many. */
static bool bench_moe_look(struct bench_moe_pe *p, struct bench_moe_channel *ch)
{
    bool moved = false;

    if (bench_moe_still(p, ch))
        return false;
    ch->looked = true;
    for (uint64_t left = ch->open; left; left &= left - 1) {
        int d = __builtin_ctzll(left);
        struct bench_moe_in *in = &ch->in[d];
        uint64_t tail;

        if (!in->known)
            bench_moe_look_meta(p, ch, d);
        if (!in->known)
            continue;
        ch->unknown &= ~((uint64_t)1 << d);
        tail = ch->seen[d] = bench_moe_word(p->pe, bench_moe_tail_at(p->moe, ch->index, d));
        if (tail > in->tail && in->tail < in->total) {
            bench_moe_announced(p, ch, d, tail < in->total ? (uint32_t)tail : in->total);
            ch->unread |= (uint64_t)1 << d;
            moved = true;
        }
        if (in->tail < in->total)
            continue;
        ch->open &= ~((uint64_t)1 << d);
        if (in->read == in->total) /* nothing came from there */
            ch->undone &= ~((uint64_t)1 << d);
    }
    return moved;
}

/** A slot of node d's was read. */
static void bench_moe_took(struct bench_moe_channel *ch, int d)
{
    struct bench_moe_in *in = &ch->in[d];

    ch->fresh |= (uint64_t)1 << d;
    if (++in->read == in->tail)
        ch->unread &= ~((uint64_t)1 << d);
}

/** A dispatch: forwards what is there, node by node. */
static bool bench_moe_forward(struct bench_moe_pe *p, struct bench_moe_channel *ch)
{
    const struct bench_run *run = p->pe->run;
    double gbs = run->spec->moe.forward_gbs;
    bool moved = false;

    while (ch->unread) { /* a turn that meets nobody ends where it began */
        int d = (int)(ch->read_turn % (unsigned)p->moe->nodes);
        struct bench_moe_in *in = &ch->in[d];
        uint32_t cursor = in->cursor;
        double bytes = 0;

        if (!(ch->unread >> d & 1)) {
            ch->read_turn++;
            continue;
        }
        if (gbs > 0)
            bytes = (double)(bench_moe_copies(
                                 p->moe, bench_moe_next(run, bench_job_pe(run, p->pe->pe, d), p->pe->rank, &cursor),
                                 p->pe->rank) *
                             p->moe->token_bytes);
        if (!bench_moe_worked(p, &ch->reading, bytes, gbs))
            return moved;
        in->cursor = cursor;
        bench_moe_took(ch, d);
        moved = true;
    }
    ch->reading.waited = true;
    return moved;
}

/** A combine: the next token of the own ones, when all parts of it are there. */
static bool bench_moe_reduce(struct bench_moe_pe *p, struct bench_moe_channel *ch)
{
    const struct bench_moe *m = p->moe;
    const struct bench_moe_token *t = m->token + (size_t)p->pe->pe * m->tokens;
    uint32_t before = ch->next;

    for (; ch->next < ch->end; ch->next++) {
        uint64_t nodes = t[ch->next].nodes;

        for (uint64_t left = nodes; left; left &= left - 1) {
            const struct bench_moe_in *in = &ch->in[__builtin_ctzll(left)];

            if (in->read == in->tail) {
                ch->reading.waited = true;
                return ch->next != before;
            }
        }
        if (!bench_moe_worked(p, &ch->reading, (double)(m->token_bytes * (size_t)__builtin_popcountll(nodes)),
                              p->pe->run->spec->moe.copy_gbs))
            break;
        for (uint64_t left = nodes; left; left &= left - 1)
            bench_moe_took(ch, __builtin_ctzll(left));
    }
    return ch->next != before;
}

bool bench_moe_read(struct bench_moe_pe *p, struct bench_moe_channel *ch)
{
    const struct bench_moe *m = p->moe;
    bool moved;

    if (ch->took)
        return false;
    moved = bench_moe_look(p, ch);
    moved |= m->combine ? bench_moe_reduce(p, ch) : bench_moe_forward(p, ch);
    for (; ch->fresh; ch->fresh &= ch->fresh - 1) {
        int d = __builtin_ctzll(ch->fresh);
        struct bench_moe_in *in = &ch->in[d];

        /* Credit announces nothing: no fence before it. */
        if (in->read - in->credited >= m->chunk) {
            bench_moe_post(p, &(struct bench_moe_ask){.kind = BENCH_MOE_ADD,
                                                      .rank = d,
                                                      .to = bench_moe_head_at(m, ch->index, p->pe->rank),
                                                      .value = in->read - in->credited});
            in->credited = in->read;
        }
        if (in->read == in->total)
            ch->undone &= ~((uint64_t)1 << d);
    }
    ch->took = !ch->undone;
    return moved;
}
