/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_report_plot.c - plots of a result by gnuplot, as SVG inside of the page: GB/s by bytes or by chunk, distributions of delays, and the rate of each
 * port over time. Called by cli_report_page.c; next: the program gnuplot.
 */
#include "cli_report.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLI_REPORT_CURVES = 12, CLI_REPORT_LINES = 4 };

/** A word in gnuplot's single quotes, on one line. */
static void cli_report_quoted(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++) {
        fputc(*text < ' ' && *text > 0 ? ' ' : *text, to);
        if (*text == '\'')
            fputc('\'', to);
    }
    fputc('\'', to);
}

/** Runs a script and puts the SVG that it prints into the page. 0 or -1, which has been said. */
static int cli_report_draw(FILE *to, const char *title, const char *script, int number)
{
    char file[] = "/tmp/braid-report-XXXXXX", command[sizeof(file) + 16], line[4096];
    int fd = mkstemp(file), status = -1, inside = 0;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w"), *svg = NULL;

    if (f) {
        fprintf(
            f,
            "set terminal svg size 720,400 dynamic noenhanced name 'p%d' font 'sans,13'\nset grid\nset key outside below\n%s",
            number, script);
        status = fclose(f);
        snprintf(command, sizeof(command), "gnuplot %s", file);
        svg = status ? NULL : popen(command, "r"); /* a name of our own, of plain letters */
    }
    if (svg) {
        fprintf(to, "<h3>%s</h3>\n", title);
        while (fgets(line, sizeof(line), svg)) {
            inside |= strncmp(line, "<svg", 4) == 0; /* what stands before is for files */
            if (inside)
                fputs(line, to);
        }
        status = pclose(svg);
    }
    if (fd >= 0)
        unlink(file);
    if (status == 0 && inside)
        return 0;
    fprintf(stderr,
            "braid report: gnuplot %s: expected it to draw \"%s\" (Debian package gnuplot; scripts/deps.sh demo)\n",
            svg && WIFEXITED(status) && WEXITSTATUS(status) == 127 ? "is not here" : "failed", title);
    return -1;
}

/** What curves go along: the chunk of a phase, or bytes. */
static double cli_report_along(const json_t *run)
{
    const json_t *moe = json_object_get(run, "moe");

    return moe ? cli_report_number(moe, "chunk") : cli_report_number(run, "size");
}

/** Names of curves that have two points at least; how many. */
static int cli_report_curves(const json_t *runs, char name[CLI_REPORT_CURVES][512])
{
    int points[CLI_REPORT_CURVES] = {0}, n = 0, kept = 0;
    char now[512];
    size_t i;
    json_t *run;

    for (i = 0; (run = json_array_get(runs, i)); i++) {
        int k = 0;

        if (cli_report_along(run) <= 0)
            continue;
        cli_report_name(run, now, sizeof(now));
        while (k < n && strcmp(name[k], now) != 0)
            k++;
        if (k == CLI_REPORT_CURVES)
            continue;
        if (k == n)
            memcpy(name[n++], now, sizeof(now));
        points[k]++;
    }
    for (int k = 0; k < n; k++) {
        if (points[k] > 1 && kept++ != k)
            memcpy(name[kept - 1], name[k], sizeof(name[k]));
    }
    return kept;
}

/** GB/s along sizes or chunks. */
static int cli_report_sweep(FILE *to, const json_t *runs, int number)
{
    char name[CLI_REPORT_CURVES][512], now[512], *script = NULL;
    size_t len = 0, i;
    int n = cli_report_curves(runs, name), rc;
    FILE *s = n ? open_memstream(&script, &len) : NULL;
    bool moe = json_object_get(json_array_get(runs, 0), "moe") != NULL;
    json_t *run;

    if (!s)
        return n ? -1 : 0;
    for (int k = 0; k < n; k++) {
        fprintf(s, "$d%d << END\n", k);
        for (i = 0; (run = json_array_get(runs, i)); i++) {
            if (strcmp(cli_report_name(run, now, sizeof(now)), name[k]) == 0)
                fprintf(s, "%.0f %.5g\n", cli_report_along(run), cli_report_number(run, "gbs"));
        }
        fprintf(s, "END\n");
    }
    fprintf(s, "set ylabel 'GB/s'\nset yrange [0:*]\nset xlabel '%s'\n%splot ", moe ? "tokens of a chunk" : "bytes",
            moe ? "" : "set logscale x 2\nset format x '%.0b%B'\n");
    for (int k = 0; k < n; k++) {
        fprintf(s, "%s$d%d using 1:2 with linespoints lw 2 title ", k ? ", " : "", k);
        cli_report_quoted(s, name[k]);
    }
    fputc('\n', s);
    fclose(s);
    rc = cli_report_draw(to, moe ? "GB/s by chunk" : "GB/s by bytes", script, number);
    free(script);
    return rc;
}

/** Which part of a run's delays is not longer than so much, as data of gnuplot; how many points. */
static int cli_report_delay_data(FILE *s, int k, const json_t *times)
{
    const json_t *list = json_object_get(times, "histogram");
    double all = 0, below = 0, last = 0;
    int points = 0;
    size_t i;
    json_t *pair;

    for (i = 0; (pair = json_array_get(list, i)); i++)
        all += json_number_value(json_array_get(pair, 1));
    fprintf(s, "$d%d << END\n", k);
    for (i = 0; (pair = json_array_get(list, i)); i++) {
        double us = json_number_value(json_array_get(pair, 0));

        if (!(us > 0) || !(all > 0))
            continue;
        if (us * 8 / 9 > last) /* buckets are no wider, and those that hold nothing are left out */
            fprintf(s, "%.6g %.6g\n", us * 8 / 9, 100 * below / all);
        last = us;
        points++;
        below += json_number_value(json_array_get(pair, 1));
        fprintf(s, "%.6g %.6g\n", us, 100 * below / all);
    }
    fprintf(s, "END\n");
    return points;
}

/** Distributions of a kind of delay, a curve for each run. */
static int cli_report_delays(FILE *to, const json_t *runs, const char *key, const char *title, int number)
{
    char name[CLI_REPORT_CURVES][512], *script = NULL;
    size_t len = 0, i;
    FILE *s = open_memstream(&script, &len);
    int n = 0, rc = 0;
    json_t *run;

    if (!s)
        return -1;
    for (i = 0; n < CLI_REPORT_CURVES && (run = json_array_get(runs, i)); i++) {
        if (cli_report_delay_data(s, n, json_object_get(run, key)))
            cli_report_name(run, name[n++], sizeof(name[0]));
    }
    fprintf(s, "set ylabel '%% of delays'\nset yrange [0:100]\nset xlabel 'us or less'\nset logscale x 10\nplot ");
    for (int k = 0; k < n; k++) {
        fprintf(s, "%s$d%d using 1:2 with lines lw 2 title ", k ? ", " : "", k);
        cli_report_quoted(s, name[k]);
    }
    fputc('\n', s);
    fclose(s);
    if (n)
        rc = cli_report_draw(to, title, script, number);
    free(script);
    return rc;
}

/** Rates of ports over time, of one run. */
static int cli_report_timeline(FILE *to, const json_t *run, int number)
{
    const json_t *line = json_object_get(json_object_get(run, "moe"), "timeline"), *us = json_object_get(line, "us"),
                 *ports = json_object_get(line, "ports");
    char *script = NULL, title[640], name[512], safe[512];
    size_t len = 0, k, i;
    FILE *s = json_array_size(us) > 1 && json_array_size(ports) ? open_memstream(&script, &len) : NULL;
    json_t *port, *at;
    int rc;

    if (!s)
        return 0;
    for (k = 0; (port = json_array_get(ports, k)); k++) {
        fprintf(s, "$d%zu << END\n", k);
        for (i = 0; (at = json_array_get(us, i)); i++)
            fprintf(s, "%.6g %.5g\n", json_number_value(at),
                    json_number_value(json_array_get(json_object_get(port, "gbs"), i)));
        fprintf(s, "END\n");
    }
    fprintf(s, "set ylabel 'GB/s'\nset yrange [0:*]\nset xlabel 'us'\nplot ");
    for (k = 0; (port = json_array_get(ports, k)); k++) {
        fprintf(s, "%s$d%zu using 1:2 with steps lw 1.5 title ", k ? ", " : "", k);
        cli_report_quoted(s, cli_report_string(port, "port"));
    }
    fputc('\n', s);
    fclose(s);
    /* The name goes into HTML: only letters that mean nothing there. */
    cli_report_name(run, name, sizeof(name));
    for (i = 0; (safe[i] = strchr("<>&\"", name[i]) && name[i] ? '?' : name[i]); i++)
        ;
    snprintf(title, sizeof(title), "Rate of each port over time: %s", safe);
    rc = cli_report_draw(to, title, script, number);
    free(script);
    return rc;
}

int cli_report_plots(FILE *to, const json_t *result, int number)
{
    const json_t *runs = json_object_get(result, "runs");
    int rc = cli_report_sweep(to, runs, number * 100), shown = 0;
    size_t i;
    json_t *run;

    if (rc == 0)
        rc = cli_report_delays(to, runs, "latency_us", "Delays", number * 100 + 90);
    if (rc == 0)
        rc = cli_report_delays(to, runs, "signal_us", "Delays of signals", number * 100 + 91);
    for (i = 0; (run = json_array_get(runs, i)); i++) {
        if (rc == 0 && shown < CLI_REPORT_LINES && json_object_get(run, "moe"))
            rc = cli_report_timeline(to, run, number * 100 + ++shown);
    }
    return rc;
}
