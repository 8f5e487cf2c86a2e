/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo_host.h - the host model: GPUs, RDMA ports, the PCI tree that they are plugged into, and how far apart they are. Plain
 * data, the same whatever it was made from (sysfs, or a file that cli/import reads); src/plan decides on it alone.
 */
#ifndef TOPO_HOST_H
#define TOPO_HOST_H

#include "pci.h"

#define TOPO_DEV_SIZE  60 /**< of a device's name, as in a list of ports */
#define TOPO_PORTS     256
#define TOPO_GPUS      64
#define TOPO_PCI       1024
#define TOPO_GIDS      512
#define TOPO_NOTES     48
#define TOPO_NOTE_SIZE 200

/** How far apart two PCI functions are, nearest first. */
enum topo_near {
    TOPO_NEAR_PIX,  /**< behind one PCIe bridge or switch */
    TOPO_NEAR_PXB,  /**< several, but not the host's own */
    TOPO_NEAR_PHB,  /**< one host bridge */
    TOPO_NEAR_NODE, /**< host bridges of one NUMA node */
    TOPO_NEAR_SYS   /**< across nodes, or not known */
};

enum topo_link { TOPO_LINK_OTHER, TOPO_LINK_IB, TOPO_LINK_ETHERNET };

/** What the host was made from; TOPO_SOURCE_HOST: written by hand. */
enum topo_source { TOPO_SOURCE_SYSFS, TOPO_SOURCE_HOST, TOPO_SOURCE_HWLOC, TOPO_SOURCE_NCCL, TOPO_SOURCE_SMI };

/** A PCI function or bridge on the way to a GPU or a port, or one of them. */
struct topo_pci {
    uint64_t number;      /**< see pci_number(); 0: it has none */
    int parent;           /**< index of what it is plugged into; -1: a host bridge, or something like it */
    int numa;             /**< -1: none is told */
    unsigned width;       /**< lanes of the link to its parent; 0: not told */
    unsigned speed;       /**< of a lane, in 10^6 transfers a second; 0: not told */
    uint64_t link_bits;   /**< what the link to its parent carries, bits a second after its encoding; 0: not told */
    unsigned class;       /**< PCI code, 24 bits; 0: not told */
    uint16_t vendor, dev; /**< 0: not told */
};

struct topo_port {
    char dev[TOPO_DEV_SIZE];
    uint8_t port;
    char state
        [16];    /**< "ACTIVE", "DOWN", ...; "ABSENT": the table names it, the list of devices does not; "": not told */
    bool active; /**< also where the state is not told */
    bool channel_adapter; /**< no switch, no router */
    bool unstable;        /**< its link has come and gone while it was watched */
    enum topo_link link;
    uint64_t rate_bits; /**< 0 where it is not told */
    unsigned mtu;       /**< of RDMA packets, bytes; 0: not told */
    uint64_t physical;  /**< of a virtual function whose physical one this host sees: that one's number; else 0 */
    char netdev[16];    /**< its network interface; empty: none seen */
    char bond[16];      /**< the bond it is the device of; empty: none */
    unsigned wires;     /**< of a bond, the links that carry something now; 0 where there is none or it is not told */
    uint64_t downs;     /**< how often its link went down, as its counter says */
    int pci;            /**< index in the host's tree; -1: none: a software device, or a source without a tree */
    bool software;      /**< no hardware behind it: soft-RoCE, SoftiWARP */
    int card;           /**< ports with the same number share a card; -1: a card of its own */
};

struct topo_gpu {
    char name[16]; /**< "GPU0" by PCI order, or as the source calls it */
    uint64_t number;
    int pci;  /**< index in the host's tree; -1: a source without one */
    int numa; /**< -1: not told */
};

/** An entry of a port's table of addresses that is not empty. */
struct topo_gid {
    uint16_t port; /**< index in the host */
    uint8_t index;
    bool v2; /**< RoCE v2 */
    uint8_t raw[16];
};

/** Ports and GPUs are in order of PCI addresses, then of names and ports; those of a source without addresses in its order. */
struct topo_host {
    enum topo_source source;
    unsigned ports, gpus, nodes, gids, notes;
    unsigned
        switch_hops; /**< of the tree, between a switch and what is plugged into it: 2 where ports of switches are nodes, else 1 */
    bool hinted;  /**< speeds are what somebody wrote, not what links do */
    bool damaged; /**< the source was incomplete: something of the host is not in here */
    struct topo_port port[TOPO_PORTS];
    struct topo_gpu gpu[TOPO_GPUS];
    uint8_t near[TOPO_GPUS][TOPO_PORTS]; /**< enum topo_near of each GPU and port */
    struct topo_pci pci[TOPO_PCI];
    struct topo_gid gid[TOPO_GIDS];
    char note[TOPO_NOTES][TOPO_NOTE_SIZE]; /**< what a reader should know: repairs, what is missing */
};

/** As words: "PIX", ... Static. */
const char *topo_near_name(enum topo_near near);

/** The class with this name; false where there is none. */
bool topo_near_parse(const char *name, enum topo_near *out);

/** "InfiniBand", "Ethernet" or "". Static. */
const char *topo_link_name(enum topo_link link);

/** An empty host; freed by topo_free(). NULL: no memory. */
struct topo_host *topo_host_new(enum topo_source source);

/** NULL is allowed. */
void topo_free(struct topo_host *host);

/** Adds a note; one too many is dropped. */
void topo_note(struct topo_host *host, const char *format, ...) ATTR_PRINTF(2, 3);

/** The node of the tree with this number, or a new one below parent. -1 where there is no room. */
int topo_pci_add(struct topo_host *host, uint64_t number, int parent);

/** Bits a second that a PCIe link carries after its encoding; 0 where one of the two is 0. speed: in 10^6 transfers a second. */
uint64_t topo_pcie_bits(unsigned width, unsigned speed);

/** Of two nodes of the tree; symmetric. -1 is far from all. */
enum topo_near topo_tree_near(const struct topo_host *host, int a, int b);

/**
 * Ends the making of a host that has a tree: sorts GPUs and ports, names the GPUs that have no name, finds cards and distances. What
 * the makers said before in these fields is lost, except names.
 */
void topo_settle(struct topo_host *host);

#endif
