/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_lag.c - how many wires a port has, how many lanes it is worth, and which wire and source port each of them takes.
 * May not know devices: what they said is given. Called by src/api/api_lag.c and api_peer.c, pairs on both sides alike; next:
 * plan_pair.c
 */
#include "plan_lag.h"

#include <errno.h>

/* Lanes of each wire: where QPs choose, and where a hash does. */
#define PLAN_LAG_CHOSEN 1u
#define PLAN_LAG_HASHED 4u

#define PLAN_LAG_SPORTS     16383u /* all of RoCE's but the first, whose label would be 0 */
#define PLAN_LAG_SPORT_BASE 0xc000u
#define PLAN_LAG_STEP       6101u /* has no divisor with PLAN_LAG_SPORTS in common: no port comes twice */

void plan_lag(const struct plan_lag_in *in, struct plan_lag *out)
{
    unsigned told = in->device > 1 ? in->device : in->host, wires = told;
    if (in->device > 1 && in->host > 0)
        wires = min_u32(in->device, in->host);
    if (in->lag != PLAN_LAG_AUTO)
        wires = in->lag;
    wires = max_u32(min_u32(wires, PLAN_LAG_WIRES), 1);
    /* All of the device's: it moves what was given to one that is down. */
    unsigned choice = in->choice && wires > 1 ? min_u32(in->device, PLAN_LAG_WIRES) : 0;
    unsigned spread = wires == 1 ? 1 : choice ? PLAN_LAG_CHOSEN : PLAN_LAG_HASHED;
    if (in->spread != PLAN_LAG_AUTO)
        spread = max_u32(min_u32(in->spread, PLAN_LAG_SPREAD), 1);
    *out = (struct plan_lag){
        .wires = (uint8_t)wires, .ways = (uint8_t)min_u32(wires * spread, PLAN_MAX_LANES), .choice = (uint8_t)choice};
}

unsigned plan_lag_fit(struct plan_lag *lag, unsigned rails)
{
    unsigned taken = 0, sum = 0;
    for (unsigned i = 0; i < rails; i++)
        sum += lag[i].ways;
    for (; sum > PLAN_MAX_LANES; sum--, taken++) {
        unsigned most = 0;
        /* By lanes a wire, the last of those with most: a.ways / a.wires >= b.ways / b.wires. */
        for (unsigned i = 1; i < rails; i++) {
            unsigned a = lag[i].ways > 1 ? lag[i].ways * lag[most].wires : 0, b = lag[most].ways * lag[i].wires;
            if (lag[most].ways == 1 || a >= b)
                most = i;
        }
        lag[most].ways--;
    }
    return taken;
}

unsigned plan_lag_wire(const struct plan_lag *lag, unsigned way)
{
    return lag->choice ? way % lag->choice + 1 : 0;
}

uint16_t plan_lag_sport(unsigned from, unsigned to, unsigned lane)
{
    /* Where a peer's begin is spread, so that the flows of many peers are too. */
    uint32_t begin = (from * 0x9e3779b1u) ^ (to * 0x85ebca6bu);
    begin = (begin ^ begin >> 15) * 0x2c1b3c6du;
    begin = (begin ^ begin >> 13) % PLAN_LAG_SPORTS;
    return (uint16_t)(PLAN_LAG_SPORT_BASE + 1 + (begin + lane * PLAN_LAG_STEP) % PLAN_LAG_SPORTS);
}

uint32_t plan_lag_label(uint16_t sport)
{
    /* The upper six bits are zero, so that nothing is folded into the lower ones. */
    return sport & ~PLAN_LAG_SPORT_BASE & UINT16_MAX;
}

/* The ways of some rails in a row: the rail of each, and which of its ways it is. */
struct plan_lag_row {
    unsigned count;
    uint8_t rail[PLAN_MAX_RAILS], way[PLAN_MAX_RAILS];
};

static int plan_lag_row(const uint8_t *ways, unsigned rails, struct plan_lag_row *out)
{
    *out = (struct plan_lag_row){0};
    for (unsigned i = 0; i < rails; i++) {
        if (ways[i] < 1)
            return -EINVAL;
        for (unsigned k = 0; k < ways[i]; k++) {
            if (out->count == PLAN_MAX_RAILS)
                return -EINVAL;
            out->rail[out->count] = (uint8_t)i;
            out->way[out->count++] = (uint8_t)k;
        }
    }
    return 0;
}

/* Who of the ways reaches whom, as their rails do. */
static void plan_lag_reach(const struct plan_pair_in *rails, const struct plan_lag_row *local,
                           const struct plan_lag_row *remote, uint16_t reach[PLAN_MAX_RAILS])
{
    for (unsigned i = 0; i < local->count; i++) {
        reach[i] = 0;
        for (unsigned j = 0; j < remote->count; j++) {
            bool reached = !rails->reach || (rails->reach[local->rail[i]] >> remote->rail[j] & 1);
            reach[i] |= (uint16_t)(reached << j);
        }
    }
}

int plan_lag_pair(const struct plan_lag_pair_in *in, struct plan_lag_pair out[PLAN_MAX_LANES], unsigned *unused)
{
    const struct plan_pair_in *rails = &in->rails;
    struct plan_lag_row local, remote;
    struct plan_pair pair[PLAN_MAX_LANES];
    uint16_t reach[PLAN_MAX_RAILS];
    if (rails->local_rails > PLAN_MAX_RAILS || rails->remote_rails > PLAN_MAX_RAILS ||
        plan_lag_row(in->local_ways, rails->local_rails, &local) ||
        plan_lag_row(in->remote_ways, rails->remote_rails, &remote))
        return -EINVAL;
    plan_lag_reach(rails, &local, &remote, reach);
    struct plan_pair_in ways = {
        .local_rails = local.count, .remote_rails = remote.count, .upper = rails->upper, .reach = reach};
    unsigned ways_unused;
    int count = plan_pair(&ways, pair, &ways_unused);
    if (count < 0)
        return count;
    uint32_t local_used = 0, remote_used = 0;
    for (int k = 0; k < count; k++) {
        out[k] = (struct plan_lag_pair){.local = local.rail[pair[k].local],
                                        .remote = remote.rail[pair[k].remote],
                                        .local_way = local.way[pair[k].local],
                                        .remote_way = remote.way[pair[k].remote]};
        local_used |= 1u << out[k].local;
        remote_used |= 1u << out[k].remote;
    }
    *unused = rails->local_rails + rails->remote_rails - (unsigned)__builtin_popcount(local_used) -
              (unsigned)__builtin_popcount(remote_used);
    return count;
}
