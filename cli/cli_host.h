/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_host.h - what `braid run` has to know of the NVSHMEM host library that a command will use: cli_host.c (where it is, which
 * plugin file it wants), cli_host_ask.c (questions to the dynamic linker, Python and the library itself).
 */
#ifndef CLI_HOST_H
#define CLI_HOST_H

#include <limits.h>
#include <stddef.h>

enum { CLI_HOST_MOST = 32 };

/** A host library, or a plugin of NVIDIA's beside a program that has the host library linked in. */
struct cli_host {
    char path[PATH_MAX];
    char from[64];  /* where the name came from, for messages */
    int release[3]; /* of NVSHMEM; {0, 0, 0} where only the file name of a plugin tells */
    int plugin;     /* N of nvshmem_transport_ibrc.so.N; 0: not known yet */
};

struct cli_host_list {
    struct cli_host host[CLI_HOST_MOST];
    int n;
};

/** Finds the one host library that command will use. given: the path that the user named, or NULL. 0, or -1 after it has
 *  said what was found, what was expected and what to do. */
int cli_host_find(const char *given, const char *command, struct cli_host *out);
/** Adds a file if it is there and new. Symbolic links are followed, so that one library is one. */
void cli_host_add(struct cli_host_list *list, const char *path, const char *from);
/** Adds host libraries in a folder. */
void cli_host_add_folder(struct cli_host_list *list, const char *folder, const char *from);
/** N of the plugin file that a release of NVSHMEM opens; 0: none that we have, and why goes to out. */
int cli_host_plugin(const int *release, char *why, size_t len);

/* ---- cli_host_ask.c ----------------------------------------------------------------------------------------------------- */

/** The program that execvp() would run, as a path. 0 or -1. */
int cli_host_which(const char *command, char *out, size_t len);
/** Adds what the dynamic linker would load for a program, without running it. */
void cli_host_ask_linker(struct cli_host_list *list, const char *program);
/** Adds what lies in the packages of the Python that runs a program: itself, the one in its first line, or python3. */
void cli_host_ask_python(struct cli_host_list *list, const char *program);
/** Adds what the system's own list of libraries has. */
void cli_host_ask_ldconfig(struct cli_host_list *list);
/** Folders in a program's own search path (DT_RPATH, DT_RUNPATH): host libraries, and plugins of a host linked in. */
void cli_host_ask_rpath(struct cli_host_list *list, const char *program);
/** Loads a host library in a child and calls the function that says its release. 0, or -1 and why. */
int cli_host_ask_release(const char *path, int *release, char *why, size_t len);

#endif
