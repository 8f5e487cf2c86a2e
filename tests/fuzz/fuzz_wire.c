/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_wire.c - fuzz target: address blobs and remote keys as a peer might send them. The first byte picks the kind and
 * whether magic, version, length and checksum are put right, so that the fields behind them are reached too. What unpacks must
 * pack and unpack to the same; a refusal has a reason and leaves the output as it was.
 */
#include "fuzz.h"

#include <string.h>

#include "crc.h"
#include "rail_wire.h"

/* Of the first byte: the low two bits pick one of four, SEALED puts the outside right, VERDICT makes it the fifth kind. */
enum { KIND_RAILS, KIND_LANES, KIND_STATUS, KIND_KEY, KIND_VERDICT, KINDS = 4, SEALED = 4, VERDICT = 8 };

static void put(uint8_t *at, uint32_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* Makes a blob or key of any bytes well-formed on the outside (layout: rail_wire.h). */
static void seal(uint8_t *bytes, unsigned kind, size_t len)
{
    put(bytes, kind == KIND_KEY ? 0x4b445242u : 0x42445242u, 4);
    put(bytes + 4, RAIL_WIRE_VERSION, 2);
    if (kind != KIND_KEY)
        put(bytes + 6, kind == KIND_VERDICT ? 4 : kind + 1, 2);
    put(bytes + 8, (uint32_t)len, 4);
    put(bytes + 12, 0, 4);
    put(bytes + 12, crc_32(0, bytes, len), 4);
}

static void refused(const char *why, const void *out, const void *before, size_t size)
{
    fuzz_must(why[0] != '\0' && memchr(why, '\0', RAIL_WIRE_WHY) != NULL, "a refusal has a reason");
    fuzz_must(fuzz_same(out, before, size), "a refusal leaves the output as it was");
}

static void try_rails(const uint8_t *bytes, size_t len)
{
    struct rail_wire_rails out, before, again;
    uint8_t packed[RAIL_WIRE_BYTES], repacked[RAIL_WIRE_BYTES];
    char why[RAIL_WIRE_WHY] = "";
    memset(&out, 0x5a, sizeof out);
    memcpy(&before, &out, sizeof out);
    if (rail_wire_unpack_rails(bytes, len, &out, why) != 0) {
        refused(why, &out, &before, sizeof out);
        return;
    }
    fuzz_must(out.head.error || (out.count >= 1 && out.count <= RAIL_WIRE_RAILS), "rails in range");
    rail_wire_pack_rails(&out, packed);
    fuzz_must(rail_wire_unpack_rails(packed, sizeof packed, &again, why) == 0, "what is packed unpacks");
    rail_wire_pack_rails(&again, repacked);
    fuzz_must(fuzz_same(packed, repacked, sizeof packed), "to the same");
}

static void try_lanes(const uint8_t *bytes, size_t len)
{
    struct rail_wire_lanes out, before, again;
    uint8_t packed[RAIL_WIRE_BYTES], repacked[RAIL_WIRE_BYTES];
    char why[RAIL_WIRE_WHY] = "";
    memset(&out, 0x5a, sizeof out);
    memcpy(&before, &out, sizeof out);
    if (rail_wire_unpack_lanes(bytes, len, &out, why) != 0) {
        refused(why, &out, &before, sizeof out);
        return;
    }
    fuzz_must(out.count <= RAIL_WIRE_LANES && out.home < RAIL_WIRE_RAILS, "lanes in range");
    if (out.head.error)
        return;
    rail_wire_pack_lanes(&out, packed);
    fuzz_must(rail_wire_unpack_lanes(packed, sizeof packed, &again, why) == 0, "what is packed unpacks");
    rail_wire_pack_lanes(&again, repacked);
    fuzz_must(fuzz_same(packed, repacked, sizeof packed), "to the same");
}

/* Both kinds that are a mask for each channel. */
static void try_masks(const uint8_t *bytes, size_t len, unsigned kind)
{
    struct rail_wire_status out, before, again;
    uint8_t packed[RAIL_WIRE_BYTES], repacked[RAIL_WIRE_BYTES];
    char why[RAIL_WIRE_WHY] = "";
    bool status = kind == KIND_STATUS;
    int (*unpack)(const void *, size_t, struct rail_wire_status *, char *) =
        status ? rail_wire_unpack_status : rail_wire_unpack_verdict;
    void (*pack)(const struct rail_wire_status *, uint8_t *) = status ? rail_wire_pack_status : rail_wire_pack_verdict;
    memset(&out, 0x5a, sizeof out);
    memcpy(&before, &out, sizeof out);
    if (unpack(bytes, len, &out, why) != 0) {
        refused(why, &out, &before, sizeof out);
        return;
    }
    fuzz_must(out.head.error || (out.head.channels >= 1 && out.head.channels <= RAIL_WIRE_CHANNELS),
              "channels in range");
    if (out.head.error)
        return;
    pack(&out, packed);
    fuzz_must(unpack(packed, sizeof packed, &again, why) == 0, "what is packed unpacks");
    pack(&again, repacked);
    fuzz_must(fuzz_same(packed, repacked, sizeof packed), "to the same");
}

static void try_key(const uint8_t *bytes, size_t len)
{
    struct rail_wire_key out, before, again;
    struct rail_wire_view view;
    uint8_t packed[RAIL_WIRE_KEY_BYTES], repacked[RAIL_WIRE_KEY_BYTES];
    char why[RAIL_WIRE_WHY] = "";
    memset(&out, 0x5a, sizeof out);
    memcpy(&before, &out, sizeof out);
    if (len >= RAIL_WIRE_KEY_BYTES && rail_wire_view_key(bytes, &view) == 0) {
        fuzz_must(view.rails <= RAIL_WIRE_RAILS, "a view names no rail that is not there");
        for (unsigned rail = 0; rail < view.rails; rail++)
            (void)rail_wire_view_rkey(bytes, rail, rail % 2);
    }
    if (rail_wire_unpack_key(bytes, len, &out, why) != 0) {
        refused(why, &out, &before, sizeof out);
        return;
    }
    fuzz_must(out.rails >= 1 && out.rails <= RAIL_WIRE_RAILS, "rails in range");
    fuzz_must(out.len > 0 && out.addr + out.len > out.addr, "a range that does not wrap");
    rail_wire_pack_key(&out, packed);
    fuzz_must(rail_wire_unpack_key(packed, sizeof packed, &again, why) == 0, "what is packed unpacks");
    rail_wire_pack_key(&again, repacked);
    fuzz_must(fuzz_same(packed, repacked, sizeof packed), "to the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    unsigned kind = data[0] & VERDICT ? KIND_VERDICT : data[0] % KINDS;
    size_t whole = kind == KIND_KEY ? RAIL_WIRE_KEY_BYTES : RAIL_WIRE_BYTES;
    size_t len = size - 1;
    /* Sealed: the input is the beginning, the rest is zero. Otherwise as it came, however short: ASan sees its end. */
    uint8_t *bytes = calloc(1, (data[0] & SEALED) ? whole : len + 1);
    fuzz_must(bytes != NULL, "memory");
    if (data[0] & SEALED && len > whole)
        len = whole;
    if (len > 0)
        memcpy(bytes, data + 1, len);
    if (data[0] & SEALED) {
        seal(bytes, kind, whole);
        len = whole;
    }
    if (kind == KIND_RAILS)
        try_rails(bytes, len);
    else if (kind == KIND_LANES)
        try_lanes(bytes, len);
    else if (kind == KIND_STATUS || kind == KIND_VERDICT)
        try_masks(bytes, len, kind);
    else
        try_key(bytes, len);
    free(bytes);
    return 0;
}
