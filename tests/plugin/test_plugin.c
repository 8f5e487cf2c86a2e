/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plugin.c - the NVSHMEM plugin's files as a host of each interface version sees them, called from C and from C++, over
 * the emulated fabric in virtual time: bytes, words, atomics, put with signal.
 */
#include "plugin_rig.h"

/* ---- bytes ---- */

static const size_t sizes[] = {0, 1, 8, 255, 256, 257, 4097, 65536, 300001};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Puts to the next PE and to itself, then gets them back; by the proxy, and by a thread of the host's. */
static int pe_bytes(struct host *h)
{
    int n = h->f->n_pes, me = h->f->pe, next = (me + 1) % n, status = 0;

    for (int i = 0; !status && i < 2 * SIZES; i++) {
        size_t len = sizes[i / 2];
        struct host_rma put = {
            .desc = NVS_PUT, .is_nbi = 1, .qp = i % 2, .from = 64, .to = HALF, .nelems = len, .elembytes = 1};
        struct host_rma get = {.desc = i % 4 < 2 ? NVS_GET : NVS_G,
                               .is_nbi = 1,
                               .qp = i % 2,
                               .to = HALF,
                               .from = 800000,
                               .nelems = len,
                               .elembytes = 1};

        fill(host_at(h, 64), len, (uint64_t)(i * 10 + me));
        memset(host_at(h, HALF), 0xee, len + 8);
        status = host_meet(h);
        put.pe = get.pe = next;
        status = status ? status : h->call->rma(h, &put);
        status = status ? status : h->call->quiet(h, next, put.qp);
        status = status ? status : host_meet(h);
        check(h, same(h, HALF, len, (uint64_t)(i * 10 + (me + n - 1) % n)), "the bytes put");
        check(h, *host_at(h, HALF + len) == 0xee, "the byte behind them");
        status = status ? status : h->call->rma(h, &get);
        status = status ? status : h->call->quiet(h, next, get.qp);
        check(h, same(h, 800000, len, (uint64_t)(i * 10 + me)), "the bytes got");
        status = status ? status : host_meet(h);
        put.pe = me;
        put.to = HALF + 400000;
        status = status ? status : h->call->rma(h, &put);
        status = status ? status : h->call->quiet(h, me, put.qp);
        check(h, same(h, HALF + 400000, len, (uint64_t)(i * 10 + me)), "the bytes put to oneself");
    }
    return status;
}

static void bytes_arrive(void **state)
{
    (void)state;
    run_all(pe_bytes, "nodes=2,gpus=1,ports=1");
    run_all(pe_bytes, "nodes=2,gpus=1,ports=2");
    run_all(pe_bytes, "nodes=3,gpus=1,ports=4,mtu=1024,jitter=1us");
}

/* What is not "nbi" has ended when it returns; a P only has been read. */
static int pe_blocking(struct host *h)
{
    int other = 1 - h->f->pe, status = 0;
    struct host_rma put = {
        .pe = other, .desc = NVS_PUT, .qp = 1, .from = 0, .to = HALF, .nelems = 100000, .elembytes = 4};
    struct host_rma get = {
        .pe = other, .desc = NVS_GET, .qp = 0, .to = 0, .from = HALF + 500000, .nelems = 400000, .elembytes = 1};

    fill(host_at(h, 0), 400000, (uint64_t)h->f->pe);
    status = host_meet(h);
    status = status ? status : h->call->rma(h, &put);
    memset(host_at(h, 0), 0, 400000);
    status = status ? status : host_meet(h);
    check(h, same(h, HALF, 400000, (uint64_t)other), "a blocking put has read its source");
    fill(host_at(h, 0), 400000, (uint64_t)h->f->pe + 7);
    status = status ? status : host_meet(h);
    status = status ? status : h->call->rma(h, &get);
    check(h, same(h, HALF + 500000, 400000, (uint64_t)other + 7), "a blocking get has brought its bytes");
    return status ? status : host_meet(h);
}

static void blocking_forms_block(void **state)
{
    (void)state;
    run_all(pe_blocking, "nodes=2,gpus=1,ports=2");
}

static int pe_small(struct host *h)
{
    uint64_t value = 0x1122334455667788;
    int other = 1 - h->f->pe, status = 0;

    for (int i = 0; !status && i < 4; i++) {
        struct host_rma p = {.pe = other,
                             .desc = NVS_P,
                             .is_nbi = 0,
                             .qp = i % 2,
                             .to = WORD + (size_t)i * 8,
                             .nelems = 1,
                             .elembytes = 1 << i,
                             .value = &value};

        status = h->call->rma(h, &p);
    }
    status = status ? status : h->call->quiet(h, other, 0);
    status = status ? status : host_meet(h);
    check(h, *word(h, 0) == 0x88 && *word(h, 1) == 0x7788 && *word(h, 2) == 0x55667788 && *word(h, 3) == value, "P");
    return status;
}

static void small_values_are_taken_from_the_stack(void **state)
{
    (void)state;
    run_all(pe_small, "nodes=2,gpus=1,ports=2");
}

/* ---- a batch ---- */

enum { BATCH = 32, BATCH_LEN = HALF / BATCH, BY_PUT = 0, BY_PUT_SIGNAL, BY_HOST, BATCHES };

/* Some time, then a long put. */
static int batch_put(struct host *h, size_t i, int by)
{
    size_t from = i * BATCH_LEN, to = HALF + from;
    struct host_put_signal s = {.pe = 1, .is_nbi = 1, .qp = 1, .n = 1, .piece = {{to, from, BATCH_LEN}}};
    struct host_rma put = {
        .pe = 1, .desc = NVS_PUT, .is_nbi = 1, .from = from, .to = to, .nelems = BATCH_LEN, .elembytes = 1};

    s.signal = (struct host_amo){.pe = 1, .desc = NVS_AMO_SIGNAL_ADD, .bytes = 8, .at = WORD, .val = 1};
    put.qp = by == BY_HOST ? 0 : 1;
    h->f->run->emu->charge(1500);
    return by == BY_PUT_SIGNAL ? h->call->put_signal(h, &s) : h->call->rma(h, &put);
}

/* As the proxy: a batch of long puts and no call of progress until long after. How many have arrived by the time when nearly all
 * could have; of those that a thread of the host's has asked for few, since it leaves progress to others. */
static int pe_batch(struct host *h)
{
    int status = 0;

    for (int by = 0; !status && by < BATCHES; by++) {
        int arrived = 0;

        if (by == BY_PUT_SIGNAL && !h->v->ops_v4)
            continue;
        memset(host_at(h, 0), 1, HALF);
        memset(host_at(h, HALF), 0, HALF);
        status = host_meet(h);
        for (size_t i = 0; !status && h->f->pe == 0 && i < BATCH; i++)
            status = batch_put(h, i, by);
        h->f->run->emu->charge(h->f->pe == 0 ? 60000 : 75000);
        for (size_t i = 1; i <= BATCH; i++)
            arrived += *host_at(h, HALF + i * BATCH_LEN - 1);
        if (h->f->pe == 1)
            check(h, by == BY_HOST ? arrived <= BATCH / 4 : arrived >= BATCH * 3 / 4, "what arrives within a batch");
        status = status ? status : h->call->quiet(h, 1 - h->f->pe, NVS_QP_ANY);
        status = status ? status : host_meet(h);
    }
    return status;
}

static void lanes_do_not_run_dry_within_a_batch(void **state)
{
    (void)state;
    run_all(pe_batch, "nodes=2,gpus=1,ports=2,rate=200G,latency=2.5us");
}

/* ---- atomics ---- */

struct amo_case {
    int desc;
    bool fetch;
    uint64_t val, cmp, before, after;
};

static const struct amo_case amo_cases[] = {
    {NVS_AMO_INC, false, 99, 0, 41, 42},
    {NVS_AMO_SET, false, 7, 0, 41, 7},
    {NVS_AMO_ADD, false, 5, 0, 41, 46},
    {NVS_AMO_AND, false, 0xf0, 0, 0xff, 0xf0},
    {NVS_AMO_OR, false, 0xf0, 0, 0x0f, 0xff},
    {NVS_AMO_XOR, false, 0xff, 0, 0x0f, 0xf0},
    {NVS_AMO_SIGNAL, false, 12, 0, 1, 12},
    {NVS_AMO_SIGNAL_SET, false, 13, 0, 1, 13},
    {NVS_AMO_SIGNAL_ADD, false, 13, 0, 1, 14},
    {NVS_AMO_FETCH, true, 99, 0, 41, 41},
    {NVS_AMO_FETCH_INC, true, 99, 0, 41, 42},
    {NVS_AMO_FETCH_ADD, true, 5, 0, 41, 46},
    {NVS_AMO_FETCH_AND, true, 0xf0, 0, 0xff, 0xf0},
    {NVS_AMO_FETCH_OR, true, 0xf0, 0, 0x0f, 0xff},
    {NVS_AMO_FETCH_XOR, true, 0xff, 0, 0x0f, 0xf0},
    {NVS_AMO_SWAP, true, 77, 0, 41, 77},
    {NVS_AMO_COMPARE_SWAP, true, 77, 41, 41, 77},
    {NVS_AMO_COMPARE_SWAP, true, 77, 40, 41, 41},
};

/* PE 0's word, by PE 1; the word beside it stays what it is. */
static int amo_one(struct host *h, const struct amo_case *c, int bytes, uint64_t flag)
{
    struct nvs_fetch_slot *slot = (struct nvs_fetch_slot *)(void *)host_at(h, SLOT);
    struct host_amo a = {.pe = 0,
                         .desc = c->desc,
                         .bytes = bytes,
                         .qp = 1,
                         .at = WORD,
                         .ret = SLOT,
                         .val = c->val,
                         .cmp = c->cmp,
                         .flag = flag};
    uint64_t guard = 0xabcdef0100000000, before = bytes == 4 ? guard | c->before : c->before;
    int status;

    *word(h, 0) = before;
    *slot = (struct nvs_fetch_slot){~UINT64_C(0), 0};
    status = host_meet(h);
    if (h->f->pe == 1) {
        status = status ? status : h->call->amo(h, &a);
        while (!status && c->fetch && __atomic_load_n(&slot->flag, __ATOMIC_ACQUIRE) != flag)
            status = host_turn(h);
        fabric_equal(h->f, (long long)slot->data, c->fetch ? (long long)c->before : -1, "what was fetched");
        status = status ? status : h->call->quiet(h, 0, 1);
    }
    status = status ? status : host_meet(h);
    if (h->f->pe == 0)
        fabric_equal(h->f, (long long)*word(h, 0), (long long)(bytes == 4 ? guard | c->after : c->after), "the word");
    return status;
}

static int pe_atomics(struct host *h)
{
    int status = 0;

    for (unsigned i = 0; !status && i < sizeof(amo_cases) / sizeof(amo_cases[0]); i++) {
        status = amo_one(h, &amo_cases[i], 8, i + 100);
        status = status ? status : amo_one(h, &amo_cases[i], 4, i + 1000);
    }
    return status;
}

static void every_atomic_on_4_and_8_bytes(void **state)
{
    (void)state;
    run_all(pe_atomics, "nodes=2,gpus=1,ports=2");
    run_all(pe_atomics, "nodes=2,gpus=1,ports=1");
}

/* More fetches than there are places, all by one quiet, by all PEs on one word. */
static int pe_many_fetches(struct host *h)
{
    enum { COUNT = 600 };
    bool seen[FABRIC_PES * COUNT] = {false};
    int status = host_meet(h);

    for (int i = 0; !status && i < COUNT; i++) {
        struct host_amo a = {
            .pe = 0, .desc = NVS_AMO_FETCH_INC, .bytes = 8, .qp = 1, .at = WORD, .ret = (size_t)i * 16, .flag = 5};

        status = h->call->amo(h, &a);
    }
    status = status ? status : host_quiet_all(h);
    for (int i = 0; !status && i < COUNT; i++) {
        const struct nvs_fetch_slot *slot = (const void *)host_at(h, (size_t)i * 16);

        check(h, slot->flag == 5 && slot->data < (uint64_t)(h->f->n_pes * COUNT) && !seen[slot->data],
              "a fetch's result");
        seen[slot->data % (FABRIC_PES * COUNT)] = true;
    }
    status = status ? status : host_meet(h);
    if (h->f->pe == 0)
        fabric_equal(h->f, (long long)*word(h, 0), h->f->n_pes * COUNT, "the sum");
    return status;
}

static void quiet_covers_results_on_their_way(void **state)
{
    (void)state;
    run_all(pe_many_fetches, "nodes=3,gpus=1,ports=2");
}

/* A thread of the host's fetches too: nothing of it is left when the call returns but the way to the slot. */
static int pe_host_fetch(struct host *h)
{
    struct host_amo a = {
        .pe = h->f->pe, .desc = NVS_AMO_FETCH_ADD, .bytes = 8, .qp = 0, .at = WORD, .ret = SLOT, .val = 3, .flag = 9};
    struct nvs_fetch_slot *slot = (struct nvs_fetch_slot *)(void *)host_at(h, SLOT);
    int status;

    slot->data = ~UINT64_C(0);
    status = h->call->amo(h, &a);
    while (!status && __atomic_load_n(&slot->flag, __ATOMIC_ACQUIRE) != 9)
        status = host_turn(h);
    check(h, slot->data == 0, "a result before its flag");
    status = status ? status : h->call->quiet(h, h->f->pe, 0);
    check(h, slot->data == 0 && slot->flag == 9 && *word(h, 0) == 3, "a fetch by a thread of the host's");
    return status;
}

static void host_threads_fetch_too(void **state)
{
    (void)state;
    run_all(pe_host_fetch, "nodes=1,gpus=1,ports=2");
}

/* Version 6: floats, which nobody's hardware adds. A signal behind them is behind them. */
static int pe_floats(struct host *h)
{
    double *sum = (double *)(void *)word(h, 0);
    float *small = (float *)(void *)word(h, 1);
    double one = 0.5;
    float quarter = 0.25;
    uint64_t bits = 0, small_bits = 0;
    int status;

    memcpy(&bits, &one, sizeof(one));
    memcpy(&small_bits, &quarter, sizeof(quarter));
    status = host_meet(h);
    for (int i = 0; !status && i < 20; i++) {
        struct host_amo a = {.pe = 0, .desc = NVS_AMO_ADD, .bytes = 8, .qp = 1, .is_float = 1, .at = WORD, .val = bits};
        struct host_amo b = {.pe = 0,
                             .desc = NVS_AMO_FETCH_ADD,
                             .bytes = 4,
                             .qp = 1,
                             .is_float = 1,
                             .at = WORD + 8,
                             .ret = SLOT,
                             .val = small_bits,
                             .flag = 1};

        status = h->call->amo(h, &a);
        status = status ? status : h->call->amo(h, &b);
    }
    status = status ? status : host_signal(h, 0, NVS_AMO_SIGNAL_ADD, 8, WORD + 16, 1);
    if (h->f->pe == 0) {
        status = status ? status : host_wait_word(h, WORD + 16, (uint64_t)h->f->n_pes);
        check(h, *sum == 10.0 * h->f->n_pes && *small == 5.0f * (float)h->f->n_pes, "sums of floats");
    }
    return status ? status : host_meet(h);
}

static void floats_are_added(void **state)
{
    (void)state;
    assert_int_equal(setenv("BRAID_PORTS", "mlx5_0:1,mlx5_1:1", 1), 0);
    for (int way = 0; way < HOST_WAYS; way++) {
        struct test t = {nvs_version_at(5), way ? &host_calls_cxx : &host_calls_c, pe_floats};

        run_one(&t, "nodes=3,gpus=1,ports=2", 1);
    }
}

/* ---- put with signal ---- */

/* So many pieces of growing length, and the signal behind them: whoever sees it sees them. */
static int put_signal_one(struct host *h, size_t pieces, int desc, int bytes, bool nbi, uint64_t round)
{
    struct host_put_signal s = {.pe = 1, .is_nbi = nbi, .qp = 1, .n = pieces};
    int status = 0;

    s.signal = (struct host_amo){
        .pe = 1, .desc = desc, .bytes = bytes, .at = WORD, .val = desc == NVS_AMO_SIGNAL_ADD ? 1 : round};
    for (size_t i = 0; i < pieces; i++) {
        s.piece[i].len = i * 997 % 32768;
        s.piece[i].from = i * 32768;
        s.piece[i].to = HALF + i * 32768;
    }
    if (h->f->pe == 0) {
        for (size_t i = 0; i < pieces; i++)
            fill(host_at(h, s.piece[i].from), s.piece[i].len, round * 100 + i);
        status = h->call->put_signal(h, &s);
        status = status ? status : h->call->quiet(h, 1, 1);
    } else {
        status = host_wait_word(h, WORD, round);
        for (size_t i = 0; i < pieces; i++)
            check(h, same(h, s.piece[i].to, s.piece[i].len, round * 100 + i), "a piece before its signal");
    }
    return status ? status : host_meet(h);
}

static int pe_put_signal(struct host *h)
{
    int status = put_signal_one(h, 0, NVS_AMO_SIGNAL_SET, 8, true, 1);

    status = status ? status : put_signal_one(h, 1, NVS_AMO_SIGNAL_ADD, 8, true, 2);
    status = status ? status : put_signal_one(h, 5, NVS_AMO_SIGNAL_SET, 8, false, 3);
    status = status ? status : put_signal_one(h, 32, NVS_AMO_SIGNAL_ADD, 8, true, 4);
    status = status ? status : put_signal_one(h, 50, NVS_AMO_SIGNAL_ADD, 8, true, 5);
    status = status ? status : put_signal_one(h, 50, NVS_AMO_SIGNAL_SET, 8, false, 6);
    return status ? status : put_signal_one(h, 3, NVS_AMO_SIGNAL_SET, 4, true, 7);
}

static void put_signal_takes_vectors(void **state)
{
    (void)state;
    for (int ports = 1; ports <= 4; ports *= 2) {
        char spec[64];

        snprintf(spec, sizeof(spec), "nodes=2,gpus=1,ports=%d,unkind=all", ports);
        assert_int_equal(setenv("BRAID_PORTS", ports_of(spec), 1), 0);
        for (int i = 2; i < NVS_VERSIONS; i++) {
            for (int way = 0; way < HOST_WAYS; way++) {
                struct test t = {nvs_version_at(i), way ? &host_calls_cxx : &host_calls_c, pe_put_signal};

                run_one(&t, spec, (uint64_t)(ports * 10 + i));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_do_not_run_dry_within_a_batch),
        cmocka_unit_test(bytes_arrive),
        cmocka_unit_test(blocking_forms_block),
        cmocka_unit_test(small_values_are_taken_from_the_stack),
        cmocka_unit_test(every_atomic_on_4_and_8_bytes),
        cmocka_unit_test(quiet_covers_results_on_their_way),
        cmocka_unit_test(host_threads_fetch_too),
        cmocka_unit_test(floats_are_added),
        cmocka_unit_test(put_signal_takes_vectors),
    };

    return cmocka_run_group_tests_name("plugin", tests, NULL, NULL);
}
