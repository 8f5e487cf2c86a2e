/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_int.h - what the generators share: a PE's transport, memory and peers.
 */
#ifndef BENCH_INT_H
#define BENCH_INT_H

#include "bench.h"

#include <braid/braid.h>

struct bench_run;

/** A put or signal that the transport cannot take now answers -EAGAIN; bench_pe_step() then makes progress. */
struct bench_transport {
    int (*put)(void *self, int pe, uint64_t dst, const void *src, size_t len, struct braid_done *done);
    int (*signal_add)(void *self, int pe, uint64_t word, uint64_t value, struct braid_done *done);
    int (*progress)(void *self);
    int (*quiet)(void *self, int pe);
};

/** One PE of a run. Remote addresses are those by which peers name the same offset of its memory. */
struct bench_pe {
    struct bench_run *run;
    int pe, n_pes;
    unsigned char *mem; /* [0, data) puts land or come from here; the tail word lies behind */
    size_t mem_len, data_len;
    uint64_t *remote; /* of each PE: address of its memory's first byte */
    struct braid_key *key;
    const struct bench_transport *transport;
    void *transport_self;
};

/** A run: the same for all PEs; results are written by the PE that has them. */
struct bench_run {
    const struct emu_sim_api *emu;
    struct emu_sim *sim;
    const struct bench_spec *spec;
    int rails;    /* of the sender */
    size_t slots; /* places for puts in each memory */
    uint64_t start_ns, end_ns;
    uint64_t errors;
    char why[BENCH_WHY];
};

/** Where the tail word is in a PE's memory. */
static inline size_t bench_tail_offset(const struct bench_pe *p)
{
    return p->data_len;
}

/** Fills a put's bytes with a pattern of its own. */
void bench_fill(unsigned char *p, size_t len, uint64_t seed, uint64_t number);
/** Bytes that differ from that pattern. */
uint64_t bench_differences(const unsigned char *p, size_t len, uint64_t seed, uint64_t number);

/** The put generator, as one PE. 0 or a negative errno. */
int bench_put_pe(struct bench_pe *p);
/** The put-and-signal generator, as one PE. */
int bench_signal_pe(struct bench_pe *p);

/** Progress, or sleep where there is none. 0, or a negative errno that ends the run. */
int bench_pe_step(struct bench_pe *p);
/** Puts, with progress while the transport is full. */
int bench_pe_put(struct bench_pe *p, int pe, size_t offset, size_t len, struct braid_done *done);
/** Adds 1 to the peer's tail word, likewise. */
int bench_pe_signal(struct bench_pe *p, int pe, struct braid_done *done);

/** The transport of libbraid: opens a context for this PE on its first ports and registers mem. Owned by the caller. */
int bench_braid_open(struct bench_pe *p, void **self);
/** Tolerates NULL. */
void bench_braid_close(void *self);
extern const struct bench_transport bench_braid;

#endif
