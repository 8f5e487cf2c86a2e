/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_smi_line.c - pasted text as lines, words and cells. May not know what a table is. Called by import_smi.c.
 */
#include "import_smi.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many bytes an escape sequence at text takes; 0: it is none. CSI is ESC [ and parameters up to a letter; others are short. */
static size_t smi_escape(const char *text, size_t len)
{
    size_t n = 2;
    if (len < 2 || text[0] != '\033')
        return 0;
    if (text[1] != '[')
        return 2;
    while (n < len && !(text[n] >= '@' && text[n] <= '~'))
        n++;
    return n < len ? n + 1 : len;
}

/* One line of len bytes, cleaned into out. How many bytes that are, without the NUL. */
static size_t smi_clean(const char *text, size_t len, char *out, unsigned *column)
{
    size_t n = 0, at = 0;
    while (at < len) {
        size_t skip = smi_escape(text + at, len - at);
        if (skip) {
            at += skip;
            continue;
        }
        bool wide = at + 1 < len && (unsigned char)text[at] == 0xc2 && (unsigned char)text[at + 1] == 0xa0;
        column[n] = (unsigned)at + 1;
        out[n] = wide || text[at] == '\0' || text[at] == '\r' ? ' ' : text[at];
        at += wide ? 2 : 1; /* a space that does not break is a space */
        n++;
    }
    for (size_t i = 0; i < n && (out[i] == '>' || out[i] == ' '); i++)
        out[i] = ' '; /* quoted in a mail or a comment */
    out[n] = '\0';
    column[n] = (unsigned)len + 1;
    return n;
}

int smi_text_make(const char *bytes, size_t len, struct smi_text *out)
{
    struct smi_text t = {0};
    unsigned lines = 1;
    for (size_t i = 0; i < len; i++)
        lines += bytes[i] == '\n';
    t.line = calloc(lines, sizeof(*t.line));
    t.bytes = malloc(len + lines + 1);
    t.columns = calloc(len + lines + 1, sizeof(*t.columns));
    if (!t.line || !t.bytes || !t.columns) {
        smi_text_free(&t);
        return -ENOMEM;
    }
    size_t used = 0;
    for (size_t at = 0; at <= len && t.count < lines;) {
        const char *end = at < len ? memchr(bytes + at, '\n', len - at) : NULL;
        size_t n = end ? (size_t)(end - bytes) - at : len - at;
        struct smi_line *line = &t.line[t.count];
        *line = (struct smi_line){.number = ++t.count, .text = t.bytes + used, .column = t.columns + used};
        used += smi_clean(bytes + at, n, line->text, line->column) + 1;
        at += n + 1;
    }
    *out = t;
    return 0;
}

void smi_text_free(struct smi_text *text)
{
    free(text->line);
    free(text->bytes);
    free(text->columns);
    *text = (struct smi_text){0};
}

bool smi_word_next(const struct smi_line *line, size_t *at, struct smi_word *out)
{
    size_t start = *at + strspn(line->text + *at, " \t");
    size_t len = strcspn(line->text + start, " \t");
    *at = start + len;
    *out = (struct smi_word){.text = line->text + start, .len = (unsigned)len, .column = line->column[start]};
    return len > 0;
}

int smi_cell(const char *text, size_t len, size_t *used)
{
    static const struct {
        const char *word;
        int cell;
    } words[] = {
        {"X", SMI_SELF},
        {"PIX", SMI_NEAR + TOPO_NEAR_PIX},
        {"PXB", SMI_NEAR + TOPO_NEAR_PXB},
        {"PHB", SMI_NEAR + TOPO_NEAR_PHB},
        {"NODE", SMI_NEAR + TOPO_NEAR_NODE},
        {"SYS", SMI_NEAR + TOPO_NEAR_SYS},
        {"SOC", SMI_NEAR + TOPO_NEAR_SYS}, /* what old drivers call it */
        {"C2C", SMI_OTHER},
        {"N/A", SMI_OTHER},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i].word);
        if (len >= n && memcmp(text, words[i].word, n) == 0) {
            *used = n;
            return words[i].cell;
        }
    }
    if (len < 3 || memcmp(text, "NV", 2) != 0 || !isdigit((unsigned char)text[2]))
        return SMI_NONE;
    size_t n = 3;
    while (n < len && n < 4 && isdigit((unsigned char)text[n]))
        n++;
    *used = n;
    return SMI_OTHER;
}

bool smi_numbered(const char *text, size_t len, const char *prefix)
{
    size_t n = strlen(prefix);
    if (len <= n || len > n + 4 || memcmp(text, prefix, n) != 0)
        return false;
    for (size_t i = n; i < len; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
    }
    return true;
}

bool smi_device_name(const char *text, size_t len)
{
    if (len == 0 || len >= TOPO_DEV_SIZE || !isalpha((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '-' && text[i] != '.')
            return false;
    }
    return true;
}
