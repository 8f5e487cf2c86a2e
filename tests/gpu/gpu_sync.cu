/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_sync.cu - rows with calls that wait, inside kernels: barrier, quiet, get, signals to oneself, broadcast, fcollect,
 * reduce. Called by gpu_main.cu.
 */
#include "gpu_test.h"

enum { GPU_ROUNDS = 24, GPU_ELEMENTS = 3000 };

/* ---- barrier ------------------------------------------------------------------------------------------------------------------ */

/** What was put before a barrier is there behind it. */
static __global__ void gpu_barrier(char *from, char *to, size_t bytes, int me, int other, struct gpu_found *found)
{
    for (uint32_t round = 0; round < GPU_ROUNDS; round++) {
        gpu_make(from, bytes, 2 * round + (uint32_t)me);
        __syncthreads();
        nvshmemx_putmem_nbi_block(to, from, bytes, other);
        nvshmemx_barrier_all_block();
        gpu_check(to, bytes, 2 * round + (uint32_t)other, found);
        __syncthreads();
        nvshmemx_barrier_all_block();
    }
}

int gpu_row_barrier(struct gpu_job *job)
{
    struct gpu_found found;

    gpu_barrier<<<1, 256, 0, job->stream>>>(job->work, job->work + (4 << 20), 256 << 10, job->pe, job->other,
                                            job->found);
    snprintf(job->note, sizeof(job->note), "barriers=%d", 2 * GPU_ROUNDS);
    return gpu_finish(job, "barrier_all", &found);
}

/* ---- quiet ---------------------------------------------------------------------------------------------------------------------- */

/** Behind a quiet the data is at the target, and the source may be written again: the flag needs no fence. */
static __global__ void gpu_quiet(char *from, char *to, size_t bytes, uint64_t *flag, int me, int other,
                                 struct gpu_found *found)
{
    __shared__ bool good;

    for (uint32_t round = 0; round < GPU_ROUNDS; round++) {
        gpu_make(from, bytes, 2 * round + (uint32_t)me);
        __syncthreads();
        nvshmemx_putmem_nbi_block(to, from, bytes, other);
        __syncthreads();
        if (threadIdx.x == 0)
            nvshmem_quiet();
        __syncthreads();
        gpu_make(from, bytes, 0xdead);
        __syncthreads();
        if (threadIdx.x == 0) {
            nvshmem_uint64_p(flag, round + 1, other);
            good = gpu_wait(flag, round + 1, found);
        }
        __syncthreads();
        if (!good)
            return;
        gpu_check(to, bytes, 2 * round + (uint32_t)other, found);
        __syncthreads();
        if (threadIdx.x == 0) {
            nvshmem_uint64_p(flag + 8, round + 1, other);
            good = gpu_wait(flag + 8, round + 1, found);
        }
        __syncthreads();
        if (!good)
            return;
    }
}

int gpu_row_quiet(struct gpu_job *job)
{
    struct gpu_found found;

    gpu_quiet<<<1, 256, 0, job->stream>>>(job->work + 4096, job->work + (8 << 20), 512 << 10, (uint64_t *)job->work,
                                          job->pe, job->other, job->found);
    snprintf(job->note, sizeof(job->note), "quiets=%d", GPU_ROUNDS);
    return gpu_finish(job, "quiet", &found);
}

/* ---- get, G --------------------------------------------------------------------------------------------------------------------- */

static __global__ void gpu_get(char *theirs, char *here, size_t bytes, int other, struct gpu_found *found)
{
    for (uint32_t round = 0; round < 4; round++) {
        size_t at = round * bytes;

        if (round % 2) {
            nvshmemx_getmem_block(here + at, theirs + at, bytes, other);
        } else {
            nvshmemx_getmem_nbi_block(here + at, theirs + at, bytes, other);
            __syncthreads();
            if (threadIdx.x == 0)
                nvshmem_quiet();
        }
        __syncthreads();
        gpu_check(here + at, bytes, 100 + 2 * round + (uint32_t)other, found);
        __syncthreads();
    }
    if (threadIdx.x < 16) {
        uint32_t saw = nvshmem_uint32_g((uint32_t *)theirs + threadIdx.x, other);

        if (saw != gpu_word(100 + (uint32_t)other, threadIdx.x))
            gpu_wrong(found, threadIdx.x, saw, gpu_word(100 + (uint32_t)other, threadIdx.x));
    }
}

int gpu_row_get(struct gpu_job *job)
{
    struct gpu_found found;
    size_t bytes = 768 << 10;

    for (uint32_t round = 0; round < 4; round++)
        gpu_fill(job->work + round * bytes, bytes, 100 + 2 * round + (uint32_t)job->pe);
    gpu_meet_wait(job);
    gpu_get<<<1, 256, 0, job->stream>>>(job->work, job->work + (16 << 20), bytes, job->other, job->found);
    return gpu_finish(job, "get", &found);
}

/* ---- to oneself ------------------------------------------------------------------------------------------------------------------ */

/** As DeepEP does: data to the own PE, and an add on the own counter through the transport. */
static __global__ void gpu_self(char *from, char *to, size_t bytes, uint64_t *tail, int me, struct gpu_found *found)
{
    __shared__ bool good;

    for (uint32_t round = 0; round < GPU_ROUNDS; round++) {
        gpu_make(from, bytes, 3 * round + (uint32_t)me);
        __syncthreads();
        nvshmemx_putmem_nbi_block(to, from, bytes, me);
        __syncthreads();
        if (threadIdx.x == 0) {
            nvshmem_fence();
            nvshmemx_signal_op(tail, 1, NVSHMEM_SIGNAL_ADD, me);
            good = gpu_wait(tail, round + 1, found);
        }
        __syncthreads();
        if (!good)
            return;
        gpu_check(to, bytes, 3 * round + (uint32_t)me, found);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        nvshmem_quiet();
}

int gpu_row_self(struct gpu_job *job)
{
    struct gpu_found found;

    gpu_self<<<1, 256, 0, job->stream>>>(job->work + 4096, job->work + (8 << 20), 128 << 10, (uint64_t *)job->work,
                                         job->pe, job->found);
    return gpu_finish(job, "self", &found);
}

/* ---- collectives ------------------------------------------------------------------------------------------------------------------ */

enum gpu_collective { GPU_BROADCAST, GPU_FCOLLECT, GPU_REDUCE };

static __device__ void gpu_collected(int kind, const int *to, int i, int round, struct gpu_found *found)
{
    int zero = 10000 * round + i, one = zero + 5000000;
    int expected = kind == GPU_BROADCAST ? (round % GPU_PES ? one : zero)
                   : kind == GPU_REDUCE  ? zero + one
                                         : (i < GPU_ELEMENTS ? zero : one - GPU_ELEMENTS);
    int saw = ((const volatile int *)to)[i];

    if (saw != expected)
        gpu_wrong(found, ((unsigned long long)round << 32) + i, saw, expected);
}

static __global__ void gpu_collective(int kind, int *from, int *to, int me, struct gpu_found *found)
{
    int n = kind == GPU_FCOLLECT ? GPU_PES * GPU_ELEMENTS : GPU_ELEMENTS;

    for (int round = 0; round < 6; round++) {
        for (int i = threadIdx.x; i < GPU_ELEMENTS; i += blockDim.x)
            from[i] = 10000 * round + i + (me ? 5000000 : 0);
        __threadfence_system();
        __syncthreads();
        if (kind == GPU_BROADCAST)
            nvshmemx_int32_broadcast_block(NVSHMEM_TEAM_WORLD, to, from, GPU_ELEMENTS, round % GPU_PES);
        else if (kind == GPU_FCOLLECT)
            nvshmemx_int32_fcollect_block(NVSHMEM_TEAM_WORLD, to, from, GPU_ELEMENTS);
        else
            nvshmemx_int32_sum_reduce_block(NVSHMEM_TEAM_WORLD, to, from, GPU_ELEMENTS);
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            gpu_collected(kind, to, i, round, found);
        __syncthreads();
        nvshmemx_barrier_all_block();
    }
}

static int gpu_run_collective(struct gpu_job *job, int kind, const char *what)
{
    struct gpu_found found;

    gpu_collective<<<1, 256, 0, job->stream>>>(kind, (int *)job->work, (int *)(job->work + (4 << 20)), job->pe,
                                               job->found);
    return gpu_finish(job, what, &found);
}

int gpu_row_broadcast(struct gpu_job *job)
{
    return gpu_run_collective(job, GPU_BROADCAST, "broadcast");
}

int gpu_row_fcollect(struct gpu_job *job)
{
    return gpu_run_collective(job, GPU_FCOLLECT, "fcollect");
}

int gpu_row_reduce(struct gpu_job *job)
{
    return gpu_run_collective(job, GPU_REDUCE, "reduce");
}
