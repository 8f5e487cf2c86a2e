/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_stream.cu - rows with streams: messages into a ring of the other PE, a signal behind each, credit back; the receiver
 * reads each message as soon as its signal is there. Called by gpu_main.cu.
 */
#include <string.h>

#include "gpu_test.h"

enum gpu_form { GPU_FENCE, GPU_PUT_SIGNAL };

struct gpu_ring {
    char *source, *target; /* slots of bytes each, symmetric */
    uint64_t *tail, *head; /* symmetric: messages here, credit here */
    size_t bytes;
    uint32_t slots, messages;
    int form;
    bool sends, receives;
};

static __device__ void gpu_send(struct gpu_ring r, int me, int other, struct gpu_found *found)
{
    __shared__ bool good;

    for (uint32_t k = 0; k < r.messages; k++) {
        size_t at = (k % r.slots) * r.bytes;

        if (threadIdx.x == 0)
            good = k < r.slots || gpu_wait(r.head, k - r.slots + 1, found);
        __syncthreads();
        if (!good)
            return;
        gpu_make(r.source + at, r.bytes, 2 * k + (uint32_t)me);
        __syncthreads();
        if (r.form == GPU_PUT_SIGNAL) {
            nvshmemx_putmem_signal_nbi_block(r.target + at, r.source + at, r.bytes, r.tail, 1, NVSHMEM_SIGNAL_ADD,
                                             other);
        } else {
            nvshmemx_putmem_nbi_block(r.target + at, r.source + at, r.bytes, other);
            if (threadIdx.x == 0) {
                nvshmem_fence();
                nvshmemx_signal_op(r.tail, 1, NVSHMEM_SIGNAL_ADD, other);
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        nvshmem_quiet();
}

static __device__ void gpu_receive(struct gpu_ring r, int other, struct gpu_found *found)
{
    __shared__ bool good;

    for (uint32_t k = 0; k < r.messages; k++) {
        if (threadIdx.x == 0) {
            good = gpu_wait(r.tail, k + 1, found);
            if (k == r.messages / 8)
                found->first_ns = gpu_now();
        }
        __syncthreads();
        if (!good)
            return;
        gpu_check(r.target + (k % r.slots) * r.bytes, r.bytes, 2 * k + (uint32_t)other, found);
        __syncthreads();
        if (threadIdx.x == 0)
            nvshmemx_signal_op(r.head, 1, NVSHMEM_SIGNAL_ADD, other);
    }
    if (threadIdx.x == 0) {
        found->last_ns = gpu_now();
        found->bytes = (r.messages - 1 - r.messages / 8) * (unsigned long long)r.bytes;
        nvshmem_quiet();
    }
}

/** Block 0 sends, block 1 receives. */
static __global__ void gpu_stream(struct gpu_ring r, int me, int other, struct gpu_found *found)
{
    if (blockIdx.x == 0 && r.sends)
        gpu_send(r, me, other, found);
    else if (blockIdx.x == 1 && r.receives)
        gpu_receive(r, other, found);
}

static struct gpu_ring gpu_ring_at(struct gpu_job *job, size_t bytes, uint32_t slots, uint32_t messages, int form)
{
    size_t half = GPU_WORK / 2 - 4096;
    struct gpu_ring r = {job->work + 4096, job->work + 4096 + half, (uint64_t *)job->work, (uint64_t *)job->work + 8};

    r.bytes = bytes;
    r.slots = slots * bytes > half ? (uint32_t)(half / bytes) : slots;
    r.messages = messages;
    r.form = form;
    r.sends = r.receives = true;
    return r;
}

static void gpu_start(struct gpu_job *job, struct gpu_ring r)
{
    gpu_stream<<<2, 256, 0, job->stream>>>(r, job->pe, job->other, job->found);
}

/** A message takes about this long on one port: rows last as long whatever the rate. */
static uint32_t gpu_messages(const struct gpu_job *job, size_t bytes, double seconds)
{
    double n = seconds * (double)job->rate * (double)(job->ports > 2 ? 2 : job->ports) / (double)bytes;

    return n < 16 ? 16 : n > 4000 ? 4000 : (uint32_t)n;
}

static int gpu_run_stream(struct gpu_job *job, struct gpu_ring r, const char *what)
{
    struct gpu_found found;
    int rc;

    gpu_start(job, r);
    rc = gpu_finish(job, what, &found);
    if (rc == 0 && found.last_ns > found.first_ns)
        snprintf(job->note, sizeof(job->note), "mbs=%.1f messages=%u bytes=%zu",
                 (double)found.bytes * 1e3 / (double)(found.last_ns - found.first_ns), r.messages, r.bytes);
    else
        snprintf(job->note, sizeof(job->note), "messages=%u bytes=%zu", r.messages, r.bytes);
    return rc;
}

int gpu_row_stream(struct gpu_job *job)
{
    return gpu_run_stream(job, gpu_ring_at(job, 256 << 10, 64, gpu_messages(job, 256 << 10, 1.5), GPU_FENCE), "stream");
}

int gpu_row_put_signal(struct gpu_job *job)
{
    return gpu_run_stream(job, gpu_ring_at(job, 256 << 10, 64, gpu_messages(job, 256 << 10, 1.5), GPU_PUT_SIGNAL),
                          "put_signal");
}

/* Odd sizes below and around where puts are cut. */
int gpu_row_small(struct gpu_job *job)
{
    static const size_t size[] = {4, 72, 252, 260, 4100, 14416, 65540};
    int rc = 0;

    for (size_t i = 0; i < sizeof(size) / sizeof(size[0]) && rc == 0; i++) {
        gpu_cuda(cudaMemset(job->work, 0, GPU_WORK), "clear");
        gpu_meet_wait(job);
        rc = gpu_run_stream(job, gpu_ring_at(job, size[i], 32, 80, i % 2 ? GPU_FENCE : GPU_PUT_SIGNAL), "small");
        gpu_meet_wait(job);
    }
    job->note[0] = 0;
    return rc;
}

/* One way, large puts: what two ports carry against one. */
int gpu_row_rate(struct gpu_job *job)
{
    double seconds = 3;
    struct gpu_ring r = gpu_ring_at(job, 1 << 20, 20, 16, GPU_FENCE);

    r.messages = (uint32_t)(seconds * (double)job->rate * (double)job->ports / (double)r.bytes);
    r.messages = r.messages < 24 ? 24 : r.messages;
    r.sends = job->pe == 0;
    r.receives = job->pe == 1;
    return gpu_run_stream(job, r, "rate");
}

/* The heap grows on the host while kernels put; then what was given is used. */
int gpu_row_growth(struct gpu_job *job)
{
    enum { GROW = 6 };
    size_t bytes = 40u << 20, look = 1u << 20;
    struct gpu_found found;
    char *more[GROW];
    int rc = 0;

    gpu_start(job, gpu_ring_at(job, 256 << 10, 64, gpu_messages(job, 256 << 10, 2), GPU_FENCE));
    for (int i = 0; i < GROW; i++) {
        more[i] = (char *)nvshmem_malloc(bytes);
        if (!more[i]) {
            printf("# pe %d: nvshmem_malloc number %d gave nothing\n", job->pe, i);
            rc = 1;
        }
    }
    rc |= gpu_finish(job, "growth: the stream", &found);
    for (int i = 0; i < GROW && rc == 0; i++) {
        gpu_fill(more[i], look, 1000u + 2 * i + job->pe);
        gpu_cuda(cudaMemset(more[i] + bytes - look, 0, look), "clear");
        gpu_meet_wait(job);
        nvshmem_putmem(more[i] + bytes - look, more[i], look, job->other);
        nvshmem_quiet();
        gpu_meet_wait(job);
        rc = gpu_compare(more[i] + bytes - look, look, 1000u + 2 * i + job->other, "growth: new memory");
    }
    for (int i = GROW - 1; i >= 0; i--)
        nvshmem_free(more[i]);
    snprintf(job->note, sizeof(job->note), "grown=%zuMiB", GROW * bytes >> 20);
    return rc;
}
