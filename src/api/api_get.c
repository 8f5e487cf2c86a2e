/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_get.c - a get: as a put in the other direction, but outside every order.
 * May not wait. Called by the user; next: api_put.c (api_transfer_submit)
 */
#include "api.h"

int braid_get(struct braid_channel *ch, int pe, struct braid_local dst, struct braid_remote src, size_t len,
              struct braid_done *done)
{
    return api_transfer_submit(ch, pe, RAIL_KIND_READ, &src, &dst, len, done);
}
