/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_report.c - `braid report`: results of `braid bench --json` as one HTML page that needs no network. Next:
 * cli_report_page.c, cli_report_plot.c.
 */
#include "cli_report.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CLI_REPORT_FILES = 64, CLI_REPORT_OUT = 'o', CLI_REPORT_HELP = 'h' };

static const char cli_report_style[] =
    "body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;max-width:70em;padding:0 1em 3em;color:#1d2430;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2.2em;border-top:1px solid #cfd6e0;padding-top:1em}h3{font-size:1em}"
    "code{font:13px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}.w{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:14px}th,td{padding:.25em .7em;text-align:right;border-bottom:1px solid #dfe4ec;white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left}.bad{color:#b00020;font-weight:600}"
    ".b{display:grid;grid-template-columns:minmax(7em,16em) 1fr minmax(5em,auto);gap:.15em .6em;align-items:center;font-size:13px}"
    ".b>i{display:flex;height:1em;background:#eef1f6;font-style:normal}.b>i>u{display:block;height:100%;background:#3a6ea5}"
    ".k span{display:inline-block;margin-right:1em;font-size:13px}.k u{display:inline-block;width:.8em;height:.8em;margin-right:.3em}"
    "u.wire{background:#2f7d4f!important}u.order{background:#c0392b!important}u.credit{background:#d98c1f!important}"
    "u.proxy{background:#6d4fb3!important}u.gpu{background:#3a6ea5!important}u.end{background:#98a2b3!important}"
    "svg{max-width:100%;height:auto}p.n{color:#5a6472;font-size:14px}";

static void cli_report_help(FILE *to)
{
    fputs(
        "usage: braid report RESULT.json... -o FILE.html\n\n"
        "Makes one self-contained page of what `braid bench` printed as JSON: tables against the first run, bytes of each port, delays,\n"
        "where the time went, curves and rates over time (drawn by gnuplot), command lines and seeds. \"-\" reads standard input.\n\n"
        "  -o, --output FILE     where the page goes; \"-\" for standard output\n\n"
        "exit status: 0 the page is written, 1 a result or a plot is bad, 2 used wrongly\n\n"
        "example: braid report moe.json -o moe.html\n",
        to);
}

static json_t *cli_report_load(const char *file)
{
    json_error_t why;
    json_t *o = strcmp(file, "-") == 0 ? json_loadf(stdin, 0, &why) : json_load_file(file, 0, &why);
    const char *schema = cli_report_string(o, "schema");
    const json_t *runs = json_object_get(o, "runs");
    bool good = strcmp(schema, "braid.bench/1") == 0 && json_array_size(runs) > 0;
    size_t i;
    json_t *run;

    for (i = 0; (run = json_array_get(runs, i)); i++)
        good &= json_is_object(run);
    if (good)
        return o;
    if (!o)
        fprintf(stderr, "braid report: %s: line %d: %s\n", file, why.line, why.text);
    else
        fprintf(stderr,
                "braid report: %s: seen the schema \"%.40s\", expected braid.bench/1 with runs (braid bench --json)\n",
                file, schema);
    json_decref(o);
    return NULL;
}

static int cli_report_page(FILE *to, char **file, int files)
{
    int status = CLI_GOOD;

    fprintf(to,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>braid report</title>"
            "<style>%s</style></head>\n<body><h1>braid report</h1>\n",
            cli_report_style);
    for (int i = 0; i < files; i++) {
        json_t *result = cli_report_load(file[i]);

        if (!result || cli_report_section(to, file[i], result, i))
            status = CLI_WRONG;
        json_decref(result);
    }
    fprintf(to, "</body></html>\n");
    return status;
}

/** The page is whole before it takes its place. */
static int cli_report_write(const char *out, char **file, int files)
{
    char *text = NULL;
    size_t len = 0;
    FILE *page = open_memstream(&text, &len), *to = stdout;
    int status = page ? cli_report_page(page, file, files) : CLI_WRONG;

    if (page && fclose(page))
        status = CLI_WRONG;
    if (status == CLI_GOOD && strcmp(out, "-") != 0)
        to = fopen(out, "we");
    if (!to || (status == CLI_GOOD && (fwrite(text, 1, len, to) != len || (to != stdout && fclose(to))))) {
        fprintf(stderr, "braid report: %s: %s\n", out, strerror(errno));
        status = CLI_WRONG;
    }
    free(text);
    return status;
}

int cli_report(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, CLI_REPORT_OUT},
                                            {"help", no_argument, NULL, CLI_REPORT_HELP},
                                            {NULL, 0, NULL, 0}};
    const char *out = NULL;
    int letter;

    optind = 1;
    opterr = 0;
    while ((letter = getopt_long(argc, argv, "ho:", options, NULL)) != -1) {
        if (letter == CLI_REPORT_HELP) {
            cli_report_help(stdout);
            return CLI_GOOD;
        }
        if (letter == '?') {
            fprintf(stderr, "braid report: seen \"%s\", expected -o FILE and results (see braid report --help)\n",
                    argv[optind - 1]);
            return CLI_USAGE;
        }
        out = optarg;
    }
    if (!out || optind == argc || argc - optind > CLI_REPORT_FILES) {
        fprintf(stderr, "braid report: seen %d results and %s -o, expected 1 to %d and one (see braid report --help)\n",
                argc - optind, out ? "an" : "no", CLI_REPORT_FILES);
        return CLI_USAGE;
    }
    return cli_report_write(out, argv + optind, argc - optind);
}
