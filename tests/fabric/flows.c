/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flows.c - see flows.h. Called by test_buffer.c and test_bus.c; next: plain.c.
 */
#include "flows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct flow flows[FLOWS];
static int n_flows;
static struct flow_seat seats[FLOW_SEATS];
static struct plain_path path;
static struct plain_port port[FLOW_SEATS];
static struct ibv_qp *qp[FLOWS];
static uint64_t ended[FLOWS];

void flows_connect_by(const struct plain_path *how)
{
    path = *how;
}

uint64_t flows_ended(int i)
{
    return ended[i];
}

uint64_t flows_wire_ns(uint64_t mib)
{
    return mib * 256 * FLOW_FRAME_NS;
}

bool flows_about(uint64_t seen, uint64_t expected, unsigned percent)
{
    return seen >= expected - expected * percent / 100 && seen <= expected + expected * percent / 100;
}

static bool flows_use(int seat)
{
    for (int i = 0; i < n_flows; i++) {
        if (flows[i].from == seat || flows[i].to == seat)
            return true;
    }
    return false;
}

static bool flows_open(int pe)
{
    bool ok = true;

    for (int s = 0; s < FLOW_SEATS; s++) {
        if (seats[s].pe == pe && flows_use(s))
            ok = plain_open(&port[s], seats[s].device, (size_t)FLOWS * FLOW_LEN, 1024) && ok;
    }
    return ok;
}

static void flows_connect(void)
{
    for (int i = 0; i < n_flows; i++) {
        struct plain_port *a = &port[flows[i].from], *b = &port[flows[i].to];
        struct ibv_qp *to = plain_qp(b);

        qp[i] = plain_qp(a);
        if (qp[i] && to)
            plain_connect(a, qp[i], b, to, &path);
    }
}

/** Posts a flow, whose bytes are its own part of both buffers. */
static void flows_post(int i)
{
    struct plain_port *p = &port[flows[i].from];
    size_t at = (size_t)i * FLOW_LEN;
    struct plain_wr wr = {.op = IBV_WR_RDMA_WRITE, .id = (uint64_t)i, .local = at, .remote = at, .len = FLOW_LEN};

    memset(p->buf + at, i + 1, FLOW_LEN);
    for (int k = 0; k < flows[i].n; k++)
        plain_equal("ibv_post_send", plain_post(p, qp[i], &port[flows[i].to], wr), 0);
}

/** Takes one completion of a PE's ports: the flow it belongs to. -1: the run was given up. */
static int flows_wait(int pe, int *status)
{
    for (int s = 0;; s = (s + 1) % FLOW_SEATS) {
        int n;

        if (seats[s].pe != pe || !port[s].cq)
            continue;
        n = ibv_poll_cq(port[s].cq, 1, &port[s].wc);
        *status = (int)port[s].wc.status;
        if (n)
            return n < 0 ? -1 : (int)port[s].wc.wr_id;
    }
}

static void flows_send(int pe)
{
    uint64_t start = plain_emu()->now();
    int due = 0, left[FLOWS] = {0};

    for (int i = 0; i < n_flows; i++) {
        left[i] = flows[i].n;
        if (seats[flows[i].from].pe != pe)
            continue;
        flows_post(i);
        due += flows[i].n;
    }
    for (; due > 0; due--) {
        int status, i = flows_wait(pe, &status);

        if (i < 0) {
            plain_check(false, "the run was given up");
            return;
        }
        if (!flows[i].fails)
            plain_equal("status", status, IBV_WC_SUCCESS);
        else if (left[i] == flows[i].n)
            plain_equal("status", status, IBV_WC_RETRY_EXC_ERR);
        if (--left[i] == 0)
            ended[i] = plain_emu()->now() - start;
    }
}

static void flows_look(int pe)
{
    for (int i = 0; i < n_flows; i++) {
        const unsigned char *b = port[flows[i].to].buf + (size_t)i * FLOW_LEN;

        if (seats[flows[i].to].pe == pe && !flows[i].fails)
            plain_check(b[0] == i + 1 && memcmp(b, b + 1, FLOW_LEN - 1) == 0, "flow %d: wrong bytes", i);
    }
}

static int flows_pe(void *arg, int pe)
{
    (void)arg;
    if (flows_open(pe) && plain_emu()->barrier() == 0) {
        if (pe == 0)
            flows_connect();
        plain_emu()->barrier();
        flows_send(pe);
        plain_emu()->barrier();
        flows_look(pe);
    }
    plain_emu()->barrier(); /* nobody closes what others still look for */
    for (int s = 0; s < FLOW_SEATS; s++) {
        if (seats[s].pe == pe)
            plain_close(&port[s]);
    }
    return 0;
}

void flows_run(const char *spec, const struct flow_seat *where, const struct flow *list, int n)
{
    assert_true(n <= FLOWS);
    for (int s = 0; s < FLOW_SEATS; s++)
        seats[s] = where ? where[s] : (struct flow_seat){s, 0};
    memcpy(flows, list, (size_t)n * sizeof(*list));
    memset(port, 0, sizeof(port));
    memset(ended, 0, sizeof(ended));
    n_flows = n;
    plain_run_gives(0, spec, flows_pe, 0);
}
