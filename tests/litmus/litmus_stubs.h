/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_stubs.h - leaves out settings that this libbraid does not have. Nothing else is stubbed any more.
 */
#ifndef LITMUS_STUBS_H
#define LITMUS_STUBS_H

#include <string.h>

#include <braid/braid.h>

static inline int litmus_stub_unknown(const char *setting)
{
    struct braid_option_row row;
    size_t len = strcspn(setting, "=");

    for (size_t i = 0; braid_option_at(i, &row) == 0; i++) {
        if (strlen(row.name) == len && strncmp(row.name, setting, len) == 0)
            return 0;
    }
    return 1;
}

#endif
