/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_host.cu - rows with calls on the host: put, get, P, G, barrier, memory of one's own as a source. Called by gpu_main.cu.
 */
#include <stdlib.h>
#include <unistd.h>

#include "gpu_test.h"

/** Sizes around where transfers are cut, and one of several MiB. */
static const size_t gpu_sizes[] = {4, 256, 260, 4096, 65536, 1 << 20, 5 << 20};

enum { GPU_SIZES = sizeof(gpu_sizes) / sizeof(gpu_sizes[0]) };

/** A word put by value, seen here and got back from there. (Releases to 3.4.5 refuse G on the host.) */
static int gpu_host_word(struct gpu_job *job)
{
    uint64_t *word = (uint64_t *)(job->work + (24 << 20)), value = 0x1234567890abcdefull, here[2] = {0, 0};

    nvshmem_uint64_p(word, value + (uint64_t)job->pe, job->other);
    nvshmem_quiet();
    gpu_meet_wait(job);
    nvshmem_getmem(word + 8, word, sizeof(*word), job->other);
    nvshmem_quiet();
    gpu_cuda(cudaMemcpy(&here[0], word, sizeof(*word), cudaMemcpyDeviceToHost), "host p");
    gpu_cuda(cudaMemcpy(&here[1], word + 8, sizeof(*word), cudaMemcpyDeviceToHost), "host p");
    if (here[0] == value + (uint64_t)job->other && here[1] == value + (uint64_t)job->pe)
        return 0;
    printf("# pe %d: host p: saw %llx here and %llx there\n", job->pe, (unsigned long long)here[0],
           (unsigned long long)here[1]);
    return 1;
}

int gpu_row_host(struct gpu_job *job)
{
    char *from = job->work, *to = job->work + (8 << 20), *got = job->work + (16 << 20);
    int rc = 0;

    for (uint32_t i = 0; i < GPU_SIZES && rc == 0; i++) {
        size_t n = gpu_sizes[i];

        gpu_fill(from, n, 2 * i + (uint32_t)job->pe);
        gpu_meet_wait(job);
        if (i % 2)
            nvshmem_putmem(to, from, n, job->other);
        else
            nvshmem_putmem_nbi(to, from, n, job->other);
        nvshmem_quiet();
        gpu_meet_wait(job);
        rc |= gpu_compare(to, n, 2 * i + (uint32_t)job->other, "host put");
        if (i % 2)
            nvshmem_getmem(got, from, n, job->other);
        else
            nvshmem_getmem_nbi(got, from, n, job->other);
        nvshmem_quiet();
        rc |= gpu_compare(got, n, 2 * i + (uint32_t)job->other, "host get");
        gpu_meet_wait(job);
    }
    return rc | gpu_host_word(job);
}

int gpu_row_host_barrier(struct gpu_job *job)
{
    size_t n = 1 << 20;
    int rc = 0;

    for (uint32_t i = 0; i < 4 && rc == 0; i++) {
        gpu_fill(job->work, n, 2 * i + (uint32_t)job->pe);
        nvshmem_putmem_nbi(job->work + (8 << 20), job->work, n, job->other);
        nvshmem_barrier_all();
        rc = gpu_compare(job->work + (8 << 20), n, 2 * i + (uint32_t)job->other, "host barrier_all");
        nvshmem_barrier_all();
    }
    return rc;
}

static int gpu_registered(struct gpu_job *job, char *own, size_t n, uint32_t seed, const char *what)
{
    int rc = nvshmemx_buffer_register(own, n);

    if (rc) {
        printf("# pe %d: %s: nvshmemx_buffer_register gave %d\n", job->pe, what, rc);
        return 1;
    }
    gpu_fill(own, n, seed + (uint32_t)job->pe);
    nvshmem_putmem(job->work, own, n, job->other);
    nvshmem_quiet();
    gpu_meet_wait(job);
    rc = gpu_compare(job->work, n, seed + (uint32_t)job->other, what);
    gpu_cuda(cudaMemset(own, 0, n), what);
    nvshmem_getmem(own, job->work, n, job->other);
    nvshmem_quiet();
    rc |= gpu_compare(own, n, seed + (uint32_t)job->pe, what);
    rc |= nvshmemx_buffer_unregister(own) != 0;
    gpu_meet_wait(job);
    return rc;
}

int gpu_row_register(struct gpu_job *job)
{
    size_t n = 2 << 20;
    char *device = NULL, *host = NULL;
    int rc;

    gpu_cuda(cudaMalloc(&device, n), "cudaMalloc");
    if (posix_memalign((void **)&host, 4096, n)) {
        printf("# no memory\n");
        return 1;
    }
    rc = gpu_registered(job, device, n, 50, "buffer_register, GPU memory");
    if (rc == 0)
        rc = gpu_registered(job, host, n, 60, "buffer_register, host memory");
    cudaFree(device);
    free(host);
    return rc;
}
