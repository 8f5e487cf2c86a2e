/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_map.c - the table behind queue pair numbers and keys, against a plain list: whatever was put in and taken
 * out, in whatever order, the rest is found. Links emu_map.c alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emu_map.h"

enum { KEYS = 200, STEPS = 20000 };

struct list {
    uint32_t key[KEYS];
    int there[KEYS]; /* the values' addresses are what the map holds; 0: not in it */
};

static uint64_t random_state = 1;

static uint32_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static void find_all(const struct emu_map *m, struct list *l)
{
    uint32_t used = 0;

    for (int i = 0; i < KEYS; i++) {
        assert_ptr_equal(emu_map_get(m, l->key[i]), l->there[i] ? &l->there[i] : NULL);
        used += (uint32_t)l->there[i];
    }
    assert_int_equal(m->used, used);
}

/** Puts and takes at random; at most so many in it at a time, so that tables of all sizes get their gaps closed. */
static void shuffle(struct list *l, int most)
{
    struct emu_map m = {0};
    int in = 0;

    for (int i = 0; i < KEYS; i++)
        l->there[i] = 0;
    for (int step = 0; step < STEPS; step++) {
        int i = (int)(random_bits() % KEYS);

        if (l->there[i]) {
            emu_map_del(&m, l->key[i]);
            l->there[i] = 0;
            in--;
        } else if (in < most) {
            assert_int_equal(emu_map_put(&m, l->key[i], &l->there[i]), 0);
            l->there[i] = 1;
            in++;
        } else {
            emu_map_del(&m, l->key[i]); /* not there: nothing happens */
        }
        if (step % 16 == 0)
            find_all(&m, l);
    }
    find_all(&m, l);
    emu_map_fini(&m);
}

static void what_is_in_is_found(void **state)
{
    static const int most[] = {7, 8, 31, 100, KEYS};
    struct list random = {0}, dense = {0};

    (void)state;
    for (uint32_t i = 0; i < KEYS; i++) {
        random.key[i] = random_bits() | 1;
        dense.key[i] = i + 1;
    }
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        shuffle(&random, most[i]);
        shuffle(&dense, most[i]);
    }
}

static void an_empty_map_has_nothing(void **state)
{
    struct emu_map m = {0};

    (void)state;
    assert_null(emu_map_get(&m, 1));
    assert_null(emu_map_get(&m, 0));
    emu_map_del(&m, 1);
    emu_map_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_is_found),
        cmocka_unit_test(an_empty_map_has_nothing),
    };

    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
