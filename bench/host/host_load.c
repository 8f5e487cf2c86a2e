/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_load.c - a plugin's file: which interface it speaks, whose it is, and into the process with it. PEs that share a
 * process each need a copy of their own, since a plugin has state that is the process's. Called by host_open.c; next: dlopen(3).
 */
#include "host_int.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvshmem_clock.h"

/** The number behind ".so." in a file's name; -1 where there is none. */
static int host_file_major(const char *path)
{
    const char *name = strrchr(path, '/'), *at;
    char *end;
    long n;

    name = name ? name + 1 : path;
    at = strstr(name, ".so.");
    if (!at)
        return -1;
    n = strtol(at + 4, &end, 10);
    return end == at + 4 || (*end && *end != '.') || n < 0 || n > 1000 ? -1 : (int)n;
}

int host_version(const char *path, const char *name, const struct nvs_version **out, char *why, size_t why_len)
{
    int major = host_file_major(path);
    const char *want = name ? name : major == 3 ? "3b" : NULL;

    for (int i = 0; i < NVS_VERSIONS; i++) {
        const struct nvs_version *v = nvs_version_at(i);

        if (want ? strcmp(v->name, want) != 0 || v->major != major : v->major != major)
            continue;
        *out = v;
        return 0;
    }
    if (name)
        snprintf(
            why, why_len,
            "%s: seen the interface \"%s\", expected 3a, 3b, 4, 4 of 3.5.0, 5 or 6, of the same number as the file",
            path, name);
    else
        snprintf(why, why_len, "%s: expected the name of a transport of interface 3 to 6, ending in .so.3 to .so.6",
                 path);
    return -EINVAL;
}

bool host_is_braid(const char *path)
{
    static const char mark[] = BRAID_PLUGIN_CLOCK_NAME;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    bool found = false;
    void *map;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            found = memmem(map, (size_t)st.st_size, mark, sizeof(mark)) != NULL;
            munmap(map, (size_t)st.st_size);
        }
    }
    close(fd);
    return found;
}

/** A copy of the file with a name and an inode of its own. */
static int host_copy(const char *from, char *to, size_t len)
{
    const char *tmp = getenv("TMPDIR");
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, rc = 0;
    struct stat st = {0};

    if (in < 0)
        return -errno;
    snprintf(to, len, "%s/braid-host-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    out = mkstemp(to);
    if (out < 0 || fstat(in, &st))
        rc = -errno;
    for (off_t left = rc ? 0 : st.st_size; rc == 0 && left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);

        rc = n <= 0 ? -EIO : 0;
        left -= n;
    }
    close(in);
    if (out >= 0) {
        close(out);
        if (rc)
            unlink(to);
    }
    return rc;
}

int host_load(struct host *h)
{
    char copy[PATH_MAX], real[PATH_MAX];
    const char *path = h->o.path;
    int rc;

    if (!realpath(path, real)) /* a bare name would be searched for */
        return host_failed(h, -ELIBBAD, "%s: %s", path, strerror(errno));
    path = real;
    if (h->o.own_copy) {
        rc = host_copy(path, copy, sizeof(copy));
        if (rc)
            return host_failed(h, -ELIBBAD, "%s: no copy of it in the folder for temporary files: %s", path,
                               strerror(-rc));
        path = copy;
    }
    h->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (h->o.own_copy)
        unlink(copy);
    if (!h->lib)
        return host_failed(h, -ELIBBAD, "%s", dlerror());
    return 0;
}
