/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_seeds.c - the litmus of deferral: chunks over several ports with jitter, a signal behind each; the receiver
 * compares a chunk the moment it sees its signal. One run a seed; the seed also decides shape and fabric. With --fault
 * defer the rule is off and wrong bytes are expected: a litmus that cannot fail proves nothing.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "fabric.h"

struct order_seeds {
    uint64_t from, count;
    const char *fault;
    int verbose;
};

static void order_shape(uint64_t seed, struct bench_spec *s, char *fabric, size_t len)
{
    static const int mtu[] = {1024, 2048, 4096, 4096};
    uint64_t r = seed * 0x2545f4914f6cdd1du + 1; /* so that the shape does not hang on the fabric's own choices */
    int ports = 2 + (int)(fabric_random(&r) % 4 == 0) * (1 + (int)(fabric_random(&r) % 3));
    int lossy = fabric_random(&r) % 8 == 0;

    snprintf(fabric, len, "nodes=2,ports=%d,rate=200G,latency=2.5us,jitter=%lluns,mtu=%d,loss=%s", ports,
             200 + (unsigned long long)(fabric_random(&r) % 6000), mtu[fabric_random(&r) % 4], lossy ? "0.002" : "0");
    *s = (struct bench_spec){.pattern = BENCH_SIGNAL,
                             .fabric = fabric,
                             .seed = seed,
                             .order = "release",
                             .size = 16384 + (size_t)(fabric_random(&r) % 49152),
                             .count = 12,
                             .window = 1 + (unsigned)(fabric_random(&r) % 6)};
}

static int order_arguments(int argc, char **argv, struct order_seeds *o)
{
    static const struct option options[] = {{"from", required_argument, NULL, 'f'},
                                            {"count", required_argument, NULL, 'c'},
                                            {"fault", required_argument, NULL, 'x'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'f')
            o->from = strtoull(optarg, NULL, 10);
        else if (c == 'c')
            o->count = strtoull(optarg, NULL, 10);
        else if (c == 'x')
            o->fault = optarg;
        else {
            fprintf(stderr, "usage: order_seeds [--from SEED] [--count N] [--fault defer]\n\n"
                            "BRAID_QUICK=1 in the environment: a tenth of the seeds.\n\n"
                            "example, one failing seed again: order_seeds --from 1234 --count 1\n");
            return 2;
        }
    }
    return 0;
}

/** Seeds with wrong bytes, or -1 where a run could not be done. */
static long order_run(const struct emu_sim_api *emu, const struct order_seeds *o)
{
    static struct bench_result result;
    char fabric[256], why[BENCH_WHY];
    long bad = 0;

    for (uint64_t i = 0; i < o->count; i++) {
        struct bench_spec s;

        order_shape(o->from + i, &s, fabric, sizeof(fabric));
        s.fault = o->fault;
        if (bench_run(emu, &s, &result, why, sizeof(why))) {
            printf("# seed %llu (%s): %s\n", (unsigned long long)(o->from + i), fabric, why);
            return -1;
        }
        bad += result.errors != 0;
        if (result.errors && !o->fault)
            printf("# seed %llu (%s, size %zu, window %u): %llu wrong bytes\n", (unsigned long long)(o->from + i),
                   fabric, s.size, s.window, (unsigned long long)result.errors);
        if (isatty(STDERR_FILENO) && i % 100 == 0)
            fprintf(stderr, "\r  seed %llu of %llu\033[K", (unsigned long long)i, (unsigned long long)o->count);
    }
    return bad;
}

int main(int argc, char **argv)
{
    struct order_seeds o = {.from = 1, .count = 100};
    const struct emu_sim_api *emu;
    char why[BENCH_WHY];
    long bad;
    int rc = order_arguments(argc, argv, &o);

    if (rc)
        return rc;
    if (bench_emu_load(NULL, &emu, why, sizeof(why))) {
        printf("Bail out! %s\n", why);
        return 1;
    }
    if (getenv("BRAID_QUICK") && o.count >= 10)
        o.count /= 10;
    bad = order_run(emu, &o);
    printf("1..1\n# seeds %llu to %llu, fault %s: %ld with wrong bytes; emulated (virtual time)\n",
           (unsigned long long)o.from, (unsigned long long)(o.from + o.count - 1), o.fault ? o.fault : "none", bad);
    rc = o.fault ? bad <= 0 : bad != 0;
    printf("%s 1 - %s\n", rc ? "not ok" : "ok", o.fault ? "wrong_without_the_rule" : "signals_stay_behind_their_data");
    return rc;
}
