/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - the subcommands of the program. Each takes its own arguments (argv[0] is its name) and returns the exit
 * status: CLI_GOOD, CLI_WRONG (something was found wrong) or CLI_USAGE (the program was used wrongly).
 */
#ifndef CLI_H
#define CLI_H

enum cli_status { CLI_GOOD = 0, CLI_WRONG = 1, CLI_USAGE = 2 };

/** `braid demo`: the built-in two-node cluster, three methods side by side. */
int cli_demo(int argc, char **argv);
/** `braid options`: prints the option table. */
int cli_options(int argc, char **argv);

#endif
