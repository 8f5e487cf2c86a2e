/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_order.c - who sees a signal sees what it announces. The receiver compares the moment that the word has changed, and
 * gives credit back by a signal of its own, as DeepEP does. Called by suite.c's list; next: host_mini.h.
 */
#include "suite.h"

#include <string.h>

enum { SUITE_ROUNDS = 24, SUITE_DATA = 0, SUITE_CREDIT = 1, SUITE_TAIL = 2 };

static const size_t suite_round_sizes[] = {8, 256, 300, 4096, 40000, 262144, 524288 + 4096};

static uint64_t suite_round_seed(int from, int to, int round)
{
    return (uint64_t)round * 65537 + (uint64_t)from * 257 + (uint64_t)to;
}

/** How a round is announced. */
enum suite_how { SUITE_BY_SIGNAL, SUITE_BY_PUT_SIGNAL };

static void suite_send(struct suite *s, int to, int round, size_t len, enum suite_how how, int op)
{
    size_t src = SUITE_SRC + (size_t)to * (SUITE_AREA / 4), dst = SUITE_IN + (size_t)s->me * SUITE_AREA;
    size_t word = suite_word_of(s->me, SUITE_DATA);
    uint64_t value = op == NVS_AMO_SIGNAL_ADD ? 1 : (uint64_t)round + 1;
    struct host_amo amo = {.op = op, .bytes = 8, .value = value};
    int rc;

    suite_fill(s->heap + src, len, suite_round_seed(s->me, to, round));
    if (how == SUITE_BY_PUT_SIGNAL) {
        rc = host_put_signal(s->h, to, dst, s->heap + src, len, word, op, value);
    } else {
        rc = host_put(s->h, to, dst, s->heap + src, len);
        rc = rc ? rc : host_fence(s->h);
        rc = rc ? rc : host_amo(s->h, to, word, &amo, 0);
    }
    suite_ok(s, rc == 0, "round %d to PE %d: %d", round, to, rc);
}

/** What has come from a PE is compared, and the place given back. */
static void suite_receive(struct suite *s, int from, int round, size_t len)
{
    struct host_amo credit = {.op = NVS_AMO_SIGNAL_ADD, .bytes = 8, .value = 1};
    size_t wrong;

    if (!suite_until(s, suite_word_of(from, SUITE_DATA), (uint64_t)round + 1))
        return;
    wrong = suite_wrong(s->heap + SUITE_IN + (size_t)from * SUITE_AREA, len, suite_round_seed(from, s->me, round));
    suite_ok(s, wrong == 0, "round %d from PE %d: %zu of %zu bytes were not there with the signal", round, from, wrong,
             len);
    suite_ok(s, host_amo(s->h, from, suite_word_of(s->me, SUITE_CREDIT), &credit, 0) == 0, "credit");
}

static void suite_rounds(struct suite *s, enum suite_how how, int op)
{
    for (int i = 0; i < SUITE_PES * 64; i++)
        memset(s->heap + SUITE_WORDS + (size_t)i * 64, 0, 8);
    suite_meet(s);
    for (int round = 0; round < SUITE_ROUNDS; round++) {
        size_t len = suite_round_sizes[round % 7];

        /* Sources are reused when the receiver has said so, not by quiet. */
        for (int to = 0; round > 0 && to < s->n; to++)
            suite_until(s, suite_word_of(to, SUITE_CREDIT), (uint64_t)round);
        for (int to = 0; to < s->n; to++)
            suite_send(s, to, round, len > SUITE_AREA / 4 ? SUITE_AREA / 4 : len, how, op);
        for (int from = 0; from < s->n; from++)
            suite_receive(s, from, round, len > SUITE_AREA / 4 ? SUITE_AREA / 4 : len);
    }
    suite_meet(s);
}

void suite_signal_add(struct suite *s)
{
    suite_rounds(s, SUITE_BY_SIGNAL, NVS_AMO_SIGNAL_ADD);
}

void suite_signal_set(struct suite *s)
{
    suite_rounds(s, SUITE_BY_SIGNAL, NVS_AMO_SIGNAL_SET);
}

void suite_put_signal_add(struct suite *s)
{
    suite_rounds(s, SUITE_BY_PUT_SIGNAL, NVS_AMO_SIGNAL_ADD);
}

void suite_put_signal_set(struct suite *s)
{
    suite_rounds(s, SUITE_BY_PUT_SIGNAL, NVS_AMO_SIGNAL_SET);
}

void suite_put_signal_sizes(struct suite *s)
{
    static const size_t sizes[] = {0, 1, 256, 257, 1 << 20, SUITE_AREA};
    size_t word = suite_word_of(s->me, 3), dst = SUITE_IN + (size_t)s->me * SUITE_AREA;

    for (uint64_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        int to = (s->me + 1) % s->n, from = (s->me + s->n - 1) % s->n;

        if (k == 0)
            memset(s->heap + suite_word_of(from, 3), 0, 8);
        suite_fill(s->heap + SUITE_SRC, sizes[k], k + 77);
        suite_meet(s);
        suite_ok(s, host_put_signal(s->h, to, dst, s->heap + SUITE_SRC, sizes[k], word, NVS_AMO_SIGNAL_ADD, 1) == 0,
                 "put_signal of %zu bytes", sizes[k]);
        if (suite_until(s, suite_word_of(from, 3), k + 1))
            suite_ok(s, suite_wrong(s->heap + SUITE_IN + (size_t)from * SUITE_AREA, sizes[k], k + 77) == 0,
                     "%zu bytes were not all there with the signal", sizes[k]);
        suite_meet(s);
    }
}

/**
 * A ring of 16 places; the counter says how many bytes of it are good. No quiet at all: what the counter says when it
 * is looked at has to be there, whatever is still under way.
 */
void suite_counter(struct suite *s)
{
    enum { PLACE = 32768, PLACES = 16, COUNT = 96 };
    int to = (s->me + 1) % s->n, from = (s->me + s->n - 1) % s->n;
    size_t tail = suite_word_of(s->me, SUITE_TAIL), ring = SUITE_IN + (size_t)s->me * SUITE_AREA;
    struct host_amo add = {.op = NVS_AMO_SIGNAL_ADD, .bytes = 8, .value = 1};
    uint64_t sent = 0, seen = 0, end = s->w.now(s->w.arg) + (s->w.is_virtual ? 100000000u : 120000000000u);

    memset(s->heap + suite_word_of(from, SUITE_TAIL), 0, 8);
    memset(s->heap + suite_word_of(to, 5), 0, 8);
    suite_meet(s);
    while (sent < COUNT || seen < COUNT) {
        bool moved = false;

        if (sent < COUNT && sent - suite_word(s, suite_word_of(to, 5)) < PLACES) {
            size_t at = sent % PLACES * PLACE;

            suite_fill(s->heap + SUITE_SRC + at, PLACE, sent * 31 + (uint64_t)s->me);
            suite_ok(s, host_put(s->h, to, ring + at, s->heap + SUITE_SRC + at, PLACE) == 0, "put");
            suite_ok(s, host_fence(s->h) == 0 && host_amo(s->h, to, tail, &add, 0) == 0, "add");
            sent++;
            moved = true;
        }
        for (uint64_t good = suite_word(s, suite_word_of(from, SUITE_TAIL)); seen < good; seen++) {
            const unsigned char *at = s->heap + SUITE_IN + (size_t)from * SUITE_AREA + seen % PLACES * PLACE;

            suite_ok(s, suite_wrong(at, PLACE, seen * 31 + (uint64_t)from) == 0,
                     "place %llu is announced and not there", (unsigned long long)seen);
            suite_ok(s, host_amo(s->h, from, suite_word_of(s->me, 5), &add, 0) == 0, "credit");
            moved = true;
        }
        if (!moved || host_waiting(s->h))
            suite_step(s);
        if (!suite_ok(s, s->w.now(s->w.arg) < end, "%llu of %d places sent, %llu seen, and no end",
                      (unsigned long long)sent, COUNT, (unsigned long long)seen))
            break;
    }
    suite_meet(s);
}
