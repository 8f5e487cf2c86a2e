/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - a fixed number of equal objects, taken and given back without allocation. */
#ifndef POOL_H
#define POOL_H

#include "common.h"

#include <string.h>

/** Embedded in its owner. One thread at a time. Its memory is had at once and touched as objects are first used: what is given back is
 *  taken first, so no more of it than were ever out at the same time. */
struct pool {
    void *memory;
    void *free_list;
    unsigned char *fresh; /* from here to end: never taken, not even touched */
    unsigned char *end;
    size_t size; /* of an object, bytes */
};

/** Makes a pool of count objects of size bytes each. 0, -EINVAL for zero of either, or -ENOMEM. */
int pool_init(struct pool *pool, size_t count, size_t size) ATTR_CHECK_RESULT;

/** Frees the pool; objects still out become invalid. A zeroed pool is allowed. */
void pool_fini(struct pool *pool);

/** Puts some of the objects that were never taken into an empty list. The first, or NULL where there are none. */
void *pool_refill(struct pool *pool);

/** The object that the next pool_get() takes, or NULL. It stays in the pool. */
static inline void *pool_next(struct pool *pool)
{
    void *object = pool->free_list;
    return object ? object : pool_refill(pool);
}

/** Takes an object, or NULL where none is left. Behind its first pointer's worth it is as it was given back, at first zeroed. */
static inline void *pool_get(struct pool *pool)
{
    void *object = pool_next(pool);
    if (object)
        memcpy(&pool->free_list, object, sizeof(void *));
    return object;
}

/** Gives an object of this pool back. */
static inline void pool_put(struct pool *pool, void *object)
{
    memcpy(object, &pool->free_list, sizeof(void *));
    pool->free_list = object;
}

#endif
