/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plugin_env.c - the plugin's parts that need no device: variables, good and bad, lists of ports and how they are dealt, own
 * regions by address with a reader at work, which hosts are understood. Links the plugin's objects themselves.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "nvshmem.h"

/* ---- a fake environment ---- */

static const char *const *variables; /* "NAME=value", NULL-terminated */
static char lines[8192];

static const char *get(const char *name)
{
    size_t len = strlen(name);

    for (unsigned i = 0; variables && variables[i]; i++) {
        if (strncmp(variables[i], name, len) == 0 && variables[i][len] == '=')
            return variables[i] + len + 1;
    }
    return NULL;
}

static void keep(void *arg, enum braid_log_level level, const char *line)
{
    size_t used = strlen(lines);

    (void)arg;
    snprintf(lines + used, sizeof(lines) - used, "%d %s\n", (int)level, line);
}

static int read_with(const char *const *list, struct nvs_env *out)
{
    static const struct nvs_host host = {3, 5, 21};
    struct nvs_log log = {.level = BRAID_LOG_WARN, .pe = -1, .fn = keep};

    variables = list;
    lines[0] = '\0';
    return nvs_env_read(get, &host, &log, out);
}

/* The last value that a setting has, or NULL: braid_open() takes the last. */
static const char *setting(const struct nvs_env *env, const char *name)
{
    const char *value = NULL;
    size_t len = strlen(name);

    for (unsigned i = 0; i < env->settings.count; i++) {
        if (strncmp(env->settings.item[i], name, len) == 0 && env->settings.item[i][len] == '=')
            value = env->settings.item[i] + len + 1;
    }
    return value;
}

static void expect(const char *variable, const char *option, const char *value)
{
    const char *list[] = {variable, NULL};
    struct nvs_env env;

    assert_int_equal(read_with(list, &env), 0);
    if (value)
        assert_string_equal(setting(&env, option) ? setting(&env, option) : "(none)", value);
    else
        assert_null(setting(&env, option));
    nvs_env_free(&env);
}

static void defaults_are_what_a_host_expects(void **state)
{
    (void)state;
    expect("X=", "channels", "2");
    expect("X=", "tail", "on");
    expect("X=", "log", "warn");
    expect("X=", "timeout", "20");
    expect("X=", "retry", NULL);
    expect("X=", "only", NULL);
    expect("X=", "ports", NULL);
}

static void variables_become_settings(void **state)
{
    static const char *const rows[][3] = {
        {"NVSHMEM_IB_GID_INDEX=3", "gid_index", "3"},
        {"NVSHMEM_IB_GID_INDEX=-1", "gid_index", "auto"},
        {"NVSHMEM_IB_TRAFFIC_CLASS=0x6a", "traffic_class", "106"},
        {"NVSHMEM_IB_SL=3", "sl", "3"},
        {"NVSHMEM_IB_PKEY_INDEX=2", "pkey_index", "2"},
        {"NVSHMEM_IB_TIMEOUT=14", "timeout", "14"},
        {"NVSHMEM_IB_RETRY_CNT=0", "retry", "0"},
        {"NVSHMEM_IB_ROCE_VERSION_NUM=1", "roce_version", "1"},
        {"NVSHMEM_IB_ADDR_FAMILY=AF_INET", "gid_family", "ipv4"},
        {"NVSHMEM_IB_ADDR_FAMILY=AF_INET6", "gid_family", "ipv6"},
        {"NVSHMEM_IB_ADDR_RANGE=::/0", "gid_range", NULL},
        {"NVSHMEM_IB_ADDR_RANGE=192.168.0.0/16", "gid_range", "192.168.0.0/16"},
        {"NVSHMEM_QP_DEPTH=1024", "sq_depth", "1024"},
        {"NVSHMEM_IB_ENABLE_RELAXED_ORDERING=0", "relaxed", "off"},
        {"NVSHMEM_IB_ENABLE_RELAXED_ORDERING=True", "relaxed", "on"},
        {"NVSHMEM_IB_DISABLE_DMABUF=yes", "dmabuf", "off"},
        {"NVSHMEM_IB_DISABLE_DMABUF=n", "dmabuf", "on"},
        {"NVSHMEM_IB_FORCE_GRH=1", "grh", "on"},
        {"NVSHMEM_IB_FORCE_GRH=0", "grh", "auto"},
        {"NVSHMEM_HCA_LIST=mlx5_0:1,mlx5_3", "only", "mlx5_0:1,mlx5_3"},
        {"NVSHMEM_HCA_LIST=^mlx5_0:1,mlx5_3", "only", "^mlx5_0:1,mlx5_3"},
        {"NVSHMEM_HCA_LIST=", "only", NULL},
        {"NVSHMEM_HCA_PE_MAPPING=mlx5_0:1:3,mlx5_1:1:1,mlx5_0:1:1", "only", "mlx5_0:1,mlx5_1:1"},
        {"NVSHMEM_DEBUG=INFO", "log", "info"},
        {"NVSHMEM_DEBUG=trace", "log", "debug"},
        {"NVSHMEM_DEBUG=VERSION", "log", "warn"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect(rows[i][0], rows[i][1], rows[i][2]);
}

static void bad_values_are_named(void **state)
{
    static const char *const bad[] = {
        "NVSHMEM_IB_GID_INDEX=256",
        "NVSHMEM_IB_GID_INDEX=first",
        "NVSHMEM_IB_TRAFFIC_CLASS=-1",
        "NVSHMEM_IB_SL=16",
        "NVSHMEM_IB_SL=",
        "NVSHMEM_IB_PKEY_INDEX=65536",
        "NVSHMEM_IB_TIMEOUT=32",
        "NVSHMEM_IB_RETRY_CNT=8",
        "NVSHMEM_IB_RETRY_CNT=7x",
        "NVSHMEM_IB_ROCE_VERSION_NUM=3",
        "NVSHMEM_QP_DEPTH=1000",
        "NVSHMEM_QP_DEPTH=16",
        "NVSHMEM_QP_DEPTH=99999999999999999999",
        "NVSHMEM_IB_ADDR_FAMILY=inet",
        "NVSHMEM_IB_ENABLE_RELAXED_ORDERING=maybe",
        "NVSHMEM_IB_DISABLE_DMABUF=2",
        "NVSHMEM_IB_FORCE_GRH=",
        "NVSHMEM_ENABLE_NIC_PE_MAPPING=x",
        "NVSHMEM_HCA_LIST=mlx5_0,,a",
        "NVSHMEM_HCA_LIST=,",
        "NVSHMEM_HCA_LIST=mlx5_0:0",
        "NVSHMEM_HCA_LIST=mlx5_0:256",
        "NVSHMEM_HCA_LIST=mlx5_0:",
        "NVSHMEM_HCA_LIST=mlx5_0:1:1",
        "NVSHMEM_HCA_LIST=^",
        "NVSHMEM_HCA_LIST=:1",
        "NVSHMEM_HCA_PE_MAPPING=mlx5_0:1",
        "NVSHMEM_HCA_PE_MAPPING=a:1:0",
        "NVSHMEM_HCA_PE_MAPPING=a:1:129",
        "NVSHMEM_HCA_PE_MAPPING=a:1:128,b:1:1",
        "NVSHMEM_HCA_PE_MAPPING=a:1:1:1",
        "NVSHMEM_HCA_LIST=a2345678901234567890123456789012345678901234567890123456789012345678901234567890"};

    (void)state;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *list[] = {bad[i], NULL};
        char name[64] = "";
        struct nvs_env env = {.strict = true};

        memcpy(name, bad[i], strcspn(bad[i], "="));
        if (read_with(list, &env) != -EINVAL)
            fail_msg("%s was taken", bad[i]);
        assert_true(env.strict); /* untouched */
        if (!strstr(lines, name))
            fail_msg("%s: the message does not name it: %s", bad[i], lines);
    }
}

static void braid_variables_beat(void **state)
{
    static const char *const list[] = {"NVSHMEM_IB_SL=3",      "BRAID_SL=4",           "BRAID_TAIL=off",
                                       "BRAID_TIMEOUT=9",      "BRAID_CHANNELS=7",     "BRAID_ORDER=strict",
                                       "BRAID_LOG=debug",      "NVSHMEM_DEBUG=INFO",   "BRAID_PORTS=mlx5_7",
                                       "NVSHMEM_HCA_LIST=a,b", "NVSHMEM_HCA_PREFIX=q", NULL};
    struct nvs_env env;

    (void)state;
    assert_int_equal(read_with(list, &env), 0);
    assert_null(setting(&env, "sl"));
    assert_null(setting(&env, "tail"));
    assert_null(setting(&env, "timeout"));
    assert_null(setting(&env, "log"));
    assert_null(setting(&env, "only"));
    assert_string_equal(setting(&env, "channels"), "2"); /* the plugin's own business */
    assert_true(env.strict && env.level == BRAID_LOG_DEBUG);
    nvs_env_free(&env);
}

static void subsystems_narrow_what_is_shown(void **state)
{
    static const struct {
        const char *subsys;
        enum braid_log_level level;
    } rows[] = {{"NVSHMEM_DEBUG_SUBSYS=TRANSPORT,MEM", BRAID_LOG_INFO},
                {"NVSHMEM_DEBUG_SUBSYS=init", BRAID_LOG_INFO},
                {"NVSHMEM_DEBUG_SUBSYS=COLL", BRAID_LOG_WARN},
                {"NVSHMEM_DEBUG_SUBSYS=^INIT,TRANSPORT,ALL", BRAID_LOG_WARN},
                {"NVSHMEM_DEBUG_SUBSYS=^COLL", BRAID_LOG_INFO},
                {"NVSHMEM_DEBUG_SUBSYS=", BRAID_LOG_INFO}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *list[] = {"NVSHMEM_DEBUG=INFO", rows[i].subsys, NULL};
        struct nvs_env env;

        assert_int_equal(read_with(list, &env), 0);
        assert_int_equal(env.level, rows[i].level);
        nvs_env_free(&env);
    }
}

static void what_has_no_meaning_is_said(void **state)
{
    static const char *const list[] = {"NVSHMEM_DEBUG=INFO",        "NVSHMEM_IB_NUM_RC_PER_DEVICE=4",
                                       "NVSHMEM_IB_ENABLE_IBGDA=1", "NVSHMEM_FCOLLECT_LL128_THRESHOLD=64",
                                       "NVSHMEM_HCA_LIST=a",        "NVSHMEM_HCA_PE_MAPPING=b:1:1",
                                       "NVSHMEM_DISABLE_GDRCOPY=1", NULL};
    struct nvs_env env;

    (void)state;
    assert_int_equal(read_with(list, &env), 0);
    assert_non_null(strstr(lines, "NVSHMEM_IB_NUM_RC_PER_DEVICE"));
    assert_non_null(strstr(lines, "NVSHMEM_DISABLE_GDRCOPY"));
    assert_non_null(strstr(lines, "1 NVSHMEM_IB_ENABLE_IBGDA")); /* a warning */
    assert_non_null(strstr(lines, "1 NVSHMEM_FCOLLECT_LL128_THRESHOLD"));
    assert_non_null(strstr(lines, "1 NVSHMEM_HCA_PE_MAPPING"));
    assert_string_equal(setting(&env, "only"), "a");
    nvs_env_free(&env);
}

/* ---- ports by rank, by a part of their name ---- */

static void slots_are_dealt_by_rank(void **state)
{
    static const struct {
        const char *mapping;
        int rank, ranks;
        const char *ports;
    } rows[] = {{"a:1:2,b:1:2", 0, 4, "a:1"},       {"a:1:2,b:1:2", 1, 4, "a:1"},
                {"a:1:2,b:1:2", 3, 4, "b:1"},       {"a:1:1,b:1:1", 5, 8, "b:1"},
                {"a:1:1,b:2:1,c:1:1", 1, 2, "b:2"}, {"a:1:1,b:1:1,c:1:1,d:1:1", 1, 2, "c:1,d:1"},
                {"a:1:4,b:1:4", 0, 2, "a:1"},       {"a:1:1,b:1:1,c:1:1,d:1:1,e:1:1", 1, 2, "c:1,d:1"}};
    char why[NVS_WHY], ports[NVS_PORTS_BYTES];
    struct nvs_slots slots;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(nvs_slots_read(rows[i].mapping, true, &slots, why), 0);
        nvs_slots_pick(&slots, rows[i].rank, rows[i].ranks, ports);
        assert_string_equal(ports, rows[i].ports);
    }
}

static void mapping_by_rank_waits_for_the_rank(void **state)
{
    static const char *const list[] = {"NVSHMEM_ENABLE_NIC_PE_MAPPING=1", "NVSHMEM_HCA_PE_MAPPING=a:1:1,b:1:1", NULL};
    static const char *const ban[] = {"NVSHMEM_ENABLE_NIC_PE_MAPPING=1", "NVSHMEM_HCA_LIST=^a", NULL};
    static const char *const none[] = {"NVSHMEM_ENABLE_NIC_PE_MAPPING=1", NULL};
    struct nvs_env env;

    (void)state;
    assert_int_equal(read_with(list, &env), 0);
    assert_true(env.by_rank && env.slots.count == 2 && !setting(&env, "only"));
    nvs_env_free(&env);
    assert_int_equal(read_with(ban, &env), 0);
    assert_true(!env.by_rank);
    assert_string_equal(setting(&env, "only"), "^a");
    nvs_env_free(&env);
    assert_int_equal(read_with(none, &env), 0);
    assert_true(!env.by_rank && !setting(&env, "only") && strstr(lines, "says nothing"));
    nvs_env_free(&env);
}

static void devices_are_taken_by_a_part_of_their_name(void **state)
{
    static const char *const names[] = {"sys",
                                        "sys/class",
                                        "sys/class/infiniband",
                                        "sys/class/infiniband/mlx5_0",
                                        "sys/class/infiniband/mlx5_1",
                                        "sys/class/infiniband/smi_0"};
    char root[] = "/tmp/braid-prefix-XXXXXX", path[200], out[NVS_PORTS_BYTES], sysroot[64];
    const char *list[] = {"NVSHMEM_HCA_PREFIX=^smi", sysroot, NULL}, *bad[] = {"NVSHMEM_HCA_PREFIX=efa", sysroot, NULL};
    struct nvs_env env;

    (void)state;
    assert_non_null(mkdtemp(root));
    for (unsigned i = 0; i < 6; i++) {
        snprintf(path, sizeof(path), "%s/%s", root, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    assert_int_equal(nvs_prefix_names("mlx5", root, out), 1);
    assert_string_equal(out, "mlx5_0,mlx5_1");
    assert_int_equal(nvs_prefix_names("^_1", root, out), 1);
    assert_string_equal(out, "mlx5_0,smi_0");
    assert_int_equal(nvs_prefix_names("^nothing", root, out), 0);
    snprintf(sysroot, sizeof(sysroot), "BRAID_SYSROOT=%s", root);
    assert_int_equal(read_with(list, &env), 0);
    assert_string_equal(setting(&env, "only"), "mlx5_0,mlx5_1");
    nvs_env_free(&env);
    assert_int_equal(read_with(bad, &env), -EINVAL);
    for (int i = 5; i >= 0; i--) {
        snprintf(path, sizeof(path), "%s/%s", root, names[i]);
        assert_int_equal(rmdir(path), 0);
    }
    assert_int_equal(nvs_prefix_names("mlx5", root, out), -ENOENT);
    assert_int_equal(rmdir(root), 0);
}

/* ---- regions ---- */

static int add(struct nvs_regions *r, uintptr_t start, size_t len, unsigned char name)
{
    struct nvs_region region = {.start = start, .end = start + len, .key = calloc(1, sizeof(struct braid_key))};

    assert_non_null(region.key);
    region.key->bytes[0] = name;
    return nvs_regions_add(r, &region);
}

static int found(struct nvs_regions *r, uintptr_t addr, uint64_t len)
{
    struct nvs_region region;

    return nvs_regions_find(r, NVS_PROXY_CHANNEL, (const void *)addr, len, &region) ? region.key->bytes[0] : 0;
}

static void drop(struct nvs_regions *r, unsigned char name)
{
    struct braid_key key = {{name}};
    struct nvs_region region;

    assert_int_equal(nvs_regions_remove(r, key.bytes, &region), 0);
    free(region.key);
    assert_int_equal(nvs_regions_remove(r, key.bytes, &region), -ENOENT);
}

static void regions_are_found_by_address(void **state)
{
    static struct nvs_regions r;

    (void)state;
    assert_int_equal(found(&r, 100, 1), 0);
    assert_int_equal(add(&r, 1000, 1000, 'b'), 0);
    assert_int_equal(add(&r, 3000, 1000, 'd'), 0);
    assert_int_equal(add(&r, 500, 100, 'a'), 0);
    assert_int_equal(add(&r, 1200, 100, 'c'), 0); /* inside another */
    assert_int_equal(found(&r, 1000, 1000), 'b');
    assert_int_equal(found(&r, 1000, 1001), 0);
    assert_int_equal(found(&r, 999, 1), 0);
    assert_int_equal(found(&r, 1250, 10), 'c');
    assert_int_equal(found(&r, 1250, 100), 'b'); /* the longer one */
    assert_int_equal(found(&r, 1999, 1), 'b');
    assert_int_equal(found(&r, 2000, 1), 0);
    assert_int_equal(found(&r, 3999, 1), 'd');
    assert_int_equal(found(&r, 3999, UINT64_MAX), 0);
    assert_int_equal(found(&r, 599, 1), 'a');
    drop(&r, 'b');
    assert_int_equal(found(&r, 1250, 10), 'c');
    assert_int_equal(found(&r, 1999, 1), 0);
    nvs_regions_free(&r);
    assert_int_equal(found(&r, 3000, 1), 0);
}

/* By a reader on either channel; the next change finds them left. */
static void tables_in_use_are_kept(void **state)
{
    (void)state;
    for (unsigned channel = 0; channel < NVS_CHANNELS; channel++) {
        static struct nvs_regions r;

        assert_int_equal(add(&r, 1000, 100, 'a'), 0);
        r.readers[channel][0] = 1;
        assert_int_equal(add(&r, 3000, 100, 'b'), 0);
        assert_non_null(r.old);
        r.readers[channel][0] = 0;
        drop(&r, 'b');
        assert_null(r.old);
        drop(&r, 'a');
        nvs_regions_free(&r);
    }
}

static struct nvs_regions shared;
static int stop;

static void *reader(void *arg)
{
    uintptr_t missed = 0;

    (void)arg;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        missed += found(&shared, 5000, 1000) != 'x';
    return (void *)missed;
}

/* One region stays and is found at any time, while others come and go beside it. */
static void regions_change_under_a_reader(void **state)
{
    pthread_t thread;
    void *missed = NULL;

    (void)state;
    assert_int_equal(add(&shared, 5000, 1000, 'x'), 0);
    assert_int_equal(pthread_create(&thread, NULL, reader, NULL), 0);
    for (unsigned i = 0; i < 20000; i++) {
        assert_int_equal(add(&shared, i % 2 ? 100 : 9000, 1000, 'y'), 0);
        drop(&shared, 'y');
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(thread, &missed), 0);
    assert_null(missed);
    nvs_regions_free(&shared);
    assert_null(shared.old);
}

/* ---- hosts ---- */

static void only_known_hosts_are_served(void **state)
{
    static const int numbers[] = {0, 10000, 20000, 40000, 50000, 60000, 70000, 80000, -1, 30000 * 1000};
    void *block = &block;

    (void)state;
    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_int_equal(nvs_init(&block, numbers[i], 3, (void *)(uintptr_t)nvs_init), NVS_INVALID_VALUE);
        assert_ptr_equal(block, &block);
    }
}

static void hosts_have_their_habits(void **state)
{
    static const struct nvs_host keeps[] = {{3, 5, 0}, {3, 5, 1}};
    static const struct nvs_host passes[] = {{3, 4, 5}, {3, 5, 19}, {3, 6, 5}, {3, 7, 0}, {0, 0, 0}};

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_true(nvs_host_keeps_fences(&keeps[i]) && !nvs_host_knows_prefix(&keeps[i]));
    for (unsigned i = 0; i < 5; i++)
        assert_false(nvs_host_keeps_fences(&passes[i]));
    assert_false(nvs_host_knows_prefix(&passes[1]));
    assert_true(nvs_host_knows_prefix(&passes[2]));
}

static void blocks_are_no_bools(void **state)
{
    (void)state;
    assert_true(nvs_block_like(0x7fff00000040) && nvs_block_like(0x7fff00000140));
    assert_false(nvs_block_like(0) || nvs_block_like(1) || nvs_block_like(0x7fff00000000) || nvs_block_like(0xff01));
}

static void selectors_mean_channels(void **state)
{
    (void)state;
    assert_int_equal(nvs_channel_of(NVS_QP_HOST), NVS_HOST_CHANNEL);
    assert_int_equal(nvs_channel_of(NVS_QP_DEFAULT), NVS_PROXY_CHANNEL);
    assert_int_equal(nvs_channel_of(17), NVS_PROXY_CHANNEL);
    assert_int_equal(nvs_channel_of(NVS_QP_ANY), NVS_PROXY_CHANNEL);
}

static void transfers_have_a_length(void **state)
{
    const struct nvs_rma_bytes good = {.nelems = 5, .elembytes = 8}, wraps = {.nelems = SIZE_MAX, .elembytes = 2},
                               less = {.nelems = 1, .elembytes = -1};

    (void)state;
    assert_int_equal(nvs_len(&good), 40);
    assert_true(nvs_len(&wraps) == SIZE_MAX && nvs_len(&less) == SIZE_MAX);
}

static void failures_have_a_status(void **state)
{
    (void)state;
    assert_int_equal(nvs_status(0), NVS_SUCCESS);
    assert_int_equal(nvs_status(-EINVAL), NVS_INVALID_VALUE);
    assert_int_equal(nvs_status(-ENOMEM), NVS_OUT_OF_MEMORY);
    assert_int_equal(nvs_status(-ENOTSUP), NVS_NOT_SUPPORTED);
    assert_int_equal(nvs_status(-ENODEV), NVS_INTERNAL);
}

static void kernels_flush_where_cuda_promises_no_order(void **state)
{
    (void)state;
    assert_false(nvs_cst_needed(-ENODEV, 0)); /* no GPU: CPUs read behind their NICs */
    assert_false(nvs_cst_needed(0, 1));
    assert_true(nvs_cst_needed(0, 0));
    assert_true(nvs_cst_needed(-EAGAIN, 0)); /* not to be asked yet */
    assert_true(nvs_cst_needed(-EIO, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_flush_where_cuda_promises_no_order),
        cmocka_unit_test(defaults_are_what_a_host_expects),
        cmocka_unit_test(variables_become_settings),
        cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(braid_variables_beat),
        cmocka_unit_test(subsystems_narrow_what_is_shown),
        cmocka_unit_test(what_has_no_meaning_is_said),
        cmocka_unit_test(slots_are_dealt_by_rank),
        cmocka_unit_test(mapping_by_rank_waits_for_the_rank),
        cmocka_unit_test(devices_are_taken_by_a_part_of_their_name),
        cmocka_unit_test(regions_are_found_by_address),
        cmocka_unit_test(tables_in_use_are_kept),
        cmocka_unit_test(regions_change_under_a_reader),
        cmocka_unit_test(only_known_hosts_are_served),
        cmocka_unit_test(hosts_have_their_habits),
        cmocka_unit_test(blocks_are_no_bools),
        cmocka_unit_test(selectors_mean_channels),
        cmocka_unit_test(transfers_have_a_length),
        cmocka_unit_test(failures_have_a_status),
    };

    return cmocka_run_group_tests_name("plugin_env", tests, NULL, NULL);
}
