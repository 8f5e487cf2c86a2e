/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.c - see pairs.h. Called by the tests beside it; next: libibverbs, whichever the program has.
 */
#include "pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pairs_name {
    uint64_t addr;
    uint32_t rkey, qpn;
    union ibv_gid gid;
};

static int pairs_make(struct pairs *p, int dev)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {PAIRS_DEPTH, PAIRS_DEPTH, 1, 1, 0}, .sq_sig_all = 1};
    struct ibv_device **list;
    int n = 0;

    list = ibv_get_device_list(&n);
    if (!list || n <= dev)
        return -1;
    p->ctx = ibv_open_device(list[dev]);
    ibv_free_device_list(list);
    p->pd = p->ctx ? ibv_alloc_pd(p->ctx) : NULL;
    p->cq = p->pd ? ibv_create_cq(p->ctx, 2 * PAIRS_DEPTH * REAL_PROCS, NULL, NULL, 0) : NULL;
    if (!p->given)
        p->bytes = aligned_alloc(4096, PAIRS_BYTES);
    if (!p->cq || !p->bytes)
        return -1;
    if (!p->given)
        memset(p->bytes, 0, PAIRS_BYTES);
    p->mr = ibv_reg_mr(p->pd, p->bytes, PAIRS_BYTES,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC);
    init.send_cq = init.recv_cq = p->cq;
    for (int i = 0; i < p->run->n; i++) {
        p->qp[i] = ibv_create_qp(p->pd, &init);
        if (!p->qp[i])
            return -1;
    }
    return p->mr ? 0 : -1;
}

static int pairs_connect(struct ibv_qp *qp, const struct pairs_name *peer)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags =
                                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
    int rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_4096;
    a.dest_qp_num = peer->qpn;
    a.max_dest_rd_atomic = a.max_rd_atomic = 16;
    a.min_rnr_timer = 1;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = peer->gid;
    a.ah_attr.grh.hop_limit = 64;
    rc = rc ? rc
            : ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a.qp_state = IBV_QPS_RTS;
    a.timeout = PAIRS_TIMEOUT;
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    return rc ? rc
              : ibv_modify_qp(qp, &a,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_MAX_QP_RD_ATOMIC);
}

int pairs_open(struct pairs *p, struct real *r, int me, int dev)
{
    return pairs_open_on(p, r, me, dev, NULL);
}

int pairs_open_on(struct pairs *p, struct real *r, int me, int dev, void *memory)
{
    struct pairs_name mine[REAL_PROCS], theirs[REAL_PROCS];
    bool ok;

    *p = (struct pairs){.run = r, .me = me, .bytes = memory, .given = memory != NULL};
    ok = real_check(r, me, pairs_make(p, dev) == 0, "cannot make the verbs objects");
    for (int i = 0; ok && i < r->n; i++) {
        mine[i] = (struct pairs_name){(uintptr_t)p->bytes, p->mr->rkey, p->qp[i]->qp_num, {{0}}};
        ok = real_check(r, me, ibv_query_gid(p->ctx, 1, 0, &mine[i].gid) == 0, "no GID");
    }
    if (!ok || real_alltoall(r, me, mine, theirs, sizeof(mine[0])))
        return -1;
    for (int i = 0; i < r->n; i++) {
        p->addr[i] = theirs[i].addr;
        p->rkey[i] = theirs[i].rkey;
        if (!real_check(r, me, pairs_connect(p->qp[i], &theirs[i]) == 0, "cannot connect"))
            return -1;
    }
    return real_barrier(r);
}

void pairs_close(struct pairs *p)
{
    bool ok = true;

    for (int i = 0; i < p->run->n; i++)
        ok &= ibv_destroy_qp(p->qp[i]) == 0;
    ok &= ibv_dereg_mr(p->mr) == 0 && ibv_destroy_cq(p->cq) == 0 && ibv_dealloc_pd(p->pd) == 0;
    real_check(p->run, p->me, ok && ibv_close_device(p->ctx) == 0, "cannot close what was opened");
    if (!p->given)
        free(p->bytes);
}

int pairs_post(struct pairs *p, int to, enum ibv_wr_opcode op, size_t local, size_t remote, uint32_t len,
               uint64_t operand)
{
    struct ibv_sge sge = {(uintptr_t)p->bytes + local, len, p->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = (uint64_t)to, .sg_list = &sge, .num_sge = 1, .opcode = op};

    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = p->addr[to] + remote;
        wr.wr.atomic.rkey = p->rkey[to];
        wr.wr.atomic.compare_add = operand;
    } else {
        wr.wr.rdma.remote_addr = p->addr[to] + remote;
        wr.wr.rdma.rkey = p->rkey[to];
    }
    return ibv_post_send(p->qp[to], &wr, &bad);
}

bool pairs_poll(struct pairs *p, struct ibv_wc *wc)
{
    uint64_t end = real_now() + 20000000000u;
    int n;

    do
        n = ibv_poll_cq(p->cq, 1, wc);
    while (n == 0 && real_now() < end);
    return n == 1;
}

int pairs_do(struct pairs *p, int to, enum ibv_wr_opcode op, size_t local, size_t remote, uint32_t len,
             uint64_t operand)
{
    struct ibv_wc wc;
    int rc = pairs_post(p, to, op, local, remote, len, operand);

    if (!real_check(p->run, p->me, rc == 0, "a request was refused") ||
        !real_check(p->run, p->me, pairs_poll(p, &wc), "no completion") ||
        !real_check(p->run, p->me, wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status)))
        return -1;
    return 0;
}

static unsigned char pairs_byte(int from, int number, size_t i)
{
    return (unsigned char)(((size_t)from * 31 + (size_t)number * 977 + i) * 2654435761u >> 13);
}

void pairs_fill(unsigned char *bytes, int from, int number, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = pairs_byte(from, number, i);
}

bool pairs_holds(const unsigned char *bytes, int from, int number, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != pairs_byte(from, number, i))
            return false;
    }
    return true;
}

static bool pairs_post_receive(struct pairs *p, int other, int i)
{
    struct ibv_sge sge = {(uintptr_t)p->bytes + (size_t)i * PAIRS_EACH, PAIRS_EACH, p->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 100 + (uint64_t)i, .sg_list = &sge, .num_sge = 1};

    return real_check(p->run, p->me, ibv_post_recv(p->qp[other], &wr, &bad) == 0, "a receive was refused");
}

int pairs_exchange(struct pairs *p, int other, unsigned char *see, bool ready)
{
    const uint32_t len = PAIRS_EACH - 384; /* not whole packets */
    int got = 0, sent = 0;

    for (int i = 0; i < PAIRS_MESSAGES; i++)
        pairs_fill(see + PAIRS_FROM + i * PAIRS_EACH, p->me, i, len);
    for (int i = 0; ready && i < PAIRS_MESSAGES; i++)
        pairs_post_receive(p, other, i);
    if (ready && real_barrier(p->run))
        return -1;
    for (int i = 0; i < PAIRS_MESSAGES; i++) {
        if (!ready)
            pairs_post_receive(p, other, i);
        real_check(p->run, p->me,
                   pairs_post(p, other, IBV_WR_SEND, PAIRS_FROM + (size_t)i * PAIRS_EACH, 0, len, 0) == 0,
                   "a send was refused");
    }
    while (got < PAIRS_MESSAGES || sent < PAIRS_MESSAGES) {
        struct ibv_wc wc;

        if (!real_check(p->run, p->me, pairs_poll(p, &wc) && wc.status == IBV_WC_SUCCESS, "a message failed"))
            return -1;
        if (wc.opcode == IBV_WC_SEND) {
            sent++;
            continue;
        }
        real_check(p->run, p->me, wc.wr_id == 100 + (uint64_t)got && wc.byte_len == len, "messages out of order");
        real_check(p->run, p->me, pairs_holds(see + got * PAIRS_EACH, other, got, len), "received, but not there");
        got++;
    }
    return real_barrier(p->run);
}
