/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_event.c - checks of completion channels and asynchronous events.
 *
 * Part of the list. Channels are read without blocking, between waits with a deadline. next: conformance_srq.c.
 */
#include "conformance.h"

#include <string.h>

/* The next event of B's channel; NULL where none came in time. */
static struct ibv_cq *next_event(struct pair *p, uint64_t timeout_ns)
{
    struct check *c = p->c;
    uint64_t end = check_now(c) + timeout_ns;
    for (;;) {
        struct ibv_cq *cq;
        void *context;
        if (!ibv_get_cq_event(p->s[B].channel, &cq, &context)) {
            ibv_ack_cq_events(cq, 1);
            check_that(c, context == c, "cq_context of the event: seen %p, expected %p", context, (void *)c);
            return cq;
        }
        if (check_now(c) >= end)
            return NULL;
        check_wait(c, end);
    }
}

static bool start(struct check *c, struct pair *p)
{
    struct pair_options o = pair_defaults();
    o.channel = true;
    if (!pair_start(c, p, &o))
        return false;
    for (uint64_t i = 0; i < 8; i++)
        check_equal(c, "ibv_post_recv", pair_recv(p, B, i, 0, 64, 1), 0);
    return c->problems == 0;
}

static bool send_one(struct pair *p, int flags)
{
    return pair_do(p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 8, .flags = flags});
}

static void channel_event(struct check *c, long rounds)
{
    struct pair p;
    if (!start(c, &p))
        return;
    for (uint64_t i = 0; i < (uint64_t)rounds; i++) {
        check_equal(c, "ibv_req_notify_cq", ibv_req_notify_cq(p.s[B].rcq, 0), 0);
        if (!send_one(&p, 0))
            return;
        check_that(c, next_event(&p, PATIENCE_S * SEC) == p.s[B].rcq, "no event of the receive CQ in %d s",
                   (int)PATIENCE_S);
        if (!check_wc(c, p.s[B].rcq, i, IBV_WC_SUCCESS))
            return;
    }
}

static void channel_unarmed(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!start(c, &p) || !send_one(&p, 0))
        return;
    check_that(c, !next_event(&p, 20 * MSEC), "an event, though the CQ was not armed");
}

/* ibv_req_notify_cq(3): an event for the next completion, once. */
static void channel_once(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!start(c, &p))
        return;
    check_equal(c, "ibv_req_notify_cq", ibv_req_notify_cq(p.s[B].rcq, 0), 0);
    for (int i = 0; i < 3; i++)
        if (!send_one(&p, 0))
            return;
    check_that(c, next_event(&p, PATIENCE_S * SEC) != NULL, "no event in %d s", (int)PATIENCE_S);
    check_that(c, !next_event(&p, 20 * MSEC), "a second event, though the CQ was armed once");
    if (send_one(&p, 0))
        check_that(c, !next_event(&p, 20 * MSEC), "an event for a later message, though the CQ was not armed again");
}

/* ibv_req_notify_cq(3): an event for each arming, even if nobody fetched the one before. */
static void channel_each_arming(struct check *c, long rounds)
{
    struct pair p;
    if (!start(c, &p))
        return;
    for (uint64_t i = 0; i < (uint64_t)rounds; i++) {
        check_equal(c, "ibv_req_notify_cq", ibv_req_notify_cq(p.s[B].rcq, 0), 0);
        if (!send_one(&p, 0) || !check_wc(c, p.s[B].rcq, i, IBV_WC_SUCCESS))
            return;
    }
    for (long i = 0; i < rounds; i++)
        check_that(c, next_event(&p, PATIENCE_S * SEC) == p.s[B].rcq, "event %ld of %ld did not come in %d s", i + 1,
                   rounds, (int)PATIENCE_S);
    check_that(c, !next_event(&p, 20 * MSEC), "one event more than the CQ was armed");
}

static void channel_solicited(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!start(c, &p))
        return;
    check_equal(c, "ibv_req_notify_cq", ibv_req_notify_cq(p.s[B].rcq, 1), 0);
    if (!send_one(&p, 0))
        return;
    check_that(c, !next_event(&p, 20 * MSEC), "an event for an unsolicited message");
    if (send_one(&p, IBV_SEND_SOLICITED))
        check_that(c, next_event(&p, PATIENCE_S * SEC) != NULL, "no event for a solicited message in %d s",
                   (int)PATIENCE_S);
}

/* ibv_req_notify_cq(3): solicited_only also counts completions in error. */
static void channel_solicited_error(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!start(c, &p))
        return;
    check_equal(c, "ibv_req_notify_cq", ibv_req_notify_cq(p.s[B].rcq, 1), 0);
    check_equal(c, "to ERR", pair_move(&p, B, IBV_QPS_ERR), 0);
    check_that(c, next_event(&p, PATIENCE_S * SEC) != NULL, "no event for a failed receive in %d s", (int)PATIENCE_S);
}

/* The responder of a refused access gets an event (IBA 11.6.3, ibv_get_async_event(3)). */
static void event_qp_access(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct op op = {.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 8, .rkey = p.s[B].mr->rkey ^ 0x5a5a5a00};
    check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_REM_ACCESS_ERR);
    check_event(c, B, IBV_EVENT_QP_ACCESS_ERR, p.s[B].qp, NULL);
}

/* A message to a QP in RTR is reported, so that a server knows its client is there (ibv_get_async_event(3)). */
static void event_comm_est(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_open(c, &p, NULL))
        return;
    for (int side = 0; side < 2; side++)
        if (pair_step(&p, side, IBV_QPS_INIT, 0) || pair_step(&p, side, IBV_QPS_RTR, 0))
            check_that(c, false, "the ends cannot be brought to RTR");
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, 0, 64, 1), 0);
    check_equal(c, "A to RTS", pair_step(&p, A, IBV_QPS_RTS, 0), 0);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 8});
    check_event(c, B, IBV_EVENT_COMM_EST, p.s[B].qp, NULL);
}

/* More completions than the CQ holds, none polled: IBA 11.6.3 asks for a CQ error event. Nothing may hang. */
static void event_cq_overrun(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    struct ibv_cq *probe = check_cq(c, A, 1, NULL);
    if (!probe)
        return;
    o.cqe = 1;
    o.send_wr = (uint32_t)probe->cqe + 8;
    if (o.send_wr > (uint32_t)c->run->device[A].max_qp_wr || o.send_wr > 4000) {
        check_skip(c, "the smallest CQ has %d entries, more than a send queue can overrun", probe->cqe);
        return;
    }
    if (!pair_start(c, &p, &o))
        return;
    for (uint64_t i = 0; i < o.send_wr; i++)
        check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = i, .opcode = IBV_WR_RDMA_WRITE, .len = 8}),
                    0);
    check_event(c, A, IBV_EVENT_CQ_ERR, NULL, p.s[A].scq);
}

static bool drain(struct check *c, struct pair *p)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    int err = ibv_modify_qp(p->s[A].qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
    return check_equal(c, "RTS to SQD", err, 0);
}

/* Completions that are there now, all well; next: the number of the first. */
static uint64_t done_now(struct check *c, struct pair *p, uint64_t next)
{
    for (; check_poll(c, p->s[A].scq, &c->wc, 0); next++) {
        check_equal(c, "request", (long)c->wc.wr_id, (long)next);
        check_equal(c, "status", c->wc.status, IBV_WC_SUCCESS);
    }
    return next;
}

/* IBA 10.3.1, ibv_get_async_event(3): in SQD what was begun is finished, then the event comes, once. */
static void event_sq_drained(struct check *c, long rnr)
{
    uint64_t count = rnr ? 1 : 16, done;
    struct pair_options o = pair_defaults();
    struct ibv_async_event e;
    struct pair p;
    o.min_rnr = 24; /* 41 ms */
    if (!pair_start(c, &p, &o))
        return;
    struct op op = {.opcode = rnr ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, .len = rnr ? 64 : BUFFER};
    for (op.id = 0; op.id < count; op.id++)
        check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0);
    if (rnr)
        check_quiet(c, p.s[A].scq, 5 * MSEC); /* begun, and refused by a receiver that is not ready */
    if (!drain(c, &p))
        return;
    if (rnr)
        check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, 0, 64, 1), 0);
    if (!check_event(c, A, IBV_EVENT_SQ_DRAINED, p.s[A].qp, NULL))
        return;
    done = done_now(c, &p, 0);
    check_that(c, !rnr || done == count, "the event came before the request that had begun was done");
    check_quiet(c, p.s[A].scq, 100 * MSEC);
    while (!ibv_get_async_event(c->run->ctx[A], &e)) {
        check_that(c, e.event_type != IBV_EVENT_SQ_DRAINED, "the event came twice");
        ibv_ack_async_event(&e);
    }
    check_equal(c, "SQD to RTS", pair_move(&p, A, IBV_QPS_RTS), 0);
    for (; done < count; done++)
        if (!check_wc(c, p.s[A].scq, done, IBV_WC_SUCCESS))
            return;
}

static void event_port(struct check *c, long arg)
{
    (void)arg;
    const struct conformance_env *env = c->run->env;
    if (!check_can_cut(c))
        return;
    check_equal(c, "cable out", env->cable(env->arg, B, false), 0);
    check_event(c, B, IBV_EVENT_PORT_ERR, NULL, NULL);
    check_equal(c, "cable in", env->cable(env->arg, B, true), 0);
    check_event(c, B, IBV_EVENT_PORT_ACTIVE, NULL, NULL);
}

const struct conformance_check conformance_event_checks[] = {
    {"channel_event", channel_event, 4},
    {"channel_unarmed", channel_unarmed, 0},
    {"channel_once", channel_once, 0},
    {"channel_each_arming", channel_each_arming, 3},
    {"channel_solicited", channel_solicited, 0},
    {"channel_solicited_error", channel_solicited_error, 0},
    {"event_qp_access", event_qp_access, 0},
    {"event_comm_est", event_comm_est, 0},
    {"event_cq_overrun", event_cq_overrun, 0},
    {"event_sq_drained", event_sq_drained, 0},
    {"event_sq_drained_after_rnr", event_sq_drained, 1},
    {"event_port", event_port, 0},
    {0},
};
