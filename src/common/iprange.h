/* SPDX-License-Identifier: Apache-2.0 */
/* iprange.h - the text "10.0.0.0/8" or "fd00::/16" as a range of addresses, as GIDs hold them. */
#ifndef IPRANGE_H
#define IPRANGE_H

#include "log.h"

/** Plain data. Zeroed: every address. */
struct iprange {
    uint8_t addr[16]; /**< IPv4 as ::ffff:a.b.c.d, which is how a GID holds it */
    unsigned bits;    /**< 0..128 of addr that count */
};

/** Reads ADDRESS/BITS; empty: every address. 0, or -EINVAL; logs what was seen and expected. */
int iprange_parse(const char *text, const struct log *log, struct iprange *out) ATTR_CHECK_RESULT;

/** Whether a GID holds an IPv4 address. */
bool iprange_is_ipv4(const uint8_t gid[16]);

/** Whether the range has this address. */
bool iprange_has(const struct iprange *range, const uint8_t gid[16]);

#endif
