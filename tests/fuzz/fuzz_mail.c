/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_mail.c - fuzz target: the control mailbox. An even first byte: two ends that keep the rules talk in any order that
 * the input picks, and neither may ever overrun the other's receives, refuse a message, or fall silent for ever. An odd one:
 * messages as a foreign or hostile peer might send them.
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
};

/* Sends what end has due, one message. Returns whether it did. */
static int send_one(struct rail_mail *end, struct pipe *pipe)
{
    struct rail_mail_msg msg;
    if (!rail_mail_next(end, &msg))
        return 0;
    rail_mail_format(&msg, pipe->message[pipe->head++ % WIRE_MAX]);
    fuzz_must(pipe->head - pipe->tail <= RAIL_MAIL_DEPTH, "a message always finds a receive");
    return 1;
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
    free(pipe);
}

static void listen_to(struct fuzz_bytes *bytes)
{
    struct rail_mail end = {0};
    while (bytes->left > 0) {
        uint8_t message[RAIL_MAIL_BYTES] = {0};
        struct rail_mail_msg msg, reply;
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
        while (rail_mail_next(&end, &reply))
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
