/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wheel.c - the event queue of virtual time against a plain list: the earliest comes first, equal times in the order they
 * went in, however far ahead they were when they did. Links emu_wheel.c and emu_heap.c alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emu_wheel.h"

enum { MOST = 600, STEPS = 200000 };

static struct emu_wheel wheel;

/* The plain list: what is in it, in the order it went in. */
static struct {
    uint64_t t, name;
} list[MOST];
static int count;
static uint64_t names, now;

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 20) % n;
}

static void nothing(void *obj, uint64_t arg)
{
    (void)obj;
    (void)arg;
}

static void add(uint64_t t)
{
    assert_int_equal(emu_wheel_add(&wheel, t, nothing, &list, names), 0);
    list[count].t = t;
    list[count++].name = names++;
}

/* The names of a nanosecond's events, as they are shown. */
static uint64_t shown[MOST];
static int n_shown;

static void show(const struct emu_wheel_event *e)
{
    shown[n_shown++] = e->arg;
}

/** What is said to come next is what comes next, in its order; what is not on the wheel is not shown. */
static void look_ahead(void)
{
    uint64_t t = UINT64_MAX;
    int n = 0;

    for (int i = 0; i < count; i++) {
        if (list[i].t > now && list[i].t < t && list[i].t - wheel.base < EMU_WHEEL_SPAN)
            t = list[i].t;
    }
    assert_int_equal(emu_wheel_after(&wheel, now), t);
    n_shown = 0;
    emu_wheel_each(&wheel, t, show);
    for (int i = 0; i < count && t < UINT64_MAX; i++) {
        if (list[i].t == t)
            assert_int_equal(shown[n++], list[i].name);
    }
    assert_int_equal(n_shown, n);
}

static void take(void)
{
    struct emu_heap_event e;
    int first = 0;

    for (int i = 1; i < count; i++)
        first = list[i].t < list[first].t ? i : first;
    assert_int_equal(emu_wheel_first(&wheel), count ? list[first].t : UINT64_MAX);
    if (count == 0) {
        assert_int_not_equal(emu_wheel_take(&wheel, &e), 0);
        return;
    }
    assert_int_equal(emu_wheel_take(&wheel, &e), 0);
    assert_int_equal(e.t, list[first].t);
    assert_int_equal(e.arg, list[first].name);
    assert_true(e.fn == nothing && e.obj == &list);
    now = e.t;
    memmove(&list[first], &list[first + 1], (size_t)(--count - first) * sizeof(list[0]));
    if (now >= wheel.base)
        look_ahead();
}

/** How far ahead: mostly near, often the same nanosecond or a whole turn of the wheel, sometimes far. */
static uint64_t ahead(void)
{
    switch (random_below(8)) {
    case 0:
        return 0;
    case 1:
        return EMU_WHEEL_SPAN - 2 + random_below(4);
    case 2:
        return random_below(40) * EMU_WHEEL_SPAN;
    case 3:
        return random_below(8 * EMU_WHEEL_SPAN);
    case 4:
        return random_below(EMU_WHEEL_SPAN);
    default:
        return random_below(8);
    }
}

static void the_earliest_comes_first(void **state)
{
    (void)state;
    emu_wheel_init(&wheel);
    for (int step = 0; step < STEPS; step++) {
        int many = step / 5000 % 3 == 0 ? MOST : step / 5000 % 3 == 1 ? 20 : 1; /* filled, emptied, almost empty */

        if (count < many && random_below(3))
            add(now + ahead());
        else
            take();
    }
    while (count)
        take();
    take();
    emu_wheel_fini(&wheel);
}

/** A timer that found nothing to do has not moved time: what is added then may come before it. */
static void time_may_be_behind_what_was_taken(void **state)
{
    (void)state;
    emu_wheel_init(&wheel);
    now = 0;
    for (int round = 0; round < 2000; round++) {
        uint64_t was = now;

        add(now + random_below(3 * EMU_WHEEL_SPAN));
        take();
        if (random_below(2))
            now = was;
        for (int i = 0; i < 4; i++)
            add(now + ahead());
        while (count > 2)
            take();
    }
    while (count)
        take();
    emu_wheel_fini(&wheel);
}

static void the_end_of_time_is_a_time(void **state)
{
    (void)state;
    emu_wheel_init(&wheel);
    now = 0;
    for (int round = 0; round < 2; round++) {
        add(UINT64_MAX);
        add(UINT64_MAX - 1);
        add(UINT64_MAX);
        add(UINT64_MAX - 2 * EMU_WHEEL_SPAN);
        while (count)
            take();
        take();
    }
    emu_wheel_fini(&wheel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_comes_first),
        cmocka_unit_test(time_may_be_behind_what_was_taken),
        cmocka_unit_test(the_end_of_time_is_a_time),
    };

    return cmocka_run_group_tests_name("wheel", tests, NULL, NULL);
}
