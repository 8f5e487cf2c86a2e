/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_atomic.c - atomics as their caller sees them, over a fake device: native ones on the home lane, the others asked of
 * a peer whom the test plays: answers, refusals, repeats, lanes that die.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs.
 */
#include "peer_rig.h"

static int make_two(void **state)
{
    (void)state;
    make_peer(NULL, -1);
    return 0;
}

static int make_homeless(void **state)
{
    (void)state;
    make_peer(NULL, PEER);
    return 0;
}

static uint64_t old;

static int atomic(enum braid_atomic_op op, unsigned bytes, uint64_t operand, uint64_t compare)
{
    struct braid_atomic a = {op, bytes, operand, compare};
    return braid_atomic(rig.ch, 1, there(64), &a, &old, &rig.done);
}

static int signal_peer(void)
{
    return braid_signal_add(rig.ch, 1, there(0), 1, &rig.done);
}

static void reply(unsigned lane, uint32_t id, int32_t status, uint64_t value)
{
    struct rail_mail_msg msg = {.type = RAIL_MAIL_ATOMIC_REPLY, .reply = {value, id, status}};
    peer_send(PEER + lane, &msg);
}

static uint64_t word(void)
{
    uint64_t value;
    memcpy(&value, memory + 64, sizeof(value));
    return value;
}

static void four_kinds_are_native(void **state)
{
    (void)state;
    static const struct {
        struct braid_atomic atomic;
        enum verbs_op op;
        uint64_t after;
    } cases[] = {
        {{BRAID_ATOMIC_ADD, 8, 5, 0}, VERBS_OP_FETCH_ADD, 15},
        {{BRAID_ATOMIC_FETCH, 8, 99, 0}, VERBS_OP_FETCH_ADD, 10},
        {{BRAID_ATOMIC_FETCH_ADD, 8, UINT64_MAX, 0}, VERBS_OP_FETCH_ADD, 9},
        {{BRAID_ATOMIC_COMPARE_SWAP, 8, 3, 10}, VERBS_OP_COMPARE_SWAP, 3},
        {{BRAID_ATOMIC_COMPARE_SWAP, 8, 3, 11}, VERBS_OP_COMPARE_SWAP, 10},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t ten = 10;
        memcpy(memory + 64, &ten, 8);
        old = 77;
        assert_int_equal(braid_atomic(rig.ch, 1, there(64), &cases[i].atomic, &old, &rig.done), 0);
        assert_int_equal(pending(PEER), 1);
        assert_int_equal(fake_send(rig.qp[PEER], 0)->op, cases[i].op);
        assert_true(fake_key(fake_send(rig.qp[PEER], 0)) == home_rkey());
        assert_true(old == 77 && rig.done.ok == i);
        end(PEER, 1);
        assert_true(old == 10 && rig.done.ok == i + 1);
        assert_true(word() == cases[i].after);
    }
    assert_true(stats().messages == 0);
}

static void all_others_are_asked_of_the_target(void **state)
{
    (void)state;
    unsigned asked = 0;
    for (unsigned bytes = 4; bytes <= 8; bytes += 4) {
        for (enum braid_atomic_op op = BRAID_ATOMIC_ADD; op <= BRAID_ATOMIC_FETCH_XOR; op++) {
            if (bytes == 8 && op <= BRAID_ATOMIC_COMPARE_SWAP)
                continue;
            assert_int_equal(atomic(op, bytes, 7, 8), 0);
            struct rail_mail_msg msg = peer_read(PEER);
            assert_int_equal(msg.type, RAIL_MAIL_ATOMIC);
            assert_true(msg.atomic.id == asked && msg.atomic.op == op && msg.atomic.bytes == bytes);
            assert_true(msg.atomic.operand == 7 && msg.atomic.compare == 8 && msg.atomic.rkey == home_rkey());
            assert_true(msg.atomic.addr == (uintptr_t)memory + 64);
            assert_true(rig.done.ok == asked);
            reply(0, asked, 0, 1000 + asked);
            assert_true(old == 1000 + asked);
            asked++;
            assert_true(rig.done.ok == asked);
        }
    }
    assert_int_equal(asked, 20);
    assert_int_equal(braid_quiet(rig.ch, 1), 0);
}

/* It waits for everything before it, its own lane included, and everything behind it waits for the answer. */
static void a_message_keeps_its_place(void **state)
{
    (void)state;
    assert_int_equal(signal_peer(), 0);
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), 0);
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 2, 0), 0);
    assert_int_equal(signal_peer(), 0);
    assert_int_equal(mails(PEER), 0);
    assert_int_equal(flushes_posted(PEER), 1);
    end(PEER, 1);
    assert_int_equal(mails(PEER), 0);
    end(PEER, 1);
    assert_int_equal(mails(PEER), 2); /* of one peer they are executed in order: no answer between */
    assert_int_equal(peer_read(PEER).atomic.id, 0);
    assert_int_equal(peer_read(PEER).atomic.id, 1);
    assert_int_equal(posted(PEER, VERBS_OP_FETCH_ADD), 0);
    reply(0, 1, 0, 0); /* the first one is still out */
    assert_true(rig.done.ok == 2);
    assert_int_equal(posted(PEER, VERBS_OP_FETCH_ADD), 0);
    reply(0, 0, 0, 0);
    assert_int_equal(posted(PEER, VERBS_OP_FETCH_ADD), 1);
    end(PEER, 1);
    assert_true(rig.done.ok == 4);
}

static void refusals_end_the_op(void **state)
{
    (void)state;
    old = 77;
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), 0);
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), 0);
    (void)peer_read(PEER);
    (void)peer_read(PEER);
    reply(0, 0, -EACCES, 5);
    assert_true(rig.done.failed == 1 && rig.done.ok == 0 && old == 77);
    assert_int_equal(rig.done.error, -EACCES);
    /* What is behind it would announce it: nothing that is ordered goes any more, bulk does. */
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), -ENOTCONN);
    assert_int_equal(atomic(BRAID_ATOMIC_ADD, 8, 1, 0), -ENOTCONN);
    reply(0, 1, 0, 5); /* was asked before */
    assert_true(rig.done.failed == 1 && rig.done.ok == 1 && old == 5);
    assert_int_equal(braid_quiet(rig.ch, 1), -EACCES);
    assert_non_null(strstr(rig.log, "PE 1 refused an atomic on 0x"));
    assert_non_null(strstr(rig.log, "Permission denied"));
}

static void answers_that_nobody_waits_for_do_no_harm(void **state)
{
    (void)state;
    reply(0, 0, 0, 1);
    reply(1, 12345, -EIO, 1);
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), 0);
    (void)peer_read(PEER);
    reply(0, 1, 0, 5); /* not asked yet */
    reply(0, UINT32_MAX, 0, 5);
    assert_true(rig.done.ok == 0);
    reply(1, 0, 0, 6);
    reply(0, 0, 0, 7); /* again */
    assert_true(rig.done.ok == 1 && old == 6);
}

static void an_overdue_answer_is_asked_for_on_another_lane(void **state)
{
    (void)state;
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), 0);
    (void)peer_read(PEER);
    rig.now += 999999;
    settle();
    assert_int_equal(mails(PEER) + mails(PEER + 1), 0);
    rig.now += 2;
    settle();
    assert_true(mails(PEER) == 0 && mails(PEER + 1) == 1);
    assert_true(peer_read(PEER + 1).atomic.id == 0);
    settle();
    assert_int_equal(mails(PEER) + mails(PEER + 1), 0);
    rig.now += 1000001;
    settle();
    assert_true(peer_read(PEER).atomic.id == 0); /* and so on */
    assert_true(stats().messages == 3);
    reply(0, 0, 0, 9);
    assert_true(rig.done.ok == 1 && old == 9);
    rig.now += 5000000;
    settle();
    assert_int_equal(mails(PEER) + mails(PEER + 1), 0);
}

static void a_dead_lane_is_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), 0);
    fake_end(rig.qp[PEER], -ETIMEDOUT); /* the message itself */
    settle();
    assert_true(fake_stopped(rig.qp[PEER]));
    assert_true(peer_read(PEER + 1).atomic.id == 0);
    reply(1, 0, 0, 4);
    assert_true(rig.done.ok == 1 && old == 4);
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), -ENOTCONN); /* the lane of word ops is gone */
}

static void without_a_lane_it_fails(void **state)
{
    (void)state;
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), 0);
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), 0);
    for (unsigned k = 0; k < 2; k++) {
        fake_end(rig.qp[PEER + k], -ETIMEDOUT);
        settle();
    }
    assert_true(rig.done.failed == 2 && rig.done.ok == 0);
    assert_int_equal(rig.done.error, -ENOTCONN);
    assert_int_equal(braid_quiet(rig.ch, 1), -ENOTCONN);
}

static void a_refused_message_is_asked_again(void **state)
{
    (void)state;
    fake_fail(FAKE_POST_SEND, 0, -ENOMEM);
    assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, 1, 0), 0);
    settle();
    assert_true(peer_read(PEER + 1).atomic.id == 0);
    reply(1, 0, 0, 4);
    assert_true(rig.done.ok == 1 && rig.done.failed == 0);
}

static void so_many_are_outstanding_and_no_more(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(atomic(BRAID_ATOMIC_SWAP, 8, i, 0), 0);
    unsigned asked = 0;
    for (; mails(PEER); asked++)
        assert_true(peer_read(PEER).atomic.id == asked);
    assert_int_equal(asked, 8);
    reply(0, 3, 0, 0);
    assert_int_equal(mails(PEER), 0); /* ids 0 to 7 are a window: the oldest holds it */
    reply(0, 0, 0, 0);
    assert_int_equal(mails(PEER), 1);
    assert_true(peer_read(PEER).atomic.id == 8);
    reply(0, 1, 0, 0);
    reply(0, 2, 0, 0);
    settle();
    unsigned more = 0;
    for (; mails(PEER); more++)
        (void)peer_read(PEER);
    assert_int_equal(more, 3); /* 1, 2 and 3 */
    for (uint32_t id = 4; id < 12; id++)
        reply(0, id, 0, 0);
    assert_true(rig.done.ok == 12);
}

/* The peer's home rail is not reached: everything atomic is asked for, words go on another lane. */
static void a_peer_without_its_home_is_asked_for_all(void **state)
{
    (void)state;
    assert_non_null(strstr(rig.log, "no lane reaches the home rail (0) of PE 1"));
    assert_int_equal(braid_lane_count(rig.ch, 1), 1);
    assert_int_equal(signal_peer(), 0);
    struct rail_mail_msg msg = peer_read(PEER + 1);
    assert_true(msg.atomic.op == BRAID_ATOMIC_ADD && msg.atomic.bytes == 8 && msg.atomic.rkey == home_rkey());
    assert_int_equal(braid_signal_set(rig.ch, 1, there(8), 5, &rig.done), 0);
    assert_int_equal(pending(PEER + 1), 0); /* behind the answer */
    reply(1, 0, 0, 0);
    assert_int_equal(posted(PEER + 1, VERBS_OP_WRITE), 1);
    assert_true(fake_key(fake_send(rig.qp[PEER + 1], 0)) == rail_wire_view_rkey(rig.key.bytes, 1, true));
    assert_int_equal(braid_quiet(rig.ch, 1), 0);
    assert_true(rig.done.ok == 2);
}

static int make_home_fault(void **state)
{
    (void)state;
    make_peer("fault=home", -1);
    return 0;
}

static void the_home_rule_can_be_switched_off(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(signal_peer(), 0);
        assert_int_equal(braid_quiet(rig.ch, 1), 0);
    }
    struct braid_rail_stats rail;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(braid_rail_stats_at(rig.b, i, &rail), 0);
        assert_true(rail.word_ops == 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(four_kinds_are_native, make_two),
        WITH(all_others_are_asked_of_the_target, make_two),
        WITH(a_message_keeps_its_place, make_two),
        WITH(refusals_end_the_op, make_two),
        WITH(answers_that_nobody_waits_for_do_no_harm, make_two),
        WITH(an_overdue_answer_is_asked_for_on_another_lane, make_two),
        WITH(a_dead_lane_is_not_waited_for, make_two),
        WITH(without_a_lane_it_fails, make_two),
        WITH(a_refused_message_is_asked_again, make_two),
        WITH(so_many_are_outstanding_and_no_more, make_two),
        WITH(a_peer_without_its_home_is_asked_for_all, make_homeless),
        WITH(the_home_rule_can_be_switched_off, make_home_fault),
    };
    return cmocka_run_group_tests_name("api_atomic", tests, NULL, NULL);
}
