/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_map.c - reads a map of GPUs to ports that a user wrote. Bad text is refused, never guessed at.
 * Called by src/api/api_ports.c and by cli.
 */
#include "plan_ports.h"

#include <errno.h>
#include <string.h>

#define PLAN_MAP_EXAMPLE "expected GPU=DEVICE[:PORT],...;... such as \"0000:3b:00.0=mlx5_0,mlx5_1;GPU1=mlx5_2\""

static int plan_map_gpu(const struct topo_host *host, const char *text, size_t len)
{
    char name[32];
    uint64_t number;
    if (len == 0 || len >= sizeof(name))
        return -1;
    memcpy(name, text, len);
    name[len] = '\0';
    bool address = pci_number(name, &number);
    for (unsigned g = 0; g < host->gpus; g++) {
        if (strcmp(host->gpu[g].name, name) == 0 || (address && host->gpu[g].number == number))
            return (int)g;
    }
    return -1;
}

/* The ports of a list, which must all be there. 0 or -EINVAL; logs. */
static int plan_map_ports(const char *name, const struct topo_host *host, const struct portlist *list,
                          const struct log *log, struct plan_ports_map *out)
{
    out->count = 0;
    for (unsigned k = 0; k < list->count; k++) {
        bool found = false;
        for (unsigned i = 0; i < host->ports && !found; i++) {
            found = strcmp(host->port[i].dev, list->item[k].dev) == 0 && host->port[i].port == list->item[k].port;
            if (found)
                out->port[out->count++] = (uint16_t)i;
        }
        if (!found) {
            log_write(log, LOG_LEVEL_ERROR, "option \"%s\" names %s:%u, which this host does not have", name,
                      list->item[k].dev, list->item[k].port);
            return -EINVAL;
        }
    }
    return 0;
}

int plan_map_parse(const char *name, const char *text, const struct topo_host *host, const struct log *log,
                   struct plan_ports_map *map, unsigned *maps)
{
    unsigned count = 0;
    for (const char *p = text; *p;) {
        char ports[1200];
        struct portlist list;
        size_t len = strcspn(p, ";"), key = strcspn(p, "=;");
        int gpu = p[key] == '=' ? plan_map_gpu(host, p, key) : -1;
        if (gpu < 0 || len - key - 1 >= sizeof(ports)) {
            log_write(log, LOG_LEVEL_ERROR,
                      "option \"%s\": \"%.*s\" at byte %zu names no GPU of this host: " PLAN_MAP_EXAMPLE, name,
                      (int)min_u64(len, 64), p, (size_t)(p - text));
            return -EINVAL;
        }
        memcpy(ports, p + key + 1, len - key - 1);
        ports[len - key - 1] = '\0';
        int rc = portlist_parse(name, ports, log, &list);
        if (!rc)
            rc = plan_map_ports(name, host, &list, log, &map[count]);
        if (rc)
            return rc;
        for (unsigned n = 0; n < count; n++) {
            if (map[n].gpu == (unsigned)gpu) {
                log_write(log, LOG_LEVEL_ERROR, "option \"%s\" names %s twice: name each GPU once", name,
                          host->gpu[gpu].name);
                return -EINVAL;
            }
        }
        map[count++].gpu = (unsigned)gpu;
        p += len + (p[len] == ';');
    }
    *maps = count;
    return 0;
}
