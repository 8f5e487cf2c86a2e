/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lag.c - bonds in virtual time: one device with two wires, on which a queue pair travels on one. What libbraid makes of it by
 * choosing wires, by source ports alone, and told to leave it; what each wire carried is counted by the emulator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

#include "bench.h"

/* ---- rates ---------------------------------------------------------------------------------------------------------- */

enum { SEEDS = 8 };

/* A stream of 1 MiB puts over a bond, every byte compared: GB/s. */
static double rate(const char *fabric, uint64_t seed, const char *setting, const char *another)
{
    struct bench_spec s = {.pattern = BENCH_PUT,
                           .fabric = fabric,
                           .seed = seed,
                           .size = 1 << 20,
                           .count = 96,
                           .window = 16,
                           .setting = {setting, another}};
    struct bench_result r;
    char why[BENCH_WHY];

    if (bench_run(fabric_emu(), &s, &r, why, sizeof(why)))
        fail_msg("%s", why);
    assert_int_equal(r.errors, 0);
    return r.gbs;
}

#define BOND "nodes=2,ports=1,wires=2,rate=200G,latency=2.5us"

static double one_port(void)
{
    return rate("nodes=2,ports=1,rate=200G,latency=2.5us", 1, NULL, NULL);
}

static void one_queue_pair_gets_one_wire(void **state)
{
    static const char *const fabrics[] = {BOND ",lag=affinity", BOND ",lag=mixed", BOND ",lag=hash"};
    double one = one_port();

    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        for (size_t i = 0; i < 3; i++) {
            double off = rate(fabrics[i], seed, "lag=off", NULL);

            assert_true(off > 0.99 * one && off < 1.01 * one);
        }
    }
    /* So does stock's way of one rail and one lane, without being told of bonds. */
    assert_true(rate(fabrics[0], 1, "rails=1", NULL) < 1.01 * one);
}

static void wires_that_are_chosen_add_up(void **state)
{
    double one = one_port();

    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        double two = rate(BOND ",lag=affinity", seed, NULL, NULL);

        if (seed == 1)
            print_message("# two wires, chosen: %.2f GB/s, one port %.2f: %.2fx\n", two, one, two / one);
        assert_true(two >= 1.9 * one);
    }
    assert_true(rate("nodes=2,ports=1,wires=4,rate=100G,latency=2.5us", 1, NULL, NULL) >= 1.9 * one);
    assert_true(rate("nodes=2,ports=2,wires=2,rate=100G,latency=2.5us", 1, NULL, NULL) >= 1.9 * one);
}

static int by_rate(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Each seed has a hash of its own; a bad one puts most lanes on one wire, and whoever is unlucky has one. Sorted. */
static void rates_by_seed(const char *fabric, const char *setting, double out[SEEDS])
{
    for (uint64_t i = 0; i < SEEDS; i++)
        out[i] = rate(fabric, i + 1, setting, NULL);
    qsort(out, SEEDS, sizeof(out[0]), by_rate);
}

static void source_ports_alone_add_up(void **state)
{
    double one = one_port(), of[SEEDS], most[SEEDS];

    (void)state;
    rates_by_seed(BOND ",lag=hash", NULL, of);
    rates_by_seed(BOND ",lag=hash", "spread=8", most);
    print_message("# two wires by source ports, %d hashes: 8 lanes %.2fx (worst), %.2fx (median), %.2fx (best)\n",
                  SEEDS, of[0] / one, of[SEEDS / 2] / one, of[SEEDS - 1] / one);
    print_message("# 16 lanes (spread=8): %.2fx, %.2fx, %.2fx\n", most[0] / one, most[SEEDS / 2] / one,
                  most[SEEDS - 1] / one);
    assert_true(of[0] > 0.99 * one);
    assert_true(of[SEEDS / 2] >= 1.9 * one);
    assert_true(most[0] >= 1.8 * one && most[SEEDS / 2] >= 1.9 * one);
}

/* Where the device does not even say that it is a bond. */
static void the_user_may_say_that_there_are_wires(void **state)
{
    double one = one_port();

    (void)state;
    assert_true(rate(BOND ",lag=hash,unkind=ooo-silent", 3, NULL, NULL) < 1.01 * one);
    assert_true(rate(BOND ",lag=hash,unkind=ooo-silent", 3, "lag=2", "spread=8") >= 1.8 * one);
}

/* ---- what each wire carries -------------------------------------------------------------------------------------------- */

static struct emu_sim_port seen[2];
static int lanes;
static struct braid_lane_stats lane[16];

static int stream(struct fabric_pe *p)
{
    int rc = 0;

    if (p->pe == 0) {
        for (int i = 0; i < 48 && rc == 0; i++) { /* four at a time, to places of their own */
            rc = fabric_put(p, 1, (size_t)(i % 4) << 20, 0, 1 << 20, NULL);
            if (rc == 0 && i % 4 == 3)
                rc = braid_quiet(p->ch, 1);
        }
        lanes = braid_lane_count(p->ch, 1);
        for (int k = 0; k < lanes; k++) {
            lane[k].size = sizeof(lane[k]);
            fabric_equal(p, braid_lane_stats_at(p->ch, 1, k, &lane[k]), 0, "stats of a lane");
        }
    }
    if (rc == 0)
        rc = fabric_barrier(p);
    if (p->pe == 0) {
        for (int i = 0; i < 2; i++)
            fabric_equal(p, p->run->emu->port(p->run->sim, i, &seen[i]), 0, "a port");
    }
    return rc;
}

static void run(const char *spec, const char *setting)
{
    struct fabric f = {.spec = spec, .seed = 1, .fn = stream, .settings = {setting}};

    fabric_run_ok(&f);
}

static double part(int port, int wire, int direction)
{
    const struct emu_sim_port *p = &seen[port];

    return (double)p->wire_payload[wire][direction] / (double)(direction ? p->rx_payload : p->tx_payload);
}

static void both_wires_carry_half_on_both_sides(void **state)
{
    (void)state;
    run(BOND, NULL);
    assert_int_equal(lanes, 2);
    for (int w = 0; w < 2; w++) {
        assert_true(part(0, w, 0) > 0.48 && part(0, w, 0) < 0.52);
        assert_true(part(1, w, 1) > 0.48 && part(1, w, 1) < 0.52);
        assert_int_equal(lane[w].wire, w + 1);
        assert_true(lane[w].line_bits > 195000000000u && lane[w].line_bits < 200000000000u);
    }
    assert_int_equal(seen[0].wires, 2);
    assert_true(seen[0].rate_bits == 400000000000u);
    run(BOND, "lag=off");
    assert_int_equal(lanes, 1);
    assert_true(part(0, 0, 0) > 0.99 || part(0, 1, 0) > 0.99);
}

/* A wire that is slower than the other is measured as such, and gets that much less. */
static void each_wire_has_a_rate_of_its_own(void **state)
{
    (void)state;
    run(BOND ",at=0ns:slow:h0/mlx5_0:1.2:0.25", NULL);
    print_message("# a wire of 200 and one of 50 Gb/s: measured %.1f and %.1f; %.3f of the bytes on the slow one\n",
                  (double)lane[0].put_bits / 1e9, (double)lane[1].put_bits / 1e9, part(0, 1, 0));
    assert_true(lane[0].put_bits > 190000000000u);
    assert_true(lane[1].put_bits > 30000000000u && lane[1].put_bits < 60000000000u);
    assert_true(part(0, 1, 0) > 0.15 && part(0, 1, 0) < 0.25);
}

/* What was given to a wire that is down goes over the other; the port is up all the time. */
static void a_wire_that_is_down_is_replaced_by_the_device(void **state)
{
    (void)state;
    run(BOND ",at=100us:down:h0/mlx5_0:1.2", NULL);
    assert_true(part(0, 0, 0) > 0.9);
    assert_int_equal(lanes, 2);
}

/* A bond and two plain ports: a lane for each of both. */
static void a_bond_meets_ports(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2,wires=2,rate=200G", .seed = 1, .fn = stream};

    (void)state;
    f.ports[0] = "mlx5_0:1";
    f.settings[0] = "lag=auto";
    fabric_run_ok(&f);
    assert_int_equal(lanes, 4); /* two wires here, four there */
    for (int k = 0; k < 4; k++) {
        assert_int_equal(lane[k].rail, 0);
        assert_int_equal(lane[k].remote_rail, k / 2);
        assert_int_equal(lane[k].wire, k % 2 + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_queue_pair_gets_one_wire),
        cmocka_unit_test(wires_that_are_chosen_add_up),
        cmocka_unit_test(source_ports_alone_add_up),
        cmocka_unit_test(the_user_may_say_that_there_are_wires),
        cmocka_unit_test(both_wires_carry_half_on_both_sides),
        cmocka_unit_test(each_wire_has_a_rate_of_its_own),
        cmocka_unit_test(a_wire_that_is_down_is_replaced_by_the_device),
        cmocka_unit_test(a_bond_meets_ports),
    };

    return cmocka_run_group_tests_name("lag", tests, NULL, NULL);
}
