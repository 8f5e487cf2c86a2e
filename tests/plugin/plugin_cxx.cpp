/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_cxx.cpp - the calls as a C++ compiler makes them, with std::vector and std::unordered_map of the real library, and structs
 * written down here a second time, as a host has them: enums that are as wide as int, bool, references. Called by test_plugin.c.
 */
#include "plugin_host.h"

#include <climits>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "plugin_cxx.h"

namespace
{

enum op_t { OP_PUT = 1, OP_P = 2, OP_GET = 4, OP_LAST = INT_MAX };
enum amo_t { AMO_ACK = 1, AMO_SWAP = 18, AMO_LAST = INT_MAX };

struct handle_t {
    char reserved[512];
};
struct verb_t {
    op_t desc;
    int is_nbi;
    int is_stream;
    void *stream;
};
struct memdesc_t {
    void *ptr;
    uint64_t offset;
    handle_t *handle;
};
struct bytesdesc_t {
    size_t nelems;
    int elembytes;
    ptrdiff_t srcstride;
    ptrdiff_t deststride;
};
struct amo_verb_t {
    amo_t desc;
    int is_fetch;
    int is_val;
    int is_cmp;
};
struct amo_verb6_t {
    amo_t desc;
    int is_fetch;
    int is_val;
    int is_cmp;
    int is_float;
};
struct amo_memdesc_t {
    memdesc_t remote;
    uint64_t retflag;
    void *retptr;
    void *valptr;
    void *cmpptr;
    uint64_t val;
    uint64_t cmp;
    handle_t *ret_handle;
};
struct amo_bytesdesc_t {
    int name_type;
    int elembytes;
};

using get_handle_3a = int (*)(handle_t *, handle_t *, void *, size_t, void *, bool);
using get_handle_3b = int (*)(handle_t *, void *, size_t, void *, bool);
using rma_fn = int (*)(void *, int, verb_t, memdesc_t *, memdesc_t *, bytesdesc_t, int);
using amo_fn = int (*)(void *, int, void *, amo_verb_t, amo_memdesc_t *, amo_bytesdesc_t, int);
using amo6_fn = int (*)(void *, int, void *, amo_verb6_t, amo_memdesc_t *, amo_bytesdesc_t, int);
using put_signal_fn = int (*)(void *, int, verb_t, std::vector<memdesc_t> &, std::vector<memdesc_t> &,
                              std::vector<bytesdesc_t> &, amo_verb_t, amo_memdesc_t *, amo_bytesdesc_t, int);
using put_signal6_fn = int (*)(void *, int, verb_t, std::vector<memdesc_t> &, std::vector<memdesc_t> &,
                               std::vector<bytesdesc_t> &, amo_verb6_t, amo_memdesc_t *, amo_bytesdesc_t, int);

/* The n-th op of a block, by the numbers of the version tables. */
template <typename F> F op(const host *h, size_t offset)
{
    F fn;
    std::memcpy(&fn, static_cast<char *>(h->t) + (h->v->major == 3 ? 16 : 128) + offset, sizeof(fn));
    return fn;
}

handle_t *handle(nvs_handle *h)
{
    return reinterpret_cast<handle_t *>(h);
}

int cxx_get_handle(host *h, void *buf, size_t len, bool local_only, nvs_handle *out)
{
    handle_t in;

    if (h->v->handle_in)
        return op<get_handle_3a>(h, 16)(handle(out), local_only ? nullptr : &in, buf, len, h->t, local_only);
    return op<get_handle_3b>(h, 16)(handle(out), buf, len, h->t, local_only);
}

int cxx_rma(host *h, const host_rma *r)
{
    verb_t verb = {static_cast<op_t>(r->desc), r->is_nbi, 0x77, nullptr};
    nvs_handle *lent = host_lend(&h->peer[r->pe]);
    memdesc_t remote = {reinterpret_cast<void *>(h->base[r->pe] + r->to), r->to, handle(lent)};
    memdesc_t local = {host_local(h, r->from), 1, handle(&h->mine)};
    bytesdesc_t bytes = {r->nelems, r->elembytes, 1, 1};
    uint64_t value = 0;

    if (r->value) {
        std::memcpy(&value, r->value, static_cast<size_t>(r->elembytes));
        local = {&value, 1, nullptr};
    }
    int status = op<rma_fn>(h, 56)(h->t, r->pe, verb, &remote, &local, bytes, r->qp);
    value = 0xdeaddeaddeaddeadu; /* the caller's stack is its own again */
    host_take_back(lent);
    return status;
}

amo_memdesc_t amo_mem(host *h, const host_amo *a)
{
    return {{reinterpret_cast<void *>(h->base[a->pe] + a->at), a->at, handle(&h->peer[a->pe])},
            a->flag,
            host_local(h, a->ret),
            nullptr,
            nullptr,
            a->val,
            a->cmp,
            handle(&h->mine)};
}

int cxx_amo(host *h, const host_amo *a)
{
    amo_t desc = static_cast<amo_t>(a->desc);
    amo_memdesc_t mem = amo_mem(h, a);
    amo_bytesdesc_t bytes = {-1, a->bytes};

    if (h->v->major >= 6)
        return op<amo6_fn>(h, 64)(h->t, a->pe, nullptr, {desc, 9, 9, 9, a->is_float}, &mem, bytes, a->qp);
    return op<amo_fn>(h, 64)(h->t, a->pe, nullptr, {desc, 9, 9, 9}, &mem, bytes, a->qp);
}

int cxx_put_signal(host *h, const host_put_signal *s)
{
    std::vector<memdesc_t> remote, local;
    std::vector<bytesdesc_t> bytes;
    verb_t verb = {static_cast<op_t>(NVS_PUT_SIGNAL), s->is_nbi, 0, nullptr};
    amo_t desc = static_cast<amo_t>(s->signal.desc);
    amo_memdesc_t mem = amo_mem(h, &s->signal);
    amo_bytesdesc_t signal_bytes = {0, s->signal.bytes};

    for (size_t i = 0; i < s->n; i++) {
        remote.push_back({reinterpret_cast<void *>(h->base[s->pe] + s->piece[i].to), 0, handle(&h->peer[s->pe])});
        local.push_back({host_local(h, s->piece[i].from), 0, handle(&h->mine)});
        bytes.push_back({s->piece[i].len, 1, 1, 1});
    }
    if (h->v->major >= 6)
        return op<put_signal6_fn>(h, 88)(h->t, s->pe, verb, remote, local, bytes, {desc, 0, 0, 0, 0}, &mem,
                                         signal_bytes, s->qp);
    return op<put_signal_fn>(h, 88)(h->t, s->pe, verb, remote, local, bytes, {desc, 0, 0, 0}, &mem, signal_bytes,
                                    s->qp);
}

int cxx_progress(host *h)
{
    if (h->v->progress_350)
        return op<int (*)(void *, int)>(h, 48)(h->t, 1);
    return op<int (*)(void *)>(h, 48)(h->t);
}

int cxx_quiet(host *h, int pe, int qp)
{
    return op<int (*)(void *, int, int)>(h, 80)(h->t, pe, qp);
}

int cxx_connect(host *h, int *out_qp, int n_qp)
{
    int none = -1;

    if (h->v->major == 3)
        return op<int (*)(void *, int *, int)>(h, 8)(h->t, &none, 1);
    return op<int (*)(void *, int *, int, int *, int)>(h, 8)(h->t, &none, 1, out_qp, n_qp);
}

} // namespace

const struct host_calls host_calls_cxx = {cxx_get_handle, cxx_rma,   cxx_amo,    cxx_put_signal,
                                          cxx_progress,   cxx_quiet, cxx_connect};

/* ---- containers ---- */

struct host_map {
    std::unordered_map<void *, void *> map;
};

static void *address(size_t i)
{
    return reinterpret_cast<void *>(0x7f0000000000 + i * 0x200000);
}

extern "C" struct host_map *host_map_new(size_t entries)
{
    host_map *m = new host_map;

    for (size_t i = 0; i < entries; i++)
        m->map[address(i)] = address(i + 1000000);
    return m;
}

extern "C" void host_map_add(struct host_map *m, void *key, void *value)
{
    m->map[key] = value;
}

extern "C" const void *host_map_raw(const struct host_map *m)
{
    return &m->map;
}

extern "C" void host_map_free(struct host_map *m)
{
    delete m;
}

extern "C" size_t host_map_wrong(const struct host_map *m, size_t entries)
{
    const nvs_map *raw = reinterpret_cast<const nvs_map *>(&m->map);
    size_t wrong = raw->count != m->map.size() || raw->bucket_count != m->map.bucket_count();

    static_assert(sizeof(decltype(m->map)) == sizeof(nvs_map) &&
                      sizeof(std::unordered_map<void *, size_t>) == sizeof(nvs_map),
                  "std::unordered_map");
    for (size_t i = 0; i < entries; i++) {
        const nvs_map_node *node = nvs_map_find(raw, address(i));

        wrong += !node || node->value != reinterpret_cast<uint64_t>(address(i + 1000000));
    }
    return wrong + (nvs_map_find(raw, address(entries)) != nullptr) + (nvs_map_find(nullptr, address(0)) != nullptr);
}

extern "C" size_t host_vector_wrong(void)
{
    std::vector<nvs_rma_mem> some(37);
    std::vector<nvs_rma_bytes> none;
    const nvs_vector *raw = reinterpret_cast<const nvs_vector *>(&some);

    static_assert(sizeof(decltype(some)) == sizeof(nvs_vector), "std::vector");
    return (raw->begin != some.data()) + (nvs_vector_count(raw, sizeof(nvs_rma_mem)) != 37) +
           (nvs_vector_count(reinterpret_cast<const nvs_vector *>(&none), sizeof(nvs_rma_bytes)) != 0) +
           (nvs_vector_count(nullptr, 8) != 0);
}
