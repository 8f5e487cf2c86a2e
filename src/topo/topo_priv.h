/* SPDX-License-Identifier: Apache-2.0 */
/* topo_priv.h - files and folders below sysfs; for the files of src/topo alone. */
#ifndef TOPO_PRIV_H
#define TOPO_PRIV_H

#include "topo.h"

#include <limits.h>

/** The path of something below a folder. False where it is too long to be anything. */
bool topo_below(const char *folder, const char *name, char out[PATH_MAX]);

/** Where sysfs is below a root; below "/" it is "/sys", by which it is known to whoever redirects it. */
bool topo_sys(const char *sysroot, char out[PATH_MAX]);

/** The first line of a file, without the newline; empty where it cannot be read. */
void topo_line(const char *folder, const char *name, char *out, size_t size);

/** The number that a file begins with; `other` where it is none, or is not in 0 .. most. */
long topo_file_number(const char *folder, const char *name, int base, long most, long other);

/** Entries of a folder that do not begin with a dot, in the order of their names; freed by the caller, each and the list. -1: no
 *  such folder, or no memory. */
int topo_names(const char *folder, char ***out);

/** Frees what topo_names() gave. */
void topo_names_free(char **names, int count);

/** The node of a PCI function's folder, and of all that it is plugged into, from the folder's real path. -1: it is none. */
int topo_place(struct topo_host *host, const char *folder);

/** Adds the host's RDMA ports. Logs what found no room. */
void topo_ports(struct topo_host *host, const char *sys, const struct log *log);

#endif
