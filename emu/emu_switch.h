/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_switch.h - the switch of a plane, and the ports that it has paused: emu_switch.c decides who may enter, emu_pause.c keeps
 * them in line so that asking costs little however many wait. Included by emu.h.
 */
#ifndef EMU_SWITCH_H
#define EMU_SWITCH_H

#include <stdint.h>

struct emu_pkt;
struct emu_port;

struct emu_pkt_list {
    struct emu_pkt *head, *last; /* last counts while there is a head */
};

struct emu_port_list {
    struct emu_port *head, *last; /* likewise */
};

/** A paused port's place in two lists. */
struct emu_paused {
    uint64_t number; /* in line: lower ones come first */
    struct emu_port *size_before, *size_next, *port_before, *port_next;
};

enum { EMU_PAUSE_SIZE = 64, EMU_PAUSE_SIZES = 72 };

/** Ports that are paused, by the size on the wire of the packet that waits, in steps of EMU_PAUSE_SIZE; and, in each port's
 *  `wanted`, by where that is for. Each list is in the order of the line. */
struct emu_pause {
    uint64_t number; /* the next one's */
    uint32_t count;
    uint64_t some[(EMU_PAUSE_SIZES + 63) / 64]; /* a bit for each size that somebody waits with */
    uint64_t first[EMU_PAUSE_SIZES];            /* their first number */
    struct emu_port_list size[EMU_PAUSE_SIZES];
};

/** Puts a port at the end of the line, with the first packet that is held for it. */
void emu_pause_add(struct emu_pause *p, struct emu_port *src);
/** Takes it out; its first packet is still the one that it waited with. */
void emu_pause_remove(struct emu_pause *p, struct emu_port *src);
/** The first in line, of those numbered below end, whose packet is of at most so many bytes; or NULL. */
struct emu_port *emu_pause_next(const struct emu_pause *p, uint64_t bytes, uint64_t end);

/** The switch of one plane: a buffer that its ports share, and the ports it has paused. */
struct emu_switch {
    uint64_t used, peak; /* bytes */
    struct emu_pause pause;
    struct emu_port *open; /* ports that may be able to take a packet that waits, whatever is in the buffer */
};

/** Event: a packet's last bit is at the switch. Takes ownership. */
void emu_switch_arrive(void *pkt, uint64_t arg);
/** Event: a port has taken the first packet that waited for it; arg: its service. */
void emu_switch_served(void *port, uint64_t gen);
/** The port went up or down, or began or ceased to stall. Packets that wait for a port that is down are lost. */
void emu_switch_changed(struct emu_port *port);

#endif
