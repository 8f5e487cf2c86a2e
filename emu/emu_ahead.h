/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ahead.h - bytes of messages from memory into packets; those from GPU memory are fetched ahead. Included by emu_ahead.c,
 * emu_req.c, emu_reply.c and emu_qp.c.
 */
#ifndef EMU_AHEAD_H
#define EMU_AHEAD_H

#include "emu.h"

/** As emu_mr_gather() of the request that the queue pair is sending, at its byte off. */
bool emu_ahead_gather(struct emu_qp *qp, const struct emu_wqe *w, uint64_t off, struct emu_payload *to);
/** The next bytes of a READ's answer. False: they cannot be had. */
bool emu_ahead_read(struct emu_qp *qp, const struct emu_mr *mr, const struct emu_reply *r, struct emu_payload *to);
/** What was fetched for this queue pair is not wanted any more. */
void emu_ahead_forget(struct emu_qp *qp);

#endif
