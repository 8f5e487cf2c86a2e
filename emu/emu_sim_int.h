/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_sim_int.h - the scheduler of virtual time, as its files see it: emu_sim.c (time, PEs), emu_boot.c (barrier,
 * alltoall) and emu_report.c (questions about the cluster).
 */
#ifndef EMU_SIM_INT_H
#define EMU_SIM_INT_H

#include "emu.h"
#include "emu_sim.h"
#include "emu_task.h"
#include "emu_wheel.h"

enum emu_pe_state { EMU_PE_READY, EMU_PE_SLEEPING, EMU_PE_ENDED };

struct emu_pe {
    struct emu_owner owner; /* first: emu_self() gives this */
    struct emu_sim *sim;
    struct emu_task *task;
    emu_sim_main_fn fn;
    void *arg;
    enum emu_pe_state state;
    uint64_t sleep_no;  /* timers of an earlier sleep are void */
    uint64_t slept_at;  /* for the explanation */
    uint64_t happened;  /* what others did to this PE; its own calls do not count */
    uint64_t wait_seen; /* happened when wait() last returned */
    uint64_t after_cancel;
    bool in_verbs; /* sleeps in a verbs call, which may have missed what the program would see */
    const char *sleeps_in;
    int rc;
};

/** One collective meeting of all PEs. */
struct emu_meeting {
    uint64_t round;
    int arrived;
    size_t bytes;
    const void **send;
    void **recv;
    int rc, last_rc;
};

struct emu_sim {
    struct emu_fabric fabric; /* first: a fabric of virtual time is inside its sim */
    struct emu_wheel wheel;
    uint64_t now, limit, end;
    uint64_t seed;
    const struct emu_task_ops *task;
    struct emu_pe *pe;
    int n_pes, left;
    bool ran, canceled, no_memory;
    bool large;     /* so many PEs that their state does not stay in a cache */
    bool looked;    /* sleepers were given a last look since something last happened */
    uint64_t still; /* calls made since time last moved */
    struct emu_meeting meeting;
};

/** The PE that runs now, or NULL. */
struct emu_pe *emu_sim_self(void);
/** Sleeps the running PE; what names the call for the explanation. 0, or -ECANCELED. */
int emu_sim_sleep(struct emu_pe *pe, uint64_t deadline, const char *what);
/** Event: a PE goes on. */
void emu_sim_turn(void *pe, uint64_t arg);
/** Notes a change for the PE and makes it runnable. */
void emu_sim_wake(struct emu_pe *pe);
/** The barrier and alltoall of emu_sim_api. */
int emu_boot_barrier(void);
int emu_boot_alltoall(const void *send, void *recv, size_t bytes_each);
/** The questions of emu_sim_api, described there. */
int emu_report_pe_count(const struct emu_sim *s);
int emu_report_pe_ports(const struct emu_sim *s, int pe, char *out, size_t len);
int emu_report_pe_planes(const struct emu_sim *s, int pe, char *out, size_t len);
double emu_report_pe_ceiling(const struct emu_sim *s, int pe, int ports);
int emu_report_ceiling_text(const struct emu_sim *s, int pe, int ports, char *out, size_t len);
const char *emu_report_fabric(const struct emu_sim *s);
int emu_report_port(const struct emu_sim *s, int i, struct emu_sim_port *out);
uint64_t emu_report_end_time(const struct emu_sim *s);
uint64_t emu_report_trace_hash(const struct emu_sim *s);

#endif
