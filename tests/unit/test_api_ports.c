/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_ports.c - ports=auto, over a tree of files, a driver and devices that are fakes: the GPU it looks from, what limits it,
 * ports that do not open, and what is said when there is none.
 */
#include "fake_driver.h"
#include "open_rig.h"
#include "tree.h"

#include <errno.h>

/* GPU 0000:3b:00.0 with fake0 and fake1 beside it, GPU 0000:3c:00.0 with fake2; fake3 is far from both. */
static int begin(void **state)
{
    driver_reset();
    tree_begin();
    tree_gpu("pci0000:38/0000:38:01.0/0000:39:00.0/0000:3a:00.0/0000:3b:00.0", 0);
    tree_nic("fake0", "pci0000:38/0000:38:01.0/0000:39:00.0/0000:3a:01.0/0000:41:00.0", 0);
    tree_nic("fake1", "pci0000:38/0000:38:01.0/0000:39:00.0/0000:3a:01.0/0000:41:00.1", 0);
    tree_gpu("pci0000:38/0000:38:02.0/0000:50:00.0/0000:51:00.0/0000:3c:00.0", 0);
    tree_nic("fake2", "pci0000:38/0000:38:02.0/0000:50:00.0/0000:51:01.0/0000:61:00.0", 0);
    tree_nic("fake3", "pci0000:90/0000:90:01.0/0000:91:00.0", 1);
    return start(state);
}

static int end(void **state)
{
    tree_end();
    return nothing_left(state);
}

#define AUTO(f) cmocka_unit_test_setup_teardown(f, begin, end)

static int open_auto(const char *first, const char *second, struct braid **out)
{
    char root[96];
    snprintf(root, sizeof(root), "sysroot=%s", tree_root);
    const char *settings[] = {root, "sq_depth=32", "log=info", first, second, NULL};
    if (!first)
        settings[3] = NULL;
    struct braid_options options = BRAID_OPTIONS_INIT;
    options.settings = settings;
    options.log = keep_line;
    logged[0] = '\0';
    return braid_open(&options, out);
}

static void said(const char *text)
{
    if (!strstr(logged, text))
        fail_msg("expected \"%s\" in:\n%s", text, logged);
}

/* Opens, and expects these ports, in this order. */
static void rails_are(const char *first, const char *second, const char *expected)
{
    struct braid *b = NULL;
    char text[256] = "";
    int rc = open_auto(first, second, &b);
    if (rc)
        fail_msg("%s, %s: %d:\n%s", first ? first : "", second ? second : "", rc, logged);
    struct braid_mem *mem;
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    for (int i = 0; i < braid_rail_count(b); i++) {
        struct braid_rail_stats stats;
        assert_int_equal(braid_rail_stats_at(b, i, &stats), 0);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "," : "", stats.port);
    }
    braid_close(b);
    assert_string_equal(text, expected);
}

static void the_context_s_gpu_is_looked_from(void **state)
{
    (void)state;
    driver_begin(0);
    rails_are(NULL, NULL, "fake0:1,fake1:1");
    said("rail 0 was chosen: fake0:1 at 0000:41:00.0");
    said("PIX of GPU 0000:3b:00.0");
    said("port fake2:1 at 0000:61:00.0");
    said("used by another GPU");
    said("usable, but another is nearer");
    driver_begin(1);
    rails_are(NULL, NULL, "fake2:1");
}

static void a_gpu_can_be_named(void **state)
{
    (void)state;
    rails_are("gpu=0000:3b:00.0", NULL, "fake0:1,fake1:1");
    driver_begin(0);
    rails_are("gpu=0000:3C:00.0", NULL, "fake2:1");
    rails_are("gpu=none", NULL, "fake0:1,fake1:1,fake2:1,fake3:1");
    said("no GPU to look from");
}

static void a_gpu_that_is_none_is_refused(void **state)
{
    (void)state;
    struct braid *b = NULL;
    assert_int_equal(open_auto("gpu=0000:77:00.0", NULL, &b), -ENODEV);
    said("GPUs there: 0000:3b:00.0, 0000:3c:00.0");
    static const char *const bad[] = {"gpu=", "gpu=0", "gpu=3b:00.0", "gpu=pci0000:3b", "gpu=all"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(open_auto(bad[i], NULL, &b), -EINVAL);
        said("expected a PCI address");
    }
}

static void without_cuda_all_ports_are_used(void **state)
{
    (void)state;
    rails_are(NULL, NULL, "fake0:1,fake1:1,fake2:1,fake3:1");
    said("no GPU to look from");
    rails_are("rails=2", NULL, "fake0:1,fake1:1");
    tree_nic("smi0", "pci0000:90/0000:90:01.0/0000:92:00.0", 1);
    rails_are(NULL, NULL, "fake0:1,fake1:1,fake2:1,fake3:1");
    said("port smi0:1 at 0000:92:00.0, ib0, 400 Gb/s is left out: no channel adapter, or one that manages switches");
}

/* A container may show the ports and not the GPU that CUDA uses. */
static void a_gpu_out_of_sight_is_warned_of(void **state)
{
    (void)state;
    tree_end();
    tree_begin();
    tree_nic("fake0", "pci0000:38/0000:38:01.0/0000:41:00.0", 0);
    driver_begin(0);
    rails_are(NULL, NULL, "fake0:1");
    said("there is no PCI device 0000:3b:00.0");
    said("ports are chosen as without a GPU");
}

static void the_choice_can_be_limited(void **state)
{
    (void)state;
    driver_begin(0);
    rails_are("only=fake1:1,fake3", NULL, "fake1:1");
    rails_are("only=^fake0", NULL, "fake1:1");
    rails_are("only=^fake0,fake1", NULL, "fake2:1"); /* the nearest left, though another GPU's too */
    said("PHB of GPU 0000:3b:00.0, shared with others");
    rails_are("only=fake3", NULL, "fake3:1");
    tree_port("fake0", 2, "4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)");
    rails_are("only=^fake0", NULL, "fake1:1"); /* without a number all of its ports */
    said("port fake0:2 at 0000:41:00.0, ib0, 400 Gb/s is left out: left out by option \"only\"");
    struct braid *b = NULL;
    assert_int_equal(open_auto("only=fake", NULL, &b), -ENODEV); /* names are exact */
    said("left out by option \"only\"");
    assert_int_equal(open_auto("only=^", NULL, &b), -EINVAL);
    said("option \"only\" names no port");
    assert_int_equal(open_auto("only=fake0,,", NULL, &b), -EINVAL);
}

static void a_map_says_more_than_the_tree(void **state)
{
    (void)state;
    driver_begin(0);
    rails_are("map=0000:3b:00.0=fake2,fake3;0000:3c:00.0=fake0:1", NULL, "fake2:1,fake3:1");
    said("by option \"map\"");
    driver_begin(1);
    rails_are("map=0000:3b:00.0=fake2,fake3;GPU1=fake0", NULL, "fake0:1");
    rails_are("map=0000:3b:00.0=fake2", NULL, "fake2:1"); /* those without a line share with those that have one */
    struct braid *b = NULL;
    static const char *const bad[] = {"map=fake0",  "map=0000:77:00.0=fake0",   "map=GPU0=", "map=GPU0=fake9",
                                      "map==fake0", "map=GPU0=fake0;GPU0=fake1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(open_auto(bad[i], NULL, &b), -EINVAL);
        said("option \"map\"");
    }
}

static void a_port_that_does_not_open_is_skipped(void **state)
{
    (void)state;
    driver_begin(0);
    fake_fail(FAKE_OPEN, 0, -EACCES);
    rails_are(NULL, NULL, "fake1:1");
    said("port fake0:1 is left out: it cannot be opened");
    /* None of them: others are taken. */
    fake_fail(FAKE_OPEN, 0, -EACCES);
    fake_fail_again(FAKE_OPEN, 1, -EACCES);
    rails_are(NULL, NULL, "fake2:1");
    said("it could not be opened");
}

static void what_was_found_is_listed_where_none_can_be_used(void **state)
{
    (void)state;
    struct braid *b = NULL;
    for (int i = 0; i < 4; i++) {
        char dev[16];
        snprintf(dev, sizeof(dev), "fake%d", i);
        tree_port(dev, 1, "1: DOWN", "InfiniBand", "400 Gb/sec (4X NDR)");
    }
    assert_int_equal(open_auto(NULL, NULL, &b), -ENODEV);
    said("no RDMA port of this host can be used");
    said("fake0:1 at 0000:41:00.0, ib0, 400 Gb/s is left out: not ACTIVE (DOWN)");
    said("fake3:1");
    assert_null(b);
}

static void near(const char *setting, enum braid_near expected)
{
    struct braid *b = NULL;
    struct braid_gpu gpu = {.size = sizeof(gpu)};
    assert_int_equal(open_auto(setting, NULL, &b), 0);
    assert_int_equal(braid_gpu_at(b, &gpu), 0);
    assert_string_equal(gpu.pci, "0000:3b:00.0");
    assert_int_equal(gpu.near, expected);
    assert_true(gpu.dmabuf && gpu.host_flush && gpu.ordered);
    gpu.size = 8;
    assert_int_equal(braid_gpu_at(b, &gpu), -EINVAL);
    braid_close(b);
}

/* The rate that the host says counts where the port's own word is higher, and not where it is lower. */
static void the_host_s_rate_counts_where_it_is_lower(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_rail_stats stats;
    tree_port("fake1", 1, "4: ACTIVE", "InfiniBand", "150 Gb/sec (4X)");
    assert_int_equal(open_auto("gpu=0000:3b:00.0", NULL, &b), 0);
    assert_int_equal(braid_rail_count(b), 2);
    assert_int_equal(braid_rail_stats_at(b, 0, &stats), 0);
    assert_int_equal(stats.rate_bits, UINT64_C(200000000000)); /* the fake port's; its file says 400 */
    assert_int_equal(braid_rail_stats_at(b, 1, &stats), 0);
    assert_int_equal(stats.rate_bits, UINT64_C(150000000000));
    braid_close(b);
}

static void the_gpu_is_told(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_gpu gpu = {.size = sizeof(gpu)};
    assert_int_equal(open_auto(NULL, NULL, &b), 0);
    assert_int_equal(braid_gpu_at(b, &gpu), -ENODEV);
    assert_int_equal(braid_gpu_at(NULL, &gpu), -EINVAL);
    braid_close(b);
    driver_begin(0);
    near(NULL, BRAID_NEAR_PIX);
    near("only=fake2", BRAID_NEAR_PHB);
    near("only=fake3", BRAID_NEAR_SYS);
    near("gpu=none", BRAID_NEAR_UNKNOWN);
    near("ports=fake0", BRAID_NEAR_UNKNOWN);
}

static void planes_go_with_the_chosen_ports(void **state)
{
    (void)state;
    struct braid *b = NULL;
    driver_begin(0);
    rails_are("planes=0,1", NULL, "fake0:1,fake1:1");
    assert_int_equal(open_auto("planes=0,1,2", NULL, &b), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AUTO(the_context_s_gpu_is_looked_from),
        AUTO(a_gpu_can_be_named),
        AUTO(a_gpu_that_is_none_is_refused),
        AUTO(without_cuda_all_ports_are_used),
        AUTO(a_gpu_out_of_sight_is_warned_of),
        AUTO(the_choice_can_be_limited),
        AUTO(a_map_says_more_than_the_tree),
        AUTO(a_port_that_does_not_open_is_skipped),
        AUTO(what_was_found_is_listed_where_none_can_be_used),
        AUTO(the_host_s_rate_counts_where_it_is_lower),
        AUTO(the_gpu_is_told),
        AUTO(planes_go_with_the_chosen_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
