/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_rig.h - runs a program of a host on every PE, for each interface version, from C and from C++. Included by test_plugin.c
 * and test_plugin_order.c.
 */
#ifndef PLUGIN_RIG_H
#define PLUGIN_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"
#include "plugin_host.h"

enum { WORD = FABRIC_MEM, SLOT = FABRIC_MEM + 256, HALF = FABRIC_MEM / 2 };

/* What a program needs to know. */
struct test {
    const struct nvs_version *v;
    const struct host_calls *call;
    int (*fn)(struct host *h);
};

static inline int test_main(struct fabric_pe *f)
{
    const struct test *t = f->run->arg;
    struct host h;
    int status = host_start(&h, f, t->v, t->call);

    if (!fabric_equal(f, status, 0, "start"))
        return -EIO;
    status = t->fn(&h);
    fabric_equal(f, status, 0, "what the host was told");
    if (status)
        return -EIO;
    return host_stop(&h) ? -EIO : 0;
}

static inline void run_one(const struct test *t, const char *spec, uint64_t seed)
{
    struct fabric f = {.spec = spec,
                       .seed = seed,
                       .fn = test_main,
                       .no_context = true,
                       .plain_addresses = true,
                       .arg = (void *)(uintptr_t)t};

    fabric_run_ok(&f);
}

static inline const char *ports_of(const char *spec)
{
    const char *at = strstr(spec, "ports=");
    static const char *const names[] = {"", "mlx5_0:1", "mlx5_0:1,mlx5_1:1", "", "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1"};

    return names[at ? at[6] - '0' : 1];
}

/* Every version, from C and from C++. */
static inline void run_all(int (*fn)(struct host *h), const char *spec)
{
    assert_int_equal(setenv("BRAID_PORTS", ports_of(spec), 1), 0);
    for (int i = 0; i < NVS_VERSIONS; i++) {
        for (int way = 0; way < HOST_WAYS; way++) {
            struct test t = {nvs_version_at(i), way ? &host_calls_cxx : &host_calls_c, fn};

            run_one(&t, spec, (uint64_t)i + 1);
        }
    }
}

static inline void fill(unsigned char *p, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (unsigned char)(fabric_random(&seed) >> 11);
}

static inline bool same(struct host *h, size_t at, size_t len, uint64_t seed)
{
    bool ok = true;

    for (size_t i = 0; i < len; i++)
        ok &= *host_at(h, at + i) == (unsigned char)(fabric_random(&seed) >> 11);
    return ok;
}

static inline uint64_t *word(struct host *h, int i)
{
    return (uint64_t *)(void *)host_at(h, WORD + (size_t)i * 8);
}

static inline bool check(struct host *h, bool ok, const char *what)
{
    return fabric_check(h->f, ok, what);
}

#endif
