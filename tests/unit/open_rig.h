/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_rig.h - opens contexts over a fake device and connects them to themselves, with the log kept. Included by
 * test_api_open.c and test_api_args.c.
 */
#ifndef OPEN_RIG_H
#define OPEN_RIG_H

#include "unit.h"

#include "braid/braid.h"
#include "fake_verbs.h"

static char logged[4096];
static unsigned rounds;       /* of the alltoall */
static unsigned failing = 99; /* the round that fails */
static uint8_t memory[4096];

static inline void keep_line(void *arg, enum braid_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof(logged) - used, "%s\n", line);
}

static inline int to_self(void *arg, const void *send, void *recv, size_t bytes_each)
{
    (void)arg;
    memcpy(recv, send, bytes_each);
    rounds++;
    fake_auto(rounds == 3); /* probes go behind the third round */
    return rounds - 1 == failing ? -ECONNRESET : 0;
}

static inline int open_with(const char *ports, const char *setting, struct braid **out)
{
    char list[512];
    snprintf(list, sizeof(list), "ports=%s", ports);
    const char *settings[] = {list, "sq_depth=32", setting, NULL};
    struct braid_options options = BRAID_OPTIONS_INIT;
    options.settings = settings;
    options.log = keep_line;
    logged[0] = '\0';
    rounds = 0;
    return braid_open(&options, out);
}

static inline int connect_to_self(struct braid *b)
{
    struct braid_peers peers = {.size = sizeof(peers), .my_pe = 0, .n_pes = 1, .alltoall = to_self};
    return braid_connect(b, &peers);
}

static inline int start(void **state)
{
    (void)state;
    fake_reset();
    failing = 99;
    return 0;
}

static inline int nothing_left(void **state)
{
    (void)state;
    assert_int_equal(fake_alive(), 0);
    return 0;
}

#define CLEAN(f) cmocka_unit_test_setup_teardown(f, start, nothing_left)

#endif
