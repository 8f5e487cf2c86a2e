/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_more.c - calls that programs bind to and that have little or nothing to do here: names and numbers of things, and the
 * kinds of objects that no emulated device has (EOPNOTSUPP). Called by programs; next: nothing.
 */
#include "emu_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of libibverbs' header for drivers, which distributions do not install. */
EMU_EXPORT const char *ibv_get_sysfs_path(void);
EMU_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
EMU_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index, int *type);
EMU_EXPORT int ibv_dontfork_range(void *base, size_t size);
EMU_EXPORT int ibv_dofork_range(void *base, size_t size);
EMU_EXPORT void ibv_copy_ah_attr_from_kern(void *to, const void *from);
EMU_EXPORT void ibv_copy_qp_attr_from_kern(void *to, const void *from);
EMU_EXPORT void ibv_copy_path_rec_from_kern(void *to, const void *from);

/* ---- names and numbers ------------------------------------------------------------------------------------------------ */

EMU_EXPORT const char *ibv_node_type_str(enum ibv_node_type type)
{
    return type == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown";
}

EMU_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    const char *digits = device->name + strcspn(device->name, "_");

    return *digits ? (int)strtol(digits + 1, NULL, 10) : -1;
}

EMU_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
    (void)context;
    return port_num == 1 && pkey == htobe16(0xffff) ? 0 : -1;
}

/** 1: RoCE v2, as the kernel's own answer. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index, int *type)
{
    (void)context;
    if (port_num != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *type = 1;
    return 0;
}

const char *ibv_get_sysfs_path(void)
{
    return "/sys";
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[512];
    ssize_t n;
    int fd;

    if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, buf, size);
    close(fd);
    if (n <= 0)
        return -1;
    if (buf[n - 1] == '\n')
        buf[--n] = '\0';
    else if ((size_t)n < size)
        buf[n] = '\0';
    else
        return -1;
    return (int)n;
}

/* ---- forks: memory is copied by the program's own threads, so nothing has to be kept from children ------------------------ */

EMU_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

EMU_EXPORT int ibv_dofork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

EMU_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

/* ---- what is not there ------------------------------------------------------------------------------------------------------ */

EMU_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp;
    (void)gid;
    (void)lid;
    return EOPNOTSUPP;
}

EMU_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return ibv_attach_mcast(qp, gid, lid);
}

EMU_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    (void)cq;
    (void)cqe;
    return EOPNOTSUPP;
}

EMU_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    (void)ece;
    return EOPNOTSUPP;
}

EMU_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    return ibv_query_ece(qp, ece);
}

EMU_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                           uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    (void)context;
    (void)attr;
    (void)eth_mac;
    (void)vid;
    return EOPNOTSUPP;
}

/* The connection manager's answers from the kernel, which it never gets here. */
void ibv_copy_ah_attr_from_kern(void *to, const void *from)
{
    (void)to;
    (void)from;
}

void ibv_copy_qp_attr_from_kern(void *to, const void *from)
{
    (void)to;
    (void)from;
}

void ibv_copy_path_rec_from_kern(void *to, const void *from)
{
    (void)to;
    (void)from;
}
