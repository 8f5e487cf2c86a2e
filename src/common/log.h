/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - log lines with a level, to a callback that belongs to one context. Nothing here is global.
 */
#ifndef LOG_H
#define LOG_H

#include "common.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/** Where lines go. Embedded in its owner; plain data. */
struct log {
    enum log_level level;                               /**< the last level that is shown */
    void (*fn)(void *arg, int level, const char *line); /**< NULL: stderr. No newline in line. */
    void *arg;
};

/** Limits one message on the data path to a line a second. Zeroed at first. */
struct log_limit {
    uint64_t next_ns;
    uint64_t held_back;
};

/** Writes one line of at most 1023 bytes. Keeps errno. log may be NULL: silence. Thread rules: those of log->fn. */
void log_write(const struct log *log, enum log_level level, const char *format, ...) ATTR_PRINTF(3, 4);

/** As log_write(), but at most once a second of now_ns; the next line says how many were held back. */
void log_write_limited(const struct log *log, struct log_limit *limit, uint64_t now_ns, enum log_level level,
                       const char *format, ...) ATTR_PRINTF(5, 6);

#endif
