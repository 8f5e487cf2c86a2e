/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_rig.h - one lane to itself over a fake device, so that a test can end each request when it likes. Included by
 * test_lane.c and test_lane_list.c.
 */
#ifndef LANE_RIG_H
#define LANE_RIG_H

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
    struct rail_event event[4 * DEPTH];
    struct rail_record record[4 * DEPTH]; /* what event[i].record was */
    struct rail_mail_msg mail[4 * DEPTH];
    unsigned variant;
};

static inline int make(void **state)
{
    static struct rig rig;
    struct rail_config config = {.sq_depth = DEPTH,
                                 .gid_index = UINT32_MAX,
                                 .timeout = 16,
                                 .retry = 7,
                                 .rnr_retry = 7,
                                 .plane = RAIL_WIRE_NO_PLANE};
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

static inline int drop(void **state)
{
    struct rig *rig = *state;
    rail_queue_close(&rig->queue);
    rail_close(rig->rail);
    verbs_unload(rig->verbs);
    assert_int_equal(fake_alive(), 0);
    return 0;
}

/* Builds a request; false where the lane has no room for it. */
static inline bool queue(struct rig *rig, enum rail_kind kind, enum rail_class klass, uint32_t len, uint64_t cookie)
{
    struct rail_request request = {.kind = kind, .klass = klass, .len = len, .cookie = cookie, .remote_addr = 0x1000};
    if (!rail_lane_room(rig->lane, klass, kind, len))
        return false;
    rail_lane_queue(rig->lane, &request);
    return true;
}

/* Builds a request and posts it at once, so that it has a completion of its own. */
static inline bool post(struct rig *rig, enum rail_kind kind, enum rail_class klass, uint32_t len, uint64_t cookie)
{
    bool room = queue(rig, kind, klass, len, cookie);
    rail_lane_ring(rig->lane);
    return room;
}

/* Takes completions once, and all events; their number. */
static inline unsigned poll(struct rig *rig)
{
    unsigned n = 0;
    rail_poll(&rig->queue);
    while (rail_next(&rig->queue, &rig->event[n])) {
        assert_true(n + 1 < 4 * DEPTH);
        if (rig->event[n].kind == RAIL_EVENT_DONE)
            rig->record[n] = *rig->event[n].record;
        if (rig->event[n].kind == RAIL_EVENT_MAIL)
            rig->mail[n] = *rig->event[n].mail;
        n++;
    }
    return n;
}

static inline void expect_done(const struct rig *rig, unsigned i, uint64_t cookie, int error)
{
    assert_int_equal(rig->event[i].kind, RAIL_EVENT_DONE);
    assert_ptr_equal(rig->event[i].lane, rig->lane);
    assert_int_equal(rig->record[i].cookie, cookie);
    assert_int_equal(rig->event[i].error, error);
}

static inline void expect_empty(const struct rig *rig)
{
    const struct rail_lane *lane = rig->lane;
    assert_int_equal(lane->head, lane->tail);
    assert_true(lane->backlog == 0 && lane->get_bytes == 0);
    assert_int_equal(lane->reads, 0);
    assert_int_equal(lane->posted, lane->head);
    assert_int_equal(rig->queue.refused, 0);
    assert_int_equal(lane->mail_busy, 0);
}

#define WITH_LANE(f) cmocka_unit_test_setup_teardown(f, make, drop)

#endif
