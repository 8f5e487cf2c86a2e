/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_random.c - random ops in random modes over a fake device whose requests end in random order between lanes, in half
 * of the runs with lanes that fail, posts that are refused and messages that are damaged. Whatever happens: no op is posted
 * before what it must follow is visible (random_model.h judges), word ops keep their order, every accepted op ends once,
 * quiet returns 0 only where all is visible, and no op is lost from the pool.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs.
 */
#include "random_model.h"

#include "api.h"

enum { STEPS = 400, RUNS = 600 };

/* How one run is set up. */
struct setup {
    const char *fault; /* of the engine */
    unsigned flags;    /* or-ed; the low ones of the seed where a test does not care */
};

enum { STRICT = 1, TAILS = 2, UNORDERED = 4, PACED = 8, FAILING = 16, DRAIN = 32, MANY = 64 };

static int end_some(void *arg, uint64_t deadline_ns)
{
    (void)arg;
    model_look();
    rig.now += below(20000);
    if (model_end_any()) {
        model.idle = 0;
    } else if (deadline_ns == UINT64_MAX || ++model.idle > 100) {
        return -EDEADLK; /* a blocking call that waits for nothing, or for what does not come */
    } else {
        rig.now = max_u64(rig.now, deadline_ns);
    }
    return 0;
}

/* Most ops have bytes of their own; some go where an older one went. */
static void choose_target(struct model_op *op)
{
    const struct model_op *older = model.count ? &model.op[below(model.count)] : NULL;
    memset(memory + HALF + op->remote, (int)(model.count % 255 + 1), op->len);
    if (older && below(8) == 0 && (older->kind == MODEL_BULK || older->kind == MODEL_WRITE))
        op->remote = older->remote;
}

static void issue_put(void)
{
    static const size_t lens[] = {8, 200, 256, 257, 700, 1500, 4000, SLOT};
    size_t len = lens[below(8)];
    struct model_op *op = model_new(len <= 256 ? MODEL_WRITE : MODEL_BULK, len);
    choose_target(op);
    model.count++; /* before the call: it is looked at while in there */
    if (braid_put(rig.ch, 0, there(op->remote), model_local(op), len, &op->done))
        model.count--;
}

static void issue_word(void)
{
    struct model_op *op = model_new(MODEL_WRITE, 8);
    int rc;
    model.count++;
    if (below(2)) {
        op->kind = MODEL_ATOMIC;
        rc = braid_signal_add(rig.ch, 0, there(op->remote), op->adds = 1, &op->done);
    } else {
        rc = braid_p(rig.ch, 0, there(op->remote), 7, 8, &op->done);
    }
    if (rc)
        model.count--;
}

static void issue_atomic(void)
{
    struct braid_atomic atomic = {BRAID_ATOMIC_FETCH_ADD, below(2) ? 8 : 4, 5, 0};
    struct model_op *op = model_new(atomic.bytes == 8 ? MODEL_ATOMIC : MODEL_MESSAGE, atomic.bytes);
    op->adds = 5;
    op->old = 99;
    model.count++;
    if (braid_atomic(rig.ch, 0, there(op->remote), &atomic, &op->old, &op->done))
        model.count--;
}

/* Parts are ops of the model without an end of their own. */
static void issue_put_signal(void)
{
    struct braid_part parts[3];
    unsigned n = below(3) + 1, first = model.count;
    if (model.count + n >= OPS)
        return;
    for (unsigned i = 0; i < n; i++) {
        struct model_op *op = model_new(MODEL_BULK, below(2) ? 100 : 5000);
        choose_target(op);
        op->covered = true;
        parts[i] = (struct braid_part){there(op->remote), model_local(op), op->len};
        model.count++;
    }
    struct model_op *op = model_new(MODEL_ATOMIC, 8);
    op->adds = 1;
    model.count++;
    if (braid_put_signal(rig.ch, 0, parts, n, there(op->remote), BRAID_SIGNAL_ADD, 1, &op->done))
        model.count = first;
}

/* After a quiet that said 0, whatever ended well is visible; and where nothing was ever made to fail, that is all. */
static void quiet(void)
{
    int rc = braid_quiet(rig.ch, 0);
    assert_int_not_equal(rc, -EDEADLK);
    model_look();
    if (!model.lossy)
        assert_int_equal(rc, 0);
    for (unsigned i = model.quiet; i < model.count && !rc; i++)
        model.broken[MODEL_QUIET] += model_missing(&model.op[i], LANES, false) > 0;
    model.quiet = model.count;
}

static void inject(void)
{
    unsigned k = below(model.lanes);
    switch (below(4)) {
    case 0:
        fake_fail(FAKE_POST_SEND, below(4), -ENOMEM);
        break;
    case 1:
        fake_fail(FAKE_POLL, below(4), -EIO);
        break;
    case 2:
        if (!fake_stopped(rig.qp[k]) && !model.failed[k])
            fake_arrive(rig.qp[k], "this is no message", 18);
        break;
    default:
        model_end(k, -ETIMEDOUT);
        break;
    }
}

static void step(void)
{
    unsigned what = model.count < OPS - 8 ? below(20) : 19;
    if (model.lossy && below(150) == 0)
        inject();
    if (what < 5)
        issue_put();
    else if (what < 7)
        issue_word();
    else if (what == 7)
        issue_atomic();
    else if (what == 8)
        issue_put_signal();
    else if (what == 9)
        assert_true(braid_get(rig.ch, 0, here(HALF - SLOT), there(HALF - SLOT), below(2) ? 4096 : 64, NULL) <= 0);
    else if (what == 10 && below(4) == 0)
        model.epoch += braid_fence(rig.ch, 0) == 0;
    else if (what == 11 && below(8) == 0)
        quiet();
    else if (what < 14)
        braid_progress(rig.ch);
    else
        model_end(below(model.lanes), 0);
    rig.now += below(3000);
    model_look();
}

static unsigned check_ends(uint64_t seed)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < model.count; i++) {
        const struct model_op *op = &model.op[i];
        if (op->done.ok + op->done.failed != !op->covered)
            fail_msg("seed %llu: op %u of %u ended %llu times well, %llu badly", (unsigned long long)seed, i,
                     model.count, (unsigned long long)op->done.ok, (unsigned long long)op->done.failed);
        wrong += op->done.ok && op->kind == MODEL_MESSAGE && op->old != 0;
    }
    for (int pe = 0; pe < rig.ch->braid->n_pes; pe++)
        assert_int_equal(rig.ch->peers[pe].ops, 0);
    assert_true(rig.ch->asking == 0 && rig.ch->waits_used == 0);
    assert_true(stats().waiting_puts == 0 && stats().waiting_words == 0);
    return wrong;
}

/* What memory shows in the end of a run in which nothing failed. */
static unsigned check_memory(void)
{
    static unsigned newest[OPS]; /* that wrote to the same bytes, plus 1 */
    unsigned wrong = 0;
    memset(newest, 0, sizeof(newest));
    for (unsigned i = model.count; i-- > 0;) {
        const struct model_op *op = &model.op[i];
        const uint8_t *at = memory + op->remote;
        uint64_t value = 0;
        memcpy(&value, at, 8);
        if (newest[op->remote / SLOT])
            continue; /* what is left of older ones is not checked */
        newest[op->remote / SLOT] = i + 1;
        if (op->adds)
            wrong += value != op->adds;
        else if (op->kind == MODEL_BULK || op->len > 8)
            wrong += memcmp(at, memory + HALF + (size_t)i * SLOT, op->len) != 0;
    }
    return wrong;
}

static void make_run(uint64_t seed, const struct setup *setup)
{
    char ports[64] = "ports=fake0";
    unsigned f = setup->flags;
    memset(&model, 0, offsetof(struct model, op));
    memset(&model.newest_word, 0, sizeof(model) - offsetof(struct model, newest_word));
    model.random = seed;
    model.lanes = f & MANY ? 4 : 1 + below(LANES);
    model.strict = f & STRICT && !(f & DRAIN);
    model.unordered = f & UNORDERED;
    model.tail = f & TAILS;
    model.drain = f & DRAIN;
    model.lossy = f & FAILING;
    for (unsigned i = 1; i < model.lanes; i++)
        sprintf(ports + strlen(ports), ",fake%u", i);
    const char *settings[] = {ports,
                              "seed=1",
                              "sq_depth=32",
                              "word_depth=8",
                              "bulk_depth=32",
                              "stripe_min=1024",
                              "piece_min=512",
                              "reply_timeout=50",
                              f & PACED ? "pace=auto" : "pace=off",
                              f & DRAIN    ? "order=drain"
                              : f & STRICT ? "order=strict"
                                           : "order=release",
                              f & TAILS ? "tail=on" : "tail=off",
                              f & UNORDERED ? "placement=unordered" : "placement=ordered",
                              setup->fault,
                              NULL};
    make_settings(settings, end_some);
    fake_moves(true);
}

static void run_one(uint64_t seed, const struct setup *setup, unsigned broken[MODEL_RULES + 1])
{
    make_run(seed, setup);
    uint64_t free_before = rig.ch->op_free;
    for (int i = 0; i < STEPS; i++)
        step();
    assert_true(model.count < OPS / 2);
    quiet();
    do /* what is asked again is answered again, and gets of this PE are out, when quiet comes back */
        settle();
    while (model_end_any());
    broken[MODEL_RULES] += check_ends(seed);
    assert_true(rig.ch->op_free == free_before);
    for (unsigned i = 0; i < MODEL_RULES; i++)
        broken[i] += model.broken[i];
    if (!model.lossy)
        broken[MODEL_RULES] += check_memory();
    memset(memory, 0, (size_t)model.count * SLOT);
    assert_int_equal(braid_mem_dereg(rig.mem), 0);
    braid_close(rig.b);
    assert_int_equal(fake_alive(), 0);
}

static void every_rule_holds_whatever_happens(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a word op was early",     "overlapping bulk was early",   "bulk passed a fence",
        "word ops changed places", "a strict key without a cause", "an answer was early",
        "more flushes than one",   "quiet came back early",        "memory is wrong"};
    uint64_t first = unit_seed() * RUNS, words = 0;
    for (uint64_t seed = first; seed < first + RUNS; seed++) {
        unsigned broken[MODEL_RULES + 1] = {0};
        struct setup setup = {NULL, (unsigned)seed % 64};
        run_one(seed, &setup, broken);
        words += model.words;
        for (unsigned i = 0; i <= MODEL_RULES; i++) {
            if (broken[i])
                fail_msg("seed %llu: %s, %u times", (unsigned long long)seed, names[i], broken[i]);
        }
    }
    assert_true(words > 10 * RUNS);
}

/* The test itself: with a rule switched off it must see that rule broken. */
static void each_fault_is_seen(void **state)
{
    (void)state;
    static const struct {
        struct setup setup;
        unsigned rules; /* one of these */
    } cases[] = {
        {{"fault=defer", MANY}, 1u << MODEL_WORD},          {{"fault=flush", MANY}, 1u << MODEL_WORD},
        {{"fault=flush", MANY | PACED}, 1u << MODEL_QUIET}, {{"fault=own-flush", MANY | UNORDERED}, 1u << MODEL_WORD},
        {{"fault=keys", MANY}, 1u << MODEL_WORD},           {{"fault=overlap", MANY}, 1u << MODEL_OVERLAP},
        {{"fault=dedup", MANY}, 1u << MODEL_RULES},         {{"fault=order", MANY | UNORDERED}, 1u << MODEL_WORD},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned broken[MODEL_RULES + 1] = {0}, seen = 0;
        for (uint64_t seed = 0; seed < 20; seed++)
            run_one(seed, &cases[i].setup, broken);
        for (unsigned r = 0; r <= MODEL_RULES; r++)
            seen |= (cases[i].rules >> r & 1) && broken[r];
        if (!seen)
            fail_msg("%s is not seen", cases[i].setup.fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_holds_whatever_happens),
        cmocka_unit_test(each_fault_is_seen),
    };
    return cmocka_run_group_tests_name("api_random", tests, NULL, NULL);
}
