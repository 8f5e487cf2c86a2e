/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_peer.c - bad input and bad luck: ports that are not there, blobs of another version, truncated or damaged, keys that
 * lie, lanes that break. Everything ends in a clear error, never in a crash, a hang or a guess. Run under ASan as well.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

/* ---- open ---------------------------------------------------------------------------------------------------------------- */

struct open_case {
    const char *ports;
    int expected;
    const char *says;
};

static int pe_bad_ports(struct fabric_pe *p)
{
    static const struct open_case cases[] = {
        {"", -EINVAL, "port"},
        {",", -EINVAL, "port"},
        {"mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1,mlx5_8:1,mlx5_9:1,mlx5_10:1,mlx5_11:1,"
         "mlx5_12:1,mlx5_13:1,mlx5_14:1,mlx5_15:1,mlx5_16:1",
         -E2BIG, "16"},
        {"mlx5_0:1,mlx5_0:1", -EINVAL, "mlx5_0"},
        {"mlx5_0,mlx5_0:1", -EINVAL, "mlx5_0"},
        {"mlx5_99:1", -ENODEV, "mlx5_0"},
        {"mlx5_0:2", -ENODEV, "mlx5_0"},
        {"mlx5_0:0", -EINVAL, "mlx5_0:0"},
        {"mlx5_0:x", -EINVAL, "mlx5_0:x"},
        {"mlx5_0:99999999999", -EINVAL, "mlx5_0"},
        {"mlx5", -ENODEV, "mlx5"}, /* never a prefix match */
        {"mlx5_3:1", -ENETDOWN, "mlx5_3"},
    };
    char why[128];

    p->run->emu->ctl("port h0/mlx5_3:1 down", why, sizeof(why));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct braid *before = (struct braid *)(void *)why;

        p->b = before;
        p->log_lines = 0;
        p->last_log[0] = '\0';
        fabric_equal(p, fabric_open(p, cases[i].ports), cases[i].expected, cases[i].ports);
        fabric_check(p, p->b == before, "output untouched");
        fabric_equal(p, p->log_lines, 1, "logged once");
        fabric_check(p, strstr(p->last_log, cases[i].says) != NULL, p->last_log);
        p->b = NULL;
    }
    return 0;
}

static void bad_ports_are_refused(void **state)
{
    struct fabric f = {.spec = "nodes=1,ports=17", .seed = 1, .fn = pe_bad_ports, .no_context = true};

    (void)state;
    fabric_run_ok(&f);
}

static int pe_sixteen(struct fabric_pe *p)
{
    return fabric_equal(p, braid_rail_count(p->b), 16, "rails") ? 0 : -EPROTO;
}

static void sixteen_rails_are_allowed(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=16", .seed = 1, .fn = pe_sixteen};

    (void)state;
    fabric_run_ok(&f);
}

static int pe_no_room(struct fabric_pe *p)
{
    struct braid_peers bad[] = {
        {0, 0, 1, NULL, NULL}, {sizeof(bad[0]), 0, 1, NULL, NULL}, {sizeof(bad[0]), 1, 1, NULL, NULL}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        fabric_equal(p, braid_connect(p->b, &bad[i]), -EINVAL, "bad struct braid_peers");
    fabric_check(p, braid_channel_at(p->b, 0) == NULL, "no channel before connect");
    return 0;
}

static int pe_open_only(struct fabric_pe *p)
{
    int rc = fabric_open(p, NULL);

    return rc ? rc : pe_no_room(p);
}

static void a_half_open_context_closes(void **state)
{
    struct fabric f = {.spec = "nodes=1,ports=2", .seed = 1, .fn = pe_open_only, .no_context = true};

    (void)state;
    fabric_run_ok(&f);
}

/* ---- blobs of peers ------------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 4 };

/* What PE 1 receives from PE 0 is damaged in one of the alltoalls. */
struct damage {
    int round;
    size_t at; /* byte of the block of PE 0 */
    int value; /* -1: flip a bit; -2: cut: zero from here on; else set */
    int rounds[FABRIC_PES];
    bool changed; /* there was something to damage */
};

static void damage_blob(struct fabric_pe *p, unsigned char *recv, size_t bytes_each)
{
    struct damage *d = p->run->arg;
    unsigned char before[4096];

    if (d->rounds[p->pe]++ != d->round || p->pe != 1)
        return;
    if (bytes_each > sizeof(before) || d->at >= bytes_each)
        return;
    memcpy(before, recv, bytes_each);
    if (d->value == -1)
        recv[d->at] ^= 0x10;
    else if (d->value == -2)
        memset(recv + d->at, 0, bytes_each - d->at);
    else
        recv[d->at] = (unsigned char)d->value;
    d->changed = memcmp(before, recv, bytes_each) != 0;
}

/** PE 1 finds the damage, says so and fails; all others are told in the next round and say whom to ask. */
static int pe_damaged(struct fabric_pe *p)
{
    struct damage *d = p->run->arg;
    int rc = fabric_open(p, NULL);

    if (rc)
        return rc;
    rc = fabric_connect_only(p);
    fabric_equal(p, d->rounds[p->pe], ROUNDS, "all take part in all rounds");
    if (!d->changed) {
        fabric_equal(p, rc, 0, "an undamaged blob");
    } else if (p->pe == 1) {
        fabric_equal(p, rc, -EPROTO, "a damaged blob");
        fabric_equal(p, p->log_lines, 1, "logged once");
        fabric_check(p, strstr(p->last_log, "the address blob of PE 0") != NULL, "the message names the PE");
    } else if (d->round < ROUNDS - 1) { /* what is wrong with the last round has nobody left to be told to */
        fabric_equal(p, rc, -ECONNABORTED, "the others fail too");
        fabric_equal(p, p->log_lines, 1, "they log once");
        fabric_check(p, strstr(p->last_log, "PE 1 could not connect") != NULL, "and name the one that knows why");
    }
    return 0;
}

static void damaged_once(int round, size_t at, int value)
{
    struct damage d = {.round = round, .at = at, .value = value};
    struct fabric f = {
        .spec = "nodes=4,ports=2", .seed = 1, .fn = pe_damaged, .no_context = true, .tamper = damage_blob, .arg = &d};
    int rc = fabric_run(&f);

    if (rc || f.failures)
        fail_msg("round %d, byte %zu, value %d: %d (%s) %s", round, at, value, rc, f.why, f.failure);
}

static void damaged_blobs_are_refused(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t at = 0; at < 40; at++)
            damaged_once(round, at, -1);
        for (size_t at = 0; at < 200; at += 9)
            damaged_once(round, at, -2);
    }
}

static void another_version_is_named(void **state)
{
    /* The version stands right behind the four bytes of the magic number. */
    (void)state;
    for (int round = 0; round < ROUNDS; round++)
        damaged_once(round, 4, 99);
}

/* CRC-32 (IEEE 802.3), bit by bit. */
static uint32_t crc32_of(const unsigned char *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

/* Changes a byte of a blob and puts its checksum right (layout: src/rail/rail_wire.h). */
static void forge(unsigned char *blob, size_t len, size_t at, unsigned char value)
{
    uint32_t crc;

    blob[at] = value;
    memset(blob + 12, 0, 4);
    crc = crc32_of(blob, len);
    for (int i = 0; i < 4; i++)
        blob[12 + i] = (unsigned char)(crc >> 8 * i);
}

/* PE 0's rails answer no READs, says what PE 1 receives: its signals would wait for ever. */
static void no_reads_of_0(struct fabric_pe *p, unsigned char *recv, size_t bytes_each)
{
    struct damage *d = p->run->arg;

    if (d->rounds[p->pe]++ == 0 && p->pe == 1)
        forge(recv, bytes_each, 40 + 19, 0);
}

static int pe_nonsense(struct fabric_pe *p)
{
    int rc = fabric_open(p, NULL);

    if (rc)
        return rc;
    rc = fabric_connect_only(p);
    fabric_equal(p, rc, p->pe == 1 ? -EPROTO : -ECONNABORTED, "nonsense in a good envelope");
    fabric_check(p, p->pe != 1 || strstr(p->last_log, "READs in flight is 0"), "the message says what");
    return 0;
}

static void nonsense_in_a_good_envelope_is_refused(void **state)
{
    struct damage d = {.round = 0};
    struct fabric f = {.spec = "nodes=3,ports=2",
                       .seed = 1,
                       .fn = pe_nonsense,
                       .no_context = true,
                       .tamper = no_reads_of_0,
                       .arg = &d};

    (void)state;
    fabric_run_ok(&f);
}

/* What one PE alone finds wrong in the round of states: no lane between PE 0 and PE 1 came up. */
static void no_lane_between_0_and_1(struct fabric_pe *p, unsigned char *recv, size_t bytes_each)
{
    struct damage *d = p->run->arg;

    if (d->rounds[p->pe]++ == 2 && p->pe <= 1)
        forge(recv + (size_t)(1 - p->pe) * bytes_each, bytes_each, 40, 0);
}

static int pe_cut_off(struct fabric_pe *p)
{
    int rc = fabric_open(p, NULL);

    if (rc)
        return rc;
    rc = fabric_connect_only(p);
    fabric_equal(p, rc, p->pe <= 1 ? -ENETUNREACH : -ECONNABORTED, "one pair that cannot meet ends it for all");
    if (p->pe > 1) {
        fabric_equal(p, p->log_lines, 2, "a line for each of the two");
        fabric_check(p, strstr(p->warnings, "PE 0 could not connect") && strstr(p->warnings, "PE 1 could not connect"),
                     "both are named");
    }
    return 0;
}

static void one_pair_that_cannot_meet_ends_it_for_all(void **state)
{
    struct damage d = {.round = 2};
    struct fabric f = {.spec = "nodes=4,ports=2",
                       .seed = 1,
                       .fn = pe_cut_off,
                       .no_context = true,
                       .tamper = no_lane_between_0_and_1,
                       .arg = &d};

    (void)state;
    fabric_run_ok(&f);
}

/* The home lane between PE 0 and PE 1 did not come up on PE 0's side. */
static void no_home_lane_from_0(struct fabric_pe *p, unsigned char *recv, size_t bytes_each)
{
    struct damage *d = p->run->arg;

    if (d->rounds[p->pe]++ == 2 && p->pe == 1)
        forge(recv, bytes_each, 40, 2);
}

static int pe_homeless(struct fabric_pe *p)
{
    struct braid_done done = {0};

    if (p->pe == 1) {
        fabric_equal(p, braid_lane_count(p->ch, 0), 1, "the lane is left out here too");
        fabric_equal(p, p->log_lines, 2, "two warnings");
        fabric_check(p, strstr(p->warnings, "PE 0 could not bring up 1 of its lanes") != NULL, "the lane is missed");
        fabric_check(p, strstr(p->warnings, "no lane reaches the home rail (0) of PE 0") != NULL, "and what follows");
        fabric_equal(p, fabric_put(p, 0, 0, 0, 1 << 20, &done), 0, "a put can be");
        fabric_equal(p, fabric_add(p, 0, 0, 7, &done), 0, "a signal too, as a message");
        fabric_equal(p, braid_quiet(p->ch, 0), 0, "and both arrive");
        fabric_equal(p, (long long)done.ok, 2, "well");
    }
    while (p->pe == 0 && __atomic_load_n(&p->words[0], __ATOMIC_ACQUIRE) != 7) {
        if (fabric_step(p)) /* which executes it */
            return -EIO;
    }
    for (int i = 0; p->pe == 0 && i < 100; i++)
        braid_progress(p->ch); /* and answers */
    return fabric_barrier(p);
}

static void a_lane_the_other_side_lacks_is_warned_of(void **state)
{
    struct damage d = {.round = 2};
    struct fabric f = {
        .spec = "nodes=3,ports=2", .seed = 1, .fn = pe_homeless, .tamper = no_home_lane_from_0, .arg = &d};

    (void)state;
    fabric_run_ok(&f);
}

/* Lane 1 between PE 0 and PEs 1 to 6 did not come up, so that PE 0's second queue is full of flushed receives. */
static void six_lanes_less(struct fabric_pe *p, unsigned char *recv, size_t bytes_each)
{
    struct damage *d = p->run->arg;

    if (d->rounds[p->pe]++ != 2)
        return;
    for (int pe = 1; p->pe == 0 && pe <= 6; pe++)
        forge(recv + (size_t)pe * bytes_each, bytes_each, 40, 1);
    if (p->pe >= 1 && p->pe <= 6)
        forge(recv, bytes_each, 40, 1);
}

static int pe_behind_silence(struct fabric_pe *p)
{
    struct braid_done done = {0};

    if (p->pe == 0) {
        fabric_equal(p, braid_lane_count(p->ch, 1), 1, "lanes to PE 1");
        fabric_equal(p, braid_lane_count(p->ch, 7), 2, "lanes to PE 7");
        fabric_equal(p, fabric_put(p, 7, 0, 0, 1 << 20, &done), 0, "a put");
        p->run->emu->charge(1000000); /* it has ended meanwhile: nothing will happen that could wake anyone */
        fabric_equal(p, braid_quiet(p->ch, 7), 0, "quiet finds its end behind 96 silent completions");
    }
    return fabric_barrier(p);
}

static void silent_completions_hide_nothing(void **state)
{
    struct damage d = {.round = 2};
    struct fabric f = {
        .spec = "nodes=8,ports=2", .seed = 1, .fn = pe_behind_silence, .tamper = six_lanes_less, .arg = &d};

    (void)state;
    fabric_run_ok(&f);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------ */

static int pe_bad_calls(struct fabric_pe *p)
{
    struct braid_remote to = fabric_remote(p, 1, 0), past = fabric_remote(p, 1, FABRIC_MEM + FABRIC_WORDS * 8 - 4);
    struct braid_local from = fabric_local(p, 0), off = fabric_local(p, FABRIC_MEM + FABRIC_WORDS * 8 - 4);
    struct braid_remote before = {to.addr - 1, to.key}, own = {to.addr, &p->key[0]};
    struct braid_remote none = {to.addr, NULL}, wrap = {UINT64_MAX - 3, to.key};
    struct braid_local no_mem = {p->bytes, NULL};
    struct braid_done done = {0};

    if (p->pe != 0)
        return fabric_barrier(p);
    fabric_equal(p, braid_put(NULL, 1, to, from, 8, NULL), -EINVAL, "no channel");
    fabric_equal(p, braid_put(p->ch, -1, to, from, 8, NULL), -EINVAL, "pe -1");
    fabric_equal(p, braid_put(p->ch, 2, to, from, 8, NULL), -EINVAL, "pe past the last");
    fabric_equal(p, braid_put(p->ch, 1, to, from, ((size_t)1 << 30) + 1, NULL), -EINVAL, "longer than 2^30");
    fabric_equal(p, braid_put(p->ch, 1, none, from, 8, NULL), -EINVAL, "no key");
    fabric_equal(p, braid_put(p->ch, 1, to, no_mem, 8, NULL), -EINVAL, "no region");
    fabric_equal(p, braid_put(p->ch, 1, past, from, 8, NULL), -ERANGE, "past the remote end");
    fabric_equal(p, braid_put(p->ch, 1, before, from, 8, NULL), -ERANGE, "before the remote start");
    fabric_equal(p, braid_put(p->ch, 1, wrap, from, 8, NULL), -ERANGE, "round the end of the address space");
    fabric_equal(p, braid_put(p->ch, 1, to, off, 8, NULL), -ERANGE, "past the local end");
    fabric_equal(p, braid_get(p->ch, 1, off, to, 8, NULL), -ERANGE, "get past the local end");
    fabric_equal(p, braid_get(p->ch, 1, from, past, 8, NULL), -ERANGE, "get past the remote end");
    fabric_equal(p, braid_put(p->ch, 1, own, from, 8, NULL), -EPROTO, "somebody else's key");
    fabric_equal(p, braid_signal_add(p->ch, 1, (struct braid_remote){to.addr + 4, to.key}, 1, NULL), -EINVAL,
                 "a word off its place");
    fabric_equal(p, braid_signal_add(p->ch, 1, (struct braid_remote){past.addr + 4, past.key}, 1, NULL), -ERANGE,
                 "a word past the end");
    fabric_equal(p, braid_quiet(p->ch, 7), -EINVAL, "quiet on nobody");
    fabric_equal(p, braid_fence(p->ch, 7), -EINVAL, "fence on nobody");
    fabric_equal(p, braid_fence(p->ch, BRAID_ALL_PES), 0, "fence on all");
    fabric_equal(p, braid_put(p->ch, 1, to, from, 0, &done), 0, "nothing to put");
    fabric_equal(p, (long long)done.ok, 1, "ends at once");
    fabric_equal(p, braid_put(p->ch, 1, past, from, 4, &done), 0, "the last bytes");
    fabric_equal(p, braid_quiet(p->ch, 1), 0, "and they arrive");
    return fabric_barrier(p);
}

static void bad_calls_are_refused(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2", .seed = 1, .fn = pe_bad_calls};

    (void)state;
    fabric_run_ok(&f);
}

static int pe_bad_keys(struct fabric_pe *p)
{
    struct braid_mem *mem = NULL;

    if (p->pe == 0) {
        for (size_t i = 0; i < BRAID_KEY_BYTES; i++) { /* any changed byte that carries something is found */
            struct braid_key k = p->key[1];
            int rc;

            k.bytes[i] ^= 1;
            rc = braid_key_check(p->b, 1, &k);
            fabric_check(p, rc == -EPROTO || (rc == 0 && i > 64), "a key with a changed byte");
        }
        fabric_equal(p, braid_key_check(p->b, 0, &p->key[1]), -EPROTO, "another PE's key");
        fabric_equal(p, braid_key_check(p->b, 1, &(struct braid_key){{0}}), -EPROTO, "a key of zeros");
        fabric_equal(p,
                     braid_put(p->ch, 1, (struct braid_remote){p->remote[1], &(struct braid_key){{0}}},
                               fabric_local(p, 0), 8, NULL),
                     -EPROTO, "a put with a key of zeros");
        fabric_equal(p, braid_mem_reg(p->b, NULL, 8, NULL, &mem), -EINVAL, "no memory");
        fabric_equal(p, braid_mem_reg(p->b, p->bytes, 0, NULL, &mem), -EINVAL, "no bytes");
        fabric_equal(p, braid_mem_reg(p->b, p->bytes, SIZE_MAX, NULL, &mem), -EINVAL, "a range that wraps");
        fabric_check(p, mem == NULL, "output untouched");
    }
    return fabric_barrier(p);
}

static void bad_keys_are_refused(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2", .seed = 1, .fn = pe_bad_keys};

    (void)state;
    fabric_run_ok(&f);
}

/* ---- lanes that break ---------------------------------------------------------------------------------------------------------- */

/** PE 1 takes its registration away: PE 0's put ends in a remote access error on the wire, once, and all is refused then. */
static int pe_stale_rkey(struct fabric_pe *p)
{
    struct braid_done done = {0};
    int rc = 0;

    if (p->pe == 1) {
        rc = braid_mem_dereg(p->mem);
        p->mem = NULL;
    }
    rc = rc ? rc : fabric_barrier(p);
    if (p->pe == 0) {
        p->log_lines = 0;
        fabric_equal(p, fabric_put(p, 1, 0, 0, 1 << 20, &done), 0, "the put is accepted");
        fabric_equal(p, fabric_add(p, 1, 0, 1, &done), 0, "and a signal behind it");
        rc = braid_quiet(p->ch, 1);
        fabric_check(p, rc < 0 && rc != -EAGAIN && rc != -ECANCELED, "quiet fails");
        fabric_equal(p, (long long)done.failed, 2, "both ended badly");
        fabric_check(p, done.error < 0, "with an error");
        fabric_check(p, p->log_lines >= 1 && p->log_lines <= 4, "logged, but not again and again");
        rc = braid_put(p->ch, 1, fabric_remote(p, 1, 0), fabric_local(p, 0), 1 << 20, NULL);
        fabric_equal(p, rc, -ENOTCONN, "the lanes are gone");
        rc = fabric_put(p, 2, 0, 0, 1 << 20, &done);
        rc = rc ? rc : fabric_add(p, 2, 0, 1, &done);
        rc = rc ? rc : braid_quiet(p->ch, 2);
        fabric_equal(p, rc, 0, "another peer is none the worse");
        rc = 0;
    }
    return rc ? rc : fabric_barrier(p);
}

static void a_stale_rkey_ends_the_lane(void **state)
{
    struct fabric f = {.spec = "nodes=3,ports=2", .seed = 1, .fn = pe_stale_rkey};

    (void)state;
    fabric_run_ok(&f);
}

static int pe_port_dies(struct fabric_pe *p)
{
    struct braid_done done = {0};
    char why[128];
    int rc = 0;

    if (p->pe == 0) {
        for (int i = 0; rc == 0 && i < 8; i++) {
            rc = fabric_put(p, 1, 0, 0, 1 << 20, &done);
            rc = rc ? rc : fabric_add(p, 1, 0, 1, &done);
            if (i == 2)
                p->run->emu->ctl("port h1/mlx5_1:1 down", why, sizeof(why));
        }
        fabric_check(p, rc == 0 || rc == -ENOTCONN, "ops are taken or refused");
        rc = braid_quiet(p->ch, 1);
        fabric_check(p, rc < 0 && rc != -ECANCELED, "quiet fails");
        fabric_check(p, done.failed > 0, "and some ops did");
        rc = 0;
    }
    return rc ? rc : fabric_barrier(p);
}

static void a_dead_port_is_an_error_not_a_hang(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2", .seed = 1, .fn = pe_port_dies, .settings = {"timeout=8", "retry=2"}};

    (void)state;
    fabric_run_ok(&f);
    f.settings[2] = "order=drain";
    fabric_run_ok(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_ports_are_refused),
        cmocka_unit_test(sixteen_rails_are_allowed),
        cmocka_unit_test(a_half_open_context_closes),
        cmocka_unit_test(damaged_blobs_are_refused),
        cmocka_unit_test(another_version_is_named),
        cmocka_unit_test(nonsense_in_a_good_envelope_is_refused),
        cmocka_unit_test(one_pair_that_cannot_meet_ends_it_for_all),
        cmocka_unit_test(a_lane_the_other_side_lacks_is_warned_of),
        cmocka_unit_test(silent_completions_hide_nothing),
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(bad_keys_are_refused),
        cmocka_unit_test(a_stale_rkey_ends_the_lane),
        cmocka_unit_test(a_dead_port_is_an_error_not_a_hang),
    };

    return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
