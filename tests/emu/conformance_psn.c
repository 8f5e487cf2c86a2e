/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_psn.c - checks of packet sequence numbers, as ibv_query_qp() shows them.
 *
 * IBA 9.7.2: one PSN a request packet; a READ takes as many as its answer has packets; a zero length takes one; 24
 * bits, wrapping. Who replays after a failure must be able to compute what a request took. next: conformance_atomic.c.
 */
#include "conformance.h"

enum { PSNS = 1 << 24 };

static uint32_t packets(const struct check *c, size_t len)
{
    return len ? (uint32_t)((len + c->run->mtu - 1) / c->run->mtu) : 1;
}

static bool psn_is(struct pair *p, uint32_t expected)
{
    struct ibv_qp_attr a = {0}, b = {0};
    struct ibv_qp_init_attr init;
    struct check *c = p->c;
    return check_equal(c, "ibv_query_qp", ibv_query_qp(p->s[A].qp, &a, IBV_QP_SQ_PSN, &init), 0) &&
           check_equal(c, "ibv_query_qp", ibv_query_qp(p->s[B].qp, &b, IBV_QP_RQ_PSN, &init), 0) &&
           check_equal(c, "sq_psn of the requester", a.sq_psn, expected) &&
           check_equal(c, "rq_psn of the responder", b.rq_psn, expected);
}

/* Requests of many lengths from a start PSN; both ends must have counted the same. */
static void count_from(struct check *c, enum ibv_wr_opcode opcode, uint32_t start)
{
    struct pair p;
    const size_t mtu = c->run->mtu;
    const size_t lengths[] = {0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 7 * mtu + 3, 16 * mtu};
    if (!pair_open(c, &p, NULL))
        return;
    p.s[A].psn = start;
    if (!pair_connect(&p) || !psn_is(&p, start))
        return;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        if (opcode == IBV_WR_SEND)
            check_equal(c, "ibv_post_recv", pair_recv(&p, B, i, 0, 16 * mtu, 1), 0);
        start = (start + packets(c, lengths[i])) % PSNS;
        if (!pair_do(&p, A, &(struct op){.id = i, .opcode = opcode, .len = lengths[i]}) || !psn_is(&p, start)) {
            check_that(c, false, "after %zu bytes", lengths[i]);
            return;
        }
    }
}

static void psn_counts(struct check *c, long opcode)
{
    count_from(c, (enum ibv_wr_opcode)opcode, (uint32_t)check_random(c) & 0x7fffff);
}

static void psn_wraps(struct check *c, long opcode)
{
    count_from(c, (enum ibv_wr_opcode)opcode, PSNS - 5);
}

static void psn_atomic(struct check *c, long start)
{
    struct pair p;
    if (!pair_open(c, &p, NULL))
        return;
    p.s[A].psn = (uint32_t)start;
    if (!pair_connect(&p))
        return;
    for (uint32_t i = 1; i <= 8; i++) {
        struct op op = {.id = i, .opcode = i & 1 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP, .len = 8};
        if (!pair_do(&p, A, &op) || !psn_is(&p, (uint32_t)(start + i) % PSNS))
            return;
    }
}

/* Both directions have their own numbers. */
static void psn_directions(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_qp_attr a = {0};
    struct ibv_qp_init_attr init;
    if (!pair_start(c, &p, NULL))
        return;
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 5 * c->run->mtu});
    pair_do(&p, B, &(struct op){.id = 2, .opcode = IBV_WR_RDMA_WRITE, .len = 3 * c->run->mtu});
    check_equal(c, "ibv_query_qp", ibv_query_qp(p.s[A].qp, &a, IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init), 0);
    check_equal(c, "sq_psn", a.sq_psn, (p.s[A].psn + 5) % PSNS);
    check_equal(c, "rq_psn", a.rq_psn, (p.s[B].psn + 3) % PSNS);
}

/* A responder that expects another PSN takes nothing: a lost start is not guessed at. */
static void psn_mismatch(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    o.timeout = 13, o.retry = 2;
    if (!pair_open(c, &p, &o) || pair_step(&p, A, IBV_QPS_INIT, 0) || pair_step(&p, B, IBV_QPS_INIT, 0) ||
        pair_step(&p, A, IBV_QPS_RTR, 0) || pair_step(&p, B, IBV_QPS_RTR, 0))
        return;
    p.s[A].psn = (p.s[A].psn + 10) % PSNS;
    check_equal(c, "to RTS", pair_step(&p, A, IBV_QPS_RTS, 0), 0);
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 100}),
                0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_RETRY_EXC_ERR);
    pair_check(&p);
}

const struct conformance_check conformance_psn_checks[] = {
    {"psn_write", psn_counts, IBV_WR_RDMA_WRITE},
    {"psn_read", psn_counts, IBV_WR_RDMA_READ},
    {"psn_send", psn_counts, IBV_WR_SEND},
    {"psn_atomic", psn_atomic, 1000},
    {"psn_write_wraps", psn_wraps, IBV_WR_RDMA_WRITE},
    {"psn_read_wraps", psn_wraps, IBV_WR_RDMA_READ},
    {"psn_send_wraps", psn_wraps, IBV_WR_SEND},
    {"psn_atomic_wraps", psn_atomic, PSNS - 3},
    {"psn_directions", psn_directions, 0},
    {"psn_mismatch", psn_mismatch, 0},
    {0},
};
