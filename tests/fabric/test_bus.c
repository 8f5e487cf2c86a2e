/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bus.c - what lies between ports and memory in the emulated fabric: PCIe slots and GPU links, by plain verbs. Their
 * rates count payload, so times are computed from bytes. Called by Meson; next: the emulator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "flows.h"

enum { N = 60 };

#define BYTES ((uint64_t)N * FLOW_LEN)

static void took(int i, uint64_t expected, const char *what)
{
    if (!flows_about(flows_ended(i), expected, 1))
        fail_msg("%s: flow %d: seen %llu ns, expected %llu", what, i, (unsigned long long)flows_ended(i),
                 (unsigned long long)expected);
}

/** Time that so many bytes take at so many Gb/s, and the way. */
static uint64_t at_gbits(uint64_t bytes, uint64_t gbits)
{
    return bytes * 8 / gbits + FLOW_RTT;
}

static int usual_path(void **state)
{
    struct plain_path path = plain_defaults();

    (void)state;
    flows_connect_by(&path);
    return 0;
}

/* Seats 0, 1: the two ports of h0's first card; 2, 3: of its second. 4 to 7: the same of h1. A PE for each GPU. */
#define TWO_CARDS "nodes=2,gpus=2,ports=2,cpu=off"
static const struct flow_seat cards[FLOW_SEATS] = {{0, 0}, {0, 1}, {1, 2}, {1, 3}, {2, 0}, {2, 1}, {3, 2}, {3, 3}};
/* The ports of the first card, opened by the PEs of different GPUs. */
static const struct flow_seat one_card[FLOW_SEATS] = {{0, 0}, {1, 1}, {2, 0}, {3, 1}};

static const struct flow side_by_side[] = {{0, 4, N, 0}, {1, 5, N, 0}};
static const struct flow apart[] = {{0, 4, N, 0}, {2, 6, N, 0}};
static const struct flow together[] = {{0, 4, N, 0}, {2, 5, N, 0}};
static const struct flow both_ways[] = {{0, 4, N, 0}, {1, 5, N, 0}, {4, 0, N, 0}, {5, 1, N, 0}};
static const struct flow two_pes[] = {{0, 2, N, 0}, {1, 3, N, 0}};

static void a_slot_caps_its_ports_together(void **state)
{
    uint64_t wire = flows_wire_ns(BYTES / FLOW_MIB) + flows_wire_ns(1) / 2 + FLOW_RTT;

    (void)state;
    flows_run(TWO_CARDS ",pcie=256G", cards, side_by_side, 2);
    took(0, at_gbits(2 * BYTES, 256), "two ports of one card");
    took(1, at_gbits(2 * BYTES, 256), "two ports of one card");
    flows_run(TWO_CARDS ",pcie=256G", cards, apart, 2);
    took(0, wire, "ports of two cards");
    took(1, wire, "ports of two cards");
    flows_run(TWO_CARDS ",pcie=256G", cards, together, 2);
    took(0, at_gbits(2 * BYTES, 256), "two ports of one card, receiving");
    took(1, at_gbits(2 * BYTES, 256), "two ports of one card, receiving");
    flows_run(TWO_CARDS ",pcie=100G", cards, side_by_side, 1);
    took(0, at_gbits(BYTES, 100), "one port");
    flows_run(TWO_CARDS ",pcie=256G", one_card, two_pes, 2);
    took(0, at_gbits(2 * BYTES, 256), "one card, memory of two GPUs");
    flows_run(TWO_CARDS ",pcie=500G", cards, side_by_side, 2);
    took(1, wire, "a slot that is wide enough");
}

static void directions_do_not_share(void **state)
{
    (void)state;
    flows_run(TWO_CARDS ",pcie=256G", cards, both_ways, 4);
    for (int i = 0; i < 4; i++)
        took(i, at_gbits(2 * BYTES, 256), "both ways at once, slots");
    flows_run(TWO_CARDS ",gpu=256G", cards, both_ways, 4);
    for (int i = 0; i < 4; i++)
        took(i, at_gbits(2 * BYTES, 256), "both ways at once, GPU links");
}

static void a_gpu_link_caps_what_is_its_own(void **state)
{
    (void)state;
    flows_run(TWO_CARDS ",gpu=256G", cards, side_by_side, 2);
    took(0, at_gbits(2 * BYTES, 256), "two ports, one GPU");
    took(1, at_gbits(2 * BYTES, 256), "two ports, one GPU");
    flows_run(TWO_CARDS ",gpu=160G", one_card, two_pes, 2);
    took(0, at_gbits(BYTES, 160), "two ports, two GPUs");
    took(1, at_gbits(BYTES, 160), "two ports, two GPUs");
    flows_run(TWO_CARDS ",gpu=256G", cards, together, 2);
    took(0, at_gbits(2 * BYTES, 256), "two GPUs to one");
    flows_run(TWO_CARDS ",gpu=300G,pcie=200G", cards, side_by_side, 2);
    took(0, at_gbits(2 * BYTES, 200), "the narrower counts");
}

/* A receiving slot that is slow fills the switch's buffer, and that pauses the senders. */
static void a_slow_slot_pauses_senders(void **state)
{
    (void)state;
    flows_run(TWO_CARDS ",pcie=256G,buffer=512K", cards, together, 2);
    took(0, at_gbits(2 * BYTES, 256), "two ports of one card, receiving");
    assert_true(plain_counters(0).pauses > 0 && plain_counters(2).pauses > 0);
    assert_int_equal(plain_counters(0).lost + plain_counters(2).lost, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_slot_caps_its_ports_together, usual_path),
        cmocka_unit_test_setup(directions_do_not_share, usual_path),
        cmocka_unit_test_setup(a_gpu_link_caps_what_is_its_own, usual_path),
        cmocka_unit_test_setup(a_slow_slot_pauses_senders, usual_path),
    };

    return cmocka_run_group_tests_name("bus", tests, NULL, NULL);
}
