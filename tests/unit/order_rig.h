/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_rig.h - one PE that talks to itself over lanes of a fake device, two unless a test asks for others, so that a test
 * can end each request when it likes. Included by the tests of the engine (test_api_*.c, but for args, open and memory).
 */
#ifndef ORDER_RIG_H
#define ORDER_RIG_H

#include "unit.h"

#include "braid/braid.h"
#include "fake_verbs.h"

#define BYTES (64u << 20)
#define LANES 4

struct rig {
    struct braid *b;
    struct braid_channel *ch;
    struct braid_mem *mem;
    struct braid_key key;
    struct braid_done done;
    struct verbs_qp *qp[LANES]; /* lane 0 is the home lane; NULL past the last */
    uint64_t now;               /* ns; moves when a test moves it */
    unsigned waits;
    bool tries; /* the next look at the clock, inside of a call, tries progress; what that said: */
    int tried;
    int wait_error; /* what the wait callback returns; 0: it ends a request and returns 0 */
    size_t at;      /* where the next put() goes */
    char log[4096];
};

static struct rig rig;
static _Alignas(64) uint8_t memory[BYTES];

static inline uint64_t rig_now(void *arg)
{
    (void)arg;
    if (rig.tries) {
        rig.tries = false;
        rig.tried = braid_progress_try(rig.ch);
    }
    return rig.now;
}

/* The wait of blocking calls: the oldest request of some lane ends, the home lane's first. */
static inline int end_one(void *arg, uint64_t deadline_ns)
{
    (void)arg;
    (void)deadline_ns;
    rig.waits++;
    if (rig.wait_error)
        return rig.wait_error;
    for (unsigned i = 0; i < LANES && rig.qp[i]; i++) {
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
    rig.now = 1000000;
    options.settings = settings;
    options.wait = wait;
    options.now = rig_now;
    options.log = keep_line;
    assert_int_equal(braid_open(&options, &rig.b), 0);
    fake_auto(true); /* the probes */
    assert_int_equal(braid_connect(rig.b, &peers), 0);
    fake_auto(false);
    rig.ch = braid_channel_at(rig.b, 0);
    assert_int_equal(braid_mem_reg(rig.b, memory, sizeof(memory), NULL, &rig.mem), 0);
    assert_int_equal(braid_mem_key(rig.mem, &rig.key), 0);
    for (unsigned i = 0; i < LANES; i++)
        rig.qp[i] = fake_qp(i);
}

/* Two lanes, no pacing: what a lane has slots for is posted in the call. Settings of the test come last and win. */
static inline int make_with(const char *setting)
{
    const char *settings[] = {
        "ports=fake0,fake1", "seed=1", "sq_depth=64", "word_depth=8", "stripe_min=16384", "piece_min=4096",
        "pace=off",          setting,  NULL};
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

static inline struct braid_remote there(size_t at)
{
    return (struct braid_remote){(uintptr_t)memory + at, &rig.key};
}

static inline struct braid_local here(size_t at)
{
    return (struct braid_local){memory + at, rig.mem};
}

static inline int put_at(size_t at, size_t len)
{
    return braid_put(rig.ch, 0, there(at), here(at), len, &rig.done);
}

/* Each put has bytes of its own, so that none has to follow another for its bytes' sake. The first 64 are the signals'. */
static inline int put(size_t len)
{
    if (rig.at < 64 || rig.at + len > BYTES)
        rig.at = 64;
    int rc = put_at(rig.at, len);
    if (!rc)
        rig.at += (len + 63) / 64 * 64;
    return rc;
}

static inline int signal_add(void)
{
    return braid_signal_add(rig.ch, 0, there(0), 1, &rig.done);
}

static inline struct braid_channel_stats stats(void)
{
    struct braid_channel_stats out = {.size = sizeof(out)};
    assert_int_equal(braid_channel_stats_at(rig.ch, &out), 0);
    return out;
}

static inline unsigned pending(unsigned lane)
{
    return fake_pending(rig.qp[lane]);
}

static inline bool is_flush(const struct verbs_send *send)
{
    return send->op == VERBS_OP_READ && send->len == 8 && send->remote_addr - (uintptr_t)memory >= BYTES;
}

/* Requests of a kind that are posted on a lane and have not ended. */
static inline unsigned posted(unsigned lane, enum verbs_op op)
{
    unsigned n = 0;
    for (unsigned i = 0; i < pending(lane); i++) {
        const struct verbs_send *send = fake_send(rig.qp[lane], i);
        n += send->op == op && !is_flush(send);
    }
    return n;
}

static inline unsigned flushes_posted(unsigned lane)
{
    unsigned n = 0;
    for (unsigned i = 0; i < pending(lane); i++)
        n += is_flush(fake_send(rig.qp[lane], i));
    return n;
}

static inline unsigned signals_posted(void)
{
    return posted(0, VERBS_OP_FETCH_ADD);
}

/* Ends the n oldest requests of a lane, and lets progress see them. */
static inline void end(unsigned lane, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fake_end(rig.qp[lane], 0);
    assert_true(braid_progress(rig.ch) > 0);
}

/* Lets progress see all there is to see. */
static inline void settle(void)
{
    while (braid_progress(rig.ch) > 0)
        ;
}

#define WITH(f, m) cmocka_unit_test_setup_teardown(f, m, drop)

#endif
