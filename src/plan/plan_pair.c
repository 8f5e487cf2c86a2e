/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_pair.c - which local rail is joined with which remote rail, for any two counts.
 * May not know what a rail is beyond its number. Called by src/api/api_peer.c, on both sides of a pair alike.
 */
#include "plan.h"

#include <errno.h>

int plan_pair(const struct plan_pair_in *in, struct plan_pair out[PLAN_MAX_LANES], unsigned *left_out)
{
    unsigned n = in->local_rails, m = in->remote_rails;
    if (n < 1 || n > PLAN_MAX_RAILS || m < 1 || m > PLAN_MAX_RAILS)
        return -EINVAL;
    unsigned candidates = max_u32(n, m), count = 0;
    for (unsigned k = 0; k < candidates; k++) {
        struct plan_pair pair = {.local = (uint8_t)(k % n), .remote = (uint8_t)(k % m)};
        if (!in->reach || (in->reach[pair.local] >> pair.remote & 1))
            out[count++] = pair;
    }
    *left_out = candidates - count;
    return (int)count;
}

uint32_t plan_pair_mtu(uint32_t local_mtu, uint32_t remote_mtu)
{
    return min_u32(local_mtu, remote_mtu);
}
