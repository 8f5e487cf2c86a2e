/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem_slots.c - lists of ports as NVSHMEM's variables have them, taken apart and dealt to the PEs of a node. Text in, text
 * out: it may not look at the machine. Called by nvshmem_env.c and nvshmem_connect.c.
 */
#include "nvshmem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A decimal number of 1 to max that ends the text, or 0. */
static unsigned nvs_slot_number(const char *text, unsigned max)
{
    unsigned value = 0;

    for (; *text >= '0' && *text <= '9' && value <= max; text++)
        value = value * 10 + (unsigned)(*text - '0');
    return *text || value > max ? 0 : value;
}

/* How often "dev", "dev:port" or "dev:port:count" names its port; 0: it is not of the form asked for. Cuts the count off. */
static unsigned nvs_slot_count(char *item, bool counted)
{
    char *port = strchr(item, ':');
    char *count = port ? strchr(port + 1, ':') : NULL;

    if (port == item || !*item || (counted && !count) || (!counted && count))
        return 0;
    if (count)
        *count = '\0';
    if (port && !nvs_slot_number(port + 1, 255))
        return 0;
    return counted ? nvs_slot_number(count + 1, NVS_MAX_SLOTS) : 1;
}

int nvs_slots_read(const char *text, bool counted, struct nvs_slots *out, char why[NVS_WHY])
{
    struct nvs_slots slots = {0};

    for (const char *at = text;; at++) {
        char item[2 * NVS_SLOT_BYTES] = "";
        size_t len = strcspn(at, ",");
        unsigned count = 0;

        if (len < sizeof(item)) {
            memcpy(item, at, len);
            count = nvs_slot_count(item, counted);
        }
        if (!count || strlen(item) >= NVS_SLOT_BYTES) {
            snprintf(why, NVS_WHY, "\"%.*s\" is not %s", (int)(len < 60 ? len : 60), at,
                     counted ? "device:port:count with a count of 1 to 128" : "device or device:port");
            return -EINVAL;
        }
        if (slots.count + count > NVS_MAX_SLOTS) {
            snprintf(why, NVS_WHY, "it names more than %d ports", NVS_MAX_SLOTS);
            return -EINVAL;
        }
        while (count--)
            memcpy(slots.item[slots.count++], item, NVS_SLOT_BYTES);
        at += len;
        if (!*at)
            break;
    }
    *out = slots;
    return 0;
}

void nvs_slots_once(const struct nvs_slots *slots, unsigned from, unsigned count, char out[NVS_PORTS_BYTES])
{
    size_t used = 0;

    out[0] = '\0';
    for (unsigned i = from; i < from + count; i++) {
        unsigned same = from;

        while (strcmp(slots->item[same], slots->item[i]) != 0)
            same++;
        if (same == i)
            used += (size_t)snprintf(out + used, NVS_PORTS_BYTES - used, "%s%s", used ? "," : "", slots->item[i]);
    }
}

void nvs_slots_pick(const struct nvs_slots *slots, int rank, int ranks, char out[NVS_PORTS_BYTES])
{
    unsigned each = slots->count / (unsigned)ranks;

    if (each < 2)
        nvs_slots_once(slots, (unsigned)rank % slots->count, 1, out);
    else
        nvs_slots_once(slots, (unsigned)rank * each, each, out);
}
