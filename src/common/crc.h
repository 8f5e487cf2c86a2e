/* SPDX-License-Identifier: Apache-2.0 */
/* crc.h - CRC-32 (IEEE 802.3, as in zlib), for blobs and keys that travel through a foreign exchange. */
#ifndef CRC_H
#define CRC_H

#include "common.h"

/** Continues a CRC over len bytes; start with crc 0. Not for the data path: half a byte a step. */
uint32_t crc_32(uint32_t crc, const void *data, size_t len);

#endif
