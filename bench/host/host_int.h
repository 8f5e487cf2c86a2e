/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_int.h - what the files of the minihost share: a PE's state, its requests, its registrations.
 */
#ifndef HOST_INT_H
#define HOST_INT_H

#include <stdarg.h>

#include "host_mini.h"
#include "host_call.h"

enum { HOST_CHUNKS = 64, HOST_BUFFERS = 64, HOST_ROOM = 16384, HOST_BATCH = 32, HOST_WHY = 512 };

/** A registration of the heap, on every PE at the same offset. */
struct host_chunk {
    size_t offset, len;
    struct nvs_handle own;
    struct nvs_handle *all; /* of each PE; owned */
};

/** A local-only registration. */
struct host_buffer {
    const char *addr; /* NULL: free */
    size_t len;
    struct nvs_handle handle;
    size_t whole; /* of the first piece: bytes of the buffer that it belongs to */
};

/** What device code can ask of the proxy. */
enum host_kind { HOST_PUT, HOST_GET, HOST_P, HOST_AMO, HOST_FENCE, HOST_PUT_SIGNAL, HOST_QUIET, HOST_CST };

struct host_request {
    enum host_kind kind;
    int pe, qp;
    size_t offset, len;
    void *local;
    uint64_t value;      /* P */
    struct host_amo amo; /* and the signal of a put_signal */
    size_t signal, slot;
};

struct host {
    struct host_options o;
    struct host_world w;
    const struct nvs_version *v;
    const struct host_caller *call;
    void *lib; /* from dlopen() */
    void *t;   /* the plugin's block */
    struct nvs_boot boot;
    unsigned char cuda[NVS_CUDA_TABLE_BYTES];
    int *cap;
    void *alias_map, *egm_map;
    bool connected;
    uint64_t *base; /* of each PE: where its heap begins */
    uint64_t max_op;
    size_t registered; /* of the heap */
    struct host_chunk chunk[HOST_CHUNKS];
    int n_chunks;
    struct host_buffer buffer[HOST_BUFFERS];
    struct host_request *ring; /* HOST_ROOM of them; owned */
    uint64_t head, tail;       /* taken, posted */
    bool gets;                 /* since the last consistency flush */
    uint64_t fetches;
    char why[HOST_WHY];
};

/** Notes what went wrong; returns rc. */
__attribute__((format(printf, 3, 4))) static inline int host_failed(struct host *h, int rc, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    __builtin_vsnprintf(h->why, sizeof(h->why), fmt, ap);
    va_end(ap);
    return rc;
}

/** A field of the plugin's block. */
static inline int host_int(const struct host *h, size_t at)
{
    int v;

    __builtin_memcpy(&v, (const char *)h->t + at, sizeof(v));
    return v;
}

/* host_open.c */

/** The op at an offset of the table; NULL where the plugin left it out. */
host_fn host_op(const struct host *h, size_t offset);
/** What an op said: 0, or -EIO with its name. */
int host_said(struct host *h, const char *op, int status);

/* host_load.c */

/** Loads the file, or a copy of it. -ELIBBAD with a reason. */
int host_load(struct host *h);

/* host_got.c */

/** Lets a loaded plugin's realpath() find emulated devices in /sys. 0; -ENOEXEC where the file is not understood. */
int host_got_redirect(void *lib);

/* host_cuda.c */

/** Fills the table of CUDA functions that an init is given: stubs of a machine without a GPU. */
void host_cuda_fill(unsigned char *table, const struct nvs_version *v);

/* host_world_sim.c */

/** The clock that the next init of a plugin finds; NULL: time is real. */
void host_clock_set(const struct host_world *w);

/* host_mem.c */

/** The most of [addr, addr+len) that one op may take: up to the end of its registration. NULL handle: not registered. */
size_t host_local(const struct host *h, const void *addr, size_t len, struct nvs_handle **handle);
/** The same of a PE's heap. */
size_t host_remote(const struct host *h, int pe, size_t offset, size_t len, struct nvs_handle **handle);
/** Gives everything back. */
int host_mem_close(struct host *h);

/* host_rma.c */

/** Puts or gets, cut where registrations and max_op_len ask for it. */
int host_rma(struct host *h, int op, int pe, size_t offset, void *local, size_t len, bool nbi, int qp);
int host_rma_p(struct host *h, int pe, size_t offset, uint64_t value, int bytes, int qp);
int host_rma_amo(struct host *h, const struct host_request *r);
int host_rma_put_signal(struct host *h, const struct host_request *r);
/** Quiet of one PE, and of all. */
int host_rma_quiet(struct host *h, int pe, int qp);
int host_rma_quiet_all(struct host *h, int qp);
int host_rma_fence(struct host *h, bool self, int qp);

#endif
