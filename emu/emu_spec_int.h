/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_spec_int.h - reading a FABRIC SPEC, as its two files see it: emu_spec.c (words) and emu_spec_check.c (relations).
 */
#ifndef EMU_SPEC_INT_H
#define EMU_SPEC_INT_H

#include "emu_spec.h"

/** Where in the text an error is, for messages. */
struct emu_spec_at {
    const char *text;
    const char *pos;
    const char *file; /* whose text it is, or NULL */
    char *why;
    size_t why_len;
};

/** Writes the position and what was seen and expected; returns -EINVAL. */
int emu_spec_fail(const struct emu_spec_at *at, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The first word at or behind pos, comments skipped, and its length; NULL where there is none. */
const char *emu_spec_word(const char *pos, size_t *len);
/** Relations between keys, once all are known; fills in what follows from others. 0, or -EINVAL with the reason. */
int emu_spec_whole(const struct emu_spec_at *at, struct emu_spec *s);

#endif
