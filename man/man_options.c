/* SPDX-License-Identifier: Apache-2.0 */
/*
 * man_options.c - prints the option table as rows of an mdoc list, for braid(7). Run by the build only, so that the
 * page cannot say anything else than the library. Knows braid.h alone.
 */
#include <braid/braid.h>
#include <stdio.h>

/* Prints text where a leading dot, a quote or a backslash would mean something to the formatter. */
static void print_text(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
    }
}

int main(void)
{
    struct braid_option_row row;
    for (size_t i = 0; braid_option_at(i, &row) == 0; i++) {
        printf(".It Cm %s\n", row.name);
        print_text(row.help);
        if (row.default_value[0] != '\0') {
            printf("\n.br\nDefault:\n.Li ");
            print_text(row.default_value);
            printf(" .");
        }
        putchar('\n');
    }
    return ferror(stdout) || fflush(stdout) != 0;
}
