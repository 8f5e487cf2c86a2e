/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_random.c - random ops over a fake device whose requests end in random order between lanes, in half of the runs
 * with lanes that fail and posts that are refused. Two things must hold whatever happens: no signal is posted while a byte
 * it announces is not known to be at the target, and every accepted op ends once.
 * Links api, plan, rail and common, with fake_verbs.c in the place of verbs.
 */
#include "order_rig.h"

enum { SLOT = 1024, PUTS = 1000, STEPS = 400, RUNS = 600 };

/* Bytes of each put that are not known to have arrived, on lanes other than the home lane. A put that was refused keeps
 * its own for ever. A signal's operand is the number of puts before it. */
static struct {
    uint64_t random;
    unsigned puts;
    size_t missing[PUTS];
    unsigned home_ended, home_seen; /* requests of the home lane, in posting order */
    bool failed[2];
    uint64_t accepted, signals, overtaken;
} run;

static unsigned below(unsigned n)
{
    return (unsigned)(unit_random(&run.random) % n);
}

/* Looks at the requests that have come to the home lane since the last look. */
static void look(void)
{
    for (unsigned i = 0; i < fake_pending(rig.qp[0]); i++) {
        const struct verbs_send *send = fake_send(rig.qp[0], i);
        if (run.home_ended + i < run.home_seen)
            continue;
        run.home_seen = run.home_ended + i + 1;
        if (send->op != VERBS_OP_FETCH_ADD)
            continue;
        run.signals++;
        for (uint64_t k = 0; k < send->operand; k++) {
            if (run.missing[k] > 0) {
                run.overtaken++;
                break;
            }
        }
    }
}

static void end(unsigned lane, int error)
{
    if (fake_pending(rig.qp[lane]) == 0)
        return;
    if (run.failed[lane])
        error = -ECANCELED;
    run.failed[lane] = error != 0;
    struct verbs_send send = *fake_send(rig.qp[lane], 0);
    if (lane == 1 && !error && send.op == VERBS_OP_WRITE)
        run.missing[(send.remote_addr - (uintptr_t)memory) / SLOT] -= send.len;
    run.home_ended += lane == 0;
    fake_end(rig.qp[lane], error);
}

static int end_some(void *arg, uint64_t deadline_ns)
{
    (void)arg;
    (void)deadline_ns;
    look();
    unsigned first = below(2);
    if (fake_pending(rig.qp[first]) + fake_pending(rig.qp[!first]) == 0)
        return -EDEADLK; /* a blocking call that waits for nothing */
    end(fake_pending(rig.qp[first]) > 0 ? first : !first, 0);
    return 0;
}

static void put_one(void)
{
    size_t len = below(2) ? SLOT : 300; /* cut over both lanes, or whole on one */
    unsigned before[2] = {fake_pending(rig.qp[0]), fake_pending(rig.qp[1])};
    struct braid_remote dst = {(uintptr_t)memory + (size_t)run.puts * SLOT, &rig.key};
    struct braid_local src = {memory, rig.mem};
    if (run.puts == PUTS || braid_put(rig.ch, 0, dst, src, len, &rig.done) != 0)
        return;
    run.accepted++;
    /* What is not on the home lane is on the other one, or was refused. A lane that refuses is stopped and empty. */
    size_t home = 0;
    if (fake_pending(rig.qp[0]) > before[0])
        home = fake_send(rig.qp[0], before[0])->len;
    run.missing[run.puts++] = len - home;
}

static void step(bool faults)
{
    if (faults && below(200) == 0)
        fake_fail(FAKE_POST_SEND, below(2), -ENOMEM);
    struct braid_remote there = {(uintptr_t)memory, &rig.key};
    struct braid_local here = {memory, rig.mem};
    switch (below(10)) {
    case 0:
    case 1:
    case 2:
        put_one();
        break;
    case 3:
    case 4:
        run.accepted += braid_signal_add(rig.ch, 0, there, run.puts, &rig.done) == 0;
        break;
    case 5:
        run.accepted += braid_get(rig.ch, 0, here, there, below(2) ? 4096 : 64, &rig.done) == 0;
        break;
    case 6:
        braid_progress(rig.ch);
        break;
    default:
        end(below(2), faults && below(300) == 0 ? -ETIMEDOUT : 0);
        break;
    }
    look();
}

static uint64_t run_one(uint64_t seed, const char *fault)
{
    const char *settings[] = {"ports=fake0,fake1", "seed=1",        "sq_depth=32", "word_depth=4",
                              "stripe_min=512",    "piece_min=128", fault,         NULL};
    memset(&run, 0, sizeof(run));
    run.random = seed;
    make_settings(settings, end_some);
    for (int i = 0; i < STEPS; i++)
        step(seed % 2);
    assert_int_not_equal(braid_quiet(rig.ch, 0), -EDEADLK);
    look();
    if (rig.done.ok + rig.done.failed != run.accepted)
        fail_msg("seed %llu: %llu ops accepted, %llu ended well, %llu badly", (unsigned long long)seed,
                 (unsigned long long)run.accepted, (unsigned long long)rig.done.ok,
                 (unsigned long long)rig.done.failed);
    assert_int_equal(braid_mem_dereg(rig.mem), 0);
    braid_close(rig.b);
    assert_int_equal(fake_alive(), 0);
    return run.overtaken;
}

static void no_signal_overtakes_and_every_op_ends(void **state)
{
    (void)state;
    uint64_t first = unit_seed() * RUNS, signals = 0;
    for (uint64_t seed = first; seed < first + RUNS; seed++) {
        if (run_one(seed, NULL) > 0)
            fail_msg("seed %llu: %llu of %llu signals overtook", (unsigned long long)seed,
                     (unsigned long long)run.overtaken, (unsigned long long)run.signals);
        signals += run.signals;
    }
    assert_true(signals > RUNS);
}

/* The test itself: with the rule switched off it must see signals overtake. */
static void the_fault_is_seen(void **state)
{
    (void)state;
    uint64_t overtaken = 0;
    for (uint64_t seed = 0; seed < 20; seed += 2)
        overtaken += run_one(seed, "fault=defer");
    assert_true(overtaken > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_signal_overtakes_and_every_op_ends),
        cmocka_unit_test(the_fault_is_seen),
    };
    return cmocka_run_group_tests_name("api_random", tests, NULL, NULL);
}
