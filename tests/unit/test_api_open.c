/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_open.c - opening, connecting and closing over a fake device: bad ports and options, every call that can fail made
 * to fail once, blobs of failed peers, lanes left out. Nothing may leak, hang or be guessed at.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs.
 */
#include "open_rig.h"

#include "rail_wire.h"

/* A peer, PE 1, of which only the blobs of the first round are played: those of a PE with so many rails. */
static struct rail_wire_rails other;

static int with_other(void *arg, const void *send, void *recv, size_t bytes_each)
{
    (void)arg;
    memcpy(recv, send, bytes_each);
    uint8_t *theirs = (uint8_t *)recv + bytes_each;
    struct rail_wire_head head = {.error = -ENOMEM, .pe = 1, .channels = 1};
    if (rounds++ == 0)
        rail_wire_pack_rails(&other, theirs);
    else if (rounds == 2)
        rail_wire_pack_lanes(&(struct rail_wire_lanes){.head = head}, theirs);
    else if (rounds == 3)
        rail_wire_pack_status(&(struct rail_wire_status){.head = head}, theirs);
    else
        rail_wire_pack_verdict(&(struct rail_wire_status){.head = head}, theirs);
    return 0;
}

static void refuse_open(const char *ports, const char *setting, int expected, const char *said)
{
    struct braid *b = NULL;
    assert_int_equal(open_with(ports, setting, &b), expected);
    assert_null(b);
    if (!strstr(logged, said))
        fail_msg("ports %s, %s: expected \"%s\" in: %s", ports, setting ? setting : "", said, logged);
}

static void bad_ports_and_options_are_refused(void **state)
{
    (void)state;
    refuse_open("", NULL, -EINVAL, "names no port");
    refuse_open("fake0,fake0:1", NULL, -EINVAL, "twice");
    refuse_open("fake0,fake1,fake2,fake3,fake4,fake5,fake6,fake7,fake8,fake9,fake10,fake11,fake14,fake15,a,b,c", NULL,
                -E2BIG, "more than 16");
    refuse_open("mlx5_9", NULL, -ENODEV, "this host has: fake0");
    refuse_open("fake0:2", NULL, -ENODEV, "there is no port fake0:2");
    refuse_open("fake12", NULL, -ENETDOWN, "is DOWN, expected ACTIVE");
    refuse_open("fake0", "rails=2", -EINVAL, "\"rails\" is 2");
    refuse_open("fake0", "order=loose", -EINVAL, "release (word ops, deferred), strict (all that follows a fence)");
    refuse_open("fake0", "nonsense", -EINVAL, "there is no option");
    refuse_open("fake0,fake1", "planes=0", -EINVAL, "says nothing of port 1");
    refuse_open("fake0,fake1", "planes=0,1,0", -EINVAL, "names 3 planes, but there are 2 ports");
    refuse_open("fake0,fake1", "planes=0,255", -EINVAL, "expected a plane of 0 to 254");
    refuse_open("fake0,fake1", "planes=0,99999999999999999999", -EINVAL, "expected a plane of 0 to 254");
    refuse_open("fake0,fake1", "planes=0,", -EINVAL, "seen \"\", expected a plane");
    refuse_open("fake0,fake1", "planes=,0", -EINVAL, "seen \",0\", expected a plane");
    refuse_open("fake0,fake1", "planes=0,x", -EINVAL, "seen \"x\", expected a plane");
    refuse_open("fake0,fake1", "planes=0,1x", -EINVAL, "seen \"1x\", expected a plane");
    refuse_open("fake0,fake1", "planes=0, 1", -EINVAL, "seen \" 1\", expected a plane");
    refuse_open("fake0,fake1", "planes=-1,0", -EINVAL, "expected a plane of 0 to 254");
    refuse_open("fake0", "planes=0 ", -EINVAL, "expected a plane of 0 to 254");
    refuse_open("fake0", "planes=0,junk", -EINVAL, "expected a plane of 0 to 254");
}

/* Every call of the device fails once, at each place where it is made; each time all must be given back. */
static void every_failure_is_clean(void **state)
{
    (void)state;
    for (unsigned call = 0; call < FAKE_CALLS; call++) {
        for (unsigned n = 0; n < 40; n++) {
            struct braid *b = NULL;
            struct braid_mem *mem = NULL;
            fake_reset();
            fake_fail(call, n, -EDOM);
            int rc = open_with("fake0,fake1", "channels=2", &b);
            if (!rc)
                rc = connect_to_self(b);
            /* A PE that fails inside takes part in all four rounds all the same. */
            if (b)
                assert_int_equal(rounds, 4);
            if (!rc)
                rc = braid_mem_reg(b, memory, sizeof(memory), NULL, &mem);
            if (rc)
                assert_true(logged[0] != '\0');
            /* A lane that cannot be connected or probed is left out, as long as one is left. */
            bool reached = fake_calls(call) > n;
            assert_true(rc == 0 || reached);
            if (reached && call != FAKE_RTR && call != FAKE_RTS && call != FAKE_POST_SEND && call != FAKE_POLL)
                assert_int_equal(rc, -EDOM);
            braid_close(b);
            assert_int_equal(fake_alive(), 0);
        }
    }
}

static void no_lane_at_all_is_an_error(void **state)
{
    (void)state;
    struct braid *b = NULL;
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    fake_fail(FAKE_RTR, 0, -EHOSTUNREACH);
    assert_int_equal(connect_to_self(b), -ENETUNREACH);
    assert_non_null(strstr(logged, "no lane to PE 0"));
    braid_close(b);
}

static void a_lane_that_cannot_be_is_left_out(void **state)
{
    (void)state;
    struct braid *b = NULL;
    assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
    fake_fail(FAKE_RTR, 0, -EHOSTUNREACH);
    assert_int_equal(connect_to_self(b), 0);
    assert_int_equal(braid_lane_count(braid_channel_at(b, 0), 0), 1);
    assert_non_null(strstr(logged, "left out"));
    braid_close(b);
}

static void a_lane_whose_probe_fails_is_left_out(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct braid *b = NULL;
        fake_reset();
        assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
        fake_auto_error(k, -ETIMEDOUT);
        assert_int_equal(connect_to_self(b), 0);
        assert_int_equal(braid_lane_count(braid_channel_at(b, 0), 0), 1);
        assert_true(fake_stopped(fake_qp(k)) && !fake_stopped(fake_qp(!k)));
        assert_non_null(
            strstr(logged, k ? "port fake1:1 does not reach rail 1 of PE 0" : "port fake0:1 does not reach rail 0"));
        assert_non_null(strstr(logged, "option \"planes\""));
        assert_true((strstr(logged, "no lane reaches the home rail (0) of PE 0") != NULL) == (k == 0));
        braid_close(b);
    }
}

static void no_probe_that_comes_back_is_an_error(void **state)
{
    (void)state;
    struct braid *b = NULL;
    assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
    fake_auto_error(0, -ETIMEDOUT);
    fake_auto_error(1, -ETIMEDOUT);
    assert_int_equal(connect_to_self(b), -ENETUNREACH);
    assert_int_equal(rounds, 4);
    assert_non_null(strstr(logged, "no lane to PE 0 works"));
    braid_close(b);
}

/* Ports of unlike planes do not meet; a port without a plane meets all. */
static void planes_are_told_and_kept_apart(void **state)
{
    (void)state;
    static const struct {
        const char *setting;
        uint8_t theirs;
        int expected;
    } cases[] = {
        {"planes=0", 0, 0}, {"planes=0", 1, -ENETUNREACH},       {"planes=254", 254, 0},
        {"planes=", 1, 0},  {"planes=1", RAIL_WIRE_NO_PLANE, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct braid *b = NULL;
        struct braid_peers peers = {.size = sizeof(peers), .my_pe = 0, .n_pes = 2, .alltoall = with_other};
        other = (struct rail_wire_rails){.head = {.pe = 1, .channels = 1},
                                         .count = 1,
                                         .rail[0] = {.link = VERBS_LINK_ETHERNET,
                                                     .rd_atomic = 16,
                                                     .mtu = 4096,
                                                     .plane = cases[i].theirs,
                                                     .wires = 1,
                                                     .ways = 1}};
        assert_int_equal(open_with("fake0", cases[i].setting, &b), 0);
        /* Where they meet, connecting goes on, and ends with the peer's failure in the second round. */
        assert_int_equal(braid_connect(b, &peers), cases[i].expected ? cases[i].expected : -ECONNABORTED);
        braid_close(b);
    }
}

/* What still happens on a lane that was left out must not be taken for something of the lane that has its place now. */
static void a_lane_left_out_does_no_harm(void **state)
{
    (void)state;
    struct braid *b = NULL;
    assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
    fake_fail(FAKE_RTR, 0, -EHOSTUNREACH);
    assert_int_equal(connect_to_self(b), 0);
    struct braid_channel *ch = braid_channel_at(b, 0);
    fake_stray(fake_qp(0), UINT64_C(1) << 63, -EIO); /* its first receive */
    assert_true(braid_progress(ch) > 0);
    assert_false(fake_stopped(fake_qp(1)));
    assert_null(strstr(logged, "failed"));
    struct braid_mem *mem;
    struct braid_key key;
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    assert_int_equal(braid_mem_key(mem, &key), 0);
    struct braid_remote there = {(uintptr_t)memory, &key};
    assert_int_equal(braid_put(ch, 0, there, (struct braid_local){memory, mem}, 4096, NULL), 0);
    braid_close(b);
}

/* The mailbox needs no rights for peers; regions do. */
static void peers_may_use_regions_alone(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
    assert_int_equal(connect_to_self(b), 0);
    assert_int_equal(fake_calls(FAKE_MR), 5); /* a flush line and a mailbox a port, and one for the executor */
    assert_int_equal(fake_remote_mrs(), 0);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    assert_int_equal(fake_remote_mrs(), 4); /* a relaxed and a strict one a port */
    braid_close(b);
}

static void verbs_attributes_reach_the_lanes(void **state)
{
    (void)state;
    struct braid *b = NULL;
    assert_int_equal(open_with("fake13", NULL, &b), 0); /* InfiniBand: no global route header by itself */
    assert_int_equal(connect_to_self(b), 0);
    assert_false(fake_path(fake_qp(0))->global);
    braid_close(b);
    fake_reset();
    assert_int_equal(open_with("fake13", "grh=on", &b), 0);
    assert_int_equal(connect_to_self(b), 0);
    assert_true(fake_path(fake_qp(0))->global);
    braid_close(b);
    struct braid_mem *mem;
    fake_reset();
    assert_int_equal(open_with("fake0", "relaxed=off", &b), 0);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    assert_int_equal(fake_remote_mrs(), 1); /* the strict one serves both */
    braid_close(b);
    assert_int_equal(open_with("fake0", "gid_range=10.0.0.0", &b), -EINVAL);
    assert_non_null(strstr(logged, "gid_range"));
    assert_int_equal(open_with("fake0", "gid_range=10.0.0.0/8", &b), -EADDRNOTAVAIL);
    assert_non_null(strstr(logged, "set gid_index"));
}

static void no_memory_says_what_to_do(void **state)
{
    (void)state;
    static const enum fake_call calls[] = {FAKE_MR, FAKE_CQ, FAKE_QP};
    struct braid *b = NULL;
    struct braid_mem *mem;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(open_with("fake0", NULL, &b), 0);
        fake_fail(calls[i], 0, -ENOMEM);
        assert_int_equal(connect_to_self(b), -ENOMEM);
        assert_non_null(strstr(logged, "ulimit -l"));
        braid_close(b);
    }
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    fake_fail(FAKE_MR, 0, -ENOMEM);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), -ENOMEM);
    assert_non_null(strstr(logged, "ulimit -l"));
    braid_close(b);
}

static void an_exchange_that_fails_ends_connecting(void **state)
{
    (void)state;
    for (failing = 0; failing < 4; failing++) {
        struct braid *b = NULL;
        assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
        assert_int_equal(connect_to_self(b), -ECONNRESET);
        assert_int_equal(rounds, failing + 1);
        assert_null(braid_channel_at(b, 0));
        assert_int_equal(connect_to_self(b), -EALREADY);
        braid_close(b);
    }
}

/* Plays PE 1 with these rails; the result of PE 0's connect. */
static int connect_with_other(const char *ports)
{
    struct braid *b = NULL;
    struct braid_peers peers = {.size = sizeof(peers), .my_pe = 0, .n_pes = 2, .alltoall = with_other};
    assert_int_equal(open_with(ports, NULL, &b), 0);
    int rc = braid_connect(b, &peers);
    assert_int_equal(rounds, 4);
    braid_close(b);
    return rc;
}

static void a_peer_that_failed_is_named(void **state)
{
    (void)state;
    other = (struct rail_wire_rails){.head = {.error = -ENOMEM, .pe = 1}};
    assert_int_equal(connect_with_other("fake0"), -ECONNABORTED);
    assert_non_null(strstr(logged, "PE 1 could not connect: Cannot allocate memory"));
}

static void a_peer_with_other_settings_is_named(void **state)
{
    (void)state;
    other = (struct rail_wire_rails){
        .head = {.pe = 1, .channels = 2},
        .count = 1,
        .rail[0] = {.link = VERBS_LINK_ETHERNET, .rd_atomic = 16, .mtu = 4096, .wires = 1, .ways = 1}};
    assert_int_equal(connect_with_other("fake0"), -EPROTO);
    assert_non_null(strstr(logged, "PE 1 has 2 channels, this PE 1"));
    other.head.channels = 1;
    other.head.pe = 7;
    assert_int_equal(connect_with_other("fake0"), -EPROTO);
    assert_non_null(strstr(logged, "came from PE 7"));
}

static void unlike_link_layers_do_not_meet(void **state)
{
    (void)state;
    other = (struct rail_wire_rails){
        .head = {.pe = 1, .channels = 1},
        .count = 1,
        .rail[0] = {.link = VERBS_LINK_ETHERNET, .rd_atomic = 16, .mtu = 4096, .wires = 1, .ways = 1}};
    assert_int_equal(connect_with_other("fake13"), -ENETUNREACH);
    assert_non_null(strstr(logged, "link layers, subnets or planes differ"));
}

static void a_context_can_be_closed_at_any_time(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    braid_close(NULL);
    assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
    braid_close(b);
    assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    braid_close(b);
    assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
    assert_int_equal(connect_to_self(b), 0);
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), NULL, &mem), 0);
    struct braid_key key;
    assert_int_equal(braid_mem_key(mem, &key), 0);
    struct braid_done done = {0};
    struct braid_remote there = {(uintptr_t)memory, &key};
    assert_int_equal(braid_put(braid_channel_at(b, 0), 0, there, (struct braid_local){memory, mem}, 4096, &done), 0);
    braid_close(b); /* with a request out */
    assert_true(done.ok == 0 && done.failed == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(bad_ports_and_options_are_refused),
        CLEAN(every_failure_is_clean),
        CLEAN(no_lane_at_all_is_an_error),
        CLEAN(a_lane_that_cannot_be_is_left_out),
        CLEAN(a_lane_whose_probe_fails_is_left_out),
        CLEAN(no_probe_that_comes_back_is_an_error),
        CLEAN(planes_are_told_and_kept_apart),
        CLEAN(a_lane_left_out_does_no_harm),
        CLEAN(peers_may_use_regions_alone),
        CLEAN(verbs_attributes_reach_the_lanes),
        CLEAN(no_memory_says_what_to_do),
        CLEAN(an_exchange_that_fails_ends_connecting),
        CLEAN(a_peer_that_failed_is_named),
        CLEAN(a_peer_with_other_settings_is_named),
        CLEAN(unlike_link_layers_do_not_meet),
        CLEAN(a_context_can_be_closed_at_any_time),
    };
    return cmocka_run_group_tests_name("api_open", tests, NULL, NULL);
}
