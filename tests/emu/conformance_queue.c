/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_queue.c - checks of work queues and completions: inline, unsignaled, full, chains, order, flushing.
 *
 * Part of the list. next: conformance_event.c.
 */
#include "conformance.h"

#include <errno.h>
#include <string.h>

/* Starts a pair that takes 64 bytes inline; true where that failed. */
static bool no_inline(struct check *c, struct pair *p)
{
    struct pair_options o = pair_defaults();
    o.inline_bytes = 64;
    o.sge = 2;
    if (!pair_start(c, p, &o))
        return true;
    return !check_that(c, p->s[A].cap.max_inline_data >= 64, "max_inline_data: seen %u, expected at least 64",
                       p->s[A].cap.max_inline_data);
}

/* ibv_post_send(3): the buffer of an inline request can be reused once the call returns, and its lkey is ignored. */
static void inline_write(struct check *c, long keyless)
{
    struct pair p;
    uint8_t small[64], noise[64];
    if (no_inline(c, &p))
        return;
    for (int i = 0; i < 64; i++)
        small[i] = (uint8_t)check_random(c);
    memset(noise, 0xee, sizeof noise);
    pair_put(&p, A, 0, small, sizeof small);
    pair_want(&p, B, 5, A, 0, sizeof small);
    struct op op = {.id = 1, .opcode = IBV_WR_RDMA_WRITE, .remote = 5, .len = 64, .flags = IBV_SEND_INLINE};
    if (keyless)
        op.local_ptr = small, op.lkey = 0xbadbad;
    check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0);
    memcpy(small, noise, sizeof small);
    pair_put(&p, A, 0, noise, sizeof noise);
    check_wc(c, p.s[A].scq, 1, IBV_WC_SUCCESS);
    pair_check(&p);
}

static void inline_send(struct check *c, long pieces)
{
    struct pair p;
    uint8_t noise[40];
    if (no_inline(c, &p))
        return;
    memset(noise, 0xee, sizeof noise);
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, 1000, 100, 1), 0);
    pair_want(&p, B, 1000, A, 300, 40);
    struct op op = {
        .id = 1, .opcode = IBV_WR_SEND, .local = 300, .len = 40, .flags = IBV_SEND_INLINE, .pieces = (int)pieces};
    check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0);
    pair_put(&p, A, 300, noise, sizeof noise);
    check_wc(c, p.s[A].scq, 1, IBV_WC_SUCCESS);
    check_wc(c, p.s[B].rcq, 2, IBV_WC_SUCCESS);
    pair_check(&p);
}

static void inline_too_long(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (no_inline(c, &p))
        return;
    struct op op = {.id = 1, .opcode = IBV_WR_RDMA_WRITE, .flags = IBV_SEND_INLINE};
    op.len = p.s[A].cap.max_inline_data;
    pair_want(&p, B, 0, A, 0, op.len);
    pair_do(&p, A, &op);
    op.len++;
    op.remote = 8192;
    check_that(c, pair_post(&p, A, &op) != 0,
               "%zu bytes inline, one more than allowed: seen success, expected an error", op.len);
    check_quiet(c, p.s[A].scq, 10 * MSEC);
    pair_check(&p);
}

/* Only the signaled request is reported, and it gives back the slots of those before it. */
static void unsignaled(struct check *c, long rounds)
{
    struct pair_options o = pair_defaults();
    struct pair p;
    o.send_wr = 16;
    if (!pair_start(c, &p, &o))
        return;
    uint32_t n = p.s[A].cap.max_send_wr;
    for (long round = 0; round < rounds; round++) {
        for (uint32_t i = 1; i <= n; i++) {
            struct op op = {.id = i, .opcode = IBV_WR_RDMA_WRITE, .local = i, .remote = 100 * (i % 99), .len = 100};
            op.unsignaled = i != n;
            pair_want(&p, B, op.remote, A, op.local, op.len);
            if (!check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0))
                return;
        }
        if (!check_wc(c, p.s[A].scq, n, IBV_WC_SUCCESS))
            return;
    }
    check_quiet(c, p.s[A].scq, 5 * MSEC);
    pair_check(&p);
}

static void signal_all(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    uint64_t first = 0xfedcba9876543210ull; /* wr_id is 64 bits, all of them the user's */
    o.sig_all = true;
    if (!pair_start(c, &p, &o))
        return;
    for (uint64_t i = first; i < first + 4; i++)
        check_equal(c, "ibv_post_send",
                    pair_post(&p, A, &(struct op){.id = i, .opcode = IBV_WR_RDMA_WRITE, .len = 8, .unsignaled = true}),
                    0);
    for (uint64_t i = first; i < first + 4; i++)
        check_wc(c, p.s[A].scq, i, IBV_WC_SUCCESS);
}

/* A send queue that cannot move, because the receiver has nothing to receive into. */
static bool stalled(struct check *c, struct pair *p)
{
    struct pair_options o = pair_defaults();
    o.send_wr = o.recv_wr = 8;
    o.min_rnr = 26; /* 82 ms between tries */
    return pair_start(c, p, &o);
}

enum { MANY = 1024 };

/* Until ENOMEM; what was taken flushes in order afterwards. exact: no more than the queue was said to hold. */
static void sq_full(struct check *c, long exact)
{
    struct pair p;
    if (!stalled(c, &p))
        return;
    uint32_t n = p.s[A].cap.max_send_wr;
    struct op op = {.opcode = IBV_WR_SEND, .len = 8};
    int err = 0;
    for (op.id = 0; op.id < MANY && !(err = pair_post(&p, A, &op)); op.id++)
        ;
    check_equal(c, "ibv_post_send to a full queue", err, ENOMEM);
    check_that(c, op.id >= n, "requests taken: seen %d, expected at least max_send_wr = %u", (int)op.id, n);
    if (exact)
        check_equal(c, "requests taken, as max_send_wr says", (long)op.id, n);
    pair_move(&p, A, IBV_QPS_ERR);
    for (uint64_t i = 0; i < op.id; i++)
        if (!check_wc(c, p.s[A].scq, i, IBV_WC_WR_FLUSH_ERR))
            return;
    check_quiet(c, p.s[A].scq, 5 * MSEC);
}

/* A chain longer than the queue: bad_wr names the first that was not taken; those before it were. */
static void sq_full_in_chain(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_send_wr *wr = check_memory(c, MANY * sizeof *wr), *bad = NULL;
    if (!wr || !stalled(c, &p))
        return;
    for (uint32_t i = 0; i < MANY; i++) {
        wr[i] = (struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
        wr[i].next = i < MANY - 1 ? &wr[i + 1] : NULL;
    }
    check_equal(c, "ibv_post_send", ibv_post_send(p.s[A].qp, wr, &bad), ENOMEM);
    long taken = bad ? bad - wr : -1;
    check_that(c, taken >= (long)p.s[A].cap.max_send_wr && taken < MANY,
               "bad_wr: seen request %ld, expected at least %u", taken, p.s[A].cap.max_send_wr);
    pair_move(&p, A, IBV_QPS_ERR);
    for (long i = 0; i < taken; i++)
        if (!check_wc(c, p.s[A].scq, (uint64_t)i, IBV_WC_WR_FLUSH_ERR))
            return;
    check_quiet(c, p.s[A].scq, 5 * MSEC);
}

/* A slot is given back by polling (IBA 10.8.5: a request is outstanding until its completion is retrieved). */
static void sq_slot_held_until_polled(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    o.send_wr = 8;
    if (!pair_start(c, &p, &o))
        return;
    uint32_t n = p.s[A].cap.max_send_wr;
    struct op op = {.opcode = IBV_WR_RDMA_WRITE, .len = 8};
    for (op.id = 0; op.id < n; op.id++)
        if (!check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0))
            return;
    check_sleep(c, 100 * MSEC);
    check_equal(c, "ibv_post_send before the completions are polled", pair_post(&p, A, &op), ENOMEM);
    check_wc(c, p.s[A].scq, 0, IBV_WC_SUCCESS);
    check_equal(c, "ibv_post_send after one is", pair_post(&p, A, &op), 0);
}

/* The same for receives. */
static void rq_slot_held_until_polled(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    o.recv_wr = 8;
    if (!pair_start(c, &p, &o))
        return;
    uint32_t n = p.s[B].cap.max_recv_wr;
    for (uint32_t i = 0; i < n; i++)
        if (!check_equal(c, "ibv_post_recv", pair_recv(&p, B, i, 0, 64, 1), 0) ||
            !pair_do(&p, A, &(struct op){.id = i, .opcode = IBV_WR_SEND, .len = 8}))
            return;
    check_equal(c, "ibv_post_recv before the completions are polled", pair_recv(&p, B, n, 0, 64, 1), ENOMEM);
    check_wc(c, p.s[B].rcq, 0, IBV_WC_SUCCESS);
    check_equal(c, "ibv_post_recv after one is", pair_recv(&p, B, n, 0, 64, 1), 0);
}

static void rq_full(struct check *c, long exact)
{
    struct pair_options o = pair_defaults();
    struct pair p;
    long taken = 0;
    int err = 0;
    o.recv_wr = 8;
    if (!pair_start(c, &p, &o))
        return;
    long n = p.s[B].cap.max_recv_wr;
    for (; taken < MANY && !(err = pair_recv(&p, B, (uint64_t)taken, 0, 64, 1)); taken++)
        ;
    check_equal(c, "ibv_post_recv to a full queue", err, ENOMEM);
    check_that(c, taken >= n, "receives taken: seen %ld, expected at least max_recv_wr = %ld", taken, n);
    if (exact)
        check_equal(c, "receives taken, as max_recv_wr says", taken, n);
}

/* The first bad request of a chain is named; those before it run, it and those behind it do not. */
static void bad_wr_in_chain(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_sge sge[64] = {0};
    struct ibv_send_wr wr[4] = {0}, *bad = NULL;
    if (!pair_start(c, &p, NULL))
        return;
    if (p.s[A].cap.max_send_sge >= 64) {
        check_skip(c, "the device takes %u SGEs", p.s[A].cap.max_send_sge);
        return;
    }
    for (int i = 0; i < 64; i++)
        sge[i] = (struct ibv_sge){(uint64_t)(uintptr_t)p.s[A].buf, 1, p.s[A].mr->lkey};
    for (int i = 0; i < 4; i++) {
        wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
                                     .next = i < 3 ? &wr[i + 1] : NULL,
                                     .sg_list = sge,
                                     .num_sge = i == 2 ? (int)p.s[A].cap.max_send_sge + 1 : 1,
                                     .opcode = IBV_WR_RDMA_WRITE,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .wr.rdma = {pair_address(&p, B, 1000 * (size_t)i), p.s[B].mr->rkey}};
    }
    pair_want(&p, B, 0, A, 0, 1);
    pair_want(&p, B, 1000, A, 0, 1);
    check_that(c, ibv_post_send(p.s[A].qp, wr, &bad) != 0, "ibv_post_send: seen success, expected an error");
    check_that(c, bad == &wr[2], "bad_wr: seen request %ld, expected 2", bad ? (long)(bad - wr) : -1);
    check_wc(c, p.s[A].scq, 0, IBV_WC_SUCCESS);
    check_wc(c, p.s[A].scq, 1, IBV_WC_SUCCESS);
    check_quiet(c, p.s[A].scq, 10 * MSEC);
    pair_check(&p);
}

static void bad_recv_in_chain(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_sge sge[64] = {0};
    struct ibv_recv_wr wr[3] = {0}, *bad = NULL;
    if (!pair_start(c, &p, NULL))
        return;
    if (p.s[B].cap.max_recv_sge >= 64) {
        check_skip(c, "the device takes %u SGEs", p.s[B].cap.max_recv_sge);
        return;
    }
    for (int i = 0; i < 64; i++)
        sge[i] = (struct ibv_sge){(uint64_t)(uintptr_t)p.s[B].buf, 1, p.s[B].mr->lkey};
    for (int i = 0; i < 3; i++)
        wr[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)i,
                                     .next = i < 2 ? &wr[i + 1] : NULL,
                                     .sg_list = sge,
                                     .num_sge = i == 1 ? (int)p.s[B].cap.max_recv_sge + 1 : 1};
    check_that(c, ibv_post_recv(p.s[B].qp, wr, &bad) != 0, "ibv_post_recv: seen success, expected an error");
    check_that(c, bad == &wr[1], "bad_wr: seen request %ld, expected 1", bad ? (long)(bad - wr) : -1);
}

/* Requests of all kinds complete in the order in which they were posted. */
static void completion_order(struct check *c, long count)
{
    struct pair p;
    static const enum ibv_wr_opcode kinds[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                               IBV_WR_SEND};
    if (!pair_start(c, &p, NULL))
        return;
    for (long i = 0; i < count; i++) {
        struct op op = {.id = (uint64_t)i, .opcode = kinds[i % 4], .remote = 65536, .len = i % 4 == 0 ? 20000 : 8};
        if (op.opcode == IBV_WR_SEND)
            check_equal(c, "ibv_post_recv", pair_recv(&p, B, (uint64_t)i, 200000, 8, 1), 0);
        if (!check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0))
            return;
    }
    for (long i = 0; i < count; i++)
        if (!check_wc(c, p.s[A].scq, (uint64_t)i, IBV_WC_SUCCESS))
            return;
}

/* One CQ for both queues of two QPs: each queue's completions keep their order in it. */
static void cq_shared(struct check *c, long count)
{
    struct pair p[2];
    uint64_t next[2] = {0};
    if (!pair_start(c, &p[0], NULL) || !pair_open(c, &p[1], NULL))
        return;
    struct side *s = &p[1].s[A];
    check_release(c, s->qp);
    struct ibv_qp_init_attr init = {.send_cq = p[0].s[A].scq,
                                    .recv_cq = p[0].s[A].scq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    s->qp = check_qp(c, s->pd, &init);
    if (!s->qp || !pair_connect(&p[1]))
        return;
    for (long i = 0; i < count; i++)
        for (int q = 0; q < 2; q++)
            check_equal(c, "ibv_post_send",
                        pair_post(&p[q], A, &(struct op){.id = (uint64_t)i, .opcode = IBV_WR_RDMA_WRITE, .len = 3000}),
                        0);
    for (long i = 0; i < 2 * count; i++) {
        struct ibv_wc wc;
        if (!check_that(c, check_poll(c, p[0].s[A].scq, &wc, PATIENCE_S * SEC), "completion %ld did not come", i))
            return;
        int q = wc.qp_num == s->qp->qp_num;
        check_that(c, wc.qp_num == p[q].s[A].qp->qp_num, "qp_num %#x is of neither QP", wc.qp_num);
        check_equal(c, "status", wc.status, IBV_WC_SUCCESS);
        check_equal(c, "request", (long)wc.wr_id, (long)next[q]++);
    }
}

/* IBA 10.3.1: in the Error state what is posted, and what was, completes in error, each queue in order. */
static void flush_in_order(struct check *c, long count)
{
    struct pair p;
    struct pair_options o = pair_defaults();
    o.min_rnr = 26;
    if (!pair_start(c, &p, &o))
        return;
    for (long i = 0; i < count; i++) {
        check_equal(c, "ibv_post_recv", pair_recv(&p, A, (uint64_t)i, 0, 64, 1), 0);
        check_equal(
            c, "ibv_post_send",
            pair_post(&p, A, &(struct op){.id = (uint64_t)i, .opcode = IBV_WR_SEND, .len = 8, .unsignaled = i & 1}), 0);
    }
    check_equal(c, "to ERR", pair_move(&p, A, IBV_QPS_ERR), 0);
    /* Unsignaled requests are reported too: errors always are (IBA 10.8.6). */
    for (long i = 0; i < count; i++)
        if (!check_wc(c, p.s[A].scq, (uint64_t)i, IBV_WC_WR_FLUSH_ERR) ||
            !check_wc(c, p.s[A].rcq, (uint64_t)i, IBV_WC_WR_FLUSH_ERR))
            return;
    check_quiet(c, p.s[A].scq, 5 * MSEC);
    check_quiet(c, p.s[A].rcq, 5 * MSEC);
}

static void post_send_in_err(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    check_equal(c, "to ERR", pair_move(&p, A, IBV_QPS_ERR), 0);
    for (uint64_t i = 0; i < 3; i++)
        check_equal(c, "ibv_post_send in ERR",
                    pair_post(&p, A, &(struct op){.id = i, .opcode = IBV_WR_RDMA_WRITE, .len = 8}), 0);
    for (uint64_t i = 0; i < 3; i++)
        check_wc(c, p.s[A].scq, i, IBV_WC_WR_FLUSH_ERR);
    pair_check(&p);
}

static void post_recv_in_err(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    check_equal(c, "to ERR", pair_move(&p, A, IBV_QPS_ERR), 0);
    for (uint64_t i = 0; i < 3; i++)
        check_equal(c, "ibv_post_recv in ERR", pair_recv(&p, A, i, 0, 64, 1), 0);
    for (uint64_t i = 0; i < 3; i++)
        if (!check_wc(c, p.s[A].rcq, i, IBV_WC_WR_FLUSH_ERR))
            return;
}

/* After ibv_destroy_qp() returned, nothing more of it comes. */
static void destroy_in_flight(struct check *c, long count)
{
    struct pair p;
    struct ibv_wc wc;
    if (!pair_start(c, &p, NULL))
        return;
    for (long i = 0; i < count; i++)
        check_equal(c, "ibv_post_send",
                    pair_post(&p, A, &(struct op){.id = (uint64_t)i, .opcode = IBV_WR_RDMA_WRITE, .len = 60000}), 0);
    check_equal(c, "ibv_destroy_qp", check_release(c, p.s[A].qp), 0);
    while (check_poll(c, p.s[A].scq, &wc, 0))
        ;
    check_quiet(c, p.s[A].scq, 50 * MSEC);
}

/* Completions of a QP that is destroyed before they are polled: some devices drop them, some still give them; no other
 * comes, and the CQ goes on to serve. */
static void destroy_with_unpolled(struct check *c, long count)
{
    struct pair p, q;
    struct ibv_wc wc;
    long got = 0;
    if (!pair_start(c, &p, NULL) || !pair_open(c, &q, NULL))
        return;
    for (long i = 0; i < count; i++)
        check_equal(c, "ibv_post_send",
                    pair_post(&p, A, &(struct op){.id = (uint64_t)i, .opcode = IBV_WR_RDMA_WRITE, .len = 8}), 0);
    check_sleep(c, 50 * MSEC);
    uint32_t number = p.s[A].qp->qp_num;
    check_equal(c, "ibv_destroy_qp", check_release(c, p.s[A].qp), 0);
    for (; check_poll(c, p.s[A].scq, &wc, 0); got++)
        check_that(c, wc.wr_id == (uint64_t)got && wc.qp_num == number && wc.status == IBV_WC_SUCCESS,
                   "completion of request %llu of QP %#x with '%s', expected %ld of %#x", (unsigned long long)wc.wr_id,
                   wc.qp_num, ibv_wc_status_str(wc.status), got, number);
    check_that(c, got == 0 || got == count, "completions after the QP was destroyed: seen %ld, expected none or %ld",
               got, count);
    struct side *s = &q.s[A];
    check_release(c, s->qp);
    struct ibv_qp_init_attr init = {.send_cq = p.s[A].scq,
                                    .recv_cq = p.s[A].scq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    s->qp = check_qp(c, s->pd, &init);
    s->scq = p.s[A].scq;
    if (s->qp && pair_connect(&q))
        pair_do(&q, A, &(struct op){.id = 77, .opcode = IBV_WR_RDMA_WRITE, .len = 8});
}

const struct conformance_check conformance_queue_checks[] = {
    {"inline_write", inline_write, 0},
    {"inline_needs_no_key", inline_write, 1},
    {"inline_send", inline_send, 1},
    {"inline_send_gathers", inline_send, 2},
    {"inline_too_long", inline_too_long, 0},
    {"unsignaled", unsignaled, 8},
    {"signal_all", signal_all, 0},
    {"sq_full", sq_full, 0},
    {"sq_holds_what_it_says", sq_full, 1},
    {"sq_full_in_chain", sq_full_in_chain, 0},
    {"sq_slot_held_until_polled", sq_slot_held_until_polled, 0},
    {"rq_slot_held_until_polled", rq_slot_held_until_polled, 0},
    {"rq_full", rq_full, 0},
    {"rq_holds_what_it_says", rq_full, 1},
    {"bad_wr_in_chain", bad_wr_in_chain, 0},
    {"bad_recv_in_chain", bad_recv_in_chain, 0},
    {"completion_order", completion_order, 32},
    {"cq_shared", cq_shared, 32},
    {"flush_in_order", flush_in_order, 16},
    {"post_send_in_err_flushes", post_send_in_err, 0},
    {"post_recv_in_err_flushes", post_recv_in_err, 0},
    {"destroy_in_flight", destroy_in_flight, 8},
    {"destroy_with_unpolled", destroy_with_unpolled, 8},
    {0},
};
