/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_task_co.c - coroutines: ucontext(3) makes a stack and enters it the first time; later switches are _setjmp() and
 * _longjmp(), which leave the signal mask alone: swapcontext() makes a system call for it each time. With the announcements
 * that ASan and TSan need to follow the switches.
 * Called by emu_sim.c only.
 */
#undef _FORTIFY_SOURCE /* its longjmp() takes another stack for an error */

#include "emu_task.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define EMU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EMU_TSAN 1
#endif
#endif

#ifdef EMU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef EMU_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* ASan's longjmp() takes what it leaves for ended: it asks for the signal stack and clears the shadow of the whole stack, in each
 * switch. The compiler's own pair is unknown to it; emu_task_enter() and emu_task_leave() tell it themselves where they go. */
#if defined(EMU_ASAN) && defined(__x86_64__) && !defined(__clang__)
struct emu_place {
    void *at[5];
};
#define EMU_MARK(place) __builtin_setjmp((place)->at)
#define EMU_JUMP(place) __builtin_longjmp((place)->at, 1)
#define EMU_APART       __attribute__((noipa, no_sanitize_address))
#else
struct emu_place {
    jmp_buf at;
};
#define EMU_MARK(place) _setjmp((place)->at)
#define EMU_JUMP(place) _longjmp((place)->at, 1)
#define EMU_APART
#endif

enum { EMU_TASK_STACK = 512 * 1024, EMU_TASK_LINE = 64, EMU_TASK_FRAMES = 768 };

struct emu_task {
    ucontext_t first;
    struct emu_place self, scheduler;
    void (*fn)(void *arg);
    void *arg;
    char *stack;    /* the lowest page is a guard */
    const char *at; /* where in it the task left */
    size_t stack_len;
    bool entered, ended;
#ifdef EMU_ASAN
    void *fake_self, *fake_scheduler;
    const void *scheduler_bottom;
    size_t scheduler_size;
#endif
#ifdef EMU_TSAN
    void *fiber_self, *fiber_scheduler;
#endif
};

static size_t emu_task_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* A function of its own: the compiler's pair may not meet in one, and ASan would clear the shadow before a call that it knows does not
 * come back. */
EMU_APART static void emu_task_go(struct emu_place *place)
{
    EMU_JUMP(place);
}

static void emu_task_enter(struct emu_task *t)
{
#ifdef EMU_TSAN
    t->fiber_scheduler = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(t->fiber_self, 0);
#endif
#ifdef EMU_ASAN
    __sanitizer_start_switch_fiber(&t->fake_scheduler, t->stack + emu_task_page(), t->stack_len - emu_task_page());
#endif
    if (EMU_MARK(&t->scheduler) == 0) {
        if (t->entered)
            emu_task_go(&t->self);
        t->entered = true;
        setcontext(&t->first);
    }
#ifdef EMU_ASAN
    __sanitizer_finish_switch_fiber(t->fake_scheduler, NULL, NULL);
#endif
}

/* A task that leaves for good passes NULL, so that ASan frees its fake stack. */
static void emu_task_leave(struct emu_task *t)
{
#ifdef EMU_TSAN
    __tsan_switch_to_fiber(t->fiber_scheduler, 0);
#endif
#ifdef EMU_ASAN
    __sanitizer_start_switch_fiber(t->ended ? NULL : &t->fake_self, t->scheduler_bottom, t->scheduler_size);
#endif
    t->at = __builtin_frame_address(0);
    if (EMU_MARK(&t->self) == 0)
        emu_task_go(&t->scheduler);
#ifdef EMU_ASAN
    __sanitizer_finish_switch_fiber(t->fake_self, &t->scheduler_bottom, &t->scheduler_size);
#endif
}

/* makecontext passes ints only: the pointer travels in two halves. */
static void emu_task_main(unsigned high, unsigned low)
{
    struct emu_task *t = (struct emu_task *)(uintptr_t)(((uint64_t)high << 32) | low);

#ifdef EMU_ASAN
    __sanitizer_finish_switch_fiber(NULL, &t->scheduler_bottom, &t->scheduler_size);
#endif
    t->fn(t->arg);
    t->ended = true;
    emu_task_leave(t);
}

static void emu_task_co_destroy(struct emu_task *t)
{
    if (!t)
        return;
#ifdef EMU_TSAN
    if (t->fiber_self)
        __tsan_destroy_fiber(t->fiber_self);
#endif
    if (t->stack)
        munmap(t->stack, t->stack_len);
    free(t);
}

/* Apart from its caller, whose variables getcontext() would otherwise put at risk. */
static bool emu_task_co_prepare(struct emu_task *t)
{
    uint64_t p = (uintptr_t)t;

    if (mprotect(t->stack, emu_task_page(), PROT_NONE) != 0 || getcontext(&t->first) != 0)
        return false;
    t->first.uc_stack.ss_sp = t->stack + emu_task_page();
    t->first.uc_stack.ss_size = t->stack_len - emu_task_page();
    t->first.uc_link = NULL;
    makecontext(&t->first, (void (*)(void))emu_task_main, 2, (unsigned)(p >> 32), (unsigned)p);
    return true;
}

static struct emu_task *emu_task_co_create(void (*fn)(void *arg), void *arg)
{
    struct emu_task *t = calloc(1, sizeof(*t));
    void *stack;

    if (!t)
        return NULL;
    t->fn = fn;
    t->arg = arg;
    t->stack_len = EMU_TASK_STACK + emu_task_page();
    stack = mmap(NULL, t->stack_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        goto fail;
    t->stack = stack;
    if (!emu_task_co_prepare(t))
        goto fail;
#ifdef EMU_TSAN
    t->fiber_self = __tsan_create_fiber(0);
#endif
    return t;
fail:
    emu_task_co_destroy(t);
    return NULL;
}

static void emu_task_co_soon(const struct emu_task *t)
{
    for (size_t i = 0; i < sizeof(t->self); i += EMU_TASK_LINE)
        __builtin_prefetch((const char *)&t->self + i);
    for (size_t i = 0; t->at && i < EMU_TASK_FRAMES; i += EMU_TASK_LINE)
        __builtin_prefetch(t->at + i);
}

const struct emu_task_ops emu_task_coroutines = {
    "coroutines", emu_task_co_create, emu_task_enter, emu_task_leave, emu_task_co_soon, emu_task_co_destroy,
};
