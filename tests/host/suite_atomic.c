/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_atomic.c - atomics on 4 and 8 bytes: what they leave in the word, and what they answer. Called by suite.c's list;
 * next: host_mini.h.
 */
#include "suite.h"

#include <string.h>

/** What an atomic makes of a word. */
static uint64_t suite_after(int op, uint64_t old, uint64_t v, uint64_t compare)
{
    switch (op) {
    case NVS_AMO_INC:
    case NVS_AMO_FETCH_INC:
        return old + 1;
    case NVS_AMO_ADD:
    case NVS_AMO_SIGNAL_ADD:
    case NVS_AMO_FETCH_ADD:
        return old + v;
    case NVS_AMO_AND:
    case NVS_AMO_FETCH_AND:
        return old & v;
    case NVS_AMO_OR:
    case NVS_AMO_FETCH_OR:
        return old | v;
    case NVS_AMO_XOR:
    case NVS_AMO_FETCH_XOR:
        return old ^ v;
    case NVS_AMO_COMPARE_SWAP:
        return old == compare ? v : old;
    case NVS_AMO_FETCH:
        return old;
    default:
        return v; /* set, swap, signals that set */
    }
}

static uint64_t suite_cut(uint64_t v, int bytes)
{
    return bytes == 4 ? (uint32_t)v : v;
}

static void suite_word_set(struct suite *s, size_t offset, uint64_t v)
{
    memcpy(s->heap + offset, &v, sizeof(v));
}

/** Each PE works on words of its own at its neighbour and at itself. */
static void suite_atomics_at(struct suite *s, int to, const int *ops, int n)
{
    int back = to == s->me ? s->me : (s->me + s->n - 1) % s->n;

    for (int i = 0; i < n; i++) {
        suite_word_set(s, suite_word_of(back, i), 0x1122334455667788u);
        suite_word_set(s, suite_word_of(back, 32 + i), 0x1122334455667788u);
    }
    suite_meet(s);
    for (int i = 0; i < 2 * n; i++) {
        struct host_amo a = {.op = ops[i % n], .bytes = i < n ? 8 : 4, .value = 0xf0f0f0f00f0f0f0fu + (unsigned)i};
        size_t word = suite_word_of(s->me, i < n ? i : 32 + i - n);

        suite_ok(s, host_amo(s->h, to, word, &a, 0) == 0, "atomic %d", a.op);
    }
    suite_meet(s);
    for (int i = 0; i < 2 * n; i++) {
        int bytes = i < n ? 8 : 4;
        uint64_t old = 0x1122334455667788u, v = 0xf0f0f0f00f0f0f0fu + (unsigned)i;
        uint64_t want = suite_cut(suite_after(ops[i % n], suite_cut(old, bytes), suite_cut(v, bytes), 0), bytes);
        uint64_t seen = suite_word(s, suite_word_of(back, i < n ? i : 32 + i - n));

        if (bytes == 4)
            want |= old & 0xffffffff00000000u;
        suite_ok(s, seen == want, "atomic %d on %d bytes from PE %d: seen %llx, expected %llx", ops[i % n], bytes, back,
                 (unsigned long long)seen, (unsigned long long)want);
    }
    suite_meet(s);
}

void suite_atomics(struct suite *s)
{
    static const int ops[] = {NVS_AMO_INC, NVS_AMO_SET, NVS_AMO_ADD,    NVS_AMO_AND,
                              NVS_AMO_OR,  NVS_AMO_XOR, NVS_AMO_SIGNAL, NVS_AMO_SIGNAL_SET};

    suite_atomics_at(s, s->me, ops, 8);
    suite_atomics_at(s, (s->me + 1) % s->n, ops, 8);
}

static void suite_fetch(struct suite *s, int to, int op, int bytes, uint64_t old, bool matches)
{
    struct host_amo a = {.op = op, .bytes = bytes, .value = 0x0ff00ff00ff00ff1u, .compare = matches ? old : ~old};
    size_t slot = SUITE_SLOTS + (size_t)op * 16;
    uint64_t seen = 0, end = s->w.now(s->w.arg) + (s->w.is_virtual ? 50000000u : 60000000000u);
    int rc;

    memset(s->heap + slot, 0, 16);
    suite_ok(s, host_amo(s->h, to, suite_word_of(s->me, op), &a, slot) == 0, "fetch %d", op);
    while ((rc = host_fetched(s->h, slot, bytes, &seen)) == 0 && s->w.now(s->w.arg) < end)
        suite_step(s);
    suite_ok(s, rc == 1, "fetch %d on %d bytes of PE %d: no answer", op, bytes, to);
    suite_ok(s, rc != 1 || seen == suite_cut(old, bytes),
             "fetch %d on %d bytes of PE %d: answered %llx, the word was %llx", op, bytes, to, (unsigned long long)seen,
             (unsigned long long)suite_cut(old, bytes));
}

static void suite_fetches_of(struct suite *s, int to, int bytes)
{
    int back = to == s->me ? s->me : (s->me + s->n - 1) % s->n;
    uint64_t old = 0x1234567801020304u;

    for (int op = NVS_AMO_FETCH; op <= NVS_AMO_COMPARE_SWAP; op++)
        suite_word_set(s, suite_word_of(back, op), old);
    suite_meet(s);
    for (int op = NVS_AMO_FETCH; op <= NVS_AMO_COMPARE_SWAP; op++)
        suite_fetch(s, to, op, bytes, old, true);
    suite_meet(s);
    for (int op = NVS_AMO_FETCH; op <= NVS_AMO_COMPARE_SWAP; op++) {
        uint64_t v = suite_cut(0x0ff00ff00ff00ff1u, bytes), cut = suite_cut(old, bytes);
        uint64_t want = suite_cut(suite_after(op, cut, v, cut), bytes);

        if (bytes == 4)
            want |= old & 0xffffffff00000000u;
        suite_ok(s, suite_word(s, suite_word_of(back, op)) == want,
                 "fetch %d on %d bytes from PE %d left %llx, expected %llx", op, bytes, back,
                 (unsigned long long)suite_word(s, suite_word_of(back, op)), (unsigned long long)want);
    }
    suite_meet(s);
    /* A swap that does not match changes nothing. */
    suite_word_set(s, suite_word_of(back, NVS_AMO_COMPARE_SWAP), old);
    suite_meet(s);
    suite_fetch(s, to, NVS_AMO_COMPARE_SWAP, bytes, old, false);
    suite_meet(s);
    suite_ok(s, suite_word(s, suite_word_of(back, NVS_AMO_COMPARE_SWAP)) == old, "a compare that failed swapped");
    suite_meet(s);
}

void suite_fetches(struct suite *s)
{
    for (int bytes = 4; bytes <= 8; bytes += 4) {
        suite_fetches_of(s, s->me, bytes);
        suite_fetches_of(s, (s->me + 1) % s->n, bytes);
    }
}

void suite_contended(struct suite *s)
{
    enum { COUNT = 200 };
    struct host_amo a = {.op = NVS_AMO_SIGNAL_ADD, .bytes = 8, .value = 3}, b = a;
    size_t word = suite_word_of(0, 60), other = suite_word_of(0, 61);

    b.op = NVS_AMO_ADD;
    suite_word_set(s, word, 0);
    suite_word_set(s, other, 0);
    suite_meet(s);
    for (int i = 0; i < COUNT; i++) {
        for (int to = 0; to < s->n; to++) {
            suite_ok(s, host_amo(s->h, to, word, &a, 0) == 0, "signal add");
            suite_ok(s, host_amo(s->h, to, other, &b, 0) == 0, "add");
        }
        suite_step(s);
    }
    suite_meet(s);
    suite_ok(s, suite_word(s, word) == (uint64_t)COUNT * 3 * (unsigned)s->n, "signal adds come to %llu, expected %llu",
             (unsigned long long)suite_word(s, word), (unsigned long long)COUNT * 3 * (unsigned)s->n);
    suite_ok(s, suite_word(s, other) == (uint64_t)COUNT * 3 * (unsigned)s->n, "adds come to %llu, expected %llu",
             (unsigned long long)suite_word(s, other), (unsigned long long)COUNT * 3 * (unsigned)s->n);
    suite_meet(s);
}
