/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_keys.c - peers' keys, kept. The host lends a handle for the length of a call: where it keeps them moves when its heap
 * grows, while puts still wait for a lane. braid wants a key until the op has ended. So each is copied the first time that it is
 * seen, which is also when it is checked in full; from then on it is found, without allocation. Kept until finalize: at most one for
 * each region that each peer has ever had. The data path. Called by nvshmem_rma.c, nvshmem_amo.c, nvshmem_signal.c; next: their ops
 */
#include "nvshmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct nvs_kept {
    struct braid_key key;
    uint64_t hash;
};

/* Places at first; a power of two. */
enum { NVS_KEYS_FIRST = 64 };

/* Of the first 64 bytes: only speed depends on it, the whole is compared. */
static uint64_t nvs_key_hash(const unsigned char *bytes)
{
    uint64_t hash = 0, part;

    for (unsigned i = 0; i < 64; i += sizeof(part)) {
        memcpy(&part, bytes + i, sizeof(part));
        hash = (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Where the key is, or the free place where it belongs. There is always a free one. */
static size_t nvs_keys_at(struct nvs_kept *const *place, size_t size, uint64_t hash, const unsigned char *bytes)
{
    size_t at = hash & (size - 1);

    while (place[at] &&
           (place[at]->hash != hash || memcmp(place[at]->key.bytes, bytes, sizeof(place[at]->key.bytes)) != 0))
        at = (at + 1) & (size - 1);
    return at;
}

/* Twice the places. 0 or -ENOMEM. */
static int nvs_keys_grow(struct nvs_keys *k)
{
    size_t size = k->size ? 2 * k->size : NVS_KEYS_FIRST;
    struct nvs_kept **place = calloc(size, sizeof(struct nvs_kept *));

    if (!place)
        return -ENOMEM;
    for (size_t i = 0; i < k->size; i++) {
        if (k->place[i])
            place[nvs_keys_at(place, size, k->place[i]->hash, k->place[i]->key.bytes)] = k->place[i];
    }
    free(k->place);
    k->place = place;
    k->size = size;
    return 0;
}

/* A key seen for the first time. 0, -ENOMEM, or -EPROTO where it is damaged. */
static int nvs_keys_add(struct nvs_plugin *p, struct nvs_keys *k, int pe, uint64_t hash, const unsigned char *bytes,
                        const struct braid_key **out)
{
    struct nvs_kept *kept;
    int rc = k->count < k->size / 2 ? 0 : nvs_keys_grow(k);

    if (rc)
        return rc;
    kept = malloc(sizeof(*kept));
    if (!kept)
        return -ENOMEM;
    memcpy(kept->key.bytes, bytes, sizeof(kept->key.bytes));
    kept->hash = hash;
    rc = braid_key_check(p->braid, pe, &kept->key);
    if (rc) {
        free(kept);
        return rc;
    }
    k->place[nvs_keys_at(k->place, k->size, hash, bytes)] = kept;
    k->count++;
    *out = &kept->key;
    return 0;
}

int nvs_remote(struct nvs_plugin *p, unsigned channel, int pe, const struct nvs_rma_mem *mem, struct braid_remote *out)
{
    struct nvs_keys *k = &p->keys[channel];
    const struct braid_key *key = NULL;
    int rc = 0;

    if (!mem->handle) {
        nvs_log(&p->log, BRAID_LOG_ERROR, "no handle for %p of PE %d: expected symmetric memory", mem->ptr, pe);
        return -EINVAL;
    }
    while (__atomic_exchange_n(&k->owned, 1, __ATOMIC_ACQUIRE)) /* threads of the host's, on one channel */
        ;
    const unsigned char *bytes = mem->handle->bytes;
    uint64_t hash = nvs_key_hash(bytes);
    size_t at = k->size ? nvs_keys_at(k->place, k->size, hash, bytes) : 0;
    if (k->size && k->place[at])
        key = &k->place[at]->key;
    else
        rc = nvs_keys_add(p, k, pe, hash, bytes, &key);
    __atomic_store_n(&k->owned, 0, __ATOMIC_RELEASE);
    if (!rc)
        *out = (struct braid_remote){.addr = (uintptr_t)mem->ptr, .key = key};
    return rc;
}

void nvs_keys_free(struct nvs_keys *k)
{
    for (size_t i = 0; i < k->size; i++)
        free(k->place[i]);
    free(k->place);
    *k = (struct nvs_keys){0};
}
