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

#include "iprange.h"
#include "rail_mail.h"
#include "rail_wire.h"
#include "verbs.h"

#define RAIL_PSN_MASK 0xffffffu
/** Fewer PSNs than this may be outstanding on a lane: half the space, so that older and newer can be told apart
 *  (IBA spec vol. 1, 9.7: reliable service). */
#define RAIL_PSN_WINDOW (1u << 23)

/** Addresses that a GID may hold. */
enum rail_family { RAIL_FAMILY_ANY, RAIL_FAMILY_IPV4, RAIL_FAMILY_IPV6 };

/** What a rail's lanes are made with; from the options. */
struct rail_config {
    uint32_t sq_depth;
    uint32_t gid_index;   /**< UINT32_MAX: choose one, by the next three */
    uint8_t roce_version; /**< 1 or 2 */
    enum rail_family gid_family;
    struct iprange gid_range;
    bool grh; /**< a global route header on InfiniBand too */
    uint16_t pkey_index;
    uint8_t sl, traffic_class;
    uint8_t timeout, retry, rnr_retry, min_rnr_timer;
    uint32_t mtu_max; /**< bytes; 0: no limit of ours */
    uint8_t plane;    /**< of the fabric, as peers are told; RAIL_WIRE_NO_PLANE: unknown */
    bool wire_choice; /**< whether it is worth knowing if QPs can choose a wire of a bond */
};

struct rail {
    const struct log *log;
    struct verbs_dev *dev;
    struct rail_config config;
    struct verbs_limits limits;
    char name[VERBS_NAME_SIZE]; /**< "mlx5_0:1" */
    uint8_t port;
    uint8_t gid_index;
    uint32_t max_msg; /**< largest message that the port sends, bytes */
    void *flush_line; /**< what peers' flushes read; registered as long as the rail is open */
    struct verbs_mr *flush_mr;
    struct verbs_mr *gpu_flush_mr; /**< the same in GPU memory, which is api's; NULL: none */
    struct rail_wire_rail address; /**< as peers are told */
    unsigned wires;                /**< of a bond, as its device says; 1: no bond; 0: not told */
    bool wire_choice;              /**< its QPs can choose one of them */
};

/** How a lane's packets leave the rail. All 0: as the device likes. */
struct rail_way {
    uint8_t wire;        /**< of a bond, from 1; 0: any */
    uint16_t sport;      /**< UDP source port, on RoCE v2 */
    uint32_t flow_label; /**< that drivers derive it from */
};

enum rail_kind {
    RAIL_KIND_WRITE,
    RAIL_KIND_READ,  /**< a get */
    RAIL_KIND_FLUSH, /**< a READ of 8 bytes of the peer's flush line into the lane's cell */
    RAIL_KIND_AHEAD, /**< the same, directly before a flush that reads the line of the other kind of memory */
    RAIL_KIND_FETCH_ADD,
    RAIL_KIND_COMPARE_SWAP,
    RAIL_KIND_MAIL
};

/** Which slots of the send queue a request may use. */
enum rail_class {
    RAIL_CLASS_BULK, /**< all but the reserved ones */
    RAIL_CLASS_WORD, /**< the slots kept for word ops too, so that bulk cannot starve them */
    RAIL_CLASS_MAIL  /**< the slots kept for the mailbox too */
};

/** One request, from rail_lane_queue() to its end. Failover will read it: what it was, where its PSNs lie, and what may be
 *  repeated. One cache line; what it has in common with a rail_request lies as there, and is copied as a block. */
struct rail_record {
    _Alignas(64) uint64_t cookie; /**< api's */
    uint64_t local_addr;          /**< as the lkey names it; the lane's cell for an immediate, a flush and an atomic */
    uint32_t len;
    uint32_t lkey;
    uint64_t remote_addr;
    uint32_t rkey;
    uint32_t epoch;
    uint8_t kind;       /**< enum rail_kind */
    uint8_t klass;      /**< enum rail_class */
    bool immediate;     /**< what was written is in the cell */
    bool unsignalled;   /**< ends well with the next signalled one, without a completion of its own */
    uint32_t first_psn; /**< it has rail_psn_count() of them */
    uint32_t mtu;
    uint8_t run; /**< unsignalled records directly before it */
};

/** A rail's completion queue for one channel. */
struct rail_queue {
    struct rail *rail;
    struct verbs_cq *cq;
    struct verbs_mr *mr; /**< over memory */
    uint8_t *memory;     /**< each lane's mailbox buffers and cells */
    uint32_t lane_bytes; /**< of memory, for each lane */
    uint32_t ring;       /**< records and cells of each lane, a power of two above sq_depth */
    struct rail_lane **lanes;
    uint32_t lane_count;
    uint32_t lane_max;
    uint64_t taken;            /**< completions taken so far, those that gave no event included */
    int broken;                /**< 0, or why its completions cannot be had or believed any more */
    uint32_t given_up;         /**< then: lanes that have been stopped and have handed back every record */
    uint32_t refused;          /**< records on stopped lanes that were never posted and have not come back yet */
    uint32_t next, count;      /**< completions of [next, count) have been taken and not looked at */
    struct rail_lane *ending;  /**< lane whose records up to ending_to are coming back, ended well; NULL: none */
    struct rail_lane *failing; /**< the same of a bad completion */
    uint32_t ending_to;        /**< number of the last of them */
    struct verbs_completion completion[VERBS_POLL_MAX];
    struct rail_mail_msg mail; /**< of the last event */
};

enum rail_lane_state {
    RAIL_LANE_INIT, /**< made, receives posted, not connected */
    RAIL_LANE_UP,
    RAIL_LANE_DEAD /**< failed; what was queued comes back flushed */
};

#define RAIL_LIST_MAX VERBS_LIST_MAX /**< requests built before rail_lane_queue() rings by itself */

/** What each request touches comes first. */
struct rail_lane {
    struct rail_queue *queue;
    void *owner;              /**< api's peer */
    struct rail_record *ring; /**< a record for each slot */
    struct verbs_send *list;  /**< what is built, RAIL_LIST_MAX places */
    uint64_t id;              /**< what each request's id begins with: the place */
    uint64_t backlog;         /**< bytes outstanding, those of gets left out */
    uint64_t get_bytes;       /**< bytes of gets outstanding */
    uint64_t bytes_max;       /**< of both together: whatever their number, they have fewer than RAIL_PSN_WINDOW PSNs */
    enum rail_lane_state state;
    uint32_t index;      /**< api's: number of the lane at its peer */
    uint32_t head, tail; /**< free-running: records of [tail, head) are outstanding */
    uint32_t posted;     /**< those of [posted, head) are built and not posted yet; on a stopped lane: refused */
    uint32_t mask;       /**< of ring and cells: their number less one; it is more than depth */
    uint32_t next_psn;   /**< then mtu, as in a record */
    uint32_t mtu;
    uint32_t list_max; /**< RAIL_LIST_MAX; 0 on a stopped lane */
    uint32_t silent;   /**< bytes of the last `run` records, which are built and unsignalled */
    uint32_t run;
    uint32_t limit[3];  /**< by enum rail_class: slots that requests of that class may see in use, their own too */
    uint32_t reads;     /**< gets, flushes and atomics outstanding: they share max_rd_atomic */
    uint32_t rd_atomic; /**< of them that the QP has in flight; more would hold up all that is behind them */
    uint32_t lkey;      /**< of cells and mailbox */
    struct verbs_qp *qp;
    uint64_t *cells;     /**< one for each slot: source of an immediate, landing place of a flush or an old value */
    uint64_t flush_addr; /**< of the peer's flush line */
    uint32_t flush_rkey;
    uint32_t gpu_flush_rkey;
    uint64_t gpu_flush_addr; /**< 0: it has none */
    uint32_t place;          /**< in queue->lanes */
    uint32_t depth;          /**< slots of the send queue */
    uint32_t start_psn;
    struct rail_way way; /**< api's, before it is connected */
    int refusal;         /**< on a stopped lane: why [posted, head) were not posted */
    struct rail_mail mail;
    uint32_t mail_busy; /**< mailbox sends outstanding */
    uint32_t mail_next; /**< send buffer to use next */
};

/* ---- rail_open.c ------------------------------------------------------------------------------------------------- */

/** Opens a port as a rail. 0; -ENODEV where there is no such device (the message lists those there are) or port,
 *  -ENETDOWN where it is not ACTIVE, -ENOTSUP without atomics, -ENOMEM, or what a verbs call said. Logs. v and log must
 *  outlive it. */
int rail_open(struct verbs *v, const struct log *log, const char *dev, uint8_t port, const struct rail_config *config,
              struct rail **out) ATTR_CHECK_RESULT;

/** Its queues must be closed. NULL is allowed. */
void rail_close(struct rail *rail);

/** Makes the rail tell peers of a flush line in GPU memory, before it tells them anything: at addr, the begin of a page, or
 *  where fd is not negative at that offset of a dma-buf. 0 or what the verbs call said; does not log. */
int rail_gpu_line(struct rail *rail, void *addr, int fd, uint64_t offset) ATTR_CHECK_RESULT;

/** Takes it back, before peers have been told. */
void rail_gpu_line_drop(struct rail *rail);

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

/** Takes a lane out of service: its QP to ERR. What was posted comes back flushed, what was built and not rung comes back
 *  with -ECANCELED behind it. Any state; again does nothing. */
void rail_lane_stop(struct rail_lane *lane);

/* ---- rail_lane.c ------------------------------------------------------------------------------------------------- */

/** One request to be posted. */
struct rail_request {
    uint64_t cookie;
    uint64_t local_addr; /**< of a WRITE that is not immediate, and of a READ */
    uint32_t len;        /**< at most 2^30 and the rail's max_msg; of an atomic 8; a flush needs none */
    uint32_t lkey;
    uint64_t remote_addr; /**< not of a FLUSH, nor its rkey */
    uint32_t rkey;
    uint32_t epoch;
    uint8_t kind;     /**< enum rail_kind, not MAIL */
    uint8_t klass;    /**< enum rail_class */
    bool immediate;   /**< a WRITE of the first len (<= 8) bytes of operand, copied */
    uint64_t operand; /**< to add; to compare with; or what an immediate writes */
    uint64_t swap;    /**< of a COMPARE_SWAP */
    bool gpu;         /**< of a FLUSH or AHEAD: the line in GPU memory, where the peer has one */
};

/** PSNs that a request of so many bytes consumes: request packets, but response packets for a READ (IBA spec vol. 1, 9.7);
 *  at least 1. Pure. */
uint32_t rail_psn_count(uint32_t len, uint32_t mtu);

/** Whether a request of this class, kind and length could be queued now: slot, PSNs, and for gets, flushes and atomics
 *  max_rd_atomic, of which gets leave 2 to the others; of an AHEAD also a slot for the flush behind it. Dead lanes have no
 *  room. */
bool rail_lane_room(const struct rail_lane *lane, enum rail_class klass, enum rail_kind kind, uint32_t len);

/**
 * Builds a request for which there is room: it takes its slot, its record and its PSNs. It is posted by rail_lane_ring(),
 * or here once RAIL_LIST_MAX are built. On a lane that has died since the caller asked
 * for room it comes back as refused.
 */
void rail_lane_queue(struct rail_lane *lane, const struct rail_request *request);

/** WRITEs of a list end without a completion of their own until they have so many bytes: the books wait no longer than that. */
#define RAIL_SILENT_BYTES 65536u

/** PSNs of a request: rail_psn_count(), for a length that is not 0. */
static inline uint32_t rail_psns(uint32_t len, uint32_t mtu)
{
    /* An MTU is a power of two; a division here would be felt. */
    return ((len - 1) >> __builtin_ctz(mtu)) + 1;
}

/** WRITEs of bulk, many in a row: what of the lane each of them changes, at hand. */
struct rail_writer {
    struct rail_lane *lane;
    struct verbs_send *send; /**< next place in the list */
    uint64_t bytes;
    uint64_t told; /**< of bytes, those up to the last record that is signalled */
    uint32_t head, psn, run;
};

/**
 * Begins; until rail_write_end() nothing else may be asked of the lane. Returns how many there is room for, none longer than
 * `longest`; all but the last may have fewer than *bytes together.
 */
static inline uint32_t rail_write_begin(struct rail_writer *w, struct rail_lane *lane, uint64_t longest,
                                        uint64_t *bytes)
{
    uint64_t used = lane->backlog + lane->get_bytes + longest;
    uint32_t built = lane->head - lane->posted, busy = lane->head - lane->tail, limit = lane->limit[RAIL_CLASS_BULK];
    if (lane->state != RAIL_LANE_UP || used >= lane->bytes_max || busy >= limit)
        return 0;
    *bytes = lane->bytes_max - used;
    *w = (struct rail_writer){
        .lane = lane, .send = lane->list + built, .head = lane->head, .psn = lane->next_psn, .run = lane->run};
    w->told = -(uint64_t)lane->silent;
    return min_u32(limit - busy, lane->list_max - built);
}

/** rail_lane_queue() of a WRITE of bulk, len > 0 and not immediate. */
static inline void rail_write(struct rail_writer *w, const struct rail_request *r)
{
    const struct rail_lane *lane = w->lane;
    struct rail_record *record = &lane->ring[w->head & lane->mask];
    struct verbs_send *send = w->send++;
    record->cookie = r->cookie;
    record->local_addr = send->local_addr = r->local_addr;
    record->len = send->len = r->len;
    record->lkey = send->lkey = r->lkey;
    record->remote_addr = send->remote_addr = r->remote_addr;
    record->rkey = send->rkey = r->rkey;
    record->epoch = r->epoch;
    record->kind = RAIL_KIND_WRITE;
    record->klass = RAIL_CLASS_BULK;
    record->immediate = false;
    record->unsignalled = true;
    record->first_psn = w->psn;
    record->mtu = lane->mtu;
    record->run = (uint8_t)w->run++;
    send->id = lane->id | w->head++;
    send->op = VERBS_OP_WRITE;
    send->signal = VERBS_UNSIGNALLED;
    w->psn = (w->psn + rail_psns(r->len, lane->mtu)) & RAIL_PSN_MASK;
    w->bytes += r->len;
    if (w->bytes - w->told >= RAIL_SILENT_BYTES) {
        record->unsignalled = false;
        send->signal = VERBS_SIGNALLED;
        w->told = w->bytes;
        w->run = 0;
    }
}

/** Puts them on the lane's books; rings where the list is full. */
void rail_write_end(const struct rail_writer *w);

/** rail_lane_queue() of an atomic or an immediate, class WORD, the last of its list: the caller rings. False, with nothing
 *  changed, where there is no room. */
static inline bool rail_word(struct rail_lane *lane, const struct rail_request *r)
{
    uint32_t slot = lane->head & lane->mask;
    bool atomic = r->kind != RAIL_KIND_WRITE;
    if (lane->state != RAIL_LANE_UP || lane->head - lane->tail >= lane->limit[RAIL_CLASS_WORD] ||
        (atomic && lane->reads >= lane->rd_atomic) || lane->backlog + lane->get_bytes + r->len >= lane->bytes_max)
        return false;
    struct rail_record *record = &lane->ring[slot];
    struct verbs_send *send = &lane->list[lane->head - lane->posted];
    uint64_t *cell = &lane->cells[slot];
    record->cookie = r->cookie;
    record->local_addr = send->local_addr = (uintptr_t)cell;
    record->len = send->len = r->len;
    record->lkey = send->lkey = lane->lkey;
    record->remote_addr = send->remote_addr = r->remote_addr;
    record->rkey = r->rkey;
    record->epoch = r->epoch;
    record->kind = r->kind;
    record->klass = RAIL_CLASS_WORD;
    record->immediate = !atomic;
    record->unsignalled = false;
    record->first_psn = lane->next_psn;
    record->mtu = lane->mtu;
    record->run = (uint8_t)lane->run;
    send->id = lane->id | lane->head;
    send->signal = VERBS_SIGNALLED;
    if (atomic) {
        send->op = r->kind == RAIL_KIND_FETCH_ADD ? VERBS_OP_FETCH_ADD : VERBS_OP_COMPARE_SWAP;
        send->operand = r->operand;
        send->swap = r->swap;
        send->atomic_rkey = r->rkey;
        lane->reads++;
    } else {
        send->op = VERBS_OP_WRITE;
        send->rkey = r->rkey;
        *cell = r->operand;
    }
    lane->silent = lane->run = 0;
    lane->backlog += r->len;
    lane->next_psn = (lane->next_psn + 1) & RAIL_PSN_MASK;
    lane->head++;
    return true;
}

/**
 * Posts what is built, as one list; nothing where nothing is. A refusal (logged) stops the lane: what was posted of the list
 * ends as on any stopped lane, and what was refused comes back from rail_next() behind it as RAIL_EVENT_DONE with the
 * refusal's error, which is never -EAGAIN.
 */
void rail_lane_ring(struct rail_lane *lane);

/** Posts an ATOMIC or ATOMIC_REPLY (its own fields filled in, the rest not) through the mailbox. 0; -EAGAIN without
 *  credit or slot; -ENOTCONN on a lane that is not up. Rings. */
int rail_lane_send_mail(struct rail_lane *lane, const struct rail_mail_msg *msg) ATTR_CHECK_RESULT;

/** Sends what else the mailbox has due, as far as credits and slots allow. Their number. Rings. */
unsigned rail_lane_pump_mail(struct rail_lane *lane);

/* ---- rail_poll.c ------------------------------------------------------------------------------------------------- */

enum rail_event_kind {
    RAIL_EVENT_DONE,  /**< a request ended: record, error, value; a mailbox message only where it failed */
    RAIL_EVENT_MAIL,  /**< a message arrived: mail, error (-EPROTONOSUPPORT: of another version) */
    RAIL_EVENT_BROKEN /**< the lane's mailbox or its queue failed: error; the lane should be stopped */
};

struct rail_event {
    enum rail_event_kind kind;
    int error; /**< 0 or a negative errno; -ECANCELED: flushed */
    struct rail_lane *lane;
    const struct rail_record *record; /**< DONE: in the lane's ring */
    uint64_t value; /**< DONE of an atomic: the old value; of a flush: what was read; where error is 0 */
    const struct rail_mail_msg *mail; /**< MAIL: in the queue */
    const char *status;               /**< where error is not 0: name of a bad completion's status, or NULL */
    uint32_t vendor_error;            /**< where error is not 0 */
};

/**
 * Takes completions of a queue, to be looked at with rail_next(); does nothing while some of the last ones have not been.
 * Their number; queue->taken counts them too. A queue that cannot be polled is given up (logged): its lanes are stopped and
 * end in a RAIL_EVENT_BROKEN, each record still outstanding in a RAIL_EVENT_DONE, all with that error.
 */
unsigned rail_poll(struct rail_queue *queue);

/**
 * The next event of what was taken, or of what was refused or given up since, which needs no completion: so it is called
 * until false behind each rail_poll(), whatever that returned. Each record comes back once, in posting order on its lane.
 * One good completion ends the unsignalled records before it too, each an event of its own. Of a record that ended badly
 * without a completion of its own it is not known whether it was executed: -ECANCELED. A queue whose completions fit no
 * request (-EPROTO) is given up as by rail_poll(). The fields that out's kind and error do not name are not written.
 * record and mail are valid until the next rail_next() on the queue, also while the caller queues and rings.
 */
bool rail_next(struct rail_queue *queue, struct rail_event *out);

/**
 * What most of what is taken is, many at a time: the lane whose records from lane->tail up to before *end have ended well.
 * NULL, *end untouched, where something else comes next. The caller looks at the records, lane->ring[number & lane->mask],
 * and takes those off the books that are bulk WRITEs with rail_retire_bulk(); what then comes next rail_next() tells.
 */
struct rail_lane *rail_ended(struct rail_queue *queue, uint32_t *end);

/** Whether there may be an event though rail_poll() has just given 0: something is still coming back from before. */
static inline bool rail_owes(const struct rail_queue *queue)
{
    /* One branch: it is asked of each rail in each pass, and seldom true. */
    return ((uintptr_t)queue->ending | (uintptr_t)queue->failing | (unsigned)queue->broken | queue->refused) != 0;
}

/** Takes the records of rail_ended() before number `to` off the books, all bulk WRITEs, of so many bytes together. */
static inline void rail_retire_bulk(struct rail_queue *queue, struct rail_lane *lane, uint32_t to, uint64_t bytes)
{
    if (to == queue->ending_to + 1)
        queue->ending = NULL;
    lane->tail = to;
    lane->backlog -= bytes;
}

/** Takes the first record of rail_ended() off the books where it is an atomic or a WRITE, of any class. */
static inline void rail_retire_word(struct rail_queue *queue, struct rail_lane *lane)
{
    const struct rail_record *record = &lane->ring[lane->tail & lane->mask];
    if (lane->tail == queue->ending_to)
        queue->ending = NULL;
    lane->tail++;
    lane->backlog -= record->len;
    lane->reads -= record->kind != RAIL_KIND_WRITE;
}

#endif
