/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_tests.c - the table of tests, and names. Called by the drivers; next: litmus_pair.c, litmus_far.c, litmus_atomic.c.
 */
#include "litmus_tests.h"

#include <string.h>

static const struct litmus_test litmus_table[] = {
    {"put_signal", 3, 0, litmus_round_put_signal},
    {"put_p", 2, 0, litmus_round_put_p},
    {"put_fence_put", 2, 0, litmus_round_put_fence_put},
    {"put_put", 2, 0, litmus_round_put_put},
    {"p_put", 2, 0, litmus_round_p_put},
    {"put_signal_signal", 3, 0, litmus_round_put_signal_signal},
    {"pieces", 2, 0, litmus_round_pieces},
    {"last_word", 2, LITMUS_NEED_TAIL, litmus_round_last_word},
    {"third_pe", 3, 0, litmus_round_third_pe},
    {"quiet_signal", 2, LITMUS_NEED_CHANNELS, litmus_round_quiet_signal},
    {"signal_get", 3, 0, litmus_round_signal_get},
    {"self", 1, 0, litmus_round_self},
    {"set_add", 2, 0, litmus_round_set_add},
    {"channels", 2, LITMUS_NEED_CHANNELS, litmus_round_channels},
    {"put_atomic", 3, 0, litmus_round_put_atomic},
    {"adds", 8, LITMUS_NEED_ALL | LITMUS_NEED_UNREACHABLE, litmus_round_adds},
    {"repeated", 3, LITMUS_NEED_ALL | LITMUS_NEED_SLOW, litmus_round_repeated},
};

const struct litmus_test *litmus_test_at(unsigned i)
{
    return i < sizeof(litmus_table) / sizeof(litmus_table[0]) ? &litmus_table[i] : NULL;
}

const struct litmus_test *litmus_test_named(const char *name)
{
    const struct litmus_test *t;

    for (unsigned i = 0; (t = litmus_test_at(i)); i++) {
        if (strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

const char *litmus_mode_name(enum litmus_mode mode)
{
    static const char *const names[] = {"release", "strict", "drain"};

    return names[mode];
}

const char *litmus_kind_name(enum litmus_kind kind)
{
    static const char *const names[] = {"judged", "ackvis", "silent"};

    return names[kind];
}
