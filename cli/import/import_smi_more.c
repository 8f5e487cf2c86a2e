/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_smi_more.c - what people paste beside the table: ibv_devinfo, and the PCI addresses of GPUs. May not change
 * distances. Called by import_smi.c.
 */
#include "import_smi.h"

#include <stdlib.h>
#include <string.h>

/* "   state:   PORT_ACTIVE (4)": the word behind this key; false where the line has another. */
static bool smi_value(const struct smi_line *line, const char *key, struct smi_word *out)
{
    size_t at = 0;
    return smi_word_next(line, &at, out) && out->len == strlen(key) && memcmp(out->text, key, out->len) == 0 &&
           smi_word_next(line, &at, out);
}

static bool smi_is(const struct smi_word *word, const char *text)
{
    return word->len == strlen(text) && memcmp(word->text, text, word->len) == 0;
}

/* The host's port of this device; a second port of a device that the table shows as one is added, as near. NULL: none. */
static struct topo_port *smi_port(struct topo_host *host, const char *dev, unsigned number)
{
    int of = -1;
    for (unsigned i = 0; i < host->ports; i++) {
        if (strcmp(host->port[i].dev, dev) != 0)
            continue;
        if (host->port[i].port == number)
            return &host->port[i];
        of = (int)i;
    }
    if (of < 0 || host->ports == TOPO_PORTS || number < 1 || number > UINT8_MAX)
        return NULL;
    /* Behind the others of its device, so that the order stays the host's. */
    unsigned at = (unsigned)of + 1;
    memmove(&host->port[at + 1], &host->port[at], (host->ports - at) * sizeof(host->port[0]));
    for (unsigned g = 0; g < host->gpus; g++) {
        memmove(&host->near[g][at + 1], &host->near[g][at], host->ports - at);
        host->near[g][at] = host->near[g][of];
    }
    host->ports++;
    for (unsigned i = 0; i < host->ports; i++) { /* cards are called by the first of their ports */
        if (i != at && host->port[i].card >= (int)at)
            host->port[i].card++;
    }
    host->port[at] = host->port[of];
    if (host->port[of].card < 0)
        host->port[of].card = of;
    host->port[at].card = host->port[of].card;
    host->port[at].port = (uint8_t)number;
    return &host->port[at];
}

static void smi_devinfo_state(struct topo_port *p, const struct smi_word *value)
{
    size_t skip = value->len > 5 && memcmp(value->text, "PORT_", 5) == 0 ? 5 : 0;
    snprintf(p->state, sizeof(p->state), "%.*s", (int)(value->len - skip), value->text + skip);
    p->active = strcmp(p->state, "ACTIVE") == 0;
}

void smi_devinfo(const struct smi_text *text, struct topo_host *host)
{
    char dev[TOPO_DEV_SIZE] = "";
    struct topo_port *p = NULL;
    unsigned blocks = 0, strange = 0;
    for (unsigned n = 0; n < text->count; n++) {
        const struct smi_line *line = &text->line[n];
        struct smi_word value;
        if (smi_value(line, "hca_id:", &value)) {
            snprintf(dev, sizeof(dev), "%.*s", (int)value.len, value.text);
            blocks++;
            p = NULL;
        } else if (dev[0] && smi_value(line, "port:", &value)) {
            p = smi_port(host, dev, (unsigned)strtoul(value.text, NULL, 10));
            strange += !p;
        } else if (p && smi_value(line, "state:", &value)) {
            smi_devinfo_state(p, &value);
        } else if (p && smi_value(line, "active_mtu:", &value)) {
            p->mtu = (unsigned)min_u64(strtoul(value.text, NULL, 10), 4096);
        } else if (p && smi_value(line, "link_layer:", &value)) {
            p->link = smi_is(&value, "InfiniBand") ? TOPO_LINK_IB
                      : smi_is(&value, "Ethernet") ? TOPO_LINK_ETHERNET
                                                   : TOPO_LINK_OTHER;
        }
    }
    if (strange)
        topo_note(host, "%u ports that ibv_devinfo lists are not in the table: nobody knows where they are", strange);
    for (unsigned i = 0; i < host->ports && blocks; i++) {
        p = &host->port[i];
        if (p->state[0])
            continue;
        snprintf(p->state, sizeof(p->state), "ABSENT");
        p->active = false;
        topo_note(host, "%s is in the table, but ibv_devinfo does not list it: it cannot be opened, so it is left out",
                  p->dev);
    }
}

void smi_bus_ids(const struct smi_text *text, struct topo_host *host)
{
    for (unsigned n = 0; n < text->count; n++) {
        struct smi_word index, address;
        char label[16], pci[PCI_TEXT_SIZE];
        uint64_t number;
        size_t at = 0;
        if (!smi_word_next(&text->line[n], &at, &index) || !smi_word_next(&text->line[n], &at, &address) ||
            index.len < 2 || index.len > 4 || index.text[index.len - 1] != ',' || address.len >= sizeof(pci))
            continue;
        snprintf(pci, sizeof(pci), "%.*s", (int)address.len, address.text);
        snprintf(label, sizeof(label), "GPU%.*s", (int)index.len - 1, index.text);
        for (unsigned g = 0; g < host->gpus; g++) {
            if (strcmp(host->gpu[g].name, label) == 0 && pci_number(pci, &number))
                host->gpu[g].number = number;
        }
    }
}
