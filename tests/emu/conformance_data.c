/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_data.c - checks that WRITE, READ and SEND move exactly the right bytes, at every size around the MTU.
 *
 * Part of the list. Each check compares both buffers and their guards whole, so a stray byte shows. next:
 * conformance_queue.c.
 */
#include "conformance.h"

#include <arpa/inet.h>
#include <string.h>

/* Lengths are given as arg: LEN(MTUs, rest). */
enum { STEP = 1000, BIAS = 500 };

static size_t length(const struct check *c, long arg)
{
    return (size_t)((long)(arg / STEP) * (long)c->run->mtu + arg % STEP - BIAS);
}

static void one_transfer(struct check *c, enum ibv_wr_opcode opcode, size_t len, size_t local, size_t remote,
                         int pieces)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct op op = {.id = 1, .opcode = opcode, .local = local, .remote = remote, .len = len, .pieces = pieces};
    if (opcode == IBV_WR_RDMA_READ)
        pair_want(&p, A, local, B, remote, len);
    else
        pair_want(&p, B, remote, A, local, len);
    if (!pair_do(&p, A, &op))
        return;
    check_equal(c, "opcode", c->wc.opcode, opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
    check_equal(c, "qp_num", c->wc.qp_num, p.s[A].qp->qp_num);
    if (opcode == IBV_WR_RDMA_READ)
        check_equal(c, "byte_len", c->wc.byte_len, (long)len);
    pair_check(&p);
}

static void write_length(struct check *c, long arg)
{
    one_transfer(c, IBV_WR_RDMA_WRITE, length(c, arg), 8192, 16384, 0);
}

static void read_length(struct check *c, long arg)
{
    one_transfer(c, IBV_WR_RDMA_READ, length(c, arg), 8192, 16384, 0);
}

static void write_pieces(struct check *c, long arg)
{
    one_transfer(c, IBV_WR_RDMA_WRITE, 3 * c->run->mtu + 77, 1001, 30003, (int)arg);
}

static void read_pieces(struct check *c, long arg)
{
    one_transfer(c, IBV_WR_RDMA_READ, 3 * c->run->mtu + 77, 1001, 30003, (int)arg);
}

static void whole_region(struct check *c, long opcode)
{
    one_transfer(c, (enum ibv_wr_opcode)opcode, BUFFER, 0, 0, 0);
}

/* A SEND of len into a receive of room bytes, both over some SGEs. */
static void one_send(struct check *c, size_t len, size_t room, int pieces, bool imm)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    uint32_t word = (uint32_t)check_random(c);
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, 20001, room, pieces), 0);
    pair_want(&p, B, 20001, A, 333, len);
    struct op op = {.id = 1,
                    .opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
                    .local = 333,
                    .len = len,
                    .imm = word,
                    .pieces = pieces};
    if (!pair_do(&p, A, &op) || !check_equal(c, "opcode", c->wc.opcode, IBV_WC_SEND))
        return;
    if (!check_wc(c, p.s[B].rcq, 2, IBV_WC_SUCCESS))
        return;
    check_equal(c, "receive opcode", c->wc.opcode, IBV_WC_RECV);
    check_equal(c, "byte_len", c->wc.byte_len, (long)len);
    check_equal(c, "qp_num", c->wc.qp_num, p.s[B].qp->qp_num);
    check_equal(c, "IBV_WC_WITH_IMM", (c->wc.wc_flags & IBV_WC_WITH_IMM) != 0, imm);
    if (imm)
        check_equal(c, "immediate", ntohl(c->wc.imm_data), word);
    pair_check(&p);
}

static void send_length(struct check *c, long arg)
{
    one_send(c, length(c, arg), 5 * c->run->mtu, 0, false);
}

static void send_imm(struct check *c, long arg)
{
    one_send(c, length(c, arg), 5 * c->run->mtu, 0, true);
}

static void send_pieces(struct check *c, long arg)
{
    one_send(c, 3 * c->run->mtu + 77, 3 * c->run->mtu + 77, (int)arg, false);
}

/* IBA 9.9.3: the receiver gets a local length error and answers NAK Invalid Request. */
static void send_too_long(struct check *c, long len)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, 0, (size_t)len - 1, 1), 0);
    check_equal(c, "ibv_post_send", pair_post(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_SEND, .len = (size_t)len}),
                0);
    check_wc(c, p.s[A].scq, 1, IBV_WC_REM_INV_REQ_ERR);
    check_wc(c, p.s[B].rcq, 2, IBV_WC_LOC_LEN_ERR);
    check_state(c, p.s[A].qp, IBV_QPS_ERR);
    /* The receive's own bytes are undefined after an error, those around it are not. */
    pair_put(&p, B, 0, p.s[B].want, (size_t)len - 1);
    pair_check(&p);
}

static void write_imm(struct check *c, long arg)
{
    struct pair p;
    size_t len = length(c, arg);
    if (!pair_start(c, &p, NULL))
        return;
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, 200000, 100, 1), 0);
    pair_want(&p, B, 4096, A, 0, len);
    struct op op = {.id = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .remote = 4096, .len = len, .imm = 0xdeadbeef};
    if (!pair_do(&p, A, &op) || !check_wc(c, p.s[B].rcq, 2, IBV_WC_SUCCESS))
        return;
    check_equal(c, "receive opcode", c->wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    check_equal(c, "IBV_WC_WITH_IMM", (c->wc.wc_flags & IBV_WC_WITH_IMM) != 0, 1);
    check_equal(c, "immediate", ntohl(c->wc.imm_data), 0xdeadbeef);
    check_equal(c, "byte_len", c->wc.byte_len, (long)len);
    pair_check(&p);
}

/* The receive's buffer is not touched and needs no room: the data goes to the WRITE's address. */
static void write_imm_empty_recv(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    check_equal(c, "ibv_post_recv without SGE", pair_recv(&p, B, 2, 0, 0, 0), 0);
    pair_want(&p, B, 100, A, 0, 9000);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .remote = 100, .len = 9000});
    check_wc(c, p.s[B].rcq, 2, IBV_WC_SUCCESS);
    pair_check(&p);
}

/* A plain WRITE takes no receive. */
static void write_takes_no_recv(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, 65536, 100, 1), 0);
    pair_want(&p, B, 0, A, 0, 64);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 64});
    check_quiet(c, p.s[B].rcq, 10 * MSEC);
    pair_check(&p);
}

/* Receives are used in the order of posting. */
static void recv_order(struct check *c, long count)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    for (long i = 0; i < count; i++)
        check_equal(c, "ibv_post_recv", pair_recv(&p, B, (uint64_t)i, (size_t)(i * 4096), 4096, 1), 0);
    for (long i = 0; i < count; i++) {
        size_t len = (size_t)(check_random(c) % 4096);
        pair_want(&p, B, (size_t)(i * 4096), A, (size_t)(i * 1000), len);
        check_equal(
            c, "ibv_post_send",
            pair_post(&p, A,
                      &(struct op){.id = (uint64_t)i, .opcode = IBV_WR_SEND, .local = (size_t)(i * 1000), .len = len}),
            0);
    }
    for (long i = 0; i < count; i++)
        if (!check_wc(c, p.s[A].scq, (uint64_t)i, IBV_WC_SUCCESS) ||
            !check_wc(c, p.s[B].rcq, (uint64_t)i, IBV_WC_SUCCESS))
            return;
    pair_check(&p);
}

/* IBA 9.5 (ordering): a READ sees what earlier WRITEs of its QP wrote. */
static void read_sees_writes(struct check *c, long rounds)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    for (long i = 0; i < rounds; i++) {
        size_t len = 3 * c->run->mtu, to = 131072;
        uint64_t fresh = check_random(c);
        pair_put(&p, A, 500, &fresh, sizeof fresh);
        pair_want(&p, B, 0, A, 0, len);
        pair_want(&p, A, to, A, 0, len);
        struct op write = {.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = len, .unsignaled = true};
        struct op read = {.id = 2, .opcode = IBV_WR_RDMA_READ, .local = to, .len = len};
        check_equal(c, "ibv_post_send", pair_post(&p, A, &write), 0);
        if (!pair_do(&p, A, &read) || !pair_check(&p))
            return;
    }
}

/* A fenced WRITE starts after the READ before it has ended, so it sends what the READ brought. */
static void fence_after_read(struct check *c, long rounds)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    for (long i = 0; i < rounds; i++) {
        size_t len = 4 * c->run->mtu, to = 131072;
        uint64_t fresh = check_random(c);
        pair_put(&p, B, 500, &fresh, sizeof fresh);
        pair_want(&p, A, 0, B, 0, len);
        pair_want(&p, B, to, B, 0, len);
        struct op read = {.id = 1, .opcode = IBV_WR_RDMA_READ, .len = len, .unsignaled = true};
        struct op write = {.id = 2, .opcode = IBV_WR_RDMA_WRITE, .remote = to, .len = len, .flags = IBV_SEND_FENCE};
        check_equal(c, "ibv_post_send", pair_post(&p, A, &read), 0);
        if (!pair_do(&p, A, &write) || !pair_check(&p))
            return;
    }
}

/* Two writes to the same place: the later one stays. */
static void write_order(struct check *c, long rounds)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    for (long i = 0; i < rounds; i++) {
        size_t first = (size_t)(check_random(c) % 50000), second = (size_t)(check_random(c) % 50000);
        size_t len = 2 * c->run->mtu + 5;
        struct op w1 = {
            .id = 1, .opcode = IBV_WR_RDMA_WRITE, .local = first, .remote = 9, .len = len, .unsignaled = true};
        struct op w2 = {.id = 2, .opcode = IBV_WR_RDMA_WRITE, .local = second, .remote = 9, .len = len};
        pair_want(&p, B, 9, A, second, len);
        check_equal(c, "ibv_post_send", pair_post(&p, A, &w1), 0);
        if (!pair_do(&p, A, &w2) || !pair_check(&p))
            return;
    }
}

/* Both ends on one port: what a process uses to reach its own memory in order with its peers' requests. */
static void loopback(struct check *c, long opcode)
{
    struct pair_options o = pair_defaults();
    struct pair p;
    o.loopback = true;
    if (!pair_start(c, &p, &o))
        return;
    struct op op = {.id = 1, .opcode = (enum ibv_wr_opcode)opcode, .local = 4096, .remote = 4096, .len = 30000};
    if (opcode == IBV_WR_RDMA_READ)
        pair_want(&p, A, op.local, B, op.remote, op.len);
    else
        pair_want(&p, B, op.remote, A, op.local, op.len);
    if (opcode == IBV_WR_SEND)
        check_equal(c, "ibv_post_recv", pair_recv(&p, B, 2, op.remote, op.len, 1), 0);
    pair_do(&p, A, &op);
    if (opcode == IBV_WR_SEND)
        check_wc(c, p.s[B].rcq, 2, IBV_WC_SUCCESS);
    pair_check(&p);
}

/* One QP that is its own peer. */
static void self_connected(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    struct pair p;
    struct ibv_qp_attr attr;
    o.loopback = true;
    if (!pair_open(c, &p, &o) || !check_equal(c, "to INIT", pair_step(&p, A, IBV_QPS_INIT, 0), 0))
        return;
    int mask = pair_attributes(&p, A, IBV_QPS_RTR, &attr);
    attr.dest_qp_num = p.s[A].qp->qp_num;
    attr.rq_psn = p.s[A].psn;
    if (!check_equal(c, "to RTR", ibv_modify_qp(p.s[A].qp, &attr, mask), 0) ||
        !check_equal(c, "to RTS", pair_step(&p, A, IBV_QPS_RTS, 0), 0))
        return;
    struct op op = {.id = 1, .opcode = IBV_WR_RDMA_WRITE, .local = 4096, .len = 30000, .rkey = p.s[A].mr->rkey};
    op.remote_addr = pair_address(&p, A, 100000);
    pair_want(&p, A, 100000, A, op.local, op.len);
    pair_do(&p, A, &op);
    pair_check(&p);
}

#define LEN(mtus, rest) ((mtus)*STEP + BIAS + (rest))

const struct conformance_check conformance_data_checks[] = {
    {"write_zero", write_length, LEN(0, 0)},
    {"write_one_byte", write_length, LEN(0, 1)},
    {"write_mtu_minus_one", write_length, LEN(1, -1)},
    {"write_mtu", write_length, LEN(1, 0)},
    {"write_crosses_mtu", write_length, LEN(1, 1)},
    {"write_five_mtus", write_length, LEN(5, 0)},
    {"write_nine_mtus_and_some", write_length, LEN(9, 13)},
    {"write_unaligned", write_pieces, 1},
    {"write_gathers", write_pieces, 4},
    {"write_whole_region", whole_region, IBV_WR_RDMA_WRITE},
    {"read_zero", read_length, LEN(0, 0)},
    {"read_one_byte", read_length, LEN(0, 1)},
    {"read_mtu_minus_one", read_length, LEN(1, -1)},
    {"read_mtu", read_length, LEN(1, 0)},
    {"read_crosses_mtu", read_length, LEN(1, 1)},
    {"read_five_mtus", read_length, LEN(5, 0)},
    {"read_nine_mtus_and_some", read_length, LEN(9, 13)},
    {"read_unaligned", read_pieces, 1},
    {"read_scatters", read_pieces, 4},
    {"read_whole_region", whole_region, IBV_WR_RDMA_READ},
    {"send_zero", send_length, LEN(0, 0)},
    {"send_one_byte", send_length, LEN(0, 1)},
    {"send_mtu", send_length, LEN(1, 0)},
    {"send_crosses_mtu", send_length, LEN(1, 1)},
    {"send_five_mtus", send_length, LEN(5, 0)},
    {"send_immediate", send_imm, LEN(1, 1)},
    {"send_immediate_zero", send_imm, LEN(0, 0)},
    {"send_gathers_and_scatters", send_pieces, 4},
    {"too_long_send", send_too_long, 100},
    {"too_long_send_over_mtus", send_too_long, 20000},
    {"write_immediate", write_imm, LEN(2, 5)},
    {"write_immediate_zero", write_imm, LEN(0, 0)},
    {"write_immediate_into_empty_recv", write_imm_empty_recv, 0},
    {"write_takes_no_recv", write_takes_no_recv, 0},
    {"recv_order", recv_order, 32},
    {"read_sees_writes", read_sees_writes, 20},
    {"fence_after_read", fence_after_read, 20},
    {"write_order", write_order, 20},
    {"loopback_write", loopback, IBV_WR_RDMA_WRITE},
    {"loopback_read", loopback, IBV_WR_RDMA_READ},
    {"loopback_send", loopback, IBV_WR_SEND},
    {"loopback_self_connected", self_connected, 0},
    {0},
};
