/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu.h - the emulated fabric's own structs: clock, fabric, device, port, packet, MR, CQ, QP.
 *
 * Two clocks share everything here: virtual time (emu_sim.c), and real time between processes (emu_real.c). Whatever depends
 * on the clock goes through struct emu_clock. The device model is not re-entrant: emu_abi.c takes the fabric's lock after
 * it has charged the call's time and before it enters the model, and no model function sleeps or switches.
 *
 * Words are those of the InfiniBand Architecture specification, volume 1 (below: IBA): requester, responder, PSN, AETH.
 */
#ifndef EMU_H
#define EMU_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "emu_clock.h"
#include "emu_cost.h"
#include "emu_gpu.h"
#include "emu_map.h"
#include "emu_recv.h"
#include "emu_rng.h"
#include "emu_spec.h"
#include "emu_store.h"
#include "emu_switch.h"

#define EMU_EXPORT __attribute__((visibility("default")))

enum {
    EMU_MAX_SGE = 16,
    EMU_MAX_INLINE = 1024,
    EMU_MAX_WR = 16384,
    EMU_MAX_CQE = 65535,
    EMU_MAX_RD_ATOMIC = 16,
    EMU_MAX_MSG = 1 << 30,
    EMU_PAYLOAD_ROOM = 4096, /* the largest MTU */
    EMU_ACK_EVERY = 16,      /* packets of a long message between two acknowledgement requests */
    EMU_PSN_MASK = 0xffffff,
    EMU_FRAME_OVERHEAD = 82, /* Ethernet with preamble and gap, IPv4, UDP, BTH, ICRC: 4096 of 4178 bytes are payload */
};

struct emu_fabric;
struct emu_pkt;
struct emu_port;
struct emu_ctx;
struct emu_qp;
struct emu_cq;
struct emu_ex;

/** The owner whose code runs now, or NULL. */
struct emu_owner *emu_self(void);

/* ---- packets ------------------------------------------------------------------------------------------------- */

enum emu_op {
    EMU_OP_WRITE,
    EMU_OP_SEND,
    EMU_OP_READ_REQUEST,
    EMU_OP_READ_RESPONSE,
    EMU_OP_FETCH_ADD,
    EMU_OP_CMP_SWAP,
    EMU_OP_ATOMIC_RESPONSE,
    EMU_OP_ACK,
    EMU_OP_NAK,
    EMU_OP_DATAGRAM,
};

enum { EMU_PKT_FIRST = 1, EMU_PKT_LAST = 2, EMU_PKT_ACK_REQ = 4, EMU_PKT_IMM = 8, EMU_PKT_SOLICITED = 16 };

enum emu_nak { EMU_NAK_SEQUENCE, EMU_NAK_INVALID, EMU_NAK_ACCESS, EMU_NAK_OPERATION, EMU_NAK_RNR };

/**
 * Bytes on their way, or where they come from (emu_pattern.h). Whoever sets bytes without asking for the kind does so in a
 * packet that is new; whoever reads them uses emu_payload_read(), but for what can only be bytes.
 */
struct emu_payload {
    uint32_t len;
    uint32_t runs;        /* 0: bytes; else so many struct emu_run are in their place */
    unsigned char *bytes; /* EMU_PAYLOAD_ROOM, owned by the packet; NULL where len is 0 */
};

/** Real bytes of a payload. */
void emu_payload_read(const struct emu_payload *p, uint32_t at, void *to, uint32_t len);
/** Turns runs, of which len bytes are there so far, into bytes. */
void emu_payload_make_bytes(struct emu_payload *p, uint32_t len);

struct emu_pkt {
    struct emu_pkt *next;
    struct emu_pkt *made_before; /* all packets of the fabric, for the end */
    uint32_t holds;              /* those that still want the payload, beside whoever has the packet */
    struct emu_port *src, *dst;
    uint64_t arrival; /* at the switch, where time is real */
    uint32_t dst_qpn;
    enum emu_op op;
    unsigned flags;
    uint32_t psn;
    uint32_t wire_bytes;
    uint64_t va;      /* RETH or AtomicETH */
    uint32_t rkey;    /* a datagram's Q_Key */
    uint32_t src_qpn; /* of a datagram */
    uint32_t dma_len;
    uint64_t compare_add, swap; /* AtomicETH; an atomic response carries the old value in swap */
    uint32_t imm;
    enum emu_nak nak;
    uint8_t rnr_timer;
    struct emu_payload payload;
};

/** A fresh zeroed packet with room for len payload bytes, or NULL without memory. */
struct emu_pkt *emu_pkt_alloc(struct emu_fabric *f, uint32_t len);
/** Gives a packet back to the fabric's pool, or lets go of it where others hold it. */
void emu_pkt_free(struct emu_fabric *f, struct emu_pkt *p);
/** Frees every packet, those on their way too, at the end of the fabric's life. */
void emu_pkt_drain(struct emu_fabric *f);

/** Payload that counts as such: what the caller moves, not headers or acknowledgements. */
static inline uint32_t emu_pkt_payload(const struct emu_pkt *p)
{
    return p->op == EMU_OP_ATOMIC_RESPONSE ? 0 : p->payload.len;
}

/* ---- fabric -------------------------------------------------------------------------------------------------- */

/** One wire of a port and its side of it. Devices have one port each, as cards with a function per port do; a port has
 *  several wires where it is a bond (emu_lag.h). */
struct emu_port {
    struct emu_dev *dev;
    int index; /* in the fabric; that of a port is the device's, further wires follow behind all ports */
    int plane, wire;
    union ibv_gid gid;
    uint64_t rate_bits; /* line rate */
    double slow;        /* 1, or the fraction of the rate that is left */
    double loss;
    uint64_t delay_ns; /* added one way */
    bool up;
    bool stalled; /* its receiver takes nothing */
    /* transmit: acknowledgements first, then the QPs round robin, a packet each */
    bool tx_busy;
    bool start_due;        /* the engine thread is asked to begin sending */
    uint64_t tx_end;       /* when the last packet's last bit leaves */
    struct emu_pkt *stuck; /* sent, but its process has no room: the transmitter waits */
    uint64_t stuck_arrival;
    struct emu_pkt *ctl_head, **ctl_tail;
    struct emu_qp *ready_head, *ready_tail;
    /* receive: those that wait in the switch, the first being taken */
    struct emu_pkt_list rx;
    uint64_t rx_free; /* when the last packet it has begun to take is in */
    uint64_t rx_gen;  /* events of a service that was broken off are void */
    uint64_t rx_bytes, rx_peak, dropped;
    /* as a sender whose packets found no room: paused while any is held */
    struct emu_pkt_list held;
    struct emu_paused paused;
    struct emu_port_list wanted; /* paused ports whose first packet is for this one */
    struct emu_port *open_next;  /* in the switch's list of open ports */
    bool in_open;
    uint64_t pauses, paused_ns, paused_at;
    uint64_t *last_arrival; /* per destination port: packets of one path stay in order */
    uint64_t tx_payload, rx_payload, wire_tx, wire_rx, lost;
};

/** One RDMA device of a host. The ibv_device must stay first; libmlx5 reads a pointer just behind it: keep it NULL. */
struct emu_dev {
    struct ibv_device ibv;
    void *behind;
    struct emu_fabric *fabric;
    bool exists; /* false: the SPEC leaves it out; nobody sees or reaches it */
    int host;
    int card; /* in the fabric: the ports that one GPU would have, in one slot */
    uint64_t guid;
    struct emu_port port, *more; /* its first wire, and the others */
    struct emu_map qps;          /* QPN -> struct emu_qp */
    struct emu_map mrs;          /* key -> struct emu_mr */
    struct emu_ctx *ctxs;
};

enum emu_direction { EMU_OUT, EMU_IN, EMU_DIRECTIONS };

/** Something bytes pass through at a rate, one after the other. */
struct emu_pipe {
    uint64_t free_ps; /* when it is through with what it has, ps */
};

/** The slot of the i-th card and the link of the i-th GPU of the fabric: there are as many of each. */
struct emu_bus {
    struct emu_pipe slot[EMU_DIRECTIONS], gpu[EMU_DIRECTIONS];
};

struct emu_fabric {
    struct emu_spec spec;
    char *spec_text;
    const struct emu_clock *clock;
    const struct emu_wire *wire; /* NULL: all ports are in this process */
    uint32_t qpn_mask, qpn_tag;  /* bits of QPNs that are not random */
    struct emu_rng rng;
    uint64_t lag_salt;    /* of hashes over wires */
    struct emu_dev *devs; /* host-major, then GPU, then port */
    int n_devs, per_host;
    struct emu_switch plane[EMU_SPEC_PORTS];
    struct emu_bus *bus; /* one a PE */
    struct emu_pkt *free_small, *free_large, *made;
    struct emu_store_pool store;
    struct emu_pkt *unsaid, **unsaid_tail; /* acknowledgements of bytes that are on their way to a GPU */
    uint32_t gpu_mrs; /* regions of GPU memory: while there are any, only the engine thread moves data */
    uint64_t trace;
    unsigned lock_depth;
};

/** Builds devices and ports from f->spec; f is zeroed but for spec and rng. 0 or -ENOMEM. */
int emu_fabric_init(struct emu_fabric *f);
/** Tolerates a half-built fabric. All contexts must be closed, or their owners gone for good. */
void emu_fabric_fini(struct emu_fabric *f);
/** The port with that GID, or NULL. */
struct emu_port *emu_fabric_find_gid(struct emu_fabric *f, const union ibv_gid *gid);
/** Reads "port h0/mlx5_0:1 down"; -EINVAL with a reason. */
int emu_fabric_command(const struct emu_spec *s, const char *command, struct emu_change *out, char *why,
                       size_t why_len);
/** Carries it out. */
int emu_fabric_ctl(struct emu_fabric *f, const char *command, char *why, size_t why_len);
/** Applies one change to a port and raises its events. */
void emu_fabric_apply(struct emu_fabric *f, const struct emu_change *c);
/** Tears down what an owner (NULL: everybody) has left open, as a kernel does when a process ends. */
void emu_fabric_abandon(struct emu_fabric *f, const struct emu_owner *owner);
/** Writes which QPs have work outstanding, for a deadlock's explanation. */
void emu_fabric_explain(struct emu_fabric *f, FILE *to);
/** Schedules the spec's timed changes. */
void emu_fabric_schedule(struct emu_fabric *f);

/* ---- link ---------------------------------------------------------------------------------------------------- */

/** The QP may have something to send: puts it in line at its port. Cheap if it already stands there. */
void emu_link_kick(struct emu_qp *qp);
/** Takes the QP out of line (destroy, reset). */
void emu_link_forget(struct emu_qp *qp);
/** Sends a small packet (ACK, NAK) ahead of data. Takes ownership. */
void emu_link_send_ctl(struct emu_port *port, struct emu_pkt *p);
/** The port may send again after a pause. */
void emu_link_resume(struct emu_port *port);
/** Event: a port's transmitter is free. */
void emu_link_sent(void *port, uint64_t arg);
/** How long so many bytes take on a port's side of the wire, ns. */
uint64_t emu_link_time(const struct emu_port *p, uint32_t wire_bytes);

/**
 * Payload of a queue pair (NULL: of nobody) passes between a port and memory, from start on. Returns when it is
 * through, ns; start itself where nothing limits it.
 */
uint64_t emu_bus_through(struct emu_port *port, const struct emu_qp *qp, enum emu_direction way, uint64_t start,
                         uint32_t bytes);

/* ---- contexts and events --------------------------------------------------------------------------------------- */

struct emu_async {
    struct emu_async *next;
    struct ibv_async_event event;
};

struct emu_ctx {
    struct verbs_context vctx; /* .context is what callers hold */
    struct emu_dev *dev;
    struct emu_owner *owner;
    struct emu_ctx *next;
    struct emu_async *async_head, **async_tail;
    int refs; /* PDs, CQs, channels */
    struct emu_cq *cqs;
    struct emu_pd *pds;
    struct emu_channel *channels;
    struct emu_srq *srqs;
    struct emu_ah *ahs;
};

struct emu_channel {
    struct ibv_comp_channel ibv;
    struct emu_channel *next;    /* of the context */
    struct emu_cq *head, **tail; /* CQs with an undelivered event */
};

struct emu_pd {
    struct ibv_pd ibv;
    struct emu_pd *next; /* of the context */
    int refs;
};

static inline struct emu_ctx *emu_ctx_of(struct ibv_context *c)
{
    return (struct emu_ctx *)((char *)c - offsetof(struct verbs_context, context));
}

/** Closes a context and everything made on it, whatever its state; nobody is asked or told. */
void emu_ctx_teardown(struct emu_ctx *ctx);
/** Frees a channel, a PD; their references are the caller's business. */
void emu_channel_free(struct emu_channel *ch);
void emu_pd_free(struct emu_pd *pd);
/** Queues an asynchronous event and makes async_fd readable. element is the QP, CQ, SRQ or port number in e. */
void emu_event_raise(struct emu_ctx *ctx, const struct ibv_async_event *e);
/** Drops queued events that name this QP, CQ or SRQ, before it goes away. */
void emu_event_forget(struct emu_ctx *ctx, const void *element);
/** Raises an event about its port on every context of the device. */
void emu_event_raise_port(struct emu_dev *dev, enum ibv_event_type type);
/** Raises an event about a QP. */
void emu_event_raise_qp(struct emu_qp *qp, enum ibv_event_type type);
/** Takes the oldest event: 0, or -EAGAIN. */
int emu_event_take(struct emu_ctx *ctx, struct ibv_async_event *out);

/* ---- memory -------------------------------------------------------------------------------------------------- */

struct emu_mr;

/** How a kind of memory is read and written; off counts from the region's first byte and is in bounds. */
struct emu_mem_ops {
    void (*load)(const struct emu_mr *mr, uint64_t off, struct emu_payload *to, uint32_t at, uint32_t len);
    /* by: the queue pair whose bytes they are */
    void (*store)(const struct emu_mr *mr, const void *by, uint64_t off, const struct emu_payload *from, uint32_t at,
                  uint32_t len);
    uint64_t (*load8)(const struct emu_mr *mr, uint64_t off);
    void (*store8)(const struct emu_mr *mr, uint64_t off, uint64_t value);
};

struct emu_mr {
    struct ibv_mr ibv;
    struct emu_ctx *ctx;
    const struct emu_mem_ops *mem;
    uint64_t local_base;  /* address that goes with the lkey */
    uint64_t remote_base; /* address that goes with the rkey */
    int access;
    uint32_t stores;             /* on their way into it */
    struct emu_gpu *gpu;         /* emu_mem_gpu: how it is reached */
    struct emu_pattern *pattern; /* emu_mem_pattern: the memory, and where in it the region begins */
    uint64_t place;
};

/** Memory that knows where its bytes came from. */
extern const struct emu_mem_ops emu_mem_pattern;

/** Whether a device could pin these bytes, to read them or to write them too. */
bool emu_pages_ok(const void *addr, size_t len, bool write);
/** Registers host memory. local and remote are the addresses of its first byte by lkey and rkey. NULL and errno. */
struct emu_mr *emu_mr_reg(struct emu_pd *pd, void *addr, size_t len, uint64_t local, uint64_t remote, int access);
/** 0, or an errno. */
int emu_mr_dereg(struct emu_mr *mr);
/** Finds the MR for a peer's access: key known, PD the same, rights there, range inside; else NULL. */
struct emu_mr *emu_mr_remote(struct emu_qp *qp, uint32_t rkey, uint64_t va, uint64_t len, int need);
/** True if all scatter/gather entries are good for the device (need: 0 to read them, IBV_ACCESS_LOCAL_WRITE). */
bool emu_mr_local_ok(const struct emu_pd *pd, const struct ibv_sge *sge, int n, int need);
/** Copies a payload's length, from byte off of the list on. False where a region was deregistered since the list was checked;
 *  then nothing can be said about the bytes. */
bool emu_mr_gather(struct emu_qp *qp, const struct ibv_sge *sge, int n, uint64_t off, struct emu_payload *to);
/** As gather, the other way. */
bool emu_mr_scatter(struct emu_qp *qp, const struct ibv_sge *sge, int n, uint64_t off, const struct emu_payload *from);
/** Finds the region and the place in it of byte off of a list, and how many bytes follow there; else NULL. */
struct emu_mr *emu_mr_at(struct emu_qp *qp, const struct ibv_sge *sge, int n, uint64_t off, uint64_t *place,
                         uint64_t *room);
/** What a PE's plain registrations add to an address to name it to peers, so that no peer address is a valid pointer. */
uint64_t emu_mr_shift(int owner);
/** Bytes of a list. */
uint64_t emu_sge_len(const struct ibv_sge *sge, int n);

/* ---- completion queues --------------------------------------------------------------------------------------- */

struct emu_cqe {
    struct ibv_wc wc;
    struct emu_qp *qp;
    uint64_t sq_free;    /* polling this entry frees the send queue up to here; 0 for a receive */
    uint64_t rq_free;    /* the same for the receive queue */
    struct emu_srq *srq; /* or a place in this one */
};

struct emu_cq {
    struct ibv_cq ibv;
    struct emu_ctx *ctx;
    struct emu_cq *next;  /* of the context */
    struct emu_cqe *ring; /* with so much room; grows up to size as it is used */
    uint32_t size, room, head, count;
    bool overrun;
    bool armed, armed_solicited;
    uint32_t events_due;                /* in its channel, not fetched */
    uint32_t events_given, async_given; /* fetched; to be acknowledged before it may go */
    struct emu_cq *next_event;
    int refs;
    uint64_t seen; /* owner's changes at the last empty poll */
    bool polled_empty;
};

/** Adds a completion and, if armed, its event. On overrun raises CQ_ERR and returns -EOVERFLOW; -EIO where its bytes are lost. */
int emu_cq_add(struct emu_cq *cq, const struct emu_cqe *e, bool solicited);
/** Removes what belongs to a QP that goes away. */
void emu_cq_forget_qp(struct emu_cq *cq, const struct emu_qp *qp);
/** Takes up to n completions; returns how many. */
int emu_cq_take(struct emu_cq *cq, int n, struct ibv_wc *out);
/** Creates a CQ; NULL and errno. */
struct emu_cq *emu_cq_new(struct emu_ctx *ctx, int cqe, void *cq_context, struct ibv_comp_channel *channel);
/** 0 or an errno (EBUSY). */
int emu_cq_destroy(struct emu_cq *cq);
/** Takes a CQ with an event from the channel, or NULL. */
struct emu_cq *emu_channel_take(struct emu_channel *ch);

/* ---- queue pairs --------------------------------------------------------------------------------------------- */

struct emu_wqe {
    uint64_t wr_id;
    enum ibv_wr_opcode opcode;
    unsigned flags;
    uint32_t imm;
    uint64_t va, compare_add, swap;
    uint32_t rkey;         /* of a datagram: its Q_Key */
    struct emu_port *peer; /* and where it goes; NULL: nobody has that address */
    uint32_t dest_qpn;
    uint32_t len;
    uint32_t first_psn, n_psn;
    uint32_t got; /* READ: response packets taken */
    enum ibv_wc_status status;
    uint8_t n_sge;
    bool started;
    bool resync;          /* READ: a response was missed and asked for again */
    struct ibv_sge sge[]; /* cap.max_send_sge; behind them inline data, used when flags has IBV_SEND_INLINE */
};

enum emu_reply_kind { EMU_REPLY_READ, EMU_REPLY_ATOMIC, EMU_REPLY_ACK, EMU_REPLY_NAK };

enum { EMU_NO_EVENT = -1 };

/** Something the responder still has to say, in PSN order. */
struct emu_reply {
    enum emu_reply_kind kind;
    bool again;     /* to a repeated request */
    bool waits;     /* ATOMIC: not executed yet */
    uint64_t due;   /* not before this */
    uint64_t after; /* READ: executes behind the stores before this number */
    uint32_t psn;
    uint64_t va;
    uint32_t rkey, len, sent; /* READ: bytes */
    uint32_t packets;         /* READ: packets sent */
    uint64_t old;             /* ATOMIC */
    enum emu_nak nak;         /* NAK, and the event that goes with it or EMU_NO_EVENT */
    int event;
};

struct emu_atomic_done {
    bool valid;
    uint32_t psn;
    uint64_t old;
};

enum { EMU_REPLIES = 64 }; /* most that are kept */

/** What a packet needs comes first, a cache line for each side: there may be very many of these. */
struct emu_qp {
    union {
        struct ibv_qp ibv;
        struct ibv_qp_ex ex;
    };
    /* both sides, and in line at the port */
    _Alignas(64) struct emu_port *port; /* the wire it sends on */
    struct emu_port *peer;              /* the first wire of the other end */
    struct emu_ctx *ctx;
    struct emu_qp *line_next;
    bool in_line, reply_turn;
    bool rnr_waiting, ack_timer;
    uint32_t reply_count;
    /* requester: freed <= una <= nxt <= tail; below numbered WQEs have PSNs */
    uint32_t rd_out;
    uint32_t nxt_pkt;  /* packets of the WQE at nxt that this pass has sent */
    unsigned char *sq; /* a ring with room for those that are not completed; grows with them */
    uint32_t sq_room;  /* a power of two, or 0 */
    uint32_t sq_stride;
    uint64_t sq_freed, sq_una, sq_nxt, sq_numbered, sq_tail;
    uint32_t psn_next, una_psn;
    uint64_t ack_deadline;
    uint32_t gen; /* timers of an earlier life are void */
    uint8_t retry_left, rnr_left;
    bool sig_all;
    /* responder */
    bool msg_open;
    uint64_t msg_va; /* of the WRITE or SEND in progress */
    uint32_t msg_rkey, msg_left, msg_got;
    uint32_t epsn;
    bool nak_sent;
    bool heard;   /* a packet came in RTR */
    bool refused; /* for good: the NAK waits behind other answers */
    bool has_shared;
    uint32_t reply_room, reply_head;
    struct emu_reply *reply; /* a ring that grows up to EMU_REPLIES */
    struct emu_store_queue store;
    struct ibv_qp_attr attr;
    struct ibv_qp_cap cap;
    uint16_t sport;
    uint8_t lag_port;  /* the wire that was asked for, from 1; 0: none */
    unsigned char *rq; /* cap.max_recv_wr receives */
    uint64_t rq_freed, rq_head, rq_tail;
    struct emu_rqe *shared; /* with an SRQ: the receive of the message in progress */
    struct emu_ex *staged;  /* where requests are put together (emu_ex.c), or NULL */
    uint32_t async_given;
    uint32_t atomic_next;
    struct emu_atomic_done atomic[EMU_MAX_RD_ATOMIC];
    struct emu_ahead ahead_out[EMU_AHEAD_WINDOWS],
        ahead_reply; /* of the message that it sends, of the READ that it answers */
};

/** a - b in PSN space, -2^23 .. 2^23-1 (IBA 9.7.2). */
static inline int32_t emu_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

/** The request of that number; only from una on, and below tail. */
static inline struct emu_wqe *emu_wqe_at(const struct emu_qp *qp, uint64_t i)
{
    return (struct emu_wqe *)(void *)(qp->sq + (size_t)(i & (qp->sq_room - 1u)) * qp->sq_stride);
}

/** Its inline data, cap.max_inline_data bytes. */
static inline unsigned char *emu_wqe_inline(const struct emu_qp *qp, struct emu_wqe *w)
{
    return (unsigned char *)&w->sge[qp->cap.max_send_sge];
}

static inline struct emu_rqe *emu_rqe_at(const struct emu_qp *qp, uint64_t i)
{
    return (struct emu_rqe *)(void *)(qp->rq + i % qp->cap.max_recv_wr * emu_rqe_size(qp->cap.max_recv_sge));
}

/** Path MTU in bytes, from the verbs' code (1: 256, 5: 4096). */
static inline uint32_t emu_qp_mtu(const struct emu_qp *qp)
{
    return 128u << qp->attr.path_mtu;
}

/** Creates an RC or UD QP in RESET; NULL and errno. */
struct emu_qp *emu_qp_new(struct emu_pd *pd, struct ibv_qp_init_attr *init);
/** Ends a QP whatever it is doing; its completions are removed. 0 or an errno. */
int emu_qp_destroy(struct emu_qp *qp);
/** ibv_modify_qp(3). 0 or an errno. */
int emu_qp_modify(struct emu_qp *qp, const struct ibv_qp_attr *attr, int mask);
/** Moves to ERR and flushes both queues in order. */
void emu_qp_to_error(struct emu_qp *qp);
/** Whether mask is what the transition needs (IBA, Modify Queue Pair); 0 or an errno. */
int emu_attr_check(const struct emu_qp *qp, enum ibv_qp_state to, const struct ibv_qp_attr *attr, int mask);

/** ibv_post_send(3). 0 or an errno, *bad at the first request that was not taken; *taken counts the others. */
int emu_post_send(struct emu_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad, int *taken);

/** The requester's next packet, or NULL. */
struct emu_pkt *emu_req_next(struct emu_qp *qp);
/** True if emu_req_next() would give one. */
bool emu_req_wants(const struct emu_qp *qp);
/** True for a requester's timer that would find nothing to do: its queue pair is gone, or has nothing outstanding. */
bool emu_req_timer_void(emu_event_fn fn, void *obj, uint64_t arg);
/** Takes an ACK, NAK, READ response or atomic response. */
void emu_req_receive(struct emu_qp *qp, const struct emu_pkt *p);
/** In SQD: raises SQ_DRAINED, once, when all that was started is done. */
void emu_req_drained(struct emu_qp *qp);
/** Sets the requester to its first PSN (at RTS). */
void emu_req_start(struct emu_qp *qp);
/** Completes the WQE at una with this status; an error ends the QP. */
void emu_req_complete(struct emu_qp *qp, enum ibv_wc_status status);

/** Takes a request packet; what has to keep its payload holds it. */
void emu_resp_receive(struct emu_qp *qp, struct emu_pkt *p);

/** Real time: sends the acknowledgements that wait for copies to a GPU, which are waited for together. */
void emu_reply_say(struct emu_fabric *f);
/** Acknowledges up to psn, but never ahead of READ data that still has to go, or of bytes that nobody can see. */
void emu_reply_ack(struct emu_qp *qp, uint32_t psn);
/**
 * Refuses the expected request, behind the answers that still have to go, and raises the event if it is not EMU_NO_EVENT.
 * What comes behind the refused packet is dropped without a word (IBA 9.7.5.2).
 */
void emu_reply_nak(struct emu_qp *qp, enum emu_nak nak, int event);
/** The same with the event that belongs to the refusal. */
void emu_reply_refuse(struct emu_qp *qp, enum emu_nak nak);
/** Answers that the requester cannot have yet. A repeated one does not count: the first may have arrived after all. */
uint32_t emu_reply_answers_due(const struct emu_qp *qp);
/** Adds an answer. */
void emu_reply_push(struct emu_qp *qp, struct emu_reply r);
/** The answer to a READ that comes now. */
struct emu_reply emu_reply_to_read(struct emu_qp *qp, const struct emu_pkt *p);
/** An atomic has been executed: its answer may leave at this time. */
void emu_reply_executed(struct emu_qp *qp, uint32_t psn, uint64_t old, uint64_t t);
/** The next answer that may leave: READ or atomic, or an ACK or NAK that stood behind them. NULL: none. */
struct emu_pkt *emu_reply_next(struct emu_qp *qp);
/** True for a timer of this file that would find nothing to do. */
bool emu_reply_timer_void(emu_event_fn fn, void *obj, uint64_t arg);

#endif
