/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_pair.c - two connected QPs with a buffer each, and a copy of what the buffers must hold.
 *
 * May use the public verbs only. Called by the parts of the list. next: ibv_post_send() and the device under test.
 */
#include "conformance.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

struct pair_options pair_defaults(void)
{
    int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    /* Timeout 17 is 0.54 s: long enough for a software device on a busy machine never to repeat without need. */
    return (struct pair_options){.send_wr = 64,
                                 .recv_wr = 64,
                                 .sge = 4,
                                 .cqe = 256,
                                 .qp_access = all & ~IBV_ACCESS_LOCAL_WRITE,
                                 .mr_access = all,
                                 .timeout = 17,
                                 .retry = 6,
                                 .rnr_retry = 7,
                                 .min_rnr = 12,
                                 .rd_atomic = 4};
}

/* The port that an end is on. */
static int place(const struct pair *p, int side)
{
    return p->o.loopback ? A : side;
}

static bool fill(struct pair *p, int side)
{
    struct side *s = &p->s[side];
    size_t all = BUFFER + 2 * GUARD;
    uint8_t *raw = check_memory(p->c, all), *want = check_memory(p->c, all);
    if (!raw || !want)
        return false;
    for (size_t i = 0; i < all; i += 8) {
        uint64_t r = check_random(p->c);
        memcpy(raw + i, &r, 8);
    }
    memcpy(want, raw, all);
    s->buf = raw + GUARD;
    s->want = want + GUARD;
    return true;
}

static bool open_side(struct pair *p, int side)
{
    struct side *s = &p->s[side];
    const struct pair_options *o = &p->o;
    bool shares = side == B && o->share;
    s->psn = (uint32_t)check_random(p->c) & 0xffffff;
    s->pd = shares ? o->share->pd : check_pd(p->c, place(p, side));
    if (!s->pd || !fill(p, side))
        return false;
    s->mr = check_mr(p->c, s->pd, s->buf, BUFFER, o->mr_access);
    if (o->channel && side == B)
        s->channel = check_channel(p->c, place(p, side));
    s->scq = check_cq(p->c, place(p, side), o->cqe, NULL);
    s->rcq = check_cq(p->c, place(p, side), o->cqe, s->channel);
    if (shares)
        s->srq = o->share->srq;
    else if (side == B && o->srq_wr)
        s->srq = check_srq(p->c, s->pd, o->srq_wr, o->sge);
    if (!s->mr || !s->scq || !s->rcq || (side == B && o->srq_wr && !s->srq))
        return false;
    struct ibv_qp_init_attr init = {.send_cq = s->scq,
                                    .recv_cq = s->rcq,
                                    .srq = s->srq,
                                    .qp_type = o->datagrams ? IBV_QPT_UD : IBV_QPT_RC,
                                    .sq_sig_all = o->sig_all,
                                    .cap = {.max_send_wr = o->send_wr,
                                            .max_recv_wr = o->recv_wr,
                                            .max_send_sge = o->sge,
                                            .max_recv_sge = o->sge,
                                            .max_inline_data = o->inline_bytes}};
    s->qp = check_qp(p->c, s->pd, &init);
    s->cap = init.cap;
    return s->qp != NULL;
}

bool pair_open(struct check *c, struct pair *p, const struct pair_options *options)
{
    *p = (struct pair){.c = c, .o = options ? *options : pair_defaults()};
    return open_side(p, A) && open_side(p, B);
}

bool pair_start(struct check *c, struct pair *p, const struct pair_options *options)
{
    return pair_open(c, p, options) && pair_connect(p);
}

static struct ibv_ah_attr path_to(struct pair *p, int side)
{
    const struct conformance *run = p->c->run;
    int here = place(p, side), there = place(p, !side);
    struct ibv_ah_attr ah = {.dlid = run->port[there].lid, .port_num = (uint8_t)run->env->port[here]};
    /* RoCE has addresses only in the GRH; InfiniBand works without. */
    if (run->port[here].link_layer == IBV_LINK_LAYER_ETHERNET) {
        ah.is_global = 1;
        ah.grh.dgid = run->gid[there];
        ah.grh.sgid_index = (uint8_t)run->env->gid_index;
        ah.grh.hop_limit = 64;
    }
    return ah;
}

/* What the steps of a UD queue pair need (ibv_modify_qp(3)). */
static int datagram_mask(enum ibv_qp_state to)
{
    switch ((int)to) {
    case IBV_QPS_INIT:
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    case IBV_QPS_RTS:
        return IBV_QP_STATE | IBV_QP_SQ_PSN;
    }
    return IBV_QP_STATE;
}

int pair_attributes(struct pair *p, int side, enum ibv_qp_state to, struct ibv_qp_attr *attr)
{
    const struct conformance *run = p->c->run;
    const struct pair_options *o = &p->o;
    *attr = (struct ibv_qp_attr){.qp_state = to,
                                 .port_num = (uint8_t)run->env->port[place(p, side)],
                                 .qp_access_flags = (unsigned)o->qp_access,
                                 .ah_attr = path_to(p, side),
                                 .path_mtu = run->path_mtu,
                                 .dest_qp_num = p->s[!side].qp->qp_num,
                                 .rq_psn = p->s[!side].psn,
                                 .sq_psn = p->s[side].psn,
                                 .max_dest_rd_atomic = o->rd_atomic,
                                 .max_rd_atomic = o->rd_atomic,
                                 .min_rnr_timer = o->min_rnr,
                                 .timeout = o->timeout,
                                 .retry_cnt = o->retry,
                                 .rnr_retry = o->rnr_retry};
    if (o->datagrams) {
        attr->qkey = QKEY;
        return datagram_mask(to);
    }
    switch ((int)to) {
    case IBV_QPS_INIT:
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    case IBV_QPS_RTR:
        return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    case IBV_QPS_RTS:
        return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return IBV_QP_STATE;
}

int pair_step(struct pair *p, int side, enum ibv_qp_state to, int without)
{
    struct ibv_qp_attr attr;
    int mask = pair_attributes(p, side, to, &attr);
    return ibv_modify_qp(p->s[side].qp, &attr, mask & ~without);
}

int pair_move(struct pair *p, int side, enum ibv_qp_state to)
{
    struct ibv_qp_attr attr = {.qp_state = to};
    return ibv_modify_qp(p->s[side].qp, &attr, IBV_QP_STATE);
}

bool pair_connect(struct pair *p)
{
    static const struct {
        enum ibv_qp_state to;
        const char *what;
    } steps[] = {{IBV_QPS_INIT, "RESET to INIT"}, {IBV_QPS_RTR, "INIT to RTR"}, {IBV_QPS_RTS, "RTR to RTS"}};
    for (int i = 0; i < 3; i++)
        for (int side = 0; side < 2; side++)
            if (!check_equal(p->c, steps[i].what, pair_step(p, side, steps[i].to, 0), 0))
                return false;
    for (int side = 0; side < 2 && p->o.datagrams; side++) {
        struct ibv_ah_attr path = path_to(p, side);
        p->s[side].ah = check_ah(p->c, p->s[side].pd, &path);
        if (!p->s[side].ah)
            return false;
    }
    return true;
}

uint64_t pair_address(struct pair *p, int side, size_t offset)
{
    const struct conformance_env *env = p->c->run->env;
    const void *ptr = p->s[side].buf + offset;
    return env->remote ? env->remote(env->arg, ptr) : (uint64_t)(uintptr_t)ptr;
}

uint64_t pair_word(const struct pair *p, int side, size_t offset)
{
    uint64_t word;
    memcpy(&word, p->s[side].buf + offset, sizeof word);
    return word;
}

/* Spreads len over pieces SGEs of unequal size; returns how many there are. */
static int spread(struct ibv_sge *sge, uint64_t addr, size_t len, int pieces, uint32_t lkey)
{
    if (!pieces)
        pieces = len ? 1 : 0;
    for (int i = 0; i < pieces; i++) {
        size_t n = i == pieces - 1 ? len : len / 3;
        sge[i] = (struct ibv_sge){.addr = addr, .length = (uint32_t)n, .lkey = lkey};
        addr += n;
        len -= n;
    }
    return pieces;
}

static void address(struct ibv_send_wr *wr, const struct op *op, uint64_t remote, uint32_t rkey)
{
    switch ((int)op->opcode) {
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        wr->wr.atomic.remote_addr = remote;
        wr->wr.atomic.rkey = rkey;
        wr->wr.atomic.compare_add = op->a;
        wr->wr.atomic.swap = op->b;
        break;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
        wr->wr.rdma.remote_addr = remote;
        wr->wr.rdma.rkey = rkey;
        break;
    }
}

int pair_post(struct pair *p, int side, const struct op *op)
{
    struct side *s = &p->s[side], *peer = &p->s[!side];
    struct ibv_sge sge[16];
    const void *ptr = op->local_ptr ? op->local_ptr : s->buf + op->local;
    struct ibv_send_wr wr = {.wr_id = op->id, .opcode = op->opcode, .sg_list = sge}, *bad = NULL;
    wr.num_sge = spread(sge, (uint64_t)(uintptr_t)ptr, op->len, op->pieces, op->lkey ? op->lkey : s->mr->lkey);
    wr.send_flags = (unsigned)op->flags | (op->unsignaled ? 0u : (unsigned)IBV_SEND_SIGNALED);
    wr.imm_data = htonl(op->imm);
    uint64_t remote = op->remote_addr ? op->remote_addr : pair_address(p, !side, op->remote);
    address(&wr, op, remote, op->rkey ? op->rkey : peer->mr->rkey);
    if (s->ah && (op->opcode == IBV_WR_SEND || op->opcode == IBV_WR_SEND_WITH_IMM)) {
        wr.wr.ud.ah = s->ah;
        wr.wr.ud.remote_qpn = op->qpn ? op->qpn : peer->qp->qp_num;
        wr.wr.ud.remote_qkey = op->qkey ? op->qkey : QKEY;
    }
    return ibv_post_send(s->qp, &wr, &bad);
}

int pair_recv(struct pair *p, int side, uint64_t id, size_t offset, size_t len, int pieces)
{
    struct side *s = &p->s[side];
    struct ibv_sge sge[16];
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sge}, *bad = NULL;
    wr.num_sge = spread(sge, (uint64_t)(uintptr_t)(s->buf + offset), len, pieces, s->mr->lkey);
    return s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->qp, &wr, &bad);
}

bool pair_do(struct pair *p, int side, const struct op *op)
{
    return check_equal(p->c, "ibv_post_send", pair_post(p, side, op), 0) &&
           check_wc(p->c, p->s[side].scq, op->id, IBV_WC_SUCCESS);
}

void pair_want(struct pair *p, int to, size_t to_offset, int from, size_t from_offset, size_t len)
{
    memmove(p->s[to].want + to_offset, p->s[from].want + from_offset, len);
}

void pair_put(struct pair *p, int side, size_t offset, const void *data, size_t len)
{
    memcpy(p->s[side].buf + offset, data, len);
    memcpy(p->s[side].want + offset, data, len);
}

static long first_difference(const struct side *s)
{
    const uint8_t *seen = s->buf - GUARD, *want = s->want - GUARD;
    if (!memcmp(seen, want, BUFFER + 2 * GUARD))
        return -1;
    long i = 0;
    while (seen[i] == want[i])
        i++;
    return i;
}

bool pair_check(struct pair *p)
{
    /* An acknowledgement is not yet visibility, so the bytes get a moment. */
    uint64_t end = check_now(p->c) + SEC;
    bool good = true;
    for (int side = 0; side < 2; side++) {
        const struct side *s = &p->s[side];
        long at;
        while ((at = first_difference(s)) >= 0 && check_now(p->c) < end)
            check_wait(p->c, end);
        if (at >= 0)
            good = check_that(p->c, false, "memory of %c at offset %ld: seen %#x, expected %#x", "AB"[side], at - GUARD,
                              s->buf[at - GUARD], s->want[at - GUARD]);
    }
    return good;
}
