/* SPDX-License-Identifier: Apache-2.0 */
/* emu_topo.h - questions about the shape of a fabric as its SPEC made it: whose ports, which planes, what they carry at most. */
#ifndef EMU_TOPO_H
#define EMU_TOPO_H

#include "emu.h"

/** The plane of a host's device mlx5_DEV. */
int emu_topo_plane(const struct emu_spec *s, int dev);
/** True where GPUs 2i and 2i + 1 of the host are equally near to the ports of both. */
bool emu_topo_pairs(const struct emu_spec *s, int host);
/** The ports that are a PE's own, in the order of their devices; returns how many. */
int emu_topo_ports(const struct emu_fabric *f, int pe, struct emu_port *out[EMU_SPEC_PORTS]);
/** Payload bytes a second that the first so many ports of a PE carry one way at most: wires, slots, GPU link. */
double emu_topo_ceiling(const struct emu_fabric *f, int pe, int ports);
/** Payload bytes a second of a port (all its wires) whose packets are all full. */
double emu_topo_payload_rate(const struct emu_fabric *f, const struct emu_port *p);

#endif
