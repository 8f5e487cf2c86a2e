/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_object.c - checks of queries and of the life of PDs, MRs, CQs and QPs.
 *
 * Part of the list; nothing here connects QPs unless data has to show a region's address. next: conformance_state.c.
 */
#include "conformance.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void device_attributes(struct check *c, long arg)
{
    (void)arg;
    for (int side = 0; side < 2; side++) {
        const struct ibv_device_attr *d = &c->run->device[side];
        check_that(c, d->max_qp > 0 && d->max_cq > 0 && d->max_mr > 0 && d->max_pd > 0,
                   "a maximum of objects is not positive");
        check_that(c, d->max_qp_wr >= 64, "max_qp_wr: seen %d, expected at least 64", d->max_qp_wr);
        check_that(c, d->max_cqe >= 256, "max_cqe: seen %d, expected at least 256", d->max_cqe);
        check_that(c, d->max_sge >= 1, "max_sge: seen %d", d->max_sge);
        check_that(c, d->max_qp_rd_atom >= 1, "max_qp_rd_atom: seen %d", d->max_qp_rd_atom);
        check_that(c, d->max_mr_size >= BUFFER, "max_mr_size: seen %llu", (unsigned long long)d->max_mr_size);
        check_that(c, d->phys_port_cnt >= c->run->env->port[side], "phys_port_cnt: seen %d", d->phys_port_cnt);
        check_that(c, d->atomic_cap != IBV_ATOMIC_NONE, "atomic_cap: seen none");
    }
}

static void port_attributes(struct check *c, long arg)
{
    (void)arg;
    for (int side = 0; side < 2; side++) {
        const struct ibv_port_attr *p = &c->run->port[side];
        check_equal(c, "state", p->state, IBV_PORT_ACTIVE);
        check_that(c, p->active_mtu >= IBV_MTU_256 && p->active_mtu <= p->max_mtu && p->max_mtu <= IBV_MTU_4096,
                   "active_mtu %d, max_mtu %d: expected 1 <= active <= max <= 5", (int)p->active_mtu, (int)p->max_mtu);
        check_that(c, p->gid_tbl_len > c->run->env->gid_index, "gid_tbl_len: seen %d", p->gid_tbl_len);
        check_that(c, p->pkey_tbl_len >= 1, "pkey_tbl_len: seen %d", p->pkey_tbl_len);
        check_that(c, p->max_msg_sz >= 1u << 20, "max_msg_sz: seen %u", p->max_msg_sz);
        check_that(c, p->link_layer != IBV_LINK_LAYER_INFINIBAND || p->lid, "InfiniBand port without LID");
    }
}

static void port_out_of_range(struct check *c, long arg)
{
    (void)arg;
    for (int side = 0; side < 2; side++) {
        struct ibv_port_attr attr;
        uint8_t past = (uint8_t)(c->run->device[side].phys_port_cnt + 1);
        check_that(c, ibv_query_port(c->run->ctx[side], 0, &attr) != 0,
                   "ibv_query_port(0): seen success, expected an error");
        check_that(c, ibv_query_port(c->run->ctx[side], past, &attr) != 0,
                   "ibv_query_port(%d): seen success, expected an error", past);
    }
}

static void gid_query(struct check *c, long arg)
{
    (void)arg;
    union ibv_gid none = {0}, gid;
    const struct conformance_env *env = c->run->env;
    for (int side = 0; side < 2; side++) {
        check_that(c, memcmp(&c->run->gid[side], &none, sizeof none) != 0, "GID of %c is zero", "AB"[side]);
        int past = c->run->port[side].gid_tbl_len;
        check_that(c, ibv_query_gid(c->run->ctx[side], (uint8_t)env->port[side], past, &gid) != 0,
                   "GID index %d past the table: seen success, expected an error", past);
    }
    bool same = !strcmp(env->device[A], env->device[B]) && env->port[A] == env->port[B];
    check_that(c, same || memcmp(&c->run->gid[A], &c->run->gid[B], sizeof gid) != 0, "two ports have the same GID");
}

static void object_lifecycle(struct check *c, long arg)
{
    for (long i = 0; i < arg; i++) {
        struct pair p;
        if (!pair_open(c, &p, NULL))
            return;
        for (int side = 0; side < 2; side++) {
            check_equal(c, "ibv_destroy_qp", check_release(c, p.s[side].qp), 0);
            check_equal(c, "ibv_destroy_cq", check_release(c, p.s[side].scq), 0);
            check_equal(c, "ibv_destroy_cq", check_release(c, p.s[side].rcq), 0);
            check_equal(c, "ibv_dereg_mr", check_release(c, p.s[side].mr), 0);
            check_equal(c, "ibv_dealloc_pd", check_release(c, p.s[side].pd), 0);
        }
        check_release_all(c);
    }
}

/* IBA, Deallocate Protection Domain: an error while the domain is in use; the kernel says EBUSY. */
static void pd_busy_with_mr(struct check *c, long arg)
{
    (void)arg;
    struct ibv_pd *pd = check_pd(c, A);
    void *memory = check_memory(c, 4096);
    if (!pd || !memory || !check_mr(c, pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE))
        return;
    check_equal(c, "ibv_dealloc_pd with an MR alive", check_release(c, pd), EBUSY);
}

static void busy_with_qp(struct check *c, long arg)
{
    struct pair p;
    if (!pair_open(c, &p, NULL))
        return;
    void *thing = arg ? (void *)p.s[A].scq : (void *)p.s[A].pd;
    if (!arg)
        check_release(c, p.s[A].mr);
    check_equal(c, arg ? "ibv_destroy_cq with a QP alive" : "ibv_dealloc_pd with a QP alive", check_release(c, thing),
                EBUSY);
}

/* ibv_reg_mr(3): remote write or remote atomic need local write too. */
static void mr_needs_local_write(struct check *c, long arg)
{
    struct ibv_pd *pd = check_pd(c, A);
    void *memory = check_memory(c, 4096);
    if (!pd || !memory)
        return;
    errno = 0;
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, 4096, (int)arg);
    check_that(c, !mr, "rights %#lx: seen success, expected EINVAL", arg);
    check_that(c, mr || errno == EINVAL, "rights %#lx: seen errno %d, expected EINVAL", arg, errno);
    if (mr)
        ibv_dereg_mr(mr);
}

/* ibv_reg_mr(3) pins what it registers: there must be something. The kernel says EFAULT. */
static void mr_unmapped(struct check *c, long pages_there)
{
    struct ibv_pd *pd = check_pd(c, A);
    long page = sysconf(_SC_PAGESIZE);
    size_t there = (size_t)(pages_there * page);
    uint8_t *memory = mmap(NULL, 4 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!check_that(c, memory != MAP_FAILED, "mmap: %s", strerror(errno)) || !pd)
        return;
    munmap(memory + there, 4 * (size_t)page - there);
    errno = 0;
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, 2 * (size_t)page, IBV_ACCESS_LOCAL_WRITE);
    check_that(c, !mr, "memory that is not there: seen success, expected EFAULT");
    check_that(c, mr || errno == EFAULT, "memory that is not there: seen errno %d, expected EFAULT", errno);
    if (mr)
        ibv_dereg_mr(mr);
    if (there)
        munmap(memory, there);
}

static void mr_fields(struct check *c, long arg)
{
    (void)arg;
    struct ibv_pd *pd = check_pd(c, A);
    uint8_t *memory = check_memory(c, 8192);
    if (!pd || !memory)
        return;
    struct ibv_mr *first = check_mr(c, pd, memory, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_mr *second = check_mr(c, pd, memory + 100, 1000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!first || !second)
        return;
    check_that(c, second->addr == memory + 100 && second->length == 1000,
               "MR says %p and %zu bytes, expected %p and 1000", second->addr, second->length, (void *)(memory + 100));
    check_that(c, second->pd == pd && second->context == c->run->ctx[A], "MR names another PD or context");
    check_that(c, first->lkey != second->lkey, "two MRs have lkey %#x", first->lkey);
    check_that(c, first->rkey != second->rkey, "two MRs have rkey %#x", first->rkey);
}

/* A region without rights may still be read locally: local read is always enabled (ibv_reg_mr(3)). */
static void mr_zero_rights(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct ibv_mr *mr = check_mr(c, p.s[A].pd, p.s[A].buf, 4096, 0);
    if (!mr)
        return;
    pair_want(&p, B, 0, A, 0, 4096);
    pair_do(&p, A, &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 4096, .lkey = mr->lkey});
    pair_check(&p);
}

static void mr_iova(struct check *c, long arg)
{
    (void)arg;
    struct pair p;
    uint64_t iova = 0x7000000000ull;
    if (!pair_start(c, &p, NULL))
        return;
    struct ibv_mr *mr = ibv_reg_mr_iova(p.s[B].pd, p.s[B].buf, 8192, iova, p.o.mr_access);
    if (!check_that(c, mr != NULL, "ibv_reg_mr_iova: %s", strerror(errno)))
        return;
    pair_want(&p, B, 100, A, 0, 5000);
    pair_do(
        &p, A,
        &(struct op){.id = 1, .opcode = IBV_WR_RDMA_WRITE, .len = 5000, .rkey = mr->rkey, .remote_addr = iova + 100});
    pair_check(&p);
    check_equal(c, "ibv_dereg_mr", ibv_dereg_mr(mr), 0);
}

/* The kernel wants address and IOVA at the same place within a page: ib_uverbs_reg_mr() in Linux says EINVAL. */
static void mr_iova_page_offset(struct check *c, long arg)
{
    (void)arg;
    struct ibv_pd *pd = check_pd(c, A);
    uint8_t *memory = check_memory(c, 8192);
    if (!pd || !memory)
        return;
    errno = 0;
    struct ibv_mr *mr =
        ibv_reg_mr_iova(pd, memory, 4096, 0x7000000000ull + ((uintptr_t)memory + 8) % 4096, IBV_ACCESS_LOCAL_WRITE);
    check_that(c, !mr, "an IOVA elsewhere in its page: seen success, expected EINVAL");
    check_that(c, mr || errno == EINVAL, "seen errno %d, expected EINVAL", errno);
    if (mr)
        ibv_dereg_mr(mr);
}

static void cq_size(struct check *c, long arg)
{
    (void)arg;
    struct ibv_cq *cq = check_cq(c, A, 10, NULL);
    if (cq)
        check_that(c, cq->cqe >= 10, "cqe: seen %d, expected at least 10", cq->cqe);
}

static void cq_bad_size(struct check *c, long arg)
{
    int cqe = arg ? c->run->device[A].max_cqe : 0;
    if (cqe == INT32_MAX) {
        check_skip(c, "the device sets no limit");
        return;
    }
    cqe += arg != 0;
    struct ibv_cq *cq = ibv_create_cq(c->run->ctx[A], cqe, NULL, NULL, 0);
    check_that(c, !cq, "ibv_create_cq(%d): seen success, expected an error", cqe);
    if (cq)
        ibv_destroy_cq(cq);
}

static void cq_starts_empty(struct check *c, long arg)
{
    (void)arg;
    struct ibv_cq *cq = check_cq(c, A, 16, NULL);
    struct ibv_wc wc;
    if (cq)
        check_equal(c, "ibv_poll_cq of a new CQ", ibv_poll_cq(cq, 1, &wc), 0);
}

static void qp_caps(struct check *c, long arg)
{
    (void)arg;
    struct pair_options o = pair_defaults();
    o.send_wr = 33, o.recv_wr = 17, o.sge = 3;
    struct pair p;
    if (!pair_open(c, &p, &o))
        return;
    const struct ibv_qp_cap *cap = &p.s[A].cap;
    check_that(c, cap->max_send_wr >= 33, "max_send_wr: seen %u, expected at least 33", cap->max_send_wr);
    check_that(c, cap->max_recv_wr >= 17, "max_recv_wr: seen %u, expected at least 17", cap->max_recv_wr);
    check_that(c, cap->max_send_sge >= 3 && cap->max_recv_sge >= 3, "SGEs: seen %u and %u, expected at least 3",
               cap->max_send_sge, cap->max_recv_sge);
}

static void qp_too_big(struct check *c, long arg)
{
    (void)arg;
    struct ibv_pd *pd = check_pd(c, A);
    struct ibv_cq *cq = check_cq(c, A, 16, NULL);
    if (!pd || !cq)
        return;
    uint32_t wr = (uint32_t)c->run->device[A].max_qp_wr + 1;
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = wr, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    check_that(c, !qp, "ibv_create_qp with max_qp_wr + 1 = %u: seen success, expected an error", wr);
    if (qp)
        ibv_destroy_qp(qp);
}

static void qp_numbers(struct check *c, long arg)
{
    (void)arg;
    struct pair p[4];
    for (int i = 0; i < 4; i++)
        if (!pair_open(c, &p[i], NULL))
            return;
    for (int i = 0; i < 4; i++) {
        uint32_t n = p[i].s[A].qp->qp_num;
        check_that(c, n > 1 && n < 1u << 24, "qp_num: seen %#x, expected 2 to 0xffffff", n);
        for (int j = 0; j < i; j++)
            check_that(c, n != p[j].s[A].qp->qp_num, "two QPs have the number %#x", n);
    }
}

enum { WRITE_ONLY = IBV_ACCESS_REMOTE_WRITE, ATOMIC_ONLY = IBV_ACCESS_REMOTE_ATOMIC };

const struct conformance_check conformance_object_checks[] = {
    {"device_attributes", device_attributes, 0},
    {"port_attributes", port_attributes, 0},
    {"port_out_of_range", port_out_of_range, 0},
    {"gid_query", gid_query, 0},
    {"object_lifecycle", object_lifecycle, 20},
    {"pd_busy_with_mr", pd_busy_with_mr, 0},
    {"pd_busy_with_qp", busy_with_qp, 0},
    {"cq_busy_with_qp", busy_with_qp, 1},
    {"mr_remote_write_needs_local", mr_needs_local_write, WRITE_ONLY},
    {"mr_remote_atomic_needs_local", mr_needs_local_write, ATOMIC_ONLY},
    {"mr_unmapped", mr_unmapped, 0},
    {"mr_partly_unmapped", mr_unmapped, 1},
    {"mr_fields", mr_fields, 0},
    {"mr_zero_rights", mr_zero_rights, 0},
    {"mr_iova", mr_iova, 0},
    {"mr_iova_page_offset", mr_iova_page_offset, 0},
    {"cq_size", cq_size, 0},
    {"cq_size_zero", cq_bad_size, 0},
    {"cq_size_above_max", cq_bad_size, 1},
    {"cq_starts_empty", cq_starts_empty, 0},
    {"qp_caps", qp_caps, 0},
    {"qp_too_big", qp_too_big, 0},
    {"qp_numbers", qp_numbers, 0},
    {0},
};
