/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_signal.c - signals, small values, and puts with a signal: words that programs poll on, behind all earlier ops to
 * that peer.
 * May not decide when: api_order.c does. Called by the user; next: api_order.c
 */
#include "api.h"

#include <errno.h>

/* A word op that writes the first bytes of a value. */
static void api_word_write(struct api_peer *peer, const struct braid_remote *dst, uint64_t value, unsigned bytes,
                           struct api_word *out)
{
    unsigned rail = peer->remote_rail[peer->word];
    struct rail_request *r = api_word_begin(out, peer, dst, rail, bytes, plan_order_strict_key(&peer->order));
    out->kind = PLAN_WORD_WRITE;
    out->lane = (uint8_t)peer->word;
    r->kind = RAIL_KIND_WRITE;
    r->immediate = true;
    r->operand = value;
}

static void api_word_signal(struct api_peer *peer, const struct braid_remote *dst, enum braid_signal_op op,
                            uint64_t value, struct api_word *out)
{
    struct braid_atomic add = {.op = BRAID_ATOMIC_ADD, .bytes = 8, .operand = value};
    if (op == BRAID_SIGNAL_ADD)
        api_atomic_word(peer, dst, &add, out);
    else
        api_word_write(peer, dst, value, 8, out);
}

static __attribute__((noinline)) int api_signal_long(struct braid_channel *ch, int pe, const struct braid_remote *dst,
                                                     enum braid_signal_op op, uint64_t value, struct braid_done *done)
{
    struct api_peer *peer;
    int rc = api_check_word(ch, pe, dst, 8, &peer);
    if (rc)
        return rc;
    struct api_word word;
    api_word_signal(peer, dst, op, value, &word);
    return api_order_submit(peer, &word, NULL, NULL, done);
}

static int api_signal(struct braid_channel *ch, int pe, const struct braid_remote *dst, enum braid_signal_op op,
                      uint64_t value, struct braid_done *done)
{
    const struct api_short s = {
        .kind = op == BRAID_SIGNAL_ADD ? RAIL_KIND_FETCH_ADD : RAIL_KIND_WRITE, .bytes = 8, .operand = value};
    return api_word_short(ch, pe, dst, &s, NULL, done) ? 0 : api_signal_long(ch, pe, dst, op, value, done);
}

int braid_signal_add(struct braid_channel *ch, int pe, struct braid_remote dst, uint64_t value, struct braid_done *done)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_signal(ch, pe, &dst, BRAID_SIGNAL_ADD, value, done);
    api_leave(ch);
    return rc;
}

int braid_signal_set(struct braid_channel *ch, int pe, struct braid_remote dst, uint64_t value, struct braid_done *done)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_signal(ch, pe, &dst, BRAID_SIGNAL_SET, value, done);
    api_leave(ch);
    return rc;
}

static int api_p(struct braid_channel *ch, int pe, const struct braid_remote *dst, uint64_t value, unsigned bytes,
                 struct braid_done *done)
{
    struct api_peer *peer;
    const struct api_short s = {.kind = RAIL_KIND_WRITE, .bytes = (uint8_t)bytes, .operand = value};
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
        api_log_limited(ch, API_LOG_ARGUMENT, "a value of %u bytes: expected 1, 2, 4 or 8", bytes);
        return -EINVAL;
    }
    if (api_word_short(ch, pe, dst, &s, NULL, done))
        return 0;
    int rc = api_check_word(ch, pe, dst, bytes, &peer);
    if (rc)
        return rc;
    struct api_word word;
    api_word_write(peer, dst, value, bytes, &word);
    return api_order_submit(peer, &word, NULL, NULL, done);
}

int braid_p(struct braid_channel *ch, int pe, struct braid_remote dst, uint64_t value, unsigned bytes,
            struct braid_done *done)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_p(ch, pe, &dst, value, bytes, done);
    api_leave(ch);
    return rc;
}

/* Checks every part; how many there are that move bytes. 0 or more, or as braid_put(). */
static int api_parts_check(struct braid_channel *ch, int pe, const struct braid_part *parts, unsigned n,
                           struct api_transfer out[BRAID_MAX_PARTS])
{
    int count = 0;
    if (n > BRAID_MAX_PARTS || (n && !parts)) {
        api_log_limited(ch, API_LOG_ARGUMENT, "a put with signal of %u parts%s: expected at most %d", n,
                        parts ? "" : " and none given", BRAID_MAX_PARTS);
        return -EINVAL;
    }
    for (unsigned i = 0; i < n; i++) {
        int rc = api_check_transfer(ch, pe, &parts[i].dst, &parts[i].src, parts[i].len, &out[count]);
        if (!rc && parts[i].len)
            rc = api_put_part_possible(&out[count]);
        if (rc)
            return rc;
        count += parts[i].len > 0;
    }
    return count;
}

static int api_put_signal(struct braid_channel *ch, int pe, const struct braid_part *parts, unsigned n,
                          const struct braid_remote *dst, enum braid_signal_op op, uint64_t value,
                          struct braid_done *done)
{
    struct api_transfer t[BRAID_MAX_PARTS];
    struct api_peer *peer;
    if (op != BRAID_SIGNAL_ADD && op != BRAID_SIGNAL_SET) {
        api_log_limited(ch, API_LOG_ARGUMENT, "signal op %d: expected BRAID_SIGNAL_ADD or _SET", (int)op);
        return -EINVAL;
    }
    int rc = api_check_word(ch, pe, dst, 8, &peer);
    int count = rc ? rc : api_parts_check(ch, pe, parts, n, t);
    if (count < 0)
        return count;
    struct api_word word;
    api_word_signal(peer, dst, op, value, &word);
    if (count == 0)
        return api_order_submit(peer, &word, NULL, NULL, done);
    rc = api_order_possible(peer, &word);
    if (rc)
        return rc;
    if (!api_bulk_room(peer, &peer->put, (uint32_t)count) || ch->op_free <= (uint64_t)count || !api_order_place(peer) ||
        !api_order_ranges(peer, (uint32_t)count + 1))
        return -EAGAIN;
    struct api_op *whole = api_op_take(peer, NULL, done, 1);
    for (int i = 0; i < count; i++)
        api_put_part(&t[i], whole);
    word.request.cookie = (uintptr_t)whole;
    api_order_follow(peer, &word);
    return 0;
}

int braid_put_signal(struct braid_channel *ch, int pe, const struct braid_part *parts, unsigned n,
                     struct braid_remote signal, enum braid_signal_op op, uint64_t value, struct braid_done *done)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_put_signal(ch, pe, parts, n, &signal, op, value, done);
    api_leave(ch);
    return rc;
}
