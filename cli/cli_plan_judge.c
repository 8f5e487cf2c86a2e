/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_plan_judge.c - what there is to say about a plan: what is far, shared, narrow or unknown. Changes nothing of it. Called
 * by cli_plan.c; next: cli_plan_text.c
 */
#include "cli_plan.h"

#include "plan_lag.h"

#include <stdarg.h>
#include <string.h>

static void cli_plan_note(struct cli_plan *plan, const char *format, ...) ATTR_PRINTF(2, 3);

static void cli_plan_note(struct cli_plan *plan, const char *format, ...)
{
    va_list ap;
    if (plan->notes == CLI_PLAN_NOTES)
        return;
    va_start(ap, format);
    vsnprintf(plan->note[plan->notes++], sizeof(plan->note[0]), format, ap);
    va_end(ap);
}

void cli_plan_port(const struct cli_plan *plan, unsigned i, char *out, size_t size)
{
    snprintf(out, size, "%s:%u", plan->host->port[i].dev, plan->host->port[i].port);
}

bool cli_plan_near(const struct cli_plan *plan, unsigned g)
{
    return plan->out.gpu[g].count > 0 && plan->out.gpu[g].near <= TOPO_NEAR_PHB;
}

void cli_plan_why(const struct cli_plan *plan, unsigned i, char *out, size_t size)
{
    const struct topo_host *host = plan->host;
    const struct topo_port *p = &host->port[i];
    unsigned best = 0;
    switch (plan->out.why[i]) {
    case PLAN_PORT_DOWN:
        if (strcmp(p->state, "ABSENT") == 0)
            snprintf(out, size, "ibv_devinfo does not list it, so it cannot be opened");
        else
            snprintf(out, size, "its state is %s, not ACTIVE", p->state);
        return;
    case PLAN_PORT_LINK:
        snprintf(out, size, "its link layer is %s, which is not that of %s",
                 p->link ? topo_link_name(p->link) : "not told",
                 plan->rule.link ? "--link" : "most of the fastest ports");
        return;
    case PLAN_PORT_SLOW:
        snprintf(out, size, "%.4g Gb/s is below a quarter of the fastest near port", (double)p->rate_bits / 1e9);
        return;
    case PLAN_PORT_FAR:
        for (unsigned g = 1; g < host->gpus; g++)
            best = host->near[g][i] < host->near[best][i] ? g : best;
        if (host->gpus)
            snprintf(out, size, "the nearest GPU is %s (%s), which has nearer ports (%s)", host->gpu[best].name,
                     topo_near_name((enum topo_near)host->near[best][i]), topo_near_name(plan->out.gpu[best].near));
        if (host->gpus && (enum topo_near)host->near[best][i] <= plan->out.gpu[best].near)
            snprintf(out, size, "%s to %s, which is farther than --limit or left to --map",
                     topo_near_name((enum topo_near)host->near[best][i]), host->gpu[best].name);
        return;
    default:
        snprintf(out, size, "%s", plan_port_why_name(plan->out.why[i]));
    }
}

/* ---- links ----------------------------------------------------------------------------------------------------------------- */

unsigned cli_plan_uplinks(const struct cli_plan *plan, int out[TOPO_PORTS])
{
    unsigned count = 0;
    for (unsigned i = 0; i < plan->host->ports; i++) {
        int node = plan->out.why[i] == PLAN_PORT_USED ? plan_uplink(plan->host, &plan->out, i) : -1;
        if (node < 0 || plan_uplink_need(plan->host, &plan->out, node, true) <= plan->host->pci[node].link_bits)
            continue;
        bool seen = false;
        for (unsigned k = 0; k < count; k++)
            seen |= out[k] == node;
        if (!seen)
            out[count++] = node;
    }
    return count;
}

static void cli_plan_judge_links(struct cli_plan *plan)
{
    int node[TOPO_PORTS];
    unsigned count = cli_plan_uplinks(plan, node);
    for (unsigned k = 0; k < count; k++) {
        const struct topo_pci *p = &plan->host->pci[node[k]];
        char pci[PCI_TEXT_SIZE];
        pci_text(p->number, pci);
        cli_plan_note(
            plan, "the PCIe link of %s carries %.4g Gb/s, the used ports behind it %.4g: it is one budget for them",
            pci, (double)p->link_bits / 1e9, (double)plan_uplink_need(plan->host, &plan->out, node[k], true) / 1e9);
    }
}

/* ---- GPUs -------------------------------------------------------------------------------------------------------------------- */

/* Whether the GPU shares a port although one as near is nobody's. */
static bool cli_plan_needless(const struct cli_plan *plan, unsigned g)
{
    const struct plan_ports_gpu *gpu = &plan->out.gpu[g];
    bool shares = false, unused = false;
    for (unsigned k = 0; k < gpu->count; k++)
        shares |= plan->out.users[gpu->port[k]] > 1;
    for (unsigned i = 0; i < plan->host->ports; i++)
        unused |= plan->out.why[i] <= PLAN_PORT_EXTRA && plan->out.users[i] == 0 &&
                  (enum topo_near)plan->host->near[g][i] <= gpu->near;
    return shares && unused && !plan->rule.all;
}

/* "GPU0 GPU1": those of a set; "all GPUs" where it is all. */
static void cli_plan_names(const struct cli_plan *plan, const bool *of, char *out, size_t size)
{
    bool all = plan->host->gpus > 1;
    out[0] = '\0';
    for (unsigned g = 0; g < plan->host->gpus; g++) {
        all = all && of[g];
        if (of[g])
            snprintf(out + strlen(out), size - strlen(out), "%s%s", out[0] ? " " : "", plan->host->gpu[g].name);
    }
    if (all)
        snprintf(out, size, "all GPUs");
}

/* GPUs whose nearest ports are of this class. */
static void cli_plan_judge_far(struct cli_plan *plan, enum topo_near near)
{
    bool of[TOPO_GPUS] = {false}, any = false;
    char names[160];
    for (unsigned g = 0; g < plan->host->gpus; g++)
        any |= of[g] = plan->out.gpu[g].count > 0 && plan->out.gpu[g].near == near;
    cli_plan_names(plan, of, names, sizeof(names));
    if (any)
        cli_plan_note(plan, "no near port for %s: the nearest are %s, %s", names, topo_near_name(near),
                      near == TOPO_NEAR_SYS ? "across CPUs or NUMA nodes" : "across host bridges");
}

static void cli_plan_judge_gpus(struct cli_plan *plan)
{
    const struct topo_host *host = plan->host;
    cli_plan_judge_far(plan, TOPO_NEAR_NODE);
    cli_plan_judge_far(plan, TOPO_NEAR_SYS);
    for (unsigned g = 0; g < host->gpus; g++) {
        const struct plan_ports_gpu *gpu = &plan->out.gpu[g];
        bool mixed = false;
        if (!gpu->count)
            cli_plan_note(plan, "%s has no port", host->gpu[g].name);
        if (cli_plan_needless(plan, g))
            cli_plan_note(plan, "%s shares a port though one as near is unused", host->gpu[g].name);
        for (unsigned k = 1; k < gpu->count; k++)
            mixed |= host->near[g][gpu->port[k]] != host->near[g][gpu->port[0]];
        if (mixed)
            cli_plan_note(plan, "%s is given ports of several classes: the far ones will hold it up",
                          host->gpu[g].name);
        plan->wrong |= !cli_plan_near(plan, g) || cli_plan_needless(plan, g);
    }
}

unsigned cli_plan_ways(const struct topo_port *p, bool choice)
{
    unsigned wires = p->wires ? p->wires : 2;
    struct plan_lag_in in = {
        .lag = PLAN_LAG_AUTO, .spread = PLAN_LAG_AUTO, .device = wires, .host = wires, .choice = choice};
    struct plan_lag lag;
    if (!p->bond[0])
        return 1;
    plan_lag(&in, &lag);
    return lag.ways;
}

/* Bonds that are used and have more than one wire, all in one note. */
static void cli_plan_judge_bonds(struct cli_plan *plan)
{
    unsigned count = 0, first = 0, all = 0;
    bool rates = true, by_name = plan->host->source == TOPO_SOURCE_SMI;
    char name[80], wires[40] = "links";
    for (unsigned i = 0; i < plan->host->ports; i++) {
        const struct topo_port *p = &plan->host->port[i];
        if (plan->out.why[i] != PLAN_PORT_USED || !p->bond[0] || p->wires == 1)
            continue;
        first = count++ ? first : i;
        all += p->wires;
        rates = rates && p->rate_bits;
    }
    if (!count)
        return;
    cli_plan_port(plan, first, name, sizeof(name));
    if (count == 1 && all > 0)
        snprintf(wires, sizeof(wires), "%u active wire%s", all, all > 1 ? "s" : "");
    cli_plan_note(
        plan,
        "%s%s bond of %s%s: one QP uses one of its links, so braid uses at least two, told a wire or spread by "
        "source ports%s",
        name, count > 1 ? " and others are each a" : " is a", wires, by_name ? ", by name" : "",
        rates ? "" : "; the rate that its port reports may be that of one link");
}

static void cli_plan_judge_ports(struct cli_plan *plan)
{
    const struct topo_host *host = plan->host;
    unsigned unknown = 0, shared = 0, most = 0, efa = 0;
    for (unsigned i = 0; i < host->ports; i++) {
        const struct topo_port *p = &host->port[i];
        char name[80];
        cli_plan_port(plan, i, name, sizeof(name));
        unknown += !p->state[0];
        efa += p->pci >= 0 && host->pci[p->pci].vendor == 0x1d0f;
        shared += plan->out.users[i] > 1;
        most = plan->out.users[i] > most ? plan->out.users[i] : most;
        if (plan->out.why[i] == PLAN_PORT_USED && !p->active)
            cli_plan_note(plan, "%s is used as the map says, though its state is %s", name, p->state);
    }
    if (unknown)
        cli_plan_note(plan, "the state of ports is not known from this source (%u of %u): taken as ACTIVE", unknown,
                      host->ports);
    if (shared)
        cli_plan_note(plan, "ports are shared (%u), by up to %u GPUs each: a GPU then has that part of a port", shared,
                      most);
    if (efa)
        cli_plan_note(
            plan,
            "ports are EFA (%u), which has neither RC nor atomics: libbraid cannot use them, NVSHMEM's libfabric "
            "transport can",
            efa);
}

void cli_plan_judge(struct cli_plan *plan)
{
    for (unsigned i = 0; i < plan->host->notes; i++)
        cli_plan_note(plan, "%s", plan->host->note[i]);
    plan->wrong = plan->host->damaged || !plan->host->ports;
    if (!plan->host->ports)
        cli_plan_note(plan, "this host has no RDMA port");
    if (!plan->host->gpus)
        cli_plan_note(plan, "this host has no GPU: one process uses all usable ports");
    cli_plan_judge_gpus(plan);
    cli_plan_judge_links(plan);
    cli_plan_judge_bonds(plan);
    cli_plan_judge_ports(plan);
}
