/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ahead.c - reading GPU memory ahead of the packets: a copy from a GPU takes as long for a packet as for many, so the
 * first packet of a message fetches its first 256 KiB, and the beginnings of those that are posted behind it, as a device may. Never what is not
 * posted: what the program changes before that is seen. Called by emu_req.c and emu_reply.c; next: emu_mr.c, emu_gpu.c.
 */
#include "emu_ahead.h"

#include <string.h>

static void emu_ahead_drop_out(struct emu_qp *qp)
{
    for (int i = 0; i < EMU_AHEAD_WINDOWS; i++)
        emu_gpu_give_back(&qp->ahead_out[i]);
}

/** The GPU that a list's bytes are read from, if all of it can be read into plain bytes; else NULL. */
static struct emu_gpu *emu_ahead_gpu(struct emu_qp *qp, const struct emu_wqe *w)
{
    struct emu_gpu *gpu = NULL;

    for (int i = 0; i < w->n_sge; i++) {
        const struct emu_mr *mr = emu_map_get(&qp->ctx->dev->mrs, w->sge[i].lkey);

        if (!mr || mr->pattern)
            return NULL;
        gpu = gpu ? gpu : mr->gpu;
    }
    return gpu;
}

static bool emu_ahead_holds(const struct emu_ahead *a, uint64_t message, uint64_t off, uint32_t len)
{
    return a->gpu && a->message == message && off >= a->from && off + len <= a->from + a->len;
}

/** Makes it a place for bytes of a message from off on, empty. False: there is none. spare: only where many are free. */
static bool emu_ahead_place(struct emu_ahead *a, struct emu_gpu *gpu, uint64_t message, uint64_t off, bool spare)
{
    if (a->gpu != gpu)
        emu_gpu_give_back(a);
    if (!a->gpu && !emu_gpu_borrow(gpu, a, spare))
        return false;
    a->message = message;
    a->from = off;
    a->len = 0;
    return true;
}

static void emu_ahead_take(struct emu_ahead *a, uint64_t off, struct emu_payload *to, bool last)
{
    memcpy(to->bytes, a->bytes + (off - a->from), to->len);
    if (last)
        emu_gpu_give_back(a);
}

/** The window with these bytes, or the one that may be used for them: what it held was sent. */
static struct emu_ahead *emu_ahead_window(struct emu_qp *qp, uint64_t message, uint64_t off, uint32_t len)
{
    struct emu_ahead *use = NULL;

    for (int i = 0; i < EMU_AHEAD_WINDOWS; i++) {
        struct emu_ahead *a = &qp->ahead_out[i];

        if (emu_ahead_holds(a, message, off, len))
            return a;
        if (!a->gpu || a->message < qp->sq_nxt || a->message == message)
            use = a;
    }
    return use || message != qp->sq_nxt ? use : &qp->ahead_out[0];
}

/** Begins to read a message's next bytes into a window of its own. */
static bool emu_ahead_begin(struct emu_qp *qp, struct emu_gpu *gpu, struct emu_ahead *a, uint64_t message, uint64_t off)
{
    const struct emu_wqe *w = emu_wqe_at(qp, message);
    uint32_t left = w->len - (uint32_t)off;
    struct emu_payload much = {.len = left < EMU_AHEAD_BYTES ? left : EMU_AHEAD_BYTES};

    if (!emu_ahead_place(a, gpu, message, off, message != qp->sq_nxt))
        return false;
    much.bytes = a->bytes;
    if (!emu_mr_gather(qp, w->sge, w->n_sge, off, &much)) {
        emu_gpu_give_back(a);
        return false;
    }
    a->len = much.len;
    return true;
}

/** Whether a message that was posted may be read now: its bytes may not change any more, and nothing has to come before. */
static bool emu_ahead_may(struct emu_qp *qp, const struct emu_wqe *w, const struct emu_gpu *gpu)
{
    return (w->opcode == IBV_WR_RDMA_WRITE || w->opcode == IBV_WR_SEND) && w->len && w->n_sge == 1 &&
           !(w->flags & (IBV_SEND_INLINE | IBV_SEND_FENCE)) && emu_ahead_gpu(qp, w) == gpu;
}

/** Reads this message's next bytes, and the beginnings of those behind it: waiting costs most, and is done once. */
static struct emu_ahead *emu_ahead_fetch(struct emu_qp *qp, struct emu_gpu *gpu, struct emu_ahead *a, uint64_t off)
{
    uint64_t m = qp->sq_nxt;

    if (!a || !emu_ahead_begin(qp, gpu, a, m, off))
        return NULL;
    for (int more = EMU_AHEAD_WINDOWS; more && ++m < qp->sq_tail; more--) {
        struct emu_ahead *next = emu_ahead_window(qp, m, 0, 1);

        if (!next || next->message == qp->sq_nxt || !emu_ahead_may(qp, emu_wqe_at(qp, m), gpu))
            break;
        if (!emu_ahead_holds(next, m, 0, 1) && !emu_ahead_begin(qp, gpu, next, m, 0))
            break;
    }
    return emu_gpu_arrived(gpu) ? a : NULL;
}

bool emu_ahead_gather(struct emu_qp *qp, const struct emu_wqe *w, uint64_t off, struct emu_payload *to)
{
    struct emu_gpu *gpu = qp->ctx->dev->fabric->gpu_mrs ? emu_ahead_gpu(qp, w) : NULL;
    uint32_t left = w->len - (uint32_t)off;
    struct emu_ahead *a = gpu ? emu_ahead_window(qp, qp->sq_nxt, off, to->len) : NULL;

    if (!gpu) {
        if (qp->ctx->dev->fabric->clock->real) /* else there has never been a GPU */
            emu_ahead_drop_out(qp);
        return emu_mr_gather(qp, w->sge, w->n_sge, off, to);
    }
    if (!a || !emu_ahead_holds(a, qp->sq_nxt, off, to->len))
        a = emu_ahead_fetch(qp, gpu, a, off);
    if (!a) /* no place, or it cannot be read: the packet alone */
        return !emu_gpu_dead(gpu) && emu_mr_gather(qp, w->sge, w->n_sge, off, to);
    emu_ahead_take(a, off, to, left == to->len);
    return true;
}

bool emu_ahead_read(struct emu_qp *qp, const struct emu_mr *mr, const struct emu_reply *r, struct emu_payload *to)
{
    uint64_t off = r->va + r->sent - mr->remote_base;
    uint32_t left = r->len - r->sent;
    struct emu_ahead *a = &qp->ahead_reply;

    if (!mr->gpu || r->len == to->len) {
        mr->mem->load(mr, off, to, 0, to->len);
        return !emu_gpu_dead(mr->gpu);
    }
    /* Message 0: a READ is answered to its end or ends with its queue pair, so nothing is left of another. */
    if (!emu_ahead_holds(a, 0, r->sent, to->len)) {
        struct emu_payload much = {.len = left < EMU_AHEAD_BYTES ? left : EMU_AHEAD_BYTES};

        if (!emu_ahead_place(a, mr->gpu, 0, r->sent, false)) {
            mr->mem->load(mr, off, to, 0, to->len);
            return !emu_gpu_dead(mr->gpu);
        }
        much.bytes = a->bytes;
        mr->mem->load(mr, off, &much, 0, much.len);
        emu_gpu_arrived(mr->gpu);
        a->len = much.len;
    }
    emu_ahead_take(a, r->sent, to, left == to->len);
    return !emu_gpu_dead(mr->gpu);
}

void emu_ahead_forget(struct emu_qp *qp)
{
    emu_ahead_drop_out(qp);
    emu_gpu_give_back(&qp->ahead_reply);
}
