/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - which importer a text is for. Called by cli; next: import_smi.c, import_nccl.c, import_hwloc.c, import_host.c */
#include "import.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const char *const import_names[] = {"auto", "host", "hwloc", "nccl", "smi"};

int import_fail(struct import_error *error, unsigned line, unsigned column, const char *format, ...)
{
    va_list ap;
    error->line = line;
    error->column = column;
    va_start(ap, format);
    vsnprintf(error->text, sizeof(error->text), format, ap);
    va_end(ap);
    return -EINVAL;
}

bool import_format_parse(const char *name, enum import_format *out)
{
    for (unsigned i = 0; i < sizeof(import_names) / sizeof(import_names[0]); i++) {
        if (strcmp(name, import_names[i]) == 0) {
            *out = (enum import_format)i;
            return true;
        }
    }
    return false;
}

const char *import_format_name(enum import_format format)
{
    return import_names[format];
}

enum import_format import_guess(const char *text, size_t len)
{
    size_t at = 0;
    while (at < len && text[at] && strchr(" \t\r\n\xef\xbb\xbf", text[at]))
        at++;
    if (at < len && text[at] == '{')
        return IMPORT_HOST;
    if (at < len && text[at] == '<') {
        if (memmem(text, len, "<topology", 9))
            return IMPORT_HWLOC;
        return memmem(text, len, "<system", 7) ? IMPORT_NCCL : IMPORT_AUTO;
    }
    return memmem(text, len, "GPU", 3) ? IMPORT_SMI : IMPORT_AUTO;
}

int import_text(enum import_format format, const char *text, size_t len, struct topo_host **out,
                struct import_error *error)
{
    *error = (struct import_error){0};
    if (len > IMPORT_MOST)
        return import_fail(error, 0, 0, "seen %zu bytes, expected at most %u: this is no host", len, IMPORT_MOST);
    if (format == IMPORT_AUTO)
        format = import_guess(text, len);
    switch (format) {
    case IMPORT_HOST:
        return import_host(text, len, out, error);
    case IMPORT_HWLOC:
        return import_hwloc(text, len, out, error);
    case IMPORT_NCCL:
        return import_nccl(text, len, out, error);
    case IMPORT_SMI:
        return import_smi(text, len, out, error);
    case IMPORT_AUTO:
        break;
    }
    return import_fail(
        error, 1, 1,
        "seen none of what is known, expected a host that braid plan --save wrote, hwloc XML, NCCL topology XML "
        "or the table of nvidia-smi topo -m (--format says which)");
}
