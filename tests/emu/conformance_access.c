/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_access.c - checks that keys, bounds and rights are enforced, and what an offence costs.
 *
 * An offence at the responder: NAK Remote Access Error (or Invalid Request where the QP itself forbids the operation),
 * no byte written, the requester's QP in ERR, what is behind it flushed. An offence with one's own memory: Local
 * Protection Error. next: conformance_retry.c.
 */
#include "conformance.h"

#include <string.h>

enum defect {
    KEY,      /* no such rkey */
    OTHER_PD, /* an rkey of another protection domain */
    BEFORE,   /* one byte before the region */
    BEHIND,   /* one byte behind it */
    WRAPS,    /* address + length passes 2^64 */
    RIGHT,    /* a region without that right */
    GONE,     /* a region that was deregistered */
    QP_RIGHT  /* a QP without that right */
};

enum { KIND = 16 }; /* arg: opcode * KIND + defect */

/* Rights that a region or a QP needs for the request; the offender lacks just this one. */
static int right_of(enum ibv_wr_opcode opcode)
{
    if (opcode == IBV_WR_RDMA_WRITE)
        return IBV_ACCESS_REMOTE_WRITE;
    return opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_ATOMIC;
}

/* Makes the request offend; false: the region for it could not be made. */
static bool offend(struct check *c, struct pair *p, struct op *op, enum defect defect)
{
    struct side *b = &p->s[B];
    struct ibv_mr *mr = NULL;
    struct ibv_pd *other = NULL;
    switch (defect) {
    case KEY:
        op->rkey = b->mr->rkey ^ 0x5a5a5a00;
        return true;
    case OTHER_PD:
        other = check_pd(c, B);
        mr = other ? check_mr(c, other, b->buf, BUFFER, p->o.mr_access) : NULL;
        break;
    case BEFORE:
        op->remote_addr = pair_address(p, B, 0) - (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 1);
        return true;
    case BEHIND:
        op->remote = BUFFER - op->len + (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 1);
        return true;
    case WRAPS:
        op->remote_addr = UINT64_MAX - 7;
        return true;
    case RIGHT:
        mr = check_mr(c, b->pd, b->buf, BUFFER, p->o.mr_access & ~right_of(op->opcode));
        break;
    case GONE:
        mr = check_mr(c, b->pd, b->buf, BUFFER, p->o.mr_access);
        break;
    case QP_RIGHT:
        return true;
    }
    if (!mr)
        return false;
    op->rkey = mr->rkey;
    return defect != GONE || check_equal(c, "ibv_dereg_mr", check_release(c, mr), 0);
}

static void access_refused(struct check *c, long arg)
{
    enum ibv_wr_opcode opcode = (enum ibv_wr_opcode)(arg / KIND);
    enum defect defect = (enum defect)(arg % KIND);
    struct pair_options o = pair_defaults();
    struct pair p;
    if (defect == QP_RIGHT)
        o.qp_access &= ~right_of(opcode);
    if (!pair_start(c, &p, &o))
        return;
    struct op bad = {.id = 1, .opcode = opcode, .len = 8, .a = 1};
    if (opcode != IBV_WR_ATOMIC_FETCH_AND_ADD)
        bad.len = 2 * c->run->mtu + 9;
    struct op good = {.id = 2, .opcode = IBV_WR_RDMA_WRITE, .local = 100, .remote = 131072, .len = 64};
    if (!offend(c, &p, &bad, defect))
        return;
    check_equal(c, "ibv_post_send", pair_post(&p, A, &bad), 0);
    check_equal(c, "ibv_post_send", pair_post(&p, A, &good), 0);
    /* The QP's own flags: IBA says Invalid Request, some devices answer Remote Access Error. */
    check_wc2(c, p.s[A].scq, 1, IBV_WC_REM_ACCESS_ERR,
              defect == QP_RIGHT ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
    check_wc(c, p.s[A].scq, 2, IBV_WC_WR_FLUSH_ERR);
    check_state(c, p.s[A].qp, IBV_QPS_ERR);
    /* A READ's own buffer is undefined after an error. */
    if (opcode != IBV_WR_RDMA_WRITE)
        pair_put(&p, A, 0, p.s[A].want, bad.len);
    pair_check(&p);
}

/* The last bytes of a region belong to it. */
static void access_edges(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct ibv_mr *mr = check_mr(c, p.s[B].pd, p.s[B].buf + 1001, 333, p.o.mr_access);
    if (!mr)
        return;
    pair_want(&p, B, 1001, A, 0, 333);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .remote = 1001, .len = 333, .rkey = mr->rkey});
    pair_want(&p, A, 4000, B, 1333, 1);
    pair_do(
        &p, A,
        &(struct op){.id = 2, .opcode = IBV_WR_RDMA_READ, .local = 4000, .remote = 1333, .len = 1, .rkey = mr->rkey});
    pair_check(&p);
}

/* IBA, zero-length RDMA: neither key nor address of such a request is checked. */
static void zero_length_unchecked(struct check *c, long opcode)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct op op = {
        .id = 1, .opcode = (enum ibv_wr_opcode)opcode, .rkey = p.s[B].mr->rkey ^ 0x5a5a5a00, .remote_addr = 12345};
    pair_do(&p, A, &op);
    pair_check(&p);
}

/* What the request behind four READs does wrong. */
enum behind { BEHIND_KEY, BEHIND_RNR, BEHIND_LOCAL };

/* Requests with memory of one's own that may not be used. */
enum local_defect { L_KEY, L_OTHER_PD, L_BEHIND, L_READ_ONLY };

static void local_refused(struct check *c, long arg)
{
    enum ibv_wr_opcode opcode = (enum ibv_wr_opcode)(arg / KIND);
    enum local_defect defect = (enum local_defect)(arg % KIND);
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct op op = {.id = 1, .opcode = opcode, .len = 100};
    struct ibv_pd *other = defect == L_OTHER_PD ? check_pd(c, A) : p.s[A].pd;
    if (defect == L_KEY) {
        op.lkey = p.s[A].mr->lkey ^ 0x5a5a5a00;
    } else if (defect == L_BEHIND) {
        op.local = BUFFER - 99;
    } else {
        int access = defect == L_READ_ONLY ? IBV_ACCESS_REMOTE_READ : p.o.mr_access;
        struct ibv_mr *mr = other ? check_mr(c, other, p.s[A].buf, BUFFER, access) : NULL;
        if (!mr)
            return;
        op.lkey = mr->lkey;
    }
    check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_LOC_PROT_ERR);
    check_state(c, p.s[A].qp, IBV_QPS_ERR);
    pair_check(&p);
}

/* A receive with a bad key: Local Protection Error there, Remote Operational Error at the sender. */
static void recv_bad_key(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct ibv_sge sge = {(uint64_t)(uintptr_t)p.s[B].buf, 4096, p.s[B].mr->lkey ^ 0x5a5a5a00};
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;
    check_equal(c, "ibv_post_recv", ibv_post_recv(p.s[B].qp, &wr, &bad), 0);
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 4096}), 0);
    check_wc(c, p.s[B].rcq, 2, IBV_WC_LOC_PROT_ERR);
    check_wc(c, p.s[A].scq, 1, IBV_WC_REM_OP_ERR);
    pair_check(&p);
}

/* What was asked for before the offence is answered before it (IBA 9.7.5.1: responses in order). */
static void refused_behind_reads(struct check *c, long defect)
{
    struct pair_options o = pair_defaults();
    struct pair p;
    o.rnr_retry = 0;
    if (!pair_start(c, &p, &o))
        return;
    for (uint64_t i = 1; i <= 4; i++) {
        struct op read = {.id = i, .opcode = IBV_WR_RDMA_READ, .local = i * 40000, .remote = i * 1000, .len = 32768};
        pair_want(&p, A, read.local, B, read.remote, read.len);
        check_equal(c, "ibv_post_send", pair_post(&p, A, &read), 0);
    }
    struct op bad = {.id = 5, .opcode = IBV_WR_RDMA_WRITE, .len = 64};
    enum ibv_wc_status status = IBV_WC_REM_ACCESS_ERR;
    if (defect == BEHIND_KEY) {
        bad.rkey = p.s[B].mr->rkey ^ 0x5a5a5a00;
    } else if (defect == BEHIND_RNR) {
        bad.opcode = IBV_WR_SEND;
        status = IBV_WC_RNR_RETRY_EXC_ERR;
    } else {
        bad.lkey = p.s[A].mr->lkey ^ 0x5a5a5a00;
        status = IBV_WC_LOC_PROT_ERR;
    }
    check_equal(c, "ibv_post_send", pair_post(&p, A, &bad), 0);
    for (uint64_t i = 1; i <= 4; i++)
        check_wc(c, p.s[A].scq, i, IBV_WC_SUCCESS);
    check_wc(c, p.s[A].scq, 5, status);
    pair_check(&p);
}

/*
 * A region that its owner deregisters while requests use it: those that end well carried the right bytes, one ends
 * with a Local Protection Error, those behind it flush; or all were done before.
 */
static void local_deregistered(struct check *c, long opcode)
{
    enum { REQUESTS = 16 };
    enum ibv_wc_status expected = IBV_WC_SUCCESS;
    int good = 0;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct ibv_mr *mr = check_mr(c, p.s[A].pd, p.s[A].buf, BUFFER, p.o.mr_access);
    if (!mr)
        return;
    struct op op = {.opcode = (enum ibv_wr_opcode)opcode, .len = BUFFER, .lkey = mr->lkey};
    for (op.id = 0; op.id < REQUESTS; op.id++)
        check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0);
    check_equal(c, "ibv_dereg_mr", check_release(c, mr), 0);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        enum ibv_wc_status other = expected == IBV_WC_SUCCESS ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR;
        if (!check_wc2(c, p.s[A].scq, i, expected, other))
            return;
        good += c->wc.status == IBV_WC_SUCCESS;
        expected = c->wc.status == IBV_WC_SUCCESS ? expected : IBV_WC_WR_FLUSH_ERR;
    }
    /* All WRITEs carry the same bytes, so a part of another changes nothing; after an error a READ's are undefined. */
    if (opcode == IBV_WR_RDMA_WRITE && good)
        pair_want(&p, B, 0, A, 0, BUFFER);
    else if (good == REQUESTS)
        pair_want(&p, A, 0, B, 0, BUFFER);
    else
        return;
    pair_check(&p);
}

/* The responder of an offence is in ERR: its own requests flush and its receives too. */
static void responder_flushes(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 5, 0, 64, 1), 0);
    struct op bad = {.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 8, .rkey = p.s[B].mr->rkey ^ 0x5a5a5a00};
    check_equal(c, "ibv_post_send", pair_post(&p, A, &bad), 0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_REM_ACCESS_ERR);
    check_wc(c, p.s[B].rcq, 5, IBV_WC_WR_FLUSH_ERR);
    check_state(c, p.s[B].qp, IBV_QPS_ERR);
}

enum { W = IBV_WR_RDMA_WRITE * KIND, R = IBV_WR_RDMA_READ * KIND, F = IBV_WR_ATOMIC_FETCH_AND_ADD * KIND };

const struct conformance_check conformance_access_checks[] = {
    {"access_edges", access_edges, 0},
    {"access_write_bad_key", access_refused, W + KEY},
    {"access_write_other_pd", access_refused, W + OTHER_PD},
    {"access_write_one_before", access_refused, W + BEFORE},
    {"access_write_one_behind", access_refused, W + BEHIND},
    {"access_write_wraps", access_refused, W + WRAPS},
    {"access_write_no_right", access_refused, W + RIGHT},
    {"access_write_deregistered", access_refused, W + GONE},
    {"access_write_qp_no_right", access_refused, W + QP_RIGHT},
    {"access_read_bad_key", access_refused, R + KEY},
    {"access_read_other_pd", access_refused, R + OTHER_PD},
    {"access_read_one_before", access_refused, R + BEFORE},
    {"access_read_one_behind", access_refused, R + BEHIND},
    {"access_read_no_right", access_refused, R + RIGHT},
    {"access_read_deregistered", access_refused, R + GONE},
    {"access_read_qp_no_right", access_refused, R + QP_RIGHT},
    {"access_atomic_bad_key", access_refused, F + KEY},
    {"access_atomic_one_before", access_refused, F + BEFORE},
    {"access_atomic_one_behind", access_refused, F + BEHIND},
    {"access_atomic_no_right", access_refused, F + RIGHT},
    {"access_atomic_qp_no_right", access_refused, F + QP_RIGHT},
    {"access_zero_write_unchecked", zero_length_unchecked, IBV_WR_RDMA_WRITE},
    {"access_zero_read_unchecked", zero_length_unchecked, IBV_WR_RDMA_READ},
    {"local_write_bad_key", local_refused, W + L_KEY},
    {"local_write_other_pd", local_refused, W + L_OTHER_PD},
    {"local_write_one_behind", local_refused, W + L_BEHIND},
    {"local_read_bad_key", local_refused, R + L_KEY},
    {"local_read_one_behind", local_refused, R + L_BEHIND},
    {"local_read_into_read_only", local_refused, R + L_READ_ONLY},
    {"local_write_deregistered", local_deregistered, IBV_WR_RDMA_WRITE},
    {"local_read_deregistered", local_deregistered, IBV_WR_RDMA_READ},
    {"recv_bad_key", recv_bad_key, 0},
    {"responder_flushes", responder_flushes, 0},
    {"refused_behind_reads", refused_behind_reads, BEHIND_KEY},
    {"rnr_behind_reads", refused_behind_reads, BEHIND_RNR},
    {"local_error_behind_reads", refused_behind_reads, BEHIND_LOCAL},
    {0},
};
