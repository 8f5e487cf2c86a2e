/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_exec.c - the executor of target-executed atomics over a fake device: the test plays a peer that asks. What is
 * executed and how, in which order, exactly once; what is refused without being executed; what a lost lane does.
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
    make_peer(NULL, SELF);
    return 0;
}

static int make_dedup(void **state)
{
    (void)state;
    make_peer("fault=dedup", -1);
    return 0;
}

/* What the next ask() asks for, but for its id and lane. */
static struct rail_mail_atomic next_ask;

static void want(enum braid_atomic_op op, unsigned bytes, uint64_t operand, uint64_t compare)
{
    next_ask = (struct rail_mail_atomic){.addr = (uintptr_t)memory + 64,
                                         .operand = operand,
                                         .compare = compare,
                                         .rkey = home_rkey(),
                                         .op = (uint8_t)op,
                                         .bytes = (uint8_t)bytes};
}

static void ask(unsigned qp, uint32_t id)
{
    struct rail_mail_msg msg = {.type = RAIL_MAIL_ATOMIC, .atomic = next_ask};
    msg.atomic.id = id;
    peer_send(qp, &msg);
}

static void set_word(uint64_t value)
{
    memcpy(memory + 64, &value, sizeof(value));
}

static uint64_t word(void)
{
    uint64_t value;
    memcpy(&value, memory + 64, sizeof(value));
    return value;
}

/* Ends what the executor posts until an answer is under way on a QP; how many requests that took. */
static unsigned run_until(unsigned qp)
{
    unsigned n = 0;
    for (; !mails(qp) && pending(SELF) > 0 && n < 20; n++)
        end(SELF, 1);
    return n;
}

static void check_answer(unsigned qp, uint32_t id, int32_t status, uint64_t value)
{
    assert_int_equal(mails(qp), 1);
    struct rail_mail_msg msg = peer_read(qp);
    assert_int_equal(msg.type, RAIL_MAIL_ATOMIC_REPLY);
    if (msg.reply.id != id || msg.reply.status != status || (!status && msg.reply.old != value))
        fail_msg("answer %u: status %d, old %llu", msg.reply.id, msg.reply.status, (unsigned long long)msg.reply.old);
}

/* What braid.h says that each does. */
static uint64_t model(enum braid_atomic_op op, uint64_t seen, uint64_t operand, uint64_t compare)
{
    switch (op) {
    case BRAID_ATOMIC_ADD:
    case BRAID_ATOMIC_FETCH_ADD:
        return seen + operand;
    case BRAID_ATOMIC_FETCH:
        return seen;
    case BRAID_ATOMIC_COMPARE_SWAP:
        return seen == compare ? operand : seen;
    case BRAID_ATOMIC_SET:
    case BRAID_ATOMIC_SWAP:
        return operand;
    case BRAID_ATOMIC_AND:
    case BRAID_ATOMIC_FETCH_AND:
        return seen & operand;
    case BRAID_ATOMIC_OR:
    case BRAID_ATOMIC_FETCH_OR:
        return seen | operand;
    default:
        return seen ^ operand;
    }
}

static void each_op_does_what_it_says(void **state)
{
    (void)state;
    static const uint64_t operands[] = {0, 1, 0xf0f0f0f0f0f0f0f0u, UINT64_MAX}, low = UINT32_MAX;
    static const uint64_t words[] = {0, 0x00ff00ff12345678u, UINT64_MAX};
    uint32_t id = 0;
    for (unsigned n = 0; n < 12 * 2 * 4 * 3 * 2; n++) {
        enum braid_atomic_op op = (enum braid_atomic_op)(n % 12);
        unsigned bytes = n / 12 % 2 ? 4 : 8;
        uint64_t operand = operands[n / 24 % 4], before = words[n / 96 % 3], compare = n / 288 ? before : 7;
        uint64_t mask = bytes == 4 ? low : UINT64_MAX;
        set_word(before);
        want(op, bytes, operand, compare);
        ask(PEER, id);
        assert_true(run_until(PEER) >= 2);
        check_answer(PEER, id++, 0, before & mask);
        uint64_t after = (model(op, before & mask, operand & mask, compare & mask) & mask) | (before & ~mask);
        if (word() != after)
            fail_msg("op %d on %u bytes, operand 0x%llx: 0x%llx became 0x%llx, expected 0x%llx", (int)op, bytes,
                     (unsigned long long)operand, (unsigned long long)before, (unsigned long long)word(),
                     (unsigned long long)after);
    }
    assert_true(stats().executed == id);
}

/* Eight bytes: by the device, so that it is atomic with what that does for others; then flushed; then answered. */
static void eight_bytes_are_swapped_until_nobody_came_between(void **state)
{
    (void)state;
    set_word(1);
    want(BRAID_ATOMIC_XOR, 8, 0xff, 0);
    ask(PEER, 0);
    assert_int_equal(pending(SELF), 1);
    const struct verbs_send *send = fake_send(rig.qp[SELF], 0);
    assert_true(send->op == VERBS_OP_FETCH_ADD && send->operand == 0 && fake_key(send) == home_rkey());
    end(SELF, 1);
    set_word(2); /* somebody came between */
    assert_int_equal(fake_send(rig.qp[SELF], 0)->op, VERBS_OP_COMPARE_SWAP);
    end(SELF, 1);
    assert_int_equal(fake_send(rig.qp[SELF], 0)->op, VERBS_OP_COMPARE_SWAP);
    assert_true(word() == 2);
    end(SELF, 1);
    assert_true(word() == (2 ^ 0xff));
    assert_int_equal(pending(SELF), 1);
    assert_true(is_flush(fake_send(rig.qp[SELF], 0)));
    assert_int_equal(mails(PEER), 0);
    end(SELF, 1);
    check_answer(PEER, 0, 0, 2);
}

static void four_bytes_touch_no_neighbour_and_go_one_at_a_time(void **state)
{
    (void)state;
    set_word(0xaaaaaaaa00000001u);
    want(BRAID_ATOMIC_ADD, 4, 1, 0);
    ask(PEER, 0);
    ask(SELF, 0); /* of this PE itself */
    assert_int_equal(pending(SELF), 1);
    assert_true(fake_send(rig.qp[SELF], 0)->op == VERBS_OP_READ && fake_send(rig.qp[SELF], 0)->len == 4);
    end(SELF, 1);
    assert_int_equal(pending(SELF), 1);
    assert_true(fake_send(rig.qp[SELF], 0)->op == VERBS_OP_WRITE && fake_send(rig.qp[SELF], 0)->len == 4);
    end(SELF, 1);
    assert_int_equal(pending(SELF), 1); /* the flush; the other one still waits */
    assert_true(is_flush(fake_send(rig.qp[SELF], 0)));
    end(SELF, 1);
    check_answer(PEER, 0, 0, 1);
    assert_true(run_until(SELF) >= 3);
    check_answer(SELF, 0, 0, 2);
    assert_true(word() == 0xaaaaaaaa00000003u);
}

static void they_are_executed_in_the_order_of_their_ids(void **state)
{
    (void)state;
    want(BRAID_ATOMIC_ADD, 8, 1, 0);
    ask(PEER + 1, 2);
    ask(PEER, 1);
    assert_int_equal(pending(SELF), 0);
    ask(PEER + 1, 0);
    assert_int_equal(pending(SELF), 1);
    run_until(PEER + 1);
    check_answer(PEER + 1, 0, 0, 0); /* each on the lane that it came by */
    run_until(PEER);
    check_answer(PEER, 1, 0, 1);
    run_until(PEER + 1);
    check_answer(PEER + 1, 2, 0, 2);
    assert_true(word() == 3);
}

static void a_repeated_one_is_answered_not_executed(void **state)
{
    (void)state;
    want(BRAID_ATOMIC_ADD, 8, 5, 0);
    ask(PEER, 0);
    run_until(PEER);
    check_answer(PEER, 0, 0, 0);
    ask(PEER + 1, 0);
    assert_int_equal(pending(SELF), 0);
    check_answer(PEER + 1, 0, 0, 0);
    assert_true(word() == 5);
    /* And while it runs: once, answered where it was asked last. */
    ask(PEER, 1);
    ask(PEER + 1, 1);
    run_until(PEER + 1);
    assert_int_equal(mails(PEER), 0);
    check_answer(PEER + 1, 1, 0, 5);
    assert_true(word() == 10);
    assert_int_equal(pending(SELF), 0);
}

static void answers_are_kept_as_long_as_they_can_be_asked_for(void **state)
{
    (void)state;
    want(BRAID_ATOMIC_ADD, 8, 1, 0);
    for (uint32_t id = 0; id < 40; id++) {
        ask(PEER, id);
        run_until(PEER);
        check_answer(PEER, id, 0, id);
    }
    for (uint32_t id = 32; id < 40; id++) { /* an asker has at most so many outstanding */
        ask(PEER + 1, id);
        check_answer(PEER + 1, id, 0, id);
    }
    ask(PEER, 3); /* so old that nobody waits for it */
    ask(PEER, 1000);
    assert_true(pending(SELF) == 0 && mails(PEER) == 0 && word() == 40);
    assert_non_null(strstr(rig.log, "PE 1 asks for atomic 3, expected 40 to 47"));
}

static void repeats_can_be_executed_again(void **state)
{
    (void)state;
    want(BRAID_ATOMIC_ADD, 8, 5, 0);
    for (int i = 0; i < 2; i++) {
        ask(PEER, 0);
        run_until(PEER);
        check_answer(PEER, 0, 0, i ? 5 : 0);
    }
    assert_true(word() == 10);
}

static void what_is_not_this_PE_s_to_give_is_refused(void **state)
{
    (void)state;
    uint32_t id = 0;
    struct {
        uint64_t addr;
        uint32_t rkey;
        uint8_t op;
        int32_t status;
    } cases[] = {
        {(uintptr_t)memory + 64, home_rkey() + 1, BRAID_ATOMIC_ADD, -EACCES},
        {(uintptr_t)memory + 64, 0, BRAID_ATOMIC_ADD, -EACCES},
        {(uintptr_t)memory + 64, rail_wire_view_rkey(rig.key.bytes, 1, true), BRAID_ATOMIC_ADD, -EACCES},
        {(uintptr_t)memory + 64, rail_wire_view_rkey(rig.key.bytes, 0, false), BRAID_ATOMIC_ADD, -EACCES},
        {(uintptr_t)memory - 8, home_rkey(), BRAID_ATOMIC_ADD, -EACCES},
        {(uintptr_t)memory + BYTES, home_rkey(), BRAID_ATOMIC_ADD, -EACCES},
        {UINT64_MAX - 7, home_rkey(), BRAID_ATOMIC_ADD, -EACCES},
        {(uintptr_t)memory + 65, home_rkey(), BRAID_ATOMIC_ADD, -EINVAL},
        {(uintptr_t)memory + 68, home_rkey(), BRAID_ATOMIC_ADD, -EINVAL},
        {(uintptr_t)memory + 64, home_rkey(), BRAID_ATOMIC_FETCH_XOR + 1, -EINVAL},
        {(uintptr_t)memory + 64, home_rkey(), 255, -EINVAL},
    };
    for (; id < sizeof(cases) / sizeof(cases[0]); id++) {
        want((enum braid_atomic_op)cases[id].op, 8, 1, 0);
        next_ask.addr = cases[id].addr;
        next_ask.rkey = cases[id].rkey;
        ask(PEER, id);
        assert_int_equal(pending(SELF), 0);
        check_answer(PEER, id, cases[id].status, 0);
    }
    want(BRAID_ATOMIC_ADD, 8, 1, 0);
    assert_int_equal(braid_mem_dereg(rig.mem), 0); /* it was this PE's before */
    ask(PEER, id);
    check_answer(PEER, id, -EACCES, 0);
    assert_int_equal(pending(SELF), 0);
}

static void a_word_of_no_size_breaks_the_lane(void **state)
{
    (void)state;
    want(BRAID_ATOMIC_ADD, 2, 1, 0);
    ask(PEER, 0);
    settle();
    assert_true(fake_stopped(rig.qp[PEER]) && !fake_stopped(rig.qp[PEER + 1]));
    assert_int_equal(pending(SELF), 0);
}

/* The device refuses, or its lane is lost, at each of the steps: answered as failed, and the next ones too. */
static void a_lost_self_lane_is_answered(void **state)
{
    (void)state;
    for (unsigned bytes = 4; bytes <= 8; bytes += 4) {
        for (unsigned step = 0; step < 3; step++) {
            drop(state);
            make_peer(NULL, -1);
            want(BRAID_ATOMIC_XOR, bytes, 1, 0);
            ask(PEER, 0);
            for (unsigned i = 0; i < step; i++)
                end(SELF, 1);
            fake_end(rig.qp[SELF], -EACCES);
            settle();
            check_answer(PEER, 0, -EACCES, 0);
            ask(PEER, 1);
            check_answer(PEER, 1, -ENOTCONN, 0);
        }
    }
}

/* The lane is lost by something else just when a step has ended well. */
static void a_self_lane_lost_between_two_steps_is_answered(void **state)
{
    (void)state;
    for (unsigned step = 0; step < 3; step++) {
        drop(state);
        make_peer(NULL, -1);
        want(BRAID_ATOMIC_XOR, 8, 1, 0);
        ask(PEER, 0);
        for (unsigned i = 0; i < step; i++)
            end(SELF, 1);
        fake_end(rig.qp[SELF], 0);
        fake_arrive(rig.qp[SELF], "no message", 10);
        settle();
        assert_true(fake_stopped(rig.qp[SELF]));
        check_answer(PEER, 0, step == 2 ? 0 : -ENOTCONN, 0);
    }
}

/* The token of 4-byte words is given back by one that fails. */
static void a_failed_one_keeps_no_token(void **state)
{
    (void)state;
    want(BRAID_ATOMIC_ADD, 4, 1, 0);
    ask(PEER, 0);
    ask(SELF + 1, 0); /* of this PE, by its other lane */
    fake_end(rig.qp[SELF], -EACCES);
    settle();
    check_answer(PEER, 0, -EACCES, 0);
    check_answer(SELF + 1, 0, -ENOTCONN, 0);
}

static void a_PE_that_cannot_reach_its_own_home_says_so(void **state)
{
    (void)state;
    want(BRAID_ATOMIC_ADD, 8, 1, 0);
    ask(PEER, 0);
    check_answer(PEER, 0, -ENOTCONN, 0);
}

static void an_answer_finds_another_lane(void **state)
{
    (void)state;
    want(BRAID_ATOMIC_ADD, 8, 1, 0);
    ask(PEER, 0);
    fake_arrive(rig.qp[PEER], "no message", 10);
    settle();
    run_until(PEER + 1);
    check_answer(PEER + 1, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(each_op_does_what_it_says, make_two),
        WITH(eight_bytes_are_swapped_until_nobody_came_between, make_two),
        WITH(four_bytes_touch_no_neighbour_and_go_one_at_a_time, make_two),
        WITH(they_are_executed_in_the_order_of_their_ids, make_two),
        WITH(a_repeated_one_is_answered_not_executed, make_two),
        WITH(answers_are_kept_as_long_as_they_can_be_asked_for, make_two),
        WITH(repeats_can_be_executed_again, make_dedup),
        WITH(what_is_not_this_PE_s_to_give_is_refused, make_two),
        WITH(a_word_of_no_size_breaks_the_lane, make_two),
        WITH(a_lost_self_lane_is_answered, make_two),
        WITH(a_self_lane_lost_between_two_steps_is_answered, make_two),
        WITH(a_failed_one_keeps_no_token, make_two),
        WITH(a_PE_that_cannot_reach_its_own_home_says_so, make_homeless),
        WITH(an_answer_finds_another_lane, make_two),
    };
    return cmocka_run_group_tests_name("api_exec", tests, NULL, NULL);
}
