/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_main.cu - the CUDA test program of tests/gpu/run.sh: starts NVSHMEM by a unique id that a file carries, runs the rows named,
 * prints a line for each. One of two processes; no launcher is needed.
 *
 *   gpu_test --pe P --meet FILE --rows A,B,... [--device N] [--rate BYTES] [--ports N]
 *   gpu_test --list | --info [--device N]
 *
 * Prints "row NAME pe P ok|WRONG seconds note"; a row without a line did not end. Exit status 0: all right.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu_test.h"

static const struct {
    const char *name;
    gpu_row run;
    const char *what;
} gpu_rows[] = {
    {"stream", gpu_row_stream, "put_nbi, fence, signal add: 256 KiB messages, both ways"},
    {"small", gpu_row_small, "the same with 4 to 65540 bytes, half of them as put_signal"},
    {"put_signal", gpu_row_put_signal, "put_signal_nbi: 256 KiB messages, both ways"},
    {"p", gpu_row_p, "P of 1, 2, 4 and 8 bytes"},
    {"add", gpu_row_add, "8-byte adds of both PEs on one word"},
    {"barrier", gpu_row_barrier, "barrier_all in kernels"},
    {"quiet", gpu_row_quiet, "quiet in kernels"},
    {"get", gpu_row_get, "get, get_nbi and G in kernels"},
    {"self", gpu_row_self, "put and signal to the own PE"},
    {"broadcast", gpu_row_broadcast, "broadcast in kernels"},
    {"fcollect", gpu_row_fcollect, "fcollect in kernels"},
    {"reduce", gpu_row_reduce, "sum reduce in kernels"},
    {"host", gpu_row_host, "put, get and P on the host"},
    {"host_barrier", gpu_row_host_barrier, "barrier_all on the host"},
    {"register", gpu_row_register, "buffer_register, GPU and host memory"},
    {"growth", gpu_row_growth, "nvshmem_malloc on the host while kernels put"},
    {"fetch", gpu_row_fetch, "fetch_inc, fetch_add, compare_swap, 8 bytes"},
    {"fetch4", gpu_row_fetch4, "the same, 4 bytes"},
    {"bits", gpu_row_bits, "set, swap, and, or, xor, inc, 4 and 8 bytes"},
    {"moe", gpu_row_moe, "chunks of tokens through rings, tails and credit by adds, both ways, as DeepEP does"},
    {"get_rate", gpu_row_get_rate, "gets of 1 MiB, one way"},
    {"rate", gpu_row_rate, "1 MiB messages, one way"},
};

enum { GPU_ROWS = sizeof(gpu_rows) / sizeof(gpu_rows[0]) };

static double gpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/** PE 0 makes the id, PE 1 takes it out of the file. */
static int gpu_init(struct gpu_job *job)
{
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_uniqueid_t uid = NVSHMEMX_UNIQUEID_INITIALIZER;

    if (job->pe == 0) {
        if (nvshmemx_get_uniqueid(&uid)) {
            printf("# nvshmemx_get_uniqueid failed\n");
            return 1;
        }
        memcpy(job->meet->uid, &uid, sizeof(uid));
        __atomic_store_n(&job->meet->uid_ready, 1, __ATOMIC_RELEASE);
    }
    gpu_meet_wait(job);
    memcpy(&uid, job->meet->uid, sizeof(uid));
    if (!job->meet->uid_ready || nvshmemx_set_attr_uniqueid_args(job->pe, GPU_PES, &uid, &attr))
        return 1;
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr)) {
        printf("# nvshmemx_init_attr failed\n");
        return 1;
    }
    job->n_pes = nvshmem_n_pes();
    if (job->n_pes != GPU_PES || nvshmem_my_pe() != job->pe) {
        printf("# NVSHMEM says PE %d of %d, expected %d of %d\n", nvshmem_my_pe(), job->n_pes, job->pe, GPU_PES);
        return 1;
    }
    return 0;
}

static int gpu_run_row(struct gpu_job *job, const char *name)
{
    double begin = gpu_seconds();

    for (int i = 0; i < GPU_ROWS; i++) {
        int rc;

        if (strcmp(gpu_rows[i].name, name) != 0)
            continue;
        gpu_cuda(cudaMemset(job->work, 0, GPU_WORK), "clear");
        gpu_cuda(cudaMemset(job->found, 0, sizeof(*job->found)), "clear");
        gpu_cuda(cudaDeviceSynchronize(), "clear");
        job->note[0] = 0;
        gpu_meet_wait(job);
        rc = gpu_rows[i].run(job);
        printf("row %s pe %d %s %.2f %s\n", name, job->pe, rc ? "WRONG" : "ok", gpu_seconds() - begin, job->note);
        fflush(stdout);
        gpu_meet_wait(job);
        return rc;
    }
    printf("# seen row \"%s\", expected one of gpu_test --list\n", name);
    return 1;
}

static int gpu_list(void)
{
    for (int i = 0; i < GPU_ROWS; i++)
        printf("%-14s %s\n", gpu_rows[i].name, gpu_rows[i].what);
    return 0;
}

/** What matters of the GPU, for the report. */
static int gpu_info(int device)
{
    static const struct {
        int number;
        const char *name;
    } attribute[] = {{102, "virtual memory management"},
                     {124, "dma-buf"},
                     {116, "GPUDirect RDMA"},
                     {118, "GPUDirect RDMA writes ordering"},
                     {117, "GPUDirect RDMA flush options"}};
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    int (*get)(int *, int, int) = cuda ? (int (*)(int *, int, int))dlsym(cuda, "cuDeviceGetAttribute") : NULL;
    struct cudaDeviceProp prop;

    gpu_cuda(cudaGetDeviceProperties(&prop, device), "cudaGetDeviceProperties");
    printf("GPU %d: %s, sm_%d%d, PCI %04x:%02x:%02x\n", device, prop.name, prop.major, prop.minor, prop.pciDomainID,
           prop.pciBusID, prop.pciDeviceID);
    for (size_t i = 0; get && i < sizeof(attribute) / sizeof(attribute[0]); i++) {
        int value = -1, rc = get(&value, attribute[i].number, device);

        printf("  %s: %d%s\n", attribute[i].name, value, rc ? " (not told)" : "");
    }
    return 0;
}

static int gpu_all(struct gpu_job *job, char *rows)
{
    char *rest = rows, *name;
    double begin = gpu_seconds();
    int rc = 0;

    gpu_cuda(cudaStreamCreateWithFlags(&job->stream, cudaStreamNonBlocking), "stream");
    gpu_cuda(cudaMalloc(&job->found, sizeof(*job->found)), "cudaMalloc");
    if (gpu_init(job))
        return 1;
    printf("init pe %d %.2f\n", job->pe, gpu_seconds() - begin);
    fflush(stdout);
    job->work = (char *)nvshmem_malloc(GPU_WORK);
    if (!job->work) {
        printf("# nvshmem_malloc of %zu bytes gave nothing\n", GPU_WORK);
        return 1;
    }
    while ((name = strsep(&rest, ",")) != NULL)
        rc |= *name ? gpu_run_row(job, name) : 0;
    nvshmem_free(job->work);
    nvshmem_finalize();
    printf("end pe %d %.2f\n", job->pe, gpu_seconds() - begin);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"pe", 1, NULL, 'p'},   {"meet", 1, NULL, 'm'},  {"rows", 1, NULL, 'r'},
                                            {"rate", 1, NULL, 'b'}, {"ports", 1, NULL, 'n'}, {"device", 1, NULL, 'd'},
                                            {"list", 0, NULL, 'l'}, {"info", 0, NULL, 'i'},  {0}};
    struct gpu_job job = {};
    const char *meet = NULL;
    char *rows = NULL;
    int letter, device = 0;
    bool info = false;

    job.pe = -1;
    job.rate = 50000000;
    job.ports = 1;
    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (letter == 'l')
            return gpu_list();
        if (letter == '?')
            return 2;
        info |= letter == 'i';
        job.pe = letter == 'p' ? atoi(optarg) : job.pe;
        job.rate = letter == 'b' ? strtoull(optarg, NULL, 10) : job.rate;
        job.ports = letter == 'n' ? (uint32_t)atoi(optarg) : job.ports;
        device = letter == 'd' ? atoi(optarg) : device;
        meet = letter == 'm' ? optarg : meet;
        rows = letter == 'r' ? optarg : rows;
    }
    if (info)
        return gpu_info(device);
    if (job.pe < 0 || job.pe >= GPU_PES || !meet || !rows || job.ports < 1) {
        fprintf(stderr, "gpu_test: --pe 0|1, --meet and --rows are needed (tests/gpu/run.sh gives them)\n");
        return 2;
    }
    job.other = 1 - job.pe;
    job.meet = gpu_meet_open(meet);
    gpu_cuda(cudaSetDevice(device), "cudaSetDevice");
    return !job.meet || gpu_all(&job, rows);
}
