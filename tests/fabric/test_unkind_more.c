/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_unkind_more.c - unkind=atomics, slowctl and rdstall; what happens to bytes on their way when their region or queue
 * pair goes away; who is woken by them; what a device answers when it is asked about placement. Plain verbs in virtual
 * time; next: the emulator.
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

/* ---- time ------------------------------------------------------------------------------------------------------------- */

static uint64_t took;

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
        cmocka_unit_test(two_devices_lose_adds_and_one_does_not),
        cmocka_unit_test(what_races_an_atomic_is_lost),
        cmocka_unit_test(an_answer_may_come_before_the_value_only_with_ackvis),
        cmocka_unit_test(what_is_on_its_way_lands_before_the_end),
        cmocka_unit_test(receives_on_their_way_complete_before_the_flushed_ones),
        cmocka_unit_test(a_program_that_ends_takes_its_memory_with_it),
        cmocka_unit_test(bytes_wake_when_they_are_visible),
        cmocka_unit_test(answers_come_one_at_a_time_with_rdstall),
        cmocka_unit_test(a_write_behind_too_many_reads_waits_for_their_answers),
        cmocka_unit_test(control_calls_take_longer_with_slowctl),
        cmocka_unit_test(the_device_says_whether_it_may_misplace),
        cmocka_unit_test(words_are_read_and_printed),
    };

    return cmocka_run_group_tests_name("unkind_more", tests, NULL, NULL);
}
