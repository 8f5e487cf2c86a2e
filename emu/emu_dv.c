/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_dv.c - what mlx5's direct verbs can ask of a device here: whether queue pairs may place data out of order
 * (mlx5dv_query_device(3), ooo_recv_wrs_caps), and how many wires a bond has (num_lag_ports). Offsets are those of struct
 * mlx5dv_context in rdma-core 57 and later; older headers lack fields, so nothing is written there unless it was asked for.
 * Called by programs. What they can say of queue pairs on a bond: emu_lag.c.
 */
#include "emu_abi.h"
#include "emu_unkind.h"

#include <errno.h>
#include <string.h>

enum {
    EMU_DV_FLAGS = 8,
    EMU_DV_COMP_MASK = 16,
    EMU_DV_LAG_PORTS = 96,
    EMU_DV_LAG_ASKED = 1 << 9,
    EMU_DV_OOO_MAX_RC = 176, /* how many receives an RC queue pair may have outstanding when it places out of order */
    EMU_DV_OOO_ASKED = 1 << 16
};

/** mlx5dv_query_device(3). context: of the emulator; out: struct mlx5dv_context. */
EMU_EXPORT int mlx5dv_query_device(struct ibv_context *context, void *out);

EMU_EXPORT int mlx5dv_query_device(struct ibv_context *context, void *out)
{
    struct emu_fabric *f = emu_fabric_of(context);
    uint64_t asked, zero = 0;
    uint8_t wires = (uint8_t)f->spec.wires;
    uint32_t max_rc = f->spec.unkind & EMU_UNKIND_OOO ? EMU_MAX_WR : 0;

    if (emu_enter(f, EMU_COST_QUERY, "mlx5dv_query_device"))
        return ENOTSUP;
    if (f->spec.unkind & EMU_UNKIND_OOO_SILENT)
        return emu_leave(f, EOPNOTSUPP);
    memcpy(&asked, (const char *)out + EMU_DV_COMP_MASK, sizeof(asked));
    asked &= EMU_DV_OOO_ASKED | EMU_DV_LAG_ASKED;
    memcpy((char *)out + EMU_DV_FLAGS, &zero, sizeof(zero));
    memcpy((char *)out + EMU_DV_COMP_MASK, &asked, sizeof(asked));
    if (asked & EMU_DV_OOO_ASKED)
        memcpy((char *)out + EMU_DV_OOO_MAX_RC, &max_rc, sizeof(max_rc));
    if (asked & EMU_DV_LAG_ASKED)
        memcpy((char *)out + EMU_DV_LAG_PORTS, &wires, sizeof(wires));
    return emu_leave(f, 0);
}
