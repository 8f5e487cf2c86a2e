/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_map.h - a hash map from 32-bit numbers (QPNs, keys) to pointers. Open addressing; the key 0 is not allowed.
 */
#ifndef EMU_MAP_H
#define EMU_MAP_H

#include <stdint.h>

struct emu_map_slot {
    uint32_t key;
    void *value;
};

struct emu_map {
    struct emu_map_slot *slot;
    uint32_t size; /* a power of two, or 0 */
    uint32_t used;
};

/** The value, or NULL. */
void *emu_map_get(const struct emu_map *m, uint32_t key);
/** Fetches what emu_map_get() will look at first. */
void emu_map_soon(const struct emu_map *m, uint32_t key);
/** Adds a new key. 0, or -ENOMEM. */
int emu_map_put(struct emu_map *m, uint32_t key, void *value);
/** Removes a key; nothing happens if it is not there. */
void emu_map_del(struct emu_map *m, uint32_t key);
/** Frees the table, not the values. */
void emu_map_fini(struct emu_map *m);

#endif
