/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_order.c - when a word op may be posted. The rule is checked case by case, and against a model of lanes that
 * deliver in any order between each other. Links plan alone.
 */
#include "unit.h"

#include "plan.h"

static enum plan_order ask(const struct plan_counts *counts, const struct plan_wait *wait, uint16_t dead,
                           unsigned faults)
{
    struct plan_order_in in = {.counts = counts, .lanes = 3, .home = 1, .dead = dead, .faults = faults};
    return plan_order(&in, wait);
}

static void nothing_outstanding_goes_at_once(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 7, 0}, .visible = {5, 7, 0}};
    struct plan_wait wait;
    plan_order_mark(&counts, 3, 1, &wait);
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_NOW);
}

static void the_own_lane_is_not_waited_for(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 9, 0}, .visible = {5, 2, 0}};
    struct plan_wait wait;
    plan_order_mark(&counts, 3, 1, &wait);
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_NOW);
}

static void another_lane_is_waited_for_to_the_last_write(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 0, 3}, .visible = {3, 0, 3}};
    struct plan_wait wait;
    plan_order_mark(&counts, 3, 1, &wait);
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_WAIT);
    counts.visible[0] = 4;
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_WAIT);
    counts.visible[0] = 5;
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_NOW);
}

static void later_writes_hold_nothing_up(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 0, 0}, .visible = {5, 0, 0}};
    struct plan_wait wait;
    plan_order_mark(&counts, 3, 1, &wait);
    counts.posted[0] = 500;
    counts.posted[2] = 500;
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_NOW);
}

static void what_is_lost_is_never_announced(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 0, 0}, .visible = {4, 0, 0}};
    struct plan_wait wait;
    plan_order_mark(&counts, 3, 1, &wait);
    assert_int_equal(ask(&counts, &wait, 1u << 0, 0), PLAN_ORDER_NEVER);
    assert_int_equal(ask(&counts, &wait, 1u << 2, 0), PLAN_ORDER_WAIT); /* that lane owes nothing */
    counts.visible[0] = 5;
    assert_int_equal(ask(&counts, &wait, 1u << 0, 0), PLAN_ORDER_NOW);   /* it died after its work was done */
    assert_int_equal(ask(&counts, &wait, 1u << 1, 0), PLAN_ORDER_NEVER); /* the home lane itself */
}

static void the_fault_switches_off_waiting_alone(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 0, 0}, .visible = {0, 0, 0}};
    struct plan_wait wait;
    plan_order_mark(&counts, 3, 1, &wait);
    assert_int_equal(ask(&counts, &wait, 0, PLAN_FAULT_DEFER), PLAN_ORDER_NOW);
    assert_int_equal(ask(&counts, &wait, 1u << 1, PLAN_FAULT_DEFER), PLAN_ORDER_NEVER);
}

/*
 * A model: writes are posted on random lanes; each lane makes its own visible in order, at random times. A word op is issued
 * at random times and posted as soon as the rule allows. At that moment every write issued before it on another lane must
 * be visible; and once all is visible it must have been posted. Returns violations.
 */
static unsigned run_model(uint64_t *random, unsigned faults)
{
    struct plan_counts counts = {0};
    struct plan_wait wait = {0};
    uint64_t issued_before[PLAN_MAX_LANES] = {0};
    unsigned lanes = 1 + (unsigned)(unit_random(random) % PLAN_MAX_LANES), violations = 0;
    struct plan_order_in in = {
        .counts = &counts, .lanes = lanes, .home = (unsigned)(unit_random(random) % lanes), .faults = faults};
    bool waiting = false;
    for (int step = 0; step < 400; step++) {
        unsigned k = (unsigned)(unit_random(random) % lanes);
        uint64_t act = unit_random(random) % 8;
        if (act < 3 && step < 300) {
            counts.posted[k]++;
        } else if (act < 7 && counts.visible[k] < counts.posted[k]) {
            counts.visible[k]++;
        } else if (!waiting) {
            plan_order_mark(&counts, lanes, in.home, &wait);
            memcpy(issued_before, counts.posted, sizeof(issued_before));
            waiting = true;
        }
        if (waiting && plan_order(&in, &wait) == PLAN_ORDER_NOW) {
            for (unsigned j = 0; j < lanes; j++)
                violations += j != in.home && counts.visible[j] < issued_before[j];
            waiting = false;
        }
    }
    memcpy(counts.visible, counts.posted, sizeof(counts.visible));
    assert_true(!waiting || plan_order(&in, &wait) == PLAN_ORDER_NOW);
    return violations;
}

static void a_model_of_lanes_sees_no_violation(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    unsigned without = 0;
    for (int round = 0; round < 10000; round++)
        assert_int_equal(run_model(&random, 0), 0);
    for (int round = 0; round < 100; round++)
        without += run_model(&random, PLAN_FAULT_DEFER);
    assert_true(without > 0); /* else the model could not see one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_outstanding_goes_at_once),
        cmocka_unit_test(the_own_lane_is_not_waited_for),
        cmocka_unit_test(another_lane_is_waited_for_to_the_last_write),
        cmocka_unit_test(later_writes_hold_nothing_up),
        cmocka_unit_test(what_is_lost_is_never_announced),
        cmocka_unit_test(the_fault_switches_off_waiting_alone),
        cmocka_unit_test(a_model_of_lanes_sees_no_violation),
    };
    return cmocka_run_group_tests_name("plan_order", tests, NULL, NULL);
}
