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
    bool tail, watch_last, rewrite, one_word;
};

/* Word ops that are writes are what keys and own-flush are about; atomics stay behind by themselves. */
static const struct bench_fault bench_faults[] = {
    {.rule = "defer"},
    {.rule = "flush"},
    {.rule = "own-flush", .how = BENCH_SIGNAL_SET},
    {.rule = "keys", .how = BENCH_SIGNAL_SET},
    {.rule = "overlap", .rewrite = true},
    {.rule = "home", .one_word = true},
    {.rule = "dedup"},
    {.rule = "tail", .tail = true, .watch_last = true},
    {.rule = "order"},
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
static int bench_fault_key(char *text, size_t len, const char *key, const char *value)
{
    size_t n = strlen(text), key_len = strlen(key);

    for (const char *at = text; (at = strstr(at, key)); at++) {
        if (at[key_len] == '=' && (at == text || strchr(", \t\r\n", at[-1])))
            return 0;
    }
    return (size_t)snprintf(text + n, len - n, "%s%s=%s", n ? "\n" : "", key, value) < len - n ? 0 : -EINVAL;
}

int bench_fault_defaults(struct bench_spec *spec, char *fabric, size_t len, char *why, size_t why_len)
{
    const struct bench_fault *f = NULL;
    int rc;

    for (size_t i = 0; i < sizeof(bench_faults) / sizeof(bench_faults[0]); i++) {
        if (strcmp(bench_faults[i].rule, spec->fault) == 0)
            f = &bench_faults[i];
    }
    if (!f) {
        snprintf(why, why_len,
                 "bench: seen the rule \"%s\", expected defer, flush, own-flush, keys, overlap, home, dedup, "
                 "tail or order",
                 spec->fault);
        return -EINVAL;
    }
    rc = bench_fault_fabric(spec->fabric ? spec->fabric : "", fabric, len, why, why_len);
    if (rc == 0)
        rc = bench_fault_key(fabric, len, "jitter", "3us");
    if (rc == 0)
        rc = bench_fault_key(fabric, len, "unkind", "all");
    spec->fabric = fabric;
    if (spec->pattern == BENCH_ATOMIC || spec->pattern == BENCH_GET)
        return rc;
    if (f->how == BENCH_SIGNAL_SET)
        spec->signal_how = f->how;
    if (f->tail && !spec->tail)
        spec->tail = "on";
    spec->watch_last |= f->watch_last;
    spec->rewrite |= f->rewrite;
    spec->one_word |= f->one_word;
    return rc;
}
