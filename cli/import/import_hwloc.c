/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_hwloc.c - a host from hwloc's XML. GPUs are PCI functions of that class and vendor, since an export knows those of CUDA
 * only where hwloc was built with it. Called by import.c; reads through hwloc.
 */
#include "import.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define HWLOC_IMPORT_GIG     8e9 /* hwloc's link speeds are in 10^9 bytes a second */
#define HWLOC_IMPORT_SECONDS 60  /* more than it may take over a text */

/* The node of an I/O object and of all above it; -1: no room. */
static int hwloc_import_node(struct topo_host *host, hwloc_obj_t obj)
{
    hwloc_obj_t way[32] = {0};
    int node = -1;
    unsigned deep = 0;
    for (; obj && (obj->type == HWLOC_OBJ_BRIDGE || obj->type == HWLOC_OBJ_PCI_DEVICE) && deep < 32; obj = obj->parent)
        way[deep++] = obj;
    int numa = obj && obj->nodeset && hwloc_bitmap_weight(obj->nodeset) == 1 ? hwloc_bitmap_first(obj->nodeset) : -1;
    while (deep-- > 0) {
        const union hwloc_obj_attr_u *a = way[deep]->attr;
        bool bridge = way[deep]->type == HWLOC_OBJ_BRIDGE;
        bool top = bridge && a->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
        const struct hwloc_pcidev_attr_s *pci = bridge ? &a->bridge.upstream.pci : &a->pcidev;
        uint64_t number = (uint64_t)pci->domain << 16 | (uint64_t)pci->bus << 8 | (uint64_t)(pci->dev & 31) << 3 |
                          (uint64_t)(pci->func & 7);
        if (top)
            number = PCI_BRIDGE | (uint64_t)a->bridge.downstream.pci.domain << 16 |
                     (uint64_t)a->bridge.downstream.pci.secondary_bus << 8;
        unsigned before = host->nodes;
        node = topo_pci_add(host, number, node);
        if (node < 0)
            return -1;
        if (host->nodes == before)
            continue;
        host->pci[node].numa = numa;
        if (top)
            continue;
        host->pci[node].class = (unsigned)pci->class_id << 8;
        host->pci[node].vendor = pci->vendor_id;
        host->pci[node].dev = pci->device_id;
        if (pci->linkspeed > 0 && pci->linkspeed < 1e4f)
            host->pci[node].link_bits = (uint64_t)((double)pci->linkspeed * HWLOC_IMPORT_GIG);
    }
    return node;
}

static const char *hwloc_import_info(hwloc_obj_t obj, const char *format, unsigned port)
{
    char name[32];
    snprintf(name, sizeof(name), format, port);
    const char *value = hwloc_obj_get_info_by_name(obj, name);
    return value ? value : "";
}

/* The first interface beside an RDMA device. */
static void hwloc_import_netdev(hwloc_obj_t device, char out[16])
{
    for (hwloc_obj_t o = device ? device->io_first_child : NULL; o; o = o->next_sibling) {
        if (o->type == HWLOC_OBJ_OS_DEVICE && o->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK && o->name &&
            strlen(o->name) < 16 && !out[0])
            memcpy(out, o->name, strlen(o->name) + 1);
    }
}

static int hwloc_import_ports(struct topo_host *host, hwloc_obj_t obj, struct import_error *error)
{
    static const char *const states[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
    bool real = obj->parent && obj->parent->type == HWLOC_OBJ_PCI_DEVICE;
    struct topo_port all = {.channel_adapter = true, .active = true, .pci = -1, .card = -1, .software = !real};
    if (!obj->name || !obj->name[0] || strlen(obj->name) >= TOPO_DEV_SIZE)
        return import_fail(error, 0, 0, "seen an RDMA device with the name \"%.80s\", expected one of at most %d bytes",
                           obj->name ? obj->name : "", TOPO_DEV_SIZE - 1);
    memcpy(all.dev, obj->name, strlen(obj->name) + 1);
    if (real) {
        all.pci = hwloc_import_node(host, obj->parent);
        if (all.pci < 0)
            return import_fail(error, 0, 0, "seen more PCI functions than any host has, expected at most %d", TOPO_PCI);
        hwloc_import_netdev(obj->parent, all.netdev);
        if (host->pci[all.pci].vendor != 0x1d0f)
            all.link = host->pci[all.pci].class >> 8 == 0x0207 ? TOPO_LINK_IB : TOPO_LINK_OTHER;
    }
    for (unsigned port = 1; port < 9; port++) {
        const char *state = hwloc_import_info(obj, "Port%uState", port);
        if (port > 1 && !*state)
            break;
        if (host->ports == TOPO_PORTS)
            return import_fail(error, 0, 0, "seen more ports than any host has, expected at most %d", TOPO_PORTS);
        struct topo_port *p = &host->port[host->ports++];
        *p = all;
        p->port = (uint8_t)port;
        if (*state >= '0' && *state <= '5') {
            snprintf(p->state, sizeof(p->state), "%s", states[*state - '0']);
            p->active = *state == '4';
        }
    }
    return 0;
}

static int hwloc_import_gpu(struct topo_host *host, hwloc_obj_t obj, struct import_error *error)
{
    unsigned class = obj->attr->pcidev.class_id;
    if (obj->attr->pcidev.vendor_id != 0x10de || (class != 0x0300 && class != 0x0302))
        return 0;
    int node = host->gpus < TOPO_GPUS ? hwloc_import_node(host, obj) : -1;
    if (node < 0)
        return import_fail(error, 0, 0, "seen more GPUs or PCI functions than any host has, expected at most %d and %d",
                           TOPO_GPUS, TOPO_PCI);
    host->gpu[host->gpus++] =
        (struct topo_gpu){.number = host->pci[node].number, .pci = node, .numa = host->pci[node].numa};
    return 0;
}

static int hwloc_import_all(hwloc_topology_t topology, struct topo_host *host, struct import_error *error)
{
    int rc = 0;
    for (hwloc_obj_t o = hwloc_get_next_pcidev(topology, NULL); o && !rc; o = hwloc_get_next_pcidev(topology, o))
        rc = hwloc_import_gpu(host, o, error);
    for (hwloc_obj_t o = hwloc_get_next_osdev(topology, NULL); o && !rc; o = hwloc_get_next_osdev(topology, o)) {
        if (o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
            rc = hwloc_import_ports(host, o, error);
    }
    if (!rc && !host->gpus && !host->ports)
        rc = import_fail(error, 0, 0,
                         "seen neither an NVIDIA GPU nor an RDMA device, expected an export with I/O objects: lstopo "
                         "--whole-io host.xml");
    return rc;
}

/* The major version that the text claims; 0: none is seen. */
static unsigned hwloc_import_version(const char *text, size_t len)
{
    const char *at = memmem(text, len, "<topology", 9);
    const char *end = at ? memchr(at, '>', len - (size_t)(at - text)) : NULL;
    const char *version = end ? memmem(at, (size_t)(end - at), "version=\"", 9) : NULL;
    return version ? (unsigned)strtoul(version + 9, NULL, 10) : 0;
}

static int hwloc_import_load(hwloc_topology_t topology, const char *text, size_t len, struct import_error *error)
{
    unsigned version = hwloc_import_version(text, len), mine = hwloc_get_api_version() >> 16;
    if (version > mine)
        return import_fail(
            error, 1, 1,
            "seen XML of hwloc %u, but this program's hwloc is %u: export it with lstopo of hwloc %u, or with "
            "--export-xml-flags v%u",
            version, mine, mine, mine);
    if (hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) ||
        hwloc_topology_set_xmlbuffer(topology, text, (int)len + 1) || hwloc_topology_load(topology))
        return import_fail(error, 1, 1, "seen XML that hwloc does not take, expected what lstopo exports");
    return 0;
}

/* What the child fills in, in memory that both see. */
struct hwloc_import_shared {
    bool loaded; /* hwloc took it; what then fails is ours */
    bool done;
    int rc;
    struct import_error error;
    struct topo_host host;
};

/* hwloc 2 does not survive everything that it is given, so it is given it in a process of its own. Never returns. */
static void hwloc_import_child(struct hwloc_import_shared *shared, const char *text, size_t len)
{
    const struct rlimit none = {0, 0};
    hwloc_topology_t topology;
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC), noise = dup(STDERR_FILENO);
    setrlimit(RLIMIT_CORE, &none);
    alarm(HWLOC_IMPORT_SECONDS);
    if (quiet >= 0)
        dup2(quiet, STDERR_FILENO);
    shared->rc = hwloc_topology_init(&topology) == 0 ? 0 : -ENOMEM;
    if (!shared->rc)
        shared->rc = hwloc_import_load(topology, text, len, &shared->error);
    if (noise >= 0)
        dup2(noise, STDERR_FILENO);
    if (!shared->rc) {
        shared->loaded = true;
        shared->rc = hwloc_import_all(topology, &shared->host, &shared->error);
    }
    shared->done = true;
    _exit(0);
}

static int hwloc_import_fork(struct hwloc_import_shared *shared, const char *text, size_t len,
                             struct import_error *error)
{
    int status;
    pid_t child = fork();
    if (child < 0)
        return -ENOMEM;
    if (child == 0)
        hwloc_import_child(shared, text, len);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!shared->done && shared->loaded) {
        import_fail(error, 1, 1, "seen XML that hwloc takes and braid does not survive: that is a defect of braid");
        return -EFAULT;
    }
    if (!shared->done)
        return import_fail(error, 1, 1, "seen XML that hwloc does not survive, expected what lstopo exports");
    *error = shared->error;
    return shared->rc;
}

int import_hwloc(const char *text, size_t len, struct topo_host **out, struct import_error *error)
{
    struct hwloc_import_shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct topo_host *host = topo_host_new(TOPO_SOURCE_HWLOC);
    char *copy = malloc(len + 1); /* hwloc wants a NUL behind it */
    int rc = host && copy && shared != MAP_FAILED ? 0 : -ENOMEM;
    if (!rc) {
        memcpy(copy, text, len);
        copy[len] = '\0';
        shared->host = *host;
        rc = hwloc_import_fork(shared, copy, len, error);
    }
    if (!rc) {
        *host = shared->host;
        topo_settle(host);
        *out = host;
    }
    free(copy);
    if (shared != MAP_FAILED)
        munmap(shared, sizeof(*shared));
    if (rc)
        topo_free(host);
    return rc;
}
