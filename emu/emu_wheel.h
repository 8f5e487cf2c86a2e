/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_wheel.h - what is to happen in virtual time, by time. Equal times come out in the order they went in, so that a run does
 * not depend on how events are kept. What is due soon has a place for each nanosecond, so that adding and taking cost the same
 * however much is under way; the rest waits in a heap. Included by emu_sim_int.h.
 */
#ifndef EMU_WHEEL_H
#define EMU_WHEEL_H

#include "emu_heap.h"

enum { EMU_WHEEL_SPAN = 8192 /* ns, a power of two */, EMU_WHEEL_BLOCK = 5 };

struct emu_wheel_event {
    void (*fn)(void *obj, uint64_t arg);
    void *obj;
    uint64_t arg;
};

/** Events of one nanosecond, in two cache lines; its number is its place in the pool. */
struct emu_wheel_block {
    uint32_t next; /* of the same nanosecond, or of the unused; 0: none */
    uint32_t count;
    struct emu_wheel_event e[EMU_WHEEL_BLOCK];
};

struct emu_wheel {
    struct emu_heap far;   /* all that is not in [base, base + span) */
    uint64_t base, first;  /* no event of the wheel is earlier; the earliest is then, or UINT64_MAX */
    uint32_t taken;        /* of the first nanosecond's first block */
    uint32_t blocks, size; /* ever used, of so many; number 0 is not used */
    uint32_t unused;
    struct emu_wheel_block *block;
    uint64_t some[EMU_WHEEL_SPAN / 64], some_words[EMU_WHEEL_SPAN / 64 / 64];
    uint32_t head[EMU_WHEEL_SPAN], tail[EMU_WHEEL_SPAN];
};

/** Makes an empty one ready. */
void emu_wheel_init(struct emu_wheel *w);
/** Adds an event. 0, or -ENOMEM. */
int emu_wheel_add(struct emu_wheel *w, uint64_t t, void (*fn)(void *, uint64_t), void *obj, uint64_t arg);
/** Takes the earliest event. 0, or -ENOENT. */
int emu_wheel_take(struct emu_wheel *w, struct emu_heap_event *out);
/** Frees it; events in it are dropped. */
void emu_wheel_fini(struct emu_wheel *w);

/** The earliest event's time; UINT64_MAX where there is none. */
static inline uint64_t emu_wheel_first(const struct emu_wheel *w)
{
    uint64_t far = emu_heap_first(&w->far);

    return far < w->first ? far : w->first;
}

/** When the next events are that are later than t, of those on the wheel; UINT64_MAX where there are none. */
uint64_t emu_wheel_after(const struct emu_wheel *w, uint64_t t);

/** The events of one nanosecond, of those on the wheel, in their order. */
static inline void emu_wheel_each(const struct emu_wheel *w, uint64_t t, void (*fn)(const struct emu_wheel_event *e))
{
    for (uint32_t i = t < UINT64_MAX ? w->head[t % EMU_WHEEL_SPAN] : 0; i; i = w->block[i].next) {
        for (uint32_t k = 0; k < w->block[i].count; k++)
            fn(&w->block[i].e[k]);
    }
}

#endif
