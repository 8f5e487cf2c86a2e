/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_wire.c - packs and unpacks address blobs and keys (layout: rail_wire.h).
 * Pure: bytes in, structs out. Called by src/api (api_peer.c, api_mem.c, api_put.c).
 */
#include "rail_wire.h"

#include "crc.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WIRE_BLOB_MAGIC 0x42445242u /* "BRDB" */
#define WIRE_KEY_MAGIC  0x4b445242u /* "BRDK" */
#define WIRE_CRC_AT     12u
#define WIRE_BODY_AT    40u
#define WIRE_RAIL_BYTES 64u
#define WIRE_KEYS_AT    48u
#define WIRE_ERRNO_MAX  4095

enum { WIRE_KIND_RAILS = 1, WIRE_KIND_LANES = 2, WIRE_KIND_STATUS = 3, WIRE_KIND_VERDICT = 4 };

static void wire_put16(uint8_t *at, uint16_t value)
{
    value = htole16(value);
    memcpy(at, &value, sizeof(value));
}

static void wire_put32(uint8_t *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof(value));
}

static void wire_put64(uint8_t *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof(value));
}

static uint16_t wire_get16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return le16toh(value);
}

static uint32_t wire_get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

static uint64_t wire_get64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

/* The checksum with its own field as zero. */
static uint32_t wire_crc(const uint8_t *bytes, size_t len)
{
    static const uint8_t zero[4];
    uint32_t crc = crc_32(0, bytes, WIRE_CRC_AT);
    crc = crc_32(crc, zero, sizeof(zero));
    return crc_32(crc, bytes + WIRE_CRC_AT + 4, len - WIRE_CRC_AT - 4);
}

/* Magic, version, length and checksum, which blobs and keys have at the same places. */
static int wire_check(const uint8_t *bytes, size_t len, uint32_t magic, size_t expected, char why[RAIL_WIRE_WHY])
{
    if (len < expected) {
        snprintf(why, RAIL_WIRE_WHY, "truncated: %zu bytes, expected %zu", len, expected);
        return -EPROTO;
    }
    if (wire_get32(bytes) != magic) {
        snprintf(why, RAIL_WIRE_WHY, "foreign: it begins with 0x%08x, expected 0x%08x", wire_get32(bytes), magic);
        return -EPROTO;
    }
    if (wire_get16(bytes + 4) != RAIL_WIRE_VERSION) {
        snprintf(why, RAIL_WIRE_WHY, "of version %u, this process speaks version %d: use the same braid on both sides",
                 wire_get16(bytes + 4), RAIL_WIRE_VERSION);
        return -EPROTO;
    }
    if (wire_get32(bytes + 8) != expected) {
        snprintf(why, RAIL_WIRE_WHY, "damaged: it says it has %u bytes, expected %zu", wire_get32(bytes + 8), expected);
        return -EPROTO;
    }
    uint32_t crc = wire_crc(bytes, expected);
    if (wire_get32(bytes + WIRE_CRC_AT) != crc) {
        snprintf(why, RAIL_WIRE_WHY, "damaged: checksum 0x%08x, expected 0x%08x", wire_get32(bytes + WIRE_CRC_AT), crc);
        return -EPROTO;
    }
    return 0;
}

/* A field that passed the checksum but is out of its range: the sender is another program. */
static int wire_bad(char why[RAIL_WIRE_WHY], const char *field, uint64_t value)
{
    snprintf(why, RAIL_WIRE_WHY, "not plausible: %s is %llu", field, (unsigned long long)value);
    return -EPROTO;
}

static void wire_seal(uint8_t *bytes, size_t len)
{
    wire_put32(bytes + WIRE_CRC_AT, wire_crc(bytes, len));
}

static void wire_put_head(uint8_t out[RAIL_WIRE_BYTES], uint16_t kind, const struct rail_wire_head *head)
{
    memset(out, 0, RAIL_WIRE_BYTES);
    wire_put32(out, WIRE_BLOB_MAGIC);
    wire_put16(out + 4, RAIL_WIRE_VERSION);
    wire_put16(out + 6, kind);
    wire_put32(out + 8, RAIL_WIRE_BYTES);
    wire_put32(out + 16, (uint32_t)head->error);
    wire_put32(out + 20, head->pe);
    wire_put64(out + 24, head->cookie);
    out[32] = (uint8_t)head->channels;
}

static int wire_get_head(const uint8_t *bytes, size_t len, uint16_t kind, struct rail_wire_head *head,
                         char why[RAIL_WIRE_WHY])
{
    int rc = wire_check(bytes, len, WIRE_BLOB_MAGIC, RAIL_WIRE_BYTES, why);
    if (rc)
        return rc;
    if (wire_get16(bytes + 6) != kind)
        return wire_bad(why, "the blob's kind", wire_get16(bytes + 6));
    *head = (struct rail_wire_head){
        .error = (int)wire_get32(bytes + 16),
        .pe = wire_get32(bytes + 20),
        .cookie = wire_get64(bytes + 24),
        .channels = bytes[32],
    };
    if (head->error > 0 || head->error < -WIRE_ERRNO_MAX)
        return wire_bad(why, "the error mark", wire_get32(bytes + 16));
    if (!head->error && (head->channels < 1 || head->channels > RAIL_WIRE_CHANNELS))
        return wire_bad(why, "the number of channels", head->channels);
    return 0;
}

void rail_wire_pack_rails(const struct rail_wire_rails *in, uint8_t out[RAIL_WIRE_BYTES])
{
    wire_put_head(out, WIRE_KIND_RAILS, &in->head);
    out[33] = (uint8_t)in->count;
    for (unsigned i = 0; i < in->count; i++) {
        uint8_t *at = out + WIRE_BODY_AT + i * WIRE_RAIL_BYTES;
        memcpy(at, in->rail[i].gid, sizeof(in->rail[i].gid));
        wire_put16(at + 16, in->rail[i].lid);
        at[18] = in->rail[i].link;
        at[19] = in->rail[i].rd_atomic;
        wire_put32(at + 20, in->rail[i].mtu);
        wire_put64(at + 24, in->rail[i].rate_bits);
        wire_put64(at + 32, in->rail[i].flush_addr);
        wire_put32(at + 40, in->rail[i].flush_rkey);
        at[44] = in->rail[i].plane;
        at[45] = in->rail[i].placement;
        at[46] = in->rail[i].wires;
        at[47] = in->rail[i].ways;
        wire_put64(at + 48, in->rail[i].gpu_flush_addr);
        wire_put32(at + 56, in->rail[i].gpu_flush_rkey);
    }
    wire_seal(out, RAIL_WIRE_BYTES);
}

static int wire_get_rail(const uint8_t *at, struct rail_wire_rail *rail, char why[RAIL_WIRE_WHY])
{
    memcpy(rail->gid, at, sizeof(rail->gid));
    rail->lid = wire_get16(at + 16);
    rail->link = at[18];
    rail->rd_atomic = at[19];
    rail->mtu = wire_get32(at + 20);
    rail->rate_bits = wire_get64(at + 24);
    rail->flush_addr = wire_get64(at + 32);
    rail->flush_rkey = wire_get32(at + 40);
    rail->plane = at[44];
    rail->placement = at[45];
    rail->wires = at[46];
    rail->ways = at[47];
    rail->gpu_flush_addr = wire_get64(at + 48);
    rail->gpu_flush_rkey = wire_get32(at + 56);
    if (rail->mtu < 256 || rail->mtu > 4096 || (rail->mtu & (rail->mtu - 1)))
        return wire_bad(why, "a rail's MTU", rail->mtu);
    if (rail->link != RAIL_WIRE_LINK_IB && rail->link != RAIL_WIRE_LINK_ETHERNET)
        return wire_bad(why, "a rail's link layer", rail->link);
    /* With none, a READ or an atomic would wait for ever. */
    if (rail->rd_atomic < 1 || rail->rd_atomic > 16)
        return wire_bad(why, "a rail's number of READs in flight", rail->rd_atomic);
    if (rail->placement > RAIL_WIRE_PLACEMENT_UNORDERED)
        return wire_bad(why, "a rail's placement", rail->placement);
    if (rail->wires < 1)
        return wire_bad(why, "a rail's number of wires", rail->wires);
    if (rail->ways < 1)
        return wire_bad(why, "a rail's number of ways", rail->ways);
    return 0;
}

int rail_wire_unpack_rails(const void *bytes, size_t len, struct rail_wire_rails *out, char why[RAIL_WIRE_WHY])
{
    const uint8_t *in = bytes;
    struct rail_wire_rails rails = {0};
    unsigned ways = 0;
    int rc = wire_get_head(in, len, WIRE_KIND_RAILS, &rails.head, why);
    if (rc)
        return rc;
    if (!rails.head.error) {
        rails.count = in[33];
        if (rails.count < 1 || rails.count > RAIL_WIRE_RAILS)
            return wire_bad(why, "the number of rails", rails.count);
        for (unsigned i = 0; i < rails.count && !rc; i++)
            rc = wire_get_rail(in + WIRE_BODY_AT + i * WIRE_RAIL_BYTES, &rails.rail[i], why);
        for (unsigned i = 0; i < rails.count; i++)
            ways += rails.rail[i].ways;
        if (!rc && ways > RAIL_WIRE_LANES)
            rc = wire_bad(why, "the number of ways of all rails", ways);
    }
    if (!rc)
        *out = rails;
    return rc;
}

void rail_wire_pack_lanes(const struct rail_wire_lanes *in, uint8_t out[RAIL_WIRE_BYTES])
{
    wire_put_head(out, WIRE_KIND_LANES, &in->head);
    out[33] = (uint8_t)in->count;
    out[34] = (uint8_t)in->home;
    for (unsigned c = 0; c < in->head.channels; c++) {
        for (unsigned k = 0; k < in->count; k++) {
            uint8_t *at = out + WIRE_BODY_AT + (c * RAIL_WIRE_LANES + k) * 8;
            wire_put32(at, in->end[c][k].qpn);
            wire_put32(at + 4, in->end[c][k].psn);
        }
    }
    wire_seal(out, RAIL_WIRE_BYTES);
}

int rail_wire_unpack_lanes(const void *bytes, size_t len, struct rail_wire_lanes *out, char why[RAIL_WIRE_WHY])
{
    const uint8_t *in = bytes;
    struct rail_wire_lanes lanes = {0};
    int rc = wire_get_head(in, len, WIRE_KIND_LANES, &lanes.head, why);
    if (rc)
        return rc;
    lanes.count = lanes.head.error ? 0 : in[33];
    lanes.home = lanes.head.error ? 0 : in[34];
    if (lanes.count > RAIL_WIRE_LANES)
        return wire_bad(why, "the number of lanes", lanes.count);
    if (lanes.home >= RAIL_WIRE_RAILS)
        return wire_bad(why, "the home rail", lanes.home);
    for (unsigned c = 0; c < lanes.head.channels && !lanes.head.error; c++) {
        for (unsigned k = 0; k < lanes.count; k++) {
            const uint8_t *at = in + WIRE_BODY_AT + (c * RAIL_WIRE_LANES + k) * 8;
            struct rail_wire_end *end = &lanes.end[c][k];
            *end = (struct rail_wire_end){.qpn = wire_get32(at), .psn = wire_get32(at + 4)};
            if (end->qpn > 0xffffff)
                return wire_bad(why, "a QPN", end->qpn);
            if (end->psn > 0xffffff)
                return wire_bad(why, "a start PSN", end->psn);
        }
    }
    *out = lanes;
    return 0;
}

static void wire_pack_mask(const struct rail_wire_status *in, uint16_t kind, uint8_t out[RAIL_WIRE_BYTES])
{
    wire_put_head(out, kind, &in->head);
    for (unsigned c = 0; c < in->head.channels; c++)
        wire_put16(out + WIRE_BODY_AT + 2 * c, in->up[c]);
    wire_seal(out, RAIL_WIRE_BYTES);
}

static int wire_unpack_mask(const void *bytes, size_t len, uint16_t kind, struct rail_wire_status *out,
                            char why[RAIL_WIRE_WHY])
{
    const uint8_t *in = bytes;
    struct rail_wire_status status = {0};
    int rc = wire_get_head(in, len, kind, &status.head, why);
    if (rc)
        return rc;
    for (unsigned c = 0; c < status.head.channels && !status.head.error; c++)
        status.up[c] = wire_get16(in + WIRE_BODY_AT + 2 * c);
    *out = status;
    return 0;
}

void rail_wire_pack_status(const struct rail_wire_status *in, uint8_t out[RAIL_WIRE_BYTES])
{
    wire_pack_mask(in, WIRE_KIND_STATUS, out);
}

int rail_wire_unpack_status(const void *bytes, size_t len, struct rail_wire_status *out, char why[RAIL_WIRE_WHY])
{
    return wire_unpack_mask(bytes, len, WIRE_KIND_STATUS, out, why);
}

void rail_wire_pack_verdict(const struct rail_wire_status *in, uint8_t out[RAIL_WIRE_BYTES])
{
    wire_pack_mask(in, WIRE_KIND_VERDICT, out);
}

int rail_wire_unpack_verdict(const void *bytes, size_t len, struct rail_wire_status *out, char why[RAIL_WIRE_WHY])
{
    return wire_unpack_mask(bytes, len, WIRE_KIND_VERDICT, out, why);
}

void rail_wire_pack_key(const struct rail_wire_key *in, uint8_t out[RAIL_WIRE_KEY_BYTES])
{
    memset(out, 0, RAIL_WIRE_KEY_BYTES);
    wire_put32(out, WIRE_KEY_MAGIC);
    wire_put16(out + 4, RAIL_WIRE_VERSION);
    out[6] = (uint8_t)in->rails;
    out[7] = (uint8_t)in->memory;
    wire_put32(out + 8, RAIL_WIRE_KEY_BYTES);
    wire_put64(out + 16, in->cookie);
    wire_put32(out + 24, in->owner);
    wire_put64(out + 32, in->addr);
    wire_put64(out + 40, in->len);
    for (unsigned i = 0; i < in->rails; i++) {
        wire_put32(out + WIRE_KEYS_AT + i * 8, in->bulk_rkey[i]);
        wire_put32(out + WIRE_KEYS_AT + i * 8 + 4, in->word_rkey[i]);
    }
    wire_seal(out, RAIL_WIRE_KEY_BYTES);
}

int rail_wire_unpack_key(const void *bytes, size_t len, struct rail_wire_key *out, char why[RAIL_WIRE_WHY])
{
    const uint8_t *in = bytes;
    uint64_t end;
    int rc = wire_check(in, len, WIRE_KEY_MAGIC, RAIL_WIRE_KEY_BYTES, why);
    if (rc)
        return rc;
    struct rail_wire_key key = {
        .cookie = wire_get64(in + 16),
        .owner = wire_get32(in + 24),
        .addr = wire_get64(in + 32),
        .len = wire_get64(in + 40),
        .rails = in[6],
        .memory = in[7],
    };
    if (key.rails < 1 || key.rails > RAIL_WIRE_RAILS)
        return wire_bad(why, "the number of rails", key.rails);
    if (key.memory != RAIL_WIRE_MEMORY_HOST && key.memory != RAIL_WIRE_MEMORY_GPU)
        return wire_bad(why, "the kind of memory", key.memory);
    if (key.len == 0 || !checked_add_u64(key.addr, key.len, &end))
        return wire_bad(why, "the number of bytes", key.len);
    for (unsigned i = 0; i < key.rails; i++) {
        key.bulk_rkey[i] = rail_wire_view_rkey(in, i, false);
        key.word_rkey[i] = rail_wire_view_rkey(in, i, true);
    }
    *out = key;
    return 0;
}

void rail_wire_view_body(const uint8_t bytes[RAIL_WIRE_KEY_BYTES], struct rail_wire_view *out)
{
    *out = (struct rail_wire_view){
        .cookie = wire_get64(bytes + 16),
        .addr = wire_get64(bytes + 32),
        .len = wire_get64(bytes + 40),
        .owner = wire_get32(bytes + 24),
        .rails = bytes[6],
        .memory = bytes[7],
    };
}

int rail_wire_view_key(const uint8_t bytes[RAIL_WIRE_KEY_BYTES], struct rail_wire_view *out)
{
    if (wire_get32(bytes) != WIRE_KEY_MAGIC || wire_get16(bytes + 4) != RAIL_WIRE_VERSION ||
        bytes[6] > RAIL_WIRE_RAILS || bytes[7] < RAIL_WIRE_MEMORY_HOST || bytes[7] > RAIL_WIRE_MEMORY_GPU)
        return -EPROTO;
    rail_wire_view_body(bytes, out);
    return 0;
}

uint32_t rail_wire_view_rkey(const uint8_t bytes[RAIL_WIRE_KEY_BYTES], unsigned rail, bool word)
{
    return wire_get32(bytes + WIRE_KEYS_AT + rail * 8 + (word ? 4 : 0));
}
