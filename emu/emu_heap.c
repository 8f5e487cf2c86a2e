/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_heap.c - the event queue of real time, and of what is far ahead in virtual time. Knows nothing of what the events do.
 * Called by emu_real.c, emu_wheel.c.
 */
#include "emu_heap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool emu_heap_before(const struct emu_heap_event *a, const struct emu_heap_event *b)
{
    return a->t != b->t ? a->t < b->t : a->seq < b->seq;
}

int emu_heap_add(struct emu_heap *h, uint64_t t, void (*fn)(void *, uint64_t), void *obj, uint64_t arg)
{
    struct emu_heap_event e = {t, h->seq++, fn, obj, arg};
    size_t i;

    if (h->count == h->size) {
        size_t size = h->size ? h->size * 2 : 256;
        struct emu_heap_event *grown = realloc(h->e, size * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        h->e = grown;
        h->size = size;
    }
    for (i = h->count++; i > 0; i = (i - 1) / 2) {
        if (!emu_heap_before(&e, &h->e[(i - 1) / 2]))
            break;
        h->e[i] = h->e[(i - 1) / 2];
    }
    h->e[i] = e;
    return 0;
}

uint64_t emu_heap_first(const struct emu_heap *h)
{
    return h->count ? h->e[0].t : UINT64_MAX;
}

int emu_heap_take(struct emu_heap *h, struct emu_heap_event *out)
{
    struct emu_heap_event last;
    size_t i = 0;

    if (h->count == 0)
        return -ENOENT;
    *out = h->e[0];
    last = h->e[--h->count];
    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= h->count)
            break;
        if (child + 1 < h->count && emu_heap_before(&h->e[child + 1], &h->e[child]))
            child++;
        if (!emu_heap_before(&h->e[child], &last))
            break;
        h->e[i] = h->e[child];
        i = child;
    }
    if (h->count)
        h->e[i] = last;
    return 0;
}

void emu_heap_fini(struct emu_heap *h)
{
    free(h->e);
    *h = (struct emu_heap){0};
}
