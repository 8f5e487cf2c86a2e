/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_check.c - arguments of ops: all that can be wrong with them, before anything is taken or posted.
 * Called by api_put.c, api_get.c, api_signal.c, api_atomic.c; next: their own acceptance.
 */
#include "api.h"

#include <errno.h>

static int api_check_local(struct braid_channel *ch, const struct braid_local *local, uint64_t len, uint64_t *as_lkey)
{
    const struct braid_mem *mem = local->mem;
    uint64_t addr = (uintptr_t)local->addr;
    if (!mem || mem->braid != ch->braid) {
        api_log_limited(ch, API_LOG_LOCAL, "the local region is %s: register the bytes with braid_mem_reg()",
                        mem ? "of another context" : "NULL");
        return -EINVAL;
    }
    if (!range_inside(addr, len, mem->addr, mem->len)) {
        api_log_limited(ch, API_LOG_RANGE,
                        "%llu local bytes at 0x%llx lie outside their region of %llu bytes at 0x%llx",
                        (unsigned long long)len, (unsigned long long)addr, (unsigned long long)mem->len,
                        (unsigned long long)mem->addr);
        return -ERANGE;
    }
    /* An IOVA names the bytes for the lkey too (ibv_reg_mr_iova(3)). */
    *as_lkey = mem->remote_addr + (addr - mem->addr);
    return 0;
}

/* Whether the key has an rkey for each lane. Keys of one context cover all its rails, so one look at the count does. */
static int api_check_rails(struct api_peer *peer, unsigned rails)
{
    if (peer->rails_needed <= rails)
        return 0;
    api_log_limited(peer->channel, API_LOG_RAIL, "the key of PE %d covers %u rails, lanes go to its rail %u", peer->pe,
                    rails, peer->rails_needed - 1);
    return -EPROTO;
}

int api_check_transfer(struct braid_channel *ch, int pe, const struct braid_remote *remote,
                       const struct braid_local *local, uint64_t len, struct api_transfer *out)
{
    struct rail_wire_view view;
    struct api_peer *peer = api_peer(ch, pe);
    if (!peer)
        return -EINVAL;
    if (len > API_MAX_LEN || !remote->key) {
        api_log_limited(ch, API_LOG_ARGUMENT, "a transfer of %llu bytes %s: expected at most 2^30 and a key",
                        (unsigned long long)len, remote->key ? "with a key" : "without a key");
        return -EINVAL;
    }
    int rc = api_key_check(peer, remote, len, &view);
    if (!rc)
        rc = api_check_local(ch, local, len, &out->local_addr);
    if (!rc)
        rc = api_check_rails(peer, view.rails);
    if (rc)
        return rc;
    out->peer = peer;
    out->remote_addr = remote->addr;
    out->key = remote->key;
    /* The public handle is const because an op changes nothing about it; that it is in use is counted inside. */
    out->mem = (struct braid_mem *)(uintptr_t)local->mem;
    out->len = len;
    return 0;
}

int api_check_word(struct braid_channel *ch, int pe, const struct braid_remote *remote, unsigned bytes,
                   struct api_peer **out)
{
    struct rail_wire_view view;
    struct api_peer *peer = api_peer(ch, pe);
    if (!peer)
        return -EINVAL;
    if (!remote->key || remote->addr % bytes) {
        api_log_limited(ch, API_LOG_ALIGN,
                        "a word of %u bytes at 0x%llx of PE %d %s: expected a multiple of %u and a key", bytes,
                        (unsigned long long)remote->addr, pe, remote->key ? "with a key" : "without a key", bytes);
        return -EINVAL;
    }
    int rc = api_key_check(peer, remote, bytes, &view);
    if (!rc)
        rc = api_check_rails(peer, view.rails);
    if (rc)
        return rc;
    peer->word_head = rail_wire_key_head(remote->key->bytes);
    *out = peer;
    return 0;
}
