/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - the structs behind braid.h, for the files of src/api alone. Here the layers meet: plan decides, rail carries.
 *
 *   braid ─ rails
 *         └ channels ─ a queue per rail
 *                    └ peers ─ lanes, counts, the FIFO of deferred word ops
 */
#ifndef API_H
#define API_H

#include "braid/braid.h"

#include "api_gpu.h"
#include "api_lag.h"
#include "api_peer.h"
#include "clock.h"
#include "log.h"
#include "options.h"
#include "pool.h"
#include "random.h"

#include <string.h>

#define API_MAX_CHANNELS RAIL_WIRE_CHANNELS
#define API_NO_LANE      UINT32_MAX          /**< index of a lane that was left out: its late events mean nothing */
#define API_MAX_LEN      (UINT64_C(1) << 30) /**< of one op: one message of a lane at most, and 2^22 PSNs at MTU 256 */
#define API_WAITS        8u                  /**< blocking forms under way on a channel, those cut off included */
#define API_EXEC_COOKIE  UINT64_C(1)         /**< in a record's cookie: it belongs to the executor; ops are even */

/** Written by the channel's thread alone, read by any: see api_stat_add(). */
struct api_stats {
    uint64_t put_bytes, get_bytes, word_ops, errors;
};

/** Adds to a number that one thread writes and others read at any time. No locked instruction: there is one writer. */
static inline void api_stat_add(uint64_t *stat, uint64_t n)
{
    __atomic_store_n(stat, __atomic_load_n(stat, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/** Reads such a number. */
static inline uint64_t api_stat_read(const uint64_t *stat)
{
    return __atomic_load_n(stat, __ATOMIC_RELAXED);
}

/** Messages that a caller's loop could repeat without end; each is limited by itself. */
enum api_log_kind {
    API_LOG_ARGUMENT,
    API_LOG_PE,
    API_LOG_LOCAL,
    API_LOG_KEY,
    API_LOG_OWNER,
    API_LOG_RANGE,
    API_LOG_ALIGN,
    API_LOG_RAIL,
    API_LOG_LANE,
    API_LOG_ECHO,
    API_LOG_MESSAGE,
    API_LOG_KINDS
};

struct braid_channel {
    struct braid *braid;
    unsigned index;
    uint32_t owned; /**< 1 while a thread is inside a call on it */
    uint32_t fifo_mask;
    struct api_peer *dirty; /**< peers with something to drive */
    uint64_t now_ns;        /**< time of the current pass, or of the last that moved something */
    uint64_t since_ns;      /**< what the current pass has found had not ended then */
    bool busy;              /**< the last pass moved something */
    uint64_t trip_ns;       /**< the shortest round trip to another PE; UINT64_MAX: none is known */
    uint64_t soon_ns;       /**< when braid_progress_soon() last made a pass */
    uint64_t ask_ns;        /**< when the first of those below is overdue; read by other threads */
    bool message_held;      /**< of some peer: a mailbox slot that becomes free gives no event */
    uint32_t asking;        /**< target-executed atomics of all peers without an answer */
    uint32_t idle_polls;
    struct random random; /**< nonces of echoes */
    struct log_limit limits[API_LOG_KINDS];
    struct pool op_pool;
    uint64_t op_free;       /**< ops in the pool */
    struct api_peer *peers; /**< n_pes of them */
    struct api_word *fifo;  /**< the peers' FIFOs in one block */
    struct rail_queue queue[BRAID_MAX_RAILS];
    struct api_stats stats[BRAID_MAX_RAILS];
    struct braid_done waits[API_WAITS]; /**< counters of blocking forms */
    uint32_t waits_used;
    struct braid_channel_stats count; /**< written under owned; size unused */
    uint32_t jobs;         /**< target-executed atomics that peers have asked for and that are not answered */
    struct api_exec *exec; /**< them */
};

enum api_state { API_OPEN, API_CONNECTED, API_FAILED };

struct braid {
    struct options options;
    struct clock clock;
    struct log log;
    void (*log_fn)(void *arg, enum braid_log_level level, const char *line);
    void *log_arg;
    struct random random;
    uint64_t cookie;
    struct verbs *verbs;
    struct api_gpu gpu;
    uint32_t mem_kinds;        /**< RAIL_WIRE_MEMORY_..., or-ed: of all regions so far; read by channels' threads */
    unsigned rail_count, ways; /**< ways of all rails: lanes to a peer that they are worth, see lag */
    struct rail *rail[BRAID_MAX_RAILS];
    struct plan_lag lag[BRAID_MAX_RAILS];
    enum api_state state;
    int my_pe, n_pes;
    unsigned channel_count;
    struct braid_channel *channel[API_MAX_CHANNELS];
    uint64_t total_weight;  /**< of all rails: what one thread has to feed, in plan's unit */
    unsigned home;          /**< this PE's home rail */
    uint32_t piece_cost_ns; /**< CPU of one more piece, as measured when connecting */
    uint32_t exec_token;    /**< channel + 1 that carries out an atomic that devices do not have; 0: none */
    uint32_t mems_lock;     /**< of the list below: taken for moments by the context's thread and by executors */
    struct braid_mem *mems; /**< registered, in a list */
};

/** A registered region. */
struct braid_mem {
    struct braid *braid;
    struct braid_mem *next, **link; /**< in braid->mems */
    uint64_t addr;                  /**< local address of the first byte */
    uint64_t len;
    uint64_t remote_addr; /**< by which keys, and this process's own requests, name the first byte */
    unsigned memory;      /**< RAIL_WIRE_MEMORY_...: one of them */
    unsigned rail_count;
    uint32_t users[API_MAX_CHANNELS]; /**< ops that use it, by channel: each written by its channel's thread alone */
    uint32_t lkey[BRAID_MAX_RAILS];
    struct verbs_mr *mr[BRAID_MAX_RAILS];      /**< strict key: for word ops, and for all of this process's own use */
    struct verbs_mr *relaxed[BRAID_MAX_RAILS]; /**< relaxed key: for bulk; NULL: strict too */
};

/** Whether bulk is handed to lanes as they drain. */
static inline bool api_paced(const struct braid *b)
{
    return b->options.pace;
}

/* ---- api_log.c --------------------------------------------------------------------------------------------------- */

/** Logs an error of the data path, at most once a second for each kind. */
void api_log_limited(struct braid_channel *ch, enum api_log_kind kind, const char *format, ...) ATTR_PRINTF(3, 4);

/* ---- api_struct.c ------------------------------------------------------------------------------------------------ */

/** A public struct that begins with size_t size. */
struct api_struct {
    const char *name;
    size_t size;        /**< here */
    const size_t *ends; /**< offsets behind fields where the struct of an older caller may end */
    unsigned count;     /**< of ends */
};

/** Copies as much of the caller's struct as it has and is known here; out holds defaults before. 0, or -EINVAL for a
 *  size that cuts a field or an unknown tail that is not zero; logs. */
int api_struct_read(const struct log *log, const struct api_struct *layout, const void *given,
                    void *out) ATTR_CHECK_RESULT;

/* ---- api_mem.c --------------------------------------------------------------------------------------------------- */

/** Frees a region that may be half-registered; NULL is allowed. */
void api_mem_free(struct braid_mem *mem);

/** Checks a key's head against its peer, notes what kind of memory it is for, and checks that [addr, addr+len) is in its range. 0, -EPROTO or -ERANGE; logs. */
int api_key_check(struct api_peer *peer, const struct braid_remote *remote, uint64_t len, struct rail_wire_view *view);

/* ---- api_channel.c ----------------------------------------------------------------------------------------------- */

/** The lanes that a pair of PEs wants, from both sides' rails. */
struct api_pairs {
    unsigned count;
    bool spread;     /**< some rail of either side is worth several lanes */
    unsigned unused; /**< rails of either side that reach none of the other */
    struct plan_lag_pair pair[PLAN_MAX_LANES];
};

/** Makes a channel with a lane for each pair of each peer, not connected yet. 0 or a negative errno; logs. */
int api_channel_make(struct braid *b, unsigned index, const struct api_pairs *pairs, struct braid_channel **out);

/** Frees a channel that may be half-built; NULL is allowed. */
void api_channel_free(struct braid_channel *ch);

/** Keeps the lanes of a peer whose pair's bit in `up` is set, and finds the one to its home rail. */
void api_peer_settle(struct api_peer *peer, uint16_t up);

/* ---- api_probe.c ------------------------------------------------------------------------------------------------- */

/** Sends a flush over every lane and waits for all: up[channel][pe] keeps the pairs that it came back on, and each lane gets its
 *  round trip. Measures the CPU cost of a piece on the way. 0, or what the wait callback said. */
int api_probe(struct braid *b, uint16_t *up);

/** The peer of that number, or NULL with a log line where there is none. */
struct api_peer *api_peer(struct braid_channel *ch, int pe);

/* ---- api_check.c ------------------------------------------------------------------------------------------------- */

/** A put or get as its arguments say, checked. */
struct api_transfer {
    struct api_peer *peer;
    uint64_t remote_addr;
    const struct braid_key *key;
    uint64_t local_addr; /**< as the lkeys name it */
    struct braid_mem *mem;
    uint64_t len;
};

/** Checks all that can be wrong with a put's or get's arguments. 0, or as braid_put(); logs. */
int api_check_transfer(struct braid_channel *ch, int pe, const struct braid_remote *remote,
                       const struct braid_local *local, uint64_t len, struct api_transfer *out);

/** Checks a word of so many bytes at a peer, and that a word op can reach it. 0, or as braid_put(); logs. */
int api_check_word(struct braid_channel *ch, int pe, const struct braid_remote *remote, unsigned bytes,
                   struct api_peer **out);

/** Counts a use of the region by this channel, or its end (by: 1, -1). One writer each; the last user's end must come before
 *  the region's: release here, acquire in braid_mem_dereg(). */
static inline void api_mem_use(struct braid_mem *mem, unsigned channel, int by)
{
    uint32_t users = __atomic_load_n(&mem->users[channel], __ATOMIC_RELAXED) + (uint32_t)by;
    __atomic_store_n(&mem->users[channel], users, __ATOMIC_RELEASE);
}

/* ---- api_op.c ---------------------------------------------------------------------------------------------------- */

/** Takes an op. NULL where all are in use. */
static inline struct api_op *api_op_take(struct api_peer *peer, struct braid_mem *mem, struct braid_done *done,
                                         uint32_t pieces)
{
    struct braid_channel *ch = peer->channel;
    struct api_op *op = pool_get(&ch->op_pool);
    if (!op)
        return NULL;
    /* Nearly none has a parent, an old value or an error: those who have leave none. */
    op->done = done;
    op->mem = mem;
    op->peer = peer;
    op->pieces = pieces;
    ch->op_free--;
    peer->ops++;
    if (mem)
        api_mem_use(mem, ch->index, 1);
    return op;
}

/** A piece of an op ended with this error (0: well). Ends the op with its last piece. */
void api_op_piece_end(struct api_op *op, int error);

/** Counts an end. The caller may be another thread than the one that waits: what the op wrote comes before its count. */
static inline void api_op_count(struct braid_done *done, int error)
{
    if (error) {
        if (!done->error)
            __atomic_store_n(&done->error, error, __ATOMIC_RELAXED);
        __atomic_store_n(&done->failed, done->failed + 1, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&done->ok, done->ok + 1, __ATOMIC_RELEASE);
    }
}

/** A piece of bulk ended well. By the short way where it is all of a plain put: then true, and the caller takes it off the
 *  ops of peer and channel, many at once. */
static inline bool api_op_end_plain(struct braid_channel *ch, struct api_op *op)
{
    if (!op->plain) {
        api_op_piece_end(op, 0);
        return false;
    }
    api_mem_use(op->mem, ch->index, -1);
    if (op->done)
        api_op_count(op->done, 0);
    pool_put(&ch->op_pool, op);
    return true;
}

/* ---- api_bulk.c -------------------------------------------------------------------------------------------------- */

/** Whether so many more ops of this flow may wait in software. */
bool api_bulk_room(const struct api_peer *peer, const struct api_flow *flow, uint32_t ops);

/** Puts an op of len bytes at the end of a queue. */
static inline void api_bulk_append(struct api_flow *flow, struct api_op *op, uint64_t len)
{
    op->next = NULL;
    op->left = len;
    *flow->link = op;
    flow->link = &op->next;
    flow->waiting++;
    flow->accepted++;
    flow->bytes += len;
}

/** Accepts a bulk op for which there is room: into its queue; the caller drives the peer. */
void api_bulk_accept(struct api_flow *flow, struct api_op *op, const struct api_transfer *t);

/** Hands to lanes what they take. How many pieces. */
unsigned api_bulk_pump(struct api_peer *peer, struct api_flow *flow);

/** Pieces of so many bytes ended on a lane. */
void api_bulk_acked(struct api_flow *flow, unsigned lane, uint64_t bytes);

/** Opens windows and brings the estimates of lanes up to date with what was acknowledged. */
void api_bulk_learn(struct api_peer *peer, struct api_flow *flow);

/** A round trip was measured on a lane. */
void api_bulk_trip(struct api_peer *peer, unsigned lane, uint64_t rtt_ns);

/** Sets up pacing of a lane, in both directions, from what connecting has measured. */
void api_bulk_start(struct api_peer *peer, unsigned lane, uint64_t line_bits, uint64_t rtt_ns);

/* ---- api_put.c --------------------------------------------------------------------------------------------------- */

/** Whether a bulk op could be posted at all. 0, or as braid_put(); logs. */
int api_put_possible(const struct api_transfer *t, const struct plan_put *plan);

/** Whether a part of a put with signal could be posted at all. 0, or as braid_put(); logs. */
int api_put_part_possible(const struct api_transfer *t);

/** Accepts a checked put. 0, or as braid_put(). */
int api_put_submit(const struct api_transfer *t, struct braid_done *done);

/** Accepts a checked part of parent, for which there is room (one op, one place in the queue). */
void api_put_part(const struct api_transfer *t, struct api_op *parent);

/* ---- api_order.c ------------------------------------------------------------------------------------------------- */

void api_order_start(struct api_peer *peer); /**< tells plan about a peer whose lanes are known */
/** Whether a word op could be accepted now. */
bool api_order_place(const struct api_peer *peer);

/** Whether the ranges of so many more ops can be kept. Where not, flushes are under way that make room. */
bool api_order_ranges(struct api_peer *peer, uint32_t n);

/** Accepts a word op: posts it at once (true) or defers it. word: request (its cookie: its op), kind, lane, atomic filled in.
 *  The caller has seen api_order_place(). */
bool api_order_accept(struct api_peer *peer, struct api_word *word);

/** Fills in what every word op of so many bytes has: all but kinds, lane, operands and the op. Returns the request. */
static inline struct rail_request *api_word_begin(struct api_word *word, const struct api_peer *peer,
                                                  const struct braid_remote *dst, unsigned remote_rail, unsigned bytes,
                                                  bool strict)
{
    struct rail_request *r = &word->request;
    r->klass = RAIL_CLASS_WORD;
    r->immediate = false;
    r->epoch = peer->epoch;
    r->len = bytes;
    r->remote_addr = dst->addr;
    r->rkey = rail_wire_view_rkey(dst->key->bytes, remote_rail, strict);
    return r;
}

/** Copies a word op that is to wait; what it waits for is not known yet. */
static inline void api_word_copy(struct api_word *to, const struct api_word *from)
{
    memcpy(to, from, offsetof(struct api_word, wait));
}

/** The whole of a word op that is an op of its own: asks whether it can be, in drain mode waits until it may go, takes
 *  an op, accepts. 0; -EAGAIN; -ENOTCONN where it can never be in order; or what waiting said. */
int api_order_submit(struct api_peer *peer, struct api_word *word, struct braid_mem *mem, uint64_t *old,
                     struct braid_done *done);

/** Whether a word op could ever be posted. 0, or -ENOTCONN where what it must follow is lost; logs. */
int api_order_possible(struct api_peer *peer, const struct api_word *word);

/** In drain mode blocks until an op that follows all before it may be posted on the lane. 0, or what waiting said. */
int api_order_drain(struct api_peer *peer, enum plan_word kind, unsigned lane);

/** The word op of a put with signal, whose parts have been accepted: as api_order_accept(), in drain mode after waiting;
 *  where that is cut off, its op fails. */
void api_order_follow(struct api_peer *peer, struct api_word *word);

/** What is lost before it is posted counts as posted on a dead lane all the same: its count is then never reached, so nothing
 *  that must follow can go and announce it. */
void api_order_lost(struct api_peer *peer);

/** Whether anything that was accepted is not visible yet, or lost. */
bool api_order_behind(const struct api_peer *peer);

/** What is visible in the mode's own sense, for plan_overlap_: nothing of a dead lane is still to come. */
const uint64_t *api_order_visible(const struct api_peer *peer, uint64_t scratch[PLAN_COUNTS]);

/** A bulk put has been handed to lanes: word ops that only waited for that learn what to wait for. */
void api_order_mark_all(struct api_peer *peer);

/** Posts what may go of the peer's FIFO, in order; fails what never may. Returns how many left it. */
unsigned api_order_drive(struct api_peer *peer);

/* ---- api_word.c -------------------------------------------------------------------------------------------------- */

/** A word op that devices have. */
struct api_short {
    uint8_t kind;  /**< RAIL_KIND_WRITE (the first bytes of operand), FETCH_ADD or COMPARE_SWAP */
    uint8_t bytes; /**< 8, or of a WRITE any power of two below */
    uint64_t operand, swap;
};

/** Posts a word op, where that can be seen at a look to be right; true. False, with nothing changed: it must go the long way, which
 *  checks again, decides, and says what is wrong. */
bool api_word_short(struct braid_channel *ch, int pe, const struct braid_remote *dst, const struct api_short *s,
                    uint64_t *old, struct braid_done *done);

/* ---- api_flush.c ------------------------------------------------------------------------------------------------- */

/** Ops to the peer write memory of this kind (RAIL_WIRE_MEMORY_...) from now on. */
static inline void api_flush_kind(struct api_peer *peer, unsigned kind)
{
    peer->memory |= (uint8_t)kind;
    peer->order.mixed = peer->memory == (RAIL_WIRE_MEMORY_HOST | RAIL_WIRE_MEMORY_GPU);
}

/** Somebody waits for these counts: flushes are wanted on the lanes where they are not reached. */
void api_flush_want(struct api_peer *peer, const struct plan_wait *wait);

/** Somebody waits for all that has been posted. */
void api_flush_want_all(struct api_peer *peer);

/** Nobody waits, but all lanes should be flushed before long: wants a flush on one of them, with each call on another. */
void api_flush_want_one(struct api_peer *peer);

/** Posts the flushes that are wanted, one a lane at a time. How many. */
unsigned api_flush_drive(struct api_peer *peer);

/** Queues a flush of the lane, for which there must be no need to wait. Where memory of both kinds may have been written it is two
 *  READs, of which the second is the flush. False where there is no room. */
bool api_flush_queue(struct api_peer *peer, unsigned lane, struct rail_request *request);

/** Posts a flush that nobody waits for, to find out whether the lane still works. False where one is in flight or has no
 *  room. Rings. */
bool api_flush_probe(struct api_peer *peer, unsigned lane);

/** A flush came back: its lane's round trip is known anew, which paces bulk. */
void api_flush_back(struct api_peer *peer, unsigned lane);

/** These counts are reached on every lane that lives. */
bool api_flush_reached(const struct api_peer *peer, const struct plan_wait *goal);

/** All that is counted on every lane that lives is visible. */
bool api_flush_clean(const struct api_peer *peer);

/* ---- api_message.c, api_exec.c ----------------------------------------------------------------------------------- */

/** Sends a target-executed atomic whose time has come. 0, or -EAGAIN without a place or credit. */
int api_message_send(struct api_peer *peer, const struct api_word *word);

/** The answer came: ends its op. */
void api_message_answer(struct api_peer *peer, const struct rail_mail_msg *mail);

/** Asks again where an answer is overdue or its lane has died; fails where no lane is left. How many were sent. */
unsigned api_message_drive_all(struct braid_channel *ch);

/** Slots of mailboxes may have become free: peers whose messages found none are driven again. */
void api_message_retry(struct braid_channel *ch);

/** When the next answer of any channel is overdue; UINT64_MAX where none is waited for. */
uint64_t api_message_deadline(const struct braid *b);

/* ---- api_atomic.c ------------------------------------------------------------------------------------------------ */

/** The word op of an atomic that is one, checked. */
void api_atomic_word(struct api_peer *peer, const struct braid_remote *dst, const struct braid_atomic *atomic,
                     struct api_word *out);

/** As braid_atomic(), on an entered channel; api_put() and api_get() likewise. */
int api_atomic(struct braid_channel *ch, int pe, const struct braid_remote *dst, const struct braid_atomic *atomic,
               uint64_t *old, struct braid_done *done);
int api_put(struct braid_channel *ch, int pe, const struct braid_remote *dst, const struct braid_local *src, size_t len,
            struct braid_done *done);
int api_get(struct braid_channel *ch, int pe, const struct braid_local *dst, const struct braid_remote *src, size_t len,
            struct braid_done *done);

/** A peer asks for an atomic on this PE's memory. */
void api_exec_ask(struct api_peer *peer, unsigned lane, const struct rail_mail_msg *mail);

/** A request of the executor's ended. */
void api_exec_done(const struct rail_event *event);

/** Moves the executor on. How much moved. */
unsigned api_exec_drive(struct braid_channel *ch);

/** Makes the executor of a channel. 0 or a negative errno; logs. */
int api_exec_make(struct braid_channel *ch);

/** NULL is allowed. */
void api_exec_free(struct api_exec *exec);

/* ---- api_progress.c ---------------------------------------------------------------------------------------------- */

/** Enters a channel: from here to api_leave() no other thread is inside. Spins; only helpers contend. */
void api_enter(struct braid_channel *ch);
bool api_try_enter(struct braid_channel *ch);
void api_leave(struct braid_channel *ch);

/** Notes that the peer has something to drive. */
void api_wake(struct api_peer *peer);

/** Drives one peer: FIFO, bulk, flushes; posts what was built. Not urgent: bulk for a lane that has enough to do may stay
 *  built, so that it is posted in a longer list. How much moved. */
unsigned api_drive(struct api_peer *peer, bool urgent);

/** A lane has failed: out of service, logged once. */
void api_lane_dead(struct rail_lane *lane, int error, const char *status, uint32_t vendor_error);

/** Whether nothing waits to be posted to the peer: driving it would only ring. */
static inline bool api_idle(const struct api_peer *peer)
{
    return !peer->put.head && !peer->get.head && peer->fifo_tail == peer->fifo_head &&
           ((uint32_t)peer->flush_due | peer->flush_round | peer->quieting) == 0 && !plan_overlap_full(&peer->overlap);
}

/** A pass of progress over a channel that the caller has entered. */
unsigned api_pass(struct braid_channel *ch);

/** One turn of a blocking loop on an entered channel: a pass, one over each other channel that is free, and where nothing
 *  moved a wait until deadline_ns. 0 or a negative errno. */
int api_turn(struct braid_channel *ch, uint64_t deadline_ns);

#endif
