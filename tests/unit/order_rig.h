/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_rig.h - one PE that talks to itself over two lanes of a fake device, so that a test can end each request when it
 * likes. Included by test_api_order.c, test_api_lost.c and test_api_random.c.
 */
#ifndef ORDER_RIG_H
#define ORDER_RIG_H

#include "unit.h"

#include "braid/braid.h"
#include "fake_verbs.h"

#define BYTES (4u << 20)

struct rig {
    struct braid *b;
    struct braid_channel *ch;
    struct braid_mem *mem;
    struct braid_key key;
    struct braid_done done;
    struct verbs_qp *qp[2]; /* lane 0 is the home lane */
    unsigned waits;
    int wait_error; /* what the wait callback returns; 0: it ends a request and returns 0 */
    char log[2048];
};

static struct rig rig;
static _Alignas(64) uint8_t memory[BYTES];

/* The wait of blocking calls: the oldest request of some lane ends, the home lane's first. */
static inline int end_one(void *arg, uint64_t deadline_ns)
{
    (void)arg;
    (void)deadline_ns;
    rig.waits++;
    if (rig.wait_error)
        return rig.wait_error;
    for (unsigned i = 0; i < 2; i++) {
        if (fake_pending(rig.qp[i]) > 0) {
            fake_end(rig.qp[i], 0);
            return 0;
        }
    }
    return -EDEADLK; /* a blocking call that waits for nothing */
}

static inline int to_self(void *arg, const void *send, void *recv, size_t bytes_each)
{
    (void)arg;
    memcpy(recv, send, bytes_each);
    return 0;
}

static inline void keep_line(void *arg, enum braid_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    size_t used = strlen(rig.log);
    snprintf(rig.log + used, sizeof(rig.log) - used, "%s\n", line);
}

static inline void make_settings(const char *const *settings, int (*wait)(void *arg, uint64_t deadline_ns))
{
    struct braid_options options = BRAID_OPTIONS_INIT;
    struct braid_peers peers = {.size = sizeof(peers), .my_pe = 0, .n_pes = 1, .alltoall = to_self};
    fake_reset();
    memset(&rig, 0, sizeof(rig));
    options.settings = settings;
    options.wait = wait;
    options.log = keep_line;
    assert_int_equal(braid_open(&options, &rig.b), 0);
    assert_int_equal(braid_connect(rig.b, &peers), 0);
    rig.ch = braid_channel_at(rig.b, 0);
    assert_int_equal(braid_mem_reg(rig.b, memory, sizeof(memory), NULL, &rig.mem), 0);
    assert_int_equal(braid_mem_key(rig.mem, &rig.key), 0);
    rig.qp[0] = fake_qp(0);
    rig.qp[1] = fake_qp(1);
}

static inline int make_with(const char *setting)
{
    const char *settings[] = {"ports=fake0,fake1", "seed=1", "sq_depth=64", "word_depth=8", setting, NULL};
    make_settings(settings, end_one);
    return 0;
}

static inline int make(void **state)
{
    (void)state;
    return make_with(NULL);
}

static inline int make_drain(void **state)
{
    (void)state;
    return make_with("order=drain");
}

static inline int make_fault(void **state)
{
    (void)state;
    return make_with("fault=defer");
}

static inline int drop(void **state)
{
    (void)state;
    braid_close(rig.b);
    assert_int_equal(fake_alive(), 0);
    return 0;
}

static inline int put(size_t len)
{
    struct braid_remote dst = {(uintptr_t)memory, &rig.key};
    struct braid_local src = {memory, rig.mem};
    return braid_put(rig.ch, 0, dst, src, len, &rig.done);
}

static inline int signal_add(void)
{
    struct braid_remote dst = {(uintptr_t)memory, &rig.key};
    return braid_signal_add(rig.ch, 0, dst, 1, &rig.done);
}

static inline unsigned signals_posted(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < fake_pending(rig.qp[0]); i++)
        n += fake_send(rig.qp[0], i)->op == VERBS_OP_FETCH_ADD;
    return n;
}

#define WITH(f, m) cmocka_unit_test_setup_teardown(f, m, drop)

#endif
