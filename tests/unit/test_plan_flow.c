/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_flow.c - striping, pacing and rates in a closed loop: a model of lanes with true speeds and round trips, of
 * one thread whose every piece costs time, and of a program that keeps a window of puts. Links plan alone.
 */
#include "unit.h"

#include "plan.h"

enum { FLOW_OPS = 512, FLOW_PIECES = 512, FLOW_RTT = 5200 };

struct flow_piece {
    unsigned op;
    uint64_t len, ack_ns;
};

struct flow_lane {
    struct plan_rate rate;
    uint64_t mib_ps;  /* true speed */
    uint64_t free_ps; /* the wire is free then */
    uint64_t last_ack_ns, sent;
    bool held, stopped;
    unsigned head, tail;
    struct flow_piece piece[FLOW_PIECES];
};

struct flow_op {
    uint64_t len, handed, acked, issued_ns;
};

struct flow {
    unsigned lanes, home, window;
    uint64_t op_len, now_ns, lead_ns, piece_cost_ns, op_cost_ns, gap_ns, more;
    bool cut;
    struct plan_pace_in pace;
    struct plan_threshold min;
    struct plan_lane lane[PLAN_MAX_LANES];
    struct flow_lane wire[PLAN_MAX_LANES];
    unsigned op_head, op_next, op_tail; /* issued; first not handed out; first not ended */
    struct flow_op op[FLOW_OPS];
    uint64_t done_bytes, ended, pieces, op_ns; /* op_ns: how long the last op took that has ended */
};

static void flow_speed(struct flow *f, unsigned k, uint64_t bits)
{
    f->wire[k].mib_ps = (UINT64_C(8) << 20) * 4178 / 4096 * UINT64_C(1000000000000) / bits;
}

static void flow_init(struct flow *f, unsigned lanes, const uint64_t *bits, uint64_t op_len, unsigned window)
{
    memset(f, 0, sizeof(*f));
    f->lanes = lanes;
    f->home = lanes;
    f->op_len = op_len;
    f->window = window;
    f->piece_cost_ns = 150;
    f->op_cost_ns = 100;
    f->more = UINT64_MAX;
    f->now_ns = 1000000;
    f->pace = (struct plan_pace_in){.on = true, .piece_cost_ns = 150};
    uint32_t fastest = UINT32_MAX;
    for (unsigned k = 0; k < lanes; k++) {
        struct flow_lane *wire = &f->wire[k];
        plan_rate_init(&wire->rate, bits[k], 4096, 5000);
        plan_rate_rtt(&wire->rate, FLOW_RTT);
        f->pace.total_weight += wire->rate.weight;
        fastest = wire->rate.mib_ns < fastest ? wire->rate.mib_ns : fastest;
        flow_speed(f, k, bits[k]);
        wire->held = true;
    }
    plan_threshold(150, fastest, f->pace.total_weight, &f->min);
    f->pace.piece_min = f->min.piece_min;
    f->cut = op_len >= f->min.stripe_min;
    for (unsigned k = 0; k < lanes; k++) {
        f->lane[k] = (struct plan_lane){.live = true};
        plan_lane_speed(&f->lane[k], &f->wire[k].rate);
        plan_pace(&f->pace, &f->lane[k]);
    }
}

static void flow_post(struct flow *f, unsigned k, unsigned op, uint64_t len)
{
    struct flow_lane *wire = &f->wire[k];
    f->now_ns += f->piece_cost_ns;
    uint64_t start = f->now_ns * 1000 > wire->free_ps ? f->now_ns * 1000 : wire->free_ps;
    wire->free_ps = start + (len * wire->mib_ps >> 20);
    assert_true(wire->head - wire->tail < FLOW_PIECES);
    wire->piece[wire->head++ % FLOW_PIECES] =
        (struct flow_piece){.op = op, .len = len, .ack_ns = wire->free_ps / 1000 + FLOW_RTT};
    wire->sent += len;
    plan_lane_posted(&f->lane[k], f->now_ns, len);
    f->pieces++;
}

/* A fresh look at the lanes; send queues have 128 slots. */
static void flow_look(struct flow *f, struct plan_pick *pick)
{
    plan_pick_begin(pick, f->lane, f->lanes, f->now_ns);
    for (unsigned k = 0; k < f->lanes; k++) {
        if (f->wire[k].head - f->wire[k].tail >= 128)
            pick->room &= ~(UINT32_C(1) << k);
    }
}

/* Hands out transfers that may not be cut. */
static void flow_pump_whole(struct flow *f)
{
    struct plan_pick pick;
    for (; f->op_next != f->op_head; f->op_next++) {
        struct flow_op *op = &f->op[f->op_next % FLOW_OPS];
        flow_look(f, &pick);
        if (!pick.room)
            break;
        flow_post(f, plan_pick_lane(&pick, f->lane, op->len), f->op_next, op->len);
        op->handed = op->len;
    }
}

/* Hands out what the lanes take. */
static void flow_pump_cut(struct flow *f)
{
    struct plan_pick pick = {0};
    struct plan_stripe out = {0};
    while (f->op_next != f->op_head) {
        struct flow_op *op = &f->op[f->op_next % FLOW_OPS];
        struct plan_stripe_in in = {.remote_addr = (uint64_t)(f->op_next % 16) * f->op_len + op->handed,
                                    .len = op->len - op->handed,
                                    .behind = (f->op_head - f->op_next - 1) * f->op_len,
                                    .lanes = f->lanes,
                                    .home = f->home,
                                    .home_lead_ns = f->lead_ns,
                                    .piece_min = f->min.piece_min,
                                    .step_ns = f->piece_cost_ns,
                                    .now_ns = f->now_ns,
                                    .lane = f->lane};
        pick.posts = out.posts; /* only what it said has been posted */
        if (!plan_stripe_behind(&in, &pick, &out)) {
            flow_look(f, &pick);
            assert_int_equal(plan_stripe(&in, &pick, &out), 0);
        }
        if (!out.count)
            break;
        for (unsigned i = 0; i < out.count; i++) {
            flow_post(f, out.piece[i].lane, f->op_next, out.piece[i].len);
            op->handed += out.piece[i].len;
        }
        f->op_next += op->handed == op->len;
    }
}

static void flow_pump(struct flow *f)
{
    if (f->cut)
        flow_pump_cut(f);
    else
        flow_pump_whole(f);
    for (unsigned k = 0; k < f->lanes; k++)
        f->wire[k].held = f->wire[k].held && f->lane[k].backlog >= f->lane[k].window;
}

static void flow_issue(struct flow *f)
{
    while (f->op_head - f->op_tail < f->window && f->more > 0) {
        f->now_ns += f->op_cost_ns;
        f->op[f->op_head++ % FLOW_OPS] = (struct flow_op){.len = f->op_len, .issued_ns = f->now_ns};
        f->more--;
        flow_pump(f);
    }
}

/* Takes the acknowledgements that are there. */
static bool flow_poll(struct flow *f)
{
    bool any = false;
    for (unsigned k = 0; k < f->lanes; k++) {
        struct flow_lane *wire = &f->wire[k];
        while (!wire->stopped && wire->tail != wire->head &&
               wire->piece[wire->tail % FLOW_PIECES].ack_ns <= f->now_ns) {
            const struct flow_piece *piece = &wire->piece[wire->tail++ % FLOW_PIECES];
            f->now_ns += 35;
            wire->last_ack_ns = piece->ack_ns;
            plan_lane_acked(&f->lane[k], f->now_ns, f->now_ns, piece->len);
            if (plan_rate_take(&wire->rate, f->now_ns, piece->len, wire->held ? f->lane[k].backlog : 0)) {
                plan_lane_speed(&f->lane[k], &wire->rate);
                plan_pace(&f->pace, &f->lane[k]);
            }
            wire->held = true;
            if (f->lane[k].backlog == 0)
                plan_rate_idle(&wire->rate);
            f->op[piece->op % FLOW_OPS].acked += piece->len;
            f->done_bytes += piece->len;
            any = true;
        }
    }
    for (; f->op_tail != f->op_head && f->op[f->op_tail % FLOW_OPS].acked == f->op_len; f->op_tail++) {
        f->op_ns = f->now_ns - f->op[f->op_tail % FLOW_OPS].issued_ns;
        f->ended++;
    }
    return any;
}

/* Runs until `until_ns`, or until there is nothing more to come. */
static void flow_run(struct flow *f, uint64_t until_ns)
{
    flow_issue(f);
    while (f->now_ns < until_ns) {
        bool moved = flow_poll(f);
        if (moved) {
            flow_pump(f);
            f->now_ns += f->op_tail == f->op_head ? f->gap_ns : 0;
            flow_issue(f);
            continue;
        }
        uint64_t next = UINT64_MAX;
        for (unsigned k = 0; k < f->lanes; k++) {
            const struct flow_lane *wire = &f->wire[k];
            if (!wire->stopped && wire->tail != wire->head && wire->piece[wire->tail % FLOW_PIECES].ack_ns < next)
                next = wire->piece[wire->tail % FLOW_PIECES].ack_ns;
        }
        if (next == UINT64_MAX)
            return;
        f->now_ns = next;
    }
}

/* Percent of what the wires would carry in that time. */
static double flow_share(struct flow *f, uint64_t ns)
{
    double per_ns = 0;
    uint64_t before = f->done_bytes, start = f->now_ns;
    for (unsigned k = 0; k < f->lanes; k++)
        per_ns += f->wire[k].stopped ? 0 : (double)(1 << 20) * 1000 / (double)f->wire[k].mib_ps;
    flow_run(f, f->now_ns + ns);
    return 100 * (double)(f->done_bytes - before) / (per_ns * (double)(f->now_ns - start));
}

static const uint64_t same_bits[PLAN_MAX_LANES] = {
    200000000000, 200000000000, 200000000000, 200000000000, 200000000000, 200000000000, 200000000000, 200000000000,
    200000000000, 200000000000, 200000000000, 200000000000, 200000000000, 200000000000, 200000000000, 200000000000};

static struct flow flow;

static void streams_fill_any_number_of_ports(void **state)
{
    (void)state;
    for (unsigned lanes = 1; lanes <= 16; lanes *= 2) {
        flow_init(&flow, lanes, same_bits, 1 << 20, 16);
        double share = flow_share(&flow, 3000000);
        print_message("# %u ports: %.2f %%, %llu KiB a piece, window %llu KiB\n", lanes, share,
                      (unsigned long long)(flow.done_bytes / flow.pieces >> 10),
                      (unsigned long long)flow.lane[0].window >> 10);
        assert_true(share >= 97);
    }
}

static void a_lone_put_ends_on_all_ports_at_once(void **state)
{
    (void)state;
    for (unsigned lanes = 1; lanes <= 16; lanes++) {
        flow_init(&flow, lanes, same_bits, 1 << 20, 1);
        flow.more = 1;
        flow_run(&flow, UINT64_MAX);
        uint64_t first = UINT64_MAX, last = 0;
        for (unsigned k = 0; k < lanes; k++) {
            if (!flow.wire[k].sent)
                continue;
            first = flow.wire[k].last_ack_ns < first ? flow.wire[k].last_ack_ns : first;
            last = flow.wire[k].last_ack_ns > last ? flow.wire[k].last_ack_ns : last;
        }
        print_message("# %u ports: %llu ns, %llu apart, %llu pieces\n", lanes, (unsigned long long)flow.op_ns,
                      (unsigned long long)(last - first), (unsigned long long)flow.pieces);
        assert_true(last - first <= 100);
        assert_true(flow.ended == 1);
    }
}

static void the_tail_lane_ends_a_round_trip_later(void **state)
{
    (void)state;
    flow_init(&flow, 2, same_bits, 1 << 20, 1);
    flow.more = 1;
    flow.home = 1;
    flow.lead_ns = 5000;
    flow_run(&flow, UINT64_MAX);
    assert_in_range(flow.wire[1].last_ack_ns - flow.wire[0].last_ack_ns, 4850, 5150);
}

static void unlike_ports_get_what_they_can_carry(void **state)
{
    (void)state;
    static const uint64_t bits[] = {400000000000, 200000000000, 100000000000};
    flow_init(&flow, 3, bits, 1 << 20, 16);
    double share = flow_share(&flow, 3000000);
    double a = (double)flow.wire[0].sent / (double)flow.wire[2].sent,
           b = (double)flow.wire[1].sent / (double)flow.wire[2].sent;
    print_message("# %.2f %%, %.3f : %.3f : 1\n", share, a, b);
    assert_true(share >= 97 && a > 3.9 && a < 4.1 && b > 1.95 && b < 2.05);
}

static void a_port_that_turns_slow_gets_less(void **state)
{
    (void)state;
    for (unsigned lanes = 2; lanes <= 4; lanes *= 2) {
        flow_init(&flow, lanes, same_bits, 1 << 20, 16);
        flow_share(&flow, 500000);
        flow_speed(&flow, 1, 100000000000);
        double share = flow_share(&flow, 60000);
        print_message("# the first 60 us: %.2f %%, estimate %u ns a MiB\n", share, flow.wire[1].rate.mib_ns);
        assert_in_range(flow.wire[1].rate.mib_ns, 77000, 94000);
        share = flow_share(&flow, 1000000);
        print_message("# then: %.2f %%\n", share);
        assert_true(share >= 97);
        flow_speed(&flow, 1, 200000000000);
        share = flow_share(&flow, 100000);
        print_message("# as fast as before, 100 us: %.2f %%, estimate %u\n", share, flow.wire[1].rate.mib_ns);
        assert_int_equal(flow.wire[1].rate.mib_ns, flow.wire[1].rate.line_mib_ns);
        assert_true(flow_share(&flow, 500000) >= 97);
    }
}

/* One put at a time over a slow and a fast port, again and again: what was learned serves the next one. */
static void lone_puts_learn_from_each_other(void **state)
{
    (void)state;
    flow_init(&flow, 2, same_bits, 1 << 20, 1);
    flow_speed(&flow, 1, 100000000000);
    flow.more = 20;
    flow_run(&flow, UINT64_MAX);
    uint64_t wire = (flow.wire[0].mib_ps * 2 / 3) / 1000;
    print_message("# the 20th: %llu ns, the wire alone %llu\n", (unsigned long long)flow.op_ns,
                  (unsigned long long)wire);
    assert_true(flow.op_ns <= wire + FLOW_RTT + 2000);
}

/* Programs that offer little, to healthy ports: the estimate stays. */
static void a_little_traffic_is_no_slow_port(void **state)
{
    (void)state;
    static const uint64_t lens[] = {8192, 40000, 65536, 262144};
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned window = 1; window <= 4; window++) {
            flow_init(&flow, 2, same_bits, lens[i], window);
            flow.gap_ns = 1000;
            flow_run(&flow, flow.now_ns + 1000000);
            assert_int_equal(flow.wire[0].rate.mib_ns, flow.wire[0].rate.line_mib_ns);
            assert_int_equal(flow.wire[1].rate.mib_ns, flow.wire[1].rate.line_mib_ns);
        }
    }
}

static void medium_puts_fill_two_ports(void **state)
{
    (void)state;
    for (uint64_t len = 8192; len <= 65536; len *= 2) {
        double rate[3] = {0};
        for (unsigned lanes = 1; lanes <= 2; lanes++) {
            flow_init(&flow, lanes, same_bits, len, (unsigned)((1 << 20) / len));
            flow.piece_cost_ns = 80; /* one of a list */
            flow.op_cost_ns = 40;
            flow_share(&flow, 500000);
            rate[lanes] = flow_share(&flow, 1000000) * lanes;
        }
        print_message("# %llu: %.3f times one port, %llu bytes a piece\n", (unsigned long long)len, rate[2] / rate[1],
                      (unsigned long long)(flow.done_bytes / flow.pieces));
        assert_true(rate[2] / rate[1] >= 1.9);
    }
}

static void a_port_that_stops_holds_no_new_put_up(void **state)
{
    (void)state;
    flow_init(&flow, 4, same_bits, 1 << 20, 16);
    flow.window = FLOW_OPS - 1; /* the program does not wait for those that will hang */
    flow_share(&flow, 400000);
    flow.wire[2].stopped = true;
    uint64_t sent = flow.wire[2].sent;
    double share = flow_share(&flow, 1000000);
    print_message("# %.2f %% of the other three\n", share);
    assert_true(share >= 97);
    assert_true(flow.wire[2].sent - sent <= 2 * flow.lane[2].window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_fill_any_number_of_ports),      cmocka_unit_test(a_lone_put_ends_on_all_ports_at_once),
        cmocka_unit_test(the_tail_lane_ends_a_round_trip_later), cmocka_unit_test(unlike_ports_get_what_they_can_carry),
        cmocka_unit_test(a_port_that_turns_slow_gets_less),      cmocka_unit_test(lone_puts_learn_from_each_other),
        cmocka_unit_test(a_little_traffic_is_no_slow_port),      cmocka_unit_test(medium_puts_fill_two_ports),
        cmocka_unit_test(a_port_that_stops_holds_no_new_put_up),
    };
    return cmocka_run_group_tests_name("plan_flow", tests, NULL, NULL);
}
