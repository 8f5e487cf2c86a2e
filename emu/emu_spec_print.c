/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_spec_print.c - prints a FABRIC SPEC with every key, so that reading it gives the same again; the words for kinds and
 * topologies. Knows no defaults. Called by emu_fabric.c and emu_spec.c; next: nothing, emu_spec.c is the way back.
 */
#include "emu_spec.h"
#include "emu_unkind.h"

#include <stdio.h>
#include <stdlib.h>

const char *emu_change_name(enum emu_change_kind kind)
{
    static const char *const names[] = {"down", "up", "stall", "slow", "loss", "delay"};

    return kind <= EMU_CHANGE_DELAY ? names[kind] : NULL;
}

const char *emu_topo_name(enum emu_topo topo)
{
    static const char *const names[] = {"pix", "pxb", "mixed", "rail"};

    return topo <= EMU_TOPO_RAIL ? names[topo] : NULL;
}

const char *emu_lag_name(enum emu_lag lag)
{
    static const char *const names[] = {"affinity", "mixed", "hash"};

    return lag <= EMU_LAG_HASH ? names[lag] : NULL;
}

/** The shortest text that reads back as the same number. */
static void emu_spec_print_double(FILE *f, double v)
{
    char text[40];

    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    fputs(text, f);
}

static void emu_spec_print_rate(FILE *f, uint64_t bits)
{
    if (bits % 1000000000u == 0)
        fprintf(f, "%lluG", (unsigned long long)(bits / 1000000000u));
    else
        fprintf(f, "%llu", (unsigned long long)bits);
}

static void emu_spec_print_bus(FILE *f, const char *key, uint64_t bits)
{
    fprintf(f, ",%s=", key);
    if (bits)
        emu_spec_print_rate(f, bits);
    else
        fputs("ideal", f);
}

static void emu_spec_print_bytes(FILE *f, uint64_t n)
{
    static const char units[] = {'\0', 'K', 'M', 'G'};
    size_t i = 0;

    while (i + 1 < sizeof(units) && n % 1024 == 0) {
        n /= 1024;
        i++;
    }
    fprintf(f, i ? "%llu%c" : "%llu", (unsigned long long)n, units[i]);
}

/** Rates of a GPU's ports; those at the end that repeat the one before are left out, as parsing fills them in. */
static void emu_spec_print_rates(FILE *f, const struct emu_spec *s)
{
    int n = s->n_rates;

    while (n > 1 && s->rate_bits[n - 1] == s->rate_bits[n - 2])
        n--;
    for (int i = 0; i < n; i++) {
        fputs(i ? ":" : ",rate=", f);
        emu_spec_print_rate(f, s->rate_bits[i]);
    }
}

static void emu_spec_print_change(FILE *f, const struct emu_change *c)
{
    fprintf(f, ",at=%lluns:%s:h%d/mlx5_%d:1", (unsigned long long)c->at_ns, emu_change_name(c->kind), c->port.host,
            c->port.dev);
    if (c->port.wire)
        fprintf(f, ".%d", c->port.wire);
    if (c->kind < EMU_CHANGE_SLOW)
        return;
    fputc(':', f);
    emu_spec_print_double(f, c->value);
    if (c->kind == EMU_CHANGE_DELAY)
        fputs("ns", f);
}

char *emu_spec_print(const struct emu_spec *s)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        return NULL;
    fprintf(f, "nodes=%d,gpus=%d,ports=%d", s->nodes, s->gpus, s->ports);
    emu_spec_print_rates(f, s);
    if (s->wires > 1)
        fprintf(f, ",wires=%d,lag=%s", s->wires, emu_lag_name(s->lag));
    fprintf(f, ",latency=%lluns,jitter=%lluns,loss=", (unsigned long long)s->latency_ns,
            (unsigned long long)s->jitter_ns);
    if (s->loss_tail)
        fputs("tail", f);
    else
        emu_spec_print_double(f, s->loss);
    emu_spec_print_bus(f, "pcie", s->pcie_bits);
    emu_spec_print_bus(f, "gpu", s->gpu_bits);
    fputs(",buffer=", f);
    emu_spec_print_bytes(f, s->buffer_bytes);
    fprintf(f, ",mtu=%d,cpu=%s", s->mtu, s->cpu ? "on" : "off");
    fputs(",unkind=", f);
    emu_unkind_print(f, s->unkind);
    fprintf(f, ",topo=%s,planes=%d", emu_topo_name(s->topo), s->planes);
    for (int i = 0; i < s->n_without; i++)
        fprintf(f, "%sh%d/mlx5_%d:1", i ? "+" : ",without=", s->without[i].host, s->without[i].dev);
    for (int i = 0; i < s->n_changes; i++)
        emu_spec_print_change(f, &s->change[i]);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
