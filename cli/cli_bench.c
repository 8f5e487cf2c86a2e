/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bench.c - `braid bench`: runs the traffic generators on an emulated fabric as the command line says, one run or many.
 * Next: cli_bench_args.c, bench/bench_run.c, then cli_bench_text.c, cli_bench_json.c, cli_bench_plot.c.
 */
#include "cli_bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <braid/braid.h>

/** For progress on a terminal. */
struct cli_bench_shown {
    int run, n_runs;
};

static void cli_bench_progress(void *arg, double part)
{
    const struct cli_bench_shown *s = arg;

    fprintf(stderr, "\r  run %d of %d, %3.0f %%\033[K", s->run + 1, s->n_runs, 100 * part);
}

const char *cli_bench_pattern(const struct cli_bench *c)
{
    static const char *const names[] = {[BENCH_PUT] = "put",
                                        [BENCH_SIGNAL] = "signal",
                                        [BENCH_GET] = "get",
                                        [BENCH_ATOMIC] = "atomic",
                                        [BENCH_MOE] = "moe"};

    return names[c->spec.pattern];
}

const char *cli_bench_tail(const struct cli_bench *c, const struct cli_bench_run *r)
{
    struct braid_option_row row;

    for (int i = 0; c->spec.setting[i]; i++) {
        if (strncmp(c->spec.setting[i], "tail=", 5) == 0)
            return c->spec.setting[i] + 5;
    }
    if (c->spec.tail)
        return c->spec.tail;
    if (r->parsed.kind == BENCH_ENGINE_PLUGIN)
        return r->parsed.foreign ? "off" : "on"; /* braid's plugin has a default of its own */
    for (size_t i = 0; braid_option_at(i, &row) == 0; i++) {
        if (strcmp(row.name, "tail") == 0)
            return row.default_value;
    }
    return "off";
}

const char *cli_bench_engine_text(const struct cli_bench_run *r)
{
    const char *name = r->engine, *slash = strrchr(name, '/');

    if (!slash)
        return name;
    while (slash > name && slash[-1] != '/' && slash[-1] != ':')
        slash--;
    return slash;
}

const char *cli_bench_engine_label(const struct cli_bench_run *r)
{
    if (r->parsed.kind == BENCH_ENGINE_BRAID)
        return "libbraid";
    if (r->parsed.kind == BENCH_ENGINE_NIC_RR)
        return "model of published behaviour";
    return r->parsed.foreign ? "another's NVSHMEM plugin under the minihost"
                             : "braid's NVSHMEM plugin under the minihost";
}

int cli_bench_has_engines(const struct cli_bench *c)
{
    for (int i = 0; i < c->n_runs; i++) {
        if (c->run[i].parsed.kind != BENCH_ENGINE_BRAID)
            return 1;
    }
    return 0;
}

/** Runs them all. CLI_GOOD, or what the first failure is; wrong bytes are the caller's to judge. */
static int cli_bench_runs(const struct emu_sim_api *emu, struct cli_bench *c)
{
    struct cli_bench_shown shown = {.n_runs = c->n_runs};
    int tty = isatty(STDERR_FILENO) && !c->spec.live, status = CLI_GOOD;
    char why[BENCH_WHY];

    for (int i = 0; status == CLI_GOOD && i < c->n_runs; i++) {
        struct cli_bench_run *r = &c->run[i];
        struct bench_spec s = c->spec;

        s.engine = r->engine;
        s.order = r->order;
        s.ports = r->ports;
        s.size = (size_t)r->size;
        s.count = c->count;
        s.moe.phase = r->phase;
        s.moe.chunk = r->chunk;
        if (!s.count && s.pattern != BENCH_MOE)
            s.count = bench_default_count(&s);
        r->count = s.count;
        shown.run = i;
        s.progress = tty ? cli_bench_progress : NULL;
        s.progress_arg = &shown;
        if (tty)
            cli_bench_progress(&shown, 0);
        if (bench_run(emu, &s, &r->result, why, sizeof(why)) == 0) {
            if (s.pattern == BENCH_MOE)
                cli_moe_name(r);
            continue;
        }
        /* What the text of the command caused is wrong use; what the run came to is not. */
        status = strncmp(why, "fabric:", 7) == 0 || strncmp(why, "bench:", 6) == 0 ? CLI_USAGE : CLI_WRONG;
        if (status == CLI_WRONG || cli_bench_live_speaks(c))
            fprintf(stderr, "%sbraid %s%s\n", tty ? "\r\033[K" : "",
                    strncmp(why, "bench:", 6) == 0 ? "" : "bench: ", why);
        if (status == CLI_WRONG)
            cli_bench_live_failed(c, why);
    }
    if (tty && status == CLI_GOOD)
        fprintf(stderr, "\r\033[K");
    return status;
}

static int cli_bench_show(const struct cli_bench *c)
{
    int wrong = 0;

    if (c->json)
        wrong = cli_bench_json(c) != 0;
    else
        cli_bench_text(c, !c->spec.live && isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
    if (c->sweep && cli_bench_plot(c))
        wrong = 1;
    for (int i = 0; i < c->n_runs; i++)
        wrong |= c->run[i].result.errors != 0;
    return wrong ? CLI_WRONG : CLI_GOOD;
}

int cli_bench(int argc, char **argv)
{
    struct cli_bench *c = calloc(1, sizeof(*c));
    const struct emu_sim_api *emu;
    char why[BENCH_WHY];
    int status;

    if (!c)
        return CLI_WRONG;
    status = cli_bench_arguments(argc, argv, c);
    if (status < 0 && cli_bench_is_live(c))
        c->spec.fabric = NULL; /* it is what it is */
    if (status < 0 && c->spec.fault && bench_fault_defaults(&c->spec, c->unkind, sizeof(c->unkind), why, sizeof(why))) {
        fprintf(stderr, "braid %s%s\n", strncmp(why, "bench:", 6) == 0 ? "" : "bench: ", why);
        status = CLI_USAGE;
    }
    if (status < 0 && cli_bench_is_live(c)) {
        status = cli_bench_live_open(c, &emu);
    } else if (status < 0 && bench_emu_load(NULL, &emu, why, sizeof(why))) {
        fprintf(stderr, "braid bench: %s\n", why);
        status = CLI_WRONG;
    }
    if (status < 0) {
        status = cli_bench_runs(emu, c);
        if (status == CLI_GOOD && cli_bench_live_speaks(c))
            status = cli_bench_show(c);
    }
    cli_bench_live_close(c);
    free(c->run);
    free(c);
    return status;
}
