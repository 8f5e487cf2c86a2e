/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_lag.c - rails that are bonds: how many lanes they get, which wire and source port each is told, and what is said. Over
 * a fake device that can be one (fake_bond()); what a host tells of its bonds is in a tree of files.
 */
#include "open_rig.h"

#include "tree.h"

static struct braid *b;

/* Opens ports as the setting says and connects to itself. */
static void connect(const char *ports, const char *setting)
{
    assert_int_equal(open_with(ports, setting, &b), 0);
    assert_int_equal(connect_to_self(b), 0);
}

static int lanes(void)
{
    return braid_lane_count(braid_channel_at(b, 0), 0);
}

static struct braid_lane_stats lane(int k)
{
    struct braid_lane_stats out = {.size = sizeof(out)};
    assert_int_equal(braid_lane_stats_at(braid_channel_at(b, 0), 0, k, &out), 0);
    return out;
}

/* The i-th QP that is left, in the order of their making. */
static struct verbs_qp *qp_at(unsigned i)
{
    for (unsigned k = 0;; k++) {
        struct verbs_qp *qp = fake_qp(k);
        if (qp && i-- == 0)
            return qp;
        assert_true(k < 64);
    }
}

static void expect_ways(unsigned first, unsigned count, unsigned wires)
{
    for (unsigned k = first; k < first + count; k++) {
        const struct verbs_path *path = fake_path(qp_at(k));
        struct braid_lane_stats s = lane((int)k);
        assert_int_equal(fake_wire(qp_at(k)), wires ? (k - first) % wires + 1 : 0);
        assert_int_equal(s.wire, fake_wire(qp_at(k)));
        assert_int_equal(s.source_port, fake_sport(qp_at(k)));
        assert_in_range(s.source_port, 0xc001, 0xffff);
        assert_int_equal(path->flow_label, s.source_port & 0x3fff);
        for (unsigned i = 0; i < k; i++)
            assert_int_not_equal(lane((int)i).source_port, s.source_port);
    }
}

static void a_bond_has_a_lane_for_each_wire(void **state)
{
    struct braid_rail_stats rail;
    (void)state;
    fake_bond(2, 0);
    connect("fake0", "log=info");
    assert_int_equal(lanes(), 2);
    expect_ways(0, 2, 2);
    assert_int_equal(braid_rail_stats_at(b, 0, &rail), 0);
    /* The port says one wire's rate. */
    assert_true(lane(0).line_bits > rail.rate_bits / 2 * 9 / 10 && lane(0).line_bits <= rail.rate_bits / 2);
    assert_true(lane(1).put_bits == lane(1).line_bits);
    assert_non_null(strstr(logged, "rail 0 (fake0:1) is a bond of 2 wires (its device says 2, the host 0"));
    assert_non_null(strstr(logged, "2 lanes to each peer; each lane is given a wire"));
    braid_close(b);
}

static void without_a_choice_source_ports_spread_more_lanes(void **state)
{
    (void)state;
    fake_bond(2, -EOPNOTSUPP);
    connect("fake0", "log=info");
    assert_int_equal(lanes(), 8);
    expect_ways(0, 8, 0);
    assert_non_null(strstr(logged, "8 lanes to each peer; lanes are spread over wires by source ports"));
    braid_close(b);
}

static void settings_say_how_many_lanes(void **state)
{
    static const struct {
        unsigned wires;
        const char *setting;
        int lanes;
    } cases[] = {
        {2, "lag=off", 1},  {2, "rails=1", 1},  {2, "lag=1", 1},     {2, "spread=3", 6},
        {1, "spread=3", 3}, {0, "spread=3", 3}, {1, "lag=2", 8},     {0, "lag=auto", 1},
        {4, "lag=2", 2},    {4, "lag=auto", 4}, {8, "spread=8", 16},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_bond(cases[i].wires, 0);
        connect("fake0", cases[i].setting);
        if (lanes() != cases[i].lanes)
            fail_msg("%u wires, %s: %d lanes", cases[i].wires, cases[i].setting, lanes());
        braid_close(b);
    }
    assert_int_equal(open_with("fake0", "lag=9", &b), -EINVAL);
    assert_int_equal(open_with("fake0", "spread=0", &b), -EINVAL);
}

/* A device that cannot be asked, on a host that knows its bond, or knows that one of its links is down. */
static void the_host_tells_of_bonds(void **state)
{
    char sysroot[96];
    (void)state;
    tree_begin();
    tree_nic("fake0", "pci0000:10/0000:10:01.0/0000:11:00.0", 0);
    tree_slave("ib0", "bond0", true);
    tree_slave("eth9", "bond0", false);
    tree_bond("bond0", "ib0 eth9");
    snprintf(sysroot, sizeof(sysroot), "sysroot=%s", tree_root);
    connect("fake0", sysroot);
    assert_int_equal(lanes(), 8);
    braid_close(b);
    fake_bond(2, 0);
    connect("fake0", sysroot);
    assert_int_equal(lanes(), 2);
    braid_close(b);
    tree_file("sys/class/net/eth9", "operstate", "down\n");
    connect("fake0", sysroot);
    assert_int_equal(lanes(), 1);
    braid_close(b);
    fake_bond(1, 0); /* it knows that it is none */
    connect("fake0", sysroot);
    assert_int_equal(lanes(), 1);
    braid_close(b);
    tree_end();
}

/* As if there were no bond: no label, no wire, no trial. */
static void lag_off_leaves_queue_pairs_alone(void **state)
{
    (void)state;
    fake_bond(2, 0);
    connect("fake0", "lag=off");
    assert_int_equal(fake_calls(FAKE_QP), 1);
    assert_int_equal(fake_path(fake_qp(0))->flow_label, 0);
    assert_true(fake_wire(fake_qp(0)) == 0 && fake_sport(fake_qp(0)) == 0);
    assert_true(lane(0).wire == 0 && lane(0).source_port == 0);
    braid_close(b);
    fake_bond(1, 0);
    connect("fake0", NULL);
    assert_int_equal(fake_path(qp_at(0))->flow_label, 0);
    braid_close(b);
}

static void all_bonds_together_have_no_more_lanes_than_there_are(void **state)
{
    (void)state;
    fake_bond(2, 0);
    connect("fake0,fake1,fake2", "log=info");
    assert_int_equal(lanes(), 6);
    expect_ways(0, 2, 2);
    expect_ways(2, 2, 2);
    braid_close(b);
    fake_bond(8, 0);
    connect("fake0,fake1,fake2", "log=info");
    assert_int_equal(lanes(), 16);
    assert_non_null(strstr(logged, "16 lanes to each peer are too many for 3 rails: 8 are left out"));
    braid_close(b);
}

static void lanes_out_of_range_are_refused(void **state)
{
    struct braid_lane_stats out = {.size = sizeof(out)};
    struct braid_mem *mem;
    (void)state;
    connect("fake0", NULL);
    const struct braid_channel *ch = braid_channel_at(b, 0);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0); /* what lanes are there for */
    assert_int_equal(braid_lane_stats_at(ch, 0, 0, NULL), -EINVAL);
    assert_int_equal(braid_lane_stats_at(ch, 0, 1, &out), -EINVAL);
    assert_int_equal(braid_lane_stats_at(ch, 0, -1, &out), -EINVAL);
    assert_int_equal(braid_lane_stats_at(ch, 1, 0, &out), -EINVAL);
    assert_int_equal(braid_lane_stats_at(ch, -1, 0, &out), -EINVAL);
    out.size--;
    assert_int_equal(braid_lane_stats_at(ch, 0, 0, &out), -EINVAL);
    braid_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(a_bond_has_a_lane_for_each_wire),  CLEAN(without_a_choice_source_ports_spread_more_lanes),
        CLEAN(settings_say_how_many_lanes),      CLEAN(the_host_tells_of_bonds),
        CLEAN(lag_off_leaves_queue_pairs_alone), CLEAN(all_bonds_together_have_no_more_lanes_than_there_are),
        CLEAN(lanes_out_of_range_are_refused),
    };
    return cmocka_run_group_tests_name("api_lag", tests, NULL, NULL);
}
