/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_open.c - opens a port as a rail, and a completion queue of it for a channel.
 * May not choose ports. Called by src/api/api_open.c and api_peer.c; next: rail_conn.c
 */
#include "rail_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RAIL_GID_AUTO    UINT32_MAX
#define RAIL_FLUSH_BYTES 64u /* of a flush line: a cache line */

_Static_assert((int)RAIL_WIRE_LINK_IB == (int)VERBS_LINK_IB, "the wire's numbers are fixed");
_Static_assert((int)RAIL_WIRE_LINK_ETHERNET == (int)VERBS_LINK_ETHERNET, "the wire's numbers are fixed");
_Static_assert((int)RAIL_WIRE_PLACEMENT_SILENT == (int)VERBS_PLACEMENT_SILENT, "the wire's numbers are fixed");
_Static_assert((int)RAIL_WIRE_PLACEMENT_ORDERED == (int)VERBS_PLACEMENT_ORDERED, "the wire's numbers are fixed");
_Static_assert((int)RAIL_WIRE_PLACEMENT_UNORDERED == (int)VERBS_PLACEMENT_UNORDERED, "the wire's numbers are fixed");

const char *rail_hint(int error)
{
    return error == -ENOMEM ? ": raise the limit of locked memory (ulimit -l), or need less of it (sq_depth, channels)"
                            : "";
}

/* Whether the options allow a GID of this address. */
static bool rail_gid_allowed(const struct rail_config *c, const uint8_t gid[16])
{
    bool ipv4 = iprange_is_ipv4(gid);
    if ((c->gid_family == RAIL_FAMILY_IPV4 && !ipv4) || (c->gid_family == RAIL_FAMILY_IPV6 && ipv4))
        return false;
    return iprange_has(&c->gid_range, gid);
}

/* Chooses a GID of an Ethernet port: the first of the RoCE version and addresses that the options say, IPv4 before IPv6.
 * Where types are not told, index 0 if its address may be. 0, or -EADDRNOTAVAIL; logs. */
static int rail_choose_gid(const struct rail *rail, const struct verbs_port *port, uint32_t *out)
{
    const struct rail_config *c = &rail->config;
    enum verbs_gid_type type = c->roce_version == 1 ? VERBS_GID_ROCE_V1 : VERBS_GID_ROCE_V2;
    uint32_t ipv6 = RAIL_GID_AUTO;
    bool told = false;
    struct verbs_gid gid;
    for (uint32_t i = 0; i < min_u32(port->gids, 256); i++) {
        if (verbs_gid_query(rail->dev, rail->port, i, &gid))
            continue;
        told |= gid.type == VERBS_GID_ROCE_V1 || gid.type == VERBS_GID_ROCE_V2;
        if (gid.type != type || !rail_gid_allowed(c, gid.raw))
            continue;
        if (iprange_is_ipv4(gid.raw)) {
            *out = i;
            return 0;
        }
        if (ipv6 == RAIL_GID_AUTO)
            ipv6 = i;
    }
    if (ipv6 == RAIL_GID_AUTO && !told && !verbs_gid_query(rail->dev, rail->port, 0, &gid) &&
        rail_gid_allowed(c, gid.raw))
        ipv6 = 0;
    if (ipv6 != RAIL_GID_AUTO) {
        *out = ipv6;
        return 0;
    }
    log_write(rail->log, LOG_LEVEL_ERROR,
              "port %s: none of its %u GIDs is of RoCE v%u and an address that gid_family and gid_range accept: change "
              "these, or set gid_index",
              rail->name, port->gids, c->roce_version);
    return -EADDRNOTAVAIL;
}

static int rail_read_gid(struct rail *rail, const struct verbs_port *port)
{
    struct verbs_gid gid;
    uint32_t index = rail->config.gid_index;
    if (index == RAIL_GID_AUTO) {
        int none = 0;
        index = 0;
        if (port->link == VERBS_LINK_ETHERNET)
            none = rail_choose_gid(rail, port, &index);
        if (none)
            return none;
    }
    int rc = verbs_gid_query(rail->dev, rail->port, index, &gid);
    if (rc) {
        log_write(rail->log, LOG_LEVEL_ERROR, "port %s has no GID at index %u (%s): set gid_index to one of its %u",
                  rail->name, index, strerror(-rc), port->gids);
        return rc;
    }
    rail->gid_index = (uint8_t)index;
    memcpy(rail->address.gid, gid.raw, sizeof(gid.raw));
    return 0;
}

static int rail_read_port(struct rail *rail)
{
    struct verbs_port port;
    if (rail->port > rail->limits.ports) {
        log_write(rail->log, LOG_LEVEL_ERROR, "there is no port %s: its device has %u", rail->name, rail->limits.ports);
        return -ENODEV;
    }
    int rc = verbs_port_query(rail->dev, rail->port, &port);
    if (rc) {
        log_write(rail->log, LOG_LEVEL_ERROR, "cannot query port %s: %s", rail->name, strerror(-rc));
        return rc;
    }
    if (!port.active) {
        log_write(rail->log, LOG_LEVEL_ERROR,
                  "port %s is %s, expected ACTIVE: check the cable, or leave it out of ports", rail->name, port.state);
        return -ENETDOWN;
    }
    if (port.link == VERBS_LINK_OTHER || port.mtu == 0) {
        log_write(rail->log, LOG_LEVEL_ERROR,
                  "port %s is neither InfiniBand nor Ethernet, or says no MTU: leave it out", rail->name);
        return -ENOTSUP;
    }
    rail->max_msg = port.max_msg ? port.max_msg : UINT32_MAX;
    rail->address.lid = port.lid;
    rail->address.link = (uint8_t)port.link;
    rail->address.mtu = rail->config.mtu_max ? min_u32(port.mtu, rail->config.mtu_max) : port.mtu;
    rail->address.rate_bits = port.rate_bits;
    return rail_read_gid(rail, &port);
}

static int rail_read_limits(struct rail *rail)
{
    int rc = verbs_dev_limits(rail->dev, &rail->limits);
    if (rc) {
        log_write(rail->log, LOG_LEVEL_ERROR, "cannot query the device of port %s: %s", rail->name, strerror(-rc));
        return rc;
    }
    if (!rail->limits.atomics || rail->limits.rd_atomic == 0) {
        log_write(rail->log, LOG_LEVEL_ERROR,
                  "port %s: its device has no RDMA atomics, which signals need: leave it out", rail->name);
        return -ENOTSUP;
    }
    if (rail->limits.max_send_wr < rail->config.sq_depth) {
        log_write(rail->log, LOG_LEVEL_ERROR, "port %s: its device allows %u send-queue slots, sq_depth asks for %u",
                  rail->name, rail->limits.max_send_wr, rail->config.sq_depth);
        return -EINVAL;
    }
    rail->address.rd_atomic = (uint8_t)rail->limits.rd_atomic;
    return 0;
}

/* Registered as long as the rail is open, so that a flush never meets a key that has gone; nobody may write it. Its address
 * is one of its own: peers need not learn where this process keeps its memory. */
static int rail_make_flush_line(struct rail *rail)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int rc = -posix_memalign(&rail->flush_line, page, RAIL_FLUSH_BYTES);
    if (rc) {
        rail->flush_line = NULL; /* not told by POSIX what it is then */
    } else {
        memset(rail->flush_line, 0, RAIL_FLUSH_BYTES);
        rc = verbs_mr_reg(rail->dev, rail->flush_line, RAIL_FLUSH_BYTES, page, VERBS_ACCESS_READ, &rail->flush_mr);
    }
    if (rc) {
        log_write(rail->log, LOG_LEVEL_ERROR, "port %s: cannot register its flush line: %s%s", rail->name,
                  strerror(-rc), rail_hint(rc));
        return rc;
    }
    rail->address.flush_addr = page;
    rail->address.flush_rkey = verbs_mr_rkey(rail->flush_mr);
    return 0;
}

int rail_gpu_line(struct rail *rail, void *addr, int fd, uint64_t offset)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    int rc = fd < 0 ? verbs_mr_reg(rail->dev, addr, RAIL_FLUSH_BYTES, page, VERBS_ACCESS_READ, &rail->gpu_flush_mr)
                    : verbs_mr_reg_dmabuf(rail->dev, fd, offset, RAIL_FLUSH_BYTES, page, VERBS_ACCESS_READ,
                                          &rail->gpu_flush_mr);
    if (rc)
        return rc;
    rail->address.gpu_flush_addr = page;
    rail->address.gpu_flush_rkey = verbs_mr_rkey(rail->gpu_flush_mr);
    return 0;
}

void rail_gpu_line_drop(struct rail *rail)
{
    verbs_mr_dereg(rail->gpu_flush_mr);
    rail->gpu_flush_mr = NULL;
    rail->address.gpu_flush_addr = 0;
    rail->address.gpu_flush_rkey = 0;
}

int rail_open(struct verbs *v, const struct log *log, const char *dev, uint8_t port, const struct rail_config *config,
              struct rail **out)
{
    struct rail *rail = calloc(1, sizeof(*rail));
    if (!rail) {
        log_write(log, LOG_LEVEL_ERROR, "no memory for port %s:%u", dev, port);
        return -ENOMEM;
    }
    *rail = (struct rail){.log = log, .config = *config, .port = port};
    snprintf(rail->name, sizeof(rail->name), "%.58s:%u", dev, port);
    int rc = verbs_dev_open(v, dev, &rail->dev);
    if (rc == -ENODEV) {
        char names[512];
        verbs_dev_names(v, names, sizeof(names));
        log_write(log, LOG_LEVEL_ERROR, "there is no RDMA device \"%s\": this host has: %s", dev, names);
    }
    if (!rc)
        rc = rail_read_limits(rail);
    if (!rc)
        rc = rail_read_port(rail);
    if (!rc)
        rc = rail_make_flush_line(rail);
    if (rc) {
        rail_close(rail);
        return rc;
    }
    struct verbs_about about;
    verbs_dev_about(rail->dev, &about);
    rail->address.plane = config->plane;
    rail->address.placement = (uint8_t)about.placement;
    rail->address.wires = rail->address.ways = 1;
    rail->wires = about.wires;
    rail->wire_choice = about.wires > 1 && config->wire_choice && rail_lag_choice(rail);
    *out = rail;
    return 0;
}

void rail_close(struct rail *rail)
{
    if (!rail)
        return;
    verbs_mr_dereg(rail->gpu_flush_mr);
    verbs_mr_dereg(rail->flush_mr);
    verbs_dev_close(rail->dev);
    free(rail->flush_line);
    free(rail);
}

static int rail_queue_make(struct rail_queue *queue, uint32_t lanes, uint32_t entries)
{
    size_t bytes = (size_t)lanes * queue->lane_bytes;
    void *memory = NULL;
    queue->lanes = calloc(lanes, sizeof(*queue->lanes));
    if (!queue->lanes || posix_memalign(&memory, 4096, bytes))
        return -ENOMEM;
    queue->memory = memory;
    memset(memory, 0, bytes);
    /* Peers reach it by SEND and by answers to READs and atomics, so their keys need no rights to it. */
    int rc = verbs_mr_reg(queue->rail->dev, memory, bytes, 0, VERBS_ACCESS_LOCAL, &queue->mr);
    return rc ? rc : verbs_cq_create(queue->rail->dev, entries, &queue->cq);
}

int rail_queue_open(struct rail *rail, uint32_t lanes, struct rail_queue *out)
{
    struct rail_queue queue = {.rail = rail, .lane_max = max_u32(lanes, 1)};
    /* More than sq_depth, so that the record and cell of the last event are not taken again at once. */
    queue.ring = round_up_pow2(rail->config.sq_depth + 1);
    queue.lane_bytes = RAIL_LANE_MAIL_BYTES + queue.ring * (uint32_t)sizeof(uint64_t);
    uint64_t entries = (uint64_t)queue.lane_max * (rail->config.sq_depth + RAIL_MAIL_DEPTH);
    if (entries > rail->limits.max_cqe) {
        log_write(rail->log, LOG_LEVEL_ERROR,
                  "port %s: %u lanes of %u slots need a CQ of %llu entries, its device allows %u: lower sq_depth",
                  rail->name, lanes, rail->config.sq_depth, (unsigned long long)entries, rail->limits.max_cqe);
        return -E2BIG;
    }
    int rc = rail_queue_make(&queue, queue.lane_max, (uint32_t)entries);
    if (rc) {
        log_write(rail->log, LOG_LEVEL_ERROR, "port %s: cannot make a completion queue of %llu entries: %s%s",
                  rail->name, (unsigned long long)entries, strerror(-rc), rail_hint(rc));
        rail_queue_close(&queue);
        return rc;
    }
    *out = queue;
    return 0;
}

void rail_queue_close(struct rail_queue *queue)
{
    while (queue->lane_count > 0)
        rail_lane_free(queue->lanes[queue->lane_count - 1]);
    verbs_cq_destroy(queue->cq);
    verbs_mr_dereg(queue->mr);
    free(queue->memory);
    free(queue->lanes);
    *queue = (struct rail_queue){0};
}
