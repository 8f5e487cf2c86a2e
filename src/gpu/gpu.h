/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - what braid asks of CUDA, without a CUDA type: whose memory is this, which GPU is in use here, a dma-buf of it.
 *
 * CUDA is looked for in the process and never brought in or initialised from here: a process that has not loaded
 * libcuda.so.1 has no GPU memory, and one that has not initialised it neither. Then every answer is "no GPU". It is looked
 * for again at each call, since it may come later. Nothing here runs on the data path.
 *
 * Threads: one at a time on one struct gpu. Calls act in the calling thread's CUDA context, or, where it has none, in the
 * primary context that the process has of the device in question, and leave the thread as it was.
 */
#ifndef GPU_H
#define GPU_H

#include "log.h"

struct gpu; /**< the driver library of this process, or that there is none yet */

#define GPU_PCI_SIZE 16 /**< "0000:3b:00.0" and the NUL */

/** No answer but the log needs it; log must outlive it. 0 or -ENOMEM; logs. */
int gpu_open(const struct log *log, struct gpu **out) ATTR_CHECK_RESULT;

/** NULL is allowed. */
void gpu_close(struct gpu *gpu);

/** The device of the calling thread's CUDA context: its ordinal, or -ENODEV where there is no CUDA or no context. */
int gpu_current(struct gpu *gpu);

/** The ordinal of the GPU that the byte lies in, or -ENODEV: memory of the host. That is what managed memory counts as: it
 *  moves, and only the kernel can pin it. */
int gpu_of(struct gpu *gpu, const void *addr);

/** What is known of a device. */
struct gpu_about {
    char pci[GPU_PCI_SIZE]; /**< PCI address, lower case */
    bool dmabuf;            /**< its memory can be had as a dma-buf */
    bool host_flush;        /**< the host can make what NICs wrote visible, by cuFlushGPUDirectRDMAWrites() */
    bool ordered;           /**< its own kernels see writes of NICs in their order without that */
};

/** 0, -ENODEV, or -EIO with a log line where CUDA refuses to tell. */
int gpu_about(struct gpu *gpu, int device, struct gpu_about *out) ATTR_CHECK_RESULT;

/** A dma-buf over the pages that hold [addr, addr + len) of a device's memory: *fd, the caller's to close, and *offset, where
 *  addr lies in it. 0; -EOPNOTSUPP where the device or driver has none; -EIO; does not log: there is another way. */
int gpu_dmabuf(struct gpu *gpu, int device, const void *addr, size_t len, int *fd, uint64_t *offset) ATTR_CHECK_RESULT;

/** Memory of a device, at least so many bytes of anything, aligned to nothing in particular. 0, -ENODEV, -ENOMEM or -EIO. */
int gpu_alloc(struct gpu *gpu, int device, size_t bytes, void **out) ATTR_CHECK_RESULT;

/** Frees it; where its context has gone it went along. NULL is allowed. */
void gpu_free(struct gpu *gpu, int device, void *memory);

#endif
