/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_emu_space.c - shows the tree in /sys by a mount namespace of the command's own: whatever a program is made of, it sees the
 * devices. sysfs itself takes no new folders, so a folder of it is covered by a tmpfs in which all that was there is bound
 * again, and the tree's folders beside it. Needs CAP_SYS_ADMIN. Called by cli_emu.c in the child; next: mount(2).
 */
#include "cli_emu.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int cli_emu_space_bind(const char *from, const char *to)
{
    if (mkdir(to, 0755) != 0 && errno != EEXIST)
        return -errno;
    return mount(from, to, NULL, MS_BIND | MS_REC, NULL) ? -errno : 0;
}

static int cli_emu_space_link(const char *from, const char *to)
{
    char target[PATH_MAX];
    ssize_t n = readlink(from, target, sizeof(target) - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    return symlink(target, to) ? -errno : 0;
}

/** Shows what is in one folder in another, but for names that a third has. */
static int cli_emu_space_show(const char *from, const char *in, const char *unless)
{
    DIR *d = opendir(from);
    struct dirent *e;
    int rc = d ? 0 : -errno;

    while (d && rc == 0 && (e = readdir(d))) {
        char source[PATH_MAX], to[PATH_MAX], other[PATH_MAX];
        struct stat st;

        if (e->d_name[0] == '.' ||
            (unless && snprintf(other, sizeof(other), "%s/%s", unless, e->d_name) < (int)sizeof(other) &&
             access(other, F_OK) == 0))
            continue;
        if (snprintf(source, sizeof(source), "%s/%s", from, e->d_name) >= (int)sizeof(source) ||
            snprintf(to, sizeof(to), "%s/%s", in, e->d_name) >= (int)sizeof(to))
            rc = -ENAMETOOLONG;
        else if (lstat(source, &st) == 0 && S_ISLNK(st.st_mode))
            rc = cli_emu_space_link(source, to);
        else if (S_ISDIR(st.st_mode))
            rc = cli_emu_space_bind(source, to);
    }
    if (d)
        closedir(d);
    return rc;
}

/** Covers /sys/NAME; what was there stays reachable below the tree, in this namespace alone. */
static int cli_emu_space_cover(const char *tree, const char *name)
{
    char at[64], ours[PATH_MAX], was[PATH_MAX];
    int rc;

    snprintf(at, sizeof(at), "/sys/%s", name);
    if (snprintf(ours, sizeof(ours), "%s/%s", tree, name) >= (int)sizeof(ours) ||
        snprintf(was, sizeof(was), "%s/.was-%s", tree, name) >= (int)sizeof(was))
        return -ENAMETOOLONG;
    rc = cli_emu_space_bind(at, was);
    if (rc == 0 && mount("braid-emu", at, "tmpfs", 0, "mode=755"))
        rc = -errno;
    rc = rc ? rc : cli_emu_space_show(was, at, ours);
    return rc ? rc : cli_emu_space_show(ours, at, NULL);
}

int cli_emu_space_enter(const char *tree)
{
    int rc;

    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return -errno;
    rc = cli_emu_space_cover(tree, "class");
    return rc ? rc : cli_emu_space_cover(tree, "devices");
}
