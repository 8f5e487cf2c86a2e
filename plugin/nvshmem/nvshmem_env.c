/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_env.c - NVSHMEM's variables as settings for libbraid: the same names and meanings, checked here, so that a message names
 * the variable that the user has set. A BRAID_ variable beats the NVSHMEM_ one of the same meaning. May not look at the
 * machine. Called by nvshmem_init.c; next: nvshmem_connect.c opens with the settings
 */
#include "nvshmem.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What is being read. */
struct nvs_reader {
    nvs_getenv_fn get;
    const struct nvs_host *host;
    const struct nvs_log *log;
    struct nvs_env *env;
};

int nvs_settings_add(struct nvs_settings *settings, const char *name, const char *value)
{
    size_t bytes = strlen(name) + strlen(value) + 2;
    char *text = settings->count < NVS_SETTINGS ? malloc(bytes) : NULL;

    if (!text)
        return -ENOMEM;
    snprintf(text, bytes, "%s=%s", name, value);
    settings->item[settings->count++] = text;
    return 0;
}

void nvs_env_free(struct nvs_env *env)
{
    if (!env)
        return;
    while (env->settings.count) {
        char **last = &env->settings.item[--env->settings.count];

        free(*last);
        *last = NULL;
    }
}

/* The BRAID_ variable of an option, where it is set. */
static const char *nvs_own(const struct nvs_reader *r, const char *option)
{
    char variable[48] = "BRAID_";
    size_t n = strlen(variable);

    for (const char *p = option; *p && n + 1 < sizeof(variable); p++)
        variable[n++] = (char)toupper((unsigned char)*p);
    /* cppcheck-suppress returnDanglingLifetime ; what getenv() gives is not made of its argument */
    return r->get(variable);
}

/* A setting that a BRAID_ variable beats. */
static int nvs_default(const struct nvs_reader *r, const char *option, const char *value)
{
    return nvs_own(r, option) ? 0 : nvs_settings_add(&r->env->settings, option, value);
}

static int nvs_bad(const struct nvs_reader *r, const char *name, const char *seen, const char *expected)
{
    nvs_log(r->log, BRAID_LOG_ERROR, "NVSHMEM_%s is \"%.100s\": expected %s", name, seen, expected);
    return -EINVAL;
}

static const char *nvs_get(const struct nvs_reader *r, const char *name)
{
    char variable[64];

    snprintf(variable, sizeof(variable), "NVSHMEM_%s", name);
    /* cppcheck-suppress returnDanglingLifetime ; as above */
    return r->get(variable);
}

/* ---- numbers, switches ---- */

enum nvs_env_kind { NVS_ENV_NUMBER, NVS_ENV_POWER, NVS_ENV_ON, NVS_ENV_OFF, NVS_ENV_GRH };

struct nvs_env_row {
    const char *name;
    enum nvs_env_kind kind;
    long min, max;
    const char *option;
    const char *fallback; /* what the option is where nobody says anything; NULL: libbraid's own default */
};

static const struct nvs_env_row nvs_env_rows[] = {
    {"IB_GID_INDEX", NVS_ENV_NUMBER, -1, 255, "gid_index", NULL},
    {"IB_TRAFFIC_CLASS", NVS_ENV_NUMBER, 0, 255, "traffic_class", NULL},
    {"IB_SL", NVS_ENV_NUMBER, 0, 15, "sl", NULL},
    {"IB_PKEY_INDEX", NVS_ENV_NUMBER, 0, 65535, "pkey_index", NULL},
    {"IB_TIMEOUT", NVS_ENV_NUMBER, 0, 31, "timeout", "20"},
    {"IB_RETRY_CNT", NVS_ENV_NUMBER, 0, 7, "retry", NULL},
    {"IB_ROCE_VERSION_NUM", NVS_ENV_NUMBER, 1, 2, "roce_version", NULL},
    {"QP_DEPTH", NVS_ENV_POWER, 32, 16384, "sq_depth", NULL},
    {"IB_ENABLE_RELAXED_ORDERING", NVS_ENV_ON, 0, 0, "relaxed", NULL},
    {"IB_DISABLE_DMABUF", NVS_ENV_OFF, 0, 0, "dmabuf", NULL},
    {"IB_FORCE_GRH", NVS_ENV_GRH, 0, 0, "grh", NULL},
};

/* A whole number, as strtol(3) reads it with base 0. */
static bool nvs_number(const char *text, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 0);
    return end != text && !*end && !errno;
}

/* 1: yes, 0: no, -1: neither. */
static int nvs_switch(const char *text)
{
    static const char *const words[][5] = {{"0", "no", "n", "false", "off"}, {"1", "yes", "y", "true", "on"}};

    for (int value = 0; value < 2; value++) {
        for (unsigned i = 0; i < 5; i++) {
            if (strcasecmp(text, words[value][i]) == 0)
                return value;
        }
    }
    return -1;
}

/* A switch's value; unset is `unset`. 0, or -EINVAL. */
static int nvs_env_switch(const struct nvs_reader *r, const char *name, bool unset, bool *out)
{
    const char *text = nvs_get(r, name);
    int value = text ? nvs_switch(text) : unset;

    if (value < 0)
        return nvs_bad(r, name, text, "0 or 1 (no or yes, false or true, off or on)");
    *out = value;
    return 0;
}

static int nvs_env_number(const struct nvs_reader *r, const struct nvs_env_row *row, const char *text, char out[32])
{
    char expected[64];
    long value;
    bool good = nvs_number(text, &value) && value >= row->min && value <= row->max;

    if (good && row->kind == NVS_ENV_POWER)
        good = (value & (value - 1)) == 0;
    snprintf(expected, sizeof(expected), "%s %ld to %ld", row->kind == NVS_ENV_POWER ? "a power of two," : "a number,",
             row->min, row->max);
    if (!good)
        return nvs_bad(r, row->name, text, expected);
    if (value < 0)
        snprintf(out, 32, "auto");
    else
        snprintf(out, 32, "%ld", value);
    return 0;
}

static int nvs_env_row(const struct nvs_reader *r, const struct nvs_env_row *row)
{
    const char *text = nvs_get(r, row->name);
    char value[32];
    bool on = false;
    int rc;

    if (!text)
        return row->fallback ? nvs_default(r, row->option, row->fallback) : 0;
    if (row->kind == NVS_ENV_NUMBER || row->kind == NVS_ENV_POWER) {
        rc = nvs_env_number(r, row, text, value);
    } else {
        rc = nvs_env_switch(r, row->name, false, &on);
        if (row->kind == NVS_ENV_GRH)
            snprintf(value, sizeof(value), "%s", on ? "on" : "auto");
        else
            snprintf(value, sizeof(value), "%s", on == (row->kind == NVS_ENV_ON) ? "on" : "off");
    }
    return rc ? rc : nvs_default(r, row->option, value);
}

/* ---- addresses ---- */

static int nvs_env_gid(const struct nvs_reader *r)
{
    const char *family = nvs_get(r, "IB_ADDR_FAMILY"), *range = nvs_get(r, "IB_ADDR_RANGE");
    int rc = 0;

    if (family && strcmp(family, "AF_INET") != 0 && strcmp(family, "AF_INET6") != 0)
        return nvs_bad(r, "IB_ADDR_FAMILY", family, "AF_INET or AF_INET6");
    if (family)
        rc = nvs_default(r, "gid_family", strcmp(family, "AF_INET") == 0 ? "ipv4" : "ipv6");
    if (!rc && range && *range && strcmp(range, "::/0") != 0)
        rc = nvs_default(r, "gid_range", range);
    return rc;
}

/* ---- ports ---- */

static int nvs_env_list(const struct nvs_reader *r, const char *name, const char *text, bool counted,
                        struct nvs_slots *out)
{
    char why[NVS_WHY];
    int rc = nvs_slots_read(text, counted, out, why);

    if (rc)
        nvs_log(r->log, BRAID_LOG_ERROR, "NVSHMEM_%s is \"%.200s\": %s", name, text, why);
    return rc;
}

/* What the slots are for: by rank, or as candidates. */
static int nvs_env_slots(const struct nvs_reader *r, const char *variable, bool by_rank, const char *sign)
{
    char ports[NVS_PORTS_BYTES + 1];

    r->env->from = variable;
    if (by_rank) {
        r->env->by_rank = true;
        return 0;
    }
    snprintf(ports, sizeof(ports), "%s", sign);
    nvs_slots_once(&r->env->slots, 0, r->env->slots.count, ports + strlen(sign));
    nvs_log(r->log, BRAID_LOG_INFO, "candidates only=%.300s by %s", ports, variable);
    return nvs_settings_add(&r->env->settings, "only", ports);
}

/* Where neither list is given. */
static int nvs_env_prefix(const struct nvs_reader *r)
{
    const char *prefix = nvs_get(r, "HCA_PREFIX");
    char names[NVS_PORTS_BYTES];
    int left_out;

    if (!prefix || !*prefix || nvs_own(r, "ports") || nvs_own(r, "only"))
        return 0;
    if (!nvs_host_knows_prefix(r->host)) {
        nvs_log(r->log, BRAID_LOG_INFO, "NVSHMEM_HCA_PREFIX is not read: this host's own transport does not either");
        return 0;
    }
    left_out = nvs_prefix_names(prefix, nvs_own(r, "sysroot"), names);
    if (left_out < 0) /* that there are no devices is told when they are opened */
        return 0;
    if (!names[0])
        return nvs_bad(r, "HCA_PREFIX", prefix,
                       "a part of the name of a device of this host, or with ^ in front one that not all have");
    nvs_log(r->log, BRAID_LOG_INFO, "NVSHMEM_HCA_PREFIX leaves %d devices out: candidates %.300s", left_out, names);
    return left_out ? nvs_settings_add(&r->env->settings, "only", names) : 0;
}

static int nvs_env_ports(const struct nvs_reader *r)
{
    const char *list = nvs_get(r, "HCA_LIST"), *mapping = nvs_get(r, "HCA_PE_MAPPING");
    bool mapped = false, exclude;
    int rc = nvs_env_switch(r, "ENABLE_NIC_PE_MAPPING", false, &mapped);

    list = list && *list ? list : NULL;
    mapping = mapping && *mapping ? mapping : NULL;
    if (rc || (!list && !mapping)) {
        if (!rc && mapped)
            nvs_log(
                r->log, BRAID_LOG_WARN,
                "NVSHMEM_ENABLE_NIC_PE_MAPPING says nothing without NVSHMEM_HCA_PE_MAPPING or NVSHMEM_HCA_LIST: the "
                "nearest ports are taken");
        return rc ? rc : nvs_env_prefix(r);
    }
    if (nvs_own(r, "ports") || nvs_own(r, "only")) {
        nvs_log(r->log, BRAID_LOG_INFO,
                "BRAID_PORTS or BRAID_ONLY is set: NVSHMEM_HCA_LIST and _PE_MAPPING are not read");
        return 0;
    }
    if (!list) {
        rc = nvs_env_list(r, "HCA_PE_MAPPING", mapping, true, &r->env->slots);
        return rc ? rc : nvs_env_slots(r, "NVSHMEM_HCA_PE_MAPPING", mapped, "");
    }
    if (mapping)
        nvs_log(r->log, BRAID_LOG_WARN, "NVSHMEM_HCA_PE_MAPPING is not read, since NVSHMEM_HCA_LIST is set");
    exclude = *list == '^';
    rc = nvs_env_list(r, "HCA_LIST", list + exclude, false, &r->env->slots);
    return rc ? rc : nvs_env_slots(r, "NVSHMEM_HCA_LIST", mapped && !exclude, exclude ? "^" : "");
}

/* ---- messages ---- */

/* Whether a name is in a list of NVSHMEM_DEBUG_SUBSYS: "A,B" or "^A,B". */
static bool nvs_listed(const char *list, const char *name)
{
    bool invert = *list == '^';
    size_t len = strlen(name);
    bool found = false;

    for (const char *at = list + invert; *at && !found; at += strcspn(at, ","), at += *at == ',')
        found = strcspn(at, ",") == len && strncasecmp(at, name, len) == 0;
    return found != invert;
}

/* The option log's words, by level. */
static const char *const nvs_levels[] = {"error", "warn", "info", "debug"};

static enum braid_log_level nvs_env_level(const struct nvs_reader *r)
{
    const char *own = nvs_own(r, "log"), *debug = nvs_get(r, "DEBUG"), *subsys = nvs_get(r, "DEBUG_SUBSYS");
    enum braid_log_level level = BRAID_LOG_WARN;

    for (unsigned i = 0; own && i < 4; i++) {
        if (strcmp(own, nvs_levels[i]) == 0)
            return (enum braid_log_level)i;
    }
    if (debug && strcasecmp(debug, "INFO") == 0)
        level = BRAID_LOG_INFO;
    else if (debug && strcasecmp(debug, "TRACE") == 0)
        level = BRAID_LOG_DEBUG;
    if (level > BRAID_LOG_WARN && subsys && *subsys && !nvs_listed(subsys, "TRANSPORT") &&
        !nvs_listed(subsys, "INIT") && !nvs_listed(subsys, "ALL"))
        level = BRAID_LOG_WARN;
    return level;
}

/* What asks for something that has no meaning here, or that works against what the user may expect. */
static void nvs_env_remarks(const struct nvs_reader *r)
{
    static const char *const without[] = {"DISABLE_IB_NATIVE_ATOMICS", "DISABLE_GDRCOPY",     "SRQ_DEPTH",
                                          "IB_NUM_RC_PER_DEVICE",      "DISABLE_DATA_DIRECT", "ENABLE_MULTI_PORT",
                                          "MAX_NICS_PER_PE",           "IB_ATOMIC_POLICY"};
    const char *ibgda = nvs_get(r, "IB_ENABLE_IBGDA"), *ll128 = nvs_get(r, "FCOLLECT_LL128_THRESHOLD");

    for (unsigned i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        if (nvs_get(r, without[i]))
            nvs_log(r->log, BRAID_LOG_INFO, "NVSHMEM_%s has no meaning for this transport: not read", without[i]);
    }
    if (ibgda && nvs_switch(ibgda) == 1)
        nvs_log(r->log, BRAID_LOG_WARN,
                "NVSHMEM_IB_ENABLE_IBGDA is on: kernels that post by themselves do not pass through this transport, so "
                "their traffic gets no further ports by it");
    if (ll128 && *ll128 && strcmp(ll128, "0") != 0)
        nvs_log(
            r->log, BRAID_LOG_WARN,
            "NVSHMEM_FCOLLECT_LL128_THRESHOLD is \"%.20s\": that algorithm needs lines of 128 bytes to arrive whole. Puts "
            "are cut between such lines only, but ports behind another PCIe root than the GPU may tear them; unset it "
            "unless all ports are below the GPU's own switch",
            ll128);
}

int nvs_env_read(nvs_getenv_fn get, const struct nvs_host *host, struct nvs_log *log, struct nvs_env *out)
{
    struct nvs_env env = {0};
    struct nvs_reader r = {.get = get, .host = host, .log = log, .env = &env};
    const char *order = nvs_own(&r, "order");
    int rc;

    log->level = env.level = nvs_env_level(&r);
    env.strict = order && strcmp(order, "strict") == 0;
    rc = nvs_default(&r, "log", nvs_levels[env.level]);
    if (!rc)
        rc = nvs_settings_add(&env.settings, "channels", "2"); /* not for the user to change */
    if (!rc)
        rc = nvs_default(&r, "tail", "on");
    for (unsigned i = 0; !rc && i < sizeof(nvs_env_rows) / sizeof(nvs_env_rows[0]); i++)
        rc = nvs_env_row(&r, &nvs_env_rows[i]);
    if (!rc)
        rc = nvs_env_gid(&r);
    if (!rc)
        rc = nvs_env_ports(&r);
    if (rc) {
        nvs_env_free(&env);
        return rc;
    }
    nvs_env_remarks(&r);
    *out = env;
    return 0;
}
