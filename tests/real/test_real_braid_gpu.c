/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_real_braid_gpu.c - libbraid on GPU memory, between processes of the real-time emulator, over a CUDA library (fake_cuda.h) whose
 * memory the CPU cannot touch and whose copies happen as late as they may: whoever sees the signal must see the data.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "braid/braid.h"
#include "fake_cuda.h"
#include "real.h"

enum { BYTES = 4 << 20, TO = 2 << 20, WORD = BYTES - 8, ACK = BYTES - 16, BITS = BYTES - 24, ROUNDS = 60 };

struct side {
    struct real *run;
    int me;
    struct braid *b;
    struct braid_channel *ch;
    struct braid_mem *mem;
    unsigned char *device, *see;
    struct braid_key key;
    uint64_t addr;
};

struct name {
    uint64_t addr;
    struct braid_key key;
};

static int exchange(void *arg, const void *send, void *recv, size_t bytes_each)
{
    struct side *s = arg;

    return real_alltoall(s->run, s->me, send, recv, bytes_each);
}

static int side_open(struct side *s, struct real *r, int me)
{
    const char *settings[] = {"ports=mlx5_0:1,mlx5_1:1", "stripe_min=16384", NULL};
    struct braid_options o = BRAID_OPTIONS_INIT;
    struct braid_peers peers = {sizeof(peers), me, r->n, exchange, s};
    struct name mine[REAL_PROCS], theirs[REAL_PROCS];
    int rc;

    *s = (struct side){.run = r, .me = me};
    fake_cuda_begin();
    s->device = fake_cuda_alloc(BYTES, FAKE_CUDA_PLAIN);
    s->see = fake_cuda_see(s->device);
    o.settings = settings;
    rc = s->device ? braid_open(&o, &s->b) : -ENOMEM;
    rc = rc ? rc : braid_connect(s->b, &peers);
    rc = rc ? rc : braid_mem_reg(s->b, s->device, BYTES, NULL, &s->mem);
    for (int i = 0; rc == 0 && i < r->n; i++) {
        mine[i].addr = (uintptr_t)s->device;
        rc = braid_mem_key(s->mem, &mine[i].key);
    }
    rc = rc ? rc : real_alltoall(r, me, mine, theirs, sizeof(mine[0]));
    if (rc == 0) {
        s->addr = theirs[1 - me].addr;
        s->key = theirs[1 - me].key;
        s->ch = braid_channel_at(s->b, 0);
    }
    return rc;
}

static struct braid_remote there(struct side *s, size_t off)
{
    return (struct braid_remote){s->addr + off, &s->key};
}

static int wait_word(struct side *s, size_t off, uint64_t least)
{
    int rc;

    while (__atomic_load_n((uint64_t *)(void *)(s->see + off), __ATOMIC_ACQUIRE) < least) {
        rc = braid_progress(s->ch);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/** A round of PE 0: puts what tells the round, then signals; an atomic that the target carries out now and then. */
static int sends(struct side *s, int round, size_t len)
{
    struct braid_atomic bits = {.op = BRAID_ATOMIC_OR, .bytes = 4, .operand = 1u << round % 30};
    int rc;

    memset(s->see, round, len);
    rc = braid_put(s->ch, 1, there(s, TO), (struct braid_local){s->device, s->mem}, len, NULL);
    rc = rc ? rc : braid_signal_add(s->ch, 1, there(s, WORD), 1, NULL);
    if (rc == 0 && round < 30)
        rc = braid_atomic_wait(s->ch, 1, there(s, BITS), &bits, NULL);
    rc = rc ? rc : wait_word(s, ACK, (uint64_t)round + 1);
    return rc ? rc : braid_quiet(s->ch, 1);
}

/** A round of PE 1: once the signal is seen, every byte of the data must be. */
static int receives(struct side *s, int round, size_t len)
{
    int rc = wait_word(s, WORD, (uint64_t)round + 1);

    for (size_t i = 0; rc == 0 && i < len; i++) {
        if (!real_check(s->run, s->me, s->see[TO + i] == (unsigned char)round, "the signal was seen before the data"))
            return -EIO;
    }
    return rc ? rc : braid_signal_set(s->ch, 0, there(s, ACK), (uint64_t)round + 1, NULL);
}

static int signals_follow_data(struct real *r, int me)
{
    static const size_t len[] = {1, 200, 4096, 100001, 1 << 20};
    struct side s;
    uint32_t bits, done[REAL_PROCS] = {0}, others[REAL_PROCS];
    int rc = side_open(&s, r, me);

    for (int round = 0; rc == 0 && round < ROUNDS; round++)
        rc = me == 0 ? sends(&s, round, len[round % 5]) : receives(&s, round, len[round % 5]);
    rc = rc ? rc : braid_quiet(s.ch, 1 - me);
    rc = rc ? rc : real_alltoall(r, me, done, others, sizeof(done[0])); /* nobody leaves before the other is through */
    memcpy(&bits, s.see + BITS, 4);
    real_check(r, me, me == 0 || bits == (1u << 30) - 1, "atomics that the target carries out are missing");
    errno = -rc;
    real_check(r, me, rc == 0, "a call failed");
    braid_close(s.b);
    return rc;
}

static void gpu_memory_between_processes(void **state)
{
    struct real r = {.spec = "nodes=2,ports=2", .n = 2, .fn = signals_follow_data, .dies = -1};

    (void)state;
    real_run_ok(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpu_memory_between_processes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
