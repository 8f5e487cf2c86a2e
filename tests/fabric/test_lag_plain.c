/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lag_plain.c - a device that is a bond, by plain verbs: what mlx5's direct verbs say and do, and on which wire queue pairs send.
 * Manual pages: mlx5dv_query_qp_lag_port(3), mlx5dv_modify_qp_lag_port(3), mlx5dv_modify_qp_udp_sport(3).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "plain.h"

enum { PAGE = 4096, LEN = 1 << 20, MANY = 8 };

static struct plain_port p[2];

static int (*set_wire)(struct ibv_qp *, uint8_t);
static int (*get_wire)(struct ibv_qp *, uint8_t *, uint8_t *);
static int (*set_sport)(struct ibv_qp *, uint16_t);

static bool find(void)
{
    memset(p, 0, sizeof(p));
    *(void **)&set_wire = dlsym(RTLD_DEFAULT, "mlx5dv_modify_qp_lag_port");
    *(void **)&get_wire = dlsym(RTLD_DEFAULT, "mlx5dv_query_qp_lag_port");
    *(void **)&set_sport = dlsym(RTLD_DEFAULT, "mlx5dv_modify_qp_udp_sport");
    return plain_check(set_wire && get_wire && set_sport, "a function is missing") && plain_pair(p, LEN, NULL);
}

static void done(void)
{
    plain_close(&p[0]);
    plain_close(&p[1]);
}

static void expect_wire(struct ibv_qp *qp, int asked, int active)
{
    uint8_t of[2] = {0, 0};

    if (!plain_equal("mlx5dv_query_qp_lag_port", get_wire(qp, &of[0], &of[1]), 0))
        return;
    if (asked)
        plain_equal("the wire that was asked for", of[0], asked);
    plain_equal("the wire in use", of[1], active);
}

/* One host, two devices: the second is the receiver. */
static int pe_chooses(void *arg, int pe)
{
    (void)arg;
    (void)pe;
    if (!find())
        return -1;
    for (int wire = 1; wire <= 2; wire++) {
        plain_equal("choosing a wire", set_wire(p[0].qp[0], (uint8_t)wire), 0);
        expect_wire(p[0].qp[0], wire, wire);
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = (size_t)wire * 4096});
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
    }
    plain_equal("wire 0", set_wire(p[0].qp[0], 0), EINVAL);
    plain_equal("a wire there is not", set_wire(p[0].qp[0], 3), EINVAL);
    expect_wire(p[0].qp[0], 2, 2);
    done();
    return 0;
}

static void a_queue_pair_sends_on_the_wire_it_is_told(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=1,ports=2,wires=2", pe_chooses, 0);
    struct emu_sim_port from = plain_counters(0), to = plain_counters(1);

    assert_int_equal(from.wires, 2);
    assert_int_equal(from.wire_payload[0][0], 4096);
    assert_int_equal(from.wire_payload[1][0], 8192);
    /* affinity: they arrive on the wire of the same number */
    assert_int_equal(to.wire_payload[0][1], 4096);
    assert_int_equal(to.wire_payload[1][1], 8192);
}

/* "If the QP state is modified later, the port num may be implicitly re-configured." Here it is. */
static int pe_changes_state(void *arg, int pe)
{
    uint8_t first[2] = {0, 0};

    (void)arg;
    (void)pe;
    if (!find())
        return -1;
    plain_equal("query", get_wire(p[0].qp[0], &first[0], &first[1]), 0);
    plain_equal("choosing the other wire", set_wire(p[0].qp[0], (uint8_t)(3 - first[1])), 0);
    expect_wire(p[0].qp[0], 3 - first[1], 3 - first[1]);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
    plain_equal("to SQD", ibv_modify_qp(p[0].qp[0], &attr, IBV_QP_STATE), 0);
    plain_equal("choosing in SQD", set_wire(p[0].qp[0], 1), EINVAL);
    plain_equal("a source port in SQD", set_sport(p[0].qp[0], 50000), EINVAL);
    attr.qp_state = IBV_QPS_RTS;
    plain_equal("to RTS", ibv_modify_qp(p[0].qp[0], &attr, IBV_QP_STATE), 0);
    expect_wire(p[0].qp[0], first[0], first[1]);
    done();
    return 0;
}

static void a_change_of_state_takes_the_choice_back(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=1,ports=2,wires=2", pe_changes_state, 0);
}

static int pe_is_refused(void *arg, int pe)
{
    uint8_t of[2] = {7, 7};

    (void)arg;
    (void)pe;
    if (!find())
        return -1;
    plain_equal("choosing", set_wire(p[0].qp[0], 1), EOPNOTSUPP);
    plain_equal("asking", get_wire(p[0].qp[0], &of[0], &of[1]), EOPNOTSUPP);
    plain_check(of[0] == 7 && of[1] == 7, "outputs are touched");
    plain_equal("a source port", set_sport(p[0].qp[0], 50000), 0);
    done();
    return 0;
}

static void no_bond_and_a_hash_take_no_choice(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=1,ports=2", pe_is_refused, 0);
    plain_run_gives(0, "nodes=1,ports=2,wires=2,lag=hash", pe_is_refused, 0);
}

/* Sends 4 KiB by each of 64 source ports. */
static int pe_walks_ports(void *arg, int pe)
{
    (void)arg;
    (void)pe;
    if (!find())
        return -1;
    for (int i = 0; i < 64; i++) {
        plain_equal("a source port", set_sport(p[0].qp[0], (uint16_t)(0xc000 + i)), 0);
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 4096});
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
    }
    done();
    return 0;
}

static void expect_spread(const struct emu_sim_port *port, int direction)
{
    uint64_t all = port->wire_payload[0][direction] + port->wire_payload[1][direction];

    assert_int_equal(all, 64 * 4096);
    assert_in_range(port->wire_payload[0][direction], all / 4, all * 3 / 4);
}

static void source_ports_are_spread_at_both_ends(void **state)
{
    struct emu_sim_port from, to;

    (void)state;
    plain_run_gives(0, "nodes=1,ports=2,wires=2,lag=hash", pe_walks_ports, 0);
    from = plain_counters(0);
    to = plain_counters(1);
    expect_spread(&from, 0);
    expect_spread(&to, 1);
    /* The switch's hash is another one. */
    assert_true(from.wire_payload[0][0] != to.wire_payload[0][1]);
    plain_run_gives(0, "nodes=1,ports=2,wires=2,lag=mixed", pe_walks_ports, 0);
    from = plain_counters(0);
    to = plain_counters(1);
    assert_true(from.wire_payload[0][0] == 0 || from.wire_payload[1][0] == 0); /* by its number */
    expect_spread(&to, 1);
}

/* A wire goes down and comes back; the port and the queue pair do not notice, packets on their way are lost and sent again. */
static int pe_loses_a_wire(void *arg, int pe)
{
    struct ibv_port_attr port;
    char why[256];

    (void)arg;
    (void)pe;
    if (!find())
        return -1;
    plain_equal("choosing a wire", set_wire(p[0].qp[0], 2), 0);
    plain_equal("down", plain_emu()->ctl("port h0/mlx5_0:1.2 down", why, sizeof(why)), 0);
    expect_wire(p[0].qp[0], 2, 1);
    plain_equal("ibv_query_port", ibv_query_port(p[0].ctx, 1, &port), 0);
    plain_equal("the port's state", port.state, IBV_PORT_ACTIVE);
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 4096});
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    plain_equal("up", plain_emu()->ctl("port h0/mlx5_0:1.2 up", why, sizeof(why)), 0);
    expect_wire(p[0].qp[0], 2, 2);
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 2, .len = LEN});
    plain_equal("down again", plain_emu()->ctl("port h0/mlx5_0:1.2 down", why, sizeof(why)), 0);
    plain_done(&p[0], 2, IBV_WC_SUCCESS);
    plain_equal("both down", plain_emu()->ctl("port h0/mlx5_0:1 down", why, sizeof(why)), 0);
    plain_equal("ibv_query_port", ibv_query_port(p[0].ctx, 1, &port), 0);
    plain_equal("the port's state", port.state, IBV_PORT_DOWN);
    plain_check(plain_emu()->ctl("port h0/mlx5_0:1.3 down", why, sizeof(why)) == -EINVAL, "a wire there is not");
    done();
    return 0;
}

static void a_wire_may_go_and_come(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=1,ports=2,wires=2", pe_loses_a_wire, 0);
}

/* Two queue pairs on one wire take as long as one; on two wires half as long. */
static uint64_t took[2];

static int pe_races(void *arg, int pe)
{
    (void)arg;
    (void)pe;
    if (!find())
        return -1;
    struct ibv_qp *a = plain_qp(&p[0]), *b = plain_qp(&p[1]);
    if (!a || !b || !plain_connect(&p[0], a, &p[1], b, NULL))
        return -1;
    for (int wires = 1; wires <= 2; wires++) {
        plain_equal("a wire", set_wire(p[0].qp[0], 1), 0);
        plain_equal("a wire", set_wire(a, (uint8_t)wires), 0);
        uint64_t start = plain_emu()->now();
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = LEN});
        plain_post(&p[0], a, &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = LEN});
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
        plain_done(&p[0], 1, IBV_WC_SUCCESS);
        took[wires - 1] = plain_emu()->now() - start;
    }
    done();
    return 0;
}

static void each_wire_has_the_whole_rate(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=1,ports=2,wires=2,rate=100G,cpu=off", pe_races, 0);
    assert_in_range(took[0], took[1] * 19 / 10, took[1] * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_pair_sends_on_the_wire_it_is_told),
        cmocka_unit_test(a_change_of_state_takes_the_choice_back),
        cmocka_unit_test(no_bond_and_a_hash_take_no_choice),
        cmocka_unit_test(source_ports_are_spread_at_both_ends),
        cmocka_unit_test(a_wire_may_go_and_come),
        cmocka_unit_test(each_wire_has_the_whole_rate),
    };

    return cmocka_run_group_tests_name("lag plain", tests, NULL, NULL);
}
