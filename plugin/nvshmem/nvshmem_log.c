/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_log.c - lines for the user, libbraid's among them, and what the host is told instead of a negative errno.
 * May not decide what is worth a line. Called by every file of the plugin.
 */
#include "nvshmem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define NVS_LINE_BYTES 1200

void nvs_log_line(void *arg, enum braid_log_level level, const char *line)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    const struct nvs_log *log = arg;
    char pe[24] = "";

    if (log->fn) {
        log->fn(log->arg, level, line);
        return;
    }
    if (log->pe >= 0)
        snprintf(pe, sizeof(pe), "PE %d: ", log->pe);
    fprintf(stderr, "braid: %s: %s%s\n", names[level], pe, line);
}

void nvs_log(const struct nvs_log *log, enum braid_log_level level, const char *format, ...)
{
    char line[NVS_LINE_BYTES];
    va_list args;

    if (level > log->level)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    nvs_log_line((struct nvs_log *)(uintptr_t)log, level, line);
}

int nvs_status(int rc)
{
    switch (rc) {
    case 0:
        return NVS_SUCCESS;
    case -ENOMEM:
        return NVS_OUT_OF_MEMORY;
    case -EINVAL:
    case -ERANGE:
    case -EPROTO:
        return NVS_INVALID_VALUE;
    case -ENOTSUP:
        return NVS_NOT_SUPPORTED;
    default:
        return NVS_INTERNAL;
    }
}
