/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_host.c - fuzz target: saved hosts, see fuzz_import.h. */
#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(IMPORT_HOST, data, size);
    return 0;
}
