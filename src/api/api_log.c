/* SPDX-License-Identifier: Apache-2.0 */
/* api_log.c - errors of the data path, limited so that a caller's retry loop cannot flood the log. */
#include "api.h"

#include <stdarg.h>
#include <stdio.h>

void api_log_limited(struct braid_channel *ch, enum api_log_kind kind, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    log_write_limited(&ch->braid->log, &ch->limits[kind], clock_now(&ch->braid->clock), LOG_LEVEL_ERROR, "%s", text);
}
