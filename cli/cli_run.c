/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_run.c - `braid run`: a command with braid in the place of NVSHMEM's IBRC transport. NVSHMEM opens its plugin by a bare
 * file name; an object with that SONAME that is in the process already is taken before the library's own search path, while
 * LD_LIBRARY_PATH is not. So LD_PRELOAD of the one file that the host library wants. Next: cli_host.c.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cli_host.h"

static void cli_run_help(FILE *to)
{
    fprintf(
        to,
        "usage: braid run [--order MODE] [--ports LIST] [--rails N] [--host-lib PATH] [--show] [--] COMMAND [ARGUMENTS]\n\n"
        "Runs a command whose NVSHMEM uses braid as its IBRC transport: preloads the one plugin file that its host\n"
        "library opens. Where that library cannot be found, or two disagree, nothing is run.\n\n"
        "  --order MODE     release, strict or drain (BRAID_ORDER)\n"
        "  --ports LIST     ports to use, as DEVICE[:PORT],... (BRAID_PORTS)\n"
        "  --rails N        at most N of them; 1 behaves like NVIDIA's own (BRAID_RAILS)\n"
        "  --host-lib PATH  the libnvshmem_host.so that the command uses\n"
        "  --show           say what would be preloaded and for which library, run nothing\n\n"
        "All other options are environment variables, see `braid options`.\n\n"
        "example: mpirun -n 16 braid run --order release -- ./app\n");
}

/** The plugin file for a host library. 0 or -1 after a message. */
static int cli_run_plugin(const struct cli_host *host, char *out, size_t len)
{
    static const char *const places[] = {"../plugin/nvshmem", "../" CLI_LIBDIR "/braid/nvshmem",
                                         "../lib/braid/nvshmem"};
    char own[PATH_MAX], path[2 * PATH_MAX];
    const char *given = getenv("BRAID_PLUGINS");
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    char *slash;

    own[n > 0 ? n : 0] = '\0';
    slash = strrchr(own, '/');
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char real[PATH_MAX];

        snprintf(path, sizeof(path), "%s%s/nvshmem_transport_ibrc.so.%d", given ? given : own, given ? "" : places[i],
                 host->plugin);
        if (realpath(path, real) && snprintf(out, len, "%s", real) < (int)len)
            return 0;
    }
    fprintf(stderr,
            "braid run: seen no nvshmem_transport_ibrc.so.%d in %s, expected it there;\n"
            "  build or install braid with its NVSHMEM plugin, or set BRAID_PLUGINS to its folder\n",
            host->plugin, given ? given : "../plugin/nvshmem or ../" CLI_LIBDIR "/braid/nvshmem beside this program");
    return -1;
}

/** What the dynamic linker takes as a separator cannot be in a path that it preloads. */
static int cli_run_preload(const char *plugin)
{
    const char *old = getenv("LD_PRELOAD");
    char *both;
    int rc;

    if (strpbrk(plugin, ": ")) {
        fprintf(stderr, "braid run: seen \"%s\", expected a path without ':' and ' ': LD_PRELOAD cannot hold it\n",
                plugin);
        return -1;
    }
    if (asprintf(&both, "%s%s%s", plugin, old && *old ? ":" : "", old && *old ? old : "") < 0)
        return -1;
    rc = setenv("LD_PRELOAD", both, 1);
    free(both);
    return rc;
}

/** Becomes the command. Returns an exit status if it cannot. */
static int cli_run_become(const char *host_lib, int show, char **command)
{
    static struct cli_host host;
    char plugin[PATH_MAX], program[PATH_MAX];

    if (cli_host_which(command[0], program, sizeof(program))) {
        fprintf(stderr, "braid run: seen \"%s\", expected a program that can be run\n", command[0]);
        return 127;
    }
    if (cli_host_find(host_lib, command[0], &host) || cli_run_plugin(&host, plugin, sizeof(plugin)))
        return CLI_WRONG;
    if (show) {
        printf("%s (by %s)", host.path, host.from);
        if (host.release[0])
            printf(": NVSHMEM %d.%d.%d", host.release[0], host.release[1], host.release[2]);
        printf("\n  LD_PRELOAD=%s\n", plugin);
        return CLI_GOOD;
    }
    if (cli_run_preload(plugin))
        return CLI_WRONG;
    execvp(command[0], command);
    fprintf(stderr, "braid run: %s: %s\n", command[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

int cli_run(int argc, char **argv)
{
    static const struct option options[] = {{"order", 1, NULL, 'o'},
                                            {"ports", 1, NULL, 'p'},
                                            {"rails", 1, NULL, 'r'},
                                            {"host-lib", 1, NULL, 'l'},
                                            {"show", 0, NULL, 's'},
                                            {"help", 0, NULL, 'h'},
                                            {0}};
    const char *host_lib = getenv("BRAID_HOST_LIB");
    uint64_t rails;
    int letter, show = 0, rc = 0;

    optind = 1;
    while (rc == 0 && (letter = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (letter == 'h') {
            cli_run_help(stdout);
            return CLI_GOOD;
        }
        if (letter == '?')
            return CLI_USAGE;
        if (letter == 'o' && strcmp(optarg, "release") != 0 && strcmp(optarg, "strict") != 0 &&
            strcmp(optarg, "drain") != 0) {
            fprintf(stderr, "braid run: --order: seen \"%s\", expected release, strict or drain\n", optarg);
            return CLI_USAGE;
        }
        if (letter == 'r' && cli_number("run", "--rails", optarg, 1, 16, &rails))
            return CLI_USAGE;
        rc = letter == 'o'   ? setenv("BRAID_ORDER", optarg, 1)
             : letter == 'p' ? setenv("BRAID_PORTS", optarg, 1)
             : letter == 'r' ? setenv("BRAID_RAILS", optarg, 1)
                             : 0;
        host_lib = letter == 'l' ? optarg : host_lib;
        show |= letter == 's';
    }
    if (rc || optind == argc) {
        fprintf(stderr, "braid run: seen no command, expected one to run (see braid run --help)\n");
        return CLI_USAGE;
    }
    return cli_run_become(host_lib, show, argv + optind);
}
