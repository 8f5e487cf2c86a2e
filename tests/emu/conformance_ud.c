/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_ud.c - checks of unreliable datagrams, which programs (UCX for one) begin their RC connections with: headers, Q_Keys, what
 * is dropped without a word, address handles.
 *
 * Part of the list. The tables of attributes are those of ibv_modify_qp(3) for UD. next: conformance_known.c.
 */
#include "conformance.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum { DROPPED_MS = 50 }; /* what is to come comes sooner */

static bool open_ud(struct check *c, struct pair *p, uint32_t srq_wr)
{
    struct pair_options o = pair_defaults();
    o.datagrams = true;
    o.srq_wr = srq_wr;
    o.inline_bytes = 64;
    return pair_start(c, p, &o);
}

/* A datagram's completion at a side: what it says of the message. Its header's bytes are nobody's business here. */
static bool arrived(struct pair *p, int side, uint64_t id, size_t offset, size_t len)
{
    struct check *c = p->c;
    struct side *s = &p->s[side];
    if (!check_wc(c, s->rcq, id, IBV_WC_SUCCESS))
        return false;
    check_equal(c, "byte_len", c->wc.byte_len, (long)len + GRH);
    check_equal(c, "src_qp", c->wc.src_qp, p->s[!side].qp->qp_num);
    check_equal(c, "qp_num", c->wc.qp_num, s->qp->qp_num);
    if (c->run->port[side].link_layer == IBV_LINK_LAYER_ETHERNET)
        check_that(c, c->wc.wc_flags & IBV_WC_GRH, "wc_flags: seen %#x, expected IBV_WC_GRH", c->wc.wc_flags);
    memcpy(s->want + offset, s->buf + offset, GRH);
    return true;
}

static void ud_send(struct check *c, long len)
{
    struct pair p;
    if (!open_ud(c, &p, 0))
        return;
    len = len < 0 ? (long)c->run->mtu : len;
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 7, 8192, 5000, 3), 0);
    pair_want(&p, B, 8192 + GRH, A, 100, (size_t)len);
    pair_do(&p, A,
            &(struct op){.id = 1, .opcode = IBV_WR_SEND, .local = 100, .len = (size_t)len, .pieces = len ? 2 : 0});
    if (arrived(&p, B, 7, 8192, (size_t)len))
        check_that(c, !(c->wc.wc_flags & IBV_WC_WITH_IMM), "wc_flags: seen %#x, expected no immediate", c->wc.wc_flags);
    pair_check(&p);
}

static void ud_immediate(struct check *c, long flags)
{
    struct pair p;
    struct op op = {.id = 1, .opcode = IBV_WR_SEND_WITH_IMM, .flags = (int)flags, .len = 60, .imm = 0xabcd1234};
    if (!open_ud(c, &p, 0))
        return;
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 7, 8192, 100, 1), 0);
    pair_want(&p, B, 8192 + GRH, A, 0, 60);
    pair_do(&p, A, &op);
    if (arrived(&p, B, 7, 8192, 60)) {
        check_that(c, c->wc.wc_flags & IBV_WC_WITH_IMM, "wc_flags: seen %#x, expected an immediate", c->wc.wc_flags);
        check_equal(c, "imm_data", (long)ntohl(c->wc.imm_data), 0xabcd1234l);
    }
    pair_check(&p);
}

/* What nobody wants vanishes: the sender's request ends well all the same, and what comes behind it arrives. */
static void dropped(struct check *c, struct op op)
{
    struct pair p;
    if (!open_ud(c, &p, 0))
        return;
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 7, 8192, 5000, 1), 0);
    op.id = 1, op.opcode = IBV_WR_SEND;
    pair_do(&p, A, &op);
    check_quiet(c, p.s[B].rcq, DROPPED_MS * MSEC);
    pair_want(&p, B, 8192 + GRH, A, 0, 64);
    pair_do(&p, A, &(struct op){.id = 2, .opcode = IBV_WR_SEND, .len = 64});
    arrived(&p, B, 7, 8192, 64);
    check_state(c, p.s[A].qp, IBV_QPS_RTS);
    pair_check(&p);
}

static void ud_other_qkey(struct check *c, long arg)
{
    (void)arg;
    dropped(c, (struct op){.len = 100, .qkey = QKEY + 1});
}

static void ud_other_qpn(struct check *c, long arg)
{
    (void)arg;
    dropped(c, (struct op){.len = 100, .qpn = 0xfffffe});
}

/* IBA C10-93.1.1: longer than the port's MTU, nothing is sent, and that is no error. */
static void ud_too_long(struct check *c, long arg)
{
    (void)arg;
    dropped(c, (struct op){.len = c->run->mtu + 1});
}

static void ud_no_receive(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!open_ud(c, &p, 0))
        return;
    for (uint64_t i = 0; i < 10; i++)
        pair_do(&p, A, &(struct op){.id = i, .opcode = IBV_WR_SEND, .len = 64});
    check_sleep(c, DROPPED_MS * MSEC);
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 7, 8192, 200, 1), 0);
    check_quiet(c, p.s[B].rcq, DROPPED_MS * MSEC);
    pair_want(&p, B, 8192 + GRH, A, 500, 64);
    pair_do(&p, A, &(struct op){.id = 11, .opcode = IBV_WR_SEND, .local = 500, .len = 64});
    arrived(&p, B, 7, 8192, 64);
    pair_check(&p);
}

/* IBA 10, Q_Keys: one with the highest bit set means the queue pair's own. */
static void ud_own_qkey(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!open_ud(c, &p, 0))
        return;
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 7, 8192, 200, 1), 0);
    pair_want(&p, B, 8192 + GRH, A, 0, 64);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 64, .qkey = 0x80000001});
    arrived(&p, B, 7, 8192, 64);
    pair_check(&p);
}

/* Both ways at once, by handles made from what arrived: the header says who sent it. */
static void ud_answer(struct check *c, long rounds)
{
    struct pair p;
    if (!open_ud(c, &p, 0))
        return;
    for (uint64_t i = 0; i < (uint64_t)rounds; i++) {
        struct side *b = &p.s[B];
        check_equal(c, "ibv_post_recv", pair_recv(&p, B, i, 8192, 200, 1), 0);
        check_equal(c, "ibv_post_recv", pair_recv(&p, A, i, 8192, 200, 1), 0);
        pair_want(&p, B, 8192 + GRH, A, 0, 64);
        pair_do(&p, A, &(struct op){.id = i, .opcode = IBV_WR_SEND, .len = 64});
        if (!arrived(&p, B, i, 8192, 64) || !check_equal(c, "ibv_destroy_ah", check_release(c, b->ah), 0))
            return;
        b->ah = check_ah_from(c, b->pd, B, &c->wc, b->buf + 8192);
        if (!b->ah)
            return;
        pair_want(&p, A, 8192 + GRH, B, 20000, 64);
        pair_do(&p, B, &(struct op){.id = i, .opcode = IBV_WR_SEND, .local = 20000, .len = 64});
        if (!arrived(&p, A, i, 8192, 64))
            return;
    }
    pair_check(&p);
}

static void ud_srq(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!open_ud(c, &p, 16))
        return;
    for (uint64_t i = 0; i < 5; i++)
        check_equal(c, "ibv_post_srq_recv", pair_recv(&p, B, i, 8192 + 1000 * i, 200, 1), 0);
    for (uint64_t i = 0; i < 5; i++) {
        pair_want(&p, B, 8192 + 1000 * i + GRH, A, 100 * i, 64);
        pair_do(&p, A, &(struct op){.id = i, .opcode = IBV_WR_SEND, .local = 100 * i, .len = 64});
        if (!arrived(&p, B, i, 8192 + 1000 * i, 64))
            return;
    }
    pair_check(&p);
}

/* Every step wants what the manual says, and takes it. */
static void ud_missing_attribute(struct check *c, long to)
{
    struct pair p;
    struct ibv_qp_attr attr;
    struct pair_options o = pair_defaults();
    o.datagrams = true;
    if (!pair_open(c, &p, &o))
        return;
    for (enum ibv_qp_state s = IBV_QPS_INIT; s < (enum ibv_qp_state)to; s++)
        check_equal(c, "ibv_modify_qp", pair_step(&p, A, s, 0), 0);
    int mask = pair_attributes(&p, A, (enum ibv_qp_state)to, &attr) & ~IBV_QP_STATE;
    for (int bit = 1; bit <= mask; bit <<= 1)
        if (mask & bit)
            check_equal(c, "without an attribute", pair_step(&p, A, (enum ibv_qp_state)to, bit), EINVAL);
    check_equal(c, "with all", pair_step(&p, A, (enum ibv_qp_state)to, 0), 0);
}

/* Only SENDs go by datagram. */
static void ud_refused(struct check *c, long opcode)
{
    struct pair p;
    if (!open_ud(c, &p, 0))
        return;
    int err = pair_post(&p, A, &(struct op){.id = 1, .opcode = (enum ibv_wr_opcode)opcode, .len = 8});
    check_that(c, err != 0, "ibv_post_send: seen success, expected an error");
}

/* IBA 10.3.1: a request's own error stops the send queue (SQE) and not the receiving; to RTS, and it sends again. */
static void ud_send_queue_error(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    if (!open_ud(c, &p, 0))
        return;
    check_equal(c, "ibv_post_recv", pair_recv(&p, A, 7, 8192, 200, 1), 0);
    for (uint64_t i = 1; i <= 2; i++)
        check_equal(
            c, "ibv_post_send",
            pair_post(&p, A,
                      &(struct op){.id = i, .opcode = IBV_WR_SEND, .len = 64, .lkey = p.s[A].mr->lkey ^ 0x555500}),
            0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_LOC_PROT_ERR);
    check_wc(c, p.s[A].scq, 2, IBV_WC_WR_FLUSH_ERR);
    if (!check_state(c, p.s[A].qp, IBV_QPS_SQE))
        return;
    pair_want(&p, A, 8192 + GRH, B, 0, 64);
    pair_do(&p, B, &(struct op){.id = 3, .opcode = IBV_WR_SEND, .len = 64});
    arrived(&p, A, 7, 8192, 64);
    check_equal(c, "SQE to RTS", ibv_modify_qp(p.s[A].qp, &attr, IBV_QP_STATE), 0);
    pair_do(&p, A, &(struct op){.id = 4, .opcode = IBV_WR_SEND, .len = 64});
    pair_check(&p);
}

static void ud_flushed(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!open_ud(c, &p, 0))
        return;
    for (uint64_t i = 0; i < 3; i++)
        check_equal(c, "ibv_post_recv", pair_recv(&p, B, i, 8192, 200, 1), 0);
    check_equal(c, "to ERR", pair_move(&p, B, IBV_QPS_ERR), 0);
    for (uint64_t i = 0; i < 3; i++)
        check_wc(c, p.s[B].rcq, i, IBV_WC_WR_FLUSH_ERR);
    check_equal(c, "ibv_post_send", pair_post(&p, B, &(struct op){.id = 4, .opcode = IBV_WR_SEND, .len = 64}), 0);
    check_wc(c, p.s[B].scq, 4, IBV_WC_WR_FLUSH_ERR);
}

const struct conformance_check conformance_ud_checks[] = {
    {"ud_send_nothing", ud_send, 0},
    {"ud_send_1", ud_send, 1},
    {"ud_send_200", ud_send, 200},
    {"ud_send_mtu", ud_send, -1},
    {"ud_immediate", ud_immediate, 0},
    {"ud_immediate_inline", ud_immediate, IBV_SEND_INLINE},
    {"ud_other_qkey", ud_other_qkey, 0},
    {"ud_own_qkey", ud_own_qkey, 0},
    {"ud_other_qpn", ud_other_qpn, 0},
    {"ud_too_long", ud_too_long, 0},
    {"ud_no_receive", ud_no_receive, 0},
    {"ud_answer", ud_answer, 5},
    {"ud_srq", ud_srq, 0},
    {"ud_init_attributes", ud_missing_attribute, IBV_QPS_INIT},
    {"ud_rtr_attributes", ud_missing_attribute, IBV_QPS_RTR},
    {"ud_rts_attributes", ud_missing_attribute, IBV_QPS_RTS},
    {"ud_write_refused", ud_refused, IBV_WR_RDMA_WRITE},
    {"ud_read_refused", ud_refused, IBV_WR_RDMA_READ},
    {"ud_atomic_refused", ud_refused, IBV_WR_ATOMIC_FETCH_AND_ADD},
    {"ud_send_queue_error", ud_send_queue_error, 0},
    {"ud_flushed", ud_flushed, 0},
    {0},
};
