/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_number.c - numbers and sizes from the command line, and sizes for people. Called by the subcommands.
 */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** Digits and nothing else in front; where they end. */
static int cli_digits(const char *text, uint64_t *out, char **end)
{
    errno = 0;
    *out = strtoull(text, end, 10);
    return text[0] < '0' || text[0] > '9' || errno ? -1 : 0;
}

int cli_number(const char *command, const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
    char *end;
    uint64_t v;

    if (cli_digits(text, &v, &end) || *end || v < low || v > high) {
        fprintf(stderr, "braid %s: %s: seen \"%s\", expected a whole number from %llu to %llu\n", command, option, text,
                (unsigned long long)low, (unsigned long long)high);
        return -1;
    }
    *out = v;
    return 0;
}

int cli_size(const char *command, const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
    static const char letters[] = "KMG";
    unsigned shift = 0;
    char *end;
    uint64_t v;
    int bad = cli_digits(text, &v, &end);

    if (!bad && *end) {
        const char *letter = strchr(letters, *end);

        shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
        bad = !letter || end[1] || v > UINT64_MAX >> shift;
    }
    if (bad || v << shift < low || v << shift > high) {
        fprintf(stderr, "braid %s: %s: seen \"%s\", expected bytes from %llu to %llu, as 4096, 64K or 1M\n", command,
                option, text, (unsigned long long)low, (unsigned long long)high);
        return -1;
    }
    *out = v << shift;
    return 0;
}

const char *cli_size_text(uint64_t bytes, char *out, size_t len)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    unsigned u = 0;

    while (u < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        u++;
    }
    snprintf(out, len, "%llu %s", (unsigned long long)bytes, units[u]);
    return out;
}
