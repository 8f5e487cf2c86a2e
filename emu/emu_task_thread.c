/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_task_thread.c - threads that pass a baton: the scheduler posts one, waits for its own. Mutexes of the code on top
 * behave as they do in real life. Called by emu_sim.c only.
 */
#include "emu_task.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

struct emu_task {
    pthread_t thread;
    sem_t run, back;
    void (*fn)(void *arg);
    void *arg;
    bool started, ended;
};

static void emu_task_sem_wait(sem_t *s)
{
    while (sem_wait(s) != 0 && errno == EINTR)
        ;
}

static void *emu_task_thread_main(void *arg)
{
    struct emu_task *t = arg;

    emu_task_sem_wait(&t->run);
    t->fn(t->arg);
    t->ended = true;
    sem_post(&t->back);
    return NULL;
}

static struct emu_task *emu_task_thread_create(void (*fn)(void *arg), void *arg)
{
    struct emu_task *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->fn = fn;
    t->arg = arg;
    sem_init(&t->run, 0, 0);
    sem_init(&t->back, 0, 0);
    if (pthread_create(&t->thread, NULL, emu_task_thread_main, t) != 0) {
        free(t);
        return NULL;
    }
    t->started = true;
    return t;
}

static void emu_task_thread_resume(struct emu_task *t)
{
    sem_post(&t->run);
    emu_task_sem_wait(&t->back);
}

static void emu_task_thread_yield(struct emu_task *t)
{
    sem_post(&t->back);
    emu_task_sem_wait(&t->run);
}

static void emu_task_thread_destroy(struct emu_task *t)
{
    if (!t)
        return;
    if (t->ended) {
        pthread_join(t->thread, NULL);
        sem_destroy(&t->run);
        sem_destroy(&t->back);
        free(t);
        return;
    }
    /* Given up on: the thread sleeps for ever on its semaphore, so its memory has to stay. */
    pthread_detach(t->thread);
}

const struct emu_task_ops emu_task_threads = {
    "threads", emu_task_thread_create, emu_task_thread_resume, emu_task_thread_yield, NULL, emu_task_thread_destroy,
};
