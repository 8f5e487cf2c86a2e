/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_rig.h - src/verbs over a provider that is a few functions of this file: it keeps what it is given, and answers as
 * the test says. Included by test_verbs_io.c and cost_lane.c.
 */
#ifndef VERBS_RIG_H
#define VERBS_RIG_H

#include "verbs_priv.h"

#include <errno.h>
#include <string.h>

#define RIG_MAX 64

static struct {
    struct ibv_send_wr wr[RIG_MAX]; /* of the last list */
    struct ibv_sge sge[RIG_MAX];
    unsigned posted;
    int post_error; /* what posting returns */
    int bad_at;     /* then: place of bad_wr in the list; -1: not told */
    struct ibv_wc wc[RIG_MAX];
    int polled;               /* what the next poll returns */
    unsigned rights[RIG_MAX]; /* of each registration */
    uint64_t iova[RIG_MAX];
    unsigned regs;
    unsigned refused_rights; /* registrations with any of these fail */
    int reg_error;
    bool keep; /* whether posts are kept at all */
    struct ibv_mr mr;
} rig_provider;

static int rig_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void)qp;
    if (!rig_provider.keep)
        return 0;
    rig_provider.posted = 0;
    for (; wr; wr = wr->next) {
        unsigned i = rig_provider.posted;
        if (rig_provider.post_error && (int)i == rig_provider.bad_at)
            *bad = wr;
        rig_provider.wr[i] = *wr;
        rig_provider.sge[i] = *wr->sg_list;
        rig_provider.posted++;
    }
    return rig_provider.post_error;
}

static int rig_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)qp;
    (void)wr;
    (void)bad;
    return 0;
}

static int rig_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
    (void)cq;
    int n = rig_provider.polled < max ? rig_provider.polled : max;
    for (int i = 0; i < n; i++)
        wc[i] = rig_provider.wc[i];
    return n;
}

static struct ibv_mr *rig_reg(unsigned rights, uint64_t iova)
{
    unsigned i = rig_provider.regs++ % RIG_MAX;
    rig_provider.rights[i] = rights;
    rig_provider.iova[i] = iova;
    if (!(rights & rig_provider.refused_rights))
        return &rig_provider.mr;
    errno = rig_provider.reg_error;
    return NULL;
}

static struct ibv_mr *rig_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int rights)
{
    (void)pd;
    (void)addr;
    (void)len;
    return rig_reg((unsigned)rights, 0);
}

static struct ibv_mr *rig_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned rights)
{
    (void)pd;
    (void)addr;
    (void)len;
    return rig_reg(rights, iova);
}

static int rig_dereg_mr(struct ibv_mr *mr)
{
    (void)mr;
    return 0;
}

static struct ibv_cq *rig_create_cq(struct ibv_context *context, int entries, void *arg,
                                    struct ibv_comp_channel *channel, int vector)
{
    static struct ibv_cq cq;
    (void)entries;
    (void)arg;
    (void)channel;
    (void)vector;
    cq.context = context;
    return &cq;
}

static int rig_destroy_cq(struct ibv_cq *cq)
{
    (void)cq;
    return 0;
}

static unsigned rig_sig_all;

static struct ibv_qp *rig_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    static struct ibv_qp qp;
    qp.context = pd->context;
    qp.qp_num = 0x77;
    rig_sig_all = (unsigned)attr->sq_sig_all;
    return &qp;
}

static int rig_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    (void)qp;
    (void)attr;
    (void)mask;
    return 0;
}

static int rig_destroy_qp(struct ibv_qp *qp)
{
    (void)qp;
    return 0;
}

static const char *rig_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_WR_FLUSH_ERR ? "flushed" : "bad";
}

/* Fills an open device over the provider. */
static void rig_device(struct verbs *v, struct ibv_context *context, struct ibv_pd *pd, struct verbs_dev *dev)
{
    memset(&rig_provider, 0, sizeof(rig_provider));
    rig_provider.keep = true;
    rig_provider.mr = (struct ibv_mr){.lkey = 0x11, .rkey = 0x22};
    *v = (struct verbs){.reg_mr = rig_reg_mr,
                        .reg_mr_iova2 = rig_reg_mr_iova2,
                        .dereg_mr = rig_dereg_mr,
                        .create_cq = rig_create_cq,
                        .destroy_cq = rig_destroy_cq,
                        .create_qp = rig_create_qp,
                        .modify_qp = rig_modify_qp,
                        .destroy_qp = rig_destroy_qp,
                        .wc_status_str = rig_status_str};
    memset(context, 0, sizeof(*context));
    context->ops.post_send = rig_post_send;
    context->ops.post_recv = rig_post_recv;
    context->ops.poll_cq = rig_poll_cq;
    *pd = (struct ibv_pd){.context = context};
    *dev = (struct verbs_dev){.v = v, .context = context, .pd = pd, .name = "rig0"};
}

#endif
