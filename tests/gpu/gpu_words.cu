/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_words.cu - rows with single words: P of each size, atomics of each kind. Both PEs work on the same words at once where
 * that is what the row is about. Called by gpu_main.cu.
 */
#include "gpu_test.h"

enum { GPU_P = 128 /* words of each size */, GPU_P_ROUNDS = 3, GPU_EACH = 64 /* atomics each thread block issues */ };

/* ---- P ---------------------------------------------------------------------------------------------------------------------- */

struct gpu_p {
    uint8_t b[GPU_P];
    uint16_t h[GPU_P];
    uint32_t w[GPU_P];
    uint64_t l[GPU_P];
};

static __device__ void gpu_p_check(const volatile struct gpu_p *in, uint32_t seed, int t, struct gpu_found *found)
{
    uint32_t v = gpu_word(seed, t);
    uint64_t l = (uint64_t)v << 32 | gpu_word(seed + 1, t);

    if (in->b[t] != (uint8_t)v)
        gpu_wrong(found, t, in->b[t], (uint8_t)v);
    if (in->h[t] != (uint16_t)v)
        gpu_wrong(found, t + 1000, in->h[t], (uint16_t)v);
    if (in->w[t] != v)
        gpu_wrong(found, t + 2000, in->w[t], v);
    if (in->l[t] != l)
        gpu_wrong(found, t + 3000, in->l[t], l);
}

/** signal[0]: rounds that are here; signal[8]: rounds that the other has looked at. */
static __global__ void gpu_p(struct gpu_p *words, uint64_t *signal, int me, int other, struct gpu_found *found)
{
    __shared__ bool good;
    int t = threadIdx.x;

    for (uint32_t round = 0; round < GPU_P_ROUNDS; round++) {
        uint32_t seed = 10 * round + (uint32_t)me, v = gpu_word(seed, t);

        nvshmem_uint8_p(&words->b[t], (uint8_t)v, other);
        nvshmem_uint16_p(&words->h[t], (uint16_t)v, other);
        nvshmem_uint32_p(&words->w[t], v, other);
        nvshmem_uint64_p(&words->l[t], (uint64_t)v << 32 | gpu_word(seed + 1, t), other);
        __syncthreads();
        if (t == 0) {
            nvshmem_fence();
            nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, other);
            good = gpu_wait(signal, round + 1, found);
        }
        __syncthreads();
        if (!good)
            return;
        gpu_p_check(words, 10 * round + (uint32_t)other, t, found);
        __syncthreads();
        if (t == 0) {
            nvshmemx_signal_op(signal + 8, 1, NVSHMEM_SIGNAL_ADD, other);
            good = gpu_wait(signal + 8, round + 1, found);
        }
        __syncthreads();
        if (!good)
            return;
    }
    nvshmem_quiet();
}

int gpu_row_p(struct gpu_job *job)
{
    struct gpu_found found;

    gpu_p<<<1, GPU_P, 0, job->stream>>>((struct gpu_p *)(job->work + 4096), (uint64_t *)job->work, job->pe, job->other,
                                        job->found);
    snprintf(job->note, sizeof(job->note), "words=%d", GPU_P_ROUNDS * GPU_P * 4);
    return gpu_finish(job, "p", &found);
}

/* ---- adds without an answer ------------------------------------------------------------------------------------------------------ */

static __global__ void gpu_add(uint64_t *sum, int times, int me)
{
    for (int i = 0; i < times; i++)
        nvshmem_uint64_atomic_add(sum, (uint64_t)1 << (me ? 20 : 0), 0);
    nvshmem_quiet();
}

int gpu_row_add(struct gpu_job *job)
{
    uint64_t *sum = (uint64_t *)job->work, got = 0, expected = GPU_EACH * (1 + (1ull << 20)) * GPU_EACH;
    struct gpu_found found;
    int rc;

    gpu_add<<<1, GPU_EACH, 0, job->stream>>>(sum, GPU_EACH, job->pe);
    rc = gpu_finish(job, "add", &found);
    gpu_meet_wait(job);
    gpu_cuda(cudaMemcpy(&got, sum, sizeof(got), cudaMemcpyDeviceToHost), "add");
    if (job->pe == 0 && got != expected) {
        printf("# add: saw %llx, expected %llx\n", (unsigned long long)got, (unsigned long long)expected);
        rc = 1;
    }
    snprintf(job->note, sizeof(job->note), "adds=%d", GPU_EACH * GPU_EACH * GPU_PES);
    return rc;
}

/* ---- atomics with an answer ------------------------------------------------------------------------------------------------------- */

/** Both PEs take numbers from PE 0's counters: by fetch-and-inc, fetch-and-add 1, and compare-and-swap in a loop. */
template <typename T> struct gpu_take;
template <> struct gpu_take<uint64_t> {
    static __device__ uint64_t inc(uint64_t *at)
    {
        return nvshmem_uint64_atomic_fetch_inc(at, 0);
    }
    static __device__ uint64_t add(uint64_t *at)
    {
        return nvshmem_uint64_atomic_fetch_add(at, 1, 0);
    }
    static __device__ uint64_t see(uint64_t *at)
    {
        return nvshmem_uint64_atomic_fetch(at, 0);
    }
    static __device__ uint64_t cas(uint64_t *at, uint64_t c, uint64_t v)
    {
        return nvshmem_uint64_atomic_compare_swap(at, c, v, 0);
    }
};
template <> struct gpu_take<uint32_t> {
    static __device__ uint32_t inc(uint32_t *at)
    {
        return nvshmem_uint32_atomic_fetch_inc(at, 0);
    }
    static __device__ uint32_t add(uint32_t *at)
    {
        return nvshmem_uint32_atomic_fetch_add(at, 1, 0);
    }
    static __device__ uint32_t see(uint32_t *at)
    {
        return nvshmem_uint32_atomic_fetch(at, 0);
    }
    static __device__ uint32_t cas(uint32_t *at, uint32_t c, uint32_t v)
    {
        return nvshmem_uint32_atomic_compare_swap(at, c, v, 0);
    }
};

/** counter[0], [1] and [2] are taken from; taken gets what each take gave. One thread a block takes. */
template <typename T> static __global__ void gpu_takes(T *counter, T *taken, int times, struct gpu_found *found)
{
    unsigned long long end = gpu_now() + 30000000000ull;

    for (int i = 0; i < times; i++)
        taken[i] = gpu_take<T>::inc(&counter[0]);
    for (int i = 0; i < times; i++)
        taken[times + i] = gpu_take<T>::add(&counter[1]);
    for (int i = 0; i < times; i++) {
        T old = gpu_take<T>::see(&counter[2]), saw;

        while ((saw = gpu_take<T>::cas(&counter[2], old, old + 1)) != old) {
            old = saw;
            if (gpu_now() > end) {
                atomicAdd(&found->late, 1ull);
                return;
            }
        }
        taken[2 * times + i] = old;
    }
    nvshmem_quiet();
}

/** Each number below 2 * times must have been taken once by one of the PEs. */
static int gpu_taken_once(struct gpu_job *job, uint64_t value, uint32_t counter, int times)
{
    uint32_t slot = counter * 1024 + (uint32_t)value;

    if (value >= (uint64_t)times * GPU_PES || slot >= GPU_BOARD) {
        printf("# pe %d: counter %u gave %llu, expected less than %d\n", job->pe, counter, (unsigned long long)value,
               times * GPU_PES);
        return 1;
    }
    if (__atomic_fetch_add(&job->meet->board[slot], 1, __ATOMIC_SEQ_CST)) {
        printf("# pe %d: counter %u gave %llu twice\n", job->pe, counter, (unsigned long long)value);
        return 1;
    }
    return 0;
}

template <typename T> static int gpu_fetch_row(struct gpu_job *job, const char *what)
{
    static T taken[3 * GPU_EACH], counter[3];
    T *answers = (T *)(job->work + 8192);
    struct gpu_found found;
    int rc;

    gpu_takes<T><<<1, 1, 0, job->stream>>>((T *)job->work, answers, GPU_EACH, job->found);
    rc = gpu_finish(job, what, &found);
    gpu_cuda(cudaMemcpy(taken, answers, sizeof(taken), cudaMemcpyDeviceToHost), what);
    if (job->pe == 0)
        for (uint32_t i = 0; i < GPU_BOARD; i++)
            job->meet->board[i] = 0;
    gpu_meet_wait(job);
    for (int i = 0; i < 3 * GPU_EACH; i++)
        rc |= gpu_taken_once(job, taken[i], (uint32_t)i / GPU_EACH, GPU_EACH);
    gpu_cuda(cudaMemcpy(counter, job->work, sizeof(counter), cudaMemcpyDeviceToHost), what);
    for (int i = 0; job->pe == 0 && i < 3; i++) {
        if (counter[i] != (T)GPU_EACH * GPU_PES) {
            printf("# %s: counter %d is %llu at the end, expected %d\n", what, i, (unsigned long long)counter[i],
                   GPU_EACH * GPU_PES);
            rc = 1;
        }
    }
    snprintf(job->note, sizeof(job->note), "takes=%d", 3 * GPU_EACH * GPU_PES);
    return rc;
}

int gpu_row_fetch(struct gpu_job *job)
{
    return gpu_fetch_row<uint64_t>(job, "fetch, 8 bytes");
}

int gpu_row_fetch4(struct gpu_job *job)
{
    return gpu_fetch_row<uint32_t>(job, "fetch, 4 bytes");
}

/* ---- the other kinds ---------------------------------------------------------------------------------------------------------------- */

static __device__ void gpu_is(struct gpu_found *found, int step, uint64_t saw, uint64_t expected)
{
    if (saw != expected)
        gpu_wrong(found, step, saw, expected);
}

/** One PE's words at the other, which leaves them alone: each step's answer is known. */
static __global__ void gpu_bits(uint64_t *l, uint32_t *w, int other, struct gpu_found *found)
{
    nvshmem_uint64_atomic_set(l, 0xf0f0f0f0f0f0f0f0ull, other);
    nvshmem_fence();
    gpu_is(found, 1, nvshmem_uint64_atomic_swap(l, 0xff00ff00ff00ff00ull, other), 0xf0f0f0f0f0f0f0f0ull);
    gpu_is(found, 2, nvshmem_uint64_atomic_fetch_and(l, 0x0ff00ff00ff00ff0ull, other), 0xff00ff00ff00ff00ull);
    gpu_is(found, 3, nvshmem_uint64_atomic_fetch_or(l, 0x1, other), 0x0f000f000f000f00ull);
    gpu_is(found, 4, nvshmem_uint64_atomic_fetch_xor(l, 0xf, other), 0x0f000f000f000f01ull);
    nvshmem_uint64_atomic_and(l, 0xffffffffull, other);
    nvshmem_fence();
    nvshmem_uint64_atomic_or(l, 0x70, other);
    nvshmem_fence();
    nvshmem_uint64_atomic_xor(l, 0x10, other);
    nvshmem_fence();
    nvshmem_uint64_atomic_inc(l, other);
    nvshmem_fence();
    nvshmem_uint64_atomic_add(l, 0x100000000ull, other);
    nvshmem_fence();
    gpu_is(found, 5, nvshmem_uint64_atomic_fetch(l, other), 0x10f000f6full);
    nvshmem_uint32_atomic_set(w, 0xf0f0f0f0u, other);
    nvshmem_fence();
    gpu_is(found, 11, nvshmem_uint32_atomic_swap(w, 0xff00ff00u, other), 0xf0f0f0f0u);
    gpu_is(found, 12, nvshmem_uint32_atomic_fetch_and(w, 0x0ff00ff0u, other), 0xff00ff00u);
    gpu_is(found, 13, nvshmem_uint32_atomic_fetch_or(w, 0x1, other), 0x0f000f00u);
    gpu_is(found, 14, nvshmem_uint32_atomic_fetch_xor(w, 0xf, other), 0x0f000f01u);
    nvshmem_uint32_atomic_and(w, 0xffffu, other);
    nvshmem_fence();
    nvshmem_uint32_atomic_or(w, 0x70, other);
    nvshmem_fence();
    nvshmem_uint32_atomic_xor(w, 0x10, other);
    nvshmem_fence();
    nvshmem_uint32_atomic_inc(w, other);
    nvshmem_fence();
    nvshmem_uint32_atomic_add(w, 0x10000u, other);
    nvshmem_fence();
    gpu_is(found, 15, nvshmem_uint32_atomic_fetch(w, other), 0x10f6fu);
    nvshmem_quiet();
}

int gpu_row_bits(struct gpu_job *job)
{
    struct gpu_found found;
    uint32_t around[4] = {0};
    int rc;

    gpu_bits<<<1, 1, 0, job->stream>>>((uint64_t *)job->work, (uint32_t *)(job->work + 4100), job->other, job->found);
    rc = gpu_finish(job, "atomics of all kinds", &found);
    gpu_meet_wait(job);
    gpu_cuda(cudaMemcpy(around, job->work + 4096, sizeof(around), cudaMemcpyDeviceToHost), "bits");
    if (around[0] || around[2] || around[1] != 0x10f6f) {
        printf("# pe %d: around a 4-byte word: saw %x %x %x, expected 0 10f6f 0\n", job->pe, around[0], around[1],
               around[2]);
        rc = 1;
    }
    return rc;
}
