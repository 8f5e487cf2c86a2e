/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_plan_json.c - a plan as JSON, schema braid.plan/1 (tests/cli/plan.schema.json). Called by cli_plan.c.
 */
#include "cli_plan.h"

#include <jansson.h>

static json_t *cli_plan_json_rate(uint64_t bits)
{
    return bits ? json_real((double)bits / 1e9) : json_null();
}

static json_t *cli_plan_json_pci(uint64_t number)
{
    char text[PCI_TEXT_SIZE];
    pci_text(number, text);
    return number ? json_string(text) : json_null();
}

static json_t *cli_plan_json_name(const struct cli_plan *plan, unsigned i)
{
    char name[80];
    cli_plan_port(plan, i, name, sizeof(name));
    return json_string(name);
}

/* Links that carry something: 1, or a bond's; null where the host does not tell those of a bond. */
static json_t *cli_plan_json_wires(const struct cli_plan *plan, unsigned i)
{
    const struct topo_port *p = &plan->host->port[i];
    if (!p->bond[0])
        return json_integer(1);
    return p->wires ? json_integer(p->wires) : json_null();
}

/* The ports of one GPU; with no GPU those of any process, whose class is not known. */
static json_t *cli_plan_json_ports(const struct cli_plan *plan, unsigned g)
{
    json_t *list = json_array();
    const struct plan_ports_gpu *gpu = &plan->out.gpu[g];
    for (unsigned k = 0; k < gpu->count; k++) {
        unsigned i = gpu->port[k];
        const char *class = topo_near_name((enum topo_near)(plan->host->gpus ? plan->host->near[g][i] : TOPO_NEAR_SYS));
        json_array_append_new(list, json_pack("{s:o,s:s,s:o,s:i,s:o}", "port", cli_plan_json_name(plan, i), "class",
                                              class, "gbps", cli_plan_json_rate(plan->host->port[i].rate_bits), "gpus",
                                              (int)plan->out.users[i], "wires", cli_plan_json_wires(plan, i)));
    }
    return list;
}

static json_t *cli_plan_json_unused(const struct cli_plan *plan)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < plan->host->ports; i++) {
        char why[200];
        if (plan->out.users[i])
            continue;
        cli_plan_why(plan, i, why, sizeof(why));
        json_array_append_new(list, json_pack("{s:o,s:s}", "port", cli_plan_json_name(plan, i), "why", why));
    }
    return list;
}

static json_t *cli_plan_json_links(const struct cli_plan *plan)
{
    json_t *list = json_array();
    int node[TOPO_PORTS];
    unsigned count = cli_plan_uplinks(plan, node);
    for (unsigned k = 0; k < count; k++) {
        const struct topo_pci *p = &plan->host->pci[node[k]];
        json_array_append_new(list,
                              json_pack("{s:o,s:o,s:o}", "pci", cli_plan_json_pci(p->number), "gbps",
                                        cli_plan_json_rate(p->link_bits), "load_gbps",
                                        cli_plan_json_rate(plan_uplink_need(plan->host, &plan->out, node[k], true))));
    }
    return list;
}

int cli_plan_json(const struct cli_plan *plan, FILE *to)
{
    json_t *gpus = json_array(), *notes = json_array(), *root;
    for (unsigned g = 0; g < plan->host->gpus; g++)
        json_array_append_new(gpus, json_pack("{s:s,s:o,s:o}", "gpu", plan->host->gpu[g].name, "pci",
                                              cli_plan_json_pci(plan->host->gpu[g].number), "ports",
                                              cli_plan_json_ports(plan, g)));
    for (unsigned i = 0; i < plan->notes; i++)
        json_array_append_new(notes, json_string(plan->note[i]));
    root = json_pack("{s:s,s:o,s:o,s:o,s:o}", "schema", "braid.plan/1", "gpus", gpus, "unused",
                     cli_plan_json_unused(plan), "uplinks", cli_plan_json_links(plan), "notes", notes);
    if (root && !plan->host->gpus)
        json_object_set_new(root, "any", cli_plan_json_ports(plan, 0));
    int rc = !root || json_dumpf(root, to, JSON_INDENT(1) | JSON_REAL_PRECISION(7)) || fputc('\n', to) == EOF;
    json_decref(root);
    return rc ? -1 : 0;
}
