/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_main.c - runs the list on every combination of ports and PEs, in virtual time or as processes in real time, and prints TAP.
 *
 *   host_suite --plugin FILE [--as VERSION] [--ports 1,2,4] [--pes 2,3,4] [--clock virtual|real] [--caller c|c++]
 *              [--peer] [--keep-handles] [--unkind LIST] [--only NAME] [--seed N] [--threads]
 *
 * Real ports that are given (tests/real/given.h) take the place of the emulated fabric, in real time; combinations that need more than
 * there are are left out. BRAID_QUICK=1: each number of ports with one number of PEs. --peer: a plugin of NVIDIA's, which leaves some things out (those are skipped). Next: suite.c, host_mini.h.
 */
#include "suite.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "given.h"

/** The caller that C++ makes, suite_caller.cc. */
extern const struct host_caller suite_caller_cxx;

enum { SUITE_LIST = 8, SUITE_REAL_LIMIT_S = 240 };

struct suite_command {
    const char *plugin, *only, *unkind;
    const struct nvs_version *version;
    const struct host_caller *caller;
    int ports[SUITE_LIST], pes[SUITE_LIST], n_ports, n_pes;
    bool real, peer, threads, keep;
    uint64_t seed;
    const struct emu_sim_api *emu;
    int line, bad;
};

/** One combination. */
struct suite_run {
    struct suite_command *c;
    int ports, pes;
    char list[256];
    struct suite_board *board;
    struct host_page *page; /* real time */
};

static unsigned suite_lacks(const struct suite_command *c)
{
    unsigned lacks = c->peer ? SUITE_EVERY_ATOMIC | SUITE_OWN : 0;

    if (!c->version->ops_v4)
        lacks |= SUITE_V4;
    if (!c->version->at.alias_va_map || !c->caller->map_add)
        lacks |= SUITE_MAPS;
    return lacks;
}

static bool suite_skips(const struct suite_command *c, const struct suite_test *t)
{
    return (t->needs & suite_lacks(c)) || (c->only && !strstr(t->name, c->only));
}

/** Everything, as one PE. */
static int suite_pe(struct suite_run *r, const struct host_world *w)
{
    struct suite s = {.w = *w, .me = w->my_pe, .n = w->n_pes, .board = r->board, .ports = r->list};
    char why[512] = "";
    void *room;
    int rc;

    room = mmap(NULL, 2 * SUITE_HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return -ENOMEM;
    s.heap = (unsigned char *)room + (SUITE_HEAP - (uintptr_t)room % SUITE_HEAP);
    s.o = (struct host_options){.path = r->c->plugin,
                                .version = r->c->version,
                                .caller = r->c->caller,
                                .own_copy = w->is_virtual,
                                .heap = s.heap,
                                .heap_len = SUITE_HEAP,
                                .chunk = SUITE_CHUNK,
                                .log2_granularity = 20,
                                .proxy_ns = 150,
                                .lend = !r->c->keep,
                                .cst = true};
    suite_ports(r->list);
    s.test = suite_n_tests; /* the start */
    rc = suite_open(&s, why, sizeof(why));
    suite_ok(&s, rc == 0, "start: %s", why);
    for (int i = 0; rc == 0 && s.h && i < suite_n_tests; i++) {
        s.test = i;
        if (suite_skips(r->c, &suite_tests[i]))
            continue;
        suite_tests[i].fn(&s);
        __atomic_fetch_add(&s.board->test[i].ended, 1, __ATOMIC_SEQ_CST);
    }
    s.test = suite_n_tests;
    if (s.h) {
        suite_meet(&s);
        rc = host_close(s.h);
        s.h = NULL;
        suite_ok(&s, rc == 0, "end: %d", rc);
        __atomic_fetch_add(&s.board->test[s.test].ended, 1, __ATOMIC_SEQ_CST);
    }
    munmap(room, 2 * SUITE_HEAP);
    return rc;
}

/* ---- virtual time ------------------------------------------------------------------------------------------------ */

static int suite_sim_main(void *arg, int pe)
{
    struct suite_run *r = arg;
    struct host_world w;

    (void)pe;
    host_world_sim(&w, r->c->emu, r->pes, 1);
    return suite_pe(r, &w);
}

static int suite_run_sim(struct suite_run *r, char *why, size_t why_len)
{
    char fabric[512];
    struct emu_sim_options o = {sizeof(o), fabric, r->c->seed, EMU_SIM_COROUTINES, 0};
    struct emu_sim *sim;
    int rc;

    snprintf(fabric, sizeof(fabric), "nodes=%d,ports=%d%s%s", r->pes, r->ports, r->c->unkind ? ",unkind=" : "",
             r->c->unkind ? r->c->unkind : "");
    if (r->c->threads || !host_is_braid(r->c->plugin))
        o.vehicle = EMU_SIM_THREADS;
    rc = r->c->emu->open(&o, &sim, why, why_len);
    if (rc)
        return rc;
    r->c->emu->plain_addresses(sim);
    rc = r->c->emu->run(sim, suite_sim_main, r, why, why_len);
    r->c->emu->close(sim);
    return rc;
}

/* ---- real time --------------------------------------------------------------------------------------------------- */

static int suite_real_main(struct suite_run *r, int pe)
{
    struct host_world w;
    char host[16];

    alarm(SUITE_REAL_LIMIT_S);
    snprintf(host, sizeof(host), "h%d", pe);
    setenv("BRAID_EMU_HOST", host, 1);
    if (given_hosts())
        given_ports(pe, r->ports, r->list, sizeof(r->list));
    host_world_real(&w, r->page, pe, r->pes, 1);
    return suite_pe(r, &w) ? 1 : 0;
}

static int suite_run_real(struct suite_run *r, char *why, size_t why_len)
{
    char text[256];
    pid_t pid[SUITE_PES];
    int rc = 0;

    r->page = host_page_new(r->pes);
    if (!r->page)
        return -ENOMEM;
    snprintf(text, sizeof(text), "nodes=%d,ports=%d%s%s", r->pes, r->ports, r->c->unkind ? ",unkind=" : "",
             r->c->unkind ? r->c->unkind : "");
    setenv("BRAID_EMU", text, 1);
    snprintf(text, sizeof(text), "suite-%d-%d-%d", (int)getpid(), r->pes, r->ports);
    setenv("BRAID_EMU_NAME", text, 1);
    fflush(NULL);
    for (int pe = 0; pe < r->pes; pe++) {
        pid[pe] = fork();
        if (pid[pe] == 0) {
            rc = suite_real_main(r, pe);
            fflush(NULL);
            exit(rc);
        }
    }
    for (int pe = 0; pe < r->pes; pe++) {
        int status = 0;

        if (pid[pe] < 0 || waitpid(pid[pe], &status, 0) != pid[pe] || status) {
            snprintf(why, why_len, "PE %d ended with status %#x", pe, (unsigned)status);
            rc = -EIO;
        }
        for (int i = pe + 1; rc && i < r->pes; i++)
            kill(pid[i], SIGKILL);
    }
    host_page_free(r->page);
    return rc;
}

/* ---- what it came to --------------------------------------------------------------------------------------------- */

static void suite_line(struct suite_command *c, const struct suite_run *r, const char *name, const char *failure)
{
    c->bad += failure != NULL;
    printf("%sok %d - %s, %d port%s, %d PEs: %s\n", failure ? "not " : "", ++c->line, c->version->name, r->ports,
           r->ports == 1 ? "" : "s", r->pes, name);
    for (const char *at = failure; at && *at; at += strspn(at, "\n")) {
        int n = (int)strcspn(at, "\n");

        printf("# %.*s\n", n, at);
        at += n;
    }
    fflush(stdout);
}

/** Are there that many? Where none are given there is whatever the fabric is made of. */
static bool suite_given_enough(int ports, int pes)
{
    char list[256];

    return given_hosts() == 0 || (pes <= given_hosts() && given_ports(0, ports, list, sizeof(list)) == ports);
}

static void suite_combination(struct suite_command *c, int ports, int pes)
{
    struct suite_run r = {.c = c, .ports = ports, .pes = pes};
    char why[2048] = "";
    int rc;

    for (int i = 0; i < ports; i++)
        snprintf(r.list + strlen(r.list), sizeof(r.list) - strlen(r.list), "%smlx5_%d:1", i ? "," : "", i);
    r.board = mmap(NULL, sizeof(*r.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r.board == MAP_FAILED)
        exit(2);
    rc = c->real ? suite_run_real(&r, why, sizeof(why)) : suite_run_sim(&r, why, sizeof(why));
    for (int i = 0; i <= suite_n_tests; i++) {
        const struct suite_result *t = &r.board->test[i];
        bool skips = i < suite_n_tests && suite_skips(c, &suite_tests[i]);

        if (skips && c->only)
            continue;
        if (skips)
            printf("ok %d - %s # SKIP %s\n", ++c->line, suite_tests[i].name,
                   suite_tests[i].needs & SUITE_V4 && !c->version->ops_v4 ? "not in this interface version"
                   : c->peer                                              ? "NVIDIA's plugin does not do it here"
                                                                          : "this version or caller has no alias map");
        else
            suite_line(c, &r, i < suite_n_tests ? suite_tests[i].name : "start and end",
                       t->failures                ? t->first
                       : t->ended < (uint32_t)pes ? "not every PE came to its end"
                                                  : NULL);
    }
    suite_line(c, &r, "the run as a whole", rc ? why[0] ? why : strerror(-rc) : NULL);
    munmap(r.board, sizeof(*r.board));
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static int suite_numbers(const char *text, int *out, int most)
{
    int n = 0;

    for (char *end; *text && n < SUITE_LIST; text = *end ? end + 1 : end) {
        long v = strtol(text, &end, 10);

        if (end == text || v < 1 || v > most)
            return -1;
        out[n++] = (int)v;
    }
    return n;
}

static int suite_take(struct suite_command *c, int letter, const char **as)
{
    switch (letter) {
    case 'p':
        c->plugin = optarg;
        return 0;
    case 'a':
        *as = optarg;
        return 0;
    case 'r':
        c->n_ports = suite_numbers(optarg, c->ports, 16);
        return c->n_ports > 0 ? 0 : -1;
    case 'n':
        c->n_pes = suite_numbers(optarg, c->pes, SUITE_PES);
        return c->n_pes > 0 ? 0 : -1;
    case 'c':
        c->real = strcmp(optarg, "real") == 0;
        return c->real || strcmp(optarg, "virtual") == 0 ? 0 : -1;
    case 'l':
        c->caller = strcmp(optarg, "c++") == 0 ? &suite_caller_cxx : &host_caller_c;
        return 0;
    case 'e':
        c->peer = true;
        return 0;
    case 'k':
        c->keep = true;
        return 0;
    case 't':
        c->threads = true;
        return 0;
    case 'u':
        c->unkind = optarg;
        return 0;
    case 'o':
        c->only = optarg;
        return 0;
    case 's':
        c->seed = strtoull(optarg, NULL, 0);
        return 0;
    default:
        return -1;
    }
}

static int suite_arguments(int argc, char **argv, struct suite_command *c)
{
    static const struct option options[] = {{"plugin", required_argument, NULL, 'p'},
                                            {"as", required_argument, NULL, 'a'},
                                            {"ports", required_argument, NULL, 'r'},
                                            {"pes", required_argument, NULL, 'n'},
                                            {"clock", required_argument, NULL, 'c'},
                                            {"caller", required_argument, NULL, 'l'},
                                            {"peer", no_argument, NULL, 'e'},
                                            {"threads", no_argument, NULL, 't'},
                                            {"keep-handles", no_argument, NULL, 'k'},
                                            {"unkind", required_argument, NULL, 'u'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"seed", required_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};
    const char *as = NULL;
    char why[512];
    int letter;

    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (suite_take(c, letter, &as)) {
            fprintf(stderr, "host_suite: bad option or value, see suite_main.c\n");
            return -1;
        }
    }
    if (!c->plugin) {
        fprintf(stderr, "host_suite: --plugin FILE is missing\n");
        return -1;
    }
    if (host_version(c->plugin, as, &c->version, why, sizeof(why))) {
        fprintf(stderr, "host_suite: %s\n", why);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct suite_command c = {
        .caller = &host_caller_c, .ports = {1, 2, 4}, .n_ports = 3, .pes = {2, 3, 4}, .n_pes = 3, .seed = 1};
    const char *asked = getenv("BRAID_QUICK");
    bool quick = asked && strcmp(asked, "1") == 0;
    char why[512];

    if (suite_arguments(argc, argv, &c))
        return 2;
    c.real |= given_hosts() > 0;
    if (!given_hosts() && bench_emu_load(NULL, &c.emu, why, sizeof(why))) {
        fprintf(stderr, "host_suite: %s\n", why);
        return 2;
    }
    printf("# %s as version %s, called from %s, %s time, seed %llu\n", c.plugin, c.version->name, c.caller->name,
           c.real ? "real" : "virtual", (unsigned long long)c.seed);
    for (int p = 0; p < c.n_ports; p++) {
        for (int n = 0; n < c.n_pes; n++) {
            if ((!quick || n == p % c.n_pes) && suite_given_enough(c.ports[p], c.pes[n]))
                suite_combination(&c, c.ports[p], c.pes[n]);
        }
    }
    printf("1..%d\n", c.line);
    return c.bad ? 1 : 0;
}
