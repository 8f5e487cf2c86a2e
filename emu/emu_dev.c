/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_dev.c - devices and contexts as libibverbs shows them: list, open, close, queries. Called by programs through the
 * exported names; next: emu_abi.c for what is done on an open context.
 */
#include "emu.h"
#include "emu_ex.h"
#include "emu_lag.h"
#include "emu_unkind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/** What a call costs: what the table says, or for control calls of a slow device (unkind=slowctl) a multiple of that. */
static uint64_t emu_dev_cost(struct emu_fabric *f, enum emu_cost cost)
{
    if ((f->spec.unkind & EMU_UNKIND_SLOWCTL) && cost >= EMU_COST_OPEN && cost <= EMU_COST_MODIFY_QP)
        return emu_unkind_slow(&f->store.rng, emu_cost_ns(cost));
    return emu_cost_ns(cost);
}

int emu_enter(struct emu_fabric *f, enum emu_cost cost, const char *what)
{
    struct emu_owner *self = emu_self();

    if (!self)
        return -ENOTSUP;
    if (!f->clock->real) {
        self->last_call = what;
        self->changes++;
        f->clock->charge(f, emu_dev_cost(f, cost));
    }
    f->clock->lock(f);
    return 0;
}

int emu_leave(struct emu_fabric *f, int rc)
{
    int saved = errno;

    f->clock->unlock(f);
    errno = saved;
    return rc;
}

struct emu_fabric *emu_fabric_of(struct ibv_context *c)
{
    return emu_ctx_of(c)->dev->fabric;
}

EMU_EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
    struct emu_owner *self = emu_self();
    struct ibv_device **list;
    struct emu_fabric *f;
    int n = 0;

    if (num)
        *num = 0;
    if (!self) { /* nobody's host: no device, as on a machine without any */
        list = calloc(1, sizeof(*list));
        return list;
    }
    f = self->fabric;
    emu_enter(f, EMU_COST_QUERY, "ibv_get_device_list");
    list = calloc((size_t)f->per_host + 1, sizeof(*list));
    for (int i = 0; list && i < f->per_host; i++) {
        struct emu_dev *d = &f->devs[self->host * f->per_host + i];

        if (d->exists)
            list[n++] = &d->ibv;
    }
    if (num)
        *num = n;
    emu_leave(f, 0);
    return list;
}

EMU_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

EMU_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device ? device->name : NULL;
}

EMU_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return htobe64(((struct emu_dev *)device)->guid);
}

static int emu_dev_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t len)
{
    struct emu_fabric *f = emu_fabric_of(context);
    struct emu_port *p = &emu_ctx_of(context)->dev->port;
    struct ibv_port_attr a = {.max_mtu = IBV_MTU_4096, .gid_tbl_len = 1, .pkey_tbl_len = 1, .max_msg_sz = EMU_MAX_MSG};
    static const struct {
        uint64_t lane_bits;
        uint8_t code;
    } speed[] = {{2500000000u, 1},   {5000000000u, 2},   {10000000000u, 4},    {14000000000u, 16},
                 {25000000000u, 32}, {50000000000u, 64}, {100000000000u, 128}, {200000000000u, 0}};
    int k = 0;

    if (emu_enter(f, EMU_COST_QUERY, "ibv_query_port"))
        return ENOTSUP;
    if (port_num != 1)
        return emu_leave(f, EINVAL);
    a.state = emu_lag_dev_up(p->dev) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    a.phys_state = a.state == IBV_PORT_ACTIVE ? 5 : 3; /* LinkUp, Disabled */
    a.active_mtu = (enum ibv_mtu)(__builtin_ctz((unsigned)f->spec.mtu) - 7);
    a.link_layer = IBV_LINK_LAYER_ETHERNET;
    a.active_width = 2; /* 4x; the speed code is the smallest that carries the rate, of a bond that of one wire */
    while (speed[k].code && speed[k].lane_bits * 4 < p->rate_bits)
        k++;
    a.active_speed = speed[k].code ? speed[k].code : 128;
    /* Callers built against an older header pass a shorter struct. */
    memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
    return emu_leave(f, 0);
}

#undef ibv_query_port
EMU_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
    return emu_dev_query_port(context, port_num, (struct ibv_port_attr *)attr,
                              offsetof(struct ibv_port_attr, port_cap_flags2));
}

EMU_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    struct emu_fabric *f = emu_fabric_of(context);
    struct emu_dev *d = emu_ctx_of(context)->dev;

    if (emu_enter(f, EMU_COST_QUERY, "ibv_query_device"))
        return ENOTSUP;
    *attr = (struct ibv_device_attr){.fw_ver = "braid-emu",
                                     .node_guid = htobe64(d->guid),
                                     .sys_image_guid = htobe64(d->guid),
                                     .max_mr_size = UINT64_MAX,
                                     .page_size_cap = 0xfffff000,
                                     .vendor_id = 0x2c9,
                                     .vendor_part_id = 4129,
                                     .max_qp = 1 << 17,
                                     .max_qp_wr = EMU_MAX_WR,
                                     .max_sge = EMU_MAX_SGE,
                                     .max_sge_rd = EMU_MAX_SGE,
                                     .max_cq = 1 << 16,
                                     .max_cqe = EMU_MAX_CQE,
                                     .max_mr = 1 << 20,
                                     .max_srq = 1 << 16,
                                     .max_srq_wr = EMU_MAX_SRQ_WR,
                                     .max_srq_sge = EMU_RECV_SGE,
                                     .max_ah = INT32_MAX,
                                     .max_pd = 1 << 16,
                                     .max_qp_rd_atom = EMU_MAX_RD_ATOMIC,
                                     .max_res_rd_atom = EMU_MAX_RD_ATOMIC * 1024,
                                     .max_qp_init_rd_atom = EMU_MAX_RD_ATOMIC,
                                     .atomic_cap = IBV_ATOMIC_HCA,
                                     .max_pkeys = 1,
                                     .local_ca_ack_delay = 16,
                                     .phys_port_cnt = 1};
    return emu_leave(f, 0);
}

EMU_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
    struct emu_fabric *f = emu_fabric_of(context);

    if (emu_enter(f, EMU_COST_QUERY, "ibv_query_gid"))
        return -1;
    if (port_num != 1 || index != 0) {
        errno = EINVAL;
        return emu_leave(f, -1);
    }
    *gid = emu_ctx_of(context)->dev->port.gid;
    return emu_leave(f, 0);
}

EMU_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
                                 struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
    struct ibv_gid_entry e = {
        .gid_index = gid_index, .port_num = port_num, .gid_type = IBV_GID_TYPE_ROCE_V2, .ndev_ifindex = 0};

    if (flags || port_num != 1)
        return EINVAL;
    if (ibv_query_gid(context, (uint8_t)port_num, (int)gid_index, &e.gid))
        return ENODATA;
    memcpy(entry, &e, entry_size < sizeof(e) ? entry_size : sizeof(e));
    return 0;
}

EMU_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
    struct emu_fabric *f = emu_fabric_of(context);

    if (emu_enter(f, EMU_COST_QUERY, "ibv_query_pkey"))
        return -1;
    if (port_num != 1 || index != 0) {
        errno = EINVAL;
        return emu_leave(f, -1);
    }
    *pkey = htobe16(0xffff);
    return emu_leave(f, 0);
}

EMU_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct emu_dev *d = (struct emu_dev *)device;
    struct emu_owner *self = emu_self();
    struct emu_ctx *ctx;

    errno = ENODEV;
    if (!self || self->host != d->host)
        return NULL;
    ctx = calloc(1, sizeof(*ctx));
    if (!ctx)
        return NULL;
    emu_enter(d->fabric, EMU_COST_OPEN, "ibv_open_device");
    ctx->dev = d;
    ctx->owner = self;
    ctx->async_tail = &ctx->async_head;
    ctx->vctx.sz = sizeof(ctx->vctx);
    ctx->vctx.query_port = emu_dev_query_port;
    ctx->vctx.create_qp_ex = emu_ex_create_qp;
    ctx->vctx.context.device = device;
    ctx->vctx.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    ctx->vctx.context.cmd_fd = -1;
    ctx->vctx.context.num_comp_vectors = 1;
    ctx->vctx.context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    pthread_mutex_init(&ctx->vctx.context.mutex, NULL);
    emu_abi_fill_ops(&ctx->vctx.context.ops);
    if (ctx->vctx.context.async_fd < 0) {
        free(ctx);
        emu_leave(d->fabric, 0);
        return NULL;
    }
    ctx->next = d->ctxs;
    d->ctxs = ctx;
    emu_leave(d->fabric, 0);
    return &ctx->vctx.context;
}

static int emu_dev_do_close(void *ctx)
{
    emu_ctx_teardown(ctx);
    return 0;
}

EMU_EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct emu_ctx *ctx = emu_ctx_of(context);
    struct emu_fabric *f = ctx->dev->fabric;

    if (emu_enter(f, EMU_COST_OBJECT, "ibv_close_device"))
        return ENOTSUP;
    /* libibverbs leaves what is still open to the kernel, and programs do (perftest); a test in virtual time shall not. */
    if (ctx->refs && !f->clock->real)
        return emu_leave(f, EBUSY);
    return emu_leave(f, emu_abi_run(f, emu_dev_do_close, ctx));
}

/** Waits without the lock, then takes one event. A descriptor set to non-blocking means: do not wait. */
EMU_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct emu_ctx *ctx = emu_ctx_of(context);
    struct emu_fabric *f = ctx->dev->fabric;

    for (;;) {
        int rc;

        if (emu_enter(f, EMU_COST_EVENT, "ibv_get_async_event"))
            return -1;
        rc = emu_leave(f, emu_event_take(ctx, event));
        if (rc == 0)
            return 0;
        errno = EAGAIN;
        if (fcntl(context->async_fd, F_GETFL) & O_NONBLOCK)
            return -1;
        errno = EINTR;
        if (f->clock->sleep(f, UINT64_MAX))
            return -1;
    }
}

/** Whoever destroys the object waits for this (ibv_get_async_event(3)). */
EMU_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct emu_owner *self = emu_self();

    if (!self || event->event_type == IBV_EVENT_PORT_ACTIVE || event->event_type == IBV_EVENT_PORT_ERR)
        return;
    emu_enter(self->fabric, EMU_COST_ARM, "ibv_ack_async_event");
    if (event->event_type == IBV_EVENT_CQ_ERR)
        event->element.cq->async_events_completed++;
    else if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
        event->element.srq->events_completed++;
    else
        event->element.qp->events_completed++;
    emu_leave(self->fabric, 0);
}

EMU_EXPORT int ibv_fork_init(void)
{
    return 0;
}
