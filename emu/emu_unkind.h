/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_unkind.h - the switches of unkind=LIST: what real devices do not promise, done on purpose. Names, and the random
 * delays that go with them. Used by emu_spec.c (names), emu_store.c and emu_word.c (delays), emu_dev.c (slow calls).
 */
#ifndef EMU_UNKIND_H
#define EMU_UNKIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "emu_rng.h"

enum emu_unkind {
    EMU_UNKIND_RELAXED = 1,    /* WRITEs through relaxed keys become visible in any order */
    EMU_UNKIND_OOO = 2,        /* all WRITEs of a queue pair do; the device says so when asked */
    EMU_UNKIND_OOO_SILENT = 4, /* with OOO: the device does not say so */
    EMU_UNKIND_ACKVIS = 8,     /* acknowledgements leave before bytes are visible */
    EMU_UNKIND_ATOMICS = 16,   /* atomics are atomic among those of one device only, and take a while */
    EMU_UNKIND_SLOWCTL = 32,   /* control calls take a random multiple of their time */
    EMU_UNKIND_RDSTALL = 64,   /* a responder answers READs and atomics of a queue pair one at a time, with pauses */
    EMU_UNKIND_ALL = 1 | 2 | 8 | 16 | 32 | 64
};

/** The switches that "none", "all" or a list such as "relaxed+ooo-silent" names. False where a word is not known; then
 *  *out is untouched. */
bool emu_unkind_parse(const char *text, unsigned *out);
/** Writes the switches so that they read back as the same. */
void emu_unkind_print(FILE *f, unsigned set);
/** Every word that may stand in a list, for messages. */
extern const char emu_unkind_words[];

/** How long a write takes that need not keep its place: mostly up to 2 us, sometimes up to 20. ns. */
uint64_t emu_unkind_stray(struct emu_rng *r);
/** How long a write of a device is invisible after it was acknowledged. scale: emu_unkind_scale() of that device. ns. */
uint64_t emu_unkind_late(struct emu_rng *r, uint64_t scale);
/** A device's own scale of that delay, by seed and number: 100 ns to 25.6 us. */
uint64_t emu_unkind_scale(uint64_t seed, int device);
/** How long an atomic holds a word between reading and writing it. ns. */
uint64_t emu_unkind_hold(struct emu_rng *r);
/** The pause between two answers of a queue pair. ns. */
uint64_t emu_unkind_pause(struct emu_rng *r);
/** What a control call costs that should cost ns: up to 32 times that, at most 1 ms unless it cost more anyway. */
uint64_t emu_unkind_slow(struct emu_rng *r, uint64_t ns);

#endif
