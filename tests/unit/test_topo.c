/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_topo.c - hosts as sysfs shows them, read by src/topo and assigned by src/plan: the shapes that the field has, and what is
 * wrong with ports of some of them. Trees are small and made here.
 */
#include "unit.h"

#include "plan_ports.h"
#include "topo.h"
#include "tree.h"

#include <errno.h>
#include <stdbool.h>

static struct topo_host *host;
static struct plan_ports_out plan;
static const char *excluded, *named;

static int begin(void **state)
{
    (void)state;
    tree_begin();
    excluded = named = "";
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

/* Function `fn` of device `slot` below port `down` of switch `sw` below a root port of bridge `bus`. */
static const char *below(unsigned bus, unsigned sw, unsigned down, unsigned slot, unsigned fn)
{
    static char text[8][160];
    static unsigned next;
    char *out = text[next++ % 8];
    unsigned up = bus + 1 + sw * 8;
    snprintf(out, sizeof(text[0]), "pci0000:%02x/0000:%02x:%02x.0/0000:%02x:00.0/0000:%02x:%02x.0/0000:%02x:%02x.%x",
             bus, bus, sw + 1, up, up + 1, down, up + 2 + down, slot, fn);
    return out;
}

/* Reads and plans. */
static void look(void)
{
    struct portlist only = {.count = 1};
    snprintf(only.item[0].dev, sizeof(only.item[0].dev), "%s", *named ? named : excluded);
    only.item[0].every = true;
    topo_free(host);
    host = NULL;
    assert_int_equal(topo_read(tree_root, NULL, &host), 0);
    struct plan_ports_rule rule = {.only = *named || *excluded ? &only : NULL, .all_but = !*named};
    assert_int_equal(plan_ports(host, &rule, &plan), 0);
}

/* What GPU g uses: "mlx5_0:1,mlx5_1:1 PIX". */
static void uses(unsigned g, const char *expected)
{
    char text[512] = "";
    for (unsigned k = 0; k < plan.gpu[g].count; k++) {
        const struct topo_port *p = &host->port[plan.gpu[g].port[k]];
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%u", k ? "," : "", p->dev, p->port);
    }
    snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", topo_near_name(plan.gpu[g].near));
    assert_string_equal(text, expected);
}

static enum plan_port_why why(const char *dev)
{
    for (unsigned i = 0; i < host->ports; i++) {
        if (strcmp(host->port[i].dev, dev) == 0)
            return plan.why[i];
    }
    fail_msg("no %s", dev);
    return PLAN_PORT_USED;
}

static void a_port_is_read_whole(void **state)
{
    (void)state;
    tree_nic("mlx5_0", below(0x10, 0, 1, 0, 0), 1);
    tree_port("mlx5_0", 2, "1: DOWN", "Ethernet", "2.5 Gb/sec (1X SDR)");
    look();
    assert_int_equal(host->ports, 2);
    const struct topo_port *p = host->port;
    assert_string_equal(p[0].dev, "mlx5_0");
    assert_int_equal(p[0].port, 1);
    assert_true(p[0].active && p[0].channel_adapter && p[0].link == TOPO_LINK_IB);
    assert_true(p[0].rate_bits == UINT64_C(400000000000));
    assert_string_equal(p[0].netdev, "ib0");
    assert_int_equal(host->pci[p[0].pci].numa, 1);
    unsigned hops = 1;
    for (int at = p[0].pci; host->pci[at].parent >= 0; at = host->pci[at].parent)
        hops++;
    assert_int_equal(hops, 5); /* host bridge, root port, switch up, switch down, function */
    char pci[PCI_TEXT_SIZE];
    pci_text(host->pci[p[0].pci].number, pci);
    assert_string_equal(pci, "0000:14:00.0");
    assert_int_equal(p[1].port, 2);
    assert_string_equal(p[1].state, "DOWN");
    assert_true(!p[1].active && p[1].link == TOPO_LINK_ETHERNET && p[1].rate_bits == UINT64_C(2500000000));
}

static void a_host_without_rdma_has_no_ports(void **state)
{
    (void)state;
    look();
    assert_int_equal(host->ports, 0);
    assert_int_equal(plan.gpu[0].count, 0);
}

/* Nothing in a file may break the reader. */
static void nonsense_counts_as_not_told(void **state)
{
    (void)state;
    tree_nic("mlx5_0", below(0x10, 0, 1, 0, 0), -1);
    tree_port("mlx5_0", 1, "", "InfiniBand\nEthernet", "-5 Gb/sec");
    tree_port("mlx5_0", 3, "4: ACTIVE_DEFER and much more than any state has", "", "1e300 Gb/sec (4X)");
    tree_folder("sys/class/infiniband/mlx5_0/ports/x");
    tree_folder("sys/class/infiniband/mlx5_0/ports/256");
    tree_folder("sys/class/infiniband/none");
    tree_folder("sys/class/infiniband/a2345678901234567890123456789012345678901234567890123456789012345/ports/1");
    look();
    assert_int_equal(host->ports, 2);
    assert_true(!host->port[0].active && host->port[0].rate_bits == 0 && host->port[0].link == TOPO_LINK_IB);
    assert_true(!host->port[1].active && host->port[1].rate_bits == 0 && host->port[1].link == TOPO_LINK_OTHER);
    assert_int_equal(host->pci[host->port[0].pci].numa, -1);
}

static void pci_addresses_are_read(void **state)
{
    (void)state;
    static const char *const good[] = {"0000:3b:00.0", "10000:e1:1f.7", "FFFF:FF:1f.7", "pci0000:3a"};
    static const char *const bad[] = {"",
                                      "3b:00.0",
                                      "0000:3b:00",
                                      "0000:3b:20.0",
                                      "0000:3b:00.8",
                                      "0000:3b:00.0x",
                                      "pci0000:3a:00.0",
                                      "0000;3b:00.0",
                                      "000g:3b:00.0",
                                      "pci"};
    uint64_t n;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(pci_number(good[i], &n));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(pci_number(bad[i], &n));
    char text[PCI_TEXT_SIZE];
    assert_true(pci_number("10000:e1:1f.7", &n));
    pci_text(n, text);
    assert_string_equal(text, "10000:e1:1f.7");
    uint64_t bridge;
    assert_true(pci_number("pci0000:3a", &bridge) && pci_number("0000:3a:00.0", &n) && bridge != n);
}

static void classes_are_those_of_the_tree(void **state)
{
    (void)state;
    tree_gpu(below(0x10, 0, 0, 0, 0), 0);
    tree_nic("same", below(0x10, 0, 1, 0, 0), 0); /* same switch */
    tree_nic("deep", "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:05.0/0000:20:00.0/0000:21:00.0/0000:22:00.0", 0);
    tree_nic("root", "pci0000:10/0000:10:05.0/0000:30:00.0", 0);
    tree_nic("node", "pci0000:80/0000:80:01.0/0000:81:00.0", 0);
    tree_nic("far", "pci0000:c0/0000:c0:01.0/0000:c1:00.0", 1);
    tree_nic("soft", NULL, 0);
    look();
    static const struct {
        const char *dev;
        enum topo_near near;
    } cases[] = {{"same", TOPO_NEAR_PIX},  {"deep", TOPO_NEAR_PXB}, {"root", TOPO_NEAR_PHB},
                 {"node", TOPO_NEAR_NODE}, {"far", TOPO_NEAR_SYS},  {"soft", TOPO_NEAR_SYS}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned p = 0; p < host->ports; p++) {
            if (strcmp(host->port[p].dev, cases[i].dev) != 0)
                continue;
            assert_int_equal(topo_tree_near(host, host->gpu[0].pci, host->port[p].pci), cases[i].near);
            assert_int_equal(topo_tree_near(host, host->port[p].pci, host->gpu[0].pci), cases[i].near);
        }
    }
    uses(0, "same:1 PIX");
    assert_int_equal(why("soft"), PLAN_PORT_SOFTWARE);
    assert_int_equal(why("root"), PLAN_PORT_FAR);
}

/* Eight GPUs, each with ports of its own below its switch; names do not follow the tree: mlx5_1 is not mlx5_10. */
static void one_card_a_gpu(void **state)
{
    (void)state;
    char dev[32], expected[64];
    for (unsigned g = 0; g < 8; g++) {
        tree_gpu(below(0x10 + g * 0x18, 0, 0, 0, 0), g / 4);
        snprintf(dev, sizeof(dev), "mlx5_%u", (g * 3 + 1) % 11);
        tree_nic(dev, below(0x10 + g * 0x18, 0, 1, 0, 0), g / 4);
    }
    look();
    assert_int_equal(host->gpus, 8);
    for (unsigned g = 0; g < 8; g++) {
        snprintf(expected, sizeof(expected), "mlx5_%u:1 PIX", (g * 3 + 1) % 11);
        uses(g, expected);
    }
    excluded = "mlx5_1"; /* GPU 0's: exact names, so mlx5_10 stays */
    look();
    assert_int_equal(why("mlx5_1"), PLAN_PORT_EXCLUDED);
    assert_int_equal(why("mlx5_10"), PLAN_PORT_USED);
}

/* Both forms of a dual-port card: two functions with a port each, and one function with two ports. */
static void both_ports_of_a_card(void **state)
{
    (void)state;
    char dev[32];
    for (unsigned g = 0; g < 8; g++) {
        tree_gpu(below(0x10 + g * 0x18, 0, 0, 0, 0), g / 4);
        snprintf(dev, sizeof(dev), "mlx5_%u", 2 * g);
        tree_nic(dev, below(0x10 + g * 0x18, 0, 1, 0, 0), g / 4);
        if (g == 7) {
            tree_port(dev, 2, "4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)");
            continue;
        }
        snprintf(dev, sizeof(dev), "mlx5_%u", 2 * g + 1);
        tree_nic(dev, below(0x10 + g * 0x18, 0, 1, 0, 1), g / 4);
    }
    look();
    uses(0, "mlx5_0:1,mlx5_1:1 PIX");
    uses(6, "mlx5_12:1,mlx5_13:1 PIX");
    uses(7, "mlx5_14:1,mlx5_14:2 PIX");
}

/* Two GPUs at one switch, four ports of two cards at the next: each gets both ports of one card. */
static void a_pair_shares_four_ports(void **state)
{
    (void)state;
    static const char *const gpu[] = {
        "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0/0000:14:00.0/0000:15:00.0",
        "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0/0000:14:01.0/0000:16:00.0"};
    tree_gpu(gpu[1], 0);
    tree_gpu(gpu[0], 0);
    for (unsigned n = 0; n < 4; n++) {
        char dev[16], place[128];
        snprintf(dev, sizeof(dev), "mlx5_%u", 3 - n);
        snprintf(place, sizeof(place), "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:0%u.0/0000:%u:00.%u", 1 + n / 2,
                 20 + n / 2, n % 2);
        tree_nic(dev, place, 0);
    }
    look();
    uses(0, "mlx5_3:1,mlx5_2:1 PXB");
    uses(1, "mlx5_1:1,mlx5_0:1 PXB");
    /* Three left: the one with the whole card gets the two. */
    excluded = "mlx5_3";
    look();
    uses(0, "mlx5_2:1 PXB");
    uses(1, "mlx5_1:1,mlx5_0:1 PXB");
}

/* Four ports for eight GPUs, half of them nearer: the others spread over what is least used. */
static void fewer_ports_than_gpus(void **state)
{
    (void)state;
    for (unsigned g = 0; g < 8; g++)
        tree_gpu(below(0x10 + g * 0x18, 0, 0, 0, 0), g / 4);
    static const unsigned owner[] = {1, 3, 4, 6};
    for (unsigned n = 0; n < 4; n++) {
        char dev[16];
        snprintf(dev, sizeof(dev), "bond_%u", n);
        tree_nic(dev, below(0x10 + owner[n] * 0x18, 0, 1, 0, 0), owner[n] / 4);
    }
    look();
    uses(0, "bond_0:1 NODE");
    uses(1, "bond_0:1 PIX");
    uses(2, "bond_1:1 NODE");
    uses(3, "bond_1:1 PIX");
    uses(4, "bond_2:1 PIX");
    uses(5, "bond_2:1 NODE");
    uses(6, "bond_3:1 PIX");
    uses(7, "bond_3:1 NODE");
    for (unsigned i = 0; i < host->ports; i++)
        assert_int_equal(plan.users[i], 2);
}

/* A GPU without a near port takes one that nobody has before it shares one. */
static void a_free_port_comes_before_a_used_one(void **state)
{
    (void)state;
    tree_gpu(below(0x10, 0, 0, 0, 0), 0);
    tree_gpu(below(0x40, 0, 0, 0, 0), 0);
    tree_nic("mlx5_0", below(0x10, 0, 1, 0, 0), 0);
    tree_nic("mlx5_1", below(0x80, 0, 1, 0, 0), 0);
    look();
    uses(0, "mlx5_0:1 PIX");
    uses(1, "mlx5_1:1 NODE");
}

static void what_is_not_usable_is_left_with_a_reason(void **state)
{
    (void)state;
    tree_gpu(below(0x10, 0, 0, 0, 0), 0);
    tree_nic("mlx5_0", below(0x10, 0, 1, 0, 0), 0);
    tree_nic("mlx5_1", below(0x10, 0, 1, 0, 1), 0);
    tree_port("mlx5_1", 1, "1: DOWN", "InfiniBand", "400 Gb/sec (4X NDR)");
    tree_nic("mlx5_2", below(0x10, 0, 2, 0, 0), 0); /* storage: on the same switch, slower */
    tree_port("mlx5_2", 1, "4: ACTIVE", "InfiniBand", "56 Gb/sec (4X FDR)");
    tree_nic("mlx5_3", below(0x10, 0, 3, 0, 0), 0); /* management */
    tree_port("mlx5_3", 1, "4: ACTIVE", "Ethernet", "100 Gb/sec (4X EDR)");
    tree_nic("mlx5_4", below(0x10, 0, 1, 0, 4), 0);
    tree_virtual(below(0x10, 0, 1, 0, 4), below(0x10, 0, 1, 0, 0));
    tree_nic("switch0", below(0x10, 0, 4, 0, 0), 0);
    tree_file("sys/class/infiniband/switch0", "node_type", "2: switch\n");
    look();
    uses(0, "mlx5_0:1 PIX");
    assert_int_equal(why("mlx5_1"), PLAN_PORT_DOWN);
    assert_int_equal(why("mlx5_2"), PLAN_PORT_SLOW);
    assert_int_equal(why("mlx5_3"), PLAN_PORT_LINK);
    assert_int_equal(why("mlx5_4"), PLAN_PORT_VIRTUAL);
    assert_int_equal(why("switch0"), PLAN_PORT_MANAGEMENT);
    /* Its physical function is not to be used: then the virtual one counts. */
    excluded = "mlx5_0";
    look();
    uses(0, "mlx5_4:1 PIX");
}

/* A machine that sees only virtual functions, flat on one bus, as guests do. */
static void functions_in_a_guest_count(void **state)
{
    (void)state;
    tree_gpu("pci0000:00/0000:00:06.0", -1);
    tree_gpu("pci0000:00/0000:00:07.0", -1);
    tree_nic("mlx5_0", "pci0000:00/0000:00:08.0", -1);
    tree_nic("mlx5_1", "pci0000:00/0000:00:09.0", -1);
    look();
    uses(0, "mlx5_0:1 PHB");
    uses(1, "mlx5_1:1 PHB");
}

/* As `braid emu` shows its devices: ports of a bus of their own, and no GPU. */
static void without_a_gpu_all_are_used(void **state)
{
    (void)state;
    char dev[16], place[64];
    for (unsigned n = 0; n < 18; n++) {
        snprintf(dev, sizeof(dev), "mlx5_%u", n);
        snprintf(place, sizeof(place), "pci0000:b0/0000:b0:%02x.%u/0000:b1:%02x.%u", n / 8, n % 8, n / 8, n % 8);
        tree_nic(dev, place, 0);
    }
    tree_nic("rxe0", NULL, 0);
    look();
    assert_int_equal(plan.gpu[0].count, 16);
    assert_int_equal(why("mlx5_0"), PLAN_PORT_USED);
    assert_int_equal(why("mlx5_15"), PLAN_PORT_USED);
    assert_int_equal(why("mlx5_16"), PLAN_PORT_EXTRA);
    assert_int_equal(why("rxe0"), PLAN_PORT_SOFTWARE);
    named = "rxe0";
    look();
    assert_int_equal(why("rxe0"), PLAN_PORT_USED); /* it comes first: no PCI address */
}

/* Whatever the shape: no port of a tie is shared while there are enough, and counts differ by at most one. */
static void shares_are_even_for_all_counts(void **state)
{
    (void)state;
    struct plan_ports_rule rule = {0};
    host = topo_host_new(TOPO_SOURCE_SYSFS);
    assert_non_null(host);
    for (unsigned g = 1; g <= 8; g++) {
        for (unsigned p = 1; p <= 24; p++) {
            for (unsigned card = 1; card <= 3; card++) {
                host->nodes = 0;
                host->gpus = g;
                host->ports = p;
                int bridge = topo_pci_add(host, PCI_BRIDGE, -1), up = topo_pci_add(host, 1, bridge);
                for (unsigned i = 0; i < g; i++)
                    host->gpu[i].pci = topo_pci_add(host, host->gpu[i].number = 1000 + i * 8, up);
                for (unsigned i = 0; i < p; i++) {
                    host->port[i] = (struct topo_port){
                        .rate_bits = 1, .link = TOPO_LINK_IB, .active = true, .channel_adapter = true, .port = 1};
                    host->port[i].pci = topo_pci_add(host, 5000 + i / card * 8 + i % card, up);
                }
                topo_settle(host);
                assert_int_equal(plan_ports(host, &rule, &plan), 0);
                unsigned least = UINT32_MAX, most = 0, split = 0;
                for (unsigned i = 0; i < g; i++) {
                    least = plan.gpu[i].count < least ? plan.gpu[i].count : least;
                    most = plan.gpu[i].count > most ? plan.gpu[i].count : most;
                    for (unsigned k = 1; k < plan.gpu[i].count; k++)
                        assert_int_equal(plan.gpu[i].port[k], plan.gpu[i].port[k - 1] + 1);
                    if (i > 0 && p >= g)
                        split += plan.gpu[i].port[0] % card != 0;
                }
                assert_true(most - least <= 1);
                for (unsigned i = 0; i < p; i++)
                    assert_in_range(plan.users[i],
                                    p > g && g == 1 && i >= 16 ? 0
                                    : p >= g                   ? (p > 16 * g ? 0 : 1)
                                                               : g / p,
                                    p >= g ? 1 : (g + p - 1) / p);
                if (p % (g * card) == 0 && p <= 16 * g)
                    assert_int_equal(split, 0);
            }
        }
    }
}

static void a_gpu_of_another_class_is_found(void **state)
{
    (void)state;
    char folder[512];
    uint64_t number;
    tree_pci(below(0x10, 0, 0, 0, 0), 0, "0x10de", "0x030200", folder);
    tree_pci(below(0x40, 0, 0, 0, 0), 0, "0x1002", "0x038000", folder);
    look();
    assert_int_equal(host->gpus, 1);
    assert_true(pci_number("0000:43:00.0", &number));
    assert_int_equal(topo_gpu_find(host, tree_root, number), 1);
    assert_int_equal(topo_gpu_find(host, tree_root, host->gpu[0].number), 0);
    assert_int_equal(topo_gpu_find(host, tree_root, number + 8), -ENODEV);
    assert_int_equal(host->gpus, 2);
    tree_pci(below(0x08, 0, 0, 0, 0), 0, "0x1002", "0x038000", folder);
    assert_true(pci_number("0000:0b:00.0", &number));
    assert_int_equal(topo_gpu_find(host, tree_root, number), 0); /* in PCI order all the same */
}

/* A host with one GPU; ports as they are given, each near it (PIX) or far (SYS). Why the first is in the table or not. */
static enum plan_port_why why_first(const struct topo_port *port, const bool *far, unsigned ports)
{
    struct topo_host *h = topo_host_new(TOPO_SOURCE_SYSFS);
    assert_non_null(h);
    h->gpus = 1;
    h->ports = ports;
    for (unsigned i = 0; i < ports; i++) {
        h->port[i] = port[i];
        h->near[0][i] = far[i] ? TOPO_NEAR_SYS : TOPO_NEAR_PIX;
    }
    assert_int_equal(plan_ports(h, &(struct plan_ports_rule){0}, &plan), 0);
    topo_free(h);
    return plan.why[0];
}

static void the_fabric_is_what_the_fastest_ports_are(void **state)
{
    (void)state;
    struct topo_port port[3];
    bool far[3] = {false};
    for (unsigned i = 0; i < 3; i++)
        port[i] = (struct topo_port){
            .rate_bits = 100, .link = TOPO_LINK_ETHERNET, .active = true, .channel_adapter = true, .pci = -1};
    port[0].link = TOPO_LINK_IB;
    assert_int_equal(why_first(port, far, 3), PLAN_PORT_LINK);
    port[0].rate_bits = 400; /* slower ones do not count, however many */
    assert_int_equal(why_first(port, far, 3), PLAN_PORT_USED);
    port[1].rate_bits = 400; /* one of each: the lower number */
    assert_int_equal(why_first(port, far, 2), PLAN_PORT_USED);
    port[0].link = TOPO_LINK_ETHERNET;
    port[1].link = TOPO_LINK_IB;
    assert_int_equal(why_first(port, far, 2), PLAN_PORT_LINK);
    port[0].link = TOPO_LINK_OTHER; /* none of use */
    assert_int_equal(why_first(port, far, 1), PLAN_PORT_LINK);
    /* Slow is what is a quarter of the fastest near one; of the fastest where nothing is near. */
    port[0].link = port[1].link = TOPO_LINK_IB;
    port[0].rate_bits = 99;
    assert_int_equal(why_first(port, far, 2), PLAN_PORT_SLOW);
    far[1] = true;
    assert_int_equal(why_first(port, far, 2), PLAN_PORT_USED);
    far[0] = true;
    assert_int_equal(why_first(port, far, 2), PLAN_PORT_SLOW);
}

/* Both reach the same two ports, one GPU by a switch: none is shared all the same, as there are enough. */
static void the_same_ports_are_shared_whatever_the_class(void **state)
{
    (void)state;
    tree_gpu(below(0x10, 0, 0, 0, 0), 0);
    tree_gpu(below(0x10, 1, 0, 0, 0), 0);
    tree_nic("mlx5_0", below(0x10, 0, 1, 0, 0), 0);
    tree_nic("mlx5_1", below(0x10, 0, 1, 0, 1), 0);
    look();
    uses(0, "mlx5_0:1 PIX");
    uses(1, "mlx5_1:1 PHB");
}

static void links_addresses_and_mtus_are_read(void **state)
{
    (void)state;
    char folder[512];
    tree_pci("pci0000:10/0000:10:01.0", 0, "0x8086", "0x060400", folder);
    tree_nic("mlx5_0", "pci0000:10/0000:10:01.0/0000:11:00.0", 0);
    tree_port("mlx5_0", 1, "4: ACTIVE", "Ethernet", "200 Gb/sec (4X HDR)");
    tree_file("sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0", "current_link_speed", "16.0 GT/s PCIe\n");
    tree_file("sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0", "current_link_width", "8\n");
    tree_folder("sys/class/infiniband/mlx5_0/ports/1/counters");
    tree_file("sys/class/infiniband/mlx5_0/ports/1/counters", "link_downed", "7\n");
    tree_folder("sys/class/infiniband/mlx5_0/ports/1/gids");
    tree_folder("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types");
    tree_file("sys/class/infiniband/mlx5_0/ports/1/gids", "0", "fe80:0000:0000:0000:0200:00ff:fe00:0001\n");
    tree_file("sys/class/infiniband/mlx5_0/ports/1/gids", "1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    tree_file("sys/class/infiniband/mlx5_0/ports/1/gids", "2", "0000:0000:0000:0000:0000:ffff:0a00:0005\n");
    tree_file("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types", "0", "IB/RoCE v1\n");
    tree_file("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types", "2", "RoCE v2\n");
    tree_folder("sys/class/net/ib0");
    tree_file("sys/class/net/ib0", "mtu", "1500\n");
    look();
    topo_read_more(tree_root, host);
    const struct topo_port *p = &host->port[0];
    assert_int_equal(host->pci[p->pci].width, 8);
    assert_int_equal(host->pci[p->pci].speed, 16000);
    assert_int_equal(host->pci[p->pci].vendor, 0x15b3);
    assert_in_range(host->pci[p->pci].link_bits, UINT64_C(126000000000), UINT64_C(126100000000));
    assert_int_equal(host->pci[host->pci[p->pci].parent].class, 0x060400);
    assert_int_equal(p->downs, 7);
    assert_int_equal(p->mtu, 1024); /* what fits 1500 bytes */
    assert_int_equal(host->gids, 2);
    assert_true(host->gid[0].index == 0 && !host->gid[0].v2 && host->gid[0].raw[0] == 0xfe);
    assert_true(host->gid[1].index == 2 && host->gid[1].v2 && host->gid[1].raw[15] == 5);
    assert_int_equal(plan_uplink(host, &plan, 0), p->pci); /* 200 Gb/s behind 126 */
}

/* Renamed devices are what they were: nothing goes by names. */
static void names_do_not_matter(void **state)
{
    (void)state;
    tree_gpu(below(0x10, 0, 0, 0, 0), 0);
    tree_nic("roce_rail1", below(0x10, 0, 1, 0, 0), 0);
    tree_nic("mlx5_0", "pci0000:80/0000:80:01.0/0000:81:00.0", 1);
    look();
    uses(0, "roce_rail1:1 PIX");
}

#define TREE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE(a_port_is_read_whole),
        TREE(a_host_without_rdma_has_no_ports),
        TREE(nonsense_counts_as_not_told),
        TREE(pci_addresses_are_read),
        TREE(classes_are_those_of_the_tree),
        TREE(one_card_a_gpu),
        TREE(both_ports_of_a_card),
        TREE(a_pair_shares_four_ports),
        TREE(fewer_ports_than_gpus),
        TREE(a_free_port_comes_before_a_used_one),
        TREE(what_is_not_usable_is_left_with_a_reason),
        TREE(functions_in_a_guest_count),
        TREE(without_a_gpu_all_are_used),
        TREE(shares_are_even_for_all_counts),
        TREE(a_gpu_of_another_class_is_found),
        TREE(links_addresses_and_mtus_are_read),
        TREE(names_do_not_matter),
        TREE(the_fabric_is_what_the_fastest_ports_are),
        TREE(the_same_ports_are_shared_whatever_the_class),
    };
    return cmocka_run_group_tests_name("topo", tests, NULL, NULL);
}
