/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_mail.c - the control mailbox as seen from above: so far an echo, which proves a lane and its version both ways.
 * Called by the user; next: src/rail/rail_mail.c
 */
#include "api.h"

#include <errno.h>

#define API_ECHO_TIMEOUT_NS UINT64_C(5000000000)

/* Waits until the answer with this nonce is there. */
static int api_echo_wait(struct api_peer *peer, const struct rail_lane *lane, uint64_t nonce, uint64_t deadline)
{
    const struct clock *clock = &peer->channel->braid->clock;
    while (peer->echo_reply != nonce) {
        if (lane->mail.rejected)
            return -EPROTO; /* logged when the refusal came */
        if (lane->state != RAIL_LANE_UP)
            return -EIO; /* logged when it failed */
        if (clock_now(clock) >= deadline) {
            api_log_limited(peer->channel, API_LOG_ECHO,
                            "no echo from PE %d over lane %u within %u s: the peer must be in progress", peer->pe,
                            lane->index, (unsigned)(API_ECHO_TIMEOUT_NS / 1000000000));
            return -ETIMEDOUT;
        }
        int rc = api_turn(peer->channel, deadline);
        if (rc)
            return rc;
    }
    return 0;
}

static int api_echo(struct braid_channel *ch, int pe, int lane_index, uint64_t *rtt_ns)
{
    struct api_peer *peer = api_peer(ch, pe);
    if (!peer)
        return -EINVAL;
    if (!rtt_ns || lane_index < 0 || (unsigned)lane_index >= peer->lane_count) {
        api_log_limited(ch, API_LOG_ECHO,
                        "an echo over lane %d to PE %d %s: expected a lane below %u and a place for it", lane_index, pe,
                        rtt_ns ? "with a place for the time" : "without one", peer->lane_count);
        return -EINVAL;
    }
    struct rail_lane *lane = peer->lane[lane_index];
    if (lane->state != RAIL_LANE_UP) {
        api_log_limited(ch, API_LOG_ECHO, "no echo over lane %d to PE %d: it has failed before", lane_index, pe);
        return -EIO;
    }
    uint64_t nonce = random_next(&ch->random) | 1; /* 0 is "no answer yet" */
    uint64_t start = clock_now(&ch->braid->clock);
    if (rail_mail_ask_echo(&lane->mail, nonce))
        return -EAGAIN; /* an earlier one that timed out still waits for the peer's credit */
    rail_lane_pump_mail(lane);
    int rc = api_echo_wait(peer, lane, nonce, start + API_ECHO_TIMEOUT_NS);
    if (!rc)
        *rtt_ns = clock_now(&ch->braid->clock) - start;
    return rc;
}

int braid_echo(struct braid_channel *ch, int pe, int lane_index, uint64_t *rtt_ns)
{
    if (!ch)
        return -EINVAL;
    api_enter(ch);
    int rc = api_echo(ch, pe, lane_index, rtt_ns);
    api_leave(ch);
    return rc;
}
