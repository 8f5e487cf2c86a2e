/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_connect.c - from ports to channels: opens libbraid's context, connects it over the host's bootstrap, says what is in
 * force. Only from connect_endpoints on are the own number and the bootstrap known, so a choice by rank is made there.
 * Called by nvshmem_init.c and the host's main thread; next: braid_open(), braid_connect()
 */
#include "nvshmem.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int nvs_open(struct nvs_plugin *p)
{
    struct braid_options options = BRAID_OPTIONS_INIT;

    options.settings = (const char *const *)p->env.settings.item;
    options.log = nvs_log_line;
    options.log_arg = &p->log;
    if (p->clock) {
        options.now = p->clock->now;
        options.wait = p->clock->wait;
        options.clock_arg = p->clock->arg;
    }
    return braid_open(&options, &p->braid);
}

int nvs_verbs_there(const struct nvs_log *log)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!library) {
        nvs_log(log, BRAID_LOG_ERROR, "cannot load libibverbs.so.1: %s; install rdma-core (libibverbs1)", dlerror());
        return -ELIBACC;
    }
    dlclose(library);
    return 0;
}

/* The ports of this PE's rank on its node, where the user has laid them down so. */
static int nvs_open_by_rank(struct nvs_plugin *p, const struct nvs_boot *boot)
{
    char ports[NVS_PORTS_BYTES];
    const char *option = "ports";
    int rc;

    if (boot->npes_node > 1 && boot->mype_node >= 0 && boot->mype_node < boot->npes_node) {
        nvs_slots_pick(&p->env.slots, boot->mype_node, boot->npes_node, ports);
    } else {
        /* Jobs of one PE for each GPU of a node, as DeepEP starts them, have rank 0 everywhere: all would take the first. */
        nvs_slots_once(&p->env.slots, 0, p->env.slots.count, ports);
        if (p->env.slots.count > 1)
            nvs_log(
                &p->log, BRAID_LOG_WARN,
                "%s goes by the rank on the node, but this job has one PE a node: its ports are candidates, of which the "
                "nearest are taken",
                p->env.from);
        option = "only";
    }
    nvs_log(&p->log, BRAID_LOG_INFO, "%s=%s by %s, rank %d of %d on this node", option, ports, p->env.from,
            boot->mype_node, boot->npes_node);
    rc = nvs_settings_add(&p->env.settings, option, ports);
    return rc ? rc : nvs_open(p);
}

/* braid's alltoall over the host's, which counts in int. */
static int nvs_alltoall(void *arg, const void *send, void *recv, size_t bytes_each)
{
    struct nvs_boot *boot = arg;

    if (bytes_each > INT_MAX)
        return -EMSGSIZE;
    return boot->alltoall(send, recv, (int)bytes_each, boot) ? -EIO : 0;
}

/* A line for each rail has been written when it was opened, and what is in force when connecting. */
static void nvs_tell(const struct nvs_plugin *p)
{
    nvs_log(&p->log, BRAID_LOG_INFO,
            "connected %d PEs over %d ports; fences %s; atomics by the target's home rail; host's own number %d.%d.%d",
            p->n_pes, braid_rail_count(p->braid),
            !p->env.strict  ? "cost nothing: every signal is behind all earlier ops to its PE"
            : p->fence_each ? "stand before every op, since this host keeps its own to itself"
                            : "order all ops",
            p->host.major, p->host.minor, p->host.patch);
}

static int nvs_connect(struct nvs_plugin *p)
{
    struct nvs_boot *boot = *(struct nvs_boot **)nvs_at(p, p->at->boot);
    struct braid_peers peers = {.size = sizeof(peers), .alltoall = nvs_alltoall, .arg = boot};
    int rc = 0;

    if (!boot || !boot->alltoall) {
        nvs_log(&p->log, BRAID_LOG_ERROR, "the host has given no bootstrap with an alltoall");
        return -EINVAL;
    }
    p->my_pe = peers.my_pe = *(int *)nvs_at(p, p->at->my_pe);
    p->n_pes = peers.n_pes = *(int *)nvs_at(p, p->at->n_pes);
    p->log.pe = p->my_pe;
    if (!p->braid)
        rc = nvs_open_by_rank(p, boot);
    if (!rc)
        rc = braid_connect(p->braid, &peers);
    for (unsigned i = 0; !rc && i < NVS_CHANNELS; i++)
        p->channel[i] = braid_channel_at(p->braid, (int)i);
    if (rc)
        nvs_log(&p->log, BRAID_LOG_ERROR, "cannot connect to the other PEs: %s", strerror(-rc));
    else
        nvs_tell(p);
    return rc;
}

int nvs_connect_v3(void *transport, int *dev_ids, int n_dev)
{
    struct nvs_plugin *p = nvs_plugin_of(transport);

    (void)dev_ids; /* the plugin has named no devices */
    (void)n_dev;
    return p->channel[NVS_PROXY_CHANNEL] ? 0 : nvs_status(nvs_connect(p));
}

int nvs_connect_v4(void *transport, int *dev_ids, int n_dev, int *out_qp, int n_qp)
{
    (void)out_qp; /* filled in with "the default one", which is the answer */
    (void)n_qp;
    return nvs_connect_v3(transport, dev_ids, n_dev);
}

void nvs_close(struct nvs_plugin *p)
{
    if (!p)
        return;
    braid_close(p->braid);
    nvs_regions_free(&p->regions);
    for (unsigned i = 0; i < NVS_CHANNELS; i++)
        nvs_keys_free(&p->keys[i]);
    nvs_env_free(&p->env);
    pthread_mutex_destroy(&p->mem_lock);
    free(p);
}
