/* SPDX-License-Identifier: Apache-2.0 */
/* api_gpu.h - what a context knows of the one GPU whose memory it may register; for the files of src/api alone. */
#ifndef API_GPU_H
#define API_GPU_H

#include "common.h"

#define API_NO_GPU (-1) /**< as a device: none seen */

struct braid;
struct braid_mem;
struct gpu;

/** Part of a context. */
struct api_gpu {
    struct gpu *cuda;
    int device;     /**< the one this context serves, CUDA's number; or API_NO_GPU */
    bool no_dmabuf; /**< refused by driver, kernel or a device, which has been logged */
    int refused;    /**< why there is no flush line in its memory; 0: nobody asked for one */
    void *line;     /**< memory of it, or NULL */
    int near;       /**< enum braid_near of the rails that were chosen for it */
};

/** Whose memory this is: RAIL_WIRE_MEMORY_GPU; 0 for the host's; or a negative errno where it cannot be registered; logs. */
int api_gpu_of(struct braid *b, const void *addr, size_t len);

/** Registers a region of GPU memory on every rail: the MRs of mem. 0 or a negative errno; logs. */
int api_gpu_reg(struct braid_mem *mem, void *addr, void *alias);

/** Makes the flush line in GPU memory that peers are told of, where this process uses a GPU. 0, or a negative errno where
 *  such memory is registered and none can be had; logs. */
int api_gpu_line(struct braid *b);

/** Frees the memory of that line, whose MRs must be gone. */
void api_gpu_close(struct braid *b);

#endif
