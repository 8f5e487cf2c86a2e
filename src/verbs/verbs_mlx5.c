/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_mlx5.c - what only mlx5's direct verbs can say and do: whether a device may place packets out of order, how many wires a bond
 * has, and on which wire and with which source port a QP sends.
 * May not know rails or lanes, nor decide. Called by src/rail (rail_open.c, rail_lag.c, rail_conn.c); next: verbs_obj.c
 *
 * Prototypes and struct are of rdma-core's manual pages (mlx5dv_query_device(3), mlx5dv_modify_qp_lag_port(3),
 * mlx5dv_modify_qp_udp_sport(3)) and its mlx5dv.h (57 or newer); what is needed is declared here, so that any build machine will do.
 * Every function may be missing: that is an answer, -EOPNOTSUPP.
 */
#include "verbs_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERBS_MLX5_LIBRARY "libmlx5.so.1"
#define VERBS_MLX5_LAG     (UINT64_C(1) << 9)  /* MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS */
#define VERBS_MLX5_OOO     (UINT64_C(1) << 16) /* MLX5DV_CONTEXT_MASK_OOO_RECV_WRS */

/* struct mlx5dv_context. A library fills the fields that it is asked for and knows; what later ones add lies behind. */
struct verbs_mlx5_context {
    uint8_t version;
    uint64_t flags;
    uint64_t comp_mask; /* in: what is asked; out: what is answered */
    uint8_t unused[72];
    uint8_t num_lag_ports;
    uint8_t unused_more[79];
    uint32_t ooo_max_rc; /* receives of an RC QP that may be placed out of order */
    uint8_t rest[332];
};

_Static_assert(offsetof(struct verbs_mlx5_context, comp_mask) == 16, "as in mlx5dv.h");
_Static_assert(offsetof(struct verbs_mlx5_context, num_lag_ports) == 96, "as in mlx5dv.h");
_Static_assert(offsetof(struct verbs_mlx5_context, ooo_max_rc) == 176, "as in mlx5dv.h");
_Static_assert(sizeof(struct verbs_mlx5_context) == 512, "room for what is added to it");

/* By its name, or where an administrator has given it another one by its driver. */
static bool verbs_mlx5_is(const struct verbs_dev *dev)
{
    char link[VERBS_NAME_SIZE + 64], target[512];
    if (strncmp(dev->name, "mlx5_", 5) == 0)
        return true;
    snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device/driver", dev->name);
    ssize_t n = readlink(link, target, sizeof(target) - 1);
    if (n < 0)
        return false;
    target[n] = '\0';
    const char *driver = strrchr(target, '/');
    return driver && strcmp(driver, "/mlx5_core") == 0;
}

/* A function: of the library in use, which may be its own provider, else of the one that knows mlx5 devices. The latter is in
 * use as the device's provider already; it stays in the process as providers do. *out, of a function pointer's size, is NULL
 * where there is none. */
static void verbs_mlx5_find(const struct verbs_dev *dev, const char *name, void *out)
{
    void *address = dlsym(dev->v->library, name);
    if (!address && verbs_mlx5_is(dev)) {
        void *library = dlopen(VERBS_MLX5_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        address = library ? dlsym(library, name) : NULL;
        if (library)
            dlclose(library);
    }
    /* ISO C has no cast from an object to a function pointer; POSIX says that their bytes are the same. */
    memcpy(out, &address, sizeof(address));
}

void verbs_dev_about(struct verbs_dev *dev, struct verbs_about *out)
{
    int (*query)(struct ibv_context * context, struct verbs_mlx5_context * out);
    struct verbs_mlx5_context answer = {.comp_mask = VERBS_MLX5_OOO | VERBS_MLX5_LAG};
    *out = (struct verbs_about){.placement = VERBS_PLACEMENT_SILENT};
    verbs_mlx5_find(dev, "mlx5dv_query_device", &query);
    if (!query || query(dev->context, &answer) != 0)
        return;
    if (answer.comp_mask & VERBS_MLX5_OOO)
        out->placement = answer.ooo_max_rc > 0 ? VERBS_PLACEMENT_UNORDERED : VERBS_PLACEMENT_ORDERED;
    if (answer.comp_mask & VERBS_MLX5_LAG)
        out->wires = answer.num_lag_ports > 1 ? answer.num_lag_ports : 1;
}

int verbs_qp_wire(struct verbs_qp *qp, unsigned wire)
{
    int (*modify)(struct ibv_qp * qp, uint8_t port_num);
    verbs_mlx5_find(qp->dev, "mlx5dv_modify_qp_lag_port", &modify);
    return modify && wire <= UINT8_MAX ? verbs_result(modify(qp->ibv, (uint8_t)wire)) : -EOPNOTSUPP;
}

int verbs_qp_wire_used(struct verbs_qp *qp, unsigned *out)
{
    int (*query)(struct ibv_qp * qp, uint8_t * port_num, uint8_t * active_port_num);
    uint8_t asked = 0, active = 0;
    verbs_mlx5_find(qp->dev, "mlx5dv_query_qp_lag_port", &query);
    int rc = query ? verbs_result(query(qp->ibv, &asked, &active)) : -EOPNOTSUPP;
    if (!rc)
        *out = active;
    return rc;
}

int verbs_qp_sport(struct verbs_qp *qp, uint16_t sport)
{
    int (*modify)(struct ibv_qp * qp, uint16_t udp_sport);
    verbs_mlx5_find(qp->dev, "mlx5dv_modify_qp_udp_sport", &modify);
    return modify ? verbs_result(modify(qp->ibv, sport)) : -EOPNOTSUPP;
}
