/* SPDX-License-Identifier: Apache-2.0 */
/* pcipath.h - where a PCI function is plugged in: what src/topo reads and src/plan compares. Plain data. */
#ifndef PCIPATH_H
#define PCIPATH_H

#include "common.h"

#define PCIPATH_HOPS 16
#define PCIPATH_SIZE 20 /**< of a PCI address as text, "10000:e1:00.0", with the NUL */

struct pcipath {
    int numa;      /**< node; -1: none is told */
    unsigned hops; /**< 0: no PCI function */
    uint64_t hop
        [PCIPATH_HOPS]; /**< from the host bridge down to the function itself: addresses as numbers, see pcipath_number() */
};

/** "0000:3b:00.1" as a number that sorts as PCI addresses do; a host bridge, "pci0000:3a", as its first function, which it is
 *  not. False where text is neither. */
bool pcipath_number(const char *text, uint64_t *out);

/** The function itself; 0 where there is none. */
static inline uint64_t pcipath_function(const struct pcipath *path)
{
    return path->hops ? path->hop[path->hops - 1] : 0;
}

/** The number as text. */
void pcipath_text(uint64_t number, char out[PCIPATH_SIZE]);

#endif
