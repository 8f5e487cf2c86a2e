/* SPDX-License-Identifier: Apache-2.0 */
/* stripe_rig.h - lanes and transfers for tests of striping: by hand and at random. */
#ifndef STRIPE_RIG_H
#define STRIPE_RIG_H

#include "unit.h"

#include "plan.h"

enum { NOW = 1000000, MIB_NS = 42783, RTT = 5200 };

/* A lane of 200 Gb/s with a quantum of 64 KiB, whose posted bytes end as they should. */
static inline struct plan_lane lane_of(uint64_t mib_ns, uint64_t backlog)
{
    struct plan_lane lane = {.live = true,
                             .mib_ns = (uint32_t)mib_ns,
                             .weight = (uint32_t)((UINT64_C(1) << 32) / mib_ns),
                             .rtt_ns = RTT,
                             .window = 262144,
                             .quantum = 65536};
    if (backlog)
        plan_lane_posted(&lane, NOW, backlog);
    return lane;
}

static inline uint64_t random_below(uint64_t *random, uint64_t n)
{
    return n ? unit_random(random) % n : 0;
}

/* Fills in a random transfer over random lanes. Returns the number of live lanes. */
static inline unsigned random_transfer(uint64_t *random, struct plan_stripe_in *in,
                                       struct plan_lane lane[PLAN_MAX_LANES])
{
    unsigned live = 0;
    uint64_t deep = UINT64_C(1) << random_below(random, 24);
    *in = (struct plan_stripe_in){
        .remote_addr = unit_random(random) >> 8,
        .len = 1 + random_below(random, UINT64_C(1) << random_below(random, 31)),
        .behind = random_below(random, 2) ? 0 : random_below(random, UINT64_C(1) << random_below(random, 31)),
        .lanes = 1 + (unsigned)random_below(random, PLAN_MAX_LANES),
        .home = (unsigned)random_below(random, PLAN_MAX_LANES + 1),
        .home_lead_ns = random_below(random, 2) ? 0 : random_below(random, 20000),
        .piece_min = random_below(random, 2) ? 0 : random_below(random, 32768),
        .piece_max = random_below(random, 4) ? 0 : 4096 + random_below(random, UINT64_C(1) << random_below(random, 31)),
        .step_ns = random_below(random, 2) * 150,
        .now_ns = NOW + random_below(random, 2) * random_below(random, 1000000),
        .lane = lane,
    };
    for (unsigned k = 0; k < in->lanes; k++) {
        lane[k] =
            lane_of(10000 + random_below(random, 400000), random_below(random, 3) ? random_below(random, deep) : 0);
        lane[k].live = random_below(random, 5) != 0;
        lane[k].rtt_ns = (uint32_t)random_below(random, 20000);
        lane[k].quantum = 1 + random_below(random, 200000);
        lane[k].window = random_below(random, 10) ? lane[k].quantum * 2 + random_below(random, 200000) : PLAN_NO_LIMIT;
        if (random_below(random, 6) == 0)
            lane[k].window = lane[k].backlog; /* full, and perhaps with nothing on its way */
        live += lane[k].live;
    }
    return live;
}

/* A plan by a fresh look at the lanes. */
static inline int stripe(const struct plan_stripe_in *in, struct plan_stripe *out)
{
    struct plan_pick pick = {0};
    if (in->lanes <= PLAN_MAX_LANES)
        plan_pick_begin(&pick, in->lane, in->lanes, in->now_ns);
    return plan_stripe(in, &pick, out);
}

#endif
