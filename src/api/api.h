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

#include "clock.h"
#include "log.h"
#include "options.h"
#include "plan.h"
#include "pool.h"
#include "rail.h"
#include "random.h"

#define API_MAX_CHANNELS RAIL_WIRE_CHANNELS
#define API_NO_LANE      UINT32_MAX          /**< index of a lane that was left out: its late events mean nothing */
#define API_MAX_LEN      (UINT64_C(1) << 30) /**< of one op: one message of a lane at most, and 2^22 PSNs at MTU 256 */

/** An op from its acceptance to its end. */
struct api_op {
    struct braid_done *done; /**< may be NULL */
    struct braid_mem *mem;   /**< the local region it uses; NULL for signals */
    struct api_peer *peer;
    uint32_t pieces; /**< posted or deferred, not ended */
    int error;       /**< of the first piece that failed */
};

/** A word op that waits in the FIFO: everything that its post needs, and what it waits for. */
struct api_word {
    struct rail_request request; /**< cookie: its op */
    struct plan_wait wait;
};

/** One peer in one channel. */
struct api_peer {
    struct braid_channel *channel;
    int pe;
    unsigned lane_count;
    unsigned home;   /**< lane of word ops; lane_count where none reaches the peer's home rail */
    uint16_t dead;   /**< bit k: lane k has failed */
    uint32_t epoch;  /**< number of fences */
    uint64_t ops;    /**< accepted and not ended */
    int error;       /**< first failure since the last quiet */
    uint64_t cookie; /**< of the peer's context: its keys carry it */
    struct rail_lane *lane[PLAN_MAX_LANES];
    uint8_t remote_rail[PLAN_MAX_LANES];
    uint8_t local_rail[PLAN_MAX_LANES];
    struct plan_counts counts;
    struct api_word *fifo;
    uint32_t fifo_head, fifo_tail; /**< free-running: [tail, head) wait */
    struct api_peer *next_waiting; /**< in channel->waiting, while the FIFO is not empty */
    bool waiting;
    uint64_t echo_reply; /**< nonce of the last echo that came back */
};

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
    API_LOG_KINDS
};

struct braid_channel {
    struct braid *braid;
    unsigned index;
    uint32_t fifo_mask;
    uint64_t ops;             /**< of all peers */
    struct api_peer *waiting; /**< peers whose FIFO is not empty */
    bool recheck;             /**< something moved that a deferred word op may wait for */
    uint32_t idle_polls;
    struct random random; /**< nonces of echoes */
    struct log_limit limits[API_LOG_KINDS];
    struct pool op_pool;
    struct api_peer *peers; /**< n_pes of them */
    struct api_word *fifo;  /**< the peers' FIFOs in one block */
    struct rail_queue queue[BRAID_MAX_RAILS];
    struct api_stats stats[BRAID_MAX_RAILS];
    struct rail_event events[RAIL_POLL_MAX];
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
    unsigned rail_count;
    struct rail *rail[BRAID_MAX_RAILS];
    enum api_state state;
    int my_pe, n_pes;
    unsigned channel_count;
    struct braid_channel *channel[API_MAX_CHANNELS];
    struct braid_mem *mems; /**< registered, in a list */
};

/** A registered region. */
struct braid_mem {
    struct braid *braid;
    struct braid_mem *next, **link; /**< in braid->mems */
    uint64_t addr;                  /**< local address of the first byte */
    uint64_t len;
    uint64_t remote_addr; /**< by which keys, and this process's own requests, name the first byte */
    unsigned rail_count;
    uint32_t users[API_MAX_CHANNELS]; /**< ops that use it, by channel: each written by its channel's thread alone */
    uint32_t lkey[BRAID_MAX_RAILS];
    struct verbs_mr *mr[BRAID_MAX_RAILS];
};

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

/** Checks a key's head against its peer and that [addr, addr+len) is in its range. 0, -EPROTO or -ERANGE; logs. */
int api_key_check(const struct api_peer *peer, const struct braid_remote *remote, uint64_t len,
                  struct rail_wire_view *view);

/* ---- api_channel.c ----------------------------------------------------------------------------------------------- */

/** The lanes that a pair of PEs wants, from both sides' rails. */
struct api_pairs {
    unsigned count;
    unsigned unused; /**< rails of either side that reach none of the other */
    struct plan_pair pair[PLAN_MAX_LANES];
};

/** Makes a channel with a lane for each pair of each peer, not connected yet. 0 or a negative errno; logs. */
int api_channel_make(struct braid *b, unsigned index, const struct api_pairs *pairs, struct braid_channel **out);

/** Frees a channel that may be half-built; NULL is allowed. */
void api_channel_free(struct braid_channel *ch);

/** Keeps the lanes of a peer whose bit in `up` is set, and finds the one to its home rail. */
void api_peer_settle(struct api_peer *peer, uint16_t up, unsigned home_rail);

/** The peer of that number, or NULL with a log line where there is none. */
struct api_peer *api_peer(struct braid_channel *ch, int pe);

/* ---- api_put.c --------------------------------------------------------------------------------------------------- */

/** A put or get from its arguments on: checks all that can be wrong before anything is posted, then posts it or hands it
 *  to the order of word ops. As braid_put(); -EAGAIN leaves nothing posted. */
int api_transfer_submit(struct braid_channel *ch, int pe, enum rail_kind kind, const struct braid_remote *remote,
                        const struct braid_local *local, uint64_t len, struct braid_done *done);

/** Takes an op, not yet counted. NULL where all are in use. */
struct api_op *api_op_take(struct api_peer *peer, struct braid_mem *mem, struct braid_done *done, uint32_t pieces);

/** A piece of an op ended with this error (0: well). Ends the op with its last piece. */
void api_op_piece_end(struct api_op *op, int error);

/* ---- api_order.c ------------------------------------------------------------------------------------------------- */

/** Accepts a word op: posts it at once, defers it, or in drain mode blocks until it may go. The request's cookie is
 *  filled in here. 0; -EAGAIN; -ENOTCONN where it can never be in order; or what waiting said. */
int api_order_submit(struct api_peer *peer, struct rail_request *request, struct braid_mem *mem,
                     struct braid_done *done);

/** Posts what may go of the peer's FIFO, in order; fails what never may. Returns how many left it. */
unsigned api_order_drive(struct api_peer *peer);

/** api_order_drive() for every waiting peer. */
unsigned api_order_drive_all(struct braid_channel *ch);

/* ---- api_progress.c ---------------------------------------------------------------------------------------------- */

/** A lane has failed: out of service, logged once. */
void api_lane_dead(struct rail_lane *lane, int error, const char *status, uint32_t vendor_error);

/** One turn of a blocking loop: progress, and where nothing moved a wait until deadline_ns. 0 or a negative errno. */
int api_turn(struct braid_channel *ch, uint64_t deadline_ns);

#endif
