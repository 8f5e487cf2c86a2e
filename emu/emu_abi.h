/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_abi.h - what the exported functions share: charge the call, take the lock, leave again.
 */
#ifndef EMU_ABI_H
#define EMU_ABI_H

#include "emu.h"

/** Charges a call to its caller, notes it for explanations, then takes the fabric's lock. -ENOTSUP outside a PE. */
int emu_enter(struct emu_fabric *f, enum emu_cost cost, const char *what);
/** Releases the lock; gives rc back and keeps errno. */
int emu_leave(struct emu_fabric *f, int rc);
/** The fabric behind a context. */
struct emu_fabric *emu_fabric_of(struct ibv_context *c);
/** Events that were fetched have to be acknowledged before their object may go: the call waits (ibv_get_cq_event(3)). */
void emu_abi_wait_acks(struct emu_fabric *f, const uint32_t *given, const uint32_t *acked);
/** Has fn(arg) called where data may be moved (struct emu_clock). With the lock; returns what fn does. */
int emu_abi_run(struct emu_fabric *f, int (*fn)(void *arg), void *arg);
/** ibv_post_send(3). */
int emu_abi_post_list(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/** Fills in the data path's function pointers. */
void emu_abi_fill_ops(struct ibv_context_ops *ops);

#endif
