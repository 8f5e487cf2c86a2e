/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_io.c - src/verbs over a provider of the test's own: the work requests of a list, how a refusal is read,
 * completions, relaxed and strict registrations, and the questions that only mlx5 answers. Links verbs and common.
 */
#include "unit.h"

#include "verbs_rig.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>

static struct verbs v;
static struct ibv_context context;
static struct ibv_pd pd;
static struct verbs_dev dev;
static struct verbs_cq *cq;
static struct verbs_qp *qp;
static unsigned lines; /* logged */

static void count_line(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
    lines++;
}

static const struct log test_log = {.level = LOG_LEVEL_DEBUG, .fn = count_line};

/* What the emulator exports, and libmlx5: found by the test through its own program. */
static int query_rc;
static uint64_t query_mask, query_asked;
static uint32_t query_max_rc;
static uint8_t query_wires;
__attribute__((visibility("default"))) int mlx5dv_query_device(struct ibv_context *asked, void *out);

int mlx5dv_query_device(struct ibv_context *asked, void *out)
{
    assert_ptr_equal(asked, &context);
    memcpy(&query_asked, (char *)out + 16, 8);
    memcpy((char *)out + 16, &query_mask, 8);
    memcpy((char *)out + 96, &query_wires, 1);
    memcpy((char *)out + 176, &query_max_rc, 4);
    return query_rc;
}

/* What is told a QP of a bond. */
static int qp_rc;
static unsigned qp_wire, qp_sport;
__attribute__((visibility("default"))) int mlx5dv_modify_qp_lag_port(struct ibv_qp *told, uint8_t port_num);
__attribute__((visibility("default"))) int mlx5dv_query_qp_lag_port(struct ibv_qp *asked, uint8_t *port_num,
                                                                    uint8_t *active_port_num);
__attribute__((visibility("default"))) int mlx5dv_modify_qp_udp_sport(struct ibv_qp *told, uint16_t udp_sport);

int mlx5dv_modify_qp_lag_port(struct ibv_qp *told, uint8_t port_num)
{
    assert_int_equal(told->qp_num, 0x77);
    qp_wire = port_num;
    return qp_rc;
}

int mlx5dv_query_qp_lag_port(struct ibv_qp *asked, uint8_t *port_num, uint8_t *active_port_num)
{
    assert_int_equal(asked->qp_num, 0x77);
    *port_num = (uint8_t)qp_wire;
    *active_port_num = 1;
    return qp_rc;
}

int mlx5dv_modify_qp_udp_sport(struct ibv_qp *told, uint16_t udp_sport)
{
    assert_int_equal(told->qp_num, 0x77);
    qp_sport = udp_sport;
    return qp_rc;
}

static int start(void **state)
{
    (void)state;
    rig_device(&v, &context, &pd, &dev);
    v.log = &test_log;
    lines = 0;
    struct verbs_qp_size size = {.send_wr = 64, .recv_wr = 16};
    assert_int_equal(verbs_cq_create(&dev, 64, &cq), 0);
    assert_int_equal(verbs_qp_create(&dev, cq, &size, &qp), 0);
    assert_int_equal(rig_sig_all, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    verbs_qp_destroy(qp);
    verbs_cq_destroy(cq);
    return 0;
}

static const uint32_t sample_ops[] = {VERBS_OP_WRITE, VERBS_OP_READ, VERBS_OP_SEND, VERBS_OP_FETCH_ADD,
                                      VERBS_OP_COMPARE_SWAP};

static void sample(struct verbs_send *out, unsigned i)
{
    out->id = 100 + i;
    out->op = sample_ops[i % 5];
    out->signal = i % 3 == 2 ? VERBS_SIGNALLED : VERBS_UNSIGNALLED;
    out->local_addr = 0x1000 + i;
    out->lkey = 0x50 + i;
    out->len = 8 + i;
    out->remote_addr = 0x2000 + i;
    if (out->op < VERBS_OP_COMPARE_SWAP) {
        out->rkey = 0x60 + i;
        return;
    }
    out->operand = 0x3000 + i;
    out->swap = 0x4000 + i;
    out->atomic_rkey = 0x60 + i;
}

static void expect_sample(unsigned i)
{
    static const enum ibv_wr_opcode codes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
                                               IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
    const struct ibv_send_wr *wr = &rig_provider.wr[i];
    assert_int_equal(wr->wr_id, 100 + i);
    assert_int_equal(wr->opcode, codes[i % 5]);
    assert_int_equal(wr->send_flags, i % 3 == 2 ? IBV_SEND_SIGNALED : 0);
    assert_int_equal(wr->num_sge, 1);
    assert_true(rig_provider.sge[i].addr == 0x1000 + i && rig_provider.sge[i].length == 8 + i);
    assert_int_equal(rig_provider.sge[i].lkey, 0x50 + i);
    if (i % 5 > 2) {
        assert_true(wr->wr.atomic.remote_addr == 0x2000 + i && wr->wr.atomic.rkey == 0x60 + i);
        assert_true(wr->wr.atomic.compare_add == 0x3000 + i && wr->wr.atomic.swap == 0x4000 + i);
    } else if (i % 5 != 2) {
        assert_true(wr->wr.rdma.remote_addr == 0x2000 + i && wr->wr.rdma.rkey == 0x60 + i);
    }
}

/* Lists of any length behind each other: the chain is whole again after each. */
static void lists_become_work_requests(void **state)
{
    (void)state;
    static const unsigned lengths[] = {1, VERBS_LIST_MAX, 3, VERBS_LIST_MAX, 2};
    struct verbs_send sends[VERBS_LIST_MAX];
    verbs_list_init(sends, VERBS_LIST_MAX);
    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
        unsigned taken = 99;
        for (unsigned i = 0; i < lengths[l]; i++)
            sample(&sends[i], i);
        assert_int_equal(verbs_post_list(qp, sends, lengths[l], &taken), 0);
        assert_int_equal(taken, 99);
        assert_int_equal(rig_provider.posted, lengths[l]);
        for (unsigned i = 0; i < lengths[l]; i++)
            expect_sample(i);
    }
}

static void refuse(int error, int bad_at, int expected, unsigned expected_taken)
{
    struct verbs_send sends[4];
    unsigned taken = 99;
    verbs_list_init(sends, 4);
    for (unsigned i = 0; i < 4; i++)
        sample(&sends[i], i);
    rig_provider.post_error = error;
    rig_provider.bad_at = bad_at;
    errno = EPERM;
    assert_int_equal(verbs_post_list(qp, sends, 4, &taken), expected);
    assert_int_equal(taken, expected_taken);
}

static void a_refusal_says_what_was_taken(void **state)
{
    (void)state;
    refuse(ENOMEM, 0, -ENOMEM, 0);
    refuse(ENOMEM, 3, -ENOMEM, 3);
    refuse(-ENOMEM, 2, -ENOMEM, 2); /* some providers negate */
    refuse(-1, 1, -EPERM, 1);       /* and some set errno */
    refuse(EINVAL, -1, -EINVAL, 0); /* and some do not tell which */
}

static void completions_are_read(void **state)
{
    (void)state;
    static const struct {
        enum ibv_wc_status status;
        int error;
    } row[] = {{IBV_WC_SUCCESS, 0},
               {IBV_WC_WR_FLUSH_ERR, -ECANCELED},
               {IBV_WC_RETRY_EXC_ERR, -ETIMEDOUT},
               {IBV_WC_RNR_RETRY_EXC_ERR, -ETIMEDOUT},
               {IBV_WC_RESP_TIMEOUT_ERR, -ETIMEDOUT},
               {IBV_WC_REM_ACCESS_ERR, -EACCES},
               {IBV_WC_LOC_PROT_ERR, -EFAULT},
               {IBV_WC_LOC_LEN_ERR, -EMSGSIZE},
               {IBV_WC_REM_OP_ERR, -EIO}};
    struct verbs_completion out[VERBS_POLL_MAX];
    int n = (int)(sizeof(row) / sizeof(row[0]));
    for (int i = 0; i < n; i++)
        rig_provider.wc[i] = (struct ibv_wc){.wr_id = (uint64_t)i << 40,
                                             .status = row[i].status,
                                             .byte_len = 64,
                                             .qp_num = 5,
                                             .vendor_err = 0x80 + (unsigned)i};
    rig_provider.polled = n;
    assert_int_equal(verbs_poll(cq, out, VERBS_POLL_MAX), n);
    for (int i = 0; i < n; i++) {
        assert_true(out[i].id == (uint64_t)i << 40);
        assert_int_equal(out[i].error, row[i].error);
        assert_int_equal(out[i].len, row[i].error ? 0 : 64);
        assert_int_equal(out[i].qpn, 5);
        if (row[i].error)
            assert_int_equal(out[i].vendor_error, 0x80 + i);
    }
    assert_string_equal(verbs_status_name(cq, out[1].status), "flushed");
    rig_provider.polled = RIG_MAX;
    assert_int_equal(verbs_poll(cq, out, 1000), VERBS_POLL_MAX);
    assert_int_equal(verbs_poll(cq, out, 3), 3);
    rig_provider.polled = -1;
    assert_int_equal(verbs_poll(cq, out, 3), -EIO);
}

static bool reg(enum verbs_access access, uint64_t iova)
{
    struct verbs_mr *mr = NULL;
    assert_int_equal(verbs_mr_reg(&dev, &dev, sizeof(dev), iova, access, &mr), 0);
    bool relaxed = verbs_mr_relaxed(mr);
    assert_int_equal(verbs_mr_lkey(mr), 0x11);
    assert_int_equal(verbs_mr_rkey(mr), 0x22);
    verbs_mr_dereg(mr);
    return relaxed;
}

static void each_access_asks_for_its_rights(void **state)
{
    (void)state;
    const unsigned remote =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    assert_false(reg(VERBS_ACCESS_LOCAL, 0));
    assert_false(reg(VERBS_ACCESS_READ, 0));
    assert_false(reg(VERBS_ACCESS_REMOTE, 0x5000));
    assert_true(reg(VERBS_ACCESS_RELAXED, 0));
    assert_true(reg(VERBS_ACCESS_RELAXED, 0x5000));
    assert_int_equal(rig_provider.rights[0], IBV_ACCESS_LOCAL_WRITE);
    assert_int_equal(rig_provider.rights[1], IBV_ACCESS_REMOTE_READ);
    assert_int_equal(rig_provider.rights[2], remote);
    assert_int_equal(rig_provider.rights[3], remote | IBV_ACCESS_RELAXED_ORDERING);
    assert_true(rig_provider.iova[2] == 0x5000 && rig_provider.iova[3] == (uintptr_t)&dev);
    assert_true(rig_provider.iova[4] == 0x5000);
    assert_int_equal(lines, 0);
}

static void a_device_without_relaxed_ordering_is_strict_and_says_so_once(void **state)
{
    (void)state;
    static const int errors[] = {EINVAL, EOPNOTSUPP};
    for (unsigned i = 0; i < 2; i++) {
        stop(state);
        start(state);
        rig_provider.refused_rights = IBV_ACCESS_RELAXED_ORDERING;
        rig_provider.reg_error = errors[i];
        assert_false(reg(VERBS_ACCESS_RELAXED, 0));
        assert_int_equal(rig_provider.regs, 2);
        assert_false(reg(VERBS_ACCESS_RELAXED, 0));
        assert_int_equal(rig_provider.regs, 3); /* it is not asked again */
        assert_int_equal(lines, 1);
    }
}

static void a_registration_that_fails_anyhow_says_why(void **state)
{
    (void)state;
    struct verbs_mr *mr = NULL;
    rig_provider.refused_rights = IBV_ACCESS_REMOTE_WRITE;
    rig_provider.reg_error = EINVAL;
    assert_int_equal(verbs_mr_reg(&dev, &dev, 8, 0, VERBS_ACCESS_RELAXED, &mr), -EINVAL);
    assert_int_equal(rig_provider.regs, 2);
    rig_provider.reg_error = ENOMEM;
    assert_int_equal(verbs_mr_reg(&dev, &dev, 8, 0, VERBS_ACCESS_RELAXED, &mr), -ENOMEM);
    assert_int_equal(rig_provider.regs, 3); /* it has nothing to do with the order */
    assert_null(mr);
    assert_int_equal(lines, 0);
    assert_false(dev.strict);
}

static struct verbs_about about(void)
{
    struct verbs_about out;
    verbs_dev_about(&dev, &out);
    return out;
}

static void placement_is_what_the_device_answers(void **state)
{
    (void)state;
    v.library = dlopen(NULL, RTLD_NOW);
    assert_non_null(v.library);
    query_rc = 0;
    query_mask = 1u << 16;
    query_max_rc = 128;
    assert_int_equal(about().placement, VERBS_PLACEMENT_UNORDERED);
    assert_true(query_asked == (1u << 16 | 1u << 9));
    query_max_rc = 0;
    assert_int_equal(about().placement, VERBS_PLACEMENT_ORDERED);
    query_max_rc = 128;
    query_mask = 0xffff;
    assert_int_equal(about().placement, VERBS_PLACEMENT_SILENT);
    query_mask = 1u << 16;
    query_rc = EOPNOTSUPP;
    assert_int_equal(about().placement, VERBS_PLACEMENT_SILENT);
    dlclose(v.library);
    query_rc = 0;
    v.library = dlopen("libc.so.6", RTLD_NOW);
    assert_non_null(v.library);
    assert_int_equal(about().placement, VERBS_PLACEMENT_SILENT);
    dlclose(v.library);
}

/* Not told is 0, no bond 1; an old library answers the one question and not the other. */
static void wires_are_what_the_device_answers(void **state)
{
    static const struct {
        uint64_t mask;
        int rc;
        uint8_t says;
        unsigned wires;
    } cases[] = {{1u << 9, 0, 2, 2}, {1u << 9, 0, 4, 4},          {1u << 9, 0, 0, 1},
                 {1u << 9, 0, 1, 1}, {1u << 9, EOPNOTSUPP, 2, 0}, {1u << 16, 0, 2, 0}};
    (void)state;
    v.library = dlopen(NULL, RTLD_NOW);
    assert_non_null(v.library);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        query_mask = cases[i].mask;
        query_rc = cases[i].rc;
        query_wires = cases[i].says;
        assert_int_equal(about().wires, cases[i].wires);
    }
    query_rc = 0;
    dlclose(v.library);
}

static void a_queue_pair_is_told_its_wire_and_source_port(void **state)
{
    unsigned used = 77;
    (void)state;
    v.library = dlopen(NULL, RTLD_NOW);
    assert_non_null(v.library);
    qp_rc = 0;
    assert_int_equal(verbs_qp_wire(qp, 2), 0);
    assert_int_equal(qp_wire, 2);
    assert_int_equal(verbs_qp_wire_used(qp, &used), 0);
    assert_int_equal(used, 1); /* which is up */
    assert_int_equal(verbs_qp_sport(qp, 50000), 0);
    assert_int_equal(qp_sport, 50000);
    qp_rc = EOPNOTSUPP;
    used = 77;
    assert_int_equal(verbs_qp_wire(qp, 1), -EOPNOTSUPP);
    assert_int_equal(verbs_qp_wire_used(qp, &used), -EOPNOTSUPP);
    assert_int_equal(used, 77);
    assert_int_equal(verbs_qp_sport(qp, 50000), -EOPNOTSUPP);
    dlclose(v.library);
    v.library = dlopen("libc.so.6", RTLD_NOW);
    assert_non_null(v.library);
    qp_rc = 0;
    qp_wire = 0;
    assert_int_equal(verbs_qp_wire(qp, 1), -EOPNOTSUPP);
    assert_int_equal(verbs_qp_wire_used(qp, &used), -EOPNOTSUPP);
    assert_int_equal(verbs_qp_sport(qp, 50000), -EOPNOTSUPP);
    assert_int_equal(qp_wire, 0);
    dlclose(v.library);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(lists_become_work_requests),
        WITH(a_refusal_says_what_was_taken),
        WITH(completions_are_read),
        WITH(each_access_asks_for_its_rights),
        WITH(a_device_without_relaxed_ordering_is_strict_and_says_so_once),
        WITH(a_registration_that_fails_anyhow_says_why),
        WITH(placement_is_what_the_device_answers),
        WITH(wires_are_what_the_device_answers),
        WITH(a_queue_pair_is_told_its_wire_and_source_port),
    };
    return cmocka_run_group_tests_name("verbs_io", tests, NULL, NULL);
}
