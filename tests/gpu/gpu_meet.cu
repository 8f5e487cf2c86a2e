/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_meet.cu - what the two processes share beside NVSHMEM, and what all rows use on the host: meeting, filling, comparing.
 * Knows no row. Called by gpu_main.cu and the rows.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpu_test.h"

enum { GPU_MEET_S = 60 };

struct gpu_meet *gpu_meet_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(struct gpu_meet)) == 0)
        at = mmap(NULL, sizeof(struct gpu_meet), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        perror(path);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : (struct gpu_meet *)at;
}

void gpu_meet_wait(struct gpu_job *job)
{
    uint32_t mine = __atomic_add_fetch(&job->meet->arrived[job->pe], 1, __ATOMIC_SEQ_CST);
    time_t end = time(NULL) + GPU_MEET_S;

    while (__atomic_load_n(&job->meet->arrived[job->other], __ATOMIC_SEQ_CST) < mine) {
        struct timespec nap = {0, 200000};

        nanosleep(&nap, NULL);
        if (time(NULL) > end) {
            printf("# pe %d: the other process did not come to meeting %u in %d s\n", job->pe, mine, GPU_MEET_S);
            fflush(stdout);
            _exit(3);
        }
    }
}

void gpu_cuda(cudaError_t rc, const char *what)
{
    if (rc == cudaSuccess)
        return;
    printf("# %s: %s\n", what, cudaGetErrorString(rc));
    fflush(stdout);
    _exit(4);
}

int gpu_finish(struct gpu_job *job, const char *what, struct gpu_found *found)
{
    gpu_cuda(cudaGetLastError(), what);
    gpu_cuda(cudaMemcpyAsync(found, job->found, sizeof(*found), cudaMemcpyDeviceToHost, job->stream), what);
    gpu_cuda(cudaStreamSynchronize(job->stream), what);
    gpu_cuda(cudaMemsetAsync(job->found, 0, sizeof(*found), job->stream), what);
    gpu_cuda(cudaStreamSynchronize(job->stream), what);
    if (found->wrong)
        printf("# pe %d: %s: %llu words wrong, the first: word %llu of message %llu: saw %llx, expected %llx\n",
               job->pe, what, found->wrong, found->where & 0xffffffffu, found->where >> 32, found->saw,
               found->expected);
    if (found->stale)
        printf("# pe %d: %s: of them %llu held what was there a lap before\n", job->pe, what, found->stale);
    if (found->late)
        printf("# pe %d: %s: %llu waits ran out\n", job->pe, what, found->late);
    return found->wrong || found->late;
}

void gpu_fill(void *memory, size_t bytes, uint32_t seed)
{
    uint32_t *word = (uint32_t *)malloc(bytes);

    for (size_t i = 0; i < bytes / 4; i++)
        word[i] = gpu_word(seed, (uint32_t)i);
    gpu_cuda(cudaMemcpy(memory, word, bytes, cudaMemcpyDefault), "fill");
    free(word);
}

int gpu_compare(const void *memory, size_t bytes, uint32_t seed, const char *what)
{
    uint32_t *word = (uint32_t *)malloc(bytes);
    size_t wrong = 0;

    gpu_cuda(cudaMemcpy(word, memory, bytes, cudaMemcpyDefault), what);
    for (size_t i = 0; i < bytes / 4; i++) {
        if (word[i] != gpu_word(seed, (uint32_t)i) && wrong++ == 0)
            printf("# %s: word %zu: saw %x, expected %x\n", what, i, word[i], gpu_word(seed, (uint32_t)i));
    }
    if (wrong)
        printf("# %s: %zu of %zu words wrong\n", what, wrong, bytes / 4);
    free(word);
    return wrong != 0;
}
