/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_emu.c - `braid emu`: runs a command inside an emulated fabric in real time, and `braid emu ctl`: changes one that runs.
 * The command gets the emulator in the place of libibverbs, and a tree that shows its devices in /sys.
 * Next: cli_emu_tree.c, emu_sim.h.
 */
#include "cli_emu.h"

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum { CLI_EMU_LOOK_NS = 100000000 /* between two looks at the counters */ };

static volatile sig_atomic_t cli_emu_signal;

static void cli_emu_help(FILE *to)
{
    fprintf(
        to,
        "usage: braid emu [--fabric SPEC] [--host HOST] [--name NAME] [--namespace | --no-sysfs] [--gpus]\n"
        "                 [--] COMMAND [ARGUMENTS]\n"
        "       braid emu ctl [--name NAME] port HOST/DEVICE:1 down|up|stall|slow F|loss P|delay T\n"
        "       braid emu ports [--name NAME]\n\n"
        "Runs a command on a host of an emulated RDMA fabric in real time: it sees that host's devices as mlx5_0,\n"
        "mlx5_1, ... through libibverbs and in /sys. Commands with the same SPEC (or name) meet in one fabric.\n\n"
        "  --fabric SPEC  the cluster, or a file that describes it (default nodes=2,gpus=1,ports=2,...)\n"
        "  --host HOST    h0 (default), h1, ...; or rank: that of the process which a launcher has started (mpirun, srun),\n"
        "                 each host gets as many as it has GPUs\n"
        "  --name NAME    of the fabric, to tell equal ones apart (default: goes with the SPEC)\n"
        "  --namespace    show the devices in /sys by mounts that the command alone sees (needs root), not by preloading\n"
        "  --no-sysfs     leave /sys as it is\n"
        "  --gpus         show PCI functions of the fabric's GPUs in /sys too, and hide real ones (for braid plan)\n\n"
        "ctl changes a port for all processes: it goes down or up, takes nothing, keeps a fraction of its rate,\n"
        "loses packets, or is slower by a time. ports shows what each port is and has carried.\n"
        "NAME may be left out where this user has one fabric only.\n\n"
        "Label of all figures: emulated (real time). Not measured on hardware.\n\n"
        "example: braid emu --fabric nodes=2,ports=2,rate=4G --host h1 -- ibv_devinfo\n");
}

static int cli_emu_say(const char *why)
{
    /* The emulator says who speaks; here that is known. */
    fprintf(stderr, "braid emu: %s\n", strncmp(why, "emu: ", 5) ? why : why + 5);
    return CLI_WRONG;
}

/* ---- a fabric that runs ---------------------------------------------------------------------------------------------------- */

/** "port h0/mlx5_0:1 slow 0.5" out of the words. */
static int cli_emu_ctl(const struct emu_sim_api *emu, const char *name, int n, char **word)
{
    char command[256] = "", why[BENCH_WHY];
    size_t used = 0;
    int rc;

    for (int i = 0; i < n && used < sizeof(command); i++)
        used += (size_t)snprintf(command + used, sizeof(command) - used, "%s%s", i ? " " : "", word[i]);
    if (n == 0 || used >= sizeof(command)) {
        fprintf(stderr, "braid emu ctl: seen %s, expected port HOST/DEVICE:1 and a change (see braid emu --help)\n",
                n ? "a long command" : "no command");
        return CLI_USAGE;
    }
    rc = emu->real_ctl(name, command, why, sizeof(why));
    if (rc)
        cli_emu_say(why);
    return rc == 0 ? CLI_GOOD : rc == -EINVAL ? CLI_USAGE : CLI_WRONG;
}

static int cli_emu_ports(const struct emu_sim_api *emu, const char *name)
{
    static struct emu_real_port port[CLI_EMU_PORTS];
    char why[BENCH_WHY];
    int n = emu->real_ports(name, port, CLI_EMU_PORTS, why, sizeof(why));

    if (n < 0)
        return cli_emu_say(why);
    printf("%-18s %-5s %8s %14s %14s %10s\n", "port", "state", "Gb/s", "bytes sent", "received", "lost");
    for (int i = 0; i < n && i < CLI_EMU_PORTS; i++) {
        const struct emu_real_port *p = &port[i];

        printf("%s/%-*s %-5s %8.4g %14llu %14llu %10llu\n", p->host, 17 - (int)strlen(p->host), p->port,
               p->up ? "up" : "down", (double)p->rate_bits * p->slow / 1e9, (unsigned long long)p->tx_payload,
               (unsigned long long)p->rx_payload, (unsigned long long)(p->lost + p->dropped));
    }
    return CLI_GOOD;
}

/* ---- a command inside ------------------------------------------------------------------------------------------------------ */

struct cli_emu {
    const char *fabric, *host, *name;
    bool no_sysfs, space, gpus;
    char folder[PATH_MAX]; /* where the emulator lies */
    char ranked[16];       /* --host rank */
    char own[24];          /* its name where none is given */
    char tree[64];         /* shown in /sys; empty: none */
};

/** Puts a value before what the variable holds. */
static int cli_emu_prepend(const char *variable, const char *value)
{
    const char *old = getenv(variable);
    char *both;
    int rc;

    if (asprintf(&both, "%s%s%s", value, old && *old ? ":" : "", old && *old ? old : "") < 0)
        return -1;
    rc = setenv(variable, both, 1);
    free(both);
    return rc;
}

/** In the child: becomes the command. */
static void cli_emu_become(const struct cli_emu *e, char **command)
{
    char preload[2 * PATH_MAX + 64];
    bool bad, by_preload = e->tree[0] && !e->space;
    int rc = e->space ? cli_emu_space_enter(e->tree) : 0;

    if (rc) {
        fprintf(stderr,
                "braid emu: --namespace: %s; expected the right to mount (root, CAP_SYS_ADMIN); without --namespace "
                "none is needed\n",
                strerror(-rc));
        _exit(126);
    }

    /* Preloaded, the emulator is libibverbs.so.1 whatever a program's own search path says; by the folder it is
     * libibverbs.so too. */
    snprintf(preload, sizeof(preload), "%s/libibverbs.so.1%s%s%s", e->folder, by_preload ? ":" : "",
             by_preload ? e->folder : "", by_preload ? "/emu_sysfs.so" : "");
    bad = setenv("BRAID_EMU", e->fabric, 1) || setenv("BRAID_EMU_HOST", e->host, 1) ||
          setenv("BRAID_EMU_NAME", e->name, 1) || (by_preload && setenv("BRAID_EMU_SYSFS", e->tree, 1)) ||
          (e->gpus && setenv("BRAID_EMU_GPUS", "1", 1)) || cli_emu_prepend("LD_PRELOAD", preload) ||
          cli_emu_prepend("LD_LIBRARY_PATH", e->folder);
    if (!bad)
        execvp(command[0], command);
    fprintf(stderr, "braid emu: %s: %s\n", command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static void cli_emu_caught(int sig)
{
    cli_emu_signal = sig;
}

/** Waits for the command; meanwhile keeps counters and states in the tree up to date. shown: what is in it. Its exit status. */
static int cli_emu_wait(const struct emu_sim_api *emu, const struct cli_emu *e, pid_t child,
                        struct emu_real_port *shown)
{
    static struct emu_real_port port[CLI_EMU_PORTS];
    char why[BENCH_WHY];
    int status;

    while (waitpid(child, &status, WNOHANG) == 0) {
        struct timespec nap = {0, CLI_EMU_LOOK_NS};

        if (cli_emu_signal) {
            kill(child, cli_emu_signal);
            cli_emu_signal = 0;
        }
        nanosleep(&nap, NULL); /* the child's end cuts it short */
        if (e->tree[0]) {
            int n = emu->real_ports(e->name, port, CLI_EMU_PORTS, why, sizeof(why));

            cli_emu_tree_update(e->tree, e->host, shown, port, n < CLI_EMU_PORTS ? n : CLI_EMU_PORTS);
        }
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int cli_emu_run(const struct emu_sim_api *emu, struct cli_emu *e, char **command)
{
    static struct emu_real_port port[CLI_EMU_PORTS];
    struct sigaction catch = {.sa_handler = cli_emu_caught}, ignore = {.sa_handler = SIG_IGN};
    char why[BENCH_WHY];
    int n = emu->spec_ports(e->fabric, port, CLI_EMU_PORTS, why, sizeof(why)), status;
    pid_t child;

    if (n < 0 || n > CLI_EMU_PORTS) {
        cli_emu_say(n < 0 ? why : "more ports than can be shown in /sys; use --no-sysfs");
        return CLI_USAGE;
    }
    if (!e->name && emu->spec_name(e->fabric, e->own, why, sizeof(why)) == 0)
        e->name = e->own;
    if (!e->no_sysfs && cli_emu_tree_make(e->tree, sizeof(e->tree), e->host, port, n, e->gpus))
        return cli_emu_say("cannot lay out the tree for /sys; is there room in TMPDIR?");
    sigaction(SIGTERM, &catch, NULL);
    sigaction(SIGHUP, &catch, NULL);
    sigaction(SIGCHLD, &catch, NULL);
    child = fork();
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        signal(SIGCHLD, SIG_DFL);
        cli_emu_become(e, command);
    }
    sigaction(SIGINT, &ignore, NULL); /* a terminal's: for the command */
    sigaction(SIGQUIT, &ignore, NULL);
    status = child < 0 ? cli_emu_say("cannot start a process") : cli_emu_wait(emu, e, child, port);
    cli_emu_tree_remove(e->tree);
    emu->real_sweep();
    return status;
}

/** --host rank: the launcher's number of this process by the GPUs of a host. 0 or -1 after a message. */
static int cli_emu_rank(const struct emu_sim_api *emu, struct cli_emu *e)
{
    static const char *const variables[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    static struct emu_real_port port[CLI_EMU_PORTS];
    const char *text = NULL;
    char why[BENCH_WHY];
    int n = emu->spec_ports(e->fabric, port, CLI_EMU_PORTS, why, sizeof(why)), gpus = 1, hosts = 1;
    uint64_t rank;

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && !text; i++)
        text = getenv(variables[i]);
    if (!text) {
        fprintf(stderr,
                "braid emu: --host rank: seen no PMIX_RANK, OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID, expected a "
                "launcher: mpirun -n 2 braid emu ...\n");
        return -1;
    }
    for (int i = 0; i < n && i < CLI_EMU_PORTS; i++) {
        int host = (int)strtol(port[i].host + 1, NULL, 10) + 1;

        gpus = port[i].gpu + 1 > gpus ? port[i].gpu + 1 : gpus;
        hosts = host > hosts ? host : hosts;
    }
    if (cli_number("emu", "--host rank", text, 0, (uint64_t)(gpus * hosts) - 1, &rank))
        return -1;
    snprintf(e->ranked, sizeof(e->ranked), "h%d", (int)rank / gpus);
    e->host = e->ranked;
    return 0;
}

/** The folder of the emulator that bench_emu_load() has found. */
static int cli_emu_folder(const struct emu_sim_api *emu, struct cli_emu *e)
{
    char path[PATH_MAX];

    if (bench_emu_where(emu, path, sizeof(path)))
        return -1;
    snprintf(e->folder, sizeof(e->folder), "%s", dirname(path));
    /* NCCL asks for this name first, and died in the machine's own library, on the emulated devices that /sys shows. */
    if (snprintf(path, sizeof(path), "%s/libibverbs.so", e->folder) < (int)sizeof(path) && access(path, F_OK))
        fprintf(
            stderr,
            "braid emu: seen no %s, expected a link to libibverbs.so.1 beside it: a program that loads libibverbs by "
            "this name gets the machine's own\n",
            path);
    return 0;
}

int cli_emu(int argc, char **argv)
{
    static const struct option options[] = {
        {"fabric", 1, NULL, 'f'},    {"host", 1, NULL, 'H'}, {"name", 1, NULL, 'n'}, {"no-sysfs", 0, NULL, 's'},
        {"namespace", 0, NULL, 'N'}, {"gpus", 0, NULL, 'g'}, {"help", 0, NULL, 'h'}, {0}};
    struct cli_emu e = {.fabric = getenv("BRAID_EMU"), .host = "h0", .name = getenv("BRAID_EMU_NAME")};
    const char *word = argc > 1 ? argv[1] : "";
    bool ctl = strcmp(word, "ctl") == 0, ports = strcmp(word, "ports") == 0;
    const struct emu_sim_api *emu;
    char why[BENCH_WHY];
    int letter;

    optind = ctl || ports ? 2 : 1;
    while ((letter = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (letter == 'h') {
            cli_emu_help(stdout);
            return CLI_GOOD;
        }
        if (letter == '?')
            return CLI_USAGE;
        e.fabric = letter == 'f' ? optarg : e.fabric;
        e.host = letter == 'H' ? optarg : e.host;
        e.name = letter == 'n' ? optarg : e.name;
        e.no_sysfs |= letter == 's';
        e.space |= letter == 'N';
        e.gpus |= letter == 'g';
    }
    if (e.space + e.no_sysfs + e.gpus > 1) {
        fprintf(stderr, "braid emu: seen two of --namespace, --no-sysfs and --gpus, expected one at most\n");
        return CLI_USAGE;
    }
    if (!ctl && !ports && optind == argc) {
        fprintf(stderr, "braid emu: seen no command, expected one to run, or ctl or ports (see braid emu --help)\n");
        return CLI_USAGE;
    }
    if (bench_emu_load(NULL, &emu, why, sizeof(why)) || cli_emu_folder(emu, &e))
        return cli_emu_say(why);
    if (ctl)
        return cli_emu_ctl(emu, e.name, argc - optind, argv + optind);
    if (ports)
        return cli_emu_ports(emu, e.name);
    e.fabric = e.fabric ? e.fabric : "";
    if (strcmp(e.host, "rank") == 0 && cli_emu_rank(emu, &e))
        return CLI_USAGE;
    return cli_emu_run(emu, &e, argv + optind);
}
