/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_dev.c - devices, ports, GIDs and asynchronous events.
 * May not know rails or lanes. Called by src/rail/rail_open.c; next: verbs_obj.c
 */
#include "verbs_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int verbs_dev_names(struct verbs *v, char *out, size_t size)
{
    int count = 0;
    size_t used = 0;
    snprintf(out, size, "none");
    errno = 0;
    struct ibv_device **list = v->get_device_list(&count);
    if (!list) {
        int rc = verbs_errno();
        if (rc == -ENOSYS)
            snprintf(out, size, "none, since the kernel's RDMA support (ib_uverbs) is not loaded");
        return rc == -ENOSYS ? 0 : rc;
    }
    for (int i = 0; i < count && used < size; i++) {
        int n = snprintf(out + used, size - used, "%s%s", i ? ", " : "", v->get_device_name(list[i]));
        used += n > 0 ? (size_t)n : 0;
    }
    v->free_device_list(list);
    return count;
}

/* Opens the device of that name; *context is NULL where there is none. 0 or a negative errno. */
static int verbs_dev_find(struct verbs *v, const char *name, struct ibv_context **context)
{
    int rc = 0, count = 0;
    errno = 0;
    struct ibv_device **list = v->get_device_list(&count);
    if (!list) {
        rc = verbs_errno();
        return rc == -ENOSYS ? 0 : rc; /* a kernel without RDMA: no devices (ibv_get_device_list(3)) */
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(v->get_device_name(list[i]), name) != 0)
            continue;
        errno = 0;
        *context = v->open_device(list[i]);
        rc = *context ? 0 : verbs_errno();
        break;
    }
    v->free_device_list(list);
    return rc;
}

/* Events are looked for now and then, never waited for. */
static bool verbs_dev_nonblocking(struct ibv_context *context)
{
    int flags = context->async_fd >= 0 ? fcntl(context->async_fd, F_GETFL) : -1;
    return flags >= 0 && fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

int verbs_dev_open(struct verbs *v, const char *name, struct verbs_dev **out)
{
    struct verbs_dev *dev = calloc(1, sizeof(*dev));
    if (!dev) {
        log_write(v->log, LOG_LEVEL_ERROR, "no memory for device %s", name);
        return -ENOMEM;
    }
    dev->v = v;
    snprintf(dev->name, sizeof(dev->name), "%s", name);
    int rc = verbs_dev_find(v, name, &dev->context);
    if (!rc && !dev->context) {
        rc = -ENODEV; /* the caller knows what was asked for and says so */
        goto fail;
    }
    if (!rc) {
        errno = 0;
        dev->pd = v->alloc_pd(dev->context);
        rc = dev->pd ? 0 : verbs_errno();
    }
    if (rc) {
        log_write(v->log, LOG_LEVEL_ERROR, "cannot open device %s: %s", name, strerror(-rc));
        goto fail;
    }
    dev->events = verbs_dev_nonblocking(dev->context);
    if (!dev->events)
        log_write(v->log, LOG_LEVEL_DEBUG, "device %s: no events, its event descriptor cannot be made non-blocking",
                  name);
    *out = dev;
    return 0;
fail:
    verbs_dev_close(dev);
    return rc;
}

void verbs_dev_close(struct verbs_dev *dev)
{
    if (!dev)
        return;
    int rc = dev->pd ? verbs_result(dev->v->dealloc_pd(dev->pd)) : 0;
    if (!rc && dev->context)
        rc = verbs_result(dev->v->close_device(dev->context));
    if (rc)
        log_write(dev->v->log, LOG_LEVEL_WARN, "closing device %s: %s", dev->name, strerror(-rc));
    free(dev);
}

int verbs_dev_limits(struct verbs_dev *dev, struct verbs_limits *out)
{
    struct ibv_device_attr attr;
    memset(&attr, 0, sizeof(attr));
    int rc = verbs_result(dev->v->query_device(dev->context, &attr));
    if (rc)
        return rc;
    int rd = attr.max_qp_rd_atom < attr.max_qp_init_rd_atom ? attr.max_qp_rd_atom : attr.max_qp_init_rd_atom;
    *out = (struct verbs_limits){
        .max_send_wr = attr.max_qp_wr > 0 ? (uint32_t)attr.max_qp_wr : 0,
        .max_cqe = attr.max_cqe > 0 ? (uint32_t)attr.max_cqe : 0,
        .rd_atomic = rd > 0 ? min_u32((uint32_t)rd, 16) : 0,
        .atomics = attr.atomic_cap != IBV_ATOMIC_NONE,
        .ports = attr.phys_port_cnt,
    };
    return 0;
}

/* Bits a second of a port: lanes by the signalling rate of each, less the line code up to QDR (8b/10b). */
static uint64_t verbs_port_rate(uint8_t width, uint8_t speed)
{
    static const struct {
        uint8_t code;
        uint32_t mbits;
    } speeds[] = {{1, 2000}, {2, 4000}, {4, 8000}, {8, 10000}, {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}};
    uint32_t lanes = width == 1 ? 1 : width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 0;
    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        if (speeds[i].code == speed)
            return (uint64_t)lanes * speeds[i].mbits * 1000000u;
    }
    return 0;
}

static const char *verbs_port_state(enum ibv_port_state state)
{
    static const char *const names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
    return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

/* The provider's query_port, which knows the whole struct; NULL where it has none. As verbs_get_ctx_op(), which
 * pedantic compilers refuse: a provider built against older headers has a shorter table, without this op. */
static struct verbs_context *verbs_port_op(struct ibv_context *context)
{
    struct verbs_context *extended = verbs_get_ctx(context);
    if (!extended || extended->sz < sizeof(*extended) - offsetof(struct verbs_context, query_port))
        return NULL;
    return extended->query_port ? extended : NULL;
}

int verbs_port_query(struct verbs_dev *dev, uint8_t port, struct verbs_port *out)
{
    struct ibv_port_attr attr;
    memset(&attr, 0, sizeof(attr));
    /* The exported ibv_query_port fills a short, older struct, so it comes second. */
    struct verbs_context *extended = verbs_port_op(dev->context);
    int rc = extended ? extended->query_port(dev->context, port, &attr, sizeof(attr))
                      : dev->v->query_port(dev->context, port, (struct _compat_ibv_port_attr *)&attr);
    rc = verbs_result(rc);
    if (rc)
        return rc;
    *out = (struct verbs_port){
        .active = attr.state == IBV_PORT_ACTIVE,
        .state = verbs_port_state(attr.state),
        .mtu = attr.active_mtu >= IBV_MTU_256 && attr.active_mtu <= IBV_MTU_4096 ? 128u << attr.active_mtu : 0,
        .max_msg = attr.max_msg_sz,
        .lid = attr.lid,
        .gids = attr.gid_tbl_len > 0 ? (uint32_t)attr.gid_tbl_len : 0,
        .rate_bits = verbs_port_rate(attr.active_width, attr.active_speed),
    };
    /* Unspecified means InfiniBand: providers that know no other link layer leave it so. */
    if (attr.link_layer == IBV_LINK_LAYER_ETHERNET)
        out->link = VERBS_LINK_ETHERNET;
    else if (attr.link_layer == IBV_LINK_LAYER_INFINIBAND || attr.link_layer == IBV_LINK_LAYER_UNSPECIFIED)
        out->link = VERBS_LINK_IB;
    return 0;
}

int verbs_gid_query(struct verbs_dev *dev, uint8_t port, uint32_t index, struct verbs_gid *out)
{
    struct verbs_gid gid = {.type = VERBS_GID_UNKNOWN};
    if (dev->v->query_gid_ex) {
        struct ibv_gid_entry entry;
        memset(&entry, 0, sizeof(entry));
        int rc = verbs_result(dev->v->query_gid_ex(dev->context, port, index, &entry, 0, sizeof(entry)));
        if (rc == 0) {
            memcpy(gid.raw, entry.gid.raw, sizeof(gid.raw));
            gid.type = entry.gid_type == IBV_GID_TYPE_ROCE_V2   ? VERBS_GID_ROCE_V2
                       : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? VERBS_GID_ROCE_V1
                                                                : VERBS_GID_IB;
            *out = gid;
            return 0;
        }
        if (rc != -EOPNOTSUPP && rc != -ENOSYS)
            return rc;
    }
    union ibv_gid raw;
    errno = 0;
    int rc = verbs_result(dev->v->query_gid(dev->context, port, (int)index, &raw));
    if (rc)
        return rc;
    memcpy(gid.raw, raw.raw, sizeof(gid.raw));
    *out = gid;
    return 0;
}

static bool verbs_event_of_port(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        return true;
    default:
        return false;
    }
}

int verbs_event_next(struct verbs_dev *dev, struct verbs_event *out)
{
    struct ibv_async_event event;
    if (!dev->events)
        return 0;
    errno = 0;
    if (dev->v->get_async_event(dev->context, &event)) {
        int rc = verbs_errno();
        return rc == -EAGAIN || rc == -EINTR ? 0 : rc;
    }
    *out = (struct verbs_event){
        .name = dev->v->event_type_str(event.event_type),
        .port = verbs_event_of_port(event.event_type) ? (uint8_t)event.element.port_num : 0,
        .device_fatal = event.event_type == IBV_EVENT_DEVICE_FATAL,
        .port_error = event.event_type == IBV_EVENT_PORT_ERR,
        .port_active = event.event_type == IBV_EVENT_PORT_ACTIVE,
    };
    dev->v->ack_async_event(&event);
    return 1;
}
