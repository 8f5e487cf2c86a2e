/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ah.h - address handles: where a datagram goes. Included by emu_ah.c, emu_calls.c and emu_ctx.c.
 */
#ifndef EMU_AH_H
#define EMU_AH_H

#include "emu.h"

struct emu_ah {
    struct ibv_ah ibv;
    struct emu_ah *next, *prev; /* of the context */
    struct ibv_ah_attr attr;
    struct emu_port *peer; /* NULL: nobody has that address */
};

/** ibv_create_ah(3). NULL and errno. */
struct emu_ah *emu_ah_new(struct emu_pd *pd, const struct ibv_ah_attr *attr);
/** Ends it; what was sent with it is on its way. */
void emu_ah_free(struct emu_ah *ah);

#endif
