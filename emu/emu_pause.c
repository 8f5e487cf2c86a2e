/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_pause.c - the line of ports that a switch has paused: who comes first among those whose packet would fit. In a full buffer
 * every packet that leaves asks so, and a thousand ports may wait: no answer may take a walk along the line.
 * Knows nothing of buffers. Called by emu_switch.c; next: nothing.
 */
#include "emu.h"

static unsigned emu_pause_size(const struct emu_port *src)
{
    unsigned size = src->held.head->wire_bytes / EMU_PAUSE_SIZE;

    return size < EMU_PAUSE_SIZES ? size : EMU_PAUSE_SIZES - 1;
}

void emu_pause_add(struct emu_pause *p, struct emu_port *src)
{
    unsigned size = emu_pause_size(src);
    struct emu_port_list *same = &p->size[size], *wanted = &src->held.head->dst->wanted;

    src->paused = (struct emu_paused){.number = p->number++,
                                      .size_before = same->head ? same->last : NULL,
                                      .port_before = wanted->head ? wanted->last : NULL};
    if (same->head) {
        same->last->paused.size_next = src;
    } else {
        same->head = src;
        p->first[size] = src->paused.number;
        p->some[size / 64] |= (uint64_t)1 << size % 64;
    }
    same->last = src;
    *(wanted->head ? &wanted->last->paused.port_next : &wanted->head) = src;
    wanted->last = src;
    p->count++;
}

void emu_pause_remove(struct emu_pause *p, struct emu_port *src)
{
    unsigned size = emu_pause_size(src);
    struct emu_port_list *same = &p->size[size], *wanted = &src->held.head->dst->wanted;
    struct emu_paused *at = &src->paused;

    *(at->size_before ? &at->size_before->paused.size_next : &same->head) = at->size_next;
    *(at->size_next ? &at->size_next->paused.size_before : &same->last) = at->size_before;
    *(at->port_before ? &at->port_before->paused.port_next : &wanted->head) = at->port_next;
    *(at->port_next ? &at->port_next->paused.port_before : &wanted->last) = at->port_before;
    if (same->head)
        p->first[size] = same->head->paused.number;
    else
        p->some[size / 64] &= ~((uint64_t)1 << size % 64);
    p->count--;
}

/** The first of a size's list that fits, of those numbered below *end, which then is its number. */
static struct emu_port *emu_pause_fits(const struct emu_pause *p, unsigned size, uint64_t bytes, uint64_t *end)
{
    struct emu_port *src = p->size[size].head;

    while (src && src->paused.number < *end && src->held.head->wire_bytes > bytes)
        src = src->paused.size_next;
    if (!src || src->paused.number >= *end)
        return NULL;
    *end = src->paused.number;
    return src;
}

struct emu_port *emu_pause_next(const struct emu_pause *p, uint64_t bytes, uint64_t end)
{
    struct emu_port *found = NULL;

    for (unsigned i = 0; i < sizeof(p->some) / sizeof(p->some[0]); i++) {
        for (uint64_t left = p->some[i]; left; left &= left - 1) {
            unsigned size = i * 64 + (unsigned)__builtin_ctzll(left);
            struct emu_port *src;

            if (size * EMU_PAUSE_SIZE > bytes)
                return found;
            src = p->first[size] < end ? emu_pause_fits(p, size, bytes, &end) : NULL;
            found = src ? src : found;
        }
    }
    return found;
}
