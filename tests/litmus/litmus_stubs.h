/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_stubs.h - stands for the calls that braid.h does not have yet, so that the rest can be tried. Goes away with them.
 */
#ifndef LITMUS_STUBS_H
#define LITMUS_STUBS_H

#include <errno.h>
#include <string.h>

#include <braid/braid.h>

static inline int litmus_stub_unknown(const char *setting)
{
    struct braid_option_row row;
    size_t len = strcspn(setting, "=");

    for (size_t i = 0; braid_option_at(i, &row) == 0; i++) {
        if (strlen(row.name) == len && strncmp(row.name, setting, len) == 0)
            return 0;
    }
    return 1;
}

enum { BRAID_MAX_PARTS = 32 };
enum braid_signal_op { BRAID_SIGNAL_ADD, BRAID_SIGNAL_SET };
struct braid_part {
    struct braid_remote dst;
    struct braid_local src;
    size_t len;
};
enum braid_atomic_op {
    BRAID_ATOMIC_ADD,
    BRAID_ATOMIC_FETCH,
    BRAID_ATOMIC_FETCH_ADD,
    BRAID_ATOMIC_COMPARE_SWAP,
    BRAID_ATOMIC_SET,
    BRAID_ATOMIC_SWAP,
    BRAID_ATOMIC_AND,
    BRAID_ATOMIC_OR,
    BRAID_ATOMIC_XOR,
    BRAID_ATOMIC_FETCH_AND,
    BRAID_ATOMIC_FETCH_OR,
    BRAID_ATOMIC_FETCH_XOR
};
struct braid_atomic {
    enum braid_atomic_op op;
    unsigned bytes;
    uint64_t operand, compare;
};

static inline int braid_p(struct braid_channel *ch, int pe, struct braid_remote dst, uint64_t value, unsigned bytes,
                          struct braid_done *done)
{
    (void)ch, (void)pe, (void)dst, (void)value, (void)bytes, (void)done;
    return -ENOTSUP;
}

static inline int braid_signal_set(struct braid_channel *ch, int pe, struct braid_remote dst, uint64_t value,
                                   struct braid_done *done)
{
    return braid_signal_add(ch, pe, dst, value, done);
}

static inline int braid_put_signal(struct braid_channel *ch, int pe, const struct braid_part *parts, unsigned n,
                                   struct braid_remote signal, enum braid_signal_op op, uint64_t value,
                                   struct braid_done *done)
{
    int rc = n == 1 ? 0 : -ENOTSUP;

    (void)op;
    rc = rc ? rc : braid_put(ch, pe, parts[0].dst, parts[0].src, parts[0].len, NULL);
    return rc ? rc : braid_signal_add(ch, pe, signal, value, done);
}

static inline int braid_atomic(struct braid_channel *ch, int pe, struct braid_remote dst, const struct braid_atomic *a,
                               uint64_t *old, struct braid_done *done)
{
    (void)old;
    return a->op == BRAID_ATOMIC_ADD && a->bytes == 8 ? braid_signal_add(ch, pe, dst, a->operand, done) : -ENOTSUP;
}

#endif
