/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_atomic.c - tests of atomics: words that several ops change, sums over many PEs, atomics that the target executes
 * and that are asked for again. Called by litmus_run.c; next: litmus_ops.c.
 */
#include "litmus_tests.h"

#include <errno.h>

/** Sets and adds to one word: its values come in the order in which they were issued. */
int litmus_round_set_add(struct litmus_pe *p)
{
    int to = litmus_other(p, 0), rc = 0;
    struct litmus_span word = litmus_fresh(p, to, 8, 8);
    struct litmus_watch *w = litmus_watch_new(p, "a word that is set and added to", word);
    unsigned n = 2 + litmus_below(p, LITMUS_CHAIN - 1);
    bool set[LITMUS_CHAIN];
    uint64_t v = 0;

    if (!w)
        return -ENOSPC;
    /* The whole chain is known before its first op, since an observer may see it inside the call. */
    for (unsigned i = 0; i < n; i++) {
        set[i] = i == 0 || (i > 1 && litmus_below(p, 2));
        w->chain[i] = v = set[i] ? (uint64_t)(i + 1) << 32 : v + 1 + i;
    }
    w->n_chain = n;
    if (litmus_below(p, 2)) /* so that the first has something to wait for */
        rc = litmus_put(p, 0, litmus_fresh(p, to, litmus_bulk_len(p), 1));
    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = set[i] ? litmus_set(p, 0, word, w->chain[i]) : litmus_add(p, 0, word, w->chain[i] - w->chain[i - 1]);
    return rc;
}

/** What the target executes is ordered too: behind puts, and before the word op behind it. */
int litmus_round_put_atomic(struct litmus_pe *p)
{
    struct litmus_span s[8];
    unsigned n = 0;
    int to = litmus_any_other(p), rc = litmus_some_puts(p, 0, to, s, &n);

    rc = rc ? rc : litmus_announce(p, 0, to, "the atomic that the target executes", LITMUS_BY_ATOMIC, s, n);
    if (rc || litmus_below(p, 2))
        return rc;
    s[n++] = p->announced;
    if (litmus_below(p, 3) == 0)
        rc = litmus_some_puts(p, 0, to, s, &n);
    return rc ? rc : litmus_announce(p, 0, to, "the word behind the atomic", 15, s, n);
}

/** The word that all PEs add to: the first of PE 0's memory that is asked for. */
static struct litmus_span litmus_shared(struct litmus_pe *p, unsigned which, uint32_t len)
{
    uint32_t *shared = &p->run->shared[which], at = __atomic_load_n(shared, __ATOMIC_SEQ_CST);
    struct litmus_span s;

    if (at == 0) {
        s = litmus_fresh(p, 0, len, 8);
        if (!s.len)
            return s;
        if (__atomic_compare_exchange_n(shared, &at, s.at + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            at = s.at + 1; /* else another PE was first */
    }
    return (struct litmus_span){0, at - 1, len};
}

/** All PEs add to two words of PE 0, one of them by fetch-and-add too. */
int litmus_round_adds(struct litmus_pe *p)
{
    int rc = 0;

    for (int i = 0; i < 4 && rc == 0; i++) {
        if (litmus_below(p, 3) == 0)
            rc = litmus_fetch_add(p, 0, litmus_shared(p, 0, 8));
        else
            rc = litmus_add(p, 0, litmus_shared(p, 1, 8), 1 + litmus_below(p, 1000));
        if (rc == 0 && litmus_below(p, 8) == 0)
            rc = litmus_gap(p);
    }
    return rc;
}

/** Atomics that the target executes, with a target that is late: each is executed once, however often it is asked for. Some
 *  meet others' on a word of 4 bytes; some meet others' and native adds on one of 8. */
int litmus_round_repeated(struct litmus_pe *p)
{
    int to = litmus_any_other(p), rc = 0;
    struct litmus_span own = litmus_fresh(p, to, litmus_below(p, 2) ? 4 : 8, 8);

    for (int i = 0; i < 4 && rc == 0; i++) {
        uint32_t what = litmus_below(p, 4), value = 1 + litmus_below(p, 1000);

        if (what == 0)
            rc = litmus_atomic_odd(p, 0, own);
        else if (what == 1)
            rc = litmus_add_small(p, 0, litmus_shared(p, 2, 4), value);
        else if (what == 2)
            rc = litmus_xor_high(p, 0, litmus_shared(p, 3, 8), value);
        else
            rc = litmus_add(p, 0, litmus_shared(p, 3, 8), value);
    }
    return rc;
}
