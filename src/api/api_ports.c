/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_ports.c - ports=auto: the host as src/topo reads it, planned, and plan's answer as a list of ports.
 * May not open a port. Called by api_open.c; next: src/topo/topo_sysfs.c, then src/plan/plan_ports.c
 */
#include "api_ports.h"

#include "api.h"
#include "gpu.h"
#include "plan_ports.h"
#include "topo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)TOPO_NEAR_PIX == (int)BRAID_NEAR_PIX && (int)TOPO_NEAR_SYS == (int)BRAID_NEAR_SYS, "one number");
_Static_assert(TOPO_DEV_SIZE == PORTLIST_DEV_SIZE, "what is planned can be listed");

struct api_auto {
    struct braid *b;
    struct topo_host *host;
    int gpu;              /* index in host; -1: none */
    bool all_but;         /* option only: the list is of those to leave out */
    struct portlist only; /* empty: no limit */
    unsigned maps;        /* option map */
    struct plan_ports_map map[TOPO_GPUS];
    bool failed[TOPO_PORTS];
    struct plan_ports_out plan;
    unsigned count;
    uint16_t chosen[PORTLIST_MAX]; /* indices in host */
};

/* The PCI number of the GPU to look from: 1, 0 where there is none, or -EINVAL; logs. */
static int api_auto_gpu_number(struct braid *b, uint64_t *out)
{
    const char *text = b->options.gpu;
    if (strcmp(text, "none") == 0)
        return 0;
    if (strcmp(text, "auto") == 0) {
        struct gpu_about about;
        int device = gpu_current(b->gpu.cuda);
        /* A MIG device or a container may hide it: then there is nothing to look from. */
        return device >= 0 && gpu_about(b->gpu.cuda, device, &about) == 0 && pci_number(about.pci, out);
    }
    if (pci_number(text, out) && strncmp(text, "pci", 3) != 0)
        return 1;
    log_write(
        &b->log, LOG_LEVEL_ERROR,
        "option \"gpu\" is \"%s\", which is not accepted: expected a PCI address such as 0000:3b:00.0, auto or none",
        text);
    return -EINVAL;
}

static int api_auto_gpu(struct api_auto *a)
{
    struct braid *b = a->b;
    uint64_t number;
    char name[PCI_TEXT_SIZE], others[512] = "none";
    int known = api_auto_gpu_number(b, &number);
    if (known <= 0)
        return known;
    a->gpu = topo_gpu_find(a->host, b->options.sysroot, number);
    if (a->gpu >= 0)
        return 0;
    for (unsigned i = 0, used = 0; i < a->host->gpus && used + PCI_TEXT_SIZE + 2 < sizeof(others); i++) {
        pci_text(a->host->gpu[i].number, name);
        used += (unsigned)snprintf(others + used, sizeof(others) - used, "%s%s", i ? ", " : "", name);
    }
    pci_text(number, name);
    /* CUDA's own GPU may be out of sight, in a container; one that the user named is a mistake. */
    bool asked = strcmp(b->options.gpu, "auto") != 0;
    log_write(&b->log, asked ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN,
              "there is no PCI device %s below %s/sys: GPUs there: %s%s", name,
              strcmp(b->options.sysroot, "/") ? b->options.sysroot : "", others,
              asked ? "" : "; ports are chosen as without a GPU");
    return asked ? -ENODEV : 0;
}

/* Option "only": names, or with ^ names to leave out. */
static int api_auto_only(struct api_auto *a)
{
    const char *text = a->b->options.only;
    a->all_but = *text == '^';
    if (!*text)
        return 0;
    return portlist_parse("only", text + a->all_but, &a->b->log, &a->only);
}

int api_auto_open(struct braid *b, struct api_auto **out)
{
    struct api_auto *a = calloc(1, sizeof(*a));
    if (!a) {
        log_write(&b->log, LOG_LEVEL_ERROR, "no memory to choose ports");
        return -ENOMEM;
    }
    a->b = b;
    a->gpu = -1;
    int rc = api_auto_only(a);
    if (!rc)
        rc = topo_read(b->options.sysroot, &b->log, &a->host);
    if (!rc)
        rc = api_auto_gpu(a);
    if (!rc)
        rc = plan_map_parse("map", b->options.map, a->host, &b->log, a->map, &a->maps);
    if (rc) {
        api_auto_close(a);
        return rc;
    }
    *out = a;
    return 0;
}

void api_auto_close(struct api_auto *a)
{
    if (!a)
        return;
    topo_free(a->host);
    free(a);
}

static const char *api_auto_reason(const struct api_auto *a, unsigned i)
{
    return a->plan.why[i] == PLAN_PORT_USED ? "used by another GPU" : plan_port_why_name(a->plan.why[i]);
}

/* "mlx5_0:1 at 0000:1a:00.0, 200 Gb/s" */
static void api_auto_describe(const struct api_auto *a, unsigned i, char *out, size_t size)
{
    const struct topo_port *p = &a->host->port[i];
    char pci[PCI_TEXT_SIZE] = "no PCI device";
    if (p->pci >= 0)
        pci_text(a->host->pci[p->pci].number, pci);
    snprintf(out, size, "%s:%u at %s%s%s, %.4g Gb/s", p->dev, p->port, pci, p->netdev[0] ? ", " : "", p->netdev,
             (double)p->rate_bits / 1e9);
}

static void api_auto_list(const struct api_auto *a, enum log_level level)
{
    for (unsigned i = 0; i < a->host->ports; i++) {
        const struct topo_port *p = &a->host->port[i];
        char text[160];
        bool mine = false;
        for (unsigned k = 0; k < a->count; k++)
            mine |= a->chosen[k] == i;
        if (mine)
            continue;
        api_auto_describe(a, i, text, sizeof(text));
        bool down = a->plan.why[i] == PLAN_PORT_DOWN;
        log_write(&a->b->log, level, "port %s is left out: %s%s%s%s", text, api_auto_reason(a, i), down ? " (" : "",
                  down ? p->state : "", down ? ")" : "");
    }
}

void api_auto_log_left(const struct api_auto *a)
{
    api_auto_list(a, LOG_LEVEL_INFO);
}

/* Takes plan's answer for this GPU; a host without one counts as one GPU. */
static void api_auto_take(struct api_auto *a, struct portlist *out)
{
    unsigned most = a->b->options.rails ? a->b->options.rails : PORTLIST_MAX;
    const struct plan_ports_gpu *mine = &a->plan.gpu[a->gpu < 0 ? 0 : a->gpu];
    a->count = min_u32(mine->count, most);
    *out = (struct portlist){.count = a->count};
    for (unsigned k = 0; k < a->count; k++) {
        const struct topo_port *p = &a->host->port[mine->port[k]];
        a->chosen[k] = mine->port[k];
        memcpy(out->item[k].dev, p->dev, sizeof(out->item[k].dev));
        out->item[k].port = p->port;
    }
}

int api_auto_choose(struct api_auto *a, struct portlist *out)
{
    /* Without a GPU to look from this process uses all there is. */
    struct plan_ports_rule rule = {
        .only = &a->only,
        .all_but = a->all_but,
        .failed = a->failed,
        .nobody = a->gpu < 0,
        .map = a->map,
        .maps = a->maps,
    };
    int rc = plan_ports(a->host, &rule, &a->plan);
    if (rc)
        return rc;
    api_auto_take(a, out);
    if (a->count)
        return 0;
    log_write(&a->b->log, LOG_LEVEL_ERROR, "no RDMA port of this host can be used: %s",
              a->host->ports ? "these were found" : "there is none (no entry below /sys/class/infiniband)");
    api_auto_list(a, LOG_LEVEL_ERROR);
    return -ENODEV;
}

uint64_t api_auto_rate(const struct api_auto *a, unsigned i)
{
    return a->host->port[a->chosen[i]].rate_bits;
}

int api_auto_near(const struct api_auto *a)
{
    return a->gpu < 0 ? (int)BRAID_NEAR_UNKNOWN : (int)a->plan.gpu[a->gpu].near;
}

void api_auto_failed(struct api_auto *a, unsigned i)
{
    a->failed[a->chosen[i]] = true;
}

void api_auto_why(const struct api_auto *a, unsigned i, char *out, size_t size)
{
    char pci[PCI_TEXT_SIZE], port[160];
    unsigned at = a->chosen[i];
    api_auto_describe(a, at, port, sizeof(port));
    if (a->gpu < 0) {
        snprintf(out, size, "%s; no GPU to look from, so all usable ports are", port);
        return;
    }
    pci_text(a->host->gpu[a->gpu].number, pci);
    snprintf(out, size, "%s; %s of GPU %s%s%s", port, topo_near_name((enum topo_near)a->host->near[a->gpu][at]), pci,
             a->plan.gpu[a->gpu].mapped ? ", by option \"map\"" : "",
             a->plan.users[at] > 1 ? ", shared with others" : "");
}
