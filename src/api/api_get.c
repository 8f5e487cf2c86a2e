/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_get.c - a get: as a put in the other direction, but outside every order.
 * May not wait. Called by the user; next: api_put.c (api_transfer_post)
 */
#include "api.h"

int braid_get(struct braid_channel *ch, int pe, struct braid_local dst, struct braid_remote src, size_t len,
              struct braid_done *done)
{
    struct api_transfer t = {.kind = RAIL_KIND_READ, .done = done};
    int rc = api_transfer_check(ch, pe, &src, &dst, len, &t);
    if (rc)
        return rc;
    if (len == 0) {
        if (done)
            done->ok++;
        return 0;
    }
    return api_transfer_post(&t);
}
