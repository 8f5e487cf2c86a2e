/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - traffic generators and what they measure. A generator runs as every PE of an emulated cluster, moves bytes
 * through libbraid, and counts the bytes that the receiver found wrong. Used by cli/ and by tests; next: braid.h.
 *
 * GB/s are 10^9 payload bytes a second of virtual time.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu_sim.h"

struct live;
struct nvs_version;

enum { BENCH_PORTS = 1024, BENCH_WHY = 2048, BENCH_FABRIC = 2048, BENCH_SETTINGS = 32 };

enum bench_pattern {
    BENCH_PUT,    /**< a stream of puts; what no signal announced is checked at the end */
    BENCH_SIGNAL, /**< puts with signals behind them; the receiver checks a put's bytes when it sees its signal */
    BENCH_GET,    /**< a stream of gets; the getter checks each one's bytes when it has ended */
    BENCH_ATOMIC, /**< many PEs change one word of PE 0; the result is checked */
    BENCH_MOE     /**< a phase of DeepEP's normal kernels; each slot is checked when its tail says that it is there */
};

/** How a signal is sent: an atomic add of 1, or a write of the next number. */
enum bench_signal_how { BENCH_SIGNAL_ADD, BENCH_SIGNAL_SET };

/** The atomic that the atomic pattern does. */
enum bench_op {
    BENCH_OP_ADD,
    BENCH_OP_FETCH_ADD,
    BENCH_OP_COMPARE_SWAP, /**< adds 1 by compare and swap, again where another was faster */
    BENCH_OP_SET,
    BENCH_OP_SWAP,
    BENCH_OP_AND,
    BENCH_OP_OR,
    BENCH_OP_XOR,
    BENCH_OP_FETCH,
    BENCH_OP_COUNT
};

enum bench_engine_kind { BENCH_ENGINE_BRAID, BENCH_ENGINE_PLUGIN, BENCH_ENGINE_NIC_RR };

/** What moves the bytes. */
struct bench_engine {
    enum bench_engine_kind kind;
    char path[1024];                   /**< plugin: its file */
    const struct nvs_version *version; /**< plugin: as which host it is driven */
    bool foreign;                      /**< plugin: not braid's */
};

/**
 * "braid"; "plugin:FILE", with "@3a" and so on behind it where the file's number says too little; "model:nic-rr". 0, or
 * -EINVAL with a reason that says what was expected.
 */
int bench_engine(const char *text, struct bench_engine *out, char *why, size_t why_len);

/** A phase of DeepEP's normal kernels. */
enum bench_phase { BENCH_DISPATCH_BF16, BENCH_DISPATCH_FP8, BENCH_COMBINE, BENCH_PHASES };

/** "dispatch-bf16" and so on. Static string. */
const char *bench_phase_name(enum bench_phase phase);

enum {
    BENCH_MOE_CHUNK_MAX = 256,
    BENCH_MOE_RING_MAX = 4096,
    BENCH_MOE_CHANNELS_MAX = 64,
    BENCH_MOE_TOKENS_MAX = 65536
};

/** What a phase is told. What is zero has DeepEP's default. */
struct bench_moe_spec {
    enum bench_phase phase;
    unsigned tokens;    /**< a rank: 4096 */
    unsigned channels;  /**< 10 */
    unsigned chunk;     /**< tokens of a put: by the number of nodes */
    unsigned ring;      /**< slots of a ring, rounded up to whole chunks: 128 */
    double skew;        /**< the k-th most popular expert is chosen in proportion to k^-skew; 0: all alike */
    double copy_gbs;    /**< what the kernels of one channel copy in a GPU's memory; 0: at once */
    double forward_gbs; /**< and over NVLink */
    uint64_t see_ns;    /**< from what a kernel sees to the request that its proxy sees */
};

/** Where a phase's time went: what the busiest PE's wires did, and what they waited for while they were idle. */
enum bench_where {
    BENCH_WHERE_WIRE,   /**< they were busy */
    BENCH_WHERE_ORDER,  /**< the proxy was asleep inside a call, or word ops were behind others */
    BENCH_WHERE_CREDIT, /**< rings were full */
    BENCH_WHERE_PROXY,  /**< the proxy was busy, or had requests that it could not hand over */
    BENCH_WHERE_GPU,    /**< kernels were copying */
    BENCH_WHERE_END,    /**< all was sent; what was under way, or others sent, had to arrive */
    BENCH_WHERE
};

/** "wire" and so on. Static string. */
const char *bench_where_name(enum bench_where w);

/** What a run between real processes needs of this process: its job, where it looks for ports from, and what they are. */
struct bench_live {
    struct live *job;
    char gpu[24]; /**< PCI address of the GPU whose ports libbraid shall choose, or "none": all that are usable */
    const struct bench_live_port {
        char port[64]; /**< "mlx5_0:1" */
        uint64_t rate_bits;
    } * port;
    int n_ports;
};

/** What to run. Strings are borrowed for the call; what is zero has a default. */
struct bench_spec {
    enum bench_pattern pattern;
    const char *engine; /**< see bench_engine(); NULL: "braid" */
    const char *fabric; /**< FABRIC SPEC; NULL: its defaults */
    uint64_t seed;
    int ports;         /**< rails a PE opens; 0: all that belong to it */
    const char *order; /**< "release", "strict" or "drain"; NULL: libbraid's default */
    const char *fault; /**< a decision of src/plan to switch off; NULL: none */
    size_t size;       /**< bytes a put; atomic: 8 or 4, 0: 8 */
    uint64_t count;    /**< puts a stream; atomics in all */
    unsigned window;   /**< puts outstanding a stream; atomics a PE */
    enum emu_sim_vehicle vehicle;
    const char *tail;      /**< "on", "off"; NULL: libbraid's default */
    int peers;             /**< streams of each sender; 0: one (atomic: every other PE) */
    bool all;              /**< every PE sends; the slowest one's figures count */
    unsigned signal_every; /**< a signal after so many puts; 0: none (put), 1 (signal) */
    enum bench_signal_how signal_how;
    bool one_call;                 /**< a put and its signal are one call */
    bool watch_last;               /**< the receiver also watches each put's last 8 bytes (needs tail) */
    bool rewrite;                  /**< every put follows another put of other bytes to the same place */
    bool one_word;                 /**< signals of all senders to a PE add to one word; no bytes are announced by it */
    int unreachable;               /**< peers that have no rail to the home rail of PE 0 */
    bool stock;                    /**< each PE opens one port only, and GPUs that share ports open the same one */
    int except;                    /**< PE whose stream is left out of the figures; 0: none (PE 0 never receives) */
    enum bench_op op;              /**< atomic */
    struct bench_moe_spec moe;     /**< moe */
    uint64_t nap_ns;               /**< put, get, virtual time: time between looks; 0: as soon as there is something */
    const struct bench_live *live; /**< NULL: virtual time; else this process is one PE, and emu is live_api()'s */
    const char *setting[BENCH_SETTINGS + 1];  /**< more options of libbraid, "name=value"; ends with NULL */
    void (*progress)(void *arg, double part); /**< called now and then with what is done, 0 to 1; may be NULL */
    void *progress_arg;
};

/** What one port carried. */
struct bench_port {
    char host[16], port[64];
    uint64_t tx, rx;           /**< payload bytes */
    uint64_t wire_tx, wire_rx; /**< everything */
};

/** The kinds of work that libbraid counts and a run pays for, in the order of the cost table. */
enum bench_work {
    BENCH_WORK_PUT,
    BENCH_WORK_GET,
    BENCH_WORK_WORD,
    BENCH_WORK_DEFERRED,
    BENCH_WORK_PIECE,
    BENCH_WORK_WHOLE,
    BENCH_WORK_BURST,
    BENCH_WORK_DRIVE,
    BENCH_WORK_TURN,
    BENCH_WORK_PLAN,
    BENCH_WORK_LIST,
    BENCH_WORK_FLUSH,
    BENCH_WORK_MESSAGE,
    BENCH_WORK_EXECUTED,
    BENCH_WORK_RETIRED,
    BENCH_WORK_PASS,
    BENCH_WORK_POLL,
    BENCH_WORK
};

/** The cost table's row for it. Static string. */
const char *bench_work_name(enum bench_work w);

enum { BENCH_BUCKETS = 304 /* the last ends at 2^40 ns */ };

/** Times of many ops, ns. */
struct bench_times {
    uint64_t count, p50, p99;
    uint32_t bucket[BENCH_BUCKETS]; /**< how many lie in each, see bench_bucket_end() */
};

/** Eight buckets an octave, of equal width in it; the first eight are 1 ns wide. The first time that is behind bucket i, ns. */
uint64_t bench_bucket_end(unsigned i);

enum { BENCH_SAMPLES = 240, BENCH_SAMPLED_PORTS = 16 };

/** What ports had carried, payload bytes since the start, at times that are about as far apart. */
struct bench_timeline {
    int n_ports, n;
    char port[BENCH_SAMPLED_PORTS][64];
    uint64_t at_ns[BENCH_SAMPLES]; /**< since the start */
    uint64_t bytes[BENCH_SAMPLES][BENCH_SAMPLED_PORTS];
};

/** More of a phase. */
struct bench_moe_result {
    enum bench_phase phase;
    unsigned tokens, channels, chunk, ring; /**< as they were */
    int nodes;
    uint64_t logical_bytes; /**< that the busiest PE sent to all nodes or, where that is more, took from them */
    uint64_t remote_bytes;  /**< and those of them to or from other nodes */
    uint64_t stale_reads;   /**< slots that did not hold what their sender had written for that lap */
    uint64_t notify_ns;     /**< the phase before: two barriers and the counts between them */
    double nvl_gbs;         /**< that the busiest PE forwarded over NVLink, or gathered */
    uint64_t where_ns[BENCH_WHERE];
    char topo[8];
    struct bench_timeline timeline; /**< of the busiest PE's ports, in the direction that has more to do */
};

struct bench_result {
    int sender;             /**< the PE whose figures these are: PE 0, or the slowest */
    uint64_t payload_bytes; /**< that the sender moved; atomic: of all operands */
    uint64_t ops;           /**< puts, gets or atomics of the sender (atomic: of all) */
    uint64_t wall_ns;       /**< from its first put to the end of its quiet, virtual time */
    double gbs;
    double ceiling_gbs;    /**< of the rails in use, headers off */
    char ceiling_how[256]; /**< how that was worked out */
    double fraction;
    double cpu_share; /**< part of wall_ns that the sender's CPU was inside libbraid and below */
    struct bench_times
        latency; /**< put, get, atomic: from the call until it has ended; signal: from the put's call until
                                     the receiver sees its signal */
    struct bench_times signal; /**< from the acceptance of the put to the acknowledgement of its signal */
    uint64_t errors;           /**< bytes that the receiver compared and found wrong, and signals it missed */
    uint64_t compared_bytes;   /**< bytes that were compared */
    uint64_t work[BENCH_WORK]; /**< what libbraid did, all PEs together */
    uint64_t work_ns;          /**< and what they were charged for it */
    int ports, peers, senders;
    int per_node;                /**< PEs of a node */
    struct bench_moe_result moe; /**< moe */
    struct bench_port port[BENCH_PORTS];
    int n_ports;
    bool
        rails_only; /**< live: of each port tx and rx are what PEs' rails carried of their own ops; wire is not known */
    char fabric[BENCH_FABRIC];
    uint64_t trace_hash;
    uint32_t cost_hash;
};

/**
 * Loads the emulator, before anything in the process asks for libibverbs. path NULL: BRAID_EMU_LIB, else beside the
 * program (../emu, ../lib/braid/emu). The object stays loaded. 0; -ENOENT or -ELIBBAD with a reason.
 */
int bench_emu_load(const char *path, const struct emu_sim_api **out, char *why, size_t why_len);

/** The file that a loaded emulator came from. 0, or -ENOENT. */
int bench_emu_where(const struct emu_sim_api *emu, char *out, size_t len);

/**
 * Runs a generator on a fresh cluster, or with spec->live between processes: then all of them call it alike, and PE 0 gets the result. A sender's i-th peer is the i-th PE behind it in the order of PEs, its own node's
 * last. 0 even if errors were counted: they are in the result. -EINVAL for a bad spec, or what the fabric, libbraid or
 * the run said, with a reason.
 */
int bench_run(const struct emu_sim_api *emu, const struct bench_spec *spec, struct bench_result *out, char *why,
              size_t why_len);

/** Puts a pattern moves by default for this size, ports and peers: about 2 ms of 200 Gb/s ports, at most what fits. */
uint64_t bench_default_count(const struct bench_spec *spec);

/**
 * What a run with a fault needs so that the fault can show: its defaults are filled into spec where it has none, and the
 * fabric gets jitter and the unkind things unless it names them (fabric is a buffer for that). -EINVAL with a reason for
 * an unknown rule.
 */
int bench_fault_defaults(struct bench_spec *spec, char *fabric, size_t len, char *why, size_t why_len);

#endif
