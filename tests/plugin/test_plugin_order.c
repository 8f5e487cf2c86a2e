/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plugin_order.c - the plugin, as test_plugin.c has it: order, quiet, handles, start and end.
 */
#include "plugin_rig.h"

#include "plugin_cxx.h"

/* ---- order ---- */

/* DeepEP's pattern: a ring of chunks, a tail counter behind each; no fence, since the host has been told that none is needed. */
static int pe_ring(struct host *h)
{
    enum { CHUNK = 200000, SLOTS = 8, ROUNDS = 40 };
    int status = host_meet(h);

    for (uint64_t i = 0; !status && i < ROUNDS; i++) {
        size_t at = (i % SLOTS) * CHUNK;

        if (h->f->pe == 0) {
            fill(host_at(h, at), CHUNK, i);
            status = host_wait_word(h, WORD + 8, i < SLOTS ? 0 : i - SLOTS + 1); /* credit */
            status = status ? status : host_put(h, 1, HALF + at, at, CHUNK);
            if (host_fence(h, 1, 1) > 0)
                status = NVS_INTERNAL;
            status = status ? status : host_signal(h, 1, NVS_AMO_SIGNAL_ADD, 8, WORD, 1);
            status = status ? status : h->call->quiet(h, 1, 1);
        } else {
            status = host_wait_word(h, WORD, i + 1);
            check(h, same(h, HALF + at, CHUNK, i), "a chunk before its tail");
            status = status ? status : host_signal(h, 0, NVS_AMO_SIGNAL_ADD, 8, WORD + 8, 1);
        }
    }
    return status ? status : host_meet(h);
}

static void signals_stay_behind_data(void **state)
{
    static const char *const modes[] = {"release", "strict", "drain"};

    (void)state;
    for (unsigned m = 0; m < 3; m++) {
        assert_int_equal(setenv("BRAID_ORDER", modes[m], 1), 0);
        /* drain takes an acknowledgement for visibility: a kind fabric only */
        run_all(pe_ring, m == 2 ? "nodes=2,gpus=1,ports=2" : "nodes=2,gpus=1,ports=2,unkind=all");
    }
    unsetenv("BRAID_ORDER");
}

static int pe_fence_null(struct host *h)
{
    check(h, host_fence(h, 0, 1) == -1, "no fence in release order");
    return 0;
}

static int pe_fence_set(struct host *h)
{
    check(h, host_fence(h, 0, 1) == 0 && host_fence(h, 0, 0) == 0, "a fence in strict order");
    return 0;
}

static void fence_is_there_in_strict_order_alone(void **state)
{
    (void)state;
    run_all(pe_fence_null, "nodes=1,gpus=1,ports=2");
    assert_int_equal(setenv("BRAID_ORDER", "strict", 1), 0);
    run_all(pe_fence_set, "nodes=1,gpus=1,ports=2");
    assert_int_equal(setenv("BRAID_ORDER", "drain", 1), 0);
    run_all(pe_fence_null, "nodes=1,gpus=1,ports=2");
    unsetenv("BRAID_ORDER");
}

/* Two puts with a fence between them: whoever sees the second sees the first. 3.5.0 does not pass the fence on. */
static int pe_fenced(struct host *h)
{
    enum { FIRST = 400000, SECOND = 1024, ROUNDS = 20 };
    int status = host_meet(h);

    for (uint64_t round = 1; !status && round <= ROUNDS; round++) {
        const unsigned char *last = host_at(h, HALF + FIRST + SECOND - 1);

        fill(host_at(h, 0), FIRST, round);
        memset(host_at(h, FIRST), (int)round, SECOND);
        if (h->f->pe == 0) {
            status = host_put(h, 1, HALF, 0, FIRST);
            if (!status && !h->v->progress_350)
                status = host_fence(h, 1, 1);
            status = status ? status : host_put(h, 1, HALF + FIRST, FIRST, SECOND);
            status = status ? status : h->call->quiet(h, 1, 1);
        } else {
            while (!status && __atomic_load_n(last, __ATOMIC_ACQUIRE) != round)
                status = host_turn(h);
            check(h, same(h, HALF, FIRST, round), "what is in front of a fence");
        }
        status = status ? status : host_meet(h);
    }
    return status;
}

static void fences_order_puts_in_strict_order(void **state)
{
    (void)state;
    assert_int_equal(setenv("BRAID_ORDER", "strict", 1), 0);
    run_all(pe_fenced, "nodes=2,gpus=1,ports=2,unkind=all");
    unsetenv("BRAID_ORDER");
}

static int pe_cst(struct host *h)
{
    int status = host_cst(h);

    check(h, !h->v->ops_v4 || !host_ops_v4(h)->enforce_cst_at_target, "no CST at the target");
    return status;
}

static void received_data_can_be_made_visible(void **state)
{
    (void)state;
    run_all(pe_cst, "nodes=2,gpus=1,ports=2");
}

/* Quiet by either selector, by all of them, and on all PEs at once. */
static int pe_quiet(struct host *h)
{
    static const int selectors[] = {NVS_QP_HOST, NVS_QP_DEFAULT, 17, NVS_QP_ANY};
    int n = h->f->n_pes, status = host_meet(h);

    for (unsigned i = 0; !status && i < 4; i++) {
        struct host_rma put = {
            .desc = NVS_PUT, .is_nbi = 1, .qp = selectors[i], .from = 0, .to = HALF, .nelems = 500000, .elembytes = 1};
        struct host_rma by_host = put;

        by_host.qp = NVS_QP_HOST;
        by_host.to = HALF + 600000;
        put.pe = by_host.pe = (h->f->pe + 1) % n;
        fill(host_at(h, 0), 500000, i);
        status = host_meet(h);
        status = status ? status : h->call->rma(h, &put);
        if (selectors[i] == NVS_QP_ANY) /* covers the host's channel too */
            status = status ? status : h->call->rma(h, &by_host);
        status = status ? status : h->call->quiet(h, i % 2 ? put.pe : NVS_PE_ALL, put.qp);
        /* The bytes are there already: no progress at the target. */
        if (!status && fabric_emu()->barrier())
            status = NVS_INTERNAL;
        check(h, same(h, HALF, 500000, i), "quiet");
        check(h, selectors[i] != NVS_QP_ANY || same(h, HALF + 600000, 500000, i), "quiet of both channels");
        status = status ? status : host_meet(h);
    }
    return status;
}

static void quiet_means_its_selector(void **state)
{
    (void)state;
    run_all(pe_quiet, "nodes=2,gpus=1,ports=2,unkind=all");
}

/* ---- handles ---- */

/* Registers, while puts are under way, more of the memory, in many pieces, and ends some of it. */
static int pe_growth(struct host *h)
{
    enum { PIECES = 40, BYTES = 8192 };
    static struct nvs_handle handles[FABRIC_PES][PIECES];
    struct nvs_handle *mine = handles[h->f->pe];
    unsigned char *more = aligned_alloc(4096, (size_t)PIECES * BYTES);
    int other = 1 - h->f->pe, status = host_meet(h);

    if (!more)
        return NVS_OUT_OF_MEMORY;
    for (int i = 0; !status && i < PIECES; i++) {
        status = host_put(h, other, HALF, 0, 300000);
        status = status ? status : h->call->get_handle(h, more + (size_t)i * BYTES, BYTES, i % 2, &mine[i]);
        check(h, memcmp(&mine[i], &(struct nvs_handle){{0}}, sizeof(mine[i])) != 0, "no handle is all zero");
    }
    for (int i = 0; !status && i < PIECES; i++) {
        struct host_rma put = {.pe = other,
                               .desc = NVS_PUT,
                               .is_nbi = 1,
                               .qp = i % 2,
                               .to = HALF + 400000 + (size_t)i * BYTES,
                               .nelems = BYTES,
                               .elembytes = 1};

        put.from = (uintptr_t)more + (size_t)i * BYTES - (uintptr_t)h->heap; /* see host_local() */
        fill(more + (size_t)i * BYTES, BYTES, (uint64_t)i);
        status = h->call->rma(h, &put);
    }
    for (int i = 0; !status && i < PIECES; i++) /* puts may be under way from it */
        status = host_release(h, &mine[i]);
    status = status ? status : h->call->quiet(h, other, 0);
    status = status ? status : host_meet(h);
    for (int i = 0; i < PIECES; i++)
        check(h, same(h, HALF + 400000 + (size_t)i * BYTES, BYTES, (uint64_t)i), "bytes from a local buffer");
    if (!status && host_release(h, &mine[0]) == 0)
        status = NVS_INTERNAL; /* a second time */
    free(more);
    return status ? status : host_meet(h);
}

static void memory_grows_while_puts_are_under_way(void **state)
{
    (void)state;
    run_all(pe_growth, "nodes=2,gpus=1,ports=2");
}

/* More regions of the peer than places for keys at first; and again, when the same bytes have other keys. */
static int pe_keys(struct host *h)
{
    enum { PIECES = 70, BYTES = 4096 };
    static struct nvs_handle all[2][2][2 * PIECES]; /* of a PE: to all, from all */
    struct nvs_handle *mine = all[h->f->pe][0], *theirs = all[h->f->pe][1];
    int other = 1 - h->f->pe, status = host_meet(h);

    for (uint64_t round = 0; !status && round < 2; round++) {
        fill(host_at(h, 0), (size_t)PIECES * BYTES, round);
        for (int i = 0; !status && i < PIECES; i++)
            status =
                h->call->get_handle(h, host_at(h, HALF + (size_t)i * BYTES), BYTES, false, &mine[other * PIECES + i]);
        if (!status && fabric_emu()->alltoall(mine, theirs, PIECES * sizeof(*mine)))
            status = NVS_INTERNAL;
        for (int i = 0; !status && i < PIECES; i++) {
            struct nvs_handle heap = h->peer[other];

            h->peer[other] = theirs[other * PIECES + i];
            status = host_put(h, other, HALF + (size_t)i * BYTES, (size_t)i * BYTES, BYTES);
            h->peer[other] = heap;
        }
        status = status ? status : h->call->quiet(h, other, 1);
        status = status ? status : host_meet(h);
        check(h, same(h, HALF, (size_t)PIECES * BYTES, round), "bytes by many keys");
        for (int i = 0; !status && i < PIECES; i++)
            status = host_release(h, &mine[other * PIECES + i]);
    }
    return status ? status : host_meet(h);
}

static void keys_are_kept_and_told_apart(void **state)
{
    (void)state;
    run_all(pe_keys, "nodes=2,gpus=1,ports=2");
}

/* A result is on its way to memory whose registration ends. */
static int pe_slot_ends(struct host *h)
{
    struct nvs_handle handle;
    struct nvs_fetch_slot *slot = aligned_alloc(4096, 4096);
    struct host_amo a = {.pe = 1 - h->f->pe, .desc = NVS_AMO_FETCH_INC, .bytes = 8, .qp = 1, .at = WORD, .flag = 5};
    int status = host_meet(h);

    if (!slot)
        return NVS_OUT_OF_MEMORY;
    *slot = (struct nvs_fetch_slot){7, 0};
    a.ret = (uintptr_t)slot - (uintptr_t)h->heap;
    status = status ? status : h->call->get_handle(h, slot, 4096, true, &handle);
    status = status ? status : h->call->amo(h, &a);
    status = status ? status : host_release(h, &handle);
    check(h, slot->data == 0 && slot->flag == 5, "a result before its slot's registration has ended");
    status = status ? status : host_meet(h);
    free(slot);
    return status;
}

static void slots_outlive_their_fetches(void **state)
{
    (void)state;
    run_all(pe_slot_ends, "nodes=2,gpus=1,ports=2");
}

/* The host's map of second addresses; of host memory it changes nothing. */
static int pe_alias(struct host *h)
{
    size_t at = h->v->at.alias_va_map;
    unsigned char *more = aligned_alloc(4096, 65536);
    struct host_map *map = host_map_new(5000);
    struct nvs_handle handle;
    int status;

    host_map_add(map, more, h->heap);
    if (at)
        *(const void **)nvs_field(h->t, at) = host_map_raw(map);
    status = h->call->get_handle(h, more, 65536, false, &handle);
    if (at)
        *(const void **)nvs_field(h->t, at) = NULL;
    status = status ? status : host_release(h, &handle);
    host_map_free(map);
    free(more);
    return status;
}

static void second_addresses_are_looked_up(void **state)
{
    (void)state;
    run_all(pe_alias, "nodes=1,gpus=1,ports=1");
}

static void containers_are_read_as_the_library_lays_them_out(void **state)
{
    static const size_t entries[] = {0, 1, 2, 13, 14, 1000, 100000};

    (void)state;
    assert_int_equal(host_vector_wrong(), 0);
    for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        struct host_map *map = host_map_new(entries[i]);

        if (entries[i] <= 1000)
            assert_int_equal(host_map_wrong(map, entries[i]), 0);
        host_map_free(map);
    }
}

/* ---- start and end ---- */

static int pe_qp_create(struct host *h)
{
    int qp[3] = {NVS_QP_DEFAULT, NVS_QP_DEFAULT, NVS_QP_DEFAULT};
    int status = h->v->ops_v4 ? h->call->connect(h, qp, 3) : 0;

    check(h, qp[0] == 1 && qp[1] == 1 && qp[2] == 1, "qp_create gives the default one");
    status = status ? status : host_meet(h);
    return status;
}

static void qp_create_gives_the_default_one(void **state)
{
    (void)state;
    run_all(pe_qp_create, "nodes=2,gpus=1,ports=2");
}

static int pe_twice(struct host *h)
{
    struct host second;
    int status = host_meet(h);

    status = status ? status : host_stop(h);
    status = status ? status : host_start(&second, h->f, h->v, h->call);
    if (status)
        return status;
    *h = second;
    *word(h, FABRIC_WORDS - 1) = 0;
    return fabric_emu()->barrier() ? NVS_INTERNAL : host_meet(h);
}

static void a_host_can_start_again(void **state)
{
    (void)state;
    run_all(pe_twice, "nodes=2,gpus=1,ports=2");
}

static void one_rail_is_enough(void **state)
{
    (void)state;
    assert_int_equal(setenv("BRAID_RAILS", "1", 1), 0);
    run_all(pe_ring, "nodes=2,gpus=1,ports=2,unkind=all");
    unsetenv("BRAID_RAILS");
}

/* ---- what is refused, without harm ---- */

static int pe_refused(struct host *h)
{
    struct host_rma far = {
        .pe = 0, .desc = NVS_PUT, .is_nbi = 1, .qp = 1, .from = h->heap_len - 8, .nelems = 16, .elembytes = 1};
    struct host_rma odd = {.pe = 0, .desc = NVS_AMO, .is_nbi = 1, .qp = 1, .nelems = 16, .elembytes = 1};
    struct host_rma over = {
        .pe = 0, .desc = NVS_PUT, .is_nbi = 1, .qp = 1, .to = h->heap_len - 8, .nelems = 16, .elembytes = 1};
    struct host_rma wraps = {.pe = 0, .desc = NVS_GET, .is_nbi = 1, .qp = 0, .nelems = SIZE_MAX / 2, .elembytes = 4};
    struct nvs_handle none;

    check(h, h->call->rma(h, &far) == NVS_INVALID_VALUE, "a source that is not registered");
    check(h, h->call->rma(h, &odd) == NVS_INVALID_VALUE, "an op that is none");
    check(h, h->call->rma(h, &over) == NVS_INVALID_VALUE, "a target behind the region's end");
    check(h, h->call->rma(h, &wraps) == NVS_INVALID_VALUE, "a length that wraps");
    check(h, host_signal(h, 0, NVS_AMO_ADD, 2, WORD, 1) == NVS_NOT_SUPPORTED, "an atomic on two bytes");
    check(h, host_signal(h, 0, NVS_AMO_ACK, 8, WORD, 1) == NVS_NOT_SUPPORTED, "an atomic that is none");
    check(h, host_signal(h, 0, NVS_AMO_ADD, 8, WORD + 4, 1) == NVS_INVALID_VALUE, "a crooked word");
    check(h, h->call->get_handle(h, h->heap, 0, true, &none) == NVS_INVALID_VALUE, "memory of no bytes");
    h->peer[0].bytes[60] ^= 1; /* in a port's key */
    check(h, host_put(h, 0, 0, 0, 16) == NVS_INVALID_VALUE, "a damaged handle");
    h->peer[0].bytes[60] ^= 1;
    return host_meet(h); /* all goes on */
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    run_all(pe_refused, "nodes=2,gpus=1,ports=2");
}

/* ---- what fails behind the call ---- */

/* PE 0 does something to memory of PE 1 whose registration has ended, and waits for nothing: its proxy is told. */
static int pe_fails(struct host *h, bool fetch)
{
    struct host_amo a = {.pe = 1, .desc = NVS_AMO_FETCH_INC, .bytes = 8, .qp = 1, .at = HALF, .ret = SLOT, .flag = 5};
    struct nvs_handle all[FABRIC_PES] = {0}, ended[FABRIC_PES] = {0};
    int status = host_meet(h), told = 0;

    if (!status && h->f->pe == 1) {
        status = h->call->get_handle(h, host_at(h, HALF), 4096, false, &all[0]);
        ended[0] = all[0];
        status = status ? status : host_release(h, &ended[0]);
    }
    if (!status && fabric_emu()->alltoall(all, ended, sizeof(all[0])))
        status = NVS_INTERNAL;
    if (status || h->f->pe == 1)
        return status;
    h->peer[1] = ended[1];
    status = fetch ? h->call->amo(h, &a) : host_put(h, 1, HALF, 0, 4096);
    while (!status && !told)
        told = host_turn(h);
    return status;
}

static int pe_put_fails(struct host *h)
{
    return pe_fails(h, false);
}

static int pe_fetch_fails(struct host *h)
{
    return pe_fails(h, true);
}

static void progress_tells_what_failed(void **state)
{
    (void)state;
    run_all(pe_put_fails, "nodes=2,gpus=1,ports=2");
    run_all(pe_fetch_fails, "nodes=2,gpus=1,ports=2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_stay_behind_data),
        cmocka_unit_test(fence_is_there_in_strict_order_alone),
        cmocka_unit_test(fences_order_puts_in_strict_order),
        cmocka_unit_test(received_data_can_be_made_visible),
        cmocka_unit_test(quiet_means_its_selector),
        cmocka_unit_test(memory_grows_while_puts_are_under_way),
        cmocka_unit_test(keys_are_kept_and_told_apart),
        cmocka_unit_test(slots_outlive_their_fetches),
        cmocka_unit_test(second_addresses_are_looked_up),
        cmocka_unit_test(containers_are_read_as_the_library_lays_them_out),
        cmocka_unit_test(qp_create_gives_the_default_one),
        cmocka_unit_test(a_host_can_start_again),
        cmocka_unit_test(one_rail_is_enough),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(progress_tells_what_failed),
    };

    return cmocka_run_group_tests_name("plugin_order", tests, NULL, NULL);
}
