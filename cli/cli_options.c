/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_options.c - `braid options`: prints libbraid's own table, so that this text cannot lag the code.
 */
#include "cli.h"

#include <braid/braid.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void cli_options_help(FILE *to)
{
    fprintf(to, "usage: braid options\n\n"
                "Prints each option of libbraid: its environment variable, its default, its meaning.\n\n"
                "example: BRAID_LOG=info BRAID_RAILS=2 ./my_program\n");
}

/** "sq_depth" as BRAID_SQ_DEPTH. */
static void cli_options_variable(const char *name, char *out, size_t len)
{
    size_t n = (size_t)snprintf(out, len, "BRAID_");

    for (; *name && n + 1 < len; name++)
        out[n++] = (char)toupper((unsigned char)*name);
    out[n] = '\0';
}

int cli_options(int argc, char **argv)
{
    struct braid_option_row row;
    char variable[64];

    if (argc > 1) {
        int asked = strcmp(argv[1], "--help") == 0;

        cli_options_help(asked ? stdout : stderr);
        return asked ? CLI_GOOD : CLI_USAGE;
    }
    for (size_t i = 0; braid_option_at(i, &row) == 0; i++) {
        cli_options_variable(row.name, variable, sizeof(variable));
        printf("%-21s %-8s %s\n", variable, row.default_value[0] ? row.default_value : "-", row.help);
    }
    return CLI_GOOD;
}
