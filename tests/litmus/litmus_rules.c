/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_rules.c - the table of rules: each, switched off alone, must make the tests beside it fail. A rule of which no test
 * notices anything is not tested, or not needed. Called by litmus.c; next: litmus_board.c.
 */
#include "litmus_board.h"

static const struct litmus_rule litmus_rules[] = {
    /* a word op waits for what was written on other lanes */
    {"defer", "defer", "put_signal", 2, 0, false, false},
    {"defer", "defer", "put_p", 2, 0, false, false},
    {"defer", "defer", "put_fence_put", 2, 0, false, false},
    {"defer", "defer", "put_signal_signal", 2, 0, false, false},
    {"defer", "defer", "pieces", 2, 0, false, false},
    {"defer", "defer", "signal_get", 2, 0, false, false},
    {"defer", "defer", "self", 2, 0, false, false},
    {"defer", "defer", "channels", 2, 0, false, false},
    {"defer", "defer", "put_atomic", 2, 0, false, false},
    /* what was acknowledged is not visible yet */
    {"flush", "flush", "put_signal", 2, 0, false, false},
    {"flush", "flush", "pieces", 2, 0, false, false},
    {"flush", "flush", "third_pe", 1, 0, false, false},
    {"flush", "flush", "quiet_signal", 1, 0, false, false},
    {"flush", "flush", "channels", 1, 0, false, false},
    /* placement out of order: the own lane too */
    {"own-flush", "own-flush", "put_p", 1, 2, false, false},
    {"own-flush", "own-flush", "put_signal", 1, 3, false, false},
    {"own-flush", "own-flush", "set_add", 1, 2, false, false},
    /* relaxed ordering: word ops have a key of their own */
    {"keys", "keys", "put_p", 1, 1, false, false},
    {"keys", "keys", "put_signal_signal", 1, 1, false, false},
    /* no stale value may win */
    {"overlap", "overlap", "put_put", 1, 0, false, false},
    {"overlap", "overlap", "p_put", 2, 0, false, false},
    /* all atomics of a word on one device */
    {"home", "home", "adds", 2, 0, false, false},
    /* an atomic that is asked for again is executed once */
    {"dedup", "dedup", "repeated", 1, 0, false, false},
    /* the last bytes of a cut put are a word op */
    {"tail", "tail", "last_word", 2, 0, false, false},
    {"tail", "tail", "put_fence_put", 2, 0, false, false},
    /* all of them */
    {"order", "order", "put_signal", 2, 0, false, false},
    /* not options of a fault, but the same question: does the judgement need what the mode does? */
    {"tail=off", NULL, "last_word", 2, 0, false, true},
    {"release for strict", NULL, "put_fence_put", 1, 0, true, false},
};

const struct litmus_rule *litmus_rule_at(unsigned i)
{
    return i < sizeof(litmus_rules) / sizeof(litmus_rules[0]) ? &litmus_rules[i] : NULL;
}
