/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_lag.h - bonds (link aggregation): a port that is one device with several wires. A QP travels on one of them, so a rail on it
 * is worth several lanes to each peer, its *ways*; each way is a wire, and lanes that the device or a switch spreads by hash get
 * source ports of their own.
 *
 * Where QPs can choose a wire there is one lane a wire; where they cannot, four, whose source ports leave one chance in 128 that two
 * wires are used as one. More would cost flushes: a signal waits for every lane. What a switch makes of them on the way to
 * the receiver nobody here can know: option spread.
 */
#ifndef PLAN_LAG_H
#define PLAN_LAG_H

#include "plan.h"

#define PLAN_LAG_AUTO   UINT32_MAX
#define PLAN_LAG_WIRES  8u /**< most wires of a bond */
#define PLAN_LAG_SPREAD 8u /**< most lanes a wire */

/** What is known of a port, and what the user asked for. */
struct plan_lag_in {
    uint32_t lag;    /**< PLAN_LAG_AUTO; 1: as if it were no bond; n: as a bond of n wires */
    uint32_t spread; /**< PLAN_LAG_AUTO, or so many lanes a wire */
    unsigned device; /**< wires as the device says; 0: it does not */
    unsigned host;   /**< wires that are up, as the host says; 0: it does not */
    bool choice;     /**< QPs can choose one of the device's wires */
};

/** A rail as its lanes see it. */
struct plan_lag {
    uint8_t wires;  /**< 1: no bond */
    uint8_t ways;   /**< lanes to each peer that it is worth, >= 1 */
    uint8_t choice; /**< wires that QPs choose from; 0: they cannot */
};

/** How many wires and ways a port has. Of a bond of which some wires are down those that are up count. */
void plan_lag(const struct plan_lag_in *in, struct plan_lag *out);

/** Takes ways off the rails that have most, until a peer has no more than PLAN_MAX_LANES of them: first lanes that share a wire with
 *  others, then wires. rails: 1..PLAN_MAX_RAILS. How many were taken off. */
unsigned plan_lag_fit(struct plan_lag *lag, unsigned rails);

/** The wire of a way, from 1: the device spreads those of a rail evenly; 0 where QPs cannot choose. */
unsigned plan_lag_wire(const struct plan_lag *lag, unsigned way);

/** The UDP source port of the lane-th lane from a PE to another, of RoCE's 49152 to 65535. All lanes of a peer have different ones. */
uint16_t plan_lag_sport(unsigned from, unsigned to, unsigned lane);

/** A flow label of which drivers make that source port (they fold its 20 bits into 14); never 0, which says nothing to them. */
uint32_t plan_lag_label(uint16_t sport);

/** One lane: the rails that it joins and the way that it takes at each of them. */
struct plan_lag_pair {
    uint8_t local, remote;
    uint8_t local_way, remote_way;
};

struct plan_lag_pair_in {
    struct plan_pair_in rails;  /**< of both sides, as for plan_pair() */
    const uint8_t *local_ways;  /**< of each local rail; PLAN_MAX_RAILS together at most */
    const uint8_t *remote_ways; /**< likewise */
};

/** plan_pair() of ways, each as if it were a rail: every way of both sides is used, as evenly as reach allows. The same with one way each.
 *  *unused: rails that no lane uses. Number of lanes; 0; -EINVAL. */
int plan_lag_pair(const struct plan_lag_pair_in *in, struct plan_lag_pair out[PLAN_MAX_LANES], unsigned *unused);

#endif
