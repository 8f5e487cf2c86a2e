/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_emu.h - what the files of `braid emu` share: the tree that shows emulated devices in /sys.
 */
#ifndef CLI_EMU_H
#define CLI_EMU_H

#include <stdbool.h>

#include "cli.h"
#include "emu_sim.h"

enum { CLI_EMU_PORTS = 2048 };

/** Makes the tree of a host's devices in a new folder below TMPDIR, for this user alone; its name goes to out. gpus: with the
 *  host's GPUs, behind the PCIe switches that the fabric's topo means. 0 or -1. */
int cli_emu_tree_make(char *out, size_t len, const char *host, const struct emu_real_port *port, int n, bool gpus);
/** Writes anew those states and counters that are not what they were before, which is then what they are. n < 0: nothing is known yet. */
void cli_emu_tree_update(const char *tree, const char *host, struct emu_real_port *before,
                         const struct emu_real_port *port, int n);
/** Removes it. "": there is none. */
void cli_emu_tree_remove(const char *tree);

/** In the child: the process gets a mount namespace in which /sys shows the tree. 0 or -errno. */
int cli_emu_space_enter(const char *tree);

#endif
