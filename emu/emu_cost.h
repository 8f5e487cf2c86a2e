/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_cost.h - what each call costs its caller's CPU, in nanoseconds of virtual time: the one table of the tree.
 * Its hash stands in every result; a result under another table is not comparable.
 */
#ifndef EMU_COST_H
#define EMU_COST_H

#include <stdint.h>

enum emu_cost {
    EMU_COST_POST_SEND, /* first request of a list */
    EMU_COST_POST_NEXT, /* each further one */
    EMU_COST_POST_RECV, /* a list */
    EMU_COST_POLL_EMPTY,
    EMU_COST_POLL_HIT, /* a poll that finds something */
    EMU_COST_POLL_CQE, /* and each completion it takes */
    EMU_COST_ARM,
    EMU_COST_OPEN,
    EMU_COST_QUERY,
    EMU_COST_OBJECT, /* PD, CQ, channel */
    EMU_COST_REG_MR,
    EMU_COST_CREATE_QP,
    EMU_COST_MODIFY_QP,
    EMU_COST_EVENT,
    EMU_COST_BRAID_PUT,      /* libbraid's own code, without the device's: a bulk put accepted */
    EMU_COST_BRAID_GET,      /* a get accepted */
    EMU_COST_BRAID_WORD,     /* a word op accepted and posted */
    EMU_COST_BRAID_DEFERRED, /* more for one that has to wait */
    EMU_COST_BRAID_PIECE,    /* a request built for a lane, of a put that is cut or a get */
    EMU_COST_BRAID_WHOLE,    /* of a put that goes whole, in a burst */
    EMU_COST_BRAID_BURST,    /* each burst */
    EMU_COST_BRAID_DRIVE,    /* a look through what waits for a peer, for each lane */
    EMU_COST_BRAID_TURN,     /* a peer seen to in a pass, since something has ended */
    EMU_COST_BRAID_PLAN,     /* a put poured over lanes, for each lane */
    EMU_COST_BRAID_LIST,     /* a list of them posted */
    EMU_COST_BRAID_FLUSH,
    EMU_COST_BRAID_MESSAGE,  /* a target-executed atomic asked for */
    EMU_COST_BRAID_EXECUTED, /* carried out for another */
    EMU_COST_BRAID_RETIRED,  /* a request ended */
    EMU_COST_BRAID_PASS,     /* a pass of progress */
    EMU_COST_BRAID_POLL,     /* each completion queue in it */
    EMU_COST_COUNT
};

/** Nanoseconds of a row. */
uint64_t emu_cost_ns(enum emu_cost c);
/** A row by name; 0 where there is none. */
uint64_t emu_cost_named(const char *name);
/** A hash over names and values of all rows. */
uint32_t emu_cost_hash(void);

#endif
