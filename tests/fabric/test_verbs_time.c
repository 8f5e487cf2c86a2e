/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_time.c - virtual time as plain verbs programs feel it: what calls cost, when polls sleep, who is
 * woken, and what is a deadlock and what is not.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plain.h"

#define ONE     "nodes=1,ports=2"
#define TWO_PES "nodes=2,ports=1"

enum { BIG = 2 << 20 };

static uint64_t now(void)
{
    return plain_emu()->now();
}

/* ---- what calls cost --------------------------------------------------------------------------------------------- */

/* 70 bytes at 25 bytes a ns: frames of 168 bytes (6.72 ns) and 86, two latencies, and not a nanosecond of CPU. */
static int pe_free(void *arg, int pe)
{
    struct plain_port p[2];
    uint64_t t;

    (void)arg, (void)pe;
    plain_emu()->charge(123456);
    plain_pair(p, 4096, NULL);
    plain_equal("time after opening and connecting", (long long)now(), 0);
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 70});
    plain_equal("time after posting", (long long)now(), 0);
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    plain_equal("time of the completion", (long long)now(), 7 + 2500 + 3 + 2500);
    t = now();
    plain_close(&p[0]);
    plain_close(&p[1]);
    plain_equal("time of closing", (long long)(now() - t), 0);
    return 0;
}

static void with_cpu_off_calls_are_free(void **state)
{
    (void)state;
    plain_run_gives(0, ONE ",cpu=off", pe_free, 0);
}

static bool took_time(const char *what, uint64_t *t)
{
    bool ok = plain_check(now() > *t, "%s costs nothing", what);

    *t = now();
    return ok;
}

static int pe_costs(void *arg, int pe)
{
    struct plain_port p[2];
    struct ibv_comp_channel *channel;
    struct ibv_wc wc;
    uint64_t t = now();
    __be16 pkey;

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    took_time("opening", &t);
    channel = ibv_create_comp_channel(p[0].ctx);
    took_time("ibv_create_comp_channel", &t);
    ibv_destroy_comp_channel(channel);
    took_time("ibv_destroy_comp_channel", &t);
    ibv_query_pkey(p[0].ctx, 1, 0, &pkey);
    took_time("ibv_query_pkey", &t);
    plain_equal("ibv_dealloc_pd with an MR alive", ibv_dealloc_pd(p[0].pd), EBUSY);
    took_time("ibv_dealloc_pd that is refused", &t);
    plain_equal("ibv_close_device with a PD alive", ibv_close_device(p[0].ctx), EBUSY);
    took_time("ibv_close_device that is refused", &t);
    ibv_poll_cq(p[0].cq, 0, &wc);
    took_time("ibv_poll_cq for no entries", &t);
    ibv_poll_cq(p[0].cq, 1, &wc);
    took_time("ibv_poll_cq", &t);
    ibv_ack_cq_events(p[0].cq, 0);
    took_time("ibv_ack_cq_events", &t);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void every_call_costs_time(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_costs, 0);
}

/* ---- polls ------------------------------------------------------------------------------------------------------- */

/* The time from a WRITE to its completion; with look: whether a poll that looks at that very moment sees it. */
static uint64_t answered(bool look)
{
    static uint64_t took;
    struct plain_port p[2];
    struct ibv_wc wc;
    uint64_t t;

    plain_pair(p, 4096, NULL);
    plain_emu()->wait(now()); /* what happened so far has been seen */
    t = now();
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 8});
    if (look) {
        plain_emu()->charge(t + took - now() - plain_emu()->cost("poll_empty"));
        plain_equal("ibv_poll_cq at the moment of a completion", ibv_poll_cq(p[0].cq, 1, &wc), 1);
    } else {
        while (now() < t + 5000) /* remote bytes land in this PE's memory too */
            plain_emu()->wait(UINT64_MAX);
        took = now() - t;
    }
    plain_close(&p[0]);
    plain_close(&p[1]);
    return took;
}

static int pe_looks_in_time(void *arg, int pe)
{
    uint64_t took = answered(false);

    (void)arg, (void)pe;
    plain_check(took > 5000 && took < 5200, "a WRITE took %llu ns", (unsigned long long)took);
    answered(true);
    return 0;
}

static void what_is_due_now_has_happened(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_looks_in_time, 0);
}

/* A program that only polls is put to sleep until there is something: few calls, exact time. */
static int pe_polls(void *arg, int pe)
{
    struct plain_port p[2];
    struct ibv_wc wc;
    uint64_t t;
    int polls = 1;

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    t = now();
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 8});
    while (!ibv_poll_cq(p[0].cq, 1, &wc))
        polls++;
    plain_check(polls <= 6, "%d polls for one completion, expected a handful: it sleeps in between", polls);
    plain_check(now() - t >= 200000 && now() - t < 200500, "completion after %llu ns, expected two latencies",
                (unsigned long long)(now() - t));
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void a_pure_poller_sleeps(void **state)
{
    (void)state;
    plain_run_gives(0, ONE ",latency=100us", pe_polls, 0);
}

static int pe_polls_none(void *arg, int pe)
{
    struct plain_port p[2];
    struct ibv_wc wc;

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    for (int i = 0; i < 5; i++)
        plain_equal("ibv_poll_cq for no entries, nothing there", ibv_poll_cq(p[0].cq, 0, &wc), 0);
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 8});
    plain_emu()->charge(100000);
    for (int i = 0; i < 5; i++)
        plain_equal("ibv_poll_cq for no entries", ibv_poll_cq(p[0].cq, 0, &wc), 0);
    plain_equal("ibv_poll_cq", ibv_poll_cq(p[0].cq, 1, &wc), 1);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void a_poll_for_no_entries_never_sleeps(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_polls_none, 0);
}

/* Its own work between polls is not idleness: the clock must reach t. */
static int pe_works(void *arg, int pe)
{
    struct plain_port p[2];
    struct ibv_wc wc;
    uint64_t t;
    int rc = 0;

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    for (t = now() + 5000; rc == 0 && now() < t;) {
        rc = ibv_poll_cq(p[0].cq, 1, &wc);
        plain_emu()->charge(10);
    }
    plain_check(now() < t + 100, "the clock went %llu ns too far", (unsigned long long)(now() - t));
    plain_close(&p[0]);
    plain_close(&p[1]);
    return rc;
}

static void working_between_polls_is_no_idleness(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_works, 0);
}

static int pe_waits_for_the_clock(void *arg, int pe)
{
    struct plain_port p = {0};
    struct ibv_wc wc;
    int rc = 0;

    (void)arg, (void)pe;
    plain_open(&p, 0, 4096, 16);
    while (rc == 0 && now() < 1000) { /* it never gets there: no call costs anything */
        rc = ibv_poll_cq(p.cq, 1, &wc);
        plain_emu()->charge(10);
    }
    plain_close(&p);
    return rc ? -ECANCELED : 0;
}

static void waiting_for_a_clock_that_stands_still_ends(void **state)
{
    (void)state;
    plain_run_gives(-ETIME, ONE ",cpu=off", pe_waits_for_the_clock, 1000000);
}

/* An earlier, longer sleep's deadline is void once something else woke the PE. */
static int pe_sleeps_again(void *arg, int pe)
{
    struct plain_port p[2];
    uint64_t t;

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    plain_emu()->wait(now()); /* what happened so far has been seen */
    t = now();
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 8});
    while (now() < t + 5000)
        plain_emu()->wait(t + 20000);
    plain_check(now() < t + 6000, "woken at %llu ns, expected by the completion", (unsigned long long)(now() - t));
    plain_emu()->wait(t + 100000);
    plain_equal("end of the second wait", (long long)(now() - t), 100000);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return 0;
}

static void a_deadline_is_that_of_its_own_wait(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_sleeps_again, 0);
}

/* ---- two PEs ----------------------------------------------------------------------------------------------------- */

static struct plain_port port[2];
static uint64_t late; /* PE 1 starts to look so much later */
static int polls;     /* between two looks */

/** Each PE opens its port and they connect; false: noted. */
static bool meet(int pe)
{
    struct plain_path path = plain_defaults();

    port[pe] = (struct plain_port){0};
    if (!plain_open(&port[pe], 0, BIG, 16) || !plain_qp(&port[pe]) || plain_emu()->barrier())
        return false;
    return plain_equal("connecting", plain_connect_to(port[pe].qp[0], port[!pe].qp[0]->qp_num, &port[!pe].gid, &path),
                       0) &&
           plain_emu()->barrier() == 0;
}

static int part(int pe, int rc)
{
    if (rc == 0)
        rc = plain_emu()->barrier();
    plain_close(&port[pe]);
    return rc;
}

static unsigned char look(const unsigned char *at)
{
    return *(const volatile unsigned char *)at;
}

/* PE 1 polls a CQ, in which nothing will come, several times between two looks at what PE 0 writes. */
static int pe_looks_rarely(void *arg, int pe)
{
    struct ibv_wc wc;
    int rc = 0;

    (void)arg;
    if (!meet(pe))
        return -EPROTO;
    if (pe == 0) {
        port[0].buf[0] = 1;
        plain_post(&port[0], port[0].qp[0], &port[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 1});
        plain_done(&port[0], 1, IBV_WC_SUCCESS);
    } else {
        plain_emu()->charge(late);
        while (rc == 0 && !look(port[1].buf)) {
            for (int i = 0; rc == 0 && i < polls; i++)
                rc = ibv_poll_cq(port[1].cq, 1, &wc);
        }
        rc = rc ? -ECANCELED : 0;
    }
    return part(pe, rc);
}

static void polls_between_looks_are_no_deadlock(void **state)
{
    (void)state;
    for (polls = 1; polls <= 4; polls++) {
        for (late = 2400; late < 2700; late++) {
            int rc = plain_run(TWO_PES, pe_looks_rarely, 0);

            if (rc || plain_notes()[0])
                fail_msg("PE 1 starts to look at %llu ns and polls %d times between looks: run gave %d; %s\n%s",
                         (unsigned long long)late, polls, rc, plain_why(), plain_notes());
        }
    }
}

static int pe_looks_in_vain(void *arg, int pe)
{
    struct ibv_wc wc;
    int rc = 0;

    (void)arg;
    if (!meet(pe))
        return -EPROTO;
    while (pe == 1 && rc == 0 && !look(port[1].buf))
        rc = ibv_poll_cq(port[1].cq, 1, &wc);
    if (pe == 1)
        plain_equal("ibv_poll_cq once the run is given up", rc, -1);
    return part(pe, rc ? -ECANCELED : 0);
}

static void polling_for_what_nobody_sends_is_a_deadlock(void **state)
{
    (void)state;
    plain_run_gives(-EDEADLK, TWO_PES, pe_looks_in_vain, 0);
    assert_non_null(strstr(plain_why(), "PE 1 (h1) sleeps in ibv_poll_cq"));
}

static enum ibv_wr_opcode quiet_op;

/* Nothing but the bytes tells that the answer is there; PE 1 has other things to do meanwhile. */
static int pe_asks_quietly(void *arg, int pe)
{
    struct ibv_wc wc;
    uint64_t t;
    int rc = 0;

    (void)arg;
    if (!meet(pe))
        return -EPROTO;
    port[pe].buf[64] = 1;
    rc = plain_emu()->barrier();
    t = now();
    if (pe == 0) {
        plain_post(&port[0], port[0].qp[0], &port[1],
                   (struct plain_wr){.op = quiet_op, .id = 1, .remote = 64, .len = 8, .unsignaled = true});
        while (rc == 0 && !look(port[0].buf))
            rc = ibv_poll_cq(port[0].cq, 1, &wc);
        plain_check(now() - t < 10000, "the answer was seen after %llu ns, expected two latencies",
                    (unsigned long long)(now() - t));
    } else {
        while (rc == 0 && now() < t + 1000000)
            rc = plain_emu()->wait(t + 1000000);
    }
    return part(pe, rc ? -ECANCELED : 0);
}

static void an_unsignaled_answer_wakes(void **state)
{
    (void)state;
    quiet_op = IBV_WR_RDMA_READ;
    plain_run_gives(0, TWO_PES, pe_asks_quietly, 0);
    quiet_op = IBV_WR_ATOMIC_FETCH_AND_ADD;
    plain_run_gives(0, TWO_PES, pe_asks_quietly, 0);
}

/* The first bytes of a message are seen when they land, not when all of it is there (4 KiB: 0.17 us; 2 MiB: 84 us). */
static int pe_sees_the_first_bytes(void *arg, int pe)
{
    struct ibv_wc wc;
    uint64_t t;
    int rc = 0;

    (void)arg;
    if (!meet(pe))
        return -EPROTO;
    if (pe == 1)
        plain_recv(&port[1], port[1].qp[0], 2, 0, BIG);
    memset(port[pe].buf, pe == 0, BIG);
    rc = plain_emu()->barrier();
    t = now();
    if (pe == 0) {
        plain_post(&port[0], port[0].qp[0], &port[1], (struct plain_wr){.op = quiet_op, .id = 1, .len = BIG});
        plain_done(&port[0], 1, IBV_WC_SUCCESS);
    } else {
        while (rc == 0 && !look(port[1].buf))
            rc = ibv_poll_cq(port[1].cq, 1, &wc);
        plain_check(now() - t < 5000, "the first byte was seen after %llu ns, expected one latency",
                    (unsigned long long)(now() - t));
    }
    return part(pe, rc ? -ECANCELED : 0);
}

static void bytes_wake_when_they_land(void **state)
{
    (void)state;
    quiet_op = IBV_WR_RDMA_WRITE;
    plain_run_gives(0, TWO_PES, pe_sees_the_first_bytes, 0);
    quiet_op = IBV_WR_SEND;
    plain_run_gives(0, TWO_PES, pe_sees_the_first_bytes, 0);
}

/* A timer of a request that was answered long ago is nothing to wait for: timeout 31 is 8796 s, the limit 100 s. */
static int pe_with_dead_timer(void *arg, int pe)
{
    struct plain_path path = plain_defaults();
    struct plain_port p[2];
    int rc = 0;

    (void)arg, (void)pe;
    path.timeout = 31;
    plain_pair(p, 4096, &path);
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 8});
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    while (rc == 0)
        rc = plain_emu()->wait(UINT64_MAX);
    plain_close(&p[0]);
    plain_close(&p[1]);
    return rc;
}

static void a_dead_timer_does_not_hide_a_deadlock(void **state)
{
    (void)state;
    plain_run_gives(-EDEADLK, ONE, pe_with_dead_timer, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_cpu_off_calls_are_free),
        cmocka_unit_test(every_call_costs_time),
        cmocka_unit_test(what_is_due_now_has_happened),
        cmocka_unit_test(a_pure_poller_sleeps),
        cmocka_unit_test(a_poll_for_no_entries_never_sleeps),
        cmocka_unit_test(working_between_polls_is_no_idleness),
        cmocka_unit_test(a_deadline_is_that_of_its_own_wait),
        cmocka_unit_test(polls_between_looks_are_no_deadlock),
        cmocka_unit_test(polling_for_what_nobody_sends_is_a_deadlock),
        cmocka_unit_test(an_unsignaled_answer_wakes),
        cmocka_unit_test(bytes_wake_when_they_land),
        cmocka_unit_test(a_dead_timer_does_not_hide_a_deadlock),
        cmocka_unit_test(waiting_for_a_clock_that_stands_still_ends),
    };

    return cmocka_run_group_tests_name("verbs_time", tests, NULL, NULL);
}
