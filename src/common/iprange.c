/* SPDX-License-Identifier: Apache-2.0 */
/* iprange.c - reads the option "gid_range". Bad text is refused, never guessed at. Called by api when opening, and by rail. */
#include "iprange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static const uint8_t iprange_ipv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Reads a decimal of at most three digits that fills text whole; above 128 where it is none. */
static unsigned iprange_number(const char *text)
{
    unsigned value = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 3)
        return UINT32_MAX;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9')
            return UINT32_MAX;
        value = value * 10 + (unsigned)(*p - '0');
    }
    return value;
}

static bool iprange_read(const char *text, struct iprange *out)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    struct iprange range = {0};
    if (!slash || (size_t)(slash - text) >= sizeof(address))
        return false;
    memcpy(address, text, (size_t)(slash - text));
    address[slash - text] = '\0';
    range.bits = iprange_number(slash + 1);
    if (inet_pton(AF_INET, address, range.addr + 12) == 1) {
        if (range.bits > 32)
            return false;
        memcpy(range.addr, iprange_ipv4, sizeof(iprange_ipv4));
        range.bits += 96;
    } else if (range.bits > 128 || inet_pton(AF_INET6, address, range.addr) != 1) {
        return false;
    }
    *out = range;
    return true;
}

int iprange_parse(const char *text, const struct log *log, struct iprange *out)
{
    if (!*text) {
        *out = (struct iprange){0};
        return 0;
    }
    if (iprange_read(text, out))
        return 0;
    log_write(
        log, LOG_LEVEL_ERROR,
        "option \"gid_range\" is \"%.64s\", which is not accepted: expected ADDRESS/BITS such as \"10.0.0.0/8\" or "
        "\"fd00::/16\"",
        text);
    return -EINVAL;
}

bool iprange_is_ipv4(const uint8_t gid[16])
{
    return memcmp(gid, iprange_ipv4, sizeof(iprange_ipv4)) == 0;
}

bool iprange_has(const struct iprange *range, const uint8_t gid[16])
{
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    if (memcmp(gid, range->addr, whole) != 0)
        return false;
    return rest == 0 || (uint8_t)((gid[whole] ^ range->addr[whole]) >> (8 - rest)) == 0;
}
