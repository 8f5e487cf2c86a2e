/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_rig.h - PE 0 of two over a fake device, two lanes to itself and two to PE 1, whom the test plays: it mirrors PE 0 when
 * connecting (so that keys of PE 0 are good for it too) and then writes mailbox messages by hand.
 * Included by test_api_atomic.c and test_api_exec.c.
 */
#ifndef PEER_RIG_H
#define PEER_RIG_H

#include "order_rig.h"

#include "rail_mail.h"
#include "rail_wire.h"

enum { SELF = 0, PEER = 2 }; /* rig.qp[SELF + lane], rig.qp[PEER + lane] */

/* PE 1's end of the mailboxes: messages written and read on each lane, of either PE. */
static struct {
    uint32_t sent[LANES], read[LANES];
    unsigned round;
} peer;

static inline int mirror(void *arg, const void *send, void *recv, size_t bytes_each)
{
    (void)arg;
    char why[RAIL_WIRE_WHY];
    struct rail_wire_rails rails;
    struct rail_wire_lanes lanes;
    struct rail_wire_status status;
    const uint8_t *mine = (const uint8_t *)send + bytes_each;
    uint8_t *theirs = (uint8_t *)recv + bytes_each;
    memcpy(recv, send, bytes_each);
    switch (peer.round++) {
    case 0:
        assert_int_equal(rail_wire_unpack_rails(mine, bytes_each, &rails, why), 0);
        rails.head.pe = 1;
        rail_wire_pack_rails(&rails, theirs);
        break;
    case 1:
        assert_int_equal(rail_wire_unpack_lanes(mine, bytes_each, &lanes, why), 0);
        lanes.head.pe = 1;
        rail_wire_pack_lanes(&lanes, theirs);
        break;
    case 2:
        assert_int_equal(rail_wire_unpack_status(mine, bytes_each, &status, why), 0);
        status.head.pe = 1;
        rail_wire_pack_status(&status, theirs);
        fake_auto(true); /* the probes */
        break;
    default:
        assert_int_equal(rail_wire_unpack_verdict(mine, bytes_each, &status, why), 0);
        status.head.pe = 1;
        rail_wire_pack_verdict(&status, theirs);
        fake_auto(false);
        break;
    }
    return 0;
}

/* lost: a QP whose probe fails, or -1. */
static inline void make_peer(const char *setting, int lost)
{
    const char *settings[] = {"ports=fake0,fake1",  "seed=1",         "word_depth=16",
                              "stripe_min=16384",   "piece_min=4096", "pace=off",
                              "reply_timeout=1000", setting,          NULL};
    struct braid_options options = BRAID_OPTIONS_INIT;
    struct braid_peers peers = {.size = sizeof(peers), .my_pe = 0, .n_pes = 2, .alltoall = mirror};
    fake_reset();
    memset(&rig, 0, sizeof(rig));
    memset(&peer, 0, sizeof(peer));
    memset(memory, 0, 4096);
    rig.now = 1000000;
    options.settings = settings;
    options.wait = end_one;
    options.now = rig_now;
    options.log = keep_line;
    assert_int_equal(braid_open(&options, &rig.b), 0);
    /* Before connecting, so that the key names no owner. */
    assert_int_equal(braid_mem_reg(rig.b, memory, sizeof(memory), NULL, &rig.mem), 0);
    assert_int_equal(braid_mem_key(rig.mem, &rig.key), 0);
    if (lost >= 0)
        fake_auto_error((unsigned)lost, -ETIMEDOUT);
    assert_int_equal(braid_connect(rig.b, &peers), 0);
    rig.ch = braid_channel_at(rig.b, 0);
    for (unsigned i = 0; i < LANES; i++)
        rig.qp[i] = fake_qp(i);
    fake_mail_lost(true);
    fake_moves(true);
}

/* PE 1 (or PE 0 to itself, by a QP of its own) sends a message. */
static inline void peer_send(unsigned qp, struct rail_mail_msg *msg)
{
    uint8_t bytes[RAIL_MAIL_BYTES];
    msg->version = RAIL_MAIL_VERSION;
    msg->seq = peer.sent[qp]++;
    msg->consumed = peer.read[qp];
    rail_mail_format(msg, bytes);
    fake_arrive(rig.qp[qp], bytes, sizeof(bytes));
    assert_true(braid_progress(rig.ch) > 0);
}

/* PE 1 reads the message that is the oldest request on a QP, and it ends. */
static inline struct rail_mail_msg peer_read(unsigned qp)
{
    struct rail_mail_msg msg;
    const struct verbs_send *send = fake_send(rig.qp[qp], 0);
    assert_non_null(send);
    assert_int_equal(send->op, VERBS_OP_SEND);
    assert_int_equal(rail_mail_parse((const void *)(uintptr_t)send->local_addr, send->len, &msg), 0);
    peer.read[qp]++;
    end(qp, 1);
    return msg;
}

static inline unsigned mails(unsigned qp)
{
    return posted(qp, VERBS_OP_SEND);
}

/* The strict key that names memory on the home rail. */
static inline uint32_t home_rkey(void)
{
    return rail_wire_view_rkey(rig.key.bytes, 0, true);
}

#endif
