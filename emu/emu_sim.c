/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_sim.c - virtual time: a discrete-event scheduler that runs each PE's program and the emulated fabric's events in
 * the order of one clock. It decides when, never what: the device model does not know which clock it has.
 *
 * A PE's clock is the scheduler's while it runs. A verbs call moves it on by charge(): events before the new time run
 * first, so what the call then sees is exact. Called through emu_sim_api; next: emu_abi.c for the PEs' verbs calls.
 */
#include "emu_pattern.h"
#include "emu_real.h"
#include "emu_sim_int.h"
#include "emu_soon.h"
#include "emu_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls that a program may still make after the run was given up, before its stack is dropped. */
enum { EMU_SIM_PATIENCE = 1000000 };
/* Calls in a row that do not move time, as with cpu=off or deadlines in the past, before the run is given up. */
enum { EMU_SIM_STILL = 20000000 };
/* Empty polls that a program may make for each look at its memory, at the last look before a deadlock is declared. */
enum { EMU_SIM_GRACE = 256 };
/* PEs from which on it pays to fetch what comes next. */
enum { EMU_SIM_LARGE = 32 };
#define EMU_SIM_LIMIT 100000000000u

static _Thread_local struct emu_pe *emu_sim_current;

struct emu_pe *emu_sim_self(void)
{
    return emu_sim_current;
}

struct emu_owner *emu_self(void)
{
    return emu_sim_current ? &emu_sim_current->owner : emu_real_self();
}

static struct emu_sim *emu_sim_of(struct emu_fabric *f)
{
    return (struct emu_sim *)f;
}

static uint64_t emu_sim_clock_now(struct emu_fabric *f)
{
    return emu_sim_of(f)->now;
}

static void emu_sim_clock_at(struct emu_fabric *f, uint64_t t, emu_event_fn fn, void *obj, uint64_t arg)
{
    struct emu_sim *s = emu_sim_of(f);

    if (emu_wheel_add(&s->wheel, t < s->now ? s->now : t, fn, obj, arg))
        s->no_memory = true; /* the run ends with -ENOMEM at the next turn */
    if (fn != emu_sim_turn)
        s->looked = false;
}

/** Leaves for the scheduler. A switch under the model's lock would let another PE into a half-changed device. */
static void emu_sim_yield(struct emu_pe *pe)
{
    if (pe->sim->fabric.lock_depth != 0) {
        fprintf(stderr, "emu: PE %d switches inside %s with the fabric locked\n", pe->owner.index, pe->owner.last_call);
        abort();
    }
    pe->sim->task->yield(pe->task);
    emu_sim_current = pe;
}

void emu_sim_turn(void *obj, uint64_t arg)
{
    struct emu_pe *pe = obj;

    (void)arg;
    emu_sim_current = pe;
    pe->sim->task->resume(pe->task);
    emu_sim_current = NULL;
}

static void emu_sim_timer(void *obj, uint64_t sleep_no)
{
    struct emu_pe *pe = obj;

    if (pe->state == EMU_PE_SLEEPING && pe->sleep_no == sleep_no)
        emu_sim_wake(pe);
}

void emu_sim_wake(struct emu_pe *pe)
{
    pe->owner.changes++;
    pe->happened++;
    if (pe->state != EMU_PE_SLEEPING)
        return;
    pe->state = EMU_PE_READY;
    emu_sim_clock_at(&pe->sim->fabric, pe->sim->now, emu_sim_turn, pe, 0);
}

int emu_sim_sleep(struct emu_pe *pe, uint64_t deadline, const char *what)
{
    struct emu_sim *s = pe->sim;

    if (s->canceled)
        return -ECANCELED;
    pe->state = EMU_PE_SLEEPING;
    pe->sleep_no++;
    if (!s->looked)
        pe->slept_at = s->now;
    pe->sleeps_in = what;
    if (deadline != UINT64_MAX)
        emu_sim_clock_at(&s->fabric, deadline, emu_sim_timer, pe, pe->sleep_no);
    emu_sim_yield(pe);
    return s->canceled ? -ECANCELED : 0;
}

/** After the run was given up time stands still; a program that goes on for ever is left where it is. */
static void emu_sim_after_cancel(struct emu_pe *pe)
{
    if (++pe->after_cancel < EMU_SIM_PATIENCE)
        return;
    for (;;)
        emu_sim_yield(pe);
}

/** The running PE's clock moves to t; whatever is due before happens first. */
static void emu_sim_advance(struct emu_pe *pe, uint64_t t)
{
    struct emu_sim *s = pe->sim;

    if (s->canceled) {
        emu_sim_after_cancel(pe);
        return;
    }
    s->still = t > s->now ? 0 : s->still + 1;
    /* Only this PE runs now: if nothing else is due before t, its clock can simply move on. */
    if (emu_wheel_first(&s->wheel) > t && t <= s->limit && s->still < EMU_SIM_STILL) {
        s->now = t;
        return;
    }
    emu_sim_clock_at(&s->fabric, t, emu_sim_turn, pe, 0);
    emu_sim_yield(pe);
}

static void emu_sim_clock_charge(struct emu_fabric *f, uint64_t ns)
{
    struct emu_sim *s = emu_sim_of(f);
    uint64_t cost = f->spec.cpu ? ns : 0;

    emu_sim_advance(emu_sim_current, cost < UINT64_MAX - s->now ? s->now + cost : UINT64_MAX);
}

static int emu_sim_clock_sleep(struct emu_fabric *f, uint64_t deadline)
{
    int rc;

    (void)f;
    emu_sim_current->in_verbs = true;
    rc = emu_sim_sleep(emu_sim_current, deadline, emu_sim_current->owner.last_call);
    emu_sim_current->in_verbs = false;
    return rc;
}

static void emu_sim_clock_wake(struct emu_owner *o)
{
    emu_sim_wake((struct emu_pe *)o);
}

static void emu_sim_clock_lock(struct emu_fabric *f)
{
    f->lock_depth++;
}

static void emu_sim_clock_unlock(struct emu_fabric *f)
{
    f->lock_depth--;
}

static bool emu_sim_clock_canceled(struct emu_fabric *f)
{
    return emu_sim_of(f)->canceled;
}

static const struct emu_clock emu_sim_clock = {
    .now = emu_sim_clock_now,
    .at = emu_sim_clock_at,
    .charge = emu_sim_clock_charge,
    .sleep = emu_sim_clock_sleep,
    .wake = emu_sim_clock_wake,
    .lock = emu_sim_clock_lock,
    .unlock = emu_sim_clock_unlock,
    .canceled = emu_sim_clock_canceled,
};

/* ---- a run ----------------------------------------------------------------------------------------------------- */

static void emu_sim_pe_main(void *arg)
{
    struct emu_pe *pe = arg;

    emu_sim_current = pe; /* in a thread of its own this is the first time it is set */
    pe->rc = pe->fn(pe->arg, pe->owner.index);
    emu_fabric_abandon(&pe->sim->fabric, &pe->owner);
    pe->sim->looked = false;
    pe->state = EMU_PE_ENDED;
    pe->owner.changes++;
    pe->sim->left--;
    pe->sim->end = pe->sim->now;
}

/** Who waits for what, for a person. */
static void emu_sim_explain(struct emu_sim *s, int rc, char *why, size_t why_len)
{
    FILE *f = fmemopen(why, why_len, "w");

    if (!f)
        return;
    if (rc == -EDEADLK)
        fprintf(f, "deadlock at %.3f us (seed %llu): every PE sleeps and nothing is on its way\n", (double)s->now / 1e3,
                (unsigned long long)s->seed);
    else if (rc == -ETIME)
        fprintf(f, "given up at %.3f us of virtual time (seed %llu): %s\n", (double)s->now / 1e3,
                (unsigned long long)s->seed,
                s->still < EMU_SIM_STILL ? "the limit is reached" : "calls go on and on, and time does not move");
    else
        fprintf(f, "given up at %.3f us (seed %llu): %s\n", (double)s->now / 1e3, (unsigned long long)s->seed,
                strerror(-rc));
    for (int i = 0; i < s->n_pes; i++) {
        struct emu_pe *pe = &s->pe[i];

        if (pe->state == EMU_PE_ENDED)
            fprintf(f, "  PE %d has returned %d\n", i, pe->rc);
        else if (pe->state == EMU_PE_SLEEPING)
            fprintf(f, "  PE %d (h%d) sleeps in %s since %.3f us\n", i, pe->owner.host, pe->sleeps_in,
                    (double)pe->slept_at / 1e3);
        else
            fprintf(f, "  PE %d (h%d) runs; its last call was %s\n", i, pe->owner.host, pe->owner.last_call);
    }
    emu_fabric_explain(&s->fabric, f);
    fclose(f);
}

/** Lets the programs end: every wait and poll fails from now on. */
static void emu_sim_cancel(struct emu_sim *s)
{
    s->canceled = true;
    for (int i = 0; i < s->n_pes; i++) {
        if (s->pe[i].state == EMU_PE_ENDED)
            continue;
        s->pe[i].state = EMU_PE_READY;
        emu_sim_turn(&s->pe[i], 0);
    }
}

/**
 * Nothing is to happen any more. A program may have looked at its memory before it slept in a poll, and missed what came
 * in between: each such sleeper gets one more look. -EDEADLK where they have had it.
 */
static int emu_sim_last_look(struct emu_sim *s)
{
    if (s->looked)
        return -EDEADLK;
    s->looked = true;
    for (int i = 0; i < s->n_pes; i++) {
        if (s->pe[i].state != EMU_PE_SLEEPING || !s->pe[i].in_verbs)
            continue;
        s->pe[i].owner.grace = EMU_SIM_GRACE; /* it may poll many times between two looks at its memory */
        emu_sim_wake(&s->pe[i]);
    }
    return 0;
}

/** A timer that will find nothing to do must not move time, or a deadlock would seem to come late, or past the limit. */
static bool emu_sim_void(const struct emu_heap_event *e)
{
    const struct emu_pe *pe = e->obj;

    if (e->fn == emu_sim_timer)
        return pe->state != EMU_PE_SLEEPING || pe->sleep_no != e->arg;
    return emu_req_timer_void(e->fn, e->obj, e->arg) || emu_reply_timer_void(e->fn, e->obj, e->arg) ||
           emu_store_void(e->fn, e->obj, e->arg);
}

static int emu_sim_loop(struct emu_sim *s)
{
    uint64_t fetched = 0;

    while (s->left > 0) {
        struct emu_heap_event e;
        int rc;

        if (s->no_memory)
            return -ENOMEM;
        if (s->still >= EMU_SIM_STILL)
            return -ETIME;
        rc = emu_wheel_take(&s->wheel, &e);
        if (rc == -ENOENT) {
            rc = emu_sim_last_look(s);
        } else if (rc == 0) {
            bool idle = emu_sim_void(&e);

            if (s->large && e.t > fetched)
                emu_soon_fetch(&s->wheel, e.t);
            fetched = e.t;
            if (!idle && e.t > s->limit)
                return -ETIME;
            s->still = !idle && e.t > s->now ? 0 : s->still;
            s->now = idle ? s->now : e.t;
            e.fn(e.obj, e.arg);
        }
        if (rc)
            return rc;
    }
    return 0;
}

/** The first failure among the PEs that have returned. */
static int emu_sim_failure(const struct emu_sim *s)
{
    for (int i = 0; i < s->n_pes; i++) {
        if (s->pe[i].state == EMU_PE_ENDED && s->pe[i].rc)
            return s->pe[i].rc;
    }
    return 0;
}

static int emu_sim_run(struct emu_sim *s, emu_sim_main_fn fn, void *arg, char *why, size_t why_len)
{
    int rc, failed;

    if (why_len)
        why[0] = '\0';
    if (s->ran || emu_sim_current)
        return -EALREADY;
    s->ran = true;
    s->left = s->n_pes;
    s->large = s->n_pes >= EMU_SIM_LARGE;
    for (int i = 0; i < s->n_pes; i++) {
        s->pe[i].fn = fn;
        s->pe[i].arg = arg;
        s->pe[i].task = s->task->create(emu_sim_pe_main, &s->pe[i]);
        if (!s->pe[i].task)
            return -ENOMEM;
        emu_sim_clock_at(&s->fabric, 0, emu_sim_turn, &s->pe[i], 0);
    }
    emu_fabric_schedule(&s->fabric);
    rc = emu_sim_loop(s);
    failed = emu_sim_failure(s);
    if (rc == 0)
        return failed;
    emu_sim_explain(s, rc, why, why_len);
    emu_sim_cancel(s);
    /* PEs that wait for one that has failed are a consequence; its failure is the news. */
    return rc == -EDEADLK && failed ? failed : rc;
}

/* ---- life --------------------------------------------------------------------------------------------------------- */

static void emu_sim_close(struct emu_sim *s)
{
    if (!s)
        return;
    for (int i = 0; s->pe && i < s->n_pes; i++) {
        if (s->pe[i].task)
            s->task->destroy(s->pe[i].task);
    }
    emu_fabric_fini(&s->fabric);
    emu_store_fini(&s->fabric);
    emu_wheel_fini(&s->wheel);
    free(s->meeting.send);
    free(s->meeting.recv);
    free(s->pe);
    free(s);
}

static int emu_sim_build(struct emu_sim *s)
{
    int rc = emu_fabric_init(&s->fabric);

    s->n_pes = s->fabric.spec.nodes * s->fabric.spec.gpus;
    s->pe = calloc((size_t)s->n_pes, sizeof(*s->pe));
    s->meeting.send = calloc((size_t)s->n_pes, sizeof(*s->meeting.send));
    s->meeting.recv = calloc((size_t)s->n_pes, sizeof(*s->meeting.recv));
    if (rc || !s->pe || !s->meeting.send || !s->meeting.recv)
        return -ENOMEM;
    for (int i = 0; i < s->n_pes; i++) {
        s->pe[i].sim = s;
        s->pe[i].owner = (struct emu_owner){.fabric = &s->fabric,
                                            .index = i,
                                            .host = i / s->fabric.spec.gpus,
                                            .shift = emu_mr_shift(i),
                                            .last_call = "nothing yet"};
    }
    return 0;
}

static int emu_sim_open(const struct emu_sim_options *o, struct emu_sim **out, char *why, size_t why_len)
{
    struct emu_spec spec;
    struct emu_sim *s;
    int rc;

    if (!o || o->size != sizeof(*o) || o->vehicle < EMU_SIM_COROUTINES || o->vehicle > EMU_SIM_THREADS) {
        snprintf(why, why_len, "emu_sim_options: bad size or vehicle");
        return -EINVAL;
    }
    rc = emu_spec_parse(o->fabric, &spec, why, why_len);
    if (rc)
        return rc;
    s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->fabric.spec = spec;
    emu_wheel_init(&s->wheel);
    s->fabric.rng.state = s->seed = o->seed;
    emu_store_init(&s->fabric, o->seed);
    s->fabric.clock = &emu_sim_clock;
    s->limit = o->limit_ns ? o->limit_ns : EMU_SIM_LIMIT;
    s->task = o->vehicle == EMU_SIM_THREADS ? &emu_task_threads : &emu_task_coroutines;
    rc = emu_sim_build(s);
    if (rc) {
        snprintf(why, why_len, "emu: no memory for %d hosts", spec.nodes);
        emu_sim_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

/* ---- small questions ----------------------------------------------------------------------------------------------- */

static int emu_sim_pe(void)
{
    return emu_sim_current ? emu_sim_current->owner.index : -1;
}

static uint64_t emu_sim_now(void)
{
    struct emu_pe *pe = emu_sim_current;

    if (!pe)
        return 0;
    /* Costs nothing, but a loop that only looks at the clock must end some time. */
    if (++pe->sim->still >= EMU_SIM_STILL)
        emu_sim_advance(pe, pe->sim->now);
    return pe->sim->now;
}

static void emu_sim_charge(uint64_t ns)
{
    struct emu_pe *pe = emu_sim_current;

    if (!pe)
        return;
    pe->owner.changes++; /* the program does something: its next empty poll is not idleness */
    pe->owner.last_call = "charge";
    emu_sim_clock_charge(&pe->sim->fabric, ns);
}

static int emu_sim_wait(uint64_t deadline)
{
    struct emu_pe *pe = emu_sim_current;
    int rc = 0;

    if (!pe)
        return -ENOTSUP;
    if (pe->sim->canceled) {
        emu_sim_after_cancel(pe);
        return -ECANCELED;
    }
    /* What came since the last wait() may not have been looked at yet. And a program that waits with a deadline of its
     * own must not be put to sleep without one by a poll in between: whatever wait() does, the next poll is no second. */
    if (pe->happened == pe->wait_seen && deadline > pe->sim->now)
        rc = emu_sim_sleep(pe, deadline, "wait");
    else
        emu_sim_advance(pe, pe->sim->now);
    pe->owner.changes++;
    pe->wait_seen = pe->happened;
    return rc;
}

static void emu_sim_plain_addresses(struct emu_sim *s)
{
    for (int i = 0; i < s->n_pes; i++)
        s->pe[i].owner.shift = 0;
}

static uint64_t emu_sim_shift(int pe)
{
    return emu_mr_shift(pe);
}

static int emu_sim_ctl(const char *command, char *why, size_t why_len)
{
    struct emu_pe *pe = emu_sim_current;

    if (!pe || !command)
        return -ENOTSUP;
    return emu_fabric_ctl(&pe->sim->fabric, command, why, why_len);
}

EMU_EXPORT const struct emu_sim_api *emu_sim_api(uint32_t version)
{
    static const struct emu_sim_api api = {
        .version = EMU_SIM_VERSION,
        .size = sizeof(struct emu_sim_api),
        .open = emu_sim_open,
        .close = emu_sim_close,
        .pe_count = emu_report_pe_count,
        .pe_ports = emu_report_pe_ports,
        .fabric = emu_report_fabric,
        .run = emu_sim_run,
        .port = emu_report_port,
        .end_time = emu_report_end_time,
        .trace_hash = emu_report_trace_hash,
        .pe = emu_sim_pe,
        .now = emu_sim_now,
        .charge = emu_sim_charge,
        .wait = emu_sim_wait,
        .barrier = emu_boot_barrier,
        .alltoall = emu_boot_alltoall,
        .shift = emu_sim_shift,
        .plain_addresses = emu_sim_plain_addresses,
        .ctl = emu_sim_ctl,
        .cost = emu_cost_named,
        .cost_hash = emu_cost_hash,
        .pattern_map = emu_pattern_map,
        .pattern_unmap = emu_pattern_unmap,
        .pattern_fill = emu_pattern_fill,
        .pattern_diff = emu_pattern_diff,
        .pattern_runs = emu_pattern_runs,
        .pe_planes = emu_report_pe_planes,
        .pe_ceiling = emu_report_pe_ceiling,
        .ceiling_text = emu_report_ceiling_text,
        .spec_name = emu_view_name,
        .spec_ports = emu_view_spec_ports,
        .real_ports = emu_view_real_ports,
        .real_ctl = emu_view_real_ctl,
        .real_sweep = emu_meet_sweep,
    };

    return version == EMU_SIM_VERSION ? &api : NULL;
}
