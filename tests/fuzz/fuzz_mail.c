/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_mail.c - fuzz target: the control mailbox. An even first byte: two ends that keep the rules talk in any order that
 * the input picks, and neither may ever overrun the other's receives, refuse a message, lose or change an atomic, or fall
 * silent for ever. An odd one: messages as a foreign or hostile peer might send them.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "rail_mail.h"

enum { WIRE_MAX = 64 };

/** One direction: messages on their way, in order. */
struct pipe {
    uint8_t message[WIRE_MAX][RAIL_MAIL_BYTES];
    unsigned head, tail;
    uint32_t asked, heard; /* atomics and replies of this direction */
};

static void put_on(const struct rail_mail_msg *msg, struct pipe *pipe)
{
    rail_mail_format(msg, pipe->message[pipe->head++ % WIRE_MAX]);
    fuzz_must(pipe->head - pipe->tail <= RAIL_MAIL_DEPTH, "a message always finds a receive");
}

/* Sends what end has due, one message. Returns whether it did. */
static int send_one(struct rail_mail *end, struct pipe *pipe)
{
    struct rail_mail_msg msg;
    if (!rail_mail_next(end, &msg))
        return 0;
    put_on(&msg, pipe);
    return 1;
}

/* The n-th atomic or reply of a direction: every field follows from n. */
static struct rail_mail_msg nth(uint32_t n)
{
    struct rail_mail_msg msg = {.type = n % 3 ? RAIL_MAIL_ATOMIC : RAIL_MAIL_ATOMIC_REPLY};
    if (n % 3)
        msg.atomic = (struct rail_mail_atomic){.addr = ~(uint64_t)n,
                                               .operand = n * UINT64_C(0x9e3779b97f4a7c15),
                                               .compare = n,
                                               .id = n,
                                               .rkey = ~n,
                                               .op = (uint8_t)n,
                                               .bytes = n % 2 ? 4 : 8};
    else
        msg.reply = (struct rail_mail_reply){.old = ~(uint64_t)n, .id = n, .status = -(int32_t)(n % 4096)};
    return msg;
}

static void send_atomic(struct rail_mail *end, struct pipe *pipe)
{
    struct rail_mail_msg msg = nth(pipe->asked);
    if (rail_mail_send(end, &msg) == 0) {
        pipe->asked++;
        put_on(&msg, pipe);
    }
}

static void hear_atomic(const struct rail_mail_msg *msg, struct pipe *pipe)
{
    struct rail_mail_msg expected = nth(pipe->heard++);
    const struct rail_mail_atomic *a = &msg->atomic, *e = &expected.atomic;
    fuzz_must(msg->type == expected.type, "atomics and replies come in order");
    fuzz_must(a->addr == e->addr && a->operand == e->operand && a->compare == e->compare && a->id == e->id &&
                  a->rkey == e->rkey && a->op == e->op && a->bytes == e->bytes,
              "an atomic arrives whole");
    fuzz_must(msg->reply.old == expected.reply.old && msg->reply.id == expected.reply.id &&
                  msg->reply.status == expected.reply.status,
              "a reply arrives whole");
}

/* Delivers one message to end. Returns whether there was one. */
static int take_one(struct rail_mail *end, struct pipe *pipe, unsigned *replies)
{
    struct rail_mail_msg msg;
    if (pipe->head == pipe->tail)
        return 0;
    int rc = rail_mail_receive(end, pipe->message[pipe->tail++ % WIRE_MAX], RAIL_MAIL_BYTES, &msg);
    fuzz_must(rc == 0, "an end that keeps the rules is understood");
    *replies += msg.type == RAIL_MAIL_ECHO_REPLY;
    if (msg.type == RAIL_MAIL_ATOMIC || msg.type == RAIL_MAIL_ATOMIC_REPLY)
        hear_atomic(&msg, pipe);
    return 1;
}

static void talk(struct fuzz_bytes *bytes)
{
    struct rail_mail end[2] = {{0}};
    struct pipe *pipe = calloc(2, sizeof *pipe); /* pipe[i] leads to end[i] */
    unsigned replies[2] = {0};
    fuzz_must(pipe != NULL, "memory");
    while (bytes->left > 0) {
        unsigned act = (unsigned)fuzz_take(bytes, 1), who = act & 1;
        if (act & 2)
            take_one(&end[who], &pipe[who], &replies[who]);
        else if (act & 4)
            (void)rail_mail_ask_echo(&end[who], act);
        else if (act & 8)
            send_atomic(&end[who], &pipe[1 - who]);
        else
            send_one(&end[who], &pipe[1 - who]);
    }
    /* Let everything settle; then a fresh question must still be answered, both ways. */
    for (unsigned round = 0; round < 2; round++) {
        for (int moved = 1; moved;) {
            moved = 0;
            for (unsigned who = 0; who < 2; who++)
                moved |= send_one(&end[who], &pipe[1 - who]) | take_one(&end[who], &pipe[who], &replies[who]);
        }
        if (round == 0) {
            memset(replies, 0, sizeof replies);
            fuzz_must(rail_mail_ask_echo(&end[0], 1) == 0, "a question can be asked");
            fuzz_must(rail_mail_ask_echo(&end[1], 2) == 0, "a question can be asked");
        }
    }
    fuzz_must(replies[0] == 1 && replies[1] == 1, "and is answered");
    fuzz_must(pipe[0].heard == pipe[0].asked && pipe[1].heard == pipe[1].asked, "no atomic is lost");
    free(pipe);
}

/* What has been understood says the same when it is said again. */
static void say_again(const struct rail_mail_msg *msg)
{
    uint8_t once[RAIL_MAIL_BYTES], twice[RAIL_MAIL_BYTES];
    struct rail_mail_msg again;
    rail_mail_format(msg, once);
    fuzz_must(rail_mail_parse(once, sizeof once, &again) == 0, "what was understood is understood again");
    rail_mail_format(&again, twice);
    fuzz_must(fuzz_same(once, twice, sizeof once), "and says the same");
}

static void listen_to(struct fuzz_bytes *bytes)
{
    struct rail_mail end = {0};
    while (bytes->left > 0) {
        uint8_t message[RAIL_MAIL_BYTES] = {0};
        struct rail_mail_msg msg, reply = {.type = RAIL_MAIL_ATOMIC_REPLY};
        size_t len = fuzz_take(bytes, 1) % (RAIL_MAIL_BYTES + 1);
        for (size_t i = 0; i < len; i++)
            message[i] = (uint8_t)fuzz_take(bytes, 1);
        uint8_t *exact = malloc(len ? len : 1);
        fuzz_must(exact != NULL, "memory");
        memcpy(exact, message, len);
        struct rail_mail before;
        memcpy(&before, &end, sizeof end);
        int rc = rail_mail_receive(&end, exact, len, &msg);
        free(exact);
        if (rc == -EPROTO) {
            fuzz_must(fuzz_same(&before, &end, sizeof end), "a malformed message changes nothing");
            return;
        }
        if (rc == 0)
            say_again(&msg);
        while (rail_mail_next(&end, &reply) || rail_mail_send(&end, &reply) == 0)
            fuzz_must(end.sent - end.peer_consumed <= RAIL_MAIL_DEPTH, "no peer makes us overrun it");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    if (fuzz_take(&bytes, 1) % 2)
        listen_to(&bytes);
    else
        talk(&bytes);
    return 0;
}
