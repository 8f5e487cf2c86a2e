/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_mem.c - regions: registered on every rail; their keys packed for peers and checked on arrival.
 * May not post. Called by the user; api_key_check() by api_put.c and api_signal.c.
 */
#include "api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API_WHY 256 /* bytes of a reason */

static int api_mem_check(const struct braid *b, const void *addr, size_t len, const struct braid_mem_options *options,
                         struct braid_mem_options *out)
{
    uint64_t *remote_addr = &out->remote_addr;
    uint64_t end;
    if (!addr || len == 0 || !checked_add_u64((uintptr_t)addr, len, &end)) {
        log_write(&b->log, LOG_LEVEL_ERROR, "cannot register %zu bytes at %p: expected a range that is not empty", len,
                  addr);
        return -EINVAL;
    }
    *out = (struct braid_mem_options){0};
    if (options) {
        static const size_t ends[] = {offsetof(struct braid_mem_options, alias)};
        static const struct api_struct layout = {
            .name = "braid_mem_options", .size = sizeof(*options), .ends = ends, .count = 1};
        if (api_struct_read(&b->log, &layout, options, out))
            return -EINVAL;
    }
    /* Linux takes an IOVA at its address's place within a page only (ib_uverbs_reg_mr() in the kernel). */
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (*remote_addr && *remote_addr % page != (uintptr_t)addr % page) {
        log_write(
            &b->log, LOG_LEVEL_ERROR,
            "cannot name the bytes at %p by remote_addr 0x%llx: both must lie at the same offset within a page of %llu "
            "bytes",
            addr, (unsigned long long)*remote_addr, (unsigned long long)page);
        return -EINVAL;
    }
    if (!checked_add_u64(*remote_addr, len, &end)) {
        log_write(&b->log, LOG_LEVEL_ERROR, "cannot name %zu bytes from 0x%llx: the range wraps", len,
                  (unsigned long long)*remote_addr);
        return -EINVAL;
    }
    return 0;
}

/* The list of regions is the context's thread's, but executors of target-executed atomics look into it (api_exec.c, which
 * never waits for it). */
static void api_mems_lock(struct braid *b)
{
    while (__atomic_exchange_n(&b->mems_lock, 1, __ATOMIC_ACQUIRE))
        clock_pause();
}

static void api_mems_unlock(struct braid *b)
{
    __atomic_store_n(&b->mems_lock, 0, __ATOMIC_RELEASE);
}

/* Takes a region off the list, whose lock is held. */
static void api_mem_unlink(struct braid_mem *mem)
{
    *mem->link = mem->next;
    if (mem->next)
        mem->next->link = mem->link;
    mem->link = NULL;
}

/* Registers host memory on every rail. 0 or a negative errno; logs. */
static int api_mem_reg_host(struct braid_mem *mem, void *addr, uint64_t iova)
{
    struct braid *b = mem->braid;
    for (unsigned i = 0; i < b->rail_count; i++) {
        int rc = verbs_mr_reg(b->rail[i]->dev, addr, mem->len, iova, VERBS_ACCESS_REMOTE, &mem->mr[i]);
        if (!rc && b->options.relaxed)
            rc = verbs_mr_reg(b->rail[i]->dev, addr, mem->len, iova, VERBS_ACCESS_RELAXED, &mem->relaxed[i]);
        if (rc) {
            log_write(&b->log, LOG_LEVEL_ERROR, "cannot register %llu bytes at %p on port %s: %s%s",
                      (unsigned long long)mem->len, addr, b->rail[i]->name, strerror(-rc), rail_hint(rc));
            return rc;
        }
    }
    return 0;
}

static void api_mem_link(struct braid_mem *mem)
{
    struct braid *b = mem->braid;
    api_mems_lock(b);
    mem->next = b->mems;
    mem->link = &b->mems;
    if (mem->next)
        mem->next->link = &mem->next;
    b->mems = mem;
    api_mems_unlock(b);
}

int braid_mem_reg(struct braid *b, void *addr, size_t len, const struct braid_mem_options *options,
                  struct braid_mem **out)
{
    struct braid_mem_options known;
    if (!b || !out)
        return -EINVAL;
    int rc = api_mem_check(b, addr, len, options, &known);
    if (rc)
        return rc;
    int gpu = api_gpu_of(b, addr, len);
    if (gpu < 0)
        return gpu;
    struct braid_mem *mem = calloc(1, sizeof(*mem));
    if (!mem) {
        log_write(&b->log, LOG_LEVEL_ERROR, "no memory for a region");
        return -ENOMEM;
    }
    mem->braid = b;
    mem->addr = (uintptr_t)addr;
    mem->len = len;
    mem->memory = gpu ? RAIL_WIRE_MEMORY_GPU : RAIL_WIRE_MEMORY_HOST;
    mem->remote_addr = known.remote_addr ? known.remote_addr : mem->addr;
    rc = gpu ? api_gpu_reg(mem, addr, known.alias) : api_mem_reg_host(mem, addr, known.remote_addr);
    if (rc) {
        api_mem_free(mem);
        return rc;
    }
    mem->rail_count = b->rail_count;
    for (unsigned i = 0; i < b->rail_count; i++)
        mem->lkey[i] = verbs_mr_lkey(mem->mr[i]);
    /* Before anybody can name it. */
    __atomic_fetch_or(&b->mem_kinds, mem->memory, __ATOMIC_RELAXED);
    api_mem_link(mem);
    *out = mem;
    return 0;
}

void api_mem_free(struct braid_mem *mem)
{
    if (!mem)
        return;
    if (mem->link) {
        api_mems_lock(mem->braid);
        api_mem_unlink(mem);
        api_mems_unlock(mem->braid);
    }
    for (unsigned i = 0; i < BRAID_MAX_RAILS; i++) {
        verbs_mr_dereg(mem->relaxed[i]);
        verbs_mr_dereg(mem->mr[i]);
    }
    free(mem);
}

/* The first channel whose ops use the region, and how many do; API_MAX_CHANNELS: none. */
static unsigned api_mem_user(const struct braid_mem *mem, uint32_t *users)
{
    unsigned c = 0;
    *users = 0;
    while (c < API_MAX_CHANNELS && !(*users = __atomic_load_n(&mem->users[c], __ATOMIC_ACQUIRE)))
        c++;
    return c;
}

int braid_mem_dereg_wait(struct braid_channel *ch, struct braid_mem *mem)
{
    uint32_t users;
    int rc = 0;
    if (!ch || (mem && mem->braid != ch->braid))
        return -EINVAL;
    api_enter(ch);
    while (mem && !rc && api_mem_user(mem, &users) < API_MAX_CHANNELS)
        rc = api_turn(ch, UINT64_MAX);
    api_leave(ch);
    return rc ? rc : braid_mem_dereg(mem);
}

int braid_mem_dereg(struct braid_mem *mem)
{
    if (!mem)
        return 0;
    uint32_t users;
    /* Under the lock, so that no executor finds the region once nobody uses it. */
    api_mems_lock(mem->braid);
    unsigned c = api_mem_user(mem, &users);
    if (!users)
        api_mem_unlink(mem);
    api_mems_unlock(mem->braid);
    if (users) {
        log_write(&mem->braid->log, LOG_LEVEL_ERROR,
                  "a region of %llu bytes is in use by %u ops of channel %u: call braid_quiet() before ending it",
                  (unsigned long long)mem->len, users, c);
        return -EBUSY;
    }
    api_mem_free(mem);
    return 0;
}

int braid_mem_key(const struct braid_mem *mem, struct braid_key *out)
{
    if (!mem || !out)
        return -EINVAL;
    const struct braid *b = mem->braid;
    struct rail_wire_key key = {
        .cookie = b->cookie,
        /* A host may exchange keys before it connects: the cookie still says whose they are. */
        .owner = b->state == API_CONNECTED ? (uint32_t)b->my_pe : RAIL_WIRE_NO_PE,
        .addr = mem->remote_addr,
        .len = mem->len,
        .rails = mem->rail_count,
        .memory = mem->memory,
    };
    for (unsigned i = 0; i < mem->rail_count; i++) {
        key.bulk_rkey[i] = verbs_mr_rkey(mem->relaxed[i] ? mem->relaxed[i] : mem->mr[i]);
        key.word_rkey[i] = verbs_mr_rkey(mem->mr[i]);
    }
    rail_wire_pack_key(&key, out->bytes);
    return 0;
}

/* Whether a key was made by this peer's context; why says what is wrong. Any thread: a peer's number and cookie stay. */
static int api_key_owner(const struct api_peer *peer, uint64_t cookie, uint32_t owner, char why[API_WHY])
{
    if (owner != RAIL_WIRE_NO_PE && owner != (uint32_t)peer->pe) {
        snprintf(why, API_WHY, "a key of PE %u was used for PE %d", owner, peer->pe);
        return -EPROTO;
    }
    if (cookie != peer->cookie) {
        snprintf(
            why, API_WHY,
            "a key used for PE %d was made by another context (0x%llx, expected 0x%llx): of another PE, or of that PE "
            "before it was opened again",
            peer->pe, (unsigned long long)cookie, (unsigned long long)peer->cookie);
        return -EPROTO;
    }
    return 0;
}

/* Called on the context's thread, so it stays away from what belongs to a channel's, the limits of its log included. */
int braid_key_check(struct braid *b, int pe, const struct braid_key *key)
{
    struct rail_wire_key full;
    char damage[RAIL_WIRE_WHY], why[API_WHY];
    if (!b || !key)
        return -EINVAL;
    if (b->state != API_CONNECTED || pe < 0 || pe >= b->n_pes) {
        log_write(&b->log, LOG_LEVEL_ERROR, "cannot check a key for PE %d: expected a connected context and 0 to %d",
                  pe, b->n_pes - 1);
        return -EINVAL;
    }
    int rc = rail_wire_unpack_key(key->bytes, sizeof(key->bytes), &full, damage);
    if (rc)
        snprintf(why, sizeof(why), "a key for PE %d is %s", pe, damage);
    else
        rc = api_key_owner(&b->channel[0]->peers[pe], full.cookie, full.owner, why);
    if (rc)
        log_write(&b->log, LOG_LEVEL_ERROR, "%s", why);
    return rc;
}

int api_key_check(struct api_peer *peer, const struct braid_remote *remote, uint64_t len, struct rail_wire_view *view)
{
    int rc = rail_wire_view_key(remote->key->bytes, view);
    if (rc) {
        api_log_limited(peer->channel, API_LOG_KEY,
                        "what was given as a key for PE %d is none of version %d: see braid_key_check()", peer->pe,
                        RAIL_WIRE_VERSION);
        return rc;
    }
    if (view->cookie != peer->cookie || (view->owner != RAIL_WIRE_NO_PE && view->owner != (uint32_t)peer->pe)) {
        char why[API_WHY];
        rc = api_key_owner(peer, view->cookie, view->owner, why);
        api_log_limited(peer->channel, API_LOG_OWNER, "%s", why);
        return rc;
    }
    if (!range_inside(remote->addr, len, view->addr, view->len)) {
        api_log_limited(peer->channel, API_LOG_RANGE,
                        "%llu bytes at 0x%llx of PE %d lie outside its region of %llu bytes at 0x%llx",
                        (unsigned long long)len, (unsigned long long)remote->addr, peer->pe,
                        (unsigned long long)view->len, (unsigned long long)view->addr);
        return -ERANGE;
    }
    if (view->memory == RAIL_WIRE_MEMORY_GPU && !peer->gpu_line) {
        api_log_limited(peer->channel, API_LOG_KEY,
                        "a key of GPU memory of PE %d, which has told of no flush line in such memory when connecting",
                        peer->pe);
        return -EPROTO;
    }
    api_flush_kind(peer, view->memory);
    return 0;
}
