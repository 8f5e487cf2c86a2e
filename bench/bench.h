/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - traffic generators and what they measure. A generator runs as every PE of an emulated cluster, moves bytes
 * through libbraid, and counts the bytes that the receiver found wrong. Used by cli/ and by tests; next: braid.h.
 *
 * GB/s are 10^9 payload bytes a second of virtual time.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "emu_sim.h"

enum { BENCH_PORTS = 256, BENCH_WHY = 2048 };

enum bench_pattern {
    BENCH_PUT,   /**< a stream of puts; data is checked at the end */
    BENCH_SIGNAL /**< each put is followed by a signal; the receiver checks a put's bytes when it sees its signal */
};

/** What to run. Strings are borrowed for the call. */
struct bench_spec {
    enum bench_pattern pattern;
    const char *fabric; /**< FABRIC SPEC; NULL: its defaults */
    uint64_t seed;
    int ports;         /**< rails a PE opens; 0: all that belong to it */
    const char *order; /**< "release" or "drain"; NULL: libbraid's default */
    const char *fault; /**< a decision of src/plan to switch off; NULL: none */
    size_t size;       /**< bytes a put */
    uint64_t count;    /**< puts */
    unsigned window;   /**< puts outstanding */
    enum emu_sim_vehicle vehicle;
};

/** What one port carried. */
struct bench_port {
    char host[16], port[64];
    uint64_t tx, rx;           /**< payload bytes */
    uint64_t wire_tx, wire_rx; /**< everything */
};

struct bench_result {
    uint64_t payload_bytes; /**< that the sender moved */
    uint64_t wall_ns;       /**< from its first put to the end of its quiet, virtual time */
    double gbs;
    double ceiling_gbs; /**< of the rails in use, headers off */
    double fraction;
    uint64_t errors; /**< bytes that the receiver compared and found wrong, and signals it missed */
    struct bench_port port[BENCH_PORTS];
    int n_ports;
    char fabric[512];
    uint64_t trace_hash;
    uint32_t cost_hash;
};

/**
 * Loads the emulator, before anything in the process asks for libibverbs. path NULL: BRAID_EMU_LIB, else beside the
 * program (../emu, ../lib/braid/emu). The object stays loaded. 0; -ENOENT or -ELIBBAD with a reason.
 */
int bench_emu_load(const char *path, const struct emu_sim_api **out, char *why, size_t why_len);

/**
 * Runs a generator on a fresh cluster: PE 0 sends to PE 1. 0 even if errors were counted: they are in the result. -EINVAL
 * for a bad spec, or what the fabric, libbraid or the run said, with a reason.
 */
int bench_run(const struct emu_sim_api *emu, const struct bench_spec *spec, struct bench_result *out, char *why,
              size_t why_len);

#endif
