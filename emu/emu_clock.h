/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_clock.h - what the device model does not know of the world it is in: who calls, what time it is, who sleeps, and where
 * packets go. Virtual time (emu_sim.c) and real time (emu_real.c, emu_carry.c) each fill these in. Included by emu.h.
 */
#ifndef EMU_CLOCK_H
#define EMU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct emu_fabric;
struct emu_pkt;
struct emu_port;

/* Real time: how long ago something may have been due and still count as done then. A thread that woke late costs latency, but
 * no rate. */
enum { EMU_LATE_NS = 20000000 };

/** Work to be done at a time; arg is free for a generation number. */
typedef void (*emu_event_fn)(void *obj, uint64_t arg);

/** Whoever calls verbs and can be woken: a PE in virtual time, a process in real time. */
struct emu_owner {
    struct emu_fabric *fabric;
    int index;
    int host;
    uint64_t shift;        /* added to addresses of plain registrations in the names that peers use */
    uint64_t changes;      /* grows with whatever the owner could notice; an empty poll compares it */
    unsigned grace;        /* empty polls that still return at once: a last look before a deadlock is declared */
    const char *last_call; /* for explanations */
};

/** What differs between the clocks. All take the fabric so that several fabrics may live in one process. */
struct emu_clock {
    bool real; /* calls come from any thread, and nobody is put to sleep for polling */
    uint64_t (*now)(struct emu_fabric *f);
    void (*at)(struct emu_fabric *f, uint64_t t, emu_event_fn fn, void *obj, uint64_t arg);
    /* Spends the caller's CPU time. May switch to another owner: never called with the lock held. */
    void (*charge)(struct emu_fabric *f, uint64_t ns);
    /* Sleeps the caller until wake() or the deadline. -ECANCELED once the run is given up. Never with the lock held. */
    int (*sleep)(struct emu_fabric *f, uint64_t deadline);
    void (*wake)(struct emu_owner *o);
    void (*lock)(struct emu_fabric *f);
    void (*unlock)(struct emu_fabric *f);
    bool (*canceled)(struct emu_fabric *f);
    /* Whether another thread moves the data of this process, while it has GPU memory. NULL: none ever does. */
    bool (*elsewhere)(struct emu_fabric *f);
    /* Has that thread call fn(arg) and returns what it gives. With the lock, which is let go meanwhile. */
    int (*run)(struct emu_fabric *f, int (*fn)(void *arg), void *arg);
};

enum emu_carried { EMU_CARRY_OURS, EMU_CARRY_TAKEN, EMU_CARRY_FULL, EMU_CARRY_NOBODY };

/** What differs where ports and packets are shared with other processes; a fabric without it has everything itself. */
struct emu_wire {
    /* The port has a packet to send from start on that takes so long: when it is through. */
    uint64_t (*send)(struct emu_port *p, uint64_t start, uint64_t time);
    /* The same for one to take, which may be through at its arrival if the port was idle. */
    uint64_t (*receive)(struct emu_port *p, uint64_t arrival, uint64_t time);
    /* Copies a packet to the process that it is for. FULL: not now. The packet stays the caller's. */
    enum emu_carried (*carry)(struct emu_pkt *p, uint64_t arrival);
};

#endif
