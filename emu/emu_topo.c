/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_topo.c - which ports are there, which are a GPU's own, which reach each other, and what they can carry at most.
 * Questions about a fabric as its SPEC made it; timed changes do not count. Called by emu_fabric.c and emu_report.c;
 * next: nothing.
 */
#include "emu_topo.h"

int emu_topo_plane(const struct emu_spec *s, int dev)
{
    return dev % s->ports % s->planes;
}

bool emu_topo_pairs(const struct emu_spec *s, int host)
{
    return s->topo == EMU_TOPO_PXB || (s->topo == EMU_TOPO_MIXED && host < s->nodes / 2);
}

/** Appends the ports of one card, i.e. those that the SPEC's `ports` gave to one GPU, as far as they are there. */
static int emu_topo_card(const struct emu_fabric *f, int host, int card, int n, struct emu_port **out)
{
    for (int i = 0; i < f->spec.ports; i++) {
        struct emu_dev *d = &f->devs[host * f->per_host + card * f->spec.ports + i];

        if (d->exists)
            out[n++] = &d->port;
    }
    return n;
}

/**
 * Whether the i-th of the ports that a pair of GPUs is equally near to belongs to its second GPU's share, else its first's.
 * Shares are disjoint and in order; of an odd number the larger goes where more of the card's own ports are.
 */
static bool emu_topo_second(int near, int own, int i)
{
    return i >= near / 2 + (near % 2 && own > near / 2);
}

int emu_topo_ports(const struct emu_fabric *f, int pe, struct emu_port *out[EMU_SPEC_PORTS])
{
    int host = pe / f->spec.gpus, gpu = pe % f->spec.gpus, own, near, n = 0;
    struct emu_port *both[2 * EMU_SPEC_PORTS];

    if (!emu_topo_pairs(&f->spec, host))
        return emu_topo_card(f, host, gpu, 0, out);
    own = emu_topo_card(f, host, gpu - gpu % 2, 0, both);
    near = emu_topo_card(f, host, gpu - gpu % 2 + 1, own, both);
    for (int i = 0; i < near; i++) {
        if (near == 1 || emu_topo_second(near, own, i) == (gpu % 2 == 1)) /* a single port is shared */
            out[n++] = both[i];
    }
    return n;
}

double emu_topo_payload_rate(const struct emu_fabric *f, const struct emu_port *p)
{
    return (double)p->rate_bits * f->spec.wires / 8 * f->spec.mtu / (f->spec.mtu + EMU_FRAME_OVERHEAD);
}

double emu_topo_ceiling(const struct emu_fabric *f, int pe, int ports)
{
    struct emu_port *port[EMU_SPEC_PORTS];
    double all = 0, card = 0, slot = (double)f->spec.pcie_bits / 8, gpu = (double)f->spec.gpu_bits / 8;
    int n = emu_topo_ports(f, pe, port);

    n = ports < n ? ports : n;
    for (int i = 0; i < n; i++) { /* the ports of a card are neighbours */
        card += emu_topo_payload_rate(f, port[i]);
        if (i + 1 < n && port[i + 1]->dev->card == port[i]->dev->card)
            continue;
        all += slot > 0 && slot < card ? slot : card;
        card = 0;
    }
    return gpu > 0 && gpu < all ? gpu : all;
}
