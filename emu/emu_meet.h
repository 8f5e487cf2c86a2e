/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_meet.h - where the processes of one emulated fabric meet: a named object in shared memory with the SPEC, the members,
 * what they share of each port, and a ring from each member to each. No process is special and none is left behind.
 *
 * Who is alive the kernel knows: each member holds a lock on a byte of the object, which ends with the process, however it
 * ends. Whoever is last takes the object away; what the killed have left is recognised by locks that nobody holds.
 */
#ifndef EMU_MEET_H
#define EMU_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu_ring.h"
#include "emu_spec.h"

enum { EMU_MEET_MEMBERS = 64, EMU_MEET_SPEC = 16384, EMU_MEET_NAME = 48, EMU_MEET_COUNTERS = 6 };

/** What processes of one host share of a port. */
struct emu_meet_port {
    uint64_t tx_free, rx_free; /* when its two sides are through with what they have, ns */
    uint32_t changed;          /* grows with each change of what follows; 0: as the SPEC says */
    uint8_t down, stalled;
    double slow, loss;
    uint64_t delay_ns;
    uint64_t count[EMU_MEET_COUNTERS]; /* enum emu_count */
};

enum emu_count { EMU_COUNT_TX, EMU_COUNT_RX, EMU_COUNT_WIRE_TX, EMU_COUNT_WIRE_RX, EMU_COUNT_LOST, EMU_COUNT_DROPPED };

struct emu_meet_member {
    uint32_t doorbell; /* a futex */
    uint32_t asleep;   /* sleeps on it */
    uint64_t pending;  /* members whose rings to this one hold something */
    int32_t pid, host; /* for people */
    char pad[40];
};

struct emu_meet_page {
    char magic[8];
    uint64_t bytes;
    uint64_t started; /* CLOCK_MONOTONIC, ns */
    uint64_t done;    /* timed changes of the SPEC that have happened */
    uint32_t changed; /* grows with each port's */
    char spec[EMU_MEET_SPEC];
    struct emu_meet_member member[EMU_MEET_MEMBERS];
};

struct emu_meet {
    int fd, self; /* self: this process's member, or -1 for a visitor */
    size_t bytes;
    struct emu_meet_page *page;
    struct emu_meet_port *port; /* by index in the fabric */
    struct emu_ring *ring;      /* from * EMU_MEET_MEMBERS + to */
    char path[EMU_MEET_NAME + 64];
};

/** CLOCK_MONOTONIC, ns: the same for all processes of a machine. */
uint64_t emu_meet_time(void);
/**
 * Joins the fabric of that name (NULL: one that goes with the SPEC) as a process of a host; creates it if need be, after
 * sweeping away fabrics whose processes are all gone. n_ports: of the SPEC. 0, or -errno with a reason.
 */
int emu_meet_join(struct emu_meet *m, const char *name, const struct emu_spec *spec, int host, char *why,
                  size_t why_len);
/** The name of a fabric without one: goes with the SPEC as emu_spec_print() writes it. */
void emu_meet_own_name(const char *spec, char out[24]);
/** Opens a fabric that is there, without becoming a member. -ENOENT where there is none. */
int emu_meet_visit(struct emu_meet *m, const char *name, char *why, size_t why_len);
/** Is a member no more; the last one takes the fabric away. What is mapped stays readable: other threads may look at it. */
void emu_meet_depart(struct emu_meet *m);
/** The same for good. Tolerates one that was never joined. */
void emu_meet_leave(struct emu_meet *m);
/** Forgets a fabric that a parent process has joined: it stays the parent's. */
void emu_meet_forget(struct emu_meet *m);
/** Whether that member's process lives. A system call. */
bool emu_meet_alive(const struct emu_meet *m, int member);
/** Removes fabrics of this user whose processes are all gone. */
void emu_meet_sweep(void);
/** Changes a port, or a wire of it, for all processes and wakes them. */
void emu_meet_change(struct emu_meet *m, const struct emu_spec *s, const struct emu_change *c);
/** Wakes a member if it sleeps (or anyway). */
void emu_meet_ring(struct emu_meet *m, int member, bool anyway);
/** Puts so much time behind what a side of a port has to do; returns when it is through. floor: not before this. */
uint64_t emu_meet_reserve(uint64_t *free_at, uint64_t start, uint64_t time, uint64_t floor);

#endif
