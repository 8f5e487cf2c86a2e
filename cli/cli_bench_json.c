/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bench_json.c - results of `braid bench` for programs: schema braid.bench/1, see docs/bench-json.md. Called by
 * cli_bench.c; next: jansson.
 */
#include "cli_bench.h"

#include <stdlib.h>
#include <string.h>

void cli_bench_put_key(json_t *to, const char *key, json_t *value, int *bad)
{
    if (!value || json_object_set_new(to, key, value))
        *bad = 1;
}

/* Of buckets that hold something: where each ends, and how many times lie in it. */
static json_t *cli_bench_histogram(const struct bench_times *t, int *bad)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < BENCH_BUCKETS; i++) {
        if (t->bucket[i] && json_array_append_new(
                                list, json_pack("[f,I]", (double)bench_bucket_end(i) / 1e3, (json_int_t)t->bucket[i])))
            *bad = 1;
    }
    return list;
}

static json_t *cli_bench_times(const struct bench_times *t, int *bad)
{
    json_t *o = json_object();

    cli_bench_put_key(o, "p50", json_real((double)t->p50 / 1e3), bad);
    cli_bench_put_key(o, "p99", json_real((double)t->p99 / 1e3), bad);
    cli_bench_put_key(o, "count", json_integer((json_int_t)t->count), bad);
    cli_bench_put_key(o, "histogram", cli_bench_histogram(t, bad), bad);
    return o;
}

static json_t *cli_bench_json_ports(const struct bench_result *r, int *bad)
{
    json_t *list = json_array();

    for (int i = 0; i < r->n_ports; i++) {
        const struct bench_port *p = &r->port[i];
        json_t *o = json_object();

        cli_bench_put_key(o, "host", json_string(p->host), bad);
        cli_bench_put_key(o, "port", json_string(p->port), bad);
        cli_bench_put_key(o, "tx", json_integer((json_int_t)p->tx), bad);
        cli_bench_put_key(o, "rx", json_integer((json_int_t)p->rx), bad);
        cli_bench_put_key(o, "wire_tx", r->rails_only ? json_null() : json_integer((json_int_t)p->wire_tx), bad);
        cli_bench_put_key(o, "wire_rx", r->rails_only ? json_null() : json_integer((json_int_t)p->wire_rx), bad);
        if (json_array_append_new(list, o))
            *bad = 1;
    }
    return list;
}

static void cli_bench_json_what(const struct cli_bench *c, const struct cli_bench_run *run, json_t *o, int *bad)
{
    const struct bench_spec *s = &c->spec;
    const struct bench_result *r = &run->result;
    unsigned every = s->signal_every ? s->signal_every : s->pattern == BENCH_SIGNAL;
    bool moe = s->pattern == BENCH_MOE;

    cli_bench_put_key(o, "engine", json_string(run->engine), bad);
    cli_bench_put_key(o, "engine_label", json_string(cli_bench_engine_label(run)), bad);
    cli_bench_put_key(o, "pattern", json_string(cli_bench_pattern(c)), bad);
    cli_bench_put_key(o, "order", json_string(cli_bench_order(run)), bad);
    cli_bench_put_key(o, "tail", json_string(cli_bench_tail(c, run)), bad);
    cli_bench_put_key(o, "fault", s->fault ? json_string(s->fault) : json_null(), bad);
    cli_bench_put_key(o, "size", json_integer((json_int_t)run->size), bad);
    cli_bench_put_key(o, "count", json_integer((json_int_t)run->count), bad);
    cli_bench_put_key(o, "ports", json_integer(r->ports), bad);
    cli_bench_put_key(o, "peers", json_integer(r->peers), bad);
    cli_bench_put_key(o, "all", json_boolean(s->all || moe), bad);
    cli_bench_put_key(o, "window", json_integer(moe ? r->moe.ring : s->window), bad);
    cli_bench_put_key(o, "signal_every", json_integer(moe ? r->moe.chunk : every), bad);
    cli_bench_put_key(o, "one_call", json_boolean(s->one_call), bad);
    cli_bench_put_key(o, "sender", json_integer(r->sender), bad);
    if (s->pattern == BENCH_ATOMIC)
        cli_bench_put_key(o, "op", json_string(c->op_name), bad);
}

/** What libbraid did, by the rows of the cost table, and what was charged for it. */
static json_t *cli_bench_json_work(const struct bench_result *r, int *bad)
{
    json_t *o = json_object();

    for (enum bench_work w = 0; w < BENCH_WORK; w++) {
        uint64_t n = 0;

        for (enum bench_work k = 0; k < BENCH_WORK; k++) /* some share a row */
            n += strcmp(bench_work_name(k), bench_work_name(w)) == 0 ? r->work[k] : 0;
        cli_bench_put_key(o, bench_work_name(w), json_integer((json_int_t)n), bad);
    }
    cli_bench_put_key(o, "ns", json_integer((json_int_t)r->work_ns), bad);
    return o;
}

static json_t *cli_bench_json_run(const struct cli_bench *c, const struct cli_bench_run *run, int *bad)
{
    const struct bench_result *r = &run->result;
    json_t *o = json_object();

    cli_bench_json_what(c, run, o, bad);
    if (c->spec.pattern == BENCH_MOE) {
        cli_bench_put_key(o, "phase", json_string(bench_phase_name(run->phase)), bad);
        cli_bench_put_key(o, "nodes", json_integer(r->moe.nodes), bad);
        cli_bench_put_key(o, "topo", json_string(r->moe.topo), bad);
        cli_bench_put_key(o, "logical_bytes", json_integer((json_int_t)r->moe.logical_bytes), bad);
        cli_bench_put_key(o, "remote_bytes", json_integer((json_int_t)r->moe.remote_bytes), bad);
        cli_bench_put_key(o, "stale_reads", json_integer((json_int_t)r->moe.stale_reads), bad);
        cli_bench_put_key(o, "nvl_gbs", json_real(r->moe.nvl_gbs), bad);
        cli_bench_put_key(o, "moe", cli_moe_json(c, &r->moe, bad), bad);
    }
    cli_bench_put_key(o, "ops", json_integer((json_int_t)r->ops), bad);
    cli_bench_put_key(o, "payload_bytes", json_integer((json_int_t)r->payload_bytes), bad);
    cli_bench_put_key(o, "wall_ns", json_integer((json_int_t)r->wall_ns), bad);
    cli_bench_put_key(o, "gbs", json_real(r->gbs), bad);
    cli_bench_put_key(o, "ceiling_gbs", json_real(r->ceiling_gbs), bad);
    cli_bench_put_key(o, "ceiling_how", json_string(r->ceiling_how), bad);
    cli_bench_put_key(o, "fraction", json_real(r->fraction), bad);
    cli_bench_put_key(o, "cpu_share", json_real(r->cpu_share), bad);
    cli_bench_put_key(o, "latency_us", r->latency.count ? cli_bench_times(&r->latency, bad) : json_null(), bad);
    cli_bench_put_key(o, "signal_us", r->signal.count ? cli_bench_times(&r->signal, bad) : json_null(), bad);
    cli_bench_put_key(o, "errors", json_integer((json_int_t)r->errors), bad);
    cli_bench_put_key(o, "compared_bytes", json_integer((json_int_t)r->compared_bytes), bad);
    cli_bench_put_key(o, "work", run->parsed.kind == BENCH_ENGINE_BRAID ? cli_bench_json_work(r, bad) : json_null(),
                      bad);
    cli_bench_put_key(o, "port_bytes", cli_bench_json_ports(r, bad), bad);
    return o;
}

/** The fabric: its text, and each key of it; a key that is there more than once is an array. */
static json_t *cli_bench_json_fabric(const char *text, int *bad)
{
    json_t *o = json_object(), *at = json_array();
    char key[32], value[1024];

    cli_bench_put_key(o, "spec", json_string(text), bad);
    for (int n = 0; sscanf(text, "%31[^=,]=%1023[^,]%n", key, value, &n) == 2 && n > 0; n = 0) {
        if (strcmp(key, "at") == 0)
            *bad |= json_array_append_new(at, json_string(value)) != 0;
        else
            cli_bench_put_key(o, key, json_string(value), bad);
        text += n;
        if (*text != ',')
            break;
        text++;
    }
    cli_bench_put_key(o, "at", at, bad);
    return o;
}

/** The command line as a shell takes it. NULL without memory. */
static json_t *cli_bench_json_command(const struct cli_bench *c)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    json_t *o;

    if (!to)
        return NULL;
    fprintf(to, "braid");
    for (int i = 0; i < c->argc; i++) {
        const char *word = c->argv[i];

        if (*word && strspn(word, plain) == strlen(word)) {
            fprintf(to, " %s", word);
            continue;
        }
        fprintf(to, " '");
        for (; *word; word++) {
            if (*word == '\'')
                fputs("'\\''", to);
            else
                fputc(*word, to);
        }
        fputc('\'', to);
    }
    fclose(to);
    o = json_string(text); /* NULL for what is no UTF-8 */
    free(text);
    return o ? o : json_string("braid bench (not UTF-8)");
}

int cli_bench_json(const struct cli_bench *c)
{
    json_t *top = json_object(), *runs = json_array();
    char hash[16];
    int bad = 0;

    snprintf(hash, sizeof(hash), "%08x", c->run[0].result.cost_hash);
    cli_bench_put_key(top, "schema", json_string("braid.bench/1"), &bad);
    cli_bench_put_key(top, "command", cli_bench_json_command(c), &bad);
    cli_bench_put_key(top, "seed", json_integer((json_int_t)c->spec.seed), &bad);
    cli_bench_put_key(top, "fabric", cli_bench_json_fabric(c->run[0].result.fabric, &bad), &bad);
    cli_bench_put_key(top, "label", json_string(cli_bench_label(c)), &bad);
    cli_bench_put_key(top, "clock", json_string(c->spec.live ? "real" : "virtual"), &bad);
    cli_bench_put_key(top, "cost_table", c->spec.live ? json_null() : json_string(hash), &bad);
    for (int i = 0; i < c->n_runs; i++)
        bad |= json_array_append_new(runs, cli_bench_json_run(c, &c->run[i], &bad)) != 0;
    cli_bench_put_key(top, "runs", runs, &bad);
    if (!bad) {
        json_dumpf(top, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else {
        fprintf(stderr, "braid bench: no memory for the JSON text\n");
    }
    json_decref(top);
    return bad ? -1 : 0;
}
