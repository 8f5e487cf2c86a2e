/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_unkind_atomic.c - atomics with unkind=: who loses against them, when their values are seen, and what still holds.
 * Plain verbs in virtual time; next: the emulator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plain.h"

#define FABRIC "nodes=1,ports=2,cpu=off,unkind="

enum {
    EVERYTHING = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};
enum { ROUNDS = 200, ADDS = 400, PAGE = 4096 };

static struct plain_port p[2];
static struct ibv_mr *other; /* port 0's buffer, registered on port 1's device */

static bool open_both(void)
{
    if (!plain_pair(p, 4 * PAGE, NULL))
        return false;
    other = ibv_reg_mr(p[1].pd, p[0].buf, p[0].len, EVERYTHING);
    return plain_check(other, "no region of the other's memory");
}

static void close_both(void)
{
    if (other)
        ibv_dereg_mr(other);
    other = NULL;
    plain_close(&p[0]);
    plain_close(&p[1]);
}

static volatile uint64_t *word(size_t offset)
{
    return (volatile uint64_t *)(void *)(p[0].buf + offset);
}

static void pause_ns(uint64_t ns)
{
    uint64_t until = plain_emu()->now() + ns;

    while (plain_emu()->now() < until && plain_emu()->wait(until) == 0)
        ;
}

/** A request on the first word of port 0's buffer: of port 0 through port 1's device, of port 1 through port 0's. */
static void ask(int port, int qp, enum ibv_wr_opcode op, uint64_t id)
{
    struct plain_wr w = {.op = op, .id = id, .local = PAGE, .len = 8, .add = 1};

    if (port == 0)
        w.rkey = other->rkey;
    w.address = plain_address(&p[0], 0);
    plain_post(&p[port], p[port].qp[qp], &p[1 - port], w);
}

/* ---- atomics ---------------------------------------------------------------------------------------------------------- */

static uint64_t sum;
static int adders; /* 1: over two queue pairs of one device; 2: over two devices */

static int pe_adds(void *arg, int pe)
{
    struct ibv_qp *a, *b;

    (void)arg, (void)pe;
    if (!open_both())
        return -1;
    a = plain_qp(&p[0]);
    b = plain_qp(&p[1]);
    plain_connect(&p[0], a, &p[1], b, NULL);
    for (int i = 0; i < ADDS; i++) {
        ask(0, 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
        ask(adders == 2 ? 1 : 0, adders == 2 ? 0 : 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 2);
        plain_wait(&p[0]);
        plain_wait(adders == 2 ? &p[1] : &p[0]);
    }
    pause_ns(200000);
    sum = *word(0);
    close_both();
    return 0;
}

static uint64_t sum_of(const char *spec, int devices)
{
    adders = devices;
    plain_run_gives(0, spec, pe_adds, 0);
    return sum;
}

static void two_devices_lose_adds_and_one_does_not(void **state)
{
    (void)state;
    assert_int_equal(sum_of(FABRIC "none", 2), 2 * ADDS);
    assert_int_equal(sum_of(FABRIC "relaxed+ooo+ackvis+slowctl+rdstall", 2), 2 * ADDS);
    assert_int_equal(sum_of(FABRIC "atomics", 1), 2 * ADDS);
    assert_int_equal(sum_of(FABRIC "all", 1), 2 * ADDS);
    assert_in_range(sum_of(FABRIC "atomics", 2), ADDS, 2 * ADDS - 1);
    assert_in_range(sum_of(FABRIC "all", 2), ADDS, 2 * ADDS - 1);
}

static int lost,
    through; /* through: 0: the CPU stores, 1: the other device writes, 2: the same device on another queue pair */

/* Something that is no atomic puts 1000 while an atomic adds 1: 1000 or 1001 if the add is atomic for all; 1 if it is not. */
static int pe_races(void *arg, int pe)
{
    struct ibv_qp *a, *b;

    (void)arg, (void)pe;
    if (!open_both())
        return -1;
    a = plain_qp(&p[0]);
    b = plain_qp(&p[1]);
    plain_connect(&p[0], a, &p[1], b, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        *word(0) = 0;
        *(uint64_t *)(void *)(p[0].buf + PAGE) = *(uint64_t *)(void *)(p[1].buf + PAGE) = 1000;
        ask(0, 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
        /* The atomic's answer goes where the other's 1000 comes from: move it. */
        pause_ns((uint64_t)i * 7 % 1000 + (through == 0 ? 2500 : 0));
        if (through == 0)
            *word(0) = 1000;
        else
            ask(through == 1 ? 1 : 0, through == 1 ? 0 : 1, IBV_WR_RDMA_WRITE, 2);
        plain_wait(&p[0]);
        if (through)
            plain_wait(through == 1 ? &p[1] : &p[0]);
        pause_ns(200000);
        lost += *word(0) == 1;
        plain_check(*word(0) == 1 || *word(0) == 1000 || *word(0) == 1001, "the word is %llu",
                    (unsigned long long)*word(0));
    }
    close_both();
    return 0;
}

static void what_races_an_atomic_is_lost(void **state)
{
    (void)state;
    for (through = 0; through < 3; through++) {
        lost = 0;
        plain_run_gives(0, FABRIC "none", pe_races, 0);
        assert_int_equal(lost, 0);
        plain_run_gives(0, FABRIC "atomics", pe_races, 0);
        if (lost == 0)
            fail_msg("nothing was lost in race %d", through);
    }
}

static int unseen, unread;

/* An atomic's answer is there: can the CPU see its value, does a READ of the same device give it? */
static int pe_answers(void *arg, int pe)
{
    (void)arg, (void)pe;
    if (!open_both())
        return -1;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        ask(0, 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
        plain_equal("old value", (long long)*(uint64_t *)(void *)(p[0].buf + PAGE), (long long)i - 1);
        unseen += *word(0) != i;
        ask(0, 0, IBV_WR_RDMA_READ, 2);
        plain_done(&p[0], 2, IBV_WC_SUCCESS);
        unread += *(uint64_t *)(void *)(p[0].buf + PAGE) != i || *word(0) != i;
    }
    close_both();
    return 0;
}

static void an_answer_may_come_before_the_value_only_with_ackvis(void **state)
{
    (void)state;
    unseen = unread = 0;
    plain_run_gives(0, FABRIC "none", pe_answers, 0);
    plain_run_gives(0, FABRIC "relaxed+ooo+atomics+rdstall", pe_answers, 0);
    assert_int_equal(unseen, 0);
    plain_run_gives(0, FABRIC "ackvis", pe_answers, 0);
    assert_int_not_equal(unseen, 0);
    plain_run_gives(0, FABRIC "all", pe_answers, 0);
    assert_int_equal(unread, 0);
}

/* ---- several queue pairs of one device ------------------------------------------------------------------------------------ */

static bool open_two_qps(void)
{
    struct ibv_qp *a, *b;

    if (!open_both())
        return false;
    a = plain_qp(&p[0]);
    b = plain_qp(&p[1]);
    return plain_connect(&p[0], a, &p[1], b, NULL);
}

static uint64_t ask_and_wait(int qp, enum ibv_wr_opcode op)
{
    ask(0, qp, op, 1);
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    return *(uint64_t *)(void *)(p[0].buf + PAGE);
}

/* What one queue pair's atomic has done, another's READ and atomic know. What was proved to be there stays. */
static int pe_one_device(void *arg, int pe)
{
    (void)arg, (void)pe;
    if (!open_two_qps())
        return -1;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        *word(0) = i;
        plain_equal("old value", (long long)ask_and_wait(0, IBV_WR_ATOMIC_FETCH_AND_ADD), (long long)i);
        plain_equal("READ", (long long)ask_and_wait(1, IBV_WR_RDMA_READ), (long long)i + 1);
        plain_equal("memory", (long long)*word(0), (long long)i + 1);
        *(uint64_t *)(void *)(p[0].buf + PAGE) = 1000;
        ask_and_wait(1, IBV_WR_RDMA_WRITE);
        plain_equal("READ of what was written", (long long)ask_and_wait(1, IBV_WR_RDMA_READ), 1000);
        plain_equal("old value behind it", (long long)ask_and_wait(1, IBV_WR_ATOMIC_FETCH_AND_ADD), 1000);
        pause_ns(300000);
        plain_equal("memory in the end", (long long)*word(0), 1001);
    }
    close_both();
    return 0;
}

static void the_device_knows_what_its_atomics_did(void **state)
{
    (void)state;
    plain_run_gives(0, FABRIC "none", pe_one_device, 0);
    plain_run_gives(0, FABRIC "ackvis", pe_one_device, 0);
    plain_run_gives(0, FABRIC "atomics", pe_one_device, 0);
    plain_run_gives(0, FABRIC "all", pe_one_device, 0);
}

/* An add that only is not visible yet is not lost, and no WRITE behind its answer is. */
static int pe_write_behind(void *arg, int pe)
{
    (void)arg, (void)pe;
    if (!open_two_qps())
        return -1;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        *word(0) = 0;
        ask_and_wait(0, IBV_WR_ATOMIC_FETCH_AND_ADD);
        *(uint64_t *)(void *)(p[0].buf + PAGE) = 1000;
        ask_and_wait(1, IBV_WR_RDMA_WRITE);
        pause_ns(300000);
        plain_equal("memory", (long long)*word(0), 1000);
    }
    close_both();
    return 0;
}

static void a_late_value_does_not_undo_a_later_write(void **state)
{
    (void)state;
    plain_run_gives(0, FABRIC "none", pe_write_behind, 0);
    plain_run_gives(0, FABRIC "relaxed+ooo+ackvis+slowctl+rdstall", pe_write_behind, 0);
    plain_run_gives(0, FABRIC "atomics", pe_write_behind, 0);
}

/* Both in flight at once, one queue pair: the WRITE is behind the atomic. */
static int pe_write_after_atomic(void *arg, int pe)
{
    (void)arg, (void)pe;
    if (!open_both())
        return -1;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        *word(0) = 0;
        *(uint64_t *)(void *)(p[0].buf + PAGE) = 1000;
        ask(0, 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
        ask(0, 0, IBV_WR_RDMA_WRITE, 2);
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
        plain_done(&p[0], 2, IBV_WC_SUCCESS);
        pause_ns(300000);
        plain_check(*word(0) >= 1000, "the WRITE is lost: %llu", (unsigned long long)*word(0));
    }
    close_both();
    return 0;
}

static void a_write_is_behind_an_atomic_of_its_own_queue_pair(void **state)
{
    (void)state;
    plain_run_gives(0, FABRIC "none", pe_write_after_atomic, 0);
    plain_run_gives(0, FABRIC "atomics", pe_write_after_atomic, 0);
    plain_run_gives(0, FABRIC "ooo+atomics", pe_write_after_atomic, 0);
    plain_run_gives(0, FABRIC "all", pe_write_after_atomic, 0);
}

/* Two queue pairs of one device add at once: answers come after the values, and the word never goes back. */
static int pe_adds_at_once(void *arg, int pe)
{
    uint64_t last = 0, answers = 0;
    struct ibv_wc wc;

    (void)arg, (void)pe;
    if (!open_two_qps())
        return -1;
    for (int i = 0; i < 16; i++) {
        ask(0, 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
        ask(0, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
    }
    while (answers < 32) {
        plain_check(*word(0) >= last && *word(0) >= answers, "the word is %llu, was %llu, %llu answers",
                    (unsigned long long)*word(0), (unsigned long long)last, (unsigned long long)answers);
        last = *word(0);
        answers += ibv_poll_cq(p[0].cq, 1, &wc) == 1;
        plain_emu()->wait(plain_emu()->now() + 10);
    }
    close_both();
    return 0;
}

static void a_word_never_goes_back(void **state)
{
    (void)state;
    plain_run_gives(0, FABRIC "none", pe_adds_at_once, 0);
    plain_run_gives(0, FABRIC "atomics", pe_adds_at_once, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_devices_lose_adds_and_one_does_not),
        cmocka_unit_test(what_races_an_atomic_is_lost),
        cmocka_unit_test(an_answer_may_come_before_the_value_only_with_ackvis),
        cmocka_unit_test(the_device_knows_what_its_atomics_did),
        cmocka_unit_test(a_late_value_does_not_undo_a_later_write),
        cmocka_unit_test(a_write_is_behind_an_atomic_of_its_own_queue_pair),
        cmocka_unit_test(a_word_never_goes_back),
    };

    return cmocka_run_group_tests_name("unkind_atomic", tests, NULL, NULL);
}
