/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lane_list.c - lists of a lane: what is signalled and what one completion ends, refused lists, flushes, cells,
 * max_rd_atomic. Links rail and common, with fake_verbs.c in the place of verbs.
 */
#include "lane_rig.h"

/* Builds n writes of 8 bytes with cookies from first on. */
static void words(struct rig *rig, unsigned n, uint64_t first)
{
    for (unsigned i = 0; i < n; i++)
        assert_true(queue(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, first + i));
}

static void nothing_is_posted_before_the_ring(void **state)
{
    struct rig *rig = *state;
    words(rig, 3, 1);
    assert_int_equal(fake_pending(rig->qp), 0);
    assert_int_equal(rig->lane->head - rig->lane->tail, 3);
    rail_lane_ring(rig->lane);
    assert_int_equal(fake_pending(rig->qp), 3);
    rail_lane_ring(rig->lane);
    assert_int_equal(fake_pending(rig->qp), 3);
}

static void a_full_list_rings_by_itself(void **state)
{
    struct rig *rig = *state;
    words(rig, RAIL_LIST_MAX + 1, 0);
    assert_int_equal(fake_pending(rig->qp), RAIL_LIST_MAX);
    assert_int_equal(fake_send(rig->qp, RAIL_LIST_MAX - 1)->signal, VERBS_SIGNALLED);
    rail_lane_ring(rig->lane);
    assert_int_equal(fake_pending(rig->qp), RAIL_LIST_MAX + 1);
}

/* Small writes: the last of a list alone is signalled, and its end is theirs. */
static void one_completion_ends_the_writes_before_it(void **state)
{
    struct rig *rig = *state;
    words(rig, 3, 1);
    rail_lane_ring(rig->lane);
    words(rig, 2, 4);
    rail_lane_ring(rig->lane);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(fake_send(rig->qp, i)->signal, i != 2 && i != 4 ? VERBS_UNSIGNALLED : VERBS_SIGNALLED);
    fake_end(rig->qp, 0);
    fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 0);
    fake_end(rig->qp, 0);
    fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 3);
    for (unsigned i = 0; i < 3; i++)
        expect_done(rig, i, i + 1, 0);
    assert_int_equal(rig->queue.taken, 1);
    fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 2);
    expect_done(rig, 1, 5, 0);
    expect_empty(rig);
}

static void bytes_and_other_kinds_are_signalled(void **state)
{
    struct rig *rig = *state;
    static const struct {
        enum rail_kind kind;
        uint32_t len;
        bool unsignalled;
    } row[] = {
        {RAIL_KIND_WRITE, RAIL_SILENT_BYTES / 2, true},
        {RAIL_KIND_WRITE, RAIL_SILENT_BYTES / 2 - 1, true},
        {RAIL_KIND_WRITE, 1, false},
        {RAIL_KIND_WRITE, RAIL_SILENT_BYTES / 2, true},
        {RAIL_KIND_READ, 100, false},
        {RAIL_KIND_WRITE, RAIL_SILENT_BYTES / 2, true},
        {RAIL_KIND_FLUSH, 0, false},
        {RAIL_KIND_WRITE, 8, true},
        {RAIL_KIND_FETCH_ADD, 8, false},
        {RAIL_KIND_COMPARE_SWAP, 8, false},
        {RAIL_KIND_WRITE, RAIL_SILENT_BYTES, false},
        {RAIL_KIND_WRITE, 8, false},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        assert_true(queue(rig, row[i].kind, RAIL_CLASS_BULK, row[i].len, i));
    rail_lane_ring(rig->lane);
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        assert_int_equal(fake_send(rig->qp, i)->signal, row[i].unsignalled ? VERBS_UNSIGNALLED : VERBS_SIGNALLED);
    while (fake_pending(rig->qp) > 0)
        fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), sizeof(row) / sizeof(row[0]));
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        expect_done(rig, i, i, 0);
    expect_empty(rig);
}

/* The first to fail proves that those before it have been executed. */
static void an_error_ends_its_record_and_the_good_ones_before(void **state)
{
    struct rig *rig = *state;
    words(rig, 4, 0);
    rail_lane_ring(rig->lane);
    fake_end(rig->qp, 0);
    fake_end(rig->qp, -EACCES);
    assert_int_equal(poll(rig), 2);
    expect_done(rig, 0, 0, 0);
    expect_done(rig, 1, 1, -EACCES);
    rail_lane_stop(rig->lane);
    assert_int_equal(poll(rig), 2);
    expect_done(rig, 0, 2, -ECANCELED);
    expect_done(rig, 1, 3, -ECANCELED);
    expect_empty(rig);
}

/* A device that keeps quiet about flushed unsignalled requests: none of them may count as executed. */
static void a_silent_flush_proves_nothing(void **state)
{
    struct rig *rig = *state;
    fake_flush_tells(false);
    words(rig, 4, 0);
    rail_lane_ring(rig->lane);
    fake_end(rig->qp, 0);
    rail_lane_stop(rig->lane);
    assert_int_equal(poll(rig), 4);
    for (unsigned i = 0; i < 4; i++)
        expect_done(rig, i, i, -ECANCELED);
    assert_string_equal(rig->event[0].status, "as the test says");
    expect_empty(rig);
}

static void a_good_completion_of_an_unsignalled_write_is_not_believed(void **state)
{
    struct rig *rig = *state;
    words(rig, 2, 1);
    rail_lane_ring(rig->lane);
    fake_stray(rig->qp, fake_send(rig->qp, 0)->id, 0);
    assert_int_equal(poll(rig), 3);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_BROKEN);
    expect_done(rig, 1, 1, -EPROTO);
    expect_done(rig, 2, 2, -EPROTO);
    assert_int_equal(rig->queue.broken, -EPROTO);
}

static void a_completion_of_what_is_only_built_is_not_believed(void **state)
{
    struct rig *rig = *state;
    words(rig, 1, 1);
    fake_stray(rig->qp, 0, 0);
    assert_int_equal(poll(rig), 2);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_BROKEN);
    expect_done(rig, 1, 1, -EPROTO);
    expect_empty(rig);
}

/* n of a list of four writes are posted; the rest comes back behind them. */
static void refuse_after(struct rig *rig, unsigned n, int error, int seen)
{
    words(rig, 2, 0);
    rail_lane_ring(rig->lane);
    words(rig, 4, 2);
    fake_fail(FAKE_POST_SEND, n, error);
    rail_lane_ring(rig->lane);
    assert_true(fake_stopped(rig->qp));
    assert_int_equal(poll(rig), 6);
    for (unsigned i = 0; i < 6; i++)
        expect_done(rig, i, i, i < 2 + n ? -ECANCELED : seen);
    assert_int_equal(poll(rig), 0);
    expect_empty(rig);
}

static void a_refused_list_comes_back_whole(void **state)
{
    refuse_after(*state, 0, -ENOMEM, -ENOMEM);
}

static void a_list_refused_in_the_middle_comes_back_behind_what_was_posted(void **state)
{
    refuse_after(*state, 2, -ENOMEM, -ENOMEM);
}

static void the_last_of_a_list_may_be_refused(void **state)
{
    refuse_after(*state, 3, -EINVAL, -EINVAL);
}

static void a_refusal_is_never_called_try_again(void **state)
{
    refuse_after(*state, 1, -EAGAIN, -EIO);
}

static void a_refused_list_ends_where_flushes_are_silent(void **state)
{
    fake_flush_tells(false);
    refuse_after(*state, 2, -ENOMEM, -ENOMEM);
}

/* The unsignalled writes were executed before the QP stopped, so that nothing tells: what waits behind must still end. */
static int execute_all(struct rig *rig, bool marker)
{
    fake_flush_tells(false);
    words(rig, 3, 0);
    fake_fail(FAKE_POST_SEND, 2, -ENOMEM);
    if (!marker)
        fake_fail_again(FAKE_POST_SEND, 1, -EINVAL);
    rail_lane_ring(rig->lane);
    assert_int_equal(poll(rig), 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rig->record[i].cookie, i);
        assert_true(rig->event[i].error < 0);
    }
    expect_done(rig, 2, 2, -ENOMEM);
    expect_empty(rig);
    return rig->event[0].error;
}

static void a_marker_ends_what_nothing_else_would(void **state)
{
    assert_int_equal(execute_all(*state, true), -ECANCELED);
}

static void without_a_marker_what_is_unknown_counts_as_refused(void **state)
{
    assert_int_equal(execute_all(*state, false), -ENOMEM);
}

/* As before, on a device whose completions come all the same, later: they find nothing, and that is no bug. */
static void late_flushes_of_what_came_back_are_ignored(void **state)
{
    struct rig *rig = *state;
    words(rig, 3, 0);
    fake_fail(FAKE_POST_SEND, 2, -ENOMEM);
    fake_fail_again(FAKE_POST_SEND, 1, -EINVAL);
    rail_lane_ring(rig->lane);
    assert_int_equal(poll(rig), 3);
    assert_int_equal(rig->queue.broken, 0);
    expect_empty(rig);
}

static void what_was_built_comes_back_from_a_stopped_lane(void **state)
{
    struct rig *rig = *state;
    words(rig, 1, 0);
    rail_lane_ring(rig->lane);
    words(rig, 2, 1);
    rail_lane_stop(rig->lane);
    rail_lane_ring(rig->lane);
    assert_int_equal(poll(rig), 3);
    for (unsigned i = 0; i < 3; i++)
        expect_done(rig, i, i, -ECANCELED);
    assert_int_equal(fake_calls(FAKE_POST_SEND), 1);
    expect_empty(rig);
}

static void what_is_queued_on_a_dead_lane_comes_back(void **state)
{
    struct rig *rig = *state;
    struct rail_request request = {.kind = RAIL_KIND_WRITE, .klass = RAIL_CLASS_WORD, .len = 8, .cookie = 9};
    rail_lane_stop(rig->lane);
    for (unsigned i = 0; i < RAIL_LIST_MAX + 4; i++)
        rail_lane_queue(rig->lane, &request);
    rail_lane_ring(rig->lane);
    assert_int_equal(poll(rig), RAIL_LIST_MAX + 4);
    expect_done(rig, 0, 9, -ECANCELED);
    expect_empty(rig);
    fake_fail(FAKE_POLL, 0, -EIO);
    assert_int_equal(poll(rig), 0);
    rail_lane_queue(rig->lane, &request);
    assert_int_equal(poll(rig), 1);
    expect_done(rig, 0, 9, -EIO);
    expect_empty(rig);
}

static void a_flush_reads_the_peers_line_into_a_cell(void **state)
{
    struct rig *rig = *state;
    assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 4096, 1));
    assert_true(post(rig, RAIL_KIND_FLUSH, RAIL_CLASS_WORD, 0, 2));
    const struct verbs_send *send = fake_send(rig->qp, 1);
    assert_int_equal(send->op, VERBS_OP_READ);
    assert_int_equal(send->len, 8);
    assert_true(send->remote_addr == rig->rail->address.flush_addr);
    assert_int_equal(send->rkey, rig->rail->address.flush_rkey);
    assert_int_equal(send->lkey, verbs_mr_lkey(rig->queue.mr));
    memcpy((void *)(uintptr_t)send->local_addr, &(uint64_t){0x1234}, 8);
    assert_int_equal(rig->lane->reads, 1);
    assert_true(rig->lane->get_bytes == 0);
    fake_end(rig->qp, 0);
    fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 2);
    expect_done(rig, 1, 2, 0);
    assert_int_equal(rig->record[1].kind, RAIL_KIND_FLUSH);
    assert_true(rig->event[1].value == 0x1234);
    expect_empty(rig);
}

static void atomics_bring_back_the_old_value(void **state)
{
    struct rig *rig = *state;
    struct rail_request add = {.kind = RAIL_KIND_FETCH_ADD,
                               .klass = RAIL_CLASS_WORD,
                               .len = 8,
                               .remote_addr = 64,
                               .rkey = 5,
                               .operand = 3,
                               .cookie = 1};
    struct rail_request swap = {.kind = RAIL_KIND_COMPARE_SWAP,
                                .klass = RAIL_CLASS_WORD,
                                .len = 8,
                                .remote_addr = 72,
                                .rkey = 6,
                                .operand = 4,
                                .swap = 9,
                                .cookie = 2};
    rail_lane_queue(rig->lane, &add);
    rail_lane_queue(rig->lane, &swap);
    rail_lane_ring(rig->lane);
    const struct verbs_send *first = fake_send(rig->qp, 0), *second = fake_send(rig->qp, 1);
    assert_true(first->op == VERBS_OP_FETCH_ADD && first->operand == 3 && first->atomic_rkey == 5 &&
                first->remote_addr == 64);
    assert_true(second->op == VERBS_OP_COMPARE_SWAP && second->operand == 4 && second->swap == 9 && second->len == 8);
    assert_true(first->local_addr != second->local_addr && second->atomic_rkey == 6);
    *(uint64_t *)(uintptr_t)first->local_addr = 100;
    *(uint64_t *)(uintptr_t)second->local_addr = 200;
    fake_end(rig->qp, 0);
    fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 2);
    assert_true(rig->event[0].value == 100 && rig->event[1].value == 200);
    expect_empty(rig);
}

/* The value is copied: each waits in a cell of its own until its request ends. */
static void immediates_are_copied(void **state)
{
    struct rig *rig = *state;
    for (uint64_t i = 0; i < 40; i++) {
        struct rail_request r = {.kind = RAIL_KIND_WRITE,
                                 .klass = RAIL_CLASS_WORD,
                                 .len = 8,
                                 .remote_addr = 64,
                                 .rkey = 5,
                                 .operand = i * 3,
                                 .cookie = i,
                                 .immediate = true};
        rail_lane_queue(rig->lane, &r);
    }
    rail_lane_ring(rig->lane);
    for (unsigned i = 0; i < 40; i++) {
        const struct verbs_send *send = fake_send(rig->qp, i);
        assert_true(*(const uint64_t *)(uintptr_t)send->local_addr == i * 3);
        assert_true(send->op == VERBS_OP_WRITE && send->len == 8 && send->lkey == verbs_mr_lkey(rig->queue.mr));
    }
    while (fake_pending(rig->qp) > 0)
        fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 40);
    assert_true(rig->record[39].immediate);
}

static unsigned queue_all(struct rig *rig, enum rail_kind kind)
{
    unsigned n = 0;
    while (queue(rig, kind, RAIL_CLASS_WORD, 8, n))
        n++;
    return n;
}

static void gets_leave_room_for_flushes_and_atomics(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(rig->lane->rd_atomic, 16);
    assert_int_equal(queue_all(rig, RAIL_KIND_READ), 14);
    assert_int_equal(queue_all(rig, RAIL_KIND_FLUSH), 1 + 1);
    assert_int_equal(queue_all(rig, RAIL_KIND_FETCH_ADD), 0);
    assert_true(queue(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, 0));
    rail_lane_ring(rig->lane);
    assert_true(rig->lane->get_bytes == 14 * 8);
    fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 1);
    assert_int_equal(queue_all(rig, RAIL_KIND_READ), 0);
    assert_int_equal(queue_all(rig, RAIL_KIND_COMPARE_SWAP), 1);
    /* Where nothing can be kept, gets go all the same, alone. */
    rail_lane_ring(rig->lane);
    while (fake_pending(rig->qp) > 0)
        fake_end(rig->qp, 0);
    poll(rig);
    expect_empty(rig);
    for (uint32_t rd = 1; rd <= 3; rd++) {
        rig->lane->rd_atomic = rd;
        assert_int_equal(queue_all(rig, RAIL_KIND_READ), 1);
        assert_int_equal(queue_all(rig, RAIL_KIND_FLUSH), rd - 1);
        rail_lane_ring(rig->lane);
        while (fake_pending(rig->qp) > 0)
            fake_end(rig->qp, 0);
        poll(rig);
        expect_empty(rig);
    }
}

/* Whoever is told of an end queues at once; the record of the event must outlive that, however full the lane is. */
static void an_events_record_outlives_new_requests(void **state)
{
    struct rig *rig = *state;
    struct rail_event event;
    uint64_t next = 0, expected = 0;
    struct rail_mail_msg mail = {.type = RAIL_MAIL_ATOMIC, .atomic = {.bytes = 8}};
    while (queue(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, next))
        next++;
    for (unsigned i = 0; i < RAIL_MAIL_SLOTS; i++)
        assert_int_equal(rail_lane_send_mail(rig->lane, &mail), 0);
    assert_int_equal(rig->lane->head - rig->lane->tail, DEPTH);
    for (unsigned round = 0; round < 1000; round++) {
        fake_end(rig->qp, 0);
        rail_poll(&rig->queue);
        while (rail_next(&rig->queue, &event)) {
            while (queue(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, next))
                next++;
            rail_lane_ring(rig->lane);
            if (event.kind == RAIL_EVENT_DONE)
                assert_int_equal(event.record->cookie, expected++);
        }
    }
    assert_true(expected > 900);
}

/* A caller that stops in the middle loses nothing: the next poll takes no more before all has been looked at. */
static void events_wait_for_whoever_stops_in_the_middle(void **state)
{
    struct rig *rig = *state;
    struct rail_event event;
    words(rig, 3, 0);
    rail_lane_ring(rig->lane);
    words(rig, 1, 3);
    rail_lane_ring(rig->lane);
    for (unsigned i = 0; i < 4; i++)
        fake_end(rig->qp, 0);
    for (unsigned i = 0; i < 4; i++) {
        rail_poll(&rig->queue);
        assert_true(rail_next(&rig->queue, &event));
        assert_int_equal(event.record->cookie, i);
    }
    assert_false(rail_next(&rig->queue, &event));
    assert_int_equal(rig->queue.taken, 2);
}

static void a_bad_run_waits_for_whoever_stops_in_the_middle(void **state)
{
    struct rig *rig = *state;
    struct rail_event event;
    fake_flush_tells(false);
    words(rig, 3, 0);
    rail_lane_ring(rig->lane);
    fake_end(rig->qp, 0);
    fake_end(rig->qp, 0);
    fake_end(rig->qp, -EACCES);
    rail_poll(&rig->queue);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(rail_next(&rig->queue, &event));
        assert_int_equal(event.record->cookie, i);
        assert_int_equal(event.error, i < 2 ? 0 : -EACCES);
        rail_lane_stop(rig->lane); /* its receives come back meanwhile */
        rail_poll(&rig->queue);
    }
    assert_false(rail_next(&rig->queue, &event));
    expect_empty(rig);
}

/* Two lanes on a queue: what a bad completion of one ends is told before the good one of the other is looked at. */
static void a_bad_run_ends_before_the_next_lanes_good_one(void **state)
{
    struct rig *rig = *state;
    struct rail_queue pair = {0};
    struct rail_lane *lane[2];
    struct rail_event event;
    struct rail_request request = {.kind = RAIL_KIND_WRITE, .klass = RAIL_CLASS_WORD, .len = 8};
    assert_int_equal(rail_queue_open(rig->rail, 2, &pair), 0);
    for (unsigned l = 0; l < 2; l++) {
        assert_int_equal(rail_lane_open(&pair, 0, &lane[l]), 0);
        assert_int_equal(rail_lane_connect(lane[l], &rig->rail->address, rail_lane_end(lane[l]), 4096), 0);
        for (request.cookie = 10 * l; request.cookie < 10 * l + 3; request.cookie++)
            rail_lane_queue(lane[l], &request);
        rail_lane_ring(lane[l]);
    }
    fake_end(fake_qp(1), 0);
    fake_end(fake_qp(1), -EACCES);
    for (unsigned i = 0; i < 3; i++)
        fake_end(fake_qp(2), 0);
    rail_poll(&pair);
    static const uint64_t cookies[] = {0, 1, 10, 11, 12};
    for (unsigned i = 0; i < 5; i++) {
        assert_true(rail_next(&pair, &event));
        assert_int_equal(event.record->cookie, cookies[i]);
        assert_int_equal(event.error, i == 1 ? -EACCES : 0);
    }
    assert_false(rail_next(&pair, &event));
    rail_queue_close(&pair);
}

static void check_random_event(struct rig *rig, const struct rail_event *event, uint64_t *expected, bool *failed)
{
    assert_int_equal(event->kind, RAIL_EVENT_DONE);
    assert_int_equal(event->record->cookie, (*expected)++);
    assert_true(!*failed || event->error);
    *failed |= event->error != 0;
    assert_true(rig->lane->head - rig->lane->tail <= DEPTH);
}

/* A request that fails takes its QP to ERR. */
static void end_one(struct rig *rig, int error)
{
    fake_end(rig->qp, error);
    if (error)
        assert_int_equal(verbs_qp_to_err(rig->qp), 0);
}

/* Any order of building, ringing, ends, errors and refusals: each record comes back once, in order, none good behind a bad
 * one, and the books are empty in the end. */
static void random_lives_end_in_order(void **state)
{
    uint64_t seed = unit_seed();
    for (unsigned life = 0; life < 400; life++) {
        struct rig *rig;
        struct rail_event event;
        uint64_t next = 0, expected = 0;
        bool failed = false;
        make(state);
        rig = *state;
        fake_flush_tells(unit_random(&seed) % 2);
        if (unit_random(&seed) % 2)
            fake_fail(FAKE_POST_SEND, unit_random(&seed) % 300, -ENOMEM);
        if (unit_random(&seed) % 4 == 0)
            fake_fail_again(FAKE_POST_SEND, 1, -EINVAL);
        for (unsigned step = 0; step < 600; step++) {
            uint64_t dice = unit_random(&seed);
            static const enum rail_kind kinds[] = {RAIL_KIND_WRITE, RAIL_KIND_READ, RAIL_KIND_FETCH_ADD,
                                                   RAIL_KIND_COMPARE_SWAP, RAIL_KIND_FLUSH};
            enum rail_kind kind = kinds[dice / 64 % 5];
            uint32_t len = (uint32_t)(kind == RAIL_KIND_WRITE || kind == RAIL_KIND_READ ? dice / 512 % 40000 : 8);
            if (dice % 64 < 40)
                next += queue(rig, dice / 4096 % 2 ? RAIL_KIND_WRITE : kind, RAIL_CLASS_WORD, len, next);
            else if (dice % 64 < 48)
                rail_lane_ring(rig->lane);
            else if (dice % 64 < 60 && fake_pending(rig->qp) > 0)
                end_one(rig, dice / 64 % 500 == 0 ? -EACCES : 0);
            else if (dice / 64 % 1000 == 0)
                rail_lane_stop(rig->lane);
            rail_poll(&rig->queue);
            while (dice / 8192 % 4 && rail_next(&rig->queue, &event)) {
                check_random_event(rig, &event, &expected, &failed);
                if (event.error)
                    rail_lane_stop(rig->lane);
            }
        }
        rail_lane_stop(rig->lane);
        do {
            while (rail_next(&rig->queue, &event))
                check_random_event(rig, &event, &expected, &failed);
        } while (rail_poll(&rig->queue) > 0);
        assert_int_equal(expected, next);
        assert_int_equal(rig->queue.broken, 0);
        expect_empty(rig);
        drop(state);
    }
    make(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LANE(nothing_is_posted_before_the_ring),
        WITH_LANE(a_full_list_rings_by_itself),
        WITH_LANE(one_completion_ends_the_writes_before_it),
        WITH_LANE(bytes_and_other_kinds_are_signalled),
        WITH_LANE(an_error_ends_its_record_and_the_good_ones_before),
        WITH_LANE(a_silent_flush_proves_nothing),
        WITH_LANE(a_good_completion_of_an_unsignalled_write_is_not_believed),
        WITH_LANE(a_completion_of_what_is_only_built_is_not_believed),
        WITH_LANE(a_refused_list_comes_back_whole),
        WITH_LANE(a_list_refused_in_the_middle_comes_back_behind_what_was_posted),
        WITH_LANE(the_last_of_a_list_may_be_refused),
        WITH_LANE(a_refusal_is_never_called_try_again),
        WITH_LANE(a_refused_list_ends_where_flushes_are_silent),
        WITH_LANE(a_marker_ends_what_nothing_else_would),
        WITH_LANE(without_a_marker_what_is_unknown_counts_as_refused),
        WITH_LANE(late_flushes_of_what_came_back_are_ignored),
        WITH_LANE(what_was_built_comes_back_from_a_stopped_lane),
        WITH_LANE(what_is_queued_on_a_dead_lane_comes_back),
        WITH_LANE(a_flush_reads_the_peers_line_into_a_cell),
        WITH_LANE(atomics_bring_back_the_old_value),
        WITH_LANE(immediates_are_copied),
        WITH_LANE(gets_leave_room_for_flushes_and_atomics),
        WITH_LANE(an_events_record_outlives_new_requests),
        WITH_LANE(events_wait_for_whoever_stops_in_the_middle),
        WITH_LANE(a_bad_run_waits_for_whoever_stops_in_the_middle),
        WITH_LANE(a_bad_run_ends_before_the_next_lanes_good_one),
        cmocka_unit_test(random_lives_end_in_order),
    };
    return cmocka_run_group_tests_name("lane_list", tests, NULL, NULL);
}
