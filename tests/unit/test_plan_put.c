/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_put.c - what a put is: its class, whether it waits or follows, which key it takes, what of it is held back; and
 * which lane an atomic takes. Each rule with its fault beside it. Links plan alone.
 */
#include "unit.h"

#include "plan.h"

#define ADDR UINT64_C(0x10000)

/* Two lanes, cut from 16 KiB, nothing special. */
static struct plan_put_in put_of(uint64_t len)
{
    return (struct plan_put_in){.remote_addr = ADDR, .len = len, .cut_min = 16384, .lanes = 2};
}

static struct plan_put ask(struct plan_put_in in)
{
    struct plan_put out;
    plan_put(&in, &out);
    return out;
}

static void classes_go_by_length(void **state)
{
    (void)state;
    static const struct {
        uint64_t len;
        enum plan_class klass;
    } cases[] = {{1, PLAN_CLASS_WORD},       {256, PLAN_CLASS_WORD},    {257, PLAN_CLASS_MEDIUM},
                 {16383, PLAN_CLASS_MEDIUM}, {16384, PLAN_CLASS_LARGE}, {1 << 30, PLAN_CLASS_LARGE}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plan_put plan = ask(put_of(cases[i].len));
        assert_int_equal(plan.klass, cases[i].klass);
        assert_true(plan.lane == PLAN_MAX_LANES && !plan.gate && !plan.strict && plan.tail == 0);
    }
    struct plan_put_in part = put_of(8);
    part.covered = true; /* nobody polls on a part */
    assert_int_equal(ask(part).klass, PLAN_CLASS_MEDIUM);
    assert_true(plan_put_cut_min(16384, 1, false) == UINT64_MAX);
    assert_true(plan_put_cut_min(16384, 1, true) == 16384 && plan_put_cut_min(16384, 2, false) == 16384);
}

static void overlapping_bulk_follows_or_waits(void **state)
{
    (void)state;
    struct plan_put_in in = put_of(4096);
    in.overlap = PLAN_OVERLAP_FOLLOW;
    in.overlap_lane = 1;
    struct plan_put plan = ask(in);
    assert_true(plan.lane == 1 && plan.strict && !plan.gate);
    in.unordered = true; /* a strict key does not keep the order there */
    plan = ask(in);
    assert_true(plan.gate && plan.lane == PLAN_MAX_LANES);
    in.unordered = false;
    in.overlap = PLAN_OVERLAP_GATE;
    assert_true(ask(in).gate);
    in.faults = PLAN_FAULT_OVERLAP;
    assert_true(!ask(in).gate);
}

static void a_fence_holds_bulk_back_in_strict_mode_alone(void **state)
{
    (void)state;
    struct plan_put_in in = put_of(4096);
    in.fenced = true;
    assert_true(!ask(in).gate);
    in.strict = true;
    assert_true(ask(in).gate);
    in.len = 64; /* a word op is ordered by itself */
    assert_true(!ask(in).gate);
}

static void the_tail_holds_a_whole_last_word(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    for (int i = 0; i < 10000; i++) {
        struct plan_put_in in = put_of(16384 + unit_random(&random) % 100000);
        in.remote_addr += unit_random(&random) % 4096;
        in.tail = true;
        struct plan_put plan = ask(in);
        assert_true(plan.tail >= 8 && plan.tail <= PLAN_WORD_MAX);
        assert_int_equal((in.remote_addr + in.len - plan.tail) % PLAN_CUT_ALIGN, 0);
        in.faults = PLAN_FAULT_TAIL;
        assert_int_equal(ask(in).tail, 0);
        in.faults = 0;
        in.covered = true;
        assert_int_equal(ask(in).tail, 0);
    }
}

/* A strict key does instead of a tail on one lane, but neither out of order nor behind a fence. */
static void whole_puts_need_no_tail_where_a_key_does(void **state)
{
    (void)state;
    struct plan_put_in in = put_of(4096);
    in.tail = true;
    assert_true(ask(in).strict && ask(in).tail == 0);
    in.unordered = true;
    assert_true(!ask(in).strict && ask(in).tail > 0);
    in.unordered = false;
    in.fenced = true;
    assert_true(!ask(in).strict && ask(in).tail > 0);
    in.lanes = 1; /* what stood before the fence may be deferred, or asked of the target */
    assert_true(ask(in).tail > 0);
    in.strict = true; /* then the gate has waited for it */
    assert_true(ask(in).strict && ask(in).gate && ask(in).tail == 0);
    in = put_of(1 << 20); /* cut, but for pacing only: all of it on one lane */
    in.tail = true;
    in.lanes = 1;
    assert_true(ask(in).klass == PLAN_CLASS_LARGE && ask(in).strict && ask(in).tail == 0);
}

static void atomics_take_the_home_lane(void **state)
{
    (void)state;
    for (unsigned turn = 0; turn < 8; turn++) {
        assert_int_equal(plan_atomic_lane(2, 4, turn, 0), 2);
        assert_int_equal(plan_atomic_lane(4, 4, turn, 0), 4); /* none */
        assert_int_equal(plan_atomic_lane(2, 4, turn, PLAN_FAULT_HOME), turn % 4);
    }
    assert_false(plan_atomic_again(PLAN_FAULT_ORDER & ~(unsigned)PLAN_FAULT_DEDUP));
    assert_true(plan_atomic_again(PLAN_FAULT_DEDUP));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_go_by_length),
        cmocka_unit_test(overlapping_bulk_follows_or_waits),
        cmocka_unit_test(a_fence_holds_bulk_back_in_strict_mode_alone),
        cmocka_unit_test(the_tail_holds_a_whole_last_word),
        cmocka_unit_test(whole_puts_need_no_tail_where_a_key_does),
        cmocka_unit_test(atomics_take_the_home_lane),
    };
    return cmocka_run_group_tests_name("plan_put", tests, NULL, NULL);
}
