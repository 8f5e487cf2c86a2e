/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flows.h - streams of WRITEs between ports of an emulated fabric, by plain verbs: a table in, the time that each took out.
 * For tests of what the wire, the switch and the slots make of them. The bytes that came are compared. Called by
 * test_buffer.c and test_bus.c; next: plain.h.
 */
#ifndef FLOWS_H
#define FLOWS_H

#include "plain.h"

enum { FLOWS = 12, FLOW_SEATS = 12, FLOW_LEN = 128 << 10, FLOW_MIB = 1 << 20 };

/* On a 200 Gb/s port with 2.5 us one way: a full packet, its time, and what is between a flow and its end. */
enum { FLOW_FRAME = 4096 + 82, FLOW_FRAME_NS = 167, FLOW_RTT = 5000 };

/** A port: the PE that opens it, and which of its host's devices it is. */
struct flow_seat {
    int pe, device;
};

/** n WRITEs of FLOW_LEN bytes from one seat to another, all posted at the start. */
struct flow {
    int from, to, n;
    bool fails; /* with retries exceeded */
};

/** Runs flows in a fabric; seats NULL: seat i is device 0 of PE i. Asserts that all ended as they should. */
void flows_run(const char *spec, const struct flow_seat *seats, const struct flow *list, int n);
/** When a flow of the last run ended, ns after its start. */
uint64_t flows_ended(int i);
/** How the next runs connect; start from plain_defaults(). */
void flows_connect_by(const struct plain_path *path);
/** Time that so many MiB take on a 200 Gb/s port, ns. */
uint64_t flows_wire_ns(uint64_t mib);
/** True if what was seen is within so many percent of what was expected. */
bool flows_about(uint64_t seen, uint64_t expected, unsigned percent);

#endif
