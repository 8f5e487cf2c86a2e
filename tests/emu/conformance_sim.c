/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_sim.c - the list in virtual time: one PE of an emulated fabric runs it on its two ports.
 *
 * Links the emulator where others link libibverbs; asks it for its table by path (environment BRAID_EMU_LIB). next:
 * conformance.c.
 */
#include "conformance.h"
#include "emu_sim.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: conformance_sim [OPTION...]\n"
    "The conformance list on two emulated ports in virtual time. Prints TAP.\n"
    "\n"
    "  --fabric SPEC   default: nodes=1,gpus=1,ports=2\n"
    "  --threads       the PE is a thread, not a coroutine\n"
    "  --only LIST     only checks whose names begin so, e.g. read_,psn_\n"
    "  --seed N        decides keys, data, PSNs and traffic; default 1\n"
    "  --known NAME    whose known deviations are no failures; default: emu\n"
    "  --list          names of the checks\n"
    "  --help\n"
    "\n"
    "example: BRAID_EMU_LIB=build/emu/libibverbs.so.1 conformance_sim --fabric ports=2,mtu=1024\n"
    "exit: 0 all passed or are known deviations, 1 some failed, 2 used wrongly\n";

/* The run, as its one PE sees it. */
struct virtual
{
    const struct emu_sim_api *api;
    struct conformance_env env;
    char ports[128];
    int result;
    uint64_t given_up; /* the clock after the emulator gave the run up; 0: it did not */
};

/* Once the run has been given up its clock stands still; then time flies here, so that every deadline passes. */
static uint64_t virtual_now(void *arg)
{
    struct virtual *v = arg;
    return v->given_up ? (v->given_up += SEC) : v->api->now();
}

static void virtual_wait(void *arg, uint64_t deadline_ns)
{
    struct virtual *v = arg;
    if (!v->given_up && v->api->wait(deadline_ns) < 0)
        v->given_up = v->api->now() + 1;
}

static uint64_t virtual_remote(void *arg, const void *ptr)
{
    struct virtual *v = arg;
    return (uint64_t)(uintptr_t)ptr + v->api->shift(v->api->pe());
}

static int virtual_cable(void *arg, int side, bool up)
{
    struct virtual *v = arg;
    char command[160], why[256] = "";
    snprintf(command, sizeof command, "port h0/%s:%d %s", v->env.device[side], v->env.port[side], up ? "up" : "down");
    int err = v->api->ctl(command, why, sizeof why);
    if (err)
        fprintf(stderr, "conformance_sim: %s: %s\n", command, why);
    return err;
}

/* "mlx5_0:1,mlx5_1:1" into the first two. */
static bool split_ports(struct virtual *v)
{
    char *rest = v->ports;
    for (int side = 0; side < 2; side++) {
        char *name = strsep(&rest, ","), *colon = name ? strchr(name, ':') : NULL;
        if (!colon)
            return false;
        *colon = 0;
        v->env.device[side] = name;
        v->env.port[side] = (int)strtol(colon + 1, NULL, 10);
    }
    return true;
}

static int run_list(void *arg, int pe)
{
    struct virtual *v = arg;
    (void)pe;
    v->result = conformance_run(&v->env);
    return 0;
}

static int run_fabric(struct virtual *v, const struct emu_sim_options *options)
{
    struct emu_sim *sim = NULL;
    char why[512] = "";
    if (v->api->open(options, &sim, why, sizeof why)) {
        fprintf(stderr, "conformance_sim: fabric '%s': %s\n", options->fabric, why);
        return 2;
    }
    if (v->api->pe_count(sim) != 1 || v->api->pe_ports(sim, 0, v->ports, sizeof v->ports) || !split_ports(v)) {
        fprintf(stderr, "conformance_sim: fabric '%s': seen %d PEs with ports '%s' each, expected one with two ports\n",
                options->fabric, v->api->pe_count(sim), v->ports);
        v->api->close(sim);
        return 2;
    }
    int err = v->api->run(sim, run_list, v, why, sizeof why);
    if (err)
        printf("Bail out! %s: %s\n", strerror(-err), why);
    else
        printf("# fabric %s; virtual time %.3f s; trace %016llx\n", v->api->fabric(sim),
               (double)v->api->end_time(sim) / 1e9, (unsigned long long)v->api->trace_hash(sim));
    v->api->close(sim);
    return err ? 1 : v->result;
}

static const struct emu_sim_api *find_api(void)
{
    const char *path = getenv("BRAID_EMU_LIB");
    void *lib = dlopen(path ? path : "libibverbs.so.1", RTLD_NOW);
    const struct emu_sim_api *(*api)(uint32_t) = NULL;
    if (lib)
        *(void **)&api = dlsym(lib, "emu_sim_api");
    if (!api || !api(EMU_SIM_VERSION)) {
        const char *error = dlerror();
        fprintf(stderr, "conformance_sim: BRAID_EMU_LIB=%s: %s\n", path ? path : "(not set)",
                error ? error : "not an emulator of this version");
        return NULL;
    }
    return api(EMU_SIM_VERSION);
}

static bool option(struct virtual *v, struct emu_sim_options *options, int key)
{
    char *end;
    switch (key) {
    case 'f':
        options->fabric = optarg;
        return true;
    case 't':
        options->vehicle = EMU_SIM_THREADS;
        return true;
    case 'k':
        v->env.fabric = optarg;
        return true;
    case 'o':
        v->env.only = optarg;
        return true;
    case 's':
        options->seed = v->env.seed = strtoull(optarg, &end, 0);
        return end != optarg && !*end;
    case 'l':
        conformance_list();
        exit(0);
    case 'h':
        fputs(help, stdout);
        exit(0);
    }
    return false;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"fabric", 1, NULL, 'f'}, {"threads", 0, NULL, 't'}, {"known", 1, NULL, 'k'}, {"only", 1, NULL, 'o'},
        {"seed", 1, NULL, 's'},   {"list", 0, NULL, 'l'},    {"help", 0, NULL, 'h'},  {0},
    };
    struct virtual v = {.env = {.fabric = "emu",
                                .seed = 1,
                                .arg = &v,
                                .now = virtual_now,
                                .wait = virtual_wait,
                                .remote = virtual_remote,
                                .cable = virtual_cable}};
    struct emu_sim_options options = {.size = sizeof options, .fabric = "nodes=1,gpus=1,ports=2", .seed = 1};
    options.limit_ns = 3600 * SEC;
    for (int key; (key = getopt_long(argc, argv, "", names, NULL)) != -1;)
        if (!option(&v, &options, key)) {
            fprintf(stderr, "conformance_sim: unknown option or bad value%s%s; see --help\n", optarg ? ": " : "",
                    optarg ? optarg : "");
            return 2;
        }
    v.api = find_api();
    return v.api ? run_fabric(&v, &options) : 2;
}
