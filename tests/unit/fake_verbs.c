/* SPDX-License-Identifier: Apache-2.0 */
/* fake_verbs.c - see fake_verbs.h. Stands in the place of src/verbs in unit tests of rail and api. */
#include "fake_verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_DEVICES 16
#define FAKE_DOWN    12
#define FAKE_IB      13
#define FAKE_SHORT   14
#define FAKE_QPS     256
#define FAKE_QUEUE   8192
#define FAKE_RKEY    0x10000u /* tells remote keys from local ones */
#define FAKE_RECVS   64
#define FAKE_MRS     1024 /* that can be reached by their keys */

struct verbs {
    const struct log *log;
};

struct verbs_dev {
    unsigned number;
};

struct verbs_mr {
    uint32_t key;
    bool relaxed;
    uint8_t *addr;
    uint64_t len, iova;
    int fd;
    uint64_t offset;
};

struct verbs_cq {
    struct verbs_completion done[FAKE_QUEUE];
    unsigned head, tail;
};

struct verbs_qp {
    struct verbs_cq *cq;
    uint32_t number;
    uint32_t send_max;
    struct verbs_send send[FAKE_QUEUE];
    unsigned send_head, send_tail;
    struct verbs_recv recv[FAKE_RECVS];
    unsigned recv_head, recv_tail;
    struct verbs_path path;
    unsigned wire, sport;
    bool stopped;
};

static struct {
    int alive;
    uint32_t next_key;
    unsigned remote_mrs;
    unsigned calls[FAKE_CALLS];
    unsigned fail_at[FAKE_CALLS]; /* call number; UINT_MAX: never */
    int fail_error[FAKE_CALLS];
    unsigned again_at[FAKE_CALLS]; /* as fail_at */
    int again_error[FAKE_CALLS];
    struct verbs_mr *mr[FAKE_MRS]; /* by key */
    struct verbs_qp *qp[FAKE_QPS];
    unsigned qps;
    int auto_error[FAKE_QPS];
    bool ends_itself;
    bool moves;
    bool mail_lost;
    bool flush_silent;
    bool strict;
    enum verbs_placement placement;
    unsigned wires;
    int wire_error;
    const struct verbs_gid *gids; /* NULL: one of each port's own */
    uint32_t gid_count;
    int dmabuf_error;
} fake;

#include "fake_bond.h"

void fake_reset(void)
{
    memset(&fake, 0, sizeof(fake));
    for (unsigned i = 0; i < FAKE_CALLS; i++)
        fake.fail_at[i] = fake.again_at[i] = UINT32_MAX;
}

void fake_fail(enum fake_call call, unsigned n, int error)
{
    fake.fail_at[call] = fake.calls[call] + n;
    fake.fail_error[call] = error;
}

void fake_fail_again(enum fake_call call, unsigned n, int error)
{
    fake.again_at[call] = fake.fail_at[call] + n;
    fake.again_error[call] = error;
}

unsigned fake_calls(enum fake_call call)
{
    return fake.calls[call];
}

unsigned fake_remote_mrs(void)
{
    return fake.remote_mrs;
}

int fake_alive(void)
{
    return fake.alive;
}

void fake_flush_tells(bool tells)
{
    fake.flush_silent = !tells;
}

void fake_auto(bool on)
{
    fake.ends_itself = on;
}

void fake_auto_error(unsigned i, int error)
{
    fake.auto_error[i] = error;
}

void fake_moves(bool on)
{
    fake.moves = on;
}

void fake_mail_lost(bool on)
{
    fake.mail_lost = on;
}

void fake_place(enum verbs_placement placement)
{
    fake.placement = placement;
}

void fake_gids(const struct verbs_gid *gids, uint32_t count)
{
    fake.gids = gids;
    fake.gid_count = count;
}

void fake_refuse_dmabuf(int error)
{
    fake.dmabuf_error = error;
}

struct fake_region fake_region(uint32_t key)
{
    const struct verbs_mr *mr = (key & ~FAKE_RKEY) < FAKE_MRS ? fake.mr[key & ~FAKE_RKEY] : NULL;
    if (!mr)
        return (struct fake_region){.fd = -1};
    return (struct fake_region){mr->addr, mr->fd, mr->offset, mr->len, mr->iova};
}

void fake_refuse_relaxed(void)
{
    fake.strict = true;
}

/* Counts a call; its error where it is to fail. */
static int fake_called(enum fake_call call)
{
    unsigned n = __atomic_fetch_add(&fake.calls[call], 1, __ATOMIC_RELAXED);
    if (n == fake.again_at[call])
        return fake.again_error[call];
    return n == fake.fail_at[call] ? fake.fail_error[call] : 0;
}

/* A new object, counted as alive. */
static void *fake_new(size_t size)
{
    /* Not by calloc(), which test_api_memory.c makes fail: it is libbraid's memory that runs out. */
    void *object = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!object)
        abort();
    memset(object, 0, size);
    fake.alive++;
    return object;
}

static void fake_free(void *object)
{
    if (!object)
        return;
    fake.alive--;
    free(object);
}

int verbs_load(const struct log *log, struct verbs **out)
{
    int rc = fake_called(FAKE_LOAD);
    if (rc) {
        log_write(log, LOG_LEVEL_ERROR, "cannot load the fake"); /* as verbs.h says who logs */
        return rc;
    }
    *out = fake_new(sizeof(**out));
    (*out)->log = log;
    return 0;
}

void verbs_unload(struct verbs *v)
{
    fake_free(v);
}

int verbs_dev_names(struct verbs *v, char *out, size_t size)
{
    (void)v;
    snprintf(out, size, "fake0, ..., fake%d", FAKE_DEVICES - 1);
    return FAKE_DEVICES;
}

int verbs_dev_open(struct verbs *v, const char *name, struct verbs_dev **out)
{
    int rc = fake_called(FAKE_OPEN);
    if (rc)
        log_write(v->log, LOG_LEVEL_ERROR, "cannot open device %s", name);
    for (unsigned i = 0; !rc && i < FAKE_DEVICES; i++) {
        char known[16];
        snprintf(known, sizeof(known), "fake%u", i);
        if (strcmp(known, name) != 0)
            continue;
        *out = fake_new(sizeof(**out));
        (*out)->number = i;
        return 0;
    }
    return rc ? rc : -ENODEV;
}

void verbs_dev_close(struct verbs_dev *dev)
{
    fake_free(dev);
}

int verbs_dev_limits(struct verbs_dev *dev, struct verbs_limits *out)
{
    (void)dev;
    *out =
        (struct verbs_limits){.max_send_wr = 16384, .max_cqe = 1 << 20, .rd_atomic = 16, .atomics = true, .ports = 1};
    return 0;
}

int verbs_port_query(struct verbs_dev *dev, uint8_t port, struct verbs_port *out)
{
    (void)port;
    *out = (struct verbs_port){
        .active = dev->number != FAKE_DOWN,
        .state = dev->number != FAKE_DOWN ? "ACTIVE" : "DOWN",
        .link = dev->number == FAKE_IB ? VERBS_LINK_IB : VERBS_LINK_ETHERNET,
        .mtu = 4096,
        .max_msg = dev->number == FAKE_SHORT ? 65536 : 1u << 31,
        .lid = (uint16_t)(dev->number + 1),
        .gids = fake.gids ? fake.gid_count : 1,
        .rate_bits = UINT64_C(200000000000),
    };
    return 0;
}

int verbs_gid_query(struct verbs_dev *dev, uint8_t port, uint32_t index, struct verbs_gid *out)
{
    if (fake.gids) {
        if (index >= fake.gid_count)
            return -EINVAL;
        *out = fake.gids[index];
        return 0;
    }
    if (index > 0)
        return -EINVAL;
    *out = (struct verbs_gid){.type = VERBS_GID_ROCE_V2};
    out->raw[0] = (uint8_t)dev->number;
    out->raw[1] = port;
    return 0;
}

void verbs_dev_about(struct verbs_dev *dev, struct verbs_about *out)
{
    (void)dev;
    *out = (struct verbs_about){.placement = fake.placement, .wires = fake.wires};
}

int verbs_event_next(struct verbs_dev *dev, struct verbs_event *out)
{
    (void)dev;
    (void)out;
    return 0;
}

int verbs_mr_reg(struct verbs_dev *dev, void *addr, size_t len, uint64_t iova, enum verbs_access access,
                 struct verbs_mr **out)
{
    (void)dev;
    int rc = fake_called(FAKE_MR);
    if (rc)
        return rc;
    *out = fake_new(sizeof(**out));
    (*out)->key = ++fake.next_key;
    (*out)->addr = addr;
    (*out)->len = len;
    (*out)->iova = iova ? iova : (uintptr_t)addr;
    (*out)->fd = -1;
    if ((*out)->key < FAKE_MRS)
        fake.mr[(*out)->key] = *out;
    (*out)->relaxed = access == VERBS_ACCESS_RELAXED && !fake.strict;
    fake.remote_mrs += access == VERBS_ACCESS_REMOTE || access == VERBS_ACCESS_RELAXED;
    return 0;
}

int verbs_mr_reg_dmabuf(struct verbs_dev *dev, int fd, uint64_t offset, size_t len, uint64_t iova,
                        enum verbs_access access, struct verbs_mr **out)
{
    if (fake.dmabuf_error)
        return fake.dmabuf_error;
    int rc = fcntl(fd, F_GETFD) < 0 || offset % 4096 != iova % 4096 ? -EINVAL
                                                                    : verbs_mr_reg(dev, NULL, len, iova, access, out);
    if (rc)
        return rc;
    (*out)->fd = fd;
    (*out)->offset = offset;
    return 0;
}

bool verbs_mr_relaxed(const struct verbs_mr *mr)
{
    return mr->relaxed;
}

void verbs_mr_dereg(struct verbs_mr *mr)
{
    if (mr && mr->key < FAKE_MRS)
        fake.mr[mr->key] = NULL;
    fake_free(mr);
}

uint32_t verbs_mr_lkey(const struct verbs_mr *mr)
{
    return mr->key;
}

uint32_t verbs_mr_rkey(const struct verbs_mr *mr)
{
    return mr->key | FAKE_RKEY;
}

int verbs_cq_create(struct verbs_dev *dev, uint32_t entries, struct verbs_cq **out)
{
    (void)dev;
    (void)entries;
    int rc = fake_called(FAKE_CQ);
    if (!rc)
        *out = fake_new(sizeof(**out));
    return rc;
}

void verbs_cq_destroy(struct verbs_cq *cq)
{
    fake_free(cq);
}

int verbs_qp_create(struct verbs_dev *dev, struct verbs_cq *cq, const struct verbs_qp_size *size, struct verbs_qp **out)
{
    (void)dev;
    int rc = fake_called(FAKE_QP);
    if (rc)
        return rc;
    *out = fake_new(sizeof(**out));
    (*out)->cq = cq;
    (*out)->number = 0x100 + fake.qps;
    (*out)->send_max = size->send_wr;
    if (fake.qps < FAKE_QPS)
        fake.qp[fake.qps++] = *out;
    return 0;
}

void verbs_qp_destroy(struct verbs_qp *qp)
{
    for (unsigned i = 0; qp && i < fake.qps; i++) {
        if (fake.qp[i] == qp)
            fake.qp[i] = NULL;
    }
    fake_free(qp);
}

uint32_t verbs_qp_number(const struct verbs_qp *qp)
{
    return qp->number;
}

int verbs_qp_to_init(struct verbs_qp *qp, const struct verbs_path *path)
{
    qp->path = *path;
    return fake_called(FAKE_INIT);
}

int verbs_qp_to_rtr(struct verbs_qp *qp, const struct verbs_path *path)
{
    qp->path = *path;
    return fake_called(FAKE_RTR);
}

int verbs_qp_to_rts(struct verbs_qp *qp, const struct verbs_path *path)
{
    qp->path = *path;
    return fake_called(FAKE_RTS);
}

static int fake_post(struct verbs_qp *qp, const struct verbs_send *send)
{
    int rc = fake_called(FAKE_POST_SEND);
    if (rc)
        return rc;
    if (fake_pending(qp) == qp->send_max)
        return -ENOMEM; /* as a provider says it: the caller has miscounted its slots */
    qp->send[qp->send_head++ % FAKE_QUEUE] = *send;
    if (qp->stopped)
        fake_end(qp, -ECANCELED);
    return 0;
}

void verbs_list_init(struct verbs_send *sends, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sends[i].sges = 1;
}

int verbs_post_list(struct verbs_qp *qp, struct verbs_send *sends, unsigned n, unsigned *taken)
{
    if (n < 1 || n > VERBS_LIST_MAX || sends[0].sges != 1)
        abort();
    for (unsigned i = 0; i < n; i++) {
        int rc = fake_post(qp, &sends[i]);
        if (rc) {
            *taken = i;
            return rc;
        }
    }
    return 0;
}

int verbs_post_recv(struct verbs_qp *qp, const struct verbs_recv *recv)
{
    int rc = fake_called(FAKE_POST_RECV);
    if (rc)
        return rc;
    if (qp->recv_head - qp->recv_tail == FAKE_RECVS)
        return -ENOMEM;
    qp->recv[qp->recv_head++ % FAKE_RECVS] = *recv;
    return 0;
}

static void fake_end_all(const struct verbs_cq *cq)
{
    for (unsigned i = 0; i < fake.qps; i++) {
        struct verbs_qp *qp = fake.qp[i];
        while (qp && qp->cq == cq && fake_pending(qp) > 0) {
            int error = fake.auto_error[i];
            if (error)
                fake.auto_error[i] = 0;
            fake_end(qp, error);
        }
    }
}

int verbs_poll(struct verbs_cq *cq, struct verbs_completion *out, unsigned max)
{
    unsigned n = 0;
    int rc = fake_called(FAKE_POLL);
    if (rc)
        return rc;
    if (fake.ends_itself)
        fake_end_all(cq);
    while (n < max && n < VERBS_POLL_MAX && cq->tail != cq->head)
        out[n++] = cq->done[cq->tail++ % FAKE_QUEUE];
    return (int)n;
}

const char *verbs_status_name(const struct verbs_cq *cq, uint32_t status)
{
    (void)cq;
    (void)status;
    return "as the test says";
}

struct verbs_qp *fake_qp(unsigned i)
{
    return i < fake.qps ? fake.qp[i] : NULL;
}

unsigned fake_pending(const struct verbs_qp *qp)
{
    return qp->send_head - qp->send_tail;
}

const struct verbs_send *fake_send(const struct verbs_qp *qp, unsigned i)
{
    return i < fake_pending(qp) ? &qp->send[(qp->send_tail + i) % FAKE_QUEUE] : NULL;
}

static void fake_complete(struct verbs_qp *qp, uint64_t id, uint32_t len, int error)
{
    qp->cq->done[qp->cq->head++ % FAKE_QUEUE] =
        (struct verbs_completion){.id = id, .error = error, .len = len, .qpn = qp->number};
}

/* Bytes as a key names them; the test ends where there are none, since the device would refuse. */
static uint8_t *fake_bytes(uint32_t key, uint64_t addr, uint32_t len)
{
    const struct verbs_mr *mr = key < FAKE_MRS ? fake.mr[key] : NULL;
    if (!mr || addr < mr->iova || len > mr->len || addr - mr->iova > mr->len - len)
        abort();
    return mr->addr + (addr - mr->iova);
}

/* What the target's device would do, to memory of this process. */
static void fake_move(const struct verbs_send *send)
{
    uint64_t old, new;
    if (send->op == VERBS_OP_SEND)
        return; /* fake_arrive() */
    uint8_t *local = fake_bytes(send->lkey, send->local_addr, send->len);
    uint8_t *remote = fake_bytes(fake_key(send) & ~FAKE_RKEY, send->remote_addr, send->len);
    switch (send->op) {
    case VERBS_OP_WRITE:
        memmove(remote, local, send->len);
        break;
    case VERBS_OP_READ:
        memmove(local, remote, send->len);
        break;
    case VERBS_OP_FETCH_ADD:
    case VERBS_OP_COMPARE_SWAP:
        memcpy(&old, remote, sizeof(old));
        new = old + send->operand;
        if (send->op == VERBS_OP_COMPARE_SWAP)
            new = old == send->operand ? send->swap : old;
        memcpy(remote, &new, sizeof(new));
        memcpy(local, &old, sizeof(old));
        break;
    default:
        abort();
    }
}

void fake_end(struct verbs_qp *qp, int error)
{
    struct verbs_send send = qp->send[qp->send_tail++ % FAKE_QUEUE];
    if (fake.moves && !error)
        fake_move(&send);
    if (send.op == VERBS_OP_SEND && !error && !fake.mail_lost)
        fake_arrive(qp, (const void *)(uintptr_t)send.local_addr, send.len);
    if (send.signal == VERBS_SIGNALLED || (error && !(fake.flush_silent && error == -ECANCELED)))
        fake_complete(qp, send.id, send.len, error);
}

int verbs_qp_to_err(struct verbs_qp *qp)
{
    qp->stopped = true;
    while (fake_pending(qp) > 0)
        fake_end(qp, -ECANCELED);
    while (qp->recv_head != qp->recv_tail)
        fake_complete(qp, qp->recv[qp->recv_tail++ % FAKE_RECVS].id, 0, -ECANCELED);
    return 0;
}

void fake_stray(struct verbs_qp *qp, uint64_t id, int error)
{
    fake_complete(qp, id, 0, error);
}

void fake_arrive(struct verbs_qp *qp, const void *bytes, uint32_t len)
{
    if (qp->recv_head == qp->recv_tail)
        abort(); /* a message that finds no receive: the credits are wrong */
    struct verbs_recv recv = qp->recv[qp->recv_tail++ % FAKE_RECVS];
    memcpy((void *)(uintptr_t)recv.local_addr, bytes, len < recv.len ? len : recv.len);
    fake_complete(qp, recv.id, len, 0);
}

bool fake_stopped(const struct verbs_qp *qp)
{
    return qp->stopped;
}

const struct verbs_path *fake_path(const struct verbs_qp *qp)
{
    return &qp->path;
}
