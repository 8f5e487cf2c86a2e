/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_store.h - what a responder has taken but memory does not show yet: stores, atomics, and the receives that must not
 * complete before them. Only where a switch of unkind= asks for it; else everything happens at once and nothing is here.
 * Included by emu.h; emu_store.c and emu_word.c fill it.
 */
#ifndef EMU_STORE_H
#define EMU_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "emu_rng.h"

struct emu_dev;
struct emu_fabric;
struct emu_mr;
struct emu_pkt;
struct emu_qp;
struct emu_cqe;
struct emu_store;
struct emu_word;

/** A queue pair's part, in the order in which the requests came. */
struct emu_store_queue {
    struct emu_store *head, *tail;
    uint64_t made;         /* stores so far; the next one's number */
    uint64_t shown;        /* when all of them will be visible */
    uint64_t solid;        /* when a READ or atomic behind them may execute */
    uint64_t after_atomic; /* relaxed writes do not pass atomics (ibv_reg_mr(3)) */
    uint64_t next_answer;  /* rdstall: no answer before this */
    uint32_t atomics;      /* in the queue */
};

/** The fabric's part. */
struct emu_store_pool {
    struct emu_rng rng; /* of its own: switches do not change the other random choices */
    uint64_t seed;
    struct emu_store *unused, *made;
    struct emu_word *words, *unused_words;
};

/** Gets the random numbers ready. */
void emu_store_init(struct emu_fabric *f, uint64_t seed);
/** Frees the pool; no queue pair may be left. */
void emu_store_fini(struct emu_fabric *f);
/** True for an event of this file that would find nothing to do. */
bool emu_store_void(void (*fn)(void *, uint64_t), const void *obj, uint64_t arg);

/** Takes len bytes, from byte at of the packet's payload on, of a WRITE to the region's byte off: now or later. */
void emu_store_write(struct emu_qp *qp, struct emu_mr *mr, uint64_t off, struct emu_pkt *p, uint32_t at, uint32_t len);
/** The same for a SEND: never before what came earlier. */
void emu_store_send(struct emu_qp *qp, struct emu_mr *mr, uint64_t off, struct emu_pkt *p, uint32_t at, uint32_t len);
/** Takes an atomic: emu_reply_executed() is told once it has been executed. */
void emu_store_atomic(struct emu_qp *qp, struct emu_mr *mr, struct emu_pkt *p);
/** Completes a receive, behind everything that came earlier: a completion still ensures that all data is visible, that
 *  of prior transfers too (ibv_reg_mr(3)). */
void emu_store_recv(struct emu_qp *qp, const struct emu_cqe *e, bool solicited);
/** When everything that came so far may be acknowledged; 0: now. */
uint64_t emu_store_ack_time(const struct emu_qp *qp);
/** When a READ that comes now may execute; 0: now. */
uint64_t emu_store_read_time(struct emu_qp *qp);
/** A READ executes: what came before number `before` on its queue pair, and the device's atomics on these bytes, are
 *  visible from here on. */
void emu_store_read(struct emu_qp *qp, uint64_t before, struct emu_mr *mr, uint64_t off, uint32_t len);
/** Makes everything of a queue pair visible and completes its receives. */
void emu_store_finish(struct emu_qp *qp);
/** The same without completions: the queue pair goes away. */
void emu_store_forget(struct emu_qp *qp);
/** Throws everything of a queue pair away: its owner's memory may be gone. */
void emu_store_drop(struct emu_qp *qp);
/** Makes what is still to come into a region visible, before it goes away. */
void emu_store_settle(struct emu_mr *mr);

/* ---- emu_word.c: words that an atomic has read and not written yet ------------------------------------------------ */

/** Where a word lies. */
struct emu_spot {
    struct emu_mr *mr;
    uint64_t off;
};

/** Executes an atomic on the device's view of the word: gives the old value; what is to be written is in *value. False
 *  where nothing is: a compare that failed. */
bool emu_word_execute(struct emu_qp *qp, struct emu_spot at, const struct emu_pkt *p, uint64_t *old, uint64_t *value);
/** Writes the value now (NULL), or holds the word until it is written at due; *turn is to be given to emu_word_write(). */
struct emu_word *emu_word_hold(struct emu_qp *qp, struct emu_spot at, uint64_t value, uint64_t due, uint64_t *turn);
/** Writes the value, unless that of a later turn is there already, and lets go. */
void emu_word_write(struct emu_fabric *f, struct emu_word *w, struct emu_spot at, uint64_t turn, uint64_t value);
/** Lets go without writing. */
void emu_word_drop(struct emu_fabric *f, struct emu_word *w);
/** Something reads or writes len bytes through a device: what it holds of them is written first. */
void emu_word_show(struct emu_qp *qp, struct emu_spot at, uint64_t len);
/** A WRITE comes to len bytes. Where atomics are atomic for all, it is behind those that were executed; else it races
 *  them, and loses. */
void emu_word_race(struct emu_qp *qp, struct emu_spot at, uint64_t len);
/** Frees the words. */
void emu_word_fini(struct emu_fabric *f);

#endif
