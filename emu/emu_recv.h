/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_recv.h - receives, and where they wait for messages: in a queue pair's own queue, or in one that several share.
 * Included by emu.h; emu_recv.c and emu_srq.c fill it.
 */
#ifndef EMU_RECV_H
#define EMU_RECV_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct emu_ctx;
struct emu_pd;
struct emu_pkt;
struct emu_qp;
struct emu_cqe;

enum { EMU_RECV_SGE = 16, EMU_MAX_SRQ_WR = 16384 };

struct emu_rqe {
    uint64_t wr_id;
    int n_sge;
    struct ibv_sge sge[]; /* as many as its queue takes */
};

/** Bytes of one with so many. */
static inline size_t emu_rqe_size(uint32_t max_sge)
{
    return sizeof(struct emu_rqe) + max_sge * sizeof(struct ibv_sge);
}

/** A shared receive queue: taken from in the order of posting, given back in the order of polling. */
struct emu_srq {
    struct ibv_srq ibv;
    struct emu_ctx *ctx;
    struct emu_srq *next; /* of the context */
    unsigned char *ring;  /* size receives */
    uint32_t size, max_sge;
    uint64_t head, tail; /* receives ever taken, ever posted */
    uint32_t taken;      /* whose completions nobody has polled */
    uint32_t limit;      /* 0: not armed */
    uint32_t async_given;
    int refs; /* queue pairs */
};

/** ibv_create_srq(3). NULL and errno. */
struct emu_srq *emu_srq_new(struct emu_pd *pd, void *srq_context, struct ibv_srq_attr *attr);
/** 0 or an errno (EBUSY). */
int emu_srq_destroy(struct emu_srq *srq);
/** ibv_modify_srq(3): the limit alone, as mlx5. 0 or an errno. */
int emu_srq_modify(struct emu_srq *srq, const struct ibv_srq_attr *attr, int mask);
/** ibv_post_srq_recv(3). 0 or an errno, *bad at the first that was not taken. */
int emu_srq_post(struct emu_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/** Takes the oldest receive, emu_rqe_size(srq->max_sge) bytes; false: there is none. Raises the limit event. */
bool emu_srq_take(struct emu_srq *srq, struct emu_rqe *out);

/** ibv_post_recv(3). */
int emu_recv_post(struct emu_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/** Whether a message that comes now finds a receive. */
bool emu_recv_ready(const struct emu_qp *qp);
/** The receive of the message in progress, which is from then on this queue pair's. Only where there is one. */
const struct emu_rqe *emu_recv_current(struct emu_qp *qp);
/** The PD whose regions a queue pair's receives are in. */
const struct emu_pd *emu_recv_pd(const struct emu_qp *qp);
/** Completes the receive of the message in progress; p: the message's last packet, or NULL. */
void emu_recv_complete(struct emu_qp *qp, enum ibv_wc_status status, const struct emu_pkt *p);
/** Flushes what is the queue pair's own, in order. */
void emu_recv_flush(struct emu_qp *qp);
/** Forgets it, without completions. */
void emu_recv_clear(struct emu_qp *qp);
/** A completion was polled, or dropped: its place is free. */
void emu_recv_free(const struct emu_cqe *e);

#endif
