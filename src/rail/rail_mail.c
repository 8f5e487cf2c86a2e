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
#define MAIL_ERRNO_MAX  4095

_Static_assert(MAIL_PAYLOAD_AT + 40 <= RAIL_MAIL_BYTES, "the longest payload fits");

static uint16_t mail_payload_bytes(uint8_t type)
{
    switch (type) {
    case RAIL_MAIL_ECHO:
    case RAIL_MAIL_ECHO_REPLY:
        return 8;
    case RAIL_MAIL_REJECT:
        return 1;
    case RAIL_MAIL_ATOMIC:
        return 40;
    case RAIL_MAIL_ATOMIC_REPLY:
        return 16;
    default:
        return 0;
    }
}

static void mail_put16(uint8_t *at, uint16_t value)
{
    value = htole16(value);
    memcpy(at, &value, sizeof(value));
}

static void mail_put32(uint8_t *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof(value));
}

static void mail_put64(uint8_t *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof(value));
}

static uint16_t mail_get16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return le16toh(value);
}

static uint32_t mail_get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

static uint64_t mail_get64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

static void mail_put_payload(const struct rail_mail_msg *msg, uint8_t *at)
{
    switch (msg->type) {
    case RAIL_MAIL_ECHO:
    case RAIL_MAIL_ECHO_REPLY:
        mail_put64(at, msg->nonce);
        break;
    case RAIL_MAIL_REJECT:
        at[0] = msg->spoken;
        break;
    case RAIL_MAIL_ATOMIC:
        mail_put32(at, msg->atomic.id);
        at[4] = msg->atomic.op;
        at[5] = msg->atomic.bytes;
        mail_put32(at + 8, msg->atomic.rkey);
        mail_put64(at + 16, msg->atomic.addr);
        mail_put64(at + 24, msg->atomic.operand);
        mail_put64(at + 32, msg->atomic.compare);
        break;
    case RAIL_MAIL_ATOMIC_REPLY:
        mail_put32(at, msg->reply.id);
        mail_put32(at + 4, (uint32_t)msg->reply.status);
        mail_put64(at + 8, msg->reply.old);
        break;
    default:
        break;
    }
}

void rail_mail_format(const struct rail_mail_msg *msg, uint8_t out[RAIL_MAIL_BYTES])
{
    memset(out, 0, RAIL_MAIL_BYTES);
    mail_put16(out, MAIL_MAGIC);
    out[2] = msg->version;
    out[3] = msg->type;
    mail_put16(out + 4, mail_payload_bytes(msg->type));
    mail_put32(out + 8, msg->seq);
    mail_put32(out + 12, msg->consumed);
    mail_put_payload(msg, out + MAIL_PAYLOAD_AT);
}

/* The payload of a known type, whose length has been checked. 0 or -EPROTO. */
static int mail_get_payload(const uint8_t *at, struct rail_mail_msg *msg)
{
    switch (msg->type) {
    case RAIL_MAIL_ECHO:
    case RAIL_MAIL_ECHO_REPLY:
        msg->nonce = mail_get64(at);
        return 0;
    case RAIL_MAIL_ATOMIC:
        msg->atomic = (struct rail_mail_atomic){
            .id = mail_get32(at),
            .op = at[4],
            .bytes = at[5],
            .rkey = mail_get32(at + 8),
            .addr = mail_get64(at + 16),
            .operand = mail_get64(at + 24),
            .compare = mail_get64(at + 32),
        };
        return msg->atomic.bytes == 4 || msg->atomic.bytes == 8 ? 0 : -EPROTO;
    case RAIL_MAIL_ATOMIC_REPLY:
        msg->reply = (struct rail_mail_reply){
            .id = mail_get32(at), .status = (int32_t)mail_get32(at + 4), .old = mail_get64(at + 8)};
        return msg->reply.status <= 0 && msg->reply.status >= -MAIL_ERRNO_MAX ? 0 : -EPROTO;
    default:
        return 0;
    }
}

int rail_mail_parse(const void *bytes, size_t len, struct rail_mail_msg *out)
{
    const uint8_t *in = bytes;
    if (len < MAIL_PAYLOAD_AT || len > RAIL_MAIL_BYTES)
        return -EPROTO;
    uint16_t payload = mail_get16(in + 4);
    if (mail_get16(in) != MAIL_MAGIC || payload > len - MAIL_PAYLOAD_AT)
        return -EPROTO;

    struct rail_mail_msg msg = {
        .version = in[2], .type = in[3], .seq = mail_get32(in + 8), .consumed = mail_get32(in + 12)};
    if (msg.type == RAIL_MAIL_REJECT && payload >= 1)
        msg.spoken = in[MAIL_PAYLOAD_AT];
    if (msg.version != RAIL_MAIL_VERSION) {
        *out = msg;
        return -EPROTONOSUPPORT;
    }
    if (msg.type < RAIL_MAIL_ECHO || msg.type > RAIL_MAIL_ATOMIC_REPLY || payload != mail_payload_bytes(msg.type))
        return -EPROTO;
    int rc = mail_get_payload(in + MAIL_PAYLOAD_AT, &msg);
    if (!rc)
        *out = msg;
    return rc;
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

/* The last place is kept for a CREDIT. */
static bool mail_credit(const struct rail_mail *mail)
{
    return mail->sent - mail->peer_consumed < RAIL_MAIL_DEPTH - 1;
}

int rail_mail_send(struct rail_mail *mail, struct rail_mail_msg *msg)
{
    if (!mail_credit(mail))
        return -EAGAIN;
    msg->version = RAIL_MAIL_VERSION;
    msg->seq = mail->sent++;
    msg->consumed = mail->reported = mail->received;
    return 0;
}

bool rail_mail_next(struct rail_mail *mail, struct rail_mail_msg *out)
{
    uint32_t unconsumed = mail->sent - mail->peer_consumed;
    struct rail_mail_msg msg = {.version = RAIL_MAIL_VERSION, .seq = mail->sent, .consumed = mail->received};
    if (mail->reject_due && mail_credit(mail)) {
        msg.type = RAIL_MAIL_REJECT;
        msg.spoken = RAIL_MAIL_VERSION;
        mail->reject_due = false;
    } else if (mail->reply_due && mail_credit(mail)) {
        msg.type = RAIL_MAIL_ECHO_REPLY;
        msg.nonce = mail->reply_nonce;
        mail->reply_due = false;
    } else if (mail->echo_due && mail_credit(mail)) {
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
