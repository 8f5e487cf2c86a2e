/* SPDX-License-Identifier: Apache-2.0 */
/* pci.c - PCI addresses as text and as numbers. Called by src/topo, src/api and cli. */
#include "pci.h"

#include <stdio.h>
#include <string.h>

/* Reads `digits` hexadecimal digits or more, up to the character `end`. NULL where they are not there. */
static const char *pci_hex(const char *p, unsigned digits, unsigned most, char end, uint64_t *out)
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

bool pci_number(const char *text, uint64_t *out)
{
    uint64_t domain, bus, device, function;
    bool bridge = strncmp(text, "pci", 3) == 0;
    const char *p = pci_hex(text + (bridge ? 3 : 0), 4, 8, ':', &domain);
    if (p)
        p = pci_hex(p, 2, 2, bridge ? '\0' : ':', &bus);
    if (!p)
        return false;
    if (bridge) {
        *out = PCI_BRIDGE | domain << 16 | bus << 8;
        return true;
    }
    p = pci_hex(p, 2, 2, '.', &device);
    if (p)
        p = pci_hex(p, 1, 1, '\0', &function);
    if (!p || device > 31 || function > 7)
        return false;
    *out = domain << 16 | bus << 8 | device << 3 | function;
    return true;
}

void pci_text(uint64_t number, char out[PCI_TEXT_SIZE])
{
    if (number & PCI_BRIDGE) {
        snprintf(out, PCI_TEXT_SIZE, "pci%04x:%02x", (unsigned)(number >> 16 & UINT32_MAX),
                 (unsigned)(number >> 8 & 0xff));
        return;
    }
    snprintf(out, PCI_TEXT_SIZE, "%04x:%02x:%02x.%x", (unsigned)(number >> 16 & UINT32_MAX),
             (unsigned)(number >> 8 & 0xff), (unsigned)(number >> 3 & 31), (unsigned)(number & 7));
}
