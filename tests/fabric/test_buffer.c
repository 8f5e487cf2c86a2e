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

#include "plain.h"

enum { FLOWS = 12, PES = 12, LEN = 128 << 10, FRAME = 4096 + 82, FRAME_NS = 167, RTT = 5000, MIB = 1 << 20 };

/** n WRITEs of LEN bytes, all posted at the start. */
struct flow {
    int from, to, n;
    bool fails; /* with retries exceeded */
};

static struct flow flows[FLOWS];
static int n_flows;
static struct plain_path path;
static struct plain_port port[PES];
static struct ibv_qp *qp[FLOWS];
static uint64_t finished[FLOWS]; /* ns after the start */

/** Time that n MiB take on a 200 Gb/s port, ns. */
static uint64_t wire_ns(uint64_t mib)
{
    return mib * 256 * FRAME_NS;
}

static bool about(uint64_t seen, uint64_t expected, unsigned percent)
{
    return seen >= expected - expected * percent / 100 && seen <= expected + expected * percent / 100;
}

/* ---- flows ---------------------------------------------------------------------------------------------------------- */

static void connect_all(void)
{
    for (int i = 0; i < n_flows; i++) {
        struct plain_port *a = &port[flows[i].from], *b = &port[flows[i].to];
        struct ibv_qp *to = plain_qp(b);

        qp[i] = plain_qp(a);
        if (qp[i] && to)
            plain_connect(a, qp[i], b, to, &path);
    }
}

/** Posts this PE's flows, each its LEN bytes of the buffer, and waits for their ends. */
static void send_all(int pe)
{
    struct plain_port *p = &port[pe];
    uint64_t start = plain_emu()->now();
    int due = 0, status = 0, left[FLOWS];

    for (int i = 0; i < n_flows; i++) {
        left[i] = flows[i].n;
        if (flows[i].from != pe)
            continue;
        memset(p->buf + (size_t)i * LEN, i + 1, LEN);
        for (int k = 0; k < flows[i].n; k++, due++)
            plain_post(p, qp[i], &port[flows[i].to],
                       (struct plain_wr){.op = IBV_WR_RDMA_WRITE,
                                         .id = (uint64_t)i,
                                         .local = (size_t)i * LEN,
                                         .remote = (size_t)i * LEN,
                                         .len = LEN});
    }
    while (due > 0 && (status = plain_wait(p)) >= 0) {
        int i = (int)p->wc.wr_id;

        due--;
        if (!flows[i].fails)
            plain_equal("status", status, IBV_WC_SUCCESS);
        else if (left[i] == flows[i].n)
            plain_equal("status", status, IBV_WC_RETRY_EXC_ERR);
        if (--left[i] == 0)
            finished[i] = plain_emu()->now() - start;
    }
    plain_check(status >= 0, "the run was given up");
}

static void look_at_all(int pe)
{
    for (int i = 0; i < n_flows; i++) {
        const unsigned char *b = port[pe].buf + (size_t)i * LEN;

        if (flows[i].to == pe && !flows[i].fails)
            plain_check(b[0] == i + 1 && memcmp(b, b + 1, LEN - 1) == 0, "flow %d: wrong bytes", i);
    }
}

static int pe_flows(void *arg, int pe)
{
    (void)arg;
    if (plain_open(&port[pe], 0, (size_t)FLOWS * LEN, 1024) && plain_emu()->barrier() == 0) {
        if (pe == 0)
            connect_all();
        plain_emu()->barrier();
        send_all(pe);
        plain_emu()->barrier();
        look_at_all(pe);
    }
    plain_emu()->barrier(); /* nobody closes what others still look for */
    plain_close(&port[pe]);
    return 0;
}

static void run_flows(const char *spec, const struct flow *list, int n)
{
    assert_true(n <= FLOWS);
    memcpy(flows, list, (size_t)n * sizeof(*list));
    memset(port, 0, sizeof(port));
    memset(finished, 0, sizeof(finished));
    n_flows = n;
    plain_run_gives(0, spec, pe_flows, 0);
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
    uint64_t together = wire_ns(60), lost = 0, pauses = 0;

    (void)state;
    run_flows("nodes=9,ports=1,cpu=off", eight_to_one, 8);
    for (int i = 0; i < 8; i++) {
        if (!about(finished[i], together, 2))
            fail_msg("sender %d: seen %llu ns, expected %llu", i, (unsigned long long)finished[i],
                     (unsigned long long)together);
    }
    for (int i = 0; i < 9; i++) {
        lost += plain_counters(i).lost + plain_counters(i).dropped;
        pauses += plain_counters(i).pauses;
    }
    assert_int_equal(lost, 0);
    assert_true(pauses > 0);
    assert_int_equal(plain_counters(0).pauses, 0); /* it only sends acknowledgements */
    assert_true(plain_counters(0).queue_peak <= 16 * MIB && plain_counters(0).queue_peak > 16 * MIB - 2 * FRAME);
    assert_true(plain_counters(3).buffer_peak == plain_counters(0).queue_peak);
}

/* Two senders of 4 MiB each: half of it has to wait, and there is room for it. */
static void what_fits_pauses_nobody(void **state)
{
    static const struct flow two[] = {{1, 0, 32, 0}, {2, 0, 32, 0}};

    (void)state;
    run_flows("nodes=3,ports=1,cpu=off", two, 2);
    assert_true(about(finished[0], wire_ns(8) + RTT, 1) && about(finished[1], wire_ns(8) + RTT, 1));
    assert_true(about(plain_counters(0).queue_peak, 4 * MIB + 4 * MIB / 50, 3));
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

        run_flows(specs[i], eight_to_one, 8);
        first = plain_trace();
        run_flows(specs[i], eight_to_one, 8);
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
    run_flows("nodes=11,ports=1,cpu=off,buffer=1G", crowd_and_bystanders, 9);
    assert_true(about(finished[1], wire_ns(5) + RTT, 1)); /* in turn with as many to PE 0 */
    alone = finished[1];
    run_flows("nodes=11,ports=1,cpu=off,buffer=128K", crowd_and_bystanders, 9);
    print_message("# bystander of a paused port: %.2f times as long\n", (double)finished[1] / (double)alone);
    assert_true(finished[1] > 3 * alone);
    assert_true(about(finished[8], wire_ns(5) + RTT, 1)); /* a port that is not paused is not hurt */
    assert_int_equal(plain_counters(10).pauses, 0);
    assert_true(plain_counters(1).paused_ns > wire_ns(7));
    assert_true(plain_counters(1).buffer_peak <= (128 << 10) + 10 * FRAME); /* one packet passes through an idle port */
}

static void tail_drops_are_repaired(void **state)
{
    uint64_t lost = 0;

    (void)state;
    path.timeout = 8; /* 1 ms */
    run_flows("nodes=9,ports=1,cpu=off,buffer=512K,loss=tail", eight_to_one, 8);
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
    run_flows(STALLED, one_stalled, 3);
    assert_true(finished[0] > 4500000 && finished[0] < 5500000); /* the stall is over, and nothing was lost */
    assert_true(about(finished[1], wire_ns(8) + RTT, 1));        /* in turn with as many for the stalled one */
    assert_int_equal(plain_counters(0).pauses, 0);
    assert_true(about(plain_counters(1).queue_peak, 4 * MIB + 4 * MIB / 50, 1));
}

static void a_stalled_peer_stops_its_senders_when_there_is_none(void **state)
{
    (void)state;
    run_flows(STALLED ",buffer=256K", one_stalled, 3);
    assert_true(finished[0] > 4500000);
    assert_true(finished[1] > 4500000 && finished[1] < 6000000); /* stuck behind the other */
    assert_true(finished[2] < wire_ns(3));                       /* from another port */
    assert_true(plain_counters(0).paused_ns > 4500000);
}

static void packets_for_a_port_that_goes_down_are_lost(void **state)
{
    static const struct flow list[] = {{0, 1, 32, true}, {0, 2, 32, 0}};

    (void)state;
    path.timeout = 8;
    path.retry = 1;
    /* What was held for it goes with it, and the sender is free again long before 5 ms. */
    run_flows("nodes=4,ports=1,cpu=off,buffer=256K,at=0s:stall:h1/mlx5_0:1,at=600us:down:h1/mlx5_0:1", list, 2);
    assert_true(finished[1] < 5000000);
    assert_true(plain_counters(0).lost > 60);
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

/* ---- slow ----------------------------------------------------------------------------------------------------------- */

static void a_slow_receiver_fills_the_buffer(void **state)
{
    static const struct flow one[] = {{1, 0, 60, 0}};

    (void)state;
    run_flows("nodes=2,ports=1,cpu=off,buffer=1M,at=0s:slow:h0/mlx5_0:1:0.5", one, 1);
    assert_true(about(finished[0], 2 * wire_ns(60) / 8, 2));
    assert_true(plain_counters(0).queue_peak > MIB - 2 * FRAME && plain_counters(0).queue_peak <= MIB);
    assert_true(about(plain_counters(1).paused_ns, wire_ns(60) / 8, 30));
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
        cmocka_unit_test_setup(a_stalled_port_is_silent_without_an_event, usual_path),
        cmocka_unit_test_setup(a_slow_receiver_fills_the_buffer, usual_path),
    };

    return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
