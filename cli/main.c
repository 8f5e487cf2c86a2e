/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the program `braid`: finds the subcommand, prints help. Next: cli_*.c.
 */
#include "cli.h"

#include <braid/braid.h>
#include <stdio.h>
#include <string.h>

struct cli_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct cli_command cli_commands[] = {
    {"bench", cli_bench,
     "puts, gets, signals, atomics, DeepEP's kernels on an emulated fabric: rates, delays, every byte checked"},
    {"demo", cli_demo, "chunks and signals over two emulated ports: one port, blocking, braid"},
    {"emu", cli_emu, "a command inside an emulated fabric in real time; changes to one that runs"},
    {"options", cli_options, "the settings of libbraid: name, environment variable, default, meaning"},
    {"plan", cli_plan, "which ports each GPU of a host uses, and why; of this host or one from a file"},
    {"report", cli_report, "results of braid bench as one page: tables, bars, plots, command lines and seeds"},
    {"run", cli_run, "a command whose NVSHMEM uses braid"},
};

static void cli_help(FILE *to)
{
    fprintf(to, "usage: braid COMMAND [ARGUMENTS]\n\n"
                "braid lets one process use several RDMA ports at once.\n\ncommands:\n");
    for (size_t i = 0; i < sizeof(cli_commands) / sizeof(cli_commands[0]); i++)
        fprintf(to, "  %-10s %s\n", cli_commands[i].name, cli_commands[i].help);
    fprintf(to, "\n`braid COMMAND --help` tells more; `braid --version` prints the version.\n"
                "exit status: 0 good, 1 something was found wrong, 2 used wrongly\n\nexample: braid demo --seed 7\n");
}

static int cli_main(int argc, char **argv)
{
    if (argc < 2) {
        cli_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        cli_help(stdout);
        return CLI_GOOD;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("braid %s\n", braid_version());
        return CLI_GOOD;
    }
    for (size_t i = 0; i < sizeof(cli_commands) / sizeof(cli_commands[0]); i++) {
        if (strcmp(argv[1], cli_commands[i].name) == 0)
            return cli_commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr,
            "braid: seen \"%s\", expected a command: bench, demo, emu, options, plan, report, run (see braid --help)\n",
            argv[1]);
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    int status = cli_main(argc, argv);

    /* A full disk or a closed pipe must not look like success. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("braid: standard output");
        return status ? status : CLI_WRONG;
    }
    return status;
}
