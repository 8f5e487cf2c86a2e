/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - a host from text that people have: a host saved by `braid plan --save`, hwloc XML, NCCL topology XML, the table of
 * `nvidia-smi topo`. Each importer takes bytes of any kind and never guesses: what is damaged is repaired where the text itself
 * proves the repair, which is then a note of the host, or it is an error with its place.
 */
#ifndef IMPORT_H
#define IMPORT_H

#include "topo_host.h"

#include <stdio.h>

#define IMPORT_MOST (16u << 20) /**< bytes of a text; more is no host's */

enum import_format { IMPORT_AUTO, IMPORT_HOST, IMPORT_HWLOC, IMPORT_NCCL, IMPORT_SMI };

/** What is wrong with a text, and where; line 0: nowhere in particular. */
struct import_error {
    unsigned line, column;
    char text[400];
};

/** Fills in the error; returns -EINVAL. */
int import_fail(struct import_error *error, unsigned line, unsigned column, const char *format, ...) ATTR_PRINTF(4, 5);

/** "auto", "host", "hwloc", "nccl", "smi". False where it is none of them. */
bool import_format_parse(const char *name, enum import_format *out);

/** The name of a format; static. */
const char *import_format_name(enum import_format format);

/** What the text looks like; IMPORT_AUTO: like none of them. */
enum import_format import_guess(const char *text, size_t len);

/** Reads a text of the given format, or of what it looks like. 0, -EINVAL with *error filled in (-EFAULT for a defect
 *  of braid's), or -ENOMEM. Freed by topo_free(). */
int import_text(enum import_format format, const char *text, size_t len, struct topo_host **out,
                struct import_error *error) ATTR_CHECK_RESULT;

/** The table of `nvidia-smi topo -m` or `-mp` as people paste it, with what `ibv_devinfo` printed before or behind it. */
int import_smi(const char *text, size_t len, struct topo_host **out, struct import_error *error) ATTR_CHECK_RESULT;

/** A topology file of NCCL, dumped by it or written by hand. */
int import_nccl(const char *text, size_t len, struct topo_host **out, struct import_error *error) ATTR_CHECK_RESULT;

/** What lstopo exports, XML of hwloc 2. */
int import_hwloc(const char *text, size_t len, struct topo_host **out, struct import_error *error) ATTR_CHECK_RESULT;

/** What import_save() wrote. */
int import_host(const char *text, size_t len, struct topo_host **out, struct import_error *error) ATTR_CHECK_RESULT;

/** Writes the host as JSON, "braid.host/1". 0 or -EIO. */
int import_save(const struct topo_host *host, FILE *to) ATTR_CHECK_RESULT;

#endif
