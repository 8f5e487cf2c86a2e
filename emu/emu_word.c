/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_word.c - words that an atomic has read and not written yet. Atomics that share such a word work on the value held
 * here, so they are atomic among each other: those of one device (unkind=atomics), else all of the fabric's. Whoever else
 * touches the word's memory in between loses, or is lost.
 *
 * A value that comes to be written after that of a later turn is skipped: the later one has it in it. Called by emu_store.c;
 * next: emu_mr.c.
 */
#include "emu.h"
#include "emu_unkind.h"

#include <stdlib.h>

struct emu_word {
    struct emu_word *next;
    const struct emu_dev *dev; /* NULL: of all devices */
    uintptr_t addr;
    uint64_t value; /* of the last turn */
    uint64_t turn, written;
    unsigned holds;
};

static const struct emu_dev *emu_word_scope(const struct emu_qp *qp)
{
    return qp->ctx->dev->fabric->spec.unkind & EMU_UNKIND_ATOMICS ? qp->ctx->dev : NULL;
}

static uintptr_t emu_word_addr(struct emu_spot at)
{
    return (uintptr_t)at.mr->ibv.addr + at.off;
}

static struct emu_word *emu_word_find(const struct emu_qp *qp, struct emu_spot at)
{
    struct emu_word *w = qp->ctx->dev->fabric->store.words;

    while (w && (w->addr != emu_word_addr(at) || w->dev != emu_word_scope(qp)))
        w = w->next;
    return w;
}

bool emu_word_execute(struct emu_qp *qp, struct emu_spot at, const struct emu_pkt *p, uint64_t *old, uint64_t *value)
{
    const struct emu_word *w = emu_word_find(qp, at);

    *old = w && w->written != w->turn ? w->value : at.mr->mem->load8(at.mr, at.off);
    *value = p->op == EMU_OP_FETCH_ADD ? *old + p->compare_add : p->swap;
    return p->op == EMU_OP_FETCH_ADD || *old == p->compare_add;
}

static struct emu_word *emu_word_new(struct emu_qp *qp, struct emu_spot at)
{
    struct emu_store_pool *pool = &qp->ctx->dev->fabric->store;
    struct emu_word *w = pool->unused_words;

    if (w)
        pool->unused_words = w->next;
    else
        w = malloc(sizeof(*w));
    if (!w)
        return NULL;
    *w = (struct emu_word){.next = pool->words, .dev = emu_word_scope(qp), .addr = emu_word_addr(at)};
    pool->words = w;
    return w;
}

struct emu_word *emu_word_hold(struct emu_qp *qp, struct emu_spot at, uint64_t value, uint64_t due, uint64_t *turn)
{
    struct emu_fabric *f = qp->ctx->dev->fabric;
    struct emu_word *w = emu_word_find(qp, at);

    if (!w && due > f->clock->now(f))
        w = emu_word_new(qp, at);
    if (!w) {
        at.mr->mem->store8(at.mr, at.off, value);
        return NULL;
    }
    w->value = value;
    w->holds++;
    *turn = ++w->turn;
    return w;
}

void emu_word_drop(struct emu_fabric *f, struct emu_word *w)
{
    struct emu_word **at = &f->store.words;

    if (--w->holds)
        return;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    w->next = f->store.unused_words;
    f->store.unused_words = w;
}

void emu_word_write(struct emu_fabric *f, struct emu_word *w, struct emu_spot at, uint64_t turn, uint64_t value)
{
    if (turn > w->written) {
        at.mr->mem->store8(at.mr, at.off, value);
        w->written = turn;
    }
    emu_word_drop(f, w);
}

/** Writes what is held of the bytes, where the region has the whole word. */
static void emu_word_write_held(struct emu_qp *qp, struct emu_spot at, uint64_t len)
{
    uintptr_t from = emu_word_addr(at), base = (uintptr_t)at.mr->ibv.addr;

    for (struct emu_word *w = qp->ctx->dev->fabric->store.words; w; w = w->next) {
        if (w->dev != emu_word_scope(qp) || w->written == w->turn || w->addr + 8 <= from || w->addr >= from + len ||
            w->addr < base || w->addr + 8 > base + at.mr->ibv.length)
            continue;
        at.mr->mem->store8(at.mr, w->addr - base, w->value);
        w->written = w->turn;
    }
}

void emu_word_show(struct emu_qp *qp, struct emu_spot at, uint64_t len)
{
    emu_word_write_held(qp, at, len);
}

void emu_word_race(struct emu_qp *qp, struct emu_spot at, uint64_t len)
{
    if (emu_word_scope(qp) == NULL)
        emu_word_write_held(qp, at, len);
}

void emu_word_fini(struct emu_fabric *f)
{
    struct emu_word **list[2] = {&f->store.words, &f->store.unused_words};

    for (int i = 0; i < 2; i++) {
        while (*list[i]) {
            struct emu_word *w = *list[i];

            *list[i] = w->next;
            free(w);
        }
    }
}
