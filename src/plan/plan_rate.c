/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_rate.c - how fast a lane is: an estimate from its acknowledgements, and its smallest round trip.
 * May not read a clock; time is given. Called by src/api as completions are found; next: plan_lane_speed(), plan_pace()
 */
#include "plan.h"

#define PLAN_RATE_HEADERS                                                                                              \
    82u /* bytes of a RoCE v2 packet that are not payload: preamble and gap are not counted by ports */
#define PLAN_RATE_FASTEST 100u /* ns a MiB: no port comes near, and sums of weights stay within 64 bits */
#define PLAN_RATE_RETURN                                                                                               \
    64u /* measurements after which an estimate that nothing confirms has gone back to the line rate */

static void plan_rate_set(struct plan_rate *rate, uint64_t mib_ns)
{
    /* What is nearly the line rate is the line rate, seen through late polls: equal lanes shall look equal. */
    if (mib_ns <= rate->line_mib_ns + rate->line_mib_ns / 16)
        mib_ns = rate->line_mib_ns;
    rate->mib_ns = (uint32_t)min_u64(mib_ns, UINT32_MAX);
    rate->weight = (uint32_t)(((UINT64_C(1) << 32) + rate->mib_ns / 2) / rate->mib_ns);
}

void plan_rate_init(struct plan_rate *rate, uint64_t line_bits, uint32_t mtu, uint64_t rtt_ns)
{
    uint64_t bits = line_bits ? line_bits : UINT64_C(1000000000), payload = mtu ? mtu : 4096;
    uint64_t mib_bits = (UINT64_C(8) << 20) * (payload + PLAN_RATE_HEADERS) / payload;
    uint64_t mib_ns = (mib_bits * UINT64_C(1000000000) + bits / 2) / bits;
    *rate = (struct plan_rate){
        .rtt_ns = rtt_ns ? (uint32_t)min_u64(rtt_ns, UINT32_MAX) : 10000,
        .line_mib_ns = (uint32_t)min_u64(max_u64(mib_ns, PLAN_RATE_FASTEST), UINT32_MAX),
    };
    plan_rate_set(rate, rate->line_mib_ns);
}

/* Lets the estimate go back to the line rate by so many parts of PLAN_RATE_RETURN. */
static void plan_rate_return(struct plan_rate *rate, uint64_t parts)
{
    uint64_t slower = rate->mib_ns - rate->line_mib_ns;
    plan_rate_set(rate, rate->mib_ns - slower * min_u64(parts, PLAN_RATE_RETURN) / PLAN_RATE_RETURN);
}

/* The acknowledgement at which a measurement begins: its bytes left the wire before. */
static void plan_rate_begin(struct plan_rate *rate, uint64_t now_ns)
{
    rate->since_ns = now_ns;
    rate->bytes = 0;
    rate->held = true;
    rate->running = true;
}

bool plan_rate_take(struct plan_rate *rate, uint64_t now_ns, uint64_t bytes, uint64_t held)
{
    uint32_t before = rate->mib_ns;
    uint64_t span = UINT64_C(2) * rate->rtt_ns, elapsed = now_ns > rate->since_ns ? now_ns - rate->since_ns : 0;
    if (!rate->running) {
        /* Idle time says nothing about the lane, so what was known grows old. */
        uint64_t spans = rate->since_ns ? elapsed / max_u64(span, 1) : 0;
        if (before != rate->line_mib_ns)
            plan_rate_return(rate, spans);
        bool forgotten = spans >= PLAN_RATE_RETURN && plan_stretch_forget(&rate->stretch);
        plan_rate_begin(rate, now_ns);
        return rate->mib_ns != before || forgotten;
    }
    rate->bytes += bytes;
    rate->held = rate->held && held > 0;
    if (elapsed < span || elapsed == 0 || rate->bytes == 0)
        return false;
    uint64_t seen = (min_u64(elapsed, UINT64_C(1) << 40) << 20) / rate->bytes;
    seen = min_u64(max_u64(seen, rate->line_mib_ns), UINT32_MAX);
    bool stretched = rate->held && plan_stretch_take(&rate->stretch, elapsed, rate->bytes, held, rate->line_mib_ns);
    if (rate->held || seen < before)
        plan_rate_set(rate, (before + seen) / 2);
    else if (before != rate->line_mib_ns)
        plan_rate_return(rate, 1);
    plan_rate_begin(rate, now_ns);
    return rate->mib_ns != before || stretched;
}

void plan_rate_idle(struct plan_rate *rate)
{
    rate->running = false;
}

bool plan_rate_rtt(struct plan_rate *rate, uint64_t sample_ns)
{
    if (sample_ns == 0 || (rate->rtt_known && sample_ns >= rate->rtt_ns))
        return false;
    uint32_t before = rate->rtt_ns;
    rate->rtt_ns = (uint32_t)min_u64(sample_ns, UINT32_MAX);
    rate->rtt_known = true;
    return rate->rtt_ns != before;
}
