/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_caller.cc - calls into a plugin as a host in C++ makes them: structs declared here, by value where the interface says so,
 * real std::vector references and a real std::unordered_map. Offsets and sizes come from the compiler, not from us.
 */
#include "host_call.h"

#include <new>
#include <unordered_map>
#include <vector>

namespace
{

/* As a host declares them. That they are what nvshmem_abi.h says is what is tested, so nothing is asserted here. */
struct handle {
    char bytes[512];
};
struct rma_verb {
    int desc;
    int is_nbi;
    int is_stream;
    void *stream;
};
struct rma_mem {
    void *ptr;
    uint64_t offset;
    handle *mem_handle;
};
struct rma_bytes {
    size_t nelems;
    int elembytes;
    ptrdiff_t srcstride;
    ptrdiff_t deststride;
};
struct amo_verb {
    int desc;
    int is_fetch;
    int is_val;
    int is_cmp;
};
struct amo_verb_float {
    int desc;
    int is_fetch;
    int is_val;
    int is_cmp;
    int is_float;
};
struct amo_mem {
    rma_mem remote;
    uint64_t retflag;
    void *retptr, *valptr, *cmpptr;
    uint64_t val, cmp;
    handle *ret_handle;
};
struct amo_bytes {
    int name_type;
    int elembytes;
};

/** The same bytes under the other declaration. */
template <class To, class From> To same(const From &from)
{
    union {
        From from;
        To to;
    } u = {from};

    static_assert(sizeof(To) <= sizeof(From), "a verb may be shorter, nothing else");
    return u.to;
}

int cxx_connect(const nvs_version *v, host_fn fn, void *t, int *ids, int n, int *qp, int n_qp)
{
    return v->ops_v4 ? reinterpret_cast<int (*)(void *, int *, int, int *, int)>(fn)(t, ids, n, qp, n_qp)
                     : reinterpret_cast<int (*)(void *, int *, int)>(fn)(t, ids, n);
}

int cxx_get_handle(const nvs_version *v, host_fn fn, void *t, nvs_handle *out, void *buf, size_t len, bool local_only)
{
    handle in = {}, *mh = reinterpret_cast<handle *>(out);

    if (v->handle_in)
        return reinterpret_cast<int (*)(handle *, handle *, void *, size_t, void *, bool)>(fn)(
            mh, local_only ? nullptr : &in, buf, len, t, local_only);
    return reinterpret_cast<int (*)(handle *, void *, size_t, void *, bool)>(fn)(mh, buf, len, t, local_only);
}

int cxx_progress(const nvs_version *v, host_fn fn, void *t)
{
    return v->progress_350 ? reinterpret_cast<int (*)(void *, int)>(fn)(t, 1)
                           : reinterpret_cast<int (*)(void *)>(fn)(t);
}

/* NOLINTNEXTLINE(readability-function-size): as many arguments as the interface has */
int cxx_rma(const nvs_version *, host_fn fn, void *t, int pe, const nvs_rma_verb *verb, nvs_rma_mem *remote,
            nvs_rma_mem *local, const nvs_rma_bytes *bytes, int qp)
{
    return reinterpret_cast<int (*)(void *, int, rma_verb, rma_mem *, rma_mem *, rma_bytes, int)>(fn)(
        t, pe, same<rma_verb>(*verb), reinterpret_cast<rma_mem *>(remote), reinterpret_cast<rma_mem *>(local),
        same<rma_bytes>(*bytes), qp);
}

int cxx_amo(const nvs_version *v, host_fn fn, void *t, int pe, const nvs_amo_verb_v6 *verb, nvs_amo_mem *mem,
            const nvs_amo_bytes *bytes, int qp)
{
    amo_mem *m = reinterpret_cast<amo_mem *>(mem);

    if (v->float_amo)
        return reinterpret_cast<int (*)(void *, int, void *, amo_verb_float, amo_mem *, amo_bytes, int)>(fn)(
            t, pe, nullptr, same<amo_verb_float>(*verb), m, same<amo_bytes>(*bytes), qp);
    return reinterpret_cast<int (*)(void *, int, void *, amo_verb, amo_mem *, amo_bytes, int)>(fn)(
        t, pe, nullptr, same<amo_verb>(*verb), m, same<amo_bytes>(*bytes), qp);
}

int cxx_fence(const nvs_version *v, host_fn fn, void *t, int pe, int qp)
{
    return v->ops_v4 ? reinterpret_cast<int (*)(void *, int, int, int)>(fn)(t, pe, qp, 0)
                     : reinterpret_cast<int (*)(void *, int, int)>(fn)(t, pe, qp);
}

int cxx_quiet(const nvs_version *, host_fn fn, void *t, int pe, int qp)
{
    return reinterpret_cast<int (*)(void *, int, int)>(fn)(t, pe, qp);
}

template <class Verb>
/* NOLINTNEXTLINE(readability-function-size): as many arguments as the interface has */
int signal(host_fn fn, void *t, int pe, const nvs_rma_verb *verb, const host_pieces *p, const nvs_amo_verb_v6 *sv,
           nvs_amo_mem *s, const nvs_amo_bytes *sb, int qp)
{
    std::vector<rma_mem> remote, local;
    std::vector<rma_bytes> bytes;

    for (size_t i = 0; i < p->n; i++) {
        remote.push_back(same<rma_mem>(p->remote[i]));
        local.push_back(same<rma_mem>(p->local[i]));
        bytes.push_back(same<rma_bytes>(p->bytes[i]));
    }
    return reinterpret_cast<int (*)(void *, int, rma_verb, std::vector<rma_mem> &, std::vector<rma_mem> &,
                                    std::vector<rma_bytes> &, Verb, amo_mem *, amo_bytes, int)>(fn)(
        t, pe, same<rma_verb>(*verb), remote, local, bytes, same<Verb>(*sv), reinterpret_cast<amo_mem *>(s),
        same<amo_bytes>(*sb), qp);
}

/* NOLINTNEXTLINE(readability-function-size): as many arguments as the interface has */
int cxx_put_signal(const nvs_version *v, host_fn fn, void *t, int pe, const nvs_rma_verb *verb, const host_pieces *p,
                   const nvs_amo_verb_v6 *sv, nvs_amo_mem *s, const nvs_amo_bytes *sb, int qp)
{
    return v->float_amo ? signal<amo_verb_float>(fn, t, pe, verb, p, sv, s, sb, qp)
                        : signal<amo_verb>(fn, t, pe, verb, p, sv, s, sb, qp);
}

using map = std::unordered_map<void *, void *>;

void *cxx_map_new()
{
    return new (std::nothrow) map();
}

int cxx_map_add(void *m, void *key, void *value)
{
    map &to = *static_cast<map *>(m);

    /* Others around it, so that it is not the only one in a bucket. */
    for (uintptr_t i = 1; i < 40; i++)
        to[reinterpret_cast<void *>(i << 40)] = nullptr;
    to[key] = value;
    return 0;
}

void cxx_map_free(void *m)
{
    delete static_cast<map *>(m);
}

} // namespace

extern "C" const struct host_caller suite_caller_cxx;
const struct host_caller suite_caller_cxx = {
    "C++",     cxx_connect, cxx_get_handle, cxx_progress, cxx_rma,     cxx_amo,
    cxx_fence, cxx_quiet,   cxx_put_signal, cxx_map_new,  cxx_map_add, cxx_map_free,
};
