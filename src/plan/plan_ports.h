/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_ports.h - which ports of a host each of its GPUs uses. One pure function answers for all GPUs at once, from numbers that
 * every process of the host sees alike, so that all compute the same table without talking: nothing in it may depend on
 * which GPU asks, on names, or on the order in which devices were found.
 */
#ifndef PLAN_PORTS_H
#define PLAN_PORTS_H

#include "pcipath.h"

#define PLAN_PORTS_MAX  256
#define PLAN_PORTS_GPUS 64
#define PLAN_PORTS_EACH 16 /**< most ports of one GPU */

/** How far apart two PCI functions are, nearest first. */
enum plan_near {
    PLAN_NEAR_PIX,  /**< behind one PCIe bridge or switch */
    PLAN_NEAR_PXB,  /**< several, but not the host's own */
    PLAN_NEAR_PHB,  /**< one host bridge */
    PLAN_NEAR_NODE, /**< host bridges of one NUMA node */
    PLAN_NEAR_SYS   /**< across nodes, or not known */
};

/** As words: "PIX", ... Static. */
const char *plan_near_name(enum plan_near near);

/** Symmetric. Without a place in the PCI tree: PLAN_NEAR_SYS. */
enum plan_near plan_near(const struct pcipath *a, const struct pcipath *b);

/** Why a port is in the table, or not. */
enum plan_port_why {
    PLAN_PORT_USED,
    PLAN_PORT_SPARE,      /**< usable, and nearest to no GPU, or one too many */
    PLAN_PORT_EXCLUDED,   /**< by the caller: `excluded` */
    PLAN_PORT_DOWN,       /**< not active */
    PLAN_PORT_LINK,       /**< not the link layer of most of the fastest ports, or none */
    PLAN_PORT_VIRTUAL,    /**< a virtual function on the wire of a usable port */
    PLAN_PORT_SOFTWARE,   /**< no PCI function, and not asked for */
    PLAN_PORT_MANAGEMENT, /**< no channel adapter, or one for managing switches */
    PLAN_PORT_SLOW        /**< below a quarter of the fastest near port */
};

/** What to do about it, or what it is; static. */
const char *plan_port_why_name(enum plan_port_why why);

struct plan_port_in {
    const struct pcipath *place;
    uint64_t
        physical; /**< number of the physical function behind a virtual one; 0: it is none, or that one is not seen */
    uint64_t rate_bits;
    unsigned link; /**< a number that tells link layers apart; 0: none of use */
    bool active;
    bool excluded;
    bool named; /**< asked for by name: a software device is as good as any */
    bool management;
};

struct plan_ports_in {
    unsigned ports, gpus;
    const struct plan_port_in *port;  /**< in PCI order, ports of one function together */
    const struct pcipath *const *gpu; /**< in PCI order */
};

struct plan_ports_out {
    enum plan_port_why why[PLAN_PORTS_MAX];
    uint32_t users[PLAN_PORTS_MAX]; /**< GPUs that use the port */
    struct plan_ports_gpu {
        enum plan_near near; /**< of its ports */
        unsigned count;
        uint16_t port[PLAN_PORTS_EACH]; /**< in PCI order */
    } gpu[PLAN_PORTS_GPUS];
};

/**
 * Assigns ports to GPUs: each uses its nearest class alone. GPUs that tie on the same ports share them evenly: with at least as many
 * ports as GPUs none is shared, counts differ by at most one, and each gets a block in PCI order that keeps the ports of a card
 * together where that is even; with fewer, GPUs per port differ by at most one. Nearer GPUs choose first, and what they use counts
 * as taken for those farther away. A host without GPUs is one that has one, as far from all ports as can be. 0, or -E2BIG where
 * one of the counts is above its limit.
 */
int plan_ports(const struct plan_ports_in *in, struct plan_ports_out *out);

#endif
