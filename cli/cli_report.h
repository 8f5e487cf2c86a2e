/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_report.h - what the files of `braid report` share. Results are JSON from anywhere: what is not there is left out.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "cli.h"

/** Text as HTML shows it. */
void cli_report_text(FILE *to, const char *text);
/** A string of an object, or "". Owned by the object. */
const char *cli_report_string(const json_t *o, const char *key);
/** A number of an object, or 0. */
double cli_report_number(const json_t *o, const char *key);
/** A run in few words: phase, engine, order, ports. out is the caller's. */
const char *cli_report_name(const json_t *run, char *out, size_t len);

/** One result as a section of the page. 0, or -1 where a plot failed, which has been said. */
int cli_report_section(FILE *to, const char *file, const json_t *result, int number);

/** Plots of a result, drawn by gnuplot, as SVG inside of the page: curves where runs differ in size or chunk, and rates over time.
 *  0, or -1 where gnuplot failed, which has been said. */
int cli_report_plots(FILE *to, const json_t *result, int number);

#endif
