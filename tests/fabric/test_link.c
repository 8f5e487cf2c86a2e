/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_link.c - the emulated wire as libbraid feels it: latency, shared ports, slow ports, loss. In virtual time these are
 * numbers to be computed, so they are compared with what was computed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

/** The time from the first of n puts of len bytes to the end of quiet. */
static int timed_puts(struct fabric_pe *p, int pe, int n, size_t len, uint64_t *ns)
{
    uint64_t start = p->run->emu->now();
    int rc = 0;

    for (int i = 0; rc == 0 && i < n; i++)
        rc = fabric_put(p, pe, (size_t)p->pe << 20, 0, len, NULL);
    rc = rc ? rc : braid_quiet(p->ch, pe);
    *ns = p->run->emu->now() - start;
    return rc;
}

/* 200 Gb/s is 25 bytes a nanosecond; a frame has 82 bytes around its payload, an RDMA address 16, an answer 4. */
static int pe_latency(struct fabric_pe *p)
{
    uint64_t ns = 0, wire = (82 + 16 + 8) / 25 + 2500 + (82 + 4) / 25 + 2500;
    int rc = 0;

    if (p->pe == 0) {
        rc = timed_puts(p, 1, 1, 8, &ns);
        fabric_check(p, ns >= wire && ns < wire + 400, "8 bytes: two latencies, two frames, little CPU time");
        rc = rc ? rc : timed_puts(p, 1, 1, 1 << 20, &ns);
        wire = ((1 << 20) + 256 * 82 + 16) / 25 + 5000;
        fabric_check(p, ns >= wire && ns < wire + 400,
                     "1 MiB on one port: its packets behind each other, two latencies");
    }
    return rc ? rc : fabric_barrier(p);
}

static void a_put_takes_what_the_wire_takes(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=1,rate=200G,latency=2.5us", .seed = 1, .fn = pe_latency};

    (void)state;
    fabric_run_ok(&f);
}

static uint64_t finished[FABRIC_PES];

static int pe_incast(struct fabric_pe *p)
{
    int rc = fabric_barrier(p);

    if (p->pe != 0)
        rc = rc ? rc : timed_puts(p, 0, 32, 1 << 20, &finished[p->pe]);
    return rc ? rc : fabric_barrier(p);
}

static void senders_share_a_receiving_port(void **state)
{
    struct fabric f = {.spec = "nodes=4,ports=1", .seed = 1, .fn = pe_incast};
    uint64_t alone = 32ull * ((1 << 20) + 256 * 82) / 25;

    (void)state;
    fabric_run_ok(&f);
    for (int i = 1; i < 4; i++) {
        print_message("# sender %d: %.2f of a port\n", i, (double)alone / (double)finished[i]);
        assert_true(finished[i] > alone * 29 / 10 && finished[i] < alone * 31 / 10);
    }
}

static int pe_slow(struct fabric_pe *p)
{
    char why[128];
    uint64_t fast = 0, slow = 0;
    int rc = 0;

    if (p->pe == 0) {
        rc = timed_puts(p, 1, 16, 1 << 20, &fast);
        rc = rc ? rc : p->run->emu->ctl("port h0/mlx5_0:1 slow 0.25", why, sizeof(why));
        rc = rc ? rc : timed_puts(p, 1, 16, 1 << 20, &slow);
        fabric_check(p, slow > fast * 39 / 10 && slow < fast * 41 / 10,
                     "a quarter of the rate takes four times as long");
        rc = rc ? rc : p->run->emu->ctl("port h0/mlx5_0:1 slow 1", why, sizeof(why));
        rc = rc ? rc : p->run->emu->ctl("port h1/mlx5_0:1 slow 0.25", why, sizeof(why));
        rc = rc ? rc : timed_puts(p, 1, 16, 1 << 20, &slow);
        fabric_check(p, slow > fast * 39 / 10 && slow < fast * 41 / 10, "at the receiver too");
        rc = rc ? rc : p->run->emu->ctl("port h1/mlx5_0:1 slow 1", why, sizeof(why));
        rc = rc ? rc : p->run->emu->ctl("port h1/mlx5_0:1 delay 100us", why, sizeof(why));
        rc = rc ? rc : timed_puts(p, 1, 1, 8, &slow);
        fabric_check(p, slow > 205000 && slow < 206000, "100 us more each way");
    }
    return rc ? rc : fabric_barrier(p);
}

static void ports_can_be_slowed(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=1", .seed = 1, .fn = pe_slow};

    (void)state;
    fabric_run_ok(&f);
}

/** The same few blocks written again and again fill one port: each put follows the one before it, none waits for flushes. */
static int pe_ring(struct fabric_pe *p)
{
    uint64_t start = p->run->emu->now(), wire = 64ull * ((256 << 10) + 64 * 82) / 25;
    int rc = 0;

    if (p->pe == 0) {
        for (int i = 0; rc == 0 && i < 64; i++)
            rc = fabric_put(p, 1, (size_t)(i % 4) << 18, 0, 256 << 10, NULL);
        rc = rc ? rc : braid_quiet(p->ch, 1);
        fabric_check(p, p->run->emu->now() - start < wire * 105 / 100 + 20000,
                     "blocks that are used again fill the wire");
    }
    return rc ? rc : fabric_barrier(p);
}

static void blocks_used_again_fill_one_port(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=1", .seed = 1, .fn = pe_ring};

    (void)state;
    fabric_run_ok(&f);
}

/** A cable that is out for a while costs time, not data. */
static int pe_flap(struct fabric_pe *p)
{
    uint64_t ns = 0;
    int rc = 0;

    if (p->pe == 0) {
        memset(p->bytes, 0x5a, 1 << 20);
        rc = timed_puts(p, 1, 64, 1 << 20, &ns);
        fabric_check(p, ns > 64ull * (1 << 20) / 49 + 300000, "the flap is felt: it fell into the stream");
    }
    rc = rc ? rc : fabric_barrier(p);
    for (size_t i = 0; p->pe == 1 && i < 1 << 20; i++) {
        if (!fabric_check(p, p->bytes[i] == 0x5a, "the bytes"))
            break;
    }
    return rc;
}

static void a_short_flap_costs_no_data(void **state)
{
    struct fabric f = {.spec = "nodes=2,ports=2,at=1500us:down:h1/mlx5_1:1,at=1800us:up:h1/mlx5_1:1",
                       .seed = 1,
                       .fn = pe_flap,
                       .settings = {"timeout=8", "retry=7"}};

    (void)state;
    fabric_run_ok(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_put_takes_what_the_wire_takes),
        cmocka_unit_test(senders_share_a_receiving_port),
        cmocka_unit_test(ports_can_be_slowed),
        cmocka_unit_test(blocks_used_again_fill_one_port),
        cmocka_unit_test(a_short_flap_costs_no_data),
    };

    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
