/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_args.c - what callers hand in, over a fake device: sized structs, NULL, regions, keys, ops. All that is bad is
 * refused before anything is posted.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs.
 */
#include "open_rig.h"

#include <unistd.h>
#include <sys/mman.h>

static void option_structs_are_checked(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct {
        struct braid_options known;
        uint64_t newer;
    } options = {.known = BRAID_OPTIONS_INIT};
    const char *settings[] = {"ports=fake0", NULL};
    options.known.log = keep_line;
    options.known.settings = settings;
    options.known.size = sizeof(options);
    assert_int_equal(braid_open(&options.known, &b), 0);
    braid_close(b);
    b = NULL;
    options.newer = 1;
    assert_int_equal(braid_open(&options.known, &b), -EINVAL);
    options.newer = 0;
    assert_int_equal(braid_open(&options.known, NULL), -EINVAL);
    /* Whole fields from the first on, never a piece of one, never a size that runs off the end of the memory. */
    setenv("BRAID_PORTS", "fake0", 1);
    for (size_t size = 0; size <= sizeof(options.known); size++) {
        options.known.size = size;
        int rc = braid_open(&options.known, &b);
        assert_int_equal(rc, size >= 8 && size % sizeof(void *) == 0 ? 0 : -EINVAL);
        if (!rc)
            braid_close(b);
        b = NULL;
    }
    unsetenv("BRAID_PORTS");
    assert_null(b);
}

/* A size that is garbage must not lead off the end of the memory, even where all before that end is zero. */
static void a_size_of_garbage_leads_nowhere(void **state)
{
    (void)state;
    long page = sysconf(_SC_PAGESIZE);
    struct braid *b = NULL;
    uint8_t *bytes = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    assert_int_equal(mprotect(bytes + page, (size_t)page, PROT_NONE), 0);
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, 1 << 20};
    for (size_t i = 0; i < 3; i++) {
        memcpy(bytes, &sizes[i], sizeof(sizes[i]));
        assert_int_equal(braid_open((const struct braid_options *)(const void *)bytes, &b), -EINVAL);
    }
    assert_null(b);
    munmap(bytes, 2 * (size_t)page);
}

/* Every sized struct has a zero tail or is refused. */
static void tails_are_checked_alike(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem = NULL;
    struct {
        struct braid_peers known;
        uint64_t newer;
    } peers = {.known = {.size = sizeof(peers), .my_pe = 0, .n_pes = 1, .alltoall = to_self}, .newer = 1};
    struct {
        struct braid_mem_options known;
        uint64_t newer;
    } region = {.known = {.size = sizeof(region)}, .newer = 1};
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    assert_int_equal(braid_connect(b, &peers.known), -EINVAL);
    peers.known.size = SIZE_MAX;
    assert_int_equal(braid_connect(b, &peers.known), -EINVAL);
    peers.known.size = sizeof(peers);
    peers.newer = 0;
    assert_int_equal(braid_connect(b, &peers.known), 0);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), &region.known, &mem), -EINVAL);
    region.known.size = SIZE_MAX;
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), &region.known, &mem), -EINVAL);
    region.known.size = sizeof(region);
    region.newer = 0;
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), &region.known, &mem), 0);
    braid_close(b);
}

/* Those that came with the whole engine. */
static void new_calls_refuse_null(void)
{
    struct braid_remote nowhere = {0};
    struct braid_local nothing = {0};
    struct braid_atomic add = {.bytes = 8};
    struct braid_done done = {0};
    struct braid_channel_stats stats = {.size = sizeof(stats)};
    assert_int_equal(braid_p(NULL, 0, nowhere, 1, 8, NULL), -EINVAL);
    assert_int_equal(braid_signal_set(NULL, 0, nowhere, 1, NULL), -EINVAL);
    assert_int_equal(braid_put_signal(NULL, 0, NULL, 0, nowhere, BRAID_SIGNAL_ADD, 1, NULL), -EINVAL);
    assert_int_equal(braid_atomic(NULL, 0, nowhere, &add, NULL, NULL), -EINVAL);
    assert_int_equal(braid_put_wait(NULL, 0, nowhere, nothing, 8), -EINVAL);
    assert_int_equal(braid_get_wait(NULL, 0, nothing, nowhere, 8), -EINVAL);
    assert_int_equal(braid_atomic_wait(NULL, 0, nowhere, &add, NULL), -EINVAL);
    assert_int_equal(braid_done_wait(NULL, &done, 0), -EINVAL);
    assert_int_equal(braid_channel_stats_at(NULL, &stats), -EINVAL);
}

/* No public function may crash on NULL, and none but the two that free takes it for something good. */
static void null_is_refused_everywhere(void **state)
{
    (void)state;
    struct braid_remote nowhere = {0};
    struct braid_local nothing = {0};
    struct braid_rail_stats stats;
    struct braid_key key = {{0}};
    struct braid_mem *mem;
    struct braid *b = NULL;
    uint64_t rtt;
    assert_int_equal(braid_option_at(0, NULL), -EINVAL);
    assert_int_equal(braid_open(NULL, NULL), -EINVAL);
    setenv("BRAID_SYSROOT", "/nowhere", 1);
    assert_int_equal(braid_open(NULL, &b), -ENODEV); /* no port to choose */
    unsetenv("BRAID_SYSROOT");
    assert_int_equal(braid_rail_count(NULL), -EINVAL);
    assert_int_equal(braid_rail_stats_at(NULL, 0, &stats), -EINVAL);
    assert_null(braid_channel_at(NULL, 0));
    assert_int_equal(braid_lane_count(NULL, 0), -EINVAL);
    assert_int_equal(braid_lane_stats_at(NULL, 0, 0, NULL), -EINVAL);
    assert_int_equal(braid_mem_reg(NULL, memory, 8, NULL, &mem), -EINVAL);
    assert_int_equal(braid_mem_dereg(NULL), 0);
    assert_int_equal(braid_mem_key(NULL, &key), -EINVAL);
    assert_int_equal(braid_key_check(NULL, 0, &key), -EINVAL);
    assert_int_equal(braid_put(NULL, 0, nowhere, nothing, 8, NULL), -EINVAL);
    assert_int_equal(braid_get(NULL, 0, nothing, nowhere, 8, NULL), -EINVAL);
    assert_int_equal(braid_signal_add(NULL, 0, nowhere, 1, NULL), -EINVAL);
    assert_int_equal(braid_fence(NULL, 0), -EINVAL);
    assert_int_equal(braid_quiet(NULL, 0), -EINVAL);
    assert_int_equal(braid_progress(NULL), -EINVAL);
    assert_int_equal(braid_echo(NULL, 0, 0, &rtt), -EINVAL);
    new_calls_refuse_null();
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    assert_int_equal(braid_connect(b, NULL), -EINVAL);
    assert_int_equal(braid_rail_stats_at(b, 0, NULL), -EINVAL);
    assert_int_equal(braid_mem_reg(b, memory, 8, NULL, NULL), -EINVAL);
    assert_int_equal(braid_mem_reg(b, memory, 8, NULL, &mem), 0);
    assert_int_equal(braid_mem_key(mem, NULL), -EINVAL);
    assert_int_equal(connect_to_self(b), 0);
    assert_int_equal(braid_key_check(b, 0, NULL), -EINVAL);
    assert_int_equal(braid_put(braid_channel_at(b, 0), 0, nowhere, nothing, 8, NULL), -EINVAL);
    assert_int_equal(braid_echo(braid_channel_at(b, 0), 0, 0, NULL), -EINVAL);
    assert_int_equal(braid_channel_stats_at(braid_channel_at(b, 0), NULL), -EINVAL);
    assert_int_equal(braid_done_wait(braid_channel_at(b, 0), NULL, 0), -EINVAL);
    assert_int_equal(braid_atomic(braid_channel_at(b, 0), 0, nowhere, NULL, NULL, NULL), -EINVAL);
    assert_int_equal(braid_put_signal(braid_channel_at(b, 0), 0, NULL, 1, nowhere, BRAID_SIGNAL_ADD, 1, NULL), -EINVAL);
    braid_close(b);
}

/* A port that cannot send a piece whole says so before anything is posted; what may be cut is cut so that it can. */
static void a_message_has_a_largest_size(void **state)
{
    (void)state;
    static uint8_t large[262144];
    struct braid *b = NULL;
    struct braid_mem *mem;
    struct braid_key key;
    assert_int_equal(open_with("fake0,fake14", "stripe_min=1M", &b), 0);
    assert_int_equal(connect_to_self(b), 0);
    struct braid_channel *ch = braid_channel_at(b, 0);
    assert_int_equal(braid_mem_reg(b, large, sizeof(large), NULL, &mem), 0);
    assert_int_equal(braid_mem_key(mem, &key), 0);
    struct braid_remote there = {(uintptr_t)large, &key};
    struct braid_local here = {large, mem};
    assert_int_equal(braid_put(ch, 0, there, here, sizeof(large), NULL), -EINVAL);
    assert_non_null(strstr(logged, "a port to PE 0, whose largest message has 65536"));
    assert_int_equal(braid_get(ch, 0, here, there, sizeof(large), NULL), -EINVAL);
    struct braid_part part = {there, here, sizeof(large)};
    assert_int_equal(braid_put_signal(ch, 0, &part, 1, there, BRAID_SIGNAL_SET, 1, NULL), -EINVAL);
    assert_int_equal(fake_pending(fake_qp(0)) + fake_pending(fake_qp(1)), 0);
    assert_int_equal(braid_put(ch, 0, there, here, 65536, NULL), 0);
    braid_close(b);
}

/* What one put with signal and one get post on the lanes of these ports: no piece is too long, and all bytes go. */
static void check_pieces(const char *ports, unsigned lanes)
{
    static uint8_t large[1 << 20];
    struct braid *b = NULL;
    struct braid_mem *mem;
    struct braid_key key;
    uint64_t bytes[2] = {0}; /* written, read */
    fake_reset();
    assert_int_equal(open_with(ports, "stripe_min=16384", &b), 0);
    assert_int_equal(connect_to_self(b), 0);
    struct braid_channel *ch = braid_channel_at(b, 0);
    assert_int_equal(braid_mem_reg(b, large, sizeof(large), NULL, &mem), 0);
    assert_int_equal(braid_mem_key(mem, &key), 0);
    struct braid_remote there = {(uintptr_t)large, &key};
    struct braid_part part = {there, {large, mem}, sizeof(large)};
    int rc = braid_put_signal(ch, 0, &part, 1, there, BRAID_SIGNAL_SET, 1, NULL);
    assert_true(rc == 0 || rc == -EINVAL); /* refused is good too, posted too long is not */
    assert_int_equal(braid_get(ch, 0, part.src, there, sizeof(large), NULL), 0);
    for (unsigned turn = 0; turn < 200; turn++) {
        for (unsigned i = 0; i < lanes; i++) {
            for (; fake_pending(fake_qp(i)) > 0; fake_end(fake_qp(i), 0)) {
                const struct verbs_send *send = fake_send(fake_qp(i), 0);
                assert_true(send->len <= 65536);
                bytes[send->op == VERBS_OP_READ] += send->len > 8 ? send->len : 0;
            }
        }
        braid_progress(ch);
    }
    assert_true(bytes[0] == (rc ? 0 : sizeof(large)));
    assert_true(bytes[1] == sizeof(large));
    braid_close(b);
}

static void no_piece_is_longer_than_a_message(void **state)
{
    (void)state;
    check_pieces("fake0,fake14", 2);
    check_pieces("fake14", 1);
}

static void bad_peers_are_refused(void **state)
{
    (void)state;
    struct braid *b = NULL;
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    const struct braid_peers good = {.size = sizeof(good), .my_pe = 0, .n_pes = 1, .alltoall = to_self};
    struct braid_peers bad[5] = {good, good, good, good, good};
    bad[0].size = 8;
    bad[1].my_pe = 1;
    bad[2].my_pe = -1;
    bad[3].n_pes = 0;
    bad[4].alltoall = NULL;
    for (int i = 0; i < 5; i++)
        assert_int_equal(braid_connect(b, &bad[i]), -EINVAL);
    assert_int_equal(braid_connect(b, NULL), -EINVAL);
    assert_int_equal(braid_connect(NULL, &good), -EINVAL);
    assert_int_equal(rounds, 0);
    assert_int_equal(braid_connect(b, &good), 0); /* bad arguments do not use the one time up */
    assert_int_equal(braid_connect(b, &good), -EALREADY);
    braid_close(b);
}

static void regions_are_checked(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem = NULL;
    struct braid_mem_options wraps = {.size = sizeof(wraps), .remote_addr = UINT64_MAX - 100}, short_size = {.size = 4};
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    assert_int_equal(braid_mem_reg(b, NULL, 10, NULL, &mem), -EINVAL);
    assert_int_equal(braid_mem_reg(b, memory, 0, NULL, &mem), -EINVAL);
    assert_int_equal(braid_mem_reg(b, memory, SIZE_MAX, NULL, &mem), -EINVAL);
    assert_int_equal(braid_mem_reg(b, memory, 4096, &wraps, &mem), -EINVAL);
    assert_int_equal(braid_mem_reg(b, memory, 4096, &short_size, &mem), -EINVAL);
    struct braid_mem_options skewed = {.size = sizeof(skewed),
                                       .remote_addr = 0x700000000000 + (uintptr_t)memory % 4096 + 8};
    assert_int_equal(braid_mem_reg(b, memory, 4096, &skewed, &mem), -EINVAL);
    assert_non_null(strstr(logged, "same offset within a page"));
    assert_null(mem);
    skewed.remote_addr -= 8;
    assert_int_equal(braid_mem_reg(b, memory, 4096, &skewed, &mem), 0);
    braid_close(b);
}

struct key_case {
    const char *name;
    int put, check; /* expected of braid_put() and braid_key_check() */
    size_t at;      /* byte of the key to change */
    uint8_t flip;
};

static void keys_are_checked_by_ops_and_in_full(void **state)
{
    (void)state;
    /* Ops check version, owner and bounds; damage elsewhere shows in the full check, or as the device's refusal. */
    static const struct key_case cases[] = {
        {"as made", 0, 0, 511, 0},           {"magic", -EPROTO, -EPROTO, 0, 1},    {"version", -EPROTO, -EPROTO, 4, 8},
        {"rails", -EPROTO, -EPROTO, 6, 254}, {"no rails", -EPROTO, -EPROTO, 6, 1}, {"owner", -EPROTO, -EPROTO, 24, 1},
        {"cookie", -EPROTO, -EPROTO, 18, 1}, {"checksum", 0, -EPROTO, 12, 77},     {"tail", 0, -EPROTO, 511, 1},
    };
    struct braid *b = NULL;
    struct braid_mem *mem;
    struct braid_key made;
    assert_int_equal(open_with("fake0", "seed=1", &b), 0);
    assert_int_equal(connect_to_self(b), 0);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    assert_int_equal(braid_mem_key(mem, &made), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct braid_key key = made;
        key.bytes[cases[i].at] ^= cases[i].flip;
        struct braid_remote there = {(uintptr_t)memory, &key};
        int put = braid_put(braid_channel_at(b, 0), 0, there, (struct braid_local){memory, mem}, 1000, NULL);
        int check = braid_key_check(b, 0, &key);
        if (put != cases[i].put || check != cases[i].check)
            fail_msg("%s: put %d, check %d", cases[i].name, put, check);
    }
    assert_int_equal(braid_key_check(b, 1, &made), -EINVAL);
    assert_int_equal(braid_key_check(b, 0, NULL), -EINVAL);
    braid_close(b);
}

static void a_key_of_another_life_is_refused(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    struct braid_key old, early;
    assert_int_equal(open_with("fake0", "seed=1", &b), 0);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    assert_int_equal(braid_mem_key(mem, &early), 0); /* before connecting: the owner's number is not known yet */
    assert_int_equal(connect_to_self(b), 0);
    assert_int_equal(braid_key_check(b, 0, &early), 0);
    assert_int_equal(braid_mem_key(mem, &old), 0);
    braid_close(b);
    assert_int_equal(open_with("fake0", "seed=1", &b), 0); /* the seed is no identity */
    assert_int_equal(connect_to_self(b), 0);
    assert_int_equal(braid_key_check(b, 0, &old), -EPROTO);
    assert_non_null(strstr(logged, "made by another context"));
    assert_int_equal(braid_key_check(b, 0, &early), -EPROTO);
    braid_close(b);
}

/* One port, connected to oneself, with memory to write to. */
static struct braid_channel *a_channel(struct braid **b, struct braid_mem **mem, struct braid_key *key)
{
    assert_int_equal(open_with("fake0", NULL, b), 0);
    assert_int_equal(connect_to_self(*b), 0);
    assert_int_equal(braid_mem_reg(*b, memory, sizeof(memory), NULL, mem), 0);
    assert_int_equal(braid_mem_key(*mem, key), 0);
    return braid_channel_at(*b, 0);
}

static void ops_are_checked_before_anything_is_posted(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    struct braid_key key;
    struct braid_done done = {0};
    struct braid_channel *ch = a_channel(&b, &mem, &key);
    assert_null(braid_channel_at(b, 1));
    struct braid_remote there = {(uintptr_t)memory, &key}, past = {(uintptr_t)memory + 4090, &key};
    struct braid_remote before = {(uintptr_t)memory - 1, &key}, none = {(uintptr_t)memory, NULL};
    struct braid_remote odd = {(uintptr_t)memory + 4, &key};
    struct braid_local here = {memory, mem}, nowhere = {memory, NULL}, late = {memory + 4000, mem};
    assert_int_equal(braid_put(NULL, 0, there, here, 8, &done), -EINVAL);
    assert_int_equal(braid_put(ch, 1, there, here, 8, &done), -EINVAL);
    assert_int_equal(braid_put(ch, -1, there, here, 8, &done), -EINVAL);
    assert_int_equal(braid_put(ch, 0, none, here, 8, &done), -EINVAL);
    assert_int_equal(braid_put(ch, 0, there, nowhere, 8, &done), -EINVAL);
    assert_int_equal(braid_put(ch, 0, there, here, (1u << 30) + 1, &done), -EINVAL);
    assert_int_equal(braid_put(ch, 0, past, here, 8, &done), -ERANGE);
    assert_int_equal(braid_put(ch, 0, before, here, 8, &done), -ERANGE);
    assert_int_equal(braid_put(ch, 0, there, late, 97, &done), -ERANGE);
    assert_int_equal(braid_put(ch, 0, there, here, 4097, &done), -ERANGE);
    assert_int_equal(braid_get(ch, 0, late, there, 97, &done), -ERANGE);
    assert_int_equal(braid_signal_add(ch, 0, odd, 1, &done), -EINVAL);
    assert_int_equal(braid_signal_add(ch, 0, none, 1, &done), -EINVAL);
    assert_int_equal(braid_signal_add(ch, 5, there, 1, &done), -EINVAL);
    assert_int_equal(braid_quiet(ch, 5), -EINVAL);
    assert_int_equal(braid_fence(ch, 5), -EINVAL);
    assert_int_equal(braid_fence(ch, BRAID_ALL_PES), 0);
    assert_int_equal(fake_pending(fake_qp(0)), 0);
    assert_int_equal(braid_put(ch, 0, there, here, 0, &done), 0);
    assert_true(done.ok == 1 && done.failed == 0);
    braid_close(b);
}

static void words_are_checked_before_anything_is_posted(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    struct braid_key key;
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    assert_int_equal(connect_to_self(b), 0);
    struct braid_channel *ch = braid_channel_at(b, 0);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    assert_int_equal(braid_mem_key(mem, &key), 0);
    struct braid_remote there = {(uintptr_t)memory, &key}, odd = {(uintptr_t)memory + 4, &key};
    struct braid_remote past = {(uintptr_t)memory + sizeof(memory), &key}, none = {(uintptr_t)memory, NULL};
    static const unsigned sizes[] = {0, 3, 5, 6, 7, 9, 16, UINT32_MAX};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct braid_atomic add = {BRAID_ATOMIC_ADD, sizes[i], 1, 0};
        assert_int_equal(braid_p(ch, 0, there, 1, sizes[i], NULL), -EINVAL);
        assert_int_equal(braid_atomic(ch, 0, there, &add, NULL, NULL), -EINVAL);
    }
    assert_int_equal(braid_p(ch, 0, odd, 1, 8, NULL), -EINVAL);
    assert_int_equal(braid_p(ch, 0, past, 1, 1, NULL), -ERANGE);
    assert_int_equal(braid_p(ch, 0, none, 1, 1, NULL), -EINVAL);
    assert_int_equal(braid_p(ch, 1, there, 1, 1, NULL), -EINVAL);
    assert_int_equal(braid_signal_set(ch, 0, odd, 1, NULL), -EINVAL);
    static const int ops[] = {-1, BRAID_ATOMIC_FETCH_XOR + 1, INT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        struct braid_atomic bad = {(enum braid_atomic_op)ops[i], 8, 1, 0};
        assert_int_equal(braid_atomic(ch, 0, there, &bad, NULL, NULL), -EINVAL);
    }
    struct braid_atomic four = {BRAID_ATOMIC_ADD, 4, 1, 0}, two = {BRAID_ATOMIC_ADD, 2, 1, 0};
    assert_int_equal(braid_atomic(ch, 0, (struct braid_remote){(uintptr_t)memory + 2, &key}, &four, NULL, NULL),
                     -EINVAL);
    assert_int_equal(braid_atomic(ch, 0, there, &two, NULL, NULL), -EINVAL);
    assert_int_equal(braid_atomic(ch, 0, past, &four, NULL, NULL), -ERANGE);
    struct braid_part good = {there, {memory, mem}, 1000}, bad = {past, {memory, mem}, 1000};
    struct braid_part parts[BRAID_MAX_PARTS + 1];
    for (unsigned i = 0; i <= BRAID_MAX_PARTS; i++)
        parts[i] = good;
    assert_int_equal(braid_put_signal(ch, 0, parts, BRAID_MAX_PARTS + 1, there, BRAID_SIGNAL_ADD, 1, NULL), -EINVAL);
    parts[BRAID_MAX_PARTS - 1] = bad;
    assert_int_equal(braid_put_signal(ch, 0, parts, BRAID_MAX_PARTS, there, BRAID_SIGNAL_ADD, 1, NULL), -ERANGE);
    assert_int_equal(braid_put_signal(ch, 0, &good, 1, odd, BRAID_SIGNAL_ADD, 1, NULL), -EINVAL);
    assert_int_equal(braid_put_signal(ch, 0, &good, 1, there, (enum braid_signal_op)2, 1, NULL), -EINVAL);
    assert_int_equal(fake_pending(fake_qp(0)), 0);
    struct braid_channel_stats stats = {.size = sizeof(stats) - 1};
    assert_int_equal(braid_channel_stats_at(ch, &stats), -EINVAL);
    stats.size++;
    assert_int_equal(braid_channel_stats_at(ch, &stats), 0);
    assert_true(stats.puts == 0 && stats.words == 0 && stats.pieces == 0);
    stats.size = BRAID_CHANNEL_COUNTS;
    stats.puts = stats.waiting_puts = 7;
    assert_int_equal(braid_channel_stats_at(ch, &stats), 0);
    assert_true(stats.puts == 0 && stats.waiting_puts == 7 && stats.size == BRAID_CHANNEL_COUNTS);
    assert_int_equal(braid_quiet(ch, 0), 0);
    braid_close(b);
}

/* The same behind a good word, whose key the short way knows. */
static void words_behind_a_good_one_are_checked_too(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    struct braid_key key;
    struct braid_done done = {0};
    struct braid_channel *ch = a_channel(&b, &mem, &key);
    struct braid_key foreign = key;
    foreign.bytes[16] ^= 1; /* of the context's cookie */
    struct braid_remote there = {(uintptr_t)memory, &key};
    struct bad {
        struct braid_remote at;
        int pe, error;
    } bad[] = {{{(uintptr_t)memory + sizeof(memory), &key}, 0, -ERANGE},
               {{(uintptr_t)memory - 8, &key}, 0, -ERANGE},
               {{UINT64_MAX - 7, &key}, 0, -ERANGE},
               {{(uintptr_t)memory + 4, &key}, 0, -EINVAL},
               {{(uintptr_t)memory, NULL}, 0, -EINVAL},
               {{(uintptr_t)memory, &foreign}, 0, -EPROTO},
               {{(uintptr_t)memory, &key}, 1, -EINVAL},
               {{(uintptr_t)memory, &key}, -1, -EINVAL}};
    struct braid_atomic add = {BRAID_ATOMIC_ADD, 8, 1, 0};
    fake_auto(true);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(braid_signal_add(ch, 0, there, 1, &done), 0);
        assert_int_equal(braid_quiet(ch, 0), 0);
        assert_int_equal(braid_signal_add(ch, bad[i].pe, bad[i].at, 1, &done), bad[i].error);
        assert_int_equal(braid_signal_set(ch, bad[i].pe, bad[i].at, 1, &done), bad[i].error);
        assert_int_equal(braid_p(ch, bad[i].pe, bad[i].at, 1, 8, &done), bad[i].error);
        assert_int_equal(braid_atomic(ch, bad[i].pe, bad[i].at, &add, NULL, &done), bad[i].error);
        assert_true(done.ok == i + 1 && done.failed == 0);
    }
    fake_auto(false);
    braid_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(option_structs_are_checked),
        CLEAN(a_size_of_garbage_leads_nowhere),
        CLEAN(tails_are_checked_alike),
        CLEAN(null_is_refused_everywhere),
        CLEAN(a_message_has_a_largest_size),
        CLEAN(no_piece_is_longer_than_a_message),
        CLEAN(bad_peers_are_refused),
        CLEAN(regions_are_checked),
        CLEAN(keys_are_checked_by_ops_and_in_full),
        CLEAN(a_key_of_another_life_is_refused),
        CLEAN(ops_are_checked_before_anything_is_posted),
        CLEAN(words_are_checked_before_anything_is_posted),
        CLEAN(words_behind_a_good_one_are_checked_too),
    };
    return cmocka_run_group_tests_name("api_args", tests, NULL, NULL);
}
