/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.c - see plain.h. Called by test_verbs*.c; next: the emulator.
 */
#include "plain.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
enum { PORTS = 16 };

static char why[2048], notes[4096];
static struct emu_sim_port counters[PORTS];
static uint64_t trace;

struct plain_path plain_defaults(void)
{
    return (struct plain_path){.psn = 0x123456,
                               .timeout = 14, /* 67 ms */
                               .retry = 7,
                               .rnr_retry = 7,
                               .min_rnr = 12, /* 0.64 ms */
                               .rd_atomic = 16,
                               .dest_rd_atomic = 16,
                               .mtu = IBV_MTU_4096};
}

const struct emu_sim_api *plain_emu(void)
{
    return emu_sim_api(EMU_SIM_VERSION);
}

int plain_run(const char *spec, emu_sim_main_fn fn, uint64_t limit_ns)
{
    struct emu_sim_options o = {sizeof(o), spec, 7, EMU_SIM_COROUTINES, limit_ns};
    struct emu_sim *sim;
    int rc;

    notes[0] = why[0] = '\0';
    memset(counters, 0, sizeof(counters));
    rc = plain_emu()->open(&o, &sim, why, sizeof(why));
    if (rc)
        return rc;
    rc = plain_emu()->run(sim, fn, NULL, why, sizeof(why));
    for (int i = 0; i < PORTS; i++)
        plain_emu()->port(sim, i, &counters[i]);
    trace = plain_emu()->trace_hash(sim);
    plain_emu()->close(sim);
    return rc;
}

void plain_run_gives(int rc, const char *spec, emu_sim_main_fn fn, uint64_t limit_ns)
{
    int seen = plain_run(spec, fn, limit_ns);

    if (notes[0] || seen != rc)
        fail_msg("run gave %d, expected %d; %s\n%s", seen, rc, why, notes);
}

const char *plain_why(void)
{
    return why;
}

const char *plain_notes(void)
{
    return notes;
}

struct emu_sim_port plain_counters(int port)
{
    return counters[port];
}

uint64_t plain_trace(void)
{
    return trace;
}

bool plain_check(bool ok, const char *format, ...)
{
    size_t used = strlen(notes);
    va_list args;

    if (ok)
        return true;
    va_start(args, format);
    vsnprintf(notes + used, sizeof(notes) - used, format, args);
    va_end(args);
    used = strlen(notes);
    snprintf(notes + used, sizeof(notes) - used, "\n");
    return false;
}

bool plain_equal(const char *what, long long seen, long long expected)
{
    return plain_check(seen == expected, "%s: seen %lld, expected %lld", what, seen, expected);
}

bool plain_open(struct plain_port *p, int device, size_t len, int cqe)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);

    p->pe = plain_emu()->pe();
    p->len = (len + 4095) / 4096 * 4096;
    p->ctx = list && device < count ? ibv_open_device(list[device]) : NULL;
    ibv_free_device_list(list);
    p->buf = aligned_alloc(4096, p->len);
    if (!plain_check(p->ctx && p->buf, "device %d of %d cannot be opened", device, count))
        return false;
    memset(p->buf, 0, p->len);
    p->pd = ibv_alloc_pd(p->ctx);
    p->cq = ibv_create_cq(p->ctx, cqe, NULL, NULL, 0);
    p->mr = p->pd ? ibv_reg_mr(p->pd, p->buf, p->len, ALL) : NULL;
    return plain_check(p->cq && p->mr, "CQ or MR: %s", strerror(errno)) &&
           plain_equal("ibv_query_gid", ibv_query_gid(p->ctx, 1, 0, &p->gid), 0);
}

void plain_close(struct plain_port *p)
{
    while (p->n_qps)
        ibv_destroy_qp(p->qp[--p->n_qps]);
    if (p->cq)
        ibv_destroy_cq(p->cq);
    if (p->mr)
        ibv_dereg_mr(p->mr);
    if (p->pd)
        ibv_dealloc_pd(p->pd);
    if (p->ctx)
        ibv_close_device(p->ctx);
    free(p->buf);
    *p = (struct plain_port){0};
}

struct ibv_qp *plain_qp(struct plain_port *p)
{
    struct ibv_qp_init_attr init = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = PLAIN_DEPTH, .max_recv_wr = PLAIN_DEPTH, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = p->n_qps < PLAIN_QPS ? ibv_create_qp(p->pd, &init) : NULL;

    if (plain_check(qp, "no queue pair"))
        p->qp[p->n_qps++] = qp;
    return qp;
}

int plain_move(struct ibv_qp *qp, enum ibv_qp_state to)
{
    struct ibv_qp_attr attr = {.qp_state = to};

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

int plain_connect_to(struct ibv_qp *qp, uint32_t qpn, const union ibv_gid *gid, const struct plain_path *path)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = ALL,
                               .path_mtu = path->mtu,
                               .dest_qp_num = qpn,
                               .rq_psn = path->psn,
                               .sq_psn = path->psn,
                               .max_rd_atomic = path->rd_atomic,
                               .max_dest_rd_atomic = path->dest_rd_atomic,
                               .min_rnr_timer = path->min_rnr,
                               .timeout = path->timeout,
                               .retry_cnt = path->retry,
                               .rnr_retry = path->rnr_retry,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}}};
    int rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    attr.qp_state = IBV_QPS_RTR;
    if (rc == 0)
        rc = ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    if (rc == 0)
        rc = ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                               IBV_QP_MAX_QP_RD_ATOMIC);
    return rc;
}

bool plain_connect(struct plain_port *a, struct ibv_qp *qa, struct plain_port *b, struct ibv_qp *qb,
                   const struct plain_path *path)
{
    struct plain_path usual = plain_defaults();

    path = path ? path : &usual;
    return plain_equal("connecting a", plain_connect_to(qa, qb->qp_num, &b->gid, path), 0) &&
           plain_equal("connecting b", plain_connect_to(qb, qa->qp_num, &a->gid, path), 0);
}

bool plain_pair(struct plain_port p[2], size_t len, const struct plain_path *path)
{
    memset(p, 0, 2 * sizeof(*p));
    return plain_open(&p[0], 0, len, 256) && plain_open(&p[1], 1, len, 256) && plain_qp(&p[0]) && plain_qp(&p[1]) &&
           plain_connect(&p[0], p[0].qp[0], &p[1], p[1].qp[0], path);
}

uint64_t plain_address(const struct plain_port *p, size_t offset)
{
    return (uint64_t)(uintptr_t)(p->buf + offset) + plain_emu()->shift(p->pe);
}

int plain_post(struct plain_port *from, struct ibv_qp *qp, const struct plain_port *to, struct plain_wr w)
{
    const struct ibv_mr *mr = w.mr ? w.mr : from->mr;
    struct ibv_sge sge = {(uint64_t)(uintptr_t)mr->addr + w.local, (uint32_t)w.len, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = w.id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = w.op,
                             .send_flags = w.unsignaled ? 0 : IBV_SEND_SIGNALED};
    uint64_t address = w.address ? w.address : plain_address(to, w.remote);
    uint32_t rkey = w.rkey ? w.rkey : to->mr->rkey;
    struct ibv_send_wr *bad;

    if (w.op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = w.add;
    } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = rkey;
    }
    return ibv_post_send(qp, &wr, &bad);
}

int plain_recv(struct plain_port *p, struct ibv_qp *qp, uint64_t id, size_t offset, size_t len)
{
    struct ibv_sge sge = {(uint64_t)(uintptr_t)(p->buf + offset), (uint32_t)len, p->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_recv(qp, &wr, &bad);
}

int plain_wait(struct plain_port *p)
{
    int n;

    while ((n = ibv_poll_cq(p->cq, 1, &p->wc)) == 0)
        ;
    return n < 0 ? -1 : (int)p->wc.status;
}

bool plain_done(struct plain_port *p, uint64_t id, enum ibv_wc_status status)
{
    int seen = plain_wait(p);

    if (seen < 0)
        return plain_check(false, "request %llu: the run was given up", (unsigned long long)id);
    return plain_check(seen == (int)status && p->wc.wr_id == id,
                       "completion: seen request %llu with '%s', expected %llu with '%s'",
                       (unsigned long long)p->wc.wr_id, ibv_wc_status_str(p->wc.status), (unsigned long long)id,
                       ibv_wc_status_str(status));
}
