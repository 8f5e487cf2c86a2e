/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_unkind_more.c - unkind=slowctl and rdstall; what happens to bytes on their way when their region or queue pair goes
 * away; who is woken by them; what a device answers when it is asked about placement. Plain verbs in virtual time; next:
 * the emulator.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "plain.h"

#define FABRIC "nodes=1,ports=2,cpu=off,unkind="
#define TIMED  "nodes=1,ports=2,unkind="

enum {
    EVERYTHING = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};
enum { PAGE = 4096 };

static struct plain_port p[2];
static uint64_t took;
static void pause_ns(uint64_t ns)
{
    uint64_t until = plain_emu()->now() + ns;

    while (plain_emu()->now() < until && plain_emu()->wait(until) == 0)
        ;
}

/* ---- ends ------------------------------------------------------------------------------------------------------------- */

enum end { END_DEREG, END_ERR, END_RESET, END_DESTROY };
static enum end end_by;
static int late;

/* What was acknowledged is there once the region or the queue pair is gone, and nothing comes after that. */
static int pe_ends(void *arg, int pe)
{
    (void)arg, (void)pe;
    for (int r = 0; r < 40; r++) {
        unsigned char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct ibv_mr *mr;
        int n = 0;

        plain_pair(p, PAGE, NULL);
        mr = ibv_reg_mr(p[1].pd, memory, PAGE, EVERYTHING | IBV_ACCESS_RELAXED_ORDERING);
        memset(p[0].buf, 7, PAGE);
        for (uint64_t i = 0; i < 16; i++)
            plain_post(&p[0], p[0].qp[0], &p[1],
                       (struct plain_wr){.op = IBV_WR_RDMA_WRITE,
                                         .id = i,
                                         .len = 256,
                                         .rkey = mr->rkey,
                                         .address = (uint64_t)(uintptr_t)memory + i * 256 + plain_emu()->shift(0)});
        for (uint64_t i = 0; i < 16; i++)
            plain_done(&p[0], i, IBV_WC_SUCCESS);
        for (int i = 0; i < PAGE; i++)
            n += memory[i] == 7;
        late += n != PAGE;
        if (end_by == END_DEREG)
            ibv_dereg_mr(mr);
        else if (end_by == END_DESTROY)
            ibv_destroy_qp(p[1].qp[--p[1].n_qps]);
        else
            plain_move(p[1].qp[0], end_by == END_ERR ? IBV_QPS_ERR : IBV_QPS_RESET);
        for (int i = n = 0; i < PAGE; i++)
            n += memory[i] == 7;
        plain_equal("bytes that are there", n, PAGE);
        memset(memory, 0, PAGE);
        pause_ns(300000);
        for (int i = n = 0; i < PAGE; i++)
            n += memory[i] == 0;
        plain_equal("bytes that nothing came to later", n, PAGE);
        if (end_by != END_DEREG)
            ibv_dereg_mr(mr);
        munmap(memory, PAGE);
        plain_close(&p[0]);
        plain_close(&p[1]);
    }
    return 0;
}

static void what_is_on_its_way_lands_before_the_end(void **state)
{
    static const char *const sets[] = {FABRIC "ackvis", FABRIC "all"};

    (void)state;
    for (int s = 0; s < 2; s++) {
        for (int e = END_DEREG; e <= END_DESTROY; e++) {
            end_by = (enum end)e;
            late = 0;
            plain_run_gives(0, sets[s], pe_ends, 0);
            assert_int_not_equal(late, 0); /* else it was no test */
        }
    }
}

/* A receive that is not completed yet completes before the flushed ones. */
static int pe_ends_receives(void *arg, int pe)
{
    (void)arg, (void)pe;
    for (int r = 0; r < 40; r++) {
        plain_pair(p, PAGE, NULL);
        for (uint64_t i = 0; i < 3; i++)
            plain_recv(&p[1], p[1].qp[0], i, i * 64, 64);
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_SEND, .id = 9, .len = 64});
        plain_done(&p[0], 9, IBV_WC_SUCCESS);
        plain_move(p[1].qp[0], IBV_QPS_ERR);
        plain_done(&p[1], 0, IBV_WC_SUCCESS);
        plain_done(&p[1], 1, IBV_WC_WR_FLUSH_ERR);
        plain_done(&p[1], 2, IBV_WC_WR_FLUSH_ERR);
        plain_close(&p[0]);
        plain_close(&p[1]);
    }
    return 0;
}

static void receives_on_their_way_complete_before_the_flushed_ones(void **state)
{
    (void)state;
    plain_run_gives(0, FABRIC "ackvis", pe_ends_receives, 0);
    plain_run_gives(0, FABRIC "all", pe_ends_receives, 0);
}

/* A PE that returns takes its memory with it: what was on its way there is dropped. */
static int pe_leaves(void *arg, int pe)
{
    static struct plain_port mine[2];
    void *gone;

    (void)arg;
    memset(&mine[pe], 0, sizeof(mine[pe]));
    plain_open(&mine[pe], 0, PAGE, 64);
    plain_qp(&mine[pe]);
    plain_emu()->barrier();
    plain_connect_to(mine[pe].qp[0], mine[1 - pe].qp[0]->qp_num, &mine[1 - pe].gid,
                     &(struct plain_path){.psn = 1,
                                          .timeout = 14,
                                          .retry = 7,
                                          .rnr_retry = 7,
                                          .rd_atomic = 1,
                                          .dest_rd_atomic = 1,
                                          .mtu = IBV_MTU_4096});
    plain_emu()->barrier();
    if (pe == 0) {
        plain_post(&mine[0], mine[0].qp[0], &mine[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = PAGE});
        plain_done(&mine[0], 1, IBV_WC_SUCCESS);
    }
    if (pe == 1) {
        pause_ns(2700); /* it has arrived, and may be on its way into memory */
        gone = mine[1].buf;
        mine[1].buf = NULL;
        free(gone);
        return 0;
    }
    pause_ns(1000000);
    plain_close(&mine[0]);
    return 0;
}

static void a_program_that_ends_takes_its_memory_with_it(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=2,ports=1,cpu=off,unkind=ackvis", pe_leaves, 0);
}

/* Nothing but the bytes tells that they are there: who polls sleeps, and must be woken by them. */
static int pe_polls_for_bytes(void *arg, int pe)
{
    struct ibv_wc wc;

    (void)arg, (void)pe;
    plain_pair(p, PAGE, NULL);
    for (int r = 1; r <= 100; r++) {
        int rc = 0;

        p[0].buf[0] = (unsigned char)r;
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 1});
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
        while (rc == 0 && *(volatile unsigned char *)p[1].buf != r)
            rc = ibv_poll_cq(p[1].cq, 1, &wc);
        plain_equal("ibv_poll_cq", rc, 0);
    }
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void bytes_wake_when_they_are_visible(void **state)
{
    (void)state;
    plain_run_gives(0, TIMED "ackvis", pe_polls_for_bytes, 0);
    plain_run_gives(0, TIMED "all", pe_polls_for_bytes, 0);
}

/* The same with something else that is still to come: no last look before a deadlock helps. */
static int pe_is_woken_in_time(void *arg, int pe)
{
    static struct plain_port mine[2];
    struct plain_path path = plain_defaults();
    struct ibv_wc wc;
    uint64_t t;
    int rc = 0;

    (void)arg;
    memset(&mine[pe], 0, sizeof(mine[pe]));
    plain_open(&mine[pe], 0, PAGE, 64);
    plain_qp(&mine[pe]);
    plain_emu()->barrier();
    plain_connect_to(mine[pe].qp[0], mine[1 - pe].qp[0]->qp_num, &mine[1 - pe].gid, &path);
    mine[pe].buf[0] = (unsigned char)!pe;
    plain_emu()->barrier();
    t = plain_emu()->now();
    if (pe == 0) {
        plain_post(&mine[0], mine[0].qp[0], &mine[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 1});
        pause_ns(5000000);
        plain_done(&mine[0], 1, IBV_WC_SUCCESS);
    } else {
        while (rc == 0 && *(volatile unsigned char *)mine[1].buf == 0)
            rc = ibv_poll_cq(mine[1].cq, 1, &wc);
        plain_check(plain_emu()->now() - t < 200000, "seen after %llu ns",
                    (unsigned long long)(plain_emu()->now() - t));
    }
    plain_emu()->barrier();
    plain_close(&mine[pe]);
    return 0;
}

static void bytes_wake_in_time(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=2,ports=1,unkind=ackvis", pe_is_woken_in_time, 0);
    plain_run_gives(0, "nodes=2,ports=1,unkind=all", pe_is_woken_in_time, 0);
}

/* Stores that were on their way and are there already are nothing to wait for. */
static int pe_waits_for_nothing(void *arg, int pe)
{
    uint64_t t;

    (void)arg, (void)pe;
    plain_pair(p, PAGE, NULL);
    for (uint64_t i = 0; i < 16; i++) {
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = i, .len = 1});
        plain_done(&p[0], i, IBV_WC_SUCCESS);
    }
    plain_move(p[0].qp[0], IBV_QPS_RESET); /* its timer */
    plain_move(p[1].qp[0], IBV_QPS_RESET);
    t = plain_emu()->now();
    while (plain_emu()->wait(UINT64_MAX) == 0)
        ;
    plain_equal("time that passed until the deadlock", (long long)(plain_emu()->now() - t), 0);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void what_is_there_already_does_not_hide_a_deadlock(void **state)
{
    (void)state;
    plain_run_gives(-EDEADLK, FABRIC "ackvis", pe_waits_for_nothing, 0);
    plain_run_gives(-EDEADLK, FABRIC "all", pe_waits_for_nothing, 0);
}

/* ---- acknowledgements ---------------------------------------------------------------------------------------------------- */

static struct ibv_mr *relaxed_region(void)
{
    struct ibv_mr *mr = ibv_reg_mr(p[1].pd, p[1].buf, p[1].len, EVERYTHING | IBV_ACCESS_RELAXED_ORDERING);

    plain_check(mr, "no relaxed region");
    return mr;
}

/* A NAK acknowledges what was before it: that has to be visible too. */
static int pe_not_ready(void *arg, int pe)
{
    (void)arg, (void)pe;
    for (int r = 0; r < 60; r++) {
        struct ibv_mr *mr;

        plain_pair(p, PAGE, NULL);
        mr = relaxed_region();
        p[0].buf[0] = 1;
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 1, .rkey = mr->rkey});
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_SEND, .id = 2, .len = 1});
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
        plain_equal("the byte", *(volatile unsigned char *)p[1].buf, 1);
        plain_recv(&p[1], p[1].qp[0], 3, 64, 64);
        plain_done(&p[0], 2, IBV_WC_SUCCESS);
        ibv_dereg_mr(mr);
        plain_close(&p[0]);
        plain_close(&p[1]);
    }
    return 0;
}

static void a_refusal_acknowledges_only_what_is_visible(void **state)
{
    (void)state;
    plain_run_gives(0, FABRIC "relaxed", pe_not_ready, 0);
    plain_run_gives(0, FABRIC "ooo", pe_not_ready, 0);
}

/* 60 x 64 KiB take 160 us: the first must not wait for the last, though something is always on its way. */
static int pe_streams(void *arg, int pe)
{
    struct ibv_mr *mr;
    uint64_t t;

    (void)arg, (void)pe;
    plain_pair(p, 65536, NULL);
    mr = relaxed_region();
    t = plain_emu()->now();
    for (uint64_t i = 0; i < 60; i++)
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = i, .len = 65536, .rkey = mr->rkey});
    for (uint64_t i = 0; i < 60; i++) {
        plain_done(&p[0], i, IBV_WC_SUCCESS);
        took = i == 0 ? plain_emu()->now() - t : took;
    }
    ibv_dereg_mr(mr);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void acknowledgements_do_not_wait_for_what_comes_later(void **state)
{
    (void)state;
    plain_run_gives(0, FABRIC "relaxed", pe_streams, 0);
    assert_in_range(took, 7000, 40000);
}

/* ---- time ------------------------------------------------------------------------------------------------------------- */

static int pe_reads(void *arg, int pe)
{
    uint64_t t;

    (void)arg, (void)pe;
    plain_pair(p, PAGE, NULL);
    t = plain_emu()->now();
    for (uint64_t i = 0; i < 16; i++)
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_READ, .id = i, .len = 8});
    for (uint64_t i = 0; i < 16; i++)
        plain_done(&p[0], i, IBV_WC_SUCCESS);
    took = plain_emu()->now() - t;
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void answers_come_one_at_a_time_with_rdstall(void **state)
{
    (void)state;
    plain_run_gives(0, FABRIC "none", pe_reads, 0);
    assert_in_range(took, 5000, 6000);
    plain_run_gives(0, FABRIC "relaxed+ooo+ackvis+atomics+slowctl", pe_reads, 0);
    assert_in_range(took, 5000, 6000);
    plain_run_gives(0, FABRIC "rdstall", pe_reads, 0);
    assert_in_range(took, 10000, 5000 + 16 * 2000 + 1000);
}

/* With one READ outstanding the second, and the WRITE behind it, wait for the first's answer: without any switch. */
static int pe_stalls(void *arg, int pe)
{
    struct plain_path path = plain_defaults();
    uint64_t t;

    (void)arg, (void)pe;
    path.rd_atomic = path.dest_rd_atomic = 1;
    plain_pair(p, PAGE, &path);
    p[0].buf[128] = 1;
    t = plain_emu()->now();
    for (uint64_t i = 0; i < 2; i++)
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_READ, .id = i, .len = 8});
    plain_post(&p[0], p[0].qp[0], &p[1],
               (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 2, .local = 128, .remote = 128, .len = 1});
    while (*(volatile unsigned char *)(p[1].buf + 128) == 0)
        plain_emu()->wait(plain_emu()->now() + 10);
    took = plain_emu()->now() - t;
    for (uint64_t i = 0; i < 3; i++)
        plain_done(&p[0], i, IBV_WC_SUCCESS);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void a_write_behind_too_many_reads_waits_for_their_answers(void **state)
{
    (void)state;
    plain_run_gives(0, FABRIC "none", pe_stalls, 0);
    assert_in_range(took, 7500, 8000); /* there, back, there again */
}

enum { CALLS = 30 };
static uint64_t shortest, longest;

static int pe_registers(void *arg, int pe)
{
    (void)arg, (void)pe;
    shortest = UINT64_MAX;
    longest = 0;
    memset(p, 0, sizeof(p));
    plain_open(&p[0], 0, PAGE, 16);
    for (int i = 0; i < CALLS; i++) {
        uint64_t t = plain_emu()->now();

        ibv_dereg_mr(ibv_reg_mr(p[0].pd, p[0].buf, PAGE, EVERYTHING));
        t = plain_emu()->now() - t;
        shortest = t < shortest ? t : shortest;
        longest = t > longest ? t : longest;
    }
    plain_close(&p[0]);
    return 0;
}

static void control_calls_take_longer_with_slowctl(void **state)
{
    uint64_t usual;

    (void)state;
    plain_run_gives(0, TIMED "none", pe_registers, 0);
    usual = shortest;
    assert_int_equal(longest, usual);
    plain_run_gives(0, TIMED "relaxed+ooo+ackvis+atomics+rdstall", pe_registers, 0);
    assert_int_equal(shortest, usual);
    assert_int_equal(longest, usual);
    plain_run_gives(0, TIMED "slowctl", pe_registers, 0);
    assert_in_range(shortest, usual, 10 * usual);
    assert_in_range(longest, 10 * usual, 2000000);
}

/* ---- placement --------------------------------------------------------------------------------------------------------- */

static int answered;
static unsigned char dv[512];

static int pe_asks(void *arg, int pe)
{
    int (*ask_device)(struct ibv_context *, void *);
    uint64_t mask = *(uint64_t *)arg;

    (void)pe;
    *(void **)&ask_device = dlsym(RTLD_DEFAULT, "mlx5dv_query_device");
    memset(p, 0, sizeof(p));
    if (!plain_check(ask_device, "no mlx5dv_query_device") || !plain_open(&p[0], 0, PAGE, 16))
        return -1;
    memset(dv, 0xee, sizeof(dv));
    memcpy(dv + 16, &mask, sizeof(mask));
    answered = ask_device(p[0].ctx, dv);
    plain_close(&p[0]);
    return 0;
}

static void ask_run(const char *spec, uint64_t mask)
{
    struct emu_sim_options o = {sizeof(o), spec, 7, EMU_SIM_COROUTINES, 0};
    struct emu_sim *sim;
    char why[256];

    assert_int_equal(plain_emu()->open(&o, &sim, why, sizeof(why)), 0);
    assert_int_equal(plain_emu()->run(sim, pe_asks, &mask, why, sizeof(why)), 0);
    plain_emu()->close(sim);
}

static uint32_t max_rc(void)
{
    uint32_t v;

    memcpy(&v, dv + 176, sizeof(v));
    return v;
}

static uint64_t comp_mask(void)
{
    uint64_t v;

    memcpy(&v, dv + 16, sizeof(v));
    return v;
}

static void the_device_says_whether_it_may_misplace(void **state)
{
    enum { OOO = 1 << 16 };

    (void)state;
    ask_run(FABRIC "all", OOO | 1);
    assert_int_equal(answered, 0);
    assert_int_equal(comp_mask(), OOO);
    assert_true(max_rc() > 0);
    ask_run(FABRIC "relaxed+ackvis+atomics", OOO);
    assert_int_equal(answered, 0);
    assert_int_equal(comp_mask(), OOO);
    assert_int_equal(max_rc(), 0);
    ask_run(FABRIC "ooo", 0); /* an old header: its struct ends before the answer */
    assert_int_equal(comp_mask(), 0);
    assert_int_equal(max_rc(), 0xeeeeeeeeu);
    ask_run(FABRIC "ooo-silent", OOO);
    assert_int_equal(answered, EOPNOTSUPP);
    assert_int_equal(max_rc(), 0xeeeeeeeeu);
}

/* ---- words -------------------------------------------------------------------------------------------------------------- */

static void gives(const char *set, const char *printed)
{
    char spec[128];
    struct emu_sim_options o = {sizeof(o), spec, 7, EMU_SIM_COROUTINES, 0};
    struct emu_sim *sim;
    char why[256] = "";

    snprintf(spec, sizeof(spec), FABRIC "%s", set);
    if (plain_emu()->open(&o, &sim, why, sizeof(why))) {
        if (printed || !strstr(why, "expected none, or all, relaxed,"))
            fail_msg("%s: %s", set, why);
        return;
    }
    if (!printed || !strstr(plain_emu()->fabric(sim), printed))
        fail_msg("%s gives %s", set, plain_emu()->fabric(sim));
    plain_emu()->close(sim);
}

static void words_are_read_and_printed(void **state)
{
    (void)state;
    gives("none", "unkind=none,");
    gives("all", "unkind=all,");
    gives("rdstall+relaxed", "unkind=relaxed+rdstall,");
    gives("relaxed+ooo+ackvis+atomics+slowctl+rdstall", "unkind=all,");
    gives("ooo+ooo-silent", "unkind=ooo-silent,");
    gives("ackvis+ackvis", "unkind=ackvis,");
    gives("all+ooo-silent", "unkind=relaxed+ooo-silent+ackvis+atomics+slowctl+rdstall,");
    gives("", NULL);
    gives("relaxed+", NULL);
    gives("+", NULL);
    gives("relax", NULL);
    gives("relaxedd", NULL);
    gives("none+all", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_on_its_way_lands_before_the_end),
        cmocka_unit_test(receives_on_their_way_complete_before_the_flushed_ones),
        cmocka_unit_test(a_program_that_ends_takes_its_memory_with_it),
        cmocka_unit_test(bytes_wake_when_they_are_visible),
        cmocka_unit_test(bytes_wake_in_time),
        cmocka_unit_test(what_is_there_already_does_not_hide_a_deadlock),
        cmocka_unit_test(a_refusal_acknowledges_only_what_is_visible),
        cmocka_unit_test(acknowledgements_do_not_wait_for_what_comes_later),
        cmocka_unit_test(answers_come_one_at_a_time_with_rdstall),
        cmocka_unit_test(a_write_behind_too_many_reads_waits_for_their_answers),
        cmocka_unit_test(control_calls_take_longer_with_slowctl),
        cmocka_unit_test(the_device_says_whether_it_may_misplace),
        cmocka_unit_test(words_are_read_and_printed),
    };

    return cmocka_run_group_tests_name("unkind_more", tests, NULL, NULL);
}
