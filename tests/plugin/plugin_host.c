/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_host.c - see plugin_host.h; the calls as a C compiler makes them. Called by the tests beside it; next: the plugin's files.
 */
#include "plugin_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "nvshmem_clock.h"

static uint64_t host_now(void *arg)
{
    (void)arg;
    return fabric_emu()->now();
}

static int host_sleep(void *arg, uint64_t deadline_ns)
{
    (void)arg;
    return fabric_emu()->wait(deadline_ns);
}

__attribute__((visibility("default"))) const struct braid_plugin_clock *braid_plugin_clock(void)
{
    static struct braid_plugin_clock clocks[HOST_PES];
    int pe = fabric_emu()->pe();

    if (pe < 0 || pe >= HOST_PES)
        return NULL;
    clocks[pe] = (struct braid_plugin_clock){host_now, host_sleep, NULL};
    return &clocks[pe];
}

/* The release that the next init is told; all 0: none. */
static int host_release_of[3];

__attribute__((visibility("default"))) void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch);

/* As the host library tells its release, NVS_HOST_VERSION_NAME. */
void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch)
{
    *major = host_release_of[0];
    *minor = host_release_of[1];
    *patch = host_release_of[2];
}

nvs_init_fn host_plugin(int major)
{
    static nvs_init_fn known[8];
    const char *folder = getenv("BRAID_PLUGIN_DIR");
    char path[600];
    void *library, *address;

    if (major < 0 || major >= 8)
        return NULL;
    if (!known[major]) {
        snprintf(path, sizeof(path), "%s/nvshmem_transport_ibrc.so.%d", folder ? folder : ".", major);
        library = dlopen(path, RTLD_NOW);
        address = library ? dlsym(library, NVS_INIT_NAME) : NULL;
        if (!address)
            fprintf(stderr, "%s\n", dlerror());
        memcpy(&known[major], &address, sizeof(address));
    }
    return known[major];
}

struct nvs_ops_v3 *host_ops_v3(const struct host *h)
{
    return nvs_field(h->t, h->v->at.ops);
}

struct nvs_ops_v4 *host_ops_v4(const struct host *h)
{
    return nvs_field(h->t, h->v->at.ops);
}

struct nvs_handle *host_lend(const struct nvs_handle *handle)
{
    struct nvs_handle *lent = malloc(sizeof(*lent));

    if (lent)
        *lent = *handle;
    return lent;
}

void host_take_back(struct nvs_handle *lent)
{
    if (lent)
        memset(lent, 0xdd, sizeof(*lent));
    free(lent);
}

/* ---- calls from C ---- */

static int c_get_handle(struct host *h, void *buf, size_t len, bool local_only, struct nvs_handle *out)
{
    struct nvs_handle in;

    if (h->v->ops_v4)
        return host_ops_v4(h)->get_handle(out, buf, len, h->t, local_only);
    return h->v->handle_in ? host_ops_v3(h)->get_handle_3a(out, local_only ? NULL : &in, buf, len, h->t, local_only)
                           : host_ops_v3(h)->get_handle(out, buf, len, h->t, local_only);
}

static int c_rma(struct host *h, const struct host_rma *r)
{
    struct nvs_rma_verb verb = {.desc = r->desc, .is_nbi = r->is_nbi};
    struct nvs_handle *lent = host_lend(&h->peer[r->pe]), *own = host_lend(&h->mine);
    struct nvs_rma_mem remote = {(void *)(h->base[r->pe] + r->to), r->to, lent};
    struct nvs_rma_mem local = {host_local(h, r->from), 0x5a5a5a5a5a5a5a5a, own};
    struct nvs_rma_bytes bytes = {r->nelems, r->elembytes, 1, 1};
    uint64_t value = 0;
    int status;

    if (r->value) {
        memcpy(&value, r->value, (size_t)r->elembytes);
        local = (struct nvs_rma_mem){.ptr = &value};
    }
    status = h->v->ops_v4 ? host_ops_v4(h)->rma(h->t, r->pe, verb, &remote, &local, bytes, r->qp)
                          : host_ops_v3(h)->rma(h->t, r->pe, verb, &remote, &local, bytes, r->qp);
    host_take_back(lent);
    host_take_back(own);
    return status;
}

static struct nvs_amo_mem c_amo_mem(struct host *h, const struct host_amo *a)
{
    return (struct nvs_amo_mem){.remote = {(void *)(h->base[a->pe] + a->at), a->at, host_lend(&h->peer[a->pe])},
                                .retflag = a->flag,
                                .retptr = host_local(h, a->ret),
                                .val = a->val,
                                .cmp = a->cmp,
                                .ret_handle = host_lend(&h->mine)};
}

static void c_amo_end(struct nvs_amo_mem *mem)
{
    host_take_back(mem->remote.handle);
    host_take_back(mem->ret_handle);
    memset(mem, 0xdd, sizeof(*mem));
}

/* What the proxy does not set is garbage. */
static int c_amo(struct host *h, const struct host_amo *a)
{
    struct nvs_amo_verb verb = {a->desc, 77, 77, 77};
    struct nvs_amo_verb_v6 verb_v6 = {a->desc, 77, 77, 77, a->is_float};
    struct nvs_amo_mem mem = c_amo_mem(h, a);
    struct nvs_amo_bytes bytes = {0x7f7f7f7f, a->bytes};

    int status;

    if (!h->v->ops_v4)
        status = host_ops_v3(h)->amo(h->t, a->pe, NULL, verb, &mem, bytes, a->qp);
    else if (h->v->float_amo)
        status = host_ops_v4(h)->amo_v6(h->t, a->pe, NULL, verb_v6, &mem, bytes, a->qp);
    else
        status = host_ops_v4(h)->amo(h->t, a->pe, NULL, verb, &mem, bytes, a->qp);
    c_amo_end(&mem);
    return status;
}

static int c_put_signal(struct host *h, const struct host_put_signal *s)
{
    struct nvs_rma_mem remote[HOST_PIECES], local[HOST_PIECES];
    struct nvs_rma_bytes bytes[HOST_PIECES];
    struct nvs_vector vector[3] = {{remote, remote + s->n, remote + HOST_PIECES},
                                   {local, local + s->n, local + HOST_PIECES},
                                   {bytes, bytes + s->n, bytes + HOST_PIECES}};
    struct nvs_rma_verb verb = {.desc = NVS_PUT_SIGNAL, .is_nbi = s->is_nbi};
    struct nvs_amo_verb signal = {s->signal.desc, 77, 77, 77};
    struct nvs_amo_verb_v6 signal_v6 = {s->signal.desc, 77, 77, 77, 0};
    struct nvs_amo_mem mem = c_amo_mem(h, &s->signal);
    struct nvs_amo_bytes signal_bytes = {0, s->signal.bytes};
    int status;

    for (size_t i = 0; i < s->n; i++) {
        remote[i] = (struct nvs_rma_mem){(void *)(h->base[s->pe] + s->piece[i].to), 0, host_lend(&h->peer[s->pe])};
        local[i] = (struct nvs_rma_mem){host_local(h, s->piece[i].from), 0, &h->mine};
        bytes[i] = (struct nvs_rma_bytes){s->piece[i].len, 1, 1, 1};
    }
    status = h->v->float_amo ? host_ops_v4(h)->put_signal_v6(h->t, s->pe, verb, &vector[0], &vector[1], &vector[2],
                                                             signal_v6, &mem, signal_bytes, s->qp)
                             : host_ops_v4(h)->put_signal(h->t, s->pe, verb, &vector[0], &vector[1], &vector[2], signal,
                                                          &mem, signal_bytes, s->qp);
    for (size_t i = 0; i < s->n; i++)
        host_take_back(remote[i].handle);
    c_amo_end(&mem);
    return status;
}

static int c_progress(struct host *h)
{
    if (h->v->progress_350)
        return host_ops_v4(h)->progress_350(h->t, 1);
    return h->v->ops_v4 ? host_ops_v4(h)->progress(h->t) : host_ops_v3(h)->progress(h->t);
}

static int c_quiet(struct host *h, int pe, int qp)
{
    return h->v->ops_v4 ? host_ops_v4(h)->quiet(h->t, pe, qp) : host_ops_v3(h)->quiet(h->t, pe, qp);
}

static int c_connect(struct host *h, int *out_qp, int n_qp)
{
    int none = -1; /* n_devices - 1 */

    return h->v->ops_v4 ? host_ops_v4(h)->connect_endpoints(h->t, &none, 1, out_qp, n_qp)
                        : host_ops_v3(h)->connect_endpoints(h->t, &none, 1);
}

const struct host_calls host_calls_c = {c_get_handle, c_rma, c_amo, c_put_signal, c_progress, c_quiet, c_connect};

/* ---- life ---- */

static int host_alltoall(const void *send, void *recv, int bytes, struct nvs_boot *boot)
{
    (void)boot;
    return bytes < 0 || fabric_emu()->alltoall(send, recv, (size_t)bytes) ? 7 : 0;
}

static int host_barrier(struct nvs_boot *boot)
{
    (void)boot;
    return fabric_emu()->barrier() ? 7 : 0;
}

/* What a host writes once init has returned. */
static void host_fields(struct host *h)
{
    const struct nvs_layout *at = &h->v->at;

    h->boot = (struct nvs_boot){.pg_rank = h->f->pe,
                                .pg_size = h->f->n_pes,
                                .mype_node = 0,
                                .npes_node = 1,
                                .alltoall = host_alltoall,
                                .barrier = host_barrier};
    *(int **)nvs_field(h->t, NVS_AT_CAP) = h->cap;
    *(struct nvs_boot **)nvs_field(h->t, at->boot) = &h->boot;
    *(void **)nvs_field(h->t, at->heap_base) = h->heap;
    *(void **)nvs_field(h->t, at->cache_handle) = h;
    *(size_t *)nvs_field(h->t, at->log2_granularity) = 29;
    *(int *)nvs_field(h->t, at->index) = 1;
    *(int *)nvs_field(h->t, at->my_pe) = h->f->pe;
    *(int *)nvs_field(h->t, at->n_pes) = h->f->n_pes;
}

int host_init(struct host *h, struct fabric_pe *f, const struct nvs_version *v, const struct host_calls *call)
{
    nvs_init_fn init = host_plugin(v->major);
    unsigned char cuda[NVS_CUDA_TABLE_BYTES] = {0};
    int status;

    *h = (struct host){.f = f, .v = v, .call = call, .heap = f->bytes, .heap_len = FABRIC_MEM + FABRIC_WORDS * 8};
    memcpy(host_release_of, v->progress_350 ? (int[]){3, 5, 0} : (int[]){0, 0, 0}, sizeof(host_release_of));
    status = init ? init(&h->t, cuda, NVS_API_VERSION(v->major)) : NVS_INTERNAL;
    if (status)
        return status;
    host_fields(h);
    for (int pe = 0; pe < f->n_pes; pe++) {
        struct nvs_pe_info info = {.pe = pe};

        status = v->ops_v4 ? host_ops_v4(h)->can_reach_peer(&h->cap[pe], &info, h->t)
                           : host_ops_v3(h)->can_reach_peer(&h->cap[pe], &info, h->t);
        fabric_equal(f, status, 0, "can_reach_peer");
        fabric_equal(f, h->cap[pe], 112, "what can be reached how");
    }
    return 0;
}

int host_heap(struct host *h)
{
    struct {
        uintptr_t base;
        struct nvs_handle handle;
    } mine[HOST_PES], theirs[HOST_PES];
    int status = h->call->get_handle(h, h->heap, h->heap_len, false, &h->mine);

    if (status)
        return status;
    for (int i = 0; i < h->f->n_pes; i++) {
        mine[i].base = (uintptr_t)h->heap;
        mine[i].handle = h->mine;
    }
    if (fabric_emu()->alltoall(mine, theirs, sizeof(mine[0])))
        return NVS_INTERNAL;
    for (int i = 0; i < h->f->n_pes; i++) {
        h->base[i] = theirs[i].base;
        h->peer[i] = theirs[i].handle;
    }
    return 0;
}

int host_start(struct host *h, struct fabric_pe *f, const struct nvs_version *v, const struct host_calls *call)
{
    int status = host_init(h, f, v, call);

    if (!status)
        status = call->connect(h, NULL, 0);
    if (!status)
        status = host_barrier(&h->boot);
    return status ? status : host_heap(h);
}

int host_release(struct host *h, struct nvs_handle *handle)
{
    return h->v->ops_v4 ? host_ops_v4(h)->release_handle(handle, h->t) : host_ops_v3(h)->release_handle(handle, h->t);
}

/* Nobody frees blocks. Remembered, so that no sanitizer takes them for lost. */
static void host_leave(void *block)
{
    static void *volatile left[100000]; /* or it would be optimized away, as nobody reads it */
    static size_t count;

    left[count++ % (sizeof(left) / sizeof(left[0]))] = block;
}

int host_stop(struct host *h)
{
    int status;

    host_barrier(&h->boot);
    status = host_release(h, &h->mine);
    host_barrier(&h->boot);
    fabric_equal(h->f, status, 0, "release of the heap");
    status = h->v->ops_v4 ? host_ops_v4(h)->finalize(h->t) : host_ops_v3(h)->finalize(h->t);
    host_leave(h->t);
    h->t = NULL;
    return status;
}

int host_fence(struct host *h, int pe, int qp)
{
    if (h->v->ops_v4)
        return host_ops_v4(h)->fence ? host_ops_v4(h)->fence(h->t, pe, qp, 0) : -1;
    return host_ops_v3(h)->fence ? host_ops_v3(h)->fence(h->t, pe, qp) : -1;
}

int host_cst(struct host *h)
{
    return h->v->ops_v4 ? host_ops_v4(h)->enforce_cst(h->t) : host_ops_v3(h)->enforce_cst(h->t);
}

int host_put(struct host *h, int pe, size_t to, size_t from, size_t len)
{
    struct host_rma r = {
        .pe = pe, .desc = NVS_PUT, .is_nbi = 1, .qp = 1, .to = to, .from = from, .nelems = len, .elembytes = 1};

    return h->call->rma(h, &r);
}

int host_signal(struct host *h, int pe, int desc, int bytes, size_t at, uint64_t val)
{
    struct host_amo a = {.pe = pe, .desc = desc, .bytes = bytes, .qp = 1, .at = at, .val = val};

    return h->call->amo(h, &a);
}

int host_turn(struct host *h)
{
    int status = h->call->progress(h);

    return status ? status : fabric_emu()->wait(UINT64_MAX) ? NVS_INTERNAL : 0;
}

int host_wait_word(struct host *h, size_t at, uint64_t least)
{
    int status = 0;

    while (!status && __atomic_load_n((uint64_t *)(void *)host_at(h, at), __ATOMIC_ACQUIRE) < least)
        status = host_turn(h);
    return status;
}

int host_quiet_all(struct host *h)
{
    int status = 0;

    for (int pe = 0; !status && pe < h->f->n_pes; pe++)
        status = h->call->quiet(h, pe, 1);
    return status;
}

int host_meet(struct host *h)
{
    size_t at = h->heap_len - 8;
    int status = 0;

    h->met++;
    for (int pe = 0; !status && pe < h->f->n_pes; pe++)
        status = host_signal(h, pe, NVS_AMO_SIGNAL_ADD, 8, at, 1);
    if (!status)
        status = host_quiet_all(h);
    return status ? status : host_wait_word(h, at, h->met * (uint64_t)h->f->n_pes);
}
