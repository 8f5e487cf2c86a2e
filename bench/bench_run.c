/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_run.c - runs one generator on a fresh emulated cluster: opens each PE, lets it go, works out the figures. Called by
 * cli/ and tests; next: bench_traffic.c, bench_atomic.c.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a PE that waits for others sleeps at most: what it waits for need not wake it. */
enum { BENCH_NAP_NS = 100000 };

int bench_pe_wait_start(struct bench_pe *p)
{
    const struct emu_sim_api *emu = p->run->emu;
    int rc = 0;

    if (p->run->spec->live) {
        rc = emu->barrier();
        p->start_ns = emu->now();
        return rc;
    }
    if (!p->run->start_ns)
        p->run->start_ns = (emu->now() / BENCH_START_NS + 1) * BENCH_START_NS;
    while (rc == 0 && emu->now() < p->run->start_ns)
        rc = emu->wait(p->run->start_ns);
    p->start_ns = emu->now();
    return rc;
}

int bench_pe_wait(struct bench_pe *p)
{
    bool for_others = p->n_in > 0 && p->run->every;

    if (p->run->spec->live)
        return bench_live_wait(p, p->moved_ns);
    p->run->emu->charge(p->run->spec->nap_ns);
    if (p->run->spec->nap_ns)
        return 0;
    return p->run->emu->wait(for_others ? p->run->emu->now() + BENCH_NAP_NS : UINT64_MAX);
}

int bench_pe_meet(struct bench_pe *p)
{
    struct bench_run *run = p->run;
    int n = 0, rc = 0;

    if (run->spec->live)
        return bench_live_meet(p);
    if (run->spec->pattern == BENCH_PUT || run->spec->pattern == BENCH_GET)
        return run->emu->barrier(); /* no PE needs another's CPU */
    run->arrived++;
    p->meetings++;
    while (rc == 0 && run->arrived < p->meetings * (uint64_t)run->n_pes) {
        n = p->transport->progress(p->transport_self);
        rc = n < 0 ? n : n ? 0 : run->emu->wait(run->emu->now() + BENCH_NAP_NS);
    }
    return rc ? rc : run->emu->barrier(); /* all go on at the same time, whoever has napped */
}

void bench_run_moved(struct bench_run *run, uint64_t n)
{
    const struct bench_spec *s = run->spec;
    uint64_t all = s->count * (s->pattern == BENCH_ATOMIC ? 1 : (uint64_t)run->senders * (uint64_t)run->peers);

    run->done += n;
    if (!s->progress || (run->done - run->told) * 100 < all)
        return;
    run->told = run->done;
    s->progress(s->progress_arg, (double)run->done / (double)all);
}

int bench_samples_open(struct bench_samples *s, uint64_t room)
{
    s->ns = malloc((size_t)(room ? room : 1) * sizeof(*s->ns));
    s->room = s->ns ? (size_t)room : 0;
    return s->ns ? 0 : -ENOMEM;
}

void bench_samples_add(struct bench_samples *s, uint64_t ns)
{
    if (s->count < s->room)
        s->ns[s->count++] = ns;
}

static int bench_samples_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static unsigned bench_bucket(uint64_t ns)
{
    unsigned octave = ns < 8 ? 0 : 63u - (unsigned)__builtin_clzll(ns);
    uint64_t i = ns < 8 ? ns : (octave - 2) * 8 + (ns >> (octave - 3) & 7);

    return i < BENCH_BUCKETS ? (unsigned)i : BENCH_BUCKETS - 1;
}

uint64_t bench_bucket_end(unsigned i)
{
    return i < 8 ? i + 1 : (uint64_t)(9 + i % 8) << (i / 8 - 1);
}

struct bench_times bench_samples_times(struct bench_samples *s)
{
    struct bench_times t = {.count = s->count};

    if (s->count == 0)
        return t;
    qsort(s->ns, s->count, sizeof(*s->ns), bench_samples_order);
    t.p50 = s->ns[(s->count - 1) / 2];
    t.p99 = s->ns[(s->count - 1) * 99 / 100];
    for (size_t i = 0; i < s->count; i++)
        t.bucket[bench_bucket(s->ns[i])]++;
    return t;
}

/* ---- one PE ------------------------------------------------------------------------------------------------------ */

static size_t bench_pe_mem_len(const struct bench_pe *p)
{
    size_t most = p->run->moe ? bench_moe_mem_len(p->run->moe) : bench_mem_len(p->run, p->pe),
           align = p->transport->align;

    if (!align)
        return most;
    for (int pe = 0; !p->run->moe && pe < p->n_pes; pe++) {
        size_t len = bench_mem_len(p->run, pe);

        most = len > most ? len : most;
    }
    /* Room behind it for what the transport keeps there. */
    return bench_round_up(most, align) + align;
}

static int bench_pe_open(struct bench_pe *p)
{
    int rc;

    p->transport = p->run->transport;
    p->mem_len = bench_pe_mem_len(p);
    if (p->run->moe)
        bench_moe_place(p);
    p->remote = calloc((size_t)p->n_pes, sizeof(*p->remote));
    rc = p->remote ? bench_job_memory(p) : -ENOMEM;
    if (rc == 0)
        rc = p->transport->open(p, &p->transport_self);
    if (rc == 0 && p->run->spec->pattern != BENCH_ATOMIC && p->run->spec->pattern != BENCH_MOE) {
        rc = bench_out_open(p);
        if (rc == 0)
            rc = bench_in_open(p);
    }
    return rc;
}

static void bench_pe_close(struct bench_pe *p)
{
    if (p->transport)
        p->transport->close(p->transport_self);
    if (p->out)
        bench_out_close(p);
    bench_in_close(p);
    bench_job_memory_free(p);
    free(p->remote);
    p->transport_self = NULL;
    p->remote = NULL;
    p->out = NULL;
    p->in = NULL;
}

static int bench_pe_pattern(struct bench_pe *p)
{
    switch (p->run->spec->pattern) {
    case BENCH_ATOMIC:
        return bench_atomic_pe(p);
    case BENCH_MOE:
        return bench_moe_pe(p);
    default:
        return bench_traffic_pe(p);
    }
}

static int bench_pe_main(void *arg, int pe)
{
    struct bench_run *run = arg;
    struct bench_pe *p = run->pe[pe];
    int rc;

    p->run = run;
    p->pe = pe;
    bench_job_join(p);
    rc = bench_pe_open(p);
    if (rc == 0)
        rc = run->emu->barrier();
    if (rc == 0)
        rc = bench_pe_pattern(p);
    if (rc && rc != -ECANCELED && !run->why[0]) /* the emulator says why it gave up */
        snprintf(run->why, sizeof(run->why), "PE %d: %s", pe, strerror(-rc));
    bench_pe_close(p);
    return rc;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static void bench_figures_ports(const struct bench_run *run, struct bench_result *out)
{
    struct emu_sim_port port;

    for (int i = 0; out->n_ports < BENCH_PORTS && run->emu->port(run->sim, i, &port) == 0; i++) {
        struct bench_port *to = &out->port[out->n_ports++];

        memcpy(to->host, port.host, sizeof(to->host));
        memcpy(to->port, port.port, sizeof(to->port));
        to->tx = port.tx_payload;
        to->rx = port.rx_payload;
        to->wire_tx = port.wire_tx;
        to->wire_rx = port.wire_rx;
    }
}

/** The PE whose figures count: PE 0, or the slowest of all. Of atomics: the one that ended last. */
static struct bench_pe *bench_figures_sender(const struct bench_run *run)
{
    struct bench_pe *slowest = run->pe[0];

    for (int i = 1; i < run->senders; i++) {
        if (run->pe[i]->wall_ns > slowest->wall_ns)
            slowest = run->pe[i];
    }
    return slowest;
}

/** Of streams and of atomics. */
static void bench_figures_stream(const struct bench_run *run, struct bench_result *out)
{
    const struct bench_spec *s = run->spec;
    struct bench_pe *p = bench_figures_sender(run);
    uint64_t streams = (uint64_t)run->peers;

    for (int i = 0; i < run->peers && s->except; i++)
        streams -= bench_peer(run, p->pe, i) == s->except;
    out->sender = p->pe;
    out->ops = s->pattern == BENCH_ATOMIC ? s->count : s->count * streams;
    out->payload_bytes = out->ops * (s->size ? s->size : 8);
    out->wall_ns = p->wall_ns;
    out->gbs = out->wall_ns ? (double)out->payload_bytes / (double)out->wall_ns : 0;
    out->ceiling_gbs = bench_ceiling(run, p->pe, p->start_ns, p->end_ns, out->ceiling_how, sizeof(out->ceiling_how));
    out->fraction = out->ceiling_gbs > 0 ? out->gbs / out->ceiling_gbs : 0;
    out->latency = bench_samples_times(&p->latency);
    out->signal = bench_samples_times(&p->signal);
}

static void bench_figures(struct bench_run *run, struct bench_result *out)
{
    if (!run->spec->live)
        bench_figures_ports(run, out);
    if (run->moe)
        bench_moe_figures(run, out);
    else
        bench_figures_stream(run, out);
    if (run->spec->live)
        bench_live_figures(run, out);
    out->cpu_share = out->wall_ns ? (double)run->pe[out->sender]->busy_ns / (double)out->wall_ns : 0;
    out->errors = run->errors;
    out->compared_bytes = run->compared;
    for (int i = 0; i < run->n_pes; i++) {
        for (int w = 0; w < BENCH_WORK; w++)
            out->work[w] += run->pe[i]->work[w];
        out->work_ns += run->pe[i]->work_ns;
    }
    out->ports = run->rails;
    out->peers = run->peers;
    out->senders = run->senders;
    out->per_node = run->per_node;
    out->trace_hash = run->emu->trace_hash(run->sim);
    out->cost_hash = run->emu->cost_hash();
    snprintf(out->fabric, sizeof(out->fabric), "%s", run->emu->fabric(run->sim));
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static int bench_run_open(struct bench_run *run, char *why, size_t why_len)
{
    struct emu_sim_options o = {sizeof(o), run->spec->fabric, run->spec->seed, run->spec->vehicle, 0};
    int rc = bench_engine(run->spec->engine ? run->spec->engine : "braid", &run->engine, why, why_len);

    if (rc)
        return rc;
    run->transport = bench_engine_transport(&run->engine);
    if (run->engine.foreign)
        o.vehicle = EMU_SIM_THREADS; /* it polls under its own mutexes */
    rc = run->emu->open(&o, &run->sim, why, why_len);
    if (rc)
        return rc;
    if (run->engine.kind == BENCH_ENGINE_PLUGIN)
        run->emu->plain_addresses(run->sim);
    run->n_pes = run->emu->pe_count(run->sim);
    bench_fabric(run);
    rc = run->spec->pattern == BENCH_MOE ? bench_moe_shape(run, why, why_len) : bench_shape(run, why, why_len);
    if (rc == 0)
        rc = bench_ports_count(run, why, why_len);
    if (rc == 0 && run->moe)
        rc = bench_moe_route(run);
    if (rc)
        return rc;
    if (!run->spec->live)
        bench_pages_reserve(run->n_pes);
    run->pe = calloc((size_t)run->n_pes, sizeof(struct bench_pe *));
    run->tally.last = calloc((size_t)run->n_pes, sizeof(*run->tally.last));
    if (!run->pe || !run->tally.last)
        return -ENOMEM;
    for (int i = 0; i < run->n_pes; i++) {
        run->pe[i] = calloc(1, sizeof(**run->pe));
        if (!run->pe[i])
            return -ENOMEM;
    }
    return 0;
}

static void bench_run_close(struct bench_run *run)
{
    for (int i = 0; run->pe && i < run->n_pes; i++) {
        if (run->pe[i]) {
            free(run->pe[i]->latency.ns);
            free(run->pe[i]->signal.ns);
        }
        free(run->pe[i]);
    }
    free(run->pe);
    bench_moe_free(run->moe);
    free(run->tally.seen);
    free(run->tally.last);
    run->emu->close(run->sim);
}

int bench_run(const struct emu_sim_api *emu, const struct bench_spec *spec, struct bench_result *out, char *why,
              size_t why_len)
{
    struct bench_run run = {.emu = emu, .spec = spec};
    int rc;

    if (why_len)
        why[0] = '\0';
    rc = bench_run_open(&run, why, why_len);
    if (rc == 0) {
        rc = emu->run(run.sim, bench_pe_main, &run, why, why_len);
        if (rc && run.why[0])
            snprintf(why, why_len, "%s", run.why);
    }
    if (rc == 0 && spec->live)
        rc = bench_live_gather(&run);
    if (rc && why_len && !why[0])
        snprintf(why, why_len, "bench: %s", strerror(-rc));
    if (rc == 0) {
        memset(out, 0, sizeof(*out));
        bench_figures(&run, out);
    }
    bench_run_close(&run);
    return rc;
}
