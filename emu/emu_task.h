/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_task.h - what carries a PE's program: a coroutine, or a thread that runs only while it holds the baton. The
 * scheduler resumes a task; the task yields back. Exactly one of them runs at any time, whatever the vehicle.
 */
#ifndef EMU_TASK_H
#define EMU_TASK_H

#include <stdbool.h>

struct emu_task;

/** The vehicles behind one interface; emu_task_coroutines and emu_task_threads fill it. */
struct emu_task_ops {
    const char *name;
    /* Makes a task that will run fn(arg) when first resumed. NULL without memory. */
    struct emu_task *(*create)(void (*fn)(void *arg), void *arg);
    /* Runs the task until it yields or its fn returns. Called by the scheduler. */
    void (*resume)(struct emu_task *t);
    /* Gives control back to the scheduler. Called by the task itself. */
    void (*yield)(struct emu_task *t);
    /* Fetches into the cache what resume() will need. NULL: nothing is known of it. */
    void (*soon)(const struct emu_task *t);
    /* Frees a task whose fn has returned, or one that will never be resumed again (its stack is dropped). */
    void (*destroy)(struct emu_task *t);
};

/** Coroutines on the scheduler's own thread, announced to ASan and TSan. */
extern const struct emu_task_ops emu_task_coroutines;
/** One thread a task, handed a baton: for foreign code that polls under its own mutexes. */
extern const struct emu_task_ops emu_task_threads;

#endif
