/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bar.c - the port picture: a bar of bytes for each port. Called by the subcommands that move bytes.
 */
#include "cli.h"

#include <string.h>

#include "bench.h"

enum { CLI_BAR = 36 };

static void cli_bar(FILE *to, const struct bench_port *port, uint64_t bytes, uint64_t full, int colour)
{
    int n = full ? (int)((double)bytes / (double)full * CLI_BAR + 0.5) : 0;

    if (n > CLI_BAR)
        n = CLI_BAR;
    fprintf(to, "%s/%-9s %s", port->host, port->port, colour ? "\033[32m" : "");
    for (int i = 0; i < n; i++)
        fputs("#", to);
    fprintf(to, "%s%*s %8.1f MB\n", colour ? "\033[0m" : "", CLI_BAR - n, "", (double)bytes / 1e6);
}

void cli_bars(FILE *to, const struct bench_result *r, const char *host, const char *title, int received, int colour)
{
    for (int i = 0; i < r->n_ports; i++) {
        if (strcmp(r->port[i].host, host) != 0)
            continue;
        fprintf(to, "    %-9s", title);
        cli_bar(to, &r->port[i], received ? r->port[i].rx : r->port[i].tx, r->payload_bytes, colour);
        title = "";
    }
}
