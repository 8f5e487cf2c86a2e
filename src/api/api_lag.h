/* SPDX-License-Identifier: Apache-2.0 */
/* api_lag.h - rails that are bonds: their wires, and the way of each lane; for the files of src/api alone. */
#ifndef API_LAG_H
#define API_LAG_H

#include "plan_lag.h"
#include "rail.h"

struct braid;

/** Whether option lag asks for more than one lane to a peer on a bond; rails=1 does not unless lag says a number. */
bool api_lag_wanted(const struct braid *b);

/** Finds out how many wires and ways each open rail has, and tells it the rails, so that peers are told. Logs. */
void api_lag_open(struct braid *b);

/** The way of the k-th lane to a PE, where lanes are spread over wires. */
struct rail_way api_lag_way(const struct braid *b, const struct plan_lag_pair *pair, int pe, unsigned k);

/** Bits a second of one wire of a rail, its own or a peer's. */
static inline uint64_t api_lag_wire_bits(const struct rail_wire_rail *rail)
{
    return rail->rate_bits / rail->wires;
}

#endif
