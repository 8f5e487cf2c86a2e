/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_pace.c - how much a lane may hold, in which pieces, and from which size on cutting pays.
 * May not know what waits; it sets sizes. Called by src/api at start and whenever an estimate has changed;
 * next: plan_stripe.c
 */
#include "plan.h"

#define PLAN_PACE_WIDE   (256u << 10) /* bytes that no window needs to be asked for */
#define PLAN_PACE_SHARED 8u           /* lanes that one port is taken to serve, at most */
#define PLAN_PACE_PARTS  8u           /* pieces that a wide window has at most */
#define PLAN_PACE_PACKET 4096u        /* pieces are multiples of the largest MTU, so that all their packets are full */

static uint64_t plan_pace_round(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* A round trip's worth at line rate. */
static uint64_t plan_pace_line(const struct plan_lane *lane)
{
    return ((uint64_t)lane->rtt_ns << 20) / max_u64(lane->line_mib_ns, 1);
}

/* At line rate every lane holds as much, so what has shrunk may grow back to that without more standing in switches than at
 * the start; slow ports have little to hold at any rate. */
static uint64_t plan_pace_stretch(const struct plan_lane *lane, uint64_t window)
{
    if (lane->stretch == 0)
        return window;
    uint64_t line = plan_pace_line(lane) + 2 * lane->quantum;
    uint64_t most = min_u64(max_u64(max_u64(line, PLAN_PACE_WIDE), window), 3 * PLAN_NO_LIMIT);
    return min_u64(window << lane->stretch, most);
}

void plan_pace(const struct plan_pace_in *in, struct plan_lane *lane)
{
    if (!in->on) {
        lane->quantum = in->piece_max ? in->piece_max : PLAN_NO_LIMIT;
        lane->window = PLAN_NO_LIMIT;
        return;
    }
    uint64_t flight = (uint64_t)lane->rtt_ns * lane->weight >> 12;
    /* A lane that looks slow may share its port with lanes to other peers: smaller pieces would only cost the CPU, not free the port.
     * One that is slow by itself must not be given much more than its part. */
    uint64_t shared = min_u64(plan_pace_line(lane), PLAN_PACE_SHARED * flight);
    /* One thread feeds all rails: a piece has to last them twice as long as it costs. */
    uint64_t feed = UINT64_C(2) * in->piece_cost_ns * min_u64(in->total_weight, UINT32_MAX) >> 12;
    uint64_t quantum = min_u64(max_u64(max_u64(shared / 2, feed), max_u64(in->piece_min, 1)), PLAN_NO_LIMIT);
    quantum = plan_pace_round(quantum, PLAN_PACE_PACKET);
    uint64_t least = 0;
    if (in->alone) {
        /* Nothing to balance: only word ops gain, so bulk may be as coarse as they can bear. */
        quantum = max_u64(quantum, PLAN_PACE_WIDE / 4);
        least = PLAN_PACE_WIDE;
    }
    uint64_t most = in->piece_max ? in->piece_max : PLAN_NO_LIMIT;
    lane->quantum = min_u64(quantum, most);
    lane->window = plan_pace_stretch(lane, max_u64(min_u64(flight, PLAN_NO_LIMIT) + 2 * lane->quantum, least));
    /* Many of the pieces in a wide window are found ended by one look: finer ones would only cost the CPU. */
    if (lane->stretch > 0)
        lane->quantum =
            max_u64(lane->quantum, min_u64(plan_pace_round(lane->window / PLAN_PACE_PARTS, PLAN_PACE_PACKET), most));
}

void plan_threshold(uint32_t piece_cost_ns, uint32_t mib_ns, uint64_t total_weight, struct plan_threshold *out)
{
    /* Half the length saved on the wire is twice the cost: so long is a piece of the shortest transfer that is cut. */
    uint64_t bytes = (UINT64_C(2) * piece_cost_ns << 20) / max_u64(mib_ns, 1);
    uint64_t feed = piece_cost_ns * min_u64(total_weight, UINT32_MAX) >> 12;
    out->piece_min = plan_pace_round(max_u64(max_u64(bytes, feed), 1), 1024);
    out->stripe_min = 2 * out->piece_min;
}

bool plan_pass_due(uint64_t last_ns, uint64_t now_ns, uint64_t trip_ns)
{
    /* A third is left for the pass itself, and for what was under way when it became due. */
    return now_ns >= last_ns && now_ns - last_ns >= trip_ns / 3 * 2;
}

void plan_pace_even(struct plan_lane *lane, const struct plan_rate *rate, unsigned lanes)
{
    uint32_t least = UINT32_MAX;
    for (unsigned k = 0; k < lanes; k++) {
        if (lane[k].live)
            least = min_u32(least, rate[k].rtt_ns);
    }
    for (unsigned k = 0; k < lanes; k++)
        lane[k].rtt_ns = least;
}
