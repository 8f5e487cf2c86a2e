/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_wait.c - the blocking forms: an op and its end in one call. Between the two the whole progress runs.
 * May not know what the op does. Called by the user; next: the forms that do not block, and api_progress.c
 */
#include "api.h"

#include <errno.h>

static bool api_done_reached(const struct braid_done *done, uint64_t ends)
{
    return __atomic_load_n(&done->ok, __ATOMIC_ACQUIRE) + __atomic_load_n(&done->failed, __ATOMIC_ACQUIRE) >= ends;
}

int braid_done_wait(struct braid_channel *ch, const struct braid_done *done, uint64_t ends)
{
    int rc = 0;
    if (!ch || !done)
        return -EINVAL;
    api_enter(ch);
    while (!rc && !api_done_reached(done, ends))
        rc = api_turn(ch, UINT64_MAX);
    api_leave(ch);
    return rc ? rc : __atomic_load_n(&done->error, __ATOMIC_RELAXED);
}

/* Counters of blocking calls live in the channel: where the wait callback cuts a call off, its op may end later. */
static struct braid_done *api_wait_take(struct braid_channel *ch)
{
    for (unsigned i = 0; i < API_WAITS; i++) {
        if (ch->waits_used >> i & 1)
            continue;
        ch->waits_used |= 1u << i;
        ch->waits[i] = (struct braid_done){0};
        return &ch->waits[i];
    }
    api_log_limited(ch, API_LOG_ARGUMENT, "%u blocking calls on one channel are under way or were cut off: close it",
                    API_WAITS);
    return NULL;
}

enum api_wait_kind { API_WAIT_PUT, API_WAIT_GET, API_WAIT_ATOMIC };

/* What a blocking form was given. */
struct api_wait {
    enum api_wait_kind kind;
    int pe;
    const struct braid_remote *remote;
    const struct braid_local *local;
    size_t len;
    const struct braid_atomic *atomic;
    uint64_t *old;
};

static int api_wait_submit(struct braid_channel *ch, const struct api_wait *w, struct braid_done *done)
{
    switch (w->kind) {
    case API_WAIT_PUT:
        return api_put(ch, w->pe, w->remote, w->local, w->len, done);
    case API_WAIT_GET:
        return api_get(ch, w->pe, w->local, w->remote, w->len, done);
    case API_WAIT_ATOMIC:
        break;
    }
    return api_atomic(ch, w->pe, w->remote, w->atomic, w->old, done);
}

static int api_wait(struct braid_channel *ch, const struct api_wait *w)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    struct braid_done *done = api_wait_take(ch);
    int rc = done ? -EAGAIN : -EBUSY, turn = 0;
    while (done && !turn && (rc = api_wait_submit(ch, w, done)) == -EAGAIN)
        turn = api_turn(ch, UINT64_MAX);
    bool accepted = rc == 0;
    while (accepted && !turn && !api_done_reached(done, 1))
        turn = api_turn(ch, UINT64_MAX);
    if (accepted && !turn)
        rc = done->error;
    if (done && !(accepted && turn))
        ch->waits_used &= ~(1u << (done - ch->waits));
    api_leave(ch);
    return turn ? turn : rc;
}

int braid_put_wait(struct braid_channel *ch, int pe, struct braid_remote dst, struct braid_local src, size_t len)
{
    struct api_wait w = {.kind = API_WAIT_PUT, .pe = pe, .remote = &dst, .local = &src, .len = len};
    return api_wait(ch, &w);
}

int braid_get_wait(struct braid_channel *ch, int pe, struct braid_local dst, struct braid_remote src, size_t len)
{
    struct api_wait w = {.kind = API_WAIT_GET, .pe = pe, .remote = &src, .local = &dst, .len = len};
    return api_wait(ch, &w);
}

int braid_atomic_wait(struct braid_channel *ch, int pe, struct braid_remote dst, const struct braid_atomic *atomic,
                      uint64_t *old)
{
    struct api_wait w = {.kind = API_WAIT_ATOMIC, .pe = pe, .remote = &dst, .atomic = atomic, .old = old};
    return api_wait(ch, &w);
}
