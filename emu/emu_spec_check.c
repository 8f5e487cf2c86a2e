/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_spec_check.c - what must hold between the keys of a FABRIC SPEC, and what follows from others. Each refusal points
 * at the key to be changed. Called by emu_spec.c; next: emu_fabric.c builds what was read.
 */
#include "emu_spec_int.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* A key's last use is the one that holds. */
enum { EMU_SPEC_USES = INT_MAX };

static bool emu_spec_same(const struct emu_place *a, const struct emu_place *b)
{
    return a->host == b->host && a->dev == b->dev;
}

/** The reader's place at the n-th use of a key (the last, if there are fewer), which is what has to be changed. */
static struct emu_spec_at emu_spec_use(const struct emu_spec_at *at, const char *key, int n)
{
    struct emu_spec_at use = *at;
    size_t key_len = strlen(key), len = 0;

    for (const char *p = at->text; n >= 0 && (p = emu_spec_word(p + len, &len)) != NULL;) {
        if (strncmp(p, key, key_len) != 0 || p[key_len] != '=')
            continue;
        use.pos = p;
        n--;
    }
    return use;
}

/** A place that is named must be inside the cluster. */
static int emu_spec_place(const struct emu_spec_at *at, const struct emu_spec *s, const char *key,
                          const struct emu_place *p)
{
    if (p->wire > s->wires)
        return emu_spec_fail(at, "%s: seen wire %d of a port, expected at most %d (wires=%d)", key, p->wire, s->wires,
                             s->wires);
    if (p->host < s->nodes && p->dev < s->gpus * s->ports)
        return 0;
    return emu_spec_fail(at, "%s: seen port h%d/mlx5_%d:1, expected hosts below h%d and devices below mlx5_%d", key,
                         p->host, p->dev, s->nodes, s->gpus * s->ports);
}

bool emu_spec_has(const struct emu_spec *s, const struct emu_place *p)
{
    for (int i = 0; i < s->n_without; i++) {
        if (emu_spec_same(&s->without[i], p))
            return false;
    }
    return true;
}

/** Ports that are named somewhere: inside the cluster, there to be changed, left out once. */
static int emu_spec_places(const struct emu_spec_at *at, const struct emu_spec *s)
{
    struct emu_spec_at use = emu_spec_use(at, "without", EMU_SPEC_USES);

    for (int i = 0; i < s->n_without; i++) {
        if (emu_spec_place(&use, s, "without", &s->without[i]))
            return -EINVAL;
        if (s->without[i].wire)
            return emu_spec_fail(&use, "without: seen wire %d of a port, expected a port", s->without[i].wire);
        for (int j = 0; j < i; j++) {
            if (emu_spec_same(&s->without[i], &s->without[j]))
                return emu_spec_fail(&use, "without: seen h%d/mlx5_%d:1 twice, expected once", s->without[i].host,
                                     s->without[i].dev);
        }
    }
    for (int i = 0; i < s->n_changes; i++) {
        const struct emu_place *p = &s->change[i].port;

        use = emu_spec_use(at, "at", i);
        if (emu_spec_place(&use, s, "at", p))
            return -EINVAL;
        if (!emu_spec_has(s, p))
            return emu_spec_fail(&use,
                                 "at: seen h%d/mlx5_%d:1, which 'without' leaves out; expected a port that is there",
                                 p->host, p->dev);
    }
    return 0;
}

static int emu_spec_shape(const struct emu_spec_at *at, struct emu_spec *s)
{
    struct emu_spec_at topo = emu_spec_use(at, "topo", EMU_SPEC_USES),
                       planes = emu_spec_use(at, "planes", EMU_SPEC_USES);
    bool pairs = s->topo == EMU_TOPO_PXB || s->topo == EMU_TOPO_MIXED;

    if (pairs && s->gpus % 2)
        return emu_spec_fail(&topo, "topo=%s: seen gpus=%d, expected an even number: GPUs share ports in pairs",
                             emu_topo_name(s->topo), s->gpus);
    if (s->topo == EMU_TOPO_MIXED && s->nodes < 2)
        return emu_spec_fail(&topo, "topo=mixed: seen nodes=%d, expected at least 2: one half PXB, one PIX", s->nodes);
    if (s->planes > s->ports)
        return emu_spec_fail(&planes, "planes: seen %d, expected at most one a port of a GPU (ports=%d)", s->planes,
                             s->ports);
    if (s->topo == EMU_TOPO_RAIL && s->planes && s->planes != s->ports)
        return emu_spec_fail(&planes, "topo=rail: seen planes=%d, expected a plane for each port of a GPU (ports=%d)",
                             s->planes, s->ports);
    if (!s->planes)
        s->planes = s->topo == EMU_TOPO_RAIL ? s->ports : 1;
    return 0;
}

int emu_spec_whole(const struct emu_spec_at *at, struct emu_spec *s)
{
    struct emu_spec_at rate = emu_spec_use(at, "rate", EMU_SPEC_USES);

    if (s->n_rates > s->ports)
        return emu_spec_fail(&rate, "rate: seen %d rates, expected at most one a port (ports=%d)", s->n_rates,
                             s->ports);
    for (int i = s->n_rates; i < s->ports; i++)
        s->rate_bits[i] = s->rate_bits[s->n_rates - 1];
    s->n_rates = s->ports;
    if (emu_spec_shape(at, s))
        return -EINVAL;
    return emu_spec_places(at, s);
}
