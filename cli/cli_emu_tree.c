/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_emu_tree.c - a folder that looks as /sys does on a host with the emulated devices: a PCI device each, with the RDMA
 * device below it, states and counters as files. Called by cli_emu.c; next: emu_sysfs.c shows it to programs.
 */
#include "cli_emu.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Makes the folders on the way to a path, below the first so many characters of it. 0 or -1. */
static int cli_emu_tree_parents(char *path, size_t there)
{
    for (char *slash = strchr(path + there + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        int rc;

        *slash = '\0';
        rc = mkdir(path, 0700);
        *slash = '/';
        if (rc != 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

/** Writes a file below a folder, in one go, so that a reader never sees half of it. */
__attribute__((format(printf, 3, 4))) static int cli_emu_tree_file(const char *folder, const char *name,
                                                                   const char *format, ...)
{
    char path[PATH_MAX], next[PATH_MAX + 8];
    va_list ap;
    FILE *f;
    int rc;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) ||
        cli_emu_tree_parents(path, strlen(folder)))
        return -1;
    snprintf(next, sizeof(next), "%s.new", path);
    f = fopen(next, "we");
    if (!f)
        return -1;
    va_start(ap, format);
    rc = vfprintf(f, format, ap) < 0;
    va_end(ap);
    rc |= fclose(f) != 0;
    return rc || rename(next, path) != 0 ? -1 : 0;
}

static int cli_emu_tree_link(const char *folder, const char *name, const char *to)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) ||
        cli_emu_tree_parents(path, strlen(folder)))
        return -1;
    return symlink(to, path);
}

static int cli_emu_tree_counter(const char *folder, const char *name, uint64_t value)
{
    char file[96];

    snprintf(file, sizeof(file), "ports/1/counters/%s", name);
    return cli_emu_tree_file(folder, file, "%llu\n", (unsigned long long)value);
}

/** What changes, as far as it has since before (NULL: all of it). Data counters count words of 4 bytes, as the InfiniBand
 *  specification has it (PortCounters). */
static int cli_emu_tree_state(const char *folder, const struct emu_real_port *p, const struct emu_real_port *before)
{
    int rc = 0;

    if (!before || p->up != before->up) {
        rc |= cli_emu_tree_file(folder, "ports/1/state", "%s\n", p->up ? "4: ACTIVE" : "1: DOWN");
        rc |= cli_emu_tree_file(folder, "ports/1/phys_state", "%s\n", p->up ? "5: LinkUp" : "3: Disabled");
    }
    if (!before || p->wire_tx != before->wire_tx)
        rc |= cli_emu_tree_counter(folder, "port_xmit_data", p->wire_tx / 4);
    if (!before || p->wire_rx != before->wire_rx)
        rc |= cli_emu_tree_counter(folder, "port_rcv_data", p->wire_rx / 4);
    if (!before || p->lost != before->lost)
        rc |= cli_emu_tree_counter(folder, "port_xmit_discards", p->lost);
    if (!before || p->dropped != before->dropped)
        rc |= cli_emu_tree_counter(folder, "port_rcv_errors", p->dropped);
    return rc;
}

static int cli_emu_tree_device(const char *folder, const struct emu_real_port *p)
{
    char guid[24];
    int rc;

    snprintf(guid, sizeof(guid), "%04x:%04x:%04x:%04x", (unsigned)(p->guid >> 48), (unsigned)(p->guid >> 32) & 0xffff,
             (unsigned)(p->guid >> 16) & 0xffff, (unsigned)p->guid & 0xffff);
    rc = cli_emu_tree_file(folder, "node_guid", "%s\n", guid);
    rc |= cli_emu_tree_file(folder, "sys_image_guid", "%s\n", guid);
    rc |= cli_emu_tree_file(folder, "node_type", "1: CA\n");
    rc |= cli_emu_tree_file(folder, "node_desc", "braid-emu %s\n", p->host);
    rc |= cli_emu_tree_file(folder, "fw_ver", "braid-emu\n");
    rc |= cli_emu_tree_file(folder, "hca_type", "MT4129\n");
    rc |= cli_emu_tree_file(folder, "board_id", "BRAID_EMU\n");
    rc |= cli_emu_tree_file(folder, "ports/1/link_layer", "Ethernet\n");
    rc |= cli_emu_tree_file(folder, "ports/1/rate", "%.4g Gb/sec (4X)\n", (double)p->rate_bits / p->wires / 1e9);
    rc |= cli_emu_tree_file(folder, "ports/1/lid", "0x0\n");
    rc |= cli_emu_tree_file(folder, "ports/1/sm_lid", "0x0\n");
    rc |= cli_emu_tree_file(folder, "ports/1/pkeys/0", "0xffff\n");
    rc |= cli_emu_tree_file(folder, "ports/1/gid_attrs/types/0", "RoCE v2\n");
    rc |= cli_emu_tree_file(folder, "ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n", p->gid[12],
                            p->gid[13], p->gid[14], p->gid[15]);
    return rc | cli_emu_tree_state(folder, p, NULL);
}

/**
 * The PCIe switch of GPUs that are equally near to the same ports, and of these ports: below one switch a GPU's own are PIX to it; those
 * of a pair lie behind another switch than the pair, which is PXB. Root port, then up and down of each switch.
 */
static int cli_emu_tree_switch(char *out, size_t len, const struct emu_real_port *p, bool pair, bool gpu)
{
    int n = p->near_gpu,
        used = snprintf(out, len, "devices/pci0000:b0/0000:b0:%02x.%d/0000:d0:%02x.%d", n / 8, n % 8, n / 8, n % 8);

    if (pair)
        used += snprintf(out + used, len - (size_t)used, "/0000:d%d:%02x.%d/0000:d%d:%02x.%d", 1 + gpu, n / 8, n % 8,
                         3 + gpu, n / 8, n % 8);
    return used;
}

/** Where a host's i-th device lies in the tree: a port of a PCI switch, and the function behind it. */
static void cli_emu_tree_slot(char *out, size_t len, int i, const struct emu_real_port *p, int layout)
{
    int used = layout ? cli_emu_tree_switch(out, len, p, layout == 2, false) : snprintf(out, len, "devices/pci0000:b0");

    snprintf(out + used, len - (size_t)used, "/0000:%s:%02x.%d/0000:b%x:%02x.%d", layout ? "d5" : "b0", i / 8 % 32,
             i % 8, 1 + i / 256 % 8, i / 8 % 32, i % 8);
}

/** A function of the tree as the kernel describes it. */
static int cli_emu_tree_function(const char *tree, const char *slot, const char *vendor, const char *device,
                                 const char *class)
{
    static const char *const names[] = {"vendor", "device", "class", "numa_node"};
    const char *const values[] = {vendor, device, class, "0"};
    char name[300];
    int rc = 0;

    for (int k = 0; k < 4; k++) {
        snprintf(name, sizeof(name), "%s/%s", slot, names[k]);
        rc |= cli_emu_tree_file(tree, name, "%s\n", values[k]);
    }
    return rc;
}

/** The GPU that a port is on the card of, once. */
static int cli_emu_tree_gpu(const char *tree, const struct emu_real_port *p, bool pair)
{
    char slot[256], name[64], to[300];
    int used = cli_emu_tree_switch(slot, sizeof(slot), p, pair, true), rc;

    snprintf(slot + used, sizeof(slot) - (size_t)used, "/0000:d6:%02x.%d/0000:%02x:00.0", p->gpu / 8, p->gpu % 8,
             0x10 + p->gpu);
    rc = cli_emu_tree_function(tree, slot, "0x10de", "0x2330", "0x030200");
    snprintf(name, sizeof(name), "bus/pci/devices/0000:%02x:00.0", 0x10 + p->gpu);
    snprintf(to, sizeof(to), "../../../%s", slot);
    return rc | cli_emu_tree_link(tree, name, to);
}

static void cli_emu_tree_name(char *out, size_t len, const struct emu_real_port *p)
{
    snprintf(out, len, "%.*s", (int)strcspn(p->port, ":"), p->port);
}

/** The interfaces of a bond, which are all that the host says of its wires: the first belongs to the device. */
static int cli_emu_tree_bond(const char *tree, const char *folder, const struct emu_real_port *p, int i)
{
    char name[96], slaves[160] = "";
    int rc = 0, used = 0;

    for (int w = 0; w < p->wires; w++) {
        used += snprintf(slaves + used, sizeof(slaves) - (size_t)used, "%semubond%dw%d", w ? " " : "", i, w);
        snprintf(name, sizeof(name), "class/net/emubond%dw%d/speed", i, w);
        rc |= cli_emu_tree_file(tree, name, "%.0f\n", (double)p->rate_bits / p->wires / 1e6);
        snprintf(name, sizeof(name), "class/net/emubond%dw%d/operstate", i, w);
        rc |= cli_emu_tree_file(tree, name, "up\n");
    }
    snprintf(name, sizeof(name), "class/net/emubond%d/bonding/slaves", i);
    rc |= cli_emu_tree_file(tree, name, "%s\n", slaves);
    snprintf(name, sizeof(name), "class/net/emubond%d/bonding/mode", i);
    rc |= cli_emu_tree_file(tree, name, "802.3ad 4\n");
    return rc | cli_emu_tree_file(folder, "ports/1/gid_attrs/ndevs/0", "emubond%d\n", i);
}

static int cli_emu_tree_add(const char *tree, const struct emu_real_port *p, int i, int layout)
{
    char device[64], slot[256], name[400], to[400], folder[PATH_MAX];
    int rc;

    cli_emu_tree_name(device, sizeof(device), p);
    cli_emu_tree_slot(slot, sizeof(slot), i, p, layout);
    snprintf(folder, sizeof(folder), "%s/%s/infiniband/%s", tree, slot, device);
    snprintf(name, sizeof(name), "%s/infiniband/%s/device", slot, device);
    rc = cli_emu_tree_link(tree, name, "../..");
    rc |= cli_emu_tree_device(folder, p);
    if (p->wires > 1)
        rc |= cli_emu_tree_bond(tree, folder, p, i);
    rc |= cli_emu_tree_function(tree, slot, "0x15b3", "0x1021", "0x020000");
    snprintf(name, sizeof(name), "class/infiniband/%s", device);
    snprintf(to, sizeof(to), "../../%s/infiniband/%s", slot, device);
    rc |= cli_emu_tree_link(tree, name, to);
    snprintf(name, sizeof(name), "class/infiniband_verbs/uverbs%d/ibdev", i);
    rc |= cli_emu_tree_file(tree, name, "%s\n", device);
    snprintf(name, sizeof(name), "class/infiniband_verbs/uverbs%d/abi_version", i);
    rc |= cli_emu_tree_file(tree, name, "1\n");
    snprintf(name, sizeof(name), "dev/infiniband/uverbs%d", i);
    return rc | cli_emu_tree_link(tree, name, "/dev/null"); /* a character device that can be opened: nobody reads it */
}

int cli_emu_tree_make(char *out, size_t len, const char *host, const struct emu_real_port *port, int n, bool gpus)
{
    const char *base = getenv("TMPDIR");
    int rc, devices = 0, last = -1;
    bool pair = false;

    if (snprintf(out, len, "%s/braid-emu-XXXXXX", base && *base ? base : "/tmp") >= (int)len || !mkdtemp(out)) {
        out[0] = '\0';
        return -1;
    }
    rc = cli_emu_tree_file(out, "class/infiniband_verbs/abi_version", "6\n");
    for (int i = 0; i < n; i++)
        pair |= strcmp(port[i].host, host) == 0 && port[i].near_gpu != port[i].gpu;
    for (int i = 0; i < n; i++) {
        if (strcmp(port[i].host, host) != 0)
            continue;
        rc |= cli_emu_tree_add(out, &port[i], devices++, gpus ? 1 + pair : 0);
        if (gpus && port[i].gpu != last)
            rc |= cli_emu_tree_gpu(out, &port[i], pair);
        last = port[i].gpu;
    }
    if (rc)
        cli_emu_tree_remove(out);
    return rc ? -1 : 0;
}

void cli_emu_tree_update(const char *tree, const char *host, struct emu_real_port *before,
                         const struct emu_real_port *port, int n)
{
    for (int i = 0; i < n; i++) {
        char device[64], folder[PATH_MAX];

        if (strcmp(port[i].host, host) != 0)
            continue;
        cli_emu_tree_name(device, sizeof(device), &port[i]);
        snprintf(folder, sizeof(folder), "%s/class/infiniband/%s", tree, device);
        if (cli_emu_tree_state(folder, &port[i], &before[i]))
            return; /* no room, or somebody has removed it: the next look may do better */
        before[i] = port[i];
    }
}

static int cli_emu_tree_gone(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void cli_emu_tree_remove(const char *tree)
{
    if (tree[0])
        nftw(tree, cli_emu_tree_gone, 16, FTW_DEPTH | FTW_PHYS);
}
