/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_mail.c - the mailbox's messages and credits, pure (protocol: rail_mail.h).
 * May not post. Called by rail_poll.c (arrivals) and rail_lane.c (what to send).
 */
#include "rail_mail.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define MAIL_MAGIC      0xb41du
#define MAIL_PAYLOAD_AT 16u

static uint16_t mail_payload_bytes(uint8_t type)
{
    switch (type) {
    case RAIL_MAIL_ECHO:
    case RAIL_MAIL_ECHO_REPLY:
        return 8;
    case RAIL_MAIL_REJECT:
        return 1;
    default:
        return 0;
    }
}

void rail_mail_format(const struct rail_mail_msg *msg, uint8_t out[RAIL_MAIL_BYTES])
{
    uint16_t magic = htole16(MAIL_MAGIC), payload = htole16(mail_payload_bytes(msg->type));
    uint32_t seq = htole32(msg->seq), consumed = htole32(msg->consumed);
    uint64_t nonce = htole64(msg->nonce);
    memset(out, 0, RAIL_MAIL_BYTES);
    memcpy(out, &magic, 2);
    out[2] = msg->version;
    out[3] = msg->type;
    memcpy(out + 4, &payload, 2);
    memcpy(out + 8, &seq, 4);
    memcpy(out + 12, &consumed, 4);
    if (msg->type == RAIL_MAIL_ECHO || msg->type == RAIL_MAIL_ECHO_REPLY)
        memcpy(out + MAIL_PAYLOAD_AT, &nonce, 8);
    else if (msg->type == RAIL_MAIL_REJECT)
        out[MAIL_PAYLOAD_AT] = msg->spoken;
}

int rail_mail_parse(const void *bytes, size_t len, struct rail_mail_msg *out)
{
    const uint8_t *in = bytes;
    uint16_t magic, payload;
    if (len < MAIL_PAYLOAD_AT || len > RAIL_MAIL_BYTES)
        return -EPROTO;
    memcpy(&magic, in, 2);
    memcpy(&payload, in + 4, 2);
    payload = le16toh(payload);
    if (le16toh(magic) != MAIL_MAGIC || payload > len - MAIL_PAYLOAD_AT)
        return -EPROTO;

    struct rail_mail_msg msg = {.version = in[2], .type = in[3]};
    memcpy(&msg.seq, in + 8, 4);
    memcpy(&msg.consumed, in + 12, 4);
    msg.seq = le32toh(msg.seq);
    msg.consumed = le32toh(msg.consumed);
    if (msg.type == RAIL_MAIL_REJECT && payload >= 1)
        msg.spoken = in[MAIL_PAYLOAD_AT];
    if (msg.version != RAIL_MAIL_VERSION) {
        *out = msg;
        return -EPROTONOSUPPORT;
    }
    if (msg.type < RAIL_MAIL_ECHO || msg.type > RAIL_MAIL_REJECT || payload != mail_payload_bytes(msg.type))
        return -EPROTO;
    if (payload == 8) {
        memcpy(&msg.nonce, in + MAIL_PAYLOAD_AT, 8);
        msg.nonce = le64toh(msg.nonce);
    }
    *out = msg;
    return 0;
}

int rail_mail_receive(struct rail_mail *mail, const void *bytes, size_t len, struct rail_mail_msg *out)
{
    struct rail_mail_msg msg;
    int rc = rail_mail_parse(bytes, len, &msg);
    if (rc == -EPROTO)
        return rc;
    /* RC loses and repeats nothing, so a gap or a count of messages never sent is a broken peer. */
    if (msg.seq != mail->received || msg.consumed - mail->peer_consumed > mail->sent - mail->peer_consumed)
        return -EPROTO;
    mail->received++;
    mail->peer_consumed = msg.consumed;
    if (msg.type == RAIL_MAIL_REJECT) {
        /* Of any version, and never answered: two refusals would chase each other for ever. */
        mail->rejected = msg.spoken ? msg.spoken : UINT8_MAX;
    } else if (rc) {
        mail->reject_due = true;
    } else if (msg.type == RAIL_MAIL_ECHO) {
        /* One place for the answer: a peer asks once and waits, so a second question replaces the first. */
        mail->reply_due = true;
        mail->reply_nonce = msg.nonce;
    }
    *out = msg;
    return rc;
}

int rail_mail_ask_echo(struct rail_mail *mail, uint64_t nonce)
{
    if (mail->echo_due)
        return -EBUSY;
    mail->echo_due = true;
    mail->echo_nonce = nonce;
    return 0;
}

bool rail_mail_next(struct rail_mail *mail, struct rail_mail_msg *out)
{
    uint32_t unconsumed = mail->sent - mail->peer_consumed;
    struct rail_mail_msg msg = {.version = RAIL_MAIL_VERSION, .seq = mail->sent, .consumed = mail->received};
    if (mail->reject_due && unconsumed < RAIL_MAIL_DEPTH - 1) {
        msg.type = RAIL_MAIL_REJECT;
        msg.spoken = RAIL_MAIL_VERSION;
        mail->reject_due = false;
    } else if (mail->reply_due && unconsumed < RAIL_MAIL_DEPTH - 1) {
        msg.type = RAIL_MAIL_ECHO_REPLY;
        msg.nonce = mail->reply_nonce;
        mail->reply_due = false;
    } else if (mail->echo_due && unconsumed < RAIL_MAIL_DEPTH - 1) {
        msg.type = RAIL_MAIL_ECHO;
        msg.nonce = mail->echo_nonce;
        mail->echo_due = false;
    } else if (mail->received - mail->reported >= RAIL_MAIL_DEPTH / 2 && unconsumed < RAIL_MAIL_DEPTH) {
        msg.type = RAIL_MAIL_CREDIT;
    } else {
        return false;
    }
    mail->sent++;
    mail->reported = mail->received;
    *out = msg;
    return true;
}
