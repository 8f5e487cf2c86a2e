/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_sysfs.c - shows programs the emulated devices in /sys without touching it: an object for LD_PRELOAD whose open(), stat()
 * and so on turn paths below /sys/class/infiniband, /dev/infiniband and a few others into paths below a folder (BRAID_EMU_SYSFS) where
 * `braid emu` has laid out the same tree. Works without root, in containers. Knows nothing of devices.
 *
 * Only calls by a program's own name for them are seen: what libc opens for itself is not. Called by programs; next: libc.
 */
/* Both names of each function are wanted, and none of them to mean the other. */
#undef _FILE_OFFSET_BITS

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes a function of this file the one that a program finds by a name of libc. */
#define EMU_SYSFS_AS(fn) __attribute__((visibility("default"), alias(fn)))

/* The tree holds what is below /sys, and /dev/infiniband as dev/infiniband: UCX looks whether it may open a device's file there. */
static const char *const emu_sysfs_below[] = {"/sys/class/infiniband", "/sys/class/infiniband_verbs",
                                              "/sys/devices/pci0000:b0", "/dev/infiniband", "/sys/bus/pci/devices"};

/* And interfaces whose names begin so: those of bonds. All others stay as they are. */
static const char emu_sysfs_bond[] = "/sys/class/net/emubond";

/** How much of a path the tree leaves out. */
static size_t emu_sysfs_skip(const char *path)
{
    return strncmp(path, "/sys", 4) == 0 ? 4 : 0;
}

/** libc's own function. ISO C has no cast from object to function pointer; POSIX promises that the bytes are good. */
static void emu_sysfs_next(void *fn, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(fn, &found, sizeof(found));
}

static const char *emu_sysfs_in(const char *tree, const char *path, char room[PATH_MAX])
{
    return snprintf(room, PATH_MAX, "%s%s", tree, path + emu_sysfs_skip(path)) < PATH_MAX ? room : path;
}

/** The path to use instead: in room, or the same one. */
static const char *emu_sysfs_path(const char *path, char room[PATH_MAX])
{
    const char *tree = getenv("BRAID_EMU_SYSFS");

    /* Real PCI devices, the last one, are hidden only where the tree has GPUs. */
    size_t count = sizeof(emu_sysfs_below) / sizeof(emu_sysfs_below[0]) - !getenv("BRAID_EMU_GPUS");
    for (size_t i = 0; path && tree && i < count; i++) {
        size_t len = strlen(emu_sysfs_below[i]);

        if (strncmp(path, emu_sysfs_below[i], len) == 0 && (path[len] == '\0' || path[len] == '/'))
            return emu_sysfs_in(tree, path, room);
    }
    if (path && tree && strncmp(path, emu_sysfs_bond, sizeof(emu_sysfs_bond) - 1) == 0)
        return emu_sysfs_in(tree, path, room);
    return path;
}

static bool emu_sysfs_has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static int emu_sysfs_open(const char *path, int flags, ...)
{
    static int (*next)(const char *, int, ...);
    char room[PATH_MAX];
    mode_t mode = 0;
    va_list ap;

    if (emu_sysfs_has_mode(flags)) {
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    if (!next)
        emu_sysfs_next(&next, "open");
    return next(emu_sysfs_path(path, room), flags, mode);
}

static int emu_sysfs_open64(const char *path, int flags, ...)
{
    static int (*next)(const char *, int, ...);
    char room[PATH_MAX];
    mode_t mode = 0;
    va_list ap;

    if (emu_sysfs_has_mode(flags)) {
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    if (!next)
        emu_sysfs_next(&next, "open64");
    return next(emu_sysfs_path(path, room), flags, mode);
}

static int emu_sysfs_openat(int folder, const char *path, int flags, ...)
{
    static int (*next)(int, const char *, int, ...);
    char room[PATH_MAX];
    mode_t mode = 0;
    va_list ap;

    if (emu_sysfs_has_mode(flags)) {
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    if (!next)
        emu_sysfs_next(&next, "openat");
    return next(folder, emu_sysfs_path(path, room), flags, mode);
}

static FILE *emu_sysfs_fopen(const char *path, const char *mode)
{
    static FILE *(*next)(const char *, const char *);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "fopen");
    return next(emu_sysfs_path(path, room), mode);
}

static FILE *emu_sysfs_fopen64(const char *path, const char *mode)
{
    static FILE *(*next)(const char *, const char *);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "fopen64");
    return next(emu_sysfs_path(path, room), mode);
}

static DIR *emu_sysfs_opendir(const char *path)
{
    static DIR *(*next)(const char *);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "opendir");
    return next(emu_sysfs_path(path, room));
}

static int emu_sysfs_access(const char *path, int mode)
{
    static int (*next)(const char *, int);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "access");
    return next(emu_sysfs_path(path, room), mode);
}

static int emu_sysfs_stat(const char *path, struct stat *st)
{
    static int (*next)(const char *, struct stat *);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "stat");
    return next(emu_sysfs_path(path, room), st);
}

static int emu_sysfs_stat64(const char *path, struct stat64 *st)
{
    static int (*next)(const char *, struct stat64 *);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "stat64");
    return next(emu_sysfs_path(path, room), st);
}

static int emu_sysfs_lstat(const char *path, struct stat *st)
{
    static int (*next)(const char *, struct stat *);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "lstat");
    return next(emu_sysfs_path(path, room), st);
}

static int emu_sysfs_lstat64(const char *path, struct stat64 *st)
{
    static int (*next)(const char *, struct stat64 *);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "lstat64");
    return next(emu_sysfs_path(path, room), st);
}

static int emu_sysfs_fstatat(int folder, const char *path, struct stat *st, int flags)
{
    static int (*next)(int, const char *, struct stat *, int);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "fstatat");
    return next(folder, emu_sysfs_path(path, room), st, flags);
}

static int emu_sysfs_fstatat64(int folder, const char *path, struct stat64 *st, int flags)
{
    static int (*next)(int, const char *, struct stat64 *, int);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "fstatat64");
    return next(folder, emu_sysfs_path(path, room), st, flags);
}

static int emu_sysfs_statx(int folder, const char *path, int flags, unsigned mask, struct statx *st)
{
    static int (*next)(int, const char *, int, unsigned, struct statx *);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "statx");
    return next(folder, emu_sysfs_path(path, room), flags, mask, st);
}

static ssize_t emu_sysfs_readlink(const char *path, char *out, size_t len)
{
    static ssize_t (*next)(const char *, char *, size_t);
    char room[PATH_MAX];

    if (!next)
        emu_sysfs_next(&next, "readlink");
    return next(emu_sysfs_path(path, room), out, len);
}

/** The answer begins as the question did, wherever the tree lies. */
static char *emu_sysfs_realpath(const char *path, char *out)
{
    static char *(*next)(const char *, char *);
    const char *tree = getenv("BRAID_EMU_SYSFS");
    char room[PATH_MAX], real[PATH_MAX], *end;
    const char *use = emu_sysfs_path(path, room);

    if (!next)
        emu_sysfs_next(&next, "realpath");
    if (use == path)
        return next(path, out);
    if (!next(use, real))
        return NULL;
    if (!tree || strncmp(real, tree, strlen(tree)) != 0)
        return next(use, out);
    if (!out)
        out = malloc(PATH_MAX);
    if (!out)
        return NULL;
    end = stpcpy(out, emu_sysfs_skip(path) ? "/sys" : "");
    snprintf(end, PATH_MAX - 4, "%s", real + strlen(tree));
    return out;
}

/* What programs built with _FORTIFY_SOURCE call instead. */
static char *emu_sysfs_realpath_chk(const char *path, char *out, size_t len)
{
    if (len < PATH_MAX)
        abort();
    return emu_sysfs_realpath(path, out);
}

static int emu_sysfs_open_2(const char *path, int flags)
{
    return emu_sysfs_open(path, flags);
}

static int emu_sysfs_open64_2(const char *path, int flags)
{
    return emu_sysfs_open64(path, flags);
}

static ssize_t emu_sysfs_readlink_chk(const char *path, char *out, size_t len, size_t room)
{
    if (room < len)
        abort();
    return emu_sysfs_readlink(path, out, len);
}

/* ---- under their names ------------------------------------------------------------------------------------------------ */

EMU_SYSFS_AS("emu_sysfs_open") int open(const char *path, int flags, ...);
EMU_SYSFS_AS("emu_sysfs_open64") int open64(const char *path, int flags, ...);
EMU_SYSFS_AS("emu_sysfs_openat") int openat(int folder, const char *path, int flags, ...);
EMU_SYSFS_AS("emu_sysfs_fopen") FILE *fopen(const char *path, const char *mode);
EMU_SYSFS_AS("emu_sysfs_fopen64") FILE *fopen64(const char *path, const char *mode);
EMU_SYSFS_AS("emu_sysfs_opendir") DIR *opendir(const char *path);
EMU_SYSFS_AS("emu_sysfs_access") int access(const char *path, int mode);
EMU_SYSFS_AS("emu_sysfs_stat") int stat(const char *path, struct stat *st);
EMU_SYSFS_AS("emu_sysfs_stat64") int stat64(const char *path, struct stat64 *st);
EMU_SYSFS_AS("emu_sysfs_lstat") int lstat(const char *path, struct stat *st);
EMU_SYSFS_AS("emu_sysfs_lstat64") int lstat64(const char *path, struct stat64 *st);
EMU_SYSFS_AS("emu_sysfs_fstatat") int fstatat(int folder, const char *path, struct stat *st, int flags);
EMU_SYSFS_AS("emu_sysfs_fstatat64") int fstatat64(int folder, const char *path, struct stat64 *st, int flags);
EMU_SYSFS_AS("emu_sysfs_statx") int statx(int folder, const char *path, int flags, unsigned mask, struct statx *st);
EMU_SYSFS_AS("emu_sysfs_readlink") ssize_t readlink(const char *path, char *out, size_t len);
EMU_SYSFS_AS("emu_sysfs_realpath") char *realpath(const char *path, char *out);
/* NOLINTBEGIN(bugprone-reserved-identifier): libc makes these names, for programs built with _FORTIFY_SOURCE */
EMU_SYSFS_AS("emu_sysfs_realpath_chk") char *__realpath_chk(const char *path, char *out, size_t len);
EMU_SYSFS_AS("emu_sysfs_open_2") int __open_2(const char *path, int flags);
EMU_SYSFS_AS("emu_sysfs_open64_2") int __open64_2(const char *path, int flags);
EMU_SYSFS_AS("emu_sysfs_readlink_chk") ssize_t __readlink_chk(const char *path, char *out, size_t len, size_t room);
/* NOLINTEND(bugprone-reserved-identifier) */
