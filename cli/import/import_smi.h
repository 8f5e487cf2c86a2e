/* SPDX-License-Identifier: Apache-2.0 */
/* import_smi.h - lines, tokens and cells of `nvidia-smi topo` text; for import_smi*.c alone. */
#ifndef IMPORT_SMI_H
#define IMPORT_SMI_H

#include "import.h"

#define SMI_COLUMNS (TOPO_GPUS + TOPO_PORTS)

/** What a cell says: a class is its enum topo_near plus SMI_NEAR. */
enum smi_cell { SMI_NONE, SMI_SELF, SMI_OTHER, SMI_NEAR };

/** A line without escape sequences, quote marks and line ends. */
struct smi_line {
    unsigned number; /**< from 1 */
    char *text;
    unsigned *column; /**< of each byte in the line as it was, from 1 */
};

struct smi_text {
    unsigned count;
    struct smi_line *line;
    char *bytes;
    unsigned *columns;
};

/** Words with white space around; text is not ended by a NUL. */
struct smi_word {
    const char *text;
    unsigned len;
    unsigned column; /**< in the line as it was */
};

/** 0 or -ENOMEM; freed by smi_text_free(). */
int smi_text_make(const char *bytes, size_t len, struct smi_text *out) ATTR_CHECK_RESULT;

/** All zeros is allowed. */
void smi_text_free(struct smi_text *text);

/** The word at or after *at of the line, which moves behind it. False at the end. */
bool smi_word_next(const struct smi_line *line, size_t *at, struct smi_word *out);

/** The cell that text begins with, and how many of the len bytes it takes; SMI_NONE: none. */
int smi_cell(const char *text, size_t len, size_t *used);

/** Whether the word is this prefix and a number, "GPU12", whole. */
bool smi_numbered(const char *text, size_t len, const char *prefix);

/** Whether a device may be called so. */
bool smi_device_name(const char *text, size_t len);

/** What ibv_devinfo said, if the text has any of it: states of the host's ports, and which of them there are. */
void smi_devinfo(const struct smi_text *text, struct topo_host *host);

/** PCI addresses of GPUs, from lines as `nvidia-smi --query-gpu=index,pci.bus_id --format=csv` prints them. */
void smi_bus_ids(const struct smi_text *text, struct topo_host *host);

#endif
