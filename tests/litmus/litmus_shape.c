/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_shape.c - what a simulation looks like, from its seed alone: fabric, libbraid's options, who opens how many ports,
 * how fast writers write. Sizes are small and thresholds low, so that little data makes many pieces. Called by
 * litmus_run.c; next: the emulator's FABRIC SPEC, libbraid's table of options.
 */
#include "given.h"
#include "litmus.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** A case's own stream of random bits, so that tests with equal seeds differ. */
struct litmus_draw {
    uint64_t state;
};

uint64_t litmus_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static unsigned litmus_pick(struct litmus_draw *d, unsigned n)
{
    return (unsigned)(litmus_random(&d->state) % n);
}

static const char *litmus_word_of(struct litmus_draw *d, const char *const *words, unsigned n)
{
    return words[litmus_pick(d, n)];
}

__attribute__((format(printf, 2, 3))) static void litmus_fabric(struct litmus_shape *s, const char *fmt, ...)
{
    size_t used = strlen(s->fabric);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->fabric + used, sizeof(s->fabric) - used, fmt, ap);
    va_end(ap);
}

__attribute__((format(printf, 2, 3))) static void litmus_setting(struct litmus_shape *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->setting[s->n_settings++], sizeof(s->setting[0]), fmt, ap);
    va_end(ap);
}

/** Each PE lacks another plane, so that some cannot reach the home rail of another; any two still share one. */
static void litmus_unreachable(const struct litmus_case *c, struct litmus_draw *d, struct litmus_shape *s)
{
    unsigned shift = litmus_pick(d, 8);

    litmus_fabric(s, ",planes=%d,without=", c->ports);
    for (int pe = 0; pe < c->test->pes; pe++)
        litmus_fabric(s, "%sh%d/mlx5_%u:1", pe ? "+" : "", pe, ((unsigned)pe + shift) % (unsigned)c->ports);
}

/**
 * The unkind things. What a kind of run leaves out is what its mode has no answer to. Placement out of order comes in three
 * shapes: not at all, so that the keys alone keep a lane's order; said by the device; and known to nobody but the user.
 */
static void litmus_unkind(const struct litmus_case *c, struct litmus_draw *d, struct litmus_shape *s)
{
    static const char *const placements[] = {"", "+ooo", "+ooo-silent"};
    unsigned placement = litmus_pick(d, 3);
    bool says = litmus_pick(d, 2);

    if (c->kind == LITMUS_SILENT)
        placement = 2;
    else if (c->placement)
        placement = c->placement - 1;
    litmus_fabric(s, ",unkind=relaxed+atomics+slowctl+rdstall%s", placements[placement]);
    if (c->mode != LITMUS_DRAIN || c->kind == LITMUS_ACKVIS)
        litmus_fabric(s, "+ackvis");
    says = (says || placement == 2) && placement != 0 && c->kind != LITMUS_SILENT;
    litmus_setting(s, "placement=%s", says ? "unordered" : "auto");
}

/** One rate, or one for each port. */
static void litmus_rates(const struct litmus_case *c, struct litmus_draw *d, struct litmus_shape *s)
{
    static const char *const rates[] = {"200G", "200G", "400G", "100G", "50G"};

    litmus_fabric(s, ",rate=%s", litmus_word_of(d, rates, 5));
    if (litmus_pick(d, 2))
        return;
    for (int i = 1; i < c->ports; i++)
        litmus_fabric(s, ":%s", litmus_word_of(d, rates, 5));
}

static void litmus_wire(const struct litmus_case *c, struct litmus_draw *d, struct litmus_shape *s)
{
    static const char *const mtus[] = {"256", "512", "1024", "2048", "4096"};
    static const char *const losses[] = {"0.001", "0.003", "0.01"};
    bool planes = false;

    litmus_fabric(s, "nodes=%d,ports=%d,latency=%uns,jitter=%uns,mtu=%s", c->test->pes, c->ports,
                  300 + litmus_pick(d, 4000), litmus_pick(d, 3) ? litmus_pick(d, 6000) : 0, litmus_word_of(d, mtus, 5));
    litmus_rates(c, d, s);
    if (litmus_pick(d, 2))
        litmus_fabric(s, ",cpu=off");
    if (litmus_pick(d, 8) == 0)
        litmus_fabric(s, ",loss=%s", litmus_word_of(d, losses, 3));
    if (c->test->pes >= 3 && c->ports >= 3 && litmus_pick(d, 8) < (c->test->need & LITMUS_NEED_UNREACHABLE ? 6 : 2))
        litmus_unreachable(c, d, s);
    else
        planes = c->ports > 1 && litmus_pick(d, 4) == 0;
    if (planes)
        litmus_fabric(s, ",planes=%d", c->ports);
    for (int i = 0; i < c->test->pes; i++) {
        bool fewer = !strstr(s->fabric, "without") && litmus_pick(d, 6) == 0;

        s->rails[i] = fewer ? 1 + (int)litmus_pick(d, (unsigned)c->ports) : c->ports;
    }
    s->rails[0] = c->ports;
    /* Unknown planes cost lanes; told, they decide the pairing. Ports that are missing need them told. */
    s->know_planes = strstr(s->fabric, "planes") && (strstr(s->fabric, "without") || litmus_pick(d, 4));
    s->know_planes |= given_hosts() > 0;
}

static void litmus_options(const struct litmus_case *c, struct litmus_draw *d, struct litmus_shape *s)
{
    static const char *const stripes[] = {"257", "257", "512", "1K", "auto"};
    static const char *const pieces[] = {"128", "128", "256", "auto"};
    static const char *const bulk[] = {"32", "32", "40", "64", "256"};
    static const char *const words[] = {"1", "2", "4", "64"};
    static const char *const queues[] = {"32", "32", "40", "64", "128"};
    static const char *const replies[] = {"40", "100", "1000"};

    s->tail = !c->tail_off && ((c->test->need & LITMUS_NEED_TAIL) || litmus_pick(d, 2));
    litmus_setting(s, "order=%s", litmus_mode_name(c->mode));
    litmus_setting(s, "tail=%s", s->tail ? "on" : "off");
    litmus_setting(s, "channels=%d", c->test->need & LITMUS_NEED_CHANNELS ? 2 : 1);
    litmus_setting(s, "stripe_min=%s", litmus_word_of(d, stripes, 5));
    litmus_setting(s, "piece_min=%s", litmus_word_of(d, pieces, 4));
    litmus_setting(s, "bulk_depth=%s", litmus_word_of(d, bulk, 5));
    litmus_setting(s, "word_depth=%s", litmus_word_of(d, words, 4));
    litmus_setting(s, "sq_depth=%s", litmus_word_of(d, queues, 5));
    litmus_setting(s, "pace=%s", litmus_pick(d, 4) ? "auto" : "off");
    /* Ports that are given may be a hundred times slower: what is asked for again before an answer can be there is never done. */
    if (given_hosts())
        litmus_setting(s, "reply_timeout=20000");
    else
        litmus_setting(s, "reply_timeout=%s", c->test->need & LITMUS_NEED_SLOW ? "10" : litmus_word_of(d, replies, 3));
    /* 1 ms: a lost packet must not outlast the run; where processes wait for a CPU 268 ms. */
    litmus_setting(s, "timeout=%d", c->real ? 16 : 8);
    litmus_setting(s, "log=%s", c->verbose ? "debug" : "warn");
    if (c->fault)
        litmus_setting(s, "fault=%s", c->fault);
}

void litmus_shape_draw(const struct litmus_case *c, struct litmus_shape *out)
{
    struct litmus_draw d = {c->seed * 0x2545f4914f6cdd1du + (uint64_t)c->ports};
    bool many = c->test->pes > 3;

    memset(out, 0, sizeof(*out));
    for (const char *p = c->test->name; *p; p++)
        d.state = d.state * 31 + (unsigned char)*p;
    litmus_wire(c, &d, out);
    litmus_options(c, &d, out);
    litmus_unkind(c, &d, out);
    out->all_write = (c->test->need & LITMUS_NEED_ALL) || litmus_pick(&d, 3) == 0;
    out->scribble = litmus_pick(&d, 2);
    out->rounds = many ? 4 + (int)litmus_pick(&d, 4) : 3 + (int)litmus_pick(&d, 6);
    out->gap_ns = litmus_pick(&d, 3) ? litmus_pick(&d, 8000) : 0;
    out->absent_ns = c->test->need & LITMUS_NEED_SLOW ? 2000 + litmus_pick(&d, 60000) : 0;
    out->len_max = 512u << litmus_pick(&d, 5);
}
