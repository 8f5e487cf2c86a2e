/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_threads.c - what braid.h allows two threads to do at once: one drives a channel, the other uses the context. The
 * checks here are few; ThreadSanitizer (make tsan) is what looks.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs; only the channel's thread gets that far.
 */
#include "unit.h"

#include <pthread.h>

#include "braid/braid.h"
#include "fake_verbs.h"

#define TURNS 5000

static struct braid *b;
static struct braid_channel *ch;
static struct braid_mem *mem;
static struct braid_key key;
static uint8_t memory[8192];

static int to_self(void *arg, const void *send, void *recv, size_t bytes_each)
{
    (void)arg;
    memcpy(recv, send, bytes_each);
    return 0;
}

/* Called on both threads at once, as braid.h says; atomic because of that. */
static unsigned lines;

static void count_line(void *arg, enum braid_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
    __atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED);
}

static int make_with(const char *setting)
{
    const char *settings[] = {"ports=fake0,fake1", "sq_depth=64", setting, NULL};
    struct braid_options options = BRAID_OPTIONS_INIT;
    struct braid_peers peers = {.size = sizeof(peers), .my_pe = 0, .n_pes = 1, .alltoall = to_self};
    fake_reset();
    options.settings = settings;
    options.log = count_line;
    assert_int_equal(braid_open(&options, &b), 0);
    fake_auto(true); /* the probes */
    assert_int_equal(braid_connect(b, &peers), 0);
    fake_auto(false);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    assert_int_equal(braid_mem_key(mem, &key), 0);
    ch = braid_channel_at(b, 0);
    return 0;
}

static int make(void **state)
{
    (void)state;
    return make_with(NULL);
}

static int make_two_channels(void **state)
{
    (void)state;
    return make_with("channels=2");
}

static int drop(void **state)
{
    (void)state;
    braid_close(b);
    assert_int_equal(fake_alive(), 0);
    return 0;
}

/* Two threads on one channel take turns: each one's ops end, and each one's quiet is its own. Requests end when a poll finds
 * them, so that it is the channel alone that keeps the threads apart. */
static void *share(void *arg)
{
    struct braid_done done = {0};
    size_t at = *(size_t *)arg;
    struct braid_remote dst = {(uintptr_t)memory + at, &key};
    struct braid_local src = {memory + at, mem};
    for (int i = 0; i < TURNS; i++) {
        while (braid_put(ch, 0, dst, src, i % 2 ? 4000 : 8, &done) == -EAGAIN)
            braid_progress(ch);
        while (braid_signal_add(ch, 0, dst, 1, &done) == -EAGAIN)
            braid_progress(ch);
        if (i % 4 == 0 && (braid_quiet(ch, 0) != 0 || done.ok != 2u * (unsigned)i + 2))
            return arg;
        if (i % 4 == 1 && braid_put_wait(ch, 0, dst, src, 4000) != 0)
            return arg;
    }
    return braid_done_wait(ch, &done, 2 * (uint64_t)TURNS) || done.failed ? arg : NULL;
}

static void two_threads_share_a_channel(void **state)
{
    (void)state;
    pthread_t thread;
    void *bad;
    size_t at[2] = {0, 4096};
    fake_auto(true);
    assert_int_equal(pthread_create(&thread, NULL, share, &at[1]), 0);
    assert_null(share(&at[0]));
    assert_int_equal(pthread_join(thread, &bad), 0);
    assert_null(bad);
    assert_int_equal(braid_mem_dereg(mem), 0);
}

/* Two channels, a thread each, which help each other when they wait. */
static void *drive_own(void *arg)
{
    struct braid_channel *own = arg;
    size_t at = own == ch ? 0 : 4096;
    struct braid_remote dst = {(uintptr_t)memory + at, &key};
    struct braid_local src = {memory + at, mem};
    struct braid_atomic swap = {BRAID_ATOMIC_SWAP, 8, 1, 0};
    for (int i = 0; i < TURNS / 5; i++) {
        if (braid_put_wait(own, 0, dst, src, 4000) || braid_atomic_wait(own, 0, dst, &swap, NULL) ||
            braid_quiet(own, 0))
            return arg;
    }
    return NULL;
}

static void two_channels_help_each_other(void **state)
{
    (void)state;
    pthread_t thread;
    void *bad;
    fake_auto(true);
    fake_moves(true);
    assert_int_equal(pthread_create(&thread, NULL, drive_own, braid_channel_at(b, 1)), 0);
    assert_null(drive_own(ch));
    assert_int_equal(pthread_join(thread, &bad), 0);
    assert_null(bad);
}

/* Puts that end, with refused ones in between, whose messages are limited. */
static void *drive(void *arg)
{
    struct braid_remote dst = {(uintptr_t)memory, &key}, wrong = {(uintptr_t)memory, &(struct braid_key){{0}}};
    struct braid_local src = {memory, mem};
    struct braid_done *done = arg;
    for (int i = 0; i < TURNS; i++) {
        braid_put(ch, 0, wrong, src, 8, NULL);
        braid_put(ch, 7, dst, src, 8, NULL);
        if (braid_put(ch, 0, dst, src, 4096, done))
            continue;
        for (unsigned lane = 0; lane < 2; lane++) {
            while (fake_pending(fake_qp(lane)) > 0)
                fake_end(fake_qp(lane), 0);
        }
        braid_progress(ch);
    }
    return NULL;
}

/* braid_close() and the end of the region wait for the other thread; all else may happen at any time. */
static void a_context_is_used_beside_its_channel(void **state)
{
    (void)state;
    pthread_t thread;
    struct braid_done done = {0};
    struct braid_rail_stats stats;
    struct braid_mem *other;
    uint8_t bytes[64];
    assert_int_equal(braid_mem_reg(b, bytes, sizeof(bytes), NULL, &other), 0);
    assert_int_equal(pthread_create(&thread, NULL, drive, &done), 0);
    uint64_t seen = 0;
    for (int i = 0; i < TURNS; i++) {
        struct braid_key changed = key;
        changed.bytes[16] ^= 1; /* the cookie: and the checksum with it */
        assert_int_equal(braid_rail_stats_at(b, i % 2, &stats), 0);
        assert_int_equal(braid_key_check(b, 0, &key), 0);
        assert_int_equal(braid_key_check(b, 0, &changed), -EPROTO);
        assert_int_equal(braid_key_check(b, 7, &key), -EINVAL);
        assert_true(braid_mem_key(mem, &changed) == 0);
        if (i % 2 == 0) {
            assert_true(stats.put_bytes >= seen); /* counts only grow */
            seen = stats.put_bytes;
        }
    }
    assert_int_equal(braid_mem_dereg(other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(done.ok > 0 && done.failed == 0);
    assert_true(lines > 0);
}

/* Ending a region that another thread's ops use is refused; the same call works once they have ended. */
static void *put_one(void *arg)
{
    struct braid_remote dst = {(uintptr_t)memory, &key};
    struct braid_local src = {memory, mem};
    unsigned *posted = arg;
    braid_put(ch, 0, dst, src, 4096, NULL);
    __atomic_store_n(posted, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < TURNS; i++)
        braid_progress(ch);
    for (unsigned lane = 0; lane < 2; lane++) {
        while (fake_pending(fake_qp(lane)) > 0)
            fake_end(fake_qp(lane), 0);
    }
    braid_progress(ch);
    return NULL;
}

static void a_region_in_use_by_another_thread_is_kept(void **state)
{
    (void)state;
    pthread_t thread;
    unsigned posted = 0;
    int rc = -EBUSY;
    assert_int_equal(pthread_create(&thread, NULL, put_one, &posted), 0);
    while (!__atomic_load_n(&posted, __ATOMIC_ACQUIRE))
        ;
    while (rc == -EBUSY) /* until the other thread has seen its op end */
        rc = braid_mem_dereg(mem);
    assert_int_equal(rc, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_context_is_used_beside_its_channel, make, drop),
        cmocka_unit_test_setup_teardown(two_threads_share_a_channel, make, drop),
        cmocka_unit_test_setup_teardown(two_channels_help_each_other, make_two_channels, drop),
        cmocka_unit_test_setup_teardown(a_region_in_use_by_another_thread_is_kept, make, drop),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
