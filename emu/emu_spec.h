/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_spec.h - the FABRIC SPEC: a cluster in one line, "nodes=2,gpus=8,ports=2,rate=400G:200G,latency=2.5us", or in a
 * file with the same keys, one a line. Pure text to numbers and back; knows nothing of devices.
 */
#ifndef EMU_SPEC_H
#define EMU_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EMU_SPEC_NODES = 64,
    EMU_SPEC_GPUS = 16,
    EMU_SPEC_PORTS = 32, /* a GPU: more than libbraid takes, so that its limit can be tested */
    EMU_SPEC_CHANGES = 32,
    EMU_SPEC_WITHOUT = 64,
    EMU_SPEC_WIRES = 8
};

/** How ports hang on GPUs and reach each other. */
enum emu_topo {
    EMU_TOPO_PIX,   /* each GPU has its ports to itself */
    EMU_TOPO_PXB,   /* GPUs 2i and 2i + 1 are equally near to the ports of both */
    EMU_TOPO_MIXED, /* PXB on the first half of the nodes, PIX on the rest */
    EMU_TOPO_RAIL   /* PIX, and port k of a GPU reaches only port k of others */
};

/** Which wire of a bond packets take, at the sender and at the receiver. */
enum emu_lag {
    EMU_LAG_AFFINITY, /* the queue pair's choice; they arrive on the wire of the same number */
    EMU_LAG_MIXED,    /* the queue pair's choice; they arrive where the switch's hash says */
    EMU_LAG_HASH      /* both as a hash of the source port says: the device takes no choice */
};

/** Those before SLOW take no value. */
enum emu_change_kind {
    EMU_CHANGE_DOWN,
    EMU_CHANGE_UP,
    EMU_CHANGE_STALL, /* the receiver takes nothing until it is up again */
    EMU_CHANGE_SLOW,
    EMU_CHANGE_LOSS,
    EMU_CHANGE_DELAY
};

/** Device mlx5_DEV of a host, which has one port, or a wire of it. */
struct emu_place {
    int host, dev;
    int wire; /* from 1; 0: all of them */
};

/** A change to one port, at a time or now. */
struct emu_change {
    uint64_t at_ns;
    enum emu_change_kind kind;
    struct emu_place port;
    double value; /* slow: fraction of the rate left; loss: probability; delay: ns */
};

struct emu_spec {
    int nodes, gpus, ports;
    uint64_t rate_bits[EMU_SPEC_PORTS]; /* of a GPU's k-th port */
    int n_rates;
    int wires; /* of each port: 1, or a bond's; rate_bits is that of one */
    enum emu_lag lag;
    uint64_t latency_ns; /* one way, wire and NICs together */
    uint64_t jitter_ns;  /* each packet up to this much later, order within a path kept */
    double loss;         /* probability per packet */
    int mtu;
    bool cpu;        /* calls cost time */
    unsigned unkind; /* enum emu_unkind */
    enum emu_topo topo;
    uint64_t pcie_bits, gpu_bits; /* payload each way, of a card's slot and of a GPU's link; 0: nothing limits it */
    bool loss_tail;               /* a full buffer drops instead of pausing */
    uint64_t buffer_bytes;        /* that packets may wait in, for each plane's switch */
    int planes;                   /* port k of a GPU lies in plane k % planes; planes do not reach each other */
    struct emu_place without[EMU_SPEC_WITHOUT]; /* ports that are not there */
    int n_without;
    struct emu_change change[EMU_SPEC_CHANGES];
    int n_changes;
};

/** "down" and so on. */
const char *emu_change_name(enum emu_change_kind kind);
/** "affinity" and so on. */
const char *emu_lag_name(enum emu_lag lag);
/** "pix" and so on. */
const char *emu_topo_name(enum emu_topo topo);

/**
 * Reads a SPEC (NULL or "": the defaults; text without '=': the name of a file). 0, or -EINVAL with a reason that
 * gives the position, what was seen and what was expected. out is untouched on failure.
 */
int emu_spec_parse(const char *text, struct emu_spec *out, char *why, size_t why_len);
/** Writes a SPEC with every key, so that parsing it gives the same again. Returned string is the caller's; NULL without
 *  memory. */
char *emu_spec_print(const struct emu_spec *s);
/** False for a port that the SPEC leaves out. */
bool emu_spec_has(const struct emu_spec *s, const struct emu_place *p);
/** Reads the words behind a change, "h0/mlx5_0:1" (or "h0/mlx5_0:1.2", the second wire of a bond) and, for kinds that take one, a value. Same errors. */
int emu_spec_change(const char *kind, const char *port, const char *value, struct emu_change *out, char *why,
                    size_t why_len);

#endif
