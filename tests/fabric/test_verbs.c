/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs.c - queue pairs, completion queues and regions of the emulator by plain verbs in virtual time: what
 * hardware does, but no specification promises, so that the conformance list cannot ask for it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "plain.h"

#define ONE "nodes=1,ports=2"
#define MIB ((size_t)1 << 20)

static struct plain_port p[2];

static void shut(void)
{
    plain_close(&p[0]);
    plain_close(&p[1]);
}

/** A WRITE of port 0. */
static int put(struct ibv_qp *qp, uint64_t id, size_t len)
{
    return plain_post(&p[0], qp, &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = id, .len = len});
}

/* ---- regions that go away ---------------------------------------------------------------------------------------- */

/* 4 MiB take 170 us, deregistering the local region 30 us. */
static int pe_local_gone(void *arg, int pe)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

    (void)arg, (void)pe;
    for (int i = 0; i < 2; i++) {
        void *memory;
        struct ibv_mr *mr;

        plain_pair(p, 4 * MIB, NULL);
        memory = calloc(4, MIB);
        mr = ibv_reg_mr(p[0].pd, memory, 4 * MIB, IBV_ACCESS_LOCAL_WRITE);
        plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = ops[i], .id = 1, .len = 4 * MIB, .mr = mr});
        put(p[0].qp[0], 2, 8);
        plain_equal("ibv_dereg_mr", ibv_dereg_mr(mr), 0);
        plain_done(&p[0], 1, IBV_WC_LOC_PROT_ERR);
        plain_done(&p[0], 2, IBV_WC_WR_FLUSH_ERR);
        shut();
        free(memory);
    }
    return 0;
}

static void a_local_region_that_goes_ends_the_request(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_local_gone, 0);
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

/* Slots come back with what is polled, not with what is done. */
static int pe_slots(void *arg, int pe)
{
    uint64_t id = 0;

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    while (id < PLAIN_DEPTH && put(p[0].qp[0], id, 8) == 0)
        id++;
    plain_equal("requests that fit", (long long)id, PLAIN_DEPTH);
    plain_emu()->charge(1000000);
    for (uint64_t polled = 0; polled < 4; polled++) {
        plain_equal("a request with no slot free", put(p[0].qp[0], id, 8), ENOMEM);
        plain_done(&p[0], polled, IBV_WC_SUCCESS);
        plain_equal("a request with one slot free", put(p[0].qp[0], id++, 8), 0);
        plain_emu()->charge(1000000);
    }
    shut();
    return 0;
}

static void polling_one_frees_one_slot(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_slots, 0);
}

/* A queue pair's completions go with it; those of others in the same CQ stay. */
static int pe_forgets(void *arg, int pe)
{
    struct ibv_qp *a, *b;
    struct ibv_wc wc;

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    a = plain_qp(&p[0]), b = plain_qp(&p[1]);
    plain_connect(&p[0], a, &p[1], b, NULL);
    for (uint64_t i = 0; i < 8; i++)
        put(i % 2 ? a : p[0].qp[0], i, 8);
    plain_emu()->charge(1000000);
    p[0].n_qps--; /* a is the last */
    plain_equal("ibv_destroy_qp", ibv_destroy_qp(a), 0);
    for (uint64_t i = 0; i < 8; i += 2)
        plain_done(&p[0], i, IBV_WC_SUCCESS);
    plain_equal("completions left", ibv_poll_cq(p[0].cq, 1, &wc), 0);
    shut();
    return 0;
}

static void a_destroyed_queue_pair_takes_its_completions_along(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_forgets, 0);
}

/* A CQ of 2, 3 completions: it gives what it held, nothing more, and all who complete to it are in ERR. */
static int pe_overrun(void *arg, int pe)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct ibv_async_event e;
    struct ibv_wc wc;
    int given = 0;

    (void)arg, (void)pe;
    memset(p, 0, sizeof(p));
    plain_open(&p[0], 0, 4096, 2);
    plain_open(&p[1], 1, 4096, 64);
    for (int i = 0; i < 2; i++)
        plain_connect(&p[0], plain_qp(&p[0]), &p[1], plain_qp(&p[1]), NULL);
    for (uint64_t i = 0; i < 3; i++)
        put(p[0].qp[0], i, 8);
    plain_emu()->charge(100000);
    plain_equal("ibv_get_async_event", ibv_get_async_event(p[0].ctx, &e), 0);
    plain_check(e.event_type == IBV_EVENT_CQ_ERR && e.element.cq == p[0].cq, "event: seen '%s'",
                ibv_event_type_str(e.event_type));
    ibv_ack_async_event(&e);
    put(p[0].qp[1], 77, 8); /* another queue pair of that CQ; whether it is taken is not what matters */
    for (int i = 0; i < 20; i++) {
        int n = ibv_poll_cq(p[0].cq, 1, &wc);

        if (n > 0)
            plain_equal("request", (long long)wc.wr_id, given++);
        plain_emu()->charge(100000);
    }
    plain_check(given <= 2, "%d completions from a CQ of 2 that has overrun", given);
    for (int i = 0; i < 2; i++) {
        ibv_query_qp(p[0].qp[i], &attr, IBV_QP_STATE, &init);
        plain_equal("state of a queue pair of that CQ", attr.qp_state, IBV_QPS_ERR);
    }
    shut();
    return 0;
}

static void a_cq_that_has_overrun_is_dead(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_overrun, 0);
}

/* Beside wr_id, status, qp_num and vendor_err a failed completion promises nothing (ibv_poll_cq(3)). */
static int pe_failed_fields(void *arg, int pe)
{
    int as_expected = 0, tries = 8;

    (void)arg, (void)pe;
    for (int i = 0; i < tries; i++) {
        plain_pair(p, 4096, NULL);
        plain_post(&p[0], p[0].qp[0], &p[1],
                   (struct plain_wr){.op = IBV_WR_RDMA_READ, .id = 1, .len = 64, .address = 0x1000, .rkey = 123});
        plain_done(&p[0], 1, IBV_WC_REM_ACCESS_ERR);
        plain_equal("qp_num", p[0].wc.qp_num, p[0].qp[0]->qp_num);
        as_expected += p[0].wc.opcode == IBV_WC_RDMA_READ && p[0].wc.byte_len == 64;
        shut();
    }
    plain_check(as_expected < tries / 2, "opcode and byte_len were right %d times of %d: programs would rely on them",
                as_expected, tries);
    return 0;
}

static void a_failed_completion_promises_little(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_failed_fields, 0);
}

/* ibv_get_cq_event(3): destroying a CQ waits until its events are acknowledged; nobody will do that here. */
static int pe_does_not_acknowledge(void *arg, int pe)
{
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    void *context;

    (void)arg, (void)pe;
    memset(p, 0, sizeof(p));
    plain_open(&p[0], 0, 4096, 2);
    plain_open(&p[1], 1, 4096, 2);
    channel = ibv_create_comp_channel(p[0].ctx);
    ibv_destroy_cq(p[0].cq);
    p[0].cq = ibv_create_cq(p[0].ctx, 4, NULL, channel, 0);
    plain_connect(&p[0], plain_qp(&p[0]), &p[1], plain_qp(&p[1]), NULL);
    ibv_req_notify_cq(p[0].cq, 0);
    put(p[0].qp[0], 1, 8);
    plain_equal("ibv_get_cq_event", ibv_get_cq_event(channel, &cq, &context), 0);
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    shut();
    return -ECANCELED;
}

static void a_cq_with_an_unacknowledged_event_stays(void **state)
{
    (void)state;
    plain_run_gives(-EDEADLK, ONE, pe_does_not_acknowledge, 0);
    assert_non_null(strstr(plain_why(), "sleeps in ibv_destroy_cq"));
}

/* ---- draining ---------------------------------------------------------------------------------------------------- */

static uint64_t drained_at;

/* 8 MiB are under way: the event comes when they are acknowledged, and their completion is there. */
static int pe_drains(void *arg, int pe)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct ibv_qp_init_attr init;
    struct ibv_async_event e;
    struct ibv_wc wc;

    (void)arg, (void)pe;
    plain_pair(p, 8 * MIB, NULL);
    put(p[0].qp[0], 1, 8 * MIB);
    plain_equal("to SQD", ibv_modify_qp(p[0].qp[0], &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    ibv_query_qp(p[0].qp[0], &attr, IBV_QP_STATE, &init);
    plain_equal("sq_draining", attr.sq_draining, 1);
    plain_equal("ibv_get_async_event", ibv_get_async_event(p[0].ctx, &e), 0);
    plain_equal("event", e.event_type, IBV_EVENT_SQ_DRAINED);
    ibv_ack_async_event(&e);
    plain_equal("completions at the event", ibv_poll_cq(p[0].cq, 1, &wc), 1);
    ibv_query_qp(p[0].qp[0], &attr, IBV_QP_STATE, &init);
    plain_equal("sq_draining", attr.sq_draining, 0);
    shut();
    return 0;
}

/* A SEND that waits for a receiver has begun: the queue is drained when it is through, and that is said once. */
static int pe_drains_after_rnr(void *arg, int pe)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct ibv_async_event e;
    struct ibv_wc wc;

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_SEND, .id = 1, .len = 8});
    plain_emu()->charge(10000);
    plain_equal("to SQD", ibv_modify_qp(p[0].qp[0], &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    plain_recv(&p[1], p[1].qp[0], 2, 0, 64);
    plain_equal("ibv_get_async_event", ibv_get_async_event(p[0].ctx, &e), 0);
    plain_equal("event", e.event_type, IBV_EVENT_SQ_DRAINED);
    ibv_ack_async_event(&e);
    plain_equal("completions at the event", ibv_poll_cq(p[0].cq, 1, &wc), 1);
    drained_at = plain_emu()->now();
    ibv_get_async_event(p[0].ctx, &e); /* nothing more: a deadlock */
    shut();
    return 0;
}

/* A timer that is shorter than the way: the WRITE is repeated, and acknowledged several times after all is done. */
static int pe_drains_with_repeats(void *arg, int pe)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct plain_path path = plain_defaults();
    struct ibv_async_event e;
    uint64_t t = 0;

    (void)arg, (void)pe;
    path.timeout = 1; /* 8 us */
    plain_pair(p, 4096, &path);
    put(p[0].qp[0], 1, 8);
    plain_equal("to SQD", ibv_modify_qp(p[0].qp[0], &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    plain_equal("ibv_get_async_event", ibv_get_async_event(p[0].ctx, &e), 0);
    ibv_ack_async_event(&e);
    plain_done(&p[0], 1, IBV_WC_SUCCESS);
    fcntl(p[0].ctx->async_fd, F_SETFL, O_NONBLOCK);
    for (t = plain_emu()->now() + 200000; plain_emu()->now() < t;)
        plain_emu()->wait(t);
    plain_equal("a second event", ibv_get_async_event(p[0].ctx, &e), -1);
    plain_equal("to RTS", plain_move(p[0].qp[0], IBV_QPS_RTS), 0);
    plain_equal("to SQD, no event asked for", plain_move(p[0].qp[0], IBV_QPS_SQD), 0);
    plain_equal("an event nobody asked for", ibv_get_async_event(p[0].ctx, &e), -1);
    shut();
    return 0;
}

static void drained_is_said_once_and_in_time(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_drains, 0);
    drained_at = 0;
    plain_run_gives(-EDEADLK, ONE, pe_drains_after_rnr, 0);
    assert_true(drained_at > 0);
    plain_run_gives(0, ONE ",cpu=off,latency=20us", pe_drains_with_repeats, 0);
    assert_true(plain_counters(0).wire_tx > 3 * (82 + 16 + 8)); /* there were repeats */
}

/* ---- what a PE leaves behind ------------------------------------------------------------------------------------- */

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static int pe_leaves_open(void *arg, int pe)
{
    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    ibv_create_comp_channel(p[0].ctx);
    free(p[0].buf);
    free(p[1].buf);
    return -EIO;
}

static void nothing_open_outlives_a_run(void **state)
{
    int before = descriptors();

    (void)state;
    for (int i = 0; i < 3; i++)
        plain_run_gives(-EIO, ONE, pe_leaves_open, 0);
    assert_int_equal(descriptors(), before);
}

static unsigned char left[MIB], as_left[MIB];

/* PE 1 returns while PE 0's bytes stream into its memory; from then on the memory is its own again. */
static int pe_leaves_early(void *arg, int pe)
{
    struct plain_path path = plain_defaults();

    (void)arg;
    path.timeout = 8, path.retry = 1;
    p[pe] = (struct plain_port){0};
    plain_open(&p[pe], 0, MIB, 16);
    plain_qp(&p[pe]);
    if (plain_emu()->barrier())
        return -EPROTO;
    if (pe == 1) { /* the region of a PE that returns without a word */
        ibv_dereg_mr(p[1].mr);
        p[1].mr = ibv_reg_mr(p[1].pd, left, MIB, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    }
    plain_equal("connecting", plain_connect_to(p[pe].qp[0], p[!pe].qp[0]->qp_num, &p[!pe].gid, &path), 0);
    if (plain_emu()->barrier())
        return -EPROTO;
    if (pe == 1) {
        plain_emu()->charge(20000); /* half of it has come */
        free(p[1].buf);
        memcpy(as_left, left, MIB);
        return 0;
    }
    memset(p[0].buf, 0x77, MIB);
    plain_post(&p[0], p[0].qp[0], &p[1],
               (struct plain_wr){.op = IBV_WR_RDMA_WRITE,
                                 .id = 1,
                                 .len = MIB,
                                 .rkey = p[1].mr->rkey,
                                 .address = (uint64_t)(uintptr_t)left + plain_emu()->shift(1)});
    plain_done(&p[0], 1, IBV_WC_RETRY_EXC_ERR);
    plain_close(&p[0]);
    return 0;
}

static void nobody_writes_to_a_pe_that_has_returned(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=2,ports=1", pe_leaves_early, 0);
    assert_int_equal(as_left[0], 0x77);
    assert_memory_equal(left, as_left, MIB);
    assert_int_equal(left[MIB - 1], 0);
}

/* ---- memory that a device cannot pin ------------------------------------------------------------------------------------ */

static bool registers(void *memory, size_t len, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(p[0].pd, memory, len, access);

    if (!mr)
        plain_equal("errno", errno, EFAULT);
    else
        ibv_dereg_mr(mr);
    return mr != NULL;
}

/* A few pages and many: they are looked at in two ways. */
static int pe_registers(void *arg, int pe)
{
    static const size_t sizes[] = {3 * 4096, 3 * 65536, 3 * 8 * MIB};

    (void)arg, (void)pe;
    plain_pair(p, 4096, NULL);
    for (int i = 0; i < 3; i++) {
        size_t third = sizes[i] / 3;
        char *memory = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        memory[third + 1] = 42;
        plain_check(registers(memory, sizes[i], IBV_ACCESS_LOCAL_WRITE), "writable memory is refused");
        plain_equal("a byte that was there", memory[third + 1], 42);
        mprotect(memory + third, third, PROT_READ);
        plain_check(!registers(memory, sizes[i], IBV_ACCESS_LOCAL_WRITE), "read-only memory is taken for writing");
        plain_check(registers(memory, third, IBV_ACCESS_LOCAL_WRITE), "the writable part is refused");
        plain_check(!registers(memory + third - 1, 2, IBV_ACCESS_LOCAL_WRITE), "a read-only last byte is taken");
        plain_check(registers(memory + third - 1, 1, IBV_ACCESS_LOCAL_WRITE), "a writable last byte is refused");
        plain_check(registers(memory, sizes[i], IBV_ACCESS_REMOTE_READ), "read-only memory is refused for reading");
        mprotect(memory + third, third, PROT_NONE);
        plain_check(!registers(memory, sizes[i], IBV_ACCESS_LOCAL_WRITE), "forbidden memory is taken for writing");
        plain_check(!registers(memory, sizes[i], IBV_ACCESS_REMOTE_READ), "forbidden memory is taken for reading");
        munmap(memory + third, third);
        plain_check(!registers(memory, sizes[i], IBV_ACCESS_LOCAL_WRITE), "a hole is taken for writing");
        plain_check(!registers(memory, sizes[i], IBV_ACCESS_REMOTE_READ), "a hole is taken for reading");
        munmap(memory, sizes[i]);
    }
    shut();
    return 0;
}

static void memory_that_cannot_be_pinned_is_refused(void **state)
{
    (void)state;
    plain_run_gives(0, ONE, pe_registers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_local_region_that_goes_ends_the_request),
        cmocka_unit_test(polling_one_frees_one_slot),
        cmocka_unit_test(a_destroyed_queue_pair_takes_its_completions_along),
        cmocka_unit_test(a_cq_that_has_overrun_is_dead),
        cmocka_unit_test(a_failed_completion_promises_little),
        cmocka_unit_test(a_cq_with_an_unacknowledged_event_stays),
        cmocka_unit_test(drained_is_said_once_and_in_time),
        cmocka_unit_test(nothing_open_outlives_a_run),
        cmocka_unit_test(nobody_writes_to_a_pe_that_has_returned),
        cmocka_unit_test(memory_that_cannot_be_pinned_is_refused),
    };

    return cmocka_run_group_tests_name("verbs", tests, NULL, NULL);
}
