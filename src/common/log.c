/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - formats log lines and hands them to their context's callback.
 * May not keep state of its own. Called by every layer, where an error is first known.
 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define LOG_LINE_BYTES      1024
#define LOG_LIMIT_PERIOD_NS 1000000000u

static const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    return names[level];
}

static void log_emit(const struct log *log, enum log_level level, const char *line)
{
    if (log->fn)
        log->fn(log->arg, level, line);
    else
        fprintf(stderr, "braid: %s: %s\n", log_level_name(level), line);
}

void log_write(const struct log *log, enum log_level level, const char *format, ...)
{
    int saved = errno;
    if (log && level <= log->level) {
        char line[LOG_LINE_BYTES];
        va_list args;
        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        log_emit(log, level, line);
    }
    errno = saved;
}

void log_write_limited(const struct log *log, struct log_limit *limit, uint64_t now_ns, enum log_level level,
                       const char *format, ...)
{
    if (!log || level > log->level)
        return;
    if (now_ns < limit->next_ns) {
        limit->held_back++;
        return;
    }
    int saved = errno;
    char line[LOG_LINE_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (limit->held_back && n >= 0 && (size_t)n < sizeof(line))
        snprintf(line + n, sizeof(line) - (size_t)n, " (and %llu more like it)", (unsigned long long)limit->held_back);
    limit->held_back = 0;
    limit->next_ns = now_ns + LOG_LIMIT_PERIOD_NS;
    log_emit(log, level, line);
    errno = saved;
}
