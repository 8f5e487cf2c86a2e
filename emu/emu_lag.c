/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_lag.c - which wire of a bond the packets of a queue pair take: at the sender by its choice (mlx5dv_modify_qp_lag_port) or by a
 * hash of its number or source port; at the receiver by the sender's wire, or by the switch's own hash. The hashes have nothing in
 * common with each other, with those of another seed, or with what real devices compute: programs may count on none.
 * Called by emu_qp.c, emu_fabric.c and wherever a packet is made; next: emu_link.c sends on the wire.
 */
#include "emu_lag.h"

#include "emu_abi.h"

#include <errno.h>

enum { EMU_LAG_SPORT_FIRST = 0xc000, EMU_LAG_SPORT_BITS = 14, EMU_LAG_LABEL_BITS = 20 };

int emu_lag_index(const struct emu_spec *s, int dev, int wire)
{
    int devs = s->nodes * s->gpus * s->ports;

    return wire ? devs + dev * (s->wires - 1) + wire - 1 : dev;
}

struct emu_port *emu_lag_port(struct emu_fabric *f, int index)
{
    int more = f->spec.wires - 1, rest = index - f->n_devs;

    return rest < 0 ? &f->devs[index].port : &f->devs[rest / more].more[rest % more];
}

/* ---- hashes --------------------------------------------------------------------------------------------------------- */

static uint64_t emu_lag_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/** Of a flow between two devices, as somebody sees it who has a hash of his own. */
static int emu_lag_hash(const struct emu_qp *qp, const struct emu_dev *to, uint64_t whose)
{
    const struct emu_fabric *f = qp->ctx->dev->fabric;
    uint64_t ends = emu_lag_mix(qp->ctx->dev->guid) + 3 * emu_lag_mix(to->guid) + emu_lag_mix(f->lag_salt + whose);

    return (int)(emu_lag_mix(ends ^ emu_lag_mix(qp->sport)) % (uint64_t)f->spec.wires);
}

/** The source port that a device makes of a flow label, or without one of both queue pairs' numbers; RoCE's ports are these 2^14. */
static uint16_t emu_lag_sport(const struct emu_qp *qp)
{
    uint32_t label = qp->attr.ah_attr.grh.flow_label & ((1u << EMU_LAG_LABEL_BITS) - 1);
    uint64_t numbers = ((uint64_t)qp->ibv.qp_num << 24) | qp->attr.dest_qp_num;

    if (!label)
        label = (uint32_t)(emu_lag_mix(numbers) >> (64 - EMU_LAG_LABEL_BITS));
    return (uint16_t)(EMU_LAG_SPORT_FIRST | ((label ^ label >> EMU_LAG_SPORT_BITS) & ((1u << EMU_LAG_SPORT_BITS) - 1)));
}

/* ---- wires ---------------------------------------------------------------------------------------------------------- */

bool emu_lag_dev_up(struct emu_dev *d)
{
    bool up = false;

    for (int w = 0; w < d->fabric->spec.wires; w++)
        up |= emu_lag_wire(d, w)->up;
    return up;
}

/** The wire itself, or the next one that is up. */
static struct emu_port *emu_lag_up(struct emu_dev *d, int wire)
{
    int wires = d->fabric->spec.wires;

    for (int i = 0; i < wires; i++) {
        struct emu_port *p = emu_lag_wire(d, (wire + i) % wires);

        if (p->up)
            return p;
    }
    return emu_lag_wire(d, wire);
}

/** Where the queue pair would send with all wires up. */
static int emu_lag_choice(const struct emu_qp *qp)
{
    const struct emu_spec *s = &qp->ctx->dev->fabric->spec;

    if (qp->lag_port)
        return qp->lag_port - 1;
    if (s->lag != EMU_LAG_HASH)
        return (int)(emu_lag_mix(qp->ibv.qp_num) % (uint64_t)s->wires);
    return qp->peer ? emu_lag_hash(qp, qp->peer->dev, 1) : 0;
}

/** Puts the queue pair where its wire is now. */
static void emu_lag_place(struct emu_qp *qp)
{
    struct emu_port *port = emu_lag_up(qp->ctx->dev, emu_lag_choice(qp));

    if (port == qp->port)
        return;
    emu_link_forget(qp);
    qp->port = port;
    emu_link_kick(qp);
}

void emu_lag_start(struct emu_qp *qp)
{
    if (qp->ctx->dev->fabric->spec.wires == 1)
        return;
    qp->lag_port = 0;
    qp->sport = emu_lag_sport(qp);
    emu_lag_place(qp);
}

void emu_lag_changed(struct emu_dev *d)
{
    if (d->fabric->spec.wires == 1)
        return;
    for (uint32_t i = 0; i < d->qps.size; i++) {
        if (d->qps.slot[i].key)
            emu_lag_place(d->qps.slot[i].value);
    }
}

struct emu_port *emu_lag_toward(const struct emu_qp *qp, struct emu_port *peer)
{
    const struct emu_spec *s = &qp->ctx->dev->fabric->spec;

    if (s->wires == 1 || !peer)
        return peer;
    if (s->lag == EMU_LAG_AFFINITY)
        return emu_lag_up(peer->dev, qp->port->wire);
    return emu_lag_up(peer->dev, emu_lag_hash(qp, peer->dev, 2));
}

/* ---- what programs call -------------------------------------------------------------------------------------------------- */

/** mlx5dv_query_qp_lag_port(3): the wire that was chosen, and the one in use, from 1. */
EMU_EXPORT int mlx5dv_query_qp_lag_port(struct ibv_qp *ibv, uint8_t *port_num, uint8_t *active_port_num);
/** mlx5dv_modify_qp_lag_port(3). Holds until the state of the queue pair changes. */
EMU_EXPORT int mlx5dv_modify_qp_lag_port(struct ibv_qp *ibv, uint8_t port_num);
/** mlx5dv_modify_qp_udp_sport(3). Likewise. */
EMU_EXPORT int mlx5dv_modify_qp_udp_sport(struct ibv_qp *ibv, uint16_t udp_sport);

static bool emu_lag_takes_choice(const struct emu_fabric *f)
{
    return f->spec.wires > 1 && f->spec.lag != EMU_LAG_HASH;
}

EMU_EXPORT int mlx5dv_query_qp_lag_port(struct ibv_qp *ibv, uint8_t *port_num, uint8_t *active_port_num)
{
    struct emu_qp *qp = (struct emu_qp *)ibv;
    struct emu_fabric *f = emu_fabric_of(ibv->context);

    if (emu_enter(f, EMU_COST_QUERY, "mlx5dv_query_qp_lag_port"))
        return ENOTSUP;
    if (!emu_lag_takes_choice(f))
        return emu_leave(f, EOPNOTSUPP);
    *port_num = (uint8_t)(emu_lag_choice(qp) + 1);
    *active_port_num = (uint8_t)(qp->port->wire + 1);
    return emu_leave(f, 0);
}

EMU_EXPORT int mlx5dv_modify_qp_lag_port(struct ibv_qp *ibv, uint8_t port_num)
{
    struct emu_qp *qp = (struct emu_qp *)ibv;
    struct emu_fabric *f = emu_fabric_of(ibv->context);

    if (emu_enter(f, EMU_COST_MODIFY_QP, "mlx5dv_modify_qp_lag_port"))
        return ENOTSUP;
    if (!emu_lag_takes_choice(f))
        return emu_leave(f, EOPNOTSUPP);
    if (ibv->state != IBV_QPS_RTS || port_num < 1 || port_num > f->spec.wires)
        return emu_leave(f, EINVAL);
    qp->lag_port = port_num;
    emu_lag_place(qp);
    return emu_leave(f, 0);
}

EMU_EXPORT int mlx5dv_modify_qp_udp_sport(struct ibv_qp *ibv, uint16_t udp_sport)
{
    struct emu_qp *qp = (struct emu_qp *)ibv;
    struct emu_fabric *f = emu_fabric_of(ibv->context);

    if (emu_enter(f, EMU_COST_MODIFY_QP, "mlx5dv_modify_qp_udp_sport"))
        return ENOTSUP;
    if (ibv->state != IBV_QPS_RTS || ibv->qp_type != IBV_QPT_RC)
        return emu_leave(f, EINVAL);
    qp->sport = udp_sport;
    if (f->spec.wires > 1)
        emu_lag_place(qp);
    return emu_leave(f, 0);
}
