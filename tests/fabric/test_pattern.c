/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pattern.c - memory that knows where its bytes came from: filled, compared, moved by the emulated devices, mixed
 * with ordinary memory. Plain verbs in virtual time; next: the emulator.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "plain.h"

#define ONE "nodes=1,ports=2"
#define MIB ((size_t)1 << 20)

enum {
    EVERYTHING = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

static struct plain_port p[2];
static const struct emu_sim_api *emu;

/* Pattern memory of each port, registered there. */
static unsigned char *memory[2];
static struct ibv_mr *mr[2];

static enum ibv_mtu mtu = IBV_MTU_4096;

static bool start(size_t len, int access)
{
    struct plain_path path = plain_defaults();

    path.mtu = mtu;
    emu = plain_emu();
    if (!plain_pair(p, 4 * 65536, &path))
        return false;
    for (int i = 0; i < 2; i++) {
        memory[i] = emu->pattern_map(len);
        mr[i] = memory[i] ? ibv_reg_mr(p[i].pd, memory[i], len, access) : NULL;
        if (!plain_check(mr[i], "pattern memory cannot be had or registered: %s", strerror(errno)))
            return false;
    }
    return true;
}

static void finish(void)
{
    for (int i = 0; i < 2; i++) {
        if (mr[i])
            ibv_dereg_mr(mr[i]);
        if (memory[i])
            emu->pattern_unmap(memory[i]);
        plain_close(&p[i]);
    }
}

static uint64_t remote(size_t offset)
{
    return (uint64_t)(uintptr_t)(memory[1] + offset) + emu->shift(p[1].pe);
}

/** A request between the two memories, the same offset in both. Waits for its completion. */
static void move(enum ibv_wr_opcode op, size_t offset, size_t to, size_t len)
{
    plain_post(
        &p[0], p[0].qp[0], &p[1],
        (struct plain_wr){
            .op = op, .id = 1, .mr = mr[0], .local = offset, .len = len, .rkey = mr[1]->rkey, .address = remote(to)});
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
}

static uint64_t next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

/* ---- fill and diff --------------------------------------------------------------------------------------------------------- */

enum { SMALL = 4096, FILLS = 3000 };

static void random_fills_are_what_a_list_of_bytes_says(void **state)
{
    static uint64_t tag[SMALL], pos[SMALL];
    uint64_t random = 7;
    unsigned char *m;

    (void)state;
    emu = plain_emu();
    m = emu->pattern_map(SMALL);
    assert_non_null(m);
    memset(tag, 0, sizeof(tag));
    for (int r = 0; r < FILLS; r++) {
        size_t at = next_random(&random) % SMALL,
               len = next_random(&random) % (r % 2 ? 64 : SMALL - at) % (SMALL - at) + 1;
        uint64_t t = next_random(&random) % 4, runs = 0, differ = 0;

        assert_int_equal(emu->pattern_fill(m + at, len, t), 0);
        for (size_t i = 0; i < len; i++) {
            tag[at + i] = t;
            pos[at + i] = t ? i : 0;
        }
        for (size_t i = 0; i < SMALL; i++)
            runs += tag[i] && (i == 0 || tag[i] != tag[i - 1] || pos[i] != pos[i - 1] + 1);
        assert_int_equal(emu->pattern_runs(m), runs);
        at = next_random(&random) % SMALL;
        len = next_random(&random) % (SMALL - at) + 1;
        t = next_random(&random) % 4;
        for (size_t i = 0; i < len; i++)
            differ += tag[at + i] != t || (t && pos[at + i] != i);
        assert_int_equal(emu->pattern_diff(m + at, len, t), differ);
    }
    emu->pattern_unmap(m);
}

static void what_is_no_such_memory_is_refused(void **state)
{
    unsigned char *m, ordinary[64] = {0};

    (void)state;
    emu = plain_emu();
    assert_null(emu->pattern_map(0));
    assert_null(emu->pattern_map(SIZE_MAX));
    m = emu->pattern_map(SMALL);
    assert_non_null(m);
    assert_int_equal(emu->pattern_fill(ordinary, 64, 1), -EINVAL);
    assert_int_equal(emu->pattern_fill(m + 1, SMALL, 1), -EINVAL);
    assert_int_equal(emu->pattern_fill(m, 8, UINT64_MAX), -EINVAL);
    assert_int_equal(emu->pattern_diff(ordinary, 64, 0), 64);
    assert_int_equal(emu->pattern_diff(m + 1, SMALL, 0), SMALL);
    assert_int_equal(emu->pattern_runs(ordinary), 0);
    emu->pattern_unmap(m + 1); /* not what map() gave: nothing happens */
    assert_int_equal(emu->pattern_fill(m, SMALL, 1), 0);
    emu->pattern_unmap(m);
    assert_int_equal(emu->pattern_fill(m, SMALL, 1), -EINVAL);
    emu->pattern_unmap(m);
    emu->pattern_unmap(NULL);
}

static void the_cpu_cannot_read_it(void **state)
{
    unsigned char *m;
    int ends[2];

    (void)state;
    emu = plain_emu();
    m = emu->pattern_map(SMALL);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], m, 1), -1);
    assert_int_equal(errno, EFAULT);
    close(ends[0]);
    close(ends[1]);
    emu->pattern_unmap(m);
}

/* ---- moved by devices --------------------------------------------------------------------------------------------------------- */

enum { LEN = 1 << 20 };

/* Pieces of any length, in any order, each named by its place in the source. */
static int pe_moves(void *arg, int pe)
{
    uint64_t random = 11;
    size_t at = 0;

    (void)arg, (void)pe;
    if (!start(LEN, EVERYTHING | IBV_ACCESS_RELAXED_ORDERING))
        return -1;
    plain_equal("fill", emu->pattern_fill(memory[0], LEN, 5), 0);
    plain_equal("differ at first", (long long)emu->pattern_diff(memory[1], LEN, 5), LEN);
    while (at < LEN) {
        size_t len = next_random(&random) % 20000 + 1;

        len = len < LEN - at ? len : LEN - at;
        move(IBV_WR_RDMA_WRITE, at, at, len);
        at += len;
    }
    move(IBV_WR_RDMA_READ, 0, 0, LEN); /* proves that all are there, and is itself such a move */
    plain_equal("differ once written", (long long)emu->pattern_diff(memory[1], LEN, 5), 0);
    plain_equal("runs", (long long)emu->pattern_runs(memory[1]), 1);
    plain_equal("differ from another tag", (long long)emu->pattern_diff(memory[1], LEN, 6), LEN);
    plain_equal("differ from another place", (long long)emu->pattern_diff(memory[1] + 1, LEN - 1, 5), LEN - 1);
    plain_equal("differ once read back", (long long)emu->pattern_diff(memory[0], LEN, 5), 0);
    plain_equal("runs once read back", (long long)emu->pattern_runs(memory[0]), 1);
    move(IBV_WR_RDMA_WRITE, 5000, 6000, 100); /* misplaced */
    move(IBV_WR_RDMA_READ, LEN - 8, LEN - 8, 8);
    plain_equal("differ with 100 misplaced bytes", (long long)emu->pattern_diff(memory[1], LEN, 5), 100);
    finish();
    return 0;
}

static void pieces_arrive_as_one_run(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_moves, 0);
    mtu = IBV_MTU_256;
    plain_run_gives(0, ONE, pe_moves, 0);
    mtu = IBV_MTU_4096;
    plain_run_gives(0, ONE ",loss=0.02", pe_moves, 0);
}

static void pieces_arrive_as_one_run_in_any_order(void **state)
{
    (void)state;
    plain_run_gives(0, ONE ",unkind=relaxed", pe_moves, 0);
    plain_run_gives(0, ONE ",unkind=ooo", pe_moves, 0);
    plain_run_gives(0, ONE ",unkind=ackvis", pe_moves, 0);
    plain_run_gives(0, ONE ",unkind=all,loss=0.02", pe_moves, 0);
}

static int pe_sends(void *arg, int pe)
{
    struct ibv_sge sge;
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;

    (void)arg, (void)pe;
    if (!start(LEN, EVERYTHING))
        return -1;
    emu->pattern_fill(memory[0] + 100, 9000, 3);
    sge = (struct ibv_sge){(uint64_t)(uintptr_t)(memory[1] + 7), 9000, mr[1]->lkey};
    plain_equal("ibv_post_recv", ibv_post_recv(p[1].qp[0], &wr, &bad), 0);
    move(IBV_WR_SEND, 100, 0, 9000);
    plain_done(&p[1], 2, IBV_WC_SUCCESS);
    plain_equal("differ", (long long)emu->pattern_diff(memory[1] + 7, 9000, 3), 0);
    plain_equal("before", (long long)emu->pattern_diff(memory[1], 7, 0), 0);
    plain_equal("behind", (long long)emu->pattern_diff(memory[1] + 9007, LEN - 9007, 0), 0);
    finish();
    return 0;
}

static void sends_carry_patterns(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_sends, 0);
    plain_run_gives(0, ONE ",unkind=all", pe_sends, 0);
}

/* ---- two kinds of memory ------------------------------------------------------------------------------------------------------- */

/* Pattern memory into ordinary memory and back: the bytes are the tag's, and prove it. */
static int pe_mixes(void *arg, int pe)
{
    (void)arg, (void)pe;
    if (!start(LEN, EVERYTHING))
        return -1;
    emu->pattern_fill(memory[0], 10000, 9);
    for (int i = 0; i < 2; i++) { /* to two places of the other's ordinary memory, from two places of the tag */
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){.op = IBV_WR_RDMA_WRITE,
                                     .id = 1,
                                     .mr = mr[0],
                                     .local = i ? 3 : 0,
                                     .len = 9000,
                                     .remote = i ? 20003 : 0});
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
    }
    plain_equal("the same position, read in two ways", memcmp(p[1].buf + 3, p[1].buf + 20003, 8997), 0);
    plain_check(memcmp(p[1].buf, p[1].buf + 1, 8000) != 0 && p[1].buf[9000] == 0, "bytes that look like nothing");
    /* back, from ordinary memory into patterns */
    memcpy(p[0].buf, p[1].buf, 9000);
    plain_post(
        &p[0], p[0].qp[0], &p[1],
        (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 9000, .rkey = mr[1]->rkey, .address = remote(0)});
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    plain_equal("differ", (long long)emu->pattern_diff(memory[1], 9000, 9), 0);
    p[0].buf[77] ^= 1;
    plain_post(
        &p[0], p[0].qp[0], &p[1],
        (struct plain_wr){
            .op = IBV_WR_RDMA_WRITE, .id = 1, .local = 70, .len = 20, .rkey = mr[1]->rkey, .address = remote(70)});
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    plain_equal("differ with one wrong bit", (long long)emu->pattern_diff(memory[1], 9000, 9), 1);
    finish();
    return 0;
}

static void ordinary_memory_takes_the_bytes_of_patterns(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_mixes, 0);
    mtu = IBV_MTU_256;
    plain_run_gives(0, ONE, pe_mixes, 0);
    mtu = IBV_MTU_4096;
}

/* More runs than a packet holds: they travel as bytes. */
static int pe_many_runs(void *arg, int pe)
{
    (void)arg, (void)pe;
    if (!start(LEN, EVERYTHING))
        return -1;
    for (size_t i = 0; i < 4096; i += 8)
        emu->pattern_fill(memory[0] + i, 8, i + 1);
    move(IBV_WR_RDMA_WRITE, 0, 0, 4096);
    for (size_t i = 0; i < 4096; i += 8)
        plain_equal("differ", (long long)emu->pattern_diff(memory[1] + i, 8, i + 1), 0);
    for (size_t i = 0; i < 4096; i += 1024) /* the same tag, but each begins anew */
        emu->pattern_fill(memory[0] + i, 1024, 1);
    move(IBV_WR_RDMA_WRITE, 0, 0, 4096);
    for (size_t i = 0; i < 4096; i += 1024)
        plain_equal("differ where a tag begins anew", (long long)emu->pattern_diff(memory[1] + i, 1024, 1), 0);
    finish();
    return 0;
}

static void many_small_runs_arrive(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_many_runs, 0);
}

/* A list of ordinary, pattern, ordinary memory, and inline data from a pattern. */
static int pe_lists(void *arg, int pe)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 256}};
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_sge sge[3];
    struct ibv_qp *qp[2];

    (void)arg, (void)pe;
    if (!start(LEN, EVERYTHING))
        return -1;
    for (int i = 0; i < 2; i++) {
        init.send_cq = init.recv_cq = p[i].cq;
        qp[i] = ibv_create_qp(p[i].pd, &init);
    }
    plain_connect(&p[0], qp[0], &p[1], qp[1], NULL);
    emu->pattern_fill(memory[0], 1000, 4);
    for (int turn = 0; turn < 2; turn++) { /* the pattern second, then first */
        size_t at = turn ? 0 : 100, size = turn ? 1000 : 1100;

        memset(p[0].buf, 0x5a, 200);
        emu->pattern_fill(memory[1], 2000, 0);
        sge[turn ? 1 : 0] = (struct ibv_sge){(uint64_t)(uintptr_t)p[0].buf, 100, p[0].mr->lkey};
        sge[turn ? 0 : 1] = (struct ibv_sge){(uint64_t)(uintptr_t)memory[0], 1000, mr[0]->lkey};
        sge[2] = (struct ibv_sge){(uint64_t)(uintptr_t)p[0].buf + 100, 50, p[0].mr->lkey};
        wr.sg_list = sge;
        wr.num_sge = 3;
        wr.wr.rdma.remote_addr = remote(0);
        wr.wr.rdma.rkey = mr[1]->rkey;
        plain_equal("ibv_post_send", ibv_post_send(qp[0], &wr, &bad), 0);
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
        plain_equal("differ", (long long)emu->pattern_diff(memory[1] + at, 1000, 4), 0);
        plain_check(emu->pattern_diff(memory[1] + size, 50, 0) == 50, "the last part did not come");
    }
    sge[0] = (struct ibv_sge){(uint64_t)(uintptr_t)memory[0], 200, 0};
    wr.num_sge = 1;
    wr.send_flags |= IBV_SEND_INLINE;
    wr.wr.rdma.remote_addr = remote(5000);
    plain_equal("ibv_post_send, inline", ibv_post_send(qp[0], &wr, &bad), 0);
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    plain_equal("differ, inline", (long long)emu->pattern_diff(memory[1] + 5000, 200, 4), 0);
    for (int i = 0; i < 2; i++)
        ibv_destroy_qp(qp[i]);
    finish();
    return 0;
}

static void lists_may_mix_both_kinds(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_lists, 0);
}

/* Words: values are kept as they are. */
static int pe_words(void *arg, int pe)
{
    (void)arg, (void)pe;
    if (!start(LEN, EVERYTHING))
        return -1;
    for (uint64_t i = 0; i < 10; i++) {
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){.op = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                     .id = 1,
                                     .len = 8,
                                     .add = 3,
                                     .rkey = mr[1]->rkey,
                                     .address = remote(64)});
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
        plain_equal("old value", (long long)*(uint64_t *)(void *)p[0].buf, (long long)(3 * i));
    }
    plain_equal("bytes other than 30", (long long)emu->pattern_diff(memory[1], LEN, 0), 1);
    for (uint64_t i = 0; i < 8; i++) /* values that look like positions */
        memcpy(p[0].buf + 8 * i, &(uint64_t){8 * i + 8}, 8);
    plain_post(
        &p[0], p[0].qp[0], &p[1],
        (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 64, .rkey = mr[1]->rkey, .address = remote(512)});
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    plain_post(
        &p[0], p[0].qp[0], &p[1],
        (struct plain_wr){
            .op = IBV_WR_RDMA_READ, .id = 1, .local = 64, .len = 64, .rkey = mr[1]->rkey, .address = remote(512)});
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    plain_equal("words that were written and read", memcmp(p[0].buf, p[0].buf + 64, 64), 0);
    finish();
    return 0;
}

static void words_keep_their_values(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_words, 0);
    plain_run_gives(0, ONE ",unkind=all", pe_words, 0);
}

/* ---- life ---------------------------------------------------------------------------------------------------------------------- */

/* Only memory as a whole can be registered; unmapped, it lives on for its regions. */
static int pe_registers(void *arg, int pe)
{
    unsigned char there;

    (void)arg, (void)pe;
    if (!start(SMALL, EVERYTHING))
        return -1;
    plain_check(!ibv_reg_mr(p[0].pd, memory[0], SMALL + 1, EVERYTHING) && errno == EFAULT, "a region past the end");
    plain_check(!ibv_reg_mr(p[0].pd, memory[0] - 1, 2, EVERYTHING) && errno == EFAULT, "a region before the beginning");
    emu->pattern_fill(memory[1], SMALL, 1);
    emu->pattern_unmap(memory[1]);
    plain_check(mincore(memory[1], SMALL, &there) != 0, "address space that was given back is still mapped");
    move(IBV_WR_RDMA_READ, 0, 0, SMALL);
    plain_equal("differ", (long long)emu->pattern_diff(memory[0], SMALL, 1), 0);
    emu->pattern_fill(memory[0], SMALL, 2);
    move(IBV_WR_RDMA_WRITE, 0, 0, SMALL);
    emu->pattern_fill(memory[0], SMALL, 3);
    move(IBV_WR_RDMA_READ, 0, 0, SMALL);
    plain_equal("differ", (long long)emu->pattern_diff(memory[0], SMALL, 2), 0);
    memory[1] = NULL;
    finish();
    return 0;
}

static void a_region_keeps_its_memory(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_registers, 0);
}

static long resident_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

/* 2 GiB in a space of 64 GiB. */
static int pe_big(void *arg, int pe)
{
    (void)arg, (void)pe;
    if (!start(65536 * MIB, EVERYTHING | IBV_ACCESS_RELAXED_ORDERING))
        return -1;
    emu->pattern_fill(memory[0], 2048 * MIB, 8);
    for (size_t at = 0; at < 2048 * MIB; at += 512 * MIB)
        move(IBV_WR_RDMA_WRITE, at, at, 512 * MIB);
    move(IBV_WR_RDMA_READ, 0, 0, 8);
    plain_equal("differ", (long long)emu->pattern_diff(memory[1], 2048 * MIB, 8), 0);
    plain_equal("runs", (long long)emu->pattern_runs(memory[1]), 1);
    finish();
    return 0;
}

static void big_memory_costs_little(void **state)
{
    long before = resident_mib();

    (void)state;
    plain_run_gives(0, ONE ",unkind=relaxed", pe_big, 0);
    assert_in_range(resident_mib() - before, 0, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_fills_are_what_a_list_of_bytes_says),
        cmocka_unit_test(what_is_no_such_memory_is_refused),
        cmocka_unit_test(the_cpu_cannot_read_it),
        cmocka_unit_test(pieces_arrive_as_one_run),
        cmocka_unit_test(pieces_arrive_as_one_run_in_any_order),
        cmocka_unit_test(sends_carry_patterns),
        cmocka_unit_test(ordinary_memory_takes_the_bytes_of_patterns),
        cmocka_unit_test(many_small_runs_arrive),
        cmocka_unit_test(lists_may_mix_both_kinds),
        cmocka_unit_test(words_keep_their_values),
        cmocka_unit_test(a_region_keeps_its_memory),
        cmocka_unit_test(big_memory_costs_little),
    };

    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
