/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_far.c - tests in which more than a writer, a target and a channel take part: a third PE that is told, gets, the
 * own PE, two channels. Called by litmus_run.c; next: litmus_ops.c.
 */
#include "litmus_tests.h"

#include <errno.h>

/** The observer of w tells the PE that holds w->data, or fetches it by itself. */
static int litmus_tell(struct litmus_pe *p, struct litmus_watch *w)
{
    return w->data.len % 2 ? litmus_get_compare(p, 0, "what a third PE gets after the quiet", w->data)
                           : litmus_add(p, 0, w->word, 1);
}

/** A puts to C and is quiet; then it tells B, which tells C, or gets what C holds. */
int litmus_round_third_pe(struct litmus_pe *p)
{
    int b = litmus_other(p, 0), c = litmus_other(p, 1), rc;
    struct litmus_span data = litmus_fresh(p, c, litmus_bulk_len(p), 1), told = litmus_fresh(p, b, 8, 8);
    struct litmus_span word = litmus_fresh(p, c, 8, 8);
    struct litmus_watch *at_c = NULL, *at_b;

    rc = litmus_put(p, 0, data);
    if (rc == 0 && litmus_below(p, 3) == 0)
        rc = litmus_put(p, 0, litmus_fresh(p, b, litmus_bulk_len(p), 1));
    rc = rc ? rc : litmus_quiet(p, 0, c);
    if (data.len % 2 == 0) {
        at_c = litmus_watch_new(p, "what a third PE tells after the quiet", word);
        litmus_must(p, at_c, data);
    }
    at_b = litmus_watch_new(p, "the word to the third PE", told);
    if (rc || !at_b)
        return rc ? rc : -ENOSPC;
    at_b->then = litmus_tell;
    at_b->data = data;
    at_b->word = word;
    return litmus_add(p, 0, told, 1);
}

/** Between channels there is no order, so what the other channel tells right after the quiet leaves at once. */
int litmus_round_quiet_signal(struct litmus_pe *p)
{
    struct litmus_span s[3];
    unsigned n = 0;
    int first = (int)litmus_below(p, 2), to = litmus_other(p, 0), rc = litmus_some_puts(p, first, to, s, &n);

    rc = rc ? rc : litmus_quiet(p, first, to);
    return rc ? rc : litmus_announce(p, 1 - first, to, "another channel's signal after the quiet", 15, s, n);
}

static int litmus_get_after(struct litmus_pe *p, struct litmus_watch *w)
{
    int rc = litmus_get_compare(p, 0, "a get of the own bytes behind their signal", w->data);

    return rc || !w->word.len ? rc : litmus_add(p, 0, w->word, 1);
}

static int litmus_get_far(struct litmus_pe *p, struct litmus_watch *w)
{
    return litmus_get_compare(p, 0, "a get of what was announced to another", w->data);
}

/** B is told of data by a signal and gets it from itself; then C is told and gets it from B. */
int litmus_round_signal_get(struct litmus_pe *p)
{
    int b = litmus_other(p, 0), c = litmus_other(p, 1), rc;
    struct litmus_span data = litmus_fresh(p, b, litmus_bulk_len(p), 1), told = litmus_fresh(p, b, 8, 8);
    struct litmus_span word = litmus_fresh(p, c, litmus_below(p, 2) ? 8 : 0, 8);
    struct litmus_watch *w;

    rc = litmus_put(p, 0, data);
    if (rc)
        return rc;
    if (word.len) {
        w = litmus_watch_new(p, "the word to who gets", word);
        if (!w)
            return -ENOSPC;
        w->then = litmus_get_far;
        w->data = data;
    }
    w = litmus_watch_new(p, "the signal before the gets", told);
    litmus_must(p, w, data);
    if (!w)
        return -ENOSPC;
    w->then = litmus_get_after;
    w->data = data;
    w->word = word;
    return litmus_add(p, 0, told, 1);
}

/** Only one PE takes part, so litmus_other() is the PE itself. */
int litmus_round_self(struct litmus_pe *p)
{
    switch (litmus_below(p, 5)) {
    case 0:
        return litmus_round_put_signal(p);
    case 1:
        return litmus_round_put_p(p);
    case 2:
        return litmus_round_put_put(p);
    case 3:
        return litmus_round_put_signal_signal(p);
    default:
        return litmus_round_pieces(p);
    }
}

/** Two channels in turn: each keeps its own order, and quiet is what orders one behind the other. */
int litmus_round_channels(struct litmus_pe *p)
{
    struct litmus_span s[2][6];
    unsigned n[2] = {0, 0};
    int first = (int)litmus_below(p, 2), to = litmus_other(p, 0), rc = 0;

    for (int k = 0; k < 2 && rc == 0; k++)
        rc = litmus_some_puts(p, first ^ k, to, s[k], &n[k]);
    for (int k = 0; k < 2 && rc == 0; k++)
        rc = litmus_announce(p, first ^ k, to, "a channel's own signal", 15, s[k], n[k]);
    if (rc || litmus_below(p, 3))
        return rc;
    rc = litmus_some_puts(p, first, to, s[0], &n[0]);
    rc = rc ? rc : litmus_quiet(p, first, to);
    return rc ? rc : litmus_announce(p, first ^ 1, to, "the other channel's signal after a quiet", 15, s[0], n[0]);
}
