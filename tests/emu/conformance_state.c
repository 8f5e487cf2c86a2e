/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_state.c - checks of the RC state machine: legal steps, missing attributes, illegal jumps, each state.
 *
 * Part of the list. The tables of required attributes are those of ibv_modify_qp(3) for RC. next: conformance_data.c.
 */
#include "conformance.h"

#include <errno.h>
#include <string.h>

static const enum ibv_qp_state ladder[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

/* Brings one end up to a state. */
static bool climb(struct pair *p, int side, enum ibv_qp_state to)
{
    for (int i = 1; i < 4 && ladder[i] <= to; i++)
        if (!check_equal(p->c, "ibv_modify_qp", pair_step(p, side, ladder[i], 0), 0))
            return false;
    return true;
}

static void state_each_step(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_open(c, &p, NULL))
        return;
    check_state(c, p.s[A].qp, IBV_QPS_RESET);
    for (int i = 1; i < 4; i++) {
        check_equal(c, "ibv_modify_qp", pair_step(&p, A, ladder[i], 0), 0);
        check_state(c, p.s[A].qp, ladder[i]);
    }
}

/* Each required attribute left out in turn: EINVAL, and the state stays. */
static void state_missing_attribute(struct check *c, long to)
{
    struct pair p;
    struct ibv_qp_attr attr;
    if (!pair_open(c, &p, NULL) || !climb(&p, A, (enum ibv_qp_state)(to - 1)))
        return;
    int mask = pair_attributes(&p, A, (enum ibv_qp_state)to, &attr) & ~IBV_QP_STATE;
    for (int bit = 1; bit <= mask; bit <<= 1) {
        if (!(mask & bit))
            continue;
        int err = pair_step(&p, A, (enum ibv_qp_state)to, bit);
        check_that(c, err == EINVAL, "without attribute %#x: seen %d, expected EINVAL", bit, err);
        if (!check_state(c, p.s[A].qp, (enum ibv_qp_state)(to - 1)))
            return;
    }
    check_equal(c, "with all attributes", pair_step(&p, A, (enum ibv_qp_state)to, 0), 0);
}

enum { JUMP = 8 }; /* from * JUMP + to */

static void state_illegal_jump(struct check *c, long jump)
{
    enum ibv_qp_state from = (enum ibv_qp_state)(jump / JUMP), to = (enum ibv_qp_state)(jump % JUMP);
    struct pair p;
    if (!pair_open(c, &p, NULL) || !climb(&p, A, from))
        return;
    check_equal(c, "ibv_modify_qp over a state", pair_step(&p, A, to, 0), EINVAL);
    check_state(c, p.s[A].qp, from);
}

static void state_mtu_above_port(struct check *c, long arg)
{
    (void)arg;
    enum ibv_mtu active = c->run->port[A].active_mtu;
    struct pair p;
    struct ibv_qp_attr attr;
    if (active == IBV_MTU_4096) {
        check_skip(c, "the port's MTU is the largest there is");
        return;
    }
    if (!pair_open(c, &p, NULL) || !climb(&p, A, IBV_QPS_INIT))
        return;
    int mask = pair_attributes(&p, A, IBV_QPS_RTR, &attr);
    attr.path_mtu = (enum ibv_mtu)(active + 1);
    check_equal(c, "path MTU above the port's", ibv_modify_qp(p.s[A].qp, &attr, mask), EINVAL);
}

static void state_mtu_unknown(struct check *c, long mtu)
{
    struct pair p;
    struct ibv_qp_attr attr;
    if (!pair_open(c, &p, NULL) || !climb(&p, A, IBV_QPS_INIT))
        return;
    int mask = pair_attributes(&p, A, IBV_QPS_RTR, &attr);
    attr.path_mtu = (enum ibv_mtu)mtu;
    check_equal(c, "a path MTU that there is not", ibv_modify_qp(p.s[A].qp, &attr, mask), EINVAL);
}

static void state_bad_port(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_qp_attr attr;
    if (!pair_open(c, &p, NULL))
        return;
    int mask = pair_attributes(&p, A, IBV_QPS_INIT, &attr);
    attr.port_num = 0;
    check_equal(c, "INIT with port 0", ibv_modify_qp(p.s[A].qp, &attr, mask), EINVAL);
    attr.port_num = (uint8_t)(c->run->device[A].phys_port_cnt + 1);
    check_equal(c, "INIT with a port past the last", ibv_modify_qp(p.s[A].qp, &attr, mask), EINVAL);
    check_state(c, p.s[A].qp, IBV_QPS_RESET);
}

/* ibv_modify_qp(3) and IBA, Modify QP: no more READ and atomic resources than the device reports. */
static void state_rd_atomic_above_max(struct check *c, long to)
{
    const struct ibv_device_attr *d = &c->run->device[A];
    struct pair p;
    struct ibv_qp_attr attr;
    if (d->max_qp_rd_atom >= 255 || d->max_qp_init_rd_atom >= 255) {
        check_skip(c, "the device sets no limit that the attribute could pass");
        return;
    }
    if (!pair_open(c, &p, NULL) || !climb(&p, A, (enum ibv_qp_state)(to - 1)))
        return;
    int mask = pair_attributes(&p, A, (enum ibv_qp_state)to, &attr);
    attr.max_dest_rd_atomic = (uint8_t)(d->max_qp_rd_atom + 1);
    attr.max_rd_atomic = (uint8_t)(d->max_qp_init_rd_atom + 1);
    check_equal(c, "one more than the device reports", ibv_modify_qp(p.s[A].qp, &attr, mask), EINVAL);
}

static void state_to_err_or_reset(struct check *c, long to)
{
    for (int i = 1; i < 4; i++) {
        struct pair p;
        if (!pair_open(c, &p, NULL) || !climb(&p, A, ladder[i]))
            return;
        check_equal(c, "ibv_modify_qp", pair_move(&p, A, (enum ibv_qp_state)to), 0);
        check_state(c, p.s[A].qp, (enum ibv_qp_state)to);
        check_equal(c, "to RESET after that", pair_move(&p, A, IBV_QPS_RESET), 0);
        check_state(c, p.s[A].qp, IBV_QPS_RESET);
    }
}

static void state_reuse_after_reset(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    for (int round = 0; round < 3; round++) {
        size_t at = (size_t)round * 20000;
        pair_want(&p, B, at, A, at, 15000);
        if (!pair_do(&p, A,
                     &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .local = at, .remote = at, .len = 15000}) ||
            !pair_check(&p))
            return;
        for (int side = 0; side < 2; side++) {
            /* Every other round through ERR, as a user who lost a port would. */
            if (round)
                check_equal(c, "to ERR", pair_move(&p, side, IBV_QPS_ERR), 0);
            check_equal(c, "to RESET", pair_move(&p, side, IBV_QPS_RESET), 0);
            p.s[side].psn = (uint32_t)check_random(c) & 0xffffff;
        }
        if (!pair_connect(&p))
            return;
    }
}

/* RESET forgets the work queues: nothing posted before may complete or run afterwards. */
static void state_reset_clears_queues(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    for (uint64_t i = 0; i < 4; i++)
        check_equal(c, "ibv_post_recv", pair_recv(&p, B, 100 + i, 4096 * i, 4096, 1), 0);
    for (int side = 0; side < 2; side++)
        check_equal(c, "to RESET", pair_move(&p, side, IBV_QPS_RESET), 0);
    if (!pair_connect(&p))
        return;
    check_quiet(c, p.s[B].rcq, 20 * MSEC);
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 7, 65536, 4096, 1), 0);
    pair_want(&p, B, 65536, A, 0, 4096);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 4096});
    check_wc(c, p.s[B].rcq, 7, IBV_WC_SUCCESS);
    pair_check(&p);
}

static void state_query_gives_back(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_qp_attr a = {0};
    struct ibv_qp_init_attr init = {0};
    if (!pair_start(c, &p, NULL))
        return;
    int mask = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU |
               IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_DEST_QPN |
               IBV_QP_CAP;
    if (!check_equal(c, "ibv_query_qp", ibv_query_qp(p.s[A].qp, &a, mask, &init), 0))
        return;
    check_equal(c, "qp_state", a.qp_state, IBV_QPS_RTS);
    check_equal(c, "path_mtu", a.path_mtu, c->run->path_mtu);
    check_equal(c, "sq_psn", a.sq_psn, p.s[A].psn);
    check_equal(c, "rq_psn", a.rq_psn, p.s[B].psn);
    check_equal(c, "dest_qp_num", a.dest_qp_num, p.s[B].qp->qp_num);
    check_equal(c, "qp_access_flags", (long)a.qp_access_flags, p.o.qp_access);
    check_equal(c, "port_num", a.port_num, c->run->env->port[A]);
    check_equal(c, "timeout", a.timeout, p.o.timeout);
    check_equal(c, "retry_cnt", a.retry_cnt, p.o.retry);
    check_equal(c, "rnr_retry", a.rnr_retry, p.o.rnr_retry);
    check_equal(c, "min_rnr_timer", a.min_rnr_timer, p.o.min_rnr);
    check_that(c, a.max_rd_atomic >= p.o.rd_atomic, "max_rd_atomic: seen %d, expected at least %d", a.max_rd_atomic,
               p.o.rd_atomic);
    check_that(c, a.max_dest_rd_atomic >= p.o.rd_atomic, "max_dest_rd_atomic: seen %d, expected at least %d",
               a.max_dest_rd_atomic, p.o.rd_atomic);
    check_that(c, a.cap.max_send_wr >= p.o.send_wr, "cap.max_send_wr: seen %u", a.cap.max_send_wr);
    check_that(c, init.qp_type == IBV_QPT_RC && init.send_cq == p.s[A].scq && init.recv_cq == p.s[A].rcq,
               "init attributes: another type or CQ than at creation");
}

/* RTS to RTS may change the access flags: what was allowed is refused afterwards. */
static void state_rts_changes_access(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    check_equal(c, "RTS to RTS", ibv_modify_qp(p.s[B].qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
    struct op op = {.id = 1, .opcode = IBV_WR_RDMA_READ, .local = 8192, .len = 4096};
    pair_want(&p, A, 8192, B, 0, 4096);
    pair_do(&p, A, &op);
    op = (struct op){.id = 2, .opcode = IBV_WR_RDMA_WRITE, .len = 4096};
    check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0);
    check_wc2(c, p.s[A].scq, 2, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR);
    pair_check(&p);
}

/* ibv_modify_qp(3), IBA 10.3.1: send requests are taken from RTS on; before that it is an immediate error. */
static void state_post_send_early(struct check *c, long in)
{
    struct pair p;
    if (!pair_open(c, &p, NULL) || !climb(&p, A, (enum ibv_qp_state)in))
        return;
    struct ibv_sge sge = {(uint64_t)(uintptr_t)p.s[A].buf, 8, p.s[A].mr->lkey};
    struct ibv_send_wr *bad = NULL, wr = {.wr_id = 1,
                                          .sg_list = &sge,
                                          .num_sge = 1,
                                          .opcode = IBV_WR_RDMA_WRITE,
                                          .send_flags = IBV_SEND_SIGNALED,
                                          .wr.rdma = {pair_address(&p, B, 0), p.s[B].mr->rkey}};
    check_that(c, ibv_post_send(p.s[A].qp, &wr, &bad) != 0, "ibv_post_send: seen success, expected an error");
    check_that(c, bad == &wr, "bad_wr: seen %p, expected the request", (void *)bad);
    check_quiet(c, p.s[A].scq, 10 * MSEC);
    pair_check(&p);
}

static void state_post_recv_in_reset(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (pair_open(c, &p, NULL))
        check_that(c, pair_recv(&p, A, 1, 0, 64, 1) != 0, "ibv_post_recv in RESET: seen success, expected an error");
}

static void state_post_recv_in_init(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_open(c, &p, NULL) || !climb(&p, B, IBV_QPS_INIT))
        return;
    check_equal(c, "ibv_post_recv in INIT", pair_recv(&p, B, 5, 0, 4096, 1), 0);
    if (!climb(&p, A, IBV_QPS_RTS) || pair_step(&p, B, IBV_QPS_RTR, 0) || pair_step(&p, B, IBV_QPS_RTS, 0)) {
        check_that(c, false, "the ends cannot be connected after that");
        return;
    }
    pair_want(&p, B, 0, A, 4096, 1000);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .local = 4096, .len = 1000});
    check_wc(c, p.s[B].rcq, 5, IBV_WC_SUCCESS);
    pair_check(&p);
}

/* In RTR the responder works already. */
static void state_rtr_responds(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_open(c, &p, NULL) || !climb(&p, B, IBV_QPS_RTR) || !climb(&p, A, IBV_QPS_RTS))
        return;
    pair_want(&p, B, 0, A, 4096, 10000);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .local = 4096, .len = 10000});
    pair_check(&p);
}

const struct conformance_check conformance_state_checks[] = {
    {"state_each_step", state_each_step, 0},
    {"state_init_missing_attribute", state_missing_attribute, IBV_QPS_INIT},
    {"state_rtr_missing_attribute", state_missing_attribute, IBV_QPS_RTR},
    {"state_rts_missing_attribute", state_missing_attribute, IBV_QPS_RTS},
    {"state_reset_to_rtr", state_illegal_jump, IBV_QPS_RESET *JUMP + IBV_QPS_RTR},
    {"state_reset_to_rts", state_illegal_jump, IBV_QPS_RESET *JUMP + IBV_QPS_RTS},
    {"state_init_to_rts", state_illegal_jump, IBV_QPS_INIT *JUMP + IBV_QPS_RTS},
    {"state_rts_to_init", state_illegal_jump, IBV_QPS_RTS *JUMP + IBV_QPS_INIT},
    {"state_mtu_above_port", state_mtu_above_port, 0},
    {"state_mtu_seven", state_mtu_unknown, 7},
    {"state_mtu_zero", state_mtu_unknown, 0},
    {"state_bad_port", state_bad_port, 0},
    {"state_rtr_rd_atomic_above_max", state_rd_atomic_above_max, IBV_QPS_RTR},
    {"state_rts_rd_atomic_above_max", state_rd_atomic_above_max, IBV_QPS_RTS},
    {"state_any_to_err", state_to_err_or_reset, IBV_QPS_ERR},
    {"state_any_to_reset", state_to_err_or_reset, IBV_QPS_RESET},
    {"state_reuse_after_reset", state_reuse_after_reset, 0},
    {"state_reset_clears_queues", state_reset_clears_queues, 0},
    {"state_query_gives_back", state_query_gives_back, 0},
    {"state_rts_changes_access", state_rts_changes_access, 0},
    {"state_post_send_in_reset", state_post_send_early, IBV_QPS_RESET},
    {"state_post_send_in_init", state_post_send_early, IBV_QPS_INIT},
    {"state_post_send_in_rtr", state_post_send_early, IBV_QPS_RTR},
    {"state_post_recv_in_reset", state_post_recv_in_reset, 0},
    {"state_post_recv_in_init", state_post_recv_in_init, 0},
    {"state_rtr_responds", state_rtr_responds, 0},
    {0},
};
