/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_pkt.c - packets and their pool: two sizes, with and without room for a payload of the largest MTU.
 * Called by emu_req.c and emu_resp.c (make), emu_link.c (ends).
 */
#include "emu.h"

#include <stdlib.h>
#include <string.h>

struct emu_pkt *emu_pkt_alloc(struct emu_fabric *f, uint32_t len)
{
    struct emu_pkt **pool = len ? &f->free_large : &f->free_small;
    struct emu_pkt *p = *pool, *made;

    if (p) {
        *pool = p->next;
    } else {
        p = malloc(sizeof(*p) + (len ? EMU_PAYLOAD_ROOM : 0));
        if (!p)
            return NULL;
        p->made_before = f->made;
        f->made = p;
    }
    made = p->made_before;
    memset(p, 0, sizeof(*p));
    p->made_before = made;
    p->payload.len = len;
    p->payload.bytes = len ? (unsigned char *)(p + 1) : NULL;
    return p;
}

void emu_pkt_free(struct emu_fabric *f, struct emu_pkt *p)
{
    struct emu_pkt **pool = p->payload.bytes ? &f->free_large : &f->free_small;

    if (p->holds) {
        p->holds--;
        return;
    }
    p->next = *pool;
    *pool = p;
}

void emu_pkt_drain(struct emu_fabric *f)
{
    /* Packets still on their way are in nobody's pool, so the list of all that were ever made is walked. */
    while (f->made) {
        struct emu_pkt *p = f->made;

        f->made = p->made_before;
        free(p);
    }
    f->free_small = f->free_large = NULL;
}
