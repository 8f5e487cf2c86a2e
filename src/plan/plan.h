/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - decisions: numbers in, numbers out. No verbs, no locks, no I/O, no allocation.
 *
 * Functions are pure, or change nothing but the plain struct that they are given (plan_lane_, plan_rate_,
 * plan_overlap_), so that each rule of the engine is tested as arithmetic. Callers fill the input structs from what they
 * know and carry the answers out. One thread at a time on one struct.
 *
 * Units: bytes, nanoseconds, and for speeds the nanoseconds that 1 MiB of payload takes (`mib_ns`), so that the time of
 * len bytes is len * mib_ns >> 20 and needs no division. 200 Gb/s at an MTU of 4096 is 42,783 ns a MiB.
 */
#ifndef PLAN_H
#define PLAN_H

#include "common.h"
#include "plan_limits.h"
#include "plan_overlap.h"
#include "plan_stretch.h"

#define PLAN_WORD_MAX  256u /**< bytes: a put up to here is a word op */
#define PLAN_CUT_ALIGN 128u /**< cuts fall on multiples of this of the remote address: no cache line is written twice */
#define PLAN_NO_LIMIT  (UINT64_C(1) << 40) /**< bytes: a window or quantum that holds nothing back */

/** Decisions that a test may switch off, one by one. */
enum plan_fault {
    PLAN_FAULT_DEFER = 1u << 0,      /**< word ops never wait for other lanes */
    PLAN_FAULT_FLUSH = 1u << 1,      /**< an acknowledgement is taken for a flush */
    PLAN_FAULT_OWN_FLUSH = 1u << 2,  /**< the own lane is not flushed before a word op that is a write */
    PLAN_FAULT_KEYS = 1u << 3,       /**< word ops use the relaxed key */
    PLAN_FAULT_OVERLAP = 1u << 4,    /**< overlapping puts are not ordered */
    PLAN_FAULT_HOME = 1u << 5,       /**< native atomics go over any lane */
    PLAN_FAULT_DEDUP = 1u << 6,      /**< a repeated atomic is executed again */
    PLAN_FAULT_TAIL = 1u << 7,       /**< the tail of a put does not wait for the rest */
    PLAN_FAULT_ORDER = (1u << 8) - 1 /**< all of them */
};

/* ---- pairing: which rails are joined by lanes -------------------------------------------------------------------- */

/** One lane: the local and the remote rail that it joins. */
struct plan_pair {
    uint8_t local;
    uint8_t remote;
};

/** Rails of both sides of a pair of PEs, seen from one of them. */
struct plan_pair_in {
    unsigned local_rails;  /**< 1..PLAN_MAX_RAILS */
    unsigned remote_rails; /**< 1..PLAN_MAX_RAILS */
    bool upper;            /**< this PE has the higher number of the two; false for a PE with itself */
    const uint16_t *reach; /**< per local rail: bit j set where it reaches remote rail j; NULL: all reach all */
};

/**
 * Pairs rails that reach each other so that every port of both sides is used, as evenly as reach allows: where all
 * reach all, max(n, m) lanes, lane k joining rail k % n with rail k % m. The peer, who swaps n and m, transposes reach and
 * turns `upper`, gets the same lanes in the same order. *unused says how many rails of both sides no lane uses: they
 * reach nothing, or PLAN_MAX_LANES was hit first. Returns the number of lanes, 0 where there is none, or -EINVAL.
 */
int plan_pair(const struct plan_pair_in *in, struct plan_pair out[PLAN_MAX_LANES], unsigned *unused);

/** The MTU that both ends of a lane can carry: the lower of the two, bytes. */
uint32_t plan_pair_mtu(uint32_t local_mtu, uint32_t remote_mtu);

/* ---- home: the rail that executes a PE's atomics ----------------------------------------------------------------- */

/** What the owner of the memory knows of its rails. */
struct plan_home_in {
    unsigned rails;             /**< 1..PLAN_MAX_RAILS */
    const unsigned *reached_by; /**< per rail: how many peers have a lane to it */
    unsigned rank;              /**< of this PE among those that use the same ports, so that they take different ones */
};

/**
 * The home rail: one of those that most peers reach, the rank-th of them (rank modulo their number). Only the owner
 * computes it and announces it; peers never do, so that it may change. 0 where rails is out of range.
 */
unsigned plan_home(const struct plan_home_in *in);

/* ---- atomics: who executes them ---------------------------------------------------------------------------------- */

/** Operations on a word; the order is that of enum braid_atomic_op. */
enum plan_atomic_op {
    PLAN_ATOMIC_OP_ADD,
    PLAN_ATOMIC_OP_FETCH,
    PLAN_ATOMIC_OP_FETCH_ADD,
    PLAN_ATOMIC_OP_COMPARE_SWAP,
    PLAN_ATOMIC_OP_SET,
    PLAN_ATOMIC_OP_SWAP,
    PLAN_ATOMIC_OP_AND,
    PLAN_ATOMIC_OP_OR,
    PLAN_ATOMIC_OP_XOR,
    PLAN_ATOMIC_OP_FETCH_AND,
    PLAN_ATOMIC_OP_FETCH_OR,
    PLAN_ATOMIC_OP_FETCH_XOR,
    PLAN_ATOMIC_OPS /**< how many there are */
};

enum plan_atomic {
    PLAN_ATOMIC_NATIVE,  /**< by the home rail's device, asked on the home lane */
    PLAN_ATOMIC_MESSAGE, /**< by the target's progress, asked in a message */
    PLAN_ATOMIC_INVALID  /**< no such operation, or neither 4 nor 8 bytes */
};

/**
 * Who executes an atomic. Devices know 8-byte fetch-and-add and compare-and-swap alone (InfiniBand specification 1.4,
 * 9.4.5); all else is the target's, and so is everything of a peer whose home no lane reaches: two devices are not atomic
 * to each other. Never an 8-byte operation over a 4-byte word: it would touch the neighbour.
 */
enum plan_atomic plan_atomic(enum plan_atomic_op op, unsigned bytes, bool home_reached);

/** The lane on which an atomic is asked of a device: to the home, with that rule switched off the turn-th of them; `lanes`
 *  where there is none. */
unsigned plan_atomic_lane(unsigned home, unsigned lanes, unsigned turn, unsigned faults);

/** Whether one that has been executed is executed again when it is asked for again: only with that rule switched off. */
bool plan_atomic_again(unsigned faults);

/* ---- lanes: what the planner knows of one ------------------------------------------------------------------------ */

/**
 * One lane to one peer; lasts as long as the lane, kept in an array per peer. live is set by the caller; window
 * and quantum by plan_pace(); mib_ns, weight and rtt_ns by plan_lane_speed(); the rest by plan_lane_posted() and
 * plan_lane_acked().
 */
struct plan_lane {
    bool live;            /**< may carry new pieces */
    uint8_t stretch;      /**< its window is 2^stretch times as wide, see plan_stretch.h */
    uint32_t mib_ns;      /**< predicted speed: nanoseconds a MiB, > 0 */
    uint32_t weight;      /**< its inverse: 2^32 / mib_ns; bytes = ns * weight >> 12; 1 to 2^26 */
    uint32_t rtt_ns;      /**< from the end of a write's last byte on the wire to its acknowledgement */
    uint32_t line_mib_ns; /**< at line rate */
    uint64_t backlog;     /**< bytes posted and not yet acknowledged */
    uint64_t window;      /**< a lane takes a piece while its backlog is below this */
    uint64_t quantum;     /**< size of a piece while much is queued */
    uint64_t end_ns;      /**< when all that is posted is predicted to be acknowledged */
    uint64_t floor_ns;    /**< not before this: its last piece had not left earlier */
};

/** Whether a lane may take a piece now, as far as pacing goes. */
static inline bool plan_lane_room(const struct plan_lane *lane)
{
    return lane->live && lane->backlog < lane->window;
}

struct plan_rate;

/** Takes over a new estimate: after plan_rate_init() and whenever plan_rate_take() or plan_rate_rtt() returned true. */
void plan_lane_speed(struct plan_lane *lane, const struct plan_rate *rate);

/** A piece of len bytes was posted at now_ns (the time of the current pass is near enough). */
void plan_lane_posted(struct plan_lane *lane, uint64_t now_ns, uint64_t len);

/** `bytes` of what was posted were found acknowledged (or have failed) at now_ns; they were not yet at since_ns. */
void plan_lane_acked(struct plan_lane *lane, uint64_t since_ns, uint64_t now_ns, uint64_t bytes);

/* ---- rate: how fast a lane is ------------------------------------------------------------------------------------ */

/**
 * The estimate of one lane: its share of the ports on both sides, as acknowledgements show it. The line rate until
 * something is measured, never above it. The caller reads mib_ns, weight and rtt_ns (plan_lane_speed() does).
 */
#define PLAN_RATE_LOOKS 8u

struct plan_rate {
    uint32_t mib_ns;      /**< estimate: nanoseconds a MiB of payload */
    uint32_t weight;      /**< 2^32 / mib_ns */
    uint32_t rtt_ns;      /**< smallest round trip seen */
    uint32_t line_mib_ns; /**< at line rate */
    uint64_t since_ns;    /**< when acknowledgements were last found */
    uint64_t ns,
        bytes; /**< the measurement in progress: time in which the lane had something, and what was acknowledged in it */
    uint32_t looks;       /**< how often something was found */
    bool running;         /**< the lane has something posted since since_ns */
    bool held;            /**< pacing held the lane in all of that time */
    bool rtt_known;       /**< rtt_ns was measured, not guessed */
    uint32_t told_mib_ns; /**< the estimate when it was last said to have changed */
    struct plan_stretch stretch;
};

/**
 * Starts at line rate: line_bits bits a second (the slower port of the two), of which headers take their part at this MTU
 * (RoCE v2: 82 bytes a packet). rtt_ns is a guess until plan_rate_rtt() is called. Zeros are taken as 1 Gb/s, 4096 bytes
 * and 10 us.
 */
void plan_rate_init(struct plan_rate *rate, uint64_t line_bits, uint32_t mtu, uint64_t rtt_ns);

/**
 * `bytes` were acknowledged, found at now_ns. `held`: the backlog left, where since the last call the lane always had some
 * and pacing (its window, nothing else) held back more that it could have sent, else 0; only such time may lower the
 * estimate. The estimate moves half way to what two round trips or more have shown, all the way where that was in
 * PLAN_RATE_LOOKS calls; fewer do not move it within a quarter of the line rate, since each may have come late. Within 1/16
 * of the line rate it is the line rate. Time in which the lane was not held lets it return slowly to the line rate.
 * True where stretch.shift changed, or the estimate: has reached the line rate, or is 1/64 away from where it was when it
 * was last said to have changed; less is not worth new paces for all lanes.
 */
bool plan_rate_take(struct plan_rate *rate, uint64_t now_ns, uint64_t bytes, uint64_t held);

/**
 * Instead of plan_rate_take(), where the lane's window was full and held back more, and yet all of it has been acknowledged:
 * nobody looked in time, and the lane has stood still since an unknown moment. That says nothing of its speed, but that its
 * window may be too small for looks so far apart. The caller posts more in the same pass. True where stretch.shift changed.
 */
bool plan_rate_dry(struct plan_rate *rate, uint64_t now_ns);

/** The lane has nothing posted any more: what comes next is measured afresh. */
void plan_rate_idle(struct plan_rate *rate);

/**
 * A round trip took sample_ns, from post to completion of a probe or flush. The smallest counts, since the others have
 * stood in queues; a window that grew with the queue would never stop growing. True where rtt_ns changed.
 */
bool plan_rate_rtt(struct plan_rate *rate, uint64_t sample_ns);

/* ---- pacing: how much a lane may hold, and in which pieces ------------------------------------------------------- */

struct plan_pace_in {
    bool on;                /**< off: windows and pieces without limit */
    bool alone;             /**< there is one lane to a peer: nothing has to be balanced */
    uint32_t piece_cost_ns; /**< CPU time of one piece, from plan to completion */
    uint64_t
        total_weight;   /**< sum of plan_rate.weight at line rate over this PE's rails: what one thread has to feed */
    uint64_t piece_min; /**< smallest piece */
    uint64_t piece_max; /**< largest message of the port; 0: no limit */
};

/**
 * Sets lane->quantum and lane->window from its speed and round trip. quantum: half a round trip's worth at line rate, or at 8 times the
 * estimated speed where that is less, but so large that
 * feeding all rails costs one thread at most half of its time, and at least piece_min; whole packets. window: a round
 * trip's worth and two pieces, so that one can leave and another be fetched before the wire runs dry; that 2^stretch times, but
 * not more than it were at line rate, or 256 KiB, and then in pieces of an eighth of it, where that is more. Alone at least 256 KiB,
 * in pieces of 64.
 */
void plan_pace(const struct plan_pace_in *in, struct plan_lane *lane);

/** Whether a caller with more ops at hand should make a pass of progress: the last one was at last_ns. What a lane holds keeps it busy
 *  for a round trip of trip_ns at least. */
bool plan_pass_due(uint64_t last_ns, uint64_t now_ns, uint64_t trip_ns);

/**
 * Sets the round trip that predictions use, after plan_pace() of any lane: the least one of all live lanes. Ports of two
 * hosts are equally far from each other; that one is measured longer than another shows where a probe or flush had to
 * wait, and a lane thought to be later by more than a piece takes would get none.
 */
void plan_pace_even(struct plan_lane *lane, const struct plan_rate *rate, unsigned lanes);

/** Calibrated sizes, where the options say auto. */
struct plan_threshold {
    uint64_t piece_min;  /**< no piece of a cut transfer is smaller */
    uint64_t stripe_min; /**< no transfer below is cut */
};

/**
 * Cutting in two saves half the time on the wire and costs the CPU one more piece; it is done where it saves twice what it
 * costs, and pieces are not so small that a thread could not feed all rails with them. piece_cost_ns of CPU a
 * piece, mib_ns of the fastest lane, total_weight as in struct plan_pace_in. Both results are whole KiB, at least 1.
 */
void plan_threshold(uint32_t piece_cost_ns, uint32_t mib_ns, uint64_t total_weight, struct plan_threshold *out);

/* ---- striping: how a put or get is cut --------------------------------------------------------------------------- */

enum plan_class {
    PLAN_CLASS_WORD,   /**< at most PLAN_WORD_MAX bytes, or an atomic: home lane, ordered */
    PLAN_CLASS_MEDIUM, /**< whole, on one lane */
    PLAN_CLASS_LARGE   /**< cut over the live lanes */
};

/** A transfer to be cut and handed to lanes: what is left of it. */
struct plan_stripe_in {
    uint64_t remote_addr; /**< of the first byte left */
    uint64_t len;         /**< bytes left */
    uint64_t behind;      /**< bytes queued behind it for this peer, as far as they may start without a flush */
    unsigned lanes;       /**< 1..PLAN_MAX_LANES */
    unsigned home;        /**< lane of the tail; >= lanes: none */
    uint64_t
        home_lead_ns;   /**< the home lane should end so much later than the others (with the tail on: a round trip) */
    uint64_t piece_min; /**< smallest piece */
    uint64_t piece_max; /**< largest message that every lane carries, at least 4096; 0: no limit */
    uint64_t step_ns;   /**< so much later does each further piece leave than the one before it: CPU time of a post */
    uint64_t now_ns;    /**< the time of the current pass */
    uint64_t slack_ns;  /**< plan_stripe_slack() of the lanes; 0: not known yet */
    const struct plan_lane *lane;
};

/** A part of it, on one lane. */
struct plan_piece {
    unsigned lane;
    uint64_t offset; /**< from remote_addr */
    uint64_t len;
};

/** What plan_stripe(), plan_pull() and plan_pick_lane() look at, kept up to date while many pieces are handed out at one time. */
struct plan_pick {
    uint32_t room; /**< bit k: lane k has room; the caller may clear it where it finds no send-queue slot */
    uint32_t lanes;
    uint64_t posts; /**< how often something has been posted since plan_pick_begin() */
    uint64_t now_ns;
    uint64_t weights;               /**< of all live lanes */
    uint64_t load;                  /**< what they carry up to their ends: sum of weight * ns from now */
    uint64_t late_ns;               /**< from now to the latest end of them */
    uint64_t at_ns[PLAN_MAX_LANES]; /**< of a live lane: when a piece without length would end on it */
};

/** Looks at all lanes. */
void plan_pick_begin(struct plan_pick *pick, const struct plan_lane *lane, unsigned lanes, uint64_t now_ns);

struct plan_stripe {
    unsigned count;
    struct plan_piece piece[PLAN_MAX_LANES];
    unsigned next, rests; /**< rest[next] up to rest[rests - 1]: what lanes should get of the transfers behind */
    struct plan_rest {
        unsigned lane;
        uint64_t want;
    } rest[PLAN_MAX_LANES];
    uint64_t carry;   /**< bytes that cuts took from the pieces before */
    uint64_t lead_ns; /**< the home lane's lead that it is for */
    uint64_t posts;   /**< pick->posts when its pieces have been posted and nothing else has */
};

/**
 * The pieces to post now, in order: contiguous from offset 0, at most one on each lane, only on lanes with room. They may
 * cover less than len: then call again, at once (after plan_lane_posted()) for more, or when a lane has got room where
 * none was left (count < lanes with room also means that the rest is meant for lanes that have no room yet, because they
 * will still end sooner).
 *
 * While much is queued each lane with room gets a piece of about its quantum, the one that ends what it has first before the others. Near the end of
 * the queue what is left is shared so that all lanes are predicted to end together, home later by home_lead_ns. Inner
 * cuts lie on multiples of PLAN_CUT_ALIGN of the remote address. No piece is below piece_min and none leaves a rest below
 * piece_min, unless len is or piece_max is less than twice piece_min.
 *
 * pick: of in's lanes, now. 0 with out filled in; out->count == 0: nothing can go now, and then some lane has a backlog or
 * no slot. -EINVAL for len 0 or a bad lane count, -ENOTCONN where no lane is live, both with *out untouched.
 */
int plan_stripe(const struct plan_stripe_in *in, const struct plan_pick *pick, struct plan_stripe *out);

/**
 * The pieces of the transfer behind the one that a plan was made for and covered whole, from the same plan: what is behind
 * was poured over the lanes too. in: that transfer, on the same lanes, now. False, with count 0, where the plan has nothing for it (or
 * none was made: next and rests 0), or what has been posted since is not just what it said: ask plan_stripe().
 */
bool plan_stripe_behind(const struct plan_stripe_in *in, const struct plan_pick *pick, struct plan_stripe *plan);

/** How long the longest share that is given at once takes on the lane where that takes longest. For lanes as they are; while their paces stay so
 *  one look will do. At least 1. */
uint64_t plan_stripe_slack(const struct plan_lane *lane, unsigned lanes, uint64_t piece_min);

/** The lane for a whole transfer: of those with room, of which there must be one, that which is predicted to end it first, ties to
 *  the lower backlog and then to the lower number. */
static inline unsigned plan_pick_lane(const struct plan_pick *pick, const struct plan_lane *lane, uint64_t len)
{
    uint32_t room = pick->room;
    unsigned best = (unsigned)__builtin_ctz(room);
    room &= room - 1;
    if (!room)
        return best;
    uint64_t bytes = min_u64(len, UINT32_MAX), best_ns = pick->at_ns[best] + (bytes * lane[best].mib_ns >> 20);
    for (; room; room &= room - 1) {
        unsigned k = (unsigned)__builtin_ctz(room);
        uint64_t end_ns = pick->at_ns[k] + (bytes * lane[k].mib_ns >> 20);
        if (end_ns < best_ns || (end_ns == best_ns && lane[k].backlog < lane[best].backlog)) {
            best = k;
            best_ns = end_ns;
        }
    }
    return best;
}

/** Pieces were posted on lane k, and plan_lane_posted() has been told. */
static inline void plan_pick_posted(struct plan_pick *pick, const struct plan_lane *lane, unsigned k)
{
    pick->posts++;
    pick->load += (lane[k].end_ns - pick->at_ns[k]) * lane[k].weight;
    pick->at_ns[k] = lane[k].end_ns;
    pick->late_ns = max_u64(pick->late_ns, lane[k].end_ns - pick->now_ns);
    if (lane[k].backlog >= lane[k].window)
        pick->room &= ~(UINT32_C(1) << k);
}

/** The next piece of a transfer that may be cut, found without looking at each lane, where every lane takes part: as
 *  plan_stripe() would cut it, or len 0 where it would give none. False: ask that one. pick: of in's lanes as they are. */
bool plan_pull(const struct plan_stripe_in *in, const struct plan_pick *pick, struct plan_piece *out);

/** From so many bytes queued on every lane, whatever it holds, gets quanta: what plan_stripe() finds out exactly each time. For
 *  lanes as they are; while that stays so one look will do. */
uint64_t plan_pick_much(const struct plan_lane *lane, unsigned lanes);

#define PLAN_BURST 131072u /**< bytes: see plan_pick_burst() */

/**
 * How many bytes of a queue of whole transfers lane k should get before another is picked: a transfer takes at least one
 * byte of it, and all that begin within it go. While much is queued, a short list's worth, since one longer list is
 * cheaper than several short ones and what is behind evens it out; then half of the lane's part of what is left, near the end
 * one transfer.
 */
static inline uint64_t plan_pick_burst(const struct plan_pick *pick, const struct plan_lane *lane, unsigned k,
                                       uint64_t queued)
{
    uint64_t most = min_u64(PLAN_BURST, lane[k].window - lane[k].backlog);
    return queued >= UINT64_C(2) * PLAN_BURST * pick->lanes ? most : min_u64(most, queued / (2 * pick->lanes) + 1);
}

/* ---- order: when a word op may be posted ------------------------------------------------------------------------- */

/**
 * Writes and atomics per lane of one peer and channel, in posting order; under PLAN_MESSAGE target-executed atomics (posted
 * when sent; acked and flushed when the answer has come). flushed <= acked <= posted.
 */
struct plan_counts {
    uint64_t posted[PLAN_COUNTS];  /**< handed to the lane */
    uint64_t acked[PLAN_COUNTS];   /**< first so many are acknowledged */
    uint64_t flushed[PLAN_COUNTS]; /**< first so many are proved visible in the target's memory */
};

/** What a word op carries: for every lane the count that must be flushed before it may be posted. */
struct plan_wait {
    uint64_t count[PLAN_COUNTS];
};

/** Ops that must follow others, by what keeps them behind writes of their own lane. */
enum plan_word {
    PLAN_WORD_WRITE,   /**< a write with the strict key: behind earlier writes, unless the QP places out of order */
    PLAN_WORD_ATOMIC,  /**< behind earlier writes by itself */
    PLAN_WORD_MESSAGE, /**< acted on by the target's CPU: behind nothing by itself */
    PLAN_WORD_GATE     /**< bulk that must follow all before it: behind nothing by itself */
};

/** What is asked about a peer; kept beside its counts, since it changes seldom. */
struct plan_order_in {
    const struct plan_counts *counts;
    unsigned lanes;    /**< 1..PLAN_MAX_LANES */
    uint16_t dead;     /**< bit k: lane k has failed and what it had not completed is lost */
    bool message_lost; /**< an atomic that the target was to execute has failed: its count will not move again */
    bool unordered;    /**< QPs may place writes out of order */
    bool mixed; /**< memory of both kinds may have been written, a GPU's and the host's: no op stays behind by itself */
    bool drain; /**< the old method: an acknowledgement counts as visible */
    unsigned faults; /**< enum plan_fault, or-ed */
};

enum plan_order {
    PLAN_ORDER_NOW,  /**< post it */
    PLAN_ORDER_WAIT, /**< something it must follow is still on its way */
    PLAN_ORDER_NEVER /**< something it must follow is lost, or its lane is: it must fail */
};

/** What counts as visible: the flushed counts; in drain, the old method, and with that rule switched off, those acknowledged. */
static inline const uint64_t *plan_order_visible(const struct plan_order_in *in)
{
    return in->drain || (in->faults & PLAN_FAULT_FLUSH) ? in->counts->acked : in->counts->flushed;
}

/** Whether it may be marked: the `before` bulk puts accepted before it are among the `handed` that lanes have been given. */
static inline bool plan_order_handed(const struct plan_order_in *in, uint64_t before, uint64_t handed)
{
    return before <= handed || (in->faults & PLAN_FAULT_DEFER);
}

/** Whether a word op keeps its caller inside until it may be posted: the old method. */
static inline bool plan_order_blocks(const struct plan_order_in *in)
{
    return in->drain && !(in->faults & PLAN_FAULT_DEFER);
}

/** Whether word ops that are writes go with the strict key. */
static inline bool plan_order_strict_key(const struct plan_order_in *in)
{
    return !(in->faults & PLAN_FAULT_KEYS);
}

/** Whether there is anything that an op could wait for in vain: without it plan_order() never says PLAN_ORDER_NEVER. */
static inline bool plan_order_lossy(const struct plan_order_in *in)
{
    return in->dead || in->message_lost;
}

/** The counts that an op of this kind must wait for, where all that was accepted before it is in counts->posted. lane: that it
 *  travels on; >= in->lanes: any. */
void plan_order_mark(const struct plan_order_in *in, unsigned lane, enum plan_word word, struct plan_wait *out);

/**
 * A word op has come to the head of the FIFO: word ops that waited before it when it was marked were not in the counts then,
 * and are posted now. last[k] is the number of the last word op posted on lane k (PLAN_MESSAGE included).
 */
void plan_order_raise(const struct plan_order_in *in, unsigned lane, enum plan_word word, const uint64_t *last,
                      struct plan_wait *wait);

/** Whether an op with these waits may be posted on the lane (>= in->lanes: on any). */
enum plan_order plan_order(const struct plan_order_in *in, unsigned lane, const struct plan_wait *wait);

/**
 * Whether a word op on this lane may be posted at once, by the short way: nothing of another lane is outstanding, and nothing is
 * unusual. Where it says so, plan_order_mark() and plan_order() would say PLAN_ORDER_NOW; where it does not, ask them.
 */
static inline bool plan_order_clear(const struct plan_order_in *in, unsigned lane, enum plan_word word)
{
    const uint64_t *visible = plan_order_visible(in), *posted = in->counts->posted;
    uint64_t missing = posted[PLAN_MESSAGE] - visible[PLAN_MESSAGE];
    if (word == PLAN_WORD_MESSAGE || word == PLAN_WORD_GATE ||
        ((unsigned)in->dead | in->faults | in->message_lost | in->unordered | in->mixed) != 0)
        return false;
    for (unsigned k = 0; k < in->lanes; k++)
        missing |= k == lane ? 0 : posted[k] - visible[k];
    return missing == 0;
}

/** The lanes, as bits, on which a flush is needed before it may. */
uint32_t plan_order_flush(const struct plan_order_in *in, const struct plan_wait *wait);

/** The lanes, as bits, on which one is needed before all that has been posted is proved visible, in drain mode too. */
uint32_t plan_order_flush_all(const struct plan_order_in *in);

/* ---- puts: which kind, and what they need ------------------------------------------------------------------------ */

struct plan_put_in {
    uint64_t remote_addr;
    uint64_t len;     /**< >= 1 */
    uint64_t cut_min; /**< plan_put_cut_min() */
    unsigned lanes;
    bool covered;   /**< a part of a put with signal: nobody polls on its bytes */
    bool fenced;    /**< behind a fence that something stood before */
    bool strict;    /**< the mode */
    bool tail;      /**< the option */
    bool unordered; /**< QPs may place writes out of order */
    enum plan_overlap_answer overlap;
    unsigned overlap_lane; /**< FOLLOW: that one */
    unsigned faults;       /**< enum plan_fault, or-ed */
};

struct plan_put {
    enum plan_class klass;
    unsigned lane; /**< that all of it must take; PLAN_MAX_LANES: any */
    bool gate;     /**< it starts when all before it is visible */
    bool strict;   /**< strict key */
    uint32_t tail; /**< last bytes that are a word op of their own; 0: none */
};

/** The class of a put by its length. */
enum plan_class plan_stripe_class(uint64_t len, uint64_t stripe_min);

/** The smallest transfer that is cut, over so many lanes; paced: bulk is handed to them as they drain. UINT64_MAX: none is. */
uint64_t plan_put_cut_min(uint64_t stripe_min, unsigned lanes, bool paced);

/** What a put is. Word ops have a class and nothing else. */
void plan_put(const struct plan_put_in *in, struct plan_put *out);

#endif
