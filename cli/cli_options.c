/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_options.c - `braid options`: prints libbraid's own table, so that this text cannot lag the code.
 */
#include "cli.h"

#include <braid/braid.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

int cli_options(int argc, char **argv)
{
    struct braid_option_row row;

    if (argc > 1) {
        int asked = strcmp(argv[1], "--help") == 0;

        fprintf(
            asked ? stdout : stderr,
            "usage: braid options\n\nprints each option of libbraid: its environment variable, its default, its meaning\n");
        return asked ? CLI_GOOD : CLI_USAGE;
    }
    for (size_t i = 0; braid_option_row(i, &row) == 0; i++) {
        char name[64] = "BRAID_";
        size_t n = strlen(name);

        for (const char *c = row.name; *c && n + 1 < sizeof(name); c++)
            name[n++] = (char)toupper((unsigned char)*c);
        name[n] = '\0';
        printf("%-24s %-10s %s\n", name, row.default_value[0] ? row.default_value : "-", row.help);
    }
    return CLI_GOOD;
}
