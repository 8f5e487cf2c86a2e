/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_engine.c - names of what can move a generator's bytes. Called by bench_run.c and cli/; next: the transports.
 */
#include "bench_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host_mini.h"

/** "FILE" or "FILE@VERSION". */
static int bench_engine_plugin(const char *text, struct bench_engine *out, char *why, size_t why_len)
{
    const char *at = strrchr(text, '@'), *version = NULL;
    char reason[BENCH_WHY / 2] = "";
    size_t len = strlen(text);

    if (at && !strchr(at, '/')) {
        version = at + 1;
        len = (size_t)(at - text);
    }
    if (len == 0 || len >= sizeof(out->path)) {
        snprintf(why, why_len, "bench: engine plugin:%.80s: expected the file of an NVSHMEM transport plugin", text);
        return -EINVAL;
    }
    snprintf(out->path, sizeof(out->path), "%.*s", (int)len, text);
    if (host_version(out->path, version, &out->version, reason, sizeof(reason)) == 0 && access(out->path, R_OK))
        snprintf(reason, sizeof(reason), "%s", strerror(errno));
    if (reason[0])
        snprintf(why, why_len, "bench: engine plugin:%s: %s", text, reason);
    return reason[0] ? -EINVAL : 0;
}

int bench_engine(const char *text, struct bench_engine *out, char *why, size_t why_len)
{
    memset(out, 0, sizeof(*out));
    if (strcmp(text, "braid") == 0)
        return 0;
    if (strcmp(text, "model:nic-rr") == 0) {
        out->kind = BENCH_ENGINE_NIC_RR;
        return 0;
    }
    if (strncmp(text, "plugin:", 7) != 0) {
        snprintf(why, why_len, "bench: engine \"%.80s\": expected braid, plugin:FILE or model:nic-rr", text);
        return -EINVAL;
    }
    out->kind = BENCH_ENGINE_PLUGIN;
    if (bench_engine_plugin(text + 7, out, why, why_len))
        return -EINVAL;
    out->foreign = !host_is_braid(out->path);
    return 0;
}

const struct bench_transport *bench_engine_transport(const struct bench_engine *e)
{
    switch (e->kind) {
    case BENCH_ENGINE_PLUGIN:
        return &bench_host;
    case BENCH_ENGINE_NIC_RR:
        return &bench_model;
    default:
        return &bench_braid;
    }
}
