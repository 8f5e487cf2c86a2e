/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_atomic.c - checks of FETCH_ADD and CMP_SWP.
 *
 * Part of the list; IBA 9.4.5. All atomics on a word go through one device here: more is not promised. next:
 * conformance_access.c.
 */
#include "conformance.h"

#include <string.h>

enum { WORD = 4096 }; /* where the word is in B's buffer */

static void set_word(struct pair *p, int side, size_t offset, uint64_t value)
{
    memcpy(p->s[side].want + offset, &value, sizeof value);
}

static bool start(struct check *c, struct pair *p, uint64_t value)
{
    if (!pair_start(c, p, NULL))
        return false;
    pair_put(p, B, WORD, &value, sizeof value);
    return true;
}

static void fetch_add(struct check *c, long add)
{
    struct pair p;
    uint64_t value = 0xfffffffffffffff0ull; /* carries through all bytes, and over the end */
    if (!start(c, &p, value))
        return;
    for (uint64_t i = 0; i < 10; i++) {
        struct op op = {
            .id = i, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .local = 64, .remote = WORD, .len = 8, .a = (uint64_t)add};
        set_word(&p, A, 64, value);
        value += (uint64_t)add;
        set_word(&p, B, WORD, value);
        if (!pair_do(&p, A, &op) || !check_equal(c, "opcode", c->wc.opcode, IBV_WC_FETCH_ADD) || !pair_check(&p))
            return;
        check_equal(c, "byte_len", c->wc.byte_len, 8);
    }
}

static void cmp_swp(struct check *c, long equal)
{
    struct pair p;
    uint64_t value = check_random(c), swap = check_random(c);
    if (!start(c, &p, value))
        return;
    struct op op = {.id = 1, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .local = 64, .remote = WORD, .len = 8, .b = swap};
    /* Unequal in one bit of the upper half only: a 4-byte comparison would not see it. */
    op.a = equal ? value : value ^ 1ull << 63;
    set_word(&p, A, 64, value);
    if (equal)
        set_word(&p, B, WORD, swap);
    pair_do(&p, A, &op);
    check_equal(c, "opcode", c->wc.opcode, IBV_WC_COMP_SWAP);
    pair_check(&p);
}

/* Many adds, in flight together on two QPs: the sum is right and every old value is seen once. */
static void add_count(struct check *c, long count)
{
    struct pair p[2];
    uint8_t seen[1024] = {0};
    if (!start(c, &p[0], 0) || !pair_start(c, &p[1], NULL) || count > (long)sizeof seen)
        return;
    struct ibv_mr *word = check_mr(c, p[1].s[B].pd, p[0].s[B].buf, BUFFER, p[1].o.mr_access);
    if (!word)
        return;
    struct op op = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .a = 1};
    op.remote_addr = pair_address(&p[0], B, WORD);
    for (long done = 0; done < count; done += 32) {
        for (long i = 0; i < 32; i++) {
            op.id = (uint64_t)i;
            op.local = (size_t)(8 * i);
            op.rkey = i & 1 ? word->rkey : p[0].s[B].mr->rkey;
            check_equal(c, "ibv_post_send", pair_post(&p[i & 1], A, &op), 0);
        }
        for (long i = 0; i < 32; i++) {
            if (!check_wc(c, p[i & 1].s[A].scq, (uint64_t)i, IBV_WC_SUCCESS))
                return;
            uint64_t old = pair_word(&p[i & 1], A, (size_t)(8 * i));
            if (!check_that(c, old < (uint64_t)count && !seen[old]++, "old value %llu: out of range or seen twice",
                            (unsigned long long)old))
                return;
        }
    }
    check_equal(c, "sum", (long)pair_word(&p[0], B, WORD), count);
}

/* IBA 9.4.5: the address shall be a multiple of eight; otherwise NAK Invalid Request. */
static void misaligned(struct check *c, long opcode)
{
    struct pair p;
    if (!start(c, &p, 5))
        return;
    struct op op = {.id = 1, .opcode = (enum ibv_wr_opcode)opcode, .remote = WORD + 4, .len = 8, .a = 1, .b = 2};
    if (!check_equal(c, "ibv_post_send", pair_post(&p, A, &op), 0))
        return;
    check_wc(c, p.s[A].scq, 1, IBV_WC_REM_INV_REQ_ERR);
    check_state(c, p.s[A].qp, IBV_QPS_ERR);
    pair_check(&p);
}

/* More READs and atomics than may be outstanding wait their turn and end well. */
static void rd_atomic_stalls(struct check *c, long depth)
{
    struct pair_options o = pair_defaults();
    struct pair p;
    o.rd_atomic = (uint8_t)depth;
    if (!pair_start(c, &p, &o))
        return;
    uint64_t value = 100;
    pair_put(&p, B, WORD, &value, sizeof value);
    for (uint64_t i = 0; i < 32; i++) {
        struct op read = {.id = 2 * i,
                          .opcode = IBV_WR_RDMA_READ,
                          .local = 65536 + i * 4096,
                          .remote = 65536 + i * 4096,
                          .len = 4096};
        struct op add = {
            .id = 2 * i + 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .local = 8 * i, .remote = WORD, .len = 8, .a = 3};
        pair_want(&p, A, read.local, B, read.remote, 4096);
        set_word(&p, A, add.local, value);
        value += 3;
        if (pair_post(&p, A, &read) || pair_post(&p, A, &add)) {
            check_that(c, false, "ibv_post_send failed at READ %llu", (unsigned long long)i);
            return;
        }
    }
    set_word(&p, B, WORD, value);
    for (uint64_t i = 0; i < 64; i++)
        if (!check_wc(c, p.s[A].scq, i, IBV_WC_SUCCESS))
            return;
    pair_check(&p);
}

/* IBA 9.5: a request behind an atomic runs behind it, and an atomic behind a WRITE sees it. */
static void atomic_sees_write(struct check *c, long rounds)
{
    struct pair p;
    if (!start(c, &p, 0))
        return;
    for (long i = 0; i < rounds; i++) {
        uint64_t value = check_random(c);
        pair_put(&p, A, 128, &value, sizeof value);
        set_word(&p, A, 64, value);
        set_word(&p, B, WORD, value + 1);
        struct op write = {
            .id = 1, .opcode = IBV_WR_RDMA_WRITE, .local = 128, .remote = WORD, .len = 8, .unsignaled = true};
        struct op add = {.id = 2, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .local = 64, .remote = WORD, .len = 8, .a = 1};
        check_equal(c, "ibv_post_send", pair_post(&p, A, &write), 0);
        if (!pair_do(&p, A, &add) || !pair_check(&p))
            return;
    }
}

const struct conformance_check conformance_atomic_checks[] = {
    {"fetch_add", fetch_add, 7},
    {"fetch_add_negative", fetch_add, -3},
    {"fetch_add_zero", fetch_add, 0},
    {"cmp_swp_equal", cmp_swp, 1},
    {"cmp_swp_unequal", cmp_swp, 0},
    {"fetch_add_count", add_count, 512},
    {"misaligned_fetch_add", misaligned, IBV_WR_ATOMIC_FETCH_AND_ADD},
    {"misaligned_cmp_swp", misaligned, IBV_WR_ATOMIC_CMP_AND_SWP},
    {"rd_atomic_one_outstanding", rd_atomic_stalls, 1},
    {"rd_atomic_four_outstanding", rd_atomic_stalls, 4},
    {"atomic_sees_write", atomic_sees_write, 20},
    {0},
};
