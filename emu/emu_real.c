/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_real.c - real time: the device model of one process, its clock, its lock and its one engine thread. Environment:
 * BRAID_EMU=SPEC or file, BRAID_EMU_HOST=h1 (default h0), BRAID_EMU_NAME=name of the fabric (default: goes with the SPEC).
 *
 * The model runs behind the lock, in whoever holds it: each verbs call first does what is due, and the engine thread does it
 * when the program is silent. An event happens at the time it was due, as far as that is not too long ago, so that rates do
 * not suffer from a thread that woke late. Called by emu_dev.c; next: emu_carry.c, and the model by its events.
 */
#include "emu_real.h"
#include "emu_lag.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    EMU_REAL_EVENTS = 256,      /* that one holder of the lock carries out at once */
    EMU_REAL_NAP_NS = 50000,    /* between two looks of the engine while the program polls */
    EMU_REAL_STREAM_NS = 25000, /* the same while packets come one after the other */
    EMU_REAL_STREAM = 16,       /* from so many looks in a row on, about, that found large ones */
    EMU_REAL_BUSY_NS = 20000,   /* a program that polls calls more often than this */
    EMU_REAL_TICK_NS = 1000000,
    EMU_REAL_WAIT_NS = 50000000 /* one sleep in a verbs call: whatever was missed is seen then */
};

static struct emu_real *emu_real_process;
static _Thread_local bool emu_real_is_engine;
static pthread_mutex_t emu_real_join_lock = PTHREAD_MUTEX_INITIALIZER;
/* What wakes counted when this thread last let the lock go: whatever happens after that ends its next sleep. */
static _Thread_local uint32_t emu_real_wakes_seen;

static struct emu_real *emu_real_of(struct emu_fabric *f)
{
    return (struct emu_real *)f;
}

static void emu_real_futex_wait(uint32_t *word, int how, uint32_t seen, uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

    syscall(SYS_futex, word, how, seen, &t, NULL, 0);
}

/* ---- the model's time --------------------------------------------------------------------------------------------------- */

/** Does what is due, but not without end: the caller has other things to do, and others want the lock. Returns the time. */
static uint64_t emu_real_catch_up(struct emu_real *r)
{
    uint64_t real = emu_meet_time(), oldest = real - EMU_LATE_NS;
    struct emu_heap_event e;

    emu_carry_pull(r);
    emu_carry_changes(r);
    for (int i = 0; i < EMU_REAL_EVENTS && emu_heap_first(&r->heap) <= real && emu_heap_take(&r->heap, &e) == 0; i++) {
        uint64_t t = e.t > oldest ? e.t : oldest;

        r->now = t > r->now ? t : r->now;
        e.fn(e.obj, e.arg);
    }
    if (emu_heap_first(&r->heap) > real && real > r->now)
        r->now = real;
    if (real - r->tick > EMU_REAL_TICK_NS) {
        r->tick = real;
        emu_carry_count(r);
    }
    return real;
}

static uint64_t emu_real_now(struct emu_fabric *f)
{
    return emu_real_of(f)->now;
}

static void emu_real_at(struct emu_fabric *f, uint64_t t, emu_event_fn fn, void *obj, uint64_t arg)
{
    struct emu_real *r = emu_real_of(f);

    if (emu_heap_add(&r->heap, t, fn, obj, arg)) {
        fprintf(stderr, "emu: no memory for what is to happen; expected some kilobytes: the process ends\n");
        abort();
    }
}

static void emu_real_charge(struct emu_fabric *f, uint64_t ns)
{
    (void)f; /* the caller's time passes by itself */
    (void)ns;
}

static void emu_real_exit(void);

/** What is registered with atexit(3) after CUDA has begun runs before CUDA ends. */
static void emu_real_before_cuda(void)
{
    static bool told;

    if (!told)
        atexit(emu_real_exit);
    told = true;
}

static void emu_real_lock(struct emu_fabric *f)
{
    struct emu_real *r = emu_real_of(f);

    pthread_mutex_lock(&r->lock);
    if (f->gpu_mrs) {
        emu_real_before_cuda();
        return;
    }
    r->called = emu_real_catch_up(r);
}

static void emu_real_wake(struct emu_owner *o)
{
    struct emu_real *r = emu_real_of(o->fabric);

    r->woken = true; /* once for all, when the lock is let go */
}

/** Lets the lock go, and whoever waits for what happened under it look. */
static void emu_real_let_go(struct emu_real *r)
{
    bool woken = r->woken, sleeps = false;

    r->woken = false;
    if (woken) {
        __atomic_fetch_add(&r->wakes, 1, __ATOMIC_SEQ_CST);
        sleeps = __atomic_load_n(&r->sleepers, __ATOMIC_SEQ_CST) != 0;
    }
    emu_real_wakes_seen = __atomic_load_n(&r->wakes, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&r->lock);
    if (sleeps)
        syscall(SYS_futex, &r->wakes, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void emu_real_unlock(struct emu_fabric *f)
{
    struct emu_real *r = emu_real_of(f);
    bool due = r->heap.count != 0 || r->job.state == EMU_REAL_JOB_ASKED;

    emu_real_let_go(r);
    if (due)
        emu_meet_ring(&r->meet, r->meet.self, false);
}

static int emu_real_sleep(struct emu_fabric *f, uint64_t deadline)
{
    struct emu_real *r = emu_real_of(f);

    (void)deadline; /* all callers look again */
    __atomic_fetch_add(&r->sleepers, 1, __ATOMIC_SEQ_CST);
    emu_real_futex_wait(&r->wakes, FUTEX_WAIT_PRIVATE, emu_real_wakes_seen, EMU_REAL_WAIT_NS);
    __atomic_fetch_sub(&r->sleepers, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static bool emu_real_canceled(struct emu_fabric *f)
{
    (void)f;
    return false;
}

static bool emu_real_elsewhere(struct emu_fabric *f)
{
    (void)f;
    return !emu_real_is_engine;
}

static void emu_real_wait_job(struct emu_real *r, enum emu_real_job_state until)
{
    while (r->job.state != until && !r->stop) {
        emu_real_unlock(&r->fabric);
        emu_real_sleep(&r->fabric, UINT64_MAX);
        pthread_mutex_lock(&r->lock);
    }
}

static int emu_real_run(struct emu_fabric *f, int (*fn)(void *arg), void *arg)
{
    struct emu_real *r = emu_real_of(f);
    int rc;

    if (!f->gpu_mrs || !r->engine_runs)
        return fn(arg);
    emu_real_wait_job(r, EMU_REAL_JOB_NONE); /* of another thread */
    if (r->stop)
        return fn(arg);
    r->job = (struct emu_real_job){EMU_REAL_JOB_ASKED, fn, arg, 0};
    emu_real_wait_job(r, EMU_REAL_JOB_DONE);
    rc = r->job.state == EMU_REAL_JOB_DONE ? r->job.rc : fn(arg);
    r->job.state = EMU_REAL_JOB_NONE;
    emu_real_wake(&r->owner);
    return rc;
}

/** Engine: calls what somebody has asked for. */
static void emu_real_do_job(struct emu_real *r)
{
    if (r->job.state != EMU_REAL_JOB_ASKED)
        return;
    r->job.rc = r->job.fn(r->job.arg);
    emu_gpu_settle(); /* whoever asked may take the memory away now */
    r->job.state = EMU_REAL_JOB_DONE;
    emu_real_wake(&r->owner);
}

static const struct emu_clock emu_real_clock = {
    .real = true,
    .now = emu_real_now,
    .at = emu_real_at,
    .charge = emu_real_charge,
    .sleep = emu_real_sleep,
    .wake = emu_real_wake,
    .lock = emu_real_lock,
    .unlock = emu_real_unlock,
    .canceled = emu_real_canceled,
    .elsewhere = emu_real_elsewhere,
    .run = emu_real_run,
};

/* ---- the engine thread ----------------------------------------------------------------------------------------------------- */

/** Until when the engine may sleep. While the program calls verbs it does the work itself. */
static uint64_t emu_real_idle_ns(struct emu_real *r, uint64_t now, bool *doze)
{
    uint64_t first = emu_heap_first(&r->heap), ns = first > now ? first - now : 0;

    if (r->large != r->large_seen)
        r->streak += r->streak < 2 * EMU_REAL_STREAM;
    else
        r->streak -= r->streak > 0;
    r->large_seen = r->large;
    *doze = r->fabric.gpu_mrs || now - r->called >= EMU_REAL_BUSY_NS;
    if (!*doze)
        return EMU_REAL_NAP_NS;
    if (r->left && ns > EMU_REAL_STREAM_NS)
        return EMU_REAL_STREAM_NS;
    if (r->streak < EMU_REAL_STREAM)
        return ns < 1000000000u ? ns : 1000000000u;
    /* A look for each packet would be a switch of threads for each: they have dates, so several can be taken at once. */
    *doze = false;
    return EMU_REAL_STREAM_NS;
}

static void *emu_real_engine(void *arg)
{
    struct emu_real *r = arg;
    struct emu_meet_member *self = &r->meet.page->member[r->meet.self];
    bool stop = false, doze = true;

    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    emu_real_is_engine = true;
    while (!stop) {
        uint32_t seen = __atomic_load_n(&self->doorbell, __ATOMIC_SEQ_CST);
        uint64_t ns, began, end;

        /* Said before looking, so that who sends after the look rings. */
        __atomic_store_n(&self->asleep, doze, __ATOMIC_SEQ_CST);
        pthread_mutex_lock(&r->lock);
        began = emu_real_catch_up(r);
        emu_real_do_job(r);
        emu_reply_say(&r->fabric);
        end = emu_meet_time();
        if (!r->left && emu_heap_first(&r->heap) > end + EMU_REAL_NAP_NS) /* else more may follow what is gathered */
            emu_gpu_issue();
        emu_stats_pass(r, began, end);
        ns = emu_real_idle_ns(r, end, &doze);
        stop = r->stop;
        emu_real_let_go(r);
        if (doze && !__atomic_load_n(&self->asleep, __ATOMIC_SEQ_CST))
            continue; /* once more, having said so */
        if (!stop && ns)
            emu_real_futex_wait(&self->doorbell, FUTEX_WAIT, seen, ns);
    }
    return NULL;
}

static int emu_real_start_engine(struct emu_real *r)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all); /* the program's signals are for the program's threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&r->engine, NULL, emu_real_engine, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    r->engine_runs = rc == 0;
    return -rc;
}

/* ---- life -------------------------------------------------------------------------------------------------------------------- */

static void emu_real_free(struct emu_real *r)
{
    if (!r)
        return;
    emu_meet_leave(&r->meet);
    emu_fabric_fini(&r->fabric);
    emu_store_fini(&r->fabric);
    emu_heap_fini(&r->heap);
    free(r->port_seen);
    free(r->counted);
    free(r);
}

/** At the process's end. Its contexts stay as they are: other threads may still be in them. */
__attribute__((destructor)) static void emu_real_exit(void)
{
    struct emu_real *r = __atomic_load_n(&emu_real_process, __ATOMIC_ACQUIRE);

    if (!r || !r->engine_runs)
        return;
    pthread_mutex_lock(&r->lock);
    emu_carry_count(r);
    r->stop = true;
    pthread_mutex_unlock(&r->lock);
    emu_meet_ring(&r->meet, r->meet.self, true);
    pthread_join(r->engine, NULL);
    r->engine_runs = false;
    emu_stats_tell(r);
    pthread_mutex_lock(&r->lock);
    emu_meet_depart(&r->meet);
    pthread_mutex_unlock(&r->lock);
}

/** A child has neither the engine nor the parent's place in the fabric; it joins for itself when it calls verbs. */
static void emu_real_forked(void)
{
    struct emu_real *r = emu_real_process;

    if (r)
        emu_meet_forget(&r->meet);
    emu_real_process = NULL;
    emu_gpu_forked();
    pthread_mutex_init(&emu_real_join_lock, NULL);
}

static int emu_real_host(const struct emu_spec *s, int *host, char *why, size_t why_len)
{
    const char *text = getenv("BRAID_EMU_HOST");
    char *end = NULL;
    long n = 0;

    if (text && *text == 'h')
        n = strtol(text + 1, &end, 10);
    if (text && (!end || end == text + 1 || *end || n < 0 || n >= s->nodes)) {
        snprintf(why, why_len, "emu: seen BRAID_EMU_HOST=%.40s, expected h0 to h%d", text, s->nodes - 1);
        return -EINVAL;
    }
    *host = (int)n;
    return 0;
}

static int emu_real_build(struct emu_real *r, const struct emu_spec *spec, uint64_t seed)
{
    pthread_mutex_init(&r->lock, NULL);
    r->meet.fd = -1;
    r->fabric.spec = *spec;
    r->fabric.rng.state = seed;
    emu_store_init(&r->fabric, seed);
    r->fabric.clock = &emu_real_clock;
    r->fabric.wire = &emu_carry_wire;
    r->now = r->tick = emu_meet_time();
    emu_stats_begin(r);
    if (emu_fabric_init(&r->fabric))
        return -ENOMEM;
    r->port_seen = calloc((size_t)emu_lag_wires(spec), sizeof(*r->port_seen));
    r->counted = calloc((size_t)emu_lag_wires(spec), sizeof(*r->counted));
    return r->port_seen && r->counted ? 0 : -ENOMEM;
}

static int emu_real_join(struct emu_real *r, const char *text, char *why, size_t why_len)
{
    struct emu_spec spec;
    uint64_t seed;
    int host, rc = emu_spec_parse(text, &spec, why, why_len);

    if (rc == 0)
        rc = emu_real_host(&spec, &host, why, why_len);
    if (rc)
        return rc;
    snprintf(why, why_len, "emu: no memory or random numbers for fabric \"%.200s\"", text);
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        return -EIO;
    rc = emu_real_build(r, &spec, seed);
    if (rc == 0)
        rc = emu_meet_join(&r->meet, getenv("BRAID_EMU_NAME"), &spec, host, why, why_len);
    if (rc)
        return rc;
    r->owner = (struct emu_owner){.fabric = &r->fabric, .index = host * spec.gpus, .host = host, .last_call = ""};
    r->fabric.qpn_mask = EMU_MEET_MEMBERS - 1;
    r->fabric.qpn_tag = (uint32_t)r->meet.self;
    emu_carry_schedule(r);
    snprintf(why, why_len, "emu: cannot start a thread");
    return emu_real_start_engine(r);
}

/** Joins the fabric that the environment names; says once why it cannot. */
static void emu_real_begin(const char *text)
{
    static bool failed, told_fork;
    struct emu_real *r;
    char why[512] = "";
    int rc;

    if (failed)
        return;
    if (!told_fork && pthread_atfork(NULL, NULL, emu_real_forked) == 0)
        told_fork = true;
    r = calloc(1, sizeof(*r));
    rc = r ? emu_real_join(r, text, why, sizeof(why)) : -ENOMEM;
    if (rc) {
        fprintf(stderr, "%s (%s)\n", why[0] ? why : "emu: BRAID_EMU cannot be used", strerror(-rc));
        emu_real_free(r);
        failed = true;
        return;
    }
    __atomic_store_n(&emu_real_process, r, __ATOMIC_RELEASE);
}

struct emu_owner *emu_real_self(void)
{
    struct emu_real *r = __atomic_load_n(&emu_real_process, __ATOMIC_ACQUIRE);
    const char *text;

    if (r)
        return &r->owner;
    text = getenv("BRAID_EMU");
    if (!text)
        return NULL;
    pthread_mutex_lock(&emu_real_join_lock);
    if (!emu_real_process)
        emu_real_begin(text);
    r = emu_real_process;
    pthread_mutex_unlock(&emu_real_join_lock);
    return r ? &r->owner : NULL;
}
