/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - the subcommands of the program. Each takes its own arguments (argv[0] is its name) and returns the exit
 * status: CLI_GOOD, CLI_WRONG (something was found wrong) or CLI_USAGE (the program was used wrongly). And what they share.
 */
#ifndef CLI_H
#define CLI_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct bench_result;

enum cli_status { CLI_GOOD = 0, CLI_WRONG = 1, CLI_USAGE = 2 };

/** `braid demo`: the built-in two-node cluster, three methods side by side. */
int cli_demo(int argc, char **argv);
/** `braid bench`: traffic generators on an emulated fabric. */
int cli_bench(int argc, char **argv);
/** `braid emu`: a command inside an emulated fabric in real time. */
int cli_emu(int argc, char **argv);
/** `braid options`: prints the option table. */
int cli_options(int argc, char **argv);
/** `braid plan`: which ports each GPU of a host uses, and why. */
int cli_plan(int argc, char **argv);
/** `braid report`: results as one HTML page. */
int cli_report(int argc, char **argv);
/** `braid run`: a command whose NVSHMEM uses braid. Returns only where it does not become the command. */
int cli_run(int argc, char **argv);

/* ---- cli_number.c: text to numbers. Each returns 0, or -1 after it has said what was seen and what was expected. ---- */

/** A whole number in [low, high]. command and option are for the message. */
int cli_number(const char *command, const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *out);
/** Bytes in [low, high]: a whole number, with K, M or G behind it for 2^10, 2^20, 2^30. */
int cli_size(const char *command, const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *out);
/** Bytes as people write them ("448 KiB"). */
const char *cli_size_text(uint64_t bytes, char *out, size_t len);

/* ---- cli_bar.c: bars of bytes ------------------------------------------------------------------------------------- */

/** The bytes that a host's ports have sent (or received), a bar each behind the title; a bar is full at all bytes of the
 *  run. colour: with escape sequences. */
void cli_bars(FILE *to, const struct bench_result *r, const char *host, const char *title, int received, int colour);

#endif
