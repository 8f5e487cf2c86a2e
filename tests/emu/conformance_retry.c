/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_retry.c - checks of what happens, and when, if the other end does not answer or is not ready.
 *
 * IBA 9.7.6.1.3: the transport timer runs between 4.096 us * 2^timeout and four times that; after retry_cnt repeats the
 * request fails. So the time to the error is (retry_cnt + 1) of these, and both bounds are checked. next:
 * conformance_mixed.c.
 */
#include "conformance.h"

#include <string.h>

enum gone { DESTROYED, IN_RESET, IN_ERR };

enum { SLACK_MS = 300 }; /* a software device's own time */

static uint64_t period(uint8_t timeout)
{
    return 4096ull << timeout;
}

/* Did tries timers of least ns each, or up to four times that, pass since some moment from earliest to latest? */
static void within2(struct check *c, uint64_t earliest, uint64_t latest, uint64_t tries, uint64_t least)
{
    uint64_t now = check_now(c), grain = c->run->env->grain_ns;
    uint64_t from = tries * (least > grain ? least - grain : 0),
             to = 4 * tries * least + SLACK_MS * MSEC + c->stalled_ns;
    check_that(c, now - earliest >= from && now - latest <= to,
               "time to the error: seen %.3f to %.3f ms, expected %.3f to %.3f ms", (double)(now - latest) / 1e6,
               (double)(now - earliest) / 1e6, (double)from / 1e6, (double)to / 1e6);
}

static void within(struct check *c, uint64_t started, uint64_t tries, uint64_t least)
{
    within2(c, started, started, tries, least);
}

static void take_away(struct check *c, struct pair *p, enum gone how)
{
    if (how == DESTROYED)
        check_equal(c, "ibv_destroy_qp", check_release(c, p->s[B].qp), 0);
    else
        check_equal(c, "ibv_modify_qp", pair_move(p, B, how == IN_RESET ? IBV_QPS_RESET : IBV_QPS_ERR), 0);
}

/* Requests to a QP that is not there: the first fails for want of an answer, the others flush. */
static void peer_gone(struct check *c, long how)
{
    struct pair_options o = pair_defaults();
    struct pair p;
    o.timeout = 14, o.retry = 2;
    if (!pair_start(c, &p, &o))
        return;
    take_away(c, &p, (enum gone)how);
    uint64_t started = check_now(c);
    for (uint64_t i = 1; i <= 3; i++)
        check_equal(c, "ibv_post_send",
                    pair_post(&p, A, &(struct op){.id = i, .opcode = IBV_WR_RDMA_WRITE, .len = 100}), 0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_RETRY_EXC_ERR);
    within(c, started, 3, period(14));
    check_wc(c, p.s[A].scq, 2, IBV_WC_WR_FLUSH_ERR);
    check_wc(c, p.s[A].scq, 3, IBV_WC_WR_FLUSH_ERR);
    check_state(c, p.s[A].qp, IBV_QPS_ERR);
    pair_check(&p);
}

enum { COUNT = 8 }; /* arg: timeout * COUNT + retry_cnt */

static void retry_time(struct check *c, long arg)
{
    struct pair_options o = pair_defaults();
    struct pair p;
    o.timeout = (uint8_t)(arg / COUNT), o.retry = (uint8_t)(arg % COUNT);
    if (!pair_start(c, &p, &o))
        return;
    take_away(c, &p, DESTROYED);
    uint64_t started = check_now(c);
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_READ, .len = 100}), 0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_RETRY_EXC_ERR);
    within(c, started, o.retry + 1u, period(o.timeout));
}

/* ibv_modify_qp(3): timeout 0 is no timer at all. */
static void timeout_zero(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    o.timeout = 0, o.retry = 1;
    if (!pair_start(c, &p, &o))
        return;
    take_away(c, &p, DESTROYED);
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 100}),
                0);
    check_quiet(c, p.s[A].scq, 300 * MSEC);
    check_equal(c, "to ERR", pair_move(&p, A, IBV_QPS_ERR), 0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_WR_FLUSH_ERR);
}

/* Not ready at first: the message waits and arrives once there is a receive. */
static void rnr_then_ready(struct check *c, long imm)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct op op = {.id = 1, .opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, .remote = 8192, .len = 9000};
    check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0);
    check_quiet(c, p.s[A].scq, 20 * MSEC);
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, 8192, 9000, 1), 0);
    pair_want(&p, B, 8192, A, 0, 9000);
    check_wc(c, p.s[A].scq, 1, IBV_WC_SUCCESS);
    check_wc(c, p.s[B].rcq, 2, IBV_WC_SUCCESS);
    pair_check(&p);
}

/* rnr_retry 0 fails at once; n after n waits of the receiver's timer (24: 40.96 ms), which is a minimum. */
static void rnr_exhausted(struct check *c, long retries)
{
    struct pair_options o = pair_defaults();
    struct pair p;
    o.min_rnr = 24, o.rnr_retry = (uint8_t)retries;
    if (!pair_start(c, &p, &o))
        return;
    uint64_t started = check_now(c);
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 100}), 0);
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 2, .opcode = IBV_WR_SEND, .len = 100}), 0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    within(c, started, (uint64_t)retries, 40960000);
    check_wc(c, p.s[A].scq, 2, IBV_WC_WR_FLUSH_ERR);
    check_state(c, p.s[A].qp, IBV_QPS_ERR);
}

/* The budget is for one request: what it took for the first is there again for the second. */
static void rnr_budget_afresh(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    o.min_rnr = 30, o.rnr_retry = 1; /* one wait of 328 ms: a busy machine may stop this program for a while */
    if (!pair_start(c, &p, &o))
        return;
    for (uint64_t i = 1; i <= 3; i++) {
        check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = i, .opcode = IBV_WR_SEND, .len = 100}), 0);
        check_quiet(c, p.s[A].scq, 20 * MSEC);
        check_equal(c, "ibv_post_recv", pair_recv(&p, B, i, 8192, 100, 1), 0);
        if (!check_wc(c, p.s[A].scq, i, IBV_WC_SUCCESS))
            return;
    }
}

/* rnr_retry 7 never gives up (ibv_modify_qp(3): 7 means infinite). */
static void rnr_forever(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    o.min_rnr = 1; /* 10 us */
    if (!pair_start(c, &p, &o))
        return;
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 100}), 0);
    check_quiet(c, p.s[A].scq, 200 * MSEC);
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, 8192, 100, 1), 0);
    pair_want(&p, B, 8192, A, 0, 100);
    check_wc(c, p.s[A].scq, 1, IBV_WC_SUCCESS);
    pair_check(&p);
}

/* A QP that waits for a receiver, once through RESET, waits no longer. */
static void rnr_ends_with_reset(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    o.min_rnr = 31; /* 491 ms */
    if (!pair_start(c, &p, &o))
        return;
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = 100}), 0);
    check_quiet(c, p.s[A].scq, 20 * MSEC);
    for (int side = 0; side < 2; side++)
        check_equal(c, "to RESET", pair_move(&p, side, IBV_QPS_RESET), 0);
    if (!pair_connect(&p))
        return;
    uint64_t started = check_now(c);
    pair_want(&p, B, 0, A, 0, 9000);
    pair_do(&p, A, &(struct op){.id = 2, .opcode = IBV_WR_RDMA_WRITE, .len = 9000});
    uint64_t took = check_now(c) - started;
    check_that(c, took < SLACK_MS * MSEC, "time of a WRITE after RESET: seen %.3f ms, expected less than %d",
               (double)took / 1e6, SLACK_MS);
    pair_check(&p);
}

/* WRITEs pass a receiver that has nothing to receive into. */
static void rnr_not_for_writes(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    o.rnr_retry = 0;
    if (!pair_start(c, &p, &o))
        return;
    pair_want(&p, B, 0, A, 0, 9000);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 9000});
    pair_check(&p);
}

/* A failed QP says nothing about others of the same ports. */
static void failure_is_alone(struct check *c, long arg)
{
    (void)arg;
    struct pair p[2];
    struct pair_options o = pair_defaults();
    o.timeout = 12, o.retry = 1;
    if (!pair_start(c, &p[0], &o) || !pair_start(c, &p[1], NULL))
        return;
    take_away(c, &p[0], DESTROYED);
    check_equal(c, "ibv_post_send", pair_post(&p[0], A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 100}),
                0);
    pair_want(&p[1], B, 0, A, 0, 5000);
    pair_do(&p[1], A, &(struct op){.id = 2, .opcode = IBV_WR_RDMA_WRITE, .len = 5000});
    check_wc(c, p[0].s[A].scq, 1, IBV_WC_RETRY_EXC_ERR);
    pair_want(&p[1], B, 9000, A, 0, 5000);
    pair_do(&p[1], A, &(struct op){.id = 3, .opcode = IBV_WR_RDMA_WRITE, .remote = 9000, .len = 5000});
    pair_check(&p[1]);
}

/* The cable of B out: arg = ms until it is back; 0: not before the error. */
static void cable_out(struct check *c, long back_ms)
{
    const struct conformance_env *env = c->run->env;
    struct pair_options o = pair_defaults();
    struct pair p;
    /* Patience for 8 s where it is to be hidden: in real time this program may be kept waiting before it puts the cable back. */
    o.timeout = back_ms ? 18 : 16, o.retry = back_ms ? 7 : 1;
    if (!check_can_cut(c))
        return;
    if (!pair_start(c, &p, &o) || !check_equal(c, "cable out", env->cable(env->arg, B, false), 0))
        return;
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 9000}),
                0);
    if (back_ms) {
        check_quiet(c, p.s[A].scq, (uint64_t)back_ms * MSEC);
        check_equal(c, "cable in", env->cable(env->arg, B, true), 0);
        pair_want(&p, B, 0, A, 0, 9000);
        check_wc(c, p.s[A].scq, 1, IBV_WC_SUCCESS);
    } else {
        check_wc(c, p.s[A].scq, 1, IBV_WC_RETRY_EXC_ERR);
        check_equal(c, "cable in", env->cable(env->arg, B, true), 0);
    }
    check_event(c, B, IBV_EVENT_PORT_ACTIVE, NULL, NULL);
    pair_check(&p);
}

/* The cable of B out before a request: how long until it fails, by the timeout and the retry count alone. Then the port's events, and the
 * same queue pairs connected anew. */
static void cable_time(struct check *c, long arg)
{
    const struct conformance_env *env = c->run->env;
    struct pair_options o = pair_defaults();
    struct pair p;
    o.timeout = (uint8_t)(arg / COUNT), o.retry = (uint8_t)(arg % COUNT);
    if (!check_can_cut(c))
        return;
    if (!pair_start(c, &p, &o) || !check_equal(c, "cable out", env->cable(env->arg, B, false), 0))
        return;
    uint64_t started = check_now(c);
    for (uint64_t i = 1; i <= 2; i++)
        check_equal(c, "ibv_post_send",
                    pair_post(&p, A, &(struct op){.id = i, .opcode = IBV_WR_RDMA_WRITE, .len = 100}), 0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_RETRY_EXC_ERR);
    within(c, started, o.retry + 1u, period(o.timeout));
    check_wc(c, p.s[A].scq, 2, IBV_WC_WR_FLUSH_ERR);
    check_event(c, B, IBV_EVENT_PORT_ERR, NULL, NULL);
    check_equal(c, "cable in", env->cable(env->arg, B, true), 0);
    check_event(c, B, IBV_EVENT_PORT_ACTIVE, NULL, NULL);
    for (int side = 0; side < 2; side++)
        check_equal(c, "to RESET", pair_move(&p, side, IBV_QPS_RESET), 0);
    if (!pair_connect(&p))
        return;
    pair_want(&p, B, 0, A, 0, 9000);
    pair_do(&p, A, &(struct op){.id = 3, .opcode = IBV_WR_RDMA_WRITE, .len = 9000});
    pair_check(&p);
}

/* The cable out in the middle of a stream: the first request without an answer fails that long after the last good one. */
static void cable_out_of_stream(struct check *c, long arg)
{
    enum { DEPTH = 8, PIECE = 60000 };
    const struct conformance_env *env = c->run->env;
    struct pair_options o = pair_defaults();
    struct pair p;
    uint64_t posted = 0, good = 0, last = 0,
             cut = 0; /* cut: before the last answer that came before it; a few come later */
    o.timeout = (uint8_t)(arg / COUNT), o.retry = (uint8_t)(arg % COUNT);
    if (!check_can_cut(c) || !pair_start(c, &p, &o))
        return;
    memcpy(p.s[B].want, p.s[A].want, PIECE);
    for (;;) {
        for (; posted < good + DEPTH; posted++)
            check_equal(c, "ibv_post_send",
                        pair_post(&p, A, &(struct op){.id = posted, .opcode = IBV_WR_RDMA_WRITE, .len = PIECE}), 0);
        if (!check_that(c, check_poll(c, p.s[A].scq, &c->wc, 2 * PATIENCE_S * SEC), "request %llu: no completion",
                        (unsigned long long)good) ||
            c->wc.status != IBV_WC_SUCCESS)
            break;
        check_equal(c, "wr_id", (long)c->wc.wr_id, (long)good++);
        last = check_now(c);
        if (good == 3 * DEPTH && !cut) {
            cut = c->empty_ns;
            check_equal(c, "cable out", env->cable(env->arg, B, false), 0);
        }
        if (!check_that(c, !cut || last < cut + 2 * PATIENCE_S * SEC, "requests still complete with the cable out"))
            break;
    }
    check_that(c, c->wc.status == IBV_WC_RETRY_EXC_ERR && c->wc.wr_id == good,
               "seen request %llu with '%s', expected %llu with '%s'", (unsigned long long)c->wc.wr_id,
               ibv_wc_status_str(c->wc.status), (unsigned long long)good, ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR));
    within2(c, cut, last, o.retry + 1u, period(o.timeout));
    for (uint64_t i = good + 1; i < posted; i++)
        check_wc(c, p.s[A].scq, i, IBV_WC_WR_FLUSH_ERR);
    check_equal(c, "cable in", env->cable(env->arg, B, true), 0);
    check_event(c, B, IBV_EVENT_PORT_ACTIVE, NULL, NULL);
    pair_check(&p);
}

const struct conformance_check conformance_retry_checks[] = {
    {"peer_destroyed", peer_gone, DESTROYED},
    {"peer_in_reset", peer_gone, IN_RESET},
    {"peer_in_err", peer_gone, IN_ERR},
    {"retry_time_once", retry_time, 14 * COUNT + 0},
    {"retry_time_twice", retry_time, 14 * COUNT + 1},
    {"retry_time_four_times", retry_time, 14 * COUNT + 3},
    {"retry_time_longer_timeout", retry_time, 16 * COUNT + 1},
    {"timeout_zero", timeout_zero, 0},
    {"rnr_then_ready", rnr_then_ready, 0},
    {"rnr_write_immediate", rnr_then_ready, 1},
    {"rnr_retry_zero", rnr_exhausted, 0},
    {"rnr_retry_once", rnr_exhausted, 1},
    {"rnr_retry_three_times", rnr_exhausted, 3},
    {"rnr_budget_afresh", rnr_budget_afresh, 0},
    {"rnr_forever", rnr_forever, 0},
    {"rnr_ends_with_reset", rnr_ends_with_reset, 0},
    {"rnr_not_for_writes", rnr_not_for_writes, 0},
    {"failure_is_alone", failure_is_alone, 0},
    {"cable_out_error", cable_out, 0},
    {"cable_out_hidden", cable_out, 300},
    {"cable_time_14_6", cable_time, 14 * COUNT + 6},
    {"cable_time_16_3", cable_time, 16 * COUNT + 3},
    {"cable_time_18_0", cable_time, 18 * COUNT + 0},
    {"cable_out_of_stream", cable_out_of_stream, 16 * COUNT + 2},
    {0},
};
