/* SPDX-License-Identifier: Apache-2.0 */
/* import_smi_table.h - the table of `nvidia-smi topo` as cells; for import_smi*.c alone. */
#ifndef IMPORT_SMI_TABLE_H
#define IMPORT_SMI_TABLE_H

#include "import_smi.h"

/** A column, and the row with the same name. */
struct smi_label {
    char name[TOPO_DEV_SIZE];
    char dev[TOPO_DEV_SIZE]; /**< by the legend; empty: it does not say */
    bool gpu;
    bool left;     /**< a GPU of which too little is known */
    unsigned line; /**< of its row; 0: there is none */
    int numa;
};

struct smi_table {
    const struct smi_text *text;
    struct topo_host *host; /**< for notes */
    struct import_error *error;
    unsigned head; /**< index of the line with the names of columns */
    unsigned columns;
    struct smi_label label[SMI_COLUMNS];
    uint8_t cell[SMI_COLUMNS][SMI_COLUMNS]; /**< enum smi_cell */
    uint16_t at[SMI_COLUMNS][SMI_COLUMNS];  /**< column in the text of each cell, or of where it should be */
    unsigned ranges, unknown;               /**< rows whose NUMA node is a range, or cannot be told from its CPUs */
};

/** Finds the table and reads header, rows and legend. 0, or -EINVAL with the table's error filled in. */
int smi_table_read(struct smi_table *t) ATTR_CHECK_RESULT;

#endif
