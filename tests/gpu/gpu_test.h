/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_test.h - the CUDA test program, as its files see it: gpu_main.cu (start, rows, report), gpu_meet.cu (the two processes
 * outside NVSHMEM), gpu_stream.cu, gpu_moe.cu, gpu_get.cu, gpu_words.cu, gpu_sync.cu and gpu_host.cu (rows).
 *
 * Two PEs, one process each, on one GPU or two. A row is one thing that a program does with NVSHMEM; it looks at every byte
 * that it got. Kernels of two processes on one GPU take turns of about 2 ms, so rows keep much in flight and wait with deadlines.
 */
#ifndef GPU_TEST_H
#define GPU_TEST_H

#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdint.h>
#include <stdio.h>

enum { GPU_PES = 2, GPU_BOARD = 4096 };

/** Shared by the two processes, beside NVSHMEM: a file that both have mapped. */
struct gpu_meet {
    uint32_t arrived[GPU_PES]; /* meetings each one came to */
    uint32_t uid_ready;
    uint32_t board[GPU_BOARD]; /* counts by value, for rows in which each value may be seen once */
    unsigned char uid[sizeof(nvshmemx_uniqueid_t)];
};

/** What a kernel found; one in device memory, zeroed before each row. */
struct gpu_found {
    unsigned long long wrong;                /* words that were not what was sent */
    unsigned long long where, saw, expected; /* the first of them */
    unsigned long long stale;                /* of them: what was there a lap before */
    unsigned long long late;                 /* waits that ran out */
    unsigned long long first_ns, last_ns, bytes;
};

struct gpu_job {
    int pe, other, n_pes;
    cudaStream_t stream; /* does not wait for the default stream */
    struct gpu_meet *meet;
    struct gpu_found *found; /* device memory */
    char *work;              /* symmetric, GPU_WORK bytes, zeroed before each row */
    uint64_t rate;           /* bytes a second of one port, for the size of the rate row */
    uint32_t ports;
    char note[200]; /* what a row wants to tell */
};

enum : size_t { GPU_WORK = 48u << 20 };

/** A row: 0 right, else what went wrong was printed. */
typedef int (*gpu_row)(struct gpu_job *job);

/* ---- gpu_meet.cu --------------------------------------------------------------------------------------------------------- */

/** Maps the file that both processes name. NULL: said why. */
struct gpu_meet *gpu_meet_open(const char *path);
/** Waits until the other came here too. Ends the process when it does not come. */
void gpu_meet_wait(struct gpu_job *job);
/** Ends the process with a message if rc is not cudaSuccess. */
void gpu_cuda(cudaError_t rc, const char *what);
/** Waits for the stream and gives what the kernel found. 0: nothing wrong, nothing late. */
int gpu_finish(struct gpu_job *job, const char *what, struct gpu_found *found);
/** Counts words of memory that differ from the pattern of (seed, from word 0); memory of any kind. 0: none; else printed. */
int gpu_compare(const void *memory, size_t bytes, uint32_t seed, const char *what);
/** Fills memory of any kind with the pattern. */
void gpu_fill(void *memory, size_t bytes, uint32_t seed);

/* ---- what kernels share ------------------------------------------------------------------------------------------------------ */

/** Word i of a message: differs with the message, and from word to word. */
__host__ __device__ inline uint32_t gpu_word(uint32_t seed, uint32_t i)
{
    uint32_t x = seed * 0x9e3779b1u + i * 0x85ebca77u + 0x165667b1u;

    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    return x ^ (x >> 13);
}

#ifdef __CUDACC__
static __device__ inline unsigned long long gpu_now(void)
{
    unsigned long long t;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/** Waits until the word is at least value; false after 30 s. One thread. */
static __device__ inline bool gpu_wait(const uint64_t *word, uint64_t value, struct gpu_found *found)
{
    unsigned long long end = gpu_now() + 30000000000ull;

    while (*(const volatile uint64_t *)word < value) {
        if (gpu_now() > end) {
            atomicAdd(&found->late, 1ull);
            return false;
        }
    }
    __threadfence_system();
    return true;
}

static __device__ inline void gpu_wrong(struct gpu_found *found, unsigned long long where, unsigned long long saw,
                                        unsigned long long expected)
{
    if (atomicAdd(&found->wrong, 1ull) == 0) {
        found->where = where;
        found->saw = saw;
        found->expected = expected;
    }
}

/** All threads of a block look at a message. */
static __device__ inline void gpu_check(const void *data, size_t bytes, uint32_t seed, struct gpu_found *found)
{
    const volatile uint32_t *word = (const volatile uint32_t *)data;

    for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x) {
        uint32_t saw = word[i];

        if (saw != gpu_word(seed, i))
            gpu_wrong(found, ((unsigned long long)seed << 32) + i, saw, gpu_word(seed, i));
    }
}

static __device__ inline void gpu_make(void *data, size_t bytes, uint32_t seed)
{
    volatile uint32_t *word = (volatile uint32_t *)data;

    for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x)
        word[i] = gpu_word(seed, i);
    __threadfence_system();
}
#endif

/* ---- rows -------------------------------------------------------------------------------------------------------------------- */

/* gpu_stream.cu: streams of messages and signals, both ways at once */
int gpu_row_stream(struct gpu_job *job);
int gpu_row_put_signal(struct gpu_job *job);
int gpu_row_small(struct gpu_job *job);
int gpu_row_rate(struct gpu_job *job);
int gpu_row_growth(struct gpu_job *job);
/* gpu_moe.cu, gpu_get.cu: tokens through rings; gets, one way */
int gpu_row_moe(struct gpu_job *job);
int gpu_row_get_rate(struct gpu_job *job);
/* gpu_words.cu: single words and atomics */
int gpu_row_p(struct gpu_job *job);
int gpu_row_add(struct gpu_job *job);
int gpu_row_fetch(struct gpu_job *job);
int gpu_row_fetch4(struct gpu_job *job);
int gpu_row_bits(struct gpu_job *job);
/* gpu_sync.cu: barrier, quiet, get, self, collectives */
int gpu_row_barrier(struct gpu_job *job);
int gpu_row_quiet(struct gpu_job *job);
int gpu_row_get(struct gpu_job *job);
int gpu_row_self(struct gpu_job *job);
int gpu_row_broadcast(struct gpu_job *job);
int gpu_row_fcollect(struct gpu_job *job);
int gpu_row_reduce(struct gpu_job *job);
/* gpu_host.cu: calls on the host */
int gpu_row_host(struct gpu_job *job);
int gpu_row_host_barrier(struct gpu_job *job);
int gpu_row_register(struct gpu_job *job);

#endif
