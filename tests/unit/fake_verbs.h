/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_verbs.h - the layer verbs without a device: posts are kept in order, and the test says when and how each ends. Moves
 * no bytes but the mailbox's, unless asked to. One thread; state is global, because it stands for the one host.
 *
 * Devices are fake0 to fake15, each with one port; fake12 is DOWN, fake13 is InfiniBand, fake14's largest message has 64
 * KiB.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include "verbs.h"

/** Calls that can be made to fail. */
enum fake_call {
    FAKE_LOAD,
    FAKE_OPEN,
    FAKE_MR,
    FAKE_CQ,
    FAKE_QP,
    FAKE_INIT,
    FAKE_RTR,
    FAKE_RTS,
    FAKE_POST_SEND, /**< once for each request of a list */
    FAKE_POST_RECV,
    FAKE_POLL,
    FAKE_CALLS
};

/** Forgets everything; objects still alive are a test's failure. */
void fake_reset(void);

/** Makes the n-th next call of a kind fail with a negative errno (n = 0: the next one). */
void fake_fail(enum fake_call call, unsigned n, int error);

/** Makes the n-th call behind that one fail too (n = 1: the next). */
void fake_fail_again(enum fake_call call, unsigned n, int error);

/** How often a call has been made since fake_reset(). */
unsigned fake_calls(enum fake_call call);

/** MRs made since fake_reset() that peers may write. */
unsigned fake_remote_mrs(void);

/** Devices, MRs, CQs and QPs alive. */
int fake_alive(void);

/** The QPs made since fake_reset(), in order; NULL past the last. */
struct verbs_qp *fake_qp(unsigned i);

/** Requests of a QP posted and not yet ended. */
unsigned fake_pending(const struct verbs_qp *qp);

/** The remote key of a request, whatever its kind. */
static inline uint32_t fake_key(const struct verbs_send *send)
{
    return send->op < VERBS_OP_COMPARE_SWAP ? send->rkey : send->atomic_rkey;
}

/** The i-th of them, oldest first. */
const struct verbs_send *fake_send(const struct verbs_qp *qp, unsigned i);

/** Ends the oldest request of a QP: its completion can be polled, but for an unsignalled one that ends well, which has
 *  none. A SEND that ends well arrives at its own QP, as on a lane to oneself. */
void fake_end(struct verbs_qp *qp, int error);

/** While on, polling a CQ first ends, well, all that is posted to its QPs: for what waits for requests where no test can end
 *  them, such as connecting. Off after fake_reset(). */
void fake_auto(bool on);

/** The next request of the i-th QP that ends by itself ends with this error; the QP may not be made yet. */
void fake_auto_error(unsigned i, int error);

/** While on, requests that end well are carried out on this process's memory, as on a lane to oneself, in the order in which the
 *  test ends them; the process ends where their keys do not allow it. Off after fake_reset(). */
void fake_moves(bool on);

/** While on, SENDs arrive nowhere: the test plays the peer. Off after fake_reset(). */
void fake_mail_lost(bool on);

/** Whether unsignalled requests that are flushed have completions. They have after fake_reset(), as IBA wants it. */
void fake_flush_tells(bool tells);

/** What devices answer about placement; silence after fake_reset(). */
void fake_place(enum verbs_placement placement);

/** Devices are bonds of so many wires until fake_reset(), and let QPs choose one, or refuse with this error. */
void fake_bond(unsigned wires, int refusal);

/** The wire and source port that a QP was told; 0: nothing. */
unsigned fake_wire(const struct verbs_qp *qp);
unsigned fake_sport(const struct verbs_qp *qp);

/** The GID table of every port until fake_reset(); not copied. */
void fake_gids(const struct verbs_gid *gids, uint32_t count);

/** Makes devices refuse relaxed ordering until fake_reset(). */
void fake_refuse_relaxed(void);

/** Registrations of dma-bufs fail with this error; 0: they do not. */
void fake_refuse_dmabuf(int error);

/** What an MR was registered of: the local address, or the dma-buf's descriptor and offset; by key. */
struct fake_region {
    void *addr; /**< NULL: a dma-buf */
    int fd;
    uint64_t offset, len, iova;
};

/** The MR that has this local or remote key; zeroed where there is none. */
struct fake_region fake_region(uint32_t key);

/** Puts a completion of any id into the QP's CQ. */
void fake_stray(struct verbs_qp *qp, uint64_t id, int error);

/** A message of these bytes arrives in the oldest receive of a QP. */
void fake_arrive(struct verbs_qp *qp, const void *bytes, uint32_t len);

/** Whether the QP has been taken to ERR; then its requests and receives have been flushed, and what is posted later is at
 *  once. */
bool fake_stopped(const struct verbs_qp *qp);

/** The path that a QP was connected by. */
const struct verbs_path *fake_path(const struct verbs_qp *qp);

#endif
