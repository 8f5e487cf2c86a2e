/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo_host.c - what is computed about a host from its PCI tree alone: order, cards, distances. May not read files.
 * Called by topo_sysfs.c and by cli/import; next: src/plan/plan_ports.c
 */
#include "topo_host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const topo_near_names[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};

const char *topo_near_name(enum topo_near near)
{
    return topo_near_names[near];
}

bool topo_near_parse(const char *name, enum topo_near *out)
{
    for (unsigned i = 0; i <= TOPO_NEAR_SYS; i++) {
        if (strcmp(name, topo_near_names[i]) == 0) {
            *out = (enum topo_near)i;
            return true;
        }
    }
    return false;
}

const char *topo_link_name(enum topo_link link)
{
    static const char *const names[] = {"", "InfiniBand", "Ethernet"};
    return names[link];
}

struct topo_host *topo_host_new(enum topo_source source)
{
    struct topo_host *host = calloc(1, sizeof(*host));
    if (host) {
        host->source = source;
        host->switch_hops = 2;
    }
    return host;
}

void topo_free(struct topo_host *host)
{
    free(host);
}

void topo_note(struct topo_host *host, const char *format, ...)
{
    va_list ap;
    if (host->notes == TOPO_NOTES)
        return;
    va_start(ap, format);
    vsnprintf(host->note[host->notes++], TOPO_NOTE_SIZE, format, ap);
    va_end(ap);
}

int topo_pci_add(struct topo_host *host, uint64_t number, int parent)
{
    for (unsigned i = 0; i < host->nodes && number; i++) {
        if (host->pci[i].number == number)
            return (int)i;
    }
    if (host->nodes == TOPO_PCI)
        return -1;
    host->pci[host->nodes] = (struct topo_pci){.number = number, .parent = parent, .numa = -1};
    return (int)host->nodes++;
}

uint64_t topo_pcie_bits(unsigned width, unsigned speed)
{
    uint64_t raw = (uint64_t)width * speed * 1000000;
    if (speed <= 5000)
        return raw / 10 * 8; /* 8b/10b */
    return speed <= 32000 ? raw / 130 * 128 : raw / 256 * 242;
}

static unsigned topo_depth(const struct topo_host *host, int node)
{
    unsigned depth = 0;
    while (host->pci[node].parent >= 0 && depth < TOPO_PCI) {
        node = host->pci[node].parent;
        depth++;
    }
    return depth;
}

enum topo_near topo_tree_near(const struct topo_host *host, int a, int b)
{
    if (a < 0 || b < 0)
        return TOPO_NEAR_SYS;
    unsigned deep_a = topo_depth(host, a), deep_b = topo_depth(host, b), up_a = 0, up_b = 0;
    bool node = host->pci[a].numa == host->pci[b].numa;
    while (a != b && a >= 0 && b >= 0) {
        bool climb_a = deep_a - up_a >= deep_b - up_b, climb_b = deep_b - up_b >= deep_a - up_a;
        if (climb_a) {
            a = host->pci[a].parent;
            up_a++;
        }
        if (climb_b) {
            b = host->pci[b].parent;
            up_b++;
        }
    }
    if (a != b || a < 0)
        return node ? TOPO_NEAR_NODE : TOPO_NEAR_SYS;
    if (host->pci[a].parent < 0 && up_a && up_b)
        return TOPO_NEAR_PHB; /* the host bridge alone */
    return up_a <= host->switch_hops && up_b <= host->switch_hops ? TOPO_NEAR_PIX : TOPO_NEAR_PXB;
}

/* ---- settling ----------------------------------------------------------------------------------------------------- */

static int topo_port_order(const void *a, const void *b, void *host)
{
    const struct topo_port *p = a, *q = b;
    const struct topo_pci *pci = ((const struct topo_host *)host)->pci;
    uint64_t x = p->pci < 0 ? 0 : pci[p->pci].number, y = q->pci < 0 ? 0 : pci[q->pci].number;
    if (x != y)
        return x < y ? -1 : 1;
    int name = strverscmp(p->dev, q->dev); /* mlx5_9 before mlx5_10 */
    return name ? name : (int)p->port - (int)q->port;
}

static int topo_gpu_order(const void *a, const void *b)
{
    uint64_t x = ((const struct topo_gpu *)a)->number, y = ((const struct topo_gpu *)b)->number;
    return x < y ? -1 : x > y;
}

/* Functions of one device share a card, and a virtual function has the card of its physical one. */
static uint64_t topo_card(const struct topo_host *host, const struct topo_port *p)
{
    return p->pci < 0 ? 0 : (p->physical ? p->physical : host->pci[p->pci].number) >> 3;
}

static void topo_cards(struct topo_host *host)
{
    for (unsigned i = 0; i < host->ports; i++) {
        struct topo_port *p = &host->port[i];
        p->card = p->pci < 0 || !topo_card(host, p) ? -1 : (int)i;
        for (unsigned j = 0; j < i && p->card == (int)i; j++) {
            if (topo_card(host, &host->port[j]) == topo_card(host, p))
                p->card = host->port[j].card;
        }
    }
}

void topo_settle(struct topo_host *host)
{
    uint16_t moved[TOPO_PORTS] = {0};
    for (unsigned i = 0; i < host->ports; i++)
        host->port[i].card = (int)i; /* remembers the place for a moment */
    qsort_r(host->port, host->ports, sizeof(host->port[0]), topo_port_order, host);
    qsort(host->gpu, host->gpus, sizeof(host->gpu[0]), topo_gpu_order);
    for (unsigned i = 0; i < host->ports; i++)
        moved[host->port[i].card] = (uint16_t)i;
    for (unsigned i = 0; i < host->gids; i++)
        host->gid[i].port = moved[host->gid[i].port];
    topo_cards(host);
    for (unsigned g = 0; g < host->gpus; g++) {
        struct topo_gpu *gpu = &host->gpu[g];
        if (!gpu->name[0])
            snprintf(gpu->name, sizeof(gpu->name), "GPU%u", g);
        for (unsigned i = 0; i < host->ports; i++)
            host->near[g][i] = (uint8_t)topo_tree_near(host, gpu->pci, host->port[i].pci);
    }
}
