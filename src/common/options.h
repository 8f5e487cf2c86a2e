/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - every option of a context, read from "name=value" settings and BRAID_NAME environment variables.
 * One table (options.c) holds name, default, help, accepted values and field; `braid options` prints the same table.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "log.h"

enum options_order { OPTIONS_ORDER_RELEASE, OPTIONS_ORDER_STRICT, OPTIONS_ORDER_DRAIN };
enum options_family { OPTIONS_FAMILY_AUTO, OPTIONS_FAMILY_IPV4, OPTIONS_FAMILY_IPV6 };
enum options_placement { OPTIONS_PLACEMENT_AUTO, OPTIONS_PLACEMENT_ORDERED, OPTIONS_PLACEMENT_UNORDERED };

/** One rule of order switched off, for tests; the values are those of enum plan_fault (api checks it). */
enum options_fault {
    OPTIONS_FAULT_NONE = 0,
    OPTIONS_FAULT_DEFER = 1,
    OPTIONS_FAULT_FLUSH = 2,
    OPTIONS_FAULT_OWN_FLUSH = 4,
    OPTIONS_FAULT_KEYS = 8,
    OPTIONS_FAULT_OVERLAP = 16,
    OPTIONS_FAULT_HOME = 32,
    OPTIONS_FAULT_DEDUP = 64,
    OPTIONS_FAULT_TAIL = 128,
    OPTIONS_FAULT_ORDER = 255
};

#define OPTIONS_AUTO UINT32_MAX /**< gid_index, stripe_min, piece_min, lag, spread: choose one */

/** Values after reading; plain data. */
struct options {
    char ports[1200]; /**< 16 names of 63 bytes, commas, and room; or "auto" */
    char only[1200];  /**< limits "auto" */
    char map[8192];   /**< GPUs and their ports: 64 of the former, or 8 with 16 each */
    char gpu[32];     /**< PCI address, "auto" or "none" */
    char sysroot[256];
    uint32_t rails;  /**< 0: all ports named or chosen; n: the first n */
    uint32_t lag;    /**< wires of each port, 1: no bond; or OPTIONS_AUTO */
    uint32_t spread; /**< lanes a wire, to each peer; or OPTIONS_AUTO */
    uint32_t order;  /**< enum options_order */
    uint32_t channels;
    uint32_t sq_depth;      /**< send-queue slots of a lane */
    uint32_t word_depth;    /**< places in the FIFO of deferred word ops, per peer and channel */
    uint32_t bulk_depth;    /**< puts (and as many gets) that may wait in software, per peer and channel */
    uint32_t stripe_min;    /**< bytes: the smallest put that is cut; or OPTIONS_AUTO */
    uint32_t piece_min;     /**< bytes: the smallest piece; or OPTIONS_AUTO */
    uint32_t pace;          /**< 1: bulk is handed to a lane as it drains; 0: as far as slots reach */
    uint32_t tail;          /**< 1: the last bytes of a put are a word op */
    uint32_t placement;     /**< enum options_placement */
    char planes[96];        /**< of each port, "0,1,..."; empty: unknown */
    uint32_t reply_timeout; /**< us: a target-executed atomic without an answer is asked again */
    uint32_t timeout;       /**< local ACK timeout, 4.096 us x 2^timeout; 0: never (ibv_modify_qp(3)) */
    uint32_t retry;
    uint32_t rnr_retry;
    uint32_t min_rnr_timer; /**< code of a time, as in ibv_modify_qp(3) */
    uint32_t gid_index;     /**< or OPTIONS_AUTO */
    uint32_t pkey_index;
    uint32_t sl;
    uint32_t traffic_class;
    uint32_t roce_version; /**< 1 or 2 */
    uint32_t gid_family;   /**< enum options_family */
    char gid_range[64];    /**< "ADDRESS/BITS"; empty: any */
    uint32_t grh;          /**< 1: a global route header on InfiniBand too */
    uint32_t relaxed;      /**< 1: bulk may become visible in any order */
    uint32_t dmabuf;       /**< 1: GPU memory is registered by dma-buf where that can be */
    uint32_t mtu;          /**< bytes; 0: what the ports say */
    uint32_t log;          /**< enum log_level */
    uint32_t fault;        /**< enum options_fault */
    uint64_t seed;         /**< 0: from the system */
};

/** What a reader of the table may know of a row. Static strings. */
struct options_info {
    const char *name;
    const char *default_value;
    const char *help;
};

/** The i-th row. 0, or -ENOENT past the last. */
int options_row(size_t i, struct options_info *out);

/**
 * Defaults, then the environment, then settings (NULL-terminated array, or NULL), the later beating the earlier. 0, or
 * -EINVAL for an unknown name or a bad value; logs what was seen and what is accepted.
 */
int options_load(const char *const *settings, const struct log *log, struct options *out) ATTR_CHECK_RESULT;

/** As options_load(), without the environment. */
int options_parse(const char *const *settings, const struct log *log, struct options *out) ATTR_CHECK_RESULT;

#endif
