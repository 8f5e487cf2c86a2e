/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_peer.h - a peer in a channel, and what it holds: ops, the flows of bulk to and from it, word ops that wait, target-executed
 * atomics. Part of api.h, which includes it; for the files of src/api alone.
 */
#ifndef API_PEER_H
#define API_PEER_H

#include "braid/braid.h"

#include "plan.h"
#include "rail.h"

#define API_MESSAGES 8u /**< target-executed atomics a peer can be asked for at a time: the power of two */

/** An op from its acceptance to its end. Bulk ops carry what is left of them while they wait in software. */
struct api_op {
    struct braid_done *done; /**< may be NULL */
    struct braid_mem *mem;   /**< the local region it uses; NULL where it uses none */
    struct api_peer *peer;
    struct api_op *parent; /**< of a part: the op that ends with it; NULL: none */
    uint64_t *old;         /**< where an atomic's old value goes; may be NULL */
    uint32_t pieces;       /**< what must end before it ends; one of them is "not all handed to lanes yet" */
    int error;             /**< of the first piece that failed */
    /* while in a flow's queue */
    struct api_op *next;
    const struct braid_key *key;
    uint64_t local_addr, remote_addr, left; /**< the bytes not yet handed to a lane */
    uint64_t words;                         /**< gated: word ops accepted before it */
    uint64_t ticket;                        /**< in the overlap table */
    uint32_t epoch;
    uint8_t lane; /**< it must take; PLAN_MAX_LANES: any */
    bool cut;     /**< may be cut */
    bool gate;    /**< waits until all before it is visible */
    bool strict;  /**< strict key */
    bool lead;    /**< its tail is held back: the home lane should end last */
    bool plain;   /**< a put on any lane that waits for nothing; until a piece of it is handed on by itself */
};

/** Bulk to or from one peer: what waits in software, and what plan knows of the lanes in this direction. */
struct api_flow {
    struct api_op *head, **link; /**< first come, first served; *link is the NULL at the end */
    uint32_t waiting;            /**< ops in the queue */
    uint64_t bytes;              /**< of them, not yet handed to lanes */
    uint64_t accepted, handed;   /**< ops, since the beginning: into the queue, and out of it */
    bool stale;                  /**< a lane's pace has changed since the three below were worked out */
    uint64_t much;               /**< plan_pick_much() of the lanes */
    uint64_t quantum;            /**< the largest of theirs */
    uint64_t slack_ns;           /**< plan_stripe_slack() */
    bool held;                   /**< lanes that were full kept bytes back at the last pump */
    bool
        later; /**< all lanes are busy for a while: what is accepted can wait for the pass that finds something ended */
    bool looked; /**< pick is of the lanes as they are, at pick.now_ns */
    struct plan_pick pick;
    uint32_t acked_lanes;           /**< bit k: acked[k] is not 0 */
    uint64_t acked[PLAN_MAX_LANES]; /**< bytes acknowledged since the estimates were last brought up to date */
    struct plan_lane lane[PLAN_MAX_LANES];
    struct plan_rate rate[PLAN_MAX_LANES];
};

/** A word op that waits in the FIFO: everything that its post needs, and what it waits for. */
struct api_word {
    struct rail_request request; /**< cookie: its op */
    enum plan_word kind;
    uint8_t lane;          /**< it travels on */
    uint8_t atomic;        /**< MESSAGE: enum braid_atomic_op */
    uint64_t puts;         /**< bulk puts accepted before it */
    uint64_t ticket;       /**< in the overlap table */
    struct plan_wait wait; /**< once those have been handed to lanes */
};

/** A target-executed atomic that this PE has asked for and has no answer to. */
struct api_message {
    struct api_op *op; /**< NULL: free */
    struct rail_mail_msg mail;
    uint64_t asked_ns; /**< when it was sent last */
    uint8_t lane;
};

/** The answer to a target-executed atomic of a peer, kept in case it is asked for again. */
struct api_reply {
    uint32_t id;
    int32_t status;
    uint64_t old;
    bool known;
};

/** One peer in one channel. */
struct api_peer {
    struct braid_channel *channel;
    int pe;
    unsigned lane_count;
    unsigned home;         /**< lane that ends at the peer's home rail; lane_count where none does */
    unsigned word;         /**< lane of word ops: home, or where none is, the first */
    unsigned home_rail;    /**< of the peer */
    uint32_t max_msg;      /**< bytes of the largest message that every lane takes */
    uint32_t plain_max;    /**< up to here bulk puts are plain where they overlap nothing; 0: unknown */
    uint64_t cut_min;      /**< then: from here on they may be cut */
    unsigned rails_needed; /**< rails that a key must cover: one above the highest that a lane goes to */
    bool silent;           /**< whether they may is not known: taken to be in order, as others do */
    uint8_t memory;        /**< RAIL_WIRE_MEMORY_..., or-ed: of its memory that has been named */
    bool gpu_line;         /**< it has told of a flush line in its GPU's memory */
    bool fenced;           /**< strict: the next bulk put is behind a fence that had something before it */
    bool dirty;            /**< in channel->dirty: something moved since it was last driven */
    bool message_held;     /**< a message found no place in its lane's mailbox */
    bool order_waits;      /**< the head of the FIFO must wait, and nothing has ended since that was found */
    uint32_t quieting;     /**< so many wait until all of it is visible */
    uint32_t epoch;        /**< number of fences */
    uint64_t ops;          /**< accepted and not ended */
    int error;             /**< first failure since the last quiet */
    int unproved;          /**< why it will not be known whether what ended well is visible; 0: it will, or was told */
    uint64_t cookie;       /**< of the peer's context: its keys carry it */
    uint64_t key_head;     /**< of its keys, as seen in one that was found good; goes with plain_max */
    uint64_t word_head;    /**< the same of the last one that a word op brought; 0: none yet */
    struct rail_lane *lane[PLAN_MAX_LANES];
    uint8_t remote_rail[PLAN_MAX_LANES];
    uint8_t local_rail[PLAN_MAX_LANES];
    uint8_t pair[PLAN_MAX_LANES];      /**< number of the pair that lane k joins: both sides number pairs alike */
    uint64_t flush_ns[PLAN_MAX_LANES]; /**< when the last flush, or the probe, was posted */
    uint64_t flush_no[PLAN_MAX_LANES]; /**< flushes posted, since the beginning */
    uint32_t rtt_ns[PLAN_MAX_LANES];   /**< as probed when connecting */
    struct plan_counts counts;
    struct plan_order_in order; /**< of these counts; also says which lanes have failed */
    uint16_t flushing;          /**< bit k: a flush is in flight on lane k */
    uint16_t flush_due;         /**< bit k: flush_want[k] may not be reached yet */
    uint16_t flush_round;       /**< bit k: lane k's turn in a round of flushes that nobody waits for is to come */
    uint64_t flush_want[PLAN_MAX_LANES]; /**< count that somebody wants to know flushed */
    struct api_flow put, get;
    struct api_word *fifo;
    uint32_t fifo_head, fifo_tail; /**< free-running: [tail, head) wait */
    uint32_t fifo_marked; /**< [tail, marked) know their counts, [marked, head) wait for puts to be handed on */
    uint64_t words_accepted, words_sent; /**< since the beginning */
    uint64_t last_word[PLAN_COUNTS];     /**< number of the last word op posted on each lane */
    bool gate_marked;                    /**< gate holds what the gated put at the head of the queue waits for */
    struct plan_wait gate;
    struct api_peer *next_dirty;
    uint32_t spin;       /**< atomics asked for; says whose turn it is where the home rule is switched off */
    uint64_t echo_reply; /**< nonce of the last echo that came back */
    struct api_message message[API_MESSAGES];
    uint32_t message_head, message_tail;      /**< ids: [tail, head) are asked for */
    struct api_reply reply[2 * API_MESSAGES]; /**< by id; twice what can be outstanding */
    struct plan_overlap overlap;
};

#endif
