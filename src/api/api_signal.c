/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_signal.c - signals: one atomic on the peer's home lane, behind all earlier ops to that peer.
 * May not decide when: api_order.c does. Called by the user; next: api_order.c
 */
#include "api.h"

#include <errno.h>

int braid_signal_add(struct braid_channel *ch, int pe, struct braid_remote dst, uint64_t value, struct braid_done *done)
{
    struct rail_wire_view view;
    struct api_peer *peer = ch ? api_peer(ch, pe) : NULL;
    if (!peer)
        return -EINVAL;
    if (!dst.key || dst.addr % 8) {
        api_log_limited(ch, API_LOG_ALIGN, "a signal to 0x%llx of PE %d %s: expected a multiple of 8 and a key",
                        (unsigned long long)dst.addr, pe, dst.key ? "with a key" : "without a key");
        return -EINVAL;
    }
    int rc = api_key_check(peer, &dst, 8, &view);
    if (rc)
        return rc;
    if (peer->home >= peer->lane_count) {
        api_log_limited(ch, API_LOG_LANE, "no lane reaches the home rail of PE %d", pe);
        return -ENOTCONN;
    }
    if (peer->remote_rail[peer->home] >= view.rails) {
        api_log_limited(ch, API_LOG_RAIL, "the key of PE %d covers %u rails, its home is rail %u", pe, view.rails,
                        peer->remote_rail[peer->home]);
        return -EPROTO;
    }
    struct rail_request request = {
        .kind = RAIL_KIND_FETCH_ADD,
        .klass = RAIL_CLASS_WORD,
        .epoch = peer->epoch,
        .len = 8,
        .remote_addr = dst.addr,
        .rkey = rail_wire_view_rkey(dst.key->bytes, peer->remote_rail[peer->home], true),
        .operand = value,
    };
    return api_order_submit(peer, &request, NULL, done);
}
