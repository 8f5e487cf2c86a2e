/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_pair.c - tests with one writer and one target on one channel. Each round names first what the target may conclude
 * and then issues. Called by litmus_run.c; next: litmus_ops.c.
 */
#include "litmus_tests.h"

#include <errno.h>

enum { LITMUS_SMALL = 256 /* the largest put that is a word op */ };

int litmus_some_puts(struct litmus_pe *p, int ch, int pe, struct litmus_span *spans, unsigned *n)
{
    unsigned count = 1 + (litmus_below(p, 3) == 0) * (1 + litmus_below(p, 2));
    int rc = 0;

    for (unsigned i = 0; i < count && rc == 0; i++) {
        uint32_t len = litmus_below(p, 6) ? litmus_bulk_len(p) : 1 + litmus_below(p, LITMUS_SMALL);
        uint32_t align = litmus_below(p, 2) ? 128 : 1;

        spans[*n] = litmus_fresh(p, pe, len, align);
        rc = litmus_put(p, ch, spans[*n]);
        *n += 1;
        if (rc == 0 && litmus_below(p, 4) == 0)
            rc = litmus_gap(p);
    }
    return rc;
}

/** The bytes that will announce, and how. */
static struct litmus_span litmus_word_for(struct litmus_pe *p, int pe, unsigned by, unsigned *chosen)
{
    unsigned bit = 1;

    while ((by & bit) == 0 || litmus_below(p, 2))
        bit = bit == LITMUS_BY_ATOMIC ? 1 : bit * 2;
    *chosen = bit;
    if (bit == LITMUS_BY_P) {
        uint32_t len = 1u << litmus_below(p, 4);

        return litmus_fresh(p, pe, len, len);
    }
    if (bit == LITMUS_BY_SMALL_PUT)
        return litmus_fresh(p, pe, 1 + litmus_below(p, LITMUS_SMALL), 1);
    if (bit == LITMUS_BY_ATOMIC && litmus_below(p, 2))
        return litmus_fresh(p, pe, 4, 4);
    return litmus_fresh(p, pe, 8, 8);
}

static int litmus_word_op(struct litmus_pe *p, int ch, struct litmus_span word, unsigned by)
{
    uint64_t value = litmus_random(&p->random) | 0x0101010101010101u;

    switch (by) {
    case LITMUS_BY_ADD:
        return litmus_add(p, ch, word, value);
    case LITMUS_BY_SET:
        return litmus_set(p, ch, word, value);
    case LITMUS_BY_P:
        return litmus_p(p, ch, word);
    case LITMUS_BY_SMALL_PUT:
        return litmus_put(p, ch, word);
    default:
        return litmus_atomic_odd(p, ch, word);
    }
}

int litmus_announce(struct litmus_pe *p, int ch, int pe, const char *name, unsigned by, const struct litmus_span *spans,
                    unsigned n)
{
    unsigned chosen;
    struct litmus_span word = litmus_word_for(p, pe, by, &chosen);
    struct litmus_watch *w = litmus_watch_new(p, name, word);

    for (unsigned i = 0; i < n; i++)
        litmus_must(p, w, spans[i]);
    p->announced = word;
    return w ? litmus_word_op(p, ch, word, chosen) : -ENOSPC;
}

int litmus_round_put_signal(struct litmus_pe *p)
{
    struct litmus_span s[3];
    unsigned n = 0;
    int to = litmus_any_other(p), rc = litmus_some_puts(p, 0, to, s, &n);

    return rc ? rc : litmus_announce(p, 0, to, "the signal", LITMUS_BY_ADD | LITMUS_BY_SET, s, n);
}

int litmus_round_put_p(struct litmus_pe *p)
{
    struct litmus_span s[3];
    unsigned n = 0;
    int to = litmus_other(p, 0), rc = litmus_some_puts(p, 0, to, s, &n);

    return rc ? rc : litmus_announce(p, 0, to, "the P", LITMUS_BY_P | LITMUS_BY_SMALL_PUT, s, n);
}

int litmus_round_put_fence_put(struct litmus_pe *p)
{
    const struct litmus_shape *s = &p->run->shape;
    bool strict = p->run->c->mode == LITMUS_STRICT || p->run->c->judge_strict;
    struct litmus_span before[4], last, b;
    struct litmus_watch *w;
    unsigned n = 0;
    int to = litmus_other(p, 0), rc = litmus_some_puts(p, 0, to, before, &n);

    if (rc == 0 && litmus_below(p, 3) == 0) {
        before[n] = litmus_fresh(p, to, 8, 8);
        rc = litmus_set(p, 0, before[n++], litmus_random(&p->random) | 1);
    }
    rc = rc ? rc : litmus_fence(p, 0, to);
    if (rc || (!strict && (!s->tail || litmus_below(p, 2))))
        return rc ? rc : litmus_announce(p, 0, to, "the word behind the fence", 15, before, n);
    b = litmus_fresh(p, to, (litmus_bulk_len(p) + 7) / 8 * 8, 8);
    last = litmus_part(b, b.len - 8, 8);
    if (strict) {
        w = litmus_watch_new(p, "any byte behind the fence", b);
        for (unsigned i = 0; i < n; i++)
            litmus_must(p, w, before[i]);
    }
    if (s->tail) {
        w = litmus_watch_new(p, "the last word behind the fence", last);
        for (unsigned i = 0; i < n; i++)
            litmus_must(p, w, before[i]);
        litmus_must(p, w, b);
    }
    return litmus_put(p, 0, b);
}

/** Bytes of s that a further op will overwrite. */
static struct litmus_span litmus_within(struct litmus_pe *p, struct litmus_span s)
{
    uint32_t len = 1 + litmus_below(p, s.len);

    return litmus_part(s, litmus_below(p, s.len - len + 1), len);
}

int litmus_round_put_put(struct litmus_pe *p)
{
    int to = litmus_other(p, 0), rc;
    struct litmus_span s = litmus_fresh(p, to, litmus_bulk_len(p), litmus_below(p, 2) ? 128 : 1);

    rc = litmus_put(p, 0, s);
    for (uint32_t i = 1 + litmus_below(p, 3); i > 0 && rc == 0; i--) {
        rc = litmus_put(p, 0, litmus_below(p, 2) ? s : litmus_within(p, s));
        rc = rc || litmus_below(p, 4) ? rc : litmus_gap(p);
    }
    return rc ? rc : litmus_announce(p, 0, to, "the signal behind two puts to the same bytes", 15, &s, 1);
}

int litmus_round_p_put(struct litmus_pe *p)
{
    int to = litmus_other(p, 0), rc = 0;
    uint32_t size = 1u << litmus_below(p, 4);
    struct litmus_span s = litmus_fresh(p, to, litmus_bulk_len(p) + 7, 8);
    struct litmus_span word = litmus_part(s, litmus_below(p, s.len / size) * size, size);

    if (litmus_below(p, 2)) /* so that the P has something to wait for */
        rc = litmus_put(p, 0, litmus_fresh(p, to, litmus_bulk_len(p), 1));
    rc = rc ? rc : litmus_p(p, 0, word);
    rc = rc ? rc : litmus_put(p, 0, s);
    if (rc == 0 && litmus_below(p, 3) == 0)
        rc = litmus_p(p, 0, word);
    return rc ? rc : litmus_announce(p, 0, to, "the signal behind a put over a P", 15, &s, 1);
}

int litmus_round_put_signal_signal(struct litmus_pe *p)
{
    struct litmus_span s[8];
    unsigned n = 0;
    int to = litmus_any_other(p), rc = litmus_some_puts(p, 0, to, s, &n);

    rc = rc ? rc : litmus_announce(p, 0, to, "the first signal", 3, s, n);
    s[n++] = p->announced;
    if (rc == 0 && litmus_below(p, 2))
        rc = litmus_some_puts(p, 0, to, s, &n);
    return rc ? rc : litmus_announce(p, 0, to, "the second signal", 3, s, n);
}

int litmus_round_pieces(struct litmus_pe *p)
{
    struct litmus_span part[LITMUS_PARTS], word;
    unsigned n = 1 + litmus_below(p, litmus_below(p, 4) ? 4 : LITMUS_PARTS);
    uint32_t most = p->run->shape.len_max * 3 / n;
    int to = litmus_other(p, 0);
    struct litmus_watch *w;

    for (unsigned i = 0; i < n; i++)
        part[i] = litmus_fresh(p, to, 1 + litmus_below(p, litmus_below(p, 3) ? most : LITMUS_SMALL), 1);
    word = litmus_fresh(p, to, 8, 8);
    w = litmus_watch_new(p, "the signal of several pieces", word);
    for (unsigned i = 0; i < n; i++)
        litmus_must(p, w, part[i]);
    return litmus_put_signal(p, 0, part, n, word);
}

int litmus_round_last_word(struct litmus_pe *p)
{
    int to = litmus_other(p, 0);
    struct litmus_span b = litmus_fresh(p, to, (litmus_bulk_len(p) + 7) / 8 * 8, litmus_below(p, 2) ? 128 : 8);
    struct litmus_watch *w = litmus_watch_new(p, "the last word", litmus_part(b, b.len - 8, 8));

    litmus_must(p, w, b);
    return litmus_put(p, 0, b);
}
