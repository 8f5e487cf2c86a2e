/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_atomic.c - atomics as their caller sees them: native ones on the home lane, all others asked of the target.
 * May not decide which is which: src/plan/plan_atomic.c does. Called by the user; next: api_order.c
 */
#include "api.h"

#include <errno.h>

_Static_assert((int)PLAN_ATOMIC_OP_ADD == BRAID_ATOMIC_ADD && (int)PLAN_ATOMIC_OP_FETCH_XOR == BRAID_ATOMIC_FETCH_XOR,
               "plan and braid.h number atomics alike");

static void api_atomic_native(struct api_peer *peer, unsigned lane, const struct braid_remote *dst,
                              const struct braid_atomic *atomic, struct api_word *out)
{
    struct rail_request *r = api_word_begin(out, peer, dst, peer->remote_rail[lane], 8, true);
    bool swap = atomic->op == BRAID_ATOMIC_COMPARE_SWAP;
    out->kind = PLAN_WORD_ATOMIC;
    out->lane = (uint8_t)lane;
    r->kind = swap ? RAIL_KIND_COMPARE_SWAP : RAIL_KIND_FETCH_ADD;
    r->operand = swap ? atomic->compare : atomic->op == BRAID_ATOMIC_FETCH ? 0 : atomic->operand;
    r->swap = atomic->operand;
}

void api_atomic_word(struct api_peer *peer, const struct braid_remote *dst, const struct braid_atomic *atomic,
                     struct api_word *out)
{
    unsigned lane = plan_atomic_lane(peer->home, peer->lane_count, peer->spin++, peer->channel->braid->options.fault);
    bool reached = lane < peer->lane_count;
    if (plan_atomic((enum plan_atomic_op)atomic->op, atomic->bytes, reached) == PLAN_ATOMIC_NATIVE) {
        api_atomic_native(peer, lane, dst, atomic, out);
        return;
    }
    struct rail_request *r = api_word_begin(out, peer, dst, peer->home_rail, atomic->bytes, true);
    out->kind = PLAN_WORD_MESSAGE;
    out->lane = (uint8_t)peer->word;
    out->atomic = (uint8_t)atomic->op;
    r->operand = atomic->operand;
    r->swap = atomic->compare;
}

int api_atomic(struct braid_channel *ch, int pe, const struct braid_remote *dst, const struct braid_atomic *atomic,
               uint64_t *old, struct braid_done *done)
{
    struct api_peer *peer;
    if (!atomic || plan_atomic((enum plan_atomic_op)atomic->op, atomic->bytes, true) == PLAN_ATOMIC_INVALID) {
        api_log_limited(ch, API_LOG_ARGUMENT, "atomic op %d on %u bytes: expected one of braid_atomic_op on 4 or 8",
                        atomic ? (int)atomic->op : -1, atomic ? atomic->bytes : 0);
        return -EINVAL;
    }
    int rc = api_check_word(ch, pe, dst, atomic->bytes, &peer);
    if (rc)
        return rc;
    struct api_word word;
    api_atomic_word(peer, dst, atomic, &word);
    return api_order_submit(peer, &word, NULL, old, done);
}

/* By the short way, where the target's device has it. */
static bool api_atomic_short(struct braid_channel *ch, int pe, const struct braid_remote *dst,
                             const struct braid_atomic *atomic, uint64_t *old, struct braid_done *done)
{
    if (!atomic || atomic->bytes != 8)
        return false;
    struct api_short s = {.kind = RAIL_KIND_FETCH_ADD, .bytes = 8, .operand = atomic->operand, .swap = atomic->operand};
    switch (atomic->op) {
    case BRAID_ATOMIC_ADD:
    case BRAID_ATOMIC_FETCH_ADD:
        break;
    case BRAID_ATOMIC_FETCH:
        s.operand = 0;
        break;
    case BRAID_ATOMIC_COMPARE_SWAP:
        s.kind = RAIL_KIND_COMPARE_SWAP;
        s.operand = atomic->compare;
        break;
    default:
        return false;
    }
    return api_word_short(ch, pe, dst, &s, old, done);
}

int braid_atomic(struct braid_channel *ch, int pe, struct braid_remote dst, const struct braid_atomic *atomic,
                 uint64_t *old, struct braid_done *done)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_atomic_short(ch, pe, &dst, atomic, old, done) ? 0 : api_atomic(ch, pe, &dst, atomic, old, done);
    api_leave(ch);
    return rc;
}
