/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_bus.c - what lies between a port and memory: the PCIe slot of its card, which the card's ports share, and the link of
 * the GPU whose memory it is. Each is a pipe a direction with a rate that counts payload; a packet passes all its pipes and
 * the wire at once, and is through when the last of them has let it through. Knows nothing of packets waiting for
 * each other. Called by emu_link.c (out) and emu_switch.c (in); next: nothing.
 */
#include "emu.h"

/** When so many bytes are through that begin to come at start (ns). */
static uint64_t emu_bus_pass(struct emu_pipe *pipe, uint64_t bits, uint64_t start, uint32_t bytes)
{
    if (!bits)
        return start;
    if (pipe->free_ps < start * 1000)
        pipe->free_ps = start * 1000;
    pipe->free_ps += (uint64_t)((double)bytes * 8e12 / (double)bits + 0.5);
    return (pipe->free_ps + 500) / 1000;
}

uint64_t emu_bus_through(struct emu_port *port, const struct emu_qp *qp, enum emu_direction way, uint64_t start,
                         uint32_t bytes)
{
    struct emu_fabric *f = port->dev->fabric;
    uint64_t card, gpu;

    if (!bytes || !qp)
        return start;
    card = emu_bus_pass(&f->bus[port->dev->card].slot[way], f->spec.pcie_bits, start, bytes);
    gpu = emu_bus_pass(&f->bus[qp->ctx->owner->index].gpu[way], f->spec.gpu_bits, start, bytes);
    return card > gpu ? card : gpu;
}
