/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_calls.c - the verbs calls about shared receive queues and address handles, each a few lines into the model, in
 * libibverbs' own error conventions. Called by programs; next: emu_srq.c, emu_ah.c.
 */
#include "emu_abi.h"
#include "emu_ah.h"

#include <errno.h>
#include <netinet/ip.h>
#include <string.h>

/* ---- shared receive queues ----------------------------------------------------------------------------------------------- */

EMU_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    struct emu_fabric *f = emu_fabric_of(pd->context);
    struct emu_srq *srq;

    if (emu_enter(f, EMU_COST_CREATE_QP, "ibv_create_srq"))
        return NULL;
    srq = emu_srq_new((struct emu_pd *)pd, init->srq_context, &init->attr);
    emu_leave(f, 0);
    return srq ? &srq->ibv : NULL;
}

EMU_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    struct emu_fabric *f = emu_fabric_of(srq->context);

    if (emu_enter(f, EMU_COST_MODIFY_QP, "ibv_modify_srq"))
        return ENOTSUP;
    return emu_leave(f, emu_srq_modify((struct emu_srq *)srq, attr, mask));
}

EMU_EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
    struct emu_fabric *f = emu_fabric_of(ibv->context);
    const struct emu_srq *srq = (const struct emu_srq *)ibv;

    if (emu_enter(f, EMU_COST_QUERY, "ibv_query_srq"))
        return ENOTSUP;
    *attr = (struct ibv_srq_attr){.max_wr = srq->size, .max_sge = srq->max_sge, .srq_limit = srq->limit};
    return emu_leave(f, 0);
}

EMU_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    struct emu_fabric *f = emu_fabric_of(srq->context);

    if (emu_enter(f, EMU_COST_MODIFY_QP, "ibv_destroy_srq"))
        return ENOTSUP;
    if (((struct emu_srq *)srq)->refs)
        return emu_leave(f, EBUSY);
    emu_abi_wait_acks(f, &((struct emu_srq *)srq)->async_given, &srq->events_completed);
    return emu_leave(f, emu_srq_destroy((struct emu_srq *)srq));
}

/* ---- address handles ------------------------------------------------------------------------------------------------------- */

EMU_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct emu_fabric *f = emu_fabric_of(pd->context);
    struct emu_ah *ah;

    if (emu_enter(f, EMU_COST_OBJECT, "ibv_create_ah"))
        return NULL;
    ah = emu_ah_new((struct emu_pd *)pd, attr);
    emu_leave(f, 0);
    return ah ? &ah->ibv : NULL;
}

EMU_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    struct emu_fabric *f = emu_fabric_of(ah->context);

    if (emu_enter(f, EMU_COST_OBJECT, "ibv_destroy_ah"))
        return ENOTSUP;
    emu_ah_free((struct emu_ah *)ah);
    return emu_leave(f, 0);
}

/** The sender of a datagram, from the IPv4 header in the last 20 bytes of the GRH area (IBA annex A17). */
EMU_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
                                   struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    struct ip ip;

    (void)context;
    if (port_num != 1 || !(wc->wc_flags & IBV_WC_GRH))
        return EINVAL;
    memcpy(&ip, (const char *)grh + sizeof(*grh) - sizeof(ip), sizeof(ip));
    if (ip.ip_v != 4)
        return EPROTONOSUPPORT;
    *attr = (struct ibv_ah_attr){.is_global = 1, .port_num = port_num, .sl = wc->sl, .grh.hop_limit = 64};
    attr->grh.dgid.raw[10] = attr->grh.dgid.raw[11] = 0xff;
    memcpy(&attr->grh.dgid.raw[12], &ip.ip_src, sizeof(ip.ip_src));
    return 0;
}

EMU_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
                                                uint8_t port_num)
{
    struct ibv_ah_attr attr;
    int rc = ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr);

    if (rc) {
        errno = rc;
        return NULL;
    }
    return ibv_create_ah(pd, &attr);
}
