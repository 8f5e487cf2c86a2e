/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_cxx.h - containers of the real C++ library, for tests in C that look into them as the plugin does. Made by
 * plugin_cxx.cpp, used by test_plugin.c.
 */
#ifndef PLUGIN_CXX_H
#define PLUGIN_CXX_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A std::unordered_map<void *, void *> of so many entries. */
struct host_map *host_map_new(size_t entries);
void host_map_add(struct host_map *m, void *key, void *value);
void host_map_free(struct host_map *m);
/** The container itself. */
const void *host_map_raw(const struct host_map *m);
/** How many of its entries nvs_map_find() gets wrong. */
size_t host_map_wrong(const struct host_map *m, size_t entries);
/** How many things nvs_vector_count() gets wrong. */
size_t host_vector_wrong(void);

#ifdef __cplusplus
}
#endif
#endif
