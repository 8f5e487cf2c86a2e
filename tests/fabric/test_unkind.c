/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_unkind.c - the switches of unkind= that concern the order in which bytes become visible: each shows its effect,
 * stays within its limits, and does nothing while it is off. Plain verbs in virtual time; next: the emulator. Atomics and
 * the switches that only take time: test_unkind_more.c.
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

enum { WRITES = 6, ROUNDS = 120, SLOT = 4096, FLAG = WRITES * SLOT, BUFFER = FLAG + 4096, STEP_NS = 20 };
enum { FIRST_ID = 1, LAST_ID = 100 };
enum {
    EVERYTHING = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

/* What follows a burst of WRITEs on the same queue pair. */
enum behind { BEHIND_STRICT, BEHIND_RELAXED, BEHIND_ATOMIC, BEHIND_READ, BEHIND_SEND };

/* How often something was seen, looking every few ns. */
struct seen {
    int passed;     /* a WRITE, or a part of it, while an earlier one was not there */
    int torn;       /* one part of a packet without another */
    int acked_late; /* a WRITE's completion before its bytes */
    int overtaken;  /* what stands behind the burst while something of it was not there */
};

static struct plain_port p[2];
static struct ibv_mr *relaxed;
static bool burst_relaxed;
static enum behind behind;
static struct seen seen;

static uint64_t clock_ns(void)
{
    return plain_emu()->now();
}

/** Bytes of the i-th WRITE that are there. */
static int there(int i, unsigned char value, size_t len)
{
    const volatile unsigned char *at = p[1].buf + (size_t)i * SLOT;
    int n = 0;

    for (size_t k = 0; k < len; k += 64)
        n += at[k] == value;
    return n;
}

static void post_burst(unsigned char value, size_t len)
{
    memset(p[0].buf, value, BUFFER);
    for (int i = 0; i < WRITES; i++)
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){.op = IBV_WR_RDMA_WRITE,
                                     .id = (uint64_t)(FIRST_ID + i),
                                     .remote = (size_t)i * SLOT,
                                     .len = len,
                                     .rkey = burst_relaxed ? relaxed->rkey : 0});
}

static void post_behind(void)
{
    struct plain_wr w = {.op = IBV_WR_RDMA_WRITE, .id = LAST_ID, .remote = FLAG, .len = 8};

    if (behind == BEHIND_RELAXED)
        w.rkey = relaxed->rkey;
    if (behind == BEHIND_ATOMIC) {
        w.op = IBV_WR_ATOMIC_FETCH_AND_ADD;
        w.add = 1;
    }
    if (behind == BEHIND_READ)
        w.op = IBV_WR_RDMA_READ;
    if (behind == BEHIND_SEND) {
        w.op = IBV_WR_SEND;
        plain_recv(&p[1], p[1].qp[0], 1, FLAG, 64);
    }
    plain_post(&p[0], p[0].qp[0], &p[1], w);
}

/** Whether what stands behind the burst has been seen: its bytes, or where it proves by completion, that. */
static bool behind_seen(bool read_done)
{
    struct ibv_wc wc;

    if (behind == BEHIND_READ)
        return read_done;
    if (behind == BEHIND_SEND)
        return ibv_poll_cq(p[1].cq, 1, &wc) == 1;
    return *(volatile uint64_t *)(void *)(p[1].buf + FLAG) != 0;
}

/** Looks until everything has completed and is there; a round must end within 2 ms. */
static void watch(unsigned char value, size_t len)
{
    int lines = (int)((len + 63) / 64), done[WRITES] = {0}, left = WRITES + 1, n[WRITES];
    uint64_t end = clock_ns() + 2000000;
    bool flag = false, read_done = false, all = false;
    struct ibv_wc wc;

    while ((left || !all || !flag) &&
           plain_check(clock_ns() < end, "a round does not end: %d completions, %d bytes", left, all)) {
        while (left && ibv_poll_cq(p[0].cq, 1, &wc) == 1) {
            plain_equal("status", wc.status, IBV_WC_SUCCESS);
            left--;
            if (wc.wr_id == LAST_ID)
                read_done = true;
            else
                done[wc.wr_id - FIRST_ID] = 1;
        }
        flag = flag || behind_seen(read_done);
        all = true;
        for (int i = 0; i < WRITES; i++) {
            n[i] = there(i, value, len);
            seen.passed += n[i] && !all;
            seen.torn += n[i] && n[i] < lines;
            seen.acked_late += done[i] && n[i] < lines;
            all = all && n[i] == lines;
        }
        seen.overtaken += flag && !all;
        plain_emu()->wait(clock_ns() + STEP_NS);
    }
}

static int pe_bursts(void *arg, int pe)
{
    (void)arg, (void)pe;
    if (!plain_pair(p, BUFFER, NULL))
        return -1;
    relaxed = ibv_reg_mr(p[1].pd, p[1].buf, p[1].len, EVERYTHING | IBV_ACCESS_RELAXED_ORDERING);
    plain_check(relaxed, "no relaxed region");
    for (int r = 0; relaxed && r < ROUNDS && !plain_notes()[0]; r++) {
        size_t len = r % 3 == 0 ? 64 : r % 3 == 1 ? 1024 : 4096;

        memset(p[1].buf, 0, BUFFER);
        post_burst((unsigned char)(r % 255 + 1), len);
        post_behind();
        watch((unsigned char)(r % 255 + 1), len);
    }
    if (relaxed)
        ibv_dereg_mr(relaxed);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static struct seen run(const char *set, bool relaxed_key, enum behind then)
{
    char spec[128];

    snprintf(spec, sizeof(spec), FABRIC "%s", set);
    burst_relaxed = relaxed_key;
    behind = then;
    memset(&seen, 0, sizeof(seen));
    plain_run_gives(0, spec, pe_bursts, 0);
    return seen;
}

/** Yes and no: what has to be seen, and what must not. */
static void expect(const char *what, int count, bool yes)
{
    if ((count != 0) != yes)
        fail_msg("%s: seen %d times, expected %s", what, count, yes ? "some" : "none");
}

static void expect_all(struct seen s, bool passed, bool torn, bool acked_late, bool overtaken)
{
    expect("a WRITE passed another", s.passed, passed);
    expect("a packet was there in part", s.torn, torn);
    expect("a completion came before the bytes", s.acked_late, acked_late);
    expect("what stood behind the WRITEs passed one of them", s.overtaken, overtaken);
}

static void without_switches_nothing_of_this_is_seen(void **state)
{
    (void)state;
    for (int b = BEHIND_STRICT; b <= BEHIND_SEND; b++)
        expect_all(run("none", true, (enum behind)b), false, false, false, false);
}

static void relaxed_keys_do_it_only_with_the_switch_and_strict_keys_never(void **state)
{
    (void)state;
    expect_all(run("relaxed", true, BEHIND_STRICT), true, true, false, false);
    expect_all(run("relaxed", false, BEHIND_STRICT), false, false, false, false);
    expect_all(run("ackvis+atomics+slowctl+rdstall", true, BEHIND_STRICT), false, false, true, false);
}

static void relaxed_writes_pass_each_other_and_nothing_else_passes_them(void **state)
{
    (void)state;
    expect_all(run("relaxed", true, BEHIND_RELAXED), true, true, false, true);
    expect_all(run("relaxed", true, BEHIND_ATOMIC), true, true, false, false);
    expect_all(run("relaxed", true, BEHIND_READ), true, true, false, false);
    expect_all(run("relaxed", true, BEHIND_SEND), true, true, false, false);
}

static void out_of_order_strict_writes_pass_each_other(void **state)
{
    static const char *const sets[] = {"ooo", "ooo-silent"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        expect_all(run(sets[i], false, BEHIND_STRICT), true, false, false, true);
        expect_all(run(sets[i], false, BEHIND_ATOMIC), true, false, false, false);
        expect_all(run(sets[i], false, BEHIND_READ), true, false, false, false);
        expect_all(run(sets[i], false, BEHIND_SEND), true, false, false, false);
    }
}

static void an_acknowledgement_proves_nothing_with_ackvis(void **state)
{
    (void)state;
    expect_all(run("ackvis", false, BEHIND_STRICT), false, false, true, false);
    expect_all(run("ackvis", false, BEHIND_ATOMIC), false, false, true, false);
    expect_all(run("ackvis", false, BEHIND_READ), false, false, true, false);
    expect_all(run("ackvis", false, BEHIND_SEND), false, false, true, false);
}

static void with_all_of_them_reads_atomics_and_receives_still_prove(void **state)
{
    (void)state;
    expect_all(run("all", true, BEHIND_STRICT), true, true, true, true);
    expect_all(run("all", true, BEHIND_ATOMIC), true, true, true, false);
    expect_all(run("all", true, BEHIND_READ), true, true, true, false);
    expect_all(run("all", true, BEHIND_SEND), true, true, true, false);
}

/* ---- a relaxed write and an atomic before it ------------------------------------------------------------------------ */

static int passes;

/* The atomic takes a while; the relaxed WRITE behind it must not be seen before the atomic's value. */
static int pe_atomic_then_write(void *arg, int pe)
{
    volatile uint64_t *word, *flag;

    (void)arg, (void)pe;
    if (!plain_pair(p, BUFFER, NULL))
        return -1;
    relaxed = ibv_reg_mr(p[1].pd, p[1].buf, p[1].len, EVERYTHING | IBV_ACCESS_RELAXED_ORDERING);
    word = (void *)(p[1].buf + FLAG);
    flag = (void *)p[1].buf;
    memset(p[0].buf, 1, 8);
    for (int r = 0; relaxed && r < ROUNDS; r++) {
        bool early = false;

        *word = *flag = 0;
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){
                       .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .id = 1, .local = 64, .remote = FLAG, .len = 8, .add = 1});
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 2, .len = 8, .rkey = relaxed->rkey});
        while (!*word || !*flag) {
            early = early || (*flag && !*word);
            plain_emu()->wait(clock_ns() + STEP_NS);
        }
        passes += early;
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
        plain_done(&p[0], 2, IBV_WC_SUCCESS);
    }
    if (relaxed)
        ibv_dereg_mr(relaxed);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void relaxed_writes_do_not_pass_atomics_but_misplaced_ones_do(void **state)
{
    (void)state;
    passes = 0;
    plain_run_gives(0, FABRIC "relaxed+atomics", pe_atomic_then_write, 0);
    expect("a relaxed WRITE passed an atomic", passes, false);
    plain_run_gives(0, FABRIC "relaxed+atomics+ackvis", pe_atomic_then_write, 0);
    expect("a relaxed WRITE passed an atomic", passes, false);
    plain_run_gives(0, FABRIC "ooo+atomics", pe_atomic_then_write, 0);
    expect("a misplaced WRITE passed an atomic", passes, true);
}

/* ---- runs ------------------------------------------------------------------------------------------------------------ */

static uint64_t trace_of(const char *set)
{
    run(set, true, BEHIND_ATOMIC);
    return plain_trace();
}

static void equal_runs_show_bytes_at_equal_times(void **state)
{
    static const char *const sets[] = {"none", "relaxed", "ooo", "ackvis", "atomics", "rdstall", "all"};
    enum { SETS = sizeof(sets) / sizeof(sets[0]) };
    uint64_t trace[SETS];

    (void)state;
    for (int i = 0; i < SETS; i++) {
        trace[i] = trace_of(sets[i]);
        assert_true(trace_of(sets[i]) == trace[i]);
        for (int j = 0; j < i; j++)
            assert_true(trace[i] != trace[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_switches_nothing_of_this_is_seen),
        cmocka_unit_test(relaxed_keys_do_it_only_with_the_switch_and_strict_keys_never),
        cmocka_unit_test(relaxed_writes_pass_each_other_and_nothing_else_passes_them),
        cmocka_unit_test(out_of_order_strict_writes_pass_each_other),
        cmocka_unit_test(an_acknowledgement_proves_nothing_with_ackvis),
        cmocka_unit_test(with_all_of_them_reads_atomics_and_receives_still_prove),
        cmocka_unit_test(relaxed_writes_do_not_pass_atomics_but_misplaced_ones_do),
        cmocka_unit_test(equal_runs_show_bytes_at_equal_times),
    };

    return cmocka_run_group_tests_name("unkind", tests, NULL, NULL);
}
