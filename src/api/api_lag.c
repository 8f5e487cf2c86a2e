/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_lag.c - bonds: asks rails and host how many wires a port has, has plan say what follows from it, and tells rails.
 * May not decide. Called by api_open.c and api_channel.c; next: src/plan/plan_lag.c, then src/rail/rail_lag.c
 */
#include "api_lag.h"

#include "api.h"
#include "topo.h"

#include <stdio.h>
#include <string.h>

_Static_assert(PLAN_LAG_AUTO == OPTIONS_AUTO, "one number");

bool api_lag_wanted(const struct braid *b)
{
    return b->options.lag == OPTIONS_AUTO ? b->options.rails != 1 : b->options.lag > 1;
}

/* What is known of a rail, in plan's words. */
static struct plan_lag_in api_lag_in(const struct braid *b, const struct rail *rail)
{
    char dev[VERBS_NAME_SIZE];
    snprintf(dev, sizeof(dev), "%.*s", (int)strcspn(rail->name, ":"), rail->name);
    struct plan_lag_in in = {.lag = api_lag_wanted(b) ? b->options.lag : 1,
                             .spread = b->options.spread,
                             .device = rail->wires,
                             .choice = rail->wire_choice};
    /* Where the device knows that it is none there is no need to look. */
    if (in.lag == PLAN_LAG_AUTO && rail->wires != 1)
        in.host = topo_wires(b->options.sysroot, dev);
    return in;
}

static void api_lag_say(const struct braid *b, unsigned i, const struct plan_lag_in *in)
{
    const struct plan_lag *lag = &b->lag[i];
    const char *how = lag->choice ? "each lane is given a wire" : "lanes are spread over wires by source ports";
    if (lag->wires > 1)
        log_write(
            &b->log, LOG_LEVEL_INFO,
            "rail %u (%s) is a bond of %u wires (its device says %u, the host %u; 0: nothing): %u lanes to each peer; %s",
            i, b->rail[i]->name, lag->wires, in->device, in->host, lag->ways, how);
    else if (in->device > 1)
        log_write(&b->log, LOG_LEVEL_INFO,
                  "rail %u (%s) is a bond of %u wires, but used as one: lag=off, rails=1, or one is up", i,
                  b->rail[i]->name, in->device);
}

void api_lag_open(struct braid *b)
{
    struct plan_lag_in in[BRAID_MAX_RAILS] = {{0}};
    for (unsigned i = 0; i < b->rail_count; i++) {
        in[i] = api_lag_in(b, b->rail[i]);
        plan_lag(&in[i], &b->lag[i]);
    }
    unsigned taken = plan_lag_fit(b->lag, b->rail_count);
    b->ways = 0;
    for (unsigned i = 0; i < b->rail_count; i++) {
        struct rail_wire_rail *address = &b->rail[i]->address;
        address->wires = b->lag[i].wires;
        address->ways = b->lag[i].ways;
        address->rate_bits *= b->lag[i].wires; /* what a port says is one wire's */
        b->ways += b->lag[i].ways;
        api_lag_say(b, i, &in[i]);
    }
    if (taken)
        log_write(&b->log, LOG_LEVEL_INFO, "%u lanes to each peer are too many for %u rails: %u are left out",
                  PLAN_MAX_LANES, b->rail_count, taken);
}

struct rail_way api_lag_way(const struct braid *b, const struct plan_lag_pair *pair, int pe, unsigned k)
{
    uint16_t sport = plan_lag_sport((unsigned)b->my_pe, (unsigned)pe, k);
    return (struct rail_way){.wire = (uint8_t)plan_lag_wire(&b->lag[pair->local], pair->local_way),
                             .sport = sport,
                             .flow_label = plan_lag_label(sport)};
}
