/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_options.c - the option table, the list of ports, the pool and the log: good values, and for bad ones an error that
 * names what was seen and what is accepted. Links common alone.
 */
#include "unit.h"

#include "iprange.h"
#include "options.h"
#include "pool.h"
#include "portlist.h"

static char logged[4096];

static void keep_line(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof(logged) - used, "%s\n", line);
}

static const struct log test_log = {.level = LOG_LEVEL_WARN, .fn = keep_line};

static int parse(const char *setting, struct options *out)
{
    const char *settings[] = {setting, NULL};
    logged[0] = '\0';
    return options_parse(settings, &test_log, out);
}

static void refuse(const char *setting, const char *said)
{
    struct options out, before;
    memset(&out, 0x5a, sizeof(out));
    memcpy(&before, &out, sizeof(out));
    assert_int_equal(parse(setting, &out), -EINVAL);
    assert_memory_equal(&out, &before, sizeof(out));
    if (!strstr(logged, said))
        fail_msg("\"%s\": expected \"%s\" in: %s", setting, said, logged);
}

static void defaults_are_the_table_s(void **state)
{
    (void)state;
    struct options o;
    assert_int_equal(options_parse(NULL, &test_log, &o), 0);
    assert_string_equal(o.ports, "auto");
    assert_string_equal(o.gpu, "auto");
    assert_string_equal(o.sysroot, "/");
    assert_int_equal(o.roce_version, 2);
    assert_int_equal(o.gid_family, OPTIONS_FAMILY_AUTO);
    assert_int_equal(o.relaxed, 1);
    assert_int_equal(o.dmabuf, 1);
    assert_int_equal(o.grh, 0);
    assert_int_equal(o.order, OPTIONS_ORDER_RELEASE);
    assert_int_equal(o.channels, 1);
    assert_int_equal(o.stripe_min, OPTIONS_AUTO);
    assert_int_equal(o.piece_min, OPTIONS_AUTO);
    assert_int_equal(o.pace, 1);
    assert_int_equal(o.tail, 0);
    assert_int_equal(o.placement, OPTIONS_PLACEMENT_AUTO);
    assert_int_equal(o.bulk_depth, 256);
    assert_int_equal(o.reply_timeout, 1000000);
    assert_string_equal(o.planes, "");
    assert_int_equal(o.gid_index, OPTIONS_AUTO);
    assert_int_equal(o.mtu, 0);
    assert_int_equal(o.log, LOG_LEVEL_WARN);
    assert_int_equal(o.fault, OPTIONS_FAULT_NONE);
}

/* Each row's default must be accepted by its own reader, and its help must say something. */
static void the_table_reads_itself(void **state)
{
    (void)state;
    struct options_info info;
    size_t rows = 0;
    for (; options_row(rows, &info) == 0; rows++) {
        char setting[128];
        struct options o;
        snprintf(setting, sizeof(setting), "%s=%s", info.name, info.default_value);
        assert_int_equal(parse(setting, &o), 0);
        assert_true(strlen(info.help) > 10);
    }
    assert_true(rows >= 20);
    assert_int_equal(options_row(rows + 1000, &info), -ENOENT);
}

static void values_arrive(void **state)
{
    (void)state;
    const char *settings[] = {"ports=mlx5_0:1,mlx5_1",
                              "rails=2",
                              "order=drain",
                              "channels=8",
                              "stripe_min=64K",
                              "piece_min=1M",
                              "gid_index=3",
                              "mtu=1024",
                              "log=debug",
                              "fault=defer",
                              "pace=off",
                              "tail=on",
                              "placement=unordered",
                              "planes=0,1",
                              "reply_timeout=250",
                              "bulk_depth=1K",
                              "seed=0",
                              "seed=18446744073709551615",
                              NULL};
    struct options o;
    assert_int_equal(options_parse(settings, &test_log, &o), 0);
    assert_string_equal(o.ports, "mlx5_0:1,mlx5_1");
    assert_int_equal(o.rails, 2);
    assert_int_equal(o.order, OPTIONS_ORDER_DRAIN);
    assert_int_equal(o.channels, 8);
    assert_int_equal(o.stripe_min, 65536);
    assert_int_equal(o.piece_min, 1 << 20);
    assert_int_equal(o.gid_index, 3);
    assert_int_equal(o.mtu, 1024);
    assert_int_equal(o.log, LOG_LEVEL_DEBUG);
    assert_int_equal(o.fault, OPTIONS_FAULT_DEFER);
    assert_int_equal(o.pace, 0);
    assert_int_equal(o.tail, 1);
    assert_int_equal(o.placement, OPTIONS_PLACEMENT_UNORDERED);
    assert_string_equal(o.planes, "0,1");
    assert_int_equal(o.reply_timeout, 250);
    assert_int_equal(o.bulk_depth, 1024);
    assert_true(o.seed == UINT64_MAX);
}

static void every_word_of_an_option_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *setting;
        size_t offset;
        uint32_t value;
    } cases[] = {
        {"gid_family=ipv4", offsetof(struct options, gid_family), OPTIONS_FAMILY_IPV4},
        {"gid_family=ipv6", offsetof(struct options, gid_family), OPTIONS_FAMILY_IPV6},
        {"grh=on", offsetof(struct options, grh), 1},
        {"relaxed=off", offsetof(struct options, relaxed), 0},
        {"dmabuf=off", offsetof(struct options, dmabuf), 0},
        {"roce_version=1", offsetof(struct options, roce_version), 1},
        {"order=release", offsetof(struct options, order), OPTIONS_ORDER_RELEASE},
        {"order=strict", offsetof(struct options, order), OPTIONS_ORDER_STRICT},
        {"order=drain", offsetof(struct options, order), OPTIONS_ORDER_DRAIN},
        {"placement=auto", offsetof(struct options, placement), OPTIONS_PLACEMENT_AUTO},
        {"placement=ordered", offsetof(struct options, placement), OPTIONS_PLACEMENT_ORDERED},
        {"stripe_min=auto", offsetof(struct options, stripe_min), OPTIONS_AUTO},
        {"piece_min=auto", offsetof(struct options, piece_min), OPTIONS_AUTO},
        {"pace=auto", offsetof(struct options, pace), 1},
        {"tail=off", offsetof(struct options, tail), 0},
        {"fault=none", offsetof(struct options, fault), 0},
        {"fault=flush", offsetof(struct options, fault), 2},
        {"fault=own-flush", offsetof(struct options, fault), 4},
        {"fault=keys", offsetof(struct options, fault), 8},
        {"fault=overlap", offsetof(struct options, fault), 16},
        {"fault=home", offsetof(struct options, fault), 32},
        {"fault=dedup", offsetof(struct options, fault), 64},
        {"fault=tail", offsetof(struct options, fault), 128},
        {"fault=order", offsetof(struct options, fault), 255},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct options o;
        uint32_t value;
        assert_int_equal(parse(cases[i].setting, &o), 0);
        memcpy(&value, (const char *)&o + cases[i].offset, sizeof(value));
        if (value != cases[i].value)
            fail_msg("%s: %u", cases[i].setting, value);
    }
}

static void settings_beat_the_environment(void **state)
{
    (void)state;
    const char *settings[] = {"channels=3", NULL};
    struct options o;
    setenv("BRAID_CHANNELS", "5", 1);
    setenv("BRAID_SQ_DEPTH", "64", 1);
    assert_int_equal(options_load(settings, &test_log, &o), 0);
    assert_int_equal(o.channels, 3);
    assert_int_equal(o.sq_depth, 64);
    assert_int_equal(options_load(NULL, &test_log, &o), 0);
    assert_int_equal(o.channels, 5);
    setenv("BRAID_CHANNELS", "nine", 1);
    logged[0] = '\0';
    assert_int_equal(options_load(NULL, &test_log, &o), -EINVAL);
    assert_non_null(strstr(logged, "BRAID_CHANNELS"));
    assert_non_null(strstr(logged, "nine"));
    unsetenv("BRAID_CHANNELS");
    unsetenv("BRAID_SQ_DEPTH");
}

static void bad_values_are_refused_with_a_reason(void **state)
{
    (void)state;
    refuse("chanels=1", "did you mean \"channels\"?");
    refuse("BRAID_CHANNELS=1", "there is no option \"BRAID_CHANNELS\"");
    refuse("zzzzzzzz=1", "there is no option");
    refuse("", "there is no option");
    refuse("=", "there is no option");
    refuse("channels", "has no value");
    refuse("channels=0", "1..8");
    refuse("channels=9", "1..8");
    refuse("channels=", "1..8");
    refuse("channels=-1", "1..8");
    refuse("channels=+1", "1..8");
    refuse("channels= 1", "1..8");
    refuse("channels=1 ", "1..8");
    refuse("channels=0x2", "1..8");
    refuse("channels=2Q", "1..8");
    refuse("channels=4294967297", "1..8");
    refuse("channels=99999999999999999999999", "1..8");
    refuse("rails=17", "1..16");
    refuse("rails=99999999999G", "1..16");
    refuse("seed=18446744073709551616", "seed");
    refuse("order=fast", "release (word ops, deferred), strict (all that follows a fence) or drain");
    refuse("order=1", "release (word ops, deferred), strict (all that follows a fence) or drain");
    refuse("pace=on", "(auto) or as far as its send queue reaches (off)");
    refuse("tail=yes", "on or off");
    refuse("placement=relaxed", "auto (asks the device), ordered or unordered");
    refuse("stripe_min=256", "257..1G, or auto");
    refuse("piece_min=127", "128..1G, or auto");
    refuse("bulk_depth=31", "32..65536");
    refuse("bulk_depth=auto", "32..65536");
    refuse("reply_timeout=0", "1..1000000000");
    refuse("mtu=1500", "256, 512, 1024, 2048 or 4096");
    refuse("gid_index=256", "0..255");
    refuse("roce_version=3", "1 or 2");
    refuse("roce_version=0", "1 or 2");
    refuse("gid_family=AF_INET", "ipv4 or ipv6");
    refuse("relaxed=2", "on or off");
    refuse("gpu=0000:3b:00.0 and a lot that is no address", "at most 31");
    refuse("timeout=32", "0..31");
    refuse("fault=everything", "none, defer, flush, own-flush, keys, overlap, home, dedup, tail, or order (all)");
    char *long_value = malloc(5000);
    assert_non_null(long_value);
    memset(long_value, 'x', 4999);
    long_value[4999] = '\0';
    refuse(long_value, "there is no option");
    memcpy(long_value, "ports=", 6);
    refuse(long_value, "at most");
    free(long_value);
}

static void ports(const char *text, int expected, const char *said)
{
    struct portlist list, before;
    memset(&list, 0x5a, sizeof(list));
    before = list;
    logged[0] = '\0';
    assert_int_equal(portlist_parse("ports", text, &test_log, &list), expected);
    assert_memory_equal(&list, &before, sizeof(list));
    if (!strstr(logged, said))
        fail_msg("\"%s\": expected \"%s\" in: %s", text, said, logged);
}

static void port_lists_are_read(void **state)
{
    (void)state;
    struct portlist list;
    assert_int_equal(portlist_parse("ports", "mlx5_0:1,rocep1s0f0,mlx5_0:2,a-b.c:255", &test_log, &list), 0);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.item[0].dev, "mlx5_0");
    assert_int_equal(list.item[0].port, 1);
    assert_string_equal(list.item[1].dev, "rocep1s0f0");
    assert_int_equal(list.item[1].port, 1);
    assert_int_equal(list.item[2].port, 2);
    assert_int_equal(list.item[3].port, 255);
}

static void bad_port_lists_are_refused(void **state)
{
    (void)state;
    char many[256] = "";
    for (int i = 0; i < 17; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), "%smlx5_%d", i ? "," : "", i);
    ports(many, -E2BIG, "more than 16");
    ports("", -EINVAL, "names no port");
    ports(",", -EINVAL, "byte 0");
    ports("mlx5_0,", -EINVAL, "byte 7");
    ports("mlx5_0,,mlx5_1", -EINVAL, "byte 7");
    ports("mlx5_0:1,mlx5_0", -EINVAL, "mlx5_0:1 twice");
    ports("mlx5_0:0", -EINVAL, "is no port");
    ports("mlx5_0:256", -EINVAL, "is no port");
    ports("mlx5_0:", -EINVAL, "is no port");
    ports("mlx5_0:1:1", -EINVAL, "is no port");
    ports("mlx5_0:x", -EINVAL, "is no port");
    ports(" mlx5_0", -EINVAL, "is no port");
    ports("mlx5/0", -EINVAL, "is no port");
    ports("\xff\xfe", -EINVAL, "is no port");
    ports("a123456789b123456789c123456789d123456789e123456789f123456789", -EINVAL, "is no port");
}

static bool in_range(const char *text, const uint8_t gid[16])
{
    struct iprange range;
    assert_int_equal(iprange_parse(text, &test_log, &range), 0);
    return iprange_has(&range, gid);
}

static void ranges_of_addresses_are_read(void **state)
{
    (void)state;
    static const uint8_t v4[16] = {[10] = 0xff, 0xff, 10, 1, 2, 3}, v6[16] = {0xfe, 0x80, [15] = 1};
    assert_true(iprange_is_ipv4(v4));
    assert_false(iprange_is_ipv4(v6));
    assert_true(in_range("", v4) && in_range("", v6) && in_range("::/0", v4) && in_range("::/0", v6));
    assert_true(in_range("10.0.0.0/8", v4) && in_range("10.1.2.3/32", v4) && in_range("10.1.2.2/31", v4));
    assert_false(in_range("10.1.2.2/32", v4));
    assert_false(in_range("11.0.0.0/8", v4));
    assert_true(in_range("0.0.0.0/0", v4));
    assert_false(in_range("0.0.0.0/0", v6));
    assert_true(in_range("fe80::/10", v6) && in_range("fe80::1/128", v6));
    assert_false(in_range("fe80::/10", v4));
    assert_false(in_range("10.128.0.0/9", v4)); /* bits within a byte */
}

static void bad_ranges_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"10.0.0.0",
                                      "/8",
                                      "10.0.0.0/",
                                      "10.0.0.0/33",
                                      "10.0.0/8",
                                      "::/129",
                                      "10.0.0.0/8x",
                                      "10.0.0.0/-1",
                                      "10.0.0.0/+8",
                                      "10.0.0.0/008000",
                                      "a/8",
                                      "fe80::1%eth0/64",
                                      "1111:1111:1111:1111:1111:1111:1111:1111:1111:1111/8"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct iprange range, before;
        memset(&range, 0x5a, sizeof(range));
        before = range;
        logged[0] = '\0';
        assert_int_equal(iprange_parse(bad[i], &test_log, &range), -EINVAL);
        assert_memory_equal(&range, &before, sizeof(range));
        assert_non_null(strstr(logged, "ADDRESS/BITS"));
    }
}

static void sixteen_long_names_fit_the_option(void **state)
{
    (void)state;
    char setting[1300] = "ports=";
    struct options o;
    struct portlist list;
    for (int i = 0; i < 16; i++)
        snprintf(setting + strlen(setting), sizeof(setting) - strlen(setting), "%sd%02d_%055d:255", i ? "," : "", i, 0);
    assert_int_equal(parse(setting, &o), 0);
    assert_int_equal(portlist_parse("ports", o.ports, &test_log, &list), 0);
    assert_int_equal(list.count, 16);
}

static void a_pool_gives_each_object_once(void **state)
{
    (void)state;
    struct pool pool = {0};
    void *object[5];
    assert_int_equal(pool_init(&pool, 0, 8), -EINVAL);
    assert_int_equal(pool_init(&pool, 5, 0), -EINVAL);
    assert_int_equal(pool_init(&pool, SIZE_MAX / 2, 24), -ENOMEM);
    pool_fini(&pool);
    assert_int_equal(pool_init(&pool, 5, 24), 0);
    for (int i = 0; i < 5; i++) {
        void *next = pool_next(&pool);
        object[i] = pool_get(&pool);
        assert_ptr_equal(object[i], next);
        assert_non_null(object[i]);
        memset(object[i], i, 24);
        for (int j = 0; j < i; j++)
            assert_true((char *)object[i] - (char *)object[j] >= 24 || (char *)object[j] - (char *)object[i] >= 24);
    }
    assert_null(pool_next(&pool));
    assert_null(pool_get(&pool));
    pool_put(&pool, object[2]);
    assert_ptr_equal(pool_next(&pool), object[2]);
    assert_ptr_equal(pool_get(&pool), object[2]);
    assert_null(pool_get(&pool));
    pool_fini(&pool);
}

static void the_log_is_limited_and_keeps_errno(void **state)
{
    (void)state;
    struct log_limit limit = {0};
    logged[0] = '\0';
    errno = EDOM;
    log_write(&test_log, LOG_LEVEL_DEBUG, "not shown");
    log_write(NULL, LOG_LEVEL_ERROR, "to nobody");
    for (uint64_t now = 0; now < 10; now++)
        log_write_limited(&test_log, &limit, now, LOG_LEVEL_ERROR, "again");
    assert_string_equal(logged, "again\n");
    log_write_limited(&test_log, &limit, 1000000000, LOG_LEVEL_ERROR, "again");
    assert_string_equal(logged, "again\nagain (and 9 more like it)\n");
    assert_int_equal(errno, EDOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_table_s),
        cmocka_unit_test(the_table_reads_itself),
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(every_word_of_an_option_is_read),
        cmocka_unit_test(settings_beat_the_environment),
        cmocka_unit_test(bad_values_are_refused_with_a_reason),
        cmocka_unit_test(port_lists_are_read),
        cmocka_unit_test(bad_port_lists_are_refused),
        cmocka_unit_test(ranges_of_addresses_are_read),
        cmocka_unit_test(bad_ranges_are_refused),
        cmocka_unit_test(sixteen_long_names_fit_the_option),
        cmocka_unit_test(a_pool_gives_each_object_once),
        cmocka_unit_test(the_log_is_limited_and_keeps_errno),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
