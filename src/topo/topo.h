/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo.h - what this host looks like: its RDMA ports and GPUs, and where in the PCI tree they are. Read from sysfs through libc's
 * ordinary calls, so that what shows programs other files (a container, `braid emu`) is believed.
 */
#ifndef TOPO_H
#define TOPO_H

#include "log.h"
#include "pcipath.h"

#define TOPO_DEV_SIZE 60 /**< as in a list of ports */
#define TOPO_PORTS    256
#define TOPO_GPUS     64

enum topo_link { TOPO_LINK_OTHER, TOPO_LINK_IB, TOPO_LINK_ETHERNET };

struct topo_port {
    char dev[TOPO_DEV_SIZE];
    uint8_t port;
    char state[16]; /**< "ACTIVE", "DOWN", ... */
    bool active;
    bool channel_adapter; /**< no switch, no router */
    enum topo_link link;
    uint64_t rate_bits;   /**< 0 where it is not told */
    uint64_t physical;    /**< of a virtual function whose physical one this host sees: that one's number; else 0 */
    char netdev[16];      /**< its network interface; empty: none seen */
    struct pcipath place; /**< no hops: a software device */
};

struct topo_gpu {
    struct pcipath place;
};

/** Both lists are in order of PCI addresses, then of ports. */
struct topo_host {
    unsigned ports, gpus;
    struct topo_port port[TOPO_PORTS];
    struct topo_gpu gpu[TOPO_GPUS];
};

/**
 * Reads the host below a folder, "/" as a rule. A host without RDMA is one without ports. What cannot be read of a port counts as
 * not told. The result is freed by topo_free(). 0 or -ENOMEM; logs, also what was left out for want of room.
 */
int topo_read(const char *sysroot, const struct log *log, struct topo_host **out) ATTR_CHECK_RESULT;

/** The GPU with this PCI number; one that the list lacks, since its class is another, is added. Its index, or -ENODEV. */
int topo_gpu_find(struct topo_host *host, const char *sysroot, uint64_t pci);

/** NULL is allowed. */
void topo_free(struct topo_host *host);

#endif
