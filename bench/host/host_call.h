/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_call.h - how calls into a plugin are made, one function an op, so that somebody else than C can make them too: C++
 * with real std::vector and std::unordered_map (tests/host). C17 and C++11. Called by host_proxy.c and host_mem.c.
 */
#ifndef HOST_CALL_H
#define HOST_CALL_H

#include "nvshmem_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Any function; cast to what it is before it is called. */
typedef void (*host_fn)(void);

/** The parts of a put_signal. */
struct host_pieces {
    struct nvs_rma_mem *remote, *local;
    struct nvs_rma_bytes *bytes;
    size_t n;
};

/** Who makes the calls. v says by which version's convention. */
struct host_caller {
    const char *name;
    int (*connect)(const struct nvs_version *v, host_fn fn, void *t, int *ids, int n_ids, int *qp, int n_qp);
    int (*get_handle)(const struct nvs_version *v, host_fn fn, void *t, struct nvs_handle *out, void *buf, size_t len,
                      bool local_only);
    int (*progress)(const struct nvs_version *v, host_fn fn, void *t);
    int (*rma)(const struct nvs_version *v, host_fn fn, void *t, int pe, const struct nvs_rma_verb *verb,
               struct nvs_rma_mem *remote, struct nvs_rma_mem *local, const struct nvs_rma_bytes *bytes, int qp);
    int (*amo)(const struct nvs_version *v, host_fn fn, void *t, int pe, const struct nvs_amo_verb_v6 *verb,
               struct nvs_amo_mem *mem, const struct nvs_amo_bytes *bytes, int qp);
    int (*fence)(const struct nvs_version *v, host_fn fn, void *t, int pe, int qp);
    int (*quiet)(const struct nvs_version *v, host_fn fn, void *t, int pe, int qp);
    int (*put_signal)(const struct nvs_version *v, host_fn fn, void *t, int pe, const struct nvs_rma_verb *verb,
                      const struct host_pieces *pieces, const struct nvs_amo_verb_v6 *signal_verb,
                      struct nvs_amo_mem *signal, const struct nvs_amo_bytes *signal_bytes, int qp);
    /* std::unordered_map<void *, void *>: an empty one, an entry, an end. map_add may be NULL: only empty ones then. */
    void *(*map_new)(void);
    int (*map_add)(void *map, void *key, void *value);
    void (*map_free)(void *map);
};

/** C, with C's view of C++ objects. */
extern const struct host_caller host_caller_c;

#ifdef __cplusplus
}
#endif
#endif
