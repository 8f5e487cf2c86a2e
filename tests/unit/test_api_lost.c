/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_lost.c - the engine over a fake device when lanes are lost: pieces that end in error, posts refused, queues given
 * up. No signal announces lost data, every op ends, and the other lane carries on.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs.
 */
#include "order_rig.h"

static void a_lost_piece_fails_the_signal_behind_it(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    fake_end(rig.qp[1], -EACCES);
    assert_true(braid_progress(rig.ch) > 0);
    assert_int_equal(signals_posted(), 0);
    assert_true(rig.done.failed == 1); /* the signal; the put still has a piece out */
    assert_int_equal(rig.done.error, -ENOTCONN);
    fake_end(rig.qp[0], 0);
    braid_progress(rig.ch);
    assert_true(rig.done.failed == 2 && rig.done.ok == 0);
    assert_int_equal(signal_add(), -ENOTCONN);
    assert_int_equal(put(8), -ENOTCONN);
    assert_non_null(strstr(rig.log, "lane 1 to PE 0 over port fake1:1 failed"));
    assert_int_equal(braid_quiet(rig.ch, 0), -ENOTCONN);
    assert_int_equal(braid_quiet(rig.ch, 0), 0); /* told once */
    rig.done = (struct braid_done){0};
    assert_int_equal(put(1 << 20), 0); /* bulk goes on over the lane that is left */
    assert_int_equal(fake_pending(rig.qp[0]), 1);
    assert_int_equal(fake_pending(rig.qp[1]), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.ok == 1);
}

/* A device that reports success behind an error: what was lost stays lost, and nobody counts on its number. */
static void a_success_behind_a_loss_releases_nothing(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(fake_pending(rig.qp[1]), 3); /* a piece, the flush for the signal, a piece */
    fake_end(rig.qp[1], -EIO);
    fake_end(rig.qp[1], 0);
    fake_end(rig.qp[1], 0);
    assert_true(braid_progress(rig.ch) > 0);
    assert_int_equal(signals_posted(), 0);
    assert_true(rig.done.failed == 1); /* the signal */
}

static void a_lost_home_lane_ends_word_ops(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(signal_add(), 0);
    fake_end(rig.qp[0], -ETIMEDOUT);
    braid_progress(rig.ch);
    assert_int_equal(signal_add(), -ENOTCONN);
    assert_true(fake_stopped(rig.qp[0]) && !fake_stopped(rig.qp[1]));
    assert_true(braid_quiet(rig.ch, 0) < 0);
    assert_true(rig.done.failed == 2);
}

static void quiet_ends_when_all_lanes_are_lost(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(put(1 << 20), 0);
        assert_int_equal(signal_add(), 0);
    }
    fake_end(rig.qp[0], -ETIMEDOUT);
    fake_end(rig.qp[1], -ETIMEDOUT);
    assert_int_equal(braid_quiet(rig.ch, 0), -ETIMEDOUT);
    assert_true(rig.done.failed == 10 && rig.done.ok == 0);
    assert_int_equal(put(1 << 20), -ENOTCONN);
    assert_int_equal(put(8), -ENOTCONN);
}

static void a_refused_post_ends_the_op_badly(void **state)
{
    (void)state;
    fake_fail(FAKE_POST_SEND, 1, -ENOMEM); /* the second piece */
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(fake_pending(rig.qp[0]), 1);
    assert_int_equal(braid_quiet(rig.ch, 0), -ENOMEM);
    assert_true(rig.done.failed == 1);
    assert_int_equal(rig.done.error, -ENOMEM);
}

/* A piece that the device refuses is lost data: whatever was issued behind it must not announce it. */
static void a_signal_behind_a_refused_piece_never_goes(void **state)
{
    (void)state;
    fake_fail(FAKE_POST_SEND, 1, -ENOMEM); /* the second piece, on lane 1 */
    assert_int_equal(put(1 << 20), 0);
    fake_end(rig.qp[0], 0);
    braid_progress(rig.ch);
    assert_true(rig.done.failed == 1);
    assert_int_equal(signal_add(), -ENOTCONN);
    assert_int_equal(put(8), -ENOTCONN);
    assert_int_equal(fake_pending(rig.qp[0]), 0);
}

static void a_signal_behind_a_refused_medium_put_never_goes(void **state)
{
    (void)state;
    assert_int_equal(put(4096), 0); /* on lane 0 */
    fake_fail(FAKE_POST_SEND, 0, -ENOMEM);
    assert_int_equal(put(4096), 0);    /* on lane 1, refused */
    assert_int_equal(signal_add(), 0); /* which shows with the next progress */
    assert_int_equal(signals_posted(), 0);
    settle();
    assert_int_equal(signals_posted(), 0);
    assert_true(rig.done.failed == 2 && rig.done.ok == 0);
    assert_int_equal(signal_add(), -ENOTCONN);
    assert_int_equal(braid_quiet(rig.ch, 0), -ENOMEM);
}

static void a_signal_behind_a_refused_word_never_goes(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(put(100), 0); /* deferred */
    assert_int_equal(signal_add(), 0);
    fake_fail(FAKE_POST_SEND, 0, -ENOMEM); /* the deferred word, when its time has come */
    end(1, 2);
    assert_int_equal(signals_posted(), 0);
    settle();
    assert_int_equal(signals_posted(), 0);
    assert_int_equal(signal_add(), -ENOTCONN);
    assert_int_equal(braid_quiet(rig.ch, 0), -ECANCELED);  /* of the put's piece, which was flushed with its lane */
    assert_true(rig.done.failed == 3 && rig.done.ok == 0); /* the home lane is gone, and the put's piece with it */
    assert_int_equal(put(1 << 20), 0);                     /* on the other lane */
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
}

static void a_refused_word_says_why(void **state)
{
    (void)state;
    fake_fail(FAKE_POST_SEND, 0, -ENOMEM);
    assert_int_equal(put(100), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), -ENOMEM);
    assert_true(rig.done.failed == 1 && rig.done.error == -ENOMEM);
}

static void a_refused_post_is_logged_once(void **state)
{
    (void)state;
    fake_fail(FAKE_POST_SEND, 1, -ENOMEM);
    assert_int_equal(put(1 << 20), 0);
    settle();
    settle();
    /* One line of the port, which knows why, and one of what follows. */
    const char *first = strstr(rig.log, "port fake1:1 QP 0x101: 1 of 1 requests refused: Cannot allocate memory\n");
    const char *second =
        strstr(rig.log, "lane 1 to PE 0 over port fake1:1 failed: not posted (Cannot allocate memory, vendor 0x0)");
    assert_ptr_equal(first, rig.log);
    assert_ptr_equal(second, strchr(rig.log, '\n') + 1);
    assert_ptr_equal(strchr(second, '\n') + 1, rig.log + strlen(rig.log));
}

static void a_refused_get_holds_no_signal_back(void **state)
{
    (void)state;
    fake_fail(FAKE_POST_SEND, 1, -ENOMEM);
    assert_int_equal(braid_get(rig.ch, 0, here(0), there(0), 1 << 20, &rig.done), 0);
    assert_int_equal(signal_add(), 0);
    assert_int_equal(signals_posted(), 1);
    settle(); /* now the loss is known */
    assert_int_equal(signal_add(), 0);
    assert_int_equal(signals_posted(), 2);
}

/* A port whose completions cannot be had any more: its ops end all the same, and the other port carries on. */
static void check_given_up(int error)
{
    assert_int_equal(braid_quiet(rig.ch, 0), error);
    assert_true(rig.done.failed == 1 && rig.done.ok == 0);
    assert_int_equal(signal_add(), -ENOTCONN);
    assert_int_equal(put(1 << 20), 0);
    assert_int_equal(braid_quiet(rig.ch, 0), 0);
    assert_true(rig.done.ok == 1);
    assert_int_equal(braid_mem_dereg(rig.mem), 0);
    assert_true(braid_progress(rig.ch) == 0);
}

static void a_broken_poll_ends_the_ports_ops(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    fake_fail(FAKE_POLL, 1, -EIO); /* of the second port */
    check_given_up(-EIO);
    assert_non_null(strstr(rig.log, "port fake1:1: its completions cannot be polled"));
}

static void a_stray_completion_ends_the_ports_ops(void **state)
{
    (void)state;
    assert_int_equal(put(1 << 20), 0);
    fake_stray(rig.qp[1], 77, 0);
    check_given_up(-EPROTO);
    assert_non_null(strstr(rig.log, "fits no request"));
}

static void both_ports_given_up_leave_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(put(1 << 20), 0);
        assert_int_equal(signal_add(), 0);
    }
    fake_stray(rig.qp[0], 77, 0);
    fake_stray(rig.qp[1], 77, 0);
    assert_int_equal(braid_quiet(rig.ch, 0), -EPROTO);
    assert_true(rig.done.failed == 10 && rig.done.ok == 0);
    assert_int_equal(put(1 << 20), -ENOTCONN);
    assert_int_equal(put(8), -ENOTCONN);
    assert_int_equal(braid_mem_dereg(rig.mem), 0);
}

static void an_echo_over_a_lost_lane_says_so(void **state)
{
    (void)state;
    uint64_t rtt;
    assert_int_equal(put(1 << 20), 0);
    fake_end(rig.qp[1], -ETIMEDOUT);
    braid_progress(rig.ch);
    assert_int_equal(braid_echo(rig.ch, 0, 1, &rtt), -EIO);
    assert_non_null(strstr(rig.log, "no echo over lane 1 to PE 0: it has failed before"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_lost_piece_fails_the_signal_behind_it, make),
        WITH(a_success_behind_a_loss_releases_nothing, make),
        WITH(a_lost_home_lane_ends_word_ops, make),
        WITH(quiet_ends_when_all_lanes_are_lost, make),
        WITH(a_refused_post_ends_the_op_badly, make),
        WITH(a_signal_behind_a_refused_piece_never_goes, make),
        WITH(a_signal_behind_a_refused_medium_put_never_goes, make),
        WITH(a_signal_behind_a_refused_word_never_goes, make),
        WITH(a_refused_word_says_why, make),
        WITH(a_refused_post_is_logged_once, make),
        WITH(a_refused_get_holds_no_signal_back, make),
        WITH(a_broken_poll_ends_the_ports_ops, make),
        WITH(a_stray_completion_ends_the_ports_ops, make),
        WITH(both_ports_given_up_leave_nothing, make),
        WITH(an_echo_over_a_lost_lane_says_so, make),
    };
    return cmocka_run_group_tests_name("api_lost", tests, NULL, NULL);
}
