/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_plan.c - fuzz target: the planner with any numbers. The pieces of a transfer cover its front once, on lanes with room,
 * cut at multiples of PLAN_CUT_ALIGN; rates, windows and ends stay within bounds; the overlap table misses nothing.
 * The first byte says which of the three is meant.
 */
#include "fuzz.h"

#include <string.h>

#include "plan.h"

static void check_pieces(const struct plan_stripe_in *in, const struct plan_stripe *out)
{
    uint64_t at = 0;
    unsigned used = 0;
    fuzz_must(out->count <= in->lanes, "at most one piece a lane");
    for (unsigned i = 0; i < out->count; i++) {
        const struct plan_piece *piece = &out->piece[i];
        fuzz_must(piece->lane < in->lanes && plan_lane_room(&in->lane[piece->lane]), "a piece is on a lane with room");
        fuzz_must(!(used & (1u << piece->lane)), "a lane has one piece");
        used |= 1u << piece->lane;
        fuzz_must(piece->offset == at && piece->len > 0, "pieces follow each other and none is empty");
        fuzz_must(piece->len <= in->len - at, "a piece ends within the transfer");
        fuzz_must(!in->piece_max || piece->len <= in->piece_max, "no piece is longer than a message");
        at += piece->len;
        fuzz_must(at == in->len || (in->remote_addr + at) % PLAN_CUT_ALIGN == 0, "cuts are aligned");
    }
    if (in->piece_min >> 36 || (in->piece_max && in->piece_max / 2 < in->piece_min + 2 * PLAN_CUT_ALIGN))
        return; /* no such port */
    for (unsigned i = 0; i < out->count; i++)
        fuzz_must(out->piece[i].len >= in->piece_min || out->piece[i].len == in->len, "no piece below the minimum");
    fuzz_must(out->count == 0 || at == in->len || in->len - at >= in->piece_min, "no rest below the minimum");
}

/* Any width up to 8 bytes, so that small numbers are as likely as large ones. */
static uint64_t take_number(struct fuzz_bytes *bytes)
{
    return fuzz_take(bytes, (unsigned)fuzz_take(bytes, 1) % 9);
}

static void fuzz_stripe(struct fuzz_bytes *bytes)
{
    struct plan_lane lane[PLAN_MAX_LANES] = {{0}};
    struct plan_stripe_in in = {.lane = lane};
    struct plan_stripe out, before;
    bool live = false, room = false, waiting = false;
    in.lanes = (unsigned)fuzz_take(bytes, 1) % (PLAN_MAX_LANES + 2);
    in.home = (unsigned)fuzz_take(bytes, 1) % (PLAN_MAX_LANES + 1);
    in.remote_addr = take_number(bytes);
    in.len = take_number(bytes);
    in.behind = take_number(bytes);
    in.piece_min = take_number(bytes);
    in.piece_max = take_number(bytes);
    in.home_lead_ns = take_number(bytes);
    in.step_ns = take_number(bytes);
    in.now_ns = take_number(bytes);
    for (unsigned k = 0; k < PLAN_MAX_LANES; k++) {
        uint64_t bits = fuzz_take(bytes, 1);
        lane[k] = (struct plan_lane){.live = bits & 1,
                                     .mib_ns = (uint32_t)take_number(bytes),
                                     .weight = 1 + (uint32_t)take_number(bytes) % (1u << 26),
                                     .rtt_ns = (uint32_t)take_number(bytes),
                                     .backlog = take_number(bytes),
                                     .window = take_number(bytes),
                                     .quantum = take_number(bytes),
                                     .end_ns = take_number(bytes)};
        if (bits & 2) /* full */
            lane[k].window = min_u64(lane[k].window, lane[k].backlog);
        if (k < in.lanes) {
            live |= lane[k].live;
            room |= plan_lane_room(&lane[k]);
            waiting |= lane[k].live && lane[k].backlog && !plan_lane_room(&lane[k]);
        }
    }
    memset(&out, 0x5a, sizeof out);
    memcpy(&before, &out, sizeof out);
    struct plan_pick pick = {0};
    if (in.lanes <= PLAN_MAX_LANES)
        plan_pick_begin(&pick, lane, in.lanes, in.now_ns);
    if (plan_stripe(&in, &pick, &out)) {
        fuzz_must(fuzz_same(&out, &before, sizeof out), "a refusal leaves the output as it was");
        return;
    }
    fuzz_must(live, "only live lanes carry");
    fuzz_must(out.count || !room || waiting, "something goes where nothing is waited for");
    check_pieces(&in, &out);
}

static void fuzz_rate(struct fuzz_bytes *bytes)
{
    struct plan_rate rate;
    struct plan_lane lane = {.live = true};
    struct plan_pace_in pace = {.on = true};
    plan_rate_init(&rate, take_number(bytes), (uint32_t)take_number(bytes), take_number(bytes));
    pace.piece_cost_ns = (uint32_t)take_number(bytes);
    pace.total_weight = take_number(bytes);
    pace.piece_min = take_number(bytes);
    while (bytes->left) {
        uint64_t act = fuzz_take(bytes, 1), number = take_number(bytes), now = take_number(bytes);
        uint64_t backlog = lane.backlog;
        if (act % 8 == 0)
            plan_rate_idle(&rate);
        else if (act % 16 == 9)
            plan_rate_dry(&rate, now);
        else if (act % 8 == 1)
            plan_rate_rtt(&rate, number);
        else if (act % 8 < 4)
            plan_rate_take(&rate, now, number, act & 8);
        else if (act % 8 < 6)
            plan_lane_posted(&lane, now, number);
        else
            plan_lane_acked(&lane, now, now, number);
        fuzz_must(act % 8 < 6 || lane.backlog == backlog - (number < backlog ? number : backlog), "backlog is counted");
        fuzz_must(rate.mib_ns >= rate.line_mib_ns && rate.weight > 0 && rate.rtt_ns > 0, "never above the line rate");
        plan_lane_speed(&lane, &rate);
        plan_pace(&pace, &lane);
        fuzz_must(lane.quantum > 0 && lane.quantum <= PLAN_NO_LIMIT, "quanta are bounded");
        fuzz_must(lane.window >= 2 * lane.quantum && lane.window <= 3 * PLAN_NO_LIMIT, "windows are bounded");
    }
}

enum { FUZZ_OPS = 400 };

struct fuzz_op {
    uint64_t first, last, ticket, count;
    unsigned lane;
    bool posted;
};

/* Overlap, ordered by tickets as they come: whole ops on one lane each; what is open must not be answered NONE. */
static void fuzz_overlap(struct fuzz_bytes *bytes)
{
    static struct plan_overlap table;
    static struct fuzz_op op[FUZZ_OPS];
    uint64_t flushed[PLAN_COUNTS] = {0}, posted[PLAN_COUNTS] = {0};
    unsigned ops = 0, next = 0, lane;
    memset(&table, 0, sizeof table);
    while (bytes->left && ops < FUZZ_OPS) {
        uint64_t act = fuzz_take(bytes, 1), addr = take_number(bytes), len = fuzz_take(bytes, 1 + (act >> 4) % 8);
        len += len == 0;
        uint64_t last = len - 1 > UINT64_MAX - addr ? UINT64_MAX : addr + (len - 1);
        unsigned k = (unsigned)(act >> 4) % PLAN_COUNTS;
        if (act % 4 == 0 && next < ops) {
            op[next].lane = k;
            op[next].count = ++posted[k];
            op[next].posted = true;
            plan_overlap_posted(&table, op[next].ticket, k, posted[k], true);
            next++;
        } else if (act % 4 == 1) {
            flushed[k] = posted[k];
            plan_overlap_trim(&table, flushed);
        } else {
            enum plan_overlap_answer answer = plan_overlap_check(&table, flushed, table.head, addr, len, &lane);
            for (unsigned i = 0; i < ops; i++) {
                bool open = !op[i].posted || flushed[op[i].lane] < op[i].count;
                if (!open || op[i].first > last || addr > op[i].last)
                    continue;
                fuzz_must(answer != PLAN_OVERLAP_NONE, "what is open is found");
                fuzz_must(answer != PLAN_OVERLAP_FOLLOW || (op[i].posted && op[i].lane == lane),
                          "only what is on that lane is followed there");
            }
            op[ops] = (struct fuzz_op){.first = addr, .last = last};
            op[ops++].ticket = plan_overlap_add(&table, addr, len);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    switch (fuzz_take(&bytes, 1) % 3) {
    case 0:
        fuzz_stripe(&bytes);
        break;
    case 1:
        fuzz_rate(&bytes);
        break;
    default:
        fuzz_overlap(&bytes);
        break;
    }
    return 0;
}
