/* SPDX-License-Identifier: Apache-2.0 */
/*
 * braid.h - the one public header of libbraid: one process, several RDMA ports.
 *
 * A process opens a context on the ports it may use (each becomes a rail), connects it to its peers, registers
 * memory, and then puts, gets and signals on a channel. One large put travels over all ports; a signal never
 * overtakes the data it announces, and nobody blocks for it.
 *
 * Words. port: one port of one RDMA device, "mlx5_0:1". rail: a port this process has opened. lane: one RC QP
 * between a local and a remote rail, for one peer and one channel. channel: an ordering domain with its own lanes.
 * peer or PE: a process, numbered 0..n_pes-1; the own number is a peer too (self traffic uses self lanes).
 *
 * Errors. Every int is 0 (or a count) or a negative errno. Outputs come last and are untouched on failure.
 * -EAGAIN means only "a queue is full, call braid_progress() and try again". What went wrong is logged once, where
 * it is first known, saying what was seen, what was expected and what to do.
 *
 * Threads. Calls that take a struct braid or braid_mem: one thread at a time per context, and none beside
 * braid_connect() or braid_close(). Calls that take a struct braid_channel may come from any thread; two on the same
 * channel at once take turns, spinning, so give each thread a channel of its own. A call that blocks also moves on every
 * other channel that nobody is inside of, so the callbacks in braid_options, log above all, must bear being called on
 * several threads at once where several are used. struct braid_done may be written by any thread that is inside a call
 * on its context: read it with braid_done_wait(), or its fields with an acquire load.
 */
#ifndef BRAID_BRAID_H
#define BRAID_BRAID_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default) /* these are libbraid's exports, whatever -fvisibility a program is built with */
#endif

#define BRAID_VERSION_MAJOR 0
#define BRAID_VERSION_MINOR 1
#define BRAID_VERSION_PATCH 0

/** Most rails a context may have. More ports in the list is an error (-E2BIG), never a silent choice. */
#define BRAID_MAX_RAILS 16

/** Bytes of a remote key. Fixed, so that it fits a 512-byte slot of a host's own exchange. */
#define BRAID_KEY_BYTES 512

/** Most parts of one braid_put_signal(). */
#define BRAID_MAX_PARTS 32

/** As a pe argument: every peer. */
#define BRAID_ALL_PES (-1)

/** A context: the rails, peers and memory of one PE. Opaque; owned by the caller from braid_open() to braid_close(). */
struct braid;

/** An ordering domain of a context. Opaque; owned by the context. */
struct braid_channel;

/** A registered region. Opaque; owned by the caller from braid_mem_reg() to braid_mem_dereg(). */
struct braid_mem;

/** Log levels, most severe first. The option "log" (BRAID_LOG) sets the last one that is shown. */
enum braid_log_level { BRAID_LOG_ERROR, BRAID_LOG_WARN, BRAID_LOG_INFO, BRAID_LOG_DEBUG };

/**
 * What a caller may give to braid_open(). Set size to sizeof(struct braid_options) (BRAID_OPTIONS_INIT does) and leave
 * the rest zero for defaults; a larger struct from a newer caller is accepted only if its unknown tail is zero, a smaller
 * one only if it ends behind a field. The other structs with a size follow the same rule.
 */
struct braid_options {
    size_t size;
    /** NULL-terminated array of "name=value" (see braid_option_at()); beats the environment's BRAID_NAME. May be
     *  NULL. Read during the call only. */
    const char *const *settings;
    /** The caller's clock in nanoseconds, monotonic. NULL: CLOCK_MONOTONIC. */
    uint64_t (*now)(void *arg);
    /** Called inside blocking loops when nothing moved; may sleep until something can have changed or deadline_ns (of
     *  now's clock; UINT64_MAX: none). Returns 0, or a negative errno that ends the blocking call. NULL: a pause. */
    int (*wait)(void *arg, uint64_t deadline_ns);
    void *clock_arg;
    /** Receives each log line (no newline). NULL: stderr. Called on the thread that is inside libbraid, so on several
     *  at once where several channels are driven. */
    void (*log)(void *arg, enum braid_log_level level, const char *line);
    void *log_arg;
};
#define BRAID_OPTIONS_INIT                                                                                             \
    {                                                                                                                  \
        sizeof(struct braid_options), NULL, NULL, NULL, NULL, NULL, NULL                                               \
    }

/** One row of the option table, as printed by `braid options`. Static strings. */
struct braid_option_row {
    const char *name;          /**< as in settings; the environment variable is BRAID_ and the name in capitals */
    const char *default_value; /**< "" where there is none */
    const char *help;          /**< one line, with the accepted values or unit */
};

/** The i-th row of the option table. 0, -ENOENT past the last one, or -EINVAL without an out. Any thread. */
int braid_option_at(size_t i, struct braid_option_row *out);

/** The library's version as "0.1.0". Static string; any thread. */
const char *braid_version(void);

/**
 * Opens the ports named by the option "ports" ("mlx5_0:1,mlx5_1:1"; ":1" may be left out) as rails, in that order. By default
 * ("auto") these are the ports nearest to the GPU of the calling thread's CUDA context, or to the one that the option "gpu" names;
 * GPUs of one host that are as near to the same ports share them evenly, each process computing the same from the PCI tree.
 * Without a GPU all usable ports are taken. Of chosen ports one that cannot be opened is left out with a warning. Loads libibverbs.so.1 by name; an object with that SONAME that is already in the process is used.
 *
 * Returns 0 and a context; -EINVAL for a bad option (unknown name, bad value, no port, a port named twice); -E2BIG for
 * more than BRAID_MAX_RAILS ports; -ENODEV where a port does not exist, or none can be chosen (the message lists what does); -ENETDOWN where
 * it is not ACTIVE; -ENOTSUP where its device has no atomics; -ELIBACC where libibverbs cannot be loaded; -ENOMEM; or what
 * the verbs call said.
 */
int braid_open(const struct braid_options *options, struct braid **out);

/** Releases everything: lanes, memory still registered, rails. Not collective. NULL is allowed. */
void braid_close(struct braid *b);

/** Who the peers are and how the caller's bootstrap moves bytes between them. */
struct braid_peers {
    size_t size; /**< sizeof(struct braid_peers) */
    int my_pe;
    int n_pes;
    /** send and recv hold n_pes blocks of bytes_each (< 2^31); block i of send goes to PE i. Collective and blocking; 0
     *  or a negative errno. Called the same number of times on every PE. */
    int (*alltoall)(void *arg, const void *send, void *recv, size_t bytes_each);
    void *arg;
};

/**
 * Connects lanes to all peers, the own PE included. Collective over the peers; once per context; four rounds of the
 * alltoall. A pair of rails that cannot be connected, or over which nothing comes back (that is found out within 30 s),
 * is left out, with one warning on each side. Where that leaves no lane to a peer's home rail, a second warning says so:
 * that peer is then asked to execute atomics itself, see braid_atomic().
 *
 * Returns 0; -EINVAL for bad arguments; -EALREADY the second time; -EPROTO for a peer's blob that is truncated,
 * damaged, or of another version (the message names the PE and both versions); -ECONNABORTED where a peer could not
 * take part (the message names it); -ENETUNREACH where no lane to a peer can be had; -ENOMEM; or what the alltoall or a
 * verbs call said. Where one PE fails, all fail, the others with -ECONNABORTED, and none is left waiting. Only what
 * leaves a PE unable to tell stays its own: its alltoall fails, no memory even for the blobs, or a blob of the very last
 * round is damaged. After a failure only braid_close() is of use.
 */
int braid_connect(struct braid *b, const struct braid_peers *peers);

/** Rails of the context (at least 1), or -EINVAL for NULL. */
int braid_rail_count(const struct braid *b);

/** What one rail has carried since braid_open(). Payload only: headers, acknowledgements and repeats are not in. */
struct braid_rail_stats {
    char port[64];      /**< "mlx5_0:1" */
    uint64_t rate_bits; /**< line rate in bits a second, as the port reports it; of a bond that of all its wires */
    uint64_t put_bytes; /**< payload of puts completed */
    uint64_t get_bytes; /**< payload of gets completed */
    uint64_t word_ops; /**< word ops completed: puts of at most 256 bytes, P, signals, atomics, tails; not those atomics
                             that a peer was asked to execute */
    uint64_t errors;   /**< requests completed in error */
};

/** 0, or -EINVAL for a rail out of range. Figures of a channel in use by another thread may be a moment old. */
int braid_rail_stats_at(const struct braid *b, int rail, struct braid_rail_stats *out);

/** How far apart two devices are on the PCI tree, nearest first. */
enum braid_near {
    BRAID_NEAR_PIX,    /**< behind one PCIe switch */
    BRAID_NEAR_PXB,    /**< behind several */
    BRAID_NEAR_PHB,    /**< below one host bridge */
    BRAID_NEAR_NODE,   /**< in one NUMA node */
    BRAID_NEAR_SYS,    /**< across nodes */
    BRAID_NEAR_UNKNOWN /**< ports were named, or there is no GPU */
};

/** The GPU whose memory may be registered here. */
struct braid_gpu {
    size_t size;          /**< sizeof(struct braid_gpu), set by the caller */
    char pci[24];         /**< "0000:3b:00.0" */
    enum braid_near near; /**< the rails that ports=auto chose */
    int dmabuf;           /**< 1: its memory can be had as a dma-buf */
    int host_flush;       /**< 1: cuFlushGPUDirectRDMAWrites() works on it */
    int ordered;          /**< 1: its kernels see writes of NICs in their order without that */
};

/** Asks CUDA about the GPU of the calling thread's context, or after braid_connect() the one that it was called with. 0; -EINVAL
 *  for a size that is none; -ENODEV where this process uses no GPU; -EIO where CUDA does not tell. Thread rules as for regions. */
int braid_gpu_at(struct braid *b, struct braid_gpu *out);

/** The i-th channel (option "channels" says how many), or NULL where there is none or before braid_connect(). */
struct braid_channel *braid_channel_at(struct braid *b, int i);

/** What a channel has done since braid_connect(). Counts; sizes of work, not of data. */
struct braid_channel_stats {
    size_t size;            /**< sizeof(struct braid_channel_stats) or BRAID_CHANNEL_COUNTS, set by the caller */
    uint64_t puts;          /**< bulk puts accepted, parts of put_signal included */
    uint64_t gets;          /**< gets accepted */
    uint64_t words;         /**< word ops accepted: small puts, P, signals, atomics, tails */
    uint64_t deferred;      /**< of them: those that had to wait for other lanes, or behind others that did */
    uint64_t gated;         /**< bulk puts that had to wait for all before them */
    uint64_t pieces;        /**< requests handed to lanes for puts and gets */
    uint64_t lists;         /**< lists of requests posted to devices */
    uint64_t flushes;       /**< flushes posted */
    uint64_t messages;      /**< target-executed atomics asked for, repeats included */
    uint64_t executed;      /**< target-executed atomics carried out for others */
    uint64_t retired;       /**< requests ended */
    uint64_t passes;        /**< passes of progress */
    uint64_t polls;         /**< completion queues polled in them */
    uint64_t whole;         /**< of pieces: puts that went whole, many at a time */
    uint64_t bursts;        /**< such times */
    uint64_t drives;        /**< times that what waits for a peer was looked through; one for each of its lanes */
    uint64_t plans;         /**< times that a put or get was poured over all lanes; one for each of them */
    uint64_t turns;         /**< times that a pass saw to a peer for which something had ended */
    uint64_t waiting_puts;  /**< now: puts waiting in software */
    uint64_t waiting_words; /**< now: word ops waiting in software */
};

/** A size that asks for no more than what is counted: what waits now takes a look at each peer, and is left as it was. */
#define BRAID_CHANNEL_COUNTS offsetof(struct braid_channel_stats, waiting_puts)

/** 0, or -EINVAL for NULL or a size that is none. A call on the channel as others are: it takes turns with them. */
int braid_channel_stats_at(const struct braid_channel *ch, struct braid_channel_stats *out);

/** Lanes of this channel to a peer, or -EINVAL for a pe out of range. */
int braid_lane_count(const struct braid_channel *ch, int pe);

/** One lane to a peer: what it joins, which way it goes, and how fast it is. */
struct braid_lane_stats {
    size_t size;          /**< sizeof(struct braid_lane_stats), set by the caller */
    int rail;             /**< here */
    int remote_rail;      /**< at the peer */
    unsigned wire;        /**< of a bond, from 1: the one it was given; 0: no bond, or the device chooses */
    unsigned source_port; /**< UDP port that it was given, where lanes are spread over wires; 0: the device chooses */
    uint64_t line_bits;   /**< payload bits a second that its wire carries, or the peer's where that is slower */
    uint64_t put_bits;    /**< the same as acknowledgements of puts have shown it so far; line_bits until they have */
};

/** 0; -EINVAL for a size that is none, a pe or a lane out of range. A call on the channel as others are: it takes turns with them. */
int braid_lane_stats_at(const struct braid_channel *ch, int pe, int lane, struct braid_lane_stats *out);

/** What a peer needs to reach a region. Bytes, free to be copied and sent; checked when used. */
struct braid_key {
    unsigned char bytes[BRAID_KEY_BYTES];
};

/** More about a region. */
struct braid_mem_options {
    size_t size; /**< sizeof(struct braid_mem_options) */
    /** The address by which peers name the first byte (the IOVA of ibv_reg_mr_iova(3)), at the same offset within a page
     *  as the local address, since Linux refuses any other; 0: the local address itself. */
    uint64_t remote_addr;
    /** GPU memory that has a second address: its first one. By peer memory only that one can be registered, so it is used
     *  there in addr's place; keys and ops go by addr all the same. NULL: addr is the only one. Host memory: ignored. */
    void *alias;
};

/**
 * Registers [addr, addr+len) on every rail, for local use and for remote read, write and atomics; twice, since bulk and
 * word ops have keys of their own. Host memory, or memory of a GPU, which is told by asking CUDA where the process uses it:
 * then by a dma-buf (one for all ports) where driver, kernel and libibverbs have that and the option "dmabuf" is on, else by
 * peer memory (nvidia-peermem). Managed memory is taken for host memory. The process's CPU never touches what is registered.
 * Returns 0 and a region; -EINVAL for len 0, a NULL address, a range that wraps, a remote_addr at another offset within
 * a page, or a bad options struct; -ENOMEM; or what the verbs or the CUDA call said. The memory stays the caller's and must
 * outlive the region.
 */
int braid_mem_reg(struct braid *b, void *addr, size_t len, const struct braid_mem_options *options,
                  struct braid_mem **out);

/** Ends a registration. -EBUSY while an op still uses it (call braid_quiet() first), or an atomic that a peer has asked this PE
 *  to execute. NULL is allowed. */
int braid_mem_dereg(struct braid_mem *mem);

/** As braid_mem_dereg(), but first waits, in turns of the whole progress begun on this channel, until no op uses the region; ops to
 *  come must not. 0; -EINVAL; -EBUSY where one came all the same; or what the wait callback said. */
int braid_mem_dereg_wait(struct braid_channel *ch, struct braid_mem *mem);

/** Packs the region's remote key. 0, or -EINVAL. */
int braid_mem_key(const struct braid_mem *mem, struct braid_key *out);

/** Checks a key that came from outside in full, its checksum included: 0, or -EPROTO with a message. Ops check only
 *  what they use (version, owner, bounds), so call this once when a key arrives. */
int braid_key_check(struct braid *b, int pe, const struct braid_key *key);

/** Bytes of a peer: its address for them (see braid_mem_options.remote_addr) and the key of the region they lie in. The
 *  key must stay unchanged until the op has ended, as the source must. */
struct braid_remote {
    uint64_t addr;
    const struct braid_key *key;
};

/** Bytes of this process, inside a region. */
struct braid_local {
    void *addr;
    const struct braid_mem *mem;
};

/**
 * Counts ends of ops. Owned by the caller, zeroed by it at first, and valid until each op that names it has ended. May
 * be shared by many ops of one channel.
 */
struct braid_done {
    /** Ops ended well. A put's source may be used again, and its bytes are at the target's device: that the target's memory
     *  shows them is promised by braid_quiet(), and to whoever sees a later word op. A get's bytes, or an atomic's old value,
     *  are here. */
    uint64_t ok;
    uint64_t failed; /**< ops ended badly; error says how the first of them did */
    int error;       /**< 0, or the negative errno of the first failure */
};

/**
 * Writes len bytes to a peer. Returns when the op is accepted; src must stay unchanged until it has ended (done, or
 * braid_quiet()). len 0 ends at once. At most 256 bytes are a word op: ordered behind all earlier puts, signals and
 * atomics of this channel to that peer. Larger ones are bulk: no order among them but where their bytes overlap (the
 * later wins), and from the option "stripe_min" up cut over all lanes. Bulk that the lanes do not take yet, or
 * will not need for a while, waits in software for the next progress, up to "bulk_depth" puts a peer. With the option
 * "tail" the last 8 bytes of a bulk put become visible after all others of it, so they can be polled. In order mode "drain" a word op blocks inside the call, as braid_quiet() does.
 *
 * Returns 0; -EAGAIN (a queue is full, or 256 puts and word ops to that peer are not known to be visible yet); -EINVAL
 * for a bad channel, pe, key or length (over 2^30, or in one piece over the largest message of its port); -ERANGE where
 * the bytes lie outside the region or the key's range; -EPROTO for a foreign key; -ENOTCONN where no lane to that peer
 * is left. A word op is -ENOTCONN also where the lane that word ops take is gone, and, since it could announce what was
 * lost, from then on where any lane has lost a put to that peer, though lanes are left, or an atomic that the peer was
 * asked to execute has failed; so is bulk that overlaps others under way, or in order mode "strict" stands behind a fence.
 * After 0, failure shows in done and in braid_quiet().
 */
int braid_put(struct braid_channel *ch, int pe, struct braid_remote dst, struct braid_local src, size_t len,
              struct braid_done *done);

/** Reads len bytes from a peer. As braid_put(), but outside every order: a get neither waits nor holds others, so it may
 *  return what was there before an earlier put, unless a braid_quiet() stands between. */
int braid_get(struct braid_channel *ch, int pe, struct braid_local dst, struct braid_remote src, size_t len,
              struct braid_done *done);

/**
 * Writes the lowest 1, 2, 4 or 8 bytes of value to dst.addr, a multiple of their number. A word op; the value is copied.
 * Errors as braid_put(); -EINVAL for another size or a crooked address.
 */
int braid_p(struct braid_channel *ch, int pe, struct braid_remote dst, uint64_t value, unsigned bytes,
            struct braid_done *done);

/**
 * Adds value to the peer's 8-byte word at dst.addr (8-byte aligned), as one atomic executed by the peer's home rail. A
 * word op: whoever sees the sum sees the bytes of every earlier put of this channel to that peer. Atomic with other
 * signal adds and 8-byte atomics on that word, from every PE; not with plain writes, nor with the target's own CPU or
 * GPU (IBA spec vol. 1, 9.4.5: atomicity is the responder's). Where no lane reaches the home rail, as braid_atomic()
 * says. Errors as braid_put().
 */
int braid_signal_add(struct braid_channel *ch, int pe, struct braid_remote dst, uint64_t value,
                     struct braid_done *done);

/** Writes value to the peer's 8-byte word at dst.addr. A word op as braid_signal_add(), but a plain write: one that races
 *  another PE's add is not atomic with it. */
int braid_signal_set(struct braid_channel *ch, int pe, struct braid_remote dst, uint64_t value,
                     struct braid_done *done);

enum braid_signal_op { BRAID_SIGNAL_ADD, BRAID_SIGNAL_SET };

/** One part of a put with signal. */
struct braid_part {
    struct braid_remote dst;
    struct braid_local src;
    size_t len;
};

/**
 * Writes n parts (at most BRAID_MAX_PARTS; 0 is allowed) and then signals, as braid_signal_add() or braid_signal_set().
 * The parts are bulk, whatever their size: no order among themselves but where they overlap; all are visible to whoever
 * sees the signal. One op: done counts it once, when all of it has ended. Accepted whole or not at all; where order=drain
 * waits for the parts and the wait callback ends that, the op has been accepted and fails. Errors as braid_put().
 */
int braid_put_signal(struct braid_channel *ch, int pe, const struct braid_part *parts, unsigned n,
                     struct braid_remote signal, enum braid_signal_op op, uint64_t value, struct braid_done *done);

/** What an atomic does with the word. Those after COMPARE_SWAP, and all on 4 bytes, are target-executed. */
enum braid_atomic_op {
    BRAID_ATOMIC_ADD,
    BRAID_ATOMIC_FETCH, /**< nothing: reads it */
    BRAID_ATOMIC_FETCH_ADD,
    BRAID_ATOMIC_COMPARE_SWAP, /**< operand is stored where the word equals compare */
    BRAID_ATOMIC_SET,
    BRAID_ATOMIC_SWAP,
    BRAID_ATOMIC_AND,
    BRAID_ATOMIC_OR,
    BRAID_ATOMIC_XOR,
    BRAID_ATOMIC_FETCH_AND,
    BRAID_ATOMIC_FETCH_OR,
    BRAID_ATOMIC_FETCH_XOR
};

struct braid_atomic {
    enum braid_atomic_op op;
    unsigned bytes; /**< 4 or 8 */
    uint64_t operand;
    uint64_t compare; /**< COMPARE_SWAP only */
};

/**
 * One atomic on the peer's word of 4 or 8 bytes at dst.addr (aligned to its size). A word op. *old, where not NULL, is
 * the value before, 4 bytes filled up with zeros, written before done counts the op; it must stay valid until then.
 *
 * Executed by the peer's home rail where it is one that devices have (8 bytes; ADD, FETCH, FETCH_ADD, COMPARE_SWAP) and a
 * lane reaches that rail; else asked for by a message, which the peer carries out, exactly once, while it is inside
 * braid_progress() on its channel of the same number or inside any call that blocks: a peer that makes no calls never
 * answers. Atomic with all others on words of the same size, from every PE; never with one of another size on the same
 * bytes, with plain writes (puts, P, signal set), or with the target's own CPU or GPU.
 * Errors as braid_put(); -EINVAL for an op, size or address that is none. A peer that has no such region says -EACCES.
 */
int braid_atomic(struct braid_channel *ch, int pe, struct braid_remote dst, const struct braid_atomic *atomic,
                 uint64_t *old, struct braid_done *done);

/**
 * The blocking forms: wait for room and until the op has ended, in turns of the whole progress. Results as the form
 * without _wait, never -EAGAIN, and the op's own failure; or what the wait callback said: then the op may still be under
 * way. -EBUSY where eight such calls on one channel are under way or were cut off like that.
 */
int braid_put_wait(struct braid_channel *ch, int pe, struct braid_remote dst, struct braid_local src, size_t len);
int braid_get_wait(struct braid_channel *ch, int pe, struct braid_local dst, struct braid_remote src, size_t len);
int braid_atomic_wait(struct braid_channel *ch, int pe, struct braid_remote dst, const struct braid_atomic *atomic,
                      uint64_t *old);

/** Blocks until done->ok + done->failed >= ends. 0, done->error, or what the wait callback said. */
int braid_done_wait(struct braid_channel *ch, const struct braid_done *done, uint64_t ends);

/**
 * Orders what was issued before it to the peer (or BRAID_ALL_PES) ahead of what comes after. In order mode "release"
 * every word op is ordered behind all earlier ops by itself, so this only starts a new epoch and posts nothing; with the
 * option "tail" the last 8 bytes of bulk come behind what stood before the fence too. In mode "strict" nothing issued
 * after it becomes visible before anything issued before it; it does not block either.
 */
int braid_fence(struct braid_channel *ch, int pe);

/**
 * Blocks until every op of this channel to the peer (or BRAID_ALL_PES) has ended, deferred ones included, and is visible
 * in the target's memory, for every reader. 0, or the negative errno of the first op that failed since the last quiet on
 * that peer, a port's that could not be polled among them, or what the wait callback said: then ops may be left.
 */
int braid_quiet(struct braid_channel *ch, int pe);

/**
 * Blocks until what this PE's ports have written into its own memory before the call is visible to every reader: results of
 * gets and atomics, and what peers' ops have left there. A READ over the own lanes of every rail. For readers that do not go through
 * this CPU, a GPU above all; braid_get() and braid_done_wait() need none for the CPU. 0; -EINVAL; -ENOTCONN where a lane to
 * oneself is lost; or what the wait callback said.
 */
int braid_flush_local(struct braid_channel *ch);

/**
 * Moves everything of this channel on: completions, deferred word ops, bulk, the control mailbox, atomics that peers
 * have asked this PE to execute. Does not block. Returns the number of things that moved (0: none), or -EINVAL. Errors
 * of ops show in their done; errors of lanes are logged here. A port whose completions cannot be polled or make no
 * sense loses its lanes of this channel, and their ops end with that error. Events of a device or port (a port down, a
 * device fatal) are logged, nothing more: lanes are given up when their own requests fail.
 */
int braid_progress(struct braid_channel *ch);

/** As braid_progress(), but 0 at once where another thread is inside a call on the channel: that one moves it on. */
int braid_progress_try(struct braid_channel *ch);

/**
 * As braid_progress() where that last found something so long ago that lanes may soon run dry of what they hold, a round
 * trip's worth: two thirds of one, the shortest seen to another PE. Else 0 at once. For a caller with many ops at hand, as a
 * proxy with a batch of requests: behind each of them.
 */
int braid_progress_soon(struct braid_channel *ch);

/** One turn of a blocking loop, for a caller whose op was -EAGAIN: moves on this channel and every other that nobody is inside
 *  of, and where nothing moved waits by the wait callback. 0, -EINVAL, or what the callback said. */
int braid_turn(struct braid_channel *ch);

/**
 * Sends a message through the control mailbox of one lane and waits for its echo: the lane works both ways and both
 * sides speak the same mailbox version. The peer must be in progress. Gives the round trip in nanoseconds of the
 * context's clock. Returns 0; -EINVAL; -EAGAIN while an earlier echo could not be sent; -EPROTO where the
 * peer refused the version; -ETIMEDOUT after 5 s; -EIO where the lane is gone.
 */
int braid_echo(struct braid_channel *ch, int pe, int lane, uint64_t *rtt_ns);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
