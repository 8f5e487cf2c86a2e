/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.c - the list of tests, and what they share. Called by suite_main.c; next: suite_data.c and the others.
 */
#include "suite.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct suite_test suite_tests[] = {
    {"puts of all sizes, self too", suite_put, 0},
    {"gets of all sizes, self too", suite_get, 0},
    {"P of 1, 2, 4 and 8 bytes", suite_p, 0},
    {"thousands of small puts", suite_many, 0},
    {"signal add behind its data", suite_signal_add, 0},
    {"signal set behind its data", suite_signal_set, 0},
    {"a counter never runs ahead of its ring", suite_counter, 0},
    {"put_signal add", suite_put_signal_add, 0},
    {"put_signal set", suite_put_signal_set, 0},
    {"put_signal of nothing, and over registrations", suite_put_signal_sizes, 0},
    {"adds of all PEs to one word", suite_contended, 0},
    {"atomics without a result", suite_atomics, SUITE_EVERY_ATOMIC},
    {"atomics with a result", suite_fetches, SUITE_EVERY_ATOMIC},
    {"host threads' put, get, P, fence, quiet", suite_api, 0},
    {"host threads' blocking put and get", suite_blocking, 0},
    {"QPs of the user's", suite_qps, SUITE_V4},
    {"consistency flush behind gets", suite_cst, 0},
    {"many local buffers, come and gone", suite_buffers, 0},
    {"the heap grows and shrinks while puts are under way", suite_growth, 0},
    {"memory known under another address", suite_aliases, SUITE_MAPS | SUITE_OWN},
    {"finalised and initialised again", suite_again, 0},
    {"what is refused", suite_refusals, 0},
};
const int suite_n_tests = sizeof(suite_tests) / sizeof(suite_tests[0]);

bool suite_ok(struct suite *s, bool ok, const char *fmt, ...)
{
    struct suite_result *r = &s->board->test[s->test];
    va_list ap;
    int n;

    if (ok || __atomic_fetch_add(&r->failures, 1, __ATOMIC_SEQ_CST) != 0)
        return ok;
    n = snprintf(r->first, sizeof(r->first), "PE %d: ", s->me);
    va_start(ap, fmt);
    vsnprintf(r->first + n, sizeof(r->first) - (size_t)n, fmt, ap);
    va_end(ap);
    n = (int)strlen(r->first);
    if (s->h && host_why(s->h)[0])
        snprintf(r->first + n, sizeof(r->first) - (size_t)n, " (last of the host: %s)", host_why(s->h));
    return ok;
}

int suite_open(struct suite *s, char *why, size_t why_len)
{
    int rc = host_open(&s->o, &s->w, &s->h, why, why_len);

    if (rc) {
        s->h = NULL;
        return rc;
    }
    rc = host_grow(s->h, SUITE_USED);
    if (rc)
        snprintf(why, why_len, "%s", host_why(s->h));
    return rc;
}

void suite_step(struct suite *s)
{
    int n = host_step(s->h);

    suite_ok(s, n >= 0, "a pass of the proxy: %d", n);
    if (n <= 0)
        s->w.wait(s->w.arg, s->w.now(s->w.arg) + 20000);
}

bool suite_until(struct suite *s, size_t offset, uint64_t value)
{
    uint64_t end = s->w.now(s->w.arg) + (s->w.is_virtual ? 50000000u : 60000000000u);

    while (suite_word(s, offset) < value) {
        if (s->w.now(s->w.arg) > end)
            return suite_ok(s, false, "the word at %zu is %llu, %llu did not come", offset,
                            (unsigned long long)suite_word(s, offset), (unsigned long long)value);
        suite_step(s);
    }
    return true;
}

/** By signals of the plugin under test it would hide what they do; by the bootstrap a PE that waits could not serve others. */
void suite_meet(struct suite *s)
{
    int *at = s->board->at;

    suite_ok(s, host_quiet(s->h) == 0, "quiet");
    __atomic_fetch_add(&at[s->me], 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < s->n; i++) {
        while (__atomic_load_n(&at[i], __ATOMIC_SEQ_CST) < at[s->me])
            suite_step(s);
    }
    s->w.barrier(s->w.arg);
}

void suite_ports(const char *list)
{
    setenv("BRAID_PORTS", list, 1);
    setenv("NVSHMEM_HCA_LIST", list, 1);
}

static uint64_t suite_mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

void suite_fill(unsigned char *p, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        uint64_t v = suite_mix(seed * 0x9e3779b97f4a7c15u + i);

        memcpy(p + i, &v, len - i < 8 ? len - i : 8);
    }
}

size_t suite_wrong(const unsigned char *p, size_t len, uint64_t seed)
{
    size_t wrong = 0;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t v = suite_mix(seed * 0x9e3779b97f4a7c15u + i);
        size_t n = len - i < 8 ? len - i : 8;

        for (size_t k = 0; k < n && memcmp(p + i, &v, n) != 0; k++)
            wrong += p[i + k] != ((unsigned char *)&v)[k];
    }
    return wrong;
}

uint64_t suite_word(const struct suite *s, size_t offset)
{
    return __atomic_load_n((const uint64_t *)(const void *)(s->heap + offset), __ATOMIC_ACQUIRE);
}

size_t suite_word_of(int owner, int i)
{
    return SUITE_WORDS + ((size_t)owner * 64 + (size_t)i) * 64;
}
