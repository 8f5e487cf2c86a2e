/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_mini.h - the minihost: a host of our own for NVSHMEM transport plugins. It loads a nvshmem_transport_*.so.N as NVSHMEM
 * does, and drives it with the calling pattern of NVSHMEM's proxy thread: requests in batches of 32, progress between
 * them, quiet peer by peer. One struct host is one PE; it knows nothing of what is sent. Used by bench/ and by tests/host.
 * Knows the interface by plugin/nvshmem/nvshmem_abi.h alone. Next: host_open.c, then host_proxy.c.
 *
 * Threads: one at a time per struct host. All int results are 0 or a negative errno; what went wrong is in host_why().
 */
#ifndef HOST_MINI_H
#define HOST_MINI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nvshmem_abi.h"

struct host;
struct host_caller;

/** How the PEs of a run meet, and what time is. The functions belong to who made it; see host_world_*.c. */
struct host_world {
    int my_pe, n_pes;
    int mype_node, npes_node;
    /** Block i of send goes to PE i. Collective; 0 or a negative errno. */
    int (*alltoall)(void *arg, const void *send, void *recv, size_t bytes_each);
    int (*barrier)(void *arg);
    uint64_t (*now)(void *arg);
    /** Sleeps until something can have changed, or until then. */
    int (*wait)(void *arg, uint64_t deadline_ns);
    /** The proxy's CPU was busy for so long. Does nothing where time is real. */
    void (*charge)(void *arg, uint64_t ns);
    void *arg;
    bool is_virtual; /**< now and wait are the plugin's too */
};

/** What a host may be told. What is zero has a default. */
struct host_options {
    const char *path;                  /**< the plugin's file, nvshmem_transport_NAME.so.N */
    const struct nvs_version *version; /**< as which host; NULL: host_version() of the path */
    const struct host_caller *caller;  /**< who makes the calls; NULL: host_caller_c */
    bool own_copy;                     /**< load a copy of the file that no other PE of the process has */
    /** Symmetric memory: an address range, of which host_grow() registers more and more. Owned by the caller. */
    void *heap;
    size_t heap_len;
    size_t chunk;            /**< most bytes of one registration of the heap; 0: 2 GiB */
    size_t log2_granularity; /**< heap and chunks are multiples of this; 0: 21, the least that CUDA has */
    uint64_t proxy_ns;       /**< what the proxy's own code costs for each request */
    bool lend; /**< handles are good for one call only: what the growth of a host's vectors may make of them */
    bool cst;  /**< the driver cannot flush from the host: enforce_cst is called */
};

/** The interface version that a file name stands for (a number 3: "3b"), or that name says: "3a", "3b", "4", "4 of 3.5.0", "5",
 *  "6". -EINVAL with a reason where they do not go together, or there is none such. */
int host_version(const char *path, const char *name, const struct nvs_version **out, char *why, size_t why_len);

/** Whether a plugin's file is braid's, which can wait by the host's clock and so needs no thread. */
bool host_is_braid(const char *path);

/**
 * Loads the plugin, initialises it, and connects it. Collective. -ELIBBAD where the file is no transport or its init refuses,
 * -EIO where a call fails, with a reason. The environment is read by the plugin inside.
 */
int host_open(const struct host_options *o, const struct host_world *w, struct host **out, char *why, size_t why_len);

/** Drains nothing. Releases what is registered, finalises, unloads. NULL is allowed. Not collective. 0, or -EIO. */
int host_close(struct host *h);

/** What the last failure was. Owned by the host. */
const char *host_why(const struct host *h);

/** Whether device fences cost requests: some transport has a fence op. */
bool host_has_fence(const struct host *h);
/** A PE's name for the first byte of its heap. */
uint64_t host_heap_of(const struct host *h, int pe);

/* ---- memory, on the main thread ---- */

/** Registers len more bytes of the heap, in chunks. Collective. */
int host_grow(struct host *h, size_t len);
/** Gives the last chunk back. Meet the others before and behind it. */
int host_shrink(struct host *h);
/** Registers memory that only this PE uses, in pieces of at most 2 GiB, and gives it back. Not collective. */
int host_register(struct host *h, void *addr, size_t len);
int host_unregister(struct host *h, const void *addr);
/** The next host_grow()'s memory is also at this address: alias_va_map says so while the caller can make maps. */
int host_alias(struct host *h, const void *heap_addr, void *other);

/* ---- what device code does: requests into the channel. -EAGAIN: it is full, call host_step() ---- */

/** An atomic of device code. */
struct host_amo {
    int op; /**< enum nvs_amo */
    int bytes;
    uint64_t value, compare;
};

/** Writes len bytes, from the heap or from registered memory, to a PE's heap at an offset. */
int host_put(struct host *h, int pe, size_t offset, const void *src, size_t len);
int host_get(struct host *h, int pe, void *dst, size_t offset, size_t len);
/** A single value of 1, 2, 4 or 8 bytes. */
int host_p(struct host *h, int pe, size_t offset, uint64_t value, int bytes);
/** An atomic. For those that fetch, slot is the offset of a struct nvs_fetch_slot in the own heap, zeroed; the result is there when
 *  host_fetched() says so. */
int host_amo(struct host *h, int pe, size_t offset, const struct host_amo *amo, size_t slot);
/** A put and then a signal, NVS_AMO_SIGNAL_SET or _ADD: one request from version 4 on, before that put, fence and atomic. */
int host_put_signal(struct host *h, int pe, size_t offset, const void *src, size_t len, size_t signal, int op,
                    uint64_t value);
/** Nothing where the plugin has no fence op. */
int host_fence(struct host *h);
/** A request for a consistency flush. */
int host_cst(struct host *h);
/** Drains the channel, then quiet peer by peer. Blocks. */
int host_quiet(struct host *h);
/** Whether a fetch's result is in its slot, and what it is. Where atomics complete on quiet, this makes one. 1, 0, or a negative
 *  errno. */
int host_fetched(struct host *h, size_t slot, int bytes, uint64_t *value);

/** One pass of the proxy: a batch of requests, then progress. How many requests it took, or a negative errno. */
int host_step(struct host *h);
/** Requests that no pass has taken yet. */
size_t host_waiting(const struct host *h);

/* ---- what host code does: calls at once, with the selector for host threads ---- */

/** As nvshmem_putmem and so on: a transfer, at once; nbi: it may go on behind the return. */
int host_api_put(struct host *h, int pe, size_t offset, const void *src, size_t len, bool nbi);
int host_api_get(struct host *h, int pe, void *dst, size_t offset, size_t len, bool nbi);
/** A single value. */
int host_api_p(struct host *h, int pe, size_t offset, uint64_t value, int bytes);
/** Over every PE, the own one too. */
int host_api_fence(struct host *h);
int host_api_quiet(struct host *h);
/** nvshmemx_qp_create(): from version 4 on. Collective. qp[] is what the plugin gave; 1 is "the default one". */
int host_qp_create(struct host *h, int n, int *qp);
/** A put of device code on such a QP, and its quiet. */
int host_put_qp(struct host *h, int pe, size_t offset, const void *src, size_t len, int qp);
int host_quiet_qp(struct host *h, int pe, int qp);

/* ---- worlds ---- */

struct emu_sim_api;
/** The calling PE of a run in virtual time. */
void host_world_sim(struct host_world *w, const struct emu_sim_api *emu, int n_pes, int per_node);

/** Memory by which forked processes meet: make it before fork(). NULL without memory. */
struct host_page;
struct host_page *host_page_new(int n_pes);
void host_page_free(struct host_page *page);
/** Process pe of those. Time is real. */
void host_world_real(struct host_world *w, struct host_page *page, int pe, int n_pes, int per_node);

#endif
