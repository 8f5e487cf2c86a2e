/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wire.c - address blobs and keys: round trips; every truncation and every flipped byte refused; fields out of range,
 * other versions and foreign bytes refused with a reason. Links rail's wire format and common.
 */
#include "unit.h"

#include "crc.h"
#include "rail_wire.h"

static struct rail_wire_rails sample_rails(void)
{
    struct rail_wire_rails rails = {.head = {.pe = 3, .cookie = 0x1122334455667788, .channels = 2}, .count = 2};
    for (unsigned i = 0; i < rails.count; i++) {
        memset(rails.rail[i].gid, (int)(0xa0 + i), 16);
        rails.rail[i].lid = (uint16_t)(7 + i);
        rails.rail[i].link = 2;
        rails.rail[i].rd_atomic = 16;
        rails.rail[i].mtu = 4096;
        rails.rail[i].rate_bits = UINT64_C(200000000000);
        rails.rail[i].flush_addr = 0x7f00deadbee0 + i;
        rails.rail[i].flush_rkey = 0xcafe0000 + i;
        rails.rail[i].gpu_flush_addr = i ? 0x1000 : 0;
        rails.rail[i].gpu_flush_rkey = i ? 77 : 0;
        rails.rail[i].plane = i ? RAIL_WIRE_NO_PLANE : 5;
        rails.rail[i].placement = i ? RAIL_WIRE_PLACEMENT_UNORDERED : RAIL_WIRE_PLACEMENT_ORDERED;
        rails.rail[i].wires = (uint8_t)(i + 1);
        rails.rail[i].ways = i ? RAIL_WIRE_LANES - 1 : 1;
    }
    return rails;
}

static struct rail_wire_lanes sample_lanes(void)
{
    struct rail_wire_lanes lanes = {.head = {.pe = 3, .cookie = 9, .channels = RAIL_WIRE_CHANNELS},
                                    .count = RAIL_WIRE_LANES,
                                    .home = RAIL_WIRE_RAILS - 1};
    for (unsigned c = 0; c < RAIL_WIRE_CHANNELS; c++) {
        for (unsigned k = 0; k < RAIL_WIRE_LANES; k++)
            lanes.end[c][k] = (struct rail_wire_end){.qpn = 0xfffff0 + k, .psn = c << 20 | k};
    }
    return lanes;
}

static struct rail_wire_key sample_key(void)
{
    struct rail_wire_key key = {
        .cookie = 5, .owner = 4, .addr = 0x7f0000001000, .len = 1 << 30, .rails = 16, .memory = RAIL_WIRE_MEMORY_GPU};
    for (unsigned i = 0; i < key.rails; i++) {
        key.bulk_rkey[i] = 0x1000 + i;
        key.word_rkey[i] = 0x2000 + i;
    }
    return key;
}

/* Writes a valid checksum, so that what lies behind it is looked at. */
static void reseal(uint8_t *bytes, size_t len)
{
    memset(bytes + 12, 0, 4);
    uint32_t crc = crc_32(0, bytes, len);
    for (unsigned i = 0; i < 4; i++)
        bytes[12 + i] = (uint8_t)(crc >> 8 * i);
}

static void the_checksum_is_the_known_one(void **state)
{
    (void)state;
    assert_int_equal(crc_32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(crc_32(crc_32(0, "1234", 4), "56789", 5), 0xcbf43926);
}

static void expect_same_rail(const struct rail_wire_rail *a, const struct rail_wire_rail *b)
{
    assert_memory_equal(a->gid, b->gid, sizeof(a->gid));
    assert_true(a->lid == b->lid && a->link == b->link && a->rd_atomic == b->rd_atomic && a->mtu == b->mtu);
    assert_true(a->rate_bits == b->rate_bits && a->flush_addr == b->flush_addr && a->flush_rkey == b->flush_rkey);
    assert_true(a->gpu_flush_addr == b->gpu_flush_addr && a->gpu_flush_rkey == b->gpu_flush_rkey);
    assert_true(a->plane == b->plane && a->placement == b->placement);
    assert_true(a->wires == b->wires && a->ways == b->ways);
}

static void what_is_packed_unpacks(void **state)
{
    (void)state;
    uint8_t bytes[RAIL_WIRE_BYTES], key_bytes[RAIL_WIRE_KEY_BYTES];
    char why[RAIL_WIRE_WHY] = "";
    struct rail_wire_rails rails = sample_rails(), rails_out;
    rail_wire_pack_rails(&rails, bytes);
    assert_int_equal(rail_wire_unpack_rails(bytes, sizeof(bytes), &rails_out, why), 0);
    assert_memory_equal(&rails.head, &rails_out.head, sizeof(rails.head));
    assert_int_equal(rails_out.count, rails.count);
    for (unsigned i = 0; i < rails.count; i++)
        expect_same_rail(&rails.rail[i], &rails_out.rail[i]);

    struct rail_wire_lanes lanes = sample_lanes(), lanes_out;
    rail_wire_pack_lanes(&lanes, bytes);
    assert_int_equal(rail_wire_unpack_lanes(bytes, sizeof(bytes), &lanes_out, why), 0);
    assert_memory_equal(&lanes, &lanes_out, sizeof(lanes));

    struct rail_wire_status status = {.head = {.pe = 1, .channels = 2}, .up = {0xffff, 0x8001}}, status_out;
    rail_wire_pack_status(&status, bytes);
    assert_int_equal(rail_wire_unpack_status(bytes, sizeof(bytes), &status_out, why), 0);
    assert_memory_equal(&status, &status_out, sizeof(status));

    struct rail_wire_status verdict = {.head = {.pe = 5, .cookie = 6, .channels = 2}, .up = {1, 0xfffe}}, verdict_out;
    rail_wire_pack_verdict(&verdict, bytes);
    assert_int_equal(rail_wire_unpack_verdict(bytes, sizeof(bytes), &verdict_out, why), 0);
    assert_memory_equal(&verdict, &verdict_out, sizeof(verdict));
    assert_int_equal(rail_wire_unpack_status(bytes, sizeof(bytes), &status_out, why), -EPROTO); /* another round's */

    struct rail_wire_key key = sample_key(), key_out;
    rail_wire_pack_key(&key, key_bytes);
    assert_int_equal(rail_wire_unpack_key(key_bytes, sizeof(key_bytes), &key_out, why), 0);
    assert_memory_equal(&key, &key_out, sizeof(key));
}

static void an_error_mark_travels(void **state)
{
    (void)state;
    uint8_t bytes[RAIL_WIRE_BYTES];
    char why[RAIL_WIRE_WHY] = "";
    struct rail_wire_rails rails = {.head = {.error = -ENOMEM, .pe = 2}}, out;
    rail_wire_pack_rails(&rails, bytes);
    assert_int_equal(rail_wire_unpack_rails(bytes, sizeof(bytes), &out, why), 0);
    assert_int_equal(out.head.error, -ENOMEM);
    assert_int_equal(out.count, 0);
    struct rail_wire_status verdict = {.head = {.error = -ENETUNREACH, .pe = 2, .channels = 2}, .up = {3, 3}}, judged;
    rail_wire_pack_verdict(&verdict, bytes);
    assert_int_equal(rail_wire_unpack_verdict(bytes, sizeof(bytes), &judged, why), 0);
    assert_int_equal(judged.head.error, -ENETUNREACH);
    assert_true(judged.up[0] == 0 && judged.up[1] == 0);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[RAIL_WIRE_BYTES], key_bytes[RAIL_WIRE_KEY_BYTES];
    struct rail_wire_rails rails = sample_rails(), out;
    struct rail_wire_key key = sample_key(), key_out;
    rail_wire_pack_rails(&rails, bytes);
    rail_wire_pack_key(&key, key_bytes);
    for (size_t len = 0; len < sizeof(bytes); len++) {
        char why[RAIL_WIRE_WHY] = "";
        /* A copy of exactly that size, so that a sanitizer sees a read behind its end. */
        uint8_t *copy = malloc(len ? len : 1);
        assert_non_null(copy);
        memcpy(copy, bytes, len);
        assert_int_equal(rail_wire_unpack_rails(copy, len, &out, why), -EPROTO);
        assert_non_null(strstr(why, "truncated"));
        memcpy(copy, key_bytes, len < sizeof(key_bytes) ? len : sizeof(key_bytes));
        if (len < sizeof(key_bytes))
            assert_int_equal(rail_wire_unpack_key(copy, len, &key_out, why), -EPROTO);
        free(copy);
    }
}

static void every_flipped_bit_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[RAIL_WIRE_BYTES], key_bytes[RAIL_WIRE_KEY_BYTES];
    struct rail_wire_lanes lanes = sample_lanes(), out;
    struct rail_wire_key key = sample_key(), key_out;
    rail_wire_pack_lanes(&lanes, bytes);
    rail_wire_pack_key(&key, key_bytes);
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        char why[RAIL_WIRE_WHY] = "";
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(rail_wire_unpack_lanes(bytes, sizeof(bytes), &out, why), -EPROTO);
        assert_true(why[0] != '\0');
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (bit >= 8 * sizeof(key_bytes))
            continue;
        key_bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(rail_wire_unpack_key(key_bytes, sizeof(key_bytes), &key_out, why), -EPROTO);
        key_bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void another_version_is_named(void **state)
{
    (void)state;
    uint8_t bytes[RAIL_WIRE_BYTES];
    char why[RAIL_WIRE_WHY] = "";
    struct rail_wire_rails rails = sample_rails(), out;
    rail_wire_pack_rails(&rails, bytes);
    bytes[4] = 99;
    reseal(bytes, sizeof(bytes));
    assert_int_equal(rail_wire_unpack_rails(bytes, sizeof(bytes), &out, why), -EPROTO);
    assert_non_null(strstr(why, "version 99"));
    assert_non_null(strstr(why, "version 4"));
}

/* A byte of a rails blob set to a value, with a good checksum: must be refused. */
static void refuse_rails_with(size_t at, uint8_t value)
{
    uint8_t bytes[RAIL_WIRE_BYTES];
    char why[RAIL_WIRE_WHY] = "";
    struct rail_wire_rails rails = sample_rails(), out, before;
    memset(&out, 0x5a, sizeof(out));
    before = out;
    rail_wire_pack_rails(&rails, bytes);
    bytes[at] = value;
    reseal(bytes, sizeof(bytes));
    assert_int_equal(rail_wire_unpack_rails(bytes, sizeof(bytes), &out, why), -EPROTO);
    assert_true(why[0] != '\0');
    assert_memory_equal(&out, &before, sizeof(out));
}

static void counts_behind_a_good_checksum_are_not_trusted(void **state)
{
    (void)state;
    refuse_rails_with(6, 2);  /* kind: lanes */
    refuse_rails_with(32, 0); /* channels */
    refuse_rails_with(32, 9);
    refuse_rails_with(33, 0); /* rails */
    refuse_rails_with(33, 17);
    refuse_rails_with(33, 255);
    refuse_rails_with(16, 1);      /* an error mark that is no errno */
    refuse_rails_with(40 + 18, 0); /* link layer */
    refuse_rails_with(40 + 18, 3);
    refuse_rails_with(40 + 19, 17); /* READs in flight */
    refuse_rails_with(40 + 19, 0);
    refuse_rails_with(104 + 19, 0);
    refuse_rails_with(40 + 20, 1); /* MTU 4097 */
    refuse_rails_with(40 + 21, 0); /* MTU 0 */
    refuse_rails_with(8, 0);       /* length */
    refuse_rails_with(40 + 45, 3); /* placement */
    refuse_rails_with(104 + 45, 255);
    refuse_rails_with(40 + 46, 0);  /* wires */
    refuse_rails_with(104 + 47, 0); /* ways */
    refuse_rails_with(40 + 47, 2);  /* of both more than lanes */
    refuse_rails_with(104 + 47, 255);

    uint8_t bytes[RAIL_WIRE_BYTES];
    char why[RAIL_WIRE_WHY] = "";
    struct rail_wire_lanes lanes = sample_lanes(), out;
    rail_wire_pack_lanes(&lanes, bytes);
    bytes[33] = 17;
    reseal(bytes, sizeof(bytes));
    assert_int_equal(rail_wire_unpack_lanes(bytes, sizeof(bytes), &out, why), -EPROTO);
    bytes[33] = 16;
    bytes[34] = RAIL_WIRE_RAILS;
    reseal(bytes, sizeof(bytes));
    assert_int_equal(rail_wire_unpack_lanes(bytes, sizeof(bytes), &out, why), -EPROTO);
    assert_non_null(strstr(why, "home"));
    bytes[34] = 0;
    bytes[40 + 3] = 1; /* a QPN of 25 bits */
    reseal(bytes, sizeof(bytes));
    assert_int_equal(rail_wire_unpack_lanes(bytes, sizeof(bytes), &out, why), -EPROTO);
    assert_non_null(strstr(why, "QPN"));
}

static void a_key_with_nonsense_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[RAIL_WIRE_KEY_BYTES] = {0};
    char why[RAIL_WIRE_WHY] = "";
    struct rail_wire_key key = sample_key(), out;
    assert_int_equal(rail_wire_unpack_key(bytes, sizeof(bytes), &out, why), -EPROTO);
    assert_non_null(strstr(why, "foreign"));
    key.len = 0;
    rail_wire_pack_key(&key, bytes);
    assert_int_equal(rail_wire_unpack_key(bytes, sizeof(bytes), &out, why), -EPROTO);
    key.len = UINT64_MAX;
    rail_wire_pack_key(&key, bytes);
    assert_int_equal(rail_wire_unpack_key(bytes, sizeof(bytes), &out, why), -EPROTO);
    key = sample_key();
    rail_wire_pack_key(&key, bytes);
    bytes[6] = 17;
    reseal(bytes, sizeof(bytes));
    assert_int_equal(rail_wire_unpack_key(bytes, sizeof(bytes), &out, why), -EPROTO);
    struct rail_wire_view view;
    assert_int_equal(rail_wire_view_key(bytes, &view), -EPROTO);
    for (unsigned memory = 0; memory < 256; memory++) {
        key = sample_key();
        rail_wire_pack_key(&key, bytes);
        bytes[7] = (uint8_t)memory;
        reseal(bytes, sizeof(bytes));
        bool good = memory == RAIL_WIRE_MEMORY_HOST || memory == RAIL_WIRE_MEMORY_GPU;
        assert_int_equal(rail_wire_unpack_key(bytes, sizeof(bytes), &out, why), good ? 0 : -EPROTO);
        assert_int_equal(rail_wire_view_key(bytes, &view), good ? 0 : -EPROTO);
    }
}

static void the_view_of_a_key_is_the_key(void **state)
{
    (void)state;
    uint8_t bytes[RAIL_WIRE_KEY_BYTES];
    struct rail_wire_key key = sample_key();
    struct rail_wire_view view;
    rail_wire_pack_key(&key, bytes);
    assert_int_equal(rail_wire_view_key(bytes, &view), 0);
    assert_true(view.cookie == key.cookie && view.addr == key.addr && view.len == key.len);
    assert_true(view.owner == key.owner && view.rails == key.rails);
    for (unsigned i = 0; i < key.rails; i++) {
        assert_int_equal(rail_wire_view_rkey(bytes, i, false), key.bulk_rkey[i]);
        assert_int_equal(rail_wire_view_rkey(bytes, i, true), key.word_rkey[i]);
    }
    bytes[4] = 1;
    assert_int_equal(rail_wire_view_key(bytes, &view), -EPROTO);
}

static void ranges_end_where_addresses_do(void **state)
{
    (void)state;
    assert_true(range_inside(16, 8, 8, 16));
    assert_false(range_inside(17, 8, 8, 16));
    assert_false(range_inside(7, 1, 8, 16));
    assert_true(range_inside(UINT64_MAX - 15, 15, UINT64_MAX - 15, 15));
    assert_false(range_inside(UINT64_MAX - 3, 8, UINT64_MAX - 15, 100)); /* of a key that was made to wrap */
    assert_false(range_inside(0, UINT64_MAX, 8, 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_end_where_addresses_do),
        cmocka_unit_test(the_checksum_is_the_known_one),
        cmocka_unit_test(what_is_packed_unpacks),
        cmocka_unit_test(an_error_mark_travels),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(another_version_is_named),
        cmocka_unit_test(counts_behind_a_good_checksum_are_not_trusted),
        cmocka_unit_test(a_key_with_nonsense_is_refused),
        cmocka_unit_test(the_view_of_a_key_is_the_key),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
