/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - builds a folder that looks as sysfs does on some host, of PCI functions, GPUs and RDMA devices. Each function may be made
 * once; folders on the way come by themselves. A step that fails ends the program: no test is about that.
 */
#ifndef TREE_H
#define TREE_H

#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree_root[64];

static inline void tree_must(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

/* Makes all folders of a path below the root, its last part too. */
static inline void tree_folder(const char *path)
{
    char full[PATH_MAX];
    snprintf(full, sizeof(full), "%s/%s", tree_root, path);
    for (char *p = full + strlen(tree_root) + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(full, 0700);
        *p = '/';
    }
    mkdir(full, 0700);
    tree_must(access(full, F_OK) == 0, full);
}

__attribute__((format(printf, 3, 4))) static inline void tree_file(const char *folder, const char *name,
                                                                   const char *format, ...)
{
    char full[PATH_MAX];
    va_list ap;
    snprintf(full, sizeof(full), "%s/%s/%s", tree_root, folder, name);
    FILE *f = fopen(full, "w");
    tree_must(f != NULL, full);
    va_start(ap, format);
    vfprintf(f, format, ap);
    va_end(ap);
    tree_must(fclose(f) == 0, full);
}

static inline void tree_link(const char *folder, const char *name, const char *to)
{
    char full[PATH_MAX], target[PATH_MAX];
    tree_folder(folder);
    snprintf(full, sizeof(full), "%s/%s/%s", tree_root, folder, name);
    snprintf(target, sizeof(target), "%s/%s", tree_root, to);
    tree_must(symlink(target, full) == 0, full);
}

static inline void tree_begin(void)
{
    snprintf(tree_root, sizeof(tree_root), "/tmp/braid-tree-XXXXXX");
    tree_must(mkdtemp(tree_root) != NULL, "mkdtemp");
}

static inline int tree_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void tree_end(void)
{
    nftw(tree_root, tree_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* A PCI function at a place, "pci0000:10/0000:10:01.0/0000:11:00.0". Its folder below the root comes back. */
static inline void tree_pci(const char *place, int numa, const char *vendor, const char *class, char folder[512])
{
    const char *name = strrchr(place, '/') + 1;
    snprintf(folder, 512, "sys/devices/%s", place);
    tree_folder(folder);
    tree_file(folder, "numa_node", "%d\n", numa);
    tree_file(folder, "vendor", "%s\n", vendor);
    tree_file(folder, "class", "%s\n", class);
    tree_link("sys/bus/pci/devices", name, folder);
}

static inline void tree_gpu(const char *place, int numa)
{
    char folder[512];
    tree_pci(place, numa, "0x10de", "0x030200", folder);
}

/* One port of a device. */
static inline void tree_port(const char *dev, int port, const char *state, const char *link, const char *rate)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "sys/class/infiniband/%s/ports/%d", dev, port);
    tree_folder(folder);
    tree_file(folder, "state", "%s\n", state);
    tree_file(folder, "link_layer", "%s\n", link);
    tree_file(folder, "rate", "%s\n", rate);
}

/* An RDMA device at a place (NULL: in software), with port 1 ACTIVE on InfiniBand at 400 Gb/s. */
static inline void tree_nic(const char *dev, const char *place, int numa)
{
    char folder[512], class[512], net[600];
    snprintf(class, sizeof(class), "sys/class/infiniband/%s", dev);
    tree_folder(class);
    tree_file(class, "node_type", "1: CA\n");
    tree_port(dev, 1, "4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)");
    if (!place)
        return;
    tree_pci(place, numa, "0x15b3", "0x020700", folder);
    tree_link(class, "device", folder);
    snprintf(net, sizeof(net), "%s/net/ib%s", folder, dev + strlen(dev) - 1);
    tree_folder(net);
}

/* A link of a bond, of 200 Gb/s, with an RDMA device of its own or not. tree_bond() names them all. */
static inline void tree_slave(const char *name, const char *bond, bool rdma)
{
    char link[96], to[64];
    snprintf(link, sizeof(link), "sys/class/net/%s%s", name, rdma ? "/device/infiniband" : "");
    tree_folder(link);
    snprintf(link, sizeof(link), "sys/class/net/%s", name);
    tree_file(link, "speed", "200000\n");
    snprintf(to, sizeof(to), "sys/class/net/%s", bond);
    tree_link(link, "master", to);
}

static inline void tree_bond(const char *bond, const char *slaves)
{
    char folder[96];
    snprintf(folder, sizeof(folder), "sys/class/net/%s/bonding", bond);
    tree_folder(folder);
    tree_file(folder, "slaves", "%s\n", slaves);
}

/* Makes a device a virtual function of another. */
static inline void tree_virtual(const char *place, const char *physical)
{
    char folder[512], to[512];
    snprintf(folder, sizeof(folder), "sys/devices/%s", place);
    snprintf(to, sizeof(to), "sys/devices/%s", physical);
    tree_link(folder, "physfn", to);
}

#endif
