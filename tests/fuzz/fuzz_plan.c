/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_plan.c - fuzz target: striping over any lanes. Whatever the numbers, the pieces of an accepted transfer cover it
 * once, on live lanes of their own, cut at multiples of PLAN_CUT_ALIGN and not below the smallest piece.
 */
#include "fuzz.h"

#include <string.h>

#include "plan.h"

static void check_pieces(const struct plan_stripe_in *in, const struct plan_stripe *out)
{
    uint64_t at = 0;
    unsigned used = 0;
    fuzz_must(out->count >= 1 && out->count <= in->lanes, "between one piece and one a lane");
    for (unsigned i = 0; i < out->count; i++) {
        const struct plan_piece *piece = &out->piece[i];
        fuzz_must(piece->lane < in->lanes && in->lane[piece->lane].live, "a piece is on a live lane");
        fuzz_must(!(used & (1u << piece->lane)), "a lane has one piece");
        used |= 1u << piece->lane;
        fuzz_must(piece->offset == at && piece->len > 0, "pieces follow each other and none is empty");
        fuzz_must(i == 0 || (in->remote_addr + piece->offset) % PLAN_CUT_ALIGN == 0, "cuts are aligned");
        fuzz_must(out->count == 1 || piece->len >= in->piece_min, "no piece below the minimum");
        at += piece->len;
    }
    fuzz_must(at == in->len, "the pieces cover the transfer");
    fuzz_must(out->count == 1 || in->len >= in->stripe_min, "nothing below stripe_min is cut");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    struct plan_lane lane[PLAN_MAX_LANES] = {{0}};
    struct plan_stripe_in in = {.lane = lane};
    struct plan_stripe out, before;

    in.lanes = (unsigned)fuzz_take(&bytes, 1) % (PLAN_MAX_LANES + 2);
    in.remote_addr = fuzz_take(&bytes, 8);
    in.len = fuzz_take(&bytes, 1 + (unsigned)fuzz_take(&bytes, 1) % 8);
    in.stripe_min = fuzz_take(&bytes, 4);
    in.piece_min = fuzz_take(&bytes, 1 + (unsigned)fuzz_take(&bytes, 1) % 8);
    for (unsigned k = 0; k < PLAN_MAX_LANES; k++) {
        uint64_t bits = fuzz_take(&bytes, 1);
        lane[k] = (struct plan_lane){.live = bits & 1, .room = bits & 2, .backlog = fuzz_take(&bytes, 2)};
    }
    memset(&out, 0x5a, sizeof out);
    memcpy(&before, &out, sizeof out);
    if (plan_stripe(&in, &out) == 0)
        check_pieces(&in, &out);
    else
        fuzz_must(fuzz_same(&out, &before, sizeof out), "a refusal leaves the output as it was");
    return 0;
}
