/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs.h - braid's own words for devices, ports, memory, queues and QPs. No libibverbs type leaks from here, and its
 * three error conventions (errno returned, -1 and errno, NULL and errno) end behind these functions: every int is 0 or
 * a count, or a negative errno.
 *
 * The library is opened at run time and its functions are looked up by versioned name, so nothing links libibverbs.
 */
#ifndef VERBS_H
#define VERBS_H

#include "log.h"

struct verbs;     /**< the loaded library */
struct verbs_dev; /**< an open device with its protection domain */
struct verbs_mr;  /**< registered memory of a device */
struct verbs_cq;  /**< a completion queue */
struct verbs_qp;  /**< an RC QP with a send and a receive queue on one CQ */

#define VERBS_NAME_SIZE 64

/* ---- verbs_load.c ------------------------------------------------------------------------------------------------ */

/** Opens libibverbs.so.1, the one already in the process where there is one. log must outlive it. 0, -ELIBACC with a
 *  message where it or a needed function is missing, or -ENOMEM; logs. Any thread. */
int verbs_load(const struct log *log, struct verbs **out) ATTR_CHECK_RESULT;

/** Ends the use of the library, which itself stays in the process: providers do not survive unloading. NULL allowed. */
void verbs_unload(struct verbs *v);

/* ---- verbs_dev.c ------------------------------------------------------------------------------------------------- */

/** Writes the names of the host's RDMA devices, comma-separated, cut at size; "none" where there is none. Returns their
 *  number or a negative errno. */
int verbs_dev_names(struct verbs *v, char *out, size_t size);

/** Opens a device by name, with a protection domain. 0, -ENODEV where there is none, or the library's errno; logs the
 *  latter. v must outlive it. */
int verbs_dev_open(struct verbs *v, const char *name, struct verbs_dev **out) ATTR_CHECK_RESULT;

/** Closes a device; its MRs, CQs and QPs must be gone. NULL is allowed. */
void verbs_dev_close(struct verbs_dev *dev);

/** What a device can hold. */
struct verbs_limits {
    uint32_t max_send_wr; /**< of one QP */
    uint32_t max_cqe;
    uint32_t rd_atomic; /**< READs and atomics in flight that a QP may have, as requester and responder, at most 16 */
    bool atomics;
    uint8_t ports;
};

/** 0 or a negative errno. */
int verbs_dev_limits(struct verbs_dev *dev, struct verbs_limits *out) ATTR_CHECK_RESULT;

enum verbs_link { VERBS_LINK_OTHER, VERBS_LINK_IB, VERBS_LINK_ETHERNET };

struct verbs_port {
    bool active;
    const char *state; /**< static string: "ACTIVE", "DOWN", ... */
    enum verbs_link link;
    uint32_t mtu;     /**< bytes, active */
    uint32_t max_msg; /**< bytes of the largest message; 0 where the port does not say */
    uint16_t lid;
    uint32_t gids; /**< length of the GID table */
    uint64_t rate_bits;
};

/** Asks a port. 0, -EINVAL where the device has no such port, or a negative errno. */
int verbs_port_query(struct verbs_dev *dev, uint8_t port, struct verbs_port *out) ATTR_CHECK_RESULT;

enum verbs_gid_type { VERBS_GID_UNKNOWN, VERBS_GID_IB, VERBS_GID_ROCE_V1, VERBS_GID_ROCE_V2 };

struct verbs_gid {
    uint8_t raw[16];
    enum verbs_gid_type type; /**< unknown where the library cannot tell */
};

/** Reads a GID table entry. 0, or a negative errno for an index that is empty or not there. */
int verbs_gid_query(struct verbs_dev *dev, uint8_t port, uint32_t index, struct verbs_gid *out) ATTR_CHECK_RESULT;

/** An asynchronous event of a device. */
struct verbs_event {
    const char *name; /**< static string of the library */
    uint8_t port;     /**< 0 where it is not about a port */
    bool device_fatal;
    bool port_error;
    bool port_active;
};

/** Whether a device may place the packets of an RC QP out of order, so that a later write can be seen before an earlier
 *  one of the same QP. */
enum verbs_placement {
    VERBS_PLACEMENT_SILENT,   /**< it cannot be asked */
    VERBS_PLACEMENT_ORDERED,  /**< it says no */
    VERBS_PLACEMENT_UNORDERED /**< it says that it can */
};

/** What a device says of itself beyond ibv_query_device(3). */
struct verbs_about {
    enum verbs_placement placement;
    unsigned wires; /**< links that it joins to one port: 1, or a bond's; 0: it cannot be asked */
};

/** Asks a device, by mlx5dv_query_device() of the loaded library or, for an mlx5 device, of libmlx5. Any error is
 *  silence. On the thread that opened the device. */
void verbs_dev_about(struct verbs_dev *dev, struct verbs_about *out);

/** Takes the next event without blocking. 1 and an event, 0 where there is none, or a negative errno. */
int verbs_event_next(struct verbs_dev *dev, struct verbs_event *out);

/* ---- verbs_obj.c ------------------------------------------------------------------------------------------------- */

/** Who may use registered memory, and in which order what they write may become visible. */
enum verbs_access {
    VERBS_ACCESS_LOCAL,   /**< this process's own requests */
    VERBS_ACCESS_REMOTE,  /**< peers too: read, write and atomics; strictly ordered */
    VERBS_ACCESS_RELAXED, /**< as REMOTE, in any order (IBV_ACCESS_RELAXED_ORDERING in ibv_reg_mr(3)); REMOTE on a device
                               that refuses that */
    VERBS_ACCESS_READ     /**< peers may read it, nobody may write */
};

/** Registers memory. iova is the address by which keys name its first byte; 0: the local address. 0 or a negative
 *  errno. A device that refuses relaxed ordering is logged once. One thread at a time per device. */
int verbs_mr_reg(struct verbs_dev *dev, void *addr, size_t len, uint64_t iova, enum verbs_access access,
                 struct verbs_mr **out) ATTR_CHECK_RESULT;

/** As verbs_mr_reg(), of len bytes from offset on of a dma-buf, which the caller may close afterwards. iova is not 0, and
 *  lies within a page where offset does. -EOPNOTSUPP where library, kernel or device have no dma-buf. */
int verbs_mr_reg_dmabuf(struct verbs_dev *dev, int fd, uint64_t offset, size_t len, uint64_t iova,
                        enum verbs_access access, struct verbs_mr **out) ATTR_CHECK_RESULT;

/** NULL is allowed. */
void verbs_mr_dereg(struct verbs_mr *mr);

/** Whether it was asked for relaxed ordering, and the device has it. */
bool verbs_mr_relaxed(const struct verbs_mr *mr);

/** The key for local use. */
uint32_t verbs_mr_lkey(const struct verbs_mr *mr);
/** The key for remote use. */
uint32_t verbs_mr_rkey(const struct verbs_mr *mr);

/** Makes a CQ of at least so many entries. 0 or a negative errno. */
int verbs_cq_create(struct verbs_dev *dev, uint32_t entries, struct verbs_cq **out) ATTR_CHECK_RESULT;

/** Its QPs must be gone. NULL is allowed. */
void verbs_cq_destroy(struct verbs_cq *cq);

struct verbs_qp_size {
    uint32_t send_wr;
    uint32_t recv_wr;
};

/** Makes an RC QP in RESET; each send request says whether its good end is told. 0 or a negative errno. */
int verbs_qp_create(struct verbs_dev *dev, struct verbs_cq *cq, const struct verbs_qp_size *size,
                    struct verbs_qp **out) ATTR_CHECK_RESULT;

/** NULL is allowed. */
void verbs_qp_destroy(struct verbs_qp *qp);

/** Its QPN, 24 bits. */
uint32_t verbs_qp_number(const struct verbs_qp *qp);

/** How a QP reaches its remote end. */
struct verbs_path {
    uint8_t port; /**< the local one */
    uint16_t pkey_index;
    bool global; /**< with a global route header: always on Ethernet */
    uint8_t gid_index;
    uint8_t remote_gid[16];
    uint16_t remote_lid;
    uint8_t sl;
    uint8_t traffic_class;
    uint32_t flow_label;
    uint32_t mtu; /**< bytes */
    uint32_t remote_qpn;
    uint32_t remote_psn; /**< the first one that the remote end sends */
    uint32_t local_psn;  /**< the first one that this end sends */
    uint8_t responder_rd_atomic;
    uint8_t requester_rd_atomic;
    uint8_t timeout, retry, rnr_retry, min_rnr_timer;
};

/** RESET to INIT, with remote write, read and atomics allowed. 0 or a negative errno. */
int verbs_qp_to_init(struct verbs_qp *qp, const struct verbs_path *path) ATTR_CHECK_RESULT;
/** INIT to RTR. 0 or a negative errno. */
int verbs_qp_to_rtr(struct verbs_qp *qp, const struct verbs_path *path) ATTR_CHECK_RESULT;
/** RTR to RTS. 0 or a negative errno. */
int verbs_qp_to_rts(struct verbs_qp *qp, const struct verbs_path *path) ATTR_CHECK_RESULT;
/** Of a QP in RTS on a bond: it sends on this wire, from 1, until its state changes. 0; -EOPNOTSUPP where the device is no bond, takes no
 *  choice, or cannot be asked; or another negative errno. */
int verbs_qp_wire(struct verbs_qp *qp, unsigned wire) ATTR_CHECK_RESULT;
/** The wire that it sends on now, which is another one while the one it was told is down. As verbs_qp_wire(). */
int verbs_qp_wire_used(struct verbs_qp *qp, unsigned *out) ATTR_CHECK_RESULT;
/** Of a QP in RTS on RoCE v2: the UDP source port of its packets. As verbs_qp_wire(). */
int verbs_qp_sport(struct verbs_qp *qp, uint16_t sport) ATTR_CHECK_RESULT;
/** Any state to ERR: what is queued ends as flushed. 0 or a negative errno. */
int verbs_qp_to_err(struct verbs_qp *qp);

/* ---- verbs_io.c -------------------------------------------------------------------------------------------------- */

/** The numbers of libibverbs' ABI (verbs_io.c checks them), so that a request is copied and not translated. */
enum verbs_op {
    VERBS_OP_WRITE = 0,
    VERBS_OP_SEND = 2,
    VERBS_OP_READ = 4,
    VERBS_OP_COMPARE_SWAP = 5,
    VERBS_OP_FETCH_ADD = 6
};

/** Whether a request has a completion where it ends well; where it does not it may have one in either case. */
enum verbs_signal { VERBS_UNSIGNALLED = 0, VERBS_SIGNALLED = 2 };

/**
 * One send request. It begins as the ABI's ibv_send_wr does, and its SGE lies where that has what only memory windows and
 * TSO need (verbs_io.c checks both), so that it is posted where it was built. Lists are arrays; verbs_list_init() first.
 */
struct verbs_send {
    _Alignas(64) uint64_t id; /**< comes back in the completion */
    struct verbs_send *next;  /**< this and the next two: verbs_'s */
    void *sge;
    uint32_t sges;
    uint32_t op;     /**< enum verbs_op */
    uint32_t signal; /**< enum verbs_signal */
    uint32_t unused;
    uint64_t remote_addr; /**< not of a SEND, nor a key */
    union {
        uint32_t rkey;    /**< of a WRITE or READ */
        uint64_t operand; /**< of an atomic: to add, or to compare with */
    };
    uint64_t swap;        /**< of COMPARE_SWAP */
    uint32_t atomic_rkey; /**< of an atomic */
    uint32_t unused_too[3];
    uint64_t local_addr; /**< as the lkey names it */
    uint32_t len;
    uint32_t lkey;
};

#define VERBS_LIST_MAX 16 /**< most requests of one list */

/** Makes n places of an array ready to be filled and posted, as often as one likes. */
void verbs_list_init(struct verbs_send *sends, unsigned n);

/** Posts the first n requests (1..VERBS_LIST_MAX) of an array in one call. 0, or a negative errno; then *taken (else untouched)
 *  says how many of the first were posted. One thread at a time per QP. */
int verbs_post_list(struct verbs_qp *qp, struct verbs_send *sends, unsigned n, unsigned *taken) ATTR_CHECK_RESULT;

struct verbs_recv {
    uint64_t id;
    uint64_t local_addr;
    uint32_t len;
    uint32_t lkey;
};

/** Posts one receive. 0 or a negative errno; then nothing was posted. One thread at a time per QP. */
int verbs_post_recv(struct verbs_qp *qp, const struct verbs_recv *recv) ATTR_CHECK_RESULT;

/** How a request ended. */
struct verbs_completion {
    uint64_t id;
    int error;    /**< 0; -ECANCELED: flushed behind another's error; else what went wrong */
    uint32_t len; /**< of a receive, where error is 0 */
    uint32_t qpn;
    uint32_t status;       /**< where error is not 0: for verbs_status_name() */
    uint32_t vendor_error; /**< where error is not 0 */
};

#define VERBS_POLL_MAX 32 /**< most completions one verbs_poll() takes, whatever max says */

/** Takes up to max completions. Their number, or a negative errno. One thread at a time per CQ. */
int verbs_poll(struct verbs_cq *cq, struct verbs_completion *out, unsigned max);

/** The library's name of a completion's status; static. */
const char *verbs_status_name(const struct verbs_cq *cq, uint32_t status);

#endif
