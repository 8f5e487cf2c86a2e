/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cuda.c - see fake_cuda.h. What of the CUDA driver's interface this project calls, with its rules: a current context,
 * pinned memory that is read when the copy runs, other memory that is read at the call. Loaded by tests as libcuda.so.1.
 */
#include "fake_cuda.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, BROKEN = 700 };
enum { RANGES = 64, THREADS = 16 };

enum kind { DEVICE = 2, HOST = 1 };

struct range {
    enum kind kind;
    unsigned char *at, *seen;
    size_t len;
    bool has_context;
};

struct copy {
    struct copy *next;
    void *to;
    const void *from;
    void *kept; /* pageable bytes */
    size_t len;
};

struct stream {
    struct copy *head, **tail;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range range[RANGES];
static int ranges, copiers;
static pthread_t copier[THREADS];
static struct fake_cuda_counts counts;
static bool broken, begun;
static unsigned delay_us = 10;
static int the_context;
static _Thread_local void *current;

/** Makes a function of this file the one that a program finds by a name of CUDA's. */
#define CU(fn) __attribute__((visibility("default"), alias(fn)))

static struct range *find(const void *p)
{
    const unsigned char *at = p;

    for (int i = 0; i < ranges; i++) {
        if (at >= range[i].at && at < range[i].at + range[i].len)
            return &range[i];
    }
    return NULL;
}

/* ---- for tests ------------------------------------------------------------------------------------------------------------- */

void fake_cuda_begin(void)
{
    begun = true;
    current = &the_context;
}

void *fake_cuda_alloc(size_t len, int kind)
{
    int fd = memfd_create("fake-cuda", MFD_CLOEXEC);
    struct range r = {.kind = DEVICE, .len = len, .has_context = kind == FAKE_CUDA_PLAIN};

    if (fd < 0 || ranges == RANGES || ftruncate(fd, (off_t)len) != 0)
        return NULL;
    r.at = mmap(NULL, len, PROT_NONE, MAP_SHARED, fd, 0);
    r.seen = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (r.at == MAP_FAILED || r.seen == MAP_FAILED)
        return NULL;
    pthread_mutex_lock(&lock);
    range[ranges++] = r;
    pthread_mutex_unlock(&lock);
    return r.at;
}

unsigned char *fake_cuda_see(const void *device)
{
    struct range *r;

    pthread_mutex_lock(&lock);
    r = find(device);
    pthread_mutex_unlock(&lock);
    return r && r->kind == DEVICE ? r->seen + ((const unsigned char *)device - r->at) : NULL;
}

int fake_cuda_copiers(void)
{
    int n;

    pthread_mutex_lock(&lock);
    n = copiers;
    pthread_mutex_unlock(&lock);
    return n;
}

bool fake_cuda_copied_here(void)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < copiers; i++)
        found |= pthread_equal(copier[i], pthread_self()) != 0;
    pthread_mutex_unlock(&lock);
    return found;
}

void fake_cuda_slow(unsigned us)
{
    __atomic_store_n(&delay_us, us, __ATOMIC_RELAXED);
}

struct fake_cuda_counts fake_cuda_counts(void)
{
    struct fake_cuda_counts now;

    pthread_mutex_lock(&lock);
    now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}

void fake_cuda_break(void)
{
    pthread_mutex_lock(&lock);
    broken = true;
    pthread_mutex_unlock(&lock);
}

/* ---- contexts ---------------------------------------------------------------------------------------------------------------- */

static int ctx_get(void **ctx)
{
    *ctx = current;
    return begun ? OK : NOT_INITIALIZED;
}

static int ctx_set(void *ctx)
{
    current = ctx;
    return begun ? OK : NOT_INITIALIZED;
}

static int ctx_push(void *ctx)
{
    if (current && current != ctx)
        return INVALID_CONTEXT; /* a stack of one is enough here */
    current = ctx;
    return OK;
}

static int ctx_pop(void **ctx)
{
    *ctx = current;
    return OK; /* stays: what was pushed was current, or the thread needs none */
}

static int primary_state(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = begun && device == 0;
    return OK;
}

static int primary_retain(void **ctx, int device)
{
    *ctx = &the_context;
    return device == 0 ? OK : INVALID_VALUE;
}

static int device_count(int *n)
{
    *n = 1;
    return OK;
}

static int attribute(void *out, int what, unsigned long long ptr)
{
    struct range *r;

    pthread_mutex_lock(&lock);
    r = find((const void *)(uintptr_t)ptr);
    pthread_mutex_unlock(&lock);
    if (!begun)
        return NOT_INITIALIZED;
    if (!r)
        return INVALID_VALUE;
    if (what == 2)
        *(unsigned *)out = r->kind;
    else if (what == 1 && r->has_context)
        *(void **)out = &the_context;
    else if (what == 8)
        *(bool *)out = false; /* not managed */
    else if (what == 9)
        *(int *)out = 0;
    else
        return INVALID_VALUE;
    return OK;
}

static int ctx_device(int *device)
{
    *device = 0;
    return current ? OK : INVALID_CONTEXT;
}

static int primary_release(int device)
{
    return device == 0 ? OK : INVALID_VALUE;
}

/* No dma-bufs, no order of its own: the emulator takes GPU memory as peer memory. */
static int device_attribute(int *out, int what, int device)
{
    (void)what;
    *out = 0;
    return device == 0 ? OK : INVALID_VALUE;
}

static int device_pci(char *out, int len, int device)
{
    int n = snprintf(out, (size_t)len, "0000:3b:00.0");

    return device == 0 && n < len ? OK : INVALID_VALUE;
}

static int mem_alloc(unsigned long long *out, size_t len)
{
    void *p = current ? fake_cuda_alloc(len, FAKE_CUDA_PLAIN) : NULL;

    *out = (uintptr_t)p;
    return p ? OK : current ? OUT_OF_MEMORY : INVALID_CONTEXT;
}

/* Memory lives as long as the process. */
static int mem_free(unsigned long long ptr)
{
    return fake_cuda_see((const void *)(uintptr_t)ptr) ? OK : INVALID_VALUE;
}

static int error_name(int error, const char **out)
{
    *out = error == BROKEN ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_UNKNOWN";
    return OK;
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------ */

static int stream_create(void **out, unsigned flags)
{
    struct stream *s;

    if (flags != 1)
        return INVALID_VALUE; /* only non-blocking streams are known here */
    if (!current)
        return INVALID_CONTEXT;
    s = calloc(1, sizeof(*s));
    if (!s)
        return INVALID_VALUE;
    s->tail = &s->head;
    *out = s;
    return OK;
}

static int host_alloc(void **out, size_t len, unsigned flags)
{
    void *p = aligned_alloc(4096, (len + 4095) & ~(size_t)4095);

    (void)flags;
    if (!p || !current)
        return OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    range[ranges++] = (struct range){.kind = HOST, .at = p, .seen = p, .len = len};
    pthread_mutex_unlock(&lock);
    *out = p;
    return OK;
}

static void note_copier(void)
{
    for (int i = 0; i < copiers; i++) {
        if (pthread_equal(copier[i], pthread_self()))
            return;
    }
    if (copiers < THREADS)
        copier[copiers++] = pthread_self();
}

/** With the lock. device: the side that must be device memory, all of it. */
static int enqueue(struct stream *s, struct copy c, const void *device)
{
    const struct range *r = find(device);
    struct copy *q = malloc(sizeof(*q));

    if (!r || r->kind != DEVICE || (const unsigned char *)device + c.len > r->at + r->len || !q || !current) {
        free(q);
        return current ? INVALID_VALUE : INVALID_CONTEXT;
    }
    note_copier();
    *q = c;
    if (device == c.to && !find(c.from)) { /* pageable: read now */
        q->kept = malloc(c.len);
        if (!q->kept) {
            free(q);
            return OUT_OF_MEMORY;
        }
        memcpy(q->kept, c.from, c.len);
        q->from = q->kept;
    }
    *s->tail = q;
    s->tail = &q->next;
    return OK;
}

static int to_device(unsigned long long to, const void *from, size_t len, void *stream)
{
    int rc;

    pthread_mutex_lock(&lock);
    counts.to_device++;
    rc = enqueue(stream, (struct copy){.to = (void *)(uintptr_t)to, .from = from, .len = len}, (void *)(uintptr_t)to);
    pthread_mutex_unlock(&lock);
    return rc;
}

static int to_host(void *to, unsigned long long from, size_t len, void *stream)
{
    const void *at = (const void *)(uintptr_t)from;
    int rc;

    pthread_mutex_lock(&lock);
    counts.to_host++;
    rc = enqueue(stream, (struct copy){.to = to, .from = at, .len = len}, at);
    pthread_mutex_unlock(&lock);
    return rc;
}

/** A device asks no thread when it copies: ThreadSanitizer would take that for a race. */
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread"))) static void move(unsigned char *to, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile unsigned char *)to)[i] = ((const volatile unsigned char *)from)[i];
}
#else
static void move(unsigned char *to, const unsigned char *from, size_t n)
{
    memcpy(to, from, n);
}
#endif

static void run(struct copy *c)
{
    struct range *to = find(c->to), *from = find(c->from);
    unsigned char *d = to ? to->seen + ((unsigned char *)c->to - to->at) : c->to;
    const unsigned char *s = from ? from->seen + ((const unsigned char *)c->from - from->at) : c->from;

    if (!broken)
        move(d, s, c->len);
    free(c->kept);
    free(c);
}

static int stream_wait(void *stream)
{
    struct stream *s = stream;
    int rc;

    usleep(__atomic_load_n(&delay_us, __ATOMIC_RELAXED));
    pthread_mutex_lock(&lock);
    counts.waits++;
    while (s->head) {
        struct copy *c = s->head;

        s->head = c->next;
        run(c);
    }
    s->tail = &s->head;
    rc = broken ? BROKEN : OK;
    pthread_mutex_unlock(&lock);
    return current ? rc : INVALID_CONTEXT;
}

/* ---- under their names ------------------------------------------------------------------------------------------------------- */

CU("ctx_get") int cuCtxGetCurrent(void **ctx);
CU("ctx_set") int cuCtxSetCurrent(void *ctx);
CU("ctx_push") int cuCtxPushCurrent_v2(void *ctx);
CU("ctx_pop") int cuCtxPopCurrent_v2(void **ctx);
CU("primary_state") int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
CU("primary_retain") int cuDevicePrimaryCtxRetain(void **ctx, int device);
CU("ctx_device") int cuCtxGetDevice(int *device);
CU("primary_release") int cuDevicePrimaryCtxRelease_v2(int device);
CU("device_attribute") int cuDeviceGetAttribute(int *out, int what, int device);
CU("device_pci") int cuDeviceGetPCIBusId(char *out, int len, int device);
CU("mem_alloc") int cuMemAlloc_v2(unsigned long long *out, size_t len);
CU("mem_free") int cuMemFree_v2(unsigned long long ptr);
CU("device_count") int cuDeviceGetCount(int *n);
CU("attribute") int cuPointerGetAttribute(void *out, int what, unsigned long long ptr);
CU("error_name") int cuGetErrorName(int error, const char **out);
CU("stream_create") int cuStreamCreate(void **out, unsigned flags);
CU("stream_wait") int cuStreamSynchronize(void *stream);
CU("host_alloc") int cuMemHostAlloc(void **out, size_t len, unsigned flags);
CU("to_device") int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t len, void *stream);
CU("to_host") int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t len, void *stream);
