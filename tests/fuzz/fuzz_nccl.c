/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nccl.c - fuzz target: NCCL's topology files, see fuzz_import.h. */
#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(IMPORT_NCCL, data, size);
    return 0;
}
