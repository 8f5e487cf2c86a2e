/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_options.c - fuzz target: settings "name=value", one a line, and the port list. A refusal must be logged and must
 * leave the output as it was.
 */
#include "fuzz.h"

#include <string.h>

#include "options.h"
#include "portlist.h"

static void count_line(void *arg, int level, const char *line)
{
    (void)level;
    fuzz_must(strlen(line) < 1024, "a log line has at most 1023 bytes");
    ++*(unsigned *)arg;
}

/* Cuts text into lines, in place; at most max of them, NULL behind the last. */
static void cut_lines(char *text, const char **lines, unsigned max)
{
    unsigned n = 0;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line && n < max; line = strtok_r(NULL, "\n", &save))
        lines[n++] = line;
    lines[n] = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned logged = 0;
    const struct log log = {.level = LOG_LEVEL_ERROR, .fn = count_line, .arg = &logged};
    const char *lines[33];
    struct options options, before;
    struct portlist ports;
    char *text = malloc(size + 1);
    fuzz_must(text != NULL, "memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    cut_lines(text, lines, 32);

    memset(&options, 0x5a, sizeof options);
    memcpy(&before, &options, sizeof options);
    if (options_parse(lines, &log, &options) == 0) {
        fuzz_must(memchr(options.ports, '\0', sizeof options.ports) != NULL, "ports is a string");
        int rc = portlist_parse("ports", options.ports, &log, &ports);
        fuzz_must(rc != 0 || (ports.count >= 1 && ports.count <= PORTLIST_MAX), "1 to 16 ports");
        fuzz_must(rc == 0 || logged > 0, "a refusal is logged");
    } else {
        fuzz_must(logged > 0, "a refusal is logged");
        fuzz_must(fuzz_same(&options, &before, sizeof options), "a refusal leaves the output as it was");
    }
    free(text);
    return 0;
}
