/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_store.c - when the bytes that a responder has taken become visible. Each queue pair keeps what is not visible yet
 * in the order of its requests; every store has a time of its own. What may not pass what:
 *
 *   a WRITE by a relaxed key (relaxed)      passes everything but atomics
 *   any WRITE (ooo)                         passes everything but atomics on the same bytes
 *   other WRITEs, SENDs                     pass nothing of their queue pair
 *   READs, atomics, completions of receives wait for, or push, everything before them
 *
 * Where acknowledgements wait (no ackvis) a READ waits too; with ackvis it may also make visible what was only late.
 * Events name a store and its serial number: stores are kept for reuse until the fabric ends. Called by emu_resp.c,
 * emu_qp.c, emu_mr.c; next: emu_word.c for atomics, emu_mr.c for the bytes.
 */
#include "emu.h"
#include "emu_unkind.h"

#include <stdlib.h>

enum emu_store_kind { EMU_STORE_BYTES, EMU_STORE_ATOMIC /* not executed */, EMU_STORE_WORD, EMU_STORE_RECV };

struct emu_store {
    struct emu_store *next, *prev; /* of its queue pair; next: of the pool */
    struct emu_store *made_before;
    struct emu_qp *qp;
    uint64_t no;     /* in its queue pair */
    uint64_t serial; /* events of an earlier use are void */
    enum emu_store_kind kind;
    struct emu_spot spot;
    struct emu_pkt *pkt; /* held */
    uint32_t at, len;    /* of its payload */
    uint64_t due;
    uint64_t answer, visible; /* ATOMIC: when its response may leave, when its value is to be seen */
    struct emu_word *word;    /* WORD */
    uint64_t turn, value;
    struct emu_cqe cqe; /* RECV */
    bool solicited;
};

static void emu_store_due(void *obj, uint64_t serial);

static struct emu_fabric *emu_store_fabric(const struct emu_qp *qp)
{
    return qp->ctx->dev->fabric;
}

static uint64_t emu_store_now(const struct emu_qp *qp)
{
    return emu_store_fabric(qp)->clock->now(emu_store_fabric(qp));
}

static bool emu_store_is(const struct emu_qp *qp, enum emu_unkind what)
{
    return emu_store_fabric(qp)->spec.unkind & what;
}

static uint64_t emu_store_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void emu_store_init(struct emu_fabric *f, uint64_t seed)
{
    f->store.seed = seed;
    f->store.rng.state = seed ^ 0x756e6b696e64u;
}

void emu_store_fini(struct emu_fabric *f)
{
    while (f->store.made) {
        struct emu_store *s = f->store.made;

        f->store.made = s->made_before;
        free(s);
    }
    f->store.unused = NULL;
    emu_word_fini(f);
}

bool emu_store_void(void (*fn)(void *, uint64_t), const void *obj, uint64_t arg)
{
    return fn == emu_store_due && ((const struct emu_store *)obj)->serial != arg;
}

/* ---- the queue ----------------------------------------------------------------------------------------------------- */

/** A store at the end of the queue; NULL without memory. */
static struct emu_store *emu_store_new(struct emu_qp *qp, enum emu_store_kind kind, struct emu_spot spot,
                                       struct emu_pkt *p)
{
    struct emu_store_pool *pool = &emu_store_fabric(qp)->store;
    struct emu_store_queue *q = &qp->store;
    struct emu_store *s = pool->unused;

    if (s) {
        pool->unused = s->next;
    } else {
        s = calloc(1, sizeof(*s));
        if (!s)
            return NULL;
        s->made_before = pool->made;
        pool->made = s;
    }
    *s = (struct emu_store){.made_before = s->made_before,
                            .serial = s->serial + 1,
                            .qp = qp,
                            .no = q->made++,
                            .kind = kind,
                            .spot = spot,
                            .pkt = p,
                            .prev = q->tail};
    *(q->tail ? &q->tail->next : &q->head) = s;
    q->tail = s;
    if (p)
        p->holds++;
    if (spot.mr)
        spot.mr->stores++;
    q->atomics += kind == EMU_STORE_ATOMIC;
    return s;
}

static void emu_store_at(struct emu_store *s, uint64_t due)
{
    struct emu_fabric *f = emu_store_fabric(s->qp);

    s->due = due;
    f->clock->at(f, due, emu_store_due, s, s->serial);
}

static void emu_store_release(struct emu_store *s)
{
    struct emu_store_queue *q = &s->qp->store;
    struct emu_fabric *f = emu_store_fabric(s->qp);

    *(s->prev ? &s->prev->next : &q->head) = s->next;
    *(s->next ? &s->next->prev : &q->tail) = s->prev;
    if (s->pkt)
        emu_pkt_free(f, s->pkt);
    if (s->spot.mr)
        s->spot.mr->stores--;
    q->atomics -= s->kind == EMU_STORE_ATOMIC || s->kind == EMU_STORE_WORD;
    s->serial++;
    s->next = f->store.unused;
    f->store.unused = s;
}

/* ---- becoming visible ---------------------------------------------------------------------------------------------- */

/** The owner may see new bytes; equal runs show them at equal times. */
static void emu_store_seen(struct emu_qp *qp, uint64_t off)
{
    struct emu_fabric *f = emu_store_fabric(qp);

    if (f->spec.unkind) {
        f->trace = (f->trace ^ emu_store_now(qp)) * 1099511628211u;
        f->trace = (f->trace ^ off) * 1099511628211u;
    }
    f->clock->wake(qp->ctx->owner);
}

static void emu_store_bytes(struct emu_qp *qp, struct emu_spot spot, const struct emu_pkt *p, uint32_t at, uint32_t len)
{
    emu_word_race(qp, spot, len);
    spot.mr->mem->store(spot.mr, qp, spot.off, &p->payload, at, len);
    emu_store_seen(qp, spot.off);
}

static void emu_store_show(struct emu_store *s);

/** Makes visible what came before the number. */
static void emu_store_push(struct emu_qp *qp, uint64_t before)
{
    while (qp->store.head && qp->store.head->no < before)
        emu_store_show(qp->store.head);
}

/** Executes an atomic, behind everything before it; its value is still to be written. */
static void emu_store_execute(struct emu_store *s)
{
    struct emu_qp *qp = s->qp;
    uint64_t old, value, due, answer, serial = s->serial;
    uint32_t psn;
    bool writes;

    emu_store_push(qp, s->no);
    if (s->serial != serial)
        return; /* a receive that could not complete ended the queue pair, and this with it */
    psn = s->pkt->psn;
    writes = emu_word_execute(qp, s->spot, s->pkt, &old, &value);
    due = emu_store_max(s->visible, emu_store_now(qp));
    if (writes)
        s->word = emu_word_hold(qp, s->spot, value, due, &s->turn);
    answer = s->answer;
    if (s->word) {
        s->kind = EMU_STORE_WORD;
        s->value = value;
        s->serial++;
        emu_store_at(s, due);
    } else {
        if (writes)
            emu_store_seen(qp, s->spot.off);
        emu_store_release(s);
    }
    emu_reply_executed(qp, psn, old, answer); /* last: it may send, and more may follow from that */
}

/** Does what the store stands for. All but atomics, which have to be written yet, are gone after that. */
static void emu_store_show(struct emu_store *s)
{
    struct emu_qp *qp = s->qp;
    struct emu_cqe e = s->cqe;
    bool solicited = s->solicited;

    switch (s->kind) {
    case EMU_STORE_BYTES:
        emu_store_bytes(qp, s->spot, s->pkt, s->at, s->len);
        emu_store_release(s);
        break;
    case EMU_STORE_ATOMIC:
        emu_store_execute(s);
        break;
    case EMU_STORE_WORD:
        emu_word_write(emu_store_fabric(qp), s->word, s->spot, s->turn, s->value);
        emu_store_seen(qp, s->spot.off);
        emu_store_release(s);
        break;
    case EMU_STORE_RECV:
        emu_store_release(s);
        if (emu_cq_add((struct emu_cq *)qp->ibv.recv_cq, &e, solicited))
            emu_qp_to_error(qp);
        break;
    }
}

static void emu_store_due(void *obj, uint64_t serial)
{
    struct emu_store *s = obj;

    if (s->serial == serial)
        emu_store_show(s);
}

/* ---- what comes ----------------------------------------------------------------------------------------------------- */

static uint64_t emu_store_late(struct emu_qp *qp)
{
    struct emu_store_pool *pool = &emu_store_fabric(qp)->store;

    if (!emu_store_is(qp, EMU_UNKIND_ACKVIS))
        return 0;
    return emu_unkind_late(&pool->rng, emu_unkind_scale(pool->seed, qp->port->index));
}

/** When the last of the queue pair's atomics on these bytes is written; 0: there is none. */
static uint64_t emu_store_atomics_on(const struct emu_qp *qp, struct emu_spot spot, uint32_t len)
{
    uintptr_t from = (uintptr_t)spot.mr->ibv.addr + spot.off;
    uint64_t due = 0;

    if (qp->store.atomics == 0)
        return 0;
    for (const struct emu_store *s = qp->store.head; s; s = s->next) {
        uintptr_t word = s->spot.mr ? (uintptr_t)s->spot.mr->ibv.addr + s->spot.off : 0;

        if ((s->kind == EMU_STORE_ATOMIC || s->kind == EMU_STORE_WORD) && word < from + len && from < word + 8)
            due = emu_store_max(due, (s->kind == EMU_STORE_ATOMIC ? s->visible : s->due) + 1);
    }
    return due;
}

/** Bytes become visible at due, or now. */
static void emu_store_take(struct emu_qp *qp, struct emu_spot spot, struct emu_pkt *p, uint32_t at, uint32_t len,
                           uint64_t due)
{
    struct emu_store_queue *q = &qp->store;
    struct emu_store *s = NULL;

    q->shown = emu_store_max(q->shown, due);
    if (!emu_store_is(qp, EMU_UNKIND_ACKVIS))
        q->solid = emu_store_max(q->solid, due);
    if (due > emu_store_now(qp) || q->head)
        s = emu_store_new(qp, EMU_STORE_BYTES, spot, p);
    if (!s) {
        emu_store_bytes(qp, spot, p, at, len);
        return;
    }
    s->at = at;
    s->len = len;
    emu_store_at(s, due);
}

void emu_store_send(struct emu_qp *qp, struct emu_mr *mr, uint64_t off, struct emu_pkt *p, uint32_t at, uint32_t len)
{
    uint64_t due = emu_store_max(emu_store_now(qp) + emu_store_late(qp), qp->store.shown);

    emu_store_take(qp, (struct emu_spot){mr, off}, p, at, len, due);
}

static bool emu_store_relaxed(const struct emu_qp *qp, const struct emu_mr *mr)
{
    return emu_store_is(qp, EMU_UNKIND_RELAXED) && (mr->access & IBV_ACCESS_RELAXED_ORDERING);
}

/** A write, or a part of one, that may pass others. */
static void emu_store_stray(struct emu_qp *qp, struct emu_spot spot, struct emu_pkt *p, uint32_t at, uint32_t len)
{
    uint64_t due = emu_store_now(qp) + emu_unkind_stray(&emu_store_fabric(qp)->store.rng) + emu_store_late(qp);

    due = emu_store_max(due, emu_store_is(qp, EMU_UNKIND_OOO) ? emu_store_atomics_on(qp, spot, len)
                                                              : qp->store.after_atomic);
    emu_store_take(qp, spot, p, at, len, due);
}

/** The length of a part of a write: up to a random 64-byte line of the target, or all of it. */
static uint32_t emu_store_cut(struct emu_qp *qp, struct emu_spot spot, uint32_t len)
{
    uint32_t first = 64 - (uint32_t)(((uintptr_t)spot.mr->ibv.addr + spot.off) & 63);

    if (first >= len)
        return len;
    return first + 64 * (uint32_t)emu_rng_below(&emu_store_fabric(qp)->store.rng, (len - first - 1) / 64 + 1);
}

void emu_store_write(struct emu_qp *qp, struct emu_mr *mr, uint64_t off, struct emu_pkt *p, uint32_t at, uint32_t len)
{
    struct emu_spot spot = {mr, off};
    uint64_t parts = 1;

    if (!emu_store_relaxed(qp, mr) && !emu_store_is(qp, EMU_UNKIND_OOO)) {
        emu_store_send(qp, mr, off, p, at, len);
        return;
    }
    if (emu_store_relaxed(qp, mr)) /* a packet crosses the bus in several writes, each on its own */
        parts += emu_rng_below(&emu_store_fabric(qp)->store.rng, 3);
    for (; len; parts--) {
        uint32_t n = parts > 1 ? emu_store_cut(qp, spot, len) : len;

        emu_store_stray(qp, spot, p, at, n);
        spot.off += n;
        at += n;
        len -= n;
    }
}

/* What is only late may be waited for, or pushed, at any time until then. */
uint64_t emu_store_read_time(struct emu_qp *qp)
{
    const struct emu_store_queue *q = &qp->store;
    uint64_t now = emu_store_now(qp);

    if (!q->head)
        return 0;
    if (!emu_store_is(qp, EMU_UNKIND_ACKVIS) || q->shown <= now)
        return q->solid;
    return emu_store_max(q->solid, now + emu_rng_below(&emu_store_fabric(qp)->store.rng, q->shown - now + 1));
}

void emu_store_atomic(struct emu_qp *qp, struct emu_mr *mr, struct emu_pkt *p)
{
    struct emu_rng *rng = &emu_store_fabric(qp)->store.rng;
    struct emu_store_queue *q = &qp->store;
    struct emu_store *s = emu_store_new(qp, EMU_STORE_ATOMIC, (struct emu_spot){mr, p->va - mr->remote_base}, p);
    uint64_t start = emu_store_max(emu_store_now(qp), emu_store_read_time(qp));

    if (!s)
        return; /* as if the request were lost: it is asked again */
    s->answer = start + (emu_store_is(qp, EMU_UNKIND_ATOMICS) ? emu_unkind_hold(rng) : 0);
    s->visible = s->answer + emu_store_late(qp);
    q->solid = s->answer;
    /* One later: its own store is made when it executes, so at the very same time it would come behind a write's. */
    q->after_atomic = emu_store_max(q->after_atomic, s->visible + 1);
    q->shown = emu_store_max(q->shown, s->visible + 1);
    if (start == emu_store_now(qp))
        emu_store_execute(s);
    else
        emu_store_at(s, start);
}

void emu_store_recv(struct emu_qp *qp, const struct emu_cqe *e, bool solicited)
{
    struct emu_store_queue *q = &qp->store;
    struct emu_store *s = NULL;

    if (q->head)
        s = emu_store_new(qp, EMU_STORE_RECV, (struct emu_spot){NULL, 0}, NULL);
    if (s) {
        s->cqe = *e;
        s->solicited = solicited;
        emu_store_at(s, q->shown);
    } else if (emu_cq_add((struct emu_cq *)qp->ibv.recv_cq, e, solicited)) {
        emu_qp_to_error(qp);
    }
}

uint64_t emu_store_ack_time(const struct emu_qp *qp)
{
    if (emu_store_is(qp, EMU_UNKIND_ACKVIS) || !qp->store.head)
        return 0;
    return qp->store.shown;
}

void emu_store_read(struct emu_qp *qp, uint64_t before, struct emu_mr *mr, uint64_t off, uint32_t len)
{
    emu_store_push(qp, before);
    emu_word_show(qp, (struct emu_spot){mr, off}, len);
}

/* ---- ends ------------------------------------------------------------------------------------------------------------- */

static void emu_store_reset(struct emu_qp *qp)
{
    qp->store = (struct emu_store_queue){.made = qp->store.made};
}

void emu_store_finish(struct emu_qp *qp)
{
    while (qp->store.head)
        emu_store_show(qp->store.head);
    emu_store_reset(qp);
}

static void emu_store_drop_recv(struct emu_store *s)
{
    if (s->cqe.srq)
        emu_recv_free(&s->cqe);
    emu_store_release(s);
}

void emu_store_forget(struct emu_qp *qp)
{
    while (qp->store.head) {
        if (qp->store.head->kind == EMU_STORE_RECV)
            emu_store_drop_recv(qp->store.head);
        else
            emu_store_show(qp->store.head);
    }
    emu_store_reset(qp);
}

void emu_store_drop(struct emu_qp *qp)
{
    while (qp->store.head) {
        if (qp->store.head->kind == EMU_STORE_RECV) {
            emu_store_drop_recv(qp->store.head);
            continue;
        }
        if (qp->store.head->kind == EMU_STORE_WORD)
            emu_word_drop(emu_store_fabric(qp), qp->store.head->word);
        emu_store_release(qp->store.head);
    }
    emu_store_reset(qp);
}

/** All that came to the queue pair up to the last that goes into the region. */
static void emu_store_settle_qp(struct emu_qp *qp, const struct emu_mr *mr)
{
    const struct emu_store *last = qp->store.tail;

    while (last && last->spot.mr != mr)
        last = last->prev;
    if (last)
        emu_store_push(qp, last->no + 1);
}

void emu_store_settle(struct emu_mr *mr)
{
    const struct emu_map *qps = &mr->ctx->dev->qps;

    for (uint32_t i = 0; mr->stores && i < qps->size; i++) {
        if (qps->slot[i].key)
            emu_store_settle_qp(qps->slot[i].value, mr);
    }
}
