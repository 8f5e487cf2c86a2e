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
    rate->told_mib_ns = rate->mib_ns;
}

/* Lets the estimate go back to the line rate by so many parts of PLAN_RATE_RETURN. */
static void plan_rate_return(struct plan_rate *rate, uint64_t parts)
{
    uint64_t slower = rate->mib_ns - rate->line_mib_ns;
    plan_rate_set(rate, rate->mib_ns - slower * min_u64(parts, PLAN_RATE_RETURN) / PLAN_RATE_RETURN);
}

/* What few looks may show of a lane at line rate, since each may have come late. */
static bool plan_rate_near(const struct plan_rate *rate, uint64_t mib_ns)
{
    return mib_ns <= (uint64_t)rate->line_mib_ns + rate->line_mib_ns / 4;
}

static void plan_rate_begin(struct plan_rate *rate)
{
    rate->ns = rate->bytes = 0;
    rate->looks = 0;
    rate->held = true;
}

/* Whether the estimate has moved so far that it is worth telling. */
static bool plan_rate_told(struct plan_rate *rate)
{
    uint32_t told = rate->told_mib_ns, now = rate->mib_ns, moved = now > told ? now - told : told - now;
    if (moved == 0 || (moved < told / 64 && now != rate->line_mib_ns))
        return false;
    rate->told_mib_ns = now;
    return true;
}

/* The first acknowledgement after a pause: its bytes left the wire before, and idle time says nothing about the lane, so what was
 * known grows old. */
static bool plan_rate_resume(struct plan_rate *rate, uint64_t elapsed, uint64_t span)
{
    uint64_t spans = rate->since_ns ? elapsed / max_u64(span, 1) : 0;
    if (rate->mib_ns != rate->line_mib_ns)
        plan_rate_return(rate, spans);
    if (spans >= PLAN_RATE_RETURN || !rate->held)
        plan_rate_begin(rate);
    bool forgotten = spans >= PLAN_RATE_RETURN && plan_stretch_forget(&rate->stretch);
    rate->running = true;
    return plan_rate_told(rate) || forgotten;
}

bool plan_rate_take(struct plan_rate *rate, uint64_t now_ns, uint64_t bytes, uint64_t held)
{
    uint64_t span = UINT64_C(2) * rate->rtt_ns, elapsed = now_ns > rate->since_ns ? now_ns - rate->since_ns : 0;
    rate->since_ns = now_ns;
    if (!rate->running)
        return plan_rate_resume(rate, elapsed, span);
    rate->ns += min_u64(elapsed, UINT64_C(1) << 40);
    rate->bytes += bytes;
    rate->looks++;
    rate->held = rate->held && held > 0;
    if (rate->ns < span || rate->ns == 0 || rate->bytes == 0)
        return false;
    uint64_t ns = min_u64(rate->ns, UINT64_C(1) << 40), seen = (ns << 20) / rate->bytes;
    seen = min_u64(max_u64(seen, rate->line_mib_ns), UINT32_MAX);
    bool sure = rate->looks >= PLAN_RATE_LOOKS;
    if (!sure && plan_rate_near(rate, rate->mib_ns) && plan_rate_near(rate, seen))
        return false;
    bool stretched = rate->held && plan_stretch_take(&rate->stretch, ns, rate->bytes, held, rate->line_mib_ns);
    if (rate->held || seen < rate->mib_ns)
        plan_rate_set(rate, sure ? seen : (rate->mib_ns + seen) / 2);
    else if (rate->mib_ns != rate->line_mib_ns)
        plan_rate_return(rate, max_u64(ns / max_u64(span, 1), 1));
    plan_rate_begin(rate);
    return plan_rate_told(rate) || stretched;
}

bool plan_rate_dry(struct plan_rate *rate, uint64_t now_ns)
{
    rate->since_ns = now_ns;
    rate->running = true;
    plan_rate_begin(rate);
    return plan_stretch_dry(&rate->stretch);
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
