/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_ud.h - unreliable datagrams: queue pairs that are connected to nobody. Included by the files of the device model.
 */
#ifndef EMU_UD_H
#define EMU_UD_H

#include "emu.h"

enum {
    EMU_UD_GRH = 40, /* bytes before the payload in the receive (ibv_poll_cq(3)) */
    EMU_UD_SL_IPV4 =
        2 /* what mlx5 reports of a RoCE v2 packet over IPv4 in the place of the service level; UCX looks at it */
};

static inline bool emu_ud_is(const struct emu_qp *qp)
{
    return qp->ibv.qp_type == IBV_QPT_UD;
}

/** Whether a request can be posted: SENDs with an address handle alone. 0 or an errno. */
int emu_ud_post_check(const struct ibv_send_wr *wr);
/** Notes where a request goes: the handle may end before the request does. */
void emu_ud_target(struct emu_wqe *w, const struct ibv_send_wr *wr);
/** True where emu_ud_next() would give a packet or end a request. */
bool emu_ud_wants(const struct emu_qp *qp);
/** The next datagram, whose request ends with its sending; NULL: none. */
struct emu_pkt *emu_ud_next(struct emu_qp *qp);
/** Takes a datagram; drops it without a word where nobody waits for it or its Q_Key is another. */
void emu_ud_receive(struct emu_qp *qp, const struct emu_pkt *p);

#endif
