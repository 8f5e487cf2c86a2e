/* SPDX-License-Identifier: Apache-2.0 */
/* standin_plugin.c - a file with the name of a plugin, for loading tests: as NVIDIA's beside the host, and as ours. */
__attribute__((visibility("default"))) int nvshmemt_init(void *transport, void *table, int version);

int nvshmemt_init(void *transport, void *table, int version)
{
    return !transport || !table || version < 0;
}
