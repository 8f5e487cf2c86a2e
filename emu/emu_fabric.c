/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_fabric.c - builds the cluster that a SPEC describes, finds things in it, and changes ports while it runs.
 * Called by emu_sim.c; next: emu_link.c moves packets between the ports.
 */
#include "emu_lag.h"
#include "emu_topo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void emu_fabric_name(struct emu_dev *d, int n)
{
    struct ibv_device *ibv = &d->ibv;

    ibv->node_type = IBV_NODE_CA;
    ibv->transport_type = IBV_TRANSPORT_IB;
    snprintf(ibv->name, sizeof(ibv->name), "mlx5_%d", n);
    snprintf(ibv->dev_name, sizeof(ibv->dev_name), "uverbs%d", n);
    snprintf(ibv->dev_path, sizeof(ibv->dev_path), "/sys/class/infiniband_verbs/uverbs%d", n);
    snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path), "/sys/class/infiniband/mlx5_%d", n);
}

/** The port's one GID: RoCE v2 over IPv4, 10.host.card.port, as an address mapped into IPv6. */
static void emu_fabric_gid(struct emu_port *p, int host, int n)
{
    memset(&p->gid, 0, sizeof(p->gid));
    p->gid.raw[10] = p->gid.raw[11] = 0xff;
    p->gid.raw[12] = 10;
    p->gid.raw[13] = (unsigned char)host;
    p->gid.raw[14] = (unsigned char)(n >> 8);
    p->gid.raw[15] = (unsigned char)(n + 1);
}

/** A wire of the i-th device, which is its host's n-th. */
static int emu_fabric_port(struct emu_fabric *f, struct emu_dev *d, int i, int n, int wire)
{
    struct emu_port *p = emu_lag_wire(d, wire);

    p->dev = d;
    p->wire = wire;
    p->index = emu_lag_index(&f->spec, i, wire);
    p->plane = emu_topo_plane(&f->spec, n);
    p->rate_bits = f->spec.rate_bits[n % f->spec.ports];
    p->slow = 1;
    p->loss = f->spec.loss;
    p->up = true;
    p->ctl_tail = &p->ctl_head;
    p->last_arrival = calloc((size_t)emu_lag_wires(&f->spec), sizeof(*p->last_arrival));
    emu_fabric_gid(p, d->host, n);
    return p->last_arrival ? 0 : -ENOMEM;
}

int emu_fabric_init(struct emu_fabric *f)
{
    f->per_host = f->spec.gpus * f->spec.ports;
    f->n_devs = f->per_host * f->spec.nodes;
    f->trace = 14695981039346656037u;
    f->lag_salt = f->rng.state;
    f->spec_text = emu_spec_print(&f->spec);
    f->devs = calloc((size_t)f->n_devs, sizeof(*f->devs));
    f->bus = calloc((size_t)(f->spec.nodes * f->spec.gpus), sizeof(*f->bus));
    if (!f->devs || !f->spec_text || !f->bus)
        return -ENOMEM;
    for (int i = 0; i < f->n_devs; i++) {
        struct emu_dev *d = &f->devs[i];
        int n = i % f->per_host;

        d->fabric = f;
        d->host = i / f->per_host;
        d->exists = emu_spec_has(&f->spec, &(struct emu_place){.host = d->host, .dev = n});
        d->card = i / f->spec.ports;
        d->guid = 0x0200000000000000u | ((uint64_t)d->host << 16) | (uint64_t)n;
        emu_fabric_name(d, n);
        d->more = calloc((size_t)f->spec.wires, sizeof(*d->more)); /* one too many, so never nothing */
        for (int w = 0; w < f->spec.wires; w++) {
            if (!d->more || emu_fabric_port(f, d, i, n, w))
                return -ENOMEM;
        }
    }
    return 0;
}

static void emu_fabric_free_dev(struct emu_dev *d)
{
    free(d->port.last_arrival);
    for (int w = 0; d->more && w < d->fabric->spec.wires - 1; w++)
        free(d->more[w].last_arrival);
    free(d->more);
    emu_map_fini(&d->qps);
    emu_map_fini(&d->mrs);
}

void emu_fabric_fini(struct emu_fabric *f)
{
    if (f->devs)
        emu_fabric_abandon(f, NULL);
    for (int i = 0; f->devs && i < f->n_devs; i++)
        emu_fabric_free_dev(&f->devs[i]);
    free(f->devs);
    free(f->bus);
    free(f->spec_text);
    emu_pkt_drain(f);
    f->devs = NULL;
    f->bus = NULL;
    f->spec_text = NULL;
}

struct emu_port *emu_fabric_find_gid(struct emu_fabric *f, const union ibv_gid *gid)
{
    for (int i = 0; i < f->n_devs; i++) {
        if (f->devs[i].exists && memcmp(gid, &f->devs[i].port.gid, sizeof(*gid)) == 0)
            return &f->devs[i].port;
    }
    return NULL;
}

static void emu_fabric_apply_wire(struct emu_port *p, const struct emu_change *c)
{
    bool was_up = p->up, was_stalled = p->stalled;

    switch (c->kind) {
    case EMU_CHANGE_DOWN:
        p->up = false;
        break;
    case EMU_CHANGE_UP:
        p->up = true;
        p->stalled = false;
        break;
    case EMU_CHANGE_STALL:
        p->stalled = true;
        break;
    case EMU_CHANGE_SLOW:
        p->slow = c->value;
        break;
    case EMU_CHANGE_LOSS:
        p->loss = c->value;
        break;
    case EMU_CHANGE_DELAY:
        p->delay_ns = (uint64_t)c->value;
        break;
    }
    if (p->up != was_up || p->stalled != was_stalled)
        emu_switch_changed(p);
}

void emu_fabric_apply(struct emu_fabric *f, const struct emu_change *c)
{
    struct emu_dev *d = &f->devs[c->port.host * f->per_host + c->port.dev];
    bool was_up = emu_lag_dev_up(d), up;

    for (int w = 0; w < f->spec.wires; w++) {
        if (!c->port.wire || c->port.wire == w + 1)
            emu_fabric_apply_wire(emu_lag_wire(d, w), c);
    }
    up = emu_lag_dev_up(d);
    emu_lag_changed(d);
    if (up != was_up)
        emu_event_raise_port(d, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

int emu_fabric_command(const struct emu_spec *s, const char *command, struct emu_change *out, char *why, size_t why_len)
{
    char port[64], kind[16], value[32];
    struct emu_change c = {0};
    int used = 0, n = sscanf(command, "port %63s %15s %n%31s", port, kind, &used, value);
    int rc;

    if (n < 2) {
        snprintf(why, why_len, "emu: seen \"%.80s\", expected port HOST/DEVICE:1 down|up|stall|slow|loss|delay [VALUE]",
                 command);
        return -EINVAL;
    }
    rc = emu_spec_change(kind, port, n == 3 ? value : NULL, &c, why, why_len);
    if (rc)
        return rc;
    if (c.port.host >= s->nodes || c.port.dev >= s->gpus * s->ports || c.port.wire > s->wires) {
        snprintf(why, why_len, "emu: seen port %s, expected hosts below h%d, devices below mlx5_%d and wires up to %d",
                 port, s->nodes, s->gpus * s->ports, s->wires);
        return -EINVAL;
    }
    if (!emu_spec_has(s, &c.port)) {
        snprintf(why, why_len, "emu: seen port %s, which this fabric leaves out; expected one that is there", port);
        return -EINVAL;
    }
    *out = c;
    return 0;
}

int emu_fabric_ctl(struct emu_fabric *f, const char *command, char *why, size_t why_len)
{
    struct emu_change c;
    int rc = emu_fabric_command(&f->spec, command, &c, why, why_len);

    if (rc == 0)
        emu_fabric_apply(f, &c);
    return rc;
}

static void emu_fabric_timed(void *obj, uint64_t i)
{
    struct emu_fabric *f = obj;

    emu_fabric_apply(f, &f->spec.change[i]);
}

void emu_fabric_schedule(struct emu_fabric *f)
{
    for (int i = 0; i < f->spec.n_changes; i++)
        f->clock->at(f, f->spec.change[i].at_ns, emu_fabric_timed, f, (uint64_t)i);
}

static void emu_fabric_explain_dev(const struct emu_dev *d, FILE *to)
{
    for (uint32_t i = 0; i < d->qps.size; i++) {
        const struct emu_qp *qp = d->qps.slot[i].key ? d->qps.slot[i].value : NULL;

        if (!qp || (qp->sq_una == qp->sq_tail && qp->ibv.state != IBV_QPS_ERR))
            continue;
        fprintf(to, "  QP 0x%06x of h%d/%s:1 in state %d: %llu requests unfinished%s%s%s%s\n", qp->ibv.qp_num, d->host,
                d->ibv.name, (int)qp->ibv.state, (unsigned long long)(qp->sq_tail - qp->sq_una),
                qp->rnr_waiting ? ", waiting after RNR" : "", d->port.up ? "" : ", port down",
                d->port.stalled ? ", port stalled" : "", d->port.held.head ? ", port paused" : "");
    }
}

void emu_fabric_explain(struct emu_fabric *f, FILE *to)
{
    for (int i = 0; i < f->n_devs; i++)
        emu_fabric_explain_dev(&f->devs[i], to);
}
