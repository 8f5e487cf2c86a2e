/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_init.c - the start and end of a transport: which host this is, the block that it is given and the ops in it, and
 * finalize. A host that is not understood is refused here, by name. Called by nvshmem_entry.c and the host's main thread;
 * next: nvshmem_env.c, nvshmem_connect.c
 */
#include "nvshmem.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int nvs_can_reach(int *access, struct nvs_pe_info *peer, void *transport)
{
    (void)peer;
    (void)transport;
    *access = NVS_CAP_CPU_WRITE | NVS_CAP_CPU_READ | NVS_CAP_CPU_ATOMICS;
    return NVS_SUCCESS;
}

static int nvs_show_info(void *transport, int style)
{
    const struct nvs_plugin *p = nvs_plugin_of(transport);
    struct braid_rail_stats stats;

    (void)style;
    for (int i = 0; p->braid && braid_rail_stats_at(p->braid, i, &stats) == 0; i++)
        nvs_log(&p->log, BRAID_LOG_INFO,
                "port %s: %" PRIu64 " bytes put, %" PRIu64 " got, %" PRIu64 " word ops, %" PRIu64 " errors", stats.port,
                stats.put_bytes, stats.get_bytes, stats.word_ops, stats.errors);
    return NVS_SUCCESS;
}

/* The block stays: hosts look into it still, and none frees it. */
static int nvs_finalize(void *transport)
{
    struct nvs_block *block = transport;
    struct nvs_plugin *p = block->plugin;

    if (p) {
        nvs_show_info(transport, 0);
        *(void **)nvs_at(p, p->at->state) = NULL;
        block->plugin = NULL;
        nvs_close(p);
    }
    return NVS_SUCCESS;
}

/* Asked of the GPU whose context the host has made current. Where ports are opened later, it cannot be asked yet. */
static bool nvs_cst_at_target(const struct nvs_plugin *p)
{
    struct braid_gpu gpu = {.size = sizeof(gpu)};
    int rc = p->braid ? braid_gpu_at(p->braid, &gpu) : -EAGAIN;
    bool flush = nvs_cst_needed(rc, gpu.ordered);

    if (flush)
        nvs_log(&p->log, BRAID_LOG_INFO,
                "waits of kernels flush what NICs have written: CUDA does not promise that GPU %s sees it in order",
                rc ? "(not known yet)" : gpu.pci);
    return flush;
}

static void nvs_fill_v3(struct nvs_plugin *p)
{
    struct nvs_ops_v3 *ops = nvs_at(p, p->at->ops);

    *ops = (struct nvs_ops_v3){.can_reach_peer = nvs_can_reach,
                               .connect_endpoints = nvs_connect_v3,
                               .get_handle_any = nvs_get_handle_v3,
                               .release_handle = nvs_release_handle,
                               .finalize = nvs_finalize,
                               .show_info = nvs_show_info,
                               .progress = nvs_progress,
                               .rma = nvs_rma,
                               .amo = nvs_amo,
                               .fence = p->env.strict ? nvs_fence_v3 : NULL,
                               .quiet = nvs_quiet,
                               .enforce_cst = nvs_enforce_cst,
                               .enforce_cst_at_target = nvs_cst_at_target(p) ? nvs_enforce_cst : NULL};
}

static void nvs_fill_v4(struct nvs_plugin *p)
{
    struct nvs_ops_v4 *ops = nvs_at(p, p->at->ops);

    *ops = (struct nvs_ops_v4){.can_reach_peer = nvs_can_reach,
                               .connect_endpoints = nvs_connect_v4,
                               .get_handle = nvs_get_handle,
                               .release_handle = nvs_release_handle,
                               .finalize = nvs_finalize,
                               .show_info = nvs_show_info,
                               /* 3.5.0 passes one argument more, in a register that nobody reads */
                               .progress = nvs_progress,
                               .rma = nvs_rma,
                               .fence = p->env.strict ? nvs_fence_v4 : NULL,
                               .quiet = nvs_quiet,
                               .enforce_cst = nvs_enforce_cst,
                               .enforce_cst_at_target = nvs_cst_at_target(p) ? nvs_enforce_cst : NULL};
    if (p->major >= 6) {
        ops->amo_v6 = nvs_amo_v6;
        ops->put_signal_v6 = nvs_put_signal_v6;
    } else {
        ops->amo = nvs_amo;
        ops->put_signal = nvs_put_signal;
    }
}

/* n_devices and the strings stay 0: that is how a transport says that it looks after devices itself. */
static void nvs_fill(struct nvs_plugin *p, int api_version)
{
    *(int *)nvs_at(p, NVS_AT_API_VERSION) = api_version;
    *(void **)nvs_at(p, p->at->state) = p;
    *(int *)nvs_at(p, p->at->attr) = NVS_ATTR_CONNECTED;
    *(uint64_t *)nvs_at(p, p->at->max_op_len) = NVS_MAX_OP_LEN;
    *(bool *)nvs_at(p, p->at->initialized) = true;
    if (p->major == 3)
        nvs_fill_v3(p);
    else
        nvs_fill_v4(p);
}

/* Zeroed. In version 3 a block's address must be told from a bool in a register (see nvshmem_mem.c), so the lowest byte of the
 * address may be neither 0 nor 1: it is NVS_BLOCK_AT, since what is aligned to 256 has such a byte in front of it. */
static struct nvs_block *nvs_block_new(void)
{
    char *memory = aligned_alloc(256, NVS_BLOCK_ROOM);

    if (!memory)
        return NULL;
    memset(memory, 0, NVS_BLOCK_ROOM);
    return (struct nvs_block *)(void *)(memory + NVS_BLOCK_AT);
}

/* Frees one that the host has never seen. NULL is allowed. */
static void nvs_block_free(struct nvs_block *block)
{
    free(block ? (char *)block - NVS_BLOCK_AT : NULL);
}

/* The table of offsets. Of two versions with one number the later has all fields of the earlier at the same place. */
static const struct nvs_layout *nvs_layout_of(int major)
{
    const struct nvs_layout *at = NULL;

    for (int i = 0; i < NVS_VERSIONS; i++) {
        if (nvs_version_at(i)->major == major)
            at = &nvs_version_at(i)->at;
    }
    return at;
}

/* Whether this file can serve the host. 0, or -ENOTSUP with a message. */
static int nvs_understood(const struct nvs_log *log, int api_version, int major)
{
    int theirs = api_version / 10000;

#if !defined(__x86_64__)
    nvs_log(
        log, BRAID_LOG_ERROR,
        "this is no x86-64: how a host calls a transport on this processor (aarch64) has not been worked out; remove braid's "
        "file or use NVSHMEM's own");
    return -ENOTSUP;
#endif
    if (theirs == major)
        return 0;
    if (theirs >= NVS_MAJOR_FIRST && theirs <= NVS_MAJOR_LAST)
        nvs_log(log, BRAID_LOG_ERROR,
                "the host speaks transport interface %d (number %d), this file is for %d: it needs "
                "nvshmem_transport_ibrc.so.%d",
                theirs, api_version, major, theirs);
    else
        nvs_log(log, BRAID_LOG_ERROR,
                "the host speaks transport interface %d (number %d), which braid does not know: it knows %d to %d, of "
                "NVSHMEM 3.0 to 3.7 (3.8 speaks 7); use one of these, or NVSHMEM's own nvshmem_transport_ibrc.so.%d",
                theirs, api_version, NVS_MAJOR_FIRST, NVS_MAJOR_LAST, theirs);
    return -ENOTSUP;
}

/* A clock that the program lends, or NULL. */
static const struct braid_plugin_clock *nvs_clock(void)
{
    void *address = dlsym(RTLD_DEFAULT, BRAID_PLUGIN_CLOCK_NAME);
    braid_plugin_clock_fn fn = NULL;

    memcpy(&fn, &address, sizeof(fn));
    return fn ? fn() : NULL;
}

/* Everything but the block's fields. */
static int nvs_start(struct nvs_plugin *p, void *caller)
{
    int rc;

    nvs_host_find(caller, &p->host);
    rc = nvs_env_read((nvs_getenv_fn)getenv, &p->host, &p->log, &p->env);
    if (rc)
        return rc;
    p->clock = nvs_clock();
    p->fence_each = p->env.strict && nvs_host_keeps_fences(&p->host);
    nvs_log(&p->log, BRAID_LOG_INFO, "braid %s as transport ibrc, interface %d, host NVSHMEM %d.%d.%d", braid_version(),
            p->major, p->host.major, p->host.minor, p->host.patch);
    return p->env.by_rank ? nvs_verbs_there(&p->log) : nvs_open(p);
}

int nvs_init(void **out, int api_version, int major, void *caller)
{
    struct nvs_log log = {.level = BRAID_LOG_WARN, .pe = -1};
    struct nvs_block *block;
    struct nvs_plugin *p;
    int rc = nvs_understood(&log, api_version, major);

    if (rc)
        return major == api_version / 10000 ? NVS_NOT_SUPPORTED : NVS_INVALID_VALUE;
    block = nvs_block_new();
    p = aligned_alloc(_Alignof(struct nvs_plugin), sizeof(*p));
    if (!block || !p) {
        nvs_block_free(block);
        free(p);
        return NVS_OUT_OF_MEMORY;
    }
    memset(p, 0, sizeof(*p));
    p->block = block;
    p->major = major;
    p->at = nvs_layout_of(major);
    p->log = log;
    pthread_mutex_init(&p->mem_lock, NULL);
    nvs_fetch_init(&p->fetches);
    rc = nvs_start(p, caller);
    if (rc) {
        nvs_log(&p->log, BRAID_LOG_ERROR, "no transport over RDMA: %s", strerror(-rc));
        nvs_close(p);
        nvs_block_free(block);
        return nvs_status(rc);
    }
    block->plugin = p;
    nvs_fill(p, api_version);
    *out = block;
    return NVS_SUCCESS;
}
