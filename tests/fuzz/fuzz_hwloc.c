/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hwloc.c - fuzz target: hwloc's XML, see fuzz_import.h. */
#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(IMPORT_HWLOC, data, size);
    return 0;
}
