/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_priv.h - what the files of src/verbs share; for no other folder, since it names libibverbs' types. */
#ifndef VERBS_PRIV_H
#define VERBS_PRIV_H

#include "verbs.h"

#include <infiniband/verbs.h>

/* Functions of the library by their names there, without "ibv_". */
struct verbs {
    const struct log *log;
    void *library;
    struct ibv_device **(*get_device_list)(int *count);
    void (*free_device_list)(struct ibv_device **list);
    const char *(*get_device_name)(struct ibv_device *device);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_device)(struct ibv_context *context, struct ibv_device_attr *out);
    int (*query_port)(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *out);
    int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *out);
    int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *out,
                        uint32_t flags, size_t entry_size); /* may be NULL: the library is older than its node */
    int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *out);
    void (*ack_async_event)(struct ibv_async_event *event);
    const char *(*event_type_str)(enum ibv_event_type type);
    const char *(*wc_status_str)(enum ibv_wc_status status);
    struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
    int (*dealloc_pd)(struct ibv_pd *pd);
    struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t len, int access);
    struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access);
    struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd,
                                    int access); /* may be NULL: the library is older */
    int (*dereg_mr)(struct ibv_mr *mr);
    struct ibv_cq *(*create_cq)(struct ibv_context *context, int entries, void *cq_context,
                                struct ibv_comp_channel *channel, int vector);
    int (*destroy_cq)(struct ibv_cq *cq);
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
    int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
    int (*destroy_qp)(struct ibv_qp *qp);
};

struct verbs_dev {
    struct verbs *v;
    struct ibv_context *context;
    struct ibv_pd *pd;
    bool events; /* the event descriptor does not block, so it may be read */
    bool strict; /* it has refused relaxed ordering, which has been logged */
    char name[VERBS_NAME_SIZE];
};

struct verbs_mr {
    struct verbs_dev *dev;
    bool relaxed;
    struct ibv_mr *ibv;
};

struct verbs_cq {
    struct verbs_dev *dev;
    struct ibv_cq *ibv;
};

struct verbs_qp {
    struct verbs_dev *dev;
    struct ibv_qp *ibv;
};

/** The negative errno of a call that said it failed by -1 or NULL; -EIO where it left errno at 0. */
int verbs_errno(void);

/** The negative errno of a call that returns an errno, by some providers negated, by others as -1 and errno. */
int verbs_result(int rc);

#endif
