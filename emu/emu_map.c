/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_map.c - QPN and key tables of a device. Knows nothing of what it holds. Called by emu_qp.c, emu_mr.c, emu_link.c.
 */
#include "emu_map.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t emu_map_home(const struct emu_map *m, uint32_t key)
{
    return (key * 0x9e3779b1u) >> (32 - __builtin_ctz(m->size));
}

void *emu_map_get(const struct emu_map *m, uint32_t key)
{
    if (m->size == 0 || key == 0)
        return NULL;
    for (uint32_t i = emu_map_home(m, key);; i = (i + 1) & (m->size - 1)) {
        if (m->slot[i].key == key)
            return m->slot[i].value;
        if (m->slot[i].key == 0)
            return NULL;
    }
}

void emu_map_soon(const struct emu_map *m, uint32_t key)
{
    if (m->size)
        __builtin_prefetch(&m->slot[emu_map_home(m, key)]);
}

static void emu_map_insert(struct emu_map *m, uint32_t key, void *value)
{
    uint32_t i = emu_map_home(m, key);

    while (m->slot[i].key != 0)
        i = (i + 1) & (m->size - 1);
    m->slot[i] = (struct emu_map_slot){key, value};
    m->used++;
}

int emu_map_put(struct emu_map *m, uint32_t key, void *value)
{
    if (m->used * 2 >= m->size) {
        struct emu_map bigger = {.size = m->size ? m->size * 2 : 16};

        bigger.slot = calloc(bigger.size, sizeof(*bigger.slot));
        if (!bigger.slot)
            return -ENOMEM;
        for (uint32_t i = 0; i < m->size; i++) {
            if (m->slot[i].key != 0)
                emu_map_insert(&bigger, m->slot[i].key, m->slot[i].value);
        }
        free(m->slot);
        *m = bigger;
    }
    emu_map_insert(m, key, value);
    return 0;
}

void emu_map_del(struct emu_map *m, uint32_t key)
{
    uint32_t i, hole;

    if (!emu_map_get(m, key))
        return;
    for (i = emu_map_home(m, key); m->slot[i].key != key;)
        i = (i + 1) & (m->size - 1);
    /* Close the gap, so that no tombstones are needed: pull back each follower that may not stay behind a hole. */
    hole = i;
    for (i = (i + 1) & (m->size - 1); m->slot[i].key != 0; i = (i + 1) & (m->size - 1)) {
        uint32_t home = emu_map_home(m, m->slot[i].key);

        if (((i - home) & (m->size - 1)) >= ((i - hole) & (m->size - 1))) {
            m->slot[hole] = m->slot[i];
            hole = i;
        }
    }
    m->slot[hole].key = 0;
    m->used--;
}

void emu_map_fini(struct emu_map *m)
{
    free(m->slot);
    *m = (struct emu_map){0};
}
