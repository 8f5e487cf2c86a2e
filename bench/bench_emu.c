/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_emu.c - finds and loads the emulator's shared object. Called first thing by programs that run in virtual time;
 * next: emu_sim.h.
 */
#include "bench.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** The program's own folder, with a '/' behind it. */
static int bench_emu_own_folder(char *out, size_t len)
{
    ssize_t n = readlink("/proc/self/exe", out, len - 1);
    char *slash;

    if (n <= 0)
        return -ENOENT;
    out[n] = '\0';
    slash = strrchr(out, '/');
    if (!slash)
        return -ENOENT;
    slash[1] = '\0';
    return 0;
}

static int bench_emu_find(char *out, size_t len)
{
    static const char *const places[] = {"../emu/", "../../emu/", "../lib/braid/emu/"};
    char own[PATH_MAX];

    if (bench_emu_own_folder(own, sizeof(own)))
        return -ENOENT;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int n = snprintf(out, len, "%s%slibibverbs.so.1", own, places[i]);

        if (n > 0 && (size_t)n < len && access(out, R_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

int bench_emu_where(const struct emu_sim_api *emu, char *out, size_t len)
{
    char link[PATH_MAX];
    Dl_info info;

    if (!dladdr(emu, &info) || !realpath(info.dli_fname, link) || snprintf(out, len, "%s", link) >= (int)len)
        return -ENOENT;
    return 0;
}

int bench_emu_load(const char *path, const struct emu_sim_api **out, char *why, size_t why_len)
{
    const struct emu_sim_api *(*get)(uint32_t) = NULL;
    char found[PATH_MAX + 64];
    void *handle;

    if (!path)
        path = getenv("BRAID_EMU_LIB");
    if (path && !path[0])
        path = NULL;
    if (!path) {
        if (bench_emu_find(found, sizeof(found))) {
            snprintf(
                why, why_len,
                "emulator: no libibverbs.so.1 in ../emu beside this program; build it, or set BRAID_EMU_LIB to its path");
            return -ENOENT;
        }
        path = found;
    }
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(why, why_len, "emulator: %s", dlerror());
        return -ELIBBAD;
    }
    /* ISO C has no cast from object to function pointer; POSIX promises that the bytes are good. */
    memcpy(&get, &(void *){dlsym(handle, "emu_sim_api")}, sizeof(get));
    *out = get ? get(EMU_SIM_VERSION) : NULL;
    if (!*out) {
        snprintf(why, why_len, "emulator: %s is not braid's emulator of version %d; a real libibverbs?", path,
                 EMU_SIM_VERSION);
        return -ELIBBAD;
    }
    return 0;
}
