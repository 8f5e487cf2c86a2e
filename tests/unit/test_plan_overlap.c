/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_overlap.c - the table of ranges being written, against a model that keeps every op and looks at all of them:
 * never a miss, and no needless answer but where ops did not fit in. Links plan alone.
 */
#include "unit.h"

#include "plan.h"

enum { MODEL_OPS = 4096 };

struct model_op {
    uint64_t first, last, ticket;
    uint32_t lanes;
    bool posted, gone; /* gone: found flushed once; the table may have forgotten it */
    uint64_t count[PLAN_COUNTS];
};

struct model {
    struct plan_overlap table;
    struct plan_counts counts;
    unsigned ops, fits;
    struct model_op op[MODEL_OPS];
};

static struct model model;
static unsigned appended, words; /* ops, of all rounds */

static uint64_t below(uint64_t *random, uint64_t n)
{
    return unit_random(random) % n;
}

/* What a put must do because of the ops before number `end`, by looking at all of them. */
static enum plan_overlap_answer model_check(const struct model *m, unsigned end, uint64_t first, uint64_t last,
                                            unsigned *lane)
{
    unsigned found = PLAN_COUNTS;
    bool gate = false;
    for (unsigned i = 0; i < end; i++) {
        const struct model_op *op = &m->op[i];
        if (op->first > last || first > op->last)
            continue;
        gate |= !op->posted;
        for (unsigned k = 0; k < PLAN_COUNTS; k++) {
            if (!(op->lanes >> k & 1) || m->counts.flushed[k] >= op->count[k])
                continue;
            gate |= k == PLAN_MESSAGE || (found != PLAN_COUNTS && found != k);
            found = k;
        }
    }
    if (gate)
        return PLAN_OVERLAP_GATE;
    if (found == PLAN_COUNTS)
        return PLAN_OVERLAP_NONE;
    *lane = found;
    return PLAN_OVERLAP_FOLLOW;
}

/* Whether ops that the table could not keep are still open and may have to do with this range. */
static bool model_lost(const struct model *m)
{
    for (unsigned i = 0; i < m->ops; i++) {
        const struct model_op *op = &m->op[i];
        if (op->ticket != PLAN_OVERLAP_LOST)
            continue;
        if (!op->posted)
            return true;
        for (unsigned k = 0; k < PLAN_COUNTS; k++) {
            if (op->lanes >> k & 1 && m->counts.flushed[k] < op->count[k])
                return true;
        }
    }
    return false;
}

static void compare(const struct model *m, uint64_t addr, uint64_t len, unsigned end)
{
    unsigned lane = 77, expected_lane = 77;
    uint64_t before = end < m->ops ? m->op[end].ticket : m->table.head;
    enum plan_overlap_answer answer = plan_overlap_check(&m->table, m->counts.flushed, before, addr, len, &lane);
    enum plan_overlap_answer expected = model_check(m, end, addr, addr + len - 1, &expected_lane);
    if (answer == PLAN_OVERLAP_GATE && expected != PLAN_OVERLAP_GATE) {
        assert_true(model_lost(m));
        return;
    }
    assert_int_equal(answer, expected);
    assert_int_equal(lane, expected_lane);
}

/* A range in one of the ways programs have: slots of one size, anything, a few hot words. */
static void random_range(uint64_t *random, unsigned kind, uint64_t *addr, uint64_t *len)
{
    uint64_t base = UINT64_C(0x7f0000001000);
    switch (kind) {
    case 0:
        *len = 8192;
        *addr = base + below(random, 300) * 8192;
        return;
    case 1:
        *len = 1 + below(random, UINT64_C(1) << below(random, 22));
        *addr = base + below(random, 1 << 22);
        return;
    case 2:
        *len = 8;
        *addr = base + below(random, 40) * 8;
        return;
    case 5:
        *len = 8;
        *addr = base + below(random, 3) * 8; /* the same again and again */
        return;
    case 3:
        *len = 100 + below(random, 9000); /* misaligned neighbours */
        *addr = base + below(random, 100) * 9100 + below(random, 3);
        return;
    default:
        *len = 1 + below(random, UINT64_C(1) << below(random, 46));
        *addr = base + below(random, UINT64_C(1) << below(random, 46));
    }
}

/* shortly: by the short way where that can be; what that one takes overlaps nothing. */
static void model_add(struct model *m, uint64_t addr, uint64_t len, bool shortly)
{
    struct model_op *op = &m->op[m->ops++];
    *op = (struct model_op){.first = addr, .last = addr + len - 1};
    if (shortly && (plan_overlap_append(&m->table, addr, len, &op->ticket) ||
                    plan_overlap_apart(&m->table, addr, len, &op->ticket))) {
        unsigned lane;
        assert_int_equal(model_check(m, m->ops - 1, op->first, op->last, &lane), PLAN_OVERLAP_NONE);
        appended++;
    } else {
        op->ticket = plan_overlap_add(&m->table, addr, len);
    }
    words += m->table.words > 1;
    m->fits += op->ticket != PLAN_OVERLAP_LOST;
}

static void model_post(uint64_t *random, struct model *m, unsigned i, unsigned lanes)
{
    struct model_op *op = &m->op[i];
    if (op->posted)
        return;
    unsigned k = below(random, 20) ? (unsigned)below(random, lanes) : PLAN_MESSAGE;
    if (below(random, 8) == 0) {
        plan_overlap_all_posted(&m->table, op->ticket); /* the rest has failed */
    } else {
        op->posted = below(random, 4) != 0;
        op->lanes |= 1u << k;
        op->count[k] = ++m->counts.posted[k];
        if (op->posted && op->lanes == 1u << k && op->ticket != PLAN_OVERLAP_LOST && below(random, 2))
            plan_overlap_whole(&m->table, op->ticket, k, op->count[k]);
        else
            plan_overlap_posted(&m->table, op->ticket, k, op->count[k], op->posted);
        return;
    }
    op->posted = true;
}

/* One history of some hundred steps; `deep`: how many ops may be open, above what the table holds or below. */
static void run_model(uint64_t *random, unsigned kinds, unsigned deep)
{
    unsigned lanes = 1 + (unsigned)below(random, PLAN_MAX_LANES), open = 0;
    memset(&model, 0, sizeof(model));
    for (unsigned step = 0; step < 1200; step++) {
        uint64_t addr, len, act = below(random, 8);
        random_range(random, kinds == 6 ? (unsigned)below(random, 6) : kinds, &addr, &len);
        if (model.ops && below(random, 2))
            addr = model.op[model.ops - 1].last + 1 + below(random, 2) * below(random, len); /* upwards */
        if (act < 3 && model.ops - open < deep) {
            compare(&model, addr, len, model.ops);
            model_add(&model, addr, len, below(random, 2));
        } else if (act < 6 && open < model.ops) {
            model_post(random, &model, open + (unsigned)below(random, model.ops - open), lanes);
        } else if (act == 6) {
            unsigned k = (unsigned)below(random, PLAN_COUNTS);
            model.counts.flushed[k] += below(random, model.counts.posted[k] - model.counts.flushed[k] + 1);
            if (below(random, 2))
                plan_overlap_trim(&model.table, model.counts.flushed);
        } else {
            compare(&model, addr, len, model.ops);
        }
        while (open < model.ops && model.op[open].posted)
            open++;
        /* An op in the middle of the queue asks about those before it. */
        if (model.ops && model.op[model.ops - 1].ticket != PLAN_OVERLAP_LOST)
            compare(&model, addr, len, model.ops - 1);
    }
    for (; open < model.ops; open++) {
        if (!model.op[open].posted)
            plan_overlap_all_posted(&model.table, model.op[open].ticket);
    }
    plan_overlap_trim(&model.table, model.counts.posted);
    assert_true(model.table.tail == model.table.head && !model.table.lost && model.table.levels == 0);
    assert_false(plan_overlap_full(&model.table));
    assert_int_equal(model.table.runs, 0);
    assert_int_equal(model.table.words, 0);
}

static void the_table_answers_as_one_that_keeps_everything(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    unsigned lost = 0;
    for (int round = 0; round < 400; round++) {
        run_model(&random, (unsigned)round % 7, round % 4 == 3 ? 4000 : 8u << round % 3);
        lost += model.fits < model.ops;
    }
    print_message("# %u by the short way, %u beside words\n", appended, words);
    assert_true(lost > 10 && appended > 100 && words > 1000);
}

static const uint64_t none_flushed[PLAN_COUNTS];

static void what_overlaps_one_lane_is_followed(void **state)
{
    (void)state;
    static struct plan_overlap table;
    unsigned lane = 99;
    memset(&table, 0, sizeof(table));
    uint64_t a = plan_overlap_add(&table, 0x1000, 8192), b = plan_overlap_add(&table, 0x3000, 8192);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, 0x2fff, 1, &lane), PLAN_OVERLAP_GATE);
    plan_overlap_posted(&table, a, 3, 1, true);
    plan_overlap_posted(&table, b, 5, 1, true);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, 0x2fff, 1, &lane), PLAN_OVERLAP_FOLLOW);
    assert_int_equal(lane, 3);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, 0x3000, 1, &lane), PLAN_OVERLAP_FOLLOW);
    assert_int_equal(lane, 5);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, 0x2fff, 2, &lane), PLAN_OVERLAP_GATE);
    assert_int_equal(plan_overlap_check(&table, none_flushed, b, 0x2fff, 2, &lane), PLAN_OVERLAP_FOLLOW);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, 0x5000, 1, &lane), PLAN_OVERLAP_NONE);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, 0xfff, 1, &lane), PLAN_OVERLAP_NONE);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, 0, UINT64_MAX, &lane), PLAN_OVERLAP_GATE);
    uint64_t flushed[PLAN_COUNTS] = {0};
    flushed[3] = UINT64_MAX; /* that lane is dead */
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x2fff, 2, &lane), PLAN_OVERLAP_FOLLOW);
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x2fff, 1, &lane), PLAN_OVERLAP_NONE);
}

/* Neighbours in one run, byte for byte, as the run shrinks from its front. */
static void a_run_ends_where_its_entries_do(void **state)
{
    (void)state;
    static struct plan_overlap table;
    memset(&table, 0, sizeof(table));
    for (uint64_t i = 0; i < 60; i++)
        plan_overlap_posted(&table, plan_overlap_add(&table, 1000 + i * 100, 100), (unsigned)i % 3, i / 3 + 1, true);
    assert_int_equal(table.runs, 1);
    for (uint64_t gone = 0; gone <= 60; gone++) {
        uint64_t flushed[PLAN_COUNTS] = {(gone + 2) / 3, (gone + 1) / 3, gone / 3}, edge = 1000 + gone * 100;
        unsigned lane = 99;
        plan_overlap_trim(&table, flushed);
        assert_true(gone == 60 || table.run[0].first == edge); /* else all before it would be searched */
        assert_int_equal(plan_overlap_check(&table, flushed, table.head, edge - 1, 1, &lane), PLAN_OVERLAP_NONE);
        enum plan_overlap_answer expected = gone < 60 ? PLAN_OVERLAP_FOLLOW : PLAN_OVERLAP_NONE;
        assert_int_equal(plan_overlap_check(&table, flushed, table.head, edge, 1, &lane), expected);
        assert_int_equal(plan_overlap_check(&table, flushed, table.head, 6999, 1, &lane), expected);
        assert_int_equal(plan_overlap_check(&table, flushed, table.head, 7000, 1, &lane), PLAN_OVERLAP_NONE);
    }
    assert_int_equal(table.runs, 0);
    uint64_t ticket;
    assert_false(plan_overlap_append(&table, 7000, 100, &ticket)); /* there is no run to go on with */
}

/* More ops than fit, of which none ends: from then on what is near them waits, and what is not does not. */
static void what_does_not_fit_gates(void **state)
{
    (void)state;
    static struct plan_overlap table;
    unsigned lane = 99;
    memset(&table, 0, sizeof(table));
    for (uint64_t i = 0; i < PLAN_OVERLAP_ENTRIES; i++) {
        assert_int_equal(plan_overlap_full(&table), i > PLAN_OVERLAP_ENTRIES / 2);
        assert_int_equal(plan_overlap_filled(&table), i > PLAN_OVERLAP_ENTRIES / 8 * 7);
        plan_overlap_posted(&table, plan_overlap_add(&table, i << 13, 8192), 0, i + 1, true);
    }
    uint64_t at = UINT64_C(1) << 40;
    assert_true(plan_overlap_add(&table, at, 8192) == PLAN_OVERLAP_LOST);
    assert_true(plan_overlap_add(&table, at + (1 << 20), 8192) == PLAN_OVERLAP_LOST);
    assert_true(plan_overlap_filled(&table));
    uint64_t flushed[PLAN_COUNTS] = {PLAN_OVERLAP_ENTRIES};
    plan_overlap_trim(&table, flushed);
    assert_true(table.tail == table.head && plan_overlap_filled(&table));
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, at, 1, &lane), PLAN_OVERLAP_GATE);
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, at + 99999, 1, &lane), PLAN_OVERLAP_GATE);
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, at - 1, 1, &lane), PLAN_OVERLAP_NONE);
    plan_overlap_posted(&table, PLAN_OVERLAP_LOST, 2, 7, true);
    plan_overlap_all_posted(&table, PLAN_OVERLAP_LOST);
    plan_overlap_trim(&table, flushed);
    assert_true(plan_overlap_filled(&table));
    flushed[2] = 7;
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, at, 1, &lane), PLAN_OVERLAP_NONE);
    plan_overlap_trim(&table, flushed);
    assert_false(plan_overlap_filled(&table));
}

static void ranges_at_the_end_of_the_address_space(void **state)
{
    (void)state;
    static struct plan_overlap table;
    unsigned lane = 99;
    memset(&table, 0, sizeof(table));
    uint64_t a = plan_overlap_add(&table, UINT64_MAX - 7, 8);
    plan_overlap_posted(&table, a, 1, 1, true);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, UINT64_MAX, 1, &lane), PLAN_OVERLAP_FOLLOW);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, UINT64_MAX - 9, 100, &lane),
                     PLAN_OVERLAP_FOLLOW);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, UINT64_MAX - 9, 2, &lane), PLAN_OVERLAP_NONE);
    /* The bottom does not follow the top. */
    plan_overlap_posted(&table, plan_overlap_add(&table, 0, 8), 1, 2, true);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, UINT64_MAX, 1, &lane), PLAN_OVERLAP_FOLLOW);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, 7, 1, &lane), PLAN_OVERLAP_FOLLOW);
    /* Longer than any granule: it joins those that do not fit. */
    assert_true(plan_overlap_add(&table, 0, UINT64_MAX) == PLAN_OVERLAP_LOST);
    assert_int_equal(plan_overlap_check(&table, none_flushed, table.head, 12345, 1, &lane), PLAN_OVERLAP_GATE);
}

/* What is bound to a lane can be followed there before it is posted; what is bound to another, or not at all, cannot. */
static void what_is_bound_can_be_followed(void **state)
{
    (void)state;
    static struct plan_overlap table;
    uint64_t flushed[PLAN_COUNTS] = {0};
    unsigned lane = 99;
    uint64_t a = plan_overlap_add(&table, 0x1000, 0x1000);
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x1000, 8, &lane), PLAN_OVERLAP_GATE);
    plan_overlap_bind(&table, a, 1);
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x1000, 8, &lane), PLAN_OVERLAP_FOLLOW);
    assert_int_equal(lane, 1);
    plan_overlap_posted(&table, a, 1, 1, false);
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x1000, 8, &lane), PLAN_OVERLAP_FOLLOW);
    flushed[1] = 1; /* its first piece is there, more will come */
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x1000, 8, &lane), PLAN_OVERLAP_FOLLOW);
    uint64_t b = plan_overlap_add(&table, 0x1800, 0x1000);
    plan_overlap_bind(&table, b, 2);
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x1ff8, 8, &lane), PLAN_OVERLAP_GATE);
    flushed[2] = UINT64_MAX; /* dead */
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x1ff8, 8, &lane), PLAN_OVERLAP_FOLLOW);
    plan_overlap_posted(&table, a, 1, 2, true);
    flushed[1] = 2;
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x1ff8, 8, &lane), PLAN_OVERLAP_NONE);
    table.fresh = PLAN_OVERLAP_BOUND; /* one lane: what the short way takes is bound to it */
    plan_overlap_add(&table, 0x10000, 0x1000);
    plan_overlap_add(&table, 0x11000, 0x1000);
    assert_true(plan_overlap_append(&table, 0x12000, 0x1000, &b));
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x12800, 8, &lane), PLAN_OVERLAP_FOLLOW);
    assert_int_equal(lane, 0);
    plan_overlap_bind(&table, PLAN_OVERLAP_LOST, 1); /* is not kept exactly: nothing to say */
    assert_int_equal(plan_overlap_check(&table, flushed, table.head, 0x1ff8, 8, &lane), PLAN_OVERLAP_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_bound_can_be_followed),
        cmocka_unit_test(what_overlaps_one_lane_is_followed),
        cmocka_unit_test(a_run_ends_where_its_entries_do),
        cmocka_unit_test(what_does_not_fit_gates),
        cmocka_unit_test(ranges_at_the_end_of_the_address_space),
        cmocka_unit_test(the_table_answers_as_one_that_keeps_everything),
    };
    return cmocka_run_group_tests_name("plan_overlap", tests, NULL, NULL);
}
