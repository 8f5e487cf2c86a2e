/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo_sysfs.c - reads the host from sysfs: class/infiniband for ports, bus/pci/devices for GPUs.
 * May not open a device, choose, or write anything. Called by src/api/api_ports.c; next: src/plan/plan_ports.c
 */
#include "topo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The path of something below a folder. False where it is too long to be anything. */
static bool topo_below(const char *folder, const char *name, char out[PATH_MAX])
{
    return (size_t)snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

/* Where sysfs is below a root; below "/" it is "/sys", by which it is known to whoever redirects it. */
static bool topo_sys(const char *sysroot, char out[PATH_MAX])
{
    return topo_below(strcmp(sysroot, "/") == 0 ? "" : sysroot, "sys", out);
}

/* The first line of a file, without the newline; empty where it cannot be read. */
static void topo_line(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    out[0] = '\0';
    int fd = topo_below(folder, name, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* ---- the PCI tree ------------------------------------------------------------------------------------------------ */

/* The way to a device, from the real path of its folder: "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0". */
static void topo_place(const char *folder, struct pcipath *out)
{
    char real[PATH_MAX], text[32], *part, *rest;
    *out = (struct pcipath){.numa = -1};
    if (!realpath(folder, real))
        return;
    for (part = strtok_r(real, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        uint64_t number;
        if (!pcipath_number(part, &number))
            continue;                  /* what is above the tree */
        if (out->hops == PCIPATH_HOPS) /* deeper than any: what matters is near the end */
            memmove(out->hop + 1, out->hop + 2, (PCIPATH_HOPS - 2) * sizeof(out->hop[0]));
        else
            out->hops++;
        out->hop[out->hops - 1] = number;
    }
    topo_line(folder, "numa_node", text, sizeof(text));
    char *end;
    long node = strtol(text, &end, 10);
    if (end != text && node >= 0 && node < INT_MAX)
        out->numa = (int)node;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* "200 Gb/sec (4X HDR)" in bits a second; 0 where it is not that. */
static uint64_t topo_rate(const char *text)
{
    char *end;
    double gigabits = strtod(text, &end);
    if (end == text || strncmp(end, " Gb/sec", 7) != 0 || !(gigabits > 0 && gigabits < 1e6))
        return 0;
    return (uint64_t)(gigabits * 1e9 + 0.5);
}

/* The number of the physical function behind a virtual one. */
static uint64_t topo_physical(const char *device)
{
    char path[PATH_MAX], real[PATH_MAX];
    uint64_t number = 0;
    if (!topo_below(device, "physfn", path) || !realpath(path, real))
        return 0;
    const char *name = strrchr(real, '/');
    return name && pcipath_number(name + 1, &number) ? number : 0;
}

static void topo_netdev(const char *device, char out[16])
{
    char path[PATH_MAX];
    DIR *dir = topo_below(device, "net", path) ? opendir(path) : NULL;
    out[0] = '\0';
    if (!dir)
        return;
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        if (e->d_name[0] != '.' && strlen(e->d_name) < 16 && (!out[0] || strcmp(e->d_name, out) < 0))
            memcpy(out, e->d_name, strlen(e->d_name) + 1);
    }
    closedir(dir);
}

/* Fills in what the files of one port say. */
static void topo_port_read(const char *folder, struct topo_port *p)
{
    char text[64];
    topo_line(folder, "state", text, sizeof(text)); /* "4: ACTIVE" */
    const char *name = strchr(text, ':');
    name = name ? name + 1 + strspn(name + 1, " ") : "unknown";
    snprintf(p->state, sizeof(p->state), "%.15s", name);
    p->active = strcmp(name, "ACTIVE") == 0;
    topo_line(folder, "link_layer", text, sizeof(text));
    p->link = strcmp(text, "InfiniBand") == 0 ? TOPO_LINK_IB
              : strcmp(text, "Ethernet") == 0 ? TOPO_LINK_ETHERNET
                                              : TOPO_LINK_OTHER;
    topo_line(folder, "rate", text, sizeof(text));
    p->rate_bits = topo_rate(text);
}

/* All ports of a device. How many found no room. */
static unsigned topo_device(struct topo_host *host, const char *class, const char *dev)
{
    char folder[PATH_MAX], device[PATH_MAX], ports[PATH_MAX], path[PATH_MAX], text[32];
    struct topo_port all = {0};
    unsigned left = 0;
    DIR *dir =
        topo_below(class, dev, folder) && topo_below(folder, "device", device) && topo_below(folder, "ports", ports)
            ? opendir(ports)
            : NULL;
    if (!dir)
        return 0;
    snprintf(all.dev, sizeof(all.dev), "%s", dev);
    topo_line(folder, "node_type", text, sizeof(text)); /* "1: CA" */
    all.channel_adapter = text[0] == '1' || text[0] == '\0';
    topo_place(device, &all.place);
    all.physical = topo_physical(device);
    topo_netdev(device, all.netdev);
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char *end;
        unsigned long number = strtoul(e->d_name, &end, 10);
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || *end || number < 1 || number > UINT8_MAX ||
            !topo_below(ports, e->d_name, path))
            continue;
        if (host->ports == TOPO_PORTS) {
            left++;
            continue;
        }
        struct topo_port *p = &host->port[host->ports++];
        *p = all;
        p->port = (uint8_t)number;
        topo_port_read(path, p);
    }
    closedir(dir);
    return left;
}

static int topo_port_order(const void *a, const void *b)
{
    const struct topo_port *p = a, *q = b;
    uint64_t x = pcipath_function(&p->place), y = pcipath_function(&q->place);
    if (x != y)
        return x < y ? -1 : 1;
    int name = strcmp(p->dev, q->dev);
    return name ? name : (int)p->port - (int)q->port;
}

static void topo_ports(struct topo_host *host, const char *sys, const struct log *log)
{
    char class[PATH_MAX];
    unsigned left = 0;
    DIR *dir = topo_below(sys, "class/infiniband", class) ? opendir(class) : NULL;
    if (!dir)
        return;
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        if (e->d_name[0] != '.' && strlen(e->d_name) < TOPO_DEV_SIZE)
            left += topo_device(host, class, e->d_name);
    }
    closedir(dir);
    if (left)
        log_write(log, LOG_LEVEL_WARN,
                  "this host has %u RDMA ports more than the %d that are looked at: name those to use", left,
                  TOPO_PORTS);
    qsort(host->port, host->ports, sizeof(host->port[0]), topo_port_order);
}

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

/* Whether the PCI function is a GPU of those that CUDA drives: NVIDIA, a display or 3D controller (PCI code 03). */
static bool topo_is_gpu(const char *folder)
{
    char vendor[16], class[16];
    topo_line(folder, "vendor", vendor, sizeof(vendor));
    topo_line(folder, "class", class, sizeof(class));
    return strcmp(vendor, "0x10de") == 0 && (strncmp(class, "0x0300", 6) == 0 || strncmp(class, "0x0302", 6) == 0);
}

static int topo_gpu_order(const void *a, const void *b)
{
    uint64_t x = pcipath_function(&((const struct topo_gpu *)a)->place);
    uint64_t y = pcipath_function(&((const struct topo_gpu *)b)->place);
    return x < y ? -1 : x > y;
}

static void topo_gpus(struct topo_host *host, const char *sys)
{
    char devices[PATH_MAX], path[PATH_MAX];
    DIR *dir = topo_below(sys, "bus/pci/devices", devices) ? opendir(devices) : NULL;
    if (!dir)
        return;
    for (const struct dirent *e = readdir(dir); e && host->gpus < TOPO_GPUS; e = readdir(dir)) {
        if (e->d_name[0] != '.' && topo_below(devices, e->d_name, path) && topo_is_gpu(path))
            topo_place(path, &host->gpu[host->gpus++].place);
    }
    closedir(dir);
    qsort(host->gpu, host->gpus, sizeof(host->gpu[0]), topo_gpu_order);
}

int topo_gpu_find(struct topo_host *host, const char *sysroot, uint64_t pci)
{
    char name[PCIPATH_SIZE], sys[PATH_MAX], path[PATH_MAX];
    struct topo_gpu gpu;
    for (unsigned i = 0; i < host->gpus; i++) {
        if (pcipath_function(&host->gpu[i].place) == pci)
            return (int)i;
    }
    pcipath_text(pci, name);
    if (host->gpus == TOPO_GPUS || !topo_sys(sysroot, sys) || !topo_below(sys, "bus/pci/devices", path) ||
        !topo_below(path, name, sys))
        return -ENODEV;
    topo_place(sys, &gpu.place);
    if (pcipath_function(&gpu.place) != pci)
        return -ENODEV;
    host->gpu[host->gpus++] = gpu;
    qsort(host->gpu, host->gpus, sizeof(host->gpu[0]), topo_gpu_order);
    return topo_gpu_find(host, sysroot, pci);
}

int topo_read(const char *sysroot, const struct log *log, struct topo_host **out)
{
    char sys[PATH_MAX];
    struct topo_host *host = calloc(1, sizeof(*host));
    if (!host) {
        log_write(log, LOG_LEVEL_ERROR, "no memory to look at the host's ports");
        return -ENOMEM;
    }
    if (topo_sys(sysroot, sys)) {
        topo_ports(host, sys, log);
        topo_gpus(host, sys);
    }
    *out = host;
    return 0;
}

void topo_free(struct topo_host *host)
{
    free(host);
}
