/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_spec.c - fuzz target: the FABRIC SPEC. What parses must print, and what is printed must parse to the same print.
 * A refusal must come with a reason.
 */
#include "fuzz.h"

#include <string.h>

#include "emu_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct emu_spec spec, again;
    char why[160] = "";
    char *text = malloc(size + 1);
    fuzz_must(text != NULL, "memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';

    /* Text without '=' names a file: not wanted here. */
    if (strchr(text, '=') != NULL) {
        if (emu_spec_parse(text, &spec, why, sizeof why) == 0) {
            char *first = emu_spec_print(&spec);
            fuzz_must(first != NULL, "what parses prints");
            fuzz_must(emu_spec_parse(first, &again, why, sizeof why) == 0, "what is printed parses");
            char *second = emu_spec_print(&again);
            fuzz_must(second != NULL && strcmp(first, second) == 0, "printing and parsing settle at once");
            free(first);
            free(second);
        } else {
            fuzz_must(why[0] != '\0' && memchr(why, '\0', sizeof why) != NULL, "a refusal has a reason");
        }
    }
    free(text);
    return 0;
}
