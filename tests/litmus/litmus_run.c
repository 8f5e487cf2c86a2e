/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_run.c - one simulation: opens and connects each PE as the shape says, lets writers issue and observers look, and
 * gives the verdict. Nothing outlives a simulation. Called by the drivers; next: the tests' rounds, litmus_watch.c.
 */
#include "litmus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { LITMUS_PAGE = 4096, LITMUS_PORTS_TEXT = 512, LITMUS_LIMIT_MS = 1000 };
enum { LITMUS_PATIENCE_NS = 50000000 /* longer than any repeat of a lost packet takes */ };
#define LITMUS_PATIENCE_REAL_NS 30000000000u /* the same where a process may have to wait for a CPU */

void litmus_note(const struct litmus_pe *p, const char *fmt, ...)
{
    va_list ap;

    if (!p->run->c->verbose)
        return;
    printf("# %10.3f us PE %d ", (double)p->run->emu->now() / 1e3, p->pe);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

int litmus_fail(struct litmus_pe *p, int rc, const char *what)
{
    struct litmus_run *r = p->run;

    int none = 0;

    if (__atomic_compare_exchange_n(&r->failed, &none, rc, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        snprintf(r->verdict.text, sizeof(r->verdict.text), "PE %d at %" PRIu64 " ns, %s: %d (%s); last log: %s", p->pe,
                 r->emu->now(), what, rc, strerror(-rc), p->last_log);
    }
    litmus_note(p, "FAILED %s: %d", what, rc);
    return rc;
}

static uint64_t litmus_now(void *arg)
{
    struct litmus_pe *p = arg;

    return p->run->emu->now();
}

static int litmus_wait(void *arg, uint64_t deadline)
{
    struct litmus_pe *p = arg;
    int rc = p->run->emu->wait(deadline);

    litmus_look(p);
    return p->run->failed ? -ECANCELED : rc;
}

static void litmus_log(void *arg, enum braid_log_level level, const char *line)
{
    struct litmus_pe *p = arg;

    (void)level;
    snprintf(p->last_log, sizeof(p->last_log), "%s", line);
    litmus_note(p, "log: %s", line);
}

static int litmus_alltoall(void *arg, const void *send, void *recv, size_t bytes_each)
{
    struct litmus_pe *p = arg;

    return p->run->emu->alltoall(send, recv, bytes_each);
}

/** Keeps the first n words of a list. */
static void litmus_cut(char *list, int n)
{
    for (char *at = list; *at; at++) {
        if (*at == ',' && --n == 0)
            *at = '\0';
        if (n == 0)
            return;
    }
}

/** The first n of a PE's ports. */
static int litmus_ports(struct litmus_pe *p, int n, char *out, size_t len)
{
    int rc = p->run->emu->pe_ports(p->run->sim, p->pe, out, len);

    if (rc == 0)
        litmus_cut(out, n);
    return rc;
}

static int litmus_open(struct litmus_pe *p)
{
    struct litmus_shape *s = &p->run->shape;
    char ports[LITMUS_PORTS_TEXT + 8] = "ports=", planes[64] = "planes=", seed[64];
    const char *settings[LITMUS_SETTINGS + 4];
    struct braid_options o = BRAID_OPTIONS_INIT;
    int n = 0, rc = litmus_ports(p, s->rails[p->pe], ports + 6, LITMUS_PORTS_TEXT);

    rc = rc ? rc : p->run->emu->pe_planes(p->run->sim, p->pe, planes + 7, sizeof(planes) - 7);
    if (rc)
        return rc;
    litmus_cut(planes + 7, s->rails[p->pe]);
    snprintf(seed, sizeof(seed), "seed=%" PRIu64, p->run->c->seed * 16 + (uint64_t)p->pe + 1);
    settings[n++] = ports;
    settings[n++] = seed;
    if (s->know_planes)
        settings[n++] = planes;
    for (int i = 0; i < s->n_settings; i++)
        settings[n++] = s->setting[i];
    settings[n] = NULL;
    o.settings = settings;
    o.now = litmus_now;
    o.wait = litmus_wait;
    o.clock_arg = p;
    o.log = litmus_log;
    o.log_arg = p;
    return braid_open(&o, &p->b);
}

/** Connects, registers and exchanges keys. */
static int litmus_connect(struct litmus_pe *p)
{
    const struct emu_sim_api *emu = p->run->emu;
    int n = p->run->c->test->pes;
    struct braid_peers peers = {sizeof(peers), p->pe, n, litmus_alltoall, p};
    struct braid_mem_options mo = {.size = sizeof(mo), .remote_addr = (uintptr_t)p->bytes + emu->shift(p->pe)};
    uint64_t addr[LITMUS_PES];
    struct braid_key key[LITMUS_PES];
    int rc = braid_connect(p->b, &peers);

    rc = rc ? rc : braid_mem_reg(p->b, p->bytes, LITMUS_MEM, &mo, &p->mem);
    rc = rc ? rc : braid_mem_key(p->mem, &key[0]);
    for (int i = 0; rc == 0 && i < n; i++) {
        addr[i] = mo.remote_addr;
        key[i] = key[0];
    }
    rc = rc ? rc : emu->alltoall(addr, p->remote, sizeof(addr[0]));
    rc = rc ? rc : emu->alltoall(key, p->key, sizeof(key[0]));
    for (int i = 0; rc == 0 && i < n; i++)
        rc = braid_key_check(p->b, i, &p->key[i]);
    for (int c = 0; rc == 0 && c < LITMUS_CHANNELS; c++)
        p->ch[c] = braid_channel_at(p->b, c);
    return rc ? rc : emu->barrier();
}

/** A round must not run out of anything half-way, or an observer would wait for what never comes. */
static bool litmus_room(const struct litmus_pe *p)
{
    const struct litmus_run *r = p->run;
    const struct litmus_made *made = &r->made[p->pe];
    bool room =
        p->n_ops + 80 <= LITMUS_OPS && made->n_watches + 8 <= LITMUS_WATCHES && made->n_spans + 100 <= LITMUS_SPANS;

    for (int i = 0; room && i < r->c->test->pes; i++)
        room = r->used[i] + 6 * r->shape.len_max + 8192 <= LITMUS_MEM;
    return room;
}

static int litmus_write(struct litmus_pe *p)
{
    int rc = 0;

    for (int i = 0; i < p->run->shape.rounds && rc == 0 && litmus_room(p); i++) {
        rc = p->run->c->test->round(p);
        rc = rc ? rc : litmus_gap(p);
        rc = rc ? rc : litmus_act(p);
    }
    for (int c = 0; rc == 0 && c < LITMUS_CHANNELS && p->ch[c]; c++)
        rc = litmus_quiet(p, c, BRAID_ALL_PES);
    return rc;
}

static int litmus_work(struct litmus_pe *p)
{
    struct litmus_run *r = p->run;
    int rc = 0;

    if (p->pe == 0 || r->shape.all_write)
        rc = litmus_write(p);
    __atomic_store_n(&r->moved_ns, r->emu->now(), __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&r->busy, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&r->open, 1, __ATOMIC_SEQ_CST);
    while (rc == 0 && (__atomic_load_n(&r->open, __ATOMIC_SEQ_CST) > 0 || p->n_act)) {
        rc = litmus_act(p);
        rc = rc ? rc : litmus_idle(p);
        litmus_give_up(p);
    }
    rc = rc ? rc : r->emu->barrier();
    if (rc == 0 && !r->failed)
        litmus_final(p);
    return rc ? rc : r->emu->barrier();
}

static int litmus_main(void *arg, int pe)
{
    struct litmus_run *r = arg;
    struct litmus_pe *p = r->pe[pe];
    int rc = litmus_open(p);

    rc = rc ? rc : litmus_connect(p);
    rc = rc ? rc : litmus_work(p);
    if (rc && !r->failed)
        litmus_fail(p, rc, p->ch[0] ? "run" : "open and connect");
    if (p->mem)
        braid_mem_dereg(p->mem);
    braid_close(p->b);
    return rc;
}

static size_t litmus_page_up(size_t n)
{
    return (n + LITMUS_PAGE - 1) / LITMUS_PAGE * LITMUS_PAGE;
}

/** Everything in one piece that processes share, where PEs are processes. */
static struct litmus_run *litmus_new(const struct emu_sim_api *emu, const struct litmus_case *c)
{
    size_t each = litmus_page_up(sizeof(struct litmus_pe)) + 2 * litmus_page_up(LITMUS_MEM);
    size_t bytes = litmus_page_up(sizeof(struct litmus_run)) + each * (size_t)c->test->pes;
    struct litmus_run *r = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *at;

    if (r == MAP_FAILED)
        return NULL;
    at = (char *)r + litmus_page_up(sizeof(*r));
    for (int i = 0; i < c->test->pes; i++, at += each) {
        struct litmus_pe *p = (struct litmus_pe *)(void *)at;

        r->pe[i] = p;
        p->run = r;
        p->pe = i;
        p->random = c->seed * 0x9e3779b97f4a7c15u + (uint64_t)i * 0x2545f4914f6cdd1du;
        /* Whole pages: cuts follow addresses, and a run must not depend on where memory lies. */
        p->bytes = (unsigned char *)at + litmus_page_up(sizeof(*p));
        r->image[i] = p->bytes + litmus_page_up(LITMUS_MEM);
    }
    r->bytes = bytes;
    r->emu = emu;
    r->c = c;
    r->open = r->busy = c->test->pes;
    r->patience_ns = c->real ? LITMUS_PATIENCE_REAL_NS : LITMUS_PATIENCE_NS;
    litmus_shape_draw(c, &r->shape);
    return r;
}

static void litmus_describe(const struct litmus_run *r)
{
    if (!r->c->verbose)
        return;
    printf("# %s, %s, %d ports, seed %" PRIu64 ": fabric %s\n#", r->c->test->name, litmus_mode_name(r->c->mode),
           r->c->ports, r->c->seed, r->shape.fabric);
    for (int i = 0; i < r->shape.n_settings; i++)
        printf(" %s", r->shape.setting[i]);
    printf("\n");
}

void litmus_run_one(const struct emu_sim_api *emu, const struct litmus_case *c, struct litmus_verdict *v)
{
    struct litmus_run *r;
    char why[LITMUS_TEXT] = "out of memory";

    memset(v, 0, sizeof(*v));
    r = litmus_new(emu, c);
    v->rc = r ? 0 : -ENOMEM;
    if (r) {
        struct emu_sim_options o = {sizeof(o), r->shape.fabric, c->seed, EMU_SIM_COROUTINES,
                                    LITMUS_LIMIT_MS * UINT64_C(1000000)};

        litmus_describe(r);
        v->rc = emu->open(&o, &r->sim, why, sizeof(why));
    }
    if (r && v->rc == 0) {
        v->rc = emu->run(r->sim, litmus_main, r, why, sizeof(why));
        v->end_ns = emu->end_time(r->sim);
        v->trace = emu->trace_hash(r->sim);
        emu->close(r->sim);
        if (r->failed && v->rc == 0)
            v->rc = r->failed;
        v->violations = r->verdict.violations;
        v->bytes = r->verdict.bytes;
        v->conclusions = r->verdict.conclusions;
        memcpy(v->text, r->verdict.text, sizeof(v->text));
    }
    if (v->rc && v->text[0] == '\0')
        snprintf(v->text, sizeof(v->text), "%s", why);
    if (v->rc && c->verbose)
        printf("# run: %d, %s\n", v->rc, why);
    if (r)
        munmap(r, r->bytes);
}
