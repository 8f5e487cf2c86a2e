/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_pages.c - memory for simulations of many PEs. Each PE has megabytes of its own and the run goes from one to the next
 * with every packet: what takes time then is less the memory than finding it, page by page. Decides nothing that a result
 * could show. Called by bench_run.c; next: malloc(3), madvise(2).
 */
#include "bench_int.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Huge pages waste memory where little is in use. */
enum { BENCH_PAGES_PES = 32, BENCH_PAGES_BLOCK = 16 << 20, BENCH_PAGES_BLOCKS_MAX = 2048 };

void bench_pages_reserve(int n_pes)
{
    void *block[BENCH_PAGES_BLOCKS_MAX] = {NULL};
    int n = 0, most = n_pes < BENCH_PAGES_BLOCKS_MAX ? n_pes : BENCH_PAGES_BLOCKS_MAX;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from, to;

    if (n_pes < BENCH_PAGES_PES)
        return;
    mallopt(M_MMAP_THRESHOLD, 2 * BENCH_PAGES_BLOCK);
    mallopt(M_TRIM_THRESHOLD, -1);
    while (n < most && (block[n] = malloc(BENCH_PAGES_BLOCK)))
        n++;
    from = n ? ((uintptr_t)block[0] + page - 1) / page * page : 0;
    to = (uintptr_t)sbrk(0);
    if (n && from < to)                                  /* one piece, as malloc's first arena is */
        madvise((void *)from, to - from, MADV_HUGEPAGE); /* a wish */
    while (n > 0)
        free(block[--n]);
}
