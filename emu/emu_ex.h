/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ex.h - the extended way of making queue pairs and posting to them, as the rest of the emulator sees it.
 */
#ifndef EMU_EX_H
#define EMU_EX_H

#include "emu_abi.h"

struct emu_ex;

/** ibv_create_qp_ex(3). */
struct ibv_qp *emu_ex_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *a);
/** Frees what requests are put together in. NULL is allowed. */
void emu_ex_free(struct emu_ex *x);

#endif
