/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_exec.c - target-executed atomics, the side that executes: each is carried out on this PE's self lane of its home
 * device, so that it is atomic with what that device does for others; flushed; and answered. Those of one peer run in the
 * order of their ids, one at a time; a repeated id is answered from what is kept, not executed again.
 * May not trust what it is asked: keys and ranges are looked up among this PE's own regions.
 * Called by api_progress.c; next: src/rail/rail_lane.c
 */
#include "api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum api_step {
    API_STEP_START, /**< to be checked, and its first request posted */
    API_STEP_SWAP,  /**< the word is known: compare and swap, or a 4-byte write */
    API_STEP_FLUSH, /**< done: to be made visible */
    API_STEP_REPLY  /**< visible: to be answered */
};

/* One atomic that a peer has asked for. */
struct api_job {
    bool used;
    bool posted; /**< a request of it is on the self lane */
    bool token;  /**< it holds braid->exec_token */
    enum api_step step;
    struct rail_mail_atomic ask;
    struct braid_mem *mem; /**< the region it is on, in use by it; NULL before it is known */
    unsigned lane;         /**< that it was asked on */
    uint64_t seen;         /**< the word before */
    int32_t status;
    struct api_peer *peer;
};

/* One peer's jobs: a window of ids, of which `next` is the oldest not answered. */
struct api_exec_peer {
    uint32_t next;
    struct api_job job[API_MESSAGES];
    struct api_job again; /**< fault=dedup: a repeated one */
    uint32_t *word;       /**< where a 4-byte word is read to */
};

struct api_exec {
    struct verbs_mr *mr;
    uint32_t *words; /**< one for each peer, registered on the home rail */
    int first; /**< peer that is looked at first: behind the one that held the token last, so that all get it in turn */
    bool yield; /**< the token has just been given back: other channels may have it before this one asks again */
    struct api_exec_peer peer[];
};

int api_exec_make(struct braid_channel *ch)
{
    struct braid *b = ch->braid;
    struct api_exec *exec = calloc(1, sizeof(*exec) + (size_t)b->n_pes * sizeof(exec->peer[0]));
    uint32_t *words = calloc((size_t)b->n_pes, sizeof(*words));
    const struct rail *home = b->rail[b->home];
    int rc = exec && words ? 0 : -ENOMEM;
    if (!rc)
        rc = verbs_mr_reg(home->dev, words, (size_t)b->n_pes * sizeof(*words), 0, VERBS_ACCESS_LOCAL, &exec->mr);
    if (rc) {
        log_write(&b->log, LOG_LEVEL_ERROR, "cannot execute atomics for %d peers on port %s: %s%s", b->n_pes,
                  home->name, strerror(-rc), rail_hint(rc));
        free(exec);
        free(words);
        return rc;
    }
    exec->words = words;
    for (int pe = 0; pe < b->n_pes; pe++)
        exec->peer[pe].word = &words[pe];
    ch->exec = exec;
    return 0;
}

void api_exec_free(struct api_exec *exec)
{
    if (!exec)
        return;
    verbs_mr_dereg(exec->mr);
    free(exec->words);
    free(exec);
}

static struct api_exec_peer *api_exec_of(const struct api_peer *peer)
{
    return &peer->channel->exec->peer[peer->pe];
}

static struct api_peer *api_exec_self(const struct braid_channel *ch)
{
    return &ch->peers[ch->braid->my_pe];
}

/* Whether there is a self lane to the home device. */
static bool api_exec_reached(const struct braid_channel *ch)
{
    const struct api_peer *self = api_exec_self(ch);
    return self->home < self->lane_count && !(self->order.dead >> self->home & 1);
}

static void api_job_start(struct api_job *job, struct api_peer *peer, unsigned lane, const struct rail_mail_atomic *ask)
{
    *job = (struct api_job){.used = true, .ask = *ask, .lane = lane, .peer = peer};
    peer->channel->jobs++;
}

/* Executed before. The answer may have been lost with its lane, or be late. */
static void api_exec_repeated(struct api_peer *peer, unsigned lane, const struct rail_mail_atomic *ask)
{
    const struct api_reply *kept = &peer->reply[ask->id % (2 * API_MESSAGES)];
    struct api_job *again = &api_exec_of(peer)->again;
    if (again->used || !kept->known || kept->id != ask->id)
        return;
    api_job_start(again, peer, lane, ask);
    if (plan_atomic_again(peer->channel->braid->options.fault))
        return;
    again->step = API_STEP_REPLY;
    again->seen = kept->old;
    again->status = kept->status;
}

void api_exec_ask(struct api_peer *peer, unsigned lane, const struct rail_mail_msg *mail)
{
    struct api_exec_peer *e = api_exec_of(peer);
    uint32_t ahead = mail->atomic.id - e->next;
    if (ahead < API_MESSAGES) {
        struct api_job *job = &e->job[mail->atomic.id % API_MESSAGES];
        if (!job->used)
            api_job_start(job, peer, lane, &mail->atomic);
        else
            job->lane = lane; /* asked again while it runs: the newer lane is likelier to work */
    } else if (-ahead <= 2 * API_MESSAGES) {
        api_exec_repeated(peer, lane, &mail->atomic);
    } else {
        api_log_limited(peer->channel, API_LOG_MESSAGE, "PE %d asks for atomic %u, expected %u to %u: not answered",
                        peer->pe, mail->atomic.id, e->next, e->next + API_MESSAGES - 1);
    }
}

/* Whether this PE has registered what is asked for. -EAGAIN while its regions are being changed. */
static int api_job_check(struct braid *b, struct api_job *job)
{
    const struct rail_mail_atomic *ask = &job->ask;
    int rc = -EACCES;
    if (job->mem)
        return 0;
    if (plan_atomic((enum plan_atomic_op)ask->op, ask->bytes, true) == PLAN_ATOMIC_INVALID || ask->addr % ask->bytes)
        return -EINVAL;
    if (__atomic_exchange_n(&b->mems_lock, 1, __ATOMIC_ACQUIRE))
        return -EAGAIN;
    for (struct braid_mem *mem = b->mems; mem && !job->mem; mem = mem->next) {
        if (verbs_mr_rkey(mem->mr[b->home]) == ask->rkey &&
            range_inside(ask->addr, ask->bytes, mem->remote_addr, mem->len))
            job->mem = mem;
    }
    /* In use until it is answered: were the region to go in between, the self lane would go with it. */
    if (job->mem) {
        api_mem_use(job->mem, job->peer->channel->index, 1);
        rc = 0;
    }
    __atomic_store_n(&b->mems_lock, 0, __ATOMIC_RELEASE);
    return rc;
}

/* What the word becomes. */
static uint64_t api_job_value(const struct api_job *job)
{
    uint64_t operand = job->ask.operand, seen = job->seen;
    switch ((enum braid_atomic_op)job->ask.op) {
    case BRAID_ATOMIC_ADD:
    case BRAID_ATOMIC_FETCH_ADD:
        return seen + operand;
    case BRAID_ATOMIC_FETCH:
        return seen;
    case BRAID_ATOMIC_COMPARE_SWAP:
        return job->ask.bytes == 4 ? ((uint32_t)seen == (uint32_t)job->ask.compare ? operand : seen) : operand;
    case BRAID_ATOMIC_SET:
    case BRAID_ATOMIC_SWAP:
        return operand;
    case BRAID_ATOMIC_AND:
    case BRAID_ATOMIC_FETCH_AND:
        return seen & operand;
    case BRAID_ATOMIC_OR:
    case BRAID_ATOMIC_FETCH_OR:
        return seen | operand;
    case BRAID_ATOMIC_XOR:
    case BRAID_ATOMIC_FETCH_XOR:
        return seen ^ operand;
    }
    return seen; /* checked before */
}

/* Posts a request of the job on the self lane. False where there is no room now. */
static bool api_job_post(struct api_job *job, struct rail_request *request)
{
    struct api_peer *self = api_exec_self(job->peer->channel);
    struct rail_lane *lane = self->lane[self->home];
    request->klass = RAIL_CLASS_WORD;
    request->epoch = self->epoch;
    request->cookie = (uintptr_t)job | API_EXEC_COOKIE;
    if (request->kind == RAIL_KIND_FLUSH) {
        if (!api_flush_queue(self, self->home, request))
            return false;
    } else {
        if (!rail_lane_room(lane, request->klass, request->kind, request->len))
            return false;
        rail_lane_queue(lane, request);
    }
    rail_lane_ring(lane);
    if (request->kind != RAIL_KIND_FLUSH && request->kind != RAIL_KIND_READ)
        self->counts.posted[self->home]++;
    job->posted = true;
    return true;
}

/* A 4-byte word is read and written by two requests: one such job a PE at a time, whatever its channel. */
static bool api_job_token(struct braid *b, struct api_job *job)
{
    struct api_exec *exec = job->peer->channel->exec;
    uint32_t free = 0, mine = (job->peer->channel->index << 24 | (uint32_t)job->peer->pe) + 1;
    if (job->token || exec->yield)
        return job->token;
    job->token = __atomic_compare_exchange_n(&b->exec_token, &free, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    if (job->token)
        exec->first = (job->peer->pe + 1) % b->n_pes;
    return job->token;
}

/* It goes no further: true, since its answer may. */
static bool api_job_fail(struct api_job *job, int error)
{
    job->status = error;
    job->step = API_STEP_REPLY;
    return true;
}

static bool api_job_first(struct api_job *job)
{
    struct braid_channel *ch = job->peer->channel;
    const struct rail_mail_atomic *ask = &job->ask;
    struct rail_request r = {.remote_addr = ask->addr, .rkey = ask->rkey, .len = ask->bytes};
    int rc = api_job_check(ch->braid, job);
    if (rc == -EAGAIN)
        return false;
    if (rc)
        return api_job_fail(job, rc);
    api_flush_kind(api_exec_self(ch), job->mem->memory);
    if (ask->bytes == 4) {
        r.kind = RAIL_KIND_READ;
        r.local_addr = (uintptr_t)api_exec_of(job->peer)->word;
        r.lkey = verbs_mr_lkey(ch->exec->mr);
        return api_job_token(ch->braid, job) && api_job_post(job, &r);
    }
    if (ask->op == BRAID_ATOMIC_COMPARE_SWAP) {
        r.kind = RAIL_KIND_COMPARE_SWAP;
        r.operand = ask->compare;
        r.swap = ask->operand;
    } else {
        r.kind = RAIL_KIND_FETCH_ADD;
        r.operand = ask->op == BRAID_ATOMIC_ADD || ask->op == BRAID_ATOMIC_FETCH_ADD ? ask->operand : 0;
    }
    return api_job_post(job, &r);
}

/* The word was seen: replace it, by a swap that finds out whether it has changed, or, the token held, by a write. */
static bool api_job_swap(struct api_job *job)
{
    struct rail_request r = {.remote_addr = job->ask.addr, .rkey = job->ask.rkey, .len = job->ask.bytes};
    if (job->ask.bytes == 4) {
        r.kind = RAIL_KIND_WRITE;
        r.immediate = true;
        r.operand = api_job_value(job);
    } else {
        r.kind = RAIL_KIND_COMPARE_SWAP;
        r.operand = job->seen;
        r.swap = api_job_value(job);
    }
    return api_job_post(job, &r);
}

static bool api_job_reply(struct api_job *job)
{
    struct api_peer *peer = job->peer;
    struct rail_mail_msg mail = {
        .type = RAIL_MAIL_ATOMIC_REPLY,
        .reply = {.old = job->seen, .id = job->ask.id, .status = job->status},
    };
    unsigned k = job->lane;
    for (unsigned i = 0; i < peer->lane_count && (peer->order.dead >> k & 1); i++)
        k = (k + 1) % peer->lane_count;
    int rc = rail_lane_send_mail(peer->lane[k], &mail);
    if (rc == -EAGAIN)
        return false;
    /* Without a lane nobody hears it: it is kept, should there be one again. */
    struct api_exec_peer *e = api_exec_of(peer);
    if (job != &e->again) {
        peer->reply[job->ask.id % (2 * API_MESSAGES)] =
            (struct api_reply){.id = job->ask.id, .status = job->status, .old = job->seen, .known = true};
        e->next++;
    }
    job->used = false;
    peer->channel->jobs--;
    peer->channel->count.executed++;
    return true;
}

/* Executed, or given up: what it held is free, whenever its answer may find a place. */
static void api_job_release(struct api_job *job)
{
    struct braid_channel *ch = job->peer->channel;
    if (job->token) {
        __atomic_store_n(&ch->braid->exec_token, 0, __ATOMIC_RELEASE);
        ch->exec->yield = ch->braid->channel_count > 1;
    }
    if (job->mem)
        api_mem_use(job->mem, ch->index, -1);
    job->token = false;
    job->mem = NULL;
}

/* One step, where the last one has ended. Whether it went. */
static bool api_job_step(struct api_job *job)
{
    struct rail_request flush = {.kind = RAIL_KIND_FLUSH, .len = 8};
    if (!job->used || job->posted)
        return false;
    /* With the self lane gone it will never be known to be visible. */
    if (job->step != API_STEP_REPLY && !api_exec_reached(job->peer->channel)) {
        api_job_fail(job, -ENOTCONN);
    }
    switch (job->step) {
    case API_STEP_START:
        return api_job_first(job);
    case API_STEP_SWAP:
        return api_job_swap(job);
    case API_STEP_FLUSH:
        return api_job_post(job, &flush);
    case API_STEP_REPLY:
        break;
    }
    api_job_release(job);
    return api_job_reply(job);
}

/* Where a job goes from a request that ended well. */
static enum api_step api_job_next(struct api_job *job, uint64_t value)
{
    const struct rail_mail_atomic *ask = &job->ask;
    if (job->step == API_STEP_FLUSH)
        return API_STEP_REPLY;
    if (ask->bytes == 4 && job->step == API_STEP_START)
        value = *api_exec_of(job->peer)->word;
    if (ask->bytes == 8 && job->step == API_STEP_SWAP) {
        bool stored = value == job->seen;
        job->seen = value;
        return stored ? API_STEP_FLUSH : API_STEP_SWAP;
    }
    if (job->step == API_STEP_SWAP)
        return API_STEP_FLUSH;
    job->seen = value;
    if (ask->bytes == 8 && plan_atomic((enum plan_atomic_op)ask->op, 8, true) == PLAN_ATOMIC_NATIVE)
        return API_STEP_FLUSH;
    return ask->op == BRAID_ATOMIC_FETCH ? API_STEP_FLUSH : API_STEP_SWAP;
}

void api_exec_done(const struct rail_event *event)
{
    struct api_job *job = (struct api_job *)(uintptr_t)(event->record->cookie & ~API_EXEC_COOKIE);
    job->posted = false;
    if (event->error)
        api_job_fail(job, event->error);
    else
        job->step = api_job_next(job, event->value);
    /* Here, so that other peers have the token before the next job of this one is looked at. */
    if (job->step == API_STEP_REPLY)
        api_job_release(job);
}

unsigned api_exec_drive(struct braid_channel *ch)
{
    unsigned moved = 0;
    int n_pes = ch->braid->n_pes, first = ch->exec->first;
    for (int i = 0; i < n_pes; i++) {
        struct api_exec_peer *e = &ch->exec->peer[(first + i) % n_pes];
        /* The answer to one makes the next the oldest. */
        while (api_job_step(&e->job[e->next % API_MESSAGES]))
            moved++;
        while (api_job_step(&e->again))
            moved++;
    }
    ch->exec->yield = false; /* this pass has moved something, so it comes again */
    return moved;
}
