/* SPDX-License-Identifier: Apache-2.0 */
/* test_topo_bond.c - bonds of a host, from a tree of files: which of them are one device, and which links count. */
#include "unit.h"

#include "topo.h"
#include "tree.h"

static struct topo_host *host;

static int begin(void **state)
{
    (void)state;
    tree_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    tree_end();
    topo_free(host);
    host = NULL;
    return 0;
}

static void look(void)
{
    topo_free(host);
    host = NULL;
    assert_int_equal(topo_read(tree_root, NULL, &host), 0);
}

/* A bond of the NIC's is one device, with the rate of all its links; one of the kernel's leaves devices as they are. */
static void bonds_are_recognized(void **state)
{
    (void)state;
    tree_nic("mlx5_bond_0", "pci0000:10/0000:10:01.0/0000:11:00.0", 0);
    tree_port("mlx5_bond_0", 1, "4: ACTIVE", "Ethernet", "200 Gb/sec (4X HDR)");
    tree_nic("mlx5_1", "pci0000:10/0000:10:02.0/0000:12:00.0", 0);
    tree_nic("mlx5_2", "pci0000:10/0000:10:02.0/0000:12:00.1", 0);
    tree_slave("ib0", "bond0", true);
    tree_slave("eth9", "bond0", false);
    tree_bond("bond0", "ib0 eth9");
    tree_slave("ib1", "bond1", true);
    tree_slave("ib2", "bond1", true);
    tree_bond("bond1", "ib1 ib2");
    look();
    assert_string_equal(host->port[0].bond, "bond0");
    assert_int_equal(host->port[0].wires, 2);
    assert_true(host->port[0].rate_bits == UINT64_C(400000000000));
    assert_string_equal(host->port[1].bond, "");
    assert_string_equal(host->port[2].bond, "");
    assert_int_equal(host->port[1].card, host->port[2].card);
    assert_true(host->port[0].card != host->port[1].card);
    assert_int_equal(topo_wires(tree_root, "mlx5_bond_0"), 2);
    assert_int_equal(topo_wires(tree_root, "mlx5_1"), 0);
    assert_int_equal(topo_wires(tree_root, "mlx5_9"), 0);
}

/* Links that are down, or wait for another to fail, carry nothing. */
static void links_of_a_bond_count_while_they_carry_something(void **state)
{
    static const struct {
        const char *first, *second, *mode;
        unsigned wires, gbits;
    } cases[] = {{"up", "up", "802.3ad 4", 2, 400},
                 {"up", "down", "802.3ad 4", 1, 200},
                 {"up", "unknown", "balance-xor 2", 2, 400},
                 {"up", "up", "active-backup 1", 1, 200},
                 {"down", "down", "802.3ad 4", 0, 100}};
    (void)state;
    tree_nic("mlx5_bond_0", "pci0000:10/0000:10:01.0/0000:11:00.0", 0);
    tree_port("mlx5_bond_0", 1, "4: ACTIVE", "Ethernet", "100 Gb/sec (4X HDR)");
    tree_slave("ib0", "bond0", true);
    tree_slave("eth9", "bond0", false);
    tree_bond("bond0", "ib0 eth9");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tree_file("sys/class/net/ib0", "operstate", "%s\n", cases[i].first);
        tree_file("sys/class/net/eth9", "operstate", "%s\n", cases[i].second);
        tree_file("sys/class/net/bond0/bonding", "mode", "%s\n", cases[i].mode);
        look();
        assert_int_equal(host->port[0].wires, cases[i].wires);
        assert_true(host->port[0].rate_bits == cases[i].gbits * UINT64_C(1000000000));
        assert_string_equal(host->port[0].bond, "bond0");
        assert_int_equal(topo_wires(tree_root, "mlx5_bond_0"), cases[i].wires);
    }
}

#define TREE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE(bonds_are_recognized),
        TREE(links_of_a_bond_count_while_they_carry_something),
    };
    return cmocka_run_group_tests_name("topo_bond", tests, NULL, NULL);
}
