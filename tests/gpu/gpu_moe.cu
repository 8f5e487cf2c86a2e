/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_moe.cu - a small exchange of experts' tokens, as DeepEP's internode dispatch does it: channels with a ring each; chunks of
 * tokens put into it, a fence, an add to the tail behind each; credit comes back by adds to the head. Receivers take the tail's word for
 * it and look at every token at once: one of the lap before is stale. Called by gpu_main.cu.
 */
#include "gpu_test.h"

enum { MOE_CHANNELS = 4, MOE_TOKEN = 14416, MOE_CHUNK = 20, MOE_SLOTS = 140, MOE_META = 18, MOE_APART = 128 };
enum : size_t { MOE_RING = (size_t)MOE_SLOTS * MOE_TOKEN, MOE_WORDS = 64 << 10 };

static_assert(MOE_SLOTS % MOE_CHUNK == 0, "a chunk never wraps");
static_assert(MOE_WORDS + 2 * MOE_CHANNELS * MOE_RING <= GPU_WORK, "rings fit");

struct moe {
    char *work; /* symmetric */
    uint32_t tokens;
};

/* ---- where things are in symmetric memory ------------------------------------------------------------------------------------- */

static __device__ uint64_t *moe_tail(struct moe m, int channel, int src)
{
    return (uint64_t *)(m.work + (channel * GPU_PES + src) * MOE_APART);
}

static __device__ uint64_t *moe_head(struct moe m, int channel)
{
    return (uint64_t *)(m.work + (16 << 10) + channel * MOE_APART);
}

static __device__ int *moe_meta(struct moe m, int channel, bool source)
{
    return (int *)(m.work + ((source ? 32 : 48) << 10) + channel * MOE_APART);
}

static __device__ char *moe_slot(struct moe m, int channel, bool source, uint32_t token)
{
    return m.work + MOE_WORDS + (2 * channel + (source ? 0 : 1)) * MOE_RING + (token % MOE_SLOTS) * (size_t)MOE_TOKEN;
}

/** Differs between senders, channels and tokens. */
static __device__ uint32_t moe_seed(int src, int channel, uint32_t token)
{
    return (token * MOE_CHANNELS + (uint32_t)channel) * GPU_PES + (uint32_t)src + 1;
}

static __device__ int moe_meta_value(struct moe m, int src, int i)
{
    return i == 0 ? (int)m.tokens : i * 1000 + src;
}

/* ---- sender --------------------------------------------------------------------------------------------------------------------- */

/** A warp: each word says by its sign that it has come. */
static __device__ void moe_send_meta(struct moe m, int channel, int me, int other)
{
    int *from = moe_meta(m, channel, true);

    if (threadIdx.x < MOE_META)
        from[threadIdx.x] = -moe_meta_value(m, me, (int)threadIdx.x) - 1;
    __threadfence_system();
    __syncwarp();
    nvshmemx_putmem_nbi_warp(moe_meta(m, channel, false), from, MOE_META * sizeof(int), other);
    nvshmem_fence();
}

static __device__ void moe_send(struct moe m, int channel, int me, int other, struct gpu_found *found)
{
    __shared__ bool good;

    if (threadIdx.x < 32)
        moe_send_meta(m, channel, me, other);
    for (uint32_t sent = 0, n; sent < m.tokens; sent += n) {
        n = m.tokens - sent < MOE_CHUNK ? m.tokens - sent : MOE_CHUNK;
        if (threadIdx.x == 0)
            good = sent + n <= MOE_SLOTS || gpu_wait(moe_head(m, channel), sent + n - MOE_SLOTS, found);
        __syncthreads();
        if (!good)
            return;
        for (uint32_t t = sent; t < sent + n; t++)
            gpu_make(moe_slot(m, channel, true, t), MOE_TOKEN, moe_seed(me, channel, t));
        __syncthreads();
        if (threadIdx.x < 32) {
            nvshmemx_putmem_nbi_warp(moe_slot(m, channel, false, sent), moe_slot(m, channel, true, sent),
                                     (size_t)n * MOE_TOKEN, other);
            nvshmem_fence();
        }
        if (threadIdx.x == 0) {
            nvshmemx_signal_op(moe_tail(m, channel, me), n, NVSHMEM_SIGNAL_ADD, other);
            nvshmemx_signal_op(moe_tail(m, channel, me), n, NVSHMEM_SIGNAL_ADD,
                               me); /* the own share is in place already */
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        gpu_wait(moe_tail(m, channel, me), m.tokens, found);
        nvshmem_quiet();
    }
}

/* ---- receiver ------------------------------------------------------------------------------------------------------------------- */

static __device__ void moe_take_meta(struct moe m, int channel, int other, struct gpu_found *found)
{
    const volatile int *word = moe_meta(m, channel, false) + threadIdx.x;
    unsigned long long end = gpu_now() + 30000000000ull;

    if (threadIdx.x >= MOE_META)
        return;
    while (*word >= 0) {
        if (gpu_now() > end) {
            atomicAdd(&found->late, 1ull);
            return;
        }
    }
    if (-*word - 1 != moe_meta_value(m, other, (int)threadIdx.x))
        gpu_wrong(found, threadIdx.x, (unsigned)(-*word - 1), (unsigned)moe_meta_value(m, other, (int)threadIdx.x));
}

/** All threads look at a token that was said to be here. */
static __device__ void moe_check(struct moe m, int channel, int other, uint32_t token, struct gpu_found *found)
{
    const volatile uint32_t *word = (const volatile uint32_t *)moe_slot(m, channel, false, token);
    uint32_t seed = moe_seed(other, channel, token);
    bool first = token < MOE_SLOTS;
    uint32_t lap = first ? 0 : moe_seed(other, channel, token - MOE_SLOTS);

    for (uint32_t i = threadIdx.x; i < MOE_TOKEN / 4; i += blockDim.x) {
        uint32_t saw = word[i];

        if (saw == gpu_word(seed, i))
            continue;
        if (saw == (first ? 0 : gpu_word(lap, i)))
            atomicAdd(&found->stale, 1ull);
        gpu_wrong(found, ((unsigned long long)token << 32) + i, saw, gpu_word(seed, i));
    }
}

/** Notes what has come since each channel's first tokens. One thread. */
static __device__ void moe_count(uint32_t before, uint32_t now, struct gpu_found *found)
{
    unsigned long long t = gpu_now();

    atomicCAS(&found->first_ns, 0ull, t);
    atomicMax(&found->last_ns, t);
    if (before)
        atomicAdd(&found->bytes, (unsigned long long)(now - before) * MOE_TOKEN);
}

static __device__ void moe_receive(struct moe m, int channel, int other, struct gpu_found *found)
{
    __shared__ uint32_t upto;
    const volatile uint64_t *tail = moe_tail(m, channel, other);
    uint32_t got = 0, credited = 0;

    moe_take_meta(m, channel, other, found);
    while (got < m.tokens) {
        if (threadIdx.x == 0) {
            upto = gpu_wait(moe_tail(m, channel, other), got + 1, found) ? (uint32_t)*tail : 0;
            if (upto > m.tokens || upto > got + MOE_SLOTS) {
                gpu_wrong(found, got, upto, m.tokens);
                upto = 0;
            }
            if (upto)
                moe_count(got, upto, found);
        }
        __syncthreads();
        if (upto == 0)
            return;
        for (; got < upto; got++)
            moe_check(m, channel, other, got, found);
        __syncthreads();
        if (threadIdx.x == 0 && (got - credited >= MOE_CHUNK || got == m.tokens))
            nvshmemx_signal_op(moe_head(m, channel), got - credited, NVSHMEM_SIGNAL_ADD, other);
        credited = got - credited >= MOE_CHUNK ? got : credited;
    }
    if (threadIdx.x == 0)
        nvshmem_quiet();
}

/** Blocks in pairs: one sends for a channel, one receives. */
static __global__ void moe_exchange(struct moe m, int me, int other, struct gpu_found *found)
{
    if (blockIdx.x % 2 == 0)
        moe_send(m, blockIdx.x / 2, me, other, found);
    else
        moe_receive(m, blockIdx.x / 2, other, found);
}

int gpu_row_moe(struct gpu_job *job)
{
    uint32_t ports = job->ports > 2 ? 2 : job->ports;
    double tokens = 2.0 * (double)job->rate * ports / ((double)MOE_TOKEN * MOE_CHANNELS);
    struct moe m = {job->work, tokens < 4 * MOE_SLOTS ? 4 * MOE_SLOTS : (uint32_t)tokens};
    struct gpu_found found;
    int rc;

    m.tokens += 7; /* the last chunk is a short one */
    moe_exchange<<<2 * MOE_CHANNELS, 256, 0, job->stream>>>(m, job->pe, job->other, job->found);
    rc = gpu_finish(job, "moe", &found);
    snprintf(job->note, sizeof(job->note), "mbs=%.1f tokens=%u stale=%llu",
             found.last_ns > found.first_ns ? (double)found.bytes * 1e3 / (double)(found.last_ns - found.first_ns) : 0,
             m.tokens * MOE_CHANNELS, found.stale);
    return rc;
}
