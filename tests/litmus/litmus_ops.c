/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_ops.c - the ops that tests issue: each waits while a queue is full, and writes into the image what it will do.
 * An op is issued once it is accepted, so nobody can see its effect before the image shows it. Called by tests; next: braid.h.
 */
#include "litmus.h"

#include <errno.h>
#include <string.h>

enum { LITMUS_NAP_NS = 8000 /* longest sleep in which nothing is looked at */ };

enum litmus_what {
    LITMUS_PUT,
    LITMUS_P,
    LITMUS_SIGNAL_ADD,
    LITMUS_SIGNAL_SET,
    LITMUS_PUT_SIGNAL_ADD,
    LITMUS_PUT_SIGNAL_SET,
    LITMUS_ATOMIC,
    LITMUS_GET
};

/** An op as it is given to libbraid, perhaps several times. */
struct litmus_issue {
    enum litmus_what what;
    int ch;
    struct litmus_span dst, src;
    uint64_t value;
    struct braid_part part[LITMUS_PARTS];
    unsigned n_parts;
    struct braid_atomic atomic;
    struct litmus_op *op;
};

uint32_t litmus_below(struct litmus_pe *p, uint32_t n)
{
    return (uint32_t)(litmus_random(&p->random) % n);
}

int litmus_other(const struct litmus_pe *p, int k)
{
    int n = p->run->c->test->pes;

    return n == 1 ? p->pe : (p->pe + 1 + k % (n - 1)) % n;
}

int litmus_any_other(struct litmus_pe *p)
{
    return litmus_other(p, (int)litmus_below(p, LITMUS_PES));
}

struct litmus_span litmus_fresh(struct litmus_pe *p, int pe, uint32_t len, uint32_t align)
{
    uint32_t *used = &p->run->used[pe], old = __atomic_load_n(used, __ATOMIC_RELAXED), at;

    do {
        at = (old + align - 1) / align * align;
        if (at + len > LITMUS_MEM)
            return (struct litmus_span){pe, at, 0};
    } while (!__atomic_compare_exchange_n(used, &old, at + len, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return (struct litmus_span){pe, at, len};
}

struct litmus_span litmus_part(struct litmus_span s, uint32_t at, uint32_t len)
{
    return (struct litmus_span){s.pe, s.at + at, len};
}

uint32_t litmus_bulk_len(struct litmus_pe *p)
{
    uint32_t max = p->run->shape.len_max, top = 257 + litmus_below(p, max - 257);

    return 257 + litmus_below(p, top - 256);
}

static struct braid_remote litmus_remote(struct litmus_pe *p, struct litmus_span s)
{
    return (struct braid_remote){p->remote[s.pe] + s.at, &p->key[s.pe]};
}

static struct braid_local litmus_local(struct litmus_pe *p, struct litmus_span s)
{
    return (struct braid_local){p->bytes + s.at, p->mem};
}

static unsigned char *litmus_image(struct litmus_pe *p, struct litmus_span s)
{
    return p->run->image[s.pe] + s.at;
}

static struct litmus_op *litmus_op_new(struct litmus_pe *p)
{
    if (p->n_ops == LITMUS_OPS)
        return NULL;
    return &p->op[p->n_ops++];
}

/** Fresh bytes of the own PE with a pattern of their own, never 0, different from that of any op nearby. */
static struct litmus_span litmus_source(struct litmus_pe *p, struct litmus_span dst)
{
    struct litmus_span s = litmus_fresh(p, p->pe, dst.len, 1 + (uint32_t)(p->n_ops % 3 == 0) * 7);

    for (uint32_t i = 0; i < s.len; i++)
        p->bytes[s.at + i] = (unsigned char)(1 + ((dst.at + i) * 131 + ((dst.at + i) >> 8) * 17 + p->n_ops * 101 +
                                                  (unsigned)p->pe * 37) %
                                                     255);
    memcpy(litmus_image(p, s), p->bytes + s.at, s.len);
    return s;
}

static int litmus_try(struct litmus_pe *p, const struct litmus_issue *i)
{
    struct braid_channel *ch = p->ch[i->ch];
    struct braid_remote to = litmus_remote(p, i->dst);
    struct braid_done *done = &i->op->done;
    int pe = i->dst.pe;

    switch (i->what) {
    case LITMUS_PUT:
        return braid_put(ch, pe, to, litmus_local(p, i->src), i->src.len, done);
    case LITMUS_P:
        return braid_p(ch, pe, to, i->value, i->dst.len, done);
    case LITMUS_SIGNAL_ADD:
        return braid_signal_add(ch, pe, to, i->value, done);
    case LITMUS_SIGNAL_SET:
        return braid_signal_set(ch, pe, to, i->value, done);
    case LITMUS_PUT_SIGNAL_ADD:
        return braid_put_signal(ch, pe, i->part, i->n_parts, to, BRAID_SIGNAL_ADD, i->value, done);
    case LITMUS_PUT_SIGNAL_SET:
        return braid_put_signal(ch, pe, i->part, i->n_parts, to, BRAID_SIGNAL_SET, i->value, done);
    case LITMUS_ATOMIC:
        return braid_atomic(ch, pe, to, &i->atomic, i->op->check_old || i->op->ticket ? &i->op->old : NULL, done);
    case LITMUS_GET:
        return braid_get(ch, pe, litmus_local(p, i->src), to, i->src.len, done);
    }
    return -EINVAL;
}

/** Issues an op; progress while a queue is full. The image must show it already. */
static int litmus_issue(struct litmus_pe *p, const struct litmus_issue *i)
{
    static const char *const names[] = {
        "put", "p", "signal add", "signal set", "put with signal add", "put with signal set", "atomic", "get"};
    int rc;

    litmus_note(p, "%s of %u bytes at %u of PE %d, channel %d, value %llu", names[i->what], i->dst.len, i->dst.at,
                i->dst.pe, i->ch, (unsigned long long)(i->what == LITMUS_ATOMIC ? i->atomic.operand : i->value));
    while ((rc = litmus_try(p, i)) == -EAGAIN) {
        rc = litmus_step(p);
        if (rc)
            return rc;
    }
    return rc ? litmus_fail(p, rc, names[i->what]) : 0;
}

int litmus_put(struct litmus_pe *p, int ch, struct litmus_span dst)
{
    struct litmus_issue i = {.what = LITMUS_PUT, .ch = ch, .dst = dst, .op = litmus_op_new(p)};

    if (!i.op || !dst.len)
        return -ENOSPC;
    i.src = litmus_source(p, dst);
    if (!i.src.len)
        return -ENOSPC;
    i.op->src = i.src;
    memcpy(litmus_image(p, dst), p->bytes + i.src.at, dst.len);
    return litmus_issue(p, &i);
}

/** A value no byte of which is 0. */
static uint64_t litmus_value(struct litmus_pe *p)
{
    return litmus_random(&p->random) | 0x0101010101010101u;
}

int litmus_p(struct litmus_pe *p, int ch, struct litmus_span dst)
{
    struct litmus_issue i = {.what = LITMUS_P, .ch = ch, .dst = dst, .value = litmus_value(p), .op = litmus_op_new(p)};

    if (!i.op || !dst.len)
        return -ENOSPC;
    memcpy(litmus_image(p, dst), &i.value, dst.len); /* as all of this: on a little-endian machine */
    return litmus_issue(p, &i);
}

static uint64_t litmus_word(struct litmus_pe *p, struct litmus_span word)
{
    uint64_t v = 0;

    memcpy(&v, litmus_image(p, word), word.len);
    return v;
}

int litmus_add(struct litmus_pe *p, int ch, struct litmus_span word, uint64_t value)
{
    struct litmus_issue i = {.what = LITMUS_SIGNAL_ADD, .ch = ch, .dst = word, .value = value, .op = litmus_op_new(p)};

    if (!i.op || !word.len)
        return -ENOSPC;
    __atomic_fetch_add((uint64_t *)(void *)litmus_image(p, word), value, __ATOMIC_SEQ_CST);
    return litmus_issue(p, &i);
}

int litmus_set(struct litmus_pe *p, int ch, struct litmus_span word, uint64_t value)
{
    struct litmus_issue i = {.what = LITMUS_SIGNAL_SET, .ch = ch, .dst = word, .value = value, .op = litmus_op_new(p)};

    if (!i.op || !word.len)
        return -ENOSPC;
    memcpy(litmus_image(p, word), &value, sizeof(value));
    return litmus_issue(p, &i);
}

int litmus_put_signal(struct litmus_pe *p, int ch, const struct litmus_span *parts, unsigned n, struct litmus_span word)
{
    struct litmus_issue i = {.what = litmus_below(p, 2) ? LITMUS_PUT_SIGNAL_ADD : LITMUS_PUT_SIGNAL_SET,
                             .ch = ch,
                             .dst = word,
                             .value = litmus_value(p),
                             .n_parts = n,
                             .op = litmus_op_new(p)};

    if (!i.op || !word.len || n > LITMUS_PARTS)
        return -ENOSPC;
    for (unsigned k = 0; k < n; k++) {
        struct litmus_span src = litmus_source(p, parts[k]);

        if (!src.len)
            return -ENOSPC;
        i.part[k] = (struct braid_part){litmus_remote(p, parts[k]), litmus_local(p, src), src.len};
        memcpy(litmus_image(p, parts[k]), p->bytes + src.at, src.len);
    }
    memcpy(litmus_image(p, word), &i.value, sizeof(i.value));
    return litmus_issue(p, &i);
}

/** What an atomic makes of a word. */
static uint64_t litmus_result(enum braid_atomic_op op, uint64_t old, uint64_t operand)
{
    switch (op) {
    case BRAID_ATOMIC_ADD:
    case BRAID_ATOMIC_FETCH_ADD:
        return old + operand;
    case BRAID_ATOMIC_AND:
    case BRAID_ATOMIC_FETCH_AND:
        return old & operand;
    case BRAID_ATOMIC_OR:
    case BRAID_ATOMIC_FETCH_OR:
        return old | operand;
    case BRAID_ATOMIC_XOR:
    case BRAID_ATOMIC_FETCH_XOR:
        return old ^ operand;
    case BRAID_ATOMIC_FETCH:
        return old;
    default:
        return operand; /* set, swap, and a compare-and-swap that hits */
    }
}

static bool litmus_fetches(enum braid_atomic_op op)
{
    return op == BRAID_ATOMIC_FETCH || op == BRAID_ATOMIC_FETCH_ADD || op == BRAID_ATOMIC_COMPARE_SWAP ||
           op == BRAID_ATOMIC_SWAP || op == BRAID_ATOMIC_FETCH_AND || op == BRAID_ATOMIC_FETCH_OR ||
           op == BRAID_ATOMIC_FETCH_XOR;
}

int litmus_atomic_odd(struct litmus_pe *p, int ch, struct litmus_span word)
{
    static const enum braid_atomic_op odd[] = {
        BRAID_ATOMIC_SET, BRAID_ATOMIC_SWAP,      BRAID_ATOMIC_AND,         BRAID_ATOMIC_OR,
        BRAID_ATOMIC_XOR, BRAID_ATOMIC_FETCH_AND, BRAID_ATOMIC_FETCH_OR,    BRAID_ATOMIC_FETCH_XOR,
        BRAID_ATOMIC_ADD, BRAID_ATOMIC_FETCH_ADD, BRAID_ATOMIC_COMPARE_SWAP}; /* the last three only of 4 bytes */
    uint64_t mask = word.len == 4 ? UINT32_MAX : UINT64_MAX, old = word.len ? litmus_word(p, word) : 0, next;
    struct litmus_issue i = {.what = LITMUS_ATOMIC, .ch = ch, .dst = word, .op = litmus_op_new(p)};

    if (!i.op || !word.len)
        return -ENOSPC;
    i.atomic.op = odd[litmus_below(p, word.len == 4 ? 11 : 8)];
    i.atomic.bytes = word.len;
    i.atomic.operand = litmus_value(p) & mask;
    i.atomic.compare = old;
    next = litmus_result(i.atomic.op, old, i.atomic.operand) & mask;
    if (next == 0) {
        i.atomic.op = BRAID_ATOMIC_FETCH_OR;
        next = old | i.atomic.operand;
    }
    i.op->check_old = litmus_fetches(i.atomic.op);
    i.op->old_expected = old;
    memcpy(litmus_image(p, word), &next, word.len);
    return litmus_issue(p, &i);
}

int litmus_add_small(struct litmus_pe *p, int ch, struct litmus_span word, uint32_t value)
{
    struct litmus_issue i = {.what = LITMUS_ATOMIC, .ch = ch, .dst = word, .op = litmus_op_new(p)};

    if (!i.op || !word.len)
        return -ENOSPC;
    i.atomic = (struct braid_atomic){.op = BRAID_ATOMIC_ADD, .bytes = 4, .operand = value};
    __atomic_fetch_add((uint32_t *)(void *)litmus_image(p, word), value, __ATOMIC_SEQ_CST);
    return litmus_issue(p, &i);
}

int litmus_xor_high(struct litmus_pe *p, int ch, struct litmus_span word, uint32_t value)
{
    struct litmus_issue i = {.what = LITMUS_ATOMIC, .ch = ch, .dst = word, .op = litmus_op_new(p)};
    uint64_t high = (uint64_t)value << 32;

    if (!i.op || !word.len)
        return -ENOSPC;
    i.atomic = (struct braid_atomic){.op = BRAID_ATOMIC_XOR, .bytes = 8, .operand = high};
    __atomic_fetch_xor((uint64_t *)(void *)litmus_image(p, word), high, __ATOMIC_SEQ_CST);
    return litmus_issue(p, &i);
}

int litmus_fetch_add(struct litmus_pe *p, int ch, struct litmus_span word)
{
    struct litmus_issue i = {.what = LITMUS_ATOMIC, .ch = ch, .dst = word, .op = litmus_op_new(p)};

    if (!i.op || !word.len)
        return -ENOSPC;
    i.atomic = (struct braid_atomic){.op = BRAID_ATOMIC_FETCH_ADD, .bytes = 8, .operand = 1};
    i.op->ticket = true;
    __atomic_fetch_add((uint64_t *)(void *)litmus_image(p, word), 1, __ATOMIC_SEQ_CST);
    return litmus_issue(p, &i);
}

int litmus_get_compare(struct litmus_pe *p, int ch, const char *name, struct litmus_span span)
{
    struct litmus_issue i = {.what = LITMUS_GET, .ch = ch, .dst = span, .op = litmus_op_new(p)};
    int rc;

    i.src = litmus_fresh(p, p->pe, span.len, 1);
    if (!i.op || !i.src.len)
        return -ENOSPC;
    rc = litmus_issue(p, &i);
    while (rc == 0 && i.op->done.ok + i.op->done.failed == 0)
        rc = litmus_step(p);
    if (rc == 0) {
        litmus_compare(p, name, span, i.src.at);
        memcpy(litmus_image(p, i.src), p->bytes + i.src.at, i.src.len);
    }
    return rc;
}

int litmus_fence(struct litmus_pe *p, int ch, int pe)
{
    int rc = braid_fence(p->ch[ch], litmus_below(p, 2) ? pe : BRAID_ALL_PES);

    litmus_note(p, "fence to PE %d, channel %d", pe, ch);
    return rc ? litmus_fail(p, rc, "fence") : 0;
}

int litmus_quiet(struct litmus_pe *p, int ch, int pe)
{
    int rc;

    litmus_note(p, "quiet of PE %d, channel %d begins", pe, ch);
    rc = braid_quiet(p->ch[ch], litmus_below(p, 2) ? pe : BRAID_ALL_PES);
    litmus_note(p, "quiet of PE %d, channel %d ends: %d", pe, ch, rc);
    if (p->run->failed)
        return p->run->failed;
    return rc ? litmus_fail(p, rc, "quiet") : 0;
}

/** The source of a put that has ended may be used for something else. */
static void litmus_scribble(struct litmus_pe *p)
{
    if (!p->run->shape.scribble)
        return;
    for (unsigned k = p->first_alive; k < p->n_ops; k++) {
        struct litmus_op *op = &p->op[k];

        if (op->done.ok && !op->scribbled) {
            memset(p->bytes + op->src.at, 0xee, op->src.len);
            memset(litmus_image(p, op->src), 0xee, op->src.len);
            op->scribbled = true;
        }
        if (op->scribbled && k == p->first_alive)
            p->first_alive++;
    }
}

int litmus_step(struct litmus_pe *p)
{
    int moved = 0, rc = 0;

    p->run->emu->charge(5); /* this program does more than poll: it must not be put to sleep in a poll */
    for (int c = 0; c < LITMUS_CHANNELS && p->ch[c]; c++) {
        rc = braid_progress(p->ch[c]);
        if (rc < 0)
            return litmus_fail(p, rc, "progress");
        moved += rc;
    }
    litmus_scribble(p);
    litmus_look(p);
    rc = moved ? 0 : p->run->emu->wait(p->run->emu->now() + LITMUS_NAP_NS);
    litmus_look(p);
    return p->run->failed ? p->run->failed : rc;
}

/** Looks, but leaves libbraid alone. */
static int litmus_absent(struct litmus_pe *p, uint64_t ns)
{
    uint64_t until = p->run->emu->now() + ns;
    int rc = 0;

    while (rc == 0 && p->run->emu->now() < until) {
        rc = p->run->emu->wait(until);
        litmus_look(p);
    }
    return rc;
}

int litmus_gap(struct litmus_pe *p)
{
    uint32_t what = litmus_below(p, 8);
    uint64_t until = p->run->emu->now() + litmus_below(p, p->run->shape.gap_ns + 1);
    int rc = 0;

    if (p->run->shape.absent_ns && what == 7)
        return litmus_absent(p, litmus_below(p, p->run->shape.absent_ns));
    if (what < 4)
        return 0;
    do
        rc = litmus_step(p);
    while (rc == 0 && what > 5 && p->run->emu->now() < until);
    return rc;
}

/** Whether this PE waits for an op of its own. */
static bool litmus_busy(struct litmus_pe *p)
{
    while (p->first_open < p->n_ops && p->op[p->first_open].done.ok + p->op[p->first_open].done.failed > 0)
        p->first_open++;
    return p->first_open < p->n_ops;
}

int litmus_idle(struct litmus_pe *p)
{
    const struct emu_sim_api *emu = p->run->emu;

    if (p->run->shape.absent_ns && litmus_below(p, 4) == 0)
        return litmus_absent(p, litmus_below(p, p->run->shape.absent_ns));
    /* Most of what wakes an observer is for its eyes; a consumer that is busy makes progress now and then. */
    if (litmus_busy(p) || litmus_below(p, 4) == 0)
        return litmus_step(p);
    emu->wait(emu->now() + LITMUS_NAP_NS);
    litmus_look(p);
    return p->run->failed;
}
