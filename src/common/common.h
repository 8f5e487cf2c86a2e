/* SPDX-License-Identifier: Apache-2.0 */
/*
 * common.h - the handful of helpers every layer may use: min and max, checked arithmetic, attributes.
 * It includes libc alone and knows no other layer.
 */
#ifndef COMMON_H
#define COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATTR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ATTR_CHECK_RESULT      __attribute__((warn_unused_result))

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/** a + b into *out; false (out untouched) where it does not fit. */
static inline bool checked_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t sum = a + b;
    if (sum < a)
        return false;
    *out = sum;
    return true;
}

/** a * b into *out; false (out untouched) where it does not fit. */
static inline bool checked_mul_size(size_t a, size_t b, size_t *out)
{
    if (a != 0 && b > SIZE_MAX / a)
        return false;
    *out = a * b;
    return true;
}

/** Whether [addr, addr + len) lies inside [base, base + size), which does not wrap; an empty range lies inside at both ends. */
static inline bool range_inside(uint64_t addr, uint64_t len, uint64_t base, uint64_t size)
{
    uint64_t at = addr - base;                                         /* where addr is below, far beyond the size */
    return at <= size && len <= size - at && addr <= UINT64_MAX - len; /* a peer's key may name a range that wraps */
}

/** The same of a base and size that are known not to wrap, as those of memory that exists. */
static inline bool range_inside_memory(uint64_t addr, uint64_t len, uint64_t base, uint64_t size)
{
    uint64_t at = addr - base;
    return at <= size && len <= size - at;
}

/** The smallest power of two >= n, for 1 <= n <= 2^31. */
static inline uint32_t round_up_pow2(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}

#endif
