/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - a free list threaded through one block of memory, so that the data path never allocates.
 * Called by api for ops.
 */
#include "pool.h"

#include <errno.h>
#include <stdlib.h>

#define POOL_ALIGN 16u
#define POOL_MORE  32u /* objects; those of an op fill a page */

int pool_init(struct pool *pool, size_t count, size_t size)
{
    size_t bytes;
    if (count == 0 || size == 0 || size > SIZE_MAX - POOL_ALIGN)
        return -EINVAL;
    size = (size + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
    if (!checked_mul_size(count, size, &bytes) || bytes > PTRDIFF_MAX)
        return -ENOMEM;
    unsigned char *memory = calloc(1, bytes);
    if (!memory)
        return -ENOMEM;
    *pool = (struct pool){.memory = memory, .fresh = memory, .end = memory + bytes, .size = size};
    return 0;
}

__attribute__((noinline, cold)) void *pool_refill(struct pool *pool)
{
    size_t left = (size_t)(pool->end - pool->fresh) / max_u64(pool->size, 1), n = left < POOL_MORE ? left : POOL_MORE;
    pool->fresh += n * pool->size;
    /* Backwards, so that objects come out in address order: neighbours in time are neighbours in cache. */
    for (size_t i = 1; i <= n; i++)
        pool_put(pool, pool->fresh - i * pool->size);
    return pool->free_list;
}

void pool_fini(struct pool *pool)
{
    free(pool->memory);
    *pool = (struct pool){0};
}
