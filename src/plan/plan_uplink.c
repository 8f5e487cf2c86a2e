/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_uplink.c - PCIe links that ports share, as budgets: what they carry, and what the ports behind them would. May not
 * choose. Called by plan_ports.c and by cli.
 */
#include "plan_ports.h"

/* Functions of one device share the link above it. */
static bool plan_uplink_same(const struct topo_pci *a, const struct topo_pci *b)
{
    return a == b || (a->number && a->parent == b->parent && a->number >> 3 == b->number >> 3);
}

/* Whether the port is behind the link above a node. */
static bool plan_uplink_has(const struct topo_host *host, unsigned i, int node)
{
    int at = host->port[i].pci;
    while (at >= 0 && !plan_uplink_same(&host->pci[at], &host->pci[node]))
        at = host->pci[at].parent;
    return at >= 0;
}

uint64_t plan_uplink_need(const struct topo_host *host, const struct plan_ports_out *out, int node, bool users_only)
{
    uint64_t need = 0;
    for (unsigned i = 0; i < host->ports; i++) {
        bool counts = users_only ? out->why[i] == PLAN_PORT_USED : out->why[i] <= PLAN_PORT_EXTRA;
        if (counts && plan_uplink_has(host, i, node))
            need += host->port[i].rate_bits;
    }
    return need;
}

/* The first of the functions that share the link above a node and tell what it carries: one number for one link. */
static int plan_uplink_first(const struct topo_host *host, int node)
{
    int first = 0;
    while (!host->pci[first].link_bits || !plan_uplink_same(&host->pci[first], &host->pci[node]))
        first++;
    return first;
}

int plan_uplink(const struct topo_host *host, const struct plan_ports_out *out, unsigned i)
{
    int worst = -1;
    double least = 1;
    if (host->hinted || out->why[i] > PLAN_PORT_EXTRA)
        return -1;
    for (int at = host->port[i].pci; at >= 0; at = host->pci[at].parent) {
        uint64_t can = host->pci[at].link_bits, need = can ? plan_uplink_need(host, out, at, false) : 0;
        if (need > can && (double)can / (double)need < least) {
            least = (double)can / (double)need;
            worst = plan_uplink_first(host, at);
        }
    }
    return worst;
}
