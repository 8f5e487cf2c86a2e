/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo_sysfs.c - reads the host from sysfs: bus/pci/devices for GPUs here, class/infiniband for ports in topo_ports.c.
 * May not open a device, choose, or write anything. Called by src/api/api_ports.c and cli; next: topo_ports.c
 */
#include "topo_priv.h"

#include <errno.h>
#include <string.h>

/* Whether the PCI function is a GPU of those that CUDA drives: NVIDIA, a display or 3D controller (PCI code 03). */
static bool topo_is_gpu(const char *folder)
{
    char vendor[16], class[16];
    topo_line(folder, "vendor", vendor, sizeof(vendor));
    topo_line(folder, "class", class, sizeof(class));
    return strcmp(vendor, "0x10de") == 0 && (strncmp(class, "0x0300", 6) == 0 || strncmp(class, "0x0302", 6) == 0);
}

static void topo_gpu_add(struct topo_host *host, int node)
{
    struct topo_gpu *gpu = &host->gpu[host->gpus++];
    *gpu = (struct topo_gpu){.number = host->pci[node].number, .pci = node, .numa = host->pci[node].numa};
}

static void topo_gpus(struct topo_host *host, const char *sys)
{
    char devices[PATH_MAX], path[PATH_MAX], **names;
    int count = topo_below(sys, "bus/pci/devices", devices) ? topo_names(devices, &names) : -1;
    if (count < 0)
        return;
    for (int i = 0; i < count && host->gpus < TOPO_GPUS; i++) {
        int node = topo_below(devices, names[i], path) && topo_is_gpu(path) ? topo_place(host, path) : -1;
        if (node >= 0)
            topo_gpu_add(host, node);
    }
    topo_names_free(names, count);
}

static int topo_gpu_at(const struct topo_host *host, uint64_t pci)
{
    for (unsigned i = 0; i < host->gpus; i++) {
        if (host->gpu[i].number == pci)
            return (int)i;
    }
    return -ENODEV;
}

int topo_gpu_find(struct topo_host *host, const char *sysroot, uint64_t pci)
{
    char name[PCI_TEXT_SIZE], sys[PATH_MAX], path[PATH_MAX];
    int at = topo_gpu_at(host, pci);
    if (at >= 0)
        return at;
    pci_text(pci, name);
    if (host->gpus == TOPO_GPUS || !topo_sys(sysroot, sys) || !topo_below(sys, "bus/pci/devices", path) ||
        !topo_below(path, name, sys))
        return -ENODEV;
    int node = topo_place(host, sys);
    if (node < 0 || host->pci[node].number != pci)
        return -ENODEV;
    topo_gpu_add(host, node);
    for (unsigned i = 0; i < host->gpus; i++)
        host->gpu[i].name[0] = '\0'; /* they are counted again */
    topo_settle(host);
    return topo_gpu_at(host, pci);
}

int topo_read(const char *sysroot, const struct log *log, struct topo_host **out)
{
    char sys[PATH_MAX];
    struct topo_host *host = topo_host_new(TOPO_SOURCE_SYSFS);
    if (!host) {
        log_write(log, LOG_LEVEL_ERROR, "no memory to look at the host's ports");
        return -ENOMEM;
    }
    if (topo_sys(sysroot, sys)) {
        topo_ports(host, sys, log);
        topo_gpus(host, sys);
    }
    topo_settle(host);
    *out = host;
    return 0;
}
