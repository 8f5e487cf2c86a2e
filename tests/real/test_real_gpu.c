/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_real_gpu.c - GPU memory in the real-time emulator, on a CUDA library (fake_cuda.h) whose copies happen only when somebody
 * waits for them: what an answer, a completion or a later write says to be there must be there. And nobody but the engine
 * thread may copy.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_cuda.h"
#include "pairs.h"

enum {
    LONG = 1500 * 1000 + 24, /* several times what is read ahead */
    FROM = PAIRS_FROM,
    WORD = PAIRS_BYTES - 64,
    ANSWER = PAIRS_BYTES - 128,
    ROUNDS = 12,
    FLAGGED = 5000
};

/** Opens pairs on device memory; what the CPU sees of it is in *see. */
static int open_on_gpu(struct pairs *p, struct real *r, int me, int kind, unsigned char **see)
{
    void *memory;

    fake_cuda_begin();
    memory = fake_cuda_alloc(PAIRS_BYTES, kind);
    if (!real_check(r, me, memory != NULL, "no fake device memory"))
        return -1;
    *see = fake_cuda_see(memory);
    return pairs_open_on(p, r, me, 0, memory);
}

static void close_on_gpu(struct pairs *p)
{
    real_check(p->run, p->me, fake_cuda_copiers() == 1 && !fake_cuda_copied_here(),
               "copies were made by another thread than the engine's");
    pairs_close(p);
}

/** The length of a round: long ones and short ones, aligned and not. */
static uint32_t length(int round)
{
    static const uint32_t some[] = {LONG, 8, 1, 4096, 4097, 300000, 64, 100001};

    return some[(size_t)round % (sizeof(some) / sizeof(some[0]))];
}

/** Process 0 writes, reads and adds; after each of its completions what it says must be so, at both ends. */
static int writes_and_reads(struct real *r, int me)
{
    unsigned char *see;
    struct pairs p;
    int kind = (int)(intptr_t)r->arg;

    if (open_on_gpu(&p, r, me, kind, &see))
        return -1;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t len = length(round);

        if (me == 0) {
            pairs_fill(see + FROM, 0, round, len);
            if (pairs_do(&p, 1, IBV_WR_RDMA_WRITE, FROM, (size_t)round, len, 0))
                return -1;
        }
        if (real_barrier(r))
            return -1;
        if (me == 1)
            real_check(r, me, pairs_holds(see + round, 0, round, len), "acknowledged, but not in the GPU's memory");
        memset(see + FROM, 0, len);
        if (me == 0) {
            if (pairs_do(&p, 1, IBV_WR_RDMA_READ, FROM, (size_t)round, len, 0))
                return -1;
            real_check(r, me, pairs_holds(see + FROM, 0, round, len), "completed, but what was read is not there");
            if (pairs_do(&p, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, ANSWER, WORD, 8, 5))
                return -1;
            real_check(r, me, *(uint64_t *)(void *)(see + ANSWER) == 5u * (unsigned)round, "a wrong old value");
        }
        if (real_barrier(r))
            return -1;
        if (me == 1)
            real_check(r, me, *(uint64_t *)(void *)(see + WORD) == 5u * ((unsigned)round + 1), "a wrong sum");
        if (real_barrier(r))
            return -1;
    }
    close_on_gpu(&p);
    return real_barrier(r);
}

static void what_is_said_to_be_there_is_there(void **state)
{
    static const struct {
        const char *spec;
        int kind;
    } runs[] = {{"nodes=2,ports=1", FAKE_CUDA_PLAIN},
                {"nodes=2,ports=1", FAKE_CUDA_VMM},
                {"nodes=2,ports=1,loss=0.01,jitter=20us", FAKE_CUDA_PLAIN}};

    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct real r = {
            .spec = runs[i].spec, .n = 2, .fn = writes_and_reads, .arg = (void *)(intptr_t)runs[i].kind, .dies = -1};

        real_run_ok(&r);
    }
}

/** Messages: the receive's completion says that they are there. All at once, from both. */
static int messages(struct real *r, int me)
{
    unsigned char *see;
    struct pairs p;
    int rc;

    if (open_on_gpu(&p, r, me, FAKE_CUDA_PLAIN, &see))
        return -1;
    rc = pairs_exchange(&p, 1 - me, see, true);
    close_on_gpu(&p);
    return rc;
}

static void a_received_message_is_there(void **state)
{
    static const char *const spec[] = {"nodes=2,ports=1", "nodes=2,ports=1,rate=10G,loss=0.05"};

    (void)state;
    for (size_t i = 0; i < sizeof(spec) / sizeof(spec[0]); i++) {
        struct real r = {.spec = spec[i], .n = 2, .fn = messages, .dies = -1};

        real_run_ok(&r);
    }
}

/** Process 0: reads from 1, writes into its GPU's memory, and sets or adds to its word; all without waiting in between. */
static void post_flag(struct pairs *p, const struct ibv_mr *host, uint32_t len, uint64_t word, uint32_t rkey, bool adds)
{
    unsigned char *own = host->addr;
    struct ibv_sge bytes = {(uintptr_t)own + 8, len, host->lkey}, flag = {(uintptr_t)own, 8, host->lkey};
    struct ibv_send_wr second = {.sg_list = &flag, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    struct ibv_send_wr first = {.sg_list = &bytes, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .next = &second};

    first.wr.rdma.remote_addr = p->addr[1];
    first.wr.rdma.rkey = p->rkey[1];
    if (adds) {
        second.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        second.wr.atomic.remote_addr = word;
        second.wr.atomic.compare_add = 1;
        second.wr.atomic.rkey = rkey;
    } else {
        second.wr.rdma.remote_addr = word;
        second.wr.rdma.rkey = rkey;
    }
    /* The acknowledgement of the bytes waits behind the READ's answer. */
    real_check(p->run, 0,
               pairs_post(p, 1, IBV_WR_RDMA_READ, 1 << 20, FROM, 100000, 0) == 0 &&
                   ibv_post_send(p->qp[1], &first, &bad) == 0,
               "a request was refused");
}

/**
 * A word in process 1's host memory says that bytes are in its GPU's. They come from host memory: reading a GPU's takes time, in
 * which the other's engine would have nothing left to settle.
 */
static int flags(struct real *r, int me)
{
    static unsigned char own[8 + FLAGGED];
    static uint64_t word[ROUNDS];
    struct {
        uint64_t addr;
        uint32_t rkey;
    } mine[2] = {{0}}, theirs[2];
    struct ibv_mr *host;
    unsigned char *see;
    struct pairs p;

    if (open_on_gpu(&p, r, me, FAKE_CUDA_PLAIN, &see))
        return -1;
    host = ibv_reg_mr(p.pd, me ? (void *)word : own, me ? sizeof(word) : sizeof(own),
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    if (!real_check(r, me, host != NULL, "host memory cannot be registered"))
        return -1;
    mine[1 - me].addr = (uintptr_t)word;
    mine[1 - me].rkey = host->rkey;
    fake_cuda_slow(2000);
    if (real_alltoall(r, me, mine, theirs, sizeof(mine[0])))
        return -1;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t len = round % 4 < 2 ? 64 : FLAGGED;

        if (me == 0) {
            struct ibv_wc wc;

            own[0] = 1;
            pairs_fill(own + 8, 0, round, len);
            post_flag(&p, host, len, theirs[1].addr + (uint64_t)round * 8, theirs[1].rkey, round % 2);
            for (int i = 0; i < 3; i++)
                real_check(r, me, pairs_poll(&p, &wc) && wc.status == IBV_WC_SUCCESS, "a request failed");
        } else {
            for (uint64_t end = real_now() + 20000000000u;
                 __atomic_load_n(&word[round], __ATOMIC_ACQUIRE) == 0 && real_now() < end;)
                sched_yield();
            real_check(r, me, __atomic_load_n(&word[round], __ATOMIC_ACQUIRE) != 0 && pairs_holds(see, 0, round, len),
                       "the word is here before the GPU's bytes");
        }
        if (real_barrier(r))
            return -1;
    }
    ibv_dereg_mr(host);
    close_on_gpu(&p);
    return 0;
}

static void a_word_in_host_memory_comes_behind_the_gpus_bytes(void **state)
{
    struct real r = {.spec = "nodes=2,ports=1", .n = 2, .fn = flags, .dies = -1};

    (void)state;
    real_run_ok(&r);
}

/** Memory is deregistered while bytes may not be visible yet: they become so, and still the engine alone copies. */
static int late(struct real *r, int me)
{
    int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    unsigned char *see;
    struct pairs p;

    if (open_on_gpu(&p, r, me, FAKE_CUDA_PLAIN, &see))
        return -1;
    for (int i = 0; i < 100; i++) {
        struct ibv_mr *mr = ibv_reg_mr(p.pd, p.bytes, 1 << 16, all);

        pairs_fill(see + FROM, me, i, 9000);
        p.rkey[me] = mr ? mr->rkey : 0;
        if (pairs_do(&p, me, IBV_WR_RDMA_WRITE, FROM, (size_t)i, 9000, 0))
            return -1;
        real_check(r, me, mr && ibv_dereg_mr(mr) == 0, "cannot deregister");
        real_check(r, me, pairs_holds(see + i, me, i, 9000), "lost bytes");
    }
    close_on_gpu(&p);
    return 0;
}

static void late_visibility(void **state)
{
    struct real r = {.spec = "nodes=2,ports=1,unkind=all", .n = 2, .fn = late, .dies = -1};

    (void)state;
    for (int i = 0; i < 5; i++)
        real_run_ok(&r);
}

/** What a dma-buf registration takes and refuses. */
static int dmabuf(struct real *r, int me)
{
    int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    char *host = aligned_alloc(4096, 8192), *device;
    struct ibv_mr *mr;
    struct pairs p;

    fake_cuda_begin();
    device = fake_cuda_alloc(1 << 20, FAKE_CUDA_VMM);
    if (!device || !host || pairs_open(&p, r, me, 0))
        return -1;
    errno = 0;
    mr = ibv_reg_dmabuf_mr(p.pd, 0, 1 << 20, (uintptr_t)device, -1, all);
    real_check(r, me, !mr && errno == EBADF, "no descriptor: EBADF expected");
    mr = ibv_reg_dmabuf_mr(p.pd, 0, 8192, (uintptr_t)host, 0, all);
    real_check(r, me, !mr && errno == EOPNOTSUPP, "host memory: EOPNOTSUPP expected");
    mr = ibv_reg_dmabuf_mr(p.pd, 0, (1 << 20) + 1, (uintptr_t)device, 0, all);
    real_check(r, me, !mr, "more than there is");
    mr = ibv_reg_dmabuf_mr(p.pd, 0, 1 << 20, (uintptr_t)device, 0, all);
    real_check(r, me, mr != NULL, "device memory was refused");
    if (mr) {
        p.addr[0] = (uintptr_t)device;
        p.rkey[0] = mr->rkey;
        pairs_fill(p.bytes, 0, 1, 70000);
        pairs_do(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 70000, 0);
        real_check(r, me, pairs_holds(fake_cuda_see(device) + 4096, 0, 1, 70000), "wrong bytes");
        real_check(r, me, ibv_dereg_mr(mr) == 0, "cannot deregister");
    }
    pairs_close(&p);
    free(host);
    return 0;
}

static void dmabuf_by_its_iova(void **state)
{
    struct real r = {.spec = "nodes=1,ports=1", .n = 1, .fn = dmabuf, .dies = -1};

    (void)state;
    real_run_ok(&r);
}

/** A GPU that fails: nothing is said to have come into it any more, by others' writes or by its own READs, and all end. */
static int failing(struct real *r, int me)
{
    bool reads = r->arg != NULL;
    unsigned char *see;
    struct pairs p;
    struct ibv_wc wc;

    if (open_on_gpu(&p, r, me, FAKE_CUDA_PLAIN, &see))
        return -1;
    if (me == 0 && pairs_do(&p, 1, IBV_WR_RDMA_WRITE, FROM, 0, 8192, 0))
        return -1;
    real_barrier(r);
    if (me == 1 && freopen("/dev/null", "w", stderr)) /* it says so, as it should */
        fake_cuda_break();
    real_barrier(r);
    if (me == (reads ? 1 : 0)) {
        int rc = pairs_post(&p, 1 - me, reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, FROM, 0, 8192, 0);

        real_check(r, me, rc == 0 && pairs_poll(&p, &wc) && wc.status != IBV_WC_SUCCESS,
                   "what went into a GPU that has failed was said to be there");
    }
    errno = 0;
    if (me == 1)
        real_check(r, me, !ibv_reg_mr(p.pd, p.bytes, 4096, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT,
                   "memory of a GPU that has failed was registered");
    real_barrier(r);
    close_on_gpu(&p);
    return 0;
}

static void a_gpu_that_fails(void **state)
{
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        struct real r = {.spec = "nodes=2,ports=1", .n = 2, .fn = failing, .arg = reads ? &reads : NULL, .dies = -1};

        real_run_ok(&r);
    }
}

/**
 * Two processes write into the memory of a third at once, by messages that come through its port packet by packet in turn. What each
 * writes follows itself in memory, so it takes few copies.
 */
static int in_turn(struct real *r, int me)
{
    enum { HALF = 1 << 20, TIMES = 6, PACKETS = 2 * TIMES * HALF / 4096 };
    struct fake_cuda_counts before, after;
    unsigned char *see;
    struct ibv_wc wc;
    struct pairs p;
    unsigned copies;
    int rc = 0;

    if (open_on_gpu(&p, r, me, FAKE_CUDA_PLAIN, &see))
        return -1;
    before = fake_cuda_counts();
    pairs_fill(see + FROM, me, 0, HALF);
    rc = real_barrier(r);
    for (int i = 0; me && rc == 0 && i < TIMES; i++)
        rc = pairs_post(&p, 0, IBV_WR_RDMA_WRITE, FROM, (size_t)(me - 1) * HALF, HALF, 0);
    for (int i = 0; me && rc == 0 && i < TIMES; i++)
        rc = pairs_poll(&p, &wc) && wc.status == IBV_WC_SUCCESS ? 0 : -1;
    if (!real_check(r, me, rc == 0, "a request failed") || real_barrier(r))
        return -1;
    after = fake_cuda_counts();
    copies = after.to_device - before.to_device;
    if (me == 0) {
        real_check(r, me, pairs_holds(see, 1, 0, HALF) && pairs_holds(see + HALF, 2, 0, HALF), "wrong bytes");
        if (!real_check(r, me, copies <= PACKETS / 5, "packets of two queue pairs were copied one by one"))
            fprintf(stderr, "# %u copies for %u packets\n", copies, (unsigned)PACKETS);
    }
    close_on_gpu(&p);
    return 0;
}

static void writes_in_turn_are_gathered(void **state)
{
    struct real r = {.spec = "nodes=3,ports=1,rate=4G", .n = 3, .fn = in_turn, .dies = -1};

    (void)state;
    real_run_ok(&r);
}

/** Messages of 4 KiB that are posted together are read together. */
static int small(struct real *r, int me)
{
    enum { MANY = 40, EACH = 4096 };
    struct fake_cuda_counts before, after;
    unsigned char *see;
    struct ibv_wc wc;
    struct pairs p;

    if (open_on_gpu(&p, r, me, FAKE_CUDA_PLAIN, &see))
        return -1;
    pairs_fill(see + FROM, me, 0, MANY * EACH);
    before = fake_cuda_counts();
    for (size_t i = 0; me == 0 && i < MANY; i++)
        real_check(r, me, pairs_post(&p, 1, IBV_WR_RDMA_WRITE, FROM + i * EACH, i * EACH, EACH, 0) == 0, "not posted");
    for (int i = 0; me == 0 && i < MANY; i++)
        real_check(r, me, pairs_poll(&p, &wc) && wc.status == IBV_WC_SUCCESS, "a request failed");
    after = fake_cuda_counts();
    real_check(r, me, after.waits - before.waits <= MANY * 2 / 3, "each of the messages was waited for by itself");
    if (real_barrier(r))
        return -1;
    if (me == 1)
        real_check(r, me, pairs_holds(see, 0, 0, MANY * EACH), "wrong bytes");
    close_on_gpu(&p);
    return 0;
}

static void messages_that_wait_are_read_together(void **state)
{
    struct real r = {.spec = "nodes=2,ports=1,rate=1G", .n = 2, .fn = small, .dies = -1};

    (void)state;
    real_run_ok(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_to_be_there_is_there),
        cmocka_unit_test(a_received_message_is_there),
        cmocka_unit_test(a_word_in_host_memory_comes_behind_the_gpus_bytes),
        cmocka_unit_test(late_visibility),
        cmocka_unit_test(dmabuf_by_its_iova),
        cmocka_unit_test(a_gpu_that_fails),
        cmocka_unit_test(writes_in_turn_are_gathered),
        cmocka_unit_test(messages_that_wait_are_read_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
