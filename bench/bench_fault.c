/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fault.c - a run with one decision of libbraid switched off shows that only where there is traffic that needs the
 * decision, on a fabric that is not kind. This fills that in. Called by cli/; next: bench_run.c.
 */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct bench_fault {
    const char *rule;
    enum bench_signal_how how;
    bool tail, watch_last, rewrite, one_word, unreachable, many;
    const char *unkind;
    const char *setting;
};

/*
 * Word ops that are writes are what keys and own-flush are about; atomics stay behind by themselves. Where a device says
 * that it places out of order, libbraid flushes the own lane, and the word's key does not matter. A repeated message
 * needs an answer that is late, or seems to be. Adds are lost where several PEs add to one word at a time.
 */
static const struct bench_fault bench_faults[] = {
    {.rule = "defer", .unkind = "all"},
    {.rule = "flush", .unkind = "all"},
    {.rule = "own-flush", .unkind = "all", .how = BENCH_SIGNAL_SET},
    {.rule = "keys", .unkind = "relaxed+ackvis+atomics", .how = BENCH_SIGNAL_SET},
    {.rule = "overlap", .unkind = "all", .rewrite = true},
    {.rule = "home", .unkind = "all", .one_word = true, .many = true},
    {.rule = "dedup", .unkind = "all", .unreachable = true, .setting = "reply_timeout=10"},
    {.rule = "tail", .unkind = "all", .tail = true, .watch_last = true},
    {.rule = "order", .unkind = "all"},
};

/** The fabric's text, out of a file where it is the name of one: the keys in it are looked for and others added. */
static int bench_fault_fabric(const char *text, char *out, size_t len, char *why, size_t why_len)
{
    FILE *f;
    size_t n;

    if (!text[0] || strchr(text, '=')) {
        n = (size_t)snprintf(out, len, "%s", text);
    } else {
        f = fopen(text, "re");
        if (!f) {
            snprintf(why, why_len, "fabric: seen \"%s\", expected KEY=VALUE,... or the name of a file (%s)", text,
                     strerror(errno));
            return -EINVAL;
        }
        n = fread(out, 1, len, f);
        fclose(f);
        if (n < len)
            out[n] = '\0';
    }
    if (n < len)
        return 0;
    snprintf(why, why_len, "fabric: expected at most %zu bytes", len);
    return -EINVAL;
}

/** Adds "key=value" unless the text has the key. */
static void bench_fault_key(char *text, size_t len, const char *key, const char *value)
{
    size_t n = strlen(text), key_len = strlen(key);

    for (const char *at = text; (at = strstr(at, key)); at++) {
        if (at[key_len] == '=' && (at == text || strchr(", \t\r\n", at[-1])))
            return;
    }
    snprintf(text + n, len - n, "%s%s=%s", !n ? "" : strchr(text, '\n') ? "\n" : ",", key, value);
}

static void bench_fault_setting(struct bench_spec *spec, const char *setting)
{
    int i = 0;

    while (spec->setting[i]) { /* the caller's own comes first and stays */
        if (strncmp(spec->setting[i], setting, strcspn(setting, "=") + 1) == 0)
            return;
        i++;
    }
    if (i < BENCH_SETTINGS)
        spec->setting[i] = setting;
}

int bench_fault_defaults(struct bench_spec *spec, char *fabric, size_t len, char *why, size_t why_len)
{
    const struct bench_fault *f = NULL;
    bool streams = spec->pattern == BENCH_PUT || spec->pattern == BENCH_SIGNAL;
    int rc;

    for (size_t i = 0; i < sizeof(bench_faults) / sizeof(bench_faults[0]); i++) {
        if (strcmp(bench_faults[i].rule, spec->fault) == 0)
            f = &bench_faults[i];
    }
    if (!f) {
        snprintf(
            why, why_len,
            "bench: seen the rule \"%s\", expected defer, flush, own-flush, keys, overlap, home, dedup, tail or order",
            spec->fault);
        return -EINVAL;
    }
    rc = bench_fault_fabric(spec->fabric ? spec->fabric : "", fabric, len, why, why_len);
    if (rc)
        return rc;
    bench_fault_key(fabric, len, "jitter", "3us");
    bench_fault_key(fabric, len, "unkind", f->unkind);
    spec->fabric = fabric;
    if (f->setting)
        bench_fault_setting(spec, f->setting);
    if (streams && f->unreachable && !spec->unreachable) {
        bench_fault_key(fabric, len, "nodes", "4");
        bench_fault_key(fabric, len, "ports", "4");
        bench_fault_key(fabric, len, "topo", "rail");
        spec->unreachable = spec->peers ? spec->peers : 1;
    }
    if (streams && f->many && !spec->all && !spec->peers) {
        bench_fault_key(fabric, len, "nodes", "4");
        spec->all = true;
        spec->peers = 3;
    }
    if (streams && f->how == BENCH_SIGNAL_SET)
        spec->signal_how = f->how;
    if (streams && f->tail && !spec->tail)
        spec->tail = "on";
    spec->watch_last |= streams && f->watch_last;
    spec->rewrite |= streams && f->rewrite;
    spec->one_word |= streams && f->one_word;
    return 0;
}
