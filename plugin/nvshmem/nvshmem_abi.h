/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_abi.h - the interface between an NVSHMEM host library and a remote transport, written down from facts about it
 * (sizes, offsets, numbers, calling conventions; x86-64): interface versions 3 in both layouts, 4, 5 and 6. No header of
 * NVSHMEM's is needed, nothing here is taken from one, and the names are our own. C17 and C++11. Used by the plugin, which
 * is called by these rules, and by the minihost, which calls by them; includes nothing of either, and may hold no state.
 *
 * A transport is a file nvshmem_transport_NAME.so.MAJOR that exports nvshmemt_init(). It allocates a block, fills it, and
 * the host fills in more; where a field lies in it depends on the version, so both sides use struct nvs_layout.
 */
#ifndef BRAID_NVSHMEM_ABI_H
#define BRAID_NVSHMEM_ABI_H

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Numbers ---- */

/** What ops and nvshmemt_init() return. */
enum nvs_status {
    NVS_SUCCESS = 0,
    NVS_INVALID_VALUE = 1,
    NVS_OUT_OF_MEMORY = 2,
    NVS_NOT_SUPPORTED = 3,
    NVS_SYMMETRY = 4,
    NVS_GPU_NOT_SELECTED = 5,
    NVS_COLLECTIVE_LAUNCH_FAILED = 6,
    NVS_INTERNAL = 7
};

/** nvs_rma_verb.desc. The host takes NVS_QP_OP_OFFSET off before it calls, so a transport sees 1, 2, 4 and 5 only. */
enum nvs_op {
    NVS_PUT = 1,
    NVS_P = 2,
    NVS_PUT_SIGNAL = 3,
    NVS_GET = 4,
    NVS_G = 5,
    NVS_FENCE = 6,
    NVS_AMO = 7,
    NVS_QUIET = 8,
    NVS_QP_OP_OFFSET = 100
};

/** nvs_amo_verb.desc. */
enum nvs_amo {
    NVS_AMO_ACK = 1,
    NVS_AMO_INC = 2,
    NVS_AMO_SET = 3,
    NVS_AMO_ADD = 4,
    NVS_AMO_AND = 5,
    NVS_AMO_OR = 6,
    NVS_AMO_XOR = 7,
    NVS_AMO_SIGNAL = 8,
    NVS_AMO_SIGNAL_SET = 9,
    NVS_AMO_SIGNAL_ADD = 10,
    NVS_AMO_END_OF_NONFETCH = 11,
    NVS_AMO_FETCH = 12,
    NVS_AMO_FETCH_INC = 13,
    NVS_AMO_FETCH_ADD = 14,
    NVS_AMO_FETCH_AND = 15,
    NVS_AMO_FETCH_OR = 16,
    NVS_AMO_FETCH_XOR = 17,
    NVS_AMO_SWAP = 18,
    NVS_AMO_COMPARE_SWAP = 19
};

/** Bits of can_reach_peer's answer. */
enum nvs_cap {
    NVS_CAP_MAP = 1,
    NVS_CAP_MAP_GPU_ST = 2,
    NVS_CAP_MAP_GPU_LD = 4,
    NVS_CAP_MAP_GPU_ATOMICS = 8,
    NVS_CAP_CPU_WRITE = 16,
    NVS_CAP_CPU_READ = 32,
    NVS_CAP_CPU_ATOMICS = 64,
    NVS_CAP_GPU_WRITE = 128,
    NVS_CAP_GPU_READ = 256,
    NVS_CAP_GPU_ATOMICS = 512
};

/** Bits of the field attr. */
enum nvs_attr { NVS_ATTR_NO_ENDPOINTS = 1, NVS_ATTR_CONNECTED = 2 };

/** The last argument of rma, amo and quiet. Version 3: NVS_QP_HOST for host threads, 1 for the proxy. Larger numbers are
 *  what connect_endpoints gave for qp_create. */
enum nvs_qp { NVS_QP_HOST = 0, NVS_QP_DEFAULT = 1, NVS_QP_ANY = INT_MAX };

/** As a pe where all are meant. */
#define NVS_PE_ALL (1 << 15)

/** Bytes of a memory handle. */
#define NVS_HANDLE_BYTES 512

/** Bytes that a transport allocates for its block, zeroed: hosts and their forks write behind what is known. */
#define NVS_BLOCK_BYTES 512

/** The number that a host of interface version MAJOR passes to nvshmemt_init(): minor and patch have always been 0. */
#define NVS_API_VERSION(major) ((major)*10000)

/** The one symbol that a transport exports, and the host's export that tells its release. */
#define NVS_INIT_NAME         "nvshmemt_init"
#define NVS_HOST_VERSION_NAME "nvshmemx_vendor_get_version_info"
typedef void (*nvs_host_version_fn)(int *major, int *minor, int *patch);

/* ---- Small structs, the same in every version ---- */

/** What peers get of a region, as raw bytes. */
struct nvs_handle {
    unsigned char bytes[NVS_HANDLE_BYTES];
};

struct nvs_pcie_id {
    int dev_id;
    int bus_id;
    int domain_id;
};

/** A PE as can_reach_peer sees it. */
struct nvs_pe_info {
    struct nvs_pcie_id pcie;
    int pe;
    uint64_t host_hash;
    unsigned char gpu_uuid[16];
};

/** By value, on the stack. For P only desc and is_nbi are set. */
struct nvs_rma_verb {
    int desc; /**< enum nvs_op */
    int is_nbi;
    int is_stream;
    void *stream;
};

/** Memory of one side. remote: ptr is the peer's own address. local of a P: ptr is the value, handle NULL. offset is
 *  garbage where it is local. */
struct nvs_rma_mem {
    void *ptr;
    uint64_t offset;
    struct nvs_handle *handle;
};

/** By value, on the stack. The strides are 1. */
struct nvs_rma_bytes {
    size_t nelems;
    int elembytes;
    ptrdiff_t srcstride;
    ptrdiff_t deststride;
};

/** By value, in two registers. The proxy sets desc only. */
struct nvs_amo_verb {
    int desc; /**< enum nvs_amo */
    int is_fetch;
    int is_val;
    int is_cmp;
};

/** From version 6 on: by value, on the stack. */
struct nvs_amo_verb_v6 {
    int desc;
    int is_fetch;
    int is_val;
    int is_cmp;
    int is_float;
};

/** On the caller's stack. */
struct nvs_amo_mem {
    struct nvs_rma_mem remote;
    uint64_t retflag; /**< goes to nvs_fetch_slot.flag behind the result */
    void *retptr;     /**< struct nvs_fetch_slot in own symmetric memory */
    void *valptr;
    void *cmpptr;
    uint64_t val;
    uint64_t cmp;
    struct nvs_handle *ret_handle; /**< own handle that covers retptr */
};

/** By value, in one register. The proxy sets elembytes only. */
struct nvs_amo_bytes {
    int name_type;
    int elembytes;
};

/** Where a fetch's result goes: data first, then flag, which the device polls. */
struct nvs_fetch_slot {
    uint64_t data;
    uint64_t flag;
};

/** The host's bootstrap. bytes of both exchanges are those for one PE. */
struct nvs_boot {
    int version;
    int pg_rank;
    int pg_size;
    int mype_node;
    int npes_node;
    int (*allgather)(const void *send, void *recv, int bytes, struct nvs_boot *boot);
    int (*alltoall)(const void *send, void *recv, int bytes, struct nvs_boot *boot);
    int (*barrier)(struct nvs_boot *boot);
    void (*global_exit)(int status);
    int (*finalize)(struct nvs_boot *boot);
    int (*show_info)(struct nvs_boot *boot, int style);
    void *pre_init_ops;
    void *comm_state;
};

static_assert(sizeof(struct nvs_handle) == 512, "mem handle");
static_assert(sizeof(struct nvs_pe_info) == 40 && offsetof(struct nvs_pe_info, pe) == 12, "pe info");
static_assert(offsetof(struct nvs_pe_info, host_hash) == 16 && offsetof(struct nvs_pe_info, gpu_uuid) == 24, "pe info");
static_assert(sizeof(struct nvs_rma_verb) == 24 && offsetof(struct nvs_rma_verb, stream) == 16, "rma verb");
static_assert(sizeof(struct nvs_rma_mem) == 24 && offsetof(struct nvs_rma_mem, handle) == 16, "rma memdesc");
static_assert(sizeof(struct nvs_rma_bytes) == 32 && offsetof(struct nvs_rma_bytes, srcstride) == 16, "rma bytesdesc");
static_assert(sizeof(struct nvs_amo_verb) == 16 && sizeof(struct nvs_amo_verb_v6) == 20, "amo verb");
static_assert(offsetof(struct nvs_amo_verb_v6, is_float) == 16, "amo verb of version 6");
static_assert(sizeof(struct nvs_amo_mem) == 80 && offsetof(struct nvs_amo_mem, retflag) == 24, "amo memdesc");
static_assert(offsetof(struct nvs_amo_mem, retptr) == 32 && offsetof(struct nvs_amo_mem, val) == 56, "amo memdesc");
static_assert(offsetof(struct nvs_amo_mem, cmp) == 64 && offsetof(struct nvs_amo_mem, ret_handle) == 72, "amo memdesc");
static_assert(sizeof(struct nvs_amo_bytes) == 8 && offsetof(struct nvs_amo_bytes, elembytes) == 4, "amo bytesdesc");
static_assert(sizeof(struct nvs_fetch_slot) == 16, "fetch slot");
static_assert(sizeof(struct nvs_boot) == 88 && offsetof(struct nvs_boot, allgather) == 24, "bootstrap handle");
static_assert(offsetof(struct nvs_boot, alltoall) == 32 && offsetof(struct nvs_boot, barrier) == 40,
              "bootstrap handle");
static_assert(offsetof(struct nvs_boot, mype_node) == 12 && offsetof(struct nvs_boot, comm_state) == 80,
              "bootstrap handle");

/* ---- C++ objects that cross, for reading only (libstdc++, its ABI since GCC 5) ---- */

/** std::vector<T>. */
struct nvs_vector {
    const void *begin;
    const void *end;
    const void *room;
};

/** Elements of a vector whose elements have that size; a NULL vector has none. */
static inline size_t nvs_vector_count(const struct nvs_vector *v, size_t element)
{
    return v && v->begin ? (size_t)((const char *)v->end - (const char *)v->begin) / element : 0;
}

/** A node of std::unordered_map<void *, V>, V of 8 bytes. */
struct nvs_map_node {
    const struct nvs_map_node *next;
    const void *key;
    uint64_t value;
};

/** std::unordered_map<void *, V>. All nodes hang on first, in one list. */
struct nvs_map {
    const void *buckets;
    size_t bucket_count;
    const struct nvs_map_node *first;
    size_t count;
    uint64_t rehash_policy[2];
    const void *inline_bucket;
};

/** The node of a key, or NULL; a NULL map has none. Only while the host does not change the map: inside get_mem_handle. */
static inline const struct nvs_map_node *nvs_map_find(const struct nvs_map *map, const void *key)
{
    const struct nvs_map_node *node = map ? map->first : NULL;

    while (node && node->key != key) {
        node = node->next;
    }
    return node;
}

static_assert(sizeof(struct nvs_vector) == 24, "std::vector");
static_assert(sizeof(struct nvs_map) == 56 && offsetof(struct nvs_map, first) == 16, "std::unordered_map");
static_assert(offsetof(struct nvs_map, count) == 24 && sizeof(struct nvs_map_node) == 24, "std::unordered_map");
static_assert(offsetof(struct nvs_map_node, key) == 8 && offsetof(struct nvs_map_node, value) == 16, "its node");

/* ---- Ops. A transport block is passed as void *. 0 or enum nvs_status ---- */

typedef int (*nvs_init_fn)(void **out, void *cuda_table, int api_version);
typedef int (*nvs_can_reach_fn)(int *access, struct nvs_pe_info *peer, void *transport);
typedef int (*nvs_connect_v3_fn)(void *transport, int *dev_ids, int n_dev);
typedef int (*nvs_connect_v4_fn)(void *transport, int *dev_ids, int n_dev, int *out_qp, int n_qp);
typedef int (*nvs_get_handle_3a_fn)(struct nvs_handle *out, struct nvs_handle *in, void *buf, size_t len,
                                    void *transport, bool local_only);
typedef int (*nvs_get_handle_fn)(struct nvs_handle *out, void *buf, size_t len, void *transport, bool local_only);
/** As a transport that serves 3a and 3b alike takes both: whatever was passed, in registers. */
typedef int (*nvs_get_handle_any_fn)(struct nvs_handle *out, uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4,
                                     uintptr_t a5);
typedef int (*nvs_release_handle_fn)(struct nvs_handle *handle, void *transport);
typedef int (*nvs_finalize_fn)(void *transport);
typedef int (*nvs_show_info_fn)(void *transport, int style);
typedef int (*nvs_progress_fn)(void *transport);
typedef int (*nvs_progress_350_fn)(void *transport, int is_proxy);
typedef int (*nvs_rma_fn)(void *transport, int pe, struct nvs_rma_verb verb, struct nvs_rma_mem *remote,
                          struct nvs_rma_mem *local, struct nvs_rma_bytes bytes, int qp);
typedef int (*nvs_amo_fn)(void *transport, int pe, void *unused, struct nvs_amo_verb verb, struct nvs_amo_mem *mem,
                          struct nvs_amo_bytes bytes, int qp);
typedef int (*nvs_amo_v6_fn)(void *transport, int pe, void *unused, struct nvs_amo_verb_v6 verb,
                             struct nvs_amo_mem *mem, struct nvs_amo_bytes bytes, int qp);
typedef int (*nvs_fence_v3_fn)(void *transport, int pe, int is_proxy);
typedef int (*nvs_fence_v4_fn)(void *transport, int pe, int qp, int is_multi);
typedef int (*nvs_quiet_fn)(void *transport, int pe, int qp);
typedef int (*nvs_put_signal_fn)(void *transport, int pe, struct nvs_rma_verb verb, const struct nvs_vector *remote,
                                 const struct nvs_vector *local, const struct nvs_vector *bytes,
                                 struct nvs_amo_verb signal_verb, struct nvs_amo_mem *signal,
                                 struct nvs_amo_bytes signal_bytes, int qp);
typedef int (*nvs_put_signal_v6_fn)(void *transport, int pe, struct nvs_rma_verb verb, const struct nvs_vector *remote,
                                    const struct nvs_vector *local, const struct nvs_vector *bytes,
                                    struct nvs_amo_verb_v6 signal_verb, struct nvs_amo_mem *signal,
                                    struct nvs_amo_bytes signal_bytes, int qp);
typedef int (*nvs_enforce_cst_fn)(void *transport);
typedef int (*nvs_add_device_handles_fn)(void *transport, int stride, struct nvs_handle *handles, uint64_t heap_offset,
                                         size_t len);

/** The ops of versions 3a and 3b. May be NULL: progress, fence, enforce_cst, enforce_cst_at_target, add_device_handles. */
struct nvs_ops_v3 {
    nvs_can_reach_fn can_reach_peer;
    nvs_connect_v3_fn connect_endpoints;
    union {
        nvs_get_handle_3a_fn get_handle_3a;
        nvs_get_handle_fn get_handle;
        nvs_get_handle_any_fn get_handle_any;
    };
    nvs_release_handle_fn release_handle;
    nvs_finalize_fn finalize;
    nvs_show_info_fn show_info;
    nvs_progress_fn progress;
    nvs_rma_fn rma;
    nvs_amo_fn amo;
    nvs_fence_v3_fn fence;
    nvs_quiet_fn quiet;
    nvs_enforce_cst_fn enforce_cst;
    nvs_enforce_cst_fn enforce_cst_at_target;
    nvs_add_device_handles_fn add_device_handles;
};

/** The ops of versions 4, 5 and 6. May be NULL: as in version 3; put_signal may not. */
struct nvs_ops_v4 {
    nvs_can_reach_fn can_reach_peer;
    nvs_connect_v4_fn connect_endpoints;
    nvs_get_handle_fn get_handle;
    nvs_release_handle_fn release_handle;
    nvs_finalize_fn finalize;
    nvs_show_info_fn show_info;
    union {
        nvs_progress_fn progress;
        nvs_progress_350_fn progress_350; /* 3.5.0 alone */
    };
    nvs_rma_fn rma;
    union {
        nvs_amo_fn amo;
        nvs_amo_v6_fn amo_v6; /* from version 6 on */
    };
    nvs_fence_v4_fn fence;
    nvs_quiet_fn quiet;
    union {
        nvs_put_signal_fn put_signal;
        nvs_put_signal_v6_fn put_signal_v6; /* from version 6 on */
    };
    nvs_enforce_cst_fn enforce_cst;
    nvs_enforce_cst_fn enforce_cst_at_target;
    nvs_add_device_handles_fn add_device_handles;
};

static_assert(sizeof(struct nvs_ops_v3) == 112 && sizeof(struct nvs_ops_v4) == 120, "op tables");
static_assert(offsetof(struct nvs_ops_v3, rma) == 56 && offsetof(struct nvs_ops_v4, rma) == 56, "op tables");
static_assert(offsetof(struct nvs_ops_v3, quiet) == 80 && offsetof(struct nvs_ops_v4, quiet) == 80, "op tables");
static_assert(offsetof(struct nvs_ops_v3, enforce_cst) == 88 && offsetof(struct nvs_ops_v4, put_signal) == 88,
              "op tables");

/* ---- The block ---- */

/** Offsets of the fields of a transport block. Those that are the same everywhere are constants. */
struct nvs_layout {
    size_t size;                        /**< as the host's header has it; allocate NVS_BLOCK_BYTES */
    size_t ops;                         /**< struct nvs_ops_v3 or struct nvs_ops_v4 */
    size_t boot;                        /**< struct nvs_boot *, host */
    size_t state;                       /**< void *, plugin */
    size_t shared_state;                /**< void *, unused here */
    size_t cache_handle;                /**< void *, host */
    size_t pci_paths;                   /**< char **, plugin: n_devices strings */
    size_t attr;                        /**< int, plugin: enum nvs_attr */
    size_t n_devices;                   /**< int, plugin; 0: it looks after devices itself */
    size_t atomics_complete_on_quiet;   /**< bool, plugin */
    size_t initialized;                 /**< bool, plugin */
    size_t no_proxy;                    /**< bool, plugin */
    size_t heap_base;                   /**< void *, host */
    size_t log2_granularity;            /**< size_t, host */
    size_t max_op_len;                  /**< uint64_t, plugin */
    size_t atomic_host_endian_min_size; /**< uint32_t, plugin */
    size_t index;                       /**< int, host */
    size_t my_pe;                       /**< int, host, behind init */
    size_t n_pes;                       /**< int, host, behind init */
    size_t alias_va_map; /**< struct nvs_map *, host: heap address -> the same memory's own address; 0: no such field */
    size_t egm_map;      /**< struct nvs_map *, host; 0: no such field */
};

#define NVS_AT_API_VERSION 0 /**< int, plugin: echoes the host's number */
#define NVS_AT_TYPE        4 /**< int, plugin: 0 */
#define NVS_AT_CAP         8 /**< int *, host: what can_reach_peer said of each PE */

/** One interface version as a host speaks it. */
struct nvs_version {
    const char *name;  /**< "3a", "3b", "4", "4 of 3.5.0", "5", "6" */
    const char *hosts; /**< NVSHMEM releases that speak it */
    int major;         /**< number of the file name, a 10,000th of the API version */
    bool ops_v4;       /**< struct nvs_ops_v4; else struct nvs_ops_v3 */
    bool handle_in;    /**< get_mem_handle has the second argument of 3a */
    bool progress_350; /**< progress has the second argument of 3.5.0 */
    bool float_amo;    /**< struct nvs_amo_verb_v6 in amo and put_signal */
    struct nvs_layout at;
};

#define NVS_VERSIONS 6

/** The i-th interface version, 0 to NVS_VERSIONS - 1. Static data. */
static inline const struct nvs_version *nvs_version_at(int i)
{
    enum { V3_OPS = 16, V4_OPS = 128 };
    /* The columns are those of struct nvs_layout. */
    static const struct nvs_version versions[NVS_VERSIONS] = {
        {"3a", "3.0 to 3.2", 3, false, true, false, false, {224, V3_OPS, 128, 136, 144, 152, 160, 168, 172, 176, 177,
                                                            178, 184,    192, 200, 208, 212, 216, 220, 0,   0}},
        {"3b", "3.3 and 3.4", 3, false, false, false, false, {240, V3_OPS, 128, 136, 144, 152, 160, 168, 172, 176, 177,
                                                              178, 184,    192, 200, 208, 212, 216, 220, 224, 232}},
        {"4", "3.5.1 to 3.5.x", 4, true, false, false, false, {248, V4_OPS, 16, 24, 32, 40,  48,  56,  60,  64, 65,
                                                               66,  72,     80, 88, 96, 100, 104, 108, 112, 120}},
        {"4 of 3.5.0", "3.5.0", 4, true, false, true, false, {248, V4_OPS, 16, 24, 32, 40,  48,  56,  60,  64, 65,
                                                              66,  72,     80, 88, 96, 100, 104, 108, 112, 120}},
        {"5", "3.6", 5, true, false, false, false, {248, V4_OPS, 16, 24, 32, 40,  48,  56,  60,  64, 65,
                                                    66,  72,     80, 88, 96, 100, 104, 108, 112, 120}},
        {"6", "3.7", 6, true, false, false, true, {248, V4_OPS, 16, 24, 32, 40,  48,  56,  60,  64, 65,
                                                   66,  72,     80, 88, 96, 100, 104, 108, 112, 120}},
    };

    return &versions[i];
}

/** Where a field of a block lies. Cast to the type that struct nvs_layout names. */
static inline void *nvs_field(void *transport, size_t offset)
{
    return (char *)transport + offset;
}

/* ---- The CUDA function table that hosts pass to nvshmemt_init(), as far as transports use it ---- */

/** Offsets of entries: driver functions. Versions from 3b on have one more entry before the fifth. */
enum nvs_cuda {
    NVS_CUDA_CTX_GET_DEVICE = 0,
    NVS_CUDA_CTX_SYNCHRONIZE = 8,
    NVS_CUDA_DEVICE_GET = 16,
    NVS_CUDA_DEVICE_GET_ATTRIBUTE = 24,
    NVS_CUDA_POINTER_GET_ATTRIBUTE_3B = 32,
    NVS_CUDA_POINTER_SET_ATTRIBUTE_3A = 32,
    NVS_CUDA_GET_ERROR_STRING_3A = 48,
    NVS_CUDA_GET_ERROR_NAME_3A = 56,
    NVS_CUDA_CTX_SET_CURRENT_3A = 64,
    NVS_CUDA_CTX_GET_CURRENT_3A = 80,
    NVS_CUDA_FLUSH_GPU_DIRECT_RDMA_WRITES_3A = 104,
    NVS_CUDA_MEM_GET_HANDLE_FOR_ADDRESS_RANGE_3A = 112,
    NVS_CUDA_SHIFT_3B = 8,     /* what 3b and later add to the _3A ones */
    NVS_CUDA_TABLE_BYTES = 512 /* more than any version has: give this much, the rest NULL or stubs */
};

#ifdef __cplusplus
}
#endif
#endif
