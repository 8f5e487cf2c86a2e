/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_host.c - which release of NVSHMEM has loaded the plugin, since some speak the same interface version with other
 * habits. May not refuse anything for it: a host that does not tell is served all the same. Called by nvshmem_init.c.
 */
#include "nvshmem.h"

#include <dlfcn.h>
#include <string.h>

/* The address of the function in an object, or NULL. */
static nvs_host_version_fn nvs_host_lookup(void *object)
{
    void *address = dlsym(object, NVS_HOST_VERSION_NAME);
    nvs_host_version_fn fn = NULL;

    /* ISO C has no cast from an object to a function pointer; POSIX says that their bytes are the same. */
    memcpy(&fn, &address, sizeof(fn));
    return fn;
}

void nvs_host_find(void *caller, struct nvs_host *out)
{
    Dl_info info = {0};
    void *library = NULL;
    nvs_host_version_fn version = NULL;
    struct nvs_host host = {0};

    if (dladdr(caller, &info) && info.dli_fname)
        library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        version = nvs_host_lookup(library);
    if (!version) /* a program does not find itself by name */
        version = nvs_host_lookup(RTLD_DEFAULT);
    if (version)
        version(&host.major, &host.minor, &host.patch);
    if (library)
        dlclose(library);
    *out = host;
}

bool nvs_host_knows_prefix(const struct nvs_host *host)
{
    return host->major > 3 || (host->major == 3 && (host->minor > 5 || (host->minor == 5 && host->patch >= 20)));
}

bool nvs_host_keeps_fences(const struct nvs_host *host)
{
    return host->major == 3 && host->minor == 5 && host->patch <= 1;
}
