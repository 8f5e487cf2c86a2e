/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_payload.c - what packets carry, between the kinds of memory: bytes, or runs of pattern memory (emu_pattern.h) in
 * the same room. Runs become bytes where the two kinds meet, or where there are too many of them. Called through struct
 * emu_mem_ops; next: emu_pattern.c.
 */
#include "emu.h"
#include "emu_pattern.h"

#include <string.h>

enum { EMU_PAYLOAD_RUNS = EMU_PAYLOAD_ROOM / sizeof(struct emu_run) };

static struct emu_run *emu_payload_runs(const struct emu_payload *p)
{
    return (struct emu_run *)(void *)p->bytes;
}

/** Runs that lie in [at, at + len) of the payload, one after the other, to fn. */
static void emu_payload_each(const struct emu_payload *p, uint32_t at, uint32_t len,
                             void (*fn)(void *to, uint64_t place, const struct emu_run *r, uint64_t skip, uint64_t len),
                             void *to, uint64_t place)
{
    const struct emu_run *r = emu_payload_runs(p);
    uint32_t begin = 0;

    for (uint32_t i = 0; i < p->runs; begin += r[i++].len) {
        uint32_t from = begin > at ? begin : at, end = begin + r[i].len < at + len ? begin + r[i].len : at + len;

        if (from < end)
            fn(to, place + from - at, &r[i], from - begin, end - from);
    }
}

static void emu_payload_to_host(void *to, uint64_t place, const struct emu_run *r, uint64_t skip, uint64_t len)
{
    emu_pattern_bytes(r, skip, (unsigned char *)to + place, len);
}

static void emu_payload_to_pattern(void *to, uint64_t place, const struct emu_run *r, uint64_t skip, uint64_t len)
{
    emu_pattern_put(to, place, r, skip, len);
}

void emu_payload_read(const struct emu_payload *p, uint32_t at, void *to, uint32_t len)
{
    if (p->runs)
        emu_payload_each(p, at, len, emu_payload_to_host, to, 0);
    else
        memcpy(to, p->bytes + at, len);
}

void emu_payload_make_bytes(struct emu_payload *p, uint32_t len)
{
    unsigned char bytes[EMU_PAYLOAD_ROOM];

    if (!p->runs)
        return;
    emu_payload_read(p, 0, bytes, len);
    memcpy(p->bytes, bytes, len);
    p->runs = 0;
}

/* ---- pattern memory behind a region ---------------------------------------------------------------------------------- */

/** Adds a run; false where there is no room for it. */
static bool emu_payload_add(struct emu_payload *p, struct emu_run r)
{
    struct emu_run *last = p->runs ? &emu_payload_runs(p)[p->runs - 1] : NULL;

    if (last && last->tag == r.tag && r.tag != EMU_PATTERN_RAW &&
        (r.tag == EMU_PATTERN_ZERO || last->pos + last->len == r.pos)) {
        last->len += r.len;
        return true;
    }
    if (p->runs == EMU_PAYLOAD_RUNS)
        return false;
    emu_payload_runs(p)[p->runs++] = r;
    return true;
}

static void emu_payload_load(const struct emu_mr *mr, uint64_t off, struct emu_payload *to, uint32_t at, uint32_t len)
{
    uint32_t done = 0;

    /* Bytes are there already: from another kind of memory, or because runs had no room. */
    while (done < len && (at + done == 0 || to->runs)) {
        struct emu_run r = emu_pattern_get(mr->pattern, mr->place + off + done, len - done);

        if (!emu_payload_add(to, r)) {
            emu_payload_make_bytes(to, at + done);
            break;
        }
        done += r.len;
    }
    emu_pattern_read(mr->pattern, mr->place + off + done, to->bytes + at + done, len - done);
}

static void emu_payload_store(const struct emu_mr *mr, const void *by, uint64_t off, const struct emu_payload *from,
                              uint32_t at, uint32_t len)
{
    (void)by;
    if (from->runs)
        emu_payload_each(from, at, len, emu_payload_to_pattern, mr->pattern, mr->place + off);
    else
        emu_pattern_write(mr->pattern, mr->place + off, from->bytes + at, len);
}

static uint64_t emu_payload_load8(const struct emu_mr *mr, uint64_t off)
{
    uint64_t v;

    emu_pattern_read(mr->pattern, mr->place + off, &v, sizeof(v));
    return v;
}

static void emu_payload_store8(const struct emu_mr *mr, uint64_t off, uint64_t value)
{
    emu_pattern_write(mr->pattern, mr->place + off, &value, sizeof(value));
}

const struct emu_mem_ops emu_mem_pattern = {
    emu_payload_load,
    emu_payload_store,
    emu_payload_load8,
    emu_payload_store8,
};
