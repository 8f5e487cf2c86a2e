/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_smi.c - a host from the table of `nvidia-smi topo -m`, wherever it stands in a text. What is missing in a row is taken from
 * the column that says the same, and reported; what nothing proves is an error with its line and column. Next:
 * import_smi_table.c
 */
#include "import_smi_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the whole table ------------------------------------------------------------------------------------------------- */

static const char *smi_class(int cell)
{
    return cell >= SMI_NEAR ? topo_near_name((enum topo_near)(cell - SMI_NEAR)) : cell == SMI_SELF ? "X" : "another";
}

/* Cells between GPUs say how GPUs talk, which is nobody's business here. */
static bool smi_matters(const struct smi_table *t, unsigned i, unsigned j)
{
    return !t->label[i].gpu || !t->label[j].gpu;
}

/* What a row lacks is what the other row says, and both must say the same. */
static int smi_mirror(struct smi_table *t)
{
    unsigned repaired = 0, i_first = 0, j_first = 0;
    for (unsigned i = 0; i < t->columns; i++) {
        for (unsigned j = 0; j < t->columns; j++) {
            uint8_t *cell = &t->cell[i][j], other = t->cell[j][i];
            if (i == j || !smi_matters(t, i, j) || other == SMI_NONE || other == *cell)
                continue;
            if (*cell != SMI_NONE)
                return import_fail(t->error, t->label[i].line, t->at[i][j],
                                   "%s and %s are %s by this row, and %s by the row in line %u: one of them is wrong",
                                   t->label[i].name, t->label[j].name, smi_class(*cell), smi_class(other),
                                   t->label[j].line);
            *cell = other;
            if (!t->label[i].gpu || t->label[j].gpu)
                continue; /* a device's own row: what counts are those of GPUs */
            if (!repaired++) {
                i_first = i;
                j_first = j;
            }
        }
    }
    if (repaired)
        topo_note(t->host, "%u cells were missing and are taken from the columns that say the same, the first %s of %s",
                  repaired, t->label[j_first].name, t->label[i_first].name);
    return 0;
}

/* Each GPU that has a row must have a class for each device. */
static int smi_complete(struct smi_table *t)
{
    unsigned devices = 0, rows = 0;
    for (unsigned i = 0; i < t->columns; i++) {
        unsigned known = 0, missing = 0, j_missing = 0;
        if (!t->label[i].gpu) {
            devices++;
            rows += t->label[i].line > 0;
            continue;
        }
        for (unsigned j = 0; j < t->columns; j++) {
            if (t->label[j].gpu)
                continue;
            known += t->cell[i][j] >= SMI_NEAR;
            if (t->cell[i][j] < SMI_NEAR && !missing++)
                j_missing = j;
        }
        if (!t->label[i].line && (missing || !known)) {
            topo_note(t->host, "the row of %s is missing, and so is it from the plan", t->label[i].name);
            t->host->damaged = t->label[i].left = true;
        } else if (missing) {
            return import_fail(
                t->error, t->label[i].line, t->at[i][j_missing],
                "seen no class of %s for %s, expected one of PIX, PXB, PHB, NODE, SYS, here or in the row of %s",
                t->label[i].name, t->label[j_missing].name, t->label[j_missing].name);
        } else if (!t->label[i].line) {
            topo_note(t->host, "the row of %s is missing and is taken from its column", t->label[i].name);
        }
    }
    if (devices > rows) {
        t->host->damaged |= rows > 0;
        topo_note(t->host, "%u of %u rows of devices are missing, so nothing confirms what the rows of GPUs say",
                  devices - rows, devices);
    }
    return 0;
}

/* ---- the host ---------------------------------------------------------------------------------------------------------- */

static void smi_add_port(struct smi_table *t, unsigned column)
{
    struct topo_host *host = t->host;
    const struct smi_label *label = &t->label[column];
    struct topo_port *p = &host->port[host->ports];
    const char *dev = label->dev[0] ? label->dev : label->name;
    *p = (struct topo_port){.port = 1, .channel_adapter = true, .active = true, .pci = -1, .card = -1};
    snprintf(p->dev, sizeof(p->dev), "%s", dev);
    if (strstr(dev, "bond"))
        snprintf(p->bond, sizeof(p->bond), "%.15s", dev);
    for (unsigned g = 0, row = 0; row < t->columns; row++) {
        if (t->label[row].gpu && !t->label[row].left)
            host->near[g++][host->ports] = (uint8_t)(t->cell[row][column] - SMI_NEAR);
    }
    /* PIX to each other: ports of one card, or as good as. */
    for (unsigned other = 0, i = 0; other < column; other++) {
        if (t->label[other].gpu)
            continue;
        if (t->cell[column][other] == SMI_NEAR + TOPO_NEAR_PIX && p->card < 0)
            p->card = host->port[i].card = (int)i;
        i++;
    }
    host->ports++;
}

/* A matrix that calls all the same although GPUs are of several nodes tells nothing. */
static void smi_note_locality(struct topo_host *host)
{
    bool same = host->ports > 1 && host->gpus > 1, nodes = false;
    for (unsigned g = 0; g < host->gpus; g++) {
        nodes |= host->gpu[g].numa != host->gpu[0].numa;
        for (unsigned i = 0; i < host->ports; i++)
            same = same && host->near[g][i] == host->near[0][0];
    }
    if (same && nodes)
        topo_note(host,
                  "the table gives every port the class %s, though GPUs are of several NUMA nodes: it tells nothing of "
                  "where they are; run braid plan on the host itself",
                  topo_near_name((enum topo_near)host->near[0][0]));
}

static void smi_host(struct smi_table *t)
{
    struct topo_host *host = t->host;
    unsigned unnamed = 0;
    for (unsigned i = 0; i < t->columns; i++) {
        const struct smi_label *label = &t->label[i];
        if (!label->gpu || label->left)
            continue;
        struct topo_gpu *gpu = &host->gpu[host->gpus++];
        *gpu = (struct topo_gpu){.pci = -1, .numa = label->numa};
        snprintf(gpu->name, sizeof(gpu->name), "%.15s", label->name);
    }
    for (unsigned i = 0; i < t->columns; i++) {
        if (t->label[i].gpu)
            continue;
        unnamed += !t->label[i].dev[0] && smi_numbered(t->label[i].name, strlen(t->label[i].name), "NIC");
        smi_add_port(t, i);
    }
    if (unnamed)
        topo_note(host, "the NIC legend is missing for %u devices: they are called as in the table", unnamed);
    smi_note_locality(host);
    smi_devinfo(t->text, host);
    smi_bus_ids(t->text, host);
}

static int smi_import(struct smi_table *t)
{
    int rc = smi_table_read(t);
    if (!rc)
        rc = smi_mirror(t);
    if (!rc)
        rc = smi_complete(t);
    if (!rc)
        smi_host(t);
    return rc;
}

int import_smi(const char *bytes, size_t len, struct topo_host **out, struct import_error *error)
{
    struct smi_text text = {0};
    struct smi_table *t = calloc(1, sizeof(*t));
    struct topo_host *host = topo_host_new(TOPO_SOURCE_SMI);
    int rc = t && host ? smi_text_make(bytes, len, &text) : -ENOMEM;
    if (!rc) {
        t->text = &text;
        t->host = host;
        t->error = error;
        rc = smi_import(t);
    }
    smi_text_free(&text);
    free(t);
    if (rc) {
        topo_free(host);
        return rc;
    }
    *out = host;
    return 0;
}
