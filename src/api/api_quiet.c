/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_quiet.c - fence and quiet.
 * A quiet blocks in turns of the whole progress and ends, well or badly, because every op ends: acknowledged, flushed
 * from a failed lane, or failed in the FIFO. Called by the user; next: api_progress.c
 */
#include "api.h"

#include <errno.h>

/* The peers that a pe argument means: [*first, *end). 0 or -EINVAL. */
static int api_peer_range(struct braid_channel *ch, int pe, int *first, int *end)
{
    if (!ch || (pe != BRAID_ALL_PES && !api_peer(ch, pe)))
        return -EINVAL;
    *first = pe == BRAID_ALL_PES ? 0 : pe;
    *end = pe == BRAID_ALL_PES ? ch->braid->n_pes : pe + 1;
    return 0;
}

int braid_fence(struct braid_channel *ch, int pe)
{
    int first, end, rc = api_peer_range(ch, pe, &first, &end);
    if (rc)
        return rc;
    for (int i = first; i < end; i++)
        ch->peers[i].epoch++;
    return 0;
}

int braid_quiet(struct braid_channel *ch, int pe)
{
    int first, end, rc = api_peer_range(ch, pe, &first, &end);
    if (rc)
        return rc;
    const uint64_t *left = pe == BRAID_ALL_PES ? &ch->ops : &ch->peers[pe].ops;
    while (*left > 0) {
        rc = api_turn(ch, UINT64_MAX);
        if (rc)
            return rc;
    }
    for (int i = first; i < end; i++) {
        if (!rc)
            rc = ch->peers[i].error;
        ch->peers[i].error = 0;
    }
    return rc;
}
