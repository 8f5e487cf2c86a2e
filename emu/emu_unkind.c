/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_unkind.c - see emu_unkind.h. Pure: text and random numbers in, numbers out.
 */
#include "emu_unkind.h"

#include <string.h>

struct emu_unkind_name {
    const char *name;
    unsigned bits;
};

static const struct emu_unkind_name emu_unkind_names[] = {
    {"relaxed", EMU_UNKIND_RELAXED}, {"ooo", EMU_UNKIND_OOO},
    {"ackvis", EMU_UNKIND_ACKVIS},   {"atomics", EMU_UNKIND_ATOMICS},
    {"slowctl", EMU_UNKIND_SLOWCTL}, {"rdstall", EMU_UNKIND_RDSTALL},
    {"all", EMU_UNKIND_ALL},         {"ooo-silent", EMU_UNKIND_OOO | EMU_UNKIND_OOO_SILENT},
};

enum { EMU_UNKIND_NAMES = sizeof(emu_unkind_names) / sizeof(emu_unkind_names[0]), EMU_UNKIND_PLAIN = 6 };

const char emu_unkind_words[] =
    "none, or all, relaxed, ooo, ooo-silent, ackvis, atomics, slowctl, rdstall joined by '+'";

bool emu_unkind_parse(const char *text, unsigned *out)
{
    unsigned set = 0;

    if (strcmp(text, "none") == 0) {
        *out = 0;
        return true;
    }
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, "+");
        int i = 0;

        while (i < EMU_UNKIND_NAMES &&
               (strlen(emu_unkind_names[i].name) != len || strncmp(emu_unkind_names[i].name, p, len) != 0))
            i++;
        if (i == EMU_UNKIND_NAMES)
            return false;
        set |= emu_unkind_names[i].bits;
        p += len;
        if (*p == '\0')
            break;
    }
    *out = set;
    return true;
}

void emu_unkind_print(FILE *f, unsigned set)
{
    const char *joint = "";

    if (set == 0 || set == EMU_UNKIND_ALL) {
        fputs(set ? "all" : "none", f);
        return;
    }
    for (int i = 0; i < EMU_UNKIND_PLAIN; i++) {
        const char *name = emu_unkind_names[i].name;

        if (!(set & emu_unkind_names[i].bits))
            continue;
        if (emu_unkind_names[i].bits == EMU_UNKIND_OOO && (set & EMU_UNKIND_OOO_SILENT))
            name = "ooo-silent";
        fprintf(f, "%s%s", joint, name);
        joint = "+";
    }
}

uint64_t emu_unkind_stray(struct emu_rng *r)
{
    return emu_rng_below(r, emu_rng_below(r, 16) == 0 ? 20001 : 2001);
}

uint64_t emu_unkind_late(struct emu_rng *r, uint64_t scale)
{
    return emu_rng_below(r, (emu_rng_below(r, 16) == 0 ? 4 * scale : scale) + 1);
}

uint64_t emu_unkind_scale(uint64_t seed, int device)
{
    struct emu_rng r = {seed + (uint64_t)device * 0x632be59bd9b4e019u};

    return 100ull << emu_rng_below(&r, 9);
}

uint64_t emu_unkind_hold(struct emu_rng *r)
{
    return emu_rng_below(r, 1001);
}

uint64_t emu_unkind_pause(struct emu_rng *r)
{
    return emu_rng_below(r, 2001);
}

uint64_t emu_unkind_slow(struct emu_rng *r, uint64_t ns)
{
    uint64_t most = ns > 1000000 ? ns : 1000000, slow = ns * (1 + emu_rng_below(r, 32));

    return slow < most ? slow : most;
}
