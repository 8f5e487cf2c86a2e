/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_wire.c - the wire and the transport by plain verbs in virtual time: rates, turns, who is heard,
 * cables, what an earlier life of a queue pair leaves behind.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "plain.h"

#define ONE "nodes=1,ports=2"
#define MIB ((size_t)1 << 20)

static struct plain_port p[2];

static uint64_t now(void)
{
    return plain_emu()->now();
}

static void shut(void)
{
    plain_close(&p[0]);
    plain_close(&p[1]);
}

/** A WRITE from port from to the other; id as given. */
static void put(int from, struct ibv_qp *qp, uint64_t id, size_t len)
{
    plain_equal("ibv_post_send",
                plain_post(&p[from], qp, &p[!from], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = id, .len = len}),
                0);
}

/* ---- rates and turns --------------------------------------------------------------------------------------------- */

/** A region of port 1 is read by port 0 on queue pairs of its own, and deregistered when the first bytes have come. */
static void read_and_deregister(void)
{
    void *memory = aligned_alloc(4096, 8 * MIB);
    struct ibv_mr *mr = ibv_reg_mr(p[1].pd, memory, 8 * MIB, IBV_ACCESS_REMOTE_READ);
    struct plain_wr wr = {.op = IBV_WR_RDMA_READ, .id = 1, .len = 64 << 10};
    struct ibv_qp *a = plain_qp(&p[0]), *b = plain_qp(&p[1]);

    plain_connect(&p[0], a, &p[1], b, NULL);
    wr.rkey = mr->rkey;
    wr.address = (uint64_t)(uintptr_t)memory + plain_emu()->shift(0);
    plain_post(&p[0], a, &p[1], wr);
    wr.id = 2, wr.len = 8 * MIB;
    plain_post(&p[0], a, &p[1], wr);
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    for (uint64_t i = 0; i < 8; i++)
        put(1, p[1].qp[0], i, 8 * MIB);
    ibv_dereg_mr(mr);
    plain_done(&p[0], 2, IBV_WC_REM_ACCESS_ERR);
    plain_done(&p[1], 0, IBV_WC_SUCCESS);
    free(memory);
}

static int pe_rate(void *arg, int pe)
{
    uint64_t t;
    double gbits;

    (void)arg, (void)pe;
    plain_pair(p, 8 * MIB, NULL);
    read_and_deregister();
    t = now();
    for (uint64_t i = 1; i < 8; i++)
        plain_done(&p[1], i, IBV_WC_SUCCESS);
    gbits = (double)(56 * MIB) * 8 / (double)(now() - t);
    plain_check(gbits > 190 && gbits < 200, "a port of 200 Gb/s sends at %.1f Gb/s", gbits);
    shut();
    return 0;
}

static void a_port_never_exceeds_its_rate(void **state)
{
    (void)state;
    plain_run_gives(0, ONE ",rate=1T:200G", pe_rate, 0);
}

/* A short message on one queue pair does not wait for the end of long ones on another. */
static int pe_turns(void *arg, int pe)
{
    struct ibv_qp *a, *b;
    uint64_t t, alone = MIB * 8 / 200;

    (void)arg, (void)pe;
    plain_pair(p, MIB, NULL);
    a = plain_qp(&p[0]), b = plain_qp(&p[1]);
    plain_connect(&p[0], a, &p[1], b, NULL);
    t = now();
    for (uint64_t i = 1; i <= 8; i++)
        put(0, p[0].qp[0], i, MIB);
    put(0, a, 100, MIB);
    while (plain_wait(&p[0]) == IBV_WC_SUCCESS && p[0].wc.wr_id != 100)
        ;
    t = now() - t;
    plain_check(t > alone * 19 / 10 && t < alone * 23 / 10,
                "1 MiB beside 8 MiB on another queue pair took %llu ns, expected twice %llu", (unsigned long long)t,
                (unsigned long long)alone);
    shut();
    return 0;
}

static void queue_pairs_of_a_port_take_turns(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_turns, 0);
}

/* Port 0 sends 4 MiB of its own and 4 MiB that port 1 reads, on one queue pair: both end when all 8 are through. */
static int pe_both(void *arg, int pe)
{
    uint64_t start, wrote, done, all = 8 * MIB * 8 / 200;

    (void)arg, (void)pe;
    plain_pair(p, 4 * MIB, NULL);
    start = now();
    plain_post(&p[1], p[1].qp[0], &p[0], (struct plain_wr){.op = IBV_WR_RDMA_READ, .id = 1, .len = 4 * MIB});
    put(0, p[0].qp[0], 2, 4 * MIB);
    plain_done(&p[0], 2, IBV_WC_SUCCESS);
    wrote = now() - start;
    plain_done(&p[1], 1, IBV_WC_SUCCESS);
    done = now() - start;
    plain_check(wrote > all * 9 / 10 && wrote < all * 11 / 10, "WRITE ended after %llu ns, expected about %llu",
                (unsigned long long)wrote, (unsigned long long)all);
    plain_check(done < all * 11 / 10, "READ ended after %llu ns, expected about %llu", (unsigned long long)done,
                (unsigned long long)all);
    shut();
    return 0;
}

/* The other way round: who asked first does not matter. */
static int pe_both_read_first(void *arg, int pe)
{
    uint64_t start, took, all = 8 * MIB * 8 / 200;

    (void)arg, (void)pe;
    plain_pair(p, 4 * MIB, NULL);
    start = now();
    put(0, p[0].qp[0], 2, 4 * MIB);
    plain_post(&p[1], p[1].qp[0], &p[0], (struct plain_wr){.op = IBV_WR_RDMA_READ, .id = 1, .len = 4 * MIB});
    plain_done(&p[1], 1, IBV_WC_SUCCESS);
    took = now() - start;
    plain_check(took > all * 9 / 10 && took < all * 11 / 10, "READ ended after %llu ns, expected about %llu",
                (unsigned long long)took, (unsigned long long)all);
    plain_done(&p[0], 2, IBV_WC_SUCCESS);
    shut();
    return 0;
}

static void requests_and_answers_take_turns(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_both, 0);
    plain_run_gives(0, ONE, pe_both_read_first, 0);
}

static int pe_counted(void *arg, int pe)
{
    (void)arg, (void)pe;
    plain_pair(p, MIB, NULL);
    put(0, p[0].qp[0], 1, MIB);
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    shut();
    return 0;
}

static void what_leaves_a_port_arrives_at_the_other(void **state)
{
    struct emu_sim_port a, b;

    (void)state;
    plain_run_gives(0, ONE, pe_counted, 0);
    a = plain_counters(0), b = plain_counters(1);
    assert_int_equal(a.tx_payload, MIB);
    assert_int_equal(b.rx_payload, MIB);
    assert_int_equal(a.wire_tx, MIB + 256 * 82 + 16);
    assert_int_equal(b.wire_rx, a.wire_tx);
    assert_int_equal(a.wire_rx, b.wire_tx);
    assert_true(a.wire_rx > 0);
    assert_int_equal(a.lost + b.lost, 0);
}

static void the_trace_knows_time(void **state)
{
    uint64_t first;

    (void)state;
    plain_run_gives(0, ONE, pe_counted, 0);
    first = plain_trace();
    plain_run_gives(0, ONE, pe_counted, 0);
    assert_true(plain_trace() == first);
    plain_run_gives(0, ONE ",latency=2501ns", pe_counted, 0);
    assert_true(plain_trace() != first);
}

/* ---- who is heard ------------------------------------------------------------------------------------------------ */

/* A queue pair of a third port that claims to be connected to port 1's: not a byte, and no answer. */
static int pe_stranger(void *arg, int pe)
{
    struct plain_path path = plain_defaults();
    struct plain_port stranger = {0};

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    plain_open(&stranger, 2, 4096, 16);
    path.timeout = 8, path.retry = 1;
    plain_equal("connecting", plain_connect_to(plain_qp(&stranger), p[1].qp[0]->qp_num, &p[1].gid, &path), 0);
    memset(stranger.buf, 0x55, 4096);
    plain_post(&stranger, stranger.qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 9, .len = 100});
    plain_done(&stranger, 9, IBV_WC_RETRY_EXC_ERR);
    plain_equal("a byte at port 1", p[1].buf[0], 0);
    memset(p[0].buf, 0x77, 4096);
    put(0, p[0].qp[0], 1, 100);
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    plain_equal("a byte at port 1", p[1].buf[0], 0x77);
    plain_close(&stranger);
    shut();
    return 0;
}

static void a_stranger_is_not_heard(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=1,ports=3", pe_stranger, 0);
}

/* The sender's own cable: nothing leaves, and the packets count as lost. */
static int pe_cut(void *arg, int pe)
{
    char why[128];

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    memset(p[0].buf, 0x77, 4096);
    plain_equal("cable out", plain_emu()->ctl("port h0/mlx5_0:1 down", why, sizeof(why)), 0);
    put(0, p[0].qp[0], 1, 4096);
    plain_emu()->charge(1000000);
    plain_equal("a byte at port 1", p[1].buf[0], 0);
    plain_equal("cable in", plain_emu()->ctl("port h0/mlx5_0:1 up", why, sizeof(why)), 0);
    plain_done(&p[0], 1, IBV_WC_SUCCESS); /* by the repeat */
    plain_equal("a byte at port 1", p[1].buf[0], 0x77);
    shut();
    return 0;
}

static void a_port_that_is_down_sends_nothing(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_cut, 0);
    assert_int_equal(plain_counters(0).lost, 1);
}

/* The requester keeps more READs going than the responder was told to expect. */
static int pe_greedy(void *arg, int pe)
{
    struct plain_path path = plain_defaults();
    enum ibv_wc_status last = IBV_WC_SUCCESS;

    (void)arg, (void)pe;
    path.rd_atomic = 8, path.dest_rd_atomic = 2;
    plain_pair(p, MIB, &path);
    for (uint64_t i = 0; i < 8; i++)
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_READ, .id = i, .len = MIB});
    for (uint64_t i = 0; i < 8 && last == IBV_WC_SUCCESS; i++) {
        int status = plain_wait(&p[0]);

        plain_equal("request", (long long)p[0].wc.wr_id, (long long)i);
        last = (enum ibv_wc_status)status;
    }
    plain_equal("status of the first that failed", last, IBV_WC_REM_INV_REQ_ERR);
    shut();
    return 0;
}

static void more_reads_than_agreed_are_refused(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_greedy, 0);
}

/* ---- earlier lives ----------------------------------------------------------------------------------------------- */

static bool reset_both(const struct plain_path *path)
{
    for (int i = 0; i < 2; i++)
        plain_equal("to RESET", plain_move(p[i].qp[0], IBV_QPS_RESET), 0);
    return plain_connect(&p[0], p[0].qp[0], &p[1], p[1].qp[0], path);
}

/*
 * Life 1 waits 82 ms for a receiver, and is reset. Life 2 waits 328 ms, with one retry left: a timer of life 1
 * that fired in it would spend that before there is a receive.
 */
static int pe_old_timer(void *arg, int pe)
{
    struct plain_path path = plain_defaults();

    (void)arg, (void)pe;
    path.min_rnr = 26, path.rnr_retry = 1;
    plain_pair(p, 4096, &path);
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_SEND, .id = 1, .len = 8});
    plain_emu()->charge(1000000);
    path.min_rnr = 30;
    reset_both(&path);
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_SEND, .id = 2, .len = 8});
    plain_emu()->charge(200000000);
    plain_recv(&p[1], p[1].qp[0], 3, 0, 64);
    plain_done(&p[0], 2, IBV_WC_SUCCESS);
    shut();
    return 0;
}

static void timers_end_with_a_life(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_old_timer, 0);
}

/*
 * In life 2 the requester is one PSN behind: to the responder its atomic is a repeated one, of which it knows
 * nothing. What it answered to that PSN in life 1 is no answer.
 */
static int pe_old_atomic(void *arg, int pe)
{
    struct plain_path path = plain_defaults();
    struct plain_wr add = {.op = IBV_WR_ATOMIC_FETCH_AND_ADD, .id = 1, .len = 8, .add = 1};
    uint64_t word;

    (void)arg, (void)pe;
    path.timeout = 8, path.retry = 1;
    plain_pair(p, 4096, &path);
    plain_post(&p[0], p[0].qp[0], &p[1], add);
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    reset_both(&path);
    plain_move(p[1].qp[0], IBV_QPS_RESET);
    path.psn++;
    plain_connect_to(p[1].qp[0], p[0].qp[0]->qp_num, &p[0].gid, &path);
    add.id = 2;
    plain_post(&p[0], p[0].qp[0], &p[1], add);
    plain_done(&p[0], 2, IBV_WC_RETRY_EXC_ERR);
    memcpy(&word, p[1].buf, sizeof(word));
    plain_equal("the word", (long long)word, 1);
    shut();
    return 0;
}

static void atomics_of_an_earlier_life_are_forgotten(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_old_atomic, 0);
}

/*
 * An acknowledgement of life 1 arrives in life 2, 100 us after the switch, with a PSN that life 2 has not sent: it
 * acknowledges nothing. Free calls, so that all of this fits between two latencies of 100 us.
 */
static int pe_old_ack(void *arg, int pe)
{
    struct plain_path path = plain_defaults();
    uint64_t t;

    (void)arg, (void)pe;
    plain_pair(p, 4096, &path);
    plain_emu()->wait(now()); /* what happened so far has been seen */
    put(0, p[0].qp[0], 1, 8);
    while (now() < 110000)
        plain_emu()->wait(110000);
    path.psn = 0x1000;
    reset_both(&path);
    t = now();
    put(0, p[0].qp[0], 2, 8);
    plain_done(&p[0], 2, IBV_WC_SUCCESS);
    plain_check(now() - t >= 200000, "the WRITE of life 2 was acknowledged after %llu ns, expected two latencies",
                (unsigned long long)(now() - t));
    shut();
    return 0;
}

static void answers_to_an_earlier_life_are_void(void **state)
{
    (void)state;
    plain_run_gives(0, ONE ",cpu=off,latency=100us", pe_old_ack, 0);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/*
 * Half of all packets are lost, no repeat is allowed, the timer takes 4 s. A gap that the responder reports (NAK,
 * PSN sequence error) is to be repaired by a repeat, so it ends the request at once.
 */
static int pe_unforgiving(void *arg, int pe)
{
    struct plain_path path = plain_defaults();
    int at_once = 0;
    uint64_t t;

    (void)arg, (void)pe;
    path.timeout = 20, path.retry = 0;
    for (int i = 0; i < 20; i++) {
        int status;

        plain_pair(p, MIB, &path);
        t = now();
        put(0, p[0].qp[0], 1, 64 << 10);
        status = plain_wait(&p[0]);
        plain_check(status == IBV_WC_SUCCESS || status == IBV_WC_RETRY_EXC_ERR, "a WRITE ended with status %d", status);
        at_once += status == IBV_WC_RETRY_EXC_ERR && now() - t < 1000000;
        shut();
    }
    plain_check(at_once > 0, "no gap of 20 messages ended its request before the timer");
    return 0;
}

static void a_reported_gap_costs_a_repeat(void **state)
{
    (void)state;
    plain_run_gives(0, ONE ",loss=0.5", pe_unforgiving, 3600000000000);
}

/* ---- PSNs -------------------------------------------------------------------------------------------------------- */

enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ };

/** 1 GiB of addresses over 1 MiB of memory; NULL: none to be had. */
static unsigned char *big_memory(void)
{
    int fd = memfd_create("big", 0);
    unsigned char *at = mmap(NULL, 1024 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool good = fd >= 0 && ftruncate(fd, (off_t)MIB) == 0 && at != MAP_FAILED;

    for (size_t i = 0; good && i < 1024; i++)
        good = mmap(at + i * MIB, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    if (fd >= 0)
        close(fd);
    return good ? at : NULL;
}

/* Three READs of 2^22 PSNs each are posted: half of the 2^24 that there are may be outstanding, less one. */
static bool post_many(struct ibv_mr *mr[2], unsigned char *big)
{
    mr[0] = big ? ibv_reg_mr(p[0].pd, big, 1024 * MIB, ALL) : NULL;
    mr[1] = big ? ibv_reg_mr(p[1].pd, big, 1024 * MIB, ALL) : NULL;
    if (!mr[0] || !mr[1])
        return plain_check(false, "no memory");
    for (uint64_t i = 0; i < 3; i++)
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){.op = IBV_WR_RDMA_READ,
                                     .id = i,
                                     .len = 1024 * MIB,
                                     .mr = mr[0],
                                     .rkey = mr[1]->rkey,
                                     .address = (uint64_t)(uintptr_t)big + plain_emu()->shift(0)});
    return true;
}

static bool to_end; /* all 3 GiB: some 15 s */

static int pe_many_psns(void *arg, int pe)
{
    struct plain_path path = plain_defaults();
    unsigned char *big = big_memory();
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct ibv_mr *mr[2];
    uint32_t numbered;

    (void)arg, (void)pe;
    path.mtu = IBV_MTU_256, path.timeout = 20;
    plain_pair(p, 4096, &path);
    if (!post_many(mr, big))
        return -ENOMEM;
    plain_emu()->charge(1000); /* the requests are out, no answer is back: a second READ would make 2^23 */
    ibv_query_qp(p[0].qp[0], &attr, IBV_QP_SQ_PSN, &init);
    numbered = (attr.sq_psn - path.psn) & 0xffffff;
    plain_equal("PSNs outstanding", numbered, 1 << 22);
    for (uint64_t i = 0; to_end && i < 3; i++)
        plain_done(&p[0], i, IBV_WC_SUCCESS);
    plain_move(p[0].qp[0], IBV_QPS_ERR);
    ibv_dereg_mr(mr[0]);
    ibv_dereg_mr(mr[1]);
    shut();
    munmap(big, 1024 * MIB);
    return 0;
}

static void no_more_psns_than_can_be_told_apart(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_many_psns, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest psns[] = {cmocka_unit_test(no_more_psns_than_can_be_told_apart)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_never_exceeds_its_rate),
        cmocka_unit_test(queue_pairs_of_a_port_take_turns),
        cmocka_unit_test(requests_and_answers_take_turns),
        cmocka_unit_test(what_leaves_a_port_arrives_at_the_other),
        cmocka_unit_test(the_trace_knows_time),
        cmocka_unit_test(a_stranger_is_not_heard),
        cmocka_unit_test(a_port_that_is_down_sends_nothing),
        cmocka_unit_test(more_reads_than_agreed_are_refused),
        cmocka_unit_test(timers_end_with_a_life),
        cmocka_unit_test(atomics_of_an_earlier_life_are_forgotten),
        cmocka_unit_test(answers_to_an_earlier_life_are_void),
        cmocka_unit_test(a_reported_gap_costs_a_repeat),
        cmocka_unit_test(no_more_psns_than_can_be_told_apart),
    };

    to_end = argc == 2 && strcmp(argv[1], "--soak") == 0;
    if (to_end)
        return cmocka_run_group_tests_name("verbs_psns", psns, NULL, NULL);
    return cmocka_run_group_tests_name("verbs_wire", tests, NULL, NULL);
}
