/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_lane.c - not a test: calls the hot path of rail and verbs over a provider that does nothing, so that its
 * instructions can be counted. What to read is printed by scripts/cost_lane.sh.
 */
#include "unit.h"

#include "rail.h"
#include "verbs_rig.h"

#define ROUNDS 1000u

static struct rail_request atomic = {
    .kind = RAIL_KIND_FETCH_ADD, .klass = RAIL_CLASS_WORD, .len = 8, .rkey = 2, .remote_addr = 0x1000, .operand = 1};

/* Apart, so that each has a line of its own in the counts. */
#define APART __attribute__((noinline))

static struct rail_queue queue;
static struct rail_lane *lane;
static struct rail_request request = {
    .kind = RAIL_KIND_WRITE, .klass = RAIL_CLASS_WORD, .len = 64, .lkey = 1, .rkey = 2, .remote_addr = 0x1000};

APART static void cost_post_one(void)
{
    rail_lane_queue(lane, &request);
    rail_lane_ring(lane);
}

APART static void cost_post_atomic(void)
{
    rail_lane_queue(lane, &atomic);
    rail_lane_ring(lane);
}

APART static void cost_post_list(void)
{
    for (unsigned i = 0; i < RAIL_LIST_MAX; i++)
        rail_lane_queue(lane, &request);
}

/* Completions of the newest n requests' signalled ones, each `apart` records from the next. */
static void complete(unsigned n, unsigned apart)
{
    rig_provider.polled = (int)n;
    for (unsigned i = 0; i < n; i++)
        rig_provider.wc[i] = (struct ibv_wc){.wr_id = lane->tail + (i + 1) * apart - 1};
}

/* Polling apart from the events: a poll costs by completion, an event by record. */
APART static unsigned cost_poll_16(void)
{
    return rail_poll(&queue);
}

APART static unsigned cost_poll_1(void)
{
    return rail_poll(&queue) + 1;
}

APART static unsigned cost_poll_none(void)
{
    struct rail_event event;
    return rail_poll(&queue) + rail_next(&queue, &event);
}

APART static unsigned cost_retire_singles(void)
{
    struct rail_event event;
    unsigned n = 0;
    for (unsigned i = 0; i < RAIL_LIST_MAX; i++)
        n += rail_next(&queue, &event) && event.error == 0;
    return n;
}

APART static unsigned cost_retire_atomics(void)
{
    struct rail_event event;
    uint64_t n = 0;
    for (unsigned i = 0; i < RAIL_LIST_MAX; i++)
        n += rail_next(&queue, &event) && event.value == 0;
    return (unsigned)n;
}

APART static unsigned cost_retire_list(void)
{
    struct rail_event event;
    unsigned n = 1;
    for (unsigned i = 0; i < RAIL_LIST_MAX; i++)
        n += rail_next(&queue, &event) && event.error == 0;
    return n - 1;
}

int main(void)
{
    static struct verbs v;
    static struct ibv_context context;
    static struct ibv_pd pd;
    static struct verbs_dev dev;
    unsigned ended = 0;
    rig_device(&v, &context, &pd, &dev);
    rig_provider.keep = false;
    struct rail rail = {
        .dev = &dev, .name = "rig0:1", .config = {.sq_depth = 128}, .limits = {.max_cqe = 1 << 20, .rd_atomic = 16}};
    struct rail_wire_rail remote = {.rd_atomic = 16};
    if (rail_queue_open(&rail, 1, &queue) || rail_lane_open(&queue, 0, &lane) ||
        rail_lane_connect(lane, &remote, (struct rail_wire_end){0}, 4096))
        return 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < RAIL_LIST_MAX; i++)
            cost_post_one();
        complete(RAIL_LIST_MAX, 1);
        (void)cost_poll_16();
        ended += cost_retire_singles();
        complete(0, 1);
        (void)cost_poll_none();
        for (unsigned i = 0; i < RAIL_LIST_MAX; i++)
            cost_post_atomic();
        complete(RAIL_LIST_MAX, 1);
        (void)rail_poll(&queue);
        ended += cost_retire_atomics();
        cost_post_list();
        complete(1, RAIL_LIST_MAX);
        (void)cost_poll_1();
        ended += cost_retire_list();
        complete(0, 1);
        (void)cost_poll_none();
    }
    rail_queue_close(&queue);
    return ended == ROUNDS * 3 * RAIL_LIST_MAX ? 0 : 1;
}
