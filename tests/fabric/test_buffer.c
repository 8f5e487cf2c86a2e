/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_buffer.c - the switch of the emulated fabric by plain verbs: incast, a full buffer that pauses or drops, who is hurt
 * by a receiver that takes nothing and who is not. Flows between PEs are a table; their times are compared with what can
 * be computed. Called by Meson; next: the emulator.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "flows.h"

static struct plain_path path;

static void run(const char *spec, const struct flow *list, int n)
{
    flows_connect_by(&path);
    flows_run(spec, NULL, list, n);
}

static int usual_path(void **state)
{
    (void)state;
    path = plain_defaults();
    return 0;
}

/* ---- incast --------------------------------------------------------------------------------------------------------- */

static const struct flow eight_to_one[8] = {{1, 0, 60, 0}, {2, 0, 60, 0}, {3, 0, 60, 0}, {4, 0, 60, 0},
                                            {5, 0, 60, 0}, {6, 0, 60, 0}, {7, 0, 60, 0}, {8, 0, 60, 0}};

/* 8 times 7.5 MiB into 16 MiB: lossless, shared, and the receiving port never idles. */
static void eight_senders_share_a_port_and_lose_nothing(void **state)
{
    uint64_t together = flows_wire_ns(60), lost = 0, pauses = 0;

    (void)state;
    run("nodes=9,ports=1,cpu=off", eight_to_one, 8);
    for (int i = 0; i < 8; i++) {
        if (!flows_about(flows_ended(i), together, 2))
            fail_msg("sender %d: seen %llu ns, expected %llu", i, (unsigned long long)flows_ended(i),
                     (unsigned long long)together);
    }
    for (int i = 0; i < 9; i++) {
        lost += plain_counters(i).lost + plain_counters(i).dropped;
        pauses += plain_counters(i).pauses;
    }
    assert_int_equal(lost, 0);
    assert_true(pauses > 0);
    assert_int_equal(plain_counters(0).pauses, 0); /* it only sends acknowledgements */
    assert_true(plain_counters(0).queue_peak <= 16 * FLOW_MIB &&
                plain_counters(0).queue_peak > 16 * FLOW_MIB - 2 * FLOW_FRAME);
    assert_true(plain_counters(3).buffer_peak == plain_counters(0).queue_peak);
}

/* Two senders of 4 MiB each: half of it has to wait, and there is room for it. */
static void what_fits_pauses_nobody(void **state)
{
    static const struct flow two[] = {{1, 0, 32, 0}, {2, 0, 32, 0}};

    (void)state;
    run("nodes=3,ports=1,cpu=off", two, 2);
    assert_true(flows_about(flows_ended(0), flows_wire_ns(8) + FLOW_RTT, 1) &&
                flows_about(flows_ended(1), flows_wire_ns(8) + FLOW_RTT, 1));
    assert_true(flows_about(plain_counters(0).queue_peak, 4 * FLOW_MIB + 4 * FLOW_MIB / 50, 3));
    assert_int_equal(plain_counters(1).pauses + plain_counters(2).pauses, 0);
    assert_int_equal(plain_counters(1).paused_ns + plain_counters(2).paused_ns, 0);
}

static void equal_seeds_give_equal_runs(void **state)
{
    static const char *const specs[] = {"nodes=9,ports=1,cpu=off,buffer=256K,jitter=3us",
                                        "nodes=9,ports=1,cpu=off,buffer=256K,jitter=3us,loss=tail"};

    (void)state;
    path.timeout = 8;
    for (int i = 0; i < 2; i++) {
        uint64_t first;

        run(specs[i], eight_to_one, 8);
        first = plain_trace();
        run(specs[i], eight_to_one, 8);
        assert_true(plain_trace() == first);
    }
}

/* ---- full ----------------------------------------------------------------------------------------------------------- */

/*
 * PE 1 sends to PE 0, as six others do, and to PE 9, which nobody else does. With room enough the two flows share its port.
 * With a full buffer the second gets no more than the first, packet for packet: a seventh of PE 0's port.
 */
static const struct flow crowd_and_bystanders[] = {
    {1, 0, 60, 0}, {1, 9, 20, 0}, {2, 0, 60, 0}, {3, 0, 60, 0},  {4, 0, 60, 0},
    {5, 0, 60, 0}, {6, 0, 60, 0}, {7, 0, 60, 0}, {10, 8, 40, 0},
};

static void a_full_buffer_blocks_what_stands_behind(void **state)
{
    uint64_t alone;

    (void)state;
    run("nodes=11,ports=1,cpu=off,buffer=1G", crowd_and_bystanders, 9);
    assert_true(flows_about(flows_ended(1), flows_wire_ns(5) + FLOW_RTT, 1)); /* in turn with as many to PE 0 */
    alone = flows_ended(1);
    run("nodes=11,ports=1,cpu=off,buffer=128K", crowd_and_bystanders, 9);
    print_message("# bystander of a paused port: %.2f times as long\n", (double)flows_ended(1) / (double)alone);
    assert_true(flows_ended(1) > 3 * alone);
    assert_true(
        flows_about(flows_ended(8), flows_wire_ns(5) + FLOW_RTT, 1)); /* a port that is not paused is not hurt */
    assert_int_equal(plain_counters(10).pauses, 0);
    for (int i = 2; i < 8; i++)
        assert_true(flows_about(flows_ended(i), flows_wire_ns(7 * 15 / 2), 2)); /* the crowd shares fairly */
    assert_true(plain_counters(1).paused_ns > flows_wire_ns(7));
    assert_true(plain_counters(1).buffer_peak <=
                (128 << 10) + 10 * FLOW_FRAME); /* one packet passes through an idle port */
}

static void tail_drops_are_repaired(void **state)
{
    uint64_t lost = 0;

    (void)state;
    path.timeout = 8; /* 1 ms */
    run("nodes=9,ports=1,cpu=off,buffer=512K,loss=tail", eight_to_one, 8);
    for (int i = 0; i < 9; i++) {
        lost += plain_counters(i).lost;
        assert_int_equal(plain_counters(i).pauses, 0);
    }
    print_message("# dropped: %llu packets\n", (unsigned long long)lost);
    assert_true(plain_counters(0).dropped > 0);
    assert_int_equal(plain_counters(0).dropped, lost);
    assert_true(plain_counters(0).buffer_peak <= 512 << 10);
}

/* ---- a receiver that takes nothing ------------------------------------------------------------------------------------ */

static const struct flow one_stalled[] = {{0, 1, 32, 0}, {0, 2, 32, 0}, {3, 2, 8, 0}};

#define STALLED "nodes=4,ports=1,cpu=off,at=0s:stall:h1/mlx5_0:1,at=5ms:up:h1/mlx5_0:1"

static void a_stalled_peer_hurts_nobody_while_there_is_room(void **state)
{
    (void)state;
    run(STALLED, one_stalled, 3);
    assert_true(flows_ended(0) > 4500000 && flows_ended(0) < 5500000); /* the stall is over, and nothing was lost */
    assert_true(
        flows_about(flows_ended(1), flows_wire_ns(8) + FLOW_RTT, 1)); /* in turn with as many for the stalled one */
    assert_int_equal(plain_counters(0).pauses, 0);
    assert_true(flows_about(plain_counters(1).queue_peak, 4 * FLOW_MIB + 4 * FLOW_MIB / 50, 1));
}

static void a_stalled_peer_stops_its_senders_when_there_is_none(void **state)
{
    (void)state;
    run(STALLED ",buffer=256K", one_stalled, 3);
    assert_true(flows_ended(0) > 4500000);
    assert_true(flows_ended(1) > 4500000 && flows_ended(1) < 6000000); /* stuck behind the other */
    assert_true(flows_ended(2) < flows_wire_ns(3));                    /* from another port */
    assert_true(plain_counters(0).paused_ns > 4500000);
}

static void packets_for_a_port_that_goes_down_are_lost(void **state)
{
    static const struct flow list[] = {{0, 1, 32, true}, {0, 2, 32, 0}};
    uint64_t lost;

    (void)state;
    path.timeout = 8;
    path.retry = 1;
    /* What was held for it goes with it, and the sender is free again long before 5 ms. */
    run("nodes=4,ports=1,cpu=off,buffer=256K,at=0s:stall:h1/mlx5_0:1,at=600us:down:h1/mlx5_0:1", list, 2);
    assert_true(flows_ended(1) < 5000000);
    assert_int_equal(plain_counters(1).wire_rx, 0);
    lost = plain_counters(0).wire_tx - 32ull * (FLOW_LEN / 4096 * FLOW_FRAME + 16); /* all but the other flow */
    if (plain_counters(0).lost != lost / FLOW_FRAME)
        fail_msg("seen %llu lost, expected %llu", (unsigned long long)plain_counters(0).lost,
                 (unsigned long long)(lost / FLOW_FRAME));
}

/* Down in the middle of it: what waits goes, what comes after it is up again does not. */
static void a_flap_under_load_costs_time_only(void **state)
{
    static const struct flow two[] = {{1, 0, 32, 0}, {2, 0, 32, 0}};

    (void)state;
    path.timeout = 8;
    run("nodes=3,ports=1,cpu=off,at=100us:down:h0/mlx5_0:1,at=300us:up:h0/mlx5_0:1", two, 2);
    assert_true(plain_counters(1).lost > 100 && plain_counters(2).lost > 100);
    assert_true(flows_ended(0) > flows_wire_ns(8) + 1000000 && flows_ended(1) > flows_wire_ns(8) + 1000000);
}

static int pe_stalled(void *arg, int pe)
{
    struct ibv_port_attr attr;
    struct plain_port p[2];
    char why[128];

    (void)arg, (void)pe;
    path.timeout = 8;
    path.retry = 2;
    plain_pair(p, 4096, &path);
    plain_equal("stall", plain_emu()->ctl("port h0/mlx5_1:1 stall", why, sizeof(why)), 0);
    plain_equal("ibv_query_port", ibv_query_port(p[1].ctx, 1, &attr), 0);
    plain_equal("port state", attr.state, IBV_PORT_ACTIVE);
    /* It still sends; but nobody ever hears that it was heard. */
    plain_post(&p[1], p[1].qp[0], &p[0], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 8});
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 2, .len = 8});
    plain_done(&p[1], 1, IBV_WC_RETRY_EXC_ERR);
    plain_done(&p[0], 2, IBV_WC_RETRY_EXC_ERR);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void a_stalled_port_is_silent_without_an_event(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=1,ports=2", pe_stalled, 0);
}

/* Without a timer nothing ever ends: the run is given up, and says what stands in the way. */
static int pe_stuck(void *arg, int pe)
{
    struct plain_port p[2];
    char why[128];

    (void)arg, (void)pe;
    path.timeout = 0;
    plain_pair(p, 64 << 10, &path);
    plain_equal("stall", plain_emu()->ctl("port h0/mlx5_1:1 stall", why, sizeof(why)), 0);
    for (uint64_t i = 0; i < 4; i++)
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = i, .len = 64 << 10});
    plain_post(&p[1], p[1].qp[0], &p[0], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 9, .len = 8});
    plain_equal("the run is given up", plain_wait(&p[0]), -1);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void a_deadlock_names_paused_and_stalled_ports(void **state)
{
    (void)state;
    plain_run_gives(-EDEADLK, "nodes=1,ports=2,buffer=64K", pe_stuck, 0);
    if (!strstr(plain_why(), "h0/mlx5_0:1 in state 3: 4 requests unfinished, port paused") ||
        !strstr(plain_why(), "h0/mlx5_1:1 in state 3: 1 requests unfinished, port stalled"))
        fail_msg("%s", plain_why());
}

/* ---- slow ----------------------------------------------------------------------------------------------------------- */

static void a_slow_receiver_fills_the_buffer(void **state)
{
    static const struct flow one[] = {{1, 0, 60, 0}};

    (void)state;
    run("nodes=2,ports=1,cpu=off,buffer=1M,at=0s:slow:h0/mlx5_0:1:0.5", one, 1);
    assert_true(flows_about(flows_ended(0), 2 * flows_wire_ns(60) / 8, 2));
    assert_true(plain_counters(0).queue_peak > FLOW_MIB - 2 * FLOW_FRAME && plain_counters(0).queue_peak <= FLOW_MIB);
    assert_true(flows_about(plain_counters(1).paused_ns, flows_wire_ns(60) / 8, 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(eight_senders_share_a_port_and_lose_nothing, usual_path),
        cmocka_unit_test_setup(what_fits_pauses_nobody, usual_path),
        cmocka_unit_test_setup(equal_seeds_give_equal_runs, usual_path),
        cmocka_unit_test_setup(a_full_buffer_blocks_what_stands_behind, usual_path),
        cmocka_unit_test_setup(tail_drops_are_repaired, usual_path),
        cmocka_unit_test_setup(a_stalled_peer_hurts_nobody_while_there_is_room, usual_path),
        cmocka_unit_test_setup(a_stalled_peer_stops_its_senders_when_there_is_none, usual_path),
        cmocka_unit_test_setup(packets_for_a_port_that_goes_down_are_lost, usual_path),
        cmocka_unit_test_setup(a_flap_under_load_costs_time_only, usual_path),
        cmocka_unit_test_setup(a_stalled_port_is_silent_without_an_event, usual_path),
        cmocka_unit_test_setup(a_deadlock_names_paused_and_stalled_ports, usual_path),
        cmocka_unit_test_setup(a_slow_receiver_fills_the_buffer, usual_path),
    };

    return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
