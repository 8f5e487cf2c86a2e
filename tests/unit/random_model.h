/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_model.h - what test_api_random.c knows by itself of the ops that it issues: which of their bytes were posted on
 * which lane, which have ended, and which are proved visible, because a READ or an atomic behind them on their lane has been
 * answered. From that it judges each request the moment it is posted. It shares no code with the engine's counts.
 *
 * A request is known by its local address (each op has a source of its own) or, without one, by its remote address (words
 * have one of their own). Included by test_api_random.c alone.
 */
#ifndef RANDOM_MODEL_H
#define RANDOM_MODEL_H

#include "order_rig.h"

#include "rail_mail.h"
#include "rail_wire.h"

enum { SLOT = 16384, OPS = 2000, HALF = BYTES / 2, TAIL = 135 };

enum model_kind { MODEL_BULK, MODEL_WRITE, MODEL_ATOMIC, MODEL_MESSAGE };

struct model_op {
    enum model_kind kind;
    size_t len, remote; /* remote: offset of its target */
    unsigned epoch;
    bool covered;       /* part of a put with signal */
    bool proved_far;    /* MODEL_MESSAGE: answered */
    uint64_t old, adds; /* of an atomic: where the old value goes; what it adds */
    struct braid_done done;
    size_t posted[LANES], ended[LANES], proved[LANES];
};

/* Rules that the run saw broken. */
enum model_rule {
    MODEL_WORD,    /* a word op was posted before what it follows was visible */
    MODEL_OVERLAP, /* bulk to the same bytes was */
    MODEL_FENCE,   /* strict: bulk behind a fence was */
    MODEL_FIFO,    /* word ops were posted in another order than issued */
    MODEL_KEY,     /* bulk that may go anywhere used the strict key */
    MODEL_REPLY,   /* a message was answered before its effect was visible */
    MODEL_FLUSHES, /* two flushes of the engine on one lane */
    MODEL_QUIET,   /* quiet said 0 before all that had ended well was visible */
    MODEL_RULES
};

static struct model {
    uint64_t random;
    unsigned lanes;
    bool strict, unordered, tail, drain;
    unsigned epoch;
    unsigned idle;  /* waits in a row that found nothing to end */
    unsigned count; /* of ops */
    unsigned quiet; /* of them, those before the last quiet */
    struct model_op op[OPS];
    unsigned newest_word;              /* op whose word was posted last, plus 1 */
    uint64_t gone[LANES], seen[LANES]; /* requests of a lane: ended; looked at */
    bool failed[LANES];                /* nothing ends well on it any more */
    bool lossy;                        /* faults were injected */
    unsigned broken[MODEL_RULES];
    uint64_t words;     /* posted */
    uint64_t asked[64]; /* op of a message's id, plus 1 */
} model;

static inline unsigned below(unsigned n)
{
    return (unsigned)(unit_random(&model.random) % n);
}

static inline struct model_op *model_at(uint64_t offset)
{
    uint64_t i = offset % HALF / SLOT;
    return i < model.count ? &model.op[i] : NULL;
}

/* What of an op is neither proved visible nor, where that is enough, ahead on this lane. */
static inline size_t model_missing(const struct model_op *op, unsigned own, bool ahead)
{
    size_t there = 0;
    if (op->kind == MODEL_MESSAGE)
        return op->proved_far ? 0 : op->len;
    for (unsigned k = 0; k < model.lanes; k++)
        there += k == own && ahead ? op->posted[k] : op->proved[k];
    return op->len - there;
}

/* A word op, or the tail (its last len bytes) of op i, is on its way: all before it must be visible. */
static void model_word(unsigned i, enum model_kind kind, unsigned lane, bool strict, size_t tail)
{
    bool ahead = kind == MODEL_ATOMIC || (kind == MODEL_WRITE && strict && !model.unordered);
    bool late = false;
    for (unsigned p = 0; p < i && !late; p++) {
        if (kind != MODEL_MESSAGE || model.op[p].kind != MODEL_MESSAGE)
            late = model_missing(&model.op[p], lane, ahead) > 0;
    }
    if (tail)
        late |= model_missing(&model.op[i], lane, ahead) > tail;
    model.broken[MODEL_WORD] += late;
    model.broken[MODEL_FIFO] += i + 1 <= model.newest_word;
    model.newest_word = i + 1;
    model.words++;
}

/* What of an op to the same bytes may still come: nothing of a lane that was stopped; and once one was, what has not been posted
 * may have failed. */
static size_t model_coming(const struct model_op *op, unsigned own, bool ahead)
{
    size_t posted = 0, there = 0;
    bool lost = false;
    for (unsigned k = 0; k < model.lanes; k++) {
        posted += op->posted[k];
        lost |= fake_stopped(rig.qp[k]);
        there += (k == own && ahead) || fake_stopped(rig.qp[k]) ? op->posted[k] : op->proved[k];
    }
    return (lost ? posted : op->len) - there;
}

static void model_bulk(unsigned i, unsigned lane, bool strict)
{
    const struct model_op *op = &model.op[i];
    bool ahead = strict && !model.unordered;
    if (strict && !model.tail) {
        bool follows = false;
        for (unsigned p = 0; p < i; p++)
            follows |= model.op[p].remote == op->remote;
        model.broken[MODEL_KEY] += !follows;
    }
    for (unsigned p = 0; p < i; p++) {
        const struct model_op *before = &model.op[p];
        if (before->remote == op->remote && before->len <= op->len && model_coming(before, lane, ahead) > 0)
            model.broken[MODEL_OVERLAP]++;
        if (model.strict && before->epoch < op->epoch && model_missing(before, lane, false) > 0)
            model.broken[MODEL_FENCE]++;
    }
}

static void model_write(unsigned lane, const struct verbs_send *send)
{
    uint64_t local = send->local_addr - (uintptr_t)memory, remote = send->remote_addr - (uintptr_t)memory;
    struct model_op *op = model_at(local < BYTES ? local : remote);
    unsigned i = (unsigned)(op - model.op);
    bool strict = send->rkey == rail_wire_view_rkey(rig.key.bytes, lane, true);
    bool last = remote + send->len == op->remote + op->len;
    if (op->kind == MODEL_WRITE)
        model_word(i, MODEL_WRITE, lane, strict, 0);
    else if (op->kind == MODEL_BULK && model.tail && !op->covered && last && send->len <= TAIL)
        model_word(i, MODEL_WRITE, lane, strict, send->len);
    else if (op->kind == MODEL_BULK)
        model_bulk(i, lane, strict);
    op->posted[lane] += send->len;
}

static void model_mail(unsigned lane, const struct verbs_send *send)
{
    struct rail_mail_msg mail;
    assert_int_equal(rail_mail_parse((const void *)(uintptr_t)send->local_addr, send->len, &mail), 0);
    if (mail.type == RAIL_MAIL_ATOMIC) {
        struct model_op *op = model_at(mail.atomic.addr - (uintptr_t)memory);
        unsigned i = (unsigned)(op - model.op);
        if (model.asked[mail.atomic.id % 64] != i + 1) /* else asked again */
            model_word(i, MODEL_MESSAGE, lane, false, 0);
        model.asked[mail.atomic.id % 64] = i + 1;
    } else if (mail.type == RAIL_MAIL_ATOMIC_REPLY && mail.reply.status == 0) {
        const struct model_op *op = &model.op[model.asked[mail.reply.id % 64] - 1];
        for (unsigned k = 0; k < model.lanes; k++)
            model.broken[MODEL_REPLY] += op->proved[k] < op->posted[k];
    }
}

/* Looks at the requests that were posted since the last look. */
static void model_look(void)
{
    for (unsigned k = 0; k < model.lanes; k++) {
        unsigned flushes = 0;
        if (fake_stopped(rig.qp[k]))
            continue;
        for (unsigned i = 0; i < pending(k); i++) {
            const struct verbs_send *send = fake_send(rig.qp[k], i);
            flushes += is_flush(send);
            if (model.gone[k] + i < model.seen[k])
                continue;
            model.seen[k] = model.gone[k] + i + 1;
            struct model_op *op = model_at(send->remote_addr - (uintptr_t)memory);
            if (send->op == VERBS_OP_WRITE) {
                model_write(k, send);
            } else if (send->op == VERBS_OP_SEND) {
                model_mail(k, send);
            } else if (send->op != VERBS_OP_READ) {
                if (op->kind == MODEL_ATOMIC)
                    model_word((unsigned)(op - model.op), MODEL_ATOMIC, k, true, 0);
                op->posted[k] += 8;
            }
        }
        model.broken[MODEL_FLUSHES] += flushes > 1 + (k == 0); /* the executor has one of its own */
    }
}

static void model_prove(unsigned lane)
{
    for (unsigned i = 0; i < model.count; i++)
        model.op[i].proved[lane] = model.op[i].ended[lane];
}

/* The oldest request of a lane has been carried out. */
static void model_ended(unsigned lane, const struct verbs_send *send)
{
    uint64_t local = send->local_addr - (uintptr_t)memory, remote = send->remote_addr - (uintptr_t)memory;
    struct rail_mail_msg mail;
    switch (send->op) {
    case VERBS_OP_WRITE:
        model_at(local < BYTES ? local : remote)->ended[lane] += send->len;
        break;
    case VERBS_OP_SEND:
        assert_int_equal(rail_mail_parse((const void *)(uintptr_t)send->local_addr, send->len, &mail), 0);
        if (mail.type == RAIL_MAIL_ATOMIC_REPLY)
            model.op[model.asked[mail.reply.id % 64] - 1].proved_far = true;
        break;
    case VERBS_OP_READ:
        model_prove(lane);
        break;
    default:
        model_prove(lane);
        model_at(remote)->ended[lane] += 8;
        break;
    }
    if (model.drain) /* there an acknowledgement is taken for visible */
        model_prove(lane);
}

/* Ends the oldest request of a lane. */
static void model_end(unsigned lane, int error)
{
    if (pending(lane) == 0)
        return;
    model_look();
    if (model.failed[lane])
        error = -ECANCELED;
    model.failed[lane] = error != 0;
    struct verbs_send send = *fake_send(rig.qp[lane], 0);
    model.gone[lane]++;
    if (!error)
        model_ended(lane, &send);
    fake_end(rig.qp[lane], error);
}

/* Ends a request of some lane: of none only where none is there. */
static bool model_end_any(void)
{
    unsigned first = below(model.lanes);
    for (unsigned i = 0; i < model.lanes; i++) {
        unsigned k = (first + i) % model.lanes;
        if (pending(k) > 0) {
            model_end(k, 0);
            return true;
        }
    }
    return false;
}

static struct model_op *model_new(enum model_kind kind, size_t len)
{
    struct model_op *op = &model.op[model.count];
    memset(op, 0, sizeof(*op));
    op->kind = kind;
    op->len = len;
    op->remote = (size_t)model.count * SLOT;
    op->epoch = model.epoch;
    return op;
}

static inline struct braid_local model_local(const struct model_op *op)
{
    return here(HALF + (size_t)(op - model.op) * SLOT);
}

#endif
