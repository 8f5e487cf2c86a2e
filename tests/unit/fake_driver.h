/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_driver.h - a libcuda.so.1 for unit tests of src/gpu: two devices, contexts by thread, memory that the CPU cannot touch,
 * dma-bufs, and errors where a test asks for them. State is global, because it stands for the one driver.
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default)

/** Forgets everything: not initialised, no memory. */
void driver_reset(void);

/** Initialises CUDA and makes a device's primary context the calling thread's; device -1: initialises alone. */
void driver_begin(int device);

/** Takes the calling thread's context away. */
void driver_no_context(void);

enum driver_kind { DRIVER_DEVICE, DRIVER_MANAGED, DRIVER_PINNED };

/** Memory of a device, which nobody may touch; or that both may. */
void *driver_memory(int device, size_t len, enum driver_kind kind);

/** Whether devices have dma-bufs, and whether asking for one then fails all the same. */
void driver_dmabuf(bool supported, bool fails);

/** dma-bufs handed out, and the last one's descriptor, begin and length. */
int driver_dmabufs(int *fd, void **begin, size_t *len);

/** Bytes that cuMemAlloc() has handed out and not got back. */
size_t driver_alive(void);

/** Makes cuMemAlloc() fail. */
void driver_no_memory(void);

/** Depth of contexts pushed and not popped, and primary contexts retained and not released. */
int driver_depth(void);

#pragma GCC visibility pop

#endif
