/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_place.c - asks a device whether it may place packets out of order.
 * May not know rails or lanes. Called by src/rail/rail_open.c; next: verbs_obj.c
 *
 * The answer is in mlx5dv_query_device() of rdma-core's mlx5dv.h (57 or newer), of which what is needed is declared here, so
 * that any build machine's header will do.
 */
#include "verbs_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERBS_MLX5_LIBRARY  "libmlx5.so.1"
#define VERBS_MLX5_FUNCTION "mlx5dv_query_device"
#define VERBS_MLX5_OOO      (UINT64_C(1) << 16) /* MLX5DV_CONTEXT_MASK_OOO_RECV_WRS */

/* struct mlx5dv_context. A library fills the fields that it is asked for and knows; what later ones add lies behind. */
struct verbs_mlx5_context {
    uint8_t version;
    uint64_t flags;
    uint64_t comp_mask; /* in: what is asked; out: what is answered */
    uint8_t unused[152];
    uint32_t ooo_max_rc; /* receives of an RC QP that may be placed out of order */
    uint8_t rest[332];
};

_Static_assert(offsetof(struct verbs_mlx5_context, comp_mask) == 16, "as in mlx5dv.h");
_Static_assert(offsetof(struct verbs_mlx5_context, ooo_max_rc) == 176, "as in mlx5dv.h");
_Static_assert(sizeof(struct verbs_mlx5_context) == 512, "room for what is added to it");

typedef int (*verbs_mlx5_query)(struct ibv_context *context, struct verbs_mlx5_context *out);

/* By its name, or where an administrator has given it another one by its driver. */
static bool verbs_dev_is_mlx5(const struct verbs_dev *dev)
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

/* The function: of the library in use, which may be its own provider, else of the one that knows mlx5 devices. The
 * latter is in use as the device's provider already; it stays in the process as providers do. */
static verbs_mlx5_query verbs_mlx5_find(const struct verbs_dev *dev)
{
    verbs_mlx5_query query = NULL;
    void *address = dlsym(dev->v->library, VERBS_MLX5_FUNCTION);
    if (!address && verbs_dev_is_mlx5(dev)) {
        void *library = dlopen(VERBS_MLX5_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        address = library ? dlsym(library, VERBS_MLX5_FUNCTION) : NULL;
        if (library)
            dlclose(library);
    }
    /* ISO C has no cast from an object to a function pointer; POSIX says that their bytes are the same. */
    memcpy(&query, &address, sizeof(query));
    return query;
}

enum verbs_placement verbs_dev_placement(struct verbs_dev *dev)
{
    struct verbs_mlx5_context answer = {.comp_mask = VERBS_MLX5_OOO};
    verbs_mlx5_query query = verbs_mlx5_find(dev);
    if (!query || query(dev->context, &answer) != 0 || !(answer.comp_mask & VERBS_MLX5_OOO))
        return VERBS_PLACEMENT_SILENT;
    return answer.ooo_max_rc > 0 ? VERBS_PLACEMENT_UNORDERED : VERBS_PLACEMENT_ORDERED;
}
