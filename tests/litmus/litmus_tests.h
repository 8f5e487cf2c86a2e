/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_tests.h - the rounds of the tests; README.md says what each shows. Each is one round of a writer; see litmus.h.
 */
#ifndef LITMUS_TESTS_H
#define LITMUS_TESTS_H

#include "litmus.h"

/** How something is announced; more than one: a random one of them. */
enum litmus_by {
    LITMUS_BY_ADD = 1,
    LITMUS_BY_SET = 2,
    LITMUS_BY_P = 4,
    LITMUS_BY_SMALL_PUT = 8,
    LITMUS_BY_ATOMIC = 16 /* one that the target executes */
};

/** A put, or a few, of random lengths to fresh bytes of a PE. Adds what it wrote to spans; *n counts them. */
int litmus_some_puts(struct litmus_pe *p, int ch, int pe, struct litmus_span *spans, unsigned *n);
/** Announces spans to the PE that holds them. */
int litmus_announce(struct litmus_pe *p, int ch, int pe, const char *name, unsigned by, const struct litmus_span *spans,
                    unsigned n);

/* litmus_pair.c: one writer, one target */
int litmus_round_put_signal(struct litmus_pe *p);
int litmus_round_put_p(struct litmus_pe *p);
int litmus_round_put_fence_put(struct litmus_pe *p);
int litmus_round_put_put(struct litmus_pe *p);
int litmus_round_p_put(struct litmus_pe *p);
int litmus_round_put_signal_signal(struct litmus_pe *p);
int litmus_round_pieces(struct litmus_pe *p);
int litmus_round_last_word(struct litmus_pe *p);

/* litmus_far.c: more PEs, channels, gets, the own PE */
int litmus_round_third_pe(struct litmus_pe *p);
int litmus_round_quiet_signal(struct litmus_pe *p);
int litmus_round_signal_get(struct litmus_pe *p);
int litmus_round_self(struct litmus_pe *p);
int litmus_round_channels(struct litmus_pe *p);

/* litmus_atomic.c */
int litmus_round_set_add(struct litmus_pe *p);
int litmus_round_put_atomic(struct litmus_pe *p);
int litmus_round_adds(struct litmus_pe *p);
int litmus_round_repeated(struct litmus_pe *p);

#endif
