/* SPDX-License-Identifier: Apache-2.0 */
/* cli_plan.h - what `braid plan` knows when it prints; for cli_plan*.c alone. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "plan_ports.h"

#include <stdio.h>

#define CLI_PLAN_NOTES 96

/** A plan, and what is said of it. */
struct cli_plan {
    struct topo_host *host;
    struct plan_ports_rule rule;
    struct plan_ports_out out;
    struct plan_ports_map map[TOPO_GPUS];
    struct portlist only;
    uint64_t peers; /**< to count QPs for; 0: not asked */
    unsigned notes;
    char note[CLI_PLAN_NOTES][240];
    bool wrong; /**< a GPU has no near port, ports are shared needlessly, or the host is not whole */
};

/** Fills in notes and `wrong`. */
void cli_plan_judge(struct cli_plan *plan);

/** Whether a GPU of the plan has a near port: PIX, PXB or PHB. */
bool cli_plan_near(const struct cli_plan *plan, unsigned g);

/** "mlx5_0:1" */
void cli_plan_port(const struct cli_plan *plan, unsigned i, char *out, size_t size);

/** Lanes to each peer that a bond is worth, where QPs can choose a wire and where they cannot; of a bond of nobody knows how many links as of
 *  one of two. 1 where it is none. */
unsigned cli_plan_ways(const struct topo_port *p, bool choice);

/** Why a port that no GPU uses is left out, in words. */
void cli_plan_why(const struct cli_plan *plan, unsigned i, char *out, size_t size);

/** The PCIe links that are too narrow for the used ports behind them, each once: indices of nodes. How many. */
unsigned cli_plan_uplinks(const struct cli_plan *plan, int out[TOPO_PORTS]);

/** The plan for people. explain: also each port's reason and the rules. */
void cli_plan_text(const struct cli_plan *plan, bool explain, FILE *to);

/** The plan as JSON, schema braid.plan/1. 0 or -1. */
int cli_plan_json(const struct cli_plan *plan, FILE *to);

/** The plan as an environment file for all processes of the host. */
void cli_plan_env(const struct cli_plan *plan, FILE *to);

#endif
