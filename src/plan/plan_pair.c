/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_pair.c - which local rail is joined with which remote rail, for any two counts and any reach.
 * May not know what a rail is beyond its number. Called by src/api/api_peer.c, on both sides of a pair alike.
 */
#include "plan.h"

#include <errno.h>

/* The pairing so far, always seen from the PE with the lower number, so that both sides walk through the same steps. */
struct plan_pair_state {
    unsigned lower_rails, upper_rails;
    uint16_t reach[PLAN_MAX_RAILS];
    unsigned lower_load[PLAN_MAX_RAILS], upper_load[PLAN_MAX_RAILS];
};

static void plan_pair_turn(const struct plan_pair_in *in, struct plan_pair_state *s)
{
    *s = (struct plan_pair_state){.lower_rails = in->upper ? in->remote_rails : in->local_rails,
                                  .upper_rails = in->upper ? in->local_rails : in->remote_rails};
    for (unsigned i = 0; i < in->local_rails; i++) {
        for (unsigned j = 0; j < in->remote_rails; j++) {
            bool reached = !in->reach || (in->reach[i] >> j & 1);
            s->reach[in->upper ? j : i] |= (uint16_t)(reached << (in->upper ? i : j));
        }
    }
}

/* Joins the least loaded rails of which one has no lane yet. False where every rail that reaches anything has one. */
static bool plan_pair_next(struct plan_pair_state *s, struct plan_pair *out)
{
    unsigned best = UINT32_MAX;
    for (unsigned a = 0; a < s->lower_rails; a++) {
        for (unsigned b = 0; b < s->upper_rails; b++) {
            unsigned most = max_u32(s->lower_load[a], s->upper_load[b]), both = s->lower_load[a] + s->upper_load[b];
            if (!(s->reach[a] >> b & 1) || (s->lower_load[a] && s->upper_load[b]) || most * 64 + both >= best)
                continue;
            best = most * 64 + both;
            *out = (struct plan_pair){.local = (uint8_t)a, .remote = (uint8_t)b};
        }
    }
    if (best == UINT32_MAX)
        return false;
    s->lower_load[out->local]++;
    s->upper_load[out->remote]++;
    return true;
}

int plan_pair(const struct plan_pair_in *in, struct plan_pair out[PLAN_MAX_LANES], unsigned *unused)
{
    struct plan_pair_state s;
    int count = 0;
    if (in->local_rails < 1 || in->local_rails > PLAN_MAX_RAILS || in->remote_rails < 1 ||
        in->remote_rails > PLAN_MAX_RAILS)
        return -EINVAL;
    plan_pair_turn(in, &s);
    while (count < PLAN_MAX_LANES && plan_pair_next(&s, &out[count])) {
        if (in->upper)
            out[count] = (struct plan_pair){.local = out[count].remote, .remote = out[count].local};
        count++;
    }
    *unused = 0;
    for (unsigned i = 0; i < s.lower_rails; i++)
        *unused += s.lower_load[i] == 0;
    for (unsigned i = 0; i < s.upper_rails; i++)
        *unused += s.upper_load[i] == 0;
    return count;
}

uint32_t plan_pair_mtu(uint32_t local_mtu, uint32_t remote_mtu)
{
    return min_u32(local_mtu, remote_mtu);
}
