/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_data.c - bytes arrive where they should, all of them and no others. Called by suite.c's list; next: host_mini.h.
 */
#include "suite.h"

#include <string.h>

static const size_t suite_sizes[] = {1,   7,    8,    9,     63,    64,     255,    256,
                                     257, 4095, 4096, 16384, 65536, 131071, 524288, (1 << 20) + 13};
enum { SUITE_SIZES = sizeof(suite_sizes) / sizeof(suite_sizes[0]), SUITE_GUARD = 0x77 };

static uint64_t suite_seed(int from, int to, size_t len)
{
    return (uint64_t)from * 1000003 + (uint64_t)to * 10007 + len;
}

/** Device code tries again when the channel is full. */
static void suite_retry(struct suite *s, int rc)
{
    suite_ok(s, rc == 0, "a request: %d", rc);
}

static size_t suite_in(int from)
{
    return SUITE_IN + (size_t)from * SUITE_AREA;
}

void suite_put(struct suite *s)
{
    for (int k = 0; k < SUITE_SIZES; k++) {
        size_t len = suite_sizes[k], shift = len % 128 == 0 ? 0 : len % 61;

        for (int i = 0; i < s->n; i++)
            memset(s->heap + suite_in(i), SUITE_GUARD, len + 128);
        suite_meet(s);
        for (int to = 0; to < s->n; to++) {
            suite_fill(s->heap + SUITE_SRC, len, suite_seed(s->me, to, len));
            suite_retry(s, host_put(s->h, to, suite_in(s->me) + shift, s->heap + SUITE_SRC, len));
            suite_ok(s, host_quiet(s->h) == 0, "quiet");
        }
        suite_meet(s);
        for (int from = 0; from < s->n; from++) {
            const unsigned char *at = s->heap + suite_in(from) + shift;
            size_t wrong = suite_wrong(at, len, suite_seed(from, s->me, len));

            suite_ok(s, wrong == 0, "%zu of %zu bytes from PE %d are wrong", wrong, len, from);
            suite_ok(s, at[len] == SUITE_GUARD && (!shift || at[-1] == SUITE_GUARD),
                     "bytes beside %zu bytes from PE %d changed", len, from);
        }
    }
}

void suite_get(struct suite *s)
{
    for (int k = 0; k < SUITE_SIZES; k++) {
        size_t len = suite_sizes[k], shift = len % 61;

        suite_fill(s->heap + SUITE_SRC, len + shift, suite_seed(s->me, 99, len));
        suite_meet(s);
        for (int from = 0; from < s->n; from++) {
            memset(s->heap + suite_in(from), SUITE_GUARD, len + 128);
            suite_retry(s, host_get(s->h, from, s->heap + suite_in(from), SUITE_SRC, len));
        }
        suite_ok(s, host_quiet(s->h) == 0, "quiet");
        for (int from = 0; from < s->n; from++) {
            size_t wrong = suite_wrong(s->heap + suite_in(from), len, suite_seed(from, 99, len));

            suite_ok(s, wrong == 0, "%zu of %zu bytes got from PE %d are wrong", wrong, len, from);
            suite_ok(s, s->heap[suite_in(from) + len] == SUITE_GUARD, "bytes beside %zu bytes from PE %d changed", len,
                     from);
        }
        suite_meet(s);
    }
}

void suite_p(struct suite *s)
{
    static const int bytes[] = {1, 2, 4, 8};

    for (int i = 0; i < s->n; i++)
        memset(s->heap + suite_in(i), SUITE_GUARD, 4096);
    suite_meet(s);
    for (int to = 0; to < s->n; to++) {
        for (int k = 0; k < 4; k++) {
            for (int i = 0; i < 8; i++)
                suite_retry(s, host_p(s->h, to, suite_in(s->me) + (size_t)(k * 8 + i) * 16,
                                      suite_seed(s->me, to, (size_t)i) * 0x0101010101010101u, bytes[k]));
        }
    }
    suite_meet(s);
    for (int from = 0; from < s->n; from++) {
        for (int i = 0; i < 32; i++) {
            const unsigned char *at = s->heap + suite_in(from) + (size_t)i * 16;
            uint64_t v = suite_seed(from, s->me, (size_t)(i % 8)) * 0x0101010101010101u;

            suite_ok(s, memcmp(at, &v, (size_t)bytes[i / 8]) == 0 && at[bytes[i / 8]] == SUITE_GUARD,
                     "P of %d bytes from PE %d is wrong, or wrote more", bytes[i / 8], from);
        }
    }
}

void suite_many(struct suite *s)
{
    enum { COUNT = 3000, EACH = 48 };
    size_t len = (size_t)COUNT * EACH;

    for (int i = 0; i < s->n; i++)
        memset(s->heap + suite_in(i), 0, len);
    suite_fill(s->heap + SUITE_SRC, len, suite_seed(s->me, 0, 1));
    suite_meet(s);
    for (size_t i = 0; i < COUNT; i++) {
        for (int to = 0; to < s->n; to++)
            suite_retry(s, host_put(s->h, to, suite_in(s->me) + i * EACH, s->heap + SUITE_SRC + i * EACH, EACH));
        if (host_waiting(s->h) > 1000)
            suite_step(s);
    }
    suite_meet(s);
    for (int from = 0; from < s->n; from++) {
        size_t wrong = suite_wrong(s->heap + suite_in(from), len, suite_seed(from, 0, 1));

        suite_ok(s, wrong == 0, "%zu of %zu bytes from PE %d are wrong", wrong, len, from);
    }
}

void suite_api(struct suite *s)
{
    size_t len = 200000;

    for (int i = 0; i < s->n; i++)
        memset(s->heap + suite_in(i), 0, len + 64);
    suite_fill(s->heap + SUITE_SRC, len, suite_seed(s->me, 0, 2));
    suite_meet(s);
    for (int to = 0; to < s->n; to++) {
        suite_ok(s, host_api_put(s->h, to, suite_in(s->me), s->heap + SUITE_SRC, len, true) == 0, "put to PE %d", to);
        suite_ok(s, host_api_fence(s->h) == 0, "fence");
        suite_ok(s, host_api_p(s->h, to, suite_in(s->me) + len + 8 - len % 8, 0x1234567890u + (unsigned)s->me, 8) == 0,
                 "P");
    }
    suite_ok(s, host_api_quiet(s->h) == 0, "quiet");
    suite_meet(s);
    for (int from = 0; from < s->n; from++) {
        size_t wrong = suite_wrong(s->heap + suite_in(from), len, suite_seed(from, 0, 2));

        suite_ok(s, wrong == 0, "%zu of %zu bytes from PE %d are wrong", wrong, len, from);
        suite_ok(s, suite_word(s, suite_in(from) + len + 8 - len % 8) == 0x1234567890u + (unsigned)from, "P from PE %d",
                 from);
    }
    suite_meet(s);
    for (int from = 0; from < s->n; from++)
        suite_ok(s, host_api_get(s->h, from, s->heap + suite_in(from), SUITE_SRC, len / 2, true) == 0, "get from PE %d",
                 from);
    suite_ok(s, host_api_quiet(s->h) == 0, "quiet");
    for (int from = 0; from < s->n; from++)
        suite_ok(s, suite_wrong(s->heap + suite_in(from), len / 2, suite_seed(from, 0, 2)) == 0, "got from PE %d",
                 from);
    suite_meet(s);
}

/** What is not nbi has ended when the call returns. */
void suite_blocking(struct suite *s)
{
    int to = (s->me + 1) % s->n, from = (s->me + s->n - 1) % s->n;
    size_t len = 100001;

    memset(s->heap + suite_in(from), 0, len);
    suite_fill(s->heap + SUITE_SRC, len, suite_seed(s->me, 0, 3));
    suite_meet(s);
    for (int i = 0; i < 3; i++)
        suite_ok(s, host_api_put(s->h, to, suite_in(s->me), s->heap + SUITE_SRC, len, false) == 0, "put");
    memset(s->heap + SUITE_SRC, 0, len);
    suite_meet(s);
    suite_ok(s, suite_wrong(s->heap + suite_in(from), len, suite_seed(from, 0, 3)) == 0,
             "a blocking put's source was read late");
    suite_ok(s, host_api_get(s->h, to, s->heap + SUITE_SRC, suite_in(s->me), len, false) == 0, "get");
    suite_ok(s, suite_wrong(s->heap + SUITE_SRC, len, suite_seed(s->me, 0, 3)) == 0, "a blocking get returned early");
    suite_meet(s);
}

void suite_qps(struct suite *s)
{
    size_t len = 300000;
    int qp[3] = {0};

    suite_meet(s);
    if (!suite_ok(s, host_qp_create(s->h, 3, qp) == 0, "qp_create"))
        return;
    for (int i = 0; i < s->n; i++)
        memset(s->heap + suite_in(i), 0, 3 * len);
    suite_fill(s->heap + SUITE_SRC, 3 * len, suite_seed(s->me, 0, 4));
    suite_meet(s);
    for (size_t i = 0; i < 3; i++) {
        suite_ok(s, qp[i] >= 1, "QP %zu is %d", i, qp[i]);
        for (int to = 0; to < s->n; to++)
            suite_retry(s, host_put_qp(s->h, to, suite_in(s->me) + i * len, s->heap + SUITE_SRC + i * len, len, qp[i]));
    }
    for (int i = 0; i < 3; i++) {
        for (int to = 0; to < s->n; to++)
            suite_ok(s, host_quiet_qp(s->h, to, qp[i]) == 0, "quiet of QP %d", qp[i]);
    }
    s->w.barrier(s->w.arg);
    for (int from = 0; from < s->n; from++)
        suite_ok(s, suite_wrong(s->heap + suite_in(from), 3 * len, suite_seed(from, 0, 4)) == 0, "bytes from PE %d",
                 from);
    suite_meet(s);
}

void suite_cst(struct suite *s)
{
    suite_fill(s->heap + SUITE_SRC, 8192, suite_seed(s->me, 0, 5));
    suite_meet(s);
    for (int i = 0; i < 20; i++) {
        int from = (s->me + i) % s->n;

        memset(s->heap + suite_in(from), 0, 8192);
        suite_retry(s, host_get(s->h, from, s->heap + suite_in(from), SUITE_SRC, 8192));
        suite_ok(s, host_quiet(s->h) == 0, "quiet with its flush");
        suite_retry(s, host_cst(s->h));
        suite_ok(s, suite_wrong(s->heap + suite_in(from), 8192, suite_seed(from, 0, 5)) == 0, "got from PE %d", from);
    }
    suite_meet(s);
}
