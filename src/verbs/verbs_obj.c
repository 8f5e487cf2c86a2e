/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_obj.c - MRs, CQs and QPs with their states.
 * May not post or poll. Called by src/rail (rail_open.c, rail_conn.c); next: verbs_io.c
 */
#include "verbs_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is to be registered: memory of this process at an address, or part of a dma-buf. */
struct verbs_memory {
    void *addr; /* NULL: a dma-buf */
    int fd;
    uint64_t offset;
    size_t len;
    uint64_t iova; /* 0: addr */
};

/* The registration itself: *out, or a negative errno. */
static int verbs_mr_try(struct verbs_dev *dev, const struct verbs_memory *m, unsigned rights, struct ibv_mr **out)
{
    errno = 0;
    if (!m->addr)
        *out = dev->v->reg_dmabuf_mr(dev->pd, m->offset, m->len, m->iova, m->fd, (int)rights);
    /* With an IOVA or optional rights ibv_reg_mr() is a macro around this call (infiniband/verbs.h). */
    else if (m->iova || rights & IBV_ACCESS_OPTIONAL_RANGE)
        *out = dev->v->reg_mr_iova2(dev->pd, m->addr, m->len, m->iova ? m->iova : (uintptr_t)m->addr, rights);
    else
        *out = dev->v->reg_mr(dev->pd, m->addr, m->len, (int)rights);
    return *out ? 0 : verbs_errno();
}

static unsigned verbs_rights(enum verbs_access access)
{
    switch (access) {
    case VERBS_ACCESS_LOCAL:
        return IBV_ACCESS_LOCAL_WRITE;
    case VERBS_ACCESS_READ:
        return IBV_ACCESS_REMOTE_READ;
    default:
        return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
}

static int verbs_mr_make(struct verbs_dev *dev, const struct verbs_memory *memory, enum verbs_access access,
                         struct verbs_mr **out)
{
    struct ibv_mr *ibv = NULL;
    unsigned rights = verbs_rights(access);
    struct verbs_mr *mr = calloc(1, sizeof(*mr));
    if (!mr)
        return -ENOMEM;
    int rc = -EOPNOTSUPP;
    bool relaxed = access == VERBS_ACCESS_RELAXED && !dev->strict;
    if (relaxed)
        rc = verbs_mr_try(dev, memory, rights | IBV_ACCESS_RELAXED_ORDERING, &ibv);
    /* Optional rights are for the taking, but libraries and kernels older than them refuse what they do not know. */
    if (!relaxed || rc == -EINVAL || rc == -EOPNOTSUPP) {
        int refused = rc;
        rc = verbs_mr_try(dev, memory, rights, &ibv);
        if (!rc && relaxed) {
            dev->strict = true;
            relaxed = false;
            log_write(dev->v->log, LOG_LEVEL_INFO,
                      "device %s refuses relaxed ordering (%s): its memory is strictly ordered", dev->name,
                      strerror(-refused));
        }
    }
    if (rc) {
        free(mr);
        return rc;
    }
    *mr = (struct verbs_mr){.dev = dev, .relaxed = relaxed, .ibv = ibv};
    *out = mr;
    return 0;
}

int verbs_mr_reg(struct verbs_dev *dev, void *addr, size_t len, uint64_t iova, enum verbs_access access,
                 struct verbs_mr **out)
{
    struct verbs_memory memory = {.addr = addr, .fd = -1, .len = len, .iova = iova};
    return verbs_mr_make(dev, &memory, access, out);
}

int verbs_mr_reg_dmabuf(struct verbs_dev *dev, int fd, uint64_t offset, size_t len, uint64_t iova,
                        enum verbs_access access, struct verbs_mr **out)
{
    struct verbs_memory memory = {.fd = fd, .offset = offset, .len = len, .iova = iova};
    return dev->v->reg_dmabuf_mr ? verbs_mr_make(dev, &memory, access, out) : -EOPNOTSUPP;
}

bool verbs_mr_relaxed(const struct verbs_mr *mr)
{
    return mr->relaxed;
}

void verbs_mr_dereg(struct verbs_mr *mr)
{
    if (!mr)
        return;
    int rc = verbs_result(mr->dev->v->dereg_mr(mr->ibv));
    if (rc)
        log_write(mr->dev->v->log, LOG_LEVEL_WARN, "device %s: ending a registration: %s", mr->dev->name,
                  strerror(-rc));
    free(mr);
}

uint32_t verbs_mr_lkey(const struct verbs_mr *mr)
{
    return mr->ibv->lkey;
}

uint32_t verbs_mr_rkey(const struct verbs_mr *mr)
{
    return mr->ibv->rkey;
}

int verbs_cq_create(struct verbs_dev *dev, uint32_t entries, struct verbs_cq **out)
{
    struct verbs_cq *cq = calloc(1, sizeof(*cq));
    if (!cq)
        return -ENOMEM;
    errno = 0;
    cq->ibv = dev->v->create_cq(dev->context, (int)entries, NULL, NULL, 0);
    if (!cq->ibv) {
        int rc = verbs_errno();
        free(cq);
        return rc;
    }
    cq->dev = dev;
    *out = cq;
    return 0;
}

void verbs_cq_destroy(struct verbs_cq *cq)
{
    if (!cq)
        return;
    int rc = verbs_result(cq->dev->v->destroy_cq(cq->ibv));
    if (rc)
        log_write(cq->dev->v->log, LOG_LEVEL_WARN, "device %s: destroying a CQ: %s", cq->dev->name, strerror(-rc));
    free(cq);
}

int verbs_qp_create(struct verbs_dev *dev, struct verbs_cq *cq, const struct verbs_qp_size *size, struct verbs_qp **out)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq->ibv,
        .recv_cq = cq->ibv,
        .cap = {.max_send_wr = size->send_wr, .max_recv_wr = size->recv_wr, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct verbs_qp *qp = calloc(1, sizeof(*qp));
    if (!qp)
        return -ENOMEM;
    errno = 0;
    qp->ibv = dev->v->create_qp(dev->pd, &attr);
    if (!qp->ibv) {
        int rc = verbs_errno();
        free(qp);
        return rc;
    }
    qp->dev = dev;
    *out = qp;
    return 0;
}

void verbs_qp_destroy(struct verbs_qp *qp)
{
    if (!qp)
        return;
    int rc = verbs_result(qp->dev->v->destroy_qp(qp->ibv));
    if (rc)
        log_write(qp->dev->v->log, LOG_LEVEL_WARN, "device %s: destroying a QP: %s", qp->dev->name, strerror(-rc));
    free(qp);
}

uint32_t verbs_qp_number(const struct verbs_qp *qp)
{
    return qp->ibv->qp_num;
}

static int verbs_qp_modify(struct verbs_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    errno = 0;
    return verbs_result(qp->dev->v->modify_qp(qp->ibv, attr, mask));
}

int verbs_qp_to_init(struct verbs_qp *qp, const struct verbs_path *path)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = path->pkey_index,
        .port_num = path->port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    return verbs_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static enum ibv_mtu verbs_mtu(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;
    while (mtu < IBV_MTU_4096 && 128u << mtu < bytes)
        mtu++;
    return mtu;
}

int verbs_qp_to_rtr(struct verbs_qp *qp, const struct verbs_path *path)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = verbs_mtu(path->mtu),
        .dest_qp_num = path->remote_qpn,
        .rq_psn = path->remote_psn,
        .max_dest_rd_atomic = path->responder_rd_atomic,
        .min_rnr_timer = path->min_rnr_timer,
        .ah_attr = {.dlid = path->remote_lid, .sl = path->sl, .port_num = path->port, .is_global = path->global},
    };
    if (path->global) {
        attr.ah_attr.grh.sgid_index = path->gid_index;
        attr.ah_attr.grh.hop_limit = 64;
        attr.ah_attr.grh.traffic_class = path->traffic_class;
        attr.ah_attr.grh.flow_label = path->flow_label;
        memcpy(attr.ah_attr.grh.dgid.raw, path->remote_gid, sizeof(path->remote_gid));
    }
    return verbs_qp_modify(qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int verbs_qp_to_rts(struct verbs_qp *qp, const struct verbs_path *path)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = path->local_psn,
        .timeout = path->timeout,
        .retry_cnt = path->retry,
        .rnr_retry = path->rnr_retry,
        .max_rd_atomic = path->requester_rd_atomic,
    };
    return verbs_qp_modify(qp, &attr,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_MAX_QP_RD_ATOMIC);
}

int verbs_qp_to_err(struct verbs_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    return verbs_qp_modify(qp, &attr, IBV_QP_STATE);
}
