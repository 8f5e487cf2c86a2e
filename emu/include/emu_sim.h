/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_sim.h - runs a whole cluster of PEs inside one process in virtual time, on emulated RDMA ports.
 *
 * The only header of emu/ that other folders include. The functions live in the emulator's shared object (SONAME
 * libibverbs.so.1): open it by path with dlopen(RTLD_NOW), look up emu_sim_api, and from then on whoever asks for
 * libibverbs.so.1 in this process gets the emulator. Calls marked [PE] are made by code that runs as a PE, i.e.
 * from inside run(); the others from outside it.
 *
 * Time. Each PE has a CPU. Verbs calls and charge() move its clock on; wait() and a second empty poll of the same CQ with
 * nothing in between sleep it until something happens to it: a completion, an asynchronous event, remote bytes landing
 * in its memory, a barrier or alltoall completing, or its deadline. Same fabric, seed and program: same run, to the
 * nanosecond. All int results are 0 or a negative errno.
 */
#ifndef EMU_SIM_H
#define EMU_SIM_H

#include <stddef.h>
#include <stdint.h>

#define EMU_SIM_VERSION 3

/** A cluster in virtual time. */
struct emu_sim;

/** What carries a PE. Results are the same; threads can hold a mutex across a verbs call, coroutines are faster. */
enum emu_sim_vehicle {
    EMU_SIM_COROUTINES, /**< all PEs on the calling thread; must not enter the emulator with a lock another PE wants */
    EMU_SIM_THREADS     /**< one thread a PE, exactly one of which runs: it holds the baton */
};

struct emu_sim_options {
    size_t size;        /**< sizeof(struct emu_sim_options) */
    const char *fabric; /**< FABRIC SPEC, e.g. "nodes=2,ports=2,rate=200G,latency=2.5us"; NULL: its defaults */
    uint64_t seed;      /**< decides every random choice of the fabric: keys, QPNs, jitter, loss */
    enum emu_sim_vehicle vehicle;
    uint64_t limit_ns; /**< virtual time at which run() gives up with -ETIME; 0: 100 s */
};

/** A port of a fabric in real time. Counters are a millisecond or so behind. */
struct emu_real_port {
    char host[16]; /**< "h0" */
    char port[56]; /**< "mlx5_0:1" */
    uint64_t rate_bits;
    uint64_t guid;
    unsigned char gid[16];
    int gpu;      /**< of its host: the one whose card it is on */
    int near_gpu; /**< the first of those that are equally near: this one, or its pair's first */
    int up;
    double slow; /**< fraction of the rate that is left */
    uint64_t tx_payload, rx_payload, wire_tx, wire_rx, lost, dropped;
    int wires; /**< 1, or those of a bond; rate_bits is that of all together */
};

/** Counters of one emulated port. */
struct emu_sim_port {
    char host[16];                   /**< "h0" */
    char port[64];                   /**< "mlx5_0:1" */
    uint64_t rate_bits;              /**< line rate, bits a second; of a bond all its wires together, as all below */
    uint64_t tx_payload, rx_payload; /**< payload of WRITE, SEND and READ responses, repeats included */
    uint64_t wire_tx, wire_rx;       /**< everything: headers, ACKs, frame overhead */
    uint64_t lost;                   /**< packets that left this port and were lost */
    double payload_rate;             /**< payload bytes a second when every packet is full: the ceiling */
    uint64_t queue_peak;             /**< most bytes that waited in the switch for this port */
    uint64_t buffer_peak;            /**< most bytes that waited in its switch for all ports of the plane */
    uint64_t pauses, paused_ns;      /**< times it had to stop sending because the buffer was full, and for how long */
    uint64_t dropped;            /**< packets for this port that found no room (loss=tail); they count as lost, too */
    int wires;                   /**< 1, or those of a bond */
    uint64_t wire_payload[8][2]; /**< of each: payload sent and received */
};

/** A PE's program. Its result is 0 or a negative errno. */
typedef int (*emu_sim_main_fn)(void *arg, int pe);

struct emu_sim_api {
    uint32_t version;
    size_t size;

    /** Builds the cluster. On failure writes the reason to why: position, what was seen, what was expected. */
    int (*open)(const struct emu_sim_options *options, struct emu_sim **out, char *why, size_t why_len);
    /** NULL is allowed. */
    void (*close)(struct emu_sim *sim);
    /** Number of PEs: nodes x gpus. PE p is GPU p % gpus of node p / gpus. */
    int (*pe_count)(const struct emu_sim *sim);
    /** The ports that belong to a PE's GPU, as "mlx5_0:1,mlx5_1:1", NUL-terminated; empty where it has none. Two GPUs that
     *  share their ports (topo=pxb) get disjoint shares. -ENOSPC where they do not fit. */
    int (*pe_ports)(const struct emu_sim *sim, int pe, char *out, size_t len);
    /** The fabric in full, defaults filled in, as a SPEC string. Owned by sim. */
    const char *(*fabric)(const struct emu_sim *sim);
    /**
     * Runs fn as each PE until all have returned; once per sim. Returns 0; the first PE's failure; -EDEADLK where every PE
     * that has not returned sleeps, none has failed, and nothing is on its way; -ETIME past the limit, or where calls go on
     * and on without moving time. why then says who waits for what, and polls return -1 and wait() -ECANCELED from there
     * on, so that the programs can end.
     */
    int (*run)(struct emu_sim *sim, emu_sim_main_fn fn, void *arg, char *why, size_t why_len);
    /** Counters of the i-th port of the cluster; ports that are left out do not count; -ENOENT past the last. */
    int (*port)(const struct emu_sim *sim, int i, struct emu_sim_port *out);
    /** Virtual time at which the last PE returned, ns. */
    uint64_t (*end_time)(const struct emu_sim *sim);
    /** A hash over every packet delivered, its time and place: equal runs have equal hashes. */
    uint64_t (*trace_hash)(const struct emu_sim *sim);

    /** [PE] own number, or -1 outside a PE. */
    int (*pe)(void);
    /** [PE] this PE's clock, ns. Outside a PE: 0. */
    uint64_t (*now)(void);
    /** [PE] spends CPU time. */
    void (*charge)(uint64_t ns);
    /** [PE] sleeps until something happened to this PE since wait() last returned, or deadline_ns (UINT64_MAX: none). 0, or
     *  -ECANCELED once the run has been given up. */
    int (*wait)(uint64_t deadline_ns);
    /** [PE] all PEs meet. */
    int (*barrier)(void);
    /** [PE] block i of send goes to PE i. Collective. */
    int (*alltoall)(const void *send, void *recv, size_t bytes_each);
    /** What a PE adds to a local address to name it to others (plain ibv_reg_mr() regions; IOVAs are as given). */
    uint64_t (*shift)(int pe);
    /**
     * [PE] changes the fabric now, e.g. "port h0/mlx5_0:1 down" (also up, stall, slow F, loss P, delay T). On failure the reason is
     * in why.
     */
    int (*ctl)(const char *command, char *why, size_t why_len);
    /** A row of the cost table in ns ("braid_put"); 0 for a name it does not have. */
    uint64_t (*cost)(const char *name);
    /** The table's hash. */
    uint32_t (*cost_hash)(void);
    /** The planes of a PE's ports in the order of pe_ports(), as "0,1"; empty where the fabric has one plane. Else as
     *  pe_ports(). */
    int (*pe_planes)(const struct emu_sim *sim, int pe, char *out, size_t len);
    /**
     * Payload bytes a second that the first `ports` ports of a PE can carry one way when every packet is full: headers are
     * off, PCIe slots and the GPU's link count, timed changes do not. 0 for a PE there is not.
     */
    double (*pe_ceiling)(const struct emu_sim *sim, int pe, int ports);
    /** How pe_ceiling() comes to its figure, one line for a person. -EINVAL; -ENOSPC where it does not fit. */
    int (*ceiling_text)(const struct emu_sim *sim, int pe, int ports, char *out, size_t len);
    /**
     * Address space for memory that holds no bytes but knows of each where it came from, for payload that would not fit
     * memory: (tag, position), in runs. Register it and name it in requests as any other; the CPU must not touch it, and
     * faults if it does. NULL and errno.
     */
    void *(*pattern_map)(size_t len);
    /** Gives it back, whole: addr is what pattern_map() gave. */
    void (*pattern_unmap)(void *addr);
    /** Bytes become positions 0 to len-1 of a tag; tag 0: zeros, as everything is at first. 0; -EINVAL where the memory is not
     *  of this kind, or the tag UINT64_MAX; -ENOMEM. */
    int (*pattern_fill)(void *addr, size_t len, uint64_t tag);
    /** How many of the bytes are not what came from the same place of a buffer filled with the tag: another tag's, another
     *  position's, or never written. */
    uint64_t (*pattern_diff)(const void *addr, size_t len, uint64_t tag);
    /** How many runs describe the memory that addr lies in: what it costs, 32 bytes each. */
    size_t (*pattern_runs)(const void *addr);

    /** Before run(): plain registrations are named to peers by the address itself, as on real devices, for code that hands
     *  addresses of its own to peers (hosts of NVSHMEM). shift() is then not to be used. */
    void (*plain_addresses)(struct emu_sim *sim);

    /* Real time: fabrics between processes, from outside. name NULL: the only one that this user has. */

    /** The name of the fabric that processes with this SPEC meet in unless they are told another. -EINVAL with a reason. */
    int (*spec_name)(const char *fabric, char out[24], char *why, size_t why_len);
    /** The ports of a SPEC in the order of hosts and devices: how many (only max are written), or -EINVAL with a reason. */
    int (*spec_ports)(const char *fabric, struct emu_real_port *out, int max, char *why, size_t why_len);
    /** The same of a fabric that runs, with what the ports have carried. -ENOENT where there is none. */
    int (*real_ports)(const char *name, struct emu_real_port *out, int max, char *why, size_t why_len);
    /** Changes a fabric that runs, for all its processes, as ctl() does. */
    int (*real_ctl)(const char *name, const char *command, char *why, size_t why_len);
    /** Removes what is left of this user's fabrics whose processes are all gone. */
    void (*real_sweep)(void);
};

/** The table, or NULL for a version this object does not have. Look it up with dlsym(). */
const struct emu_sim_api *emu_sim_api(uint32_t version);

#endif
