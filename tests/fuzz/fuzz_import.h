/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_import.h - what must hold of an importer: it refuses with a reason, or makes a host that can be planned, saved, and read again
 * as the same.
 */
#ifndef FUZZ_IMPORT_H
#define FUZZ_IMPORT_H

#include "fuzz.h"

#include "import.h"
#include "plan_ports.h"

#include <errno.h>

/** The host as JSON; freed by the caller. */
static inline char *fuzz_import_save(const struct topo_host *host, size_t *len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    fuzz_must(f != NULL, "memory");
    fuzz_must(import_save(host, f) == 0, "a host can be saved");
    fclose(f);
    return text;
}

static inline void fuzz_import_host(const struct topo_host *host)
{
    static struct plan_ports_out plan;
    fuzz_must(host->ports <= TOPO_PORTS && host->gpus <= TOPO_GPUS && host->nodes <= TOPO_PCI,
              "a host keeps its limits");
    for (unsigned g = 0; g < host->gpus; g++) {
        for (unsigned i = 0; i < host->ports; i++)
            fuzz_must(host->near[g][i] <= TOPO_NEAR_SYS, "each GPU and port have a class");
    }
    fuzz_must(plan_ports(host, &(struct plan_ports_rule){0}, &plan) == 0, "a host can be planned");
}

/** One text in a format. */
static inline void fuzz_import(enum import_format format, const uint8_t *data, size_t size)
{
    struct topo_host *host = NULL, *again = NULL;
    struct import_error error;
    int rc = import_text(format, (const char *)data, size, &host, &error);
    if (rc) {
        fuzz_must(host == NULL && error.text[0], "a refusal leaves the output alone and has a reason");
        fuzz_must(rc == -EINVAL, "text is refused for what it is");
        return;
    }
    size_t len, more;
    fuzz_import_host(host);
    char *text = fuzz_import_save(host, &len);
    rc = import_host(text, len, &again, &error);
    fuzz_must(rc == 0, error.text[0] ? error.text : "what was saved can be read");
    char *twice = fuzz_import_save(again, &more);
    fuzz_must(len == more && memcmp(text, twice, len) == 0, "saving settles at once");
    free(text);
    free(twice);
    topo_free(host);
    topo_free(again);
}

#endif
