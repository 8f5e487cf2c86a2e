/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_host.h - a small host for tests of the NVSHMEM plugin: PEs of an emulated cluster in virtual time, each with a transport of
 * its own from the plugin's file, driven as NVSHMEM drives it. What is called how differs between versions and between a C
 * and a C++ caller; struct host_calls hides it. Included by the tests beside it.
 */
#ifndef PLUGIN_HOST_H
#define PLUGIN_HOST_H

#include "nvshmem_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fabric_pe;
struct host;

enum { HOST_PES = 8, HOST_WAY_C = 0, HOST_WAY_CXX, HOST_WAYS };

/** One transfer as a test asks for it. Offsets into the PEs' heaps. */
struct host_rma {
    int pe, desc, is_nbi, qp;
    size_t to, from; /* at the target, and here; of a get the other way round */
    size_t nelems;
    int elembytes;
    const void *value; /* P: in the place of `from` */
};

/** One atomic. */
struct host_amo {
    int pe, desc, bytes, qp, is_float;
    size_t at;  /* in the target's heap */
    size_t ret; /* in the own heap: the slot of a fetch */
    uint64_t val, cmp, flag;
};

/** Most pieces of a put with signal in a test. */
enum { HOST_PIECES = 64 };

/** A put with signal. */
struct host_put_signal {
    int pe, is_nbi, qp;
    size_t n;
    struct {
        size_t to, from, len;
    } piece[HOST_PIECES];
    struct host_amo signal;
};

/** The same calls by a C and by a C++ compiler. */
struct host_calls {
    int (*get_handle)(struct host *h, void *buf, size_t len, bool local_only, struct nvs_handle *out);
    int (*rma)(struct host *h, const struct host_rma *r);
    int (*amo)(struct host *h, const struct host_amo *a);
    int (*put_signal)(struct host *h, const struct host_put_signal *s);
    int (*progress)(struct host *h);
    int (*quiet)(struct host *h, int pe, int qp);
    int (*connect)(struct host *h, int *out_qp, int n_qp);
};

extern const struct host_calls host_calls_c, host_calls_cxx;

/** One PE's host. */
struct host {
    struct fabric_pe *f;
    const struct nvs_version *v;
    const struct host_calls *call;
    void *t; /* the block */
    struct nvs_boot boot;
    int cap[HOST_PES];
    unsigned char *heap;
    size_t heap_len;
    struct nvs_handle mine;
    struct nvs_handle peer[HOST_PES]; /* their handles of their heaps */
    uintptr_t base[HOST_PES];         /* and where these lie */
    uint64_t met;                     /* host_meet() calls */
};

/** Loads the file of that major version, once; NULL with a message on stderr. */
nvs_init_fn host_plugin(int major);

/** Init, connect, registration of f's memory, exchange of handles. 0, or the status of what failed. */
int host_start(struct host *h, struct fabric_pe *f, const struct nvs_version *v, const struct host_calls *call);
/** Up to init and the host's fields: connect_endpoints comes next. */
int host_init(struct host *h, struct fabric_pe *f, const struct nvs_version *v, const struct host_calls *call);
/** What follows connect_endpoints: the heap, its handles. */
int host_heap(struct host *h);
/** Release, finalize, the block. */
int host_stop(struct host *h);

/** A copy of a handle for the time of one call, and its end: bytes that nobody may read any more, freed. */
struct nvs_handle *host_lend(const struct nvs_handle *handle);
void host_take_back(struct nvs_handle *lent);

/** The ops by version. */
struct nvs_ops_v3 *host_ops_v3(const struct host *h);
struct nvs_ops_v4 *host_ops_v4(const struct host *h);
/** fence, or -1 where it is NULL; enforce_cst. */
int host_fence(struct host *h, int pe, int qp);
int host_cst(struct host *h);
int host_release(struct host *h, struct nvs_handle *handle);

/** Bytes of the own heap. */
static inline unsigned char *host_at(struct host *h, size_t offset)
{
    return h->heap + offset;
}

/** A local buffer at so many bytes from the own heap, which may be outside of it: both callers reckon in integers, modulo 2^64. */
static inline void *host_local(const struct host *h, size_t offset)
{
    return (void *)((uintptr_t)h->heap + offset);
}

/** A non-blocking put by the proxy. */
int host_put(struct host *h, int pe, size_t to, size_t from, size_t len);
/** An atomic by the proxy, without a result. */
int host_signal(struct host *h, int pe, int desc, int bytes, size_t at, uint64_t val);
/** One turn of the proxy's loop: progress, then sleep until something happens. */
int host_turn(struct host *h);
/** Turns until the word is at least so much. */
int host_wait_word(struct host *h, size_t at, uint64_t least);
/** Quiet to all, as the proxy does it. */
int host_quiet_all(struct host *h);
/** All PEs meet, by signals through the plugin, each in its proxy's loop meanwhile. The last word of the heap is for it. */
int host_meet(struct host *h);

#ifdef __cplusplus
}
#endif
#endif
