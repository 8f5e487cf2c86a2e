/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standin_host.c - stands in for the NVSHMEM host library where loading is tested: opens its plugin by a bare file name, looks up
 * nvshmemt_init and nothing else, and tells which file that is. Built once for each release (STANDIN_MAJOR, STANDIN_MINOR, STANDIN_PATCH),
 * with DT_RPATH=$ORIGIN as NVIDIA's is. Called by standin_app.c and, through ctypes, by test_load.py.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define STANDIN_TEXT(x) #x
#define STANDIN_FILE(n) "nvshmem_transport_ibrc.so." STANDIN_TEXT(n)

__attribute__((visibility("default"))) void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch);
__attribute__((visibility("default"))) int standin_open(void);

void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch)
{
    *major = STANDIN_MAJOR;
    *minor = STANDIN_MINOR;
    *patch = STANDIN_PATCH;
}

/** Prints "plugin PATH", or "none". */
int standin_open(void)
{
    void *plugin = dlopen(STANDIN_FILE(STANDIN_PLUGIN), RTLD_NOW);
    void *init = plugin ? dlsym(plugin, "nvshmemt_init") : NULL;
    Dl_info info;

    if (!init || !dladdr(init, &info))
        printf("none\n");
    else
        printf("plugin %s\n", info.dli_fname);
    return fflush(stdout) || !init;
}
