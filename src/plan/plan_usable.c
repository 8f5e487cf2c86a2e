/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_usable.c - which ports of a host count at all: state, link layer, wire, speed. May not know which GPU gets which.
 * Called by plan_ports.c.
 */
#include "plan_ports.h"

#include <string.h>

#define PLAN_USABLE_SLOW 4u /* a port below this part of the fastest near one is not for this */

const char *plan_port_why_name(enum plan_port_why why)
{
    static const char *const names[] = {
        [PLAN_PORT_USED] = "used",
        [PLAN_PORT_FAR] = "usable, but another is nearer to each GPU",
        [PLAN_PORT_EXTRA] = "usable, but enough are used",
        [PLAN_PORT_EXCLUDED] = "left out by option \"only\"",
        [PLAN_PORT_FAILED] = "it could not be opened",
        [PLAN_PORT_DOWN] = "not ACTIVE",
        [PLAN_PORT_LINK] = "not the link layer of most of the fastest ports",
        [PLAN_PORT_VIRTUAL] = "a virtual function on the wire of another port",
        [PLAN_PORT_SOFTWARE] = "a software device: name it in \"only\" to use it",
        [PLAN_PORT_MANAGEMENT] = "no channel adapter, or one that manages switches",
        [PLAN_PORT_SLOW] = "below a quarter of the fastest near port",
        [PLAN_PORT_UNSTABLE] = "its link comes and goes, and another port is as near",
    };
    return names[why];
}

bool plan_ports_listed(const struct plan_ports_rule *rule, const struct topo_port *p)
{
    for (unsigned i = 0; rule->only && i < rule->only->count; i++) {
        const struct portlist_item *item = &rule->only->item[i];
        if (strcmp(item->dev, p->dev) == 0 && (item->every || item->port == p->port))
            return true;
    }
    return false;
}

static enum plan_port_why plan_usable_alone(const struct topo_host *host, const struct plan_ports_rule *rule,
                                            unsigned i)
{
    const struct topo_port *p = &host->port[i];
    bool listed = plan_ports_listed(rule, p);
    if (rule->failed && rule->failed[i])
        return PLAN_PORT_FAILED;
    if (rule->only && rule->only->count && listed == rule->all_but)
        return PLAN_PORT_EXCLUDED;
    /* "smi" is how ports that manage NVLink switches are named. */
    if (!p->channel_adapter || strncmp(p->dev, "smi", 3) == 0)
        return PLAN_PORT_MANAGEMENT;
    if (!p->active)
        return PLAN_PORT_DOWN;
    if (host->source == TOPO_SOURCE_SYSFS && p->link == TOPO_LINK_OTHER)
        return PLAN_PORT_LINK;
    if (rule->link != TOPO_LINK_OTHER && p->link != TOPO_LINK_OTHER && p->link != rule->link)
        return PLAN_PORT_LINK;
    return !p->software || listed ? PLAN_PORT_FAR : PLAN_PORT_SOFTWARE;
}

static bool plan_usable_is(const struct plan_ports_out *out, unsigned i)
{
    return out->why[i] == PLAN_PORT_FAR;
}

/* A virtual function's packets leave by the wire of its physical one. */
static void plan_usable_virtual(const struct topo_host *host, struct plan_ports_out *out)
{
    for (unsigned i = 0; i < host->ports; i++) {
        uint64_t physical = host->port[i].physical;
        for (unsigned j = 0; j < host->ports && plan_usable_is(out, i) && physical; j++) {
            int pci = host->port[j].pci;
            if (plan_usable_is(out, j) && pci >= 0 && host->pci[pci].number == physical)
                out->why[i] = PLAN_PORT_VIRTUAL;
        }
    }
}

static uint64_t plan_usable_fastest(const struct topo_host *host, const struct plan_ports_out *out)
{
    uint64_t best = 0;
    for (unsigned i = 0; i < host->ports; i++) {
        if (plan_usable_is(out, i))
            best = max_u64(best, host->port[i].rate_bits);
    }
    return best;
}

/* The link layer of most of the fastest ports is the fabric's; of two with as many, the lower number. One that is not told fits. */
static void plan_usable_link(const struct topo_host *host, struct plan_ports_out *out)
{
    uint64_t fastest = plan_usable_fastest(host, out);
    unsigned count[TOPO_LINK_ETHERNET + 1] = {0};
    enum topo_link link;
    for (unsigned i = 0; i < host->ports; i++) {
        if (plan_usable_is(out, i) && host->port[i].rate_bits == fastest)
            count[host->port[i].link]++;
    }
    if (!count[TOPO_LINK_IB] && !count[TOPO_LINK_ETHERNET])
        return;
    link = count[TOPO_LINK_IB] >= count[TOPO_LINK_ETHERNET] ? TOPO_LINK_IB : TOPO_LINK_ETHERNET;
    for (unsigned i = 0; i < host->ports; i++) {
        if (plan_usable_is(out, i) && host->port[i].link != TOPO_LINK_OTHER && host->port[i].link != link)
            out->why[i] = PLAN_PORT_LINK;
    }
}

/* Near is here what some GPU reaches without crossing between nodes; where nothing is, all that is usable. */
static void plan_usable_slow(const struct topo_host *host, bool nobody, struct plan_ports_out *out)
{
    uint64_t fastest = 0;
    for (unsigned i = 0; i < host->ports; i++) {
        for (unsigned g = 0; g < host->gpus && !nobody && plan_usable_is(out, i); g++) {
            if (host->near[g][i] < TOPO_NEAR_SYS)
                fastest = max_u64(fastest, host->port[i].rate_bits);
        }
    }
    if (!fastest)
        fastest = plan_usable_fastest(host, out);
    for (unsigned i = 0; i < host->ports; i++) {
        uint64_t rate = host->port[i].rate_bits;
        if (plan_usable_is(out, i) && rate && rate < fastest / PLAN_USABLE_SLOW)
            out->why[i] = PLAN_PORT_SLOW;
    }
}

/* The nearest class that the GPU has usable ports in, one of them aside. */
static enum topo_near plan_usable_nearest(const struct topo_host *host, const struct plan_ports_out *out, unsigned g,
                                          unsigned but)
{
    enum topo_near best = TOPO_NEAR_SYS;
    for (unsigned i = 0; i < host->ports; i++) {
        if (plan_usable_is(out, i) && i != but && host->near[g][i] < best)
            best = (enum topo_near)host->near[g][i];
    }
    return best;
}

/* A port whose link comes and goes is left where no GPU is the farther for it. */
static void plan_usable_unstable(const struct topo_host *host, struct plan_ports_out *out)
{
    for (unsigned i = 0; i < host->ports; i++) {
        if (!host->port[i].unstable || !plan_usable_is(out, i))
            continue;
        bool needed = false;
        for (unsigned g = 0; g < host->gpus; g++)
            needed |= host->near[g][i] < TOPO_NEAR_SYS &&
                      plan_usable_nearest(host, out, g, i) > (enum topo_near)host->near[g][i];
        unsigned others = 0;
        for (unsigned j = 0; j < host->ports; j++)
            others += plan_usable_is(out, j) && j != i;
        if (!needed && others)
            out->why[i] = PLAN_PORT_UNSTABLE;
    }
}

void plan_usable(const struct topo_host *host, const struct plan_ports_rule *rule, struct plan_ports_out *out)
{
    for (unsigned i = 0; i < host->ports; i++)
        out->why[i] = plan_usable_alone(host, rule, i);
    plan_usable_virtual(host, out);
    plan_usable_link(host, out);
    plan_usable_slow(host, rule->nobody, out);
    plan_usable_unstable(host, out);
}
