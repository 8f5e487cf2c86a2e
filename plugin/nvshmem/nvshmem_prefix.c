/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_prefix.c - NVSHMEM_HCA_PREFIX: devices by a part of their name. libbraid limits its choice by exact names, so the
 * names of this host's devices are gone through here. Called by nvshmem_env.c.
 */
#include "nvshmem.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A folder's entries are devices, but for its own two. */
static int nvs_prefix_device(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int nvs_prefix_names(const char *prefix, const char *root, char out[NVS_PORTS_BYTES])
{
    bool exclude = *prefix == '^', kept;
    struct dirent **entry;
    char path[512];
    size_t used = 0;
    int n, left_out = 0;

    snprintf(path, sizeof(path), "%s/sys/class/infiniband", root ? root : "");
    n = scandir(path, &entry, nvs_prefix_device, alphasort);
    if (n < 0)
        return -errno;
    out[0] = '\0';
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;

        kept = (strstr(name, prefix + exclude) != NULL) != exclude && used + strlen(name) + 2 <= NVS_PORTS_BYTES;
        left_out += !kept;
        if (kept)
            used += (size_t)snprintf(out + used, NVS_PORTS_BYTES - used, "%s%s", used ? "," : "", name);
        free(entry[i]);
    }
    free(entry);
    return left_out;
}
