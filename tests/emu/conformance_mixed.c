/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_mixed.c - a thousand requests of all kinds in both directions at once, each byte checked.
 *
 * Part of the list, its last. Each end has SLOTS requests in flight; a request owns one slot of its own buffer, one of
 * the other's, and one to receive into, so what every slot must hold is always known. next: conformance_known.c.
 */
#include "conformance.h"

#include <arpa/inet.h>
#include <string.h>

enum { SLOTS = 8, SLOT = 8192, AREA = SLOTS * SLOT };

enum kind { WRITE, READ, SEND, SEND_IMM, WRITE_IMM, ADD, SWAP, KINDS };

static const enum ibv_wr_opcode opcodes[KINDS] = {
    [WRITE] = IBV_WR_RDMA_WRITE,
    [READ] = IBV_WR_RDMA_READ,
    [SEND] = IBV_WR_SEND,
    [SEND_IMM] = IBV_WR_SEND_WITH_IMM,
    [WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
    [ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
    [SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

/* One direction: what is in flight from one end. */
struct stream {
    struct pair *p;
    int side;
    uint64_t posted, done;
    struct {
        enum kind kind;
        struct op op;
    } flight[SLOTS];
};

/* Where things are in a buffer: sources, targets of the other end, receives. */
static size_t target_of(uint64_t n)
{
    return AREA + n % SLOTS * SLOT;
}

static size_t receive_of(uint64_t n)
{
    return 2 * AREA + n % SLOTS * SLOT;
}

static bool needs_receive(enum kind kind)
{
    return kind == SEND || kind == SEND_IMM || kind == WRITE_IMM;
}

/* Puts what the request will do into want. */
static void foresee(struct stream *s, enum kind kind, struct op *op)
{
    struct pair *p = s->p;
    int me = s->side, peer = !me;
    uint64_t old, fresh;
    memcpy(&old, p->s[peer].want + op->remote, sizeof old);
    switch (kind) {
    case WRITE:
    case WRITE_IMM:
        pair_want(p, peer, op->remote, me, op->local, op->len);
        return;
    case READ:
        pair_want(p, me, op->local, peer, op->remote, op->len);
        return;
    case SEND:
    case SEND_IMM:
        pair_want(p, peer, receive_of(op->id), me, op->local, op->len);
        return;
    case ADD:
    case SWAP:
    case KINDS:
        break;
    }
    fresh = kind == ADD ? old + op->a : op->a == old ? op->b : old;
    memcpy(p->s[me].want + op->local, &old, sizeof old);
    memcpy(p->s[peer].want + op->remote, &fresh, sizeof fresh);
}

static bool post(struct stream *s)
{
    struct check *c = s->p->c;
    enum kind kind = (enum kind)(check_random(c) % KINDS);
    uint64_t fresh = check_random(c), n = s->posted;
    size_t offset = (size_t)(check_random(c) % 64);
    struct op op = {.id = n, .opcode = opcodes[kind], .local = n % SLOTS * SLOT + offset, .imm = (uint32_t)fresh};
    op.remote = target_of(n) + (size_t)(check_random(c) % 64);
    op.len = (size_t)(check_random(c) % (SLOT - 64));
    op.pieces = op.len ? 1 + (int)(check_random(c) % 3) : 0;
    if (kind == ADD || kind == SWAP) {
        op.len = 8, op.pieces = 1, op.remote = target_of(n), op.a = fresh, op.b = ~fresh;
        if (kind == SWAP && fresh & 1)
            memcpy(&op.a, s->p->s[!s->side].want + op.remote, sizeof op.a);
    } else if (kind != READ) {
        pair_put(s->p, s->side, op.local, &fresh, sizeof fresh);
    }
    foresee(s, kind, &op);
    if (needs_receive(kind) &&
        !check_equal(c, "ibv_post_recv", pair_recv(s->p, !s->side, n, receive_of(n), SLOT, 2), 0))
        return false;
    s->flight[n % SLOTS].kind = kind;
    s->flight[n % SLOTS].op = op;
    s->posted++;
    return check_equal(c, "ibv_post_send", pair_post(s->p, s->side, &op), 0);
}

static bool right(struct stream *s, int side, size_t offset, const char *what)
{
    const struct side *x = &s->p->s[side];
    struct check *c = s->p->c;
    uint64_t end = check_now(c) + SEC;
    bool same;
    while (!(same = memcmp(x->buf + offset, x->want + offset, SLOT) == 0) && check_now(c) < end)
        check_wait(c, end);
    return check_that(c, same, "request %llu of %c: wrong bytes in its %s", (unsigned long long)s->done, "AB"[s->side],
                      what);
}

/* Takes one completion if there is one, and the receive that belongs to it. */
static bool take(struct stream *s, bool *got)
{
    struct check *c = s->p->c;
    struct ibv_wc wc;
    uint64_t n = s->done;
    if (ibv_poll_cq(s->p->s[s->side].scq, 1, &wc) <= 0)
        return true;
    *got = true;
    enum kind kind = s->flight[n % SLOTS].kind;
    const struct op *op = &s->flight[n % SLOTS].op;
    if (!check_that(c, wc.wr_id == n && wc.status == IBV_WC_SUCCESS,
                    "request %llu of %c (kind %d): seen %llu with '%s'", (unsigned long long)n, "AB"[s->side],
                    (int)kind, (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status)))
        return false;
    if (needs_receive(kind)) {
        if (!check_wc(c, s->p->s[!s->side].rcq, n, IBV_WC_SUCCESS) ||
            !check_equal(c, "byte_len", c->wc.byte_len, (long)op->len))
            return false;
        if (kind != SEND && !check_equal(c, "immediate", ntohl(c->wc.imm_data), op->imm))
            return false;
    }
    bool good = right(s, s->side, n % SLOTS * SLOT, "own slot") && right(s, !s->side, target_of(n), "target") &&
                right(s, !s->side, receive_of(n), "receive");
    s->done++;
    return good;
}

static void mixed(struct check *c, long count)
{
    struct pair p;
    if (!pair_start(c, &p, NULL))
        return;
    struct stream s[2] = {{.p = &p, .side = A}, {.p = &p, .side = B}};
    uint64_t last = check_now(c), total = (uint64_t)count;
    while (s[A].done < total || s[B].done < total) {
        bool got = false;
        for (int i = 0; i < 2; i++) {
            while (s[i].posted < total && s[i].posted - s[i].done < SLOTS)
                if (!post(&s[i]))
                    return;
            if (!take(&s[i], &got))
                return;
        }
        if (got)
            last = check_now(c);
        else if (!check_that(c, check_now(c) < last + PATIENCE_S * SEC, "nothing completes: %llu and %llu done",
                             (unsigned long long)s[A].done, (unsigned long long)s[B].done))
            return;
        else
            check_wait(c, last + PATIENCE_S * SEC);
    }
    pair_check(&p);
}

const struct conformance_check conformance_mixed_checks[] = {
    {"mixed_traffic", mixed, 500},
    {"mixed_traffic_again", mixed, 500},
    {0},
};
