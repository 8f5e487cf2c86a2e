/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_ports.h - which ports of a host each of its GPUs uses. One pure function answers for all GPUs at once, from a host model that
 * every process of the host sees alike, so that all compute the same table without talking: nothing in it may depend on
 * which GPU asks, on names, or on the order in which devices were found.
 */
#ifndef PLAN_PORTS_H
#define PLAN_PORTS_H

#include "portlist.h"
#include "topo_host.h"

#define PLAN_PORTS_EACH PORTLIST_MAX /**< most ports of one GPU */

/** Why a port is in the table, or not. */
enum plan_port_why {
    PLAN_PORT_USED,
    PLAN_PORT_FAR,        /**< usable, and nearest to no GPU */
    PLAN_PORT_EXTRA,      /**< usable and near, but one more than a GPU takes */
    PLAN_PORT_EXCLUDED,   /**< by the list of names */
    PLAN_PORT_FAILED,     /**< it could not be opened */
    PLAN_PORT_DOWN,       /**< not active */
    PLAN_PORT_LINK,       /**< not the link layer of most of the fastest ports, or of the rule, or none */
    PLAN_PORT_VIRTUAL,    /**< a virtual function on the wire of a usable port */
    PLAN_PORT_SOFTWARE,   /**< a software device, and not asked for */
    PLAN_PORT_MANAGEMENT, /**< no channel adapter, or one for managing switches */
    PLAN_PORT_SLOW,       /**< below a quarter of the fastest near port */
    PLAN_PORT_UNSTABLE    /**< its link comes and goes, and each GPU near it has another as near */
};

/** What to do about it, or what it is; static. */
const char *plan_port_why_name(enum plan_port_why why);

/** The ports of one GPU, given by the user. */
struct plan_ports_map {
    unsigned gpu; /**< index in the host */
    unsigned count;
    uint16_t port[PLAN_PORTS_EACH]; /**< indices in the host */
};

/**
 * Reads "GPU=DEVICE[:PORT],...;..." where GPU is a name of the host or a PCI address: the option `name`. 0; -EINVAL, -E2BIG; logs.
 * *maps is how many there are, in map, which has room for TOPO_GPUS.
 */
int plan_map_parse(const char *name, const char *text, const struct topo_host *host, const struct log *log,
                   struct plan_ports_map *map, unsigned *maps) ATTR_CHECK_RESULT;

/** What the user asked for; all zeros: nothing. */
struct plan_ports_rule {
    unsigned each; /**< most ports of a GPU; 0: PLAN_PORTS_EACH */
    bool all;      /**< a GPU uses all ports of its nearest class, other GPUs or not */
    bool limited;  /**< no port farther than `limit` */
    enum topo_near limit;
    enum topo_link link;         /**< TOPO_LINK_OTHER: that of most of the fastest ports */
    const struct portlist *only; /**< NULL or empty: no limit */
    bool all_but;                /**< `only` lists those to leave out */
    bool nobody;                 /**< there is no GPU: one user, as far from all ports as can be */
    const bool *failed;          /**< of each port of the host; NULL: none has */
    const struct plan_ports_map *map;
    unsigned maps;
};

struct plan_ports_out {
    enum plan_port_why why[TOPO_PORTS];
    uint32_t users[TOPO_PORTS]; /**< GPUs that use the port */
    struct plan_ports_gpu {
        enum topo_near near; /**< of its ports; of a map the farthest */
        bool mapped;
        unsigned count;
        uint16_t
            port[PLAN_PORTS_EACH]; /**< it starts with the first; in the host's order, with `all` turned by its turn */
    } gpu[TOPO_GPUS];
};

/**
 * Assigns ports to GPUs: each uses its nearest class alone. First each GPU gets one port, those with the fewest to choose from first,
 * of the least used ones; then what is left goes round, until nobody has one of his nearest unused. So GPUs that tie on the same
 * ports share them evenly: with at least as many ports as GPUs none is shared and counts differ by at most one, in blocks in the
 * host's order that keep the ports of a card together where that is even; with fewer, GPUs per port differ by at most one. Of
 * equally used ports one whose PCIe link is less used comes first, where that link is too narrow for all its ports. 0; -EINVAL for
 * a map that names what is not there.
 */
int plan_ports(const struct topo_host *host, const struct plan_ports_rule *rule, struct plan_ports_out *out);

/** Whether the list of the rule has the port, by its exact name. */
bool plan_ports_listed(const struct plan_ports_rule *rule, const struct topo_port *p);

/**
 * The PCIe link on the way to the port that is too narrow for the ports behind it: index of the node below the link, or -1. The rates
 * of all usable ports count, which are those with why <= PLAN_PORT_EXTRA. Links of a hinted host are never too narrow.
 */
int plan_uplink(const struct topo_host *host, const struct plan_ports_out *out, unsigned i);

/** The rates of the usable ports behind a link, and with users_only of the used ones; bits a second. */
uint64_t plan_uplink_need(const struct topo_host *host, const struct plan_ports_out *out, int node, bool users_only);

/** Fills in out->why for all ports: PLAN_PORT_FAR where they are usable. Called by plan_ports(). */
void plan_usable(const struct topo_host *host, const struct plan_ports_rule *rule, struct plan_ports_out *out);

#endif
