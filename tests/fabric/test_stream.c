/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stream.c - rates in virtual time, every byte compared: these are exact on any machine, so they are tests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

#include "bench.h"

static void run(const struct bench_spec *s, struct bench_result *r)
{
    char why[BENCH_WHY];

    if (bench_run(fabric_emu(), s, r, why, sizeof(why)))
        fail_msg("%s", why);
    assert_int_equal(r->errors, 0);
}

static struct bench_spec put_spec(int ports)
{
    return (struct bench_spec){.pattern = BENCH_PUT,
                               .fabric = "nodes=2,ports=8,rate=200G,latency=2.5us",
                               .seed = 1,
                               .ports = ports,
                               .size = 1 << 20,
                               .count = 128,
                               .window = 16};
}

static struct bench_result one, two;

static void two_ports_carry_twice_one(void **state)
{
    struct bench_spec s1 = put_spec(1), s2 = put_spec(2);

    (void)state;
    run(&s1, &one);
    run(&s2, &two);
    print_message("# 1 MiB puts, window 16: one port %.2f GB/s, two ports %.2f GB/s, %.3fx\n", one.gbs, two.gbs,
                  two.gbs / one.gbs);
    assert_true(two.gbs >= 1.9 * one.gbs);
    assert_true(one.fraction >= 0.97);
    assert_true(two.fraction >= 0.97);
    assert_true(one.fraction <= 1);
    assert_true(two.fraction <= 1);
}

static void bytes_are_spread_evenly(void **state)
{
    struct bench_spec s = put_spec(4);

    (void)state;
    run(&s, &two);
    for (int i = 0; i < 4; i++) {
        double share = (double)two.port[i].tx / (double)two.payload_bytes;

        assert_true(share > 0.24 && share < 0.26);
    }
    for (int i = 4; i < 8; i++)
        assert_int_equal(two.port[i].tx, 0);
}

static void drain_is_slower_than_deferral(void **state)
{
    struct bench_spec s = {
        .pattern = BENCH_SIGNAL, .seed = 1, .size = 458752, .count = 400, .window = 16, .order = "drain"};

    (void)state;
    run(&s, &one);
    s.order = "release";
    run(&s, &two);
    print_message("# 448 KiB + signal, window 16, two ports: drain %.2f GB/s, release %.2f GB/s\n", one.gbs, two.gbs);
    assert_true(two.gbs >= 1.4 * one.gbs);
    assert_true(two.fraction >= 0.95);
}

static void same_seed_same_run(void **state)
{
    struct bench_spec s = {.pattern = BENCH_SIGNAL,
                           .fabric = "nodes=2,ports=2,jitter=2us,loss=0.001",
                           .seed = 5,
                           .size = 50000,
                           .count = 50,
                           .window = 4};

    (void)state;
    run(&s, &one);
    run(&s, &two);
    assert_int_equal(one.wall_ns, two.wall_ns);
    assert_true(one.trace_hash == two.trace_hash);
    s.vehicle = EMU_SIM_THREADS;
    run(&s, &two);
    assert_int_equal(one.wall_ns, two.wall_ns);
    assert_true(one.trace_hash == two.trace_hash);
    s.seed = 6;
    run(&s, &two);
    assert_true(one.trace_hash != two.trace_hash);
}

static void unequal_rates_still_right(void **state)
{
    struct bench_spec s = put_spec(0);

    (void)state;
    s.fabric = "nodes=2,ports=3,rate=400G:200G:100G";
    run(&s, &one);
    print_message("# 400:200:100, equal pieces: %.2f of %.2f GB/s\n", one.gbs, one.ceiling_gbs);
}

/* A program that sleeps between looks: what a lane may hold must last it until the next one. */
static void one_who_naps_fills_two_ports(void **state)
{
    static const struct {
        enum bench_pattern pattern;
        const char *fabric;
        uint64_t nap_ns;
    } row[] = {{BENCH_PUT, "nodes=2,ports=2,rate=80M", 1000000},
               {BENCH_PUT, "nodes=2,ports=2,rate=80M", 5000000},
               {BENCH_PUT, "nodes=2,ports=2,rate=10G", 100000},
               {BENCH_GET, "nodes=2,ports=2,rate=80M", 5000000},
               {BENCH_GET, "nodes=2,ports=2,rate=10G", 100000}};

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct bench_spec s = put_spec(1);

        s.pattern = row[i].pattern;
        s.fabric = row[i].fabric;
        s.nap_ns = row[i].nap_ns;
        s.size = 256 << 10;
        run(&s, &one);
        s.ports = 2;
        run(&s, &two);
        print_message("# %s, %s, looks %.1f ms apart: %.4f and %.4f of the ports, %.3fx\n",
                      s.pattern == BENCH_GET ? "get" : "put", s.fabric, (double)s.nap_ns / 1e6, one.fraction,
                      two.fraction, two.gbs / one.gbs);
        assert_true(one.fraction >= 0.97 && two.gbs >= 1.9 * one.gbs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ports_carry_twice_one),     cmocka_unit_test(bytes_are_spread_evenly),
        cmocka_unit_test(drain_is_slower_than_deferral), cmocka_unit_test(same_seed_same_run),
        cmocka_unit_test(one_who_naps_fills_two_ports),  cmocka_unit_test(unequal_rates_still_right),
    };

    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
