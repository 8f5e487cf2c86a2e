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
    EMU_SPEC_CHANGES = 32
};

enum emu_change_kind { EMU_CHANGE_DOWN, EMU_CHANGE_UP, EMU_CHANGE_SLOW, EMU_CHANGE_LOSS, EMU_CHANGE_DELAY };

/** A change to one port, at a time or now. */
struct emu_change {
    uint64_t at_ns;
    enum emu_change_kind kind;
    int host, dev; /* dev: N of mlx5_N */
    double value;  /* slow: fraction of the rate left; loss: probability; delay: ns */
};

struct emu_spec {
    int nodes, gpus, ports;
    uint64_t rate_bits[EMU_SPEC_PORTS]; /* of a GPU's k-th port */
    int n_rates;
    uint64_t latency_ns; /* one way, wire and NICs together */
    uint64_t jitter_ns;  /* each packet up to this much later, order within a path kept */
    double loss;         /* probability per packet */
    int mtu;
    bool cpu; /* calls cost time */
    struct emu_change change[EMU_SPEC_CHANGES];
    int n_changes;
};

/**
 * Reads a SPEC (NULL or "": the defaults; text without '=': the name of a file). 0, or -EINVAL with a reason that
 * gives the position, what was seen and what was expected. out is untouched on failure.
 */
int emu_spec_parse(const char *text, struct emu_spec *out, char *why, size_t why_len);
/** Writes a SPEC with every key, so that parsing it gives the same again. Returned string is the caller's; NULL without
 *  memory. */
char *emu_spec_print(const struct emu_spec *s);
/** Reads the words behind a change, "h0/mlx5_0:1" and, for kinds that take one, a value. Same errors. */
int emu_spec_change(const char *kind, const char *port, const char *value, struct emu_change *out, char *why,
                    size_t why_len);

#endif
