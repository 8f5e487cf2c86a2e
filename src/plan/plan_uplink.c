/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_uplink.c - PCIe links that ports share, as budgets: what they carry, and what the ports behind them would. May not
 * choose. Called by plan_ports.c and by cli.
 */
#include "plan_ports.h"

/* Whether the port is behind the link above a node. */
static bool plan_uplink_has(const struct topo_host *host, unsigned i, int node)
{
    int at = host->port[i].pci;
    while (at >= 0 && at != node)
        at = host->pci[at].parent;
    return at == node && node >= 0;
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

int plan_uplink(const struct topo_host *host, const struct plan_ports_out *out, unsigned i)
{
    int worst = -1;
    double least = 1;
    if (host->hinted || out->why[i] > PLAN_PORT_EXTRA)
        return -1;
    for (int at = host->port[i].pci; at >= 0; at = host->pci[at].parent) {
        uint64_t need = plan_uplink_need(host, out, at, false), can = host->pci[at].link_bits;
        if (can && need > can && (double)can / (double)need < least) {
            least = (double)can / (double)need;
            worst = at;
        }
    }
    return worst;
}
