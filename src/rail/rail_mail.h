/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rail_mail.h - the control mailbox of a lane: small messages by SEND and RECV, beside the data on the same QP.
 *
 *   message, RAIL_MAIL_BYTES; the first 16 bytes are the same in every version, so that a version can be refused
 *     0 u16 magic  2 u8 version  3 u8 type  4 u16 payload bytes  6 zero  8 u32 sequence  12 u32 consumed  16 payload
 *   ECHO, ECHO_REPLY: u64 nonce.  CREDIT: nothing.  REJECT: u8 the version that the sender speaks.
 *   ATOMIC: u32 id  u8 op  u8 bytes (4 or 8)  u16 zero  u32 rkey  u32 zero  u64 address  u64 operand  u64 compare
 *   ATOMIC_REPLY: u32 id  i32 status (0 or a negative errno)  u64 old value
 *
 * Credits. Each end keeps RAIL_MAIL_DEPTH receives posted and says in every message how many it has consumed since the
 * lane came up. A message may go while fewer than RAIL_MAIL_DEPTH - 1 are unconsumed; the last place is kept for a
 * CREDIT, which is sent when half the depth has been consumed and not yet said. So a message always finds a receive,
 * and two ends that fill each other's windows cannot block: a CREDIT that uses the last place reports at least half a
 * window, and the peer's can only be used up after that report has arrived.
 *
 * This file is the state machine and the parser, without any verbs: rail_lane.c posts what it says.
 */
#ifndef RAIL_MAIL_H
#define RAIL_MAIL_H

#include "common.h"

#define RAIL_MAIL_BYTES   64
#define RAIL_MAIL_VERSION 2
#define RAIL_MAIL_DEPTH   16 /**< receives posted at each end */
#define RAIL_MAIL_SLOTS   4  /**< send-queue slots and send buffers of a lane's mailbox */

enum rail_mail_type {
    RAIL_MAIL_ECHO = 1,
    RAIL_MAIL_ECHO_REPLY = 2,
    RAIL_MAIL_CREDIT = 3,
    RAIL_MAIL_REJECT = 4,
    RAIL_MAIL_ATOMIC = 5,
    RAIL_MAIL_ATOMIC_REPLY = 6
};

/** An atomic that the receiver is asked to execute. What op and id mean is api's. */
struct rail_mail_atomic {
    uint64_t addr; /**< as the rkey names it */
    uint64_t operand;
    uint64_t compare;
    uint32_t id;
    uint32_t rkey; /**< of the receiver's home rail */
    uint8_t op;    /**< not checked here */
    uint8_t bytes; /**< 4 or 8 */
};

/** How it ended. */
struct rail_mail_reply {
    uint64_t old; /**< what was there before */
    uint32_t id;
    int32_t status; /**< 0 or a negative errno */
};

struct rail_mail_msg {
    uint8_t version;
    uint8_t type;
    uint8_t spoken; /**< REJECT: the version that its sender speaks */
    uint32_t seq;
    uint32_t consumed;
    uint64_t nonce;                 /**< ECHO, ECHO_REPLY */
    struct rail_mail_atomic atomic; /**< ATOMIC */
    struct rail_mail_reply reply;   /**< ATOMIC_REPLY */
};

/** Writes a message; its payload follows from its type. */
void rail_mail_format(const struct rail_mail_msg *msg, uint8_t out[RAIL_MAIL_BYTES]);

/**
 * Reads a message. 0; -EPROTONOSUPPORT where it is of another version (out has version, type, seq and consumed, and a
 * REJECT's spoken version); -EPROTO for anything malformed (out untouched). Pure.
 */
int rail_mail_parse(const void *bytes, size_t len, struct rail_mail_msg *out);

/** State of one end. Zeroed at first. */
struct rail_mail {
    uint32_t sent;          /**< messages sent; the next one's sequence number */
    uint32_t peer_consumed; /**< of them, as the peer said last */
    uint32_t received;      /**< messages consumed here; the next one's expected sequence number */
    uint32_t reported;      /**< of them, as the peer has been told last */
    bool echo_due;
    bool reply_due;
    bool reject_due;
    uint8_t rejected; /**< version that the peer refused ours for; 0: none */
    uint64_t echo_nonce;
    uint64_t reply_nonce;
};

/**
 * Takes a message that arrived: checks it against the state, counts it, notes what it makes due. Results as
 * rail_mail_parse(); after -EPROTO the lane cannot be used on, since the peer's count is not known.
 */
int rail_mail_receive(struct rail_mail *mail, const void *bytes, size_t len, struct rail_mail_msg *out);

/** Asks for an echo. -EBUSY while the last one has not been sent. */
int rail_mail_ask_echo(struct rail_mail *mail, uint64_t nonce);

/** Makes an ATOMIC or ATOMIC_REPLY, complete but for version, seq and consumed, the next message to send: fills these in
 *  and counts it as sent. 0, or -EAGAIN without credit (msg untouched). */
int rail_mail_send(struct rail_mail *mail, struct rail_mail_msg *msg);

/** The next message to send: true and the message, then counted as sent, if one is due and its credit is there. */
bool rail_mail_next(struct rail_mail *mail, struct rail_mail_msg *out);

#endif
