/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_load.c - opens libibverbs by name and looks its functions up, each under the version node that its ABI has had
 * since (libibverbs.map.in of rdma-core). May not call any of them. Called by api_open.c; next: verbs_dev.c
 */
#include "verbs_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERBS_LIBRARY "libibverbs.so.1"

struct verbs_symbol {
    const char *name;
    const char *node;
    size_t offset;
    bool optional;
};

#define VERBS_SYMBOL(field, node)                                                                                      \
    {                                                                                                                  \
        "ibv_" #field, node, offsetof(struct verbs, field), false                                                      \
    }

static const struct verbs_symbol verbs_symbols[] = {
    VERBS_SYMBOL(get_device_list, "IBVERBS_1.1"),
    VERBS_SYMBOL(free_device_list, "IBVERBS_1.1"),
    VERBS_SYMBOL(get_device_name, "IBVERBS_1.1"),
    VERBS_SYMBOL(open_device, "IBVERBS_1.1"),
    VERBS_SYMBOL(close_device, "IBVERBS_1.1"),
    VERBS_SYMBOL(query_device, "IBVERBS_1.1"),
    VERBS_SYMBOL(query_port, "IBVERBS_1.1"),
    VERBS_SYMBOL(query_gid, "IBVERBS_1.1"),
    {"_ibv_query_gid_ex", "IBVERBS_1.11", offsetof(struct verbs, query_gid_ex), true},
    VERBS_SYMBOL(get_async_event, "IBVERBS_1.1"),
    VERBS_SYMBOL(ack_async_event, "IBVERBS_1.1"),
    VERBS_SYMBOL(event_type_str, "IBVERBS_1.1"),
    VERBS_SYMBOL(wc_status_str, "IBVERBS_1.1"),
    VERBS_SYMBOL(alloc_pd, "IBVERBS_1.1"),
    VERBS_SYMBOL(dealloc_pd, "IBVERBS_1.1"),
    VERBS_SYMBOL(reg_mr, "IBVERBS_1.1"),
    VERBS_SYMBOL(reg_mr_iova2, "IBVERBS_1.8"),
    {"ibv_reg_dmabuf_mr", "IBVERBS_1.12", offsetof(struct verbs, reg_dmabuf_mr), true},
    VERBS_SYMBOL(dereg_mr, "IBVERBS_1.1"),
    VERBS_SYMBOL(create_cq, "IBVERBS_1.1"),
    VERBS_SYMBOL(destroy_cq, "IBVERBS_1.1"),
    VERBS_SYMBOL(create_qp, "IBVERBS_1.1"),
    VERBS_SYMBOL(modify_qp, "IBVERBS_1.1"),
    VERBS_SYMBOL(destroy_qp, "IBVERBS_1.1"),
};

static int verbs_load_symbols(struct verbs *v)
{
    for (size_t i = 0; i < sizeof(verbs_symbols) / sizeof(verbs_symbols[0]); i++) {
        const struct verbs_symbol *s = &verbs_symbols[i];
        void *address = dlvsym(v->library, s->name, s->node);
        if (!address && !s->optional) {
            log_write(v->log, LOG_LEVEL_ERROR,
                      VERBS_LIBRARY " has no %s in version %s: rdma-core 24 (2019) or newer is needed", s->name,
                      s->node);
            return -ELIBACC;
        }
        /* ISO C has no cast from an object to a function pointer; POSIX says that their bytes are the same. */
        memcpy((char *)v + s->offset, &address, sizeof(address));
    }
    return 0;
}

int verbs_load(const struct log *log, struct verbs **out)
{
    struct verbs *v = calloc(1, sizeof(*v));
    if (!v) {
        log_write(log, LOG_LEVEL_ERROR, "no memory to load " VERBS_LIBRARY);
        return -ENOMEM;
    }
    v->log = log;
    int rc = -ELIBACC;
    v->library = dlopen(VERBS_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!v->library)
        log_write(log, LOG_LEVEL_ERROR, "cannot load " VERBS_LIBRARY ": %s; install rdma-core (libibverbs1)",
                  dlerror());
    else
        rc = verbs_load_symbols(v);
    if (rc)
        verbs_unload(v);
    else
        *out = v;
    return rc;
}

void verbs_unload(struct verbs *v)
{
    if (!v)
        return;
    if (v->library)
        dlclose(v->library);
    free(v);
}

int verbs_errno(void)
{
    return errno > 0 ? -errno : -EIO;
}

int verbs_result(int rc)
{
    if (rc == 0)
        return 0;
    if (rc == -1)
        return verbs_errno();
    return rc > 0 ? -rc : rc;
}
