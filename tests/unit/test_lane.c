/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lane.c - lanes over a fake device: slots and their reserves, PSNs, records in order, flushes, the mailbox, and
 * completions that fit nothing. Links rail and common, with fake_verbs.c in the place of verbs.
 */
#include "unit.h"

#include "fake_verbs.h"
#include "rail.h"

#define DEPTH 64

struct rig {
    struct verbs *verbs;
    struct rail *rail;
    struct rail_queue queue;
    struct rail_lane *lane;
    struct verbs_qp *qp;
    struct rail_event event[RAIL_POLL_MAX];
    unsigned variant;
};

static int make(void **state)
{
    static struct rig rig;
    struct rail_config config = {.sq_depth = DEPTH, .gid_index = UINT32_MAX, .timeout = 16, .retry = 7, .rnr_retry = 7};
    fake_reset();
    memset(&rig, 0, sizeof(rig));
    assert_int_equal(verbs_load(NULL, &rig.verbs), 0);
    assert_int_equal(rail_open(rig.verbs, NULL, "fake0", 1, &config, &rig.rail), 0);
    assert_int_equal(rail_queue_open(rig.rail, 1, &rig.queue), 0);
    assert_int_equal(rail_lane_open(&rig.queue, 0xfffffe, &rig.lane), 0);
    struct rail_wire_end end = rail_lane_end(rig.lane);
    assert_int_equal(end.psn, 0xfffffe);
    assert_int_equal(rail_lane_connect(rig.lane, &rig.rail->address, end, 4096), 0);
    rig.qp = fake_qp(0);
    *state = &rig;
    return 0;
}

/* One stray completion after the other: each ends its queue. */
static int make_stray(void **state)
{
    static unsigned next;
    int rc = make(state);
    ((struct rig *)*state)->variant = next++ % 4;
    return rc;
}

static int drop(void **state)
{
    struct rig *rig = *state;
    rail_queue_close(&rig->queue);
    rail_close(rig->rail);
    verbs_unload(rig->verbs);
    assert_int_equal(fake_alive(), 0);
    return 0;
}

static int post(struct rig *rig, enum rail_kind kind, enum rail_class klass, uint32_t len, uint64_t cookie)
{
    struct rail_request request = {.kind = kind, .klass = klass, .len = len, .cookie = cookie, .remote_addr = 0x1000};
    return rail_lane_post(rig->lane, &request);
}

static void psns_are_counted_as_the_wire_does(void **state)
{
    (void)state;
    assert_int_equal(rail_psn_count(RAIL_KIND_WRITE, 0, 4096), 1);
    assert_int_equal(rail_psn_count(RAIL_KIND_WRITE, 1, 4096), 1);
    assert_int_equal(rail_psn_count(RAIL_KIND_WRITE, 4096, 4096), 1);
    assert_int_equal(rail_psn_count(RAIL_KIND_WRITE, 4097, 4096), 2);
    assert_int_equal(rail_psn_count(RAIL_KIND_READ, 1 << 20, 1024), 1024);
    assert_int_equal(rail_psn_count(RAIL_KIND_READ, 0, 1024), 1);
    assert_int_equal(rail_psn_count(RAIL_KIND_FETCH_ADD, 8, 256), 1);
    assert_int_equal(rail_psn_count(RAIL_KIND_MAIL, 64, 256), 1);
    assert_int_equal(rail_psn_count(RAIL_KIND_WRITE, 1u << 30, 256), 1u << 22);
}

static void records_follow_each_other_and_psns_wrap(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 4096 * 3, 1), 0);
    assert_int_equal(post(rig, RAIL_KIND_READ, RAIL_CLASS_BULK, 100, 2), 0);
    assert_int_equal(post(rig, RAIL_KIND_FETCH_ADD, RAIL_CLASS_WORD, 8, 3), 0);
    static const uint32_t first[] = {0xfffffe, 1, 2}, psns[] = {3, 1, 1};
    for (unsigned i = 0; i < 3; i++)
        fake_end(rig->qp, 0);
    assert_int_equal(rail_poll(&rig->queue, rig->event), 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rig->event[i].kind, RAIL_EVENT_DONE);
        assert_int_equal(rig->event[i].error, 0);
        assert_int_equal(rig->event[i].record.cookie, i + 1);
        assert_int_equal(rig->event[i].record.first_psn, first[i]);
        assert_int_equal(rig->event[i].record.psns, psns[i]);
        assert_int_equal(rig->event[i].record.mtu, 4096);
    }
    assert_int_equal(rig->lane->next_psn, 3);
    assert_true(rig->lane->backlog == 0 && rig->lane->psns == 0);
}

static unsigned fill(struct rig *rig, enum rail_class klass)
{
    unsigned n = 0;
    while (post(rig, RAIL_KIND_WRITE, klass, 8, n) == 0)
        n++;
    assert_false(rail_lane_room(rig->lane, klass, RAIL_KIND_WRITE, 8));
    assert_int_equal(post(rig, RAIL_KIND_WRITE, klass, 8, n), -EAGAIN);
    return n;
}

static void slots_are_kept_for_words_and_for_mail(void **state)
{
    struct rig *rig = *state;
    unsigned bulk = fill(rig, RAIL_CLASS_BULK);
    unsigned word = fill(rig, RAIL_CLASS_WORD);
    assert_int_equal(bulk + word, DEPTH - RAIL_MAIL_SLOTS);
    assert_int_equal(word, 16);
    assert_int_equal(rail_mail_ask_echo(&rig->lane->mail, 1), 0);
    assert_int_equal(rail_lane_pump_mail(rig->lane), 1);
    assert_int_equal(fake_pending(rig->qp), bulk + word + 1);
    /* A slot comes free only when its completion has been polled. */
    fake_end(rig->qp, 0);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, 0), -EAGAIN);
    fake_end(rig->qp, 0);
    assert_int_equal(rail_poll(&rig->queue, rig->event), 2);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, 0), 0);
}

static void psns_outstanding_stay_below_half_the_space(void **state)
{
    struct rig *rig = *state;
    rig->lane->mtu = 256;
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 1u << 30, 1), 0);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 1u << 30, 2), -EAGAIN);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, (1u << 30) - 256, 2), 0);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, 3), -EAGAIN);
    fake_end(rig->qp, 0);
    assert_int_equal(rail_poll(&rig->queue, rig->event), 1);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, 3), 0);
}

static void a_flush_returns_each_record_once(void **state)
{
    struct rig *rig = *state;
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 1000, i), 0);
    fake_end(rig->qp, 0);
    fake_end(rig->qp, -EACCES);
    rail_lane_stop(rig->lane);
    assert_true(fake_stopped(rig->qp));
    assert_int_equal(rail_poll(&rig->queue, rig->event), 5);
    static const int errors[] = {0, -EACCES, -ECANCELED, -ECANCELED, -ECANCELED};
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(rig->event[i].record.cookie, i);
        assert_int_equal(rig->event[i].error, errors[i]);
    }
    assert_int_equal(rail_poll(&rig->queue, rig->event), 0);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8, 9), -ENOTCONN);
    assert_false(rail_lane_room(rig->lane, RAIL_CLASS_WORD, RAIL_KIND_WRITE, 8));
}

static void a_refused_post_leaves_no_trace(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8192, 1), 0);
    uint32_t psn = rig->lane->next_psn;
    fake_fail(FAKE_POST_SEND, 0, -ENOMEM);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8192, 2), -ENOMEM);
    assert_int_equal(rig->lane->next_psn, psn);
    assert_true(rig->lane->backlog == 8192 && rig->lane->psns == 2);
    assert_true(fake_stopped(rig->qp));
    assert_int_equal(rail_poll(&rig->queue, rig->event), 1);
    assert_int_equal(rig->event[0].record.cookie, 1);
}

static void a_refusal_is_never_called_try_again(void **state)
{
    struct rig *rig = *state;
    fake_fail(FAKE_POST_SEND, 0, -EAGAIN);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8, 2), -EIO);
}

static void stray_completions_end_the_queue(void **state)
{
    struct rig *rig = *state;
    static const uint64_t stray[] = {0, 1, UINT64_C(7) << 32, UINT64_C(1) << 63 | 99};
    fake_stray(rig->qp, stray[rig->variant], 0); /* nothing is outstanding, so none of them fits */
    assert_int_equal(rail_poll(&rig->queue, rig->event), 0);
    assert_int_equal(rig->queue.taken, 1);
    assert_false(fake_stopped(rig->qp));
    assert_int_equal(rail_poll(&rig->queue, rig->event), 1);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_BROKEN);
    assert_int_equal(rig->event[0].error, -EPROTO);
    assert_true(fake_stopped(rig->qp));
    assert_int_equal(rail_poll(&rig->queue, rig->event), 0);
}

static void a_completion_out_of_order_is_not_believed(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8, 1), 0);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8, 2), 0);
    fake_stray(rig->qp, fake_send(rig->qp, 1)->id, 0);
    fake_end(rig->qp, 0); /* in the same poll, behind the one that cannot be: not believed either */
    assert_int_equal(rail_poll(&rig->queue, rig->event), 0);
    assert_int_equal(rail_poll(&rig->queue, rig->event), 3);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_BROKEN);
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(rig->event[i].kind, RAIL_EVENT_DONE);
        assert_int_equal(rig->event[i].error, -EPROTO);
        assert_int_equal(rig->event[i].record.cookie, i);
    }
    assert_int_equal(rail_poll(&rig->queue, rig->event), 0);
}

/* More records than one poll hands out: each comes back once, in order, and the books are empty in the end. */
static void a_queue_that_cannot_be_polled_hands_all_back(void **state)
{
    struct rig *rig = *state;
    unsigned posted = fill(rig, RAIL_CLASS_WORD), back = 0;
    assert_true(posted > RAIL_POLL_MAX);
    fake_fail(FAKE_POLL, 0, -EIO);
    for (unsigned n; (n = rail_poll(&rig->queue, rig->event)) > 0;) {
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(rig->event[i].error, -EIO);
            if (rig->event[i].kind == RAIL_EVENT_DONE)
                assert_int_equal(rig->event[i].record.cookie, back++);
        }
    }
    assert_int_equal(back, posted);
    assert_true(rig->lane->backlog == 0 && rig->lane->psns == 0);
    assert_int_equal(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8, 9), -ENOTCONN);
}

static void silent_completions_are_counted(void **state)
{
    struct rig *rig = *state;
    rail_lane_stop(rig->lane);
    assert_int_equal(rail_poll(&rig->queue, rig->event), 0);
    assert_int_equal(rig->queue.taken, RAIL_MAIL_DEPTH); /* the flushed receives */
}

static void an_echo_goes_round_a_lane_to_oneself(void **state)
{
    struct rig *rig = *state;
    for (uint64_t round = 1; round < 200; round++) {
        uint64_t nonce = 0;
        assert_int_equal(rail_mail_ask_echo(&rig->lane->mail, round), 0);
        assert_true(rail_lane_pump_mail(rig->lane) >= 0);
        while (fake_pending(rig->qp) > 0) {
            fake_end(rig->qp, 0);
            unsigned n = rail_poll(&rig->queue, rig->event);
            for (unsigned i = 0; i < n; i++) {
                assert_int_equal(rig->event[i].kind, RAIL_EVENT_MAIL);
                if (rig->event[i].mail.type == RAIL_MAIL_ECHO_REPLY)
                    nonce = rig->event[i].mail.nonce;
            }
        }
        assert_true(nonce == round);
        assert_int_equal(rig->lane->mail_busy, 0);
    }
}

static void a_malformed_message_breaks_the_lane(void **state)
{
    struct rig *rig = *state;
    fake_arrive(rig->qp, "not a message of braid's at all", 31);
    assert_int_equal(rail_poll(&rig->queue, rig->event), 1);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_BROKEN);
    assert_int_equal(rig->event[0].error, -EPROTO);
}

static void another_version_is_reported_and_refused(void **state)
{
    struct rig *rig = *state;
    uint8_t bytes[RAIL_MAIL_BYTES];
    struct rail_mail_msg msg = {.version = 9, .type = RAIL_MAIL_ECHO};
    rail_mail_format(&msg, bytes);
    fake_arrive(rig->qp, bytes, sizeof(bytes));
    assert_int_equal(rail_poll(&rig->queue, rig->event), 1);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_MAIL);
    assert_int_equal(rig->event[0].error, -EPROTONOSUPPORT);
    assert_int_equal(rig->event[0].mail.version, 9);
    assert_int_equal(fake_pending(rig->qp), 1);
    assert_int_equal(((const uint8_t *)(uintptr_t)fake_send(rig->qp, 0)->local_addr)[3], RAIL_MAIL_REJECT);
}

static void a_queue_takes_the_lanes_it_was_made_for(void **state)
{
    struct rig *rig = *state;
    struct rail_lane *lane;
    assert_int_equal(rail_lane_open(&rig->queue, 0, &lane), -ENOSPC);
}

static void ports_are_checked(void **state)
{
    struct rig *rig = *state;
    struct rail *rail = NULL;
    struct rail_config config = {.sq_depth = DEPTH, .gid_index = UINT32_MAX};
    assert_int_equal(rail_open(rig->verbs, NULL, "fake16", 1, &config, &rail), -ENODEV);
    assert_int_equal(rail_open(rig->verbs, NULL, "fake0", 2, &config, &rail), -ENODEV);
    assert_int_equal(rail_open(rig->verbs, NULL, "fake12", 1, &config, &rail), -ENETDOWN);
    config.gid_index = 5;
    assert_int_equal(rail_open(rig->verbs, NULL, "fake0", 1, &config, &rail), -EINVAL);
    config.gid_index = 0;
    config.sq_depth = 20000;
    assert_int_equal(rail_open(rig->verbs, NULL, "fake0", 1, &config, &rail), -EINVAL);
    assert_null(rail);
}

#define WITH_LANE(f) cmocka_unit_test_setup_teardown(f, make, drop)
#define WITH_STRAY   cmocka_unit_test_setup_teardown(stray_completions_end_the_queue, make_stray, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(psns_are_counted_as_the_wire_does),
        WITH_LANE(records_follow_each_other_and_psns_wrap),
        WITH_LANE(slots_are_kept_for_words_and_for_mail),
        WITH_LANE(psns_outstanding_stay_below_half_the_space),
        WITH_LANE(a_flush_returns_each_record_once),
        WITH_LANE(a_refused_post_leaves_no_trace),
        WITH_LANE(a_refusal_is_never_called_try_again),
        WITH_STRAY,
        WITH_STRAY,
        WITH_STRAY,
        WITH_STRAY,
        WITH_LANE(a_queue_that_cannot_be_polled_hands_all_back),
        WITH_LANE(silent_completions_are_counted),

        WITH_LANE(a_completion_out_of_order_is_not_believed),
        WITH_LANE(an_echo_goes_round_a_lane_to_oneself),
        WITH_LANE(a_malformed_message_breaks_the_lane),
        WITH_LANE(another_version_is_reported_and_refused),
        WITH_LANE(a_queue_takes_the_lanes_it_was_made_for),
        WITH_LANE(ports_are_checked),
    };
    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
