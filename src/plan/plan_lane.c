/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_lane.c - when the pieces of a lane will end, told from what was posted and what was seen to end.
 * May not know queues; time is given. Called by src/api at each post and each completion; plan_stripe.c reads the result.
 *
 * Bytes not acknowledged alone would be wrong by up to a piece: of the piece on the wire nothing is known until its end,
 * and lanes are compared at the very moment when one of them has ended a piece. So each lane has a predicted end in time.
 */
#include "plan.h"

/* Nothing longer goes on a wire at once; also keeps the product below within 64 bits. */
#define PLAN_LANE_LONGEST UINT32_MAX

static uint64_t plan_lane_ns(const struct plan_lane *lane, uint64_t len)
{
    return min_u64(len, PLAN_LANE_LONGEST) * lane->mib_ns >> 20;
}

void plan_lane_speed(struct plan_lane *lane, const struct plan_rate *rate)
{
    lane->mib_ns = rate->mib_ns;
    lane->weight = rate->weight;
    lane->rtt_ns = rate->rtt_ns;
    lane->line_mib_ns = rate->line_mib_ns;
    lane->stretch = rate->stretch.shift;
}

void plan_lane_posted(struct plan_lane *lane, uint64_t now_ns, uint64_t len)
{
    uint64_t soonest = now_ns + lane->rtt_ns, took = plan_lane_ns(lane, len);
    lane->floor_ns = soonest + took;
    lane->end_ns = max_u64(lane->end_ns, soonest) + took;
    lane->backlog += len;
}

void plan_lane_acked(struct plan_lane *lane, uint64_t since_ns, uint64_t now_ns, uint64_t bytes)
{
    lane->backlog -= min_u64(bytes, lane->backlog);
    if (lane->backlog == 0) {
        lane->end_ns = now_ns;
        return;
    }
    /* What is left follows at the speed of the lane, but the last piece cannot end before its own round trip. */
    uint64_t rest_ns = plan_lane_ns(lane, lane->backlog), end = max_u64(now_ns + rest_ns, lane->floor_ns);
    /* Who was busy with another lane looks late, always at the same one. It ended somewhere between two looks: where that may have been
     * as predicted it was, else in the middle. */
    if (end > lane->end_ns)
        end = max_u64((min_u64(since_ns, now_ns) + now_ns) / 2 + rest_ns, min_u64(lane->end_ns, end));
    /* A little later than predicted is how late we looked all the same; earlier, or much later, is how the lane runs. */
    if (end > lane->end_ns && end - lane->end_ns < lane->rtt_ns / 8)
        lane->end_ns += (end - lane->end_ns) / 4;
    else
        lane->end_ns = max_u64(end, lane->floor_ns);
}
