/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - the one table of options and its reader. Unknown names and bad values are errors with a hint.
 * May not know what an option is for. Called by api_open.c; next: src/api/api_open.c uses the values.
 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word that stands for a number. */
struct options_word {
    const char *name;
    uint32_t value;
};

enum options_type { OPTIONS_STRING, OPTIONS_U32, OPTIONS_U64 };

struct options_entry {
    struct options_info info;
    enum options_type type;
    size_t offset;
    size_t size;                      /* of the field */
    uint64_t min, max;                /* numbers; min > max: words only */
    const struct options_word *words; /* ends with a NULL name; may be NULL */
};

static const struct options_word options_order_words[] = {
    {"release", OPTIONS_ORDER_RELEASE}, {"strict", OPTIONS_ORDER_STRICT}, {"drain", OPTIONS_ORDER_DRAIN}, {NULL, 0}};
static const struct options_word options_fault_words[] = {{"none", OPTIONS_FAULT_NONE},
                                                          {"defer", OPTIONS_FAULT_DEFER},
                                                          {"flush", OPTIONS_FAULT_FLUSH},
                                                          {"own-flush", OPTIONS_FAULT_OWN_FLUSH},
                                                          {"keys", OPTIONS_FAULT_KEYS},
                                                          {"overlap", OPTIONS_FAULT_OVERLAP},
                                                          {"home", OPTIONS_FAULT_HOME},
                                                          {"dedup", OPTIONS_FAULT_DEDUP},
                                                          {"tail", OPTIONS_FAULT_TAIL},
                                                          {"order", OPTIONS_FAULT_ORDER},
                                                          {NULL, 0}};
static const struct options_word options_switch_words[] = {{"off", 0}, {"on", 1}, {NULL, 0}};
static const struct options_word options_grh_words[] = {{"auto", 0}, {"on", 1}, {NULL, 0}};
static const struct options_word options_family_words[] = {
    {"auto", OPTIONS_FAMILY_AUTO}, {"ipv4", OPTIONS_FAMILY_IPV4}, {"ipv6", OPTIONS_FAMILY_IPV6}, {NULL, 0}};
static const struct options_word options_pace_words[] = {{"off", 0}, {"auto", 1}, {NULL, 0}};
static const struct options_word options_placement_words[] = {{"auto", OPTIONS_PLACEMENT_AUTO},
                                                              {"ordered", OPTIONS_PLACEMENT_ORDERED},
                                                              {"unordered", OPTIONS_PLACEMENT_UNORDERED},
                                                              {NULL, 0}};
static const struct options_word options_log_words[] = {{"error", LOG_LEVEL_ERROR},
                                                        {"warn", LOG_LEVEL_WARN},
                                                        {"info", LOG_LEVEL_INFO},
                                                        {"debug", LOG_LEVEL_DEBUG},
                                                        {NULL, 0}};
static const struct options_word options_mtu_words[] = {{"auto", 0},    {"256", 256},   {"512", 512}, {"1024", 1024},
                                                        {"2048", 2048}, {"4096", 4096}, {NULL, 0}};
static const struct options_word options_auto_words[] = {{"auto", OPTIONS_AUTO}, {NULL, 0}};
static const struct options_word options_lag_words[] = {{"auto", OPTIONS_AUTO}, {"off", 1}, {NULL, 0}};

#define OPTIONS_FIELD(field) offsetof(struct options, field), sizeof(((struct options *)NULL)->field)

static const struct options_entry options_table[] = {
    {{"ports", "auto", "ports to use, as DEVICE[:PORT],..., at most 16; or auto: those nearest to the GPU"},
     OPTIONS_STRING,
     OPTIONS_FIELD(ports),
     0,
     0,
     NULL},
    {{"gpu", "auto",
      "GPU that ports=auto looks from: a PCI address such as 0000:3b:00.0; auto: the one of the calling thread's CUDA "
      "context; or none"},
     OPTIONS_STRING,
     OPTIONS_FIELD(gpu),
     0,
     0,
     NULL},
    {{"only", "", "limits ports=auto to DEVICE[:PORT],..., or with ^ in front to all but those; exact names"},
     OPTIONS_STRING,
     OPTIONS_FIELD(only),
     0,
     0,
     NULL},
    {{"map", "",
      "for ports=auto: the ports of GPUs, as PCI-ADDRESS=DEVICE[:PORT],...;..., whatever is near; `braid plan --env` writes it"},
     OPTIONS_STRING,
     OPTIONS_FIELD(map),
     0,
     0,
     NULL},
    {{"sysroot", "/", "folder below which ports=auto reads sys/, for tests"},
     OPTIONS_STRING,
     OPTIONS_FIELD(sysroot),
     0,
     0,
     NULL},
    {{"rails", "0",
      "use the first n of the ports, 1..16, of those chosen by auto at most n; 0: all; 1 behaves like a single-port transport"},
     OPTIONS_U32,
     OPTIONS_FIELD(rails),
     0,
     16,
     NULL},
    {{"lag", "auto",
      "wires of each port: auto (a bond's as its device and the host say; with rails=1 off), off (one lane as if it were no "
      "bond) or a number, 1..8"},
     OPTIONS_U32,
     OPTIONS_FIELD(lag),
     1,
     8,
     options_lag_words},
    {{"spread", "auto",
      "lanes of each wire to each peer, with source ports of their own, 1..8; auto: 4 on a bond whose lanes "
      "cannot choose a wire, else 1"},
     OPTIONS_U32,
     OPTIONS_FIELD(spread),
     1,
     8,
     options_auto_words},
    {{"order", "release",
      "what waits for data on other lanes: release (word ops, deferred), strict (all that follows a fence) or drain (the "
      "caller blocks)"},
     OPTIONS_U32,
     OPTIONS_FIELD(order),
     1,
     0,
     options_order_words},
    {{"channels", "1", "independent ordering domains, 1..8"}, OPTIONS_U32, OPTIONS_FIELD(channels), 1, 8, NULL},
    {{"sq_depth", "128", "send-queue slots of a lane, 32..16384"},
     OPTIONS_U32,
     OPTIONS_FIELD(sq_depth),
     32,
     16384,
     NULL},
    {{"word_depth", "64", "deferred word ops a peer and channel can hold, 1..4096"},
     OPTIONS_U32,
     OPTIONS_FIELD(word_depth),
     1,
     4096,
     NULL},
    {{"bulk_depth", "256", "puts, and as many gets, a peer and channel can have waiting in software, 32..65536"},
     OPTIONS_U32,
     OPTIONS_FIELD(bulk_depth),
     32,
     65536,
     NULL},
    {{"stripe_min", "auto", "smallest put that is cut over lanes, bytes, 257..1G, or auto (measured when connecting)"},
     OPTIONS_U32,
     OPTIONS_FIELD(stripe_min),
     257,
     1u << 30,
     options_auto_words},
    {{"piece_min", "auto", "smallest piece of a cut put, bytes, 128..1G, or auto (measured when connecting)"},
     OPTIONS_U32,
     OPTIONS_FIELD(piece_min),
     128,
     1u << 30,
     options_auto_words},
    {{"pace", "auto", "bulk is handed to a lane as it drains (auto) or as far as its send queue reaches (off)"},
     OPTIONS_U32,
     OPTIONS_FIELD(pace),
     1,
     0,
     options_pace_words},
    {{"tail", "off",
      "whether the last bytes of a put are ordered behind the rest, so that they can be polled: on or off"},
     OPTIONS_U32,
     OPTIONS_FIELD(tail),
     1,
     0,
     options_switch_words},
    {{"placement", "auto", "whether a QP may place writes out of order: auto (asks the device), ordered or unordered"},
     OPTIONS_U32,
     OPTIONS_FIELD(placement),
     1,
     0,
     options_placement_words},
    {{"planes", "",
      "plane of each port, as 0,1,...: ports of different planes do not reach each other; empty: all reach all"},
     OPTIONS_STRING,
     OPTIONS_FIELD(planes),
     0,
     0,
     NULL},
    {{"reply_timeout", "1000000",
      "microseconds after which a target-executed atomic is asked for again, 1..1000000000"},
     OPTIONS_U32,
     OPTIONS_FIELD(reply_timeout),
     1,
     1000000000,
     NULL},
    {{"timeout", "16", "QP timeout: 4.096 us x 2^n, 0..31; 0: never"},
     OPTIONS_U32,
     OPTIONS_FIELD(timeout),
     0,
     31,
     NULL},
    {{"retry", "7", "QP retry count, 0..7"}, OPTIONS_U32, OPTIONS_FIELD(retry), 0, 7, NULL},
    {{"rnr_retry", "7", "QP receiver-not-ready retry count, 0..7; 7: for ever"},
     OPTIONS_U32,
     OPTIONS_FIELD(rnr_retry),
     0,
     7,
     NULL},
    {{"min_rnr_timer", "12", "QP receiver-not-ready timer code, 0..31; 12: 0.64 ms"},
     OPTIONS_U32,
     OPTIONS_FIELD(min_rnr_timer),
     0,
     31,
     NULL},
    {{"gid_index", "auto",
      "GID table index, 0..255, or auto: the first of roce_version, gid_family and gid_range, IPv4 before IPv6"},
     OPTIONS_U32,
     OPTIONS_FIELD(gid_index),
     0,
     255,
     options_auto_words},
    {{"pkey_index", "0", "partition key table index, 0..65535"},
     OPTIONS_U32,
     OPTIONS_FIELD(pkey_index),
     0,
     65535,
     NULL},
    {{"sl", "0", "service level, 0..15"}, OPTIONS_U32, OPTIONS_FIELD(sl), 0, 15, NULL},
    {{"traffic_class", "0", "traffic class of the global route header, 0..255"},
     OPTIONS_U32,
     OPTIONS_FIELD(traffic_class),
     0,
     255,
     NULL},
    {{"roce_version", "2", "version of RoCE that an automatic gid_index takes, 1 or 2"},
     OPTIONS_U32,
     OPTIONS_FIELD(roce_version),
     1,
     2,
     NULL},
    {{"gid_family", "auto", "addresses that an automatic gid_index takes: auto (IPv4 before IPv6), ipv4 or ipv6"},
     OPTIONS_U32,
     OPTIONS_FIELD(gid_family),
     1,
     0,
     options_family_words},
    {{"gid_range", "", "addresses that an automatic gid_index takes, as ADDRESS/BITS; empty: any"},
     OPTIONS_STRING,
     OPTIONS_FIELD(gid_range),
     0,
     0,
     NULL},
    {{"grh", "auto", "global route header on InfiniBand: auto (where the port has no LID) or on"},
     OPTIONS_U32,
     OPTIONS_FIELD(grh),
     1,
     0,
     options_grh_words},
    {{"relaxed", "on", "whether bulk may become visible in any order (relaxed ordering of PCI): on or off"},
     OPTIONS_U32,
     OPTIONS_FIELD(relaxed),
     1,
     0,
     options_switch_words},
    {{"dmabuf", "on",
      "whether GPU memory is registered by dma-buf where that can be, or by peer memory alone: on or off"},
     OPTIONS_U32,
     OPTIONS_FIELD(dmabuf),
     1,
     0,
     options_switch_words},
    {{"mtu", "auto", "largest path MTU in bytes, 256, 512, 1024, 2048 or 4096; auto: what the ports say"},
     OPTIONS_U32,
     OPTIONS_FIELD(mtu),
     1,
     0,
     options_mtu_words},
    {{"log", "warn", "last level shown: error, warn, info or debug"},
     OPTIONS_U32,
     OPTIONS_FIELD(log),
     1,
     0,
     options_log_words},
    {{"fault", "none",
      "for tests: switches one rule off: none, defer, flush, own-flush, keys, overlap, home, dedup, tail, or order (all)"},
     OPTIONS_U32,
     OPTIONS_FIELD(fault),
     1,
     0,
     options_fault_words},
    {{"seed", "0", "seed of start PSNs and echo nonces; 0: from the system"},
     OPTIONS_U64,
     OPTIONS_FIELD(seed),
     0,
     UINT64_MAX,
     NULL},
};

#define OPTIONS_COUNT (sizeof(options_table) / sizeof(options_table[0]))

int options_row(size_t i, struct options_info *out)
{
    if (i >= OPTIONS_COUNT)
        return -ENOENT;
    *out = options_table[i].info;
    return 0;
}

/* Reads "123", "16K", "1M", "1G" whole. Signs, spaces and overflow are refused. */
static bool options_number(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    const char *p = text;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    }
    static const char suffixes[] = "KMG";
    const char *suffix = *p ? strchr(suffixes, *p) : NULL;
    if (suffix) {
        if (__builtin_mul_overflow(value, (uint64_t)1 << 10 * (suffix - suffixes + 1), &value))
            return false;
        p++;
    }
    if (*p)
        return false;
    *out = value;
    return true;
}

static const struct options_word *options_word(const struct options_entry *entry, const char *text)
{
    for (const struct options_word *w = entry->words; w && w->name; w++) {
        if (strcmp(w->name, text) == 0)
            return w;
    }
    return NULL;
}

static int options_set_string(const struct options_entry *entry, const char *text, const struct log *log,
                              struct options *out)
{
    size_t len = strlen(text);
    if (len >= entry->size) {
        log_write(log, LOG_LEVEL_ERROR, "option \"%s\" has %zu bytes: at most %zu are accepted", entry->info.name, len,
                  entry->size - 1);
        return -EINVAL;
    }
    memcpy((char *)out + entry->offset, text, len + 1);
    return 0;
}

static int options_set(const struct options_entry *entry, const char *text, const struct log *log, struct options *out)
{
    if (entry->type == OPTIONS_STRING)
        return options_set_string(entry, text, log, out);

    uint64_t value = 0;
    const struct options_word *word = options_word(entry, text);
    if (word) {
        value = word->value;
    } else if (!options_number(text, &value) || value < entry->min || value > entry->max) {
        log_write(log, LOG_LEVEL_ERROR, "option \"%s\" is \"%.64s\", which is not accepted: %s", entry->info.name, text,
                  entry->info.help);
        return -EINVAL;
    }
    if (entry->type == OPTIONS_U64) {
        memcpy((char *)out + entry->offset, &value, sizeof(value));
    } else {
        uint32_t narrow = (uint32_t)value; /* every row's max fits */
        memcpy((char *)out + entry->offset, &narrow, sizeof(narrow));
    }
    return 0;
}

static const struct options_entry *options_find(const char *name, size_t len)
{
    for (size_t i = 0; i < OPTIONS_COUNT; i++) {
        const char *known = options_table[i].info.name;
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return &options_table[i];
    }
    return NULL;
}

#define OPTIONS_NAME_MAX 32

/* Levenshtein distance of two names, both shorter than OPTIONS_NAME_MAX. */
static unsigned options_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned row[OPTIONS_NAME_MAX];
    for (size_t j = 0; j <= b_len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = min_u32(change, min_u32(row[j - 1], row[j]) + 1);
        }
    }
    return row[b_len];
}

/* The known name nearest to an unknown one, or NULL where none is near. */
static const char *options_nearest(const char *name, size_t len)
{
    const char *best = NULL;
    unsigned best_distance = 4;
    if (len >= OPTIONS_NAME_MAX)
        return NULL;
    for (size_t i = 0; i < OPTIONS_COUNT; i++) {
        const char *known = options_table[i].info.name;
        size_t known_len = strlen(known);
        unsigned distance = options_distance(name, len, known, known_len);
        if (distance < best_distance && distance < known_len) {
            best_distance = distance;
            best = known;
        }
    }
    return best;
}

static int options_setting(const char *setting, const struct log *log, struct options *out)
{
    const char *equals = strchr(setting, '=');
    size_t len = equals ? (size_t)(equals - setting) : strlen(setting);
    int shown = (int)min_u64(len, 64);
    const struct options_entry *entry = options_find(setting, len);
    if (!entry) {
        const char *near = options_nearest(setting, len);
        log_write(log, LOG_LEVEL_ERROR, "there is no option \"%.*s\"%s%s%s", shown, setting,
                  near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        return -EINVAL;
    }
    if (!equals) {
        log_write(log, LOG_LEVEL_ERROR, "setting \"%.*s\" has no value: expected name=value", shown, setting);
        return -EINVAL;
    }
    return options_set(entry, equals + 1, log, out);
}

static int options_environment(const struct log *log, struct options *out)
{
    for (size_t i = 0; i < OPTIONS_COUNT; i++) {
        const char *name = options_table[i].info.name;
        char variable[OPTIONS_NAME_MAX + 6] = "BRAID_";
        size_t n = strlen(variable);
        for (const char *p = name; *p && n + 1 < sizeof(variable); p++)
            variable[n++] = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
        const char *value = getenv(variable);
        int rc = value ? options_set(&options_table[i], value, log, out) : 0;
        if (rc) {
            log_write(log, LOG_LEVEL_ERROR, "that value came from the environment variable %s", variable);
            return rc;
        }
    }
    return 0;
}

static int options_read(const char *const *settings, bool environment, const struct log *log, struct options *out)
{
    struct options values;
    memset(&values, 0, sizeof(values));
    int rc = 0;
    for (size_t i = 0; i < OPTIONS_COUNT && !rc; i++)
        rc = options_set(&options_table[i], options_table[i].info.default_value, log, &values);
    if (!rc && environment)
        rc = options_environment(log, &values);
    for (size_t i = 0; settings && settings[i] && !rc; i++)
        rc = options_setting(settings[i], log, &values);
    if (!rc)
        *out = values;
    return rc;
}

int options_load(const char *const *settings, const struct log *log, struct options *out)
{
    return options_read(settings, true, log, out);
}

int options_parse(const char *const *settings, const struct log *log, struct options *out)
{
    return options_read(settings, false, log, out);
}
