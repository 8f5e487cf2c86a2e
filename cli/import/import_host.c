/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_host.c - a host as JSON, written and read again: "braid.host/1". By hand as little as names and distances will do.
 * Called by import.c and by cli; through jansson.
 */
#include "import.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define HOST_SCHEMA "braid.host/1"

static const char *const host_sources[] = {
    [TOPO_SOURCE_SYSFS] = "sysfs", [TOPO_SOURCE_HOST] = "host", [TOPO_SOURCE_HWLOC] = "hwloc",
    [TOPO_SOURCE_NCCL] = "nccl",   [TOPO_SOURCE_SMI] = "smi",
};

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

static void host_put_text(json_t *to, const char *key, const char *value)
{
    if (value[0])
        json_object_set_new(to, key, json_string(value));
}

static void host_put_number(json_t *to, const char *key, uint64_t value)
{
    if (value)
        json_object_set_new(to, key, json_integer((json_int_t)value));
}

static void host_put_pci(json_t *to, const char *key, uint64_t number)
{
    char text[PCI_TEXT_SIZE];
    pci_text(number, text);
    host_put_text(to, key, number ? text : "");
}

static json_t *host_pci(const struct topo_pci *p)
{
    json_t *o = json_object();
    host_put_pci(o, "pci", p->number);
    json_object_set_new(o, "parent", p->parent < 0 ? json_null() : json_integer(p->parent));
    json_object_set_new(o, "numa", p->numa < 0 ? json_null() : json_integer(p->numa));
    host_put_number(o, "width", p->width);
    host_put_number(o, "speed", p->speed);
    host_put_number(o, "link_bits", p->link_bits);
    host_put_number(o, "class", p->class);
    host_put_number(o, "vendor", p->vendor);
    host_put_number(o, "device", p->dev);
    return o;
}

static json_t *host_port(const struct topo_port *p)
{
    json_t *o = json_object();
    host_put_text(o, "dev", p->dev);
    host_put_number(o, "port", p->port);
    host_put_text(o, "state", p->state);
    host_put_text(o, "link", topo_link_name(p->link));
    if (p->rate_bits)
        json_object_set_new(o, "gbps", json_real((double)p->rate_bits / 1e9));
    host_put_number(o, "mtu", p->mtu);
    host_put_pci(o, "physical", p->physical);
    host_put_text(o, "netdev", p->netdev);
    host_put_text(o, "bond", p->bond);
    host_put_number(o, "wires", p->wires);
    host_put_number(o, "downs", p->downs);
    if (p->pci >= 0)
        json_object_set_new(o, "node", json_integer(p->pci));
    if (p->card >= 0)
        json_object_set_new(o, "card", json_integer(p->card));
    if (!p->channel_adapter)
        json_object_set_new(o, "switch", json_true());
    if (p->unstable)
        json_object_set_new(o, "unstable", json_true());
    if (p->software)
        json_object_set_new(o, "software", json_true());
    return o;
}

static json_t *host_gpu(const struct topo_gpu *g)
{
    json_t *o = json_object();
    host_put_text(o, "name", g->name);
    host_put_pci(o, "pci", g->number);
    if (g->pci >= 0)
        json_object_set_new(o, "node", json_integer(g->pci));
    json_object_set_new(o, "numa", g->numa < 0 ? json_null() : json_integer(g->numa));
    return o;
}

static json_t *host_gids(const struct topo_host *host)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < host->gids; i++) {
        const struct topo_gid *g = &host->gid[i];
        char raw[33];
        for (unsigned k = 0; k < 16; k++)
            snprintf(raw + 2 * k, 3, "%02x", g->raw[k]);
        json_array_append_new(
            list, json_pack("{s:i,s:i,s:b,s:s}", "port", g->port, "index", g->index, "v2", g->v2, "gid", raw));
    }
    return list;
}

int import_save(const struct topo_host *host, FILE *to)
{
    json_t *root = json_object(), *pci = json_array(), *gpus = json_array(), *ports = json_array(),
           *near = json_array(), *notes = json_array();
    for (unsigned i = 0; i < host->nodes; i++)
        json_array_append_new(pci, host_pci(&host->pci[i]));
    for (unsigned i = 0; i < host->ports; i++)
        json_array_append_new(ports, host_port(&host->port[i]));
    for (unsigned g = 0; g < host->gpus; g++) {
        json_t *row = json_array();
        for (unsigned i = 0; i < host->ports; i++)
            json_array_append_new(row, json_string(topo_near_name((enum topo_near)host->near[g][i])));
        json_array_append_new(near, row);
        json_array_append_new(gpus, host_gpu(&host->gpu[g]));
    }
    for (unsigned i = 0; i < host->notes; i++)
        json_array_append_new(notes, json_string(host->note[i]));
    json_object_set_new(root, "schema", json_string(HOST_SCHEMA));
    json_object_set_new(root, "source", json_string(host_sources[host->source]));
    json_object_set_new(root, "switch_hops", json_integer(host->switch_hops));
    json_object_set_new(root, "hinted", json_boolean(host->hinted));
    json_object_set_new(root, "damaged", json_boolean(host->damaged));
    json_object_set_new(root, "pci", pci);
    json_object_set_new(root, "gpus", gpus);
    json_object_set_new(root, "ports", ports);
    json_object_set_new(root, "near", near);
    json_object_set_new(root, "gids", host_gids(host));
    json_object_set_new(root, "notes", notes);
    int rc = json_dumpf(root, to, JSON_INDENT(1)) || fputc('\n', to) == EOF ? -EIO : 0;
    json_decref(root);
    return rc;
}

/* ---- reading: a key that is not there has its default, one with another type is an error -------------------------------- */

struct host_read {
    struct topo_host *host;
    struct import_error *error;
    const char *list; /* what is read */
    size_t at;
    int rc;
};

static void host_bad(struct host_read *r, const char *key, const char *expected)
{
    if (!r->rc)
        r->rc = import_fail(r->error, 0, 0, "\"%s\", entry %zu: seen no good \"%s\", expected %s", r->list, r->at, key,
                            expected);
}

static void host_text(struct host_read *r, const json_t *o, const char *key, char *out, size_t size)
{
    const json_t *v = json_object_get(o, key);
    const char *text = v ? json_string_value(v) : "";
    if (!text || strlen(text) >= size)
        host_bad(r, key, "a short text");
    else
        memcpy(out, text, strlen(text) + 1);
}

static int64_t host_number(struct host_read *r, const json_t *o, const char *key, int64_t low, int64_t high,
                           int64_t other)
{
    const json_t *v = json_object_get(o, key);
    if (!v || json_is_null(v))
        return other;
    int64_t value = json_integer_value(v);
    if (!json_is_integer(v) || value < low || value > high) {
        host_bad(r, key, "a whole number in range");
        return other;
    }
    return value;
}

static bool host_true(struct host_read *r, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (v && !json_is_boolean(v))
        host_bad(r, key, "true or false");
    return json_is_true(v);
}

static uint64_t host_address(struct host_read *r, const json_t *o, const char *key)
{
    char text[64] = "";
    uint64_t number = 0;
    host_text(r, o, key, text, sizeof(text));
    if (text[0] && !pci_number(text, &number))
        host_bad(r, key, "a PCI address such as 0000:3b:00.0");
    return number;
}

static void host_read_pci(struct host_read *r, const json_t *o)
{
    struct topo_pci *p = &r->host->pci[r->host->nodes];
    *p = (struct topo_pci){.number = host_address(r, o, "pci"),
                           .parent = (int)host_number(r, o, "parent", 0, (int64_t)r->host->nodes - 1, -1),
                           .numa = (int)host_number(r, o, "numa", 0, INT_MAX - 1, -1),
                           .width = (unsigned)host_number(r, o, "width", 0, 64, 0),
                           .speed = (unsigned)host_number(r, o, "speed", 0, 1000000, 0),
                           .link_bits = (uint64_t)host_number(r, o, "link_bits", 0, INT64_C(100000000000000), 0),
                           .class = (unsigned)host_number(r, o, "class", 0, 0xffffff, 0),
                           .vendor = (uint16_t)host_number(r, o, "vendor", 0, 0xffff, 0),
                           .dev = (uint16_t)host_number(r, o, "device", 0, 0xffff, 0)};
    if (!p->link_bits)
        p->link_bits = topo_pcie_bits(p->width, p->speed);
    r->host->nodes++;
}

static void host_read_gpu(struct host_read *r, const json_t *o)
{
    struct topo_gpu *g = &r->host->gpu[r->host->gpus++];
    *g = (struct topo_gpu){.number = host_address(r, o, "pci"),
                           .pci = (int)host_number(r, o, "node", 0, (int64_t)r->host->nodes - 1, -1),
                           .numa = (int)host_number(r, o, "numa", 0, INT_MAX - 1, -1)};
    host_text(r, o, "name", g->name, sizeof(g->name));
}

static void host_read_port(struct host_read *r, const json_t *o)
{
    struct topo_port *p = &r->host->port[r->host->ports++];
    char link[16] = "";
    const json_t *gbps = json_object_get(o, "gbps");
    *p = (struct topo_port){.port = (uint8_t)host_number(r, o, "port", 1, UINT8_MAX, 1),
                            .channel_adapter = !host_true(r, o, "switch"),
                            .unstable = host_true(r, o, "unstable"),
                            .software = host_true(r, o, "software"),
                            .mtu = (unsigned)host_number(r, o, "mtu", 0, 65535, 0),
                            .physical = host_address(r, o, "physical"),
                            .wires = (unsigned)host_number(r, o, "wires", 0, 64, 0),
                            .downs = (uint64_t)host_number(r, o, "downs", 0, INT64_MAX, 0),
                            .pci = (int)host_number(r, o, "node", 0, (int64_t)r->host->nodes - 1, -1),
                            .card = (int)host_number(r, o, "card", 0, TOPO_PORTS - 1, -1)};
    host_text(r, o, "dev", p->dev, sizeof(p->dev));
    host_text(r, o, "state", p->state, sizeof(p->state));
    host_text(r, o, "netdev", p->netdev, sizeof(p->netdev));
    host_text(r, o, "bond", p->bond, sizeof(p->bond));
    host_text(r, o, "link", link, sizeof(link));
    p->active = !p->state[0] || strcmp(p->state, "ACTIVE") == 0;
    p->link = strcmp(link, "InfiniBand") == 0 ? TOPO_LINK_IB
              : strcmp(link, "Ethernet") == 0 ? TOPO_LINK_ETHERNET
                                              : TOPO_LINK_OTHER;
    if (!p->dev[0])
        host_bad(r, "dev", "the name of a device");
    if (gbps && !json_is_null(gbps)) {
        double rate = json_number_value(gbps);
        if (!json_is_number(gbps) || !(rate >= 0 && rate < 1e5))
            host_bad(r, "gbps", "a rate in Gb/s");
        else
            p->rate_bits = (uint64_t)(rate * 1e9 + 0.5);
    }
}

static void host_read_gid(struct host_read *r, const json_t *o)
{
    struct topo_gid *g = &r->host->gid[r->host->gids++];
    char raw[33] = "";
    *g = (struct topo_gid){.port = (uint16_t)host_number(r, o, "port", 0, (int64_t)r->host->ports - 1, 0),
                           .index = (uint8_t)host_number(r, o, "index", 0, UINT8_MAX, 0),
                           .v2 = host_true(r, o, "v2")};
    host_text(r, o, "gid", raw, sizeof(raw));
    if (!r->host->ports) {
        host_bad(r, "port", "the index of a port");
    } else if (strspn(raw, "0123456789abcdef") != 32) {
        host_bad(r, "gid", "32 digits");
        return;
    }
    for (unsigned k = 0; k < 16; k++) {
        const char two[3] = {raw[2 * k], raw[2 * k + 1], '\0'};
        g->raw[k] = (uint8_t)strtoul(two, NULL, 16);
    }
}

static void host_read_note(struct host_read *r, const json_t *o)
{
    if (json_string_value(o))
        topo_note(r->host, "%s", json_string_value(o));
}

/* All entries of a list, of which there is room for so many. */
static void host_read_list(struct host_read *r, const json_t *root, const char *key, size_t most,
                           void (*one)(struct host_read *, const json_t *))
{
    const json_t *list = json_object_get(root, key);
    r->list = key;
    r->at = 0;
    if (list && (!json_is_array(list) || json_array_size(list) > most))
        r->rc = r->rc ? r->rc : import_fail(r->error, 0, 0, "\"%s\": expected a list of at most %zu", key, most);
    for (; r->at < json_array_size(list) && !r->rc; r->at++)
        one(r, json_array_get(list, r->at));
}

/* Distances, where there is no tree to compute them from. */
static void host_read_near(struct host_read *r, const json_t *root)
{
    const json_t *near = json_object_get(root, "near");
    r->list = "near";
    for (unsigned g = 0; g < r->host->gpus && !r->rc; g++) {
        const json_t *row = json_array_get(near, g);
        r->at = g;
        for (unsigned i = 0; i < r->host->ports && !r->rc; i++) {
            const char *name = json_string_value(json_array_get(row, i));
            enum topo_near class;
            if (!name || !topo_near_parse(name, &class))
                host_bad(r, "near", "a row for each GPU, with PIX, PXB, PHB, NODE or SYS for each port");
            else
                r->host->near[g][i] = (uint8_t) class;
        }
    }
}

static void host_read_all(struct host_read *r, const json_t *root)
{
    struct topo_host *host = r->host;
    char text[32] = "", source[32] = "";
    r->list = "the host";
    host_text(r, root, "schema", text, sizeof(text));
    if (strcmp(text, HOST_SCHEMA) != 0)
        host_bad(r, "schema", "\"" HOST_SCHEMA "\"");
    host_text(r, root, "source", source, sizeof(source));
    for (unsigned i = 0; i < sizeof(host_sources) / sizeof(host_sources[0]); i++) {
        if (strcmp(source, host_sources[i]) == 0)
            host->source = (enum topo_source)i; /* so that it is planned as it was */
    }
    host->switch_hops = (unsigned)host_number(r, root, "switch_hops", 1, 2, 2);
    host->hinted = host_true(r, root, "hinted");
    host->damaged = host_true(r, root, "damaged");
    host_read_list(r, root, "pci", TOPO_PCI, host_read_pci);
    host_read_list(r, root, "gpus", TOPO_GPUS, host_read_gpu);
    host_read_list(r, root, "ports", TOPO_PORTS, host_read_port);
    host_read_list(r, root, "gids", TOPO_GIDS, host_read_gid);
    host_read_list(r, root, "notes", TOPO_NOTES, host_read_note);
    if (r->rc)
        return;
    if (host->nodes) {
        topo_settle(host);
        return;
    }
    host_read_near(r, root);
    for (unsigned g = 0; g < host->gpus; g++) {
        if (!host->gpu[g].name[0])
            snprintf(host->gpu[g].name, sizeof(host->gpu[g].name), "GPU%u", g);
    }
}

int import_host(const char *text, size_t len, struct topo_host **out, struct import_error *error)
{
    json_error_t why;
    struct host_read r = {.host = topo_host_new(TOPO_SOURCE_HOST), .error = error};
    if (!r.host)
        return -ENOMEM;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        r.rc = import_fail(error, why.line > 0 ? (unsigned)why.line : 1, why.column > 0 ? (unsigned)why.column : 1,
                           "this is no JSON: %s", why.text);
    else
        host_read_all(&r, root);
    json_decref(root);
    if (r.rc) {
        topo_free(r.host);
        return r.rc;
    }
    *out = r.host;
    return 0;
}
