/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem.h - what the plugin's own files share: the state of one transport, which is all the state there is, so that the
 * host can start again in the same process. nvshmem_abi.h says how the host calls; braid.h does the work.
 *
 *   nvshmem_entry.c   nvshmemt_init(), once a file
 *   nvshmem_init.c    the block and its ops           nvshmem_connect.c   opening and connecting
 *   nvshmem_env.c     variables                       nvshmem_slots.c     ports by rank
 *   nvshmem_prefix.c  devices by a part of their name
 *   nvshmem_host.c    which host this is              nvshmem_log.c       messages, status codes
 *   nvshmem_mem.c     handles                         nvshmem_regions.c   own regions by address
 *   nvshmem_keys.c    peers' keys, kept
 *   nvshmem_rma.c     put, get, P                     nvshmem_signal.c    put with signal
 *   nvshmem_amo.c     atomics                         nvshmem_fetch.c     results on their way to the GPU
 *   nvshmem_order.c   fence, quiet, progress, CST
 *
 * Functions are called nvs_, since nvshmem_ is how the host's own are called.
 */
#ifndef BRAID_NVSHMEM_H
#define BRAID_NVSHMEM_H

#include "braid/braid.h"

#include "nvshmem_abi.h"
#include "nvshmem_clock.h"

#include <errno.h>
#include <pthread.h>

/** Channels: one for the host's threads, one for its proxy. */
enum { NVS_HOST_CHANNEL, NVS_PROXY_CHANNEL, NVS_CHANNELS };

/** Interface versions that there are files for. */
enum { NVS_MAJOR_FIRST = 3, NVS_MAJOR_LAST = 6 };

/** The longest transfer the host is told to ask for. */
#define NVS_MAX_OP_LEN (UINT64_C(1) << 30)

/** Slots that NVSHMEM_HCA_PE_MAPPING may name. */
#define NVS_MAX_SLOTS 128

/** Bytes of one of them with its end; of a list of them all; of a reason. */
#define NVS_SLOT_BYTES  72
#define NVS_PORTS_BYTES (NVS_MAX_SLOTS * NVS_SLOT_BYTES)
#define NVS_WHY         160

/* ---- nvshmem_log.c ---- */

/** Where lines go. One context of the plugin, or one call of the environment's reader. */
struct nvs_log {
    enum braid_log_level level;
    int pe;                                                              /**< -1: not known yet */
    void (*fn)(void *arg, enum braid_log_level level, const char *line); /**< NULL: stderr */
    void *arg;
};

/** Writes a line at a level. Any thread. */
void nvs_log(const struct nvs_log *log, enum braid_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** As braid_options.log; arg is a struct nvs_log. */
void nvs_log_line(void *arg, enum braid_log_level level, const char *line);

/** What the host is told for 0 or a negative errno: enum nvs_status. */
int nvs_status(int rc);

/* ---- nvshmem_host.c ---- */

/** The release of the host library; all 0 where it does not tell. */
struct nvs_host {
    int major, minor, patch;
};

/** Asks the library that holds the address caller. */
void nvs_host_find(void *caller, struct nvs_host *out);

/** Whether the host's own transport takes notice of NVSHMEM_HCA_PREFIX: from 3.5.20 on. */
bool nvs_host_knows_prefix(const struct nvs_host *host);

/** Whether the host is one of those that never call fence for a fence on the GPU (3.5.0 and 3.5.1). */
bool nvs_host_keeps_fences(const struct nvs_host *host);

/* ---- nvshmem_env.c ---- */

#define NVS_SETTINGS 32

/** Settings for braid_open(), "name=value", each its own memory; NULL-terminated. */
struct nvs_settings {
    char *item[NVS_SETTINGS + 1];
    unsigned count;
};

/** How to ask for a variable: getenv() but in tests. */
typedef const char *(*nvs_getenv_fn)(const char *name);

/** Ports as NVSHMEM's lists name them, one by one. */
struct nvs_slots {
    unsigned count;
    char item[NVS_MAX_SLOTS][NVS_SLOT_BYTES]; /**< "dev" or "dev:port" */
};

/** What the environment says. */
struct nvs_env {
    struct nvs_settings settings;
    enum braid_log_level level;
    bool strict;            /**< BRAID_ORDER is strict */
    bool by_rank;           /**< ports come from slots by the rank on the node, known only when connecting */
    struct nvs_slots slots; /**< then: them */
    const char *from;       /**< then: the variable that they come from */
};

/**
 * Reads NVSHMEM's variables and those of ours that beat them. 0, or -EINVAL for a value that is none, -ENOMEM; logs, at the
 * level that the environment itself asks for where log->level is not lower.
 */
int nvs_env_read(nvs_getenv_fn get, const struct nvs_host *host, struct nvs_log *log, struct nvs_env *out);

/** Frees it; NULL and a zeroed one are allowed. */
void nvs_env_free(struct nvs_env *env);

/** Appends "name=value". 0 or -ENOMEM. */
int nvs_settings_add(struct nvs_settings *settings, const char *name, const char *value);

/* ---- nvshmem_slots.c ---- */

/** Reads "dev[:port],...", or where `counted`, "dev:port:count,..." with each port as often as it says. 0, or -EINVAL with a
 *  reason in why. */
int nvs_slots_read(const char *text, bool counted, struct nvs_slots *out, char why[NVS_WHY]);

/** The ports of `count` slots from `from` on, each once. */
void nvs_slots_once(const struct nvs_slots *slots, unsigned from, unsigned count, char out[NVS_PORTS_BYTES]);

/** The ports of the rank-th of `ranks` PEs of a node, each once: one slot, slots being dealt in turn, or where there are at
 *  least twice as many slots as PEs a block of so many. There is at least one slot, and rank is below ranks. */
void nvs_slots_pick(const struct nvs_slots *slots, int rank, int ranks, char out[NVS_PORTS_BYTES]);

/* ---- nvshmem_prefix.c ---- */

/** The names of this host's devices that contain prefix, or with ^ in front those that do not; root as the option sysroot, NULL:
 *  "/". How many are left out; or a negative errno where there is no list of devices. */
int nvs_prefix_names(const char *prefix, const char *root, char out[NVS_PORTS_BYTES]);

/* ---- nvshmem_regions.c ---- */

/** One registered range of own memory. */
struct nvs_region {
    uintptr_t start, end;
    uintptr_t reach; /**< the highest end of this one and all before it in the table */
    struct braid_mem *mem;
    struct braid_key *key; /**< its own memory: look-ups copy a region */
};

/** All of them by address. Changed by one thread at a time, read by any at any time without waiting. */
struct nvs_regions {
    struct nvs_table *table;                         /**< the current one: never changed, only exchanged; NULL: empty */
    struct nvs_table *old;                           /**< exchanged ones that a reader may still be in */
    _Alignas(64) uint32_t readers[NVS_CHANNELS][16]; /**< [i][0] counts; a cache line each */
};

/** The region that holds [addr, addr + len), for a thread of that channel. False where there is none. */
bool nvs_regions_find(struct nvs_regions *r, unsigned channel, const void *addr, uint64_t len, struct nvs_region *out);

/** Adds one. 0 or -ENOMEM. */
int nvs_regions_add(struct nvs_regions *r, const struct nvs_region *region);

/** Takes the one with these key bytes out. 0, -ENOENT, or -ENOMEM. */
int nvs_regions_remove(struct nvs_regions *r, const void *key_bytes, struct nvs_region *out);

/** Frees the tables and the keys, not what is registered. Nobody may be reading. */
void nvs_regions_free(struct nvs_regions *r);

/* ---- nvshmem_keys.c ---- */

/** Peers' keys that have been seen on a channel. Zeroed: none. */
struct nvs_keys {
    uint32_t owned; /**< 1 while a thread is inside */
    size_t size, count;
    struct nvs_kept **place; /**< by hash; its own memory each, so that a key's address stays */
};

/** Frees all. No op may be under way. */
void nvs_keys_free(struct nvs_keys *k);

/* ---- nvshmem_fetch.c ---- */

#define NVS_FETCHES 256

/** A fetching atomic under way: asked for, then its result on its way to the slot that the GPU polls. */
struct nvs_fetch {
    uint64_t old; /**< what the atomic found */
    struct braid_done done;
    uint64_t flag;
    struct braid_remote slot; /**< struct nvs_fetch_slot, as ops to oneself name it */
    bool data_sent;
    bool dropped; /**< its atomic was refused: to be freed */
};

/** Those of the proxy's channel. */
struct nvs_fetches {
    uint32_t owned;              /**< 1 while a thread is inside */
    uint32_t active;             /**< how many are under way; read without owning */
    uint16_t order[NVS_FETCHES]; /**< numbers of items: [0, active) under way, the rest free */
    struct nvs_fetch item[NVS_FETCHES];
};

/* ---- The state ---- */

/** One transport, from nvshmemt_init() to finalize. */
struct nvs_plugin {
    void *block;
    int major;                   /**< interface version */
    const struct nvs_layout *at; /**< offsets in block; of version 3b in the file of version 3, which has 3a in it */
    struct nvs_host host;
    struct nvs_log log;
    struct nvs_env env;
    const struct braid_plugin_clock *clock; /**< NULL: real time */
    struct braid *braid;                    /**< NULL: opened when connecting */
    struct braid_channel *channel[NVS_CHANNELS];
    bool fence_each; /**< strict order, and a host that does not say where fences are */
    int my_pe, n_pes;
    struct braid_done done[NVS_CHANNELS]; /**< ends of ops that nobody waits for by itself */
    uint64_t failed_seen;                 /**< failures that have been told */
    pthread_mutex_t mem_lock;             /**< of everything about registration */
    struct nvs_regions regions;
    struct nvs_fetches fetches;
    struct nvs_keys keys[NVS_CHANNELS];
};

/** What the host holds: its block, and behind it our own way back to the state, the same in every version. */
struct nvs_block {
    unsigned char bytes[NVS_BLOCK_BYTES];
    struct nvs_plugin *plugin; /**< NULL after finalize */
};

/** Where a block begins in memory that is aligned to 256 bytes, and how much of it there is: see nvs_block_new(). */
#define NVS_BLOCK_AT   64
#define NVS_BLOCK_ROOM 768
static_assert(NVS_BLOCK_AT + sizeof(struct nvs_block) <= NVS_BLOCK_ROOM, "a block fits");

/** Whether a register can hold a block's address rather than a bool: see nvs_block_new(). */
static inline bool nvs_block_like(uintptr_t value)
{
    return (value & 0xff) > 1;
}

/** The state of the transport that the host has passed. */
static inline struct nvs_plugin *nvs_plugin_of(void *transport)
{
    return ((struct nvs_block *)transport)->plugin;
}

/** The channel that a selector of the host's means: in version 3, too, 0 is a thread of the host's. */
static inline unsigned nvs_channel_of(int qp)
{
    return qp == NVS_QP_HOST ? NVS_HOST_CHANNEL : NVS_PROXY_CHANNEL;
}

/** Bytes of a transfer. SIZE_MAX, which is in no region, where the host's numbers make no sense. */
static inline size_t nvs_len(const struct nvs_rma_bytes *bytes)
{
    size_t len;

    if (bytes->elembytes < 0 || __builtin_mul_overflow(bytes->nelems, (size_t)bytes->elembytes, &len))
        return SIZE_MAX;
    return len;
}

/** A field of the host's block. */
static inline void *nvs_at(const struct nvs_plugin *p, size_t offset)
{
    return nvs_field(p->block, offset);
}

/** Before an op: on a host that keeps its fences for itself, strict order takes every op to stand behind one. */
static inline void nvs_before_op(struct nvs_plugin *p, unsigned channel, int pe)
{
    if (p->fence_each)
        braid_fence(p->channel[channel], pe);
}

/** Behind an op: whether to ask for it again, since it was refused for a full queue and a turn of the whole progress has been
 *  made. Where that turn fails, *rc says how. */
static inline bool nvs_again(struct nvs_plugin *p, unsigned channel, int *rc)
{
    if (*rc != -EAGAIN)
        return false;
    *rc = braid_turn(p->channel[channel]);
    return *rc == 0;
}

/** Behind an op that was accepted. The proxy makes up to 32 requests between two calls of progress, 50 us of them where puts are long,
 *  and a lane holds a round trip's worth: it would run dry while more waits in software. So progress is made in between, as often as
 *  that needs. */
static inline void nvs_asked(struct nvs_plugin *p, unsigned channel)
{
    if (channel == NVS_PROXY_CHANNEL)
        braid_progress_soon(p->channel[channel]);
}

/* ---- nvshmem_init.c ---- */

/** Whether kernels that wait for a signal must have received data flushed before they read it: rc and ordered are what
 *  braid_gpu_at() says. Not where there is no GPU, or where its kernels see writes of NICs in order. */
static inline bool nvs_cst_needed(int rc, int ordered)
{
    return rc != -ENODEV && (rc != 0 || !ordered);
}

/** nvshmemt_init() of the file for that major version; caller: an address inside the host library. */
int nvs_init(void **out, int api_version, int major, void *caller);

/* ---- nvshmem_connect.c ---- */

/** Opens ports, where the choice does not need to know the rank. 0 or a negative errno; logs. */
int nvs_open(struct nvs_plugin *p);

/** Whether libibverbs can be loaded, where ports are opened later. 0 or -ELIBACC; logs. */
int nvs_verbs_there(const struct nvs_log *log);

/** Closes and frees all but the block. NULL is allowed. */
void nvs_close(struct nvs_plugin *p);

/** The ops; see nvshmem_abi.h. A second call, for qp_create, leaves the answer at "the default one". */
int nvs_connect_v3(void *transport, int *dev_ids, int n_dev);
int nvs_connect_v4(void *transport, int *dev_ids, int n_dev, int *out_qp, int n_qp);

/* ---- The ops of the other files; see nvshmem_abi.h. 0 or enum nvs_status; a failure has been told. ---- */

/** Version 3: told apart by where the transport stands among the arguments (3a has one more before it). */
int nvs_get_handle_v3(struct nvs_handle *out, uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4, uintptr_t a5);
/** Registers on every rail and packs the key. */
int nvs_get_handle(struct nvs_handle *out, void *buf, size_t len, void *transport, bool local_only);
/** Ends a registration. */
int nvs_release_handle(struct nvs_handle *handle, void *transport);

/** Put, get, P and G. */
int nvs_rma(void *transport, int pe, struct nvs_rma_verb verb, struct nvs_rma_mem *remote, struct nvs_rma_mem *local,
            struct nvs_rma_bytes bytes, int qp);

/** A put of len bytes that nobody waits for by itself, in as many as it takes. 0 or a negative errno. */
int nvs_put(struct nvs_plugin *p, unsigned channel, int pe, const struct nvs_rma_mem *remote,
            const struct nvs_rma_mem *local, size_t len);

/** A peer's bytes as braid wants them, good until finalize, whereas what the host passes is good for the call. 0; -EINVAL
 *  without a handle, -EPROTO for a damaged one, with a message; -ENOMEM. */
int nvs_remote(struct nvs_plugin *p, unsigned channel, int pe, const struct nvs_rma_mem *mem, struct braid_remote *out);

/** Own bytes as braid wants them. 0, or -ERANGE with a message. */
int nvs_local(struct nvs_plugin *p, unsigned channel, const void *addr, size_t len, struct braid_local *out);

/** Says, once an op has failed, which and why; gives what the host is to be told. */
int nvs_op_failed(struct nvs_plugin *p, const char *op, int pe, int rc);

/** Put with signal, versions 4 and 5. */
int nvs_put_signal(void *transport, int pe, struct nvs_rma_verb verb, const struct nvs_vector *remote,
                   const struct nvs_vector *local, const struct nvs_vector *bytes, struct nvs_amo_verb signal_verb,
                   struct nvs_amo_mem *signal, struct nvs_amo_bytes signal_bytes, int qp);
/** The same of version 6. */
int nvs_put_signal_v6(void *transport, int pe, struct nvs_rma_verb verb, const struct nvs_vector *remote,
                      const struct nvs_vector *local, const struct nvs_vector *bytes,
                      struct nvs_amo_verb_v6 signal_verb, struct nvs_amo_mem *signal, struct nvs_amo_bytes signal_bytes,
                      int qp);

/** Atomics, versions 3 to 5. */
int nvs_amo(void *transport, int pe, void *unused, struct nvs_amo_verb verb, struct nvs_amo_mem *mem,
            struct nvs_amo_bytes bytes, int qp);
/** Version 6: with floats. */
int nvs_amo_v6(void *transport, int pe, void *unused, struct nvs_amo_verb_v6 verb, struct nvs_amo_mem *mem,
               struct nvs_amo_bytes bytes, int qp);

/** An atomic of so many bytes, without or with a result for the GPU. 0 or a negative errno. */
int nvs_amo_issue(struct nvs_plugin *p, unsigned channel, int pe, int desc, bool is_float,
                  const struct nvs_amo_mem *mem, unsigned bytes);

/** Fence of version 3 and of later ones; in the table in strict order only. */
int nvs_fence_v3(void *transport, int pe, int is_proxy);
int nvs_fence_v4(void *transport, int pe, int qp, int is_multi);
/** Waits until all is visible, results of fetches in the GPU's memory included. */
int nvs_quiet(void *transport, int pe, int qp);
/** Moves both channels on. Fails once an op has failed. */
int nvs_progress(void *transport);
/** Makes what NICs have written into own memory visible to the GPU. */
int nvs_enforce_cst(void *transport);

/* ---- nvshmem_fetch.c ---- */

/** The slot of a fetch as ops to oneself name it, for a thread of that channel. 0, or -ERANGE with a message. */
int nvs_fetch_slot_at(struct nvs_plugin *p, unsigned channel, const void *slot, struct braid_remote *out);

/** Sets up a zeroed one: nothing under way. */
void nvs_fetch_init(struct nvs_fetches *fetches);

/** A place for a fetch; waits for one, in turns of the whole progress. 0 or a negative errno. */
int nvs_fetch_take(struct nvs_plugin *p, struct nvs_fetch **out);

/** Gives one back whose atomic was refused. */
void nvs_fetch_drop(struct nvs_fetch *fetch);

/** Sends results that have come to their slots. 0, or how one of them failed. */
int nvs_fetch_drive(struct nvs_plugin *p);

/** Waits until none is under way. 0 or a negative errno. */
int nvs_fetch_wait(struct nvs_plugin *p);

/** Writes data, then flag, into a slot of own memory, over the lanes to oneself, and waits for neither. 0 or a negative
 *  errno. */
int nvs_fetch_deliver(struct nvs_plugin *p, unsigned channel, const struct nvs_amo_mem *mem, uint64_t data);

#endif
