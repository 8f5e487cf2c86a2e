/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_cost.c - the cost table. Data path rows: order of magnitude of a current x86 core with an mlx5 card (design note,
 * section 6), a model and not a measurement; control rows: a kernel call with firmware behind it. Rows of libbraid:
 * its instructions at 3 a ns, gcc 12 -O3 -g, fitted by scripts/callgrind-costs.py to what callgrind counted in 21 runs of
 * `braid bench` (LTO build); rows that grow together share what they cost, so a row by itself says little. docs/costs.md has
 * what each run is charged too much or too little: 3 % at most for streams of puts of 8 KiB and more to one peer, 7 % for all others but
 * these: 12 % too little where one thread feeds 8 peers, 8 to 23 % too little for puts of 8 bytes, 17 % too much for atomics alone.
 */
#include "emu_cost.h"

#include <string.h>

struct emu_cost_row {
    const char *name;
    uint32_t ns;
};

static const struct emu_cost_row emu_cost_table[EMU_COST_COUNT] = {
    [EMU_COST_POST_SEND] = {"post_send", 60},
    [EMU_COST_POST_NEXT] = {"post_next", 20},
    [EMU_COST_POST_RECV] = {"post_recv", 40},
    [EMU_COST_POLL_EMPTY] = {"poll_empty", 10},
    [EMU_COST_POLL_HIT] = {"poll_hit", 20},
    [EMU_COST_POLL_CQE] = {"poll_cqe", 15},
    [EMU_COST_ARM] = {"arm", 40},
    [EMU_COST_OPEN] = {"open", 200000},
    [EMU_COST_QUERY] = {"query", 2000},
    [EMU_COST_OBJECT] = {"object", 20000},
    [EMU_COST_REG_MR] = {"reg_mr", 30000},
    [EMU_COST_CREATE_QP] = {"create_qp", 60000},
    [EMU_COST_MODIFY_QP] = {"modify_qp", 30000},
    [EMU_COST_EVENT] = {"event", 1000},
    [EMU_COST_BRAID_PUT] = {"braid_put", 51},
    [EMU_COST_BRAID_GET] = {"braid_get", 108},
    [EMU_COST_BRAID_WORD] = {"braid_word", 200},
    [EMU_COST_BRAID_DEFERRED] = {"braid_deferred", 226},
    [EMU_COST_BRAID_PIECE] = {"braid_piece", 190},
    [EMU_COST_BRAID_WHOLE] = {"braid_whole", 31},
    [EMU_COST_BRAID_BURST] = {"braid_burst", 122},
    [EMU_COST_BRAID_DRIVE] = {"braid_drive", 12},
    [EMU_COST_BRAID_TURN] = {"braid_turn", 133},
    [EMU_COST_BRAID_PLAN] = {"braid_plan", 48},
    [EMU_COST_BRAID_LIST] = {"braid_list", 50},
    [EMU_COST_BRAID_FLUSH] = {"braid_flush", 300},
    [EMU_COST_BRAID_MESSAGE] = {"braid_message", 1003},
    [EMU_COST_BRAID_EXECUTED] = {"braid_executed", 1103},
    [EMU_COST_BRAID_RETIRED] = {"braid_retired", 12},
    [EMU_COST_BRAID_PASS] = {"braid_pass", 26},
    [EMU_COST_BRAID_POLL] = {"braid_poll", 20},
};

uint64_t emu_cost_ns(enum emu_cost c)
{
    return emu_cost_table[c].ns;
}

uint64_t emu_cost_named(const char *name)
{
    for (int i = 0; i < EMU_COST_COUNT; i++) {
        if (strcmp(emu_cost_table[i].name, name) == 0)
            return emu_cost_table[i].ns;
    }
    return 0;
}

uint32_t emu_cost_hash(void)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (int i = 0; i < EMU_COST_COUNT; i++) {
        for (const char *p = emu_cost_table[i].name; *p; p++)
            h = (h ^ (unsigned char)*p) * 16777619u;
        for (int b = 0; b < 32; b += 8)
            h = (h ^ ((emu_cost_table[i].ns >> b) & 0xff)) * 16777619u;
    }
    return h;
}
