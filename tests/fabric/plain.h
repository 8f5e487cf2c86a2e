/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.h - plain verbs in virtual time, without libbraid: ports, connected queue pairs, requests. For tests of
 * the emulator itself. A failed check is noted and the program goes on, since cmocka's asserts would jump off a
 * coroutine's stack. Several PEs of one test share its static data: they are one process. Called by test_verbs*.c;
 * next: the emulator.
 */
#ifndef PLAIN_H
#define PLAIN_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu_sim.h"

enum { PLAIN_QPS = 8, PLAIN_DEPTH = 64 };

/** An open device with one registered buffer and one CQ for all its queue pairs. Zero it first. */
struct plain_port {
    int pe; /* that opened it */
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    union ibv_gid gid;
    unsigned char *buf; /* whole pages, zeroed */
    size_t len;
    struct ibv_qp *qp[PLAIN_QPS];
    int n_qps;
    struct ibv_wc wc; /* what plain_wait() saw last */
};

/** How two queue pairs are connected. Start from plain_defaults(). */
struct plain_path {
    uint32_t psn; /* the first, in both directions */
    uint8_t timeout, retry, rnr_retry, min_rnr, rd_atomic, dest_rd_atomic;
    enum ibv_mtu mtu;
};

/** A request in offsets into the two buffers. Zero fields mean the ordinary thing. */
struct plain_wr {
    enum ibv_wr_opcode op;
    uint64_t id;
    size_t local, remote, len;
    bool unsignaled;
    uint64_t add;
    struct ibv_mr *mr; /* local, with offset local, instead of the port's own */
    uint32_t rkey;     /* instead of the peer's own */
    uint64_t address;  /* likewise */
};

struct plain_path plain_defaults(void);
const struct emu_sim_api *plain_emu(void);

/** Runs fn as every PE. Returns what the run returned; plain_why() has the reason, plain_notes() the failed checks. */
int plain_run(const char *spec, emu_sim_main_fn fn, uint64_t limit_ns);
/** Asserts (cmocka) that the run returned rc and no check failed. */
void plain_run_gives(int rc, const char *spec, emu_sim_main_fn fn, uint64_t limit_ns);
const char *plain_why(void);
const char *plain_notes(void);
/** Port counters and trace of the last run. */
struct emu_sim_port plain_counters(int port);
uint64_t plain_trace(void);
/** Notes a failure unless ok; returns ok. */
bool plain_check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The same for numbers that should be equal. */
bool plain_equal(const char *what, long long seen, long long expected);

/** Opens the PE's n-th device with a buffer of len bytes and a CQ of cqe entries. False: noted. */
bool plain_open(struct plain_port *p, int device, size_t len, int cqe);
/** Releases all; tolerates a half-open one. */
void plain_close(struct plain_port *p);
/** A queue pair in RESET, or NULL (noted). */
struct ibv_qp *plain_qp(struct plain_port *p);
/** RESET to RTS, towards a QPN at a GID. Returns what ibv_modify_qp() did. */
int plain_connect_to(struct ibv_qp *qp, uint32_t qpn, const union ibv_gid *gid, const struct plain_path *path);
/** Both ends; path NULL: defaults. False: noted. */
bool plain_connect(struct plain_port *a, struct ibv_qp *qa, struct plain_port *b, struct ibv_qp *qb,
                   const struct plain_path *path);
/** Two ports of one PE and a connected queue pair on each: ports 0 and 1 of the fabric. False: noted. */
bool plain_pair(struct plain_port p[2], size_t len, const struct plain_path *path);
/** To a state that needs no attributes: ERR, RESET. */
int plain_move(struct ibv_qp *qp, enum ibv_qp_state to);

/** Posts; returns what ibv_post_send() did. */
int plain_post(struct plain_port *from, struct ibv_qp *qp, const struct plain_port *to, struct plain_wr wr);
/** Posts a receive of len bytes at the buffer's offset. */
int plain_recv(struct plain_port *p, struct ibv_qp *qp, uint64_t id, size_t offset, size_t len);
/** Polls until a completion is there: its status, or -1 where the run was given up. */
int plain_wait(struct plain_port *p);
/** plain_wait() must give this request with this status; otherwise noted and false. */
bool plain_done(struct plain_port *p, uint64_t id, enum ibv_wc_status status);
/** The address under which peers name a byte of the buffer. */
uint64_t plain_address(const struct plain_port *p, size_t offset);

#endif
