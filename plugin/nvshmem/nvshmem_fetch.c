/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_fetch.c - results of fetching atomics. A result comes to a word of the host's; the GPU polls a flag in its own
 * memory, which this CPU may not be able to write. So two small puts to oneself follow: the data, and behind it, as every word
 * op is, the flag. One thread at a time is inside; the others leave it to that one. The data path.
 * Called by nvshmem_amo.c and nvshmem_order.c; next: braid_p()
 */
#include "nvshmem.h"

#include <errno.h>
#include <stddef.h>

static bool nvs_fetch_enter(struct nvs_fetches *f)
{
    return !__atomic_exchange_n(&f->owned, 1, __ATOMIC_ACQUIRE);
}

static void nvs_fetch_leave(struct nvs_fetches *f)
{
    __atomic_store_n(&f->owned, 0, __ATOMIC_RELEASE);
}

void nvs_fetch_init(struct nvs_fetches *f)
{
    for (uint16_t i = 0; i < NVS_FETCHES; i++)
        f->order[i] = i;
}

int nvs_fetch_take(struct nvs_plugin *p, struct nvs_fetch **out)
{
    struct nvs_fetches *f = &p->fetches;
    int rc = 0;

    while (!rc) {
        if (nvs_fetch_enter(f)) {
            struct nvs_fetch *fetch = NULL;

            if (f->active < NVS_FETCHES) {
                fetch = &f->item[f->order[f->active]];
                *fetch = (struct nvs_fetch){0};
                __atomic_store_n(&f->active, f->active + 1, __ATOMIC_RELAXED);
            }
            nvs_fetch_leave(f);
            if (fetch) {
                *out = fetch;
                return 0;
            }
        }
        rc = braid_turn(p->channel[NVS_PROXY_CHANNEL]);
        if (!rc)
            rc = nvs_fetch_drive(p);
    }
    return rc;
}

void nvs_fetch_drop(struct nvs_fetch *fetch)
{
    __atomic_store_n(&fetch->dropped, true, __ATOMIC_RELEASE);
}

static int nvs_fetch_write(struct nvs_plugin *p, unsigned channel, struct braid_remote slot, size_t offset,
                           uint64_t value)
{
    slot.addr += offset;
    return braid_p(p->channel[channel], p->my_pe, slot, value, sizeof(value), &p->done[channel]);
}

/* 1: it is through; 0: not yet; or a negative errno. */
static int nvs_fetch_step(struct nvs_plugin *p, struct nvs_fetch *f)
{
    int rc;

    if (__atomic_load_n(&f->dropped, __ATOMIC_ACQUIRE))
        return 1;
    if (__atomic_load_n(&f->done.failed, __ATOMIC_ACQUIRE))
        return f->done.error;
    if (!__atomic_load_n(&f->done.ok, __ATOMIC_ACQUIRE))
        return 0;
    if (!f->data_sent) {
        rc = nvs_fetch_write(p, NVS_PROXY_CHANNEL, f->slot, offsetof(struct nvs_fetch_slot, data), f->old);
        if (rc)
            return rc == -EAGAIN ? 0 : rc;
        f->data_sent = true;
    }
    rc = nvs_fetch_write(p, NVS_PROXY_CHANNEL, f->slot, offsetof(struct nvs_fetch_slot, flag), f->flag);
    return rc ? (rc == -EAGAIN ? 0 : rc) : 1;
}

int nvs_fetch_drive(struct nvs_plugin *p)
{
    struct nvs_fetches *f = &p->fetches;
    int rc = 0;

    if (!__atomic_load_n(&f->active, __ATOMIC_RELAXED) || !nvs_fetch_enter(f))
        return 0;
    for (uint32_t i = 0; i < f->active;) {
        uint16_t number = f->order[i];
        int step = nvs_fetch_step(p, &f->item[number]);

        if (step == 0) {
            i++;
            continue;
        }
        if (step < 0 && !rc)
            rc = step;
        f->order[i] = f->order[f->active - 1];
        f->order[f->active - 1] = number;
        __atomic_store_n(&f->active, f->active - 1, __ATOMIC_RELAXED);
    }
    nvs_fetch_leave(f);
    return rc;
}

int nvs_fetch_wait(struct nvs_plugin *p)
{
    int rc = nvs_fetch_drive(p);

    while (!rc && __atomic_load_n(&p->fetches.active, __ATOMIC_RELAXED)) {
        rc = braid_turn(p->channel[NVS_PROXY_CHANNEL]);
        if (!rc)
            rc = nvs_fetch_drive(p);
    }
    return rc;
}

int nvs_fetch_slot_at(struct nvs_plugin *p, unsigned channel, const void *slot, struct braid_remote *out)
{
    struct nvs_rma_mem own = {0};
    struct nvs_region region;

    if (!nvs_regions_find(&p->regions, channel, slot, sizeof(struct nvs_fetch_slot), &region)) {
        nvs_log(&p->log, BRAID_LOG_ERROR, "the slot of a fetch at %p lies in no registered region", slot);
        return -ERANGE;
    }
    /* The kept copy: what is on its way there may outlive the region. */
    own.ptr = (void *)(uintptr_t)slot;
    own.handle = (struct nvs_handle *)(void *)region.key;
    return nvs_remote(p, channel, p->my_pe, &own, out);
}

int nvs_fetch_deliver(struct nvs_plugin *p, unsigned channel, const struct nvs_amo_mem *mem, uint64_t data)
{
    uint64_t value[2] = {data, mem->retflag};
    struct braid_remote slot;
    int rc = nvs_fetch_slot_at(p, channel, mem->retptr, &slot);

    for (unsigned i = 0; !rc && i < 2; i++) {
        do
            rc = nvs_fetch_write(p, channel, slot, i * sizeof(value[0]), value[i]);
        while (nvs_again(p, channel, &rc));
    }
    return rc;
}
