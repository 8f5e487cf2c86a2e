/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_copy.c - see emu_copy.h. All copies of a GPU go through one stream, so a read sees the writes before it, and what is
 * seen of writes are those that were begun first.
 */
#include "emu_copy.h"
#include "emu_cuda.h"
#include "emu_gpu_int.h"
#include "emu_meet.h"

#include <stdio.h>
#include <string.h>

enum { EMU_COPY_SLOW_NS = 1000000000 };

static struct emu_copy_stats emu_copy_all;

const struct emu_copy_stats *emu_copy_stats(void)
{
    return &emu_copy_all;
}

/** Says where CUDA has held the engine up, and with it the program's traffic. */
static void emu_copy_slow(uint64_t ns, const char *what)
{
    if (ns > EMU_COPY_SLOW_NS)
        fprintf(
            stderr,
            "emu: %s of GPU memory took %.1f s; expected microseconds: does a call of CUDA wait for a kernel that waits "
            "for this?\n",
            what, (double)ns / 1e9);
}

static struct emu_copy_slab *emu_copy_slab_at(struct emu_copy *c, uint32_t i)
{
    return &c->slab[i % EMU_COPY_SLABS];
}

static unsigned char *emu_copy_bytes(const struct emu_copy *c, uint32_t i)
{
    return c->bytes + (size_t)(i % EMU_COPY_SLABS) * EMU_COPY_SLAB;
}

/** Begins the copies of slabs before a number. */
static bool emu_copy_issue_before(struct emu_gpu *g, uint32_t end)
{
    struct emu_copy *c = &g->copy;
    uint64_t began;
    bool ok = true;

    if (c->issued == end)
        return true;
    began = emu_meet_time();
    ok = emu_gpu_enter(g);
    for (; c->issued != end; c->issued++) {
        const struct emu_copy_slab *s = emu_copy_slab_at(c, c->issued);

        ok = ok && emu_gpu_ok(g, emu_cuda_get()->to_device(s->to, emu_copy_bytes(c, c->issued), s->len, g->stream),
                              "a write");
        emu_copy_all.writes++;
        emu_copy_all.write_bytes += s->len;
    }
    emu_copy_all.write_ns += emu_meet_time() - began;
    return ok;
}

bool emu_copy_issue(struct emu_gpu *g)
{
    return emu_copy_issue_before(g, g->copy.opened);
}

bool emu_copy_unsettled(const struct emu_gpu *g)
{
    return g->copy.freed != g->copy.opened;
}

/** Waits for the stream, which ends the copies of all slabs that were issued. If it fails they stay unsettled. */
static bool emu_copy_wait(struct emu_gpu *g)
{
    if (!emu_gpu_ok(g, emu_cuda_get()->stream_wait(g->stream), "a copy"))
        return false;
    g->copy.freed = g->copy.issued;
    return true;
}

bool emu_copy_settle(struct emu_gpu *g)
{
    uint64_t began, ns;

    if (!emu_copy_unsettled(g))
        return !g->dead;
    emu_copy_issue(g);
    began = emu_meet_time();
    if (emu_gpu_enter(g))
        emu_copy_wait(g);
    g->copy.freed = g->copy.issued;
    ns = emu_meet_time() - began;
    emu_copy_all.waits++;
    emu_copy_all.wait_ns += ns;
    emu_copy_slow(ns, "a write");
    return !g->dead;
}

/** The youngest slab of a writer, if it gathers; else c->opened. */
static uint32_t emu_copy_find(struct emu_copy *c, const void *by)
{
    for (uint32_t i = c->opened; by && i != c->issued; i--) {
        const struct emu_copy_slab *s = emu_copy_slab_at(c, i - 1);

        if (s->by == by)
            return i - 1;
        if (!s->by)
            break; /* behind this one */
    }
    return c->opened;
}

/** Of two writes to the same bytes the later one holds: whatever is gathered for some of them goes first. */
static void emu_copy_part(struct emu_gpu *g, uint32_t but, uint64_t to, uint32_t len)
{
    struct emu_copy *c = &g->copy;

    for (uint32_t i = c->opened; i != c->issued; i--) {
        const struct emu_copy_slab *s = emu_copy_slab_at(c, i - 1);

        if (i - 1 == but || to >= s->to + s->len || to + len <= s->to)
            continue;
        emu_copy_issue_before(g, i);
        return;
    }
}

void emu_copy_write(struct emu_gpu *g, const void *by, uint64_t to, const void *from, uint32_t len)
{
    struct emu_copy *c = &g->copy;
    uint32_t i = emu_copy_find(c, by);
    struct emu_copy_slab *s = emu_copy_slab_at(c, i);

    if (i != c->opened && (to != s->to + s->len || s->len + len > EMU_COPY_SLAB)) {
        if (s->len == EMU_COPY_SLAB)
            emu_copy_issue_before(g, i + 1);
        i = c->opened;
    }
    emu_copy_part(g, i, to, len);
    if (i == c->opened || (int32_t)(i - c->issued) < 0) {
        if (c->opened - c->freed == EMU_COPY_SLABS)
            emu_copy_settle(g);
        i = c->opened++;
        s = emu_copy_slab_at(c, i);
        *s = (struct emu_copy_slab){.to = to, .by = by};
    }
    memcpy(emu_copy_bytes(c, i) + s->len, from, len);
    s->len += len;
}

bool emu_copy_begin_read(struct emu_gpu *g, void *pinned, uint64_t from, uint32_t len)
{
    uint64_t began;
    bool ok = emu_copy_issue(g) && emu_gpu_enter(g);

    began = emu_meet_time();
    ok = ok && emu_gpu_ok(g, emu_cuda_get()->to_host(pinned, from, len, g->stream), "a read");
    emu_copy_all.reads++;
    emu_copy_all.read_bytes += len;
    emu_copy_all.read_ns += emu_meet_time() - began;
    return ok;
}

bool emu_copy_end_reads(struct emu_gpu *g)
{
    uint64_t began = emu_meet_time(), ns;
    bool ok = emu_gpu_enter(g) && emu_copy_wait(g);

    ns = emu_meet_time() - began;
    emu_copy_all.read_waits++;
    emu_copy_all.read_ns += ns;
    emu_copy_slow(ns, "a read");
    return ok;
}
