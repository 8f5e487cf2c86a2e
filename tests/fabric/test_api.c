/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api.c - what a caller of braid.h sees on a working fabric: data, sums, order, echoes, full queues, odd rail counts.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

static void fill(unsigned char *p, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (unsigned char)(fabric_random(&seed) >> 11);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------------ */

static const size_t sizes[] = {0,    1,    7,    8,     127,   128,   255,   256,    257,
                               4095, 4096, 4097, 16383, 16384, 16385, 65537, 1000003};

/** PE 0 puts each size, unaligned, between guard bytes; PE 1 compares, then gets it back from PE 0's copy. */
static int pe_sizes(struct fabric_pe *p)
{
    struct braid_done done = {0};
    int other = 1 - p->pe, rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t len = sizes[i], from = 64 + i, to = 2000000 + 64 + 3 * i;
        unsigned char *mine = p->bytes;

        fill(mine + from, len, 1000 + i + (uint64_t)p->pe);
        memset(mine + to - 64, 0xee, len + 128);
        rc = fabric_barrier(p);
        if (rc == 0)
            rc = fabric_put(p, other, to, from, len, &done);
        if (rc == 0)
            rc = braid_quiet(p->ch, other);
        fabric_equal(p, (long long)done.ok, (long long)i * 2 + 1, "puts ended");
        rc = rc ? rc : fabric_barrier(p);
        fill(mine + from, len, 1000 + i + (uint64_t)other);
        fabric_check(p, memcmp(mine + to, mine + from, len) == 0, "the bytes put");
        for (size_t k = 0; k < 64; k++)
            fabric_check(p, mine[to - 1 - k] == 0xee && mine[to + len + k] == 0xee, "bytes beside a put stay");
        rc = rc ? rc : fabric_barrier(p);
        memset(mine + to - 64, 0xdd, len + 128);
        if (rc == 0) /* the other's copy of my pattern is now at its "from" */
            rc = fabric_get(p, other, to, from, len, &done);
        if (rc == 0)
            rc = braid_quiet(p->ch, BRAID_ALL_PES);
        rc = rc ? rc : fabric_barrier(p); /* the other may still be getting mine */
        fill(mine + from, len, 1000 + i + (uint64_t)p->pe);
        fabric_check(p, memcmp(mine + to, mine + from, len) == 0, "the bytes got");
        for (size_t k = 0; k < 64; k++)
            fabric_check(p, mine[to - 1 - k] == 0xdd && mine[to + len + k] == 0xdd, "bytes beside a get stay");
        rc = rc ? rc : fabric_barrier(p);
    }
    return rc;
}

static void all_sizes_on_all_rail_counts(void **state)
{
    static const char *const specs[] = {"nodes=2,ports=1", "nodes=2,ports=2", "nodes=2,ports=3,mtu=1024",
                                        "nodes=2,ports=4,jitter=3us,loss=0.002", "nodes=2,ports=16"};

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct fabric f = {.spec = specs[i], .seed = i + 1, .fn = pe_sizes};

        fabric_run_ok(&f);
    }
}

static void threads_carry_it_too(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2,jitter=1us", .seed = 3, .fn = pe_sizes}, g = f;

    (void)state;
    fabric_run_ok(&f);
    g.vehicle = EMU_SIM_THREADS;
    fabric_run_ok(&g);
    assert_true(f.trace == g.trace);
    assert_int_equal(f.end_ns, g.end_ns);
}

/* ---- rails ------------------------------------------------------------------------------------------------------------- */

static int pe_every_rail_used(struct fabric_pe *p)
{
    struct braid_rail_stats stats;
    int n = braid_rail_count(p->b), other = 1 - p->pe, rc = 0;

    fabric_equal(p, n, p->pe ? 2 : 3, "rails");
    fabric_equal(p, braid_lane_count(p->ch, other), 3, "lanes to the other");
    fabric_equal(p, braid_lane_count(p->ch, p->pe), n, "lanes to myself");
    fabric_equal(p, braid_lane_count(p->ch, 2), -EINVAL, "lanes to nobody");
    fill(p->bytes, 1 << 20, 5);
    for (int i = 0; rc == 0 && i < 4; i++)
        rc = fabric_put(p, other, 1 << 20, 0, 1 << 20, NULL);
    rc = rc ? rc : braid_quiet(p->ch, other);
    for (int i = 0; rc == 0 && i < n; i++) {
        rc = braid_rail_stats_at(p->b, i, &stats);
        fabric_check(p, stats.put_bytes > 0 && stats.rate_bits == 200000000000u && stats.errors == 0,
                     "each rail carries");
    }
    fabric_equal(p, braid_rail_stats_at(p->b, n, &stats), -EINVAL, "stats of no rail");
    rc = rc ? rc : fabric_barrier(p);
    fabric_check(p, memcmp(p->bytes, p->bytes + (1 << 20), 1 << 20) == 0, "bytes");
    return rc;
}

static void three_rails_meet_two(void **state)
{
    struct fabric f = {
        .spec = "nodes=2,ports=3", .seed = 1, .fn = pe_every_rail_used, .ports = {NULL, "mlx5_2:1,mlx5_0"}};

    (void)state;
    fabric_run_ok(&f);
}

static int pe_one_rail(struct fabric_pe *p)
{
    return fabric_equal(p, braid_rail_count(p->b), 1, "rails") ? 0 : -EPROTO;
}

static void rails_1_is_one_rail(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=4", .seed = 1, .fn = pe_one_rail, .settings = {"rails=1"}};

    (void)state;
    fabric_run_ok(&f);
}

/* ---- signals ------------------------------------------------------------------------------------------------------------- */

/** Every PE adds to a word of every PE, itself too: the sum is exact, whichever rails the adds came over. */
static int pe_sums(struct fabric_pe *p)
{
    struct braid_done done = {0};
    int rc = 0;

    for (int k = 0; rc == 0 && k < 200; k++) {
        for (int pe = 0; rc == 0 && pe < p->n_pes; pe++)
            rc = fabric_add(p, pe, 3, (uint64_t)p->pe + 1, &done);
    }
    rc = rc ? rc : braid_quiet(p->ch, BRAID_ALL_PES);
    fabric_equal(p, (long long)done.ok, 200LL * p->n_pes, "adds ended");
    rc = rc ? rc : fabric_barrier(p);
    fabric_equal(p, (long long)p->words[3], 200LL * p->n_pes * (p->n_pes + 1) / 2, "sum");
    return rc;
}

static void sums_are_exact(void **state)
{
    struct fabric f = {.spec = "nodes=2,gpus=2,ports=2,jitter=2us,loss=0.005", .seed = 11, .fn = pe_sums};

    (void)state;
    fabric_run_ok(&f);
}

/** A put, its signal, a put over the same bytes, its signal ...: the receiver must see each word op behind its data. */
static int pe_self_traffic(struct fabric_pe *p)
{
    struct braid_done done = {0};
    int rc = 0;

    for (uint64_t k = 1; rc == 0 && k <= 40; k++) {
        fill(p->bytes, 50000, k);
        rc = fabric_put(p, p->pe, 1 << 20, 0, 50000, NULL);
        rc = rc ? rc : fabric_add(p, p->pe, 0, 1, &done);
        while (rc == 0 && __atomic_load_n(&p->words[0], __ATOMIC_ACQUIRE) < k)
            rc = fabric_step(p);
        fabric_check(p, memcmp(p->bytes, p->bytes + (1 << 20), 50000) == 0, "own data behind own signal");
        rc = rc ? rc : braid_quiet(p->ch, p->pe); /* the source is about to change */
    }
    return rc;
}

static void self_traffic_works(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2,jitter=1us", .seed = 2, .fn = pe_self_traffic};

    (void)state;
    fabric_run_ok(&f);
}

/** Small puts are word ops: a flag put behind a large put announces it as a signal does. */
static int pe_flag_put(struct fabric_pe *p)
{
    uint64_t *flag = (uint64_t *)(void *)(p->bytes + FABRIC_MEM - 64);
    int rc = 0;

    for (uint64_t k = 1; rc == 0 && k <= 30; k++) {
        if (p->pe == 0) {
            fill(p->bytes, 200000, k);
            *(uint64_t *)(void *)(p->bytes + (3 << 20)) = k;
            rc = fabric_put(p, 1, 1 << 20, 0, 200000, NULL);
            rc = rc ? rc : fabric_put(p, 1, FABRIC_MEM - 64, 3 << 20, 8, NULL);
            rc = rc ? rc : braid_quiet(p->ch, 1);
        } else {
            while (rc == 0 && __atomic_load_n(flag, __ATOMIC_ACQUIRE) != k)
                rc = fabric_step(p);
            fill(p->bytes, 200000, k);
            fabric_check(p, memcmp(p->bytes, p->bytes + (1 << 20), 200000) == 0, "data behind a flag put");
        }
        rc = rc ? rc : fabric_barrier(p);
    }
    return rc;
}

static void small_puts_stay_behind_large_ones(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct fabric f = {.spec = "nodes=2,ports=2,jitter=4us", .seed = seed, .fn = pe_flag_put};

        fabric_run_ok(&f);
    }
}

/* ---- quiet, progress, queues ------------------------------------------------------------------------------------------------ */

/** Both fill all queues towards each other before either makes progress on purpose. */
static int pe_flood(struct fabric_pe *p)
{
    struct braid_done done = {0};
    int other = 1 - p->pe, rc = 0, n = 0;

    for (int k = 0; rc == 0 && k < 300; k++) {
        rc = fabric_put(p, other, (size_t)(k % 8) * 65536, 2 << 20, 65536, &done);
        rc = rc ? rc : fabric_add(p, other, 1, 1, &done);
        n += 2;
    }
    rc = rc ? rc : braid_quiet(p->ch, other);
    fabric_equal(p, (long long)done.ok, n, "all ended at quiet");
    rc = rc ? rc : fabric_barrier(p);
    fabric_equal(p, (long long)p->words[1], 300, "the other's signals");
    return rc;
}

static void full_queues_do_not_deadlock(void **state)
{
    struct fabric f = {
        .spec = "nodes=2,ports=2", .seed = 4, .fn = pe_flood, .settings = {"sq_depth=32", "word_depth=2"}};

    (void)state;
    fabric_run_ok(&f);
    f.settings[2] = "order=drain";
    fabric_run_ok(&f);
}

static int pe_echo(struct fabric_pe *p)
{
    int rc = 0;

    for (int round = 0; rc == 0 && round < 40; round++) { /* many more than a mailbox has credits */
        for (int lane = 0; rc == 0 && p->pe == 0 && lane < braid_lane_count(p->ch, 1); lane++) {
            uint64_t rtt = 0;

            rc = braid_echo(p->ch, 1, lane, &rtt);
            fabric_check(p, rtt >= 5000 && rtt < 20000, "an echo takes two latencies and little more");
        }
    }
    if (p->pe == 0) {
        uint64_t rtt = 77;

        fabric_equal(p, braid_echo(p->ch, 1, 9, &rtt), -EINVAL, "no such lane");
        fabric_equal(p, braid_echo(p->ch, 5, 0, &rtt), -EINVAL, "no such PE");
        fabric_equal(p, (long long)rtt, 77, "output untouched");
        rc = rc ? rc : fabric_add(p, 1, 0, 1, NULL);
        return rc ? rc : braid_quiet(p->ch, 1);
    }
    while (rc == 0 && __atomic_load_n(&p->words[0], __ATOMIC_ACQUIRE) == 0)
        rc = fabric_step(p);
    return rc;
}

static void echoes_come_back_on_every_lane(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2", .seed = 4, .fn = pe_echo};

    (void)state;
    fabric_run_ok(&f);
}

static int pe_busy_region(struct fabric_pe *p)
{
    int rc = 0;

    if (p->pe == 0) {
        rc = fabric_put(p, 1, 0, 0, 1 << 20, NULL);
        fabric_equal(p, braid_mem_dereg(p->mem), -EBUSY, "a region in use");
        rc = rc ? rc : braid_quiet(p->ch, 1);
    }
    rc = rc ? rc : fabric_barrier(p);
    fabric_equal(p, braid_mem_dereg(p->mem), 0, "a region at rest");
    p->mem = NULL;
    return rc;
}

static void a_region_in_use_stays(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2", .seed = 4, .fn = pe_busy_region};

    (void)state;
    fabric_run_ok(&f);
}

/* ---- at random ---------------------------------------------------------------------------------------------------------------- */

/** Each PE owns a third of everybody's memory and puts at random into it; at the end every byte is as its model says. */
static int pe_random(struct fabric_pe *p)
{
    enum { SHARE = FABRIC_MEM / 8, OPS = 120 };
    uint64_t r = p->run->seed * 1000 + (uint64_t)p->pe;
    unsigned char *model = calloc((size_t)p->n_pes, SHARE);
    struct braid_done done = {0};
    size_t mine = (size_t)p->pe * SHARE;
    int rc = model ? 0 : -ENOMEM, adds = 0;

    /* Sources lie above the shares and are never reused, so that nobody has to wait. */
    for (size_t from = (size_t)p->n_pes * SHARE; rc == 0 && from < FABRIC_MEM && done.failed == 0;) {
        int pe = (int)(fabric_random(&r) % (uint64_t)p->n_pes);
        size_t len = 1 + fabric_random(&r) % (fabric_random(&r) % 3 ? 300 : 60000), at;

        if (len > FABRIC_MEM - from)
            len = FABRIC_MEM - from;
        at = fabric_random(&r) % (SHARE - len);
        fill(p->bytes + from, len, fabric_random(&r));
        /* Two bulk puts to the same bytes have no order without a quiet between them. */
        rc = braid_quiet(p->ch, pe);
        rc = rc ? rc : fabric_put(p, pe, mine + at, from, len, &done);
        memcpy(model + (size_t)pe * SHARE + at, p->bytes + from, len);
        from += len;
        if (rc == 0 && fabric_random(&r) % 3 == 0) {
            rc = fabric_add(p, pe, 5, 1, &done);
            adds++;
        }
    }
    rc = rc ? rc : braid_quiet(p->ch, BRAID_ALL_PES);
    rc = rc ? rc : fabric_barrier(p);
    for (int pe = 0; rc == 0 && pe < p->n_pes; pe++) { /* compare through gets: they see what the puts did */
        rc = fabric_get(p, pe, (size_t)p->n_pes * SHARE, mine, SHARE, &done);
        rc = rc ? rc : braid_quiet(p->ch, pe);
        fabric_check(p, memcmp(p->bytes + (size_t)p->n_pes * SHARE, model + (size_t)pe * SHARE, SHARE) == 0,
                     "model and memory");
    }
    fabric_equal(p, (long long)done.failed, 0, "nothing failed");
    free(model);
    return rc ? rc : fabric_barrier(p);
}

static void random_traffic_matches_its_model(void **state)
{
    static const char *const specs[] = {"nodes=3,ports=2", "nodes=3,ports=3,jitter=3us",
                                        "nodes=3,ports=2,loss=0.01,mtu=1024"};

    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct fabric f = {.spec = specs[seed % 3], .seed = seed, .fn = pe_random};

        fabric_run_ok(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sizes_on_all_rail_counts),
        cmocka_unit_test(threads_carry_it_too),
        cmocka_unit_test(three_rails_meet_two),
        cmocka_unit_test(rails_1_is_one_rail),
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(self_traffic_works),
        cmocka_unit_test(small_puts_stay_behind_large_ones),
        cmocka_unit_test(full_queues_do_not_deadlock),
        cmocka_unit_test(echoes_come_back_on_every_lane),
        cmocka_unit_test(a_region_in_use_stays),
        cmocka_unit_test(random_traffic_matches_its_model),
    };

    return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
