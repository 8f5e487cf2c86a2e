/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_open.c - opens and closes a context: options, the ports as rails, and in the end everything.
 * May not talk to peers. Called by the user; next: api_peer.c
 */
#include "api.h"

#include "api_ports.h"
#include "gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API_STRING_(x) #x
#define API_STRING(x)  API_STRING_(x)

const char *braid_version(void)
{
    return API_STRING(BRAID_VERSION_MAJOR) "." API_STRING(BRAID_VERSION_MINOR) "." API_STRING(BRAID_VERSION_PATCH);
}

int braid_option_at(size_t i, struct braid_option_row *out)
{
    struct options_info info;
    if (!out)
        return -EINVAL;
    int rc = options_row(i, &info);
    if (!rc)
        *out = (struct braid_option_row){.name = info.name, .default_value = info.default_value, .help = info.help};
    return rc;
}

/* The lower layers know levels as numbers; the caller knows braid's. */
static void api_log(void *arg, int level, const char *line)
{
    const struct braid *b = arg;
    static const enum braid_log_level levels[] = {
        [LOG_LEVEL_ERROR] = BRAID_LOG_ERROR,
        [LOG_LEVEL_WARN] = BRAID_LOG_WARN,
        [LOG_LEVEL_INFO] = BRAID_LOG_INFO,
        [LOG_LEVEL_DEBUG] = BRAID_LOG_DEBUG,
    };
    b->log_fn(b->log_arg, levels[level], line);
}

/* Where the struct of an older caller may end: behind any field. */
static const size_t api_options_ends[] = {
    offsetof(struct braid_options, settings), offsetof(struct braid_options, now),
    offsetof(struct braid_options, wait),     offsetof(struct braid_options, clock_arg),
    offsetof(struct braid_options, log),      offsetof(struct braid_options, log_arg),
};

static const struct api_struct api_options_layout = {
    .name = "braid_options",
    .size = sizeof(struct braid_options),
    .ends = api_options_ends,
    .count = sizeof(api_options_ends) / sizeof(api_options_ends[0]),
};

/* Takes the caller's struct, older (shorter) or newer (longer, with a zero tail). */
static int api_read_options(struct braid *b, const struct braid_options *given)
{
    struct braid_options known = BRAID_OPTIONS_INIT;
    b->log.level = LOG_LEVEL_WARN;
    int rc = given ? api_struct_read(&b->log, &api_options_layout, given, &known) : 0;
    if (rc)
        return rc;
    b->clock = (struct clock){.now = known.now, .wait = known.wait, .arg = known.clock_arg};
    b->log_fn = known.log;
    b->log_arg = known.log_arg;
    if (known.log)
        b->log = (struct log){.level = LOG_LEVEL_WARN, .fn = api_log, .arg = b};
    rc = options_load(known.settings, &b->log, &b->options);
    if (!rc)
        b->log.level = (enum log_level)b->options.log;
    return rc;
}

/* The planes of so many ports, of "0,1,...". 0 or -EINVAL; logs. */
static int api_planes(const struct braid *b, unsigned ports, uint8_t out[BRAID_MAX_RAILS])
{
    const char *text = b->options.planes;
    unsigned count = 0;
    memset(out, RAIL_WIRE_NO_PLANE, BRAID_MAX_RAILS);
    for (bool more = *text; more; count++) {
        char *end;
        unsigned long v = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || v > 254 || (*end && *end != ',')) {
            log_write(&b->log, LOG_LEVEL_ERROR,
                      "option \"planes\": seen \"%s\", expected a plane of 0 to 254 for each port, as 0,1", text);
            return -EINVAL;
        }
        if (count < BRAID_MAX_RAILS)
            out[count] = (uint8_t)v;
        more = *end;
        text = end + 1;
    }
    if (count == 0 || count == ports)
        return 0;
    if (count < ports)
        log_write(&b->log, LOG_LEVEL_ERROR, "option \"planes\" says nothing of port %u: expected one for each port",
                  count);
    else
        log_write(&b->log, LOG_LEVEL_ERROR, "option \"planes\" names %u planes, but there are %u ports", count, ports);
    return -EINVAL;
}

_Static_assert((int)OPTIONS_FAMILY_IPV4 == (int)RAIL_FAMILY_IPV4 && (int)OPTIONS_FAMILY_IPV6 == (int)RAIL_FAMILY_IPV6,
               "one number");

/* 0 or -EINVAL; logs. */
static int api_rail_config(const struct braid *b, struct rail_config *out)
{
    const struct options *o = &b->options;
    *out = (struct rail_config){
        .plane = RAIL_WIRE_NO_PLANE,
        .roce_version = (uint8_t)o->roce_version,
        .gid_family = (enum rail_family)o->gid_family,
        .grh = o->grh,
        .sq_depth = o->sq_depth,
        .gid_index = o->gid_index,
        .pkey_index = (uint16_t)o->pkey_index,
        .sl = (uint8_t)o->sl,
        .traffic_class = (uint8_t)o->traffic_class,
        .timeout = (uint8_t)o->timeout,
        .retry = (uint8_t)o->retry,
        .rnr_retry = (uint8_t)o->rnr_retry,
        .min_rnr_timer = (uint8_t)o->min_rnr_timer,
        .mtu_max = o->mtu,
        .wire_choice = api_lag_wanted(b),
    };
    return iprange_parse(o->gid_range, &b->log, &out->gid_range);
}

/* Opens one more rail. 0 or a negative errno; logs. */
static int api_open_rail(struct braid *b, const struct portlist_item *port, const struct rail_config *config)
{
    struct rail **rail = &b->rail[b->rail_count];
    int rc = rail_open(b->verbs, &b->log, port->dev, port->port, config, rail);
    if (rc)
        return rc;
    log_write(&b->log, LOG_LEVEL_INFO, "rail %u is port %s: %.0f Gb/s, MTU %u, GID index %u", b->rail_count,
              (*rail)->name, (double)(*rail)->address.rate_bits / 1e9, (*rail)->address.mtu, (*rail)->gid_index);
    b->rail_count++;
    return 0;
}

/* Ports that were named: all of them, or none. */
static int api_open_named(struct braid *b, struct rail_config *config)
{
    struct portlist ports;
    uint8_t planes[BRAID_MAX_RAILS];
    int rc = portlist_parse("ports", b->options.ports, &b->log, &ports);
    if (rc)
        return rc;
    if (b->options.rails > ports.count) {
        log_write(&b->log, LOG_LEVEL_ERROR, "option \"rails\" is %u, but \"ports\" names %u", b->options.rails,
                  ports.count);
        return -EINVAL;
    }
    rc = api_planes(b, ports.count, planes);
    if (!rc)
        rc = verbs_load(&b->log, &b->verbs);
    unsigned wanted = b->options.rails ? b->options.rails : ports.count;
    for (unsigned i = 0; i < wanted && !rc; i++) {
        config->plane = planes[i];
        rc = api_open_rail(b, &ports.item[i], config);
    }
    return rc;
}

/* Not each rate has a code in libibverbs, nor is each code known here; the host's own word may be better, and lower is safe. */
static void api_open_rate(struct rail_wire_rail *rail, uint64_t host_bits)
{
    if (host_bits && (!rail->rate_bits || host_bits < rail->rate_bits))
        rail->rate_bits = host_bits;
}

/* Ports that were chosen: those that can be opened, or where none can, another choice. */
static int api_open_chosen(struct braid *b, struct api_auto *choice, struct rail_config *config)
{
    struct portlist ports;
    uint8_t planes[BRAID_MAX_RAILS];
    while (!b->rail_count) {
        int rc = api_auto_choose(choice, &ports);
        if (!rc)
            rc = api_planes(b, ports.count, planes);
        if (!rc && !b->verbs)
            rc = verbs_load(&b->log, &b->verbs);
        if (rc)
            return rc;
        for (unsigned i = 0; i < ports.count; i++) {
            char why[256];
            config->plane = planes[i];
            rc = api_open_rail(b, &ports.item[i], config);
            api_auto_why(choice, i, why, sizeof(why));
            if (!rc) {
                api_open_rate(&b->rail[b->rail_count - 1]->address, api_auto_rate(choice, i));
                log_write(&b->log, LOG_LEVEL_INFO, "rail %u was chosen: %s", b->rail_count - 1, why);
                continue;
            }
            api_auto_failed(choice, i);
            log_write(&b->log, LOG_LEVEL_WARN, "port %s:%u is left out: it cannot be opened (%s)", ports.item[i].dev,
                      ports.item[i].port, strerror(-rc));
        }
    }
    b->gpu.near = api_auto_near(choice);
    api_auto_log_left(choice);
    return 0;
}

static int api_open_rails(struct braid *b)
{
    struct rail_config config;
    struct api_auto *choice = NULL;
    int rc = api_rail_config(b, &config);
    if (rc)
        return rc;
    if (strcmp(b->options.ports, "auto") != 0)
        return api_open_named(b, &config);
    rc = api_auto_open(b, &choice);
    if (!rc)
        rc = api_open_chosen(b, choice, &config);
    api_auto_close(choice);
    return rc;
}

int braid_open(const struct braid_options *options, struct braid **out)
{
    if (!out)
        return -EINVAL;
    struct braid *b = calloc(1, sizeof(*b));
    if (!b) {
        static const struct log to_stderr = {.level = LOG_LEVEL_ERROR};
        log_write(&to_stderr, LOG_LEVEL_ERROR, "no memory for a context");
        return -ENOMEM;
    }
    int rc = api_read_options(b, options);
    if (!rc) {
        uint64_t seed = random_init(&b->random, b->options.seed);
        /* Never from the seed: PEs and lives that share one must not take each other's keys for their own. */
        struct random system;
        random_init(&system, 0);
        b->cookie = random_next(&system);
        log_write(&b->log, LOG_LEVEL_DEBUG, "seed %llu", (unsigned long long)seed);
        b->gpu.device = API_NO_GPU;
        b->gpu.near = BRAID_NEAR_UNKNOWN;
        rc = gpu_open(&b->log, &b->gpu.cuda);
        if (!rc)
            rc = api_open_rails(b);
        if (!rc)
            api_lag_open(b);
    }
    if (rc) {
        braid_close(b);
        return rc;
    }
    *out = b;
    return 0;
}

void braid_close(struct braid *b)
{
    if (!b)
        return;
    for (unsigned c = 0; c < API_MAX_CHANNELS; c++)
        api_channel_free(b->channel[c]);
    while (b->mems)
        api_mem_free(b->mems);
    for (unsigned i = 0; i < BRAID_MAX_RAILS; i++)
        rail_close(b->rail[i]);
    api_gpu_close(b);
    gpu_close(b->gpu.cuda);
    verbs_unload(b->verbs);
    free(b);
}

int braid_rail_count(const struct braid *b)
{
    return b ? (int)b->rail_count : -EINVAL;
}

int braid_rail_stats_at(const struct braid *b, int rail, struct braid_rail_stats *out)
{
    if (!b || !out || rail < 0 || (unsigned)rail >= b->rail_count)
        return -EINVAL;
    struct braid_rail_stats sum = {.rate_bits = b->rail[rail]->address.rate_bits};
    snprintf(sum.port, sizeof(sum.port), "%s", b->rail[rail]->name);
    for (unsigned c = 0; c < b->channel_count; c++) {
        const struct api_stats *s = &b->channel[c]->stats[rail];
        sum.put_bytes += api_stat_read(&s->put_bytes);
        sum.get_bytes += api_stat_read(&s->get_bytes);
        sum.word_ops += api_stat_read(&s->word_ops);
        sum.errors += api_stat_read(&s->errors);
    }
    *out = sum;
    return 0;
}

int braid_channel_stats_at(const struct braid_channel *ch, struct braid_channel_stats *out)
{
    struct braid_channel_stats sum = {.size = out ? out->size : 0};
    if (!ch || (sum.size != sizeof(sum) && sum.size != BRAID_CHANNEL_COUNTS))
        return -EINVAL;
    struct braid_channel *own = (struct braid_channel *)(uintptr_t)ch; /* entered, not changed */
    api_enter(own);
    const size_t first = offsetof(struct braid_channel_stats, puts);
    memcpy((char *)&sum + first, (const char *)&ch->count + first, BRAID_CHANNEL_COUNTS - first);
    for (int pe = 0; sum.size == sizeof(sum) && pe < ch->braid->n_pes; pe++) {
        const struct api_peer *peer = &ch->peers[pe];
        sum.waiting_puts += peer->put.waiting;
        sum.waiting_words += peer->fifo_head - peer->fifo_tail;
    }
    api_leave(own);
    memcpy(out, &sum, sum.size);
    return 0;
}
