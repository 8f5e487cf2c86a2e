/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail.h - one local port, its queues, and its lanes to remote ports.
 *
 *   rail   an open port: device, GID, limits
 *   queue  a rail's completion queue for one channel, with the memory of its lanes' mailboxes
 *   lane   one RC QP on a queue: slots, a record for each request in posting order, a mailbox
 *
 * A rail and its queues are made when connecting; then each queue and its lanes belong to one thread at a time. Nothing
 * here decides or calls up: rail_poll() returns events, and api acts on them.
 */
#ifndef RAIL_H
#define RAIL_H

#include "rail_mail.h"
#include "rail_wire.h"
#include "verbs.h"

#define RAIL_PSN_MASK 0xffffffu
/** Fewer PSNs than this may be outstanding on a lane: half the space, so that older and newer can be told apart
 *  (IBA spec vol. 1, 9.7: reliable service). */
#define RAIL_PSN_WINDOW (1u << 23)

/** What a rail's lanes are made with; from the options. */
struct rail_config {
    uint32_t sq_depth;
    uint32_t gid_index; /**< UINT32_MAX: choose one */
    uint16_t pkey_index;
    uint8_t sl, traffic_class;
    uint8_t timeout, retry, rnr_retry, min_rnr_timer;
    uint32_t mtu_max; /**< bytes; 0: no limit of ours */
};

struct rail {
    const struct log *log;
    struct verbs_dev *dev;
    struct rail_config config;
    struct verbs_limits limits;
    char name[VERBS_NAME_SIZE]; /**< "mlx5_0:1" */
    uint8_t port;
    uint8_t gid_index;
    uint32_t max_msg;              /**< largest message that the port sends, bytes */
    struct rail_wire_rail address; /**< as peers are told */
};

enum rail_kind { RAIL_KIND_WRITE, RAIL_KIND_READ, RAIL_KIND_FETCH_ADD, RAIL_KIND_MAIL };

/** Which slots of the send queue a request may use. */
enum rail_class {
    RAIL_CLASS_BULK, /**< all but the reserved ones */
    RAIL_CLASS_WORD, /**< the slots kept for word ops too, so that bulk cannot starve them */
    RAIL_CLASS_MAIL  /**< the slots kept for the mailbox too */
};

/** One posted request, from post to completion. Failover will read it: what it was, where its PSNs lie, and what may be
 *  repeated. */
struct rail_record {
    uint64_t cookie; /**< api's */
    uint64_t remote_addr;
    uint64_t local_addr; /**< as the lkey names it */
    uint32_t len;
    uint32_t first_psn;
    uint32_t psns; /**< PSNs consumed; the next record begins behind them */
    uint32_t epoch;
    uint16_t mtu;
    uint8_t kind;  /**< enum rail_kind */
    uint8_t klass; /**< enum rail_class */
};

/** A rail's completion queue for one channel. */
struct rail_queue {
    struct rail *rail;
    struct verbs_cq *cq;
    struct verbs_mr *mr; /**< over memory */
    uint8_t *memory;     /**< a scratch line, then each lane's mailbox buffers */
    struct rail_lane **lanes;
    uint32_t lane_count;
    uint32_t lane_max;
    uint64_t taken;    /**< completions taken so far, those that gave no event included */
    int broken;        /**< 0, or why its completions cannot be had or believed any more */
    uint32_t given_up; /**< then: lanes that have been stopped and have handed back every record */
};

enum rail_lane_state {
    RAIL_LANE_INIT, /**< made, receives posted, not connected */
    RAIL_LANE_UP,
    RAIL_LANE_DEAD /**< failed; what was queued comes back flushed */
};

struct rail_lane {
    struct rail_queue *queue;
    void *owner;    /**< api's peer */
    uint32_t index; /**< api's: number of the lane at its peer */
    uint32_t place; /**< in queue->lanes; part of each request's id */
    enum rail_lane_state state;
    struct verbs_qp *qp;
    uint32_t mtu;
    uint32_t start_psn, next_psn;
    uint32_t depth;      /**< slots of the send queue */
    uint32_t mask;       /**< of the ring: the power of two above depth, less one */
    uint32_t head, tail; /**< free-running: records of [tail, head) are outstanding */
    uint64_t backlog;    /**< bytes of them */
    uint32_t psns;       /**< PSNs of them */
    struct rail_record *ring;
    struct rail_mail mail;
    uint32_t mail_busy; /**< mailbox sends outstanding */
    uint32_t mail_next; /**< send buffer to use next */
    uint32_t limit[3];  /**< by enum rail_class: slots that requests of that class may see in use, their own included */
};

/* ---- rail_open.c ------------------------------------------------------------------------------------------------- */

/** Opens a port as a rail. 0; -ENODEV where there is no such device (the message lists those there are) or port,
 *  -ENETDOWN where it is not ACTIVE, -ENOTSUP without atomics, -ENOMEM, or what a verbs call said. Logs. v and log must
 *  outlive it. */
int rail_open(struct verbs *v, const struct log *log, const char *dev, uint8_t port, const struct rail_config *config,
              struct rail **out) ATTR_CHECK_RESULT;

/** Its queues must be closed. NULL is allowed. */
void rail_close(struct rail *rail);

/** What to do about an error of making something, to be put behind its message; "" where there is nothing to say. */
const char *rail_hint(int error);

/** Makes a queue for up to `lanes` lanes. 0, -E2BIG where the device's CQ is too small, or a negative errno; logs. */
int rail_queue_open(struct rail *rail, uint32_t lanes, struct rail_queue *out) ATTR_CHECK_RESULT;

/** Closes a queue and every lane on it. A zeroed one is allowed. */
void rail_queue_close(struct rail_queue *queue);

/* ---- rail_conn.c ------------------------------------------------------------------------------------------------- */

/** Makes a lane on a queue: a fresh QP in INIT with its receives posted; start_psn should be random. The lane belongs
 *  to the queue, which closes it. 0, -ENOSPC where the queue is full, or a negative errno; logs. */
int rail_lane_open(struct rail_queue *queue, uint32_t start_psn, struct rail_lane **out) ATTR_CHECK_RESULT;

/** This end, to be told to the peer. */
struct rail_wire_end rail_lane_end(const struct rail_lane *lane);

/** Takes a lane to RTS. 0 or what the verbs call said; the caller logs, since it may do without. */
int rail_lane_connect(struct rail_lane *lane, const struct rail_wire_rail *remote, struct rail_wire_end end,
                      uint32_t mtu) ATTR_CHECK_RESULT;

/** Takes a lane out of service: its QP to ERR, what is queued comes back flushed. Any state; again does nothing. */
void rail_lane_stop(struct rail_lane *lane);

/* ---- rail_lane.c ------------------------------------------------------------------------------------------------- */

/** One request to be posted. */
struct rail_request {
    enum rail_kind kind; /**< not MAIL */
    enum rail_class klass;
    uint32_t epoch;
    uint32_t len; /**< at most 2^30 and the rail's max_msg; 8 for an atomic */
    uint64_t cookie;
    uint64_t local_addr; /**< an atomic's goes to the queue's scratch: its old value is of no use yet */
    uint64_t remote_addr;
    uint32_t lkey;
    uint32_t rkey;
    uint64_t operand;
};

/** PSNs that a request consumes: request packets, but response packets for a READ (IBA spec vol. 1, 9.7); at
 *  least 1. Pure. */
uint32_t rail_psn_count(enum rail_kind kind, uint32_t len, uint32_t mtu);

/** Whether a request of this class, kind and length could be posted now: slot and PSNs. Dead lanes have no room. */
bool rail_lane_room(const struct rail_lane *lane, enum rail_class klass, enum rail_kind kind, uint32_t len);

/** Posts a request for which there is room. 0; -EAGAIN without room; -ENOTCONN on a lane that is not up; or what the
 *  verbs call said: then nothing was posted and the lane is stopped; the caller logs, since it knows the peer. */
int rail_lane_post(struct rail_lane *lane, const struct rail_request *request) ATTR_CHECK_RESULT;

/** Sends what the mailbox has due, as far as credits and slots allow. Their number, or as rail_lane_post(). */
int rail_lane_pump_mail(struct rail_lane *lane);

/* ---- rail_poll.c ------------------------------------------------------------------------------------------------- */

enum rail_event_kind {
    RAIL_EVENT_DONE,  /**< a request ended: record, error */
    RAIL_EVENT_MAIL,  /**< a message arrived: mail, error (-EPROTONOSUPPORT: of another version; -EPROTO: malformed) */
    RAIL_EVENT_BROKEN /**< the lane's mailbox or its queue failed: error; the lane should be stopped */
};

struct rail_event {
    enum rail_event_kind kind;
    int error;          /**< 0 or a negative errno; -ECANCELED: flushed */
    const char *status; /**< name of a bad completion's status, else NULL */
    uint32_t vendor_error;
    struct rail_lane *lane;
    struct rail_record record;
    struct rail_mail_msg mail;
};

#define RAIL_POLL_MAX VERBS_POLL_MAX

/**
 * Takes up to RAIL_POLL_MAX completions of a queue as events, each record once, in posting order on its lane. Returns
 * their number; queue->taken tells whether completions were taken that gave none. A queue that cannot be polled, or whose
 * completions fit no request (-EPROTO), is given up (logged): its lanes are stopped and end in a RAIL_EVENT_BROKEN, each
 * record still outstanding in a RAIL_EVENT_DONE, all with that error.
 */
unsigned rail_poll(struct rail_queue *queue, struct rail_event out[RAIL_POLL_MAX]);

#endif
