/* SPDX-License-Identifier: Apache-2.0 */
/* pci.h - PCI addresses as numbers that sort as they do. Knows nothing of where a function is plugged in: src/topo/topo_host.h. */
#ifndef PCI_H
#define PCI_H

#include "common.h"

#define PCI_TEXT_SIZE 20                  /**< of an address as text, "10000:e1:00.0", with the NUL */
#define PCI_BRIDGE    (UINT64_C(1) << 63) /**< tells a host bridge from the first function of its bus */

/** "0000:3b:00.1" as a number that sorts as PCI addresses do; a host bridge, "pci0000:3a", as its first function with PCI_BRIDGE,
 *  which it is not. False where text is neither. */
bool pci_number(const char *text, uint64_t *out);

/** The number as text, a host bridge as "pci0000:3a". */
void pci_text(uint64_t number, char out[PCI_TEXT_SIZE]);

#endif
