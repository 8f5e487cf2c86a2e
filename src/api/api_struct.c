/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_struct.c - structs that begin with their size, as callers built against an older or newer braid.h hand them in.
 * May not know what is in them. Called by api_open.c, api_peer.c and api_mem.c.
 */
#include "api.h"

#include <errno.h>
#include <string.h>

/* Larger than any struct will ever be: a size beyond it is garbage, and nothing behind it may be read. */
#define API_STRUCT_MAX 4096u

/* Whether a shorter struct ends where a field ends. */
static bool api_struct_ends(const struct api_struct *layout, size_t size)
{
    for (unsigned i = 0; i < layout->count; i++) {
        if (layout->ends[i] == size)
            return true;
    }
    return size >= layout->size;
}

int api_struct_read(const struct log *log, const struct api_struct *layout, const void *given, void *out)
{
    const unsigned char *bytes = given;
    size_t size;
    memcpy(&size, given, sizeof(size));
    if (size > API_STRUCT_MAX || !api_struct_ends(layout, size)) {
        log_write(log, LOG_LEVEL_ERROR, "%s.size is %zu: set it to sizeof(struct %s), here %zu", layout->name, size,
                  layout->name, layout->size);
        return -EINVAL;
    }
    for (size_t i = layout->size; i < size; i++) {
        if (bytes[i]) {
            log_write(log, LOG_LEVEL_ERROR, "%s has a field at byte %zu that braid %s does not know: leave it zero",
                      layout->name, i, braid_version());
            return -EINVAL;
        }
    }
    memcpy(out, given, min_u64(size, layout->size));
    return 0;
}
