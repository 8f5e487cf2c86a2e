/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_pair.cu - send and receive between two processes by an NCCL library that is found at run time, for tests/gpu/run.sh: what NCCL
 * gets out of the same emulated ports. A program of its own: knows nothing of NVSHMEM or braid.
 *
 *   nccl_pair --pe P --meet FILE --library FILE [--device N] [--rate BYTES] [--ports N]
 *
 * Prints "row NAME pe P ok|WRONG seconds note" as gpu_test does. Exit status 0: all right.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum : size_t { NCCL_BYTES = 16u << 20 };
enum { NCCL_INT8 = 0, NCCL_WAIT_S = 30, NCCL_WARM = 3 };

/* The few calls that are needed, declared here so that no header of NCCL's is. */
struct nccl_id {
    char bytes[128];
};

static struct {
    int (*version)(int *out);
    int (*unique)(struct nccl_id *out);
    int (*init)(void **out, int n, struct nccl_id id, int rank);
    int (*send)(const void *from, size_t count, int type, int peer, void *comm, cudaStream_t stream);
    int (*recv)(void *to, size_t count, int type, int peer, void *comm, cudaStream_t stream);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*destroy)(void *comm);
    const char *(*error)(int rc);
} nccl;

struct nccl_side {
    int pe;
    void *comm;
    cudaStream_t stream;
    char *from, *to;
    int rounds;
};

static void nccl_ok(int rc, const char *what)
{
    if (rc == 0)
        return;
    printf("# %s: %s\n", what, nccl.error ? nccl.error(rc) : "no such call");
    fflush(stdout);
    _exit(4);
}

static void nccl_cuda(cudaError_t rc, const char *what)
{
    if (rc == cudaSuccess)
        return;
    printf("# %s: %s\n", what, cudaGetErrorString(rc));
    fflush(stdout);
    _exit(4);
}

static int nccl_load(const char *file)
{
    static const struct {
        const char *name;
        void *to;
    } calls[] = {
        {"ncclGetVersion", &nccl.version}, {"ncclGetUniqueId", &nccl.unique},  {"ncclCommInitRank", &nccl.init},
        {"ncclSend", &nccl.send},          {"ncclRecv", &nccl.recv},           {"ncclGroupStart", &nccl.group_start},
        {"ncclGroupEnd", &nccl.group_end}, {"ncclCommDestroy", &nccl.destroy}, {"ncclGetErrorString", &nccl.error}};
    void *library = dlopen(file, RTLD_NOW);
    int version = 0;

    if (!library) {
        printf("# %s\n", dlerror());
        return 1;
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        void *found = dlsym(library, calls[i].name);

        if (!found) {
            printf("# %s has no %s\n", file, calls[i].name);
            return 1;
        }
        memcpy(calls[i].to, &found, sizeof(found));
    }
    nccl_ok(nccl.version(&version), "ncclGetVersion");
    printf("# NCCL %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
    return 0;
}

/** PE 0 makes the id and leaves it in a file; PE 1 waits for that. */
static int nccl_meet(struct nccl_side *s, const char *file)
{
    char part[4096];
    struct nccl_id id;
    FILE *f = NULL;

    if (s->pe == 0) {
        nccl_ok(nccl.unique(&id), "ncclGetUniqueId");
        snprintf(part, sizeof(part), "%s.part", file);
        f = fopen(part, "wb");
        if (!f || fwrite(&id, sizeof(id), 1, f) != 1 || fclose(f) || rename(part, file))
            return 1;
    }
    for (int i = 0; s->pe == 1 && i < NCCL_WAIT_S * 20 && !(f = fopen(file, "rb")); i++)
        usleep(50000);
    if (s->pe == 1 && (!f || fread(&id, sizeof(id), 1, f) != 1)) {
        printf("# no id in %s\n", file);
        return 1;
    }
    nccl_ok(nccl.init(&s->comm, 2, id, s->pe), "ncclCommInitRank");
    return 0;
}

static __global__ void nccl_fill(uint32_t *word, size_t words, uint32_t seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words; i += gridDim.x * (size_t)blockDim.x)
        word[i] = seed * 0x9e3779b1u + (uint32_t)i * 0x85ebca77u;
}

static __global__ void nccl_compare(const uint32_t *word, size_t words, uint32_t seed, unsigned long long *wrong)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words; i += gridDim.x * (size_t)blockDim.x) {
        if (word[i] != seed * 0x9e3779b1u + (uint32_t)i * 0x85ebca77u)
            atomicAdd(wrong, 1ull);
    }
}

static void nccl_exchange(struct nccl_side *s, bool sends, bool receives)
{
    nccl_ok(nccl.group_start(), "ncclGroupStart");
    if (sends)
        nccl_ok(nccl.send(s->from, NCCL_BYTES, NCCL_INT8, 1 - s->pe, s->comm, s->stream), "ncclSend");
    if (receives)
        nccl_ok(nccl.recv(s->to, NCCL_BYTES, NCCL_INT8, 1 - s->pe, s->comm, s->stream), "ncclRecv");
    nccl_ok(nccl.group_end(), "ncclGroupEnd");
}

/** Rounds of one message, the last of which is looked at. Each round's bytes differ from the one before. */
static int nccl_row(struct nccl_side *s, const char *name, bool sends, bool receives)
{
    unsigned long long *wrong, seen = 0;
    struct timespec a, b;
    cudaEvent_t begin, end;
    float ms = 0;

    clock_gettime(CLOCK_MONOTONIC, &a);
    nccl_cuda(cudaMalloc(&wrong, sizeof(*wrong)), "cudaMalloc");
    nccl_cuda(cudaMemset(wrong, 0, sizeof(*wrong)), "clear");
    nccl_cuda(cudaMemset(s->to, 0, NCCL_BYTES), "clear");
    nccl_cuda(cudaDeviceSynchronize(), "clear");
    nccl_cuda(cudaEventCreate(&begin), "event");
    nccl_cuda(cudaEventCreate(&end), "event");
    for (int i = 0; i < s->rounds + NCCL_WARM; i++) {
        if (i == NCCL_WARM)
            nccl_cuda(cudaEventRecord(begin, s->stream), "event");
        nccl_fill<<<64, 256, 0, s->stream>>>((uint32_t *)s->from, NCCL_BYTES / 4, 2 * i + s->pe);
        nccl_exchange(s, sends, receives);
        if (receives)
            nccl_compare<<<64, 256, 0, s->stream>>>((uint32_t *)s->to, NCCL_BYTES / 4, 2 * i + 1 - s->pe, wrong);
    }
    nccl_cuda(cudaEventRecord(end, s->stream), "event");
    nccl_cuda(cudaStreamSynchronize(s->stream), name);
    nccl_cuda(cudaEventElapsedTime(&ms, begin, end), "event");
    nccl_cuda(cudaMemcpy(&seen, wrong, sizeof(seen), cudaMemcpyDeviceToHost), name);
    nccl_cuda(cudaFree(wrong), "cudaFree");
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("row %s pe %d %s %.2f mbs=%.1f wrong=%llu\n", name, s->pe, seen ? "WRONG" : "ok",
           (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9,
           (double)s->rounds * (double)NCCL_BYTES / 1e3 / (double)ms, seen);
    fflush(stdout);
    return seen != 0;
}

static int nccl_all(struct nccl_side *s, const char *meet, int device, double rate, int ports)
{
    int rc;

    s->rounds = (int)(2.0 * rate * (ports > 2 ? 2 : ports) / (double)NCCL_BYTES) + 2;
    nccl_cuda(cudaSetDevice(device), "cudaSetDevice");
    nccl_cuda(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "stream");
    nccl_cuda(cudaMalloc(&s->from, NCCL_BYTES), "cudaMalloc");
    nccl_cuda(cudaMalloc(&s->to, NCCL_BYTES), "cudaMalloc");
    if (nccl_meet(s, meet))
        return 1;
    printf("init pe %d\n", s->pe);
    fflush(stdout);
    rc = nccl_row(s, "nccl_rate", s->pe == 0, s->pe == 1);
    rc |= nccl_row(s, "nccl_both", true, true);
    nccl_ok(nccl.destroy(s->comm), "ncclCommDestroy");
    printf("end pe %d\n", s->pe);
    return rc;
}

/** Where a library that we only load died. Says what it can and ends as the signal would have. */
static void nccl_died(int sig)
{
    void *at[48];
    int n = backtrace(at, 48);

    backtrace_symbols_fd(at, n, STDERR_FILENO);
    signal(sig, SIG_DFL);
    raise(sig);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"pe", 1, NULL, 'p'},
                                            {"meet", 1, NULL, 'm'},
                                            {"library", 1, NULL, 'l'},
                                            {"rate", 1, NULL, 'b'},
                                            {"ports", 1, NULL, 'n'},
                                            {"device", 1, NULL, 'd'},
                                            {0}};
    struct nccl_side s = {};
    const char *meet = NULL, *library = NULL;
    double rate = 50e6;
    int letter, device = 0, ports = 1;

    s.pe = -1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGSEGV, nccl_died);
    signal(SIGABRT, nccl_died);
    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (letter == '?')
            return 2;
        s.pe = letter == 'p' ? atoi(optarg) : s.pe;
        rate = letter == 'b' ? atof(optarg) : rate;
        ports = letter == 'n' ? atoi(optarg) : ports;
        device = letter == 'd' ? atoi(optarg) : device;
        meet = letter == 'm' ? optarg : meet;
        library = letter == 'l' ? optarg : library;
    }
    if (s.pe < 0 || s.pe > 1 || !meet || !library) {
        fprintf(stderr, "nccl_pair: --pe 0|1, --meet and --library are needed (tests/gpu/run.sh gives them)\n");
        return 2;
    }
    return nccl_load(library) || nccl_all(&s, meet, device, rate, ports);
}
