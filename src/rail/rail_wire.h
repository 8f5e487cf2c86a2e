/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_wire.h - every byte that leaves this process for a peer's eyes, except mailbox messages (rail_mail.h): address
 * blobs and remote keys. Little-endian, versioned, with a checksum over the whole; read with bounds checks, and no
 * count in them is trusted.
 *
 *   blob, RAIL_WIRE_BYTES      since version 4
 *     0 u32 magic  4 u16 version  6 u16 kind  8 u32 length (the whole)  12 u32 CRC-32 (this field as zero)
 *     16 i32 error: 0, or why the sender cannot take part; the rest is then not read  20 u32 pe  24 u64 cookie
 *     32 u8 channels  33 u8 count  34 u8 home (kind 2)  35 zero
 *     40 kind 1, rails:   count x 64:  gid[16] u16 lid u8 link u8 rd_atomic u32 mtu u64 rate u64 flush address u32 flush
 *                         rkey u8 plane u8 placement u8 wires u8 ways u64 GPU flush address (0: none) u32 its rkey u32 zero
 *        kind 2, lanes:   channels x 16 x (u32 qpn u32 start PSN), count used of each 16
 *        kind 3, status:  channels x u16, bit k: lane k is up
 *        kind 4, verdict: channels x u16, bit k: the probe of lane k came back
 *   key, RAIL_WIRE_KEY_BYTES   since version 3; 4 has the same
 *     0 u32 magic  4 u16 version  6 u8 rails  7 u8 memory  8 u32 length  12 u32 CRC-32  16 u64 cookie of the owner's context
 *     24 u32 owner's pe, all ones while unknown  28 zero  32 u64 address  40 u64 bytes
 *     48 rails x (u32 rkey for bulk  u32 rkey for word ops)
 */
#ifndef RAIL_WIRE_H
#define RAIL_WIRE_H

#include "common.h"

#include <string.h>

#define RAIL_WIRE_VERSION   4
#define RAIL_WIRE_BYTES     1072
#define RAIL_WIRE_KEY_BYTES 512
#define RAIL_WIRE_RAILS     16
#define RAIL_WIRE_LANES     16
#define RAIL_WIRE_CHANNELS  8
#define RAIL_WIRE_NO_PE     UINT32_MAX
#define RAIL_WIRE_WHY       160 /**< bytes of a reason */

/** Kinds of memory, as bits. Writes to one and a READ of the other take different ways through PCIe: neither says anything of
 *  the other. */
#define RAIL_WIRE_MEMORY_HOST 1u
#define RAIL_WIRE_MEMORY_GPU  2u

/** Link layers, as numbers that will not change: the same as enum verbs_link (rail_open.c checks it). */
#define RAIL_WIRE_LINK_IB       1
#define RAIL_WIRE_LINK_ETHERNET 2

/** The plane of a rail that nobody has told. */
#define RAIL_WIRE_NO_PLANE 0xff

/** Whether a rail places packets out of order; the same as enum verbs_placement (rail_open.c checks it). */
#define RAIL_WIRE_PLACEMENT_SILENT    0
#define RAIL_WIRE_PLACEMENT_ORDERED   1
#define RAIL_WIRE_PLACEMENT_UNORDERED 2

/** One rail of the sender. */
struct rail_wire_rail {
    uint8_t gid[16];
    uint16_t lid;
    uint8_t link;      /**< RAIL_WIRE_LINK_... */
    uint8_t rd_atomic; /**< READs and atomics it answers at a time, 1..16 */
    uint32_t mtu;      /**< bytes */
    uint64_t rate_bits;
    uint64_t flush_addr; /**< of its flush line: memory that peers may read, registered as long as the rail is open */
    uint32_t flush_rkey;
    uint64_t gpu_flush_addr; /**< the same of its GPU's memory; 0: it has none registered, nor will have */
    uint32_t gpu_flush_rkey;
    uint8_t plane;     /**< or RAIL_WIRE_NO_PLANE */
    uint8_t placement; /**< RAIL_WIRE_PLACEMENT_...: what its device says */
    uint8_t wires;     /**< of a bond, which share rate_bits evenly; 1: no bond */
    uint8_t ways;      /**< so many lanes to a peer it is worth, >= 1; of all rails at most RAIL_WIRE_LANES */
};

/** What all kinds begin with. */
struct rail_wire_head {
    int error; /**< 0, or the sender's negative errno; -ECONNABORTED: another PE's failure, which that PE tells */
    uint32_t pe;
    uint64_t cookie; /**< names the sender's context: a key of an earlier life of the same PE carries another */
    unsigned channels;
};

struct rail_wire_rails {
    struct rail_wire_head head;
    unsigned count;
    struct rail_wire_rail rail[RAIL_WIRE_RAILS];
};

/** The sender's end of a lane. */
struct rail_wire_end {
    uint32_t qpn;
    uint32_t psn;
};

struct rail_wire_lanes {
    struct rail_wire_head head;
    unsigned count;
    unsigned home; /**< rail through which atomics on the sender's memory go; below RAIL_WIRE_RAILS, but its number of
                        rails is told elsewhere */
    struct rail_wire_end end[RAIL_WIRE_CHANNELS][RAIL_WIRE_LANES];
};

/** Of rounds 3 and 4: bit k of each channel: lane k is up; its probe came back. */
struct rail_wire_status {
    struct rail_wire_head head;
    uint16_t up[RAIL_WIRE_CHANNELS];
};

/* Packing cannot fail: the structs' counts are this process's own. */
void rail_wire_pack_rails(const struct rail_wire_rails *in, uint8_t out[RAIL_WIRE_BYTES]);
void rail_wire_pack_lanes(const struct rail_wire_lanes *in, uint8_t out[RAIL_WIRE_BYTES]);
void rail_wire_pack_status(const struct rail_wire_status *in, uint8_t out[RAIL_WIRE_BYTES]);
void rail_wire_pack_verdict(const struct rail_wire_status *in, uint8_t out[RAIL_WIRE_BYTES]);

/*
 * Unpacking: 0, or -EPROTO with the reason in why (what was seen, what was expected). Where head.error is not 0, the
 * rest of out is zero. out is untouched on failure. Any thread.
 */
int rail_wire_unpack_rails(const void *bytes, size_t len, struct rail_wire_rails *out, char why[RAIL_WIRE_WHY]);
int rail_wire_unpack_lanes(const void *bytes, size_t len, struct rail_wire_lanes *out, char why[RAIL_WIRE_WHY]);
int rail_wire_unpack_status(const void *bytes, size_t len, struct rail_wire_status *out, char why[RAIL_WIRE_WHY]);
int rail_wire_unpack_verdict(const void *bytes, size_t len, struct rail_wire_status *out, char why[RAIL_WIRE_WHY]);

/** A remote key in full. */
struct rail_wire_key {
    uint64_t cookie;
    uint32_t owner; /**< or RAIL_WIRE_NO_PE */
    uint64_t addr;
    uint64_t len;
    unsigned rails;
    unsigned memory; /**< RAIL_WIRE_MEMORY_...: one of them */
    uint32_t bulk_rkey[RAIL_WIRE_RAILS];
    uint32_t word_rkey[RAIL_WIRE_RAILS];
};

/** Packs a key. Cannot fail. */
void rail_wire_pack_key(const struct rail_wire_key *in, uint8_t out[RAIL_WIRE_KEY_BYTES]);

/** Checks everything, the checksum included. 0, or -EPROTO with the reason in why. */
int rail_wire_unpack_key(const void *bytes, size_t len, struct rail_wire_key *out, char why[RAIL_WIRE_WHY]);

/** What an op needs of a key, read in place. */
struct rail_wire_view {
    uint64_t cookie;
    uint64_t addr;
    uint64_t len;
    uint32_t owner;
    uint32_t rails;
    uint32_t memory;
};

/** Reads a key's head without its checksum, for the data path. 0, or -EPROTO for a foreign magic or version. */
int rail_wire_view_key(const uint8_t bytes[RAIL_WIRE_KEY_BYTES], struct rail_wire_view *out);

/** The same of bytes that are known to be a key of this version. */
void rail_wire_view_body(const uint8_t bytes[RAIL_WIRE_KEY_BYTES], struct rail_wire_view *out);

/** What all keys of one context to one kind of memory begin with, as a number to compare: magic, version, rails and kind of memory. */
static inline uint64_t rail_wire_key_head(const uint8_t bytes[RAIL_WIRE_KEY_BYTES])
{
    uint64_t head;
    memcpy(&head, bytes, sizeof(head));
    return head;
}

/** The rkey of a rail below view.rails, for word ops or for bulk. */
uint32_t rail_wire_view_rkey(const uint8_t bytes[RAIL_WIRE_KEY_BYTES], unsigned rail, bool word);

#endif
