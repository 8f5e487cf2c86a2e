/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_entry.c - the one function that a transport file exports. Compiled once for each file, with the number of the
 * interface version in the file's name; all else is the same object code. Called by the host; next: nvshmem_init.c
 */
#include "nvshmem.h"

/**
 * What the host calls. The block, filled in, goes to *out. 0, or enum nvs_status with a message: the host then does
 * without a remote transport. The CUDA table is not used: its layout moves from release to release.
 */
int nvshmemt_init(void **out, void *cuda_table, int api_version) __attribute__((visibility("default")));

int nvshmemt_init(void **out, void *cuda_table, int api_version)
{
    (void)cuda_table;
    return nvs_init(out, api_version, NVS_FILE_MAJOR, __builtin_return_address(0));
}
