/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bench_live.c - `braid bench --fabric live`: this process is one PE of a job that a launcher has started. What it needs of its
 * host: the GPU that its number stands for, and the rates of ports, both from the host model that `braid plan` shows. Called by
 * cli_bench.c; next: bench/live, src/topo.
 */
#include "cli_bench.h"
#include "live.h"
#include "topo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool cli_bench_is_live(const struct cli_bench *c)
{
    return strcmp(c->fabric, "live") == 0;
}

const char *cli_bench_label(const struct cli_bench *c)
{
    return c->label ? c->label : "emulated (virtual time)";
}

static int cli_live_wrong(const char *what, const char *expected)
{
    fprintf(stderr, "braid bench: --fabric live: seen %s, expected %s\n", what, expected);
    return -1;
}

/** What runs in virtual time only. 0 or -1. */
static int cli_live_check(const struct cli_bench *c)
{
    if (c->spec.pattern == BENCH_ATOMIC)
        return cli_live_wrong("atomic", "put, get, signal or moe");
    if (cli_bench_has_engines(c))
        return cli_live_wrong("an engine that is not libbraid", "braid");
    if (c->spec.stock || c->spec.unreachable)
        return cli_live_wrong(c->spec.stock ? "--stock" : "peers that do not reach the home rail",
                              "ports as they are (--ports 1 takes the first one)");
    return 0;
}

static void cli_live_log(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    fprintf(stderr, "braid bench: %s\n", line);
}

/** Ports with their rates, and what kind of devices they are. 0 or -ENOMEM. */
static int cli_live_ports(struct cli_bench *c, const struct topo_host *host)
{
    struct bench_live_port *port = calloc(host->ports + 1u, sizeof(*port));
    unsigned software = 0;

    if (!port)
        return -ENOMEM;
    for (unsigned i = 0; i < host->ports; i++) {
        snprintf(port[i].port, sizeof(port[i].port), "%s:%u", host->port[i].dev, host->port[i].port);
        port[i].rate_bits = host->port[i].rate_bits;
        software += host->port[i].software;
    }
    c->live.port = port;
    c->live.n_ports = (int)host->ports;
    c->label = live_emulated(c->live.job)               ? "emulated (real time)"
               : host->ports && software == host->ports ? "soft-RoCE"
                                                        : "hardware";
    return 0;
}

/** PEs of a host take its GPUs in turn, in PCI order; without GPUs each uses all ports. */
static int cli_live_host(struct cli_bench *c)
{
    const struct log to_stderr = {.level = LOG_LEVEL_WARN, .fn = cli_live_log};
    struct topo_host *host = NULL;
    int rc = topo_read("/", &to_stderr, &host);

    if (rc)
        return rc;
    snprintf(c->live.gpu, sizeof(c->live.gpu), "none");
    if (host->gpus)
        pci_text(host->gpu[(unsigned)live_local(c->live.job) % host->gpus].number, c->live.gpu);
    rc = cli_live_ports(c, host);
    topo_free(host);
    return rc;
}

int cli_bench_live_open(struct cli_bench *c, const struct emu_sim_api **out)
{
    struct live_options o = {c->nap_us < 0 ? -1 : c->nap_us * 1000, c->patience_s * 1000000000u};
    char why[BENCH_WHY];

    if (cli_live_check(c))
        return CLI_USAGE;
    if (live_open(&o, &c->live.job, why, sizeof(why))) {
        fprintf(stderr, "braid bench: --fabric live: %s\n", why);
        return CLI_WRONG;
    }
    if (live_pes(c->live.job) < 2)
        return cli_live_wrong("one process", "two at least: mpirun -n 2 braid bench ...") ? CLI_USAGE : CLI_GOOD;
    if (c->spec.pattern == BENCH_MOE && !live_even(c->live.job))
        return cli_live_wrong("hosts with unequal numbers of processes", "equally many on each for moe") ? CLI_USAGE
                                                                                                         : CLI_GOOD;
    if (cli_live_host(c))
        return CLI_WRONG;
    c->spec.live = &c->live;
    *out = live_api(c->live.job);
    return -1;
}

bool cli_bench_live_speaks(const struct cli_bench *c)
{
    return !c->spec.live || live_pe(c->live.job) == 0;
}

void cli_bench_live_failed(const struct cli_bench *c, const char *why)
{
    if (c->spec.live)
        live_abort(c->live.job, why);
}

void cli_bench_live_close(struct cli_bench *c)
{
    live_close(c->live.job);
    free((void *)(uintptr_t)c->live.port);
}
