/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h - plain verbs among the processes of a real.h run: each has one device and memory, and an RC queue pair to every
 * process, the own one included.
 */
#ifndef PAIRS_H
#define PAIRS_H

#include <infiniband/verbs.h>

#include "real.h"

enum {
    PAIRS_BYTES = 4 << 20,
    PAIRS_FROM = 2 << 20,
    PAIRS_MESSAGES = 32,
    PAIRS_EACH = 16384,
    PAIRS_DEPTH = 64,
    PAIRS_TIMEOUT = 17 /* 0.5 s: processes may have to wait long for a CPU */
};

struct pairs {
    struct real *run;
    int me;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp[REAL_PROCS];
    unsigned char *bytes; /* PAIRS_BYTES */
    bool given;           /* by whoever opened it */
    uint64_t addr[REAL_PROCS];
    uint32_t rkey[REAL_PROCS];
};

/** Opens device number dev of the host and connects to all. 0, or -1 after noting what failed. */
int pairs_open(struct pairs *p, struct real *r, int me, int dev);
/** The same with memory of PAIRS_BYTES that the caller gives. */
int pairs_open_on(struct pairs *p, struct real *r, int me, int dev, void *memory);
void pairs_close(struct pairs *p);
/** Posts a request to a peer: len bytes between offsets of the two memories. 0, or an errno. */
int pairs_post(struct pairs *p, int to, enum ibv_wr_opcode op, size_t local, size_t remote, uint32_t len,
               uint64_t operand);
/** Waits for one completion. False: none in 20 s. */
bool pairs_poll(struct pairs *p, struct ibv_wc *wc);
/** Both; the completion must say success. 0, or -1. */
int pairs_do(struct pairs *p, int to, enum ibv_wr_opcode op, size_t local, size_t remote, uint32_t len,
             uint64_t operand);
/** Bytes that differ with their process, their number and their place. */
void pairs_fill(unsigned char *bytes, int from, int number, size_t len);
bool pairs_holds(const unsigned char *bytes, int from, int number, size_t len);
/**
 * Exchanges PAIRS_MESSAGES messages with another process, and looks at each when its receive has completed. Needs the first
 * PAIRS_MESSAGES * PAIRS_EACH bytes of memory, and as many from PAIRS_FROM on; see: where the CPU sees that memory.
 * ready: all receives are there before the first message. 0, or -1.
 */
int pairs_exchange(struct pairs *p, int other, unsigned char *see, bool ready);

#endif
