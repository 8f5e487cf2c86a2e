/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_soon.h - what the next events will look at. Included by emu_sim.c.
 */
#ifndef EMU_SOON_H
#define EMU_SOON_H

#include "emu_wheel.h"

/** The scheduler comes to nanosecond t: fetches into the cache what those after it will need. Changes nothing. */
void emu_soon_fetch(const struct emu_wheel *w, uint64_t t);

#endif
