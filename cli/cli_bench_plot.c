/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bench_plot.c - the curves of a sweep, drawn by gnuplot: an SVG file, and text in the terminal. Called by cli_bench.c;
 * next: the program gnuplot.
 */
#include "cli_bench.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/** A string in gnuplot's single quotes: one inside is doubled. */
static void cli_bench_quoted(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++) {
        fputc(*text, to);
        if (*text == '\'')
            fputc('\'', to);
    }
    fputc('\'', to);
}

static void cli_bench_blocks(FILE *to, const struct cli_bench *c)
{
    for (int p = 0; p < c->n_ports; p++) {
        fprintf(to, "$d%d << END\n", p);
        for (int i = 0; i < c->n_sizes; i++)
            fprintf(to, "%llu %.4f\n", (unsigned long long)c->size[i], c->run[p * c->n_sizes + i].result.gbs);
        fprintf(to, "END\n");
    }
}

static void cli_bench_curves(FILE *to, const struct cli_bench *c)
{
    fprintf(to, "plot ");
    for (int p = 0; p < c->n_ports; p++) {
        int ports = c->run[p * c->n_sizes].result.ports;

        fprintf(to, "%s$d%d using 1:2 with linespoints lw 2 title '%d port%s'", p ? ", " : "", p, ports,
                ports == 1 ? "" : "s");
    }
    fprintf(to, "\n");
}

static void cli_bench_script(FILE *to, const struct cli_bench *c)
{
    cli_bench_blocks(to, c);
    fprintf(to, "set terminal svg size 900,560 background rgb 'white' font 'sans,14'\nset output ");
    cli_bench_quoted(to, c->svg ? c->svg : "braid-bench.svg");
    fprintf(to,
            "\nset title 'braid bench %s, order %s: emulated (virtual time), seed %llu'\n"
            "set xlabel 'bytes'\nset ylabel 'GB/s'\nset logscale x 2\nset format x '%%.0b%%B'\nset grid\n"
            "set yrange [0:*]\nset key left top\n",
            cli_bench_pattern(c), cli_bench_order(&c->run[0]), (unsigned long long)c->spec.seed);
    cli_bench_curves(to, c);
    fprintf(to, "set output\n");
    if (c->json)
        return;
    fprintf(to, "set terminal dumb 100 28 mono\nunset grid\n");
    cli_bench_curves(to, c);
}

int cli_bench_plot(const struct cli_bench *c)
{
    const char *svg = c->svg ? c->svg : "braid-bench.svg";
    void (*before)(int);
    FILE *to;
    int status;

    fflush(stdout);
    before = signal(SIGPIPE, SIG_IGN); /* a gnuplot that is not there must not end us */
    to = popen("gnuplot", "w");
    if (to) {
        cli_bench_script(to, c);
        status = pclose(to);
    } else {
        status = -1;
    }
    signal(SIGPIPE, before);
    if (status != 0) {
        fprintf(stderr,
                "braid bench: gnuplot %s: expected it to draw %s (Debian package gnuplot; scripts/deps.sh demo)\n",
                WIFEXITED(status) && WEXITSTATUS(status) == 127 ? "is not here" : "failed", svg);
        return -1;
    }
    fprintf(stderr, "braid bench: curves are in %s\n", svg);
    return 0;
}
