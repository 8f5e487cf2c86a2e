/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_lag.c - bonds: finds out whether a device lets its QPs choose a wire, and tells a lane's QP which one to take.
 * May not choose: api says which way a lane takes. Called by rail_open.c and rail_conn.c; next: src/verbs/verbs_mlx5.c
 */
#include "rail_priv.h"

#include <string.h>

/* A QP that is connected to itself: mlx5dv_modify_qp_lag_port(3) speaks of connected ones. */
static int rail_lag_loop(const struct rail *rail, struct verbs_qp *qp)
{
    struct verbs_path path = rail_local_path(rail);
    memcpy(path.remote_gid, rail->address.gid, sizeof(path.remote_gid));
    path.remote_lid = rail->address.lid;
    path.remote_qpn = verbs_qp_number(qp);
    path.mtu = rail->address.mtu;
    path.requester_rd_atomic = 1;
    int rc = verbs_qp_to_init(qp, &path);
    if (!rc)
        rc = verbs_qp_to_rtr(qp, &path);
    return rc ? rc : verbs_qp_to_rts(qp, &path);
}

bool rail_lag_choice(const struct rail *rail)
{
    struct verbs_qp_size size = {.send_wr = 1, .recv_wr = 1};
    struct verbs_cq *cq = NULL;
    struct verbs_qp *qp = NULL;
    int rc = verbs_cq_create(rail->dev, 2, &cq);
    if (!rc)
        rc = verbs_qp_create(rail->dev, cq, &size, &qp);
    if (!rc)
        rc = rail_lag_loop(rail, qp);
    for (unsigned wire = rail->wires; wire > 0 && !rc; wire--)
        rc = verbs_qp_wire(qp, wire);
    verbs_qp_destroy(qp);
    verbs_cq_destroy(cq);
    log_write(rail->log, LOG_LEVEL_DEBUG, "port %s: a bond of %u wires, QPs can%s choose one%s%s", rail->name,
              rail->wires, rc ? "not" : "", rc ? ": " : "", rc ? strerror(-rc) : "");
    return !rc;
}

void rail_lag_take(struct rail_lane *lane, const struct rail_way *way)
{
    const struct rail *rail = lane->queue->rail;
    unsigned used = way->wire;
    int rc = 0;
    /* The flow label has said it already, where a driver derives the port from that. */
    int sport = way->sport ? verbs_qp_sport(lane->qp, way->sport) : 0;
    if (way->wire)
        rc = verbs_qp_wire(lane->qp, way->wire);
    if (way->wire && !rc && verbs_qp_wire_used(lane->qp, &used))
        used = way->wire;
    if (rc)
        log_write(rail->log, LOG_LEVEL_WARN, "port %s QP 0x%x: wire %u of its bond is refused (%s): it takes any",
                  rail->name, verbs_qp_number(lane->qp), way->wire, strerror(-rc));
    else if (way->wire || way->sport)
        log_write(rail->log, LOG_LEVEL_DEBUG, "port %s QP 0x%x: wire %u asked for, %u used; source port %u %s",
                  rail->name, verbs_qp_number(lane->qp), way->wire, used, way->sport, sport ? "by flow label" : "set");
}
