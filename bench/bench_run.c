/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_run.c - runs one generator on a fresh emulated cluster and works out the figures. Called by cli/ and tests; next:
 * bench_put.c, bench_signal.c.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_MEM_MAX = 1 << 30 };

int bench_pe_step(struct bench_pe *p)
{
    int n = p->transport->progress(p->transport_self);

    if (n < 0)
        return n;
    return n ? 0 : p->run->emu->wait(UINT64_MAX);
}

int bench_pe_put(struct bench_pe *p, int pe, size_t offset, size_t len, struct braid_done *done)
{
    int rc;

    while ((rc = p->transport->put(p->transport_self, pe, p->remote[pe] + offset, p->mem + offset, len, done)) ==
           -EAGAIN) {
        rc = bench_pe_step(p);
        if (rc)
            return rc;
    }
    return rc;
}

int bench_pe_signal(struct bench_pe *p, int pe, struct braid_done *done)
{
    uint64_t word = p->remote[pe] + bench_tail_offset(p);
    int rc;

    while ((rc = p->transport->signal_add(p->transport_self, pe, word, 1, done)) == -EAGAIN) {
        rc = bench_pe_step(p);
        if (rc)
            return rc;
    }
    return rc;
}

static int bench_pe_open(struct bench_pe *p)
{
    p->data_len = p->run->slots * p->run->spec->size;
    p->data_len = (p->data_len + 63) / 64 * 64; /* the tail word behind it is aligned */
    p->mem_len = (p->data_len + 64 + 4095) / 4096 * 4096;
    /* Whole pages: cuts follow addresses, and a run must not depend on where malloc put things. */
    p->mem = aligned_alloc(4096, p->mem_len);
    p->remote = calloc((size_t)p->n_pes, sizeof(*p->remote));
    p->key = calloc((size_t)p->n_pes, sizeof(*p->key));
    if (!p->mem || !p->remote || !p->key)
        return -ENOMEM;
    memset(p->mem, 0, p->mem_len);
    p->transport = &bench_braid;
    return bench_braid_open(p, &p->transport_self);
}

static int bench_pe_main(void *arg, int pe)
{
    struct bench_run *run = arg;
    struct bench_pe p = {.run = run, .pe = pe, .n_pes = run->emu->pe_count(run->sim)};
    int rc = bench_pe_open(&p);

    if (rc == 0)
        rc = run->emu->barrier();
    if (rc == 0)
        rc = run->spec->pattern == BENCH_PUT ? bench_put_pe(&p) : bench_signal_pe(&p);
    if (rc && !run->why[0])
        snprintf(run->why, sizeof(run->why), "PE %d: %s", pe, strerror(-rc));
    bench_braid_close(p.transport_self);
    free(p.mem);
    free(p.remote);
    free(p.key);
    return rc;
}

static int bench_check(const struct bench_spec *s, char *why, size_t why_len)
{
    if (s->size < 1 || s->size > BENCH_MEM_MAX || s->count < 1 || s->window < 1) {
        snprintf(why, why_len,
                 "bench: size %zu, count %llu, window %u: expected a size of 1 to %d bytes, the others at least 1",
                 s->size, (unsigned long long)s->count, s->window, BENCH_MEM_MAX);
        return -EINVAL;
    }
    if (s->pattern == BENCH_PUT && s->count > BENCH_MEM_MAX / s->size) {
        snprintf(
            why, why_len,
            "bench: %llu puts of %zu bytes: expected at most %d bytes in all, since each put has a place of its own",
            (unsigned long long)s->count, s->size, BENCH_MEM_MAX);
        return -EINVAL;
    }
    return 0;
}

static void bench_figures(const struct bench_run *run, struct bench_result *out)
{
    const struct bench_spec *s = run->spec;
    struct emu_sim_port port;
    int first_gpu_ports = 0;

    for (int i = 0; out->n_ports < BENCH_PORTS && run->emu->port(run->sim, i, &port) == 0; i++) {
        struct bench_port *to = &out->port[out->n_ports++];

        memcpy(to->host, port.host, sizeof(to->host));
        memcpy(to->port, port.port, sizeof(to->port));
        to->tx = port.tx_payload;
        to->rx = port.rx_payload;
        to->wire_tx = port.wire_tx;
        to->wire_rx = port.wire_rx;
        if (strcmp(port.host, "h0") == 0 && first_gpu_ports < run->rails) {
            out->ceiling_gbs += port.payload_rate / 1e9;
            first_gpu_ports++;
        }
    }
    out->payload_bytes = s->count * s->size;
    out->wall_ns = run->end_ns - run->start_ns;
    out->gbs = out->wall_ns ? (double)out->payload_bytes / (double)out->wall_ns : 0;
    out->fraction = out->ceiling_gbs > 0 ? out->gbs / out->ceiling_gbs : 0;
    out->errors = run->errors;
    out->trace_hash = run->emu->trace_hash(run->sim);
    out->cost_hash = run->emu->cost_hash();
    snprintf(out->fabric, sizeof(out->fabric), "%s", run->emu->fabric(run->sim));
}

/** There must be a PE 1 to send to; how many rails the sender has. */
static int bench_rails(struct bench_run *run, char *why, size_t why_len)
{
    char ports[1024];
    int n = 1, rc = run->emu->pe_ports(run->sim, 0, ports, sizeof(ports));

    if (rc)
        return rc;
    for (const char *c = ports; *c; c++)
        n += *c == ',';
    if (run->emu->pe_count(run->sim) < 2) {
        snprintf(why, why_len, "bench: a fabric with one PE: expected at least two (nodes=2)");
        return -EINVAL;
    }
    if (run->spec->ports < 0 || run->spec->ports > n) {
        snprintf(why, why_len, "bench: %d ports: expected at most the %d of a GPU in this fabric", run->spec->ports, n);
        return -EINVAL;
    }
    run->rails = run->spec->ports ? run->spec->ports : n;
    return 0;
}

int bench_run(const struct emu_sim_api *emu, const struct bench_spec *spec, struct bench_result *out, char *why,
              size_t why_len)
{
    struct emu_sim_options o = {sizeof(o), spec->fabric, spec->seed, spec->vehicle, 0};
    struct bench_run run = {.emu = emu, .spec = spec};
    struct bench_result result = {0};
    int rc = bench_check(spec, why, why_len);

    if (rc)
        return rc;
    run.slots = spec->pattern == BENCH_PUT ? spec->count : spec->window;
    rc = emu->open(&o, &run.sim, why, why_len);
    if (rc)
        return rc;
    rc = bench_rails(&run, why, why_len);
    if (rc == 0) {
        rc = emu->run(run.sim, bench_pe_main, &run, why, why_len);
        if (rc && run.why[0])
            snprintf(why, why_len, "%s", run.why);
    }
    if (rc == 0) {
        bench_figures(&run, &result);
        *out = result;
    }
    emu->close(run.sim);
    return rc;
}
