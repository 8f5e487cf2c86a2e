/* SPDX-License-Identifier: Apache-2.0 */
/* pcipath.c - PCI addresses as text and as numbers. Called by src/topo and src/api. */
#include "pcipath.h"

#include <stdio.h>
#include <string.h>

#define PCIPATH_BRIDGE (UINT64_C(1) << 63) /* tells a host bridge from the first function of its bus */

/* Reads `digits` hexadecimal digits or more, up to the character `end`. NULL where they are not there. */
static const char *pcipath_hex(const char *p, unsigned digits, unsigned most, char end, uint64_t *out)
{
    uint64_t value = 0;
    unsigned n = 0;
    for (; n < most; n++, p++) {
        if (*p >= '0' && *p <= '9')
            value = value << 4 | (uint64_t)(*p - '0');
        else if (*p >= 'a' && *p <= 'f')
            value = value << 4 | (uint64_t)(*p - 'a' + 10);
        else if (*p >= 'A' && *p <= 'F')
            value = value << 4 | (uint64_t)(*p - 'A' + 10);
        else
            break;
    }
    if (n < digits || *p != end)
        return NULL;
    *out = value;
    return end ? p + 1 : p;
}

bool pcipath_number(const char *text, uint64_t *out)
{
    uint64_t domain, bus, device, function;
    bool bridge = strncmp(text, "pci", 3) == 0;
    const char *p = pcipath_hex(text + (bridge ? 3 : 0), 4, 8, ':', &domain);
    if (p)
        p = pcipath_hex(p, 2, 2, bridge ? '\0' : ':', &bus);
    if (!p)
        return false;
    if (bridge) {
        *out = PCIPATH_BRIDGE | domain << 16 | bus << 8;
        return true;
    }
    p = pcipath_hex(p, 2, 2, '.', &device);
    if (p)
        p = pcipath_hex(p, 1, 1, '\0', &function);
    if (!p || device > 31 || function > 7)
        return false;
    *out = domain << 16 | bus << 8 | device << 3 | function;
    return true;
}

void pcipath_text(uint64_t number, char out[PCIPATH_SIZE])
{
    snprintf(out, PCIPATH_SIZE, "%04x:%02x:%02x.%x", (unsigned)(number >> 16 & UINT32_MAX),
             (unsigned)(number >> 8 & 0xff), (unsigned)(number >> 3 & 31), (unsigned)(number & 7));
}
