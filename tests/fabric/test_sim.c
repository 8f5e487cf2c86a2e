/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sim.c - virtual time itself: sleeping and waking, collectives, deadlocks explained, limits. No
 * libbraid, no verbs: what a program in the simulator may rely on.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

static char why[2048];

static int run_on(const char *spec, emu_sim_main_fn fn, void *arg, enum emu_sim_vehicle vehicle, uint64_t limit)
{
    struct emu_sim_options o = {sizeof(o), spec, 7, vehicle, limit};
    struct emu_sim *sim;
    int rc;

    assert_int_equal(fabric_emu()->open(&o, &sim, why, sizeof(why)), 0);
    rc = fabric_emu()->run(sim, fn, arg, why, sizeof(why));
    fabric_emu()->close(sim);
    return rc;
}

/* ---- time ---------------------------------------------------------------------------------------------------------- */

static int pe_times(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    uint64_t t = emu->now();

    if (emu->pe() != pe)
        return -EPROTO;
    emu->charge(1000 * (uint64_t)(pe + 1));
    if (emu->now() != t + 1000 * (uint64_t)(pe + 1))
        return -ERANGE;
    t = emu->now();
    emu->wait(t + 500); /* nothing happened so far: it sleeps */
    if (emu->now() != t + 500)
        return -ETIME;
    if (emu->barrier())
        return -ECANCELED;
    t = emu->now();
    emu->wait(UINT64_MAX); /* the barrier's end is something that happened: a program must get to look first */
    return emu->now() == t ? 0 : -EILSEQ;
}

static void time_is_exact(void **state)
{
    (void)state;
    for (int v = EMU_SIM_COROUTINES; v <= EMU_SIM_THREADS; v++)
        assert_int_equal(run_on("nodes=4", pe_times, (void *)(uintptr_t)fabric_emu(), (enum emu_sim_vehicle)v, 0), 0);
}

static int pe_exchange(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    int send[4], recv[4];

    for (int i = 0; i < 4; i++)
        send[i] = pe * 10 + i;
    for (int round = 0; round < 3; round++) {
        int rc = emu->alltoall(send, recv, sizeof(int));

        for (int i = 0; rc == 0 && i < 4; i++)
            rc = recv[i] == i * 10 + pe ? 0 : -EPROTO;
        if (rc)
            return rc;
    }
    return 0;
}

static int pe_disagrees(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    char send[64] = {0}, recv[64];

    return emu->alltoall(send, recv, pe == 2 ? 8 : 4) == -EINVAL ? 0 : -EPROTO;
}

static void collectives_work(void **state)
{
    void *emu = (void *)(uintptr_t)fabric_emu();

    (void)state;
    for (int v = EMU_SIM_COROUTINES; v <= EMU_SIM_THREADS; v++) {
        assert_int_equal(run_on("nodes=2,gpus=2", pe_exchange, emu, (enum emu_sim_vehicle)v, 0), 0);
        assert_int_equal(run_on("nodes=2,gpus=2", pe_disagrees, emu, (enum emu_sim_vehicle)v, 0), 0);
    }
}

/* ---- runs that go wrong ------------------------------------------------------------------------------------------------- */

static int pe_stuck(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;

    if (pe == 1)
        return 0;
    return emu->barrier() == -ECANCELED ? -ECANCELED : -EPROTO;
}

static void a_deadlock_is_explained(void **state)
{
    (void)state;
    for (int v = EMU_SIM_COROUTINES; v <= EMU_SIM_THREADS; v++) {
        assert_int_equal(run_on("nodes=3", pe_stuck, (void *)(uintptr_t)fabric_emu(), (enum emu_sim_vehicle)v, 0),
                         -EDEADLK);
        assert_non_null(strstr(why, "seed 7"));
        assert_non_null(strstr(why, "PE 0 (h0) sleeps in barrier"));
        assert_non_null(strstr(why, "PE 1 has returned 0"));
        assert_non_null(strstr(why, "PE 2 (h2) sleeps in barrier"));
    }
}

static int pe_fails_early(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;

    return pe == 1 ? -EIO : emu->barrier();
}

static void a_failure_others_wait_for_is_the_result(void **state)
{
    (void)state;
    assert_int_equal(run_on("nodes=2", pe_fails_early, (void *)(uintptr_t)fabric_emu(), EMU_SIM_COROUTINES, 0), -EIO);
    assert_non_null(strstr(why, "PE 1 has returned -5"));
}

static int pe_for_ever(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    int rc = 0;

    (void)pe;
    while (rc == 0)
        rc = emu->wait(emu->now() + 1000);
    return rc;
}

static void a_limit_ends_a_run(void **state)
{
    (void)state;
    assert_int_equal(run_on("nodes=2", pe_for_ever, (void *)(uintptr_t)fabric_emu(), EMU_SIM_COROUTINES, 1000000),
                     -ETIME);
    assert_non_null(strstr(why, "given up at 1000.000 us"));
}

static int pe_ignores(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    int rc = 0;

    (void)pe;
    while (rc != 1) /* a program that does not look at results */
        rc = emu->wait(UINT64_MAX);
    return rc;
}

static volatile bool never_mind; /* nobody sets it */

static int pe_spends_for_ever(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;

    (void)pe;
    while (!never_mind)
        emu->charge(100);
    return 0;
}

static int pe_meets_for_ever(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;

    (void)pe;
    while (!never_mind)
        emu->barrier();
    return 0;
}

static void a_program_that_never_ends_is_left_behind(void **state)
{
    void *emu = (void *)(uintptr_t)fabric_emu();

    (void)state;
    for (int v = EMU_SIM_COROUTINES; v <= EMU_SIM_THREADS; v++) {
        assert_int_equal(run_on("nodes=1", pe_ignores, emu, (enum emu_sim_vehicle)v, 0), -EDEADLK);
        assert_int_equal(run_on("nodes=1", pe_spends_for_ever, emu, (enum emu_sim_vehicle)v, 1000000), -ETIME);
        assert_int_equal(run_on("nodes=2", pe_meets_for_ever, emu, (enum emu_sim_vehicle)v, 1000000), -ETIME);
    }
}

static int pe_fails(void *arg, int pe)
{
    (void)arg;
    return pe == 1 ? -EIO : 0;
}

static void a_failure_is_handed_out(void **state)
{
    (void)state;
    assert_int_equal(run_on("nodes=2", pe_fails, NULL, EMU_SIM_COROUTINES, 0), -EIO);
}

static int pe_late(void *arg, int pe)
{
    return pe == 0 ? -EIO : pe_for_ever(arg, pe);
}

static void a_failure_does_not_hide_the_limit(void **state)
{
    (void)state;
    assert_int_equal(run_on("nodes=2", pe_late, (void *)(uintptr_t)fabric_emu(), EMU_SIM_COROUTINES, 1000000), -ETIME);
}

static int pe_only_charges(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;

    (void)pe;
    for (int i = 0; i < 100000; i++) /* 10 ms */
        emu->charge(100);
    return 0;
}

static int pe_charges_and_waits(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    int rc = 0;

    (void)pe;
    for (int i = 0; rc == 0 && i < 100000; i++) {
        emu->charge(100);
        rc = emu->wait(0);
    }
    return rc;
}

/* Deadlines that have passed, and a look at the clock, cost nothing: only their number can end it. */
static int pe_waits_in_the_past(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    int rc = 0;

    (void)pe;
    for (int i = 0; rc == 0 && i < 100000000; i++)
        rc = emu->wait(0);
    return rc;
}

static int pe_watches_the_clock(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    uint64_t t = emu->now();

    (void)pe;
    for (int i = 0; emu->now() == t && i < 100000000; i++)
        ;
    return 0;
}

static void a_program_that_only_spends_time_ends_too(void **state)
{
    static const emu_sim_main_fn programs[] = {pe_only_charges, pe_charges_and_waits, pe_waits_in_the_past,
                                               pe_watches_the_clock};

    (void)state;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        int rc = run_on("nodes=1", programs[i], (void *)(uintptr_t)fabric_emu(), EMU_SIM_COROUTINES, 1000000);

        if (rc != -ETIME)
            fail_msg("program %zu: the run gave %d, expected -ETIME", i, rc);
    }
}

static int pe_charges_all_there_is(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    uint64_t before;

    (void)pe;
    emu->charge(5000);
    before = emu->now();
    emu->charge(UINT64_MAX - 3000);
    if (emu->now() < before)
        return -ERANGE;
    emu->charge(UINT64_MAX);
    return emu->now() < before ? -ERANGE : -ECANCELED;
}

static void time_never_turns_back(void **state)
{
    (void)state;
    assert_int_equal(run_on("nodes=1", pe_charges_all_there_is, (void *)(uintptr_t)fabric_emu(), EMU_SIM_COROUTINES, 0),
                     -ETIME);
}

static int after_cancel[2];
static char sent[128], received[128];

static int pe_meets_too_late(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;

    if (pe == 0)
        return emu->alltoall(sent, received, 64);
    emu->wait(UINT64_MAX); /* a deadlock; the run is given up */
    memset(received, 'r', sizeof(received));
    after_cancel[0] = emu->alltoall(sent, sent, 64);
    after_cancel[1] = emu->barrier();
    return -ECANCELED;
}

/* What PE 0 gave to its alltoall is not its any more once that has returned. */
static void nobody_meets_after_a_run_is_given_up(void **state)
{
    char expected[sizeof(received)];

    (void)state;
    memset(expected, 'r', sizeof(expected));
    for (int v = EMU_SIM_COROUTINES; v <= EMU_SIM_THREADS; v++) {
        assert_int_equal(
            run_on("nodes=2", pe_meets_too_late, (void *)(uintptr_t)fabric_emu(), (enum emu_sim_vehicle)v, 0),
            -EDEADLK);
        assert_int_equal(after_cancel[0], -ECANCELED);
        assert_int_equal(after_cancel[1], -ECANCELED);
        assert_memory_equal(received, expected, sizeof(expected));
    }
}

static int pe_counts(void *arg, int pe)
{
    (void)pe;
    ++*(int *)arg;
    return 0;
}

static void a_cluster_runs_once(void **state)
{
    struct emu_sim_options o = {sizeof(o), "nodes=2", 7, EMU_SIM_COROUTINES, 0};
    struct emu_sim *sim;
    int runs = 0;

    (void)state;
    assert_int_equal(fabric_emu()->open(&o, &sim, why, sizeof(why)), 0);
    assert_int_equal(fabric_emu()->run(sim, pe_counts, &runs, why, sizeof(why)), 0);
    assert_int_equal(fabric_emu()->run(sim, pe_counts, &runs, why, sizeof(why)), -EALREADY);
    assert_int_equal(runs, 2);
    fabric_emu()->close(sim);
}

static int pe_meets(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    uint64_t t = emu->now();
    int rc = emu->barrier();

    (void)pe;
    return rc ? rc : emu->now() > t ? 0 : -ETIME;
}

static void meeting_takes_time(void **state)
{
    (void)state;
    assert_int_equal(run_on("nodes=2", pe_meets, (void *)(uintptr_t)fabric_emu(), EMU_SIM_COROUTINES, 0), 0);
}

/* ---- ports ------------------------------------------------------------------------------------------------------------- */

static int pe_commands(void *arg, int pe)
{
    const struct emu_sim_api *emu = arg;
    static const char *const bad[] = {"",
                                      "port",
                                      "port h0/mlx5_0:1",
                                      "port h0/mlx5_0:1 sideways",
                                      "port h9/mlx5_0:1 down",
                                      "port h0/mlx5_0:2 down",
                                      "port h0/mlx5_0:1 slow",
                                      "port h0/mlx5_0:1 down 3",
                                      "port h0/mlx5_0:1 loss 2",
                                      "ports h0/mlx5_0:1 down"};
    char text[256];

    if (pe != 0)
        return 0;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        text[0] = '\0';
        if (emu->ctl(bad[i], text, sizeof(text)) != -EINVAL || !strstr(text, "expected"))
            return -EPROTO - (int)i;
    }
    if (emu->ctl("port h0/mlx5_0:1 down", text, sizeof(text)) || emu->ctl("port h0/mlx5_0:1 up", text, sizeof(text)))
        return -EINVAL;
    return emu->ctl("port h1/mlx5_1:1 slow 0.5", text, sizeof(text));
}

static void port_commands_are_checked(void **state)
{
    (void)state;
    assert_int_equal(run_on("nodes=2", pe_commands, (void *)(uintptr_t)fabric_emu(), EMU_SIM_COROUTINES, 0), 0);
}

static void ports_are_named_by_gpu(void **state)
{
    struct emu_sim_options o = {sizeof(o), "nodes=2,gpus=2,ports=2", 1, EMU_SIM_COROUTINES, 0};
    struct emu_sim_port port;
    struct emu_sim *sim;
    char ports[64];

    (void)state;
    assert_int_equal(fabric_emu()->open(&o, &sim, why, sizeof(why)), 0);
    assert_int_equal(fabric_emu()->pe_count(sim), 4);
    assert_int_equal(fabric_emu()->pe_ports(sim, 3, ports, sizeof(ports)), 0);
    assert_string_equal(ports, "mlx5_2:1,mlx5_3:1");
    assert_int_equal(fabric_emu()->pe_ports(sim, 3, ports, 12), -ENOSPC);
    assert_int_equal(fabric_emu()->pe_ports(sim, 4, ports, sizeof(ports)), -EINVAL);
    assert_int_equal(fabric_emu()->port(sim, 7, &port), 0);
    assert_string_equal(port.host, "h1");
    assert_string_equal(port.port, "mlx5_3:1");
    assert_int_equal(fabric_emu()->port(sim, 8, &port), -ENOENT);
    fabric_emu()->close(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_is_exact),
        cmocka_unit_test(collectives_work),
        cmocka_unit_test(a_deadlock_is_explained),
        cmocka_unit_test(a_limit_ends_a_run),
        cmocka_unit_test(a_failure_is_handed_out),
        cmocka_unit_test(a_failure_others_wait_for_is_the_result),
        cmocka_unit_test(a_program_that_never_ends_is_left_behind),
        cmocka_unit_test(a_failure_does_not_hide_the_limit),
        cmocka_unit_test(a_program_that_only_spends_time_ends_too),
        cmocka_unit_test(time_never_turns_back),
        cmocka_unit_test(nobody_meets_after_a_run_is_given_up),
        cmocka_unit_test(a_cluster_runs_once),
        cmocka_unit_test(meeting_takes_time),
        cmocka_unit_test(port_commands_are_checked),
        cmocka_unit_test(ports_are_named_by_gpu),
    };

    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
