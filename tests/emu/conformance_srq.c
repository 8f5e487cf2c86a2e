/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_srq.c - checks of shared receive queues: who takes what, when places are free again, limits, errors.
 *
 * Part of the list. next: conformance_psn.c.
 */
#include "conformance.h"

#include <errno.h>
#include <string.h>

enum { SRQ_WR = 16, MANY = 1024, LONG = 240000 };

/* A pair whose B receives from an SRQ. share: of that end, else one of its own. */
static bool open_shared(struct check *c, struct pair *p, const struct side *share)
{
    struct pair_options o = pair_defaults();
    o.srq_wr = SRQ_WR;
    o.share = share;
    if (c->run->device[B].max_srq <= 0) {
        check_skip(c, "the device has no SRQs");
        return false;
    }
    return pair_start(c, p, &o);
}

static bool post_receives(struct pair *p, uint64_t first, uint64_t count, size_t len)
{
    for (uint64_t i = first; i < first + count; i++)
        if (!check_equal(p->c, "ibv_post_srq_recv", pair_recv(p, B, i, 1000 * (size_t)i, len, 1), 0))
            return false;
    return true;
}

static bool send(struct pair *p, uint64_t id, size_t local, size_t len)
{
    return pair_do(p, A, &(struct op){.id = id, .opcode = IBV_WR_SEND, .local = local, .len = len});
}

static void srq_recv(struct check *c, long len)
{
    struct pair p;
    if (!open_shared(c, &p, NULL) || !post_receives(&p, 0, 8, 1000))
        return;
    for (size_t i = 0; i < 8; i++) {
        pair_want(&p, B, 1000 * i, A, 50 * i, (size_t)len);
        if (!send(&p, i, 50 * i, (size_t)len) || !check_wc(c, p.s[B].rcq, i, IBV_WC_SUCCESS))
            return;
        check_equal(c, "byte_len", c->wc.byte_len, len);
        check_equal(c, "qp_num", c->wc.qp_num, p.s[B].qp->qp_num);
    }
    check_quiet(c, p.s[B].rcq, 5 * MSEC);
    pair_check(&p);
}

/* Messages of any of its queue pairs take receives in the order in which these were posted. */
static void srq_two_qps(struct check *c, long rounds)
{
    struct pair p, q;
    if (!open_shared(c, &p, NULL) || !open_shared(c, &q, &p.s[B]))
        return;
    for (size_t i = 0; i < (size_t)rounds; i++) {
        struct pair *from = i % 3 ? &p : &q;
        if (!check_equal(c, "ibv_post_srq_recv", pair_recv(&p, B, i, 100 * i, 100, 1), 0))
            return;
        if (!send(from, i, 10 * i, 100) || !check_wc(c, from->s[B].rcq, i, IBV_WC_SUCCESS))
            return;
        check_equal(c, "qp_num", c->wc.qp_num, from->s[B].qp->qp_num);
        if (from == &p)
            pair_want(&p, B, 100 * i, A, 10 * i, 100);
        else
            memcpy(p.s[B].want + 100 * i, q.s[A].want + 10 * i, 100);
    }
    pair_check(&p);
    pair_check(&q);
}

/* A message of several packets keeps the receive that its first one took, whatever comes between them. */
static void srq_long_messages(struct check *c, long len)
{
    struct pair p, q;
    size_t n = (size_t)len;
    if (!open_shared(c, &p, NULL) || !open_shared(c, &q, &p.s[B]))
        return;
    for (uint64_t i = 0; i < 4; i++)
        if (!check_equal(c, "ibv_post_srq_recv", pair_recv(&p, B, i, n * i, n, 2), 0))
            return;
    for (uint64_t i = 0; i < 4; i++) {
        struct op op = {.id = i, .opcode = IBV_WR_SEND, .local = 64 * i, .len = n};
        if (!check_equal(c, "ibv_post_send", pair_post(i % 2 ? &q : &p, A, &op), 0))
            return;
    }
    for (uint64_t i = 0; i < 4; i++) {
        struct pair *from = i % 2 ? &q : &p;
        if (!check_poll(c, from->s[B].rcq, &c->wc, PATIENCE_S * SEC) ||
            !check_wc(c, from->s[A].scq, i, IBV_WC_SUCCESS)) {
            check_that(c, false, "message %d did not arrive", (int)i);
            return;
        }
        if (check_that(c, c->wc.status == IBV_WC_SUCCESS && c->wc.wr_id < 4, "receive: seen %d", (int)c->wc.status))
            check_equal(c, "bytes", memcmp(p.s[B].buf + n * c->wc.wr_id, from->s[A].buf + 64 * i, n), 0);
    }
}

/* Nothing to receive into: the sender tries again, and ends if it may not (IBA 9.7.5.2.8). */
static void srq_empty(struct check *c, long rnr_retry)
{
    struct pair_options o = pair_defaults();
    struct pair p;
    o.srq_wr = SRQ_WR;
    o.rnr_retry = (uint8_t)rnr_retry;
    if (c->run->device[B].max_srq <= 0)
        check_skip(c, "the device has no SRQs");
    else if (pair_start(c, &p, &o)) {
        pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 100});
        if (rnr_retry == 7) {
            check_quiet(c, p.s[A].scq, 20 * MSEC);
            pair_want(&p, B, 2000, A, 0, 100);
            check_equal(c, "ibv_post_srq_recv", pair_recv(&p, B, 2, 2000, 100, 1), 0);
            check_wc(c, p.s[B].rcq, 2, IBV_WC_SUCCESS);
        }
        check_wc(c, p.s[A].scq, 1, rnr_retry == 7 ? IBV_WC_SUCCESS : IBV_WC_RNR_RETRY_EXC_ERR);
        pair_check(&p);
    }
}

static void srq_write_imm(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!open_shared(c, &p, NULL) || !post_receives(&p, 0, 2, 0))
        return;
    for (uint64_t i = 0; i < 2; i++) {
        struct op op = {.id = i, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .local = 7, .remote = 9000 * i, .len = 9000};
        op.imm = 0xabcd + (uint32_t)i;
        pair_want(&p, B, op.remote, A, 7, 9000);
        if (!pair_do(&p, A, &op) || !check_wc(c, p.s[B].rcq, i, IBV_WC_SUCCESS))
            return;
        check_equal(c, "opcode", c->wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    }
    pair_check(&p);
}

static void srq_full(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_srq_attr attr = {0};
    long taken = 0;
    int err = 0;
    if (!open_shared(c, &p, NULL) || !check_equal(c, "ibv_query_srq", ibv_query_srq(p.s[B].srq, &attr), 0))
        return;
    check_that(c, attr.max_wr >= SRQ_WR, "max_wr: seen %u, expected at least %d", attr.max_wr, SRQ_WR);
    check_that(c, attr.max_sge >= p.o.sge, "max_sge: seen %u, expected at least %u", attr.max_sge, p.o.sge);
    for (; taken < MANY && !(err = pair_recv(&p, B, (uint64_t)taken, 0, 64, 1)); taken++)
        ;
    check_equal(c, "ibv_post_srq_recv to a full queue", err, ENOMEM);
    check_that(c, taken >= SRQ_WR, "receives taken: seen %ld, expected at least %d", taken, SRQ_WR);
}

/* Fills the SRQ; how many it took. */
static uint64_t fill(struct pair *p, size_t len)
{
    uint64_t n = 0;
    while (n < MANY && pair_recv(p, B, n, 0, len, 1) == 0)
        n++;
    return n;
}

/* A place is given back by polling, as in a queue pair's own queue. */
static void srq_slot_held_until_polled(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!open_shared(c, &p, NULL))
        return;
    fill(&p, 64);
    send(&p, 1, 0, 64);
    check_sleep(c, 50 * MSEC);
    check_equal(c, "ibv_post_srq_recv before the completion is polled", pair_recv(&p, B, 1, 0, 64, 1), ENOMEM);
    check_wc(c, p.s[B].rcq, 0, IBV_WC_SUCCESS);
    check_equal(c, "ibv_post_srq_recv after it is", pair_recv(&p, B, 1, 0, 64, 1), 0);
}

/* RESET drops completions that nobody polled, and with them what they held. */
static void srq_reset_frees(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!open_shared(c, &p, NULL))
        return;
    uint64_t n = fill(&p, 64);
    for (uint64_t i = 0; i < 4; i++)
        if (!send(&p, i, 0, 64))
            return;
    check_sleep(c, 20 * MSEC);
    check_equal(c, "to RESET", pair_move(&p, B, IBV_QPS_RESET), 0);
    for (uint64_t i = 0; i < 4; i++)
        check_equal(c, "ibv_post_srq_recv after RESET", pair_recv(&p, B, n + i, 0, 64, 1), 0);
    check_quiet(c, p.s[B].rcq, 5 * MSEC);
}

/* A queue pair ends while long messages come, likely in the middle of one; another asks the SRQ what is left. */
static bool end_in_progress(struct check *c, struct pair *p, struct pair *q, enum ibv_qp_state to)
{
    if (!open_shared(c, p, NULL) || !open_shared(c, q, &p->s[B]))
        return false;
    fill(p, LONG);
    for (uint64_t i = 0; i < SRQ_WR; i++)
        if (!check_equal(c, "ibv_post_send", pair_post(p, A, &(struct op){.id = i, .opcode = IBV_WR_SEND, .len = LONG}),
                         0))
            return false;
    check_sleep(c, MSEC / 50);
    return check_equal(c, "to ERR or RESET", pair_move(p, B, to), 0);
}

/* In ERR the receive of the message in progress is flushed: none is lost, the next one is the next message's. */
static void srq_error_in_progress(struct check *c, long arg)
{
    (void)arg;
    struct pair p, q;
    uint64_t ended = 0;
    if (!end_in_progress(c, &p, &q, IBV_QPS_ERR))
        return;
    for (bool flushed = false; check_poll(c, p.s[B].rcq, &c->wc, 5 * MSEC); ended++) {
        check_equal(c, "wr_id", (long)c->wc.wr_id, (long)ended);
        check_that(c, !flushed, "receive %d: expected none behind the flushed one", (int)ended);
        flushed = c->wc.status == IBV_WC_WR_FLUSH_ERR;
        check_that(c, flushed || c->wc.status == IBV_WC_SUCCESS, "receive %d: seen status %d", (int)ended,
                   (int)c->wc.status);
    }
    if (ended)
        check_equal(c, "ibv_post_srq_recv", pair_recv(&p, B, SRQ_WR, 0, LONG, 1), 0);
    send(&q, 1, 0, 64);
    check_wc(c, q.s[B].rcq, ended, IBV_WC_SUCCESS);
}

/* RESET drops the receive of the message in progress: its place is free again. */
static void srq_reset_in_progress(struct check *c, long arg)
{
    (void)arg;
    struct pair p, q;
    if (!end_in_progress(c, &p, &q, IBV_QPS_RESET))
        return;
    long more = pair_recv(&p, B, SRQ_WR, 0, LONG, 1) == 0; /* for the message below, where all were taken */
    send(&q, 1, 0, 64);
    if (check_poll(c, q.s[B].rcq, &c->wc, PATIENCE_S * SEC))
        check_equal(c, "free places of the receives that were taken", more + (long)fill(&p, 64), (long)c->wc.wr_id + 1);
    else
        check_that(c, false, "no receive for a message behind the RESET of another queue pair");
}

/* ibv_post_srq_recv(3): stops at the first bad one and names it; those before it are taken. */
static void srq_bad_receive(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_srq_attr attr = {0};
    if (!open_shared(c, &p, NULL) || !check_equal(c, "ibv_query_srq", ibv_query_srq(p.s[B].srq, &attr), 0))
        return;
    struct ibv_sge *sge = check_memory(c, (attr.max_sge + 1) * sizeof(*sge));
    if (!sge)
        return;
    for (uint32_t i = 0; i <= attr.max_sge; i++)
        sge[i] = (struct ibv_sge){(uintptr_t)p.s[B].buf, 64, p.s[B].mr->lkey};
    struct ibv_recv_wr second = {.wr_id = 2, .sg_list = sge, .num_sge = (int)attr.max_sge + 1};
    struct ibv_recv_wr first = {.wr_id = 1, .sg_list = sge, .num_sge = 1, .next = &second}, *bad = NULL;
    check_that(c, ibv_post_srq_recv(p.s[B].srq, &first, &bad) != 0, "too many SGEs: seen success, expected an error");
    check_that(c, bad == &second, "bad_wr: expected the second receive");
    send(&p, 1, 0, 64);
    check_wc(c, p.s[B].rcq, 1, IBV_WC_SUCCESS);
}

/* ibv_modify_srq(3): the event comes once, when fewer than the limit are left, and then the limit is 0. */
static void srq_limit(struct check *c, long limit)
{
    struct pair p;
    struct ibv_srq_attr attr = {.srq_limit = (uint32_t)limit};
    struct ibv_async_event e;
    if (!open_shared(c, &p, NULL) || !post_receives(&p, 0, 8, 1000))
        return;
    check_equal(c, "ibv_modify_srq", ibv_modify_srq(p.s[B].srq, &attr, IBV_SRQ_LIMIT), 0);
    check_events_drop(c);
    for (uint64_t left = 8; left > (uint64_t)limit; left--)
        if (!send(&p, left, 0, 100))
            return;
    check_sleep(c, 20 * MSEC);
    check_that(c, ibv_get_async_event(c->run->ctx[B], &e) != 0, "event '%s' with %ld receives left, expected none",
               ibv_event_type_str(e.event_type), limit);
    send(&p, 1, 0, 100);
    check_event(c, B, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, NULL);
    check_equal(c, "ibv_query_srq", ibv_query_srq(p.s[B].srq, &attr), 0);
    check_equal(c, "srq_limit after its event", attr.srq_limit, 0);
    send(&p, 2, 0, 100);
    check_sleep(c, 20 * MSEC);
    check_that(c, ibv_get_async_event(c->run->ctx[B], &e) != 0, "a second event, expected none");
}

/* An event that nobody has fetched goes with its SRQ. */
static void srq_destroy_drops_event(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_srq_attr attr = {.srq_limit = 2};
    struct ibv_async_event e;
    if (!open_shared(c, &p, NULL) || !post_receives(&p, 0, 2, 100))
        return;
    check_equal(c, "ibv_modify_srq", ibv_modify_srq(p.s[B].srq, &attr, IBV_SRQ_LIMIT), 0);
    check_events_drop(c);
    send(&p, 1, 0, 100);
    check_sleep(c, 20 * MSEC);
    check_equal(c, "ibv_destroy_qp", check_release(c, p.s[B].qp), 0);
    check_equal(c, "ibv_destroy_srq", check_release(c, p.s[B].srq), 0);
    if (ibv_get_async_event(c->run->ctx[B], &e) == 0)
        check_that(c, false, "event '%s' of an SRQ that is gone", ibv_event_type_str(e.event_type));
}

static void srq_limit_too_high(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_srq_attr attr = {0};
    if (!open_shared(c, &p, NULL) || !check_equal(c, "ibv_query_srq", ibv_query_srq(p.s[B].srq, &attr), 0))
        return;
    attr.srq_limit = attr.max_wr + 1;
    check_that(c, ibv_modify_srq(p.s[B].srq, &attr, IBV_SRQ_LIMIT) != 0,
               "limit above the queue's size: seen success, expected an error");
}

static void srq_too_big(struct check *c, long sges)
{
    struct ibv_pd *pd = check_pd(c, B);
    const struct ibv_device_attr *d = &c->run->device[B];
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
    if (d->max_srq <= 0) {
        check_skip(c, "the device has no SRQs");
        return;
    }
    if (sges)
        init.attr.max_sge = (uint32_t)d->max_srq_sge + 1;
    else
        init.attr.max_wr = (uint32_t)d->max_srq_wr + 1;
    struct ibv_srq *srq = pd ? ibv_create_srq(pd, &init) : NULL;
    check_that(c, !srq, "one more than the device says: seen success, expected an error");
    if (srq)
        ibv_destroy_srq(srq);
}

static void srq_busy(struct check *c, long arg)
{
    struct pair p;
    if (!open_shared(c, &p, NULL))
        return;
    if (arg) { /* the PD has an SRQ and nothing else */
        check_release(c, p.s[B].qp);
        check_release(c, p.s[B].mr);
    }
    check_equal(c, arg ? "ibv_dealloc_pd with an SRQ alive" : "ibv_destroy_srq with a QP alive",
                check_release(c, arg ? (void *)p.s[B].pd : (void *)p.s[B].srq), EBUSY);
}

/* IBA, Post Receive Request: an error where the queue pair has an SRQ. */
static void srq_qp_has_no_queue(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
    if (!open_shared(c, &p, NULL))
        return;
    check_that(c, ibv_post_recv(p.s[B].qp, &wr, &bad) != 0, "ibv_post_recv: seen success, expected an error");
    check_that(c, bad == &wr, "bad_wr: expected the request");
}

/* The message is too long for the receive it took: that one fails, those behind it stay for others. */
static void srq_too_long(struct check *c, long arg)
{
    (void)arg;
    struct pair p, q;
    if (!open_shared(c, &p, NULL) || !open_shared(c, &q, &p.s[B]) || !post_receives(&p, 0, 2, 100))
        return;
    pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 101});
    check_wc(c, p.s[A].scq, 1, IBV_WC_REM_INV_REQ_ERR);
    check_wc(c, p.s[B].rcq, 0, IBV_WC_LOC_LEN_ERR);
    check_state(c, p.s[B].qp, IBV_QPS_ERR);
    memcpy(p.s[B].want + 1000, q.s[A].want, 100);
    send(&q, 2, 0, 100);
    check_wc(c, q.s[B].rcq, 1, IBV_WC_SUCCESS);
    check_quiet(c, p.s[B].rcq, 5 * MSEC);
}

/* In ERR a queue pair takes no more, says so, and leaves the others what there is. */
static void srq_last_wqe(struct check *c, long arg)
{
    (void)arg;
    struct pair p, q;
    if (!open_shared(c, &p, NULL) || !open_shared(c, &q, &p.s[B]) || !post_receives(&p, 0, 2, 100))
        return;
    check_equal(c, "to ERR", pair_move(&p, B, IBV_QPS_ERR), 0);
    check_event(c, B, IBV_EVENT_QP_LAST_WQE_REACHED, p.s[B].qp, NULL);
    check_quiet(c, p.s[B].rcq, 5 * MSEC);
    memcpy(p.s[B].want, q.s[A].want, 100);
    send(&q, 2, 0, 100);
    check_wc(c, q.s[B].rcq, 0, IBV_WC_SUCCESS);
    pair_check(&p);
}

const struct conformance_check conformance_srq_checks[] = {
    {"srq_recv_8", srq_recv, 8},
    {"srq_recv_1000", srq_recv, 1000},
    {"srq_two_qps", srq_two_qps, 60},
    {"srq_long_messages", srq_long_messages, 30000},
    {"srq_empty_waits", srq_empty, 7},
    {"srq_empty_ends", srq_empty, 0},
    {"srq_write_imm", srq_write_imm, 0},
    {"srq_full", srq_full, 0},
    {"srq_slot_held_until_polled", srq_slot_held_until_polled, 0},
    {"srq_reset_frees", srq_reset_frees, 0},
    {"srq_error_in_progress", srq_error_in_progress, 0},
    {"srq_reset_in_progress", srq_reset_in_progress, 0},
    {"srq_bad_receive", srq_bad_receive, 0},
    {"srq_limit", srq_limit, 3},
    {"srq_destroy_drops_event", srq_destroy_drops_event, 0},
    {"srq_limit_too_high", srq_limit_too_high, 0},
    {"srq_too_many_receives", srq_too_big, 0},
    {"srq_too_many_sges", srq_too_big, 1},
    {"srq_busy_with_qp", srq_busy, 0},
    {"pd_busy_with_srq", srq_busy, 1},
    {"srq_qp_has_no_queue", srq_qp_has_no_queue, 0},
    {"srq_too_long", srq_too_long, 0},
    {"srq_last_wqe", srq_last_wqe, 0},
    {0},
};
