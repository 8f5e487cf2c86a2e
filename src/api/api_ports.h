/* SPDX-License-Identifier: Apache-2.0 */
/* api_ports.h - the ports that ports=auto stands for; for the files of src/api alone. */
#ifndef API_PORTS_H
#define API_PORTS_H

#include "portlist.h"

struct api_auto; /**< the host as it was read, and the ports of it that have failed since */
struct braid;

/** Reads the host and the options that limit the choice. 0; -EINVAL for a bad option; -ENODEV where there is no such GPU;
 *  -ENOMEM; logs. */
int api_auto_open(struct braid *b, struct api_auto **out) ATTR_CHECK_RESULT;

/** The ports to use, of those that have not failed: 0, or -ENODEV where none is left; logs what there is. */
int api_auto_choose(struct api_auto *a, struct portlist *out) ATTR_CHECK_RESULT;

/** The i-th port of the last choice could not be opened. */
void api_auto_failed(struct api_auto *a, unsigned i);

/** Why the i-th port of the last choice was chosen, in words, cut at size. */
void api_auto_why(const struct api_auto *a, unsigned i, char *out, size_t size);

/** The rate of the i-th port of the last choice as the host says, bits a second; 0: it does not. */
uint64_t api_auto_rate(const struct api_auto *a, unsigned i);

/** Of the last choice: its enum braid_near, BRAID_NEAR_UNKNOWN without a GPU. */
int api_auto_near(const struct api_auto *a);

/** Logs which of the host's other ports were left out, and why. */
void api_auto_log_left(const struct api_auto *a);

/** NULL is allowed. */
void api_auto_close(struct api_auto *a);

#endif
