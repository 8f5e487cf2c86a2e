/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_pattern.c - see emu_pattern.h. Each memory is a sorted list of extents that do not overlap; what is not in it is
 * zero. Neighbours that go on in each other are one, so a buffer that has arrived whole is one extent, whatever order its
 * pieces came in. Called by emu_sim.c, emu_payload.c, emu_mr.c, emu_post.c; next: nothing.
 */
#include "emu_pattern.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct emu_extent {
    uint64_t at, len;
    uint64_t tag, pos;
};

/* Places where what comes next is likely to come: each packet of a message continues the one before. */
enum { EMU_PATTERN_HINTS = 4096, EMU_PATTERN_HINT = 4096 };

struct emu_pattern_hint {
    uint32_t page; /* of which place */
    uint32_t at;   /* the extent, give or take what has been put in before it since */
};

struct emu_pattern {
    unsigned char *base;
    uint64_t len;
    struct emu_extent *e;
    size_t count, size;
    unsigned holds; /* regions, and one while it is mapped */
    bool lost;      /* no memory for an extent: nothing is as it should be any more */
    struct emu_pattern_hint hint[EMU_PATTERN_HINTS];
};

/* Those that are mapped, in the order of their addresses. Several fabrics may live in one process, each on a thread of its own:
 * they share the list, not what is on it. */
static pthread_mutex_t emu_pattern_lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_pattern **emu_pattern_all;
static size_t emu_pattern_count;

/** The first of the list that ends at or behind an address. With the lock. */
static size_t emu_pattern_place(uintptr_t at)
{
    size_t low = 0, high = emu_pattern_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if ((uintptr_t)emu_pattern_all[mid]->base + emu_pattern_all[mid]->len >= at)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/** Puts one on the list; false without memory. */
static bool emu_pattern_enlist(struct emu_pattern *m)
{
    struct emu_pattern **grown;
    size_t i;

    pthread_mutex_lock(&emu_pattern_lock);
    grown = realloc(emu_pattern_all, (emu_pattern_count + 1) * sizeof(struct emu_pattern *));
    if (grown) {
        emu_pattern_all = grown;
        i = emu_pattern_place((uintptr_t)m->base + 1);
        memmove(grown + i + 1, grown + i, (emu_pattern_count - i) * sizeof(struct emu_pattern *));
        grown[i] = m;
        __atomic_store_n(&emu_pattern_count, emu_pattern_count + 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&emu_pattern_lock);
    return grown;
}

void *emu_pattern_map(size_t len)
{
    struct emu_pattern *m;
    void *base;

    errno = EINVAL;
    if (len == 0 || len > SIZE_MAX / 2)
        return NULL;
    base = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    m = calloc(1, sizeof(*m));
    if (m)
        *m = (struct emu_pattern){.base = base, .len = len, .holds = 1};
    if (!m || !emu_pattern_enlist(m)) {
        free(m);
        munmap(base, len);
        errno = ENOMEM;
        return NULL;
    }
    return base;
}

struct emu_pattern *emu_pattern_find(const void *addr, size_t len, uint64_t *place)
{
    uintptr_t at = (uintptr_t)addr;
    struct emu_pattern *m = NULL;

    if (!__atomic_load_n(&emu_pattern_count, __ATOMIC_RELAXED)) /* mostly there is none */
        return NULL;
    pthread_mutex_lock(&emu_pattern_lock);
    for (size_t i = emu_pattern_place(at); !m && i < emu_pattern_count; i++) { /* where one ends another may begin */
        uintptr_t base = (uintptr_t)emu_pattern_all[i]->base;

        if (at < base)
            break;
        if (at - base <= emu_pattern_all[i]->len && len <= emu_pattern_all[i]->len - (at - base))
            m = emu_pattern_all[i];
    }
    pthread_mutex_unlock(&emu_pattern_lock);
    if (m)
        *place = at - (uintptr_t)m->base;
    return m;
}

void emu_pattern_hold(struct emu_pattern *m)
{
    m->holds++;
}

void emu_pattern_release(struct emu_pattern *m)
{
    if (--m->holds)
        return;
    free(m->e);
    free(m);
}

void emu_pattern_unmap(void *addr)
{
    struct emu_pattern *m = NULL;
    size_t i;

    pthread_mutex_lock(&emu_pattern_lock);
    i = emu_pattern_place((uintptr_t)addr + 1);
    if (i < emu_pattern_count && emu_pattern_all[i]->base == addr) {
        m = emu_pattern_all[i];
        memmove(&emu_pattern_all[i], &emu_pattern_all[i + 1],
                (emu_pattern_count - i - 1) * sizeof(struct emu_pattern *));
        __atomic_store_n(&emu_pattern_count, emu_pattern_count - 1, __ATOMIC_RELAXED);
    }
    if (emu_pattern_count == 0) {
        free(emu_pattern_all);
        emu_pattern_all = NULL;
    }
    pthread_mutex_unlock(&emu_pattern_lock);
    if (!m)
        return;
    munmap(m->base, m->len);
    emu_pattern_release(m);
}

/* ---- runs ------------------------------------------------------------------------------------------------------------ */

/** The byte at a position of a tag, eight at a time: a mix of both, so that no two places look alike. */
static uint64_t emu_pattern_word(uint64_t tag, uint64_t pos)
{
    uint64_t z = tag * 0x9e3779b97f4a7c15u + (pos >> 3) + 1;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static unsigned char emu_pattern_byte(uint64_t tag, uint64_t pos)
{
    if (tag == EMU_PATTERN_ZERO)
        return 0;
    return (unsigned char)(emu_pattern_word(tag, pos) >> (8 * (pos & 7)));
}

/** A position further on in a run: raw bytes are used up from the lowest. */
static uint64_t emu_pattern_skip(uint64_t tag, uint64_t pos, uint64_t skip)
{
    if (tag == EMU_PATTERN_RAW)
        return skip < 8 ? pos >> (8 * skip) : 0;
    return tag == EMU_PATTERN_ZERO ? 0 : pos + skip;
}

void emu_pattern_bytes(const struct emu_run *r, uint64_t skip, void *to, size_t len)
{
    unsigned char *out = to;

    for (size_t i = 0; i < len; i++) {
        if (r->tag == EMU_PATTERN_RAW)
            out[i] = (unsigned char)emu_pattern_skip(r->tag, r->pos, skip + i);
        else
            out[i] = emu_pattern_byte(r->tag, r->pos + skip + i);
    }
}

/* ---- extents ---------------------------------------------------------------------------------------------------------- */

/** Where a hint for a place is kept; *page is what it then says. */
static struct emu_pattern_hint *emu_pattern_hint(struct emu_pattern *m, uint64_t place, uint32_t *page)
{
    *page = (uint32_t)(place / EMU_PATTERN_HINT) + 1; /* never 0 */
    return &m->hint[*page * 0x9e3779b1u >> 20];
}

_Static_assert(EMU_PATTERN_HINTS == 1 << 12, "the hash's bits");

/** The first extent that ends behind the place; len bytes from there on are used, and what follows them may be next. */
static size_t emu_pattern_from(struct emu_pattern *m, uint64_t place, uint64_t len)
{
    uint32_t page;
    struct emu_pattern_hint *hint = emu_pattern_hint(m, place, &page);
    size_t low = 0, high = m->count, near = hint->page == page ? hint->at : high;

    for (size_t step = 1; near < high; step *= 2) { /* out from the hint, in both directions */
        if (m->e[near].at + m->e[near].len <= place) {
            low = near + 1;
            near += step;
        } else {
            high = near;
            if (high - low < step)
                break;
            near -= step;
        }
    }
    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (m->e[mid].at + m->e[mid].len > place)
            high = mid;
        else
            low = mid + 1;
    }
    hint = emu_pattern_hint(m, place + len, &page);
    *hint = (struct emu_pattern_hint){page, (uint32_t)low};
    return low;
}

/** The part [at, end) of an extent. */
static struct emu_extent emu_pattern_slice(struct emu_extent e, uint64_t at, uint64_t end)
{
    return (struct emu_extent){at, end - at, e.tag, emu_pattern_skip(e.tag, e.pos, at - e.at)};
}

static bool emu_pattern_goes_on(struct emu_extent a, struct emu_extent b)
{
    return a.at + a.len == b.at && a.tag == b.tag && a.tag != EMU_PATTERN_RAW && a.pos + a.len == b.pos;
}

/** Adds an extent to those collected, as part of the last where it goes on in it. */
static size_t emu_pattern_collect(struct emu_extent *to, size_t n, struct emu_extent e)
{
    if (e.len == 0 || e.tag == EMU_PATTERN_ZERO)
        return n;
    if (n && emu_pattern_goes_on(to[n - 1], e)) {
        to[n - 1].len += e.len;
        return n;
    }
    to[n] = e;
    return n + 1;
}

/** Replaces extents [i, j) by others. */
static void emu_pattern_splice(struct emu_pattern *m, size_t i, size_t j, const struct emu_extent *with, size_t n)
{
    size_t count = m->count - (j - i) + n;

    if (count > m->size) {
        size_t size = count * 2 + 8;
        struct emu_extent *e = realloc(m->e, size * sizeof(*e));

        if (!e) {
            m->lost = true;
            return;
        }
        m->e = e;
        m->size = size;
    }
    if (i + n != j && j < m->count)
        memmove(m->e + i + n, m->e + j, (m->count - j) * sizeof(*m->e));
    if (n)
        memcpy(m->e + i, with, n * sizeof(*with));
    m->count = count;
}

static void emu_pattern_set(struct emu_pattern *m, struct emu_extent new)
{
    uint64_t end = new.at + new.len;
    size_t i = emu_pattern_from(m, new.at, new.len), j = i, n = 0;
    struct emu_extent with[5];
    struct emu_extent right = {0};

    while (j < m->count && m->e[j].at < end)
        j++;
    if (i > 0) /* the neighbour before, which may go on in the new one */
        n = emu_pattern_collect(with, n, m->e[i - 1]);
    if (j > i && m->e[i].at < new.at)
        n = emu_pattern_collect(with, n, emu_pattern_slice(m->e[i], m->e[i].at, new.at));
    if (j > i && m->e[j - 1].at + m->e[j - 1].len > end)
        right = emu_pattern_slice(m->e[j - 1], end, m->e[j - 1].at + m->e[j - 1].len);
    n = emu_pattern_collect(with, n, new);
    n = emu_pattern_collect(with, n, right);
    if (j < m->count)
        n = emu_pattern_collect(with, n, m->e[j++]);
    emu_pattern_splice(m, i > 0 ? i - 1 : 0, j, with, n);
}

void emu_pattern_put(struct emu_pattern *m, uint64_t place, const struct emu_run *r, uint64_t skip, uint64_t len)
{
    if (len)
        emu_pattern_set(m, (struct emu_extent){place, len, r->tag, emu_pattern_skip(r->tag, r->pos, skip)});
}

struct emu_run emu_pattern_get(struct emu_pattern *m, uint64_t place, uint32_t most)
{
    size_t i = emu_pattern_from(m, place, most);
    struct emu_extent e = {place, m->len - place, EMU_PATTERN_ZERO, 0};

    if (i < m->count && m->e[i].at <= place)
        e = emu_pattern_slice(m->e[i], place, m->e[i].at + m->e[i].len);
    else if (i < m->count)
        e.len = m->e[i].at - place;
    return (struct emu_run){e.tag, e.pos, e.len < most ? (uint32_t)e.len : most};
}

void emu_pattern_read(struct emu_pattern *m, uint64_t place, void *to, size_t len)
{
    unsigned char *out = to;

    while (len) {
        struct emu_run r = emu_pattern_get(m, place, len < UINT32_MAX ? (uint32_t)len : UINT32_MAX);

        emu_pattern_bytes(&r, 0, out, r.len);
        place += r.len;
        out += r.len;
        len -= r.len;
    }
}

void emu_pattern_write(struct emu_pattern *m, uint64_t place, const void *from, size_t len)
{
    const unsigned char *in = from;

    while (len) {
        struct emu_run r = {EMU_PATTERN_RAW, 0, len < 8 ? (uint32_t)len : 8};

        for (uint32_t i = 0; i < r.len; i++)
            r.pos |= (uint64_t)in[i] << (8 * i);
        if (r.pos == 0)
            r.tag = EMU_PATTERN_ZERO;
        emu_pattern_put(m, place, &r, 0, r.len);
        place += r.len;
        in += r.len;
        len -= r.len;
    }
}

/* ---- a program's side ---------------------------------------------------------------------------------------------------- */

int emu_pattern_fill(void *addr, size_t len, uint64_t tag)
{
    uint64_t place;
    struct emu_pattern *m = emu_pattern_find(addr, len, &place);

    if (!m || tag == EMU_PATTERN_RAW)
        return -EINVAL;
    if (len)
        emu_pattern_set(m, (struct emu_extent){place, len, tag, 0});
    return m->lost ? -ENOMEM : 0;
}

/** Bytes of a run that are not positions pos and on of the tag. Runs are compared by where they came from, raw bytes by
 *  value. */
static uint64_t emu_pattern_differ(const struct emu_run *r, uint64_t tag, uint64_t pos)
{
    unsigned char raw[8];
    uint64_t n = 0;

    if (r->tag == EMU_PATTERN_RAW) {
        emu_pattern_bytes(r, 0, raw, r->len);
        for (uint32_t i = 0; i < r->len; i++)
            n += raw[i] != emu_pattern_byte(tag, pos + i);
        return n;
    }
    return r->tag == tag && (tag == EMU_PATTERN_ZERO || r->pos == pos) ? 0 : r->len;
}

uint64_t emu_pattern_diff(const void *addr, size_t len, uint64_t tag)
{
    uint64_t place, n = 0;
    struct emu_pattern *m = emu_pattern_find(addr, len, &place);

    if (!m || m->lost)
        return len;
    for (uint64_t pos = 0; pos < len;) {
        struct emu_run r = emu_pattern_get(m, place + pos, len - pos < UINT32_MAX ? (uint32_t)(len - pos) : UINT32_MAX);

        n += emu_pattern_differ(&r, tag, pos);
        pos += r.len;
    }
    return n;
}

size_t emu_pattern_runs(const void *addr)
{
    uint64_t place;
    const struct emu_pattern *m = emu_pattern_find(addr, 1, &place);

    return m ? m->count : 0;
}
