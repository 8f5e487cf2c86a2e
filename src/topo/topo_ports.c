/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo_ports.c - the RDMA ports of a host, from sysfs: state, link, rate, interface, bond, and, where asked for, addresses and MTU.
 * May not open a device. Called by topo_sysfs.c.
 */
#include "topo_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOPO_PORT_GIDS 32 /* of a port, looked at */

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
    return name && pci_number(name + 1, &number) ? number : 0;
}

/* The first interface of a device by name. */
static void topo_netdev(const char *device, char out[16])
{
    char path[PATH_MAX], **names;
    int count = topo_below(device, "net", path) ? topo_names(path, &names) : -1;
    for (int i = 0; i < count && !out[0]; i++) {
        if (strlen(names[i]) < 16)
            memcpy(out, names[i], strlen(names[i]) + 1);
    }
    if (count >= 0)
        topo_names_free(names, count);
}

/* The bond that an interface belongs to, or is; empty: none. */
static void topo_bond_name(const char *net, const char *ports, const char *netdev, char *out, size_t size)
{
    char path[PATH_MAX], master[PATH_MAX], real[PATH_MAX];
    out[0] = '\0';
    if (netdev[0] && topo_below(net, netdev, path) && topo_below(path, "master", master) && realpath(master, real))
        snprintf(out, size, "%.*s", (int)size - 1, strrchr(real, '/') + 1);
    if (!out[0])
        topo_line(ports, "1/gid_attrs/ndevs/0", out, size);
}

/*
 * A device for all links of a bond (link aggregation by the NIC): some of the links have no RDMA device of their own. Where each has
 * one, the bond is the kernel's alone, and devices stay what they are.
 */
static void topo_bond(const char *sys, const char *ports, struct topo_port *p)
{
    char net[PATH_MAX], path[PATH_MAX], own[PATH_MAX], name[sizeof(p->bond)], slaves[256], state[32], *rest;
    uint64_t all = 0, most = 0;
    unsigned wires = 0, lone = 0;
    if (!topo_below(sys, "class/net", net))
        return;
    topo_bond_name(net, ports, p->netdev, name, sizeof(name));
    if (!name[0] || !topo_below(net, name, path))
        return;
    topo_line(path, "bonding/slaves", slaves, sizeof(slaves));
    topo_line(path, "bonding/mode", state, sizeof(state));
    bool backup = strncmp(state, "active-backup", 13) == 0; /* the others wait for the one to fail */
    for (char *one = strtok_r(slaves, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        if (!topo_below(net, one, path)) {
            wires++;
            continue;
        }
        lone += !topo_below(path, "device/infiniband", own) || access(own, F_OK) != 0;
        topo_line(path, "operstate", state, sizeof(state));
        if (strcmp(state, "down") == 0)
            continue;
        uint64_t bits = (uint64_t)topo_file_number(path, "speed", 10, 10000000, 0) * 1000000;
        wires++;
        all += bits;
        most = max_u64(most, bits);
    }
    if (!lone)
        return;
    memcpy(p->bond, name, sizeof(p->bond));
    p->wires = backup ? min_u32(wires, 1) : wires;
    p->rate_bits = max_u64(p->rate_bits, backup ? most : all); /* what the port says is one link's */
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
    p->downs = (uint64_t)topo_file_number(folder, "counters/link_downed", 10, LONG_MAX, 0);
}

/* All ports of a device. How many found no room. */
static unsigned topo_device(struct topo_host *host, const char *sys, const char *class, const char *dev)
{
    char folder[PATH_MAX], device[PATH_MAX], ports[PATH_MAX], path[PATH_MAX], text[32], **names;
    struct topo_port all = {.pci = -1};
    unsigned left = 0;
    int count =
        topo_below(class, dev, folder) && topo_below(folder, "device", device) && topo_below(folder, "ports", ports)
            ? topo_names(ports, &names)
            : -1;
    if (count < 0)
        return 0;
    snprintf(all.dev, sizeof(all.dev), "%s", dev);
    topo_line(folder, "node_type", text, sizeof(text)); /* "1: CA" */
    all.channel_adapter = text[0] == '1' || text[0] == '\0';
    all.pci = topo_place(host, device);
    all.software = all.pci < 0;
    all.physical = topo_physical(device);
    topo_netdev(device, all.netdev);
    for (int i = 0; i < count; i++) {
        char *end;
        unsigned long number = strtoul(names[i], &end, 10);
        if (names[i][0] < '0' || names[i][0] > '9' || *end || number < 1 || number > UINT8_MAX ||
            !topo_below(ports, names[i], path))
            continue;
        if (host->ports == TOPO_PORTS) {
            left++;
            continue;
        }
        struct topo_port *p = &host->port[host->ports++];
        *p = all;
        p->port = (uint8_t)number;
        topo_port_read(path, p);
        topo_bond(sys, ports, p);
    }
    topo_names_free(names, count);
    return left;
}

void topo_ports(struct topo_host *host, const char *sys, const struct log *log)
{
    char class[PATH_MAX], **names;
    unsigned left = 0;
    int count = topo_below(sys, "class/infiniband", class) ? topo_names(class, &names) : -1;
    if (count < 0)
        return;
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) < TOPO_DEV_SIZE)
            left += topo_device(host, sys, class, names[i]);
    }
    topo_names_free(names, count);
    if (left)
        log_write(log, LOG_LEVEL_WARN,
                  "this host has %u RDMA ports more than the %d that are looked at: name those to use", left,
                  TOPO_PORTS);
}

unsigned topo_wires(const char *sysroot, const char *dev)
{
    char sys[PATH_MAX], class[PATH_MAX], folder[PATH_MAX], device[PATH_MAX], ports[PATH_MAX];
    struct topo_port p = {.pci = -1};
    if (!topo_sys(sysroot, sys) || !topo_below(sys, "class/infiniband", class) || !topo_below(class, dev, folder) ||
        !topo_below(folder, "device", device) || !topo_below(folder, "ports", ports))
        return 0;
    topo_netdev(device, p.netdev);
    topo_bond(sys, ports, &p);
    return p.wires;
}

/* ---- what only people look at -------------------------------------------------------------------------------------- */

/* The RDMA MTU that fits into an interface's, as the kernel computes it: headers take 96 bytes. */
static unsigned topo_mtu(long netdev)
{
    for (unsigned mtu = 4096; mtu >= 256; mtu /= 2) {
        if (netdev >= (long)mtu + 96)
            return mtu;
    }
    return 0;
}

/* "fe80:0000:0000:0000:0000:0000:0000:0001" as bytes; false where it is not that, or is all zeros. */
static bool topo_gid_parse(const char *text, uint8_t out[16])
{
    unsigned long any = 0;
    for (unsigned i = 0; i < 8; i++) {
        char *end;
        unsigned long part = strtoul(text, &end, 16);
        if (end == text || part > 0xffff || *end != (i < 7 ? ':' : '\0'))
            return false;
        any |= part;
        out[2 * i] = (uint8_t)(part >> 8);
        out[2 * i + 1] = (uint8_t)part;
        text = end + 1;
    }
    return any != 0;
}

static void topo_gids(struct topo_host *host, unsigned i, const char *folder)
{
    char name[32], text[64];
    for (unsigned k = 0; k < TOPO_PORT_GIDS && host->gids < TOPO_GIDS; k++) {
        struct topo_gid gid = {.port = (uint16_t)i, .index = (uint8_t)k};
        snprintf(name, sizeof(name), "gids/%u", k);
        topo_line(folder, name, text, sizeof(text));
        if (!text[0])
            return;
        if (!topo_gid_parse(text, gid.raw))
            continue;
        snprintf(name, sizeof(name), "gid_attrs/types/%u", k);
        topo_line(folder, name, text, sizeof(text));
        gid.v2 = strcmp(text, "RoCE v2") == 0;
        host->gid[host->gids++] = gid;
    }
}

void topo_read_more(const char *sysroot, struct topo_host *host)
{
    char sys[PATH_MAX], path[PATH_MAX], name[TOPO_DEV_SIZE + 48];
    if (!topo_sys(sysroot, sys))
        return;
    for (unsigned i = 0; i < host->ports; i++) {
        struct topo_port *p = &host->port[i];
        snprintf(name, sizeof(name), "class/infiniband/%s/ports/%u", p->dev, p->port);
        if (topo_below(sys, name, path))
            topo_gids(host, i, path);
        snprintf(name, sizeof(name), "class/net/%s", p->bond[0] ? p->bond : p->netdev);
        if (p->netdev[0] && p->link == TOPO_LINK_ETHERNET && topo_below(sys, name, path))
            p->mtu = topo_mtu(topo_file_number(path, "mtu", 10, 65535, 0));
    }
}
