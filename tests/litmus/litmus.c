/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus.c - the program: which tests, modes, ports and seeds, and how to tell. README.md says what for. Next: litmus_board.c.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "given.h"
#include "litmus_board.h"

struct litmus_arguments {
    const char *test, *fault;
    int mode, kind, ports; /* -1, -1, 0: all */
    uint64_t from, count, fault_count;
    bool faults, only_faults, counts, verbose, tap, first, list, real;
    int jobs, shard, shards;
    bool bad; /* something was not a number */
};

static void litmus_usage(FILE *f)
{
    fprintf(
        f,
        "usage: litmus [options]\n\n"
        "Litmus tests of order over libbraid, on the emulated fabric in virtual time, or in real time.\n\n"
        "  --test NAME     this test only; --list shows them\n"
        "  --mode MODE     release, strict or drain only\n"
        "  --kind KIND     judged, ackvis (drain, counted) or silent (placement=auto, counted) only\n"
        "  --ports N       1, 2, 3, 4 or 8 only\n"
        "  --from SEED     first seed (1)\n"
        "  --count N       seeds of each test, mode and number of ports (100)\n"
        "  --fault RULE    instead: switch this rule off (all: each in turn) and expect violations\n"
        "  --with-faults N after the rest: each rule off, N seeds of each test it protects\n"
        "  --with-counts   also what is counted and not judged, a tenth of the seeds\n"
        "  --first         with a rule off, the first violating seed is enough\n"
        "  --jobs N        worker processes (number of cores)\n"
        "  --shard I/N     every N-th block of seeds, from the I-th (0/1)\n"
        "  --real          between processes, by the machine's clock; loads many CPUs; so on real ports in BRAID_TEST_PORTS\n"
        "  --tap           results as TAP\n"
        "  --verbose       each op and what is seen; in this process\n\n"
        "BRAID_QUICK=1 in the environment: a tenth of the seeds.\n\n"
        "example, a failing seed again: litmus --test put_signal --mode release --ports 2 --from 1234 --count 1 --verbose\n");
}

static int litmus_mode_of(const char *name)
{
    for (int m = 0; m < LITMUS_MODES; m++) {
        if (strcmp(name, litmus_mode_name((enum litmus_mode)m)) == 0)
            return m;
    }
    fprintf(stderr, "litmus: there is no mode \"%s\": expected release, strict or drain\n", name);
    return -2;
}

static int litmus_kind_of(const char *name)
{
    for (int k = 0; k < LITMUS_KINDS; k++) {
        if (strcmp(name, litmus_kind_name((enum litmus_kind)k)) == 0)
            return k;
    }
    fprintf(stderr, "litmus: there is no kind \"%s\": expected judged, ackvis or silent\n", name);
    return -2;
}

static bool litmus_ports_ok(int ports)
{
    for (int i = 0; i < LITMUS_PORT_COUNTS; i++) {
        if (ports == litmus_port_counts[i])
            return true;
    }
    return ports == 0;
}

/** A whole number, and nothing behind it; with rest, a '/' and more. */
static uint64_t litmus_number(struct litmus_arguments *a, const char *text, const char **rest)
{
    char *end;
    uint64_t v = strtoull(text, &end, 10);

    a->bad |= text[0] < '0' || text[0] > '9' || (rest ? *end != '/' : *end != '\0');
    if (rest && !a->bad)
        *rest = end + 1;
    return v;
}

/** "1/4" */
static void litmus_shard(struct litmus_arguments *a, const char *text)
{
    const char *rest = "";

    a->shard = (int)litmus_number(a, text, &rest);
    a->shards = (int)litmus_number(a, rest, NULL);
}

/** One option with its value. */
static void litmus_argument(int c, const char *value, struct litmus_arguments *a)
{
    switch (c) {
    case 't':
        a->test = value;
        break;
    case 'm':
        a->mode = litmus_mode_of(value);
        break;
    case 'k':
        a->kind = litmus_kind_of(value);
        break;
    case 'p':
        a->ports = (int)litmus_number(a, value, NULL);
        break;
    case 'f':
        a->from = litmus_number(a, value, NULL);
        break;
    case 'c':
        a->count = litmus_number(a, value, NULL);
        break;
    case 'x':
        a->fault = value;
        break;
    case 'w':
        a->fault_count = litmus_number(a, value, NULL);
        break;
    case 'j':
        a->jobs = (int)litmus_number(a, value, NULL);
        break;
    case 's':
        litmus_shard(a, value);
        break;
    default:
        a->counts |= c == 'u';
        a->first |= c == 'o';
        a->tap |= c == 'T';
        a->verbose |= c == 'v';
        a->list |= c == 'l';
        a->real |= c == 'R';
        break;
    }
}

static int litmus_parse(int argc, char **argv, struct litmus_arguments *a)
{
    static const struct option options[] = {
        {"test", required_argument, NULL, 't'},  {"mode", required_argument, NULL, 'm'},
        {"kind", required_argument, NULL, 'k'},  {"ports", required_argument, NULL, 'p'},
        {"from", required_argument, NULL, 'f'},  {"count", required_argument, NULL, 'c'},
        {"fault", required_argument, NULL, 'x'}, {"with-faults", required_argument, NULL, 'w'},
        {"with-counts", no_argument, NULL, 'u'}, {"first", no_argument, NULL, 'o'},
        {"jobs", required_argument, NULL, 'j'},  {"shard", required_argument, NULL, 's'},
        {"tap", no_argument, NULL, 'T'},         {"real", no_argument, NULL, 'R'},
        {"verbose", no_argument, NULL, 'v'},     {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'h' || c == '?') {
            litmus_usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 1 : 2;
        }
        litmus_argument(c, optarg, a);
    }
    if (a->bad || optind != argc || a->mode == -2 || a->kind == -2 || !litmus_ports_ok(a->ports) || a->count == 0 ||
        a->jobs < 1 || a->jobs > LITMUS_WORKERS || a->shards < 1 || a->shard < 0 || a->shard >= a->shards ||
        (a->test && !litmus_test_named(a->test))) {
        fprintf(stderr, "litmus: seen an argument that is not accepted; see litmus --help and --list\n");
        return 2;
    }
    return 0;
}

/** Whether real ports that are given are as many as a test needs; true where none are given, and the fabric is as wanted. */
static bool litmus_given_enough(int pes, int ports)
{
    char list[1024];

    return given_hosts() == 0 || (pes <= given_hosts() && given_ports(0, ports, list, sizeof(list)) == ports);
}

/** Cells of one test, mode and kind. */
static bool litmus_add_ports(struct litmus_board *b, const struct litmus_arguments *a, const struct litmus_case *c,
                             uint64_t count)
{
    struct litmus_case one = *c;
    bool ok = true;

    for (int k = 0; k < LITMUS_PORT_COUNTS && ok; k++) {
        one.ports = litmus_port_counts[k];
        if ((a->ports == 0 || a->ports == one.ports) && litmus_given_enough(c->test->pes, one.ports))
            ok = litmus_board_add(b, &one, count) != NULL;
    }
    return ok;
}

/** The kinds of a test and mode that are asked for. */
static bool litmus_add_kinds(struct litmus_board *b, const struct litmus_arguments *a, struct litmus_case *c)
{
    uint64_t tenth = (a->count + 9) / 10;
    bool ok = true;

    for (int k = 0; k < LITMUS_KINDS && ok; k++) {
        bool asked = a->kind >= 0 ? a->kind == k : k == LITMUS_JUDGED || a->counts;

        if (!asked || (k == LITMUS_ACKVIS && c->mode != LITMUS_DRAIN))
            continue;
        c->kind = (enum litmus_kind)k;
        ok = litmus_add_ports(b, a, c, k == LITMUS_JUDGED || a->kind >= 0 ? a->count : tenth);
    }
    return ok;
}

static bool litmus_add_rules(struct litmus_board *b, const struct litmus_arguments *a, uint64_t count)
{
    const struct litmus_rule *rule;
    const char *wanted = a->fault && strcmp(a->fault, "all") != 0 ? a->fault : NULL;
    unsigned found = 0;

    for (unsigned i = 0; (rule = litmus_rule_at(i)); i++) {
        struct litmus_case c = {.test = litmus_test_named(rule->test),
                                .mode = LITMUS_RELEASE,
                                .ports = a->ports,
                                .seed = a->from,
                                .fault = rule->fault,
                                .judge_strict = rule->judge_strict,
                                .placement = rule->placement,
                                .tail_off = rule->tail_off,
                                .verbose = a->verbose,
                                .real = a->real};
        struct litmus_cell *cell;

        if ((wanted && strcmp(wanted, rule->rule) != 0) || (a->test && strcmp(a->test, rule->test) != 0))
            continue;
        cell = litmus_board_add(b, &c, count);
        if (!cell)
            return false;
        cell->rule = rule;
        cell->first_only = a->first;
        found++;
    }
    if (!found)
        fprintf(stderr, "litmus: no rule \"%s\" with a test of that name; see litmus --list\n",
                a->fault ? a->fault : "all");
    return found > 0;
}

static bool litmus_fill(struct litmus_board *b, const struct litmus_arguments *a)
{
    const struct litmus_test *t;
    bool ok = true;

    if (a->fault)
        return litmus_add_rules(b, a, a->count);
    for (int m = 0; m < LITMUS_MODES && ok; m++) {
        for (unsigned i = 0; (t = litmus_test_at(i)) && ok; i++) {
            struct litmus_case c = {
                .test = t, .mode = (enum litmus_mode)m, .seed = a->from, .verbose = a->verbose, .real = a->real};

            if ((a->mode < 0 || a->mode == m) && (!a->test || t == litmus_test_named(a->test)))
                ok = litmus_add_kinds(b, a, &c);
        }
    }
    return ok && (!a->fault_count || litmus_add_rules(b, a, a->fault_count));
}

static void litmus_list(void)
{
    const struct litmus_test *t;
    const struct litmus_rule *r;

    printf("tests:");
    for (unsigned i = 0; (t = litmus_test_at(i)); i++)
        printf(" %s", t->name);
    printf("\nrules, and the tests that must notice when one is off:\n");
    for (unsigned i = 0; (r = litmus_rule_at(i)); i++)
        printf("  %-20s %s\n", r->rule, r->test);
}

/** What simulations are made with: the emulator in either clock, or ports that are given. 0, or -errno and why. */
static int litmus_calls(const struct litmus_arguments *a, const struct emu_sim_api **out, char *why, size_t why_len)
{
    int rc;

    if (given_hosts()) {
        *out = litmus_real_api_given();
        return 0;
    }
    rc = bench_emu_load(NULL, out, why, why_len);
    if (rc == 0 && a->real)
        *out = litmus_real_api(*out);
    return rc;
}

int main(int argc, char **argv)
{
    struct litmus_arguments a = {.mode = -1, .kind = -1, .from = 1, .count = 100, .shards = 1};
    const struct emu_sim_api *emu;
    struct litmus_board *b;
    char why[BENCH_WHY];
    int rc;

    a.jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
    a.jobs = a.jobs > LITMUS_WORKERS ? LITMUS_WORKERS : a.jobs < 1 ? 1 : a.jobs;
    rc = litmus_parse(argc, argv, &a);
    if (rc || a.list) {
        if (!rc)
            litmus_list();
        return rc == 2 ? 2 : 0;
    }
    if (getenv("BRAID_QUICK"))
        a.count = (a.count + 9) / 10;
    b = litmus_board_new(a.jobs, a.shard, a.shards);
    a.real |= given_hosts() > 0;
    if (!b || litmus_calls(&a, &emu, why, sizeof(why)) || !litmus_fill(b, &a)) {
        printf("Bail out! %s\n", !b ? "no memory" : b->n_cells ? "the board is full" : why);
        return 2;
    }
    for (unsigned i = 0; i < b->n_cells && a.verbose; i++)
        litmus_board_here(b, &b->cell[i], emu);
    rc = a.verbose ? 0 : litmus_board_run(b, emu);
    if (a.tap)
        litmus_report_tap(b);
    else
        litmus_report_tables(b);
    return rc || !litmus_report_good(b);
}
