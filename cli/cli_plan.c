/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_plan.c - `braid plan`: which ports each GPU of a host uses, and why. The host is this one, or one from files. Next:
 * cli/import, src/plan/plan_ports.c, then cli_plan_text.c, cli_plan_json.c
 */
#include "cli.h"
#include "cli_plan.h"
#include "import.h"
#include "topo.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cli_plan_args {
    enum import_format format;
    const char *sysroot, *save, *only, *map;
    uint64_t watch; /* seconds; 0: one look */
    bool json, env, explain;
    char **file;
    int files;
};

static void cli_plan_help(FILE *to)
{
    fprintf(
        to,
        "usage: braid plan [FILE...] [OPTION...]\n\n"
        "Says which RDMA ports each GPU of a host uses, and why. Without FILE the host is this one; a FILE (- is standard\n"
        "input) is a host saved by --save, hwloc XML, NCCL topology XML, or what nvidia-smi topo -m printed. Several FILEs\n"
        "are read as one text: the table and ibv_devinfo of the same host.\n\n"
        "  --format F          auto, host, hwloc, nccl or smi (auto)\n"
        "  --sysroot DIR       the folder that has sys in it, for a host without FILE (/)\n"
        "  --watch SECONDS     looks twice: a port whose link came or went meanwhile is left where another is as near\n"
        "  --ports-per-gpu N   at most so many, 1 to 16\n"
        "  --share HOW         exclusive: a port is one GPU's while there are enough (default); all: a GPU uses all near ones\n"
        "  --limit CLASS       no port farther than PIX, PXB, PHB, NODE or SYS\n"
        "  --link LAYER        ib or ethernet, instead of that of most of the fastest ports\n"
        "  --only LIST         DEVICE[:PORT],... alone, or with ^ in front all but those; exact names\n"
        "  --map MAP           GPU=DEVICE[:PORT],...;... for these GPUs, whatever is near; GPU is GPU0 or a PCI address\n"
        "  --peers N           counts the QPs to so many peers\n"
        "  --explain           also why each port is used or not\n"
        "  --json              JSON, schema braid.plan/1\n"
        "  --env               an environment file for all processes of the host\n"
        "  --save FILE         writes the host as JSON (- is standard output, and then nothing else is written)\n"
        "  --help              this\n\n"
        "exit status: 0 good; 1 a GPU has no near port (PIX, PXB, PHB), ports are shared needlessly, or the host is not\n"
        "whole; 2 used wrongly, or what was read is no host\n\n"
        "example: nvidia-smi topo -m | braid plan - --explain\n");
}

/* A line of a lower layer. */
static void cli_plan_log(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    fprintf(stderr, "braid plan: %s\n", line);
}

static const struct log cli_plan_to_stderr = {.level = LOG_LEVEL_WARN, .fn = cli_plan_log};

static int cli_plan_wrong(const char *option, const char *seen, const char *expected)
{
    fprintf(stderr, "braid plan: %s: seen \"%s\", expected %s\n", option, seen, expected);
    return -1;
}

static int cli_plan_option(int option, const char *value, struct cli_plan_args *a, struct cli_plan *plan)
{
    uint64_t number;
    switch (option) {
    case 'f':
        return import_format_parse(value, &a->format)
                   ? 0
                   : cli_plan_wrong("--format", value, "auto, host, hwloc, nccl or smi");
    case 'r':
        a->sysroot = value;
        return 0;
    case 't':
        return cli_number("plan", "--watch", value, 1, 86400, &a->watch);
    case 'n':
        if (cli_number("plan", "--ports-per-gpu", value, 1, PLAN_PORTS_EACH, &number))
            return -1;
        plan->rule.each = (unsigned)number;
        return 0;
    case 's':
        plan->rule.all = strcmp(value, "all") == 0;
        return plan->rule.all || strcmp(value, "exclusive") == 0 ? 0
                                                                 : cli_plan_wrong("--share", value, "exclusive or all");
    case 'l':
        plan->rule.limited = true;
        return topo_near_parse(value, &plan->rule.limit)
                   ? 0
                   : cli_plan_wrong("--limit", value, "PIX, PXB, PHB, NODE or SYS");
    case 'k':
        plan->rule.link = strcmp(value, "ib") == 0 ? TOPO_LINK_IB : TOPO_LINK_ETHERNET;
        return strcmp(value, "ib") == 0 || strcmp(value, "ethernet") == 0
                   ? 0
                   : cli_plan_wrong("--link", value, "ib or ethernet");
    case 'p':
        return cli_number("plan", "--peers", value, 1, 1000000, &plan->peers);
    case 'o':
        a->only = value;
        return 0;
    case 'm':
        a->map = value;
        return 0;
    case 'w':
        a->save = value;
        return 0;
    case 'x':
        return a->explain = true, 0;
    case 'j':
        return a->json = true, 0;
    case 'e':
        return a->env = true, 0;
    default:
        return -1; /* getopt has said it */
    }
}

/* 0; CLI_USAGE after a message; -1 after help. */
static int cli_plan_parse(int argc, char **argv, struct cli_plan_args *a, struct cli_plan *plan)
{
    static const struct option known[] = {
        {"format", required_argument, NULL, 'f'}, {"sysroot", required_argument, NULL, 'r'},
        {"watch", required_argument, NULL, 't'},  {"ports-per-gpu", required_argument, NULL, 'n'},
        {"share", required_argument, NULL, 's'},  {"limit", required_argument, NULL, 'l'},
        {"link", required_argument, NULL, 'k'},   {"only", required_argument, NULL, 'o'},
        {"map", required_argument, NULL, 'm'},    {"peers", required_argument, NULL, 'p'},
        {"explain", no_argument, NULL, 'x'},      {"json", no_argument, NULL, 'j'},
        {"env", no_argument, NULL, 'e'},          {"save", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    argv[0] = "braid plan"; /* as getopt calls it */
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'h') {
            cli_plan_help(stdout);
            return -1;
        }
        if (cli_plan_option(c, optarg, a, plan))
            return CLI_USAGE;
    }
    a->file = argv + optind;
    a->files = argc - optind;
    if (a->json && a->env) {
        fprintf(stderr, "braid plan: seen --json and --env, expected one of them\n");
        return CLI_USAGE;
    }
    return 0;
}

/* Appends a file. 0 or -1 after a message. */
static int cli_plan_slurp(const char *path, char **text, size_t *len)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    bool good = f != NULL;
    while (good && !feof(f) && *len <= IMPORT_MOST) {
        char *more = realloc(*text, *len + (1u << 16) + 1);
        if (!more) {
            good = false;
            break;
        }
        *text = more;
        *len += fread(*text + *len, 1, 1u << 16, f);
        good = !ferror(f);
    }
    if (!good)
        fprintf(stderr, "braid plan: %s: %s\n", path, strerror(errno));
    if (f && f != stdin)
        fclose(f);
    return good ? 0 : -1;
}

/* 0; or the exit status after a message. */
static int cli_plan_import(const struct cli_plan_args *a, struct cli_plan *plan)
{
    char *text = NULL;
    size_t len = 0;
    struct import_error error = {0};
    for (int i = 0; i < a->files; i++) {
        if (cli_plan_slurp(a->file[i], &text, &len)) {
            free(text);
            return CLI_USAGE;
        }
    }
    int rc = text ? import_text(a->format, text, len, &plan->host, &error) : -ENOMEM;
    free(text);
    if (!rc)
        return 0;
    const char *name = a->files > 1                   ? "the files together"
                       : strcmp(a->file[0], "-") == 0 ? "standard input"
                                                      : a->file[0];
    if (rc == -ENOMEM)
        fprintf(stderr, "braid plan: no memory to read %s\n", name);
    else if (error.line)
        fprintf(stderr, "braid plan: %s: line %u, column %u: %s\n", name, error.line, error.column, error.text);
    else
        fprintf(stderr, "braid plan: %s: %s\n", name, error.text);
    return rc == -ENOMEM ? CLI_WRONG : CLI_USAGE;
}

/* Reads this host again after a while: ports whose link came or went are unstable. */
static int cli_plan_watch(const struct cli_plan_args *a, struct cli_plan *plan)
{
    struct topo_host *before = plan->host, *now;
    struct timespec nap = {.tv_sec = (time_t)a->watch};
    while (nanosleep(&nap, &nap) && errno == EINTR)
        continue;
    if (topo_read(a->sysroot, &cli_plan_to_stderr, &now))
        return CLI_WRONG;
    for (unsigned i = 0; i < now->ports; i++) {
        struct topo_port *p = &now->port[i];
        for (unsigned k = 0; k < before->ports; k++) {
            const struct topo_port *q = &before->port[k];
            if (strcmp(p->dev, q->dev) == 0 && p->port == q->port)
                p->unstable = p->downs != q->downs || p->active != q->active;
        }
    }
    topo_free(before);
    plan->host = now;
    return 0;
}

static int cli_plan_host(const struct cli_plan_args *a, struct cli_plan *plan)
{
    if (a->files && a->watch) {
        fprintf(stderr, "braid plan: seen --watch with a FILE, expected it for this host alone\n");
        return CLI_USAGE;
    }
    if (a->files)
        return cli_plan_import(a, plan);
    if (a->format != IMPORT_AUTO) {
        fprintf(stderr, "braid plan: seen --format %s without a FILE, expected the file (- is standard input)\n",
                import_format_name(a->format));
        return CLI_USAGE;
    }
    if (topo_read(a->sysroot, &cli_plan_to_stderr, &plan->host))
        return CLI_WRONG;
    int status = a->watch ? cli_plan_watch(a, plan) : 0;
    if (!status)
        topo_read_more(a->sysroot, plan->host);
    return status;
}

/* Lists of names need the host. 0 or CLI_USAGE after a message. */
static int cli_plan_rule(const struct cli_plan_args *a, struct cli_plan *plan)
{
    if (a->only) {
        plan->rule.all_but = a->only[0] == '^';
        if (portlist_parse("only", a->only + plan->rule.all_but, &cli_plan_to_stderr, &plan->only))
            return CLI_USAGE;
        plan->rule.only = &plan->only;
    }
    if (a->map && plan_map_parse("map", a->map, plan->host, &cli_plan_to_stderr, plan->map, &plan->rule.maps))
        return CLI_USAGE;
    plan->rule.map = plan->map;
    return plan_ports(plan->host, &plan->rule, &plan->out) ? CLI_USAGE : 0;
}

static int cli_plan_save(const char *path, const struct topo_host *host)
{
    FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    int rc = f ? import_save(host, f) : -1;
    if (f && f != stdout)
        rc |= fclose(f);
    if (rc)
        fprintf(stderr, "braid plan: --save %s: %s\n", path, strerror(errno));
    return rc ? CLI_WRONG : 0;
}

static int cli_plan_run(const struct cli_plan_args *a, struct cli_plan *plan)
{
    int status = cli_plan_host(a, plan);
    if (!status)
        status = cli_plan_rule(a, plan);
    if (!status && a->save) {
        status = cli_plan_save(a->save, plan->host);
        if (status || strcmp(a->save, "-") == 0)
            return status;
    }
    if (status)
        return status;
    cli_plan_judge(plan);
    if (a->json)
        status = cli_plan_json(plan, stdout) ? CLI_WRONG : CLI_GOOD;
    else if (a->env)
        cli_plan_env(plan, stdout);
    else
        cli_plan_text(plan, a->explain, stdout);
    return status ? status : plan->wrong ? CLI_WRONG : CLI_GOOD;
}

int cli_plan(int argc, char **argv)
{
    struct cli_plan_args args = {.sysroot = "/"};
    struct cli_plan *plan = calloc(1, sizeof(*plan));
    if (!plan) {
        fprintf(stderr, "braid plan: no memory\n");
        return CLI_WRONG;
    }
    int status = cli_plan_parse(argc, argv, &args, plan);
    if (status == 0)
        status = cli_plan_run(&args, plan);
    topo_free(plan->host);
    free(plan);
    return status < 0 ? CLI_GOOD : status;
}
