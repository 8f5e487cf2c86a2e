/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_stretch.c - tries wider and narrower windows and keeps what makes a lane faster.
 * May not read a clock or know queues. Called by plan_rate.c; next: plan_pace.c makes the window
 */
#include "plan_stretch.h"
#include "common.h"

/* What a round counts at most: no lane takes or carries as much, and the quotient stays within 64 bits. */
#define PLAN_STRETCH_NS    (UINT64_C(1) << 42)
#define PLAN_STRETCH_BYTES (UINT64_C(1) << 42)

enum {
    PLAN_STRETCH_ROUND = 16, /* measurements, so that one late look does not decide */
    PLAN_STRETCH_DRY = 2,    /* looks that found the lane dry, so that one late look does not decide */
    PLAN_STRETCH_REST = 16   /* rounds: what is tried in vain costs a sixteenth of the time */
};

static bool plan_stretch_slow(uint32_t mib_ns, uint32_t line_mib_ns)
{
    return mib_ns > (uint64_t)line_mib_ns + line_mib_ns / 16;
}

/* What to try next at this speed: 1, -1 or 0. */
static int plan_stretch_next(const struct plan_stretch *s, uint32_t line_mib_ns)
{
    bool wider = s->shift < PLAN_STRETCH_MAX && plan_stretch_slow(s->mib_ns, line_mib_ns), narrower = s->shift > 0;
    if (wider && narrower)
        return s->narrower ? -1 : 1;
    return wider ? 1 : narrower ? -1 : 0;
}

static bool plan_stretch_try(struct plan_stretch *s, int step, uint64_t backlog)
{
    s->step = (int8_t)step;
    s->shift = (uint8_t)(s->shift + step);
    s->skip = backlog;
    return step != 0;
}

/* Whether what was tried is worth keeping, mib_ns being what it gave. */
static bool plan_stretch_paid(const struct plan_stretch *s, uint32_t mib_ns)
{
    uint64_t now = mib_ns, before = s->mib_ns;
    return s->step > 0 ? now * 5 <= before * 4 : now * 16 <= before * 17;
}

static bool plan_stretch_round(struct plan_stretch *s, uint32_t mib_ns, uint64_t backlog, uint32_t line_mib_ns)
{
    if (s->step == 0) {
        s->mib_ns = mib_ns;
        if (s->rest > 0) {
            s->rest--;
            return false;
        }
        return plan_stretch_try(s, plan_stretch_next(s, line_mib_ns), backlog);
    }
    int back = -s->step;
    if (!plan_stretch_paid(s, mib_ns)) {
        s->narrower = back < 0;
        plan_stretch_try(s, back, backlog);
        s->step = 0;
        s->rest = PLAN_STRETCH_REST;
        return true;
    }
    /* It paid: the next step the same way, as long as there is one. */
    s->mib_ns = mib_ns;
    s->narrower = back > 0;
    int next = plan_stretch_next(s, line_mib_ns);
    if (next == -back)
        return plan_stretch_try(s, next, backlog);
    s->step = 0;
    s->rest = PLAN_STRETCH_REST;
    return false;
}

bool plan_stretch_take(struct plan_stretch *s, uint64_t ns, uint64_t bytes, uint64_t backlog, uint32_t line_mib_ns)
{
    bytes = min_u64(bytes, PLAN_STRETCH_BYTES);
    if (s->skip > 0) {
        s->skip -= min_u64(bytes, s->skip);
        return false;
    }
    s->ns = min_u64(s->ns + min_u64(ns, PLAN_STRETCH_NS), PLAN_STRETCH_NS);
    s->bytes = min_u64(s->bytes + bytes, PLAN_STRETCH_BYTES);
    s->count += s->count < PLAN_STRETCH_ROUND;
    backlog = min_u64(backlog, PLAN_STRETCH_BYTES / 2);
    if (s->count < PLAN_STRETCH_ROUND || s->bytes < 2 * backlog)
        return false;
    uint64_t mib_ns = (s->ns << 20) / max_u64(s->bytes, 1);
    s->ns = s->bytes = s->count = s->dry = 0;
    return plan_stretch_round(s, (uint32_t)min_u64(max_u64(mib_ns, 1), UINT32_MAX), backlog, line_mib_ns);
}

bool plan_stretch_dry(struct plan_stretch *s)
{
    if (++s->dry < PLAN_STRETCH_DRY)
        return false;
    bool wider = s->shift < PLAN_STRETCH_MAX;
    *s = (struct plan_stretch){
        .shift = (uint8_t)(s->shift + wider), .rest = PLAN_STRETCH_REST, .mib_ns = s->mib_ns, .narrower = s->narrower};
    return wider;
}

bool plan_stretch_forget(struct plan_stretch *s)
{
    bool changed = s->shift != 0;
    *s = (struct plan_stretch){0};
    return changed;
}
