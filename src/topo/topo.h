/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo.h - makes the host model from this host's sysfs, through libc's ordinary calls, so that what shows programs other files (a
 * container, `braid emu`) is believed.
 */
#ifndef TOPO_H
#define TOPO_H

#include "log.h"
#include "topo_host.h"

/**
 * Reads the host below a folder, "/" as a rule. A host without RDMA is one without ports. What cannot be read of a port counts as
 * not told. The result is freed by topo_free(). 0 or -ENOMEM; logs, also what was left out for want of room.
 */
int topo_read(const char *sysroot, const struct log *log, struct topo_host **out) ATTR_CHECK_RESULT;

/** How many links of a bond that is one device are up, of this one; 0 where it is no such bond, or nothing is told. Reads a few files. */
unsigned topo_wires(const char *sysroot, const char *dev);

/** Adds what nobody needs to choose ports, and what takes a few hundred more files: addresses, and the MTU of Ethernet ports. */
void topo_read_more(const char *sysroot, struct topo_host *host);

/** The GPU with this PCI number; one that the list lacks, since its class is another, is added. Its index, or -ENODEV. */
int topo_gpu_find(struct topo_host *host, const char *sysroot, uint64_t pci);

#endif
