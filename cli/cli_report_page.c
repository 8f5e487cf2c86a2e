/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_report_page.c - one result as HTML: what ran, a table beside the first run, bars of bytes, delays and times. Called by
 * cli_report.c; next: cli_report_plot.c.
 */
#include "cli_report.h"

#include <string.h>

/* Runs and ports that are shown as bars; tables have all of them. */
enum { CLI_REPORT_BARS = 16, CLI_REPORT_PORTS = 16 };

void cli_report_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        default:
            fputc(*text, to);
        }
    }
}

const char *cli_report_string(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

double cli_report_number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

const char *cli_report_name(const json_t *run, char *out, size_t len)
{
    const char *engine = cli_report_string(run, "engine"), *slash = strrchr(engine, '/'),
               *what = cli_report_string(run, "phase");

    while (slash && slash > engine && slash[-1] != '/' && slash[-1] != ':')
        slash--; /* a plugin's file with its folder */
    snprintf(out, len, "%s%s%s, %s, %.0f port%s", what, *what ? ", " : "", slash ? slash : engine,
             cli_report_string(run, "order"), cli_report_number(run, "ports"),
             cli_report_number(run, "ports") > 1 ? "s" : "");
    return out;
}

static void cli_report_head(FILE *to, const char *file, const json_t *result)
{
    const json_t *runs = json_object_get(result, "runs");

    fprintf(to, "<section><h2>");
    cli_report_text(to, cli_report_string(json_array_get(runs, 0), "pattern"));
    fprintf(to, " &middot; ");
    cli_report_text(to, file);
    fprintf(to, "</h2>\n<p><code>");
    cli_report_text(to, cli_report_string(result, "command"));
    fprintf(to, "</code></p>\n<p class=\"n\"><b>");
    cli_report_text(to, cli_report_string(result, "label"));
    fprintf(to, "</b>, seed %.0f, cost table ", cli_report_number(result, "seed"));
    cli_report_text(to, cli_report_string(result, "cost_table"));
    fprintf(to, "<br><code>");
    cli_report_text(to, cli_report_string(json_object_get(result, "fabric"), "spec"));
    fprintf(to, "</code></p>\n");
}

/** The first run that did the same work: of the same phase, else the first. */
static const json_t *cli_report_first(const json_t *runs, const json_t *run)
{
    size_t i;
    json_t *r;

    for (i = 0; (r = json_array_get(runs, i)); i++) {
        if (strcmp(cli_report_string(r, "phase"), cli_report_string(run, "phase")) == 0)
            return r;
    }
    return run;
}

static void cli_report_times(FILE *to, const json_t *run, const char *key)
{
    const json_t *t = json_object_get(run, key);

    if (json_is_object(t))
        fprintf(to, "<td>%.1f / %.1f</td>", cli_report_number(t, "p50"), cli_report_number(t, "p99"));
    else
        fprintf(to, "<td>-</td>");
}

static void cli_report_row(FILE *to, const json_t *runs, const json_t *run)
{
    const json_t *first = cli_report_first(runs, run);
    double gbs = cli_report_number(run, "gbs"), errors = cli_report_number(run, "errors");
    char name[512];

    fprintf(to, "<tr><td>");
    cli_report_text(to, cli_report_name(run, name, sizeof(name)));
    fprintf(to, "</td><td>%.0f</td><td>%.2f</td><td>%.1f %%</td><td>%.3f</td><td>%.1f</td>",
            cli_report_number(run, "size"), gbs, 100 * cli_report_number(run, "fraction"),
            cli_report_number(first, "gbs") > 0 ? gbs / cli_report_number(first, "gbs") : 0,
            cli_report_number(run, "wall_ns") / 1e3);
    cli_report_times(to, run, "latency_us");
    cli_report_times(to, run, "signal_us");
    fprintf(to, "<td>%.0f %%</td><td%s>%.0f</td>", 100 * cli_report_number(run, "cpu_share"),
            errors > 0 ? " class=\"bad\"" : "", errors);
    if (json_object_get(run, "stale_reads"))
        fprintf(to, "<td>%.0f</td>", cli_report_number(run, "stale_reads"));
    fprintf(to, "</tr>\n");
}

static void cli_report_table(FILE *to, const json_t *runs)
{
    size_t i;
    json_t *run;

    fprintf(
        to,
        "<div class=\"w\"><table><tr><th>run</th><th>bytes</th><th>GB/s</th><th>of max</th><th>x first</th><th>us</th>"
        "<th>delay p50 / p99 us</th><th>signal p50 / p99 us</th><th>CPU</th><th>wrong bytes</th>%s</tr>\n",
        json_object_get(json_array_get(runs, 0), "stale_reads") ? "<th>stale slots</th>" : "");
    for (i = 0; (run = json_array_get(runs, i)); i++)
        cli_report_row(to, runs, run);
    fprintf(to, "</table></div>\n");
}

/** One bar: its name, its parts of the whole, what it says. */
static void cli_report_bar(FILE *to, const char *name, double part, const char *says)
{
    fprintf(to, "<span>");
    cli_report_text(to, name);
    fprintf(to, "</span><i><u style=\"width:%.2f%%\"></u></i><span>%s</span>\n",
            part > 1   ? 100
            : part > 0 ? 100 * part
                       : 0,
            says);
}

static void cli_report_rates(FILE *to, const json_t *runs)
{
    double most = 0;
    size_t i;
    json_t *run;

    for (i = 0; (run = json_array_get(runs, i)); i++)
        most = cli_report_number(run, "ceiling_gbs") > most ? cli_report_number(run, "ceiling_gbs") : most;
    fprintf(to, "<h3>GB/s of %.2f</h3><div class=\"b\">\n", most);
    for (i = 0; (run = json_array_get(runs, i)); i++) {
        char name[512], says[32];

        if (i == CLI_REPORT_BARS)
            break;
        snprintf(says, sizeof(says), "%.2f", cli_report_number(run, "gbs"));
        cli_report_bar(to, cli_report_name(run, name, sizeof(name)),
                       most > 0 ? cli_report_number(run, "gbs") / most : 0, says);
    }
    fprintf(to, "</div>\n");
}

/** What each port of the sender's host carried, in both directions. */
static void cli_report_ports(FILE *to, const json_t *runs)
{
    size_t i, k;
    json_t *run, *port;

    fprintf(to, "<h3>Payload of each port, of the host that has most of it</h3>\n");
    for (i = 0; (run = json_array_get(runs, i)); i++) {
        const json_t *ports = json_object_get(run, "port_bytes");
        const char *host = "";
        char name[512], says[64];
        double most = 1;
        int shown = 0;

        if (i == CLI_REPORT_BARS)
            break;
        for (k = 0; (port = json_array_get(ports, k)); k++) {
            double bytes = cli_report_number(port, "tx") + cli_report_number(port, "rx");

            host = bytes > most ? cli_report_string(port, "host") : host;
            most = bytes > most ? bytes : most;
        }
        fprintf(to, "<p class=\"n\">");
        cli_report_text(to, cli_report_name(run, name, sizeof(name)));
        fprintf(to, "</p><div class=\"b\">\n");
        for (k = 0; (port = json_array_get(ports, k)); k++) {
            if (strcmp(cli_report_string(port, "host"), host) != 0 || shown++ >= CLI_REPORT_PORTS)
                continue;
            snprintf(name, sizeof(name), "%s/%s", host, cli_report_string(port, "port"));
            snprintf(says, sizeof(says), "%.1f MB out, %.1f in", cli_report_number(port, "tx") / 1e6,
                     cli_report_number(port, "rx") / 1e6);
            cli_report_bar(to, name, (cli_report_number(port, "tx") + cli_report_number(port, "rx")) / most, says);
        }
        fprintf(to, "</div>\n");
    }
}

/** Where a phase's time went: a bar of parts for each run. */
static void cli_report_where(FILE *to, const json_t *runs)
{
    static const char *const parts[] = {"wire", "order", "credit", "proxy", "gpu", "end"};
    size_t i;
    json_t *run;

    fprintf(to, "<h3>Where the time went</h3><p class=\"k\">");
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
        fprintf(to, "<span><u class=\"%s\"></u>%s</span>", parts[k], parts[k]);
    fprintf(to, "</p><div class=\"b\">\n");
    for (i = 0; (run = json_array_get(runs, i)); i++) {
        const json_t *where = json_object_get(json_object_get(run, "moe"), "where_us");
        double wall = cli_report_number(run, "wall_ns") / 1e3;
        char name[512];

        if (i == CLI_REPORT_BARS)
            break;
        fprintf(to, "<span>");
        cli_report_text(to, cli_report_name(run, name, sizeof(name)));
        fprintf(to, "</span><i>");
        for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
            fprintf(to, "<u class=\"%s\" style=\"width:%.2f%%\"></u>", parts[k],
                    wall > 0 ? 100 * cli_report_number(where, parts[k]) / wall : 0);
        fprintf(to, "</i><span>%.0f us</span>\n", wall);
    }
    fprintf(to, "</div>\n");
}

int cli_report_section(FILE *to, const char *file, const json_t *result, int number)
{
    const json_t *runs = json_object_get(result, "runs");
    int rc;

    cli_report_head(to, file, result);
    cli_report_table(to, runs);
    cli_report_rates(to, runs);
    if (json_object_get(json_array_get(runs, 0), "moe"))
        cli_report_where(to, runs);
    cli_report_ports(to, runs);
    rc = cli_report_plots(to, result, number);
    fprintf(to, "</section>\n");
    return rc;
}
