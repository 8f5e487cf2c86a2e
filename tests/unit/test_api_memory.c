/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_memory.c - each allocation of libbraid fails once, wherever it is made: the call says -ENOMEM in one line, takes
 * part in every round of connecting it can, and gives back what it has taken.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs; the linker puts the functions below in the
 * place of the C library's (--wrap).
 */
#include "open_rig.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names */
void *__real_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);

static unsigned made;
static unsigned fail_at = UINT32_MAX;

void *__wrap_calloc(size_t n, size_t size)
{
    return made++ == fail_at ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
    return made++ == fail_at ? NULL : __real_malloc(size);
}

int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
    return made++ == fail_at ? ENOMEM : __real_posix_memalign(out, align, size);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static int open_and_use(struct braid **b)
{
    struct braid_mem *mem;
    int rc = open_with("fake0,fake1", "channels=2", b);
    if (!rc)
        rc = connect_to_self(*b);
    if (!rc)
        rc = braid_mem_reg(*b, memory, sizeof(memory), NULL, &mem);
    return rc;
}

static unsigned lines(void)
{
    unsigned n = 0;
    for (const char *at = logged; (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    unsigned n = 0;
    for (bool reached = true; reached; n++) {
        struct braid *b = NULL;
        made = 0;
        fail_at = n;
        int rc = open_and_use(&b);
        reached = made > n;
        fail_at = UINT32_MAX;
        assert_int_equal(rc, reached ? -ENOMEM : 0);
        /* The very first is the context itself: nobody's log is known yet, so stderr has the line. */
        if (reached && n > 0 && lines() != 1)
            fail_msg("allocation %u: %u lines: %s", n, lines(), logged);
        braid_close(b);
        assert_int_equal(fake_alive(), 0);
    }
    assert_in_range(n, 15, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CLEAN(every_allocation_may_fail)};
    return cmocka_run_group_tests_name("api_memory", tests, NULL, NULL);
}
