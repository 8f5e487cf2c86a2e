/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_heap.h - what is to happen, by time: a binary heap of events. Equal times come out in the order they went in, so
 * that a run does not depend on the heap's shape.
 */
#ifndef EMU_HEAP_H
#define EMU_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct emu_heap_event {
    uint64_t t;
    uint64_t seq;
    void (*fn)(void *obj, uint64_t arg);
    void *obj;
    uint64_t arg;
};

struct emu_heap {
    struct emu_heap_event *e;
    size_t count, size;
    uint64_t seq;
};

/** Adds an event. 0, or -ENOMEM. */
int emu_heap_add(struct emu_heap *h, uint64_t t, void (*fn)(void *, uint64_t), void *obj, uint64_t arg);
/** The earliest event's time; UINT64_MAX where there is none. */
uint64_t emu_heap_first(const struct emu_heap *h);
/** Takes the earliest event. 0, or -ENOENT. */
int emu_heap_take(struct emu_heap *h, struct emu_heap_event *out);
/** Frees the heap; events in it are dropped. */
void emu_heap_fini(struct emu_heap *h);

#endif
