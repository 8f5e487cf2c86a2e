/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_report.c - what a program may ask about a cluster of virtual time: its PEs' ports and planes, counters, ceilings.
 * Changes nothing. Called through emu_sim_api; next: emu_topo.c for what the SPEC made.
 */
#include "emu_sim_int.h"

#include "emu_lag.h"
#include "emu_topo.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/** A caller's buffer that is being filled. Once something did not fit, nothing more is written. */
struct emu_text {
    char *out;
    size_t len, used;
    bool full;
};

__attribute__((format(printf, 2, 3))) static void emu_report_add(struct emu_text *t, const char *format, ...)
{
    va_list ap;
    int n;

    if (t->full)
        return;
    va_start(ap, format);
    n = vsnprintf(t->out + t->used, t->len - t->used, format, ap);
    va_end(ap);
    t->full = n < 0 || (size_t)n >= t->len - t->used;
    t->used += t->full ? 0 : (size_t)n;
}

int emu_report_pe_count(const struct emu_sim *s)
{
    return s->n_pes;
}

int emu_report_pe_ports(const struct emu_sim *s, int pe, char *out, size_t len)
{
    struct emu_text t = {.out = out, .len = len};
    struct emu_port *port[EMU_SPEC_PORTS];
    int n;

    if (pe < 0 || pe >= s->n_pes)
        return -EINVAL;
    n = emu_topo_ports(&s->fabric, pe, port);
    emu_report_add(&t, "%s", "");
    for (int i = 0; i < n; i++)
        emu_report_add(&t, "%s%s:1", i ? "," : "", port[i]->dev->ibv.name);
    return t.full ? -ENOSPC : 0;
}

int emu_report_pe_planes(const struct emu_sim *s, int pe, char *out, size_t len)
{
    struct emu_text t = {.out = out, .len = len};
    struct emu_port *port[EMU_SPEC_PORTS];
    int n;

    if (pe < 0 || pe >= s->n_pes)
        return -EINVAL;
    n = s->fabric.spec.planes > 1 ? emu_topo_ports(&s->fabric, pe, port) : 0;
    emu_report_add(&t, "%s", "");
    for (int i = 0; i < n; i++)
        emu_report_add(&t, "%s%d", i ? "," : "", port[i]->plane);
    return t.full ? -ENOSPC : 0;
}

double emu_report_pe_ceiling(const struct emu_sim *s, int pe, int ports)
{
    return pe < 0 || pe >= s->n_pes ? 0 : emu_topo_ceiling(&s->fabric, pe, ports);
}

/** "2 x 200 Gb/s + 1 x 100 Gb/s" */
static void emu_report_rates(struct emu_text *t, struct emu_port *const *port, int n, int wires)
{
    for (int i = 0; i < n;) {
        int same = 1;

        while (i + same < n && port[i + same]->rate_bits == port[i]->rate_bits)
            same++;
        emu_report_add(t, "%s%d x %.4g Gb/s", i ? " + " : "", same, (double)port[i]->rate_bits * wires / 1e9);
        i += same;
    }
}

int emu_report_ceiling_text(const struct emu_sim *s, int pe, int ports, char *out, size_t len)
{
    const struct emu_spec *spec = &s->fabric.spec;
    struct emu_text t = {.out = out, .len = len};
    struct emu_port *port[EMU_SPEC_PORTS];
    int n;

    if (pe < 0 || pe >= s->n_pes)
        return -EINVAL;
    n = emu_topo_ports(&s->fabric, pe, port);
    n = ports < n ? ports : n;
    emu_report_add(&t, "%.2f GB/s: ", emu_topo_ceiling(&s->fabric, pe, n) / 1e9);
    emu_report_rates(&t, port, n, spec->wires);
    emu_report_add(&t, "%s, %d of %d bytes are payload", n > 0 ? "" : "no ports", spec->mtu,
                   spec->mtu + EMU_FRAME_OVERHEAD);
    if (spec->pcie_bits)
        emu_report_add(&t, "; at most %.4g Gb/s a PCIe slot", (double)spec->pcie_bits / 1e9);
    if (spec->gpu_bits)
        emu_report_add(&t, "; at most %.4g Gb/s the GPU", (double)spec->gpu_bits / 1e9);
    return t.full ? -ENOSPC : 0;
}

const char *emu_report_fabric(const struct emu_sim *s)
{
    return s->fabric.spec_text;
}

/** The i-th port that is there. */
static struct emu_dev *emu_report_nth(const struct emu_fabric *f, int i)
{
    for (int k = 0; k < f->n_devs; k++) {
        if (f->devs[k].exists && i-- == 0)
            return &f->devs[k];
    }
    return NULL;
}

static void emu_report_wire(const struct emu_sim *s, const struct emu_port *p, struct emu_sim_port *out)
{
    out->rate_bits += p->rate_bits;
    out->tx_payload += p->tx_payload;
    out->rx_payload += p->rx_payload;
    out->wire_tx += p->wire_tx;
    out->wire_rx += p->wire_rx;
    out->lost += p->lost;
    out->dropped += p->dropped;
    out->queue_peak = p->rx_peak > out->queue_peak ? p->rx_peak : out->queue_peak;
    out->pauses += p->pauses;
    out->paused_ns += p->paused_ns + (p->held.head ? s->now - p->paused_at : 0);
    out->wire_payload[p->wire][0] = p->tx_payload;
    out->wire_payload[p->wire][1] = p->rx_payload;
}

int emu_report_port(const struct emu_sim *s, int i, struct emu_sim_port *out)
{
    struct emu_dev *d = i < 0 ? NULL : emu_report_nth(&s->fabric, i);

    if (!d)
        return -ENOENT;
    *out = (struct emu_sim_port){.wires = s->fabric.spec.wires,
                                 .buffer_peak = s->fabric.plane[d->port.plane].peak,
                                 .payload_rate = emu_topo_payload_rate(&s->fabric, &d->port)};
    for (int w = 0; w < out->wires; w++)
        emu_report_wire(s, emu_lag_wire(d, w), out);
    snprintf(out->host, sizeof(out->host), "h%d", d->host);
    snprintf(out->port, sizeof(out->port), "%.48s:1", d->ibv.name);
    return 0;
}

uint64_t emu_report_end_time(const struct emu_sim *s)
{
    return s->end;
}

uint64_t emu_report_trace_hash(const struct emu_sim *s)
{
    return s->fabric.trace;
}
