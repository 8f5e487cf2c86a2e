/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_wheel.c - the event queue of virtual time. Knows nothing of what the events do. Called by emu_sim.c; next: emu_heap.c.
 *
 * Why equal times keep their order: a nanosecond's events are a queue. One that was too far away when it was added comes out
 * of the heap as soon as its nanosecond is within the span, before anything else can be added there.
 */
#include "emu_wheel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EMU_WHEEL_BLOCKS = 1024 };

void emu_wheel_init(struct emu_wheel *w)
{
    memset(w, 0, sizeof(*w));
    w->first = UINT64_MAX;
}

void emu_wheel_fini(struct emu_wheel *w)
{
    emu_heap_fini(&w->far);
    free(w->block);
    emu_wheel_init(w);
}

/** A block's number, or 0 without memory. */
static uint32_t emu_wheel_new(struct emu_wheel *w)
{
    uint32_t i = w->unused;

    if (i) {
        w->unused = w->block[i].next;
    } else {
        if (w->blocks + 1 >= w->size) {
            uint32_t size = w->size ? 2 * w->size : EMU_WHEEL_BLOCKS;
            struct emu_wheel_block *grown = aligned_alloc(128, size * sizeof(*grown));

            if (!grown)
                return 0;
            if (w->size)
                memcpy(grown, w->block, w->size * sizeof(*grown));
            free(w->block);
            w->block = grown;
            w->size = size;
        }
        i = ++w->blocks;
    }
    w->block[i].next = w->block[i].count = 0;
    return i;
}

/** Adds an event that is within the span. */
static int emu_wheel_put(struct emu_wheel *w, uint64_t t, struct emu_wheel_event e)
{
    uint32_t at = t % EMU_WHEEL_SPAN, i = w->tail[at];

    if (!w->head[at] || w->block[i].count == EMU_WHEEL_BLOCK) {
        uint32_t more = emu_wheel_new(w);

        if (!more)
            return -ENOMEM;
        if (w->head[at])
            w->block[i].next = more;
        else
            w->head[at] = more;
        w->tail[at] = i = more;
        w->some[at / 64] |= (uint64_t)1 << at % 64;
        w->some_words[at / 64 / 64] |= (uint64_t)1 << at / 64 % 64;
    }
    w->block[i].e[w->block[i].count++] = e;
    if (t < w->first) {
        w->first = t;
        w->taken = 0;
    }
    return 0;
}

int emu_wheel_add(struct emu_wheel *w, uint64_t t, void (*fn)(void *, uint64_t), void *obj, uint64_t arg)
{
    /* Not for what is before the base either; and the end of time stands for nothing on the wheel. */
    if (t - w->base < EMU_WHEEL_SPAN && t < UINT64_MAX)
        return emu_wheel_put(w, t, (struct emu_wheel_event){fn, obj, arg});
    return emu_heap_add(&w->far, t, fn, obj, arg);
}

/** The first place from `from` on, below `end`, that has something; or end. */
static uint32_t emu_wheel_some(const struct emu_wheel *w, uint32_t from, uint32_t end)
{
    uint32_t i = from / 64, words;
    uint64_t word = w->some[i] & ~(uint64_t)0 << from % 64;

    if (!word) {
        words = ++i / 64;
        if (i >= EMU_WHEEL_SPAN / 64)
            return end;
        word = w->some_words[words] & ~(uint64_t)0 << i % 64;
        while (!word && ++words < EMU_WHEEL_SPAN / 64 / 64)
            word = w->some_words[words];
        if (!word)
            return end;
        i = words * 64 + (uint32_t)__builtin_ctzll(word);
        word = w->some[i];
    }
    from = i * 64 + (uint32_t)__builtin_ctzll(word);
    return from < end ? from : end;
}

/** When the wheel's earliest event is that is not before t, which is in the span. */
static uint64_t emu_wheel_from(const struct emu_wheel *w, uint64_t t)
{
    uint32_t base = w->base % EMU_WHEEL_SPAN, from = t % EMU_WHEEL_SPAN, at;

    if (from < base) /* it has gone round */
        at = emu_wheel_some(w, from, base);
    else
        at = emu_wheel_some(w, from, EMU_WHEEL_SPAN);
    if (from < base ? at < base : at < EMU_WHEEL_SPAN)
        return t + (at - from);
    if (from < base)
        return UINT64_MAX;
    at = emu_wheel_some(w, 0, base);
    return at < base ? t + (EMU_WHEEL_SPAN - from + at) : UINT64_MAX;
}

uint64_t emu_wheel_after(const struct emu_wheel *w, uint64_t t)
{
    return t >= w->base && t - w->base < EMU_WHEEL_SPAN - 1 ? emu_wheel_from(w, t + 1) : UINT64_MAX;
}

/** The base moves on: what comes within the span goes onto the wheel. What finds no memory there stays where it is. */
static int emu_wheel_move(struct emu_wheel *w, uint64_t base)
{
    struct emu_heap_event e;
    int rc = 0;

    w->base = base;
    while (rc == 0 && emu_heap_first(&w->far) - base < EMU_WHEEL_SPAN && emu_heap_first(&w->far) < UINT64_MAX &&
           emu_heap_take(&w->far, &e) == 0)
        rc = emu_wheel_put(w, e.t, (struct emu_wheel_event){e.fn, e.obj, e.arg});
    return rc;
}

/** The event that the first nanosecond's first block is at, and on to the next. */
static struct emu_wheel_event emu_wheel_next(struct emu_wheel *w)
{
    uint32_t at = w->first % EMU_WHEEL_SPAN, i = w->head[at];
    struct emu_wheel_block *b = &w->block[i];
    struct emu_wheel_event e = b->e[w->taken++];

    if (w->taken < b->count)
        return e;
    w->head[at] = b->next;
    b->next = w->unused;
    w->unused = i;
    w->taken = 0;
    if (!w->head[at]) {
        w->some[at / 64] &= ~((uint64_t)1 << at % 64);
        if (!w->some[at / 64])
            w->some_words[at / 64 / 64] &= ~((uint64_t)1 << at / 64 % 64);
        w->first = emu_wheel_from(w, w->base);
    }
    return e;
}

int emu_wheel_take(struct emu_wheel *w, struct emu_heap_event *out)
{
    uint64_t far = emu_heap_first(&w->far), t = w->first;
    struct emu_wheel_event e;
    int rc;

    if (far < t || (t == UINT64_MAX && w->far.count)) { /* earlier than the base, or the wheel has nothing before it */
        rc = emu_heap_take(&w->far, out);
        return far > w->base && rc == 0 ? emu_wheel_move(w, far) : rc;
    }
    if (t == UINT64_MAX)
        return -ENOENT;
    rc = t > w->base ? emu_wheel_move(w, t) : 0;
    if (rc)
        return rc;
    e = emu_wheel_next(w);
    *out = (struct emu_heap_event){.t = t, .fn = e.fn, .obj = e.obj, .arg = e.arg};
    return 0;
}
