/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_smi.c - fuzz target: the table of nvidia-smi topo, see fuzz_import.h. */
#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(IMPORT_SMI, data, size);
    return 0;
}
