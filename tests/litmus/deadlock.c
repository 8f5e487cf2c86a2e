/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock.c - full queues, blocking calls and what others need meanwhile. Every wait here is without a deadline, so where
 * nothing can happen any more the emulator ends the run with -EDEADLK and says who sleeps where.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

/* The smallest queues there may be. */
#define DEADLOCK_TINY "sq_depth=32", "word_depth=1", "bulk_depth=32", "stripe_min=257", "piece_min=128"

enum {
    DEADLOCK_ROUNDS = 200,
    DEADLOCK_LEN = 4000,
    DEADLOCK_SLOTS = 64,
    DEADLOCK_WORD = 0,
    DEADLOCK_NOTICE = 1,
    DEADLOCK_GO = 2,
    DEADLOCK_END = 3
};

static int deadlock_until(struct fabric_pe *p, int word, uint64_t value)
{
    int rc = 0;

    while (rc == 0 && __atomic_load_n(&p->words[word], __ATOMIC_ACQUIRE) < value)
        rc = fabric_step(p);
    return rc;
}

/** Waits for a word without any call of libbraid: this PE's own progress stands still. */
static int deadlock_until_asleep(struct fabric_pe *p, int word, uint64_t value)
{
    int rc = 0;

    while (rc == 0 && __atomic_load_n(&p->words[word], __ATOMIC_ACQUIRE) < value)
        rc = p->run->emu->wait(UINT64_MAX);
    return rc;
}

/** A 4-byte add: the target has to execute it. */
static int deadlock_ask(struct fabric_pe *p, struct braid_channel *ch, int pe, int word, struct braid_done *done)
{
    static const struct braid_atomic add = {.op = BRAID_ATOMIC_ADD, .bytes = 4, .operand = 1};
    int rc;

    while ((rc = braid_atomic(ch, pe, fabric_remote(p, pe, FABRIC_MEM + (size_t)word * 8), &add, NULL, done)) ==
           -EAGAIN) {
        rc = fabric_step(p);
        if (rc)
            break;
    }
    return rc;
}

static void deadlock_fill(struct fabric_pe *p)
{
    for (size_t i = 0; i < DEADLOCK_LEN; i++)
        p->bytes[i] = (unsigned char)(1 + (i * 7 + (size_t)p->pe) % 251);
}

/** Compares what a PE has put to every slot of this one. */
static void deadlock_compare(struct fabric_pe *p, int from)
{
    size_t wrong = 0;

    for (size_t s = 1; s <= DEADLOCK_SLOTS; s++) {
        for (size_t i = 0; i < DEADLOCK_LEN; i++)
            wrong += p->bytes[s * DEADLOCK_LEN + i] != (unsigned char)(1 + (i * 7 + (size_t)from) % 251);
    }
    fabric_equal(p, (long long)wrong, 0, "wrong bytes");
}

/** A PE that is done with its own still has to answer others, so leaving is agreed on by words and not in a barrier. */
static int deadlock_leave(struct fabric_pe *p)
{
    int rc = braid_quiet(p->ch, BRAID_ALL_PES);

    for (int i = 0; i < p->n_pes && rc == 0; i++)
        rc = fabric_add(p, i, DEADLOCK_END, 1, NULL);
    rc = rc ? rc : deadlock_until(p, DEADLOCK_END, (uint64_t)p->n_pes);
    return rc ? rc : braid_quiet(p->ch, BRAID_ALL_PES);
}

/* ---- two PEs with full queues waiting for each other ------------------------------------------------------------- */

static int pe_full_queues(struct fabric_pe *p)
{
    int to = 1 - p->pe, rc = 0;

    deadlock_fill(p);
    for (int i = 0; i < DEADLOCK_ROUNDS && rc == 0; i++) {
        rc = fabric_put(p, to, (size_t)(1 + i % DEADLOCK_SLOTS) * DEADLOCK_LEN, 0, DEADLOCK_LEN, NULL);
        rc = rc ? rc : fabric_add(p, to, DEADLOCK_WORD, 1, NULL);
        rc = rc ? rc : deadlock_ask(p, p->ch, to, DEADLOCK_NOTICE, NULL);
    }
    rc = rc ? rc : deadlock_until(p, DEADLOCK_WORD, DEADLOCK_ROUNDS);
    rc = rc ? rc : deadlock_until(p, DEADLOCK_NOTICE, DEADLOCK_ROUNDS);
    rc = rc ? rc : deadlock_leave(p);
    fabric_equal(p, (long long)p->words[DEADLOCK_NOTICE], DEADLOCK_ROUNDS, "atomics that the target executes");
    deadlock_compare(p, to);
    return rc;
}

static void full_queues_face_each_other(void **state)
{
    static const char *const modes[] = {"order=release", "order=strict", "order=drain"};

    (void)state;
    for (int i = 0; i < 9; i++) {
        struct fabric f = {.spec = i % 3 == 0   ? "nodes=2,ports=1"
                                   : i % 3 == 1 ? "nodes=2,ports=2,unkind=all"
                                                : "nodes=2,ports=4,rate=200G:50G,jitter=2us,unkind=all",
                           .seed = (uint64_t)i + 1,
                           .fn = pe_full_queues,
                           .settings = {DEADLOCK_TINY, modes[i / 3]}};

        fabric_run_ok(&f);
    }
}

/* ---- a caller that blocks in quiet for one peer while others need its FIFO --------------------------------------- */

/** PE 1 executes nothing until PE 2 has told it to, and PE 2 waits for a word that is deferred in PE 0's FIFO. */
static int pe_quiet_beside(struct fabric_pe *p)
{
    struct braid_done done = {0};
    int rc = 0;

    deadlock_fill(p);
    if (p->pe == 0) {
        rc = deadlock_ask(p, p->ch, 1, DEADLOCK_WORD, &done);
        rc = rc ? rc : fabric_put(p, 2, DEADLOCK_LEN, 0, DEADLOCK_LEN, NULL);
        rc = rc ? rc : fabric_add(p, 2, DEADLOCK_NOTICE, 1, NULL); /* behind the put: deferred */
        rc = rc ? rc : braid_quiet(p->ch, 1);
        fabric_equal(p, (long long)done.ok, 1, "the atomic has ended inside quiet");
    } else if (p->pe == 1) {
        rc = deadlock_until_asleep(p, DEADLOCK_GO, 1);
        rc = rc ? rc : deadlock_until(p, DEADLOCK_WORD, 1);
    } else {
        rc = deadlock_until(p, DEADLOCK_NOTICE, 1);
        rc = rc ? rc : fabric_add(p, 1, DEADLOCK_GO, 1, NULL);
    }
    return rc ? rc : deadlock_leave(p);
}

static void quiet_serves_other_peers(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fabric f = {.spec = i < 2 ? "nodes=3,ports=2" : "nodes=3,ports=3,unkind=all,jitter=3us",
                           .seed = (uint64_t)i + 1,
                           .fn = pe_quiet_beside,
                           .settings = {DEADLOCK_TINY, i % 2 ? "order=strict" : "order=release"}};

        fabric_run_ok(&f);
    }
}

/* ---- two channels, one of them in quiet -------------------------------------------------------------------------- */

/** As before, but what PE 2 waits for is deferred on the other channel, which nobody calls while the first is in quiet. */
static int pe_two_channels(struct fabric_pe *p)
{
    struct braid_channel *other = braid_channel_at(p->b, 1);
    int rc = 0;

    deadlock_fill(p);
    if (p->pe == 0) {
        rc = deadlock_ask(p, p->ch, 1, DEADLOCK_WORD, NULL);
        rc = rc ? rc : braid_put(other, 2, fabric_remote(p, 2, DEADLOCK_LEN), fabric_local(p, 0), DEADLOCK_LEN, NULL);
        rc = rc ? rc : braid_signal_add(other, 2, fabric_remote(p, 2, FABRIC_MEM + DEADLOCK_NOTICE * 8), 1, NULL);
        rc = rc ? rc : braid_quiet(p->ch, 1);
    } else if (p->pe == 1) {
        rc = deadlock_until_asleep(p, DEADLOCK_GO, 1);
        rc = rc ? rc : deadlock_until(p, DEADLOCK_WORD, 1);
    } else {
        rc = deadlock_until(p, DEADLOCK_NOTICE, 1);
        rc = rc ? rc : fabric_add(p, 1, DEADLOCK_GO, 1, NULL);
    }
    rc = rc ? rc : braid_quiet(other, BRAID_ALL_PES);
    return rc ? rc : deadlock_leave(p);
}

static void quiet_serves_the_other_channel(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fabric f = {.spec = i < 2 ? "nodes=3,ports=2" : "nodes=3,ports=4,unkind=all,jitter=3us",
                           .seed = (uint64_t)i + 1,
                           .fn = pe_two_channels,
                           .settings = {DEADLOCK_TINY, "channels=2", i % 2 ? "order=strict" : "order=release"}};

        fabric_run_ok(&f);
    }
}

/* ---- atomics that the target executes, both ways, while both sides block ----------------------------------------- */

static int pe_ask_each_other(struct fabric_pe *p)
{
    static const struct braid_atomic add = {.op = BRAID_ATOMIC_FETCH_ADD, .bytes = 4, .operand = 1};
    int rc = 0;

    for (int i = 0; i < DEADLOCK_ROUNDS && rc == 0; i++) {
        int to = (p->pe + 1 + i % (p->n_pes - 1)) % p->n_pes;
        uint64_t old = UINT64_MAX;

        if (i % 3 == 0) /* blocks until the answer has come */
            rc = braid_atomic_wait(p->ch, to, fabric_remote(p, to, FABRIC_MEM), &add, &old);
        else
            rc = deadlock_ask(p, p->ch, to, DEADLOCK_WORD, NULL);
        if (i % 3 == 0)
            fabric_check(p, old < (uint64_t)DEADLOCK_ROUNDS * (uint64_t)p->n_pes, "an old value came back");
        if (rc == 0 && i % 10 == 9)
            rc = braid_quiet(p->ch, i % 20 == 9 ? to : BRAID_ALL_PES);
    }
    rc = rc ? rc : braid_quiet(p->ch, BRAID_ALL_PES);
    rc = rc ? rc : deadlock_leave(p);
    fabric_equal(p, (long long)p->words[DEADLOCK_WORD], DEADLOCK_ROUNDS, "atomics executed");
    return rc;
}

static void atomics_both_ways_while_both_block(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fabric f = {.spec = i < 2 ? "nodes=2,ports=2" : "nodes=5,ports=2,unkind=all,jitter=3us",
                           .seed = (uint64_t)i + 1,
                           .fn = pe_ask_each_other,
                           .settings = {DEADLOCK_TINY, i % 2 ? "order=drain" : "order=release"}};

        fabric_run_ok(&f);
    }
}

/* ---- a run that cannot end is found out -------------------------------------------------------------------------- */

static int pe_nobody_signals(struct fabric_pe *p)
{
    return p->pe == 0 ? deadlock_until(p, DEADLOCK_WORD, 1) : 0;
}

static void a_deadlock_is_reported(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2", .seed = 1, .fn = pe_nobody_signals, .settings = {DEADLOCK_TINY}};

    (void)state;
    assert_int_equal(fabric_run(&f), -EDEADLK);
    assert_non_null(strstr(f.why, "PE 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_queues_face_each_other),    cmocka_unit_test(quiet_serves_other_peers),
        cmocka_unit_test(quiet_serves_the_other_channel), cmocka_unit_test(atomics_both_ways_while_both_block),
        cmocka_unit_test(a_deadlock_is_reported),
    };

    return cmocka_run_group_tests_name("deadlock", tests, NULL, NULL);
}
