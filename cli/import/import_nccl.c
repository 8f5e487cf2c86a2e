/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_nccl.c - a host from a topology file of NCCL. Speeds in it are what somebody wanted NCCL to believe. A switch is
 * one node there. Called by import.c; reads XML through libxml2.
 */
#include "import.h"

#include <errno.h>
#include <libxml/parser.h>
#include <stdlib.h>
#include <string.h>

#define NCCL_DEEPEST 24 /* elements inside each other */

struct nccl {
    struct topo_host *host;
    struct import_error *error;
    unsigned unnamed, placeless, labels;
};

/* An attribute as text, cut at size; empty where it is not there. */
static void nccl_text(const xmlNode *e, const char *name, char *out, size_t size)
{
    xmlChar *value = xmlGetProp(e, (const xmlChar *)name);
    snprintf(out, size, "%s", value ? (const char *)value : "");
    xmlFree(value);
}

static unsigned nccl_number(const xmlNode *e, const char *name, int base, unsigned long most)
{
    char text[64], *end;
    nccl_text(e, name, text, sizeof(text));
    unsigned long value = strtoul(text, &end, base);
    return end != text && text[0] != '-' && value <= most ? (unsigned)value : 0;
}

static bool nccl_is(const xmlNode *e, const char *name)
{
    return e->type == XML_ELEMENT_NODE && strcmp((const char *)e->name, name) == 0;
}

static int nccl_fail(const struct nccl *n, const xmlNode *e, const char *seen, const char *expected)
{
    return import_fail(n->error, (unsigned)xmlGetLineNo(e), 1, "seen %s, expected %s", seen, expected);
}

/* ---- ports ------------------------------------------------------------------------------------------------------------- */

/* Elastic Fabric Adapters are called by their place. */
static void nccl_name(const struct topo_pci *p, char out[TOPO_DEV_SIZE])
{
    char text[PCI_TEXT_SIZE];
    pci_text(p->number, text);
    if (p->vendor == 0x1d0f && p->dev >> 8 == 0xef && p->number >> 16 == 0)
        snprintf(out, TOPO_DEV_SIZE, "rdmap%us%u", (unsigned)(p->number >> 8 & 0xff), (unsigned)(p->number >> 3 & 31));
    else
        snprintf(out, TOPO_DEV_SIZE, "%s", text);
}

static struct topo_port *nccl_port(struct nccl *n, const xmlNode *e, int node)
{
    struct topo_host *host = n->host;
    if (host->ports == TOPO_PORTS) {
        nccl_fail(n, e, "more ports than that", "at most 256");
        return NULL;
    }
    struct topo_port *p = &host->port[host->ports++];
    unsigned class = host->pci[node].class >> 8;
    *p = (struct topo_port){.port = 1, .channel_adapter = true, .active = true, .pci = node, .card = -1};
    if (host->pci[node].vendor != 0x1d0f)
        p->link = class == 0x0207 ? TOPO_LINK_IB : TOPO_LINK_OTHER;
    return p;
}

/* A device is one for each name; its "port" counts only where a name comes twice. */
static int nccl_net(struct nccl *n, const xmlNode *e, int node)
{
    char name[128];
    unsigned number = nccl_number(e, "port", 10, UINT8_MAX);
    nccl_text(e, "name", name, sizeof(name));
    if (!name[0] || strlen(name) >= TOPO_DEV_SIZE)
        return nccl_fail(n, e, "a net without a name of at most 59 bytes", "name=\"mlx5_0\"");
    struct topo_port *p = nccl_port(n, e, node);
    if (!p)
        return -EINVAL;
    memcpy(p->dev, name, strlen(name) + 1);
    p->rate_bits = (uint64_t)nccl_number(e, "speed", 10, 100000000) * 1000000;
    p->port = (uint8_t)number;
    return 0;
}

static void nccl_port_numbers(struct nccl *n)
{
    bool twice[TOPO_PORTS] = {false};
    for (unsigned i = 0; i < n->host->ports; i++) {
        for (unsigned j = 0; j < n->host->ports; j++)
            twice[i] |= j != i && strcmp(n->host->port[i].dev, n->host->port[j].dev) == 0;
    }
    for (unsigned i = 0; i < n->host->ports; i++) {
        struct topo_port *p = &n->host->port[i];
        if (twice[i] && p->port)
            continue;
        n->labels += p->port > 1;
        p->port = 1;
    }
}

/* Nets of a function, inside <nic> or not. */
static int nccl_nets(struct nccl *n, const xmlNode *parent, int node, unsigned deep)
{
    int rc = 0;
    for (const xmlNode *e = parent->children; e && !rc && deep < 3; e = e->next) {
        if (nccl_is(e, "net") && node >= 0)
            rc = nccl_net(n, e, node);
        else if (nccl_is(e, "net"))
            n->placeless++;
        else if (nccl_is(e, "nic"))
            rc = nccl_nets(n, e, node, deep + 1);
    }
    return rc;
}

/* ---- the tree ----------------------------------------------------------------------------------------------------------- */

static void nccl_pci_read(const xmlNode *e, struct topo_pci *p, int numa)
{
    char text[64], *end;
    p->numa = numa;
    p->class = nccl_number(e, "class", 16, 0xffffff);
    p->vendor = (uint16_t)nccl_number(e, "vendor", 16, 0xffff);
    p->dev = (uint16_t)nccl_number(e, "device", 16, 0xffff);
    p->width = nccl_number(e, "link_width", 10, 64);
    nccl_text(e, "link_speed", text, sizeof(text)); /* "16 GT/s", "5.0 GT/s PCIe" */
    double speed = strtod(text, &end);
    if (end != text && strncmp(end, " GT/s", 5) == 0 && speed > 0 && speed < 1000)
        p->speed = (unsigned)(speed * 1000 + 0.5);
    p->link_bits = topo_pcie_bits(p->width, p->speed);
}

static bool nccl_has(const xmlNode *parent, const char *name)
{
    for (const xmlNode *e = parent->children; e; e = e->next) {
        if (nccl_is(e, name))
            return true;
    }
    return false;
}

/* What a function is: a GPU, a NIC, or neither. */
static int nccl_function(struct nccl *n, const xmlNode *e, int node)
{
    struct topo_host *host = n->host;
    const struct topo_pci *p = &host->pci[node];
    bool nvidia = p->vendor == 0x10de || p->vendor == 0;
    if (nccl_has(e, "gpu") || (nvidia && (p->class >> 8 == 0x0302 || p->class >> 8 == 0x0300))) {
        if (host->gpus == TOPO_GPUS)
            return nccl_fail(n, e, "more GPUs than that", "at most 64");
        host->gpu[host->gpus++] = (struct topo_gpu){.number = p->number, .pci = node, .numa = p->numa};
        return 0;
    }
    if (nccl_has(e, "nic") || nccl_has(e, "net"))
        return nccl_nets(n, e, node, 0);
    if (p->class >> 16 != 0x02)
        return 0;
    struct topo_port *port = nccl_port(n, e, node);
    if (!port)
        return -EINVAL;
    nccl_name(p, port->dev);
    n->unnamed++;
    return 0;
}

static int nccl_below(struct nccl *n, const xmlNode *parent, int node, int numa, unsigned deep)
{
    int rc = 0;
    for (const xmlNode *e = parent->children; e && !rc; e = e->next) {
        char text[64];
        uint64_t number;
        if (!nccl_is(e, "pci"))
            continue;
        nccl_text(e, "busid", text, sizeof(text));
        if (!pci_number(text, &number) || number & PCI_BRIDGE)
            return nccl_fail(n, e, "a pci without an address", "busid=\"0000:3b:00.0\"");
        unsigned before = n->host->nodes;
        int mine = topo_pci_add(n->host, number, node);
        if (mine < 0 || deep == NCCL_DEEPEST)
            return nccl_fail(n, e, "more of a tree than any host has", "at most 1024 functions, 24 deep");
        if (n->host->nodes == before)
            return nccl_fail(n, e, "an address that another pci has", "each address once");
        nccl_pci_read(e, &n->host->pci[mine], numa);
        rc = nccl_function(n, e, mine);
        if (!rc)
            rc = nccl_below(n, e, mine, numa, deep + 1);
    }
    return rc;
}

static int nccl_system(struct nccl *n, const xmlNode *root)
{
    int rc = 0;
    for (const xmlNode *e = root->children; e && !rc; e = e->next) {
        char text[32], *end;
        if (!nccl_is(e, "cpu"))
            continue;
        nccl_text(e, "numaid", text, sizeof(text));
        long numa = strtol(text, &end, 10);
        int bridge = topo_pci_add(n->host, 0, -1);
        if (bridge < 0)
            return nccl_fail(n, e, "more CPUs than any host has", "at most 1024 functions");
        if (end == text || *end || numa < -1 || numa > 4095)
            return nccl_fail(n, e, "a cpu without the number of its node", "numaid=\"0\"");
        n->host->pci[bridge].numa = (int)numa;
        rc = nccl_nets(n, e, -1, 0);
        if (!rc)
            rc = nccl_below(n, e, bridge, (int)numa, 0);
    }
    return rc;
}

static int nccl_read(struct nccl *n, xmlDoc *doc)
{
    const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
    const xmlError *xml = xmlGetLastError();
    if (!root) {
        char seen[200];
        snprintf(seen, sizeof(seen), "%.180s", xml && xml->message ? xml->message : "no XML");
        seen[strcspn(seen, "\n")] = '\0';
        return import_fail(n->error, xml && xml->line > 0 ? (unsigned)xml->line : 1,
                           xml && xml->int2 > 0 ? (unsigned)xml->int2 : 1, "this is no XML: %s", seen);
    }
    if (!nccl_is(root, "system"))
        return nccl_fail(n, root, "another root", "<system>, as NCCL_TOPO_DUMP_FILE has");
    int rc = nccl_system(n, root);
    if (!rc && !n->host->gpus && !n->host->ports)
        rc = nccl_fail(n, root, "neither a GPU nor a NIC", "<pci> of both below <cpu>");
    return rc;
}

int import_nccl(const char *text, size_t len, struct topo_host **out, struct import_error *error)
{
    struct nccl n = {.host = topo_host_new(TOPO_SOURCE_NCCL), .error = error};
    if (!n.host)
        return -ENOMEM;
    xmlResetLastError();
    xmlDoc *doc = xmlReadMemory(text, (int)len, NULL, NULL, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    n.host->switch_hops = 1;
    n.host->hinted = true;
    int rc = nccl_read(&n, doc);
    xmlFreeDoc(doc);
    if (rc) {
        topo_free(n.host);
        return rc;
    }
    nccl_port_numbers(&n);
    if (n.labels)
        topo_note(n.host, "\"port\" of %u nets is a label: each device named once has port 1 alone", n.labels);
    if (n.unnamed)
        topo_note(n.host, "%u NICs have no name in this file and are called by their PCI addresses", n.unnamed);
    if (n.placeless)
        topo_note(n.host, "%u nets have no PCI function and are left out", n.placeless);
    topo_note(n.host, "speeds are as this file says, which may be what NCCL should believe, not what links do");
    topo_settle(n.host);
    *out = n.host;
    return 0;
}
