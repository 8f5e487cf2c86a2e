/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_check.c - what checks are written with: expectations, waits with deadlines, objects that free themselves.
 *
 * A failed expectation is noted and the check goes on or returns; nothing jumps, and all it made is released by the
 * runner. Called by all parts of the list. next: conformance_pair.c.
 */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool check_that(struct check *c, bool ok, const char *format, ...)
{
    if (ok)
        return true;
    size_t used = strlen(c->said);
    va_list args;
    va_start(args, format);
    vsnprintf(c->said + used, sizeof c->said - used, format, args);
    va_end(args);
    used = strlen(c->said);
    snprintf(c->said + used, sizeof c->said - used, "\n");
    c->problems++;
    return false;
}

bool check_equal(struct check *c, const char *what, long seen, long expected)
{
    return check_that(c, seen == expected, "%s: seen %ld, expected %ld", what, seen, expected);
}

void check_skip(struct check *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->skip, sizeof c->skip, format, args);
    va_end(args);
}

bool check_can_cut(struct check *c)
{
    const struct conformance_env *env = c->run->env;
    if (!env->cable)
        check_skip(c, "no way to take the cable out here");
    else if (!strcmp(env->device[A], env->device[B]) && env->port[A] == env->port[B])
        check_skip(c, "both ends are on one port");
    return !c->skip[0];
}

/* splitmix64 */
uint64_t check_random(struct check *c)
{
    uint64_t z = c->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

uint64_t check_now(struct check *c)
{
    return c->run->env->now(c->run->env->arg);
}

void check_wait(struct check *c, uint64_t deadline_ns)
{
    c->run->env->wait(c->run->env->arg, deadline_ns);
}

void check_sleep(struct check *c, uint64_t ns)
{
    uint64_t end = check_now(c) + ns;
    while (check_now(c) < end)
        check_wait(c, end);
}

static void *made(struct check *c, enum made_kind kind, void *thing, const char *what)
{
    if (!check_that(c, thing != NULL, "%s: %s", what, strerror(errno)))
        return NULL;
    if (c->made_count == sizeof c->made / sizeof c->made[0]) {
        fprintf(stderr, "conformance: a check makes more objects than struct check can hold\n");
        abort();
    }
    c->made[c->made_count++] = (struct made){kind, thing};
    return thing;
}

void *check_memory(struct check *c, size_t bytes)
{
    return made(c, MADE_MEMORY, aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), "aligned_alloc");
}

struct ibv_pd *check_pd(struct check *c, int side)
{
    return made(c, MADE_PD, ibv_alloc_pd(c->run->ctx[side]), "ibv_alloc_pd");
}

struct ibv_mr *check_mr(struct check *c, struct ibv_pd *pd, void *ptr, size_t bytes, int access)
{
    return made(c, MADE_MR, ibv_reg_mr(pd, ptr, bytes, access), "ibv_reg_mr");
}

struct ibv_comp_channel *check_channel(struct check *c, int side)
{
    struct ibv_comp_channel *channel = made(c, MADE_CHANNEL, ibv_create_comp_channel(c->run->ctx[side]), "channel");
    if (channel && fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) < 0)
        check_that(c, false, "completion channel's descriptor: %s", strerror(errno));
    return channel;
}

struct ibv_cq *check_cq(struct check *c, int side, int cqe, struct ibv_comp_channel *channel)
{
    return made(c, MADE_CQ, ibv_create_cq(c->run->ctx[side], cqe, c, channel, 0), "ibv_create_cq");
}

struct ibv_srq *check_srq(struct check *c, struct ibv_pd *pd, uint32_t wr, uint32_t sge)
{
    struct ibv_srq_init_attr init = {.srq_context = c, .attr = {.max_wr = wr, .max_sge = sge}};
    return made(c, MADE_SRQ, ibv_create_srq(pd, &init), "ibv_create_srq");
}

struct ibv_qp *check_qp(struct check *c, struct ibv_pd *pd, struct ibv_qp_init_attr *want)
{
    return made(c, MADE_QP, ibv_create_qp(pd, want), "ibv_create_qp");
}

struct ibv_ah *check_ah(struct check *c, struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    return made(c, MADE_AH, ibv_create_ah(pd, attr), "ibv_create_ah");
}

struct ibv_ah *check_ah_from(struct check *c, struct ibv_pd *pd, int side, struct ibv_wc *wc, void *grh)
{
    return made(c, MADE_AH, ibv_create_ah_from_wc(pd, wc, grh, (uint8_t)c->run->env->port[side]),
                "ibv_create_ah_from_wc");
}

static int release(struct made m)
{
    switch (m.kind) {
    case MADE_MEMORY:
        free(m.thing);
        return 0;
    case MADE_PD:
        return ibv_dealloc_pd(m.thing);
    case MADE_MR:
        return ibv_dereg_mr(m.thing);
    case MADE_CHANNEL:
        return ibv_destroy_comp_channel(m.thing);
    case MADE_CQ:
        return ibv_destroy_cq(m.thing);
    case MADE_SRQ:
        return ibv_destroy_srq(m.thing);
    case MADE_QP:
        return ibv_destroy_qp(m.thing);
    case MADE_AH:
        return ibv_destroy_ah(m.thing);
    }
    return EINVAL;
}

int check_release(struct check *c, void *thing)
{
    for (int i = c->made_count - 1; i >= 0; i--) {
        if (c->made[i].thing != thing)
            continue;
        int err = release(c->made[i]);
        if (!err) {
            c->made_count--;
            memmove(&c->made[i], &c->made[i + 1], (size_t)(c->made_count - i) * sizeof c->made[0]);
        }
        return err;
    }
    return ENOENT;
}

void check_release_all(struct check *c)
{
    /* In ERR first: a device may keep packets queued for a live QP, and rxe's destroy waits for them. */
    for (int i = 0; i < c->made_count; i++)
        if (c->made[i].kind == MADE_QP)
            ibv_modify_qp(c->made[i].thing, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE);
    check_events_drop(c);
    while (c->made_count) {
        struct made m = c->made[--c->made_count];
        int err = release(m);
        check_that(c, !err, "release of a thing of kind %d: %s", (int)m.kind, strerror(err));
    }
}

enum { STALL_MS = 10 }; /* 500 times a nap */

/* A nap between two polls. By a real clock it is a short one, so a long one was the machine's doing. */
static void check_nap(struct check *c, uint64_t end)
{
    uint64_t before = check_now(c);
    check_wait(c, end);
    uint64_t took = check_now(c) - before;
    if (c->run->env->grain_ns && took > STALL_MS * MSEC)
        c->stalled_ns += took;
}

bool check_poll(struct check *c, struct ibv_cq *cq, struct ibv_wc *wc, uint64_t timeout_ns)
{
    uint64_t end = check_now(c) + timeout_ns;
    for (;;) {
        int n = ibv_poll_cq(cq, 1, wc);
        if (n > 0)
            return true;
        c->empty_ns = check_now(c);
        bool late = c->empty_ns >= end;
        /* Also after the last empty poll: in virtual time a second one with nothing in between would sleep for ever. */
        check_nap(c, end);
        if (!check_that(c, n == 0, "ibv_poll_cq: seen %d", n) || late)
            return false;
    }
}

bool check_wc2(struct check *c, struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status s1, enum ibv_wc_status s2)
{
    if (!check_that(c, check_poll(c, cq, &c->wc, (uint64_t)c->patience_ms * MSEC),
                    "request %llu: no completion in %d ms", (unsigned long long)wr_id, c->patience_ms))
        return false;
    bool right = c->wc.status == s1 || c->wc.status == s2;
    return check_that(c, c->wc.wr_id == wr_id && right,
                      "completion: seen request %llu with '%s' (vendor %#x), expected %llu with '%s'",
                      (unsigned long long)c->wc.wr_id, ibv_wc_status_str(c->wc.status), c->wc.vendor_err,
                      (unsigned long long)wr_id, ibv_wc_status_str(s1));
}

bool check_wc(struct check *c, struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
    return check_wc2(c, cq, wr_id, status, status);
}

bool check_quiet(struct check *c, struct ibv_cq *cq, uint64_t ns)
{
    struct ibv_wc wc;
    if (!check_poll(c, cq, &wc, ns))
        return true;
    return check_that(c, false, "completion of request %llu with '%s', expected none", (unsigned long long)wc.wr_id,
                      ibv_wc_status_str(wc.status));
}

static bool is_qp_event(enum ibv_event_type type)
{
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_QP_ACCESS_ERR ||
           type == IBV_EVENT_COMM_EST || type == IBV_EVENT_SQ_DRAINED || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

bool check_event(struct check *c, int side, enum ibv_event_type type, const struct ibv_qp *qp, const struct ibv_cq *cq)
{
    uint64_t end = check_now(c) + (uint64_t)c->patience_ms * MSEC;
    char seen[256] = "";
    do {
        struct ibv_async_event e;
        if (ibv_get_async_event(c->run->ctx[side], &e)) {
            check_wait(c, end);
            continue;
        }
        bool right = e.event_type == type && (!is_qp_event(type) || e.element.qp == qp) &&
                     (type != IBV_EVENT_CQ_ERR || e.element.cq == cq);
        ibv_ack_async_event(&e);
        if (right)
            return true;
        size_t used = strlen(seen);
        snprintf(seen + used, sizeof seen - used, "%s, ", ibv_event_type_str(e.event_type));
    } while (check_now(c) < end);
    return check_that(c, false, "events seen: %snothing more, expected '%s' in %d ms", seen, ibv_event_type_str(type),
                      c->patience_ms);
}

void check_events_drop(struct check *c)
{
    struct ibv_async_event e;
    for (int side = 0; side < 2; side++)
        while (!ibv_get_async_event(c->run->ctx[side], &e))
            ibv_ack_async_event(&e);
}

bool check_state(struct check *c, struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {0};
    struct ibv_qp_init_attr init = {0};
    int err = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
    return check_equal(c, "ibv_query_qp", err, 0) && check_equal(c, "QP state", attr.qp_state, state);
}
