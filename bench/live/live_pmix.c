/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_pmix.c - the job that a process was started in, by PMIx: mpirun, srun --mpi=pmix and other launchers answer it. The only
 * code that knows PMIx; its conventions end here. Called by live_job.c; next: pmix.h.
 */
#include "live_pmix.h"

#include <errno.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct live_pmix {
    pmix_proc_t me;
    int size;
    uint64_t shared; /* blobs so far: a name of their own each, since a name that is used again may show old bytes */
    pmix_info_t *collect; /* of a fence; lives as long as one may be under way */
    size_t handler;
    int fenced; /* 0: under way, 1: over, or a negative errno; written by PMIx's thread */
    int lost;   /* what the launcher has told, 0: nothing; written by PMIx's thread */
};

/* An event says no more than its number, and its handler gets no pointer of ours that outlives close. */
static struct live_pmix *live_pmix_open_one;

static int live_pmix_errno(pmix_status_t rc)
{
    switch (rc) {
    case PMIX_SUCCESS:
    case PMIX_OPERATION_SUCCEEDED:
        return 0;
    case PMIX_ERR_NOMEM:
        return -ENOMEM;
    case PMIX_ERR_TIMEOUT:
        return -ETIMEDOUT;
    case PMIX_ERR_UNREACH:
    case PMIX_ERR_LOST_CONNECTION:
        return -ENOTCONN;
    default:
        return -EIO;
    }
}

/* PMIx's thread. */
/* NOLINTNEXTLINE(readability-function-size): PMIx hands over so much */
static void live_pmix_told(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                           size_t infos, pmix_info_t results[], size_t n_results,
                           pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    struct live_pmix *p = live_pmix_open_one;

    (void)handler;
    (void)source;
    (void)info;
    (void)infos;
    (void)results;
    (void)n_results;
    if (p)
        __atomic_store_n(&p->lost, status, __ATOMIC_RELEASE);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

/** Asks to be told of the end of others. A launcher that does not tell ends the job itself. */
static void live_pmix_listen(struct live_pmix *p)
{
    static pmix_status_t codes[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_LOST_CONNECTION};
    pmix_status_t rc;

    live_pmix_open_one = p;
    rc = PMIx_Register_event_handler(codes, sizeof(codes) / sizeof(codes[0]), NULL, 0, live_pmix_told, NULL, NULL);
    p->handler = rc >= 0 ? (size_t)rc : SIZE_MAX;
}

static int live_pmix_ask_size(struct live_pmix *p)
{
    pmix_value_t *v = NULL;
    pmix_proc_t job;
    pmix_status_t rc;

    PMIX_LOAD_PROCID(&job, p->me.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &v);
    if (rc == PMIX_SUCCESS && v->type == PMIX_UINT32)
        p->size = (int)v->data.uint32;
    if (v)
        PMIX_VALUE_RELEASE(v);
    return rc ? live_pmix_errno(rc) : p->size > 0 ? 0 : -EPROTO;
}

int live_pmix_open(struct live_pmix **out, char *why, size_t why_len)
{
    struct live_pmix *p = calloc(1, sizeof(*p));
    bool collect = true;
    pmix_status_t rc;

    if (!p)
        return -ENOMEM;
    rc = PMIx_Init(&p->me, NULL, 0);
    if (rc != PMIX_SUCCESS) {
        snprintf(
            why, why_len,
            "no launcher answers (PMIx: %s); expected to be started by one: mpirun -n 2 braid bench ..., or srun --mpi=pmix",
            PMIx_Error_string(rc));
        free(p);
        return -ENOTCONN;
    }
    PMIX_INFO_CREATE(p->collect, 1);
    if (p->collect)
        PMIX_INFO_LOAD(p->collect, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    live_pmix_listen(p);
    if (!p->collect || live_pmix_ask_size(p)) {
        snprintf(why, why_len, "the launcher does not tell how many processes the job has (PMIx, " PMIX_JOB_SIZE ")");
        live_pmix_close(p);
        return -EPROTO;
    }
    *out = p;
    return 0;
}

void live_pmix_close(struct live_pmix *p)
{
    if (!p)
        return;
    if (p->handler != SIZE_MAX)
        PMIx_Deregister_event_handler(p->handler, NULL, NULL);
    live_pmix_open_one = NULL;
    PMIx_Finalize(NULL, 0);
    if (p->collect)
        PMIX_INFO_FREE(p->collect, 1);
    free(p);
}

int live_pmix_rank(const struct live_pmix *p)
{
    return (int)p->me.rank;
}

int live_pmix_size(const struct live_pmix *p)
{
    return p->size;
}

static void live_pmix_key(const struct live_pmix *p, char *key)
{
    snprintf(key, PMIX_MAX_KEYLEN, "braid.%llu", (unsigned long long)p->shared);
}

int live_pmix_share(struct live_pmix *p, const void *bytes, size_t len)
{
    pmix_value_t v = {.type = PMIX_BYTE_OBJECT};
    char key[PMIX_MAX_KEYLEN + 1];
    pmix_status_t rc;

    p->shared++;
    live_pmix_key(p, key);
    v.data.bo.bytes = (char *)(uintptr_t)bytes; /* copied, not changed */
    v.data.bo.size = len;
    rc = PMIx_Put(PMIX_GLOBAL, key, &v);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Commit();
    return live_pmix_errno(rc);
}

int live_pmix_fetch(struct live_pmix *p, int rank, void *out, size_t len)
{
    char key[PMIX_MAX_KEYLEN + 1];
    pmix_value_t *v = NULL;
    pmix_proc_t from;
    pmix_status_t rc;

    live_pmix_key(p, key);
    PMIX_LOAD_PROCID(&from, p->me.nspace, (pmix_rank_t)rank);
    rc = PMIx_Get(&from, key, NULL, 0, &v);
    if (rc == PMIX_SUCCESS && (v->type != PMIX_BYTE_OBJECT || v->data.bo.size != len))
        rc = PMIX_ERR_TYPE_MISMATCH;
    if (rc == PMIX_SUCCESS)
        memcpy(out, v->data.bo.bytes, len);
    if (v)
        PMIX_VALUE_RELEASE(v);
    return rc == PMIX_ERR_TYPE_MISMATCH ? -EPROTO : live_pmix_errno(rc);
}

/* PMIx's thread. */
static void live_pmix_fence_over(pmix_status_t status, void *arg)
{
    struct live_pmix *p = arg;
    int rc = live_pmix_errno(status);

    __atomic_store_n(&p->fenced, rc ? rc : 1, __ATOMIC_RELEASE);
}

int live_pmix_fence(struct live_pmix *p)
{
    pmix_status_t rc;

    p->fenced = 0;
    rc = PMIx_Fence_nb(NULL, 0, p->collect, 1, live_pmix_fence_over, p);
    if (rc == PMIX_OPERATION_SUCCEEDED)
        p->fenced = 1;
    return live_pmix_errno(rc);
}

int live_pmix_fenced(const struct live_pmix *p)
{
    return __atomic_load_n(&p->fenced, __ATOMIC_ACQUIRE);
}

const char *live_pmix_lost(const struct live_pmix *p)
{
    int status = __atomic_load_n(&p->lost, __ATOMIC_ACQUIRE);

    return status ? PMIx_Error_string(status) : NULL;
}

void live_pmix_abort(struct live_pmix *p, const char *why)
{
    (void)p;
    PMIx_Abort(1, why, NULL, 0);
}
