/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail.c - the mailbox's messages, credits and refusals. Links rail's mailbox alone: no verbs. */
#include "unit.h"

#include "rail_mail.h"

static void deliver(struct rail_mail *to, const struct rail_mail_msg *msg, int expected)
{
    uint8_t bytes[RAIL_MAIL_BYTES];
    struct rail_mail_msg out;
    rail_mail_format(msg, bytes);
    assert_int_equal(rail_mail_receive(to, bytes, sizeof(bytes), &out), expected);
}

static void an_echo_is_answered(void **state)
{
    (void)state;
    struct rail_mail a = {0}, b = {0};
    struct rail_mail_msg msg, out;
    uint8_t bytes[RAIL_MAIL_BYTES];
    assert_false(rail_mail_next(&a, &msg));
    assert_int_equal(rail_mail_ask_echo(&a, 0x1234), 0);
    assert_int_equal(rail_mail_ask_echo(&a, 0x5678), -EBUSY);
    assert_true(rail_mail_next(&a, &msg));
    assert_false(rail_mail_next(&a, &out));
    deliver(&b, &msg, 0);
    assert_true(rail_mail_next(&b, &msg));
    assert_int_equal(msg.type, RAIL_MAIL_ECHO_REPLY);
    assert_int_equal(msg.consumed, 1);
    rail_mail_format(&msg, bytes);
    assert_int_equal(rail_mail_receive(&a, bytes, sizeof(bytes), &out), 0);
    assert_int_equal(out.type, RAIL_MAIL_ECHO_REPLY);
    assert_true(out.nonce == 0x1234);
    assert_int_equal(a.peer_consumed, 1);
}

static void another_version_is_refused_once(void **state)
{
    (void)state;
    struct rail_mail a = {0}, b = {0};
    struct rail_mail_msg msg = {.version = 9, .type = RAIL_MAIL_ECHO};
    deliver(&b, &msg, -EPROTONOSUPPORT);
    assert_true(rail_mail_next(&b, &msg));
    assert_int_equal(msg.type, RAIL_MAIL_REJECT);
    assert_int_equal(msg.spoken, RAIL_MAIL_VERSION);
    assert_false(rail_mail_next(&b, &msg));

    /* The refusal reaches the one who sent the message; it is of another version than his, and is not answered. */
    a.sent = 1;
    msg = (struct rail_mail_msg){.version = 7, .type = RAIL_MAIL_REJECT, .consumed = 1};
    uint8_t bytes[RAIL_MAIL_BYTES];
    struct rail_mail_msg out;
    msg.spoken = 7;
    rail_mail_format(&msg, bytes);
    assert_int_equal(rail_mail_receive(&a, bytes, sizeof(bytes), &out), -EPROTONOSUPPORT);
    assert_int_equal(out.type, RAIL_MAIL_REJECT);
    assert_int_equal(a.rejected, 7);
    assert_false(rail_mail_next(&a, &msg));
}

static void garbage_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct rail_mail_msg msg = {.version = RAIL_MAIL_VERSION, .type = RAIL_MAIL_ECHO}, out;
    uint8_t good[RAIL_MAIL_BYTES], bad[RAIL_MAIL_BYTES + 1] = {0};
    static const struct {
        size_t at;
        uint8_t value;
    } change[] = {{0, 0}, {1, 0},  {3, 0},   {3, 5}, {3, 255}, {4, 7},
                  {4, 9}, {4, 49}, {5, 255}, {8, 1}, {12, 1},  {15, 255}};
    rail_mail_format(&msg, good);
    for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
        struct rail_mail mail = {0}, before = {0};
        memcpy(bad, good, sizeof(good));
        bad[change[i].at] = change[i].value;
        assert_int_equal(rail_mail_receive(&mail, bad, sizeof(good), &out), -EPROTO);
        assert_memory_equal(&mail, &before, sizeof(mail));
    }
    for (size_t len = 0; len < 24; len++) {
        struct rail_mail mail = {0};
        assert_int_equal(rail_mail_receive(&mail, good, len, &out), -EPROTO);
    }
    struct rail_mail mail = {0};
    assert_int_equal(rail_mail_receive(&mail, bad, sizeof(bad), &out), -EPROTO);
}

static void a_repeated_or_missing_message_is_noticed(void **state)
{
    (void)state;
    struct rail_mail mail = {0};
    struct rail_mail_msg msg = {.version = RAIL_MAIL_VERSION, .type = RAIL_MAIL_CREDIT};
    deliver(&mail, &msg, 0);
    deliver(&mail, &msg, -EPROTO);
    msg.seq = 2;
    deliver(&mail, &msg, -EPROTO);
    msg.seq = 1;
    deliver(&mail, &msg, 0);
}

static void sequence_numbers_wrap(void **state)
{
    (void)state;
    struct rail_mail a = {.sent = UINT32_MAX, .peer_consumed = UINT32_MAX, .received = 5, .reported = 5};
    struct rail_mail b = {.sent = 5, .peer_consumed = 5, .received = UINT32_MAX, .reported = UINT32_MAX};
    struct rail_mail_msg msg;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rail_mail_ask_echo(&a, 1), 0);
        assert_true(rail_mail_next(&a, &msg));
        deliver(&b, &msg, 0);
        assert_true(rail_mail_next(&b, &msg));
        deliver(&a, &msg, 0);
    }
}

/* Every field arrives; what only another type has does not. */
static void atomics_and_replies_travel_whole(void **state)
{
    (void)state;
    struct rail_mail a = {0}, b = {0};
    uint8_t bytes[RAIL_MAIL_BYTES];
    struct rail_mail_msg out, msg = {.type = RAIL_MAIL_ATOMIC, .nonce = 99, .reply = {.id = 98}};
    msg.atomic = (struct rail_mail_atomic){.addr = UINT64_MAX - 7,
                                           .operand = UINT64_C(0x8877665544332211),
                                           .compare = UINT64_C(0x1122334455667788),
                                           .id = UINT32_MAX,
                                           .rkey = 0xdeadbeef,
                                           .op = 255,
                                           .bytes = 8};
    assert_int_equal(rail_mail_send(&a, &msg), 0);
    rail_mail_format(&msg, bytes);
    assert_int_equal(rail_mail_receive(&b, bytes, sizeof(bytes), &out), 0);
    assert_int_equal(out.type, RAIL_MAIL_ATOMIC);
    assert_true(out.atomic.addr == msg.atomic.addr && out.atomic.operand == msg.atomic.operand);
    assert_true(out.atomic.compare == msg.atomic.compare && out.atomic.id == UINT32_MAX);
    assert_true(out.atomic.rkey == 0xdeadbeef && out.atomic.op == 255 && out.atomic.bytes == 8);
    assert_true(out.nonce == 0 && out.reply.id == 0);

    msg = (struct rail_mail_msg){.type = RAIL_MAIL_ATOMIC_REPLY};
    msg.reply = (struct rail_mail_reply){.old = UINT64_MAX - 1, .id = 7, .status = -4095};
    assert_int_equal(rail_mail_send(&b, &msg), 0);
    assert_int_equal(msg.consumed, 1);
    rail_mail_format(&msg, bytes);
    assert_int_equal(rail_mail_receive(&a, bytes, sizeof(bytes), &out), 0);
    assert_int_equal(out.type, RAIL_MAIL_ATOMIC_REPLY);
    assert_true(out.reply.old == UINT64_MAX - 1 && out.reply.id == 7 && out.reply.status == -4095);
    assert_int_equal(a.peer_consumed, 1);
}

static void refuse_payload(uint8_t type, size_t at, uint8_t value)
{
    uint8_t bytes[RAIL_MAIL_BYTES];
    struct rail_mail mail = {0}, before = {0};
    struct rail_mail_msg out, msg = {.version = RAIL_MAIL_VERSION, .type = type, .atomic = {.bytes = 4}};
    rail_mail_format(&msg, bytes);
    for (size_t len = 0; len < (type == RAIL_MAIL_ATOMIC ? 56u : 32u); len++)
        assert_int_equal(rail_mail_receive(&mail, bytes, len, &out), -EPROTO);
    bytes[at] = value;
    assert_int_equal(rail_mail_receive(&mail, bytes, sizeof(bytes), &out), -EPROTO);
    assert_memory_equal(&mail, &before, sizeof(mail));
}

static void payloads_are_checked(void **state)
{
    (void)state;
    refuse_payload(RAIL_MAIL_ATOMIC, 16 + 5, 0); /* bytes of the operand */
    refuse_payload(RAIL_MAIL_ATOMIC, 16 + 5, 2);
    refuse_payload(RAIL_MAIL_ATOMIC, 4, 41);           /* payload bytes */
    refuse_payload(RAIL_MAIL_ATOMIC, 3, 7);            /* type */
    refuse_payload(RAIL_MAIL_ATOMIC_REPLY, 16 + 4, 1); /* a positive status */
    refuse_payload(RAIL_MAIL_ATOMIC_REPLY, 16 + 7, 0x80);
    refuse_payload(RAIL_MAIL_ATOMIC_REPLY, 4, 8);
}

/* Neither end may fill the other's receives, however much it wants to send. */
static void senders_stop_at_the_window(void **state)
{
    (void)state;
    struct rail_mail a = {0}, b = {0};
    struct rail_mail_msg msg = {.type = RAIL_MAIL_ATOMIC, .atomic = {.bytes = 8}}, credit;
    for (unsigned round = 0; round < 10; round++) {
        unsigned sent = 0;
        while (rail_mail_send(&a, &msg) == 0) {
            deliver(&b, &msg, 0);
            sent++;
        }
        assert_true(sent > 0);
        assert_int_equal(a.sent - a.peer_consumed, RAIL_MAIL_DEPTH - 1);
        assert_true(rail_mail_next(&b, &credit));
        assert_int_equal(credit.type, RAIL_MAIL_CREDIT);
        deliver(&a, &credit, 0);
    }
}

/* A reply says what has been consumed, so that no CREDIT need say it again. */
static void a_reply_reports_what_was_consumed(void **state)
{
    (void)state;
    struct rail_mail a = {0}, b = {0};
    struct rail_mail_msg msg = {.type = RAIL_MAIL_ATOMIC, .atomic = {.bytes = 8}}, credit;
    for (unsigned i = 0; i < RAIL_MAIL_DEPTH / 2; i++) {
        assert_int_equal(rail_mail_send(&a, &msg), 0);
        deliver(&b, &msg, 0);
    }
    msg = (struct rail_mail_msg){.type = RAIL_MAIL_ATOMIC_REPLY};
    assert_int_equal(rail_mail_send(&b, &msg), 0);
    assert_false(rail_mail_next(&b, &credit));
    deliver(&a, &msg, 0);
    assert_int_equal(a.sent - a.peer_consumed, 0);
}

/* Nobody answers: asking must stop one short of the window, and the last place must still carry a CREDIT. */
static void the_window_is_kept_with_a_place_for_credit(void **state)
{
    (void)state;
    struct rail_mail mail = {0};
    struct rail_mail_msg msg;
    unsigned sent = 0;
    for (int i = 0; i < 100; i++) {
        (void)rail_mail_ask_echo(&mail, 1);
        sent += rail_mail_next(&mail, &msg);
    }
    assert_int_equal(sent, RAIL_MAIL_DEPTH - 1);
    for (uint32_t i = 0; i < RAIL_MAIL_DEPTH / 2; i++) {
        msg = (struct rail_mail_msg){.version = RAIL_MAIL_VERSION, .type = RAIL_MAIL_CREDIT, .seq = i};
        deliver(&mail, &msg, 0);
    }
    assert_true(rail_mail_next(&mail, &msg));
    assert_int_equal(msg.type, RAIL_MAIL_CREDIT);
    assert_int_equal(msg.consumed, RAIL_MAIL_DEPTH / 2);
    assert_false(rail_mail_next(&mail, &msg));
    assert_int_equal(mail.sent, RAIL_MAIL_DEPTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_echo_is_answered),
        cmocka_unit_test(another_version_is_refused_once),
        cmocka_unit_test(garbage_is_refused_and_changes_nothing),
        cmocka_unit_test(a_repeated_or_missing_message_is_noticed),
        cmocka_unit_test(sequence_numbers_wrap),
        cmocka_unit_test(atomics_and_replies_travel_whole),
        cmocka_unit_test(payloads_are_checked),
        cmocka_unit_test(senders_stop_at_the_window),
        cmocka_unit_test(a_reply_reports_what_was_consumed),
        cmocka_unit_test(the_window_is_kept_with_a_place_for_credit),
    };
    return cmocka_run_group_tests_name("mail", tests, NULL, NULL);
}
