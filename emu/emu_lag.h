/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_lag.h - bonds: a device whose one port has several wires (link aggregation by the NIC). Each wire is a struct emu_port,
 * with a transmitter, a receiver and counters of its own; a queue pair sends on one of them.
 */
#ifndef EMU_LAG_H
#define EMU_LAG_H

#include "emu.h"

/** Wires of all ports that a SPEC describes, those left out too. */
static inline int emu_lag_wires(const struct emu_spec *s)
{
    return s->nodes * s->gpus * s->ports * s->wires;
}

/** A wire of a device, from 0. */
static inline struct emu_port *emu_lag_wire(struct emu_dev *d, int wire)
{
    return wire ? &d->more[wire - 1] : &d->port;
}

/** The index in the fabric of a wire of its dev-th device. */
int emu_lag_index(const struct emu_spec *s, int dev, int wire);
/** The wire with this index, which is below emu_lag_wires(). */
struct emu_port *emu_lag_port(struct emu_fabric *f, int index);

/** A device's port is up while one of its wires is. */
bool emu_lag_dev_up(struct emu_dev *d);

/** The queue pair gets a path (RTR), or leaves it: source port and wire as its attributes say, nothing that was asked for before. */
void emu_lag_start(struct emu_qp *qp);
/** A wire of the device went up or down: its queue pairs move to one that is up. */
void emu_lag_changed(struct emu_dev *d);
/** The wire on which packets of the queue pair arrive at a port, given by its first wire. */
struct emu_port *emu_lag_toward(const struct emu_qp *qp, struct emu_port *peer);

#endif
