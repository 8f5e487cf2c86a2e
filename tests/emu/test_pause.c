/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pause.c - the line of paused ports against a plain one that is walked along: whoever joins and leaves, the first whose packet
 * fits is the same, and so are the first that waits for each port, and how many wait. Links emu_pause.c alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emu.h"

enum { PORTS = 60, TARGETS = 5, STEPS = 40000 };

static struct emu_port port[PORTS], target[TARGETS];
static struct emu_pkt pkt[PORTS];
static struct emu_pause pause_line;

/* The plain line: numbers of ports. */
static int line[PORTS], waiting;

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32) % n;
}

static int place_of(int i)
{
    for (int at = 0; at < waiting; at++) {
        if (line[at] == i)
            return at;
    }
    return -1;
}

static void toggle(int i)
{
    static const uint32_t often[] = {86, 98, 1106, 4178, 4194};
    int at = place_of(i);

    if (at >= 0) {
        emu_pause_remove(&pause_line, &port[i]);
        memmove(&line[at], &line[at + 1], (size_t)(--waiting - at) * sizeof(line[0]));
        return;
    }
    pkt[i].wire_bytes = random_below(3) ? often[random_below(5)] : 82 + random_below(6000);
    pkt[i].dst = &target[random_below(TARGETS)];
    port[i].held.head = &pkt[i];
    emu_pause_add(&pause_line, &port[i]);
    line[waiting++] = i;
}

static struct emu_port *plain_next(uint64_t bytes, uint64_t end)
{
    for (int at = 0; at < waiting; at++) {
        if (port[line[at]].paused.number < end && pkt[line[at]].wire_bytes <= bytes)
            return &port[line[at]];
    }
    return NULL;
}

static struct emu_port *plain_wanting(const struct emu_port *dst)
{
    for (int at = 0; at < waiting; at++) {
        if (pkt[line[at]].dst == dst)
            return &port[line[at]];
    }
    return NULL;
}

static void the_first_that_fits_is_found(void **state)
{
    (void)state;
    for (int step = 0; step < STEPS; step++) {
        uint64_t bytes = random_below(7000), end = UINT64_MAX;
        int t = (int)random_below(TARGETS);

        toggle((int)random_below(step / 1000 % 2 ? PORTS : 6));
        if (waiting && step % 3 == 0)
            end = port[line[random_below((uint32_t)waiting)]].paused.number;
        assert_int_equal(pause_line.count, waiting);
        assert_ptr_equal(emu_pause_next(&pause_line, bytes, end), plain_next(bytes, end));
        assert_ptr_equal(target[t].wanted.head, plain_wanting(&target[t]));
        if (waiting) /* just what one of them needs, and a byte less */
            bytes = pkt[line[random_below((uint32_t)waiting)]].wire_bytes - random_below(2);
        assert_ptr_equal(emu_pause_next(&pause_line, bytes, UINT64_MAX), plain_next(bytes, UINT64_MAX));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_that_fits_is_found)};

    return cmocka_run_group_tests_name("pause", tests, NULL, NULL);
}
