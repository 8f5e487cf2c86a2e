/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lane.c - lanes over a fake device: slots and their reserves, PSNs, records in order, flushes, the mailbox, and
 * completions that fit nothing. Links rail and common, with fake_verbs.c in the place of verbs.
 */
#include "lane_rig.h"

/* One stray completion after the other: each ends its queue. */
static int make_stray(void **state)
{
    static unsigned next;
    int rc = make(state);
    ((struct rig *)*state)->variant = next++ % 5;
    return rc;
}

static void psns_are_counted_as_the_wire_does(void **state)
{
    (void)state;
    assert_int_equal(rail_psn_count(0, 4096), 1);
    assert_int_equal(rail_psn_count(1, 4096), 1);
    assert_int_equal(rail_psn_count(4096, 4096), 1);
    assert_int_equal(rail_psn_count(4097, 4096), 2);
    assert_int_equal(rail_psn_count(1 << 20, 1024), 1024);
    assert_int_equal(rail_psn_count(8, 256), 1);
    assert_int_equal(rail_psn_count(64, 256), 1);
    assert_int_equal(rail_psn_count(1u << 30, 256), 1u << 22);
}

static void records_follow_each_other_and_psns_wrap(void **state)
{
    struct rig *rig = *state;
    assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 4096 * 3, 1));
    assert_true(post(rig, RAIL_KIND_READ, RAIL_CLASS_BULK, 5000, 2));
    assert_true(post(rig, RAIL_KIND_FETCH_ADD, RAIL_CLASS_WORD, 8, 3));
    assert_true(rig->lane->backlog == 4096 * 3 + 8 && rig->lane->get_bytes == 5000);
    static const uint32_t first[] = {0xfffffe, 1, 3};
    for (unsigned i = 0; i < 3; i++)
        fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 3);
    for (unsigned i = 0; i < 3; i++) {
        expect_done(rig, i, i + 1, 0);
        assert_int_equal(rig->record[i].first_psn, first[i]);
        assert_int_equal(rig->record[i].mtu, 4096);
    }
    assert_int_equal(rig->lane->next_psn, 4);
    expect_empty(rig);
}

static unsigned fill(struct rig *rig, enum rail_class klass)
{
    unsigned n = 0;
    while (post(rig, RAIL_KIND_WRITE, klass, 8, n))
        n++;
    return n;
}

static void slots_are_kept_for_words_and_for_mail(void **state)
{
    struct rig *rig = *state;
    unsigned bulk = fill(rig, RAIL_CLASS_BULK);
    unsigned word = 0;
    for (; rail_lane_room(rig->lane, RAIL_CLASS_WORD, RAIL_KIND_AHEAD, 8);
         word++) /* with a slot for the flush behind it */
        assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, 0));
    assert_int_equal(fill(rig, RAIL_CLASS_WORD), 1);
    word++;
    assert_int_equal(bulk + word, DEPTH - RAIL_MAIL_SLOTS);
    assert_int_equal(word, 16);
    assert_int_equal(rail_mail_ask_echo(&rig->lane->mail, 1), 0);
    assert_int_equal(rail_lane_pump_mail(rig->lane), 1);
    assert_int_equal(fake_pending(rig->qp), bulk + word + 1);
    /* A slot comes free only when its completion has been polled. */
    fake_end(rig->qp, 0);
    assert_false(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, 0));
    fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 2);
    assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 8, 0));
}

/* Whatever the lengths, PSNs outstanding stay below half the space; and nearly all of it can be had. */
static void psns_outstanding_stay_below_half_the_space(void **state)
{
    struct rig *rig = *state;
    const uint32_t half = (1u << 30) - DEPTH * 256;
    rail_queue_close(&rig->queue);
    assert_int_equal(rail_queue_open(rig->rail, 1, &rig->queue), 0);
    assert_int_equal(rail_lane_open(&rig->queue, 0, &rig->lane), 0);
    assert_int_equal(rail_lane_connect(rig->lane, &rig->rail->address, rail_lane_end(rig->lane), 256), 0);
    rig->qp = fake_qp(1);
    assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 1u << 30, 1));
    assert_false(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 1u << 30, 2));
    assert_false(post(rig, RAIL_KIND_READ, RAIL_CLASS_BULK, 1u << 30, 2));
    assert_true(post(rig, RAIL_KIND_READ, RAIL_CLASS_BULK, half - 512, 2));
    for (unsigned i = 0; i < DEPTH - RAIL_MAIL_SLOTS - 2; i++)
        assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, i == 0, i)); /* one byte or none: a PSN each */
    assert_true(rail_lane_room(rig->lane, RAIL_CLASS_MAIL, RAIL_KIND_WRITE, 254));
    assert_false(rail_lane_room(rig->lane, RAIL_CLASS_MAIL, RAIL_KIND_WRITE, 255));
    assert_true(rig->lane->next_psn < RAIL_PSN_WINDOW);
    fake_end(rig->qp, 0);
    fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 2);
    assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_WORD, 1u << 30, 3));
}

static void a_stopped_lane_returns_each_record_once(void **state)
{
    struct rig *rig = *state;
    for (uint64_t i = 0; i < 5; i++)
        assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 1000, i));
    fake_end(rig->qp, 0);
    fake_end(rig->qp, -EACCES);
    rail_lane_stop(rig->lane);
    assert_true(fake_stopped(rig->qp));
    assert_int_equal(poll(rig), 5);
    static const int errors[] = {0, -EACCES, -ECANCELED, -ECANCELED, -ECANCELED};
    for (unsigned i = 0; i < 5; i++) {
        expect_done(rig, i, i, errors[i]);
        if (errors[i])
            assert_string_equal(rig->event[i].status, "as the test says");
    }
    assert_int_equal(poll(rig), 0);
    expect_empty(rig);
    assert_false(rail_lane_room(rig->lane, RAIL_CLASS_WORD, RAIL_KIND_WRITE, 8));
}

static void stray_completions_end_the_queue(void **state)
{
    struct rig *rig = *state;
    static const uint64_t stray[] = {0, 1, UINT64_C(7) << 32, UINT64_C(1) << 63 | 99, UINT64_C(1) << 62};
    fake_stray(rig->qp, stray[rig->variant], 0); /* nothing is outstanding, so none of them fits */
    assert_int_equal(poll(rig), 1);
    assert_int_equal(rig->queue.taken, 1);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_BROKEN);
    assert_int_equal(rig->event[0].error, -EPROTO);
    assert_true(fake_stopped(rig->qp));
    assert_int_equal(poll(rig), 0);
}

static void a_completion_out_of_order_is_not_believed(void **state)
{
    struct rig *rig = *state;
    assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8, 1));
    assert_true(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8, 2));
    fake_stray(rig->qp, fake_send(rig->qp, 1)->id, rig->variant ? -EIO : 0);
    fake_end(rig->qp, 0); /* in the same poll, behind the one that cannot be: not believed either */
    assert_int_equal(poll(rig), 3);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_BROKEN);
    for (unsigned i = 1; i < 3; i++)
        expect_done(rig, i, i, -EPROTO);
    assert_int_equal(poll(rig), 0);
    expect_empty(rig);
}

static int make_failing(void **state)
{
    int rc = make(state);
    ((struct rig *)*state)->variant = 1;
    return rc;
}

static void a_queue_that_cannot_be_polled_hands_all_back(void **state)
{
    struct rig *rig = *state;
    unsigned posted = fill(rig, RAIL_CLASS_WORD);
    fake_fail(FAKE_POLL, 0, -EIO);
    assert_int_equal(poll(rig), posted + 1);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_BROKEN);
    for (unsigned i = 0; i < posted; i++)
        expect_done(rig, i + 1, i, -EIO);
    expect_empty(rig);
    assert_false(post(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8, 9));
}

static void silent_completions_are_counted(void **state)
{
    struct rig *rig = *state;
    rail_lane_stop(rig->lane);
    assert_int_equal(poll(rig), 0);
    assert_int_equal(rig->queue.taken, RAIL_MAIL_DEPTH); /* the flushed receives */
}

static void an_echo_goes_round_a_lane_to_oneself(void **state)
{
    struct rig *rig = *state;
    for (uint64_t round = 1; round < 200; round++) {
        uint64_t nonce = 0;
        assert_int_equal(rail_mail_ask_echo(&rig->lane->mail, round), 0);
        assert_int_equal(rail_lane_pump_mail(rig->lane), 1);
        while (fake_pending(rig->qp) > 0) {
            fake_end(rig->qp, 0);
            unsigned n = poll(rig);
            for (unsigned i = 0; i < n; i++) {
                assert_int_equal(rig->event[i].kind, RAIL_EVENT_MAIL);
                if (rig->mail[i].type == RAIL_MAIL_ECHO_REPLY)
                    nonce = rig->mail[i].nonce;
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
    assert_int_equal(poll(rig), 1);
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
    assert_int_equal(poll(rig), 1);
    assert_int_equal(rig->event[0].kind, RAIL_EVENT_MAIL);
    assert_int_equal(rig->event[0].error, -EPROTONOSUPPORT);
    assert_int_equal(rig->mail[0].version, 9);
    assert_int_equal(fake_pending(rig->qp), 1);
    assert_int_equal(((const uint8_t *)(uintptr_t)fake_send(rig->qp, 0)->local_addr)[3], RAIL_MAIL_REJECT);
}

/* On a lane to oneself, as fast as slots and credits allow: each arrives once, in order, and the answers too. */
static void atomics_and_replies_travel_by_mail(void **state)
{
    struct rig *rig = *state;
    uint32_t asked = 0, seen = 0, answered = 0, ended = 0;
    while (ended < 300) {
        struct rail_mail_msg msg = {.type = RAIL_MAIL_ATOMIC};
        msg.atomic =
            (struct rail_mail_atomic){.addr = 64 + asked, .operand = 7, .id = asked, .rkey = 5, .op = 3, .bytes = 4};
        while (asked < 300 && asked - ended < 20 && rail_lane_send_mail(rig->lane, &msg) == 0)
            msg.atomic.id = msg.atomic.addr = ++asked;
        for (; answered < seen; answered++) {
            struct rail_mail_msg reply = {.type = RAIL_MAIL_ATOMIC_REPLY};
            reply.reply = (struct rail_mail_reply){.old = answered, .id = answered, .status = answered % 2 ? -EIO : 0};
            if (rail_lane_send_mail(rig->lane, &reply))
                break;
        }
        assert_true(fake_pending(rig->qp) > 0);
        assert_true(fake_pending(rig->qp) <= RAIL_MAIL_SLOTS);
        fake_end(rig->qp, 0);
        for (unsigned i = 0, n = poll(rig); i < n; i++) {
            assert_int_equal(rig->event[i].kind, RAIL_EVENT_MAIL);
            if (rig->mail[i].type == RAIL_MAIL_ATOMIC) {
                assert_int_equal(rig->mail[i].atomic.id, seen++);
                assert_int_equal(rig->mail[i].atomic.bytes, 4);
            } else if (rig->mail[i].type == RAIL_MAIL_ATOMIC_REPLY) {
                assert_int_equal(rig->mail[i].reply.id, ended);
                assert_int_equal(rig->mail[i].reply.status, ended % 2 ? -EIO : 0);
                assert_true(rig->mail[i].reply.old == ended++);
            }
        }
    }
    assert_int_equal(asked, 300);
}

static void mail_says_try_again_without_slot_or_credit(void **state)
{
    struct rig *rig = *state;
    struct rail_mail_msg msg = {.type = RAIL_MAIL_ATOMIC, .atomic = {.bytes = 8}};
    for (unsigned i = 0; i < RAIL_MAIL_SLOTS; i++)
        assert_int_equal(rail_lane_send_mail(rig->lane, &msg), 0);
    assert_int_equal(rail_lane_send_mail(rig->lane, &msg), -EAGAIN);
    rail_lane_stop(rig->lane);
    assert_int_equal(rail_lane_send_mail(rig->lane, &msg), -ENOTCONN);
    assert_int_equal(poll(rig), RAIL_MAIL_SLOTS);
    for (unsigned i = 0; i < RAIL_MAIL_SLOTS; i++) {
        assert_int_equal(rig->event[i].error, -ECANCELED);
        assert_int_equal(rig->record[i].kind, RAIL_KIND_MAIL);
    }
    expect_empty(rig);
}

static void a_refused_message_comes_back(void **state)
{
    struct rig *rig = *state;
    struct rail_mail_msg msg = {.type = RAIL_MAIL_ATOMIC, .atomic = {.bytes = 8}};
    fake_fail(FAKE_POST_SEND, 0, -ENOMEM);
    assert_int_equal(rail_lane_send_mail(rig->lane, &msg), 0);
    assert_int_equal(poll(rig), 1);
    expect_done(rig, 0, 0, -ENOMEM);
    assert_int_equal(rig->record[0].kind, RAIL_KIND_MAIL);
    expect_empty(rig);
}

static void a_rail_tells_its_flush_line_plane_and_placement(void **state)
{
    struct rig *rig = *state;
    struct rail *rail = NULL;
    struct rail_config config = {.sq_depth = DEPTH, .gid_index = UINT32_MAX, .plane = 3};
    assert_int_equal(rig->rail->address.plane, RAIL_WIRE_NO_PLANE);
    assert_int_equal(rig->rail->address.placement, RAIL_WIRE_PLACEMENT_SILENT);
    fake_place(VERBS_PLACEMENT_UNORDERED);
    assert_int_equal(rail_open(rig->verbs, NULL, "fake1", 1, &config, &rail), 0);
    assert_int_equal(rail->address.plane, 3);
    assert_int_equal(rail->address.placement, RAIL_WIRE_PLACEMENT_UNORDERED);
    assert_true(rail->address.flush_addr != 0 && rail->address.flush_addr != (uintptr_t)rail->flush_line);
    assert_int_equal(rail->address.flush_rkey, verbs_mr_rkey(rail->flush_mr));
    assert_int_equal(fake_remote_mrs(), 0); /* nobody may write it */
    rail_close(rail);
    rail = NULL;
    fake_fail(FAKE_MR, 0, -ENOMEM);
    assert_int_equal(rail_open(rig->verbs, NULL, "fake1", 1, &config, &rail), -ENOMEM);
    assert_null(rail);
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

/* Which index an Ethernet port takes of a table as RoCE ports have it, by the options. */
static void a_gid_is_chosen_by_version_family_and_range(void **state)
{
    struct rig *rig = *state;
    static const struct verbs_gid table[] = {
        {{0xfe, 0x80, [15] = 1}, VERBS_GID_ROCE_V1},
        {{0xfe, 0x80, [15] = 1}, VERBS_GID_ROCE_V2},
        {{[10] = 0xff, 0xff, 10, 0, 0, 1}, VERBS_GID_ROCE_V1},
        {{[10] = 0xff, 0xff, 10, 0, 0, 1}, VERBS_GID_ROCE_V2},
        {{[10] = 0xff, 0xff, 192, 168, 0, 1}, VERBS_GID_ROCE_V2},
    };
    static const struct {
        uint8_t version;
        enum rail_family family;
        const char *range;
        int index; /* or a negative errno */
    } cases[] = {
        {2, RAIL_FAMILY_ANY, "", 3},
        {1, RAIL_FAMILY_ANY, "", 2},
        {2, RAIL_FAMILY_IPV6, "", 1},
        {1, RAIL_FAMILY_IPV6, "", 0},
        {2, RAIL_FAMILY_IPV4, "192.168.0.0/16", 4},
        {2, RAIL_FAMILY_ANY, "fe80::/10", 1},
        {2, RAIL_FAMILY_IPV6, "10.0.0.0/8", -EADDRNOTAVAIL},
        {1, RAIL_FAMILY_ANY, "192.168.0.0/16", -EADDRNOTAVAIL},
    };
    fake_gids(table, sizeof(table) / sizeof(table[0]));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rail_config config = {.sq_depth = DEPTH,
                                     .gid_index = UINT32_MAX,
                                     .roce_version = cases[i].version,
                                     .gid_family = cases[i].family};
        struct rail *rail = NULL;
        assert_int_equal(iprange_parse(cases[i].range, NULL, &config.gid_range), 0);
        int rc = rail_open(rig->verbs, NULL, "fake1", 1, &config, &rail);
        assert_int_equal(rc ? rc : rail->gid_index, cases[i].index);
        rail_close(rail);
    }
    /* Told, and none of the version: not one of another. */
    struct rail_config v2 = {.sq_depth = DEPTH, .gid_index = UINT32_MAX, .roce_version = 2};
    struct rail *none = NULL;
    fake_gids(table, 1);
    assert_int_equal(rail_open(rig->verbs, NULL, "fake1", 1, &v2, &none), -EADDRNOTAVAIL);
    /* Types are not told: the first, if its address may be. */
    static const struct verbs_gid untold = {{0xfe, 0x80}, VERBS_GID_UNKNOWN};
    struct rail_config config = {.sq_depth = DEPTH, .gid_index = UINT32_MAX};
    struct rail *rail = NULL;
    fake_gids(&untold, 1);
    assert_int_equal(rail_open(rig->verbs, NULL, "fake1", 1, &config, &rail), 0);
    rail_close(rail);
    config.gid_family = RAIL_FAMILY_IPV4;
    assert_int_equal(rail_open(rig->verbs, NULL, "fake1", 1, &config, &rail), -EADDRNOTAVAIL);
}

#define WITH_STRAY cmocka_unit_test_setup_teardown(stray_completions_end_the_queue, make_stray, drop)

static struct rail_request word_of(unsigned i)
{
    static const uint8_t kinds[] = {RAIL_KIND_FETCH_ADD, RAIL_KIND_COMPARE_SWAP, RAIL_KIND_WRITE};
    return (struct rail_request){.kind = kinds[i % 3],
                                 .klass = RAIL_CLASS_WORD,
                                 .immediate = i % 3 == 2,
                                 .len = 8,
                                 .cookie = 2 + 2 * i,
                                 .remote_addr = 0x1000 + 8 * i,
                                 .rkey = 5 + i,
                                 .epoch = 3,
                                 .operand = 100 + i,
                                 .swap = 200 + i};
}

/* rail_word() makes of a request what rail_lane_queue() does: on the wire, on the books, and in its cell. */
static void a_word_is_what_queueing_makes_of_it(void **state)
{
    struct rig *rig = *state;
    struct rail_lane *lane = rig->lane;
    for (unsigned i = 0; i < 3; i++) {
        struct rail_request request = word_of(i);
        uint32_t reads = lane->reads;
        rail_lane_queue(lane, &request);
        rail_lane_ring(lane);
        reads = lane->reads - reads;
        assert_true(rail_word(lane, &request));
        rail_lane_ring(lane);
        assert_true(reads == (i < 2) && lane->reads == (i < 2 ? 2 * (i + 1) : 4));
        const struct verbs_send *a = fake_send(rig->qp, 2 * i), *b = fake_send(rig->qp, 2 * i + 1);
        assert_true(a->op == b->op && a->signal == b->signal && a->len == b->len && a->lkey == b->lkey);
        assert_true(a->remote_addr == b->remote_addr && fake_key(a) == fake_key(b) && a->id + 1 == b->id);
        assert_true(i == 2 || (a->operand == b->operand && a->swap == b->swap));
        assert_true(i != 2 || *(uint64_t *)(uintptr_t)a->local_addr == *(uint64_t *)(uintptr_t)b->local_addr);
        assert_true(a->local_addr != b->local_addr);
        struct rail_record x = lane->ring[(lane->head - 2) & lane->mask], y = lane->ring[(lane->head - 1) & lane->mask];
        assert_true(x.cookie == y.cookie && x.len == y.len && x.lkey == y.lkey && x.remote_addr == y.remote_addr);
        assert_true(x.rkey == y.rkey && x.epoch == y.epoch && x.kind == y.kind && x.klass == y.klass);
        assert_true(x.immediate == y.immediate && !x.unsignalled && !y.unsignalled && x.mtu == y.mtu);
        assert_int_equal(y.first_psn, (x.first_psn + 1) & RAIL_PSN_MASK);
        assert_int_equal(lane->next_psn, (y.first_psn + 1) & RAIL_PSN_MASK);
    }
    assert_int_equal(lane->backlog, 6 * 8);
    /* And it ends what was built before it. */
    assert_true(queue(rig, RAIL_KIND_WRITE, RAIL_CLASS_BULK, 8, 99));
    struct rail_request last = word_of(2);
    assert_true(rail_word(lane, &last));
    rail_lane_ring(lane);
    while (fake_pending(rig->qp) > 0)
        fake_end(rig->qp, 0);
    assert_int_equal(poll(rig), 8);
    expect_empty(rig);
}

/* It finds room where rail_lane_room() does: atomics up to max_rd_atomic, writes up to the slots kept for mail. */
static void a_word_has_the_room_of_its_class(void **state)
{
    struct rig *rig = *state;
    unsigned posted[2] = {0};
    for (unsigned write = 0; write < 2; write++) {
        struct rail_request request = word_of(write ? 2 : 0);
        bool room;
        do {
            room = rail_lane_room(rig->lane, RAIL_CLASS_WORD, request.kind, 8);
            assert_int_equal(rail_word(rig->lane, &request), room);
            rail_lane_ring(rig->lane);
            posted[write] += room;
        } while (room);
    }
    assert_int_equal(posted[0], rig->lane->rd_atomic);
    assert_int_equal(posted[0] + posted[1], rig->lane->limit[RAIL_CLASS_WORD]);
    rail_lane_stop(rig->lane);
    struct rail_request request = word_of(2);
    assert_false(rail_word(rig->lane, &request));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(psns_are_counted_as_the_wire_does),
        WITH_LANE(records_follow_each_other_and_psns_wrap),
        WITH_LANE(slots_are_kept_for_words_and_for_mail),
        WITH_LANE(a_word_is_what_queueing_makes_of_it),
        WITH_LANE(a_word_has_the_room_of_its_class),
        WITH_LANE(psns_outstanding_stay_below_half_the_space),
        WITH_LANE(a_stopped_lane_returns_each_record_once),
        WITH_STRAY,
        WITH_STRAY,
        WITH_STRAY,
        WITH_STRAY,
        WITH_STRAY,
        WITH_LANE(a_queue_that_cannot_be_polled_hands_all_back),
        WITH_LANE(silent_completions_are_counted),
        WITH_LANE(a_completion_out_of_order_is_not_believed),
        cmocka_unit_test_setup_teardown(a_completion_out_of_order_is_not_believed, make_failing, drop),
        WITH_LANE(an_echo_goes_round_a_lane_to_oneself),
        WITH_LANE(a_malformed_message_breaks_the_lane),
        WITH_LANE(another_version_is_reported_and_refused),
        WITH_LANE(atomics_and_replies_travel_by_mail),
        WITH_LANE(mail_says_try_again_without_slot_or_credit),
        WITH_LANE(a_refused_message_comes_back),
        WITH_LANE(a_rail_tells_its_flush_line_plane_and_placement),
        WITH_LANE(a_queue_takes_the_lanes_it_was_made_for),
        WITH_LANE(ports_are_checked),
        WITH_LANE(a_gid_is_chosen_by_version_family_and_range),
    };
    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
