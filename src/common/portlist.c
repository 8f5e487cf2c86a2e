/* SPDX-License-Identifier: Apache-2.0 */
/* portlist.c - reads the options "ports" and "only". Bad text is refused, never guessed at. Called by api when opening. */
#include "portlist.h"

#include <errno.h>
#include <string.h>

#define PORTLIST_EXAMPLE "expected DEVICE[:PORT],... such as \"mlx5_0:1,mlx5_1:1\""

static bool portlist_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

/* Reads a decimal 1..255 that fills text[0..len) whole; 0 where it is none. */
static uint8_t portlist_number(const char *text, size_t len)
{
    unsigned value = 0;
    if (len == 0 || len > 3)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    return value <= UINT8_MAX ? (uint8_t)value : 0;
}

/* Reads one item of len bytes. */
static bool portlist_item(const char *text, size_t len, struct portlist_item *out)
{
    const char *colon = memchr(text, ':', len);
    size_t name_len = colon ? (size_t)(colon - text) : len;
    *out = (struct portlist_item){.port = 1, .every = !colon};
    if (name_len == 0 || name_len >= sizeof(out->dev))
        return false;
    for (size_t i = 0; i < name_len; i++) {
        if (!portlist_name_char(text[i]))
            return false;
    }
    memcpy(out->dev, text, name_len);
    if (colon)
        out->port = portlist_number(colon + 1, len - name_len - 1);
    return out->port != 0;
}

static bool portlist_has(const struct portlist *list, const struct portlist_item *item)
{
    for (unsigned i = 0; i < list->count; i++) {
        if (list->item[i].port == item->port && strcmp(list->item[i].dev, item->dev) == 0)
            return true;
    }
    return false;
}

int portlist_parse(const char *option, const char *text, const struct log *log, struct portlist *out)
{
    struct portlist list = {0};
    if (!*text) {
        log_write(log, LOG_LEVEL_ERROR, "option \"%s\" names no port: " PORTLIST_EXAMPLE, option);
        return -EINVAL;
    }
    for (const char *p = text;;) {
        struct portlist_item item;
        size_t len = strcspn(p, ",");
        if (!portlist_item(p, len, &item)) {
            log_write(log, LOG_LEVEL_ERROR, "option \"%s\": \"%.*s\" at byte %zu is no port: " PORTLIST_EXAMPLE, option,
                      (int)min_u64(len, 64), p, (size_t)(p - text));
            return -EINVAL;
        }
        if (portlist_has(&list, &item)) {
            log_write(log, LOG_LEVEL_ERROR, "option \"%s\" names %s:%u twice: name each port once", option, item.dev,
                      item.port);
            return -EINVAL;
        }
        if (list.count == PORTLIST_MAX) {
            log_write(log, LOG_LEVEL_ERROR, "option \"%s\" names more than %d ports: name the ones to use", option,
                      PORTLIST_MAX);
            return -E2BIG;
        }
        list.item[list.count++] = item;
        if (!p[len])
            break;
        p += len + 1;
    }
    *out = list;
    return 0;
}
