/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_order.c - when an op that follows others may be posted. The rule is checked case by case, and against a model of
 * lanes that deliver in any order between each other. Links plan alone.
 */
#include "unit.h"

#include "plan.h"

/* The lane that the word op takes. */
static unsigned taken;

/* Three lanes, and lane 1 taken. */
static struct plan_order_in three(const struct plan_counts *counts)
{
    taken = 1;
    return (struct plan_order_in){.counts = counts, .lanes = 3};
}

static struct plan_wait mark(const struct plan_order_in *in, enum plan_word word)
{
    struct plan_wait wait;
    memset(&wait, 0x5a, sizeof(wait));
    plan_order_mark(in, taken, word, &wait);
    return wait;
}

static enum plan_order ask(const struct plan_counts *counts, const struct plan_wait *wait, uint16_t dead,
                           unsigned faults)
{
    struct plan_order_in in = three(counts);
    in.dead = dead;
    in.faults = faults;
    return plan_order(&in, taken, wait);
}

static struct plan_wait mark_atomic(const struct plan_counts *counts)
{
    struct plan_order_in in = three(counts);
    return mark(&in, PLAN_WORD_ATOMIC);
}

static void nothing_outstanding_goes_at_once(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 7, 0}, .acked = {5, 7, 0}, .flushed = {5, 7, 0}};
    struct plan_order_in in = three(&counts);
    in.unordered = true;
    for (enum plan_word word = PLAN_WORD_WRITE; word <= PLAN_WORD_GATE; word++) {
        struct plan_wait wait = mark(&in, word);
        assert_int_equal(plan_order(&in, taken, &wait), PLAN_ORDER_NOW);
        assert_int_equal(plan_order_flush(&in, &wait), 0);
    }
}

static void the_own_lane_is_not_waited_for(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 9, 0}, .acked = {5, 9, 0}, .flushed = {5, 2, 0}};
    struct plan_wait wait = mark_atomic(&counts);
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_NOW);
    struct plan_order_in in = three(&counts);
    wait = mark(&in, PLAN_WORD_WRITE);
    assert_int_equal(plan_order(&in, taken, &wait), PLAN_ORDER_NOW);
}

static void another_lane_is_waited_for_to_the_last_write(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 0, 3}, .acked = {5, 0, 3}, .flushed = {3, 0, 3}};
    struct plan_wait wait = mark_atomic(&counts);
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_WAIT);
    counts.flushed[0] = 4;
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_WAIT);
    counts.flushed[0] = 5;
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_NOW);
}

static void later_writes_hold_nothing_up(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 0, 0}, .acked = {5, 0, 0}, .flushed = {5, 0, 0}};
    struct plan_wait wait = mark_atomic(&counts);
    counts.posted[0] = 500;
    counts.posted[2] = 500;
    counts.posted[PLAN_MESSAGE] = 500;
    assert_int_equal(ask(&counts, &wait, 0, 0), PLAN_ORDER_NOW);
}

static void what_is_lost_is_never_announced(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 0, 0}, .flushed = {4, 0, 0}};
    struct plan_wait wait = mark_atomic(&counts);
    assert_int_equal(ask(&counts, &wait, 1u << 0, 0), PLAN_ORDER_NEVER);
    assert_int_equal(ask(&counts, &wait, 1u << 2, 0), PLAN_ORDER_WAIT); /* that lane owes nothing */
    counts.flushed[0] = 5;
    assert_int_equal(ask(&counts, &wait, 1u << 0, 0), PLAN_ORDER_NOW);   /* it died after its work was done */
    assert_int_equal(ask(&counts, &wait, 1u << 1, 0), PLAN_ORDER_NEVER); /* the own lane itself */
}

static void the_fault_switches_off_waiting_alone(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 0, 0}, .flushed = {0, 0, 0}};
    struct plan_order_in in = three(&counts);
    in.faults = PLAN_FAULT_DEFER;
    struct plan_wait wait = mark(&in, PLAN_WORD_ATOMIC);
    assert_int_equal(plan_order(&in, taken, &wait), PLAN_ORDER_NOW);
    in.dead = 1u << 1;
    assert_int_equal(plan_order(&in, taken, &wait), PLAN_ORDER_NEVER);
    /* A gate is another rule. */
    in.dead = 0;
    taken = in.lanes;
    wait = mark(&in, PLAN_WORD_GATE);
    assert_int_equal(plan_order(&in, taken, &wait), PLAN_ORDER_WAIT);
}

/* A word op was marked while one before it still waited; that one has been posted since, and so has later bulk. */
static void a_word_op_is_raised_to_those_before_it(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {1, 1, 0}, .flushed = {1, 1, 0}};
    uint64_t last[PLAN_COUNTS] = {0, 2, 0};
    last[PLAN_MESSAGE] = 1;
    struct plan_order_in in = three(&counts);
    in.unordered = true;
    struct plan_wait write = mark(&in, PLAN_WORD_WRITE), message = mark(&in, PLAN_WORD_MESSAGE),
                     atomic = mark(&in, PLAN_WORD_ATOMIC);
    counts.posted[1] = 9; /* the word op is the second, bulk the rest */
    counts.posted[PLAN_MESSAGE] = 1;
    plan_order_raise(&in, taken, PLAN_WORD_WRITE, last, &write);
    plan_order_raise(&in, taken, PLAN_WORD_MESSAGE, last, &message);
    plan_order_raise(&in, taken, PLAN_WORD_ATOMIC, last, &atomic);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(plan_order(&in, taken, &write), PLAN_ORDER_WAIT);
        assert_int_equal(plan_order(&in, taken, &message), i ? PLAN_ORDER_NOW : PLAN_ORDER_WAIT);
        assert_int_equal(plan_order(&in, taken, &atomic), PLAN_ORDER_WAIT); /* for the message alone */
        counts.flushed[1] = 2;
    }
    counts.flushed[PLAN_MESSAGE] = 1;
    assert_int_equal(plan_order(&in, taken, &write), PLAN_ORDER_NOW);
    assert_int_equal(plan_order(&in, taken, &atomic), PLAN_ORDER_NOW);
    /* It never lowers what was marked. */
    counts = (struct plan_counts){.posted = {5, 5, 5}};
    struct plan_wait far = mark(&in, PLAN_WORD_WRITE), same = far;
    plan_order_raise(&in, taken, PLAN_WORD_WRITE, (const uint64_t[PLAN_COUNTS]){1, 1, 1}, &far);
    assert_memory_equal(&far, &same, sizeof(far));
}

/* What each kind waits for, with something unflushed on every lane and a message on its way. */
static void each_kind_waits_for_what_does_not_stay_behind_by_itself(void **state)
{
    (void)state;
    enum { OTHERS = 1u << 0 | 1u << 2, OWN = 1u << 1, MESSAGE = 1u << PLAN_MESSAGE };
    static const struct {
        enum plan_word word;
        bool unordered;
        unsigned faults;
        uint32_t waits;
        bool mixed; /* host memory and a GPU's are written */
    } cases[] = {
        {PLAN_WORD_WRITE, false, 0, OTHERS | MESSAGE, false},
        {PLAN_WORD_WRITE, true, 0, OTHERS | OWN | MESSAGE, false},
        {PLAN_WORD_WRITE, true, PLAN_FAULT_OWN_FLUSH, OTHERS | MESSAGE, false},
        {PLAN_WORD_WRITE, true, PLAN_FAULT_DEFER, OWN, false},
        {PLAN_WORD_WRITE, true, PLAN_FAULT_ORDER, 0, false},
        {PLAN_WORD_ATOMIC, false, 0, OTHERS | MESSAGE, false},
        {PLAN_WORD_ATOMIC, true, 0, OTHERS | MESSAGE, false},
        {PLAN_WORD_MESSAGE, false, 0, OTHERS | OWN, false},
        {PLAN_WORD_MESSAGE, true, 0, OTHERS | OWN, false},
        {PLAN_WORD_GATE, false, 0, OTHERS | OWN | MESSAGE, false},
        {PLAN_WORD_GATE, true, PLAN_FAULT_OWN_FLUSH | PLAN_FAULT_DEFER, OTHERS | OWN | MESSAGE, false},
        {PLAN_WORD_WRITE, false, 0, OTHERS | OWN | MESSAGE, true},
        {PLAN_WORD_WRITE, false, PLAN_FAULT_OWN_FLUSH, OTHERS | MESSAGE, true},
        {PLAN_WORD_ATOMIC, false, 0, OTHERS | OWN | MESSAGE, true},
        {PLAN_WORD_ATOMIC, true, PLAN_FAULT_OWN_FLUSH, OTHERS | MESSAGE, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plan_counts counts = {.posted = {1, 2, 3}, .acked = {1, 2, 3}};
        counts.posted[PLAN_MESSAGE] = 4;
        struct plan_order_in in = three(&counts);
        in.unordered = cases[i].unordered;
        in.mixed = cases[i].mixed;
        in.faults = cases[i].faults;
        if (cases[i].word == PLAN_WORD_GATE)
            taken = PLAN_MAX_LANES;
        struct plan_wait wait = mark(&in, cases[i].word);
        uint32_t waits = 0;
        for (unsigned k = 0; k < in.lanes; k++)
            waits |= (uint32_t)(wait.count[k] == counts.posted[k]) << k;
        waits |= (uint32_t)(wait.count[PLAN_MESSAGE] == 4) << PLAN_MESSAGE;
        if (waits != cases[i].waits)
            fail_msg("case %zu: waits for 0x%x, expected 0x%x", i, waits, cases[i].waits);
        /* One after the other becomes visible; it goes with the last. */
        for (uint32_t left = cases[i].waits; left; left &= left - 1) {
            unsigned k = (unsigned)__builtin_ctz(left);
            assert_int_equal(plan_order(&in, taken, &wait), PLAN_ORDER_WAIT);
            counts.flushed[k] = counts.posted[k];
        }
        assert_int_equal(plan_order(&in, taken, &wait), PLAN_ORDER_NOW);
    }
}

static void an_acknowledgement_is_enough_for_drain_alone(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 0, 0}, .acked = {4, 0, 0}};
    struct plan_order_in in = three(&counts), drain = in, fault = in;
    drain.drain = true;
    fault.faults = PLAN_FAULT_FLUSH;
    struct plan_wait wait = mark(&in, PLAN_WORD_ATOMIC);
    assert_int_equal(plan_order(&drain, taken, &wait), PLAN_ORDER_WAIT);
    assert_int_equal(plan_order(&fault, taken, &wait), PLAN_ORDER_WAIT);
    counts.acked[0] = 5;
    assert_int_equal(plan_order(&drain, taken, &wait), PLAN_ORDER_NOW);
    assert_int_equal(plan_order(&fault, taken, &wait), PLAN_ORDER_NOW);
    assert_int_equal(plan_order(&in, taken, &wait), PLAN_ORDER_WAIT);
    assert_int_equal(plan_order_flush(&drain, &wait), 0);
    assert_int_equal(plan_order_flush(&fault, &wait), 0);
    assert_int_equal(plan_order_flush(&in, &wait), 1u << 0);
}

static void words_wait_for_bulk_and_drain_keeps_the_caller(void **state)
{
    (void)state;
    struct plan_order_in in = three(NULL), drain = in;
    drain.drain = true;
    assert_true(plan_order_handed(&in, 7, 7) && !plan_order_handed(&in, 8, 7));
    assert_true(!plan_order_blocks(&in) && plan_order_blocks(&drain) && plan_order_strict_key(&in));
    in.faults = drain.faults = PLAN_FAULT_DEFER;
    assert_true(plan_order_handed(&in, 8, 7) && !plan_order_blocks(&drain) && plan_order_strict_key(&in));
    in.faults = PLAN_FAULT_KEYS;
    assert_true(!plan_order_handed(&in, 8, 7) && !plan_order_strict_key(&in));
}

static void flushes_are_asked_for_where_they_can_help(void **state)
{
    (void)state;
    struct plan_counts counts = {.posted = {5, 2, 3}, .flushed = {5, 1, 2}};
    counts.posted[PLAN_MESSAGE] = 1;
    struct plan_order_in in = three(&counts);
    taken = PLAN_MAX_LANES;
    struct plan_wait wait = mark(&in, PLAN_WORD_GATE);
    assert_int_equal(plan_order_flush(&in, &wait), 1u << 1 | 1u << 2);
    assert_int_equal(plan_order_flush_all(&in), 1u << 1 | 1u << 2);
    in.dead = 1u << 2;
    assert_int_equal(plan_order_flush(&in, &wait), 1u << 1);
    assert_int_equal(plan_order_flush_all(&in), 1u << 1);
    in.drain = true; /* a quiet needs proof in this mode too */
    assert_int_equal(plan_order_flush(&in, &wait), 0);
    assert_int_equal(plan_order_flush_all(&in), 1u << 1);
    in.faults = PLAN_FAULT_FLUSH;
    assert_int_equal(plan_order_flush_all(&in), 0);
}

static void what_can_be_lost_is_known(void **state)
{
    (void)state;
    struct plan_order_in in = three(NULL);
    assert_false(plan_order_lossy(&in));
    in.dead = 1u << 1;
    assert_true(plan_order_lossy(&in));
    in.dead = 0;
    in.message_lost = true;
    assert_true(plan_order_lossy(&in));
}

/*
 * A model: writes are posted on random lanes; each lane makes its own visible in order, at random times, and says so later
 * still. An op that follows is issued at random times and posted as soon as the rule allows. At that moment every write
 * issued before it on another lane must be visible, and where its own lane does not keep it behind, there too; and once
 * all is known it must have been posted. Returns violations.
 */
static unsigned run_model(uint64_t *random, unsigned faults)
{
    struct plan_counts counts = {0};
    struct plan_wait wait = {0};
    uint64_t issued_before[PLAN_MAX_LANES] = {0}, visible[PLAN_MAX_LANES] = {0};
    unsigned lanes = 1 + (unsigned)(unit_random(random) % PLAN_MAX_LANES), violations = 0;
    enum plan_word word = PLAN_WORD_WRITE;
    taken = (unsigned)(unit_random(random) % lanes);
    struct plan_order_in in = {.counts = &counts,
                               .lanes = lanes,
                               .unordered = unit_random(random) % 2,
                               .mixed = unit_random(random) % 2,
                               .faults = faults};
    bool waiting = false;
    for (int step = 0; step < 400; step++) {
        unsigned k = (unsigned)(unit_random(random) % lanes);
        uint64_t act = unit_random(random) % 12;
        if (act < 3 && step < 300) {
            counts.posted[k]++;
        } else if (act < 6 && counts.acked[k] < counts.posted[k]) {
            counts.acked[k]++;
        } else if (act < 9) {
            visible[k] += (unit_random(random) % 2) * (counts.posted[k] - visible[k]);
        } else if (act < 11) {
            /* A flush ends: all that was acknowledged before it is visible, and that is known now. */
            visible[k] = max_u64(visible[k], counts.acked[k]);
            counts.flushed[k] = counts.acked[k];
        } else if (!waiting) {
            word = (enum plan_word)(unit_random(random) % 3);
            plan_order_mark(&in, taken, word, &wait);
            memcpy(issued_before, counts.posted, sizeof(issued_before));
            waiting = true;
        }
        if (waiting && plan_order(&in, taken, &wait) == PLAN_ORDER_NOW) {
            bool own = word == PLAN_WORD_MESSAGE || in.mixed || (word == PLAN_WORD_WRITE && in.unordered);
            for (unsigned j = 0; j < lanes; j++)
                violations += (j != taken || own) && visible[j] < issued_before[j];
            waiting = false;
        }
    }
    memcpy(counts.flushed, counts.posted, sizeof(counts.flushed));
    memcpy(counts.acked, counts.posted, sizeof(counts.acked));
    assert_true(!waiting || plan_order(&in, taken, &wait) == PLAN_ORDER_NOW);
    return violations;
}

static void a_model_of_lanes_sees_no_violation(void **state)
{
    (void)state;
    static const unsigned faults[] = {PLAN_FAULT_DEFER, PLAN_FAULT_FLUSH, PLAN_FAULT_OWN_FLUSH};
    uint64_t random = unit_seed();
    for (int round = 0; round < 10000; round++)
        assert_int_equal(run_model(&random, 0), 0);
    for (size_t i = 0; i < 3; i++) {
        unsigned without = 0;
        for (int round = 0; round < 300; round++)
            without += run_model(&random, faults[i]);
        assert_true(without > 0); /* else the model could not see one */
    }
}

/* What the short way lets go the long way lets go too, whatever the state; and it is not idle. */
static void the_short_way_says_no_more_than_the_long_one(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    unsigned clear = 0;
    for (unsigned round = 0; round < 200000; round++) {
        struct plan_counts counts = {0};
        struct plan_order_in in = {.counts = &counts, .lanes = 1 + (unsigned)(unit_random(&random) % 4)};
        for (unsigned k = 0; k < PLAN_COUNTS; k = k + 1 == in.lanes ? PLAN_MESSAGE : k + 1) {
            counts.flushed[k] = unit_random(&random) % 3;
            counts.acked[k] = counts.flushed[k] + (unit_random(&random) % 4 == 0);
            counts.posted[k] = counts.acked[k] + (unit_random(&random) % 4 == 0);
            if (k == PLAN_MESSAGE)
                break;
        }
        uint64_t odd = unit_random(&random) % 16; /* half of them with something unusual */
        in.drain = unit_random(&random) % 4 == 0;
        in.dead = odd == 1 ? (uint16_t)(1u << unit_random(&random) % in.lanes) : 0;
        in.message_lost = odd == 2;
        in.unordered = odd == 3;
        in.mixed = odd == 4;
        in.faults = odd == 5 ? PLAN_FAULT_DEFER : odd == 6 ? PLAN_FAULT_FLUSH : odd == 7 ? PLAN_FAULT_OWN_FLUSH : 0;
        unsigned lane = (unsigned)(unit_random(&random) % in.lanes);
        enum plan_word word = (enum plan_word)(unit_random(&random) % (PLAN_WORD_GATE + 1));
        if (!plan_order_clear(&in, lane, word))
            continue;
        struct plan_wait wait;
        plan_order_mark(&in, lane, word, &wait);
        assert_int_equal(plan_order(&in, lane, &wait), PLAN_ORDER_NOW);
        clear++;
    }
    assert_true(clear > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_outstanding_goes_at_once),
        cmocka_unit_test(the_short_way_says_no_more_than_the_long_one),
        cmocka_unit_test(the_own_lane_is_not_waited_for),
        cmocka_unit_test(another_lane_is_waited_for_to_the_last_write),
        cmocka_unit_test(later_writes_hold_nothing_up),
        cmocka_unit_test(what_is_lost_is_never_announced),
        cmocka_unit_test(the_fault_switches_off_waiting_alone),
        cmocka_unit_test(a_word_op_is_raised_to_those_before_it),
        cmocka_unit_test(each_kind_waits_for_what_does_not_stay_behind_by_itself),
        cmocka_unit_test(an_acknowledgement_is_enough_for_drain_alone),
        cmocka_unit_test(words_wait_for_bulk_and_drain_keeps_the_caller),
        cmocka_unit_test(flushes_are_asked_for_where_they_can_help),
        cmocka_unit_test(what_can_be_lost_is_known),
        cmocka_unit_test(a_model_of_lanes_sees_no_violation),
    };
    return cmocka_run_group_tests_name("plan_order", tests, NULL, NULL);
}
