/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_regions.c - own regions by address. The proxy looks into the table while the host's threads register, and waits for
 * nobody: a table never changes, a new one takes its place, and the old one is freed once no reader is left in it.
 * May not register. Called by nvshmem_mem.c (changes) and nvshmem_rma.c, nvshmem_fetch.c (look-ups).
 */
#include "nvshmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct nvs_table {
    struct nvs_table *older; /* in regions->old */
    size_t count;
    struct nvs_region item[]; /* by start */
};

/* The last that starts at or below addr, or -1. */
static ptrdiff_t nvs_table_at(const struct nvs_table *t, uintptr_t addr)
{
    size_t low = 0, high = t->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (t->item[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return (ptrdiff_t)low - 1;
}

static bool nvs_table_find(const struct nvs_table *t, uintptr_t addr, uint64_t len, struct nvs_region *out)
{
    ptrdiff_t i = t ? nvs_table_at(t, addr) : -1;

    /* Ranges may overlap: a longer one may start further to the front. */
    for (; i >= 0 && t->item[i].reach > addr; i--) {
        if (t->item[i].end > addr && t->item[i].end - addr >= len) {
            *out = t->item[i];
            return true;
        }
    }
    return false;
}

bool nvs_regions_find(struct nvs_regions *r, unsigned channel, const void *addr, uint64_t len, struct nvs_region *out)
{
    uint32_t *readers = &r->readers[channel][0];

    /* Either the writer sees this reader, or the reader sees the writer's new table: both are in one order with the exchange. */
    __atomic_fetch_add(readers, 1, __ATOMIC_SEQ_CST);
    bool found = nvs_table_find(__atomic_load_n(&r->table, __ATOMIC_SEQ_CST), (uintptr_t)addr, len, out);
    __atomic_fetch_sub(readers, 1, __ATOMIC_RELEASE);
    return found;
}

/* Frees the old tables if nobody can be in one of them; else a later change will. */
static void nvs_regions_sweep(struct nvs_regions *r)
{
    for (unsigned i = 0; i < NVS_CHANNELS; i++) {
        if (__atomic_load_n(&r->readers[i][0], __ATOMIC_SEQ_CST))
            return;
    }
    while (r->old) {
        struct nvs_table *older = r->old->older;

        free(r->old);
        r->old = older;
    }
}

static void nvs_regions_exchange(struct nvs_regions *r, struct nvs_table *fresh)
{
    struct nvs_table *was = r->table;

    __atomic_store_n(&r->table, fresh, __ATOMIC_SEQ_CST);
    if (was) {
        was->older = r->old;
        r->old = was;
    }
    nvs_regions_sweep(r);
}

/* A table of the current one's size and `more`, empty. */
static struct nvs_table *nvs_table_new(const struct nvs_regions *r, size_t more)
{
    size_t count = (r->table ? r->table->count : 0) + more;

    return calloc(1, sizeof(struct nvs_table) + count * sizeof(struct nvs_region));
}

static void nvs_table_append(struct nvs_table *t, const struct nvs_region *region)
{
    uintptr_t before = t->count ? t->item[t->count - 1].reach : 0;
    struct nvs_region *item = &t->item[t->count++];

    *item = *region;
    item->reach = before > region->end ? before : region->end;
}

int nvs_regions_add(struct nvs_regions *r, const struct nvs_region *region)
{
    struct nvs_table *fresh = nvs_table_new(r, 1);
    bool placed = false;

    if (!fresh)
        return -ENOMEM;
    for (size_t i = 0; r->table && i < r->table->count; i++) {
        if (!placed && region->start < r->table->item[i].start) {
            nvs_table_append(fresh, region);
            placed = true;
        }
        nvs_table_append(fresh, &r->table->item[i]);
    }
    if (!placed)
        nvs_table_append(fresh, region);
    nvs_regions_exchange(r, fresh);
    return 0;
}

/* Its index, or -1. */
static ptrdiff_t nvs_table_by_key(const struct nvs_table *t, const void *key_bytes)
{
    for (size_t i = 0; t && i < t->count; i++) {
        if (memcmp(t->item[i].key->bytes, key_bytes, sizeof(t->item[i].key->bytes)) == 0)
            return (ptrdiff_t)i;
    }
    return -1;
}

int nvs_regions_remove(struct nvs_regions *r, const void *key_bytes, struct nvs_region *out)
{
    ptrdiff_t gone = nvs_table_by_key(r->table, key_bytes);
    struct nvs_table *fresh;

    if (gone < 0)
        return -ENOENT;
    fresh = nvs_table_new(r, 0);
    if (!fresh)
        return -ENOMEM;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)r->table->count; i++) {
        if (i != gone)
            nvs_table_append(fresh, &r->table->item[i]);
    }
    *out = r->table->item[gone];
    nvs_regions_exchange(r, fresh);
    return 0;
}

void nvs_regions_free(struct nvs_regions *r)
{
    for (size_t i = 0; r->table && i < r->table->count; i++)
        free(r->table->item[i].key);
    free(r->table);
    r->table = NULL;
    nvs_regions_sweep(r);
}
