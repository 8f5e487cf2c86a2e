/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rail.c - rail and verbs on the emulated fabric, without api: two PEs, a lane each way, lists, flushes, atomics,
 * immediates, mail, and a lane that is stopped in the middle. Each PE has a program of its own; a failed check is noted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu_sim.h"
#include "rail.h"

enum { BYTES = 1 << 20, WORDS_AT = BYTES / 2, MAX_EVENTS = 4096 };

struct pe {
    struct verbs *verbs;
    struct rail *rail;
    struct rail_queue queue;
    struct rail_lane *lane;
    struct rail_wire_rail peer;
    uint8_t *memory;
    struct verbs_mr *strict, *relaxed;
    uint64_t remote;    /* the peer's memory, as its keys name it */
    uint32_t word_rkey; /* of the peer */
    uint32_t bulk_rkey;
    unsigned done, mails; /* events so far */
    int error[MAX_EVENTS];
    uint64_t value[MAX_EVENTS]; /* by cookie */
    struct rail_mail_msg mail[16];
};

static const struct emu_sim_api *emu;
static struct pe pes[2];
static char failure[256];

static bool check(int pe, bool ok, const char *what)
{
    if (!ok && !failure[0])
        snprintf(failure, sizeof(failure), "PE %d at %llu ns: %s", pe, (unsigned long long)emu->now(), what);
    return ok;
}

/* What each tells the other: blobs of rounds 1 and 2, then where its memory is. */
static int meet(struct pe *p, int pe)
{
    uint8_t send[2][RAIL_WIRE_BYTES], recv[2][RAIL_WIRE_BYTES];
    char why[RAIL_WIRE_WHY];
    struct rail_wire_rails rails = {.head = {.pe = (uint32_t)pe, .channels = 1}, .count = 1};
    struct rail_wire_lanes lanes = {.head = {.pe = (uint32_t)pe, .channels = 1}, .count = 1};
    rails.rail[0] = p->rail->address;
    lanes.end[0][0] = rail_lane_end(p->lane);
    for (int i = 0; i < 2; i++)
        rail_wire_pack_rails(&rails, send[i]);
    int rc = emu->alltoall(send, recv, RAIL_WIRE_BYTES);
    if (!rc)
        rc = rail_wire_unpack_rails(recv[1 - pe], RAIL_WIRE_BYTES, &rails, why);
    for (int i = 0; i < 2; i++)
        rail_wire_pack_lanes(&lanes, send[i]);
    if (!rc)
        rc = emu->alltoall(send, recv, RAIL_WIRE_BYTES);
    if (!rc)
        rc = rail_wire_unpack_lanes(recv[1 - pe], RAIL_WIRE_BYTES, &lanes, why);
    p->peer = rails.rail[0];
    if (!rc)
        rc = rail_lane_connect(p->lane, &p->peer, lanes.end[0][0], 4096);
    uint64_t mine[2][3], theirs[2][3] = {{0}};
    for (int i = 0; i < 2; i++) {
        mine[i][0] = (uintptr_t)p->memory + emu->shift(pe);
        mine[i][1] = verbs_mr_rkey(p->strict);
        mine[i][2] = verbs_mr_rkey(p->relaxed);
    }
    if (!rc)
        rc = emu->alltoall(mine, theirs, sizeof(mine[0]));
    p->remote = theirs[1 - pe][0];
    p->word_rkey = (uint32_t)theirs[1 - pe][1];
    p->bulk_rkey = (uint32_t)theirs[1 - pe][2];
    return rc ? rc : emu->barrier();
}

static int start(struct pe *p, int pe)
{
    struct rail_config config = {.sq_depth = 64,
                                 .gid_index = UINT32_MAX,
                                 .timeout = 14,
                                 .retry = 7,
                                 .rnr_retry = 7,
                                 .plane = RAIL_WIRE_NO_PLANE};
    int rc = verbs_load(NULL, &p->verbs);
    if (!rc)
        rc = rail_open(p->verbs, NULL, "mlx5_0", 1, &config, &p->rail);
    if (!rc)
        rc = rail_queue_open(p->rail, 1, &p->queue);
    if (!rc)
        rc = rail_lane_open(&p->queue, 0xfffff0, &p->lane);
    p->memory = calloc(1, BYTES);
    if (!rc)
        rc = p->memory ? 0 : -ENOMEM;
    if (!rc)
        rc = verbs_mr_reg(p->rail->dev, p->memory, BYTES, 0, VERBS_ACCESS_REMOTE, &p->strict);
    if (!rc)
        rc = verbs_mr_reg(p->rail->dev, p->memory, BYTES, 0, VERBS_ACCESS_RELAXED, &p->relaxed);
    check(pe, rc || verbs_mr_relaxed(p->relaxed), "the emulator has relaxed ordering");
    return rc ? rc : meet(p, pe);
}

static void stop(struct pe *p)
{
    verbs_mr_dereg(p->strict);
    verbs_mr_dereg(p->relaxed);
    rail_queue_close(&p->queue);
    rail_close(p->rail);
    verbs_unload(p->verbs);
    free(p->memory);
    memset(p, 0, sizeof(*p));
}

/* Looks at what has ended, and sleeps where nothing has. */
static int turn(struct pe *p, int pe)
{
    struct rail_event event;
    unsigned before = p->done + p->mails;
    rail_poll(&p->queue);
    while (rail_next(&p->queue, &event)) {
        if (event.kind == RAIL_EVENT_DONE && check(pe, p->done < MAX_EVENTS, "no record comes back twice")) {
            check(pe, event.record->cookie == p->done, "records come back in order");
            p->error[p->done] = event.error;
            p->value[p->done++] = event.value;
        } else if (event.kind == RAIL_EVENT_MAIL && p->mails < 16) {
            p->mail[p->mails++] = *event.mail;
        }
    }
    return p->done + p->mails != before ? 0 : emu->wait(UINT64_MAX);
}

static void request(struct pe *p, enum rail_kind kind, uint64_t at, uint32_t len, uint64_t operand)
{
    struct rail_request r = {.cookie = p->lane->head,
                             .kind = (uint8_t)kind,
                             .klass = RAIL_CLASS_WORD,
                             .local_addr = (uintptr_t)p->memory + at,
                             .len = len,
                             .lkey = verbs_mr_lkey(p->strict),
                             .remote_addr = p->remote + at,
                             .rkey = len > 256 ? p->bulk_rkey : p->word_rkey,
                             .operand = operand,
                             .immediate = kind == RAIL_KIND_WRITE && operand != 0};
    rail_lane_queue(p->lane, &r);
}

static int until(struct pe *p, int pe, unsigned done)
{
    int rc = 0;
    while (!rc && p->done < done)
        rc = turn(p, pe);
    return rc;
}

/* PE 0 writes, flushes, adds and swaps; PE 1 sees it by then, in memory. */
static int give(struct pe *p, int pe)
{
    memset(p->memory, 0x5a, 200000);
    for (unsigned i = 0; i < 20; i++)
        request(p, RAIL_KIND_WRITE, i * 10000, 10000, 0);
    request(p, RAIL_KIND_FLUSH, 0, 0, 0);
    request(p, RAIL_KIND_WRITE, WORDS_AT, 8, 77);
    request(p, RAIL_KIND_FETCH_ADD, WORDS_AT + 8, 8, 5);
    request(p, RAIL_KIND_FETCH_ADD, WORDS_AT + 8, 8, 6);
    struct rail_request swap = {.cookie = p->lane->head,
                                .kind = RAIL_KIND_COMPARE_SWAP,
                                .klass = RAIL_CLASS_WORD,
                                .len = 8,
                                .remote_addr = p->remote + WORDS_AT + 8,
                                .rkey = p->word_rkey,
                                .operand = 11,
                                .swap = 99};
    rail_lane_queue(p->lane, &swap);
    request(p, RAIL_KIND_FLUSH, 0, 0, 0); /* an answer proves what is behind it, not what it answers */
    rail_lane_ring(p->lane);
    int rc = until(p, pe, 26);
    for (unsigned i = 0; i < p->done; i++)
        check(pe, p->error[i] == 0, "every request ends well");
    check(pe, p->value[22] == 0 && p->value[23] == 5 && p->value[24] == 11, "old values come back");
    check(pe, p->queue.taken < 26, "fewer completions than requests");
    return rc;
}

static int fabric_main(void *arg, int pe)
{
    struct pe *p = &pes[pe];
    (void)arg;
    int rc = start(p, pe);
    if (!rc && pe == 0)
        rc = give(p, pe);
    if (!rc)
        rc = emu->barrier();
    if (!rc && pe == 1) {
        uint64_t words[2];
        memcpy(words, p->memory + WORDS_AT, sizeof(words));
        check(pe, words[0] == 77 && words[1] == 99, "words are there");
        check(pe, p->memory[0] == 0x5a && p->memory[199999] == 0x5a && p->memory[200000] == 0, "bytes are there");
    }
    struct rail_mail_msg msg = {.type = RAIL_MAIL_ATOMIC, .atomic = {.id = 5, .bytes = 4, .addr = 3, .operand = 2}};
    if (!rc && pe == 0)
        rc = rail_lane_send_mail(p->lane, &msg);
    while (!rc && p->mails == 0)
        rc = turn(p, pe);
    if (!rc && pe == 1) {
        check(pe, p->mail[0].type == RAIL_MAIL_ATOMIC && p->mail[0].atomic.operand == 2, "the atomic arrives");
        msg = (struct rail_mail_msg){.type = RAIL_MAIL_ATOMIC_REPLY, .reply = {.id = 5, .old = 8}};
        rc = rail_lane_send_mail(p->lane, &msg);
    } else if (!rc) {
        check(pe, p->mail[0].type == RAIL_MAIL_ATOMIC_REPLY && p->mail[0].reply.old == 8, "and the reply");
    }
    if (!rc)
        rc = emu->barrier();
    stop(p);
    return rc;
}

/* A list is cut by a stop: what comes back well is in the peer's memory, and all comes back. */
static int stop_main(void *arg, int pe)
{
    struct pe *p = &pes[pe];
    uint64_t after = *(const uint64_t *)arg;
    int rc = start(p, pe);
    if (!rc && pe == 0) {
        for (unsigned i = 0; i < 40; i++)
            request(p, RAIL_KIND_WRITE, WORDS_AT + 8 * i, 8, i + 1);
        rail_lane_ring(p->lane);
        uint64_t end = emu->now() + after;
        while (!rc && emu->now() < end && p->done < 40)
            rc = emu->wait(end);
        rail_lane_stop(p->lane);
        rc = rc ? rc : until(p, pe, 40);
    }
    if (!rc)
        rc = emu->barrier();
    for (unsigned i = 0; !rc && pe == 1 && i < 40; i++) {
        uint64_t word;
        memcpy(&word, p->memory + WORDS_AT + 8 * i, 8);
        check(pe, pes[0].error[i] != 0 || word == i + 1, "what ended well is there");
    }
    check(pe, p->queue.broken == 0, "the books fit");
    if (!rc)
        rc = emu->barrier();
    stop(p);
    return rc;
}

static void run(const char *spec, emu_sim_main_fn fn, void *arg, uint64_t seed)
{
    char why[2048] = "";
    struct emu_sim *sim;
    struct emu_sim_options o = {sizeof(o), spec, seed, EMU_SIM_COROUTINES, 0};
    failure[0] = '\0';
    if (emu->open(&o, &sim, why, sizeof(why)))
        fail_msg("%s", why);
    int rc = emu->run(sim, fn, arg, why, sizeof(why));
    emu->close(sim);
    if (rc || failure[0])
        fail_msg("%s, seed %llu: run gave %d; %s; %s", spec, (unsigned long long)seed, rc, failure, why);
}

static void requests_do_what_they_say(void **state)
{
    (void)state;
    run("nodes=2,gpus=1,ports=1", fabric_main, NULL, 1);
    for (uint64_t seed = 1; seed <= 50; seed++)
        run("nodes=2,gpus=1,ports=1,unkind=all", fabric_main, NULL, seed);
}

static void a_stop_in_the_middle_brings_all_back(void **state)
{
    (void)state;
    for (uint64_t after = 0; after < 12000; after += 200)
        run("nodes=2,gpus=1,ports=1", stop_main, &after, after + 1);
}

static int placement_main(void *arg, int pe)
{
    int rc = start(&pes[pe], pe);
    check(pe, rc || pes[pe].rail->address.placement == *(const int *)arg, "placement");
    stop(&pes[pe]);
    return rc;
}

static void placement_is_asked(void **state)
{
    (void)state;
    int ordered = RAIL_WIRE_PLACEMENT_ORDERED, unordered = RAIL_WIRE_PLACEMENT_UNORDERED;
    run("nodes=2,gpus=1,ports=1", placement_main, &ordered, 1);
    run("nodes=2,gpus=1,ports=1,unkind=ooo", placement_main, &unordered, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_do_what_they_say),
        cmocka_unit_test(a_stop_in_the_middle_brings_all_back),
        cmocka_unit_test(placement_is_asked),
    };
    const struct emu_sim_api *(*api)(uint32_t version) = NULL;
    void *library = dlopen(getenv("BRAID_EMU_LIB"), RTLD_NOW);
    void *address = library ? dlsym(library, "emu_sim_api") : NULL;
    memcpy(&api, &address, sizeof(api));
    emu = api ? api(EMU_SIM_VERSION) : NULL;
    if (!emu) {
        fprintf(stderr, "no emulator at BRAID_EMU_LIB\n");
        return 1;
    }
    return cmocka_run_group_tests_name("rail", tests, NULL, NULL);
}
