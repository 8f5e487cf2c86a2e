/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance.h - what an RC device must do, as a list of named checks over plain libibverbs.
 *
 * One thread owns two ports, A and B, and drives both ends of every connection, so the same list runs in an emulated
 * fabric's virtual time, in real time, on soft-RoCE and on hardware. What differs between these is in struct
 * conformance_env and in conformance_known.c; a check may look at neither the clock nor the fabric in any other way.
 * Called by the main programs (conformance_main.c, conformance_sim.c). next: conformance.c, which runs the list.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MSEC 1000000ull /**< ns */
#define SEC  (1000 * MSEC)

/** The two ends. Most checks post on A and look at B. */
enum { A = 0, B = 1 };

enum {
    BUFFER = 1 << 18, /**< bytes registered at each end */
    GUARD = 4096,     /**< bytes before and behind them that nothing may touch */
    PATIENCE_S = 5,   /**< how long a check waits for what must come */
    KNOWN_MS = 300,   /**< the same where it is known not to come */
    QKEY = 0x1ee7,    /**< of datagrams */
    GRH = 40          /**< bytes in front of a datagram in its receive */
};

/** What a main program knows and the list does not. Strings and functions must outlive the run. */
struct conformance_env {
    const char *device[2]; /**< names of the devices A and B; may be the same */
    int port[2];           /**< port numbers, from 1 */
    int gid_index;
    uint64_t seed;      /**< decides data, PSNs and the mixed traffic */
    const char *fabric; /**< whose known deviations apply: "emu", "rxe", "none"; NULL: found from the device */
    const char *only;   /**< run only the checks whose names begin so, e.g. "read_,psn_"; NULL: all */
    uint64_t grain_ns;  /**< how early a device's timer may fire here; 0: never */
    void *arg;          /**< given to each function below */
    /** Clock, ns, never going back. */
    uint64_t (*now)(void *arg);
    /** Gives up the CPU until something may have happened, at the latest at deadline_ns. May return early. */
    void (*wait)(void *arg, uint64_t deadline_ns);
    /** Address under which the other end names ptr inside a plain ibv_reg_mr() region. NULL: the pointer itself. */
    uint64_t (*remote)(void *arg, const void *ptr);
    /** Takes the cable of A's or B's port out (up = false) or puts it back. 0 or -errno. NULL: cannot be done here. */
    int (*cable)(void *arg, int side, bool up);
};

/** One run of the list. */
struct conformance {
    const struct conformance_env *env;
    const char *fabric;
    struct ibv_context *ctx[2];
    struct ibv_device_attr device[2];
    struct ibv_port_attr port[2];
    union ibv_gid gid[2];
    enum ibv_mtu path_mtu; /**< the lower of the two ports' */
    uint32_t mtu;          /**< the same in bytes */
};

/** Kinds of things a check made, released by the runner in reverse order, whatever the check did. */
enum made_kind { MADE_MEMORY, MADE_PD, MADE_MR, MADE_CHANNEL, MADE_CQ, MADE_SRQ, MADE_QP, MADE_AH };

struct made {
    enum made_kind kind;
    void *thing;
};

/** One running check. */
struct check {
    struct conformance *run;
    uint64_t random; /**< state of check_random() */
    int patience_ms; /**< PATIENCE_S or KNOWN_MS */
    int problems;
    char said[2048]; /**< the problems, one a line */
    char skip[128];  /**< why the check could not be run; empty: it was */
    struct made made[128];
    int made_count;
    struct ibv_wc wc;    /**< what check_wc() saw last */
    uint64_t empty_ns;   /**< when check_poll() found nothing last: what it finds later came behind that */
    uint64_t stalled_ns; /**< for how long this program was not run though it had only a short nap (by a real clock) */
};

/** An entry of the list. */
struct conformance_check {
    const char *name;
    void (*fn)(struct check *c, long arg);
    long arg;
};

/** The list, part by part; each ends with a NULL name. */
extern const struct conformance_check conformance_object_checks[];
extern const struct conformance_check conformance_state_checks[];
extern const struct conformance_check conformance_data_checks[];
extern const struct conformance_check conformance_queue_checks[];
extern const struct conformance_check conformance_event_checks[];
extern const struct conformance_check conformance_srq_checks[];
extern const struct conformance_check conformance_psn_checks[];
extern const struct conformance_check conformance_atomic_checks[];
extern const struct conformance_check conformance_access_checks[];
extern const struct conformance_check conformance_retry_checks[];
extern const struct conformance_check conformance_mixed_checks[];
extern const struct conformance_check conformance_ud_checks[];

/** A check that is known to end otherwise on one fabric, and what the specification says. */
struct conformance_known {
    const char *fabric, *name, *reason;
    bool skip; /**< not even tried: it harms the fabric, or ends now this way, now that */
};

/** The known deviation of a check on a fabric, or NULL. */
const struct conformance_known *conformance_known_find(const char *fabric, const char *name);

/** Runs the list, TAP on stdout. 0: nothing failed; 1: something did; 2: the ports cannot be used (stderr says why). */
int conformance_run(const struct conformance_env *env);
/** Prints the names of the list, one a line. */
void conformance_list(void);

/* ---- conformance_check.c: what checks are written with ---- */

/** Notes a problem unless ok; the text says what was seen and what was expected. Returns ok. */
bool check_that(struct check *c, bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));
/** Notes a problem unless seen == expected. */
bool check_equal(struct check *c, const char *what, long seen, long expected);
/** Can B's cable be cut here, so that A's stays? If not, the check is skipped. */
bool check_can_cut(struct check *c);
/** Leaves the check unrun, with the reason. */
void check_skip(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Next number of the check's own sequence: depends on the seed and the check's name only. */
uint64_t check_random(struct check *c);
uint64_t check_now(struct check *c);
/** Gives up the CPU until something may have happened, at the latest at deadline_ns. */
void check_wait(struct check *c, uint64_t deadline_ns);
/** Lets ns pass. */
void check_sleep(struct check *c, uint64_t ns);

/** These return NULL after noting the problem. The runner releases what they made. */
void *check_memory(struct check *c, size_t bytes);
struct ibv_pd *check_pd(struct check *c, int side);
struct ibv_mr *check_mr(struct check *c, struct ibv_pd *pd, void *ptr, size_t bytes, int access);
struct ibv_comp_channel *check_channel(struct check *c, int side);
struct ibv_cq *check_cq(struct check *c, int side, int cqe, struct ibv_comp_channel *channel);
struct ibv_srq *check_srq(struct check *c, struct ibv_pd *pd, uint32_t wr, uint32_t sge);
/** want->cap is updated with what the device gave. */
struct ibv_qp *check_qp(struct check *c, struct ibv_pd *pd, struct ibv_qp_init_attr *want);
/** from: the completion and header of a datagram that came from there; else attr tells. */
struct ibv_ah *check_ah(struct check *c, struct ibv_pd *pd, struct ibv_ah_attr *attr);
struct ibv_ah *check_ah_from(struct check *c, struct ibv_pd *pd, int side, struct ibv_wc *wc, void *grh);
/** Releases something made above now; returns what the verbs call did. */
int check_release(struct check *c, void *thing);
/** Releases all; called by the runner. */
void check_release_all(struct check *c);

/** Polls one completion into *wc, waiting until timeout_ns from now. False: none came. Notes nothing. */
bool check_poll(struct check *c, struct ibv_cq *cq, struct ibv_wc *wc, uint64_t timeout_ns);
/** The next completion of cq must come, have this wr_id and one of two statuses. It stays in c->wc. */
bool check_wc2(struct check *c, struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status s1, enum ibv_wc_status s2);
bool check_wc(struct check *c, struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
/** No completion may come on cq for ns. */
bool check_quiet(struct check *c, struct ibv_cq *cq, uint64_t ns);
/** An event of this type must come on side's device for that QP, CQ or (both NULL) port. Others are passed over. */
bool check_event(struct check *c, int side, enum ibv_event_type type, const struct ibv_qp *qp, const struct ibv_cq *cq);
/** Drops the events that have come so far. */
void check_events_drop(struct check *c);
/** Must QP be in that state? */
bool check_state(struct check *c, struct ibv_qp *qp, enum ibv_qp_state state);

/* ---- conformance_pair.c: two connected QPs with a buffer each ---- */

/** What a pair is opened with. Start from pair_defaults(). */
struct pair_options {
    uint32_t send_wr, recv_wr, sge, inline_bytes;
    int cqe;
    bool sig_all;
    bool channel;             /**< completion channel for the receive CQ of B */
    bool loopback;            /**< both ends on port A */
    bool datagrams;           /**< UD instead of RC; each end has an address handle for the other */
    uint32_t srq_wr;          /**< B receives from an SRQ of this size; 0: from a queue of its own */
    const struct side *share; /**< B is in this end's PD and receives from its SRQ */
    int qp_access, mr_access;
    uint8_t timeout, retry, rnr_retry, min_rnr;
    uint8_t rd_atomic;
};

/** One end. */
struct side {
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_comp_channel *channel;
    struct ibv_cq *scq, *rcq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_ah *ah;     /**< with datagrams: the other end's port */
    struct ibv_qp_cap cap; /**< what the device gave */
    uint32_t psn;          /**< first PSN that this end sends */
    uint8_t *buf;          /**< BUFFER bytes, registered as mr, GUARD bytes on both sides */
    uint8_t *want;         /**< what buf must hold */
};

struct pair {
    struct check *c;
    struct pair_options o;
    struct side s[2];
};

/** A request in the terms of a pair: offsets into the two buffers. Zero fields mean the ordinary thing. */
struct op {
    enum ibv_wr_opcode opcode;
    uint64_t id;
    size_t local, remote, len; /**< offsets here and at the other end; bytes */
    int pieces;                /**< SGEs that len is spread over; 0: one, or none for len 0 */
    int flags;                 /**< IBV_SEND_FENCE, _SOLICITED, _INLINE */
    bool unsignaled;
    uint32_t imm;          /**< as seen by the receiver, host order */
    uint64_t a, b;         /**< atomics: add, or compare and swap */
    uint32_t lkey, rkey;   /**< other keys than the buffers' own */
    uint64_t remote_addr;  /**< another address than the remote buffer's */
    const void *local_ptr; /**< another address than the local buffer's */
    uint32_t qkey, qpn;    /**< of a datagram: others than QKEY and the other end's */
};

struct pair_options pair_defaults(void);
/** Makes everything up to QPs in RESET and fills the buffers. options NULL: defaults. False: noted. */
bool pair_open(struct check *c, struct pair *p, const struct pair_options *options);
/** Brings both QPs to RTS. False: noted. */
bool pair_connect(struct pair *p);
/** Both at once. */
bool pair_start(struct check *c, struct pair *p, const struct pair_options *options);
/** One step of one end: ibv_modify_qp() with all that the step needs, less the bits in without. Returns its result. */
int pair_step(struct pair *p, int side, enum ibv_qp_state to, int without);
/** Attributes and mask of that step, for checks that change them. */
int pair_attributes(struct pair *p, int side, enum ibv_qp_state to, struct ibv_qp_attr *attr);
/** To ERR or RESET, which need nothing else. */
int pair_move(struct pair *p, int side, enum ibv_qp_state to);
/** Posts a request at an end; returns what ibv_post_send() did. */
int pair_post(struct pair *p, int side, const struct op *op);
/** Posts a receive of len bytes at offset, over pieces SGEs. */
int pair_recv(struct pair *p, int side, uint64_t id, size_t offset, size_t len, int pieces);
/** Posts and waits for success; false: noted. Leaves want alone. */
bool pair_do(struct pair *p, int side, const struct op *op);
/** Says that bytes of one end's buffer now are to be at another place. */
void pair_want(struct pair *p, int to, size_t to_offset, int from, size_t from_offset, size_t len);
/** Says that these bytes are to be there, and puts them there: fresh source data. */
void pair_put(struct pair *p, int side, size_t offset, const void *data, size_t len);
/** Both buffers and their guards must be as wanted, at the latest in a second. */
bool pair_check(struct pair *p);
/** The address under which the other end names buf + offset of side. */
uint64_t pair_address(struct pair *p, int side, size_t offset);
/** A 64-bit word of an end's buffer. */
uint64_t pair_word(const struct pair *p, int side, size_t offset);

#endif
