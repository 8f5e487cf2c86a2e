/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_host.c - which NVSHMEM host library a command will use, and which plugin file that one opens. Never guesses: two that
 * disagree, or none, are an error. Called by cli_run.c; next: cli_host_ask.c.
 */
#include "cli_host.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLI_HOST_NAME  "libnvshmem_host.so"
#define CLI_HOST_STOCK "nvshmem_transport_ibrc.so."

int cli_host_plugin(const int *release, char *why, size_t len)
{
    static const struct {
        int minor, plugin;
    } known[] = {{0, 3}, {1, 3}, {2, 3}, {3, 3}, {4, 3}, {5, 4}, {6, 5}, {7, 6}};

    for (size_t i = 0; release[0] == 3 && i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].minor == release[1])
            return known[i].plugin;
    }
    if (release[0] == 3 && release[1] == 8)
        snprintf(why, len, "NVSHMEM 3.8 opens a plugin of interface version 7, which braid does not have");
    else
        snprintf(why, len, "NVSHMEM %d.%d is none that braid knows (3.0 to 3.7)", release[0], release[1]);
    return 0;
}

void cli_host_add(struct cli_host_list *list, const char *path, const char *from)
{
    char real[PATH_MAX];
    const char *name;
    struct cli_host *h;

    if (!realpath(path, real) || list->n == CLI_HOST_MOST)
        return;
    for (int i = 0; i < list->n; i++) {
        if (strcmp(list->host[i].path, real) == 0)
            return;
    }
    h = &list->host[list->n++];
    *h = (struct cli_host){0};
    snprintf(h->path, sizeof(h->path), "%s", real);
    snprintf(h->from, sizeof(h->from), "%s", from);
    name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (strncmp(name, CLI_HOST_STOCK, strlen(CLI_HOST_STOCK)) == 0)
        h->plugin = (int)strtol(name + strlen(CLI_HOST_STOCK), NULL, 10);
}

void cli_host_add_folder(struct cli_host_list *list, const char *folder, const char *from)
{
    DIR *dir = folder[0] ? opendir(folder) : NULL;
    const struct dirent *e;

    while (dir && (e = readdir(dir)) != NULL) {
        char path[PATH_MAX];

        if (strncmp(e->d_name, CLI_HOST_NAME, strlen(CLI_HOST_NAME)) == 0 &&
            snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < (int)sizeof(path))
            cli_host_add(list, path, from);
    }
    if (dir)
        closedir(dir);
}

/** Folders with ':' between them, each with what is in `below` behind it. */
static void cli_host_add_path(struct cli_host_list *list, const char *variable, const char *below)
{
    const char *value = getenv(variable);
    char *copy = value ? strdup(value) : NULL, *rest = copy, *folder;

    while (copy && (folder = strsep(&rest, ":")) != NULL) {
        char path[PATH_MAX];

        if (folder[0] && snprintf(path, sizeof(path), "%s%s", folder, below) < (int)sizeof(path))
            cli_host_add_folder(list, path, variable);
    }
    free(copy);
}

static void cli_host_collect(struct cli_host_list *list, const char *program)
{
    static const char *const homes[] = {"NVSHMEM_HOME", "NVSHMEM_DIR", "NVSHMEM_PREFIX"};

    /* What the linker says of the program is what will be loaded, whatever else lies about. */
    cli_host_ask_linker(list, program);
    if (list->n)
        return;
    cli_host_ask_rpath(list, program);
    for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++) {
        cli_host_add_path(list, homes[i], "/lib");
        cli_host_add_path(list, homes[i], "/lib64");
    }
    cli_host_add_path(list, "LD_LIBRARY_PATH", "");
    cli_host_ask_python(list, program);
    cli_host_ask_ldconfig(list);
}

static void cli_host_show(const struct cli_host_list *list)
{
    for (int i = 0; i < list->n; i++) {
        const struct cli_host *h = &list->host[i];

        if (h->release[0])
            fprintf(stderr, "  %s (by %s): NVSHMEM %d.%d.%d, opens " CLI_HOST_STOCK "%d\n", h->path, h->from,
                    h->release[0], h->release[1], h->release[2], h->plugin);
        else
            fprintf(stderr, "  %s (by %s): of a host that opens " CLI_HOST_STOCK "%d\n", h->path, h->from, h->plugin);
    }
}

/** Fills in what each one wants. 0, or -1 after a message. */
static int cli_host_judge(struct cli_host_list *list)
{
    for (int i = 0; i < list->n; i++) {
        struct cli_host *h = &list->host[i];
        char why[256] = "";

        if (h->plugin)
            continue;
        if (cli_host_ask_release(h->path, h->release, why, sizeof(why)) == 0)
            h->plugin = cli_host_plugin(h->release, why, sizeof(why));
        if (!h->plugin) {
            fprintf(stderr, "braid run: seen %s (by %s): %s\n", h->path, h->from, why);
            return -1;
        }
    }
    return 0;
}

int cli_host_find(const char *given, const char *command, struct cli_host *out)
{
    static struct cli_host_list list;
    char program[PATH_MAX];

    list.n = 0;
    if (given) {
        cli_host_add(&list, given, "you");
        if (!list.n) {
            fprintf(stderr, "braid run: --host-lib: seen \"%s\", expected the file of a libnvshmem_host.so\n", given);
            return -1;
        }
    } else if (cli_host_which(command, program, sizeof(program)) == 0) {
        cli_host_collect(&list, program);
    }
    if (!list.n) {
        fprintf(stderr,
                "braid run: seen no " CLI_HOST_NAME
                " that %s would load, expected one: by the program itself, in NVSHMEM_HOME,\n"
                "  LD_LIBRARY_PATH, python3's packages or ldconfig's list. Name it with --host-lib PATH\n",
                command);
        return -1;
    }
    if (cli_host_judge(&list))
        return -1;
    for (int i = 1; i < list.n; i++) {
        if (list.host[i].plugin != list.host[0].plugin) {
            fprintf(stderr, "braid run: seen host libraries that open different plugins, expected one kind:\n");
            cli_host_show(&list);
            fprintf(stderr, "  Say which one %s uses: --host-lib PATH\n", command);
            return -1;
        }
    }
    *out = list.host[0];
    return 0;
}
