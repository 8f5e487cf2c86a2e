/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ahead.c - reading GPU memory ahead of the packets: a copy from a GPU takes as long for a packet as for many, so the
 * first packet of a long message fetches the next 256 KiB, as a device may. Never beyond the message: what the program
 * changes between two messages is seen. Called by emu_req.c and emu_reply.c; next: emu_mr.c, emu_gpu.c.
 */
#include "emu_ahead.h"

#include <string.h>

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

/** Whether the bytes are here already. Otherwise there is a place for them, or none (a->gpu NULL). */
static bool emu_ahead_has(struct emu_ahead *a, struct emu_gpu *gpu, uint64_t message, uint64_t off, uint32_t len)
{
    if (a->gpu && a->message == message && off >= a->from && off + len <= a->from + a->len)
        return true;
    if (a->gpu != gpu)
        emu_gpu_give_back(a);
    if (!a->gpu)
        emu_gpu_borrow(gpu, a);
    a->message = message;
    a->from = off;
    a->len = 0;
    return false;
}

static void emu_ahead_take(struct emu_ahead *a, uint64_t off, struct emu_payload *to, bool last)
{
    memcpy(to->bytes, a->bytes + (off - a->from), to->len);
    if (last)
        emu_gpu_give_back(a);
}

bool emu_ahead_gather(struct emu_qp *qp, const struct emu_wqe *w, uint64_t off, struct emu_payload *to)
{
    struct emu_gpu *gpu = qp->ctx->dev->fabric->gpu_mrs && w->len > to->len ? emu_ahead_gpu(qp, w) : NULL;
    uint32_t left = w->len - (uint32_t)off;
    struct emu_ahead *a = &qp->ahead_out;

    if (!gpu) {
        emu_gpu_give_back(a);
        return emu_mr_gather(qp, w->sge, w->n_sge, off, to);
    }
    if (!emu_ahead_has(a, gpu, qp->sq_nxt, off, to->len)) {
        struct emu_payload much = {.len = left < EMU_AHEAD_BYTES ? left : EMU_AHEAD_BYTES, .bytes = a->bytes};

        if (!a->gpu)
            return emu_mr_gather(qp, w->sge, w->n_sge, off, to);
        if (!emu_mr_gather(qp, w->sge, w->n_sge, off, &much)) {
            emu_gpu_give_back(a);
            return false;
        }
        a->len = much.len;
    }
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
    if (!emu_ahead_has(a, mr->gpu, 0, r->sent, to->len)) {
        struct emu_payload much = {.len = left < EMU_AHEAD_BYTES ? left : EMU_AHEAD_BYTES, .bytes = a->bytes};

        if (!a->gpu)
            much = *to;
        mr->mem->load(mr, off, &much, 0, much.len);
        if (!a->gpu)
            return !emu_gpu_dead(mr->gpu);
        a->len = much.len;
    }
    emu_ahead_take(a, r->sent, to, left == to->len);
    return !emu_gpu_dead(mr->gpu);
}

void emu_ahead_forget(struct emu_qp *qp)
{
    emu_gpu_give_back(&qp->ahead_out);
    emu_gpu_give_back(&qp->ahead_reply);
}
