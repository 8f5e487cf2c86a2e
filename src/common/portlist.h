/* SPDX-License-Identifier: Apache-2.0 */
/* portlist.h - the text "mlx5_0:1,mlx5_1:1" as a list of ports. */
#ifndef PORTLIST_H
#define PORTLIST_H

#include "log.h"

#define PORTLIST_MAX      16
#define PORTLIST_DEV_SIZE 60 /**< with the NUL; "NAME:255" then fits the 64 bytes of a port's name in the statistics */

struct portlist_item {
    char dev[PORTLIST_DEV_SIZE];
    uint8_t port;
    bool every; /**< no port was named, so 1 is the default; where a list limits a choice it means all of the device */
};

struct portlist {
    unsigned count;
    struct portlist_item item[PORTLIST_MAX];
};

/**
 * Reads an option's comma-separated list of DEVICE[:PORT]; PORT is 1 where left out. 0; -EINVAL for an empty list, a bad item,
 * or a port named twice; -E2BIG for more than PORTLIST_MAX. Logs the reason.
 */
int portlist_parse(const char *option, const char *text, const struct log *log, struct portlist *out) ATTR_CHECK_RESULT;

#endif
