/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_plan_text.c - a plan for people, and as an environment file. Called by cli_plan.c.
 */
#include "cli_plan.h"

#include <string.h>

static const char *cli_plan_source(const struct topo_host *host)
{
    static const char *const names[] = {
        [TOPO_SOURCE_SYSFS] = "sysfs",         [TOPO_SOURCE_HOST] = "a file",
        [TOPO_SOURCE_HWLOC] = "hwloc XML",     [TOPO_SOURCE_NCCL] = "NCCL topology XML",
        [TOPO_SOURCE_SMI] = "nvidia-smi topo",
    };
    return names[host->source];
}

static void cli_plan_rate(uint64_t bits, char *out, size_t size)
{
    if (bits)
        snprintf(out, size, "%.4g", (double)bits / 1e9);
    else
        snprintf(out, size, "?");
}

/* One line of the table: the name of who uses them, its address, ports, class, rate of all together. */
static void cli_plan_row(const struct cli_plan *plan, unsigned g, const char *name, const char *pci, FILE *to)
{
    const struct plan_ports_gpu *gpu = &plan->out.gpu[g];
    char ports[1200] = "", rate[16], one[80];
    uint64_t bits = 0;
    bool known = true;
    for (unsigned k = 0; k < gpu->count; k++) {
        size_t used = strlen(ports);
        cli_plan_port(plan, gpu->port[k], one, sizeof(one));
        snprintf(ports + used, sizeof(ports) - used, "%s%s", k ? "," : "", one);
        bits += plan->host->port[gpu->port[k]].rate_bits;
        known = known && plan->host->port[gpu->port[k]].rate_bits;
    }
    cli_plan_rate(known ? bits : 0, rate, sizeof(rate));
    fprintf(to, "%-6s %-13s %-5s %6s  %s%s\n", name, pci, gpu->count ? topo_near_name(gpu->near) : "-", rate,
            gpu->count ? ports : "none", gpu->mapped ? "  (by the map)" : "");
}

static void cli_plan_table(const struct cli_plan *plan, FILE *to)
{
    fprintf(to, "%-6s %-13s %-5s %6s  %s\n", "GPU", "address", "class", "Gb/s", "ports");
    for (unsigned g = 0; g < plan->host->gpus; g++) {
        char pci[PCI_TEXT_SIZE] = "?";
        if (plan->host->gpu[g].number)
            pci_text(plan->host->gpu[g].number, pci);
        cli_plan_row(plan, g, plan->host->gpu[g].name, pci, to);
    }
    if (!plan->host->gpus)
        cli_plan_row(plan, 0, "any", "-", to);
}

/* The GPUs that use a port, and how many QPs they have on it. */
static void cli_plan_load(const struct cli_plan *plan, FILE *to)
{
    fprintf(to, "\n%-18s %6s %5s  %s\n", "port", "Gb/s", "GPUs", plan->peers ? "data QPs, and who" : "who");
    for (unsigned i = 0; i < plan->host->ports; i++) {
        char name[80], rate[16];
        if (!plan->out.users[i])
            continue;
        cli_plan_port(plan, i, name, sizeof(name));
        cli_plan_rate(plan->host->port[i].rate_bits, rate, sizeof(rate));
        fprintf(to, "%-18s %6s %5u ", name, rate, plan->out.users[i]);
        if (plan->peers) /* two channels, host and proxy, each with a lane from this port, or from each wire, to each peer */
            fprintf(
                to, " %llu:",
                (unsigned long long)(plan->peers * 2 * plan->out.users[i] * cli_plan_ways(&plan->host->port[i], true)));
        for (unsigned g = 0; g < plan->host->gpus; g++) {
            for (unsigned k = 0; k < plan->out.gpu[g].count; k++) {
                if (plan->out.gpu[g].port[k] == i)
                    fprintf(to, " %s", plan->host->gpu[g].name);
            }
        }
        fprintf(to, "%s\n", plan->host->gpus ? "" : " any");
    }
}

static void cli_plan_links(const struct cli_plan *plan, FILE *to)
{
    int node[TOPO_PORTS];
    unsigned count = cli_plan_uplinks(plan, node);
    if (count)
        fprintf(to, "\n%-18s %6s %6s  %s\n", "PCIe link", "Gb/s", "load", "width and speed");
    for (unsigned k = 0; k < count; k++) {
        const struct topo_pci *p = &plan->host->pci[node[k]];
        char pci[PCI_TEXT_SIZE];
        pci_text(p->number, pci);
        fprintf(to, "%-18s %6.4g %6.4g  ", pci, (double)p->link_bits / 1e9,
                (double)plan_uplink_need(plan->host, &plan->out, node[k], true) / 1e9);
        if (p->width)
            fprintf(to, "x%u at %.4g GT/s\n", p->width, (double)p->speed / 1e3);
        else
            fprintf(to, "not told\n");
    }
}

/* An address as people know it: IPv4 where it is one. */
static void cli_plan_gid(const struct topo_gid *g, char *out, size_t size)
{
    static const uint8_t v4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (memcmp(g->raw, v4, sizeof(v4)) == 0) {
        snprintf(out, size, "%u.%u.%u.%u", g->raw[12], g->raw[13], g->raw[14], g->raw[15]);
        return;
    }
    out[0] = '\0';
    for (unsigned k = 0; k < 16; k += 2)
        snprintf(out + strlen(out), size - strlen(out), "%s%x", k ? ":" : "", g->raw[k] << 8 | g->raw[k + 1]);
}

static void cli_plan_port_facts(const struct cli_plan *plan, unsigned i, FILE *to)
{
    const struct topo_host *host = plan->host;
    const struct topo_port *p = &host->port[i];
    char pci[PCI_TEXT_SIZE];
    if (p->pci >= 0) {
        pci_text(host->pci[p->pci].number, pci);
        fprintf(to, " at %s", pci);
        if (host->pci[p->pci].width && host->pci[p->pci].speed)
            fprintf(to, " (x%u, %.4g GT/s)", host->pci[p->pci].width, (double)host->pci[p->pci].speed / 1e3);
    }
    fprintf(to, "%s%s%s%s%s%s", p->state[0] ? ", " : "", p->state, p->link ? ", " : "", topo_link_name(p->link),
            p->netdev[0] ? ", " : "", p->netdev);
    if (p->mtu)
        fprintf(to, ", MTU %u", p->mtu);
    if (p->bond[0] && p->wires)
        fprintf(to, ", %s of %u wire%s", p->bond, p->wires, p->wires > 1 ? "s" : "");
    if (p->bond[0] && p->wires != 1)
        fprintf(to, "%s, %u lanes to each peer, %u where QPs cannot choose a wire", p->wires ? "" : ", a bond",
                cli_plan_ways(p, true), cli_plan_ways(p, false));
    for (unsigned k = 0; k < host->gids; k++) {
        char gid[48];
        if (host->gid[k].port != i || (p->link == TOPO_LINK_ETHERNET && !host->gid[k].v2))
            continue;
        cli_plan_gid(&host->gid[k], gid, sizeof(gid));
        fprintf(to, ", GID %u %s", host->gid[k].index, gid);
    }
}

static void cli_plan_explain(const struct cli_plan *plan, FILE *to)
{
    const struct topo_host *host = plan->host;
    fprintf(to, "\nwhy:\n");
    for (unsigned i = 0; i < host->ports; i++) {
        char name[80], why[200];
        cli_plan_port(plan, i, name, sizeof(name));
        cli_plan_why(plan, i, why, sizeof(why));
        fprintf(to, "  %s", name);
        cli_plan_port_facts(plan, i, to);
        fprintf(to, ": %s", plan->out.users[i] ? "used by" : why);
        for (unsigned g = 0; g < host->gpus && plan->out.users[i]; g++) {
            for (unsigned k = 0; k < plan->out.gpu[g].count; k++) {
                if (plan->out.gpu[g].port[k] == i)
                    fprintf(to, " %s (%s)", host->gpu[g].name, topo_near_name((enum topo_near)host->near[g][i]));
            }
        }
        fprintf(to, "\n");
    }
    fprintf(
        to,
        "rules: a GPU uses its nearest class alone (PIX < PXB < PHB < NODE < SYS); GPUs that tie on the same ports divide\n"
        "  them, blocks in PCI order with the ports of a card together; with too few each takes the least used one.\n");
}

void cli_plan_text(const struct cli_plan *plan, bool explain, FILE *to)
{
    fprintf(to, "host by %s: %u GPUs, %u ports\n\n", cli_plan_source(plan->host), plan->host->gpus, plan->host->ports);
    cli_plan_table(plan, to);
    cli_plan_load(plan, to);
    cli_plan_links(plan, to);
    if (explain)
        cli_plan_explain(plan, to);
    bool any = false;
    for (unsigned i = 0; i < plan->host->ports && !explain; i++) {
        char name[80], why[200];
        if (plan->out.users[i])
            continue;
        cli_plan_port(plan, i, name, sizeof(name));
        cli_plan_why(plan, i, why, sizeof(why));
        fprintf(to, "%s  %s: %s\n", any ? "" : "\nunused:\n", name, why);
        any = true;
    }
    if (plan->notes)
        fprintf(to, "\nnotes:\n");
    for (unsigned i = 0; i < plan->notes; i++)
        fprintf(to, "  %s\n", plan->note[i]);
}

/* The ports of one GPU, with commas. */
static void cli_plan_env_ports(const struct cli_plan *plan, unsigned g, FILE *to)
{
    char name[80];
    for (unsigned k = 0; k < plan->out.gpu[g].count; k++) {
        cli_plan_port(plan, plan->out.gpu[g].port[k], name, sizeof(name));
        fprintf(to, "%s%s", k ? "," : "", name);
    }
}

void cli_plan_env(const struct cli_plan *plan, FILE *to)
{
    const struct topo_host *host = plan->host;
    bool addresses = host->gpus > 0, first = true;
    fprintf(to, "# which ports each GPU of this host uses, for all its processes; made by braid plan --env\n");
    for (unsigned g = 0; g < host->gpus; g++)
        addresses = addresses && host->gpu[g].number;
    if (host->gpus && !addresses)
        fprintf(to, "# the source tells no PCI addresses of GPUs: set the line of its GPU for each process\n");
    for (unsigned g = 0; g < host->gpus && !addresses; g++) {
        fprintf(to, "# BRAID_PORTS=");
        cli_plan_env_ports(plan, g, to);
        fprintf(to, "  # %s\n", host->gpu[g].name);
    }
    for (unsigned g = 0; g < host->gpus && addresses; g++) {
        char pci[PCI_TEXT_SIZE];
        if (!plan->out.gpu[g].count)
            continue;
        pci_text(host->gpu[g].number, pci);
        fprintf(to, "%s%s=", first ? "BRAID_MAP='" : ";", pci);
        cli_plan_env_ports(plan, g, to);
        first = false;
    }
    if (!first)
        fprintf(to, "'\n");
    if (!host->gpus) {
        fprintf(to, "BRAID_PORTS=");
        cli_plan_env_ports(plan, 0, to);
        fprintf(to, "\n");
    }
}
