/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_get.cu - the rate of gets: PE 1 fetches blocks of 1 MiB, many at a time, waits for them all, and looks at every byte.
 * Called by gpu_main.cu.
 */
#include "gpu_test.h"

enum { GET_MANY = 16 };
enum : size_t { GET_BLOCK = 1 << 20 };

/** One block of threads: fetches, and adds to the time that fetching took. */
static __global__ void get_fetch(const char *from, char *to, int other, struct gpu_found *found)
{
    unsigned long long began = gpu_now();

    for (int i = 0; i < GET_MANY; i++)
        nvshmemx_getmem_nbi_block(to + i * GET_BLOCK, from + i * GET_BLOCK, GET_BLOCK, other);
    __syncthreads();
    if (threadIdx.x == 0) {
        nvshmem_quiet();
        found->last_ns += gpu_now() - began;
        found->bytes += GET_MANY * GET_BLOCK;
    }
}

/** Looks at what has come, and wipes it out. */
static __global__ void get_check(char *to, int other, struct gpu_found *found)
{
    char *mine = to + blockIdx.x * GET_BLOCK;

    gpu_check(mine, GET_BLOCK, 500 + GPU_PES * blockIdx.x + (uint32_t)other, found);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < GET_BLOCK / 4; i += blockDim.x)
        ((volatile uint32_t *)mine)[i] = 0;
    __threadfence_system();
}

int gpu_row_get_rate(struct gpu_job *job)
{
    uint32_t ports = job->ports > 2 ? 2 : job->ports;
    int rounds = (int)(2.0 * (double)job->rate * ports / (double)(GET_MANY * GET_BLOCK)) + 2;
    char *from = job->work, *to = job->work + GPU_WORK / 2;
    struct gpu_found found;
    int rc = 0;

    for (uint32_t i = 0; i < GET_MANY; i++)
        gpu_fill(from + i * GET_BLOCK, GET_BLOCK, 500 + GPU_PES * i + (uint32_t)job->pe);
    gpu_meet_wait(job);
    for (int i = 0; job->pe == 1 && i < rounds; i++) {
        get_fetch<<<1, 256, 0, job->stream>>>(from, to, job->other, job->found);
        get_check<<<GET_MANY, 256, 0, job->stream>>>(to, job->other, job->found);
    }
    rc = gpu_finish(job, "get_rate", &found);
    if (job->pe == 1)
        snprintf(job->note, sizeof(job->note), "mbs=%.1f bytes=%llu",
                 found.last_ns ? (double)found.bytes * 1e3 / (double)found.last_ns : 0, found.bytes);
    return rc;
}
