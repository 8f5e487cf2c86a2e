/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_cuda.c - the table of CUDA driver functions that a host gives to a plugin's init, as stubs: one device, which can
 * do dma-buf (so that nobody looks for peer memory in /sys), and no memory of its own. Called by host_open.c.
 */
#include "host_int.h"

#include <string.h>

enum { HOST_CUDA_OK = 0, HOST_CUDA_INVALID_VALUE = 1, HOST_CUDA_NOT_SUPPORTED = 801, HOST_CUDA_DMA_BUF = 124 };

static int host_cuda_refuse(void)
{
    return HOST_CUDA_NOT_SUPPORTED;
}

static int host_cuda_agree(void)
{
    return HOST_CUDA_OK;
}

static int host_cuda_device(int *device)
{
    *device = 0;
    return HOST_CUDA_OK;
}

static int host_cuda_device_get(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? HOST_CUDA_OK : HOST_CUDA_INVALID_VALUE;
}

static int host_cuda_attribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == HOST_CUDA_DMA_BUF;
    return HOST_CUDA_OK;
}

static int host_cuda_context(void **context)
{
    *context = NULL;
    return HOST_CUDA_OK;
}

static int host_cuda_error(int error, const char **text)
{
    (void)error;
    *text = "an error of a stub";
    return HOST_CUDA_OK;
}

/** No memory is a device's. */
static int host_cuda_pointer(void *value, int attribute, uint64_t pointer)
{
    (void)value;
    (void)attribute;
    (void)pointer;
    return HOST_CUDA_INVALID_VALUE;
}

static void host_cuda_put(unsigned char *table, size_t at, host_fn fn)
{
    memcpy(table + at, &fn, sizeof(fn));
}

void host_cuda_fill(unsigned char *table, const struct nvs_version *v)
{
    size_t shift = v->handle_in ? 0 : NVS_CUDA_SHIFT_3B;

    for (size_t at = 0; at < NVS_CUDA_TABLE_BYTES; at += sizeof(host_fn))
        host_cuda_put(table, at, (host_fn)host_cuda_refuse);
    host_cuda_put(table, NVS_CUDA_CTX_GET_DEVICE, (host_fn)host_cuda_device);
    host_cuda_put(table, NVS_CUDA_CTX_SYNCHRONIZE, (host_fn)host_cuda_agree);
    host_cuda_put(table, NVS_CUDA_DEVICE_GET, (host_fn)host_cuda_device_get);
    host_cuda_put(table, NVS_CUDA_DEVICE_GET_ATTRIBUTE, (host_fn)host_cuda_attribute);
    if (shift)
        host_cuda_put(table, NVS_CUDA_POINTER_GET_ATTRIBUTE_3B, (host_fn)host_cuda_pointer);
    host_cuda_put(table, NVS_CUDA_GET_ERROR_STRING_3A + shift, (host_fn)host_cuda_error);
    host_cuda_put(table, NVS_CUDA_GET_ERROR_NAME_3A + shift, (host_fn)host_cuda_error);
    host_cuda_put(table, NVS_CUDA_CTX_SET_CURRENT_3A + shift, (host_fn)host_cuda_agree);
    host_cuda_put(table, NVS_CUDA_CTX_GET_CURRENT_3A + shift, (host_fn)host_cuda_context);
    host_cuda_put(table, NVS_CUDA_FLUSH_GPU_DIRECT_RDMA_WRITES_3A + shift, (host_fn)host_cuda_agree);
}
