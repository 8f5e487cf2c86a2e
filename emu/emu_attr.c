/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_attr.c - which attributes a queue pair must be given for each change of state, and which values are possible
 * (IBA, Modify Queue Pair; ibv_modify_qp(3)). Decides only. Called by emu_qp.c; next: emu_qp.c applies them.
 */
#include "emu_ud.h"

#include <errno.h>

struct emu_attr_rule {
    enum ibv_qp_state from, to;
    int need, may;
};

enum {
    EMU_ATTR_ANY = IBV_QP_STATE | IBV_QP_CUR_STATE,
    EMU_ATTR_PATH = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
    EMU_ATTR_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    EMU_ATTR_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                   IBV_QP_MIN_RNR_TIMER,
    EMU_ATTR_RTS = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
};

static const struct emu_attr_rule emu_attr_rules[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, EMU_ATTR_INIT, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, EMU_ATTR_INIT},
    {IBV_QPS_INIT, IBV_QPS_RTR, EMU_ATTR_RTR, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, EMU_ATTR_RTS, EMU_ATTR_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, EMU_ATTR_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, EMU_ATTR_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     EMU_ATTR_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY},
};

static const struct emu_attr_rule emu_attr_rules_ud[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_QKEY},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_QKEY},
};

/** Only what the mask names is looked at. */
static bool emu_attr_values_ok(const struct ibv_qp_attr *a, int mask, enum ibv_mtu active_mtu)
{
    bool ok = true;

    if (mask & IBV_QP_PORT)
        ok &= a->port_num == 1;
    if (mask & IBV_QP_PKEY_INDEX)
        ok &= a->pkey_index == 0;
    if (mask & IBV_QP_PATH_MTU)
        ok &= a->path_mtu >= IBV_MTU_256 && a->path_mtu <= active_mtu;
    if (mask & IBV_QP_AV) /* RoCE: the address is a GID (IBA annex A17) */
        ok &= a->ah_attr.is_global && a->ah_attr.grh.sgid_index == 0 && a->ah_attr.port_num == 1;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        ok &= a->max_dest_rd_atomic <= EMU_MAX_RD_ATOMIC;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        ok &= a->max_rd_atomic <= EMU_MAX_RD_ATOMIC;
    if (mask & IBV_QP_TIMEOUT)
        ok &= a->timeout <= 31;
    if (mask & IBV_QP_RETRY_CNT)
        ok &= a->retry_cnt <= 7;
    if (mask & IBV_QP_RNR_RETRY)
        ok &= a->rnr_retry <= 7;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        ok &= a->min_rnr_timer <= 31;
    return ok;
}

static const struct emu_attr_rule *emu_attr_rule(const struct emu_qp *qp, enum ibv_qp_state to)
{
    const struct emu_attr_rule *r = emu_ud_is(qp) ? emu_attr_rules_ud : emu_attr_rules;
    size_t n = emu_ud_is(qp) ? sizeof(emu_attr_rules_ud) : sizeof(emu_attr_rules);

    for (size_t i = 0; i < n / sizeof(*r); i++) {
        if (r[i].from == qp->ibv.state && r[i].to == to)
            return &r[i];
    }
    return NULL;
}

int emu_attr_check(const struct emu_qp *qp, enum ibv_qp_state to, const struct ibv_qp_attr *a, int mask)
{
    enum ibv_mtu active = (enum ibv_mtu)(__builtin_ctz((unsigned)qp->port->dev->fabric->spec.mtu) - 7);
    const struct emu_attr_rule *r;

    if ((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != qp->ibv.state)
        return EINVAL;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return mask & ~EMU_ATTR_ANY ? EINVAL : 0;
    r = emu_attr_rule(qp, to);
    if (!r || (mask & r->need) != r->need || (mask & ~(r->need | r->may | EMU_ATTR_ANY)))
        return EINVAL;
    return emu_attr_values_ok(a, mask, active) ? 0 : EINVAL;
}
