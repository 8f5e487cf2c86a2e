/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_clock.h - how a host with a clock of its own lends it to the plugin: the minihost in virtual time, and nobody
 * else. The program exports braid_plugin_clock(); the plugin looks it up with dlsym(RTLD_DEFAULT) while it is initialised
 * and hands what it gives to braid_open(). Includes nothing of the plugin, so that the minihost may include it.
 */
#ifndef BRAID_NVSHMEM_CLOCK_H
#define BRAID_NVSHMEM_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A clock and a way to wait, as in struct braid_options. */
struct braid_plugin_clock {
    uint64_t (*now)(void *arg);                   /**< nanoseconds, monotonic */
    int (*wait)(void *arg, uint64_t deadline_ns); /**< until something can have changed; 0 or a negative errno */
    void *arg;                                    /**< given to both */
};

/** The name that the plugin looks for. */
#define BRAID_PLUGIN_CLOCK_NAME "braid_plugin_clock"

/**
 * Defined by the program, exported. The clock of the PE that calls, valid until the plugin's finalize has returned; NULL
 * where time is real. Called once for each nvshmemt_init(), on its thread.
 */
const struct braid_plugin_clock *braid_plugin_clock(void);

/** The type of braid_plugin_clock(). */
typedef const struct braid_plugin_clock *(*braid_plugin_clock_fn)(void);

#ifdef __cplusplus
}
#endif
#endif
